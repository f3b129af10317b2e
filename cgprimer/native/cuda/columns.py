"""Columns on the GPU, and what of them one launch works on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cgprimer.core.engines import Array
from cgprimer.errors import EngineError
from cgprimer.native.cuda.device import toolkit


@dataclass(frozen=True, slots=True, eq=False)
class DeviceColumn:
    """A column that is on the GPU already. A slice of it copies nothing.

    Attributes:
        data: a one-dimensional array on the device that holds several columns.
        offset: where this one begins in it.
        samples: how many numbers it has.
    """

    data: Any
    offset: int
    samples: int

    def __len__(self) -> int:
        return self.samples

    @property
    def shape(self) -> tuple[int]:
        """(samples,)."""
        return (self.samples,)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""
        found: np.dtype[Any] = np.dtype(self.data.dtype)
        return found

    def __getitem__(self, part: slice) -> DeviceColumn:
        first, last, step = part.indices(self.samples)
        if step != 1:
            raise EngineError("a column on the device can be cut, but not in steps")
        return DeviceColumn(self.data, self.offset + first, max(0, last - first))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """The numbers, copied back to the host."""
        part = self.data[self.offset : self.offset + self.samples]
        found = part.copy_to_host() if self.samples else np.empty(0, self.dtype)
        return found if dtype is None else found.astype(dtype)


class Piece(NamedTuple):
    """Samples that one launch works on: ``data`` holds column ``j`` from ``offsets[j]`` on."""

    start: int
    stop: int
    data: Any
    offsets: tuple[int, ...]


def pieces(
    columns: Sequence[Array], samples: int, most: int, dtype: np.dtype[Any]
) -> Iterator[Piece]:
    """Samples of columns in pieces of at most so many; host columns are copied to the GPU."""
    there = together(columns, dtype)
    for start in range(0, samples, most):
        stop = min(samples, start + most)
        if there:
            offsets = tuple(column.offset + start for column in columns)
            yield Piece(start, stop, columns[0].data, offsets)
        else:
            yield upload(columns, start, stop, dtype)


def upload(columns: Sequence[Array], start: int, stop: int, dtype: np.dtype[Any]) -> Piece:
    """Samples of host columns, copied to the GPU one column behind the other."""
    samples = stop - start
    data = toolkit().device_array(max(1, len(columns) * samples), dtype)
    for j, column in enumerate(columns):
        if samples:
            part = np.ascontiguousarray(column[start:stop], dtype=dtype)
            data[j * samples : (j + 1) * samples].copy_to_device(part)
    return Piece(start, stop, data, tuple(j * samples for j in range(len(columns))))


def together(columns: Sequence[Array], dtype: np.dtype[Any]) -> bool:
    """Whether columns are on the device, in one array."""
    return (
        all(isinstance(column, DeviceColumn) and column.dtype == dtype for column in columns)
        and len({(id(column.data), column.samples) for column in columns}) == 1
    )


def resident(columns: Mapping[str, Array], samples: int, dtype: str) -> dict[str, DeviceColumn]:
    """Columns copied to the device, once for many calls."""
    arrays = [np.asarray(column) for column in columns.values()]
    piece = upload(arrays, 0, samples, np.dtype(dtype))
    both = zip(columns, piece.offsets, strict=True)
    return {name: DeviceColumn(piece.data, offset, samples) for name, offset in both}
