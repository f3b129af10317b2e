"""Forms for answers, as CSV and Python, with an empty field for each blank of a sheet."""

from __future__ import annotations

import csv
import io
import json

from cgprimer.course.checks.sheets.answer_files import COLUMNS
from cgprimer.course.checks.sheets.sheet_problems import Blank, Sheet, Worksheet
from cgprimer.course.checks.sheets.sheet_questions import build_worksheets


def _list_blank_columns(worksheet: Worksheet) -> dict[str, list[str]]:
    """Return the names of the columns in which each row has blanks, keyed by row."""
    columns = {
        str(row[0]): [cell.column for cell in row if isinstance(cell, Blank)]
        for row in worksheet.rows
    }
    return {row: names for row, names in columns.items() if names}


def format_csv_form(sheet: Sheet) -> str:
    """Format the answer form of a sheet as CSV, with one line and an empty answer per blank."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for number, worksheet in build_worksheets(sheet):
        for row, columns in _list_blank_columns(worksheet).items():
            writer.writerows((sheet.identifier, number, row, column, "") for column in columns)
    return out.getvalue()


def format_python_form(sheet: Sheet) -> str:
    """Format the answer form of a sheet as Python, with one dictionary per problem."""
    dictionaries = [format_dictionary(number, one) for number, one in build_worksheets(sheet)]
    return "\n\n".join([f'sheet = "{sheet.identifier}"', *dictionaries]) + "\n"


def format_dictionary(number: int, worksheet: Worksheet) -> str:
    """Format the assignment ``answers_N = {...}`` with an empty answer for each blank.

    Args:
        number: the number of the problem.
        worksheet: the worksheet of the problem.
    """
    lines = [
        '# Write numbers, or strings such as "3/4". You need not run this cell.',
        f"answers_{number} = {{",
    ]
    for row, columns in _list_blank_columns(worksheet).items():
        inner = ", ".join(f'{json.dumps(c, ensure_ascii=False)}: ""' for c in columns)
        lines.append(f"    {json.dumps(row, ensure_ascii=False)}: {{{inner}}},")
    return "\n".join([*lines, "}"])
