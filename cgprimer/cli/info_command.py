"""``cgprimer info``: describe a graph, or this machine."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click

from cgprimer import __version__
from cgprimer.cli.common import echo_json, graph_command
from cgprimer.cli.shared_options import json_option
from cgprimer.errors import VISIBLE
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import format_array

_LIBRARIES = ("numpy", "scipy", "sympy", "networkx", "matplotlib", "graphlay", "click",
              "llvmlite", "numba-cuda")  # fmt: skip


@graph_command(optional=True, with_loss=True)
@json_option
def command(graph: ExpressionGraph | None, as_json: bool) -> None:
    """Describe a graph; without a graph, describe this machine.

    \b
    Examples:
      cgprimer info
      cgprimer info lecture
      cgprimer info lecture --json
    """
    description = _describe_machine() if graph is None else _describe_graph(graph)
    if as_json:
        echo_json(description)
        return
    details: Any = description.pop("details", {})
    for key, value in description.items():
        if isinstance(value, dict) and value:
            click.echo(f"{key}:")
            for name, entry in value.items():
                shown = ", ".join(map(str, entry)) if isinstance(entry, list) else entry
                if isinstance(entry, tuple):  # print one row of a matrix per line
                    shown = format_array(entry).replace("\n", "\n" + " " * (len(name) + 4))
                shown = f"[{shown}]" if key == "shapes" else shown
                click.echo(f"  {name}: {shown}")
                for what, which in details.get(name, {}).items() if key == "engines" else ():
                    click.echo(f"    {what}: {which}")
        else:
            shown = ", ".join(map(str, value)) if isinstance(value, list | dict) else value
            click.echo(f"{key}: {'none' if shown == '' else shown}")


def _describe_machine() -> dict[str, object]:
    """Return the versions of libraries, and the methods and engines on this machine."""
    from cgprimer.core.methods import methods
    from cgprimer.core.registration import engines

    usable = engines()
    libraries = dict.fromkeys(_LIBRARIES, "missing")
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):
            libraries[name] = version(name)
    return {
        "cgprimer": __version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "methods": list(methods()),
        "engines": {
            e.name: "available" if e.available else f"not available: {e.reason}" for e in usable
        },
        "details": {
            e.name: dict(line.partition(": ")[::2] for line in e.detail.splitlines())
            for e in usable
            if e.detail
        },
        "libraries": libraries,
    }


def _describe_graph(graph: ExpressionGraph) -> dict[str, object]:
    """Return the names, edges, shapes and number of operations of a graph."""
    from cgprimer.tapes import tape

    names = ("inputs", "outputs", "variables", "parameters")
    graph_tape = tape(graph)
    every = {
        n: graph_tape.shapes[graph_tape.index(n)] for n in (*graph.variables, *graph.parameters)
    }
    shapes = {name: list(shape) for name, shape in every.items() if shape}
    edges = ("values", "depends_on", "leads_to")
    return {
        "source": graph.source.name.translate(VISIBLE),
        **{name: list(getattr(graph, name)) for name in names},
        **{name: dict(getattr(graph, name)) for name in edges},
        **({"shapes": shapes} if shapes else {}),
        "operations": len(graph_tape),
    }
