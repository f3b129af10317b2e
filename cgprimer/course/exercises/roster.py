"""The students of a class, from a CSV file."""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cgprimer.course.checks.sheets.sheet_problems import parse_csv, read_text_file
from cgprimer.course.exercises.transliteration import transliterated
from cgprimer.errors import DataError

_NAMES = ("name", "student", "student name", "full name", "student_name")
_IDS = (
    "id",
    "student id",
    "student_id",
    "sid",
    "number",
    "matriculation",
    "matriculation number",
    "username",
    "user name",
    "login",
    "login id",
    "sis user id",
)
# Sheets are determined by the first of these columns, whatever files are called.
_KEYS = (*_IDS, "email")
_EMAILS = ("email", "e-mail", "mail", "email address", "e-mail address")
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Student:
    """Somebody who gets a sheet.

    Attributes:
        name: as it stands on the sheet.
        key: what numbers are drawn from: the id or e-mail, or the name where there is none.
        file: the name of the files, without ending: from the id, else the e-mail, else the name;
            safe on every system, and different for every student.
        columns: the headings and cells of the student's line.
    """

    name: str
    key: str
    file: str
    columns: tuple[tuple[str, str], ...] = ()


def read_roster(path: str | Path) -> list[Student]:
    """Return the students of a file with a column ``name``, ``id`` or ``email``.

    Raises:
        DataError: the file cannot be read, has no such column or no students, or a student twice.
    """
    text, where = read_text_file(path), str(path)
    try:
        rows = parse_csv(text)
    except csv.Error as error:
        raise DataError(f"{where} is not a CSV file: {error}") from None
    header = [" ".join(cell.split()) for cell in rows[0]] if rows else []
    known = [cell.casefold() for cell in header]
    named = _column(known, _NAMES)
    identified = [k for k in (_column(known, _IDS), _column(known, _EMAILS)) if k is not None]
    if named is None and not identified:
        headings = ", ".join(filter(None, header[:8])) or "none"
        raise DataError(
            f"{where} has no column 'name' or 'id'", hint=f"its first line has: {headings}"
        )
    numbered = _column(known, _KEYS)
    if numbered is None and named is None:
        numbered = identified[0]
    lines: list[_Line] = []
    for number, row in enumerate(rows[1:], start=2):
        if any(cell.strip() for cell in row):
            cells = [" ".join(row[k].split()) if k < len(row) else "" for k in range(len(header))]
            name = "" if named is None else cells[named]
            key = name if numbered is None else cells[numbered]
            if not (key or name):
                raise DataError(f"{where}, line {number}: there is neither a name nor an id")
            if not key:
                raise DataError(f"{where}, line {number}: {name} has no {known[numbered or 0]}")
            identity = next((cells[k] for k in identified if cells[k]), name)
            lines.append(_Line(number, name or key, key, safe_name(identity), cells))
    if not lines:
        raise DataError(f"{where} has no students in it")
    _check_keys(lines, where)
    files = _distinct([(line.file, line.key) for line in lines])
    return [
        Student(line.name, line.key, file, tuple(zip(header, line.cells, strict=True)))
        for line, file in zip(lines, files, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a roster: where it stands, and what it says of a student."""

    number: int
    name: str
    key: str
    file: str
    cells: list[str]


def _column(header: list[str], names: tuple[str, ...]) -> int | None:
    return next((k for k, cell in enumerate(header) if cell in names), None)


def _check_keys(lines: Iterable[_Line], where: str) -> None:
    """Raise a DataError if two lines have the same key."""
    known: dict[str, int] = {}
    for line in lines:
        before = known.setdefault(line.key.casefold(), line.number)
        if before != line.number:
            what = f"{where}, line {line.number}: {line.key!r} stands in line {before} already"
            raise DataError(what, hint="a column 'id' tells students of one name apart")


def _distinct(files: list[tuple[str, str]]) -> list[str]:
    """Return a different name for each file: equal ones are numbered in the order of the keys.

    >>> _distinct([("ann", "b"), ("ann", "a"), ("ann-2", "c")])
    ['ann-3', 'ann', 'ann-2']
    """
    taken = {file for file, _ in files}
    result = [file for file, _ in files]
    first = set[str]()
    for index in sorted(range(len(files)), key=lambda k: (files[k], k)):
        file, number = files[index][0], 1
        while file in first or (number > 1 and file in taken):
            number += 1
            file = f"{files[index][0]}-{number}"
        first.add(file)
        result[index] = file
    return result


def students_by_submission(
    students: Iterable[Student], submissions: Mapping[str, str]
) -> dict[str, Student]:
    """Return the student of each submission that a file name, id, e-mail or name tells.

    Args:
        students: the class.
        submissions: for each submission the name of its file or folder, without its ending.

    >>> ann = Student("Ann Lee", "7", "7", (("name", "Ann Lee"), ("email", "ann@x.org")))
    >>> students_by_submission([ann], {"Ann.py": "ann", "b.py": "b"})["Ann.py"].key
    '7'
    """
    known: dict[str, Student | None] = {}
    for student in students:
        emails = [cell for heading, cell in student.columns if heading.casefold() in _EMAILS]
        texts = [student.file, student.key, student.name, *emails]
        for text in {safe_name(t) for t in (*texts, *(e.partition("@")[0] for e in emails)) if t}:
            same = known.setdefault(text, student)
            known[text] = student if same is student else None  # two students: nobody's
    found = {name: known.get(safe_name(file)) for name, file in submissions.items()}
    return {name: student for name, student in found.items() if student is not None}


def safe_name(text: str) -> str:
    """Return a name for files: lower-case ASCII letters, digits and hyphens.

    Latin, Cyrillic and Greek letters are transliterated, others written as their code.

    >>> safe_name("Zoë  O'Neil/../x"), safe_name("李"), safe_name("con")
    ('zoe-o-neil-x', 'u674e', 'con-')
    >>> safe_name("Søren"), safe_name("Пётр"), safe_name("Łukasz"), safe_name("Γιώργος")
    ('soren', 'pyotr', 'lukasz', 'giorgos')
    """
    plain = unicodedata.normalize("NFKD", transliterated(text))
    letters = "".join(
        c if c.isascii() else "" if unicodedata.combining(c) else f"u{ord(c):x}" for c in plain
    )
    name = re.sub(r"[^a-z0-9]+", "-", letters.casefold()).strip("-")[:_LONGEST] or "student"
    reserved = re.fullmatch(r"con|prn|aux|nul|com\d|lpt\d", name)  # on Windows
    return f"{name}-" if reserved else name
