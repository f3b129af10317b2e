"""Questions of a sheet as plain data: the graph, what is asked of it, and no answer.

The same data make the sheet, its solution and its grader, each time anew: what is written into a
file of students is the question alone.
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
_MARK = re.compile(r"cgprimer-sheet(?:\"[^>]*)?>?\s*(\{.*\})")  # in a page, a document, a text
_LARGEST = 50_000_000  # bytes of a file that is read


@dataclass(frozen=True, slots=True)
class Problem:
    """One question.

    Attributes:
        kind: one of ``KINDS``.
        graph: the text of the graph; its declarations say at which point.
        asked: what the kind needs besides, such as ``of``, ``wrt`` and ``digits`` (0: exactly).
    """

    kind: str
    graph: str
    asked: Mapping[str, Any]

    def divide_points(self, count: int) -> list[float]:
        """Return the points of each of its blanks: one each, unless ``asked`` has ``points``.

        The points of a problem are divided equally, in hundredths where that is possible.

        >>> Problem("trace", "", {"points": 10}).divide_points(3)
        [3.34, 3.33, 3.33]

        Raises:
            DataError: the points are not an integer from 1 to 1000.
        """
        points = self.asked.get("points")
        if points is None:
            return [1.0] * count
        if type(points) is not int or not 1 <= points <= MAX_POINTS:
            raise DataError(f"the points of a problem must be from 1 to {MAX_POINTS}")
        parts = max(100, count)
        share, rest = divmod(parts * points, max(count, 1))
        return [(share + (k < rest)) / parts for k in range(count)]


@dataclass(frozen=True, slots=True)
class Sheet:
    """Problems of one student.

    Attributes:
        problems: in their order.
        title: the heading.
        student: whom it is for; empty for everybody.
    """

    problems: tuple[Problem, ...]
    title: str = "Exercises"
    student: str = ""

    @property
    def identifier(self) -> str:
        """Of these questions: it says which sheet answers belong to, and nothing about them."""
        said = [[p.kind, p.graph, dict(p.asked)] for p in self.problems]
        text = json.dumps([FORMAT, self.student, said], sort_keys=True)
        return sha256(text.encode()).hexdigest()[:10]

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the questions, as the sheet has them."""
        problems = [
            {"kind": p.kind, "graph": p.graph, "asked": dict(p.asked)} for p in self.problems
        ]
        own = {"format": FORMAT, "sheet": self.identifier, "title": self.title}
        return {**own, "student": self.student, "problems": problems}

    def __repr__(self) -> str:
        kinds = ", ".join(p.kind for p in self.problems)
        return f"<Sheet {self.identifier}{self.student and f' of {self.student}'}: {kinds}>"


def parse_sheet(data: Any, where: str) -> Sheet:
    """A sheet from plain data, as somebody may have changed them.

    Raises:
        DataError: they are none, or were changed.
    """
    try:
        if data["format"] != FORMAT:
            raise DataError(f"{where} is of a newer cgprimer")
        problems = tuple(
            Problem(str(p["kind"]), str(p["graph"]), dict(p["asked"])) for p in data["problems"]
        )
        found = Sheet(problems, str(data["title"]), str(data["student"]))
        said = data["sheet"]
    except (TypeError, KeyError, ValueError, AttributeError):
        raise DataError(f"{where} is no sheet of cgprimer's") from None
    if said != found.identifier or any(p.kind not in KINDS for p in problems):
        what = f"{where} was changed: its questions are not those of sheet {str(said)[:20]!r}"
        raise DataError(what, hint="grade with the sheets.json that 'cgprimer exercise' wrote")
    return found


