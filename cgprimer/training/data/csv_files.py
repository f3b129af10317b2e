"""CSV files: columns read by pyarrow a block at a time; what it cannot read is read row by row."""

from __future__ import annotations

import csv
import io
import math
import re
import sys
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cgprimer.errors import DataError
from cgprimer.training.data.dataset_columns import SKIP, Array, Source

_BLOCK = 1 << 24  # bytes of text
_SMALL = 1 << 17  # are read row by row sooner than pyarrow is imported
_SHOWN = 40  # letters of a field in a message
_COMMA = re.compile(rb'(?m)(?:^|[;\r])[ \t]*"?[-+]?\d*,\d+(?:[eE][-+]?\d+)?"?[ \t]*(?:[;\r]|$)')
_UTF_8 = "save it as UTF-8 (a spreadsheet's 'CSV UTF-8')"
_MARKS = (
    "the decimal mark is a point, beside semicolons also a comma, not both; thousands have none"
)


class CsvFile(Source):
    """A table with a header, in UTF-8. Fields of columns that nobody uses may hold anything.

    What its first line has most of separates columns: commas, tabs, or semicolons, beside which
    decimal marks may be commas.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.place = path, f"{path}:1"
        with path.open("rb") as file:
            header = [file.readline()]
            if header[0].startswith(b"\x1f\x8b"):
                raise DataError(f"{path} is compressed; unpack it first (gunzip)")
            quotes = header[0].count(b'"')
            while quotes % 2 and (more := file.readline()):
                header.append(more)
                quotes += more.count(b'"')
            text = b"".join(header)
            ahead = text + file.read(1 << 17)
        head = re.sub(rb'"[^"]*"|\[[^][]*\]', b"", text).partition(b"\r")[0].decode("latin-1")
        self.between = max(",;\t", key=head.count)
        commas = self.between == ";" and _COMMA.search(ahead)
        self.marks = {ord(","): ".", ord("."): "_"} if commas else {}
        start = 3 if text.startswith(b"\xef\xbb\xbf") else 0
        lines = io.StringIO(text[start:].decode(errors="surrogateescape"), newline="")
        with _long_fields():
            row: list[str] = next(self._rows(lines), [])
        self.names = [name.strip() for name in row]
        self._check_header()
        read = lines.getvalue()[: lines.tell()]
        self._starts = [start + len(read.encode(errors="surrogateescape"))]

    def __getstate__(self) -> Any:  # where blocks begin is not looked for twice
        return {**vars(self), "path": self.path.absolute()}

    def _rows(self, lines: io.StringIO) -> Any:
        return csv.reader(lines, skipinitialspace=True, delimiter=self.between)

    def _check_header(self) -> None:
        names, wrong = self.names, ""
        if any("\udc80" <= letter <= "\udcff" for name in names for letter in name):
            raise DataError(f"{self.path} is not UTF-8 text", hint=_UTF_8)
        if not any(names):
            wrong = "the first line must hold the names of the columns"
        elif split := next((n for n in names if re.fullmatch(r"\w+\[[0-9]+", n)), ""):
            wrong = f'names with commas stand in quotes: write "{split},...]"'
        elif _number(names[0]) is not None:
            wrong = "the first line must hold the names of the columns, not numbers"
        if wrong:
            raise DataError(f"{self.path}:1: {wrong}")

    def size(self, names: Sequence[str]) -> int:
        """As of any source; a number has some eight letters at least."""
        return self.path.stat().st_size // 8

    def whole(self, names: Sequence[str]) -> list[Array]:
        """As of any source; where something is wrong, a block at a time, to find the place."""
        if self.path.stat().st_size < _SMALL:
            return super().whole(names)
        import pyarrow as pa

        with pa.OSFile(str(self.path)) as file:
            file.seek(self._starts[0])
            places = [self.names.index(name) for name in names]
            found = _at_once(file, self, places, False) if file.tell() < file.size() else []
        return super().whole(names) if found is None else found

    def blocks(self, names: Sequence[str]) -> Iterator[list[Array]]:
        """As of any source. Where blocks begin is found out as they are read."""
        block = 0
        while self._text(block):
            yield self.read(block, names)
            block += 1

    def read(self, block: int, names: Sequence[str]) -> list[Array]:
        """As of any source; all numbers are finite."""
        text = self._text(block)
        places = [self.names.index(name) for name in names]
        if text.isspace():
            return [np.empty(0)] * len(places)
        found = None
        if len(text) >= _SMALL:
            import pyarrow as pa

            found = _at_once(pa.BufferReader(text), self, places, True)
        return self._row_by_row(text, self._starts[block], places) if found is None else found

    def _text(self, block: int) -> bytes:
        """The rows of a block; nothing behind the last one."""
        with self.path.open("rb") as file:
            start = file.seek(self._starts[block])
            if block + 1 < len(self._starts):
                return file.read(self._starts[block + 1] - start)
            text = file.read(_BLOCK)
            while len(text) % _BLOCK == 0 and not (end := _last_row(text)):
                if not (more := file.read(_BLOCK)):
                    break
                text += more  # a row longer than that
            text = text[: end or None] if len(text) % _BLOCK == 0 else text
        if text:
            self._starts.append(start + len(text))
        return text

    def _row_by_row(self, text: bytes, start: int, places: list[int]) -> list[Array]:
        with self.path.open("rb") as file:
            line = sum(
                file.read(min(_BLOCK, start - k)).count(b"\n") for k in range(0, start, _BLOCK)
            )
        found = [array("d") for _ in places]
        names = self.names
        lines = io.StringIO(text.decode(errors="surrogateescape"), newline="")
        reader = self._rows(lines)
        with _long_fields():
            for row in reader:
                where = f"{self.path}:{line + reader.line_num}"
                if row and len(row) != len(names):
                    what = f"{len(row)} fields, but the header has {len(names)} columns"
                    twice = len(row) == 2 * len(names)
                    hint = "semicolons between columns if decimal marks are commas" * twice
                    raise DataError(f"{where}: {what}", hint=hint)
                for column, k in zip(found, places if row else (), strict=bool(row)):
                    value, field = _number(row[k].translate(self.marks)), row[k].strip()
                    if value is not None and math.isfinite(value):
                        column.append(value)
                        continue
                    raise _wrong(f"{where}: ", field, names[k], value)
        return [np.frombuffer(column) for column in found]


def _wrong(where: str, field: str, name: str, value: float | None) -> DataError:
    """The error of a field that is no finite number."""
    field = field if len(field) <= _SHOWN else field[:_SHOWN] + "..."
    if value is not None:
        return DataError(f"{where}{field} in the column {name!r} is not finite", hint=SKIP)
    wrong, hint = "a number", ""
    if any("\udc80" <= letter <= "\udcff" for letter in field):
        wrong, hint = "UTF-8 text", _UTF_8
    elif field.casefold() in ("", "na", "n/a", "null", "-", "?"):
        hint = SKIP
    elif re.fullmatch("[-−+]?[0-9.,]+", field):
        hint = _MARKS if "−" not in field else "write '-'"
    return DataError(f"{where}{field!r} in the column {name!r} is not {wrong}", hint=hint)


def _at_once(text: Any, of: CsvFile, places: list[int], lines: bool) -> list[Array] | None:
    """The columns of these places; None if something is not as it must be.

    Lines inside of quotes take a third longer, and if not asked for are noticed.
    """
    import pyarrow as pa
    from pyarrow import csv as fast

    names = [str(k) for k in range(len(of.names))]
    wanted = [names[k] for k in places]
    try:
        table = fast.read_csv(
            text,
            read_options=fast.ReadOptions(column_names=names),
            parse_options=fast.ParseOptions(newlines_in_values=lines, delimiter=of.between),
            convert_options=fast.ConvertOptions(
                include_columns=wanted,
                column_types=dict.fromkeys(wanted, pa.float64()),
                null_values=[],
                decimal_point="," if of.marks else ".",
            ),
        )
    except pa.ArrowException:
        return None
    found = [np.concatenate([c.to_numpy() for c in table.column(n).chunks]) for n in wanted]
    return found if all(np.isfinite(column).all() for column in found) else None


def _last_row(text: bytes) -> int:
    """Where the last whole row of a text ends: a line that is not inside of quotes."""
    end = last = text.rfind(b"\n") + 1
    quotes = text.count(b'"', 0, end) if b'"' in text else 0
    while quotes % 2 and (newline := text.rfind(b"\n", 0, end - 1)) >= 0:
        quotes -= text.count(b'"', newline + 1, end)
        end = newline + 1
    return last if quotes % 2 else end  # a single quote somewhere is a letter like others


def _number(text: str) -> float | None:
    try:
        return None if "_" in text else float(text)  # Python's own 1_000 is no number elsewhere
    except ValueError:
        return None


@contextmanager
def _long_fields() -> Iterator[None]:
    before = csv.field_size_limit(sys.maxsize >> 33)
    try:
        yield
    finally:
        csv.field_size_limit(before)
