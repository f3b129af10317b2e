"""Tables of Arrow: Parquet files, and the data frames of pandas, polars and others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cgprimer.errors import DataError
from cgprimer.training.data.dataset_columns import ROWS, Array, Source


class DataFrameSource(Source):
    """A data frame as a data source; only the columns in use are converted to Arrow."""

    def __init__(self, frame: Any) -> None:
        import pyarrow as pa

        self.location = f"the {type(frame).__name__}"
        by_name = hasattr(frame, "columns") and not hasattr(frame, "column_names")
        self._frame = frame if by_name else pa.table(frame)
        self._column_labels = list(frame.columns if by_name else self._frame.column_names)
        self.names = list(map(str, self._column_labels))

    def iterate_blocks(self, names: Sequence[str]) -> Iterator[list[Array]]:
        """Yield the requested columns of the whole data frame as a single block."""
        return iter([self.read_block(0, names)])

    def read_block(self, block: int, names: Sequence[str]) -> list[Array]:
        """Return the requested columns of the data frame as arrays."""
        import pyarrow as pa

        labels = [self._column_labels[self.names.index(name)] for name in names]
        try:
            table = pa.table(
                self._frame.select(labels)
                if isinstance(self._frame, pa.Table)
                else self._frame[labels]
            )
        except (pa.ArrowException, TypeError, ValueError) as error:
            first = str(error).splitlines()[0]
            raise DataError(
                f"{self.location} cannot be converted to a table of numbers: {first}"
            ) from None
        return [convert_arrow_column(table.column(name), name, self.location) for name in names]


class ParquetFile(Source):
    """A Parquet file as a data source, read in blocks of one or more row groups."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        self.location, self._broken = str(path), (pa.ArrowException, OSError, UnicodeError)
        try:
            path.open("rb").close()
            self.file = parquet.ParquetFile(path, pre_buffer=False)
            self.names = self.file.schema_arrow.names
        except self._broken as error:
            if getattr(error, "errno", None):
                raise
            raise DataError(f"{path} is incomplete or not a valid Parquet file") from None
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
        return ParquetFile, (Path(self.location).absolute(),)  # opened again after unpickling

    def block_lengths(self, names: Sequence[str]) -> list[int]:
        """Return the number of samples in each block."""
        return self.rows

    def read_block(self, block: int, names: Sequence[str]) -> list[Array]:
        """Return the requested columns of one block as arrays."""
        try:
            table = self.file.read_row_groups(self.groups[block], columns=list(names))
        except self._broken as error:
            why = str(error).splitlines()[0]
            raise DataError(f"cannot read {self.location}, the file is damaged: {why}") from None
        first = sum(self.rows[:block])
        return [
            convert_arrow_column(table.column(name), name, self.location, first) for name in names
        ]


def convert_arrow_column(column: Any, name: str, location: str, first: int = 0) -> Array:
    """Convert an Arrow column to a float64 array; lists of equal length become extra axes.

    Args:
        column: the Arrow column.
        name: its name, for messages.
        location: the file or data frame, for messages.
        first: the index of the column's first sample, for messages.

    Raises:
        DataError: the column is not numeric, or a value is missing.
    """
    import pyarrow as pa

    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(column, pa.ChunkedArray):  # no chunk at all
        column = pa.concat_arrays(column.chunks) if column.chunks else pa.array([], column.type)
    kind, shape = column.type, []
    if column.null_count:
        bad = first + column.is_null().index(True).as_py()
        what = f"{location}: column {name!r} has no value in sample {bad}"
        raise DataError(
            what, hint="drop samples with missing values, or fill them, before training"
        )
    while pa.types.is_fixed_size_list(kind):
        shape.append(kind.list_size)
        column, kind = column.flatten(), kind.value_type
    types = pa.types
    if types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    if not (number or types.is_decimal(kind)):
        raise DataError(f"{location}: column {name!r} must be numeric, got type {kind}")
    values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return values.reshape(-1, *shape) if shape else values


def encode_parquet(table: Any) -> bytes:
    """Encode an Arrow table as the bytes of a Parquet file."""
    import pyarrow as pa
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink, row_group_size=ROWS)
    return bytes(sink.getvalue().to_pybytes())
