"""Answers of students, read from files as text; nothing in the files is executed.

Each format has a reader, a function from the text of a file to :class:`Answers`.
"""

from __future__ import annotations

import ast
import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cgprimer.course.checks.sheets.sheet_problems import parse_csv
from cgprimer.course.checks.submission_files import read_regular_file
from cgprimer.errors import DataError, UsageError, join_names

COLUMNS = ("sheet", "problem", "row", "column", "answer")
_MAX_BYTES = 2_000_000  # of a file
_MAX_ROWS = 50_000  # of a CSV file
_MAX_PROGRAM = 200_000  # characters of a Python file or cell
_ASSIGNMENT = re.compile(r"^(answers_\d+)\s*=", re.MULTILINE)
BlankKey = tuple[int, str, str]  #: number of the problem, normalized names of row and column


@dataclass(frozen=True, slots=True)
class Answers:
    """A student's answers to an exercise sheet.

    Attributes:
        sheet: the identifier of the sheet that the file contains; empty if it contains none.
        texts: the answers as strings, keyed by problem, row and column.
    """

    sheet: str
    texts: dict[BlankKey, str] = field(default_factory=dict)


def normalize_name(name: str) -> str:
    """Remove markup, such as backticks, from the name of a row or column.

    >>> normalize_name(" `xx -> xw` "), normalize_name("xx → xw")
    ('xx->xw', 'xx->xw')
    """
    plain = re.sub(r"[`\s]|\\(?=[|*_])", "", str(name))
    return plain.replace("→", "->").replace("−", "-")


def _build_key(problem: Any, row: str, column: str) -> BlankKey:
    """Return the key of an answer: problem number, normalized row and normalized column."""
    digits = re.search(r"\d+", str(problem))
    return int(digits[0]) if digits else 0, normalize_name(row), normalize_name(column)


# --- readers -------------------------------------------------------------------------------------


def _read_csv(text: str) -> Answers:
    """Parse a CSV form with one line per answer."""
    first, *rows = parse_csv(text) or [[]]
    if len(rows) > _MAX_ROWS:
        raise ValueError(f"the table must have at most {_MAX_ROWS:,} rows")
    header = [normalize_name(cell).casefold() for cell in first]
    if missing := [name for name in COLUMNS[1:] if name not in header]:
        raise ValueError(f"missing column {missing[0]!r}")
    sheets, texts = set(), {}
    for row in rows:
        cells = dict(zip(header, row, strict=False))
        if not any(cells.values()):
            continue
        sheets.add(cells.get("sheet", "").strip())
        key = _build_key(cells["problem"], cells["row"], cells["column"])
        texts[key] = cells.get("answer", "")
    if len(identifiers := sorted(sheets - {""})) > 1:
        raise ValueError(f"the file has answers to multiple sheets: {join_names(identifiers, 3)}")
    return Answers("".join(identifiers), texts)


def _read_json(text: str) -> Answers:
    """Parse a JSON form with answers nested by problem, row and column."""
    data = json.loads(text)
    return Answers(str(data.get("sheet", "")), dict(_flatten_answers(data["answers"])))


def _flatten_answers(answers: Mapping[Any, Any]) -> Iterator[tuple[BlankKey, str]]:
    """Yield (key, answer) pairs from mappings nested by problem, row and column."""
    for problem, rows in answers.items():
        for row, columns in rows.items():
            for column, answer in columns.items():
                text = json.dumps(answer) if isinstance(answer, list) else str(answer)
                yield _build_key(problem, row, column), "" if answer is None else text


