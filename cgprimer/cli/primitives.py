"""``cgprimer primitives``: the table of functions."""

from __future__ import annotations

import click

from cgprimer.cli.common import echo_json, make_command
from cgprimer.cli.options import JSON

_SIGNS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "^": "pow", "**": "pow"}


@make_command(JSON)
@click.argument("names", nargs=-1)
def command(names: tuple[str, ...], as_json: bool) -> None:
    """The functions of the language and their derivatives.

    \b
    Examples:
      cgprimer primitives
      cgprimer primitives tanh max
      cgprimer primitives --json

    Derivatives are in the language itself: a, b and c are the operands, out is the result.
    """
    from cgprimer.analysis.tables import table
    from cgprimer.core.language.syntax import Apply, Name
    from cgprimer.core.primitives import OPERANDS, primitive, primitives
    from cgprimer.core.primitives.notation import unparse
    from cgprimer.core.primitives.registry import FUNCTIONS

    found = (FUNCTIONS[name] or (primitive(_SIGNS.get(name, name)),) for name in names)
    rows = [row for several in found for row in several] or list(primitives())
    if as_json:
        shown = ("arity", "partials", "domain", "edges", "analytic")
        named = ({"name": r.name, "function": r.spelling} for r in rows)
        echo_json([n | {s: getattr(r, s) for s in shown} for n, r in zip(named, rows, strict=True)])
        return
    cells = []
    for r in rows:
        operands = OPERANDS[: r.arity]
        call = unparse(Apply(r.name, tuple(map(Name, operands))))
        partials = [f"d/d{o} = {text}" for o, text in zip(operands, r.partials, strict=True)]
        if not names:
            cells.append([call, "; ".join(partials), r.domain])
            continue
        click.echo("\n  ".join([call, *partials, f"domain: {r.domain}"]))
        for what in ("edges", "source"):
            if getattr(r, what):
                click.echo(f"  {what}: {getattr(r, what)}")
    if cells:
        click.echo(table(["function", "partial derivatives", "domain"], cells, left=(0, 1, 2)))
