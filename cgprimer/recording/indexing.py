"""Indexing of recorded values as in numpy, converted to the operation ``take``."""

from __future__ import annotations

from types import EllipsisType
from typing import Any

import numpy as np

from cgprimer.core.operations.element_operations import take
from cgprimer.core.operations.shape_operations import reshape
from cgprimer.errors import ShapeError, UsageError, pluralize
from cgprimer.recording.data_conversion import to_array, to_tuples
from cgprimer.recording.eager_builder import EAGER
from cgprimer.recording.value_base import ValueBase


def index_value(value: Any, key: Any) -> Any:
    """Return ``value[key]`` and record the operation.

    Raises:
        ShapeError: an index is out of range, or there are more indices than axes.
        UsageError: an index is not an integer, a slice, a mask or a list of integers.
    """
    parts = [
        to_array(part) if isinstance(part, list) else part
        for part in (key if isinstance(key, tuple) else (key,))
    ]
    shape = value.shape
    _check_adjacent(parts)
    _expand_ellipsis(parts, shape)
    indices: list[Any] = []
    for part in parts:
        if part is None:
            continue
        if _is_mask(part):
            axes = shape[len(indices) : len(indices) + part.ndim]
            if part.shape != axes:
                raise ShapeError(f"a boolean index must have shape {axes}, got {part.shape}")
            indices += [to_tuples(positions.tolist()) for positions in part.nonzero()]
        else:
            indices.append(_to_index(part, shape[len(indices)]))
    result = take(EAGER, value, tuple(indices))
    has_new_axes = any(part is None for part in parts)
    if has_new_axes or 0 in EAGER.shape(result):  # nested tuples lose the shape of empty arrays
        result = reshape(EAGER, result, np.broadcast_to(0.0, shape)[key].shape)
    return result


def _check_adjacent(parts: list[Any]) -> None:
    """Raise ShapeError for list indices separated by a slice, whose axes numpy would move."""
    positions = [i for i, p in enumerate(parts) if not isinstance(p, slice | EllipsisType | None)]
    has_gap = positions and positions[-1] - positions[0] != len(positions) - 1
    if has_gap and any(np.ndim(parts[i]) for i in positions):
        raise ShapeError("index arrays must not be separated by a slice")


def _expand_ellipsis(parts: list[Any], shape: tuple[int, ...]) -> None:
    """Replace ``...`` with slices, and append slices for axes without an index."""
    indexed = [p for p in parts if p is not None and p is not Ellipsis]
    count = sum(p.ndim if _is_mask(p) else 1 for p in indexed)
    if count > len(shape):
        raise ShapeError(
            f"too many indices for a Value with {pluralize(len(shape), 'axis', 'axes')}:"
            f" got {count}",
            hint="" if shape else "use value.item() to get the number",
        )
    ellipses = [i for i, p in enumerate(parts) if p is Ellipsis]
    if len(ellipses) > 1:
        raise UsageError("an index can only have a single ellipsis ('...')")
    position = ellipses[0] if ellipses else len(parts)
    parts[position : position + 1] = [slice(None)] * (len(shape) - count)


def _is_mask(part: Any) -> bool:
    """Return whether an index is a boolean array."""
    return isinstance(part, np.ndarray) and part.dtype == bool and part.ndim > 0


def _to_index(part: Any, size: int) -> Any:
    """Convert an index to an integer, a range, or nested tuples of integers."""
    if isinstance(part, slice):
        try:
            return range(*part.indices(size))
        except (TypeError, ValueError):
            raise UsageError(
                f"slice bounds must be integers and the step a nonzero integer, got {part}"
            ) from None
    if isinstance(part, ValueBase):
        raise UsageError(
            "cannot use a Value as an index", hint="pass int(value.item()) or a plain array"
        )
    array = to_array(part)
    if array.dtype.kind not in "iu" and array.size:
        raise UsageError(
            f"indices must be integers or booleans, got {part!r} of dtype {array.dtype}"
        )
    return to_tuples(array.tolist())
