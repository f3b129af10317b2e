"""Tables of Arrow: Parquet files, and the data frames of pandas, polars and others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cgprimer.errors import DataError
from cgprimer.training.data.dataset_columns import ROWS, Array, Source


class Frame(Source):
    """A data frame: whatever has ``__arrow_c_stream__``. Columns in use alone become Arrow's."""

    def __init__(self, frame: Any) -> None:
        import pyarrow as pa

        self.place = f"the {type(frame).__name__}"
        by_name = hasattr(frame, "columns") and not hasattr(frame, "column_names")
        self._frame = frame if by_name else pa.table(frame)
        self._own = list(frame.columns if by_name else self._frame.column_names)
        self.names = list(map(str, self._own))

    def blocks(self, names: Sequence[str]) -> Iterator[list[Array]]:
        """One block: a frame is in memory."""
        return iter([self.read(0, names)])

    def read(self, block: int, names: Sequence[str]) -> list[Array]:
        """As of any source."""
        import pyarrow as pa

        own = [self._own[self.names.index(name)] for name in names]
        try:
            table = pa.table(
                self._frame.select(own) if isinstance(self._frame, pa.Table) else self._frame[own]
            )
        except (pa.ArrowException, TypeError, ValueError) as error:
            first = str(error).splitlines()[0]
            raise DataError(f"{self.place} is no table of numbers: {first}") from None
        return [numbers_of(table.column(name), name, self.place) for name in names]


class ParquetFile(Source):
    """A Parquet file. Its row groups are the blocks, small ones several at a time."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        self.place, self._broken = str(path), (pa.ArrowException, OSError, UnicodeError)
        try:
            path.open("rb").close()
            self.file = parquet.ParquetFile(path, pre_buffer=False)
            self.names = self.file.schema_arrow.names
        except self._broken as error:
            if getattr(error, "errno", None):
                raise
            raise DataError(f"{path} is no Parquet file, or a part of one") from None
        about = self.file.metadata
        self.groups: list[list[int]] = []
        self.rows: list[int] = []
        for group in range(about.num_row_groups):
            rows = about.row_group(group).num_rows
            if self.rows and self.rows[-1] + rows <= ROWS:
                self.rows[-1] += rows
                self.groups[-1].append(group)
            else:
                self.rows.append(rows)
                self.groups.append([group])

    def __reduce__(self) -> Any:
        return ParquetFile, (Path(self.place).absolute(),)  # opened anew where it arrives

    def lengths(self, names: Sequence[str]) -> list[int]:
        """As of any source: of the row groups."""
        return self.rows

    def read(self, block: int, names: Sequence[str]) -> list[Array]:
        """As of any source."""
        try:
            table = self.file.read_row_groups(self.groups[block], columns=list(names))
        except self._broken as error:
            why = str(error).splitlines()[0]
            raise DataError(f"{self.place} cannot be read, it is damaged: {why}") from None
        first = sum(self.rows[:block])
        return [numbers_of(table.column(name), name, self.place, first) for name in names]


def numbers_of(column: Any, name: str, place: str, first: int = 0) -> Array:
    """A column of Arrow as an array; lists of one length become its further axes.

    Raises:
        DataError: it is not of numbers, or one is missing; samples are counted from ``first``.
    """
    import pyarrow as pa

    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(column, pa.ChunkedArray):  # no chunk at all
        column = pa.concat_arrays(column.chunks) if column.chunks else pa.array([], column.type)
    kind, shape = column.type, []
    if column.null_count:
        bad = first + column.is_null().index(True).as_py()
        what = f"{place}: sample {bad} of the column {name!r} has no value"
        raise DataError(what, hint="take such samples out, or fill them, before training")
    while pa.types.is_fixed_size_list(kind):
        shape.append(kind.list_size)
        column, kind = column.flatten(), kind.value_type
    types = pa.types
    if types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    if not (number or types.is_decimal(kind)):
        raise DataError(f"{place}: the column {name!r} has the type {kind}, which is no number")
    found = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return found.reshape(-1, *shape) if shape else found


def parquet_bytes(table: Any) -> bytes:
    """A table as a Parquet file."""
    import pyarrow as pa
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink, row_group_size=ROWS)
    return bytes(sink.getvalue().to_pybytes())
