"""``cgprimer check gradient``: a student's gradient function, and the likely mistake."""

from __future__ import annotations

from typing import Any

import click

from cgprimer.cli.checks.check_options import check_command, submission_options
from cgprimer.cli.common import note
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import NUMBER, POSITIVE_INTEGER
from cgprimer.cli.shared_options import (
    domain_option,
    keep_option,
    of_option,
    seed_option,
    wrt_option,
)
from cgprimer.core.graph.loading import load
from cgprimer.course.checks.batch_checks import Check


@check_command()
@option(
    "--points",
    "count",
    **POSITIVE_INTEGER,
    default=20,
    help="Number of random points at which to call the function.",
)
@seed_option
@of_option
@wrt_option
@option(
    "--loss",
    metavar="LOSS",
    help="Loss to add as a node after the outputs; the function then also receives target.",
)
@option(
    "--batch",
    metavar="N",
    type=click.IntRange(min=0),
    default=0,
    help="Number of samples per call, passed as lists; 0 passes one sample as scalars.",
)
@keep_option
@domain_option
@option(
    "--reduction",
    type=click.Choice(["mean", "sum"]),
    default="mean",
    help="Reduction of the loss over a batch.",
)
@option(
    "--function", "name", metavar="NAME", default="gradient", help="Name of the submitted function."
)
@option("--value", is_flag=True, help="Require the function to return (value, gradient).")
@option(
    "--tolerance",
    **NUMBER,
    help="Maximum relative error (default: 1e-7, or 1e-4 for graphs with kinks).",
)
@click.argument("file", type=click.Path())
@submission_options
def command(file: str, wrt: tuple[str, ...], **settings: Any) -> Check:
    """Check a gradient function at random points and name the likely mistake.

    \b
    Examples:
      cgprimer check gradient lecture --skeleton > gradient.py
      cgprimer check gradient lecture gradient.py
      cgprimer check gradient lecture submissions/ --loss squared-error --batch 4
    """
    from cgprimer.course.checks.gradient_check import build_gradient_check, format_gradient_skeleton

    graph = load(file)
    check = build_gradient_check(graph, wrt=wrt or None, **settings)
    question = check.question
    for text in question.notes:
        note(f"note: {text}")
    arguments = ", ".join(f"{k}={v!r}" for k, v in {"wrt": list(wrt), **settings}.items() if v)
    arguments = arguments.replace("count=", "points=")
    return Check(
        "gradient",
        f"{question.graph.text}\n{arguments}",
        check.run,
        format_gradient_skeleton(check),
        f"cgprimer.check_gradient(cgprimer.parse({str(graph)!r}), NAMES, {arguments})",
        check.possible,
    )
