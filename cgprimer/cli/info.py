"""``cgprimer info``: about a graph, or about this machine."""

from __future__ import annotations

import platform
from typing import Any

import click

from cgprimer import __version__
from cgprimer.cli.common import echo_json, graph_arguments, make_command, read_graph
from cgprimer.cli.options import JSON, options

_LIBRARIES = (
    "numpy",
    "scipy",
    "sympy",
    "networkx",
    "matplotlib",
    "graphlay",
    "click",
    "llvmlite",
    "numba-cuda",
)


@make_command("info")
@graph_arguments
@options(JSON)
def command(file: str | None, expression: str | None, as_json: bool) -> None:
    """What a graph consists of; without a graph, what this machine offers.

    \b
    Examples:
      cgprimer info
      cgprimer info lecture
      cgprimer info lecture --json
    """
    found = _machine() if file is None and expression is None else _graph(file, expression)
    if as_json:
        echo_json(found)
        return
    details: Any = found.pop("details", {})
    for key, value in found.items():
        if isinstance(value, dict):
            click.echo(f"{key}:")
            for name, entry in value.items():
                shown = ", ".join(map(str, entry)) if isinstance(entry, list) else entry
                click.echo(f"  {name}: {shown}")
                for what, which in details.get(name, {}).items() if key == "engines" else ():
                    click.echo(f"    {what}: {which}")
        else:
            click.echo(f"{key}: {', '.join(map(str, value)) if isinstance(value, list) else value}")


def _machine() -> dict[str, object]:
    import os
    from importlib.metadata import PackageNotFoundError, version

    from cgprimer.core.engines import engines
    from cgprimer.core.methods import methods

    usable = engines()
    libraries: dict[str, str] = {}
    for name in _LIBRARIES:
        try:
            libraries[name] = version(name)
        except PackageNotFoundError:
            libraries[name] = "missing"
    return {
        "cgprimer": __version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "methods": list(methods()),
        "engines": {
            e.name: "available" if e.available else f"not here: {e.reason}" for e in usable
        },
        "details": {
            e.name: dict(line.partition(": ")[::2] for line in e.detail.splitlines())
            for e in usable
            if e.detail
        },
        "libraries": libraries,
    }


def _graph(file: str | None, expression: str | None) -> dict[str, object]:
    from cgprimer.core.derivatives.evaluation import tape

    graph = read_graph(file, expression, may_be_empty=True)
    return {
        "source": graph.source.name,
        "inputs": list(graph.inputs),
        "outputs": list(graph.outputs),
        "variables": list(graph.variables),
        "parameters": list(graph.parameters),
        "values": dict(graph.values),
        "depends_on": dict(graph.depends_on),
        "leads_to": dict(graph.leads_to),
        "operations": len(tape(graph)),
    }
