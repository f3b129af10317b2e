"""The students of a class, from a CSV file."""

from __future__ import annotations

import csv
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from cgprimer.checking.sheets.problems import csv_rows, read_text
from cgprimer.errors import DataError

_NAMES = ("name", "student", "student name", "full name", "student_name")
_IDS = ("id", "student id", "student_id", "sid", "number", "matriculation", "username", "email")
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Student:
    """Somebody who gets a sheet.

    Attributes:
        name: as it stands on the sheet.
        key: what numbers are drawn from: the id, or the name where there is none.
        file: the name of the files, without ending; safe on every system, each once.
    """

    name: str
    key: str
    file: str


def read_roster(path: str | Path) -> list[Student]:
    """The students of a file with a column ``name`` or ``id``, or both.

    Raises:
        DataError: it cannot be read, has no such column, nobody in it, or somebody twice.
    """
    text, where = read_text(path), str(path)
    try:
        rows = csv_rows(text)
    except csv.Error as error:
        raise DataError(f"{where} is no CSV file: {error}") from None
    header = [cell.strip().casefold() for cell in rows[0]] if rows else []
    named = next((k for k, cell in enumerate(header) if cell in _NAMES), None)
    numbered = next((k for k, cell in enumerate(header) if cell in _IDS), None)
    if named is None and numbered is None:
        found = ", ".join(filter(None, header[:8])) or "none"
        raise DataError(
            f"{where} has no column 'name' or 'id'", hint=f"its first line has: {found}"
        )
    students: list[Student] = []
    lines: dict[str, int] = {}
    files: set[str] = set()
    for line, row in enumerate(rows[1:], start=2):
        if not any(cell.strip() for cell in row):
            continue
        name, own = (
            " ".join(row[k].split()) if k is not None and k < len(row) else ""
            for k in (named, numbered)
        )
        key = own or name
        if not key:
            raise DataError(f"{where}, line {line}: there is neither a name nor an id")
        if numbered is not None and not own:
            raise DataError(f"{where}, line {line}: {name} has no {header[numbered]}")
        if key.casefold() in lines:
            what = f"{where}, line {line}: {key!r} stands in line {lines[key.casefold()]} already"
            raise DataError(what, hint="a column 'id' tells students of one name apart")
        lines[key.casefold()] = line
        file = safe = safe_name(name or key)
        again = 1
        while file in files:
            again += 1
            file = f"{safe}-{again}"
        files.add(file)
        students.append(Student(name or key, key, file))
    if not students:
        raise DataError(f"{where} has no students in it")
    return students


def safe_name(text: str) -> str:
    """A name for files out of any text: lower-case ASCII letters, digits and hyphens.

    >>> safe_name("Zoë  O'Neil/../x"), safe_name("李"), safe_name("con")
    ('zoe-o-neil-x', 'u674e', 'con-')
    """
    plain = unicodedata.normalize("NFKD", text).replace("ß", "ss")
    letters = "".join(
        c if c.isascii() else "" if unicodedata.combining(c) else f"u{ord(c):x}" for c in plain
    )
    made = re.sub(r"[^a-z0-9]+", "-", letters.casefold()).strip("-")[:_LONGEST] or "student"
    reserved = re.fullmatch(r"con|prn|aux|nul|com\d|lpt\d", made)  # on Windows
    return f"{made}-" if reserved else made
