"""A kind of homework for tests: ``def half(x)``, of small numbers and of large ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from cgprimer.cli.checks.check_options import check_command, submission_options
from cgprimer.cli.grouped_help import option
from cgprimer.course.checks.batch_checks import Check
from cgprimer.course.checks.check_results import Failure, Part, Result, create_failed_result
from cgprimer.course.checks.sandbox import Limits, Request, Submission, run_submission
from tests.checking.submissions import define_names

PARTS = {"small": 1.0, "large": 2.0}
RIGHT = "def half(x):\n    return x / 2\n"
SIGN = "def half(x):\n    return -x / 2\n"
ONE = "def half(x):\n    return x / 2 if x < 10 else x\n"
BROKEN = "def half(x)\n    return x / 2\n"
LOOP = "def half(x):\n    while True:\n        pass\n"


def check_half(submission: Submission, limits: Limits | None = None) -> Result:
    """One point for small numbers, two for large ones."""
    asked: list[Request] = [{"call": "half", "arguments": [x]} for x in (3.0, 4000.0)]
    name = Path(submission).name if isinstance(submission, str | Path) else "notebook"
    answers = run_submission(submission, asked, limits)
    if answers.failure:
        return answers.add_run_to(create_failed_result("half", name, PARTS, answers.failure))
    parts = []
    for (part, points), value, right in zip(
        PARTS.items(), answers.values, (1.5, 2000.0), strict=True
    ):
        if isinstance(value, Failure):
            parts.append(Part(part, points, 0, "not run", "", str(value)))
        elif value == right:
            parts.append(Part(part, points, points, "right"))
        else:
            mistake = ("sign", "the sign is wrong", ("it was negative",))
            details = mistake if value == -right else ("", "it is not half of it")
            parts.append(Part(part, points, 0, "wrong", *details))
    return answers.add_run_to(Result("half", name, tuple(parts)))


def check_half_here(submission: Submission, limits: Limits | None = None) -> Result:
    """Check a right or wrong program in this process, which takes less time than the sandbox."""
    if not isinstance(submission, str | Path):
        return _check_in_sandbox(submission)
    file = Path(submission)
    if not file.is_file() or file.suffix != ".py" or file.stat().st_size > 10_000:
        return _check_in_sandbox(submission, limits)
    try:
        names = define_names(file.read_text("utf-8"))
    except (SyntaxError, UnicodeError):
        return _check_in_sandbox(submission, limits)
    return replace(_check_in_sandbox(names), submission=file.name)


_check_in_sandbox = check_half


def half_check(reference: str = "") -> Check:
    """The check as the command makes it."""
    return Check(
        "half",
        reference,
        check_half,
        parts=PARTS,
        skeleton="def half(x):\n    ...\n",
        call="__import__('tests.checking.halves').checking.halves.check_half(NAMES)",
    )


@check_command()
@option("--strictly", is_flag=True, help="Accept only exact answers.")
@click.argument("file", type=click.Path())
@submission_options
def command(file: str, strictly: bool) -> Check:
    """Check halves.

    \b
    Examples:
      cgprimer check half notes.txt ann.py
    """
    return half_check(Path(file).read_text())
