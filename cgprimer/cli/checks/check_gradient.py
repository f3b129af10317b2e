"""``cgprimer check gradient``: a student's gradient function, and the likely mistake."""

from __future__ import annotations

from typing import Any

import click

from cgprimer.cli.checks.check_options import check_command
from cgprimer.cli.common import note
from cgprimer.cli.options import DOMAIN, KEEP, LOSS, WRT
from cgprimer.core.graph.loading import load
from cgprimer.course.checks.batch_checks import Check


@check_command(
    "--points (count) 1.. =20  At how many points the function is called.",
    "--seed 0.. =0  Of the points.",
    "--of NAME  What is differentiated (default: the only output).",
    WRT,
    LOSS.replace(" --at target=VALUE with it.", " the function is given target, too."),
    "--batch 0.. =0  Samples of a batch: inputs are lists, and the loss is their mean or sum.",
    KEEP,
    DOMAIN,
    "--reduction mean|sum =mean  Of a batch.",
    "--function (name) NAME =gradient  What students call the function.",
    "--value  The function returns the value, too: (value, gradient).",
    "--tolerance NUMBER  Largest relative error that is right, between 0 and 1 (default: 1e-7, or"
    " 1e-4 for graphs with kinks).",
)
@click.argument("file", type=click.Path())
def command(file: str, wrt: tuple[str, ...], **settings: Any) -> Check:
    """Check a gradient function at many points, and name the likely mistake.

    \b
    Examples:
      cgprimer check gradient lecture --skeleton > gradient.py
      cgprimer check gradient lecture gradient.py
      cgprimer check gradient lecture submissions/ --loss squared-error --batch 4
    """
    from cgprimer.course.checks.gradient_check import build_gradient_check, format_gradient_skeleton

    graph = load(file)
    made = build_gradient_check(graph, wrt=wrt or None, **settings)
    question = made.question
    for text in question.notes:
        note(f"note: {text}")
    asked = ", ".join(f"{k}={v!r}" for k, v in {"wrt": list(wrt), **settings}.items() if v)
    asked = asked.replace("count=", "points=")
    return Check(
        "gradient",
        f"{question.graph.text}\n{asked}",
        made.run,
        format_gradient_skeleton(made),
        f"cgprimer.check_gradient(cgprimer.parse({str(graph)!r}), NAMES, {asked})",
        made.possible,
    )
