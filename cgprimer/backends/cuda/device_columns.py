"""Columns in GPU memory, and the chunks of samples that are processed per launch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cgprimer.backends.cuda.device import import_numba_cuda
from cgprimer.backends.interfaces import Array
from cgprimer.errors import EngineError


@dataclass(frozen=True, slots=True, eq=False)
class DeviceColumn:
    """A column of samples in GPU memory; slices are views.

    Attributes:
        data: one-dimensional device array that holds several columns.
        offset: index of the column's first element.
        samples: number of elements.
    """

    data: Any
    offset: int
    samples: int

    def __len__(self) -> int:
        return self.samples

    @property
    def shape(self) -> tuple[int]:
        """Shape of the column: (samples,)."""
        return (self.samples,)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type of the column."""
        dtype: np.dtype[Any] = np.dtype(self.data.dtype)
        return dtype

    def __getitem__(self, part: slice) -> DeviceColumn:
        first, last, step = part.indices(self.samples)
        if step != 1:
            raise EngineError(f"slices of a column on the GPU must have step 1, got {step}")
        return DeviceColumn(self.data, self.offset + first, max(0, last - first))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Copy the elements to the host."""
        part = self.data[self.offset : self.offset + self.samples]
        values = part.copy_to_host() if self.samples else np.empty(0, self.dtype)
        return values if dtype is None else values.astype(dtype)


class SampleChunk(NamedTuple):
    """A chunk of samples in GPU memory, processed in one launch.

    Column ``j`` begins at ``data[offsets[j]]``.
    """

    start: int
    stop: int
    data: Any
    offsets: tuple[int, ...]


def iterate_chunks(
    columns: Sequence[Any], samples: int, max_samples: int, dtype: np.dtype[Any]
) -> Iterator[SampleChunk]:
    """Yield chunks of at most ``max_samples`` samples, copied to the GPU if necessary."""
    on_device = are_on_device(columns, dtype)
    for start in range(0, samples, max_samples):
        stop = min(samples, start + max_samples)
        if on_device:
            offsets = tuple(column.offset + start for column in columns)
            yield SampleChunk(start, stop, columns[0].data, offsets)
        else:
            yield copy_chunk_to_device(columns, start, stop, dtype)


def copy_chunk_to_device(
    columns: Sequence[Array], start: int, stop: int, dtype: np.dtype[Any]
) -> SampleChunk:
    """Copy a range of samples of host columns to one array in GPU memory."""
    samples = stop - start
    data = import_numba_cuda().device_array(max(1, len(columns) * samples), dtype)
    for j, column in enumerate(columns):
        if samples:
            part = np.ascontiguousarray(column[start:stop], dtype=dtype)
            data[j * samples : (j + 1) * samples].copy_to_device(part)
    return SampleChunk(start, stop, data, tuple(j * samples for j in range(len(columns))))


def are_on_device(columns: Sequence[Any], dtype: np.dtype[Any]) -> bool:
    """Return whether all columns are parts of one device array of the given dtype."""
    return (
        all(isinstance(column, DeviceColumn) and column.dtype == dtype for column in columns)
        and len({(id(column.data), column.samples) for column in columns}) == 1
    )


def copy_columns_to_device(
    columns: Mapping[str, Array], samples: int, dtype: str
) -> dict[str, DeviceColumn]:
    """Copy columns to GPU memory, for use in many calls."""
    arrays = [np.asarray(column) for column in columns.values()]
    chunk = copy_chunk_to_device(arrays, 0, samples, np.dtype(dtype))
    offsets = zip(columns, chunk.offsets, strict=True)
    return {name: DeviceColumn(chunk.data, offset, samples) for name, offset in offsets}
