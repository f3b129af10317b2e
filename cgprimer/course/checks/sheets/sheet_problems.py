"""Problems and sheets as plain data, without answers, and worksheets with answers.

The sheet, its solution and its grader are each computed from these data. Files for students contain
only the questions.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from cgprimer.errors import DataError
from cgprimer.expressions import Apply, Expression, Name, Number, unparse
from cgprimer.support.files import format_json
from cgprimer.support.number_format import format_array, format_number

KINDS = (
    "trace", "tangent", "adjoint", "paths", "gradient", "shapes", "optimizer", "picture", "mistake",
)  # fmt: skip
MAX_POINTS = 1000  #: of a problem
FORMAT = 1  #: of the files of sheets
_EMBEDDED = re.compile(r"cgprimer-sheet(?:\"[^>]*)?>?\s*(\{.*\})")  # in HTML, LaTeX or Markdown
_MAX_BYTES = 50_000_000  # of a file that is read


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of an exercise sheet as plain data, without the answers.

    Attributes:
        kind: one of ``KINDS``.
        graph: the text of the graph; its declarations have the values of inputs and parameters.
        asked: further data of the kind, such as ``of``, ``wrt`` and ``digits`` (0: exact).
    """

    kind: str
    graph: str
    asked: Mapping[str, Any]

    def points_of_blanks(self, count: int) -> list[float]:
        """Divide the problem's points equally among its blanks; by default, return 1 for each.

        The parts are rounded to hundredths if possible, and add up to the points of the problem.

        Args:
            count: the number of blanks.

        >>> Problem("trace", "", {"points": 10}).points_of_blanks(3)
        [3.34, 3.33, 3.33]

        Raises:
            DataError: the points are not an integer from 1 to 1000.
        """
        points = self.asked.get("points")
        if points is None:
            return [1.0] * count
        if type(points) is not int or not 1 <= points <= MAX_POINTS:
            raise DataError(
                f"the points of a problem must be an integer from 1 to {MAX_POINTS}, got {points!r}"
            )
        parts = max(100, count)
        quotient, remainder = divmod(parts * points, max(count, 1))
        return [(quotient + (k < remainder)) / parts for k in range(count)]


@dataclass(frozen=True, slots=True)
class Sheet:
    """An exercise sheet: problems with a title, for one student or for everybody.

    Attributes:
        problems: the problems, in order.
        title: the heading.
        student: the name of the student; empty if the sheet is for everybody.
        file: the name of the student's files without ending; empty if it is unknown.
    """

    problems: tuple[Problem, ...]
    title: str = "Exercises"
    student: str = ""
    file: str = ""

    @property
    def identifier(self) -> str:
        """The hash of the questions, which identifies the sheet in files with answers."""
        problems = [[p.kind, p.graph, dict(p.asked)] for p in self.problems]
        text = json.dumps([FORMAT, self.student, problems], sort_keys=True)
        return sha256(text.encode()).hexdigest()[:10]

    def to_dict(self) -> dict[str, Any]:
        """Return the questions as plain data that can be written as JSON."""
        problems = [
            {"kind": p.kind, "graph": p.graph, "asked": dict(p.asked)} for p in self.problems
        ]
        header = {"format": FORMAT, "sheet": self.identifier, "title": self.title}
        file = {"file": self.file} if self.file else {}
        return {**header, "student": self.student, **file, "problems": problems}

    def __repr__(self) -> str:
        kinds = ", ".join(p.kind for p in self.problems)
        return f"<Sheet {self.identifier}{self.student and f' of {self.student}'}: {kinds}>"


def parse_sheet(data: Any, where: str) -> Sheet:
    """Convert the plain data of a sheet, such as parsed JSON, to a :class:`Sheet`.

    Args:
        data: the result of :meth:`Sheet.to_dict`.
        where: the name of the source, for messages.

    Raises:
        DataError: the data are not a sheet, or were changed.
    """
    try:
        if data["format"] != FORMAT:
            raise DataError(f"{where} was written by a newer version of cgprimer")
        problems = tuple(
            Problem(str(p["kind"]), str(p["graph"]), dict(p["asked"])) for p in data["problems"]
        )
        sheet = Sheet(problems, str(data["title"]), str(data["student"]), str(data.get("file", "")))
        identifier = data["sheet"]
    except (TypeError, KeyError, ValueError, AttributeError):
        raise DataError(f"{where} is not a cgprimer sheet") from None
    if identifier != sheet.identifier or any(p.kind not in KINDS for p in problems):
        message = (
            f"{where} was changed: its questions do not match the identifier"
            f" {str(identifier)[:20]!r}"
        )
        raise DataError(message, hint="grade with the sheets.json that 'cgprimer exercise' wrote")
    return sheet


