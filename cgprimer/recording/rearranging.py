"""NumPy functions that move elements, such as ``np.flip``, for recorded values.

The numpy function is applied to an array of positions; its result shows which element of the value
goes where.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cgprimer.core.operations import element_operations
from cgprimer.recording.eager_builder import EAGER
from cgprimer.recording.value_base import ValueBase


def to_value(argument: Any) -> Any:
    """Convert an argument to a ``Value``; stack a list of values."""
    if isinstance(argument, ValueBase):
        return argument
    if isinstance(argument, list | tuple) and any(isinstance(a, ValueBase) for a in argument):
        return stack(argument)
    return EAGER.value_class(argument, requires_grad=False)


def stack(values: Any, axis: int = 0) -> Any:
    """Stack values of the same shape along a new axis, as ``numpy.stack`` does."""
    expanded = []
    for value in map(to_value, values):
        position = axis % (value.ndim + 1)
        expanded.append(value.reshape(*value.shape[:position], 1, *value.shape[position:]))
    return element_operations.concatenate(EAGER, expanded, axis)


def wrap_rearrangement(function: Callable[..., Any], max_arguments: int = 9) -> Callable[..., Any]:
    """Extend a numpy function that only moves elements or adds zeros to recorded values."""

    def apply(a: Any, *args: Any, **kwargs: Any) -> Any:
        """Apply the function to positions, and gather the elements at the resulting positions."""
        if len(args) + len(kwargs) > max_arguments or "out" in kwargs:
            raise TypeError(
                f"{function.__name__}() accepts at most {1 + max_arguments} arguments and no `out`"
            )
        a = to_value(a)
        positions = function(create_position_array(a), *args, **kwargs)
        if isinstance(positions, list):
            return [gather(a, part) for part in positions]
        return gather(a, positions)

    return apply


def create_position_array(a: Any) -> Any:
    """Return an array of the same shape as ``a`` with the 1-based flat index of each element."""
    return np.arange(1, a.size + 1).reshape(a.shape)


def gather(a: Any, positions: Any) -> Any:
    """Return the elements at the given 1-based positions, and zeros at position 0.

    Uses a reshape, a transpose or slices if their result is the same.
    """
    all_positions = create_position_array(a)
    if np.array_equal(positions.reshape(-1), all_positions.reshape(-1)):
        return a.reshape(positions.shape)
    if positions.ndim == a.ndim and positions.size and positions.all():
        order = np.argsort(np.argsort([-step for step in positions.strides], kind="stable"))
        if positions.size == a.size and np.array_equal(all_positions.transpose(order), positions):
            return a.transpose(order.tolist())
        slices = _find_slices(positions, a.shape)
        if np.array_equal(all_positions[slices], positions):
            return a[slices]
    if not a.size:
        return a.sum() * np.zeros(positions.shape, a.dtype)
    elements = a.reshape(-1)[positions - 1]
    return elements if positions.all() else np.where(positions > 0, elements, 0.0)


def _find_slices(positions: Any, shape: tuple[int, ...]) -> tuple[slice, ...]:
    """Return slices that select the given positions, assuming a constant step along each axis."""
    slices = []
    first = np.unravel_index(positions.flat[0] - 1, shape)
    for axis, (start, n) in enumerate(zip(map(int, first), positions.shape, strict=True)):
        second = positions.take(min(1, n - 1), axis).flat[0] - 1
        step = int(np.unravel_index(second, shape)[axis]) - start or 1
        stop = start + step * n
        slices.append(slice(start, stop if stop >= 0 else None, step))
    return tuple(slices)
