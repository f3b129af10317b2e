"""CSV files: pyarrow reads blocks of columns; blocks that it cannot read are read row by row.

The row-by-row reader accepts what pyarrow does not (a leading plus sign, for instance), and names
line and column of a wrong field. It also reads small files, for which importing pyarrow would take
longer.
"""

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

_BLOCK = 1 << 24  # bytes of text per block
_SMALL = 1 << 17  # bytes of text that are read row by row faster than pyarrow is imported
_LONGEST_FIELD = 40  # characters of a field in a message
_DECIMAL_COMMA = re.compile(
    rb'(?m)(?:^|[;\r])[ \t]*"?[-+]?\d*,\d+(?:[eE][-+]?\d+)?"?[ \t]*(?:[;\r]|$)'
)
_UTF_8_HINT = "save the file as UTF-8 (a spreadsheet's 'CSV UTF-8')"
_DECIMAL_HINT = (
    "use a decimal point, or a decimal comma in a file separated by semicolons, but not both,"
    " and no thousands separators"
)


class CsvFile(Source):
    """A UTF-8 CSV file with a header row; columns that are not read may hold any string.

    The most frequent of comma, tab and semicolon in the first line is the delimiter. If it is the
    semicolon, numbers may have decimal commas.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.location = path, f"{path}:1"
        header, beginning = _read_header(path)
        unquoted = re.sub(rb'"[^"]*"|\[[^][]*\]', b"", header).partition(b"\r")[0]
        self.delimiter = max(",;\t", key=unquoted.decode("latin-1").count)
        has_commas = self.delimiter == ";" and _DECIMAL_COMMA.search(beginning)
        self.decimal_marks = {ord(","): ".", ord("."): "_"} if has_commas else {}
        start = 3 if header.startswith(b"\xef\xbb\xbf") else 0
        lines = io.StringIO(header[start:].decode(errors="surrogateescape"), newline="")
        with _allow_long_fields():
            row: list[str] = next(self._make_row_reader(lines), [])
        self.names = [name.strip() for name in row]
        self._check_header()
        header_text = lines.getvalue()[: lines.tell()]
        self._starts = [start + len(header_text.encode(errors="surrogateescape"))]

    def __getstate__(self) -> Any:  # known starts of blocks are kept
        return {**vars(self), "path": self.path.absolute()}

    def _make_row_reader(self, lines: io.StringIO) -> Any:
        """Create a CSV reader that returns each row as a list of strings."""
        return csv.reader(lines, skipinitialspace=True, delimiter=self.delimiter)

    def _check_header(self) -> None:
        """Raise DataError if the first line of the file does not hold valid column names."""
        names, rule = self.names, ""
        if any("\udc80" <= letter <= "\udcff" for name in names for letter in name):
            raise DataError(f"{self.path} is not UTF-8 text", hint=_UTF_8_HINT)
        if not any(names):
            rule = "the first line must contain the column names"
        elif split := next((n for n in names if re.fullmatch(r"\w+\[[0-9]+", n)), ""):
            rule = f'names with commas must be quoted: write "{split},...]"'
        elif _parse_number(names[0]) is not None:
            rule = "the first line must contain the column names, not numbers"
        if rule:
            raise DataError(f"{self.path}:1: {rule}")

    def estimate_size(self, names: Sequence[str]) -> int:
        """Estimate the number of values in the file: one per eight bytes."""
        return self.path.stat().st_size // 8

    def read_all(self, names: Sequence[str]) -> list[Array]:
        """Read whole columns at once; if a field is invalid, read by blocks to locate the field."""
        if self.path.stat().st_size < _SMALL:
            return super().read_all(names)
        import pyarrow as pa

        with pa.OSFile(str(self.path)) as file:
            file.seek(self._starts[0])
            indices = [self.names.index(name) for name in names]
            columns: list[Array] | None = []
            if file.tell() < file.size():
                columns = _read_with_pyarrow(file, self, indices, multiline=False)
        return super().read_all(names) if columns is None else columns

    def iterate_blocks(self, names: Sequence[str]) -> Iterator[list[Array]]:
        """Yield the requested columns of each block, and record where each block starts."""
        block = 0
        while self._read_block_text(block):
            yield self.read_block(block, names)
            block += 1

    def read_block(self, block: int, names: Sequence[str]) -> list[Array]:
        """Return the requested columns of one block; each field must be a finite number."""
        text = self._read_block_text(block)
        indices = [self.names.index(name) for name in names]
        if text.isspace():
            return [np.empty(0)] * len(indices)
        columns = None
        if len(text) >= _SMALL:
            import pyarrow as pa

            columns = _read_with_pyarrow(pa.BufferReader(text), self, indices, multiline=True)
        return self._read_rows(text, self._starts[block], indices) if columns is None else columns

    def _read_block_text(self, block: int) -> bytes:
        """Read the bytes of one block of rows; empty after the last block."""
        with self.path.open("rb") as file:
            start = file.seek(self._starts[block])
            if block + 1 < len(self._starts):
                return file.read(self._starts[block + 1] - start)
            text = file.read(_BLOCK)
            while len(text) % _BLOCK == 0 and not (end := _find_end_of_last_row(text)):
                if not (more := file.read(_BLOCK)):
                    break
                text += more  # a row longer than a block
            text = text[: end or None] if len(text) % _BLOCK == 0 else text
        if text:
            self._starts.append(start + len(text))
        return text

    def _read_rows(self, text: bytes, start: int, indices: list[int]) -> list[Array]:
        """Parse columns row by row; raise DataError with the line number of an invalid row."""
        with self.path.open("rb") as file:
            line = sum(
                file.read(min(_BLOCK, start - k)).count(b"\n") for k in range(0, start, _BLOCK)
            )
        columns = [array("d") for _ in indices]
        names = self.names
        lines = io.StringIO(text.decode(errors="surrogateescape"), newline="")
        reader = self._make_row_reader(lines)
        with _allow_long_fields():
            for row in reader:
                position = f"{self.path}:{line + reader.line_num}"
                if row and len(row) != len(names):
                    message = f"{len(row)} fields, but the header has {len(names)} columns"
                    is_double = len(row) == 2 * len(names)
                    hint = "separate columns by semicolons if numbers have decimal commas"
                    raise DataError(f"{position}: {message}", hint=hint * is_double)
                for column, k in zip(columns, indices if row else (), strict=bool(row)):
                    value = _parse_number(row[k].translate(self.decimal_marks))
                    if value is None or not math.isfinite(value):
                        raise _create_field_error(position, row[k].strip(), names[k], value)
                    column.append(value)
        return [np.frombuffer(column) for column in columns]


def _read_header(path: Path) -> tuple[bytes, bytes]:
    """Return a CSV file's header row, and the beginning of the file including this row."""
    with path.open("rb") as file:
        lines = [file.readline()]
        if lines[0].startswith(b"\x1f\x8b"):
            raise DataError(f"{path} is compressed", hint="decompress the file first (gunzip)")
        quotes = lines[0].count(b'"')
        while quotes % 2 and (more := file.readline()):
            lines.append(more)
            quotes += more.count(b'"')
        header = b"".join(lines)
        return header, header + file.read(1 << 17)


