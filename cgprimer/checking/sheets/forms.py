"""Forms for answers, as CSV, JSON and Python: a place for each blank of a sheet."""

from __future__ import annotations

import csv
import io
import json

from cgprimer.checking.sheets.answers import COLUMNS
from cgprimer.checking.sheets.problems import Blank, Sheet, Worksheet
from cgprimer.checking.sheets.worked import worked
from cgprimer.files import json_text


def places(made: Worksheet) -> dict[str, list[str]]:
    """Of each row the columns that are asked for, in the order of the table."""
    found: dict[str, list[str]] = {}
    for row in made.rows:
        for cell in row:
            if isinstance(cell, Blank):
                found.setdefault(cell.row, []).append(cell.column)
    return found


def form_csv(sheet: Sheet) -> str:
    """A line for each blank; the last column is filled in."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for place, problem in enumerate(sheet.problems, start=1):
        for row, columns in places(worked(problem)).items():
            writer.writerows((sheet.identifier, place, row, column, "") for column in columns)
    return out.getvalue()


def form_json(sheet: Sheet) -> str:
    """A text for each blank, below the problem, the row and the column."""
    made = enumerate(map(worked, sheet.problems), start=1)
    answers = {str(k): {r: dict.fromkeys(c, "") for r, c in places(w).items()} for k, w in made}
    return json_text({"sheet": sheet.identifier, "answers": answers}) + "\n"


def form_python(sheet: Sheet) -> str:
    """Dictionaries, as in the cells of the notebook."""
    made = [dictionary(k, worked(p)) for k, p in enumerate(sheet.problems, start=1)]
    return "\n\n".join([f'sheet = "{sheet.identifier}"', *made]) + "\n"


def dictionary(place: int, made: Worksheet) -> str:
    """A dictionary to fill in, for one problem."""
    lines = [
        '# Write numbers, or texts such as "3/4"; this cell need not be run.',
        f"answers_{place} = {{",
    ]
    for row, columns in places(made).items():
        inner = ", ".join(f'{json.dumps(c, ensure_ascii=False)}: ""' for c in columns)
        lines.append(f"    {json.dumps(row, ensure_ascii=False)}: {{{inner}}},")
    return "\n".join([*lines, "}"])