def read_sheets(path: str | Path) -> dict[str, Sheet]:
    """The sheets of a file, by identifier: one sheet in any format, or a class's ``sheets.json``.

    Raises:
        DataError: the file cannot be read, or has no sheet in it.
    """
    text, where = read_text_file(path), str(path)
    if Path(path).suffix.lower() in (".json", ".ipynb"):
        try:
            data = json.loads(text)
            data = data.get("metadata", data).get("cgprimer", data)
        except (ValueError, AttributeError, RecursionError) as error:
            raise DataError(f"{where} is no JSON of cgprimer's: {str(error)[:80]}") from None
    else:
        found = _MARK.search(text)
        try:
            data = json.loads(found[1].replace("\\u003c", "<")) if found else {}
        except (ValueError, RecursionError):
            data = {}
        if not data:
            hint = "the grader's sheets.json, or a sheet as 'cgprimer exercise' wrote it"
            raise DataError(f"{where} has no sheet in it", hint=hint)
    several = data.get("sheets") if isinstance(data, dict) else None
    listed = several if isinstance(several, list) else [data]
    sheets = [parse_sheet(one, where) for one in listed]
    if not sheets:
        raise DataError(f"{where} has no sheet in it")
    return {sheet.identifier: sheet for sheet in sheets}


def read_text_file(path: str | Path) -> str:
    """The text of a file of some size.

    Raises:
        DataError: it cannot be read, is too large or no text.
    """
    try:
        if Path(path).stat().st_size > _LARGEST:
            raise DataError(f"{path} is too large to be a sheet or answers")
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text (byte {error.start})") from None


def parse_csv(text: str) -> list[list[str]]:
    """The rows of a table with commas, semicolons or tabs: what its first line has most of."""
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    return list(csv.reader(io.StringIO(text), delimiter=delimiter))


def format_sheets(sheets: Sequence[Sheet]) -> str:
    """What the grader keeps: every sheet's questions."""
    return format_json({"sheets": [sheet.to_dict() for sheet in sheets]}) + "\n"


# --- a question, worked out ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Blank:
    """A place for an answer, and how its value follows from other blanks.

    Attributes:
        row: what stands in the first cell of its row.
        column: the heading of its column.
        name: of its value, in the trees of blanks after it.
        value: the right one: a number, an array, or a text (names, apart by commas).
        tree: computes it from what is given and from blanks before; None where nothing follows.
        form: ``number``, ``array``, ``shape``, ``name`` or ``names`` (in any order).
        operation: of a tangent, the primitive that computes the row's value; else empty.
    """

    row: str
    column: str
    name: str
    value: Any
    tree: Expression | None = None
    form: str = "number"
    operation: str = ""

    def text(self, digits: int) -> str:
        """The right value, in so many digits; 0 for all it has."""
        if self.form == "array":
            return format_array(self.value, width=999)
        return format_number(self.value, digits or 10) if self.form == "number" else str(self.value)


class DisplayFormula(str):
    """A formula as text for readers, which cannot be parsed."""

    __slots__ = ()


Cell = str | Blank | Expression


@dataclass(frozen=True, slots=True)
class Worksheet:
    """A problem, worked out.

    Attributes:
        title: the heading.
        text: paragraphs; names and formulas stand between backquotes.
        header: of the table.
        rows: their cells: texts, formulas, and blanks. The first is a text, each once.
        blanks: in the order in which they are worked out.
        given: values of the names in trees that are no blanks.
        digits: that are asked for; 0 for exact numbers.
        picture: options of :func:`cgprimer.draw` for the picture above the table, or None.
        above: header and rows of a table that is given.
    """

    title: str
    text: Sequence[str]
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    blanks: Sequence[Blank]
    given: Mapping[str, Any]
    digits: int
    picture: Mapping[str, Any] | None = None
    above: tuple[Sequence[str], Sequence[Sequence[Cell]]] | None = None


def list_numbers(value: Any) -> list[float]:
    """A number, or those of an array."""
    return [value] if isinstance(value, float) else [*map(float, value.ravel().tolist())]


def format_cell(cell: Cell) -> str:
    """A cell that is no blank, as text."""
    return unparse(cell) if isinstance(cell, Name | Number | Apply) else str(cell)