def _read_markdown(text: str) -> Answers:
    """Parse the tables below the problem headings in a Markdown form."""
    texts: dict[BlankKey, str] = {}
    problem, header = 0, list[str]()
    for line in text.splitlines():
        heading = re.match(r"#+\s*(?:problem\s*)?(\d+)\b", line, re.IGNORECASE)
        if heading:
            problem, header = int(heading[1]), []
        elif not line.lstrip().startswith("|"):
            header = []
        elif problem:
            cells = [c.strip() for c in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
            if not header:
                header = cells
            elif not all(re.fullmatch(r":?-*:?", c) for c in cells) or not "".join(cells):
                for column, cell in zip(header[1:], cells[1:], strict=False):
                    texts[_build_key(problem, cells[0], column)] = cell.replace("\\", "")
    return Answers(_read_embedded_identifier(text), texts)


def _read_embedded_identifier(text: str) -> str:
    """Return the identifier of the sheet that is embedded in a Markdown file, or an empty string.

    Finding the braces takes linear time; a regular expression would take quadratic time.
    """
    for line in text.partition("cgprimer-sheet")[2].splitlines()[:1]:
        begin, end = line.find("{"), line.rfind("}")
        if 0 <= begin < end:
            return str(json.loads(line[begin : end + 1]).get("sheet", ""))
    return ""


def _read_notebook(text: str) -> Answers:
    """Parse the cells ``answers_1 = {...}`` of a notebook without running them."""
    data = json.loads(text)
    sheet = str(data["metadata"].get("cgprimer", {}).get("sheet", ""))
    texts: dict[BlankKey, str] = {}
    for cell in data["cells"]:
        source = cell.get("source", "")
        source = "".join(source) if isinstance(source, list) else str(source)
        if cell.get("cell_type") == "code" and _ASSIGNMENT.search(source):
            texts |= _read_python(source).texts
    return Answers(sheet, texts)


def _read_python(text: str) -> Answers:
    """Parse the assignments ``sheet = "..."`` and ``answers_1 = {...}`` of a Python form."""
    try:
        tree = ast.parse(text[:_MAX_PROGRAM])
    except (SyntaxError, MemoryError) as error:
        name, reason = _ASSIGNMENT.search(text), getattr(error, "msg", "too deeply nested")
        raise ValueError(f"{name[1] if name else 'it'} is not valid Python: {reason}") from None
    sheet, texts = "", dict[BlankKey, str]()
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if not isinstance(node, ast.Assign) or not isinstance(target, ast.Name):
            continue
        if target.id == "sheet":
            sheet = _format_literal(node.value)
        elif _ASSIGNMENT.match(f"{target.id} ="):
            for row, columns in _list_items(node.value):
                for column, answer in _list_items(columns):
                    key = _build_key(target.id, _format_literal(row), _format_literal(column))
                    texts[key] = _format_literal(answer)
    return Answers(sheet, texts)


def _list_items(node: ast.expr | None) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the (key, value) pairs of a dictionary literal."""
    if not isinstance(node, ast.Dict):
        raise ValueError("answers must be a dictionary of dictionaries")
    for key, value in zip(node.keys, node.values, strict=True):
        if key is not None:
            yield key, value


def _format_literal(node: ast.expr) -> str:
    """Return the value of a literal as a string, and the source of any other expression."""
    if isinstance(node, ast.Constant):
        return "" if node.value is None or node.value is ... else str(node.value)
    return ast.unparse(node)


_READERS: dict[str, Callable[[str], Answers]] = {
    ".csv": _read_csv,
    ".json": _read_json,
    ".md": _read_markdown,
    ".ipynb": _read_notebook,
    ".py": _read_python,
}
ENDINGS = tuple(_READERS)


# --- reading -------------------------------------------------------------------------------------


def read_answers(path: str | Path) -> Answers:
    """Read the answers in a CSV, JSON, Markdown or Python file, or in a notebook.

    The ending of the file name determines the format.

    Raises:
        DataError: the file cannot be read, or does not have the format.
    """
    reader = _READERS.get(Path(path).suffix.lower())
    if reader is None:
        raise DataError(f"cannot read answers from {path}: the extension must be one of"
                        f" {', '.join(ENDINGS)}")  # fmt: skip
    try:
        return reader(_read_text(path))
    except (ValueError, csv.Error) as error:
        reason = str(error).splitlines()[0][:100] if str(error) else type(error).__name__
    except RecursionError:
        reason = "it is nested too deeply"
    except (TypeError, KeyError, AttributeError):
        reason = "it does not have the structure of an answer form"
    raise DataError(f"cannot read answers from {path}: {reason}")


def _read_text(path: str | Path) -> str:
    """Return the text of a regular file of limited size.

    Raises:
        DataError: the file cannot be read, or is too large.
    """
    try:
        data = read_regular_file(Path(path), _MAX_BYTES)
    except UsageError as error:
        raise DataError(error.message) from None
    if data is None:
        raise DataError(f"{path} must have at most {_MAX_BYTES:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text (byte {error.start})") from None


def parse_namespace(names: Mapping[str, Any]) -> Answers:
    """Read the dictionaries ``answers_1``, ``answers_2``, ... of a running notebook.

    Args:
        names: the ``globals()`` of the notebook.
    """
    answers = {name: value for name, value in names.items() if _ASSIGNMENT.match(f"{name} =")}
    try:
        return Answers("", dict(_flatten_answers(answers)))
    except AttributeError:
        raise DataError("answers must be a dictionary of dictionaries, as in the form") from None