def _create_field_error(position: str, field: str, name: str, value: float | None) -> DataError:
    """Create the error for a CSV field that is not a finite number."""
    field = field if len(field) <= _LONGEST_FIELD else field[:_LONGEST_FIELD] + "..."
    if value is not None:
        return DataError(f"{position}: {field} in column {name!r} is not finite", hint=SKIP)
    required, hint = "a number", ""
    if any("\udc80" <= letter <= "\udcff" for letter in field):
        required, hint = "UTF-8 text", _UTF_8_HINT
    elif field.casefold() in ("", "na", "n/a", "null", "-", "?"):
        hint = SKIP
    elif re.fullmatch("[-−+]?[0-9.,]+", field):
        hint = _DECIMAL_HINT if "−" not in field else "write '-'"
    return DataError(f"{position}: {field!r} in column {name!r} is not {required}", hint=hint)


def _read_with_pyarrow(
    text: Any, source: CsvFile, indices: list[int], *, multiline: bool
) -> list[Array] | None:
    """Read the columns with the given indices; None if a field is not a finite number.

    Parsing quoted line breaks (`multiline`) takes a third longer; without it pyarrow reports them
    as errors.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    names = [str(k) for k in range(len(source.names))]
    wanted = [names[k] for k in indices]
    try:
        table = arrow_csv.read_csv(
            text,
            read_options=arrow_csv.ReadOptions(column_names=names),
            parse_options=arrow_csv.ParseOptions(
                newlines_in_values=multiline, delimiter=source.delimiter
            ),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=wanted,
                column_types=dict.fromkeys(wanted, pa.float64()),
                null_values=[],
                decimal_point="," if source.decimal_marks else ".",
            ),
        )
    except pa.ArrowException:
        return None
    columns = [np.concatenate([c.to_numpy() for c in table.column(n).chunks]) for n in wanted]
    return columns if all(np.isfinite(column).all() for column in columns) else None


def _find_end_of_last_row(text: bytes) -> int:
    """Return the offset just after the last complete row in a part of a CSV file."""
    end = last = text.rfind(b"\n") + 1
    quotes = text.count(b'"', 0, end) if b'"' in text else 0
    while quotes % 2 and (newline := text.rfind(b"\n", 0, end - 1)) >= 0:
        quotes -= text.count(b'"', newline + 1, end)
        end = newline + 1
    return last if quotes % 2 else end  # a single quotation mark is an ordinary character


def _parse_number(text: str) -> float | None:
    """Parse a string as a float; return None if it is not a number."""
    try:
        return None if "_" in text else float(text)  # 1_000 is a number only in Python
    except ValueError:
        return None


@contextmanager
def _allow_long_fields() -> Iterator[None]:
    """Remove the csv module's limit on field sizes within a ``with`` block."""
    before = csv.field_size_limit(sys.maxsize >> 33)
    try:
        yield
    finally:
        csv.field_size_limit(before)
