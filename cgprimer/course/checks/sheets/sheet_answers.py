"""Answers that students filled in: read as text, from files; nothing of them is executed."""

from __future__ import annotations

import ast
import csv
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cgprimer.course.checks.notation_reader import read_formula
from cgprimer.course.checks.sheets.sheet_problems import parse_csv
from cgprimer.course.checks.sheets.sheet_tables import evaluate_formula
from cgprimer.course.checks.submission_files import read_regular_file
from cgprimer.errors import CgprimerError, DataError, UsageError, join_names

ENDINGS = (".csv", ".json", ".md", ".ipynb", ".py")
COLUMNS = ("sheet", "problem", "row", "column", "answer")
_LONGEST, _LONGEST_PROGRAM = 300, 200_000  # characters of an answer, and of a cell
_LARGEST = 2_000_000  # bytes of a file
_MOST_ROWS = 50_000  # answers of a file
_MOST_NUMBERS = 500  # of a matrix
_ASSIGNED = re.compile(r"^(answers_\d+)\s*=", re.MULTILINE)
_CONSTANTS = {"e": math.e, "pi": math.pi}
_EMPTY = ("", "-", "_", "?", "...", "…")

BlankKey = tuple[int, str, str]  #: number of the problem, row, column; as `plain` writes them


@dataclass(frozen=True, slots=True)
class Answers:
    """What somebody answered.

    Attributes:
        sheet: the identifier that the file has; empty where it has none.
        texts: for each place a text.
    """

    sheet: str
    texts: dict[BlankKey, str] = field(default_factory=dict)


def normalize_name(text: str) -> str:
    """A row's or column's name without marks of a format.

    >>> plain(" `xx -> xw` "), plain("xx → xw")
    ('xx->xw', 'xx->xw')
    """
    text = re.sub(r"[`\s]|\\(?=[|*_])", "", str(text))
    return text.replace("→", "->").replace("−", "-")


def read_answers(path: str | Path) -> Answers:
    """Answers from a CSV, JSON, Markdown or Python file or a notebook; the ending says which.

    Raises:
        DataError: the file cannot be read or is no such file; the message says what is missing.
    """
    kind = Path(path).suffix.lower()
    readers = dict(
        zip(
            ENDINGS,
            (_read_csv, _read_json, _read_markdown, _read_notebook, _read_python),
            strict=True,
        )
    )
    if kind not in readers:
        raise DataError(f"{path} has no answers: its ending is none of {', '.join(ENDINGS)}")
    try:
        return readers[kind](_read_file(path))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, csv.Error) as error:
        said = str(error).splitlines()[0][:100] if str(error) else type(error).__name__
        raise DataError(f"{path} has no answers that can be read: {said}") from None


def _read_file(path: str | Path) -> str:
    """Return the text of a regular file of limited size.

    Raises:
        DataError: it cannot be read, or is too large.
    """
    try:
        data = read_regular_file(Path(path), _LARGEST)
    except UsageError as error:
        raise DataError(error.message) from None
    if data is None:
        raise DataError(f"{path} is too large for answers: it has more than {_LARGEST:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text (byte {error.start})") from None


def _read_csv(text: str) -> Answers:
    first, *rows = parse_csv(text) or [[]]
    if len(rows) > _MOST_ROWS:
        raise ValueError(f"more than {_MOST_ROWS:,} rows")
    header = [normalize_name(cell).casefold() for cell in first]
    if missing := [name for name in COLUMNS[1:] if name not in header]:
        raise ValueError(f"no column {missing[0]!r}")
    sheets, found = set(), {}
    for row in rows:
        cells = dict(zip(header, row, strict=False))
        if not any(cells.values()):
            continue
        sheets.add(cells.get("sheet", "").strip())
        found[_build_key(cells["problem"], cells["row"], cells["column"])] = cells.get("answer", "")
    if len(known := sorted(sheets - {""})) > 1:
        raise ValueError(f"it is of several sheets: {join_names(known, 3)}")
    return Answers("".join(known), found)


