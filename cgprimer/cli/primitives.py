"""``cgprimer primitives``: the table of functions."""

from __future__ import annotations

import click

from cgprimer.cli.common import echo_json, make_command
from cgprimer.cli.options import JSON

_SIGNS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "^": "pow", "**": "pow"}


@make_command("primitives", JSON)
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
    from cgprimer.core.primitives import OPERANDS, Primitive, primitive, primitives, spelled

    rows: list[Primitive] = []
    for name in names:
        rows.extend(spelled(name) or (primitive(_SIGNS.get(name, name)),))
    rows = rows or list(primitives())
    if as_json:
        echo_json(
            [
                {"name": r.name, "function": r.spelling, "arity": r.arity,
                 "partials": list(r.partials),
                 "domain": r.domain, "edges": r.edges, "analytic": r.analytic}
                for r in rows
            ]
        )  # fmt: skip
        return
    infix = {
        "add": "a + b",
        "sub": "a - b",
        "mul": "a*b",
        "div": "a/b",
        "pow": "a^b",
        "neg": "-a",
        "copy": "a",
    }
    lines = []
    for r in rows:
        call = infix.get(r.name) or f"{r.spelling}({', '.join(OPERANDS[: r.arity])})"
        partials = [f"d/d{o} = {text}" for o, text in zip(OPERANDS, r.partials, strict=False)]
        if names:
            lines.append(f"{call}\n" + "\n".join(f"  {p}" for p in partials))
            lines.append(f"  domain: {r.domain}")
            if r.edges:
                lines.append(f"  edges: {r.edges}")
            if r.source:
                lines.append(f"  source: {r.source}")
        else:
            lines.append("\t".join([call, "; ".join(partials), r.domain]))
    if names:
        click.echo("\n".join(lines))
    else:
        cells = [line.split("\t") for line in lines]
        click.echo(table(["function", "partial derivatives", "domain"], cells, left=(0, 1, 2)))
