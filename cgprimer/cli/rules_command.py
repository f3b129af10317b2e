"""``cgprimer rules``: differentiate a formula rule by rule."""

from __future__ import annotations

import re
from os import path
from typing import Any

import click

from cgprimer.analysis.rules import rules
from cgprimer.cli.common import echo_json, make_command
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import NAMES, POSITIVE_INTEGER
from cgprimer.cli.shared_options import json_option, of_option
from cgprimer.core.graph.loading import load
from cgprimer.support.files import find_examples

_MAX_LINES = 200


@make_command()
@option(
    "-e",
    "--expression",
    metavar="FORMULA",
    help="Formula that begins with a minus sign or looks like a file name.",
)
@option(
    "--wrt",
    metavar="NAME",
    help="Variable to differentiate with respect to (default: x, or the only candidate).",
)
@of_option
@option(
    "--inner",
    type=click.Choice(["chain", "substitute"]),
    default="chain",
    help="Apply the chain rule to inner expressions, or substitute them first.",
)
@option(
    "--functions",
    **NAMES,
    help="Names of abstract functions of the variable (default for a formula: f,g,h,u,v).",
)
@option("--order", **POSITIVE_INTEGER, default=1, help="Order of the derivative.")
@option("--latex", is_flag=True, help="Print LaTeX, with one align* line per step.")
@json_option
@option("--all", "show_all", is_flag=True, help="Print all lines of a long derivation.")
@click.argument("file", metavar="FILE|FORMULA", required=False, type=click.Path(allow_dash=True))
def command(
    file: str | None,
    expression: str | None,
    latex: bool,
    as_json: bool,
    show_all: bool,
    **settings: Any,
) -> None:
    """Differentiate a formula step by step, with the name of each rule.

    \b
    Examples:
      cgprimer rules "2*x^3 - 6*x^2 + x + 1"
      cgprimer rules "f(g(x))"
      cgprimer rules "y = f*g; f = u*v"
      cgprimer rules lecture --wrt xa
      cgprimer rules "sin(w*x + b)" --wrt w --latex

    The part that the next rule rewrites is underlined. 'cgprimer primitives' lists the derivatives
    of all functions.
    """
    if (file is None) == (expression is None):
        raise click.UsageError("pass a FILE, a formula, or -e FORMULA")
    formula = expression if file is None else file if _is_formula(file) else load(file)
    assert formula is not None
    derivation = rules(formula, **settings)
    if as_json:
        echo_json(derivation.to_dict())
        return
    lines = (derivation.latex() if latex else str(derivation)).split("\n")
    if len(lines) > _MAX_LINES and not (show_all or latex):
        more = f"... {len(lines) - _MAX_LINES:,} more lines (--all shows all)"
        lines = [*lines[:_MAX_LINES], more, derivation.result]
    click.echo("\n".join(lines))


def _is_formula(text: str) -> bool:
    """Return whether a string is a formula rather than the path of a missing file."""
    if (
        text == "-"
        or text in find_examples()
        or path.exists(text)
        or re.search(r"\.[a-zA-Z]\w*$", text)
    ):
        return False
    if "/" in text and path.isdir(path.dirname(text)):
        return False
    return len(text) == 1 or not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_.-]*", text)
