"""Forms for answers, as CSV and Python: a place for each blank of a sheet."""

from __future__ import annotations

import csv
import io
import json

from cgprimer.course.checks.sheets.sheet_answers import COLUMNS
from cgprimer.course.checks.sheets.sheet_problems import Blank, Sheet, Worksheet
from cgprimer.course.checks.sheets.sheet_questions import build_worksheets


def _list_blank_columns(made: Worksheet) -> dict[str, list[str]]:
    """Of each row the columns that are asked for, in the order of the table."""
    found = {str(row[0]): [c.column for c in row if isinstance(c, Blank)] for row in made.rows}
    return {row: columns for row, columns in found.items() if columns}


def format_csv_form(sheet: Sheet) -> str:
    """A line for each blank; the last column is filled in."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for place, made in build_worksheets(sheet):
        for row, columns in _list_blank_columns(made).items():
            writer.writerows((sheet.identifier, place, row, column, "") for column in columns)
    return out.getvalue()


def format_python_form(sheet: Sheet) -> str:
    """Dictionaries, as in the cells of the notebook."""
    made = [format_dictionary(place, one) for place, one in build_worksheets(sheet)]
    return "\n\n".join([f'sheet = "{sheet.identifier}"', *made]) + "\n"


def format_dictionary(place: int, made: Worksheet) -> str:
    """A dictionary to fill in, for one problem."""
    lines = [
        '# Write numbers, or texts such as "3/4"; this cell need not be run.',
        f"answers_{place} = {{",
    ]
    for row, columns in _list_blank_columns(made).items():
        inner = ", ".join(f'{json.dumps(c, ensure_ascii=False)}: ""' for c in columns)
        lines.append(f"    {json.dumps(row, ensure_ascii=False)}: {{{inner}}},")
    return "\n".join([*lines, "}"])
