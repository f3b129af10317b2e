"""``cgprimer check formula``: a gradient worked out by hand, or a rule that somebody states."""

from __future__ import annotations

from typing import Any

import click

from cgprimer.cli.common import check_outputs, echo_json, make_command, note
from cgprimer.cli.grouped_help import option
from cgprimer.cli.option_values import (
    ASSIGNMENTS,
    NAMES,
    PATH,
    POSITIVE_INTEGER,
)
from cgprimer.cli.shared_options import (
    domain_option,
    force_option,
    json_option,
    keep_option,
    of_option,
    seed_option,
)
from cgprimer.core.graph.loading import load
from cgprimer.course.checks.result_files import format_junit_xml
from cgprimer.support.files import write_atomically


@make_command()
@option(
    "--at",
    **ASSIGNMENTS,
    help="Point at which numbers are compared; formulas are compared at random points near it.",
)
@of_option
@option(
    "--wrt",
    **NAMES,
    help="Variables to differentiate with respect to (default: parameters, otherwise inputs).",
)
@option(
    "--loss",
    metavar="LOSS",
    help="Loss to add as a node after the outputs; formulas may use 'target'.",
)
@keep_option
@domain_option
@option(
    "--points",
    **POSITIVE_INTEGER,
    default=20,
    help="Number of random points at which to compare formulas.",
)
@seed_option
@option(
    "--feedback",
    type=click.Choice(["points", "part", "mistake"]),
    default="mistake",
    help="Level of feedback: total points, verdict on each part, or likely mistakes.",
)
@json_option
@option("--junit", **PATH, help="Write the results as JUnit XML.")
@force_option
@click.argument("file", metavar="FILE|STATEMENT", type=click.Path(allow_dash=True))
@click.argument("answer", required=False)
def command(
    file: str,
    answer: str | None,
    feedback: str,
    as_json: bool,
    junit: str | None,
    force: bool,
    **settings: Any,
) -> None:
    """Check a gradient computed by hand, or a differentiation rule.

    \b
    Examples:
      cgprimer check formula "d(coth(x)) = -csch(x)"
      cgprimer check formula "sin' = cos"
      cgprimer check formula lecture "dab = 3*xz^2*xx, dac = 3*xz^2*xa" --wrt ab,ac
      cgprimer check formula lecture "5.671875, 11.34375" --wrt ab,ac --at xa=0.5

    With a FILE, ANSWER has one formula or number per component, in order or by name. Numbers are
    compared at the declared values. The correct values of a FILE are never shown.
    """
    from cgprimer.course.checks.formula_check import check_formula

    for text in filter(None, (file, answer)):
        if text.startswith("--"):
            raise click.NoSuchOption(text.partition("=")[0])
    check_outputs(force, junit)
    if answer is None and "=" not in file:
        raise click.UsageError(
            'missing ANSWER; to check a rule, write it as "d(coth(x)) = -csch(x)^2"'
        )
    result = check_formula(file if answer is None else load(file), answer, **settings).at(feedback)
    for text in result.notes:
        note(f"note: {text}")
    if junit:
        write_atomically(junit, format_junit_xml([result]))
        note(f"wrote {junit}")
    if as_json:
        echo_json(result.to_dict())
    else:
        click.echo(result)


# An answer may begin with a minus sign.
command.context_settings["ignore_unknown_options"] = True
