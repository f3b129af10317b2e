"""``cgprimer check trace``: answers to problem sheets."""

from __future__ import annotations

import click

from cgprimer.cli.checks.check_options import check_command, submission_options
from cgprimer.course.checks.batch_checks import Check
from cgprimer.course.checks.sheet_check import build_trace_check


@check_command()
@click.argument("sheet", type=click.Path())
@submission_options
def command(sheet: str) -> Check:
    """Grade answers to a problem sheet of cgprimer exercise.

    \b
    Examples:
      cgprimer check trace homework/grader/sheets.json homework/students/sheet.csv
      cgprimer check trace homework/grader/sheets.json answers/ --feedback part

    SHEET is the grader's sheets.json, from which each submission's own sheet is taken, or one
    sheet in any format but PDF. A SUBMISSION is a form as CSV, JSON or Python, the Markdown sheet
    or the notebook with its blanks filled in, or a folder of them. What is right given an earlier
    mistake counts. Nothing of a submission is run.
    """
    return build_trace_check(sheet)
