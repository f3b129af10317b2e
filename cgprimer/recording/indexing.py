"""Indices as numpy knows them, in the form that the primitive ``take`` has."""

from __future__ import annotations

from types import EllipsisType
from typing import Any

import numpy as np

from cgprimer.core.primitives import shaped
from cgprimer.errors import ShapeError, UsageError
from cgprimer.recording.eager import EAGER, Recorded
from cgprimer.recording.operators import as_array


def take(value: Any, key: Any) -> Any:
    """``value[key]``, recorded.

    Raises:
        ShapeError: a place outside of the value, or more indices than axes.
        UsageError: an index that is no whole number, slice, mask or list of these.
    """
    parts = [as_array(p) if isinstance(p, list) else p
             for p in (key if isinstance(key, tuple) else (key,))]  # fmt: skip
    shape = value.shape
    listed = [i for i, p in enumerate(parts) if not isinstance(p, slice | EllipsisType | None)]
    apart = listed and listed[-1] - listed[0] != len(listed) - 1
    if apart and any(np.ndim(parts[i]) for i in listed):
        raise ShapeError("lists of places stand side by side in an index, with nothing between")
    named = [p for p in parts if p is not None and p is not Ellipsis]
    covered = sum(p.ndim if _is_mask(p) else 1 for p in named)
    if covered > len(shape):
        raise ShapeError(
            f"a value of shape {shape} has {len(shape)} axes, the index {covered}",
            hint="" if shape else "value.item() is the number",
        )
    rest = [slice(None)] * (len(shape) - covered)
    dots = [i for i, p in enumerate(parts) if p is Ellipsis]
    if len(dots) > 1:
        raise UsageError("an index has one '...' at most")
    at = dots[0] if dots else len(parts)
    parts[at : at + 1] = rest
    places: list[Any] = []
    for part in parts:
        if part is None:
            continue
        if _is_mask(part):
            if part.shape != shape[len(places) : len(places) + part.ndim]:
                raise ShapeError(f"a mask of shape {part.shape} does not fit {shape}")
            places += [_nested(found) for found in part.nonzero()]
        else:
            places.append(_place(part, shape[len(places)]))
    made = shaped.take(EAGER, value, tuple(places))
    if any(p is None for p in parts) or 0 in EAGER.shape(made):  # nested tuples may be empty
        made = shaped.reshape(EAGER, made, np.broadcast_to(0.0, shape)[key].shape)
    return made


def _is_mask(part: Any) -> bool:
    return isinstance(part, np.ndarray) and part.dtype == bool and part.ndim > 0


def _place(part: Any, size: int) -> Any:
    """A whole number, a range, or nested tuples of whole numbers."""
    if isinstance(part, slice):
        try:
            return range(*part.indices(size))
        except (TypeError, ValueError):
            raise UsageError(
                "the ends of a slice are whole numbers, and so is its step, which is not 0"
            ) from None
    if isinstance(part, Recorded):
        raise UsageError(
            "a value that is differentiated is no index", hint="use int(value.item()) or plain data"
        )
    array = as_array(part)
    if array.dtype.kind not in "iu" and array.size:
        raise UsageError(f"an index is made of whole numbers, not of {array.dtype} such as {part}")
    return int(array) if not array.ndim else _nested(array)


def _nested(array: Any) -> tuple[Any, ...]:
    rows = array.tolist()
    return tuple(map(_tuples, rows)) if array.ndim > 1 else tuple(rows)


def _tuples(rows: Any) -> Any:
    return tuple(map(_tuples, rows)) if isinstance(rows, list) else rows
