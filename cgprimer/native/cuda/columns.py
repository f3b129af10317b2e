"""Columns on a device, and what of them one launch works on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cgprimer.core.engines import Array
from cgprimer.errors import EngineError
from cgprimer.native.cuda.device import on, toolkit


@dataclass(frozen=True, slots=True)
class Shard:
    """Neighbouring samples of a column on one GPU.

    Attributes:
        device: the GPU's number.
        start, stop: the samples.
        data: a one-dimensional array on the device that holds several columns.
        offset: where this column's sample ``start`` stands in it.
    """

    device: int
    start: int
    stop: int
    data: Any
    offset: int


class DeviceColumn:
    """A column that is on the device already. A slice of it copies nothing.

    Args:
        shards: its pieces, in the order of the samples.
        dtype: type of its numbers.
    """

    def __init__(self, shards: Sequence[Shard], dtype: str) -> None:
        self.shards = tuple(shards)
        self.dtype = np.dtype(dtype)

    def __len__(self) -> int:
        return self.shards[-1].stop if self.shards else 0

    @property
    def shape(self) -> tuple[int]:
        """(samples,)."""
        return (len(self),)

    def __getitem__(self, part: slice) -> DeviceColumn:
        first, last, step = part.indices(len(self))
        if step != 1:
            raise EngineError("a column on the device can be cut, but not in steps")
        kept = []
        for s in self.shards:
            start, stop = max(s.start, first), min(s.stop, last)
            if start < stop:
                moved = s.offset + start - s.start
                kept.append(Shard(s.device, start - first, stop - first, s.data, moved))
        return DeviceColumn(kept, self.dtype.name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """The numbers, copied back to the host."""
        found = np.empty(len(self), self.dtype)
        for s in self.shards:
            with on(s.device):
                found[s.start : s.stop] = s.data[
                    s.offset : s.offset + s.stop - s.start
                ].copy_to_host()
        return found if dtype is None else found.astype(dtype)


@dataclass(frozen=True, slots=True)
class Piece:
    """Samples that one launch works on.

    Attributes:
        device: the GPU's number.
        start, stop: the samples, counted in the whole of them.
        data: the columns on the device.
        offsets: for each column where it begins in ``data``.
    """

    device: int
    start: int
    stop: int
    data: Any
    offsets: tuple[int, ...]

    @property
    def samples(self) -> int:
        """How many."""
        return self.stop - self.start


def upload(
    columns: Sequence[Array], start: int, stop: int, dtype: np.dtype[Any], device: int
) -> Piece:
    """Samples of host columns, copied to a GPU one column behind the other."""
    samples = stop - start
    with on(device):
        data = toolkit().device_array(max(1, len(columns) * samples), dtype)
        for j, column in enumerate(columns):
            if samples:
                part = np.ascontiguousarray(column[start:stop], dtype=dtype)
                data[j * samples : (j + 1) * samples].copy_to_device(part)
    return Piece(device, start, stop, data, tuple(j * samples for j in range(len(columns))))


def resident_pieces(columns: Sequence[Array], dtype: np.dtype[Any]) -> list[Piece] | None:
    """The pieces of columns that are on devices, cut alike; None if there is any other column."""
    found = [c for c in columns if isinstance(c, DeviceColumn) and c.dtype == dtype]
    if not found or len(found) < len(columns):
        return None
    pieces = []
    for shards in zip(*(c.shards for c in found), strict=False):
        first = shards[0]
        alike = all(
            (s.device, s.start, s.stop) == (first.device, first.start, first.stop)
            and s.data is first.data
            for s in shards
        )
        if not alike:
            return None
        offsets = tuple(s.offset for s in shards)
        pieces.append(Piece(first.device, first.start, first.stop, first.data, offsets))
    return pieces if len({len(c.shards) for c in found}) == 1 else None


def resident(
    columns: Mapping[str, Array], samples: int, devices: Sequence[int], dtype: str
) -> dict[str, DeviceColumn]:
    """Columns copied to the devices, in equal parts, once for many calls."""
    names = list(columns)
    arrays = [np.asarray(columns[name]) for name in names]
    shards: dict[str, list[Shard]] = {name: [] for name in names}
    for device, (start, stop) in zip(devices, parts(samples, len(devices)), strict=True):
        piece = upload(arrays, start, stop, np.dtype(dtype), device)
        for name, offset in zip(names, piece.offsets, strict=True):
            shards[name].append(Shard(device, start, stop, piece.data, offset))
    return {name: DeviceColumn(shards[name], dtype) for name in names}


def parts(samples: int, count: int) -> list[tuple[int, int]]:
    """Samples divided among devices, in order.

    >>> parts(10, 3)
    [(0, 4), (4, 8), (8, 10)]
    """
    each = -(-samples // count)
    return [(min(samples, k * each), min(samples, (k + 1) * each)) for k in range(count)]
