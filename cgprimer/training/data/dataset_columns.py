"""Columns of datasets: their sources, their conversion, and arrays composed of element columns."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from cgprimer.errors import DataError, UsageError, name_hint
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.value_names import Element
from cgprimer.tapes import elements, tape

Array = Any
SKIP = "remove such samples before training"
ROWS = 1 << 18  # approximate rows of a block if the file has no blocks: 2 MB per column
_ELEMENT = re.compile(r"(.*)\[([0-9]{1,9}(?:, ?[0-9]{1,9})*)\]")  # x[0], x[0,1]


class Source:
    """A file or data frame with named columns that is read block by block.

    Attributes:
        location: the file or data frame, as messages name it.
        names: names of all columns.
        has_roles: whether names tell inputs from targets, as in ``inputs/xa``; otherwise the last
            column is the target.
    """

    location: str
    names: Sequence[str]
    has_roles: ClassVar[bool] = False

    def iterate_blocks(self, names: Sequence[str]) -> Iterator[list[Array]]:
        """Yield the requested columns of each block."""
        return (self.read_block(k, names) for k in range(len(self.block_lengths(names))))

    def block_lengths(self, names: Sequence[str]) -> list[int]:
        """Return the number of samples in each block of the requested columns."""
        return [len(block[0]) for block in self.iterate_blocks(names)]

    def read_all(self, names: Sequence[str]) -> list[Array]:
        """Return the requested columns of the whole source, as new arrays."""
        return list(map(np.concatenate, zip(*self.iterate_blocks(names), strict=True)))

    def estimate_size(self, names: Sequence[str]) -> int:
        """Estimate the number of values in the requested columns."""
        return sum(self.block_lengths(names)) * len(names)

    def read_block(self, block: int, names: Sequence[str]) -> list[Array]:
        """Return the requested columns of one block as numeric arrays of any dtype.

        Raises:
            DataError: a column that is not numeric, has missing values or a different length; a
                file that is damaged, or that decompresses to far more than its size.
        """
        raise NotImplementedError


def convert_column(description: str, values: Any) -> Array:
    """Convert values to a contiguous float64 array whose first axis indexes the samples.

    Raises:
        DataError: the values are not an array of real numbers with at least one axis.
    """
    is_masked = type(values).__name__ == "MaskedArray"
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiub" or is_masked:
            raise TypeError
    except (TypeError, ValueError):
        hint = "fill the masked array, for instance with filled(0.0)" if is_masked else ""
        raise DataError(f"{description} must be an array of real numbers", hint=hint) from None
    if not array.ndim:
        raise DataError(
            f"{description} must have one value per sample, got an array with 0 dimensions"
        )
    return np.ascontiguousarray(array, dtype=np.float64)


def get_array_name(name: str) -> str:
    """Return the name of an element's array (``x`` for ``x[0]``); a scalar name is unchanged."""
    match = _ELEMENT.fullmatch(name)
    return match[1] if match else name


def find_column(columns: Mapping[str, Array], name: str, role: str) -> Array:
    """Return the column of an input or target; raise DataError if it is missing."""
    if name not in columns:
        message = f"missing {role} {name!r} in the dataset; its {role}s are "
        raise DataError(message + (", ".join(columns) or "none"), hint=name_hint(name, columns))
    return columns[name]


def list_scalar_names(graph: ExpressionGraph, names: Iterable[str]) -> list[str]:
    """List the scalar names of variables: ``x[0]``, ``x[1]`` for an array, ``y`` for a scalar."""
    lowered = tape(graph)
    return [e for n in names for e in elements(n, lowered.shapes[lowered.index(n)])]


def combine_elements(columns: Mapping[str, Array]) -> dict[str, Array]:
    """Combine element columns (``x[0]``, ``x[1]``) into one array column (``x``).

    Raises:
        DataError: a missing element, a repeated element, or a column of an element that has more
            than one axis.
    """
    arrays: dict[str, dict[tuple[int, ...], Array]] = {}
    for name, column in columns.items():
        match = _ELEMENT.fullmatch(name)
        index = tuple(map(int, match[2].split(","))) if match else ()
        parts = arrays.setdefault(get_array_name(name), {})
        if index in parts or (parts and not (index and next(iter(parts)))):
            raise DataError(f"column {name!r} conflicts with another column of the same array")
        if index and (column.ndim > 1 or len(index) != len(next(iter(parts), index))):
            message = (
                f"column {name!r} does not match the other columns of {get_array_name(name)!r}"
            )
            raise DataError(message)
        parts[index] = column
    return {
        name: parts[()] if () in parts else _stack_elements(name, parts)
        for name, parts in arrays.items()
    }


def _stack_elements(name: str, parts: Mapping[tuple[int, ...], Array]) -> Array:
    """Stack the element columns of an array; raise DataError if an element is missing."""
    shape = tuple(max(indices) + 1 for indices in zip(*parts, strict=True))
    order = []
    for k in range(min(math.prod(shape), len(parts) + 1)):  # an index may be as large as 10^9
        order.append(tuple(k // math.prod(shape[i + 1 :]) % n for i, n in enumerate(shape)))
        if order[-1] not in parts:
            missing = str(Element(name, order[-1]))
            message = f"missing column {missing!r}: {name!r} has {len(parts)} columns"
            raise DataError(message, hint="number the elements from 0 without gaps")
    stacked = np.stack([parts[index] for index in order], axis=1)
    return stacked.reshape(len(stacked), *shape)


def select_sample_indices(selection: Any, samples: int) -> Array:
    """Convert a boolean mask, a slice or a list of indices to nonnegative indices."""
    is_slice = isinstance(selection, slice)
    numbers = np.arange(*selection.indices(samples)) if is_slice else selection
    rule = "samples must be selected by a list of indices or a boolean mask"
    try:
        indices = np.array(numbers, None if np.size(numbers) else int)
        # An index out of range raises IndexError; the broadcast array takes no memory.
        _ = np.broadcast_to(np.int8(0), samples)[indices]
    except (IndexError, ValueError, TypeError) as error:
        raise UsageError(f"{rule}: {error}") from None
    if indices.ndim != 1:
        raise UsageError(f"{rule}, got {selection!r}")
    if indices.dtype == bool:
        return np.flatnonzero(indices)
    return indices.astype(int) % max(samples, 1)