def _read_json(text: str) -> Answers:
    data = json.loads(text)
    return Answers(str(data.get("sheet", "")), dict(_flatten_answers(data["answers"])))


def _flatten_answers(answers: Any) -> Iterator[tuple[BlankKey, str]]:
    for number, rows in answers.items():
        for row, columns in rows.items():
            for column, answer in columns.items():
                written = json.dumps(answer) if isinstance(answer, list) else str(answer)
                yield _build_key(number, row, column), "" if answer is None else written


def _read_markdown(text: str) -> Answers:
    """Tables under the headings of problems, as the sheet has them."""
    sheet = _read_sheet_mark(text)
    found: dict[BlankKey, str] = {}
    number, header = 0, list[str]()
    for line in text.splitlines():
        heading = re.match(r"#+\s*(?:problem\s*)?(\d+)\b", line, re.IGNORECASE)
        if heading:
            number, header = int(heading[1]), []
        elif not line.lstrip().startswith("|"):
            header = []
        elif number:
            cells = [c.strip() for c in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
            if not header:
                header = cells
            elif not all(re.fullmatch(r":?-*:?", c) for c in cells) or not "".join(cells):
                for column, cell in zip(header[1:], cells[1:], strict=False):
                    found[_build_key(number, cells[0], column)] = cell.replace("\\", "")
    return Answers(sheet, found)


def _read_sheet_mark(text: str) -> str:
    """Return the sheet that the mark in a Markdown file names; a pattern is quadratic here."""
    for line in text.partition("cgprimer-sheet")[2].splitlines()[:1]:
        begin, end = line.find("{"), line.rfind("}")
        if 0 <= begin < end:
            return str(json.loads(line[begin : end + 1]).get("sheet", ""))
    return ""


def _read_notebook(text: str) -> Answers:
    """Cells ``answers_1 = {"xx": {"value": 0.25}}``: they are read as text, and never run."""
    data = json.loads(text)
    sheet = str(data["metadata"].get("cgprimer", {}).get("sheet", ""))
    found: dict[BlankKey, str] = {}
    for cell in data["cells"]:
        source = cell.get("source", "")
        source = "".join(source) if isinstance(source, list) else str(source)
        if cell.get("cell_type") == "code" and _ASSIGNED.search(source):
            found |= _read_python(source).texts
    return Answers(sheet, found)


def _read_python(text: str) -> Answers:
    """Such dictionaries in a file of their own, below ``sheet = "..."``."""
    try:
        tree = ast.parse(text[:_LONGEST_PROGRAM])
    except (SyntaxError, MemoryError) as error:
        name, said = _ASSIGNED.search(text), getattr(error, "msg", "too deep")
        raise ValueError(f"{name[1] if name else 'it'} is no Python: {said}") from None
    sheet, found = "", dict[BlankKey, str]()
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if not isinstance(node, ast.Assign) or not isinstance(target, ast.Name):
            continue
        if target.id == "sheet":
            sheet = _unparse_answer(node.value)
        elif _ASSIGNED.match(f"{target.id} ="):
            for row, columns in _list_items(node.value):
                for column, answer in _list_items(columns):
                    found[_build_key(target.id, _unparse_answer(row), _unparse_answer(column))] = (
                        _unparse_answer(answer)
                    )
    return Answers(sheet, found)


def parse_namespace(names: Mapping[str, Any]) -> Answers:
    """The same from the names of a notebook that is running: ``globals()``."""
    own = {name: value for name, value in names.items() if _ASSIGNED.match(f"{name} =")}
    try:
        return Answers("", dict(_flatten_answers(own)))
    except AttributeError:
        raise DataError("answers are dictionaries of dictionaries, as the form has them") from None


def _list_items(node: ast.expr | None) -> Iterator[tuple[ast.expr, ast.expr]]:
    if not isinstance(node, ast.Dict):
        raise ValueError("an answer is a dictionary of dictionaries")
    for key, value in zip(node.keys, node.values, strict=True):
        if key is not None:
            yield key, value


def _unparse_answer(node: ast.expr) -> str:
    """A text as it is, anything else as it is written."""
    if isinstance(node, ast.Constant):
        return "" if node.value is None or node.value is ... else str(node.value)
    return ast.unparse(node)


def _build_key(number: Any, row: str, column: str) -> BlankKey:
    digits = re.search(r"\d+", str(number))
    return int(digits[0]) if digits else 0, normalize_name(row), normalize_name(column)


# --- from a text to what it means ----------------------------------------------------------------


def truncate_answer(text: str) -> str:
    """Return an answer of limited length: one that is longer is no answer, whatever it begins with.

    >>> len(bounded("1" * 100_000))
    6001
    """
    return text[: 20 * _LONGEST + 1]


def is_empty_answer(text: str) -> bool:
    """Whether nothing was answered."""
    return text.strip(" _\t`*") in _EMPTY


def parse_number(text: str) -> float:
    r"""The number that an answer is: digits, or an expression such as ``3/4`` or ``e^2``.

    Of a chain ``3*9 = 27`` it is the last; marks of Markdown and LaTeX around it do not count.

    Raises:
        DataError: it is none.

    >>> number_in("3/4"), number_in("−2"), number_in("sqrt(16) + 1"), number_in("≈ 0,5")
    (0.75, -2.0, 5.0, 0.5)
    >>> number_in("**27**"), number_in("2·3² = 18"), number_in(r"$-\frac{3}{4}$"), number_in("2⁻¹")
    (27.0, 18.0, -0.75, 0.5)
    """
    if len(text) > _LONGEST:
        raise DataError("it is too long to be a number")
    *before, text = [p for p in re.split("[=≈~]", text) if p.strip(" `$*")] or [""]
    for part in before:
        parse_number(part)
    text = re.sub(r"^\s*([-+−]?\s*\d+),(\d+)\s*$", r"\1.\2", text.strip(" `$*"))
    try:
        value = float(evaluate_formula(read_formula(text, _CONSTANTS, "<answer>"), _CONSTANTS))
    except CgprimerError as error:
        raise DataError(error.message, hint=error.hint) from None
    except KeyError as error:
        raise DataError(f"{error} is not a number") from None
    if not math.isfinite(value):
        raise DataError("it is not a finite number")
    return value


def parse_array(text: str) -> Any:
    """The array that an answer is, as nested lists or as a number.

    Raises:
        DataError: it is none.

    >>> array_in("**[[1, 1/2], [0, -2]]**")
    array([[ 1. ,  0.5],
           [ 0. , -2. ]])
    """
    import numpy as np

    text = text.strip(" `$*")
    if len(text) > 20 * _LONGEST or "[" not in text:
        return np.array(parse_number(text))
    if text.count(",") > _MOST_NUMBERS:
        raise DataError(f"it has more than {_MOST_NUMBERS} numbers")
    entries: list[float] = []

    def keep(match: re.Match[str]) -> str:
        entries.append(parse_number(match[0]))
        return str(len(entries) - 1)

    try:
        nested = json.loads(re.sub(r"[^\[\],\s][^\[\],]*", keep, text))
        return np.array(entries)[np.array(nested, dtype=int)]
    except (ValueError, TypeError, IndexError, RecursionError):
        raise DataError("it is no matrix: rows of the same length, as [[1, 2], [3, 4]]") from None


def parse_shape(text: str) -> str:
    """A shape as sheets write it.

    >>> shape_in("(2, 3)"), shape_in("2 × 3"), shape_in("scalar"), shape_in("1x1")
    ('2x3', '2x3', 'number', '1x1')
    """
    sizes = re.findall(r"\d+", text[:_LONGEST])
    return "x".join(sizes) or "number"


def parse_names(text: str) -> list[str]:
    """Names apart by commas, spaces or semicolons.

    >>> names_in("xa, xb"), names_in("none")
    (['xa', 'xb'], [])
    """
    found = [name for name in re.split(r"[,;\s{}]+", text.strip(" `[]()")) if name]
    return [] if found in (["none"], ["nothing"], ["∅"]) else [name.strip("`'\"") for name in found]
