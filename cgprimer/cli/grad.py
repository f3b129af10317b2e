"""``cgprimer grad``: values and derivatives at a point."""

from __future__ import annotations

import re
from typing import Any

import click

from cgprimer.cli.common import echo_json, graph_command, note
from cgprimer.cli.options import AT, ENGINE, JSON, WRT, method_lines, own_options
from cgprimer.core.graph import ExpressionGraph

_MOST = 64  # numbers of an array that are printed with all digits


def _line(name: str, value: Any) -> str:
    """A value with all digits, an array row by row; of a large one how it begins."""
    if isinstance(value, float) or value.size <= _MOST:
        if isinstance(value, float):
            return f"{name} = {value!r}"
        margin = len(name) + len(" = ") + value.ndim

        def broken(ends: re.Match[str]) -> str:  # a row stands below the one before
            return f"{ends[1]},\n{' ' * (margin - len(ends[1]))}["

        return f"{name} = " + re.sub(r"(\]+), \[", broken, repr(value.tolist()))
    from cgprimer.number_format import numbers

    return f"{name} = {numbers(value)}"


@graph_command(
    AT,
    "--of NAME,...  Variables to differentiate (default: all outputs).",
    WRT,
    method_lines("reverse"),
    ENGINE,
    "--show  Print the derivative program as readable code and stop.",
    JSON,
)
def command(
    graph: ExpressionGraph, method: str, show: bool, as_json: bool, **settings: Any
) -> None:
    """Values of the outputs and their derivatives.

    \b
    Examples:
      cgprimer grad lecture
      cgprimer grad lecture --at xa=-0.5 --wrt xa,xx,ab
      cgprimer grad -e "xw = sin(xa)" --at xa=1 --wrt xa --method finite-difference --step 1e-8
      cgprimer grad lecture --method reverse --show
      cgprimer grad matrix_backpropagation --at "x=[[1,2]],y=3" --wrt "w1,w2[0,0]"
    """
    from cgprimer.analysis.points import first_not_finite
    from cgprimer.core.derivatives import derivatives_at, tape_with
    from cgprimer.core.methods import differentiate
    from cgprimer.errors import UsageError

    names = settings["wrt"] or graph.parameters or graph.inputs
    if not names:
        raise UsageError("the graph has no parameter and no input to differentiate with respect to")
    options = own_options(method, settings)
    settings |= {"wrt": names, "of": settings["of"] or None}
    if show:
        of = settings["of"] or graph.outputs
        click.echo(str(differentiate(tape_with(graph, of), of, names, method=method, **options)))
        return
    found = derivatives_at(graph, method=method, **settings, **options)
    if as_json:
        gradient = {o: {n: found.derivatives[o, n] for n in names} for o in found.values}
        echo_json({"method": method, "values": found.values, "gradient": gradient})
    else:
        for name, value in found.values.items():
            click.echo(_line(name, value))
        for (name, other), value in found.derivatives.items():
            click.echo(_line(f"d {name} / d {other}", value))
    if complaint := first_not_finite(graph, settings["at"], found):
        note(f"note: {complaint}")
