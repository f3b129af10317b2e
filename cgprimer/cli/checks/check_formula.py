"""``cgprimer check formula``: a gradient worked out by hand, or a rule that somebody states."""

from __future__ import annotations

from typing import Any

import click

from cgprimer.cli.common import check_outputs, echo_json, make_command, note
from cgprimer.cli.options import DOMAIN, FORCE, JSON, KEEP, LOSS
from cgprimer.core.graph.loading import load
from cgprimer.course.checks.check_results import LEVELS
from cgprimer.course.checks.result_files import junit_xml
from cgprimer.support.files import write_atomically


@make_command(
    "--at NAME=VALUE,...  Values in the place of declared ones: numbers are compared there, and"
    " formulas around them.",
    "--of NAME  What is differentiated (default: the only output).",
    "--wrt NAME,...  With respect to which names (default: all parameters, or all inputs).",
    LOSS.replace(" --at target=VALUE with it.", " formulas may use target."),
    KEEP,
    DOMAIN,
    "--points 1.. =20  At how many points formulas are compared.",
    "--seed 0.. =0  Of the points.",
    f"--feedback {'|'.join(LEVELS)} ={LEVELS[-1]}  How much is said: the points, which part, which"
    " kind of mistake.",
    JSON,
    "--junit PATH  JUnit's XML.",
    FORCE,
)
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
    """Check a gradient that was worked out by hand, or a rule that somebody states.

    \b
    Examples:
      cgprimer check formula "d(coth(x)) = -csch(x)"
      cgprimer check formula "sin' = cos"
      cgprimer check formula lecture "dab = 3*xz^2*xx, dac = 3*xz^2*xa" --wrt ab,ac
      cgprimer check formula lecture "5.671875, 11.34375" --wrt ab,ac --at xa=0.5

    Of a FILE, ANSWER has a formula or a number for each component, in their order or by name; a
    number is compared at the declared values. No right value is said of a FILE.
    """
    from cgprimer.course.checks.formula_check import check_formula

    for text in filter(None, (file, answer)):
        if text.startswith("--"):
            raise click.NoSuchOption(text.partition("=")[0])
    check_outputs(force, junit)
    if answer is None and "=" not in file:
        raise click.UsageError('what is the answer? Or state a rule: "d(coth(x)) = -csch(x)^2"')
    found = check_formula(file if answer is None else load(file), answer, **settings).at(feedback)
    for text in found.notes:
        note(f"note: {text}")
    if junit:
        write_atomically(junit, junit_xml([found]))
        note(f"wrote {junit}")
    if as_json:
        echo_json(found.to_dict())
    else:
        click.echo(found)


# An answer may begin with a minus sign.
command.context_settings["ignore_unknown_options"] = True