def read_sheets(path: str | Path) -> dict[str, Sheet]:
    """Read one sheet from a file in any format, or all sheets from a class's ``sheets.json``.

    Returns:
        The sheets, keyed by identifier.

    Raises:
        DataError: the file cannot be read, or contains no sheet.
    """
    text, where = read_text_file(path), str(path)
    if Path(path).suffix.lower() in (".json", ".ipynb"):
        try:
            data = json.loads(text)
            data = data.get("metadata", data).get("cgprimer", data)
        except (ValueError, AttributeError, RecursionError) as error:
            raise DataError(f"{where} is not a cgprimer JSON file: {str(error)[:80]}") from None
    else:
        match = _EMBEDDED.search(text)
        try:
            data = json.loads(match[1].replace("\\u003c", "<")) if match else {}
        except (ValueError, RecursionError):
            data = {}
        if not data:
            hint = "pass the grader's sheets.json, or a sheet that 'cgprimer exercise' wrote"
            raise DataError(f"{where} contains no sheet", hint=hint)
    several = data.get("sheets") if isinstance(data, dict) else None
    listed = several if isinstance(several, list) else [data]
    sheets = [parse_sheet(one, where) for one in listed]
    if not sheets:
        raise DataError(f"{where} contains no sheet")
    return {sheet.identifier: sheet for sheet in sheets}


def read_text_file(path: str | Path) -> str:
    """Read a text file of limited size.

    Raises:
        DataError: the file cannot be read, is too large, or is not UTF-8 text.
    """
    try:
        if Path(path).stat().st_size > _MAX_BYTES:
            raise DataError(f"{path} must have at most {_MAX_BYTES:,} bytes")
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text (byte {error.start})") from None


def parse_csv(text: str) -> list[list[str]]:
    """Parse CSV text, delimited by the most frequent of comma, semicolon and tab in line 1."""
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    return list(csv.reader(io.StringIO(text), delimiter=delimiter))


def format_sheets(sheets: Sequence[Sheet]) -> str:
    """Format the questions of all sheets of a class as JSON, for the grader."""
    return format_json({"sheets": [sheet.to_dict() for sheet in sheets]}) + "\n"


# --- worksheets with answers ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Blank:
    """A blank cell of a table that a student fills in, with the correct answer.

    Attributes:
        row: the first cell of the row.
        column: the heading of the column.
        name: the name of the value in formulas of later blanks.
        value: the correct value: a float, an array, or a string (names separated by commas).
        tree: the formula that computes the value from known values and earlier blanks, or None.
        form: ``number``, ``array``, ``shape``, ``name`` or ``names`` (in any order).
        operation: for a tangent, the primitive that computes the value of the row; else empty.
    """

    row: str
    column: str
    name: str
    value: Any
    tree: Expression | None = None
    form: str = "number"
    operation: str = ""

    def format_value(self, digits: int) -> str:
        """Format the correct value with ``digits`` significant digits (0: without rounding)."""
        if self.form == "array":
            return format_array(self.value, width=999)
        return format_number(self.value, digits or 10) if self.form == "number" else str(self.value)


class DisplayFormula(str):
    """A formula as a string that is only displayed, never parsed."""

    __slots__ = ()


Cell = str | Blank | Expression


@dataclass(frozen=True, slots=True)
class Worksheet:
    """A problem with its table and the correct answers.

    Attributes:
        title: the heading.
        text: the paragraphs; names and formulas are between backquotes.
        header: the header of the table.
        rows: the cells of the table: strings, formulas, and blanks. The first cells are distinct
            strings.
        blanks: the blanks in the order of the computation.
        known_values: the values of names in formulas that are not blanks.
        digits: the number of significant digits of answers; 0 for exact numbers.
        picture: options of :func:`cgprimer.draw` for the picture above the table, or None.
        given_table: header and rows of a table without blanks, or None.
        notation: paragraphs about the notation of answers that students write as text.
    """

    title: str
    text: Sequence[str]
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    blanks: Sequence[Blank]
    known_values: Mapping[str, Any]
    digits: int
    picture: Mapping[str, Any] | None = None
    given_table: tuple[Sequence[str], Sequence[Sequence[Cell]]] | None = None
    notation: Sequence[str] = ()


def list_numbers(value: Any) -> list[float]:
    """Return a scalar, or the elements of an array, as a list."""
    return [value] if isinstance(value, float) else [*map(float, value.ravel().tolist())]


def format_cell(cell: Cell) -> str:
    """Format a table cell that is not a blank as text."""
    return unparse(cell) if isinstance(cell, Name | Number | Apply) else str(cell)
