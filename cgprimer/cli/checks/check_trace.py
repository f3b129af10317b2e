"""``cgprimer check trace``: grade answers to problem sheets."""

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

    SHEET is sheets.json, which contains the sheets of all students, or one sheet in any format
    except PDF. A SUBMISSION is an answer form (CSV, JSON or Python), a completed Markdown sheet or
    notebook, or a folder of submissions. An answer that is correct except for an earlier mistake
    receives full points. The code of a submission is not executed.
    """
    return build_trace_check(sheet)
