"""The students of a class, read from a CSV file."""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cgprimer.course.checks.sheets.sheet_problems import parse_csv, read_text_file
from cgprimer.course.exercises.transliteration import transliterate
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
# The first of these columns determines the numbers on a sheet.
_KEYS = (*_IDS, "email")
_EMAILS = ("email", "e-mail", "mail", "email address", "e-mail address")
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Student:
    """A student of a class, as listed in a roster.

    Attributes:
        name: the name on the sheet.
        key: the seed of the numbers on the sheet: the id or e-mail, or else the name.
        file: the name of the files without ending, from the id, the e-mail or the name; valid on
            every system, and different for each student.
        columns: the headings and cells of the line of the student.
    """

    name: str
    key: str
    file: str
    columns: tuple[tuple[str, str], ...] = ()


def read_roster(path: str | Path) -> list[Student]:
    """Read the students of a class from a CSV file with a column ``name``, ``id`` or ``email``.

    Raises:
        DataError: the file cannot be read, has no such column, no students, or a student twice.
    """
    text, where = read_text_file(path), str(path)
    try:
        rows = parse_csv(text)
    except csv.Error as error:
        raise DataError(f"{where} is not a CSV file: {error}") from None
    header = [" ".join(cell.split()) for cell in rows[0]] if rows else []
    headings = [cell.casefold() for cell in header]
    name_column = _find_column(headings, _NAMES)
    optional_columns = (_find_column(headings, _IDS), _find_column(headings, _EMAILS))
    id_columns = [k for k in optional_columns if k is not None]
    if name_column is None and not id_columns:
        shown = ", ".join(filter(None, header[:8])) or "none"
        raise DataError(
            f"{where} has no column 'name' or 'id'",
            hint=f"rename or add a column; the first line has the columns: {shown}",
        )
    key_column = _find_column(headings, _KEYS)
    if key_column is None and name_column is None:
        key_column = id_columns[0]
    lines: list[_Line] = []
    for number, row in enumerate(rows[1:], start=2):
        if any(cell.strip() for cell in row):
            cells = [" ".join(row[k].split()) if k < len(row) else "" for k in range(len(header))]
            name = "" if name_column is None else cells[name_column]
            key = name if key_column is None else cells[key_column]
            if not (key or name):
                raise DataError(f"{where}, line {number}: missing name and id")
            if not key:
                column = headings[key_column or 0]
                raise DataError(f"{where}, line {number}: missing {column} of {name}")
            identity = next((cells[k] for k in id_columns if cells[k]), name)
            lines.append(_Line(number, name or key, key, safe_name(identity), cells))
    if not lines:
        raise DataError(f"{where} contains no students")
    _check_unique_keys(lines, where)
    files = _number_equal_names([(line.file, line.key) for line in lines])
    return [
        Student(line.name, line.key, file, tuple(zip(header, line.cells, strict=True)))
        for line, file in zip(lines, files, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a roster file: its number, its cells, and the name and key of the student."""

    number: int
    name: str
    key: str
    file: str
    cells: list[str]


def _find_column(header: list[str], names: tuple[str, ...]) -> int | None:
    """Return the index of the first column whose heading is one of the names, or None."""
    return next((k for k, cell in enumerate(header) if cell in names), None)


def _check_unique_keys(lines: Iterable[_Line], where: str) -> None:
    """Raise DataError if two lines of a roster have the same key."""
    numbers: dict[str, int] = {}
    for line in lines:
        before = numbers.setdefault(line.key.casefold(), line.number)
        if before != line.number:
            message = f"{where}, line {line.number}: {line.key!r} repeats line {before}"
            raise DataError(
                message, hint="add a column 'id' to distinguish students with equal names"
            )


def _number_equal_names(files: list[tuple[str, str]]) -> list[str]:
    """Make file names unique by appending numbers; ``files`` has (file name, key) pairs.

    Equal names are numbered in the order of their keys.

    >>> _number_equal_names([("ann", "b"), ("ann", "a"), ("ann-2", "c")])
    ['ann-3', 'ann', 'ann-2']
    """
    names = {file for file, _ in files}
    result = [file for file, _ in files]
    first = set[str]()
    for index in sorted(range(len(files)), key=lambda k: (files[k], k)):
        file, number = files[index][0], 1
        while file in first or (number > 1 and file in names):
            number += 1
            file = f"{files[index][0]}-{number}"
        first.add(file)
        result[index] = file
    return result


def students_by_submission(
    students: Iterable[Student], submissions: Mapping[str, str]
) -> dict[str, Student]:
    """Match submissions to students by the file name, id, e-mail or name of the student.

    Args:
        students: the class.
        submissions: the name of the file or folder without its ending, keyed by submission.

    Returns:
        The student of each submission that matches exactly one student.

    >>> ann = Student("Ann Lee", "7", "7", (("name", "Ann Lee"), ("email", "ann@x.org")))
    >>> students_by_submission([ann], {"Ann.py": "ann", "b.py": "b"})["Ann.py"].key
    '7'
    """
    by_name: dict[str, Student | None] = {}
    for student in students:
        emails = [cell for heading, cell in student.columns if heading.casefold() in _EMAILS]
        texts = [student.file, student.key, student.name, *emails]
        for text in {safe_name(t) for t in (*texts, *(e.partition("@")[0] for e in emails)) if t}:
            first = by_name.setdefault(text, student)
            by_name[text] = student if first is student else None  # ambiguous
    matches = {name: by_name.get(safe_name(file)) for name, file in submissions.items()}
    return {name: student for name, student in matches.items() if student is not None}


def safe_name(text: str) -> str:
    """Convert a name to a file name of lower-case ASCII letters, digits and hyphens.

    Latin, Cyrillic and Greek letters are transliterated; others are replaced by their code.

    >>> safe_name("Zoë  O'Neil/../x"), safe_name("李"), safe_name("con")
    ('zoe-o-neil-x', 'u674e', 'con-')
    >>> safe_name("Søren"), safe_name("Пётр"), safe_name("Łukasz"), safe_name("Γιώργος")
    ('soren', 'pyotr', 'lukasz', 'giorgos')
    """
    plain = unicodedata.normalize("NFKD", transliterate(text))
    letters = "".join(
        c if c.isascii() else "" if unicodedata.combining(c) else f"u{ord(c):x}" for c in plain
    )
    name = re.sub(r"[^a-z0-9]+", "-", letters.casefold()).strip("-")[:_LONGEST] or "student"
    reserved = re.fullmatch(r"con|prn|aux|nul|com\d|lpt\d", name)  # on Windows
    return f"{name}-" if reserved else name
