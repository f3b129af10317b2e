"""Shapes of values: formatting, broadcasting, axes and indices.

The shape of a value is its shape *per sample*. Samples are leading axes that operations do not see,
so axes are counted from the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cgprimer.core.language.syntax_tree import Shape
from cgprimer.errors import ShapeError

_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "^"}


def format_shape(shape: Shape) -> str:
    """Format a shape for messages: ``[8,4]``, or ``a scalar``.

    >>> format_shape((8, 4)), format_shape(())
    ('[8,4]', 'a scalar')
    """
    return f"[{','.join(map(str, shape))}]" if shape else "a scalar"


def broadcast_shapes(operation: str, *shapes: Shape) -> Shape:
    """Return the common shape of operands by numpy's broadcasting rules.

    Raises:
        ShapeError: the shapes cannot be broadcast; the message contains ``operation``.

    >>> broadcast_shapes("add", (8, 1), (4,))
    (8, 4)
    """
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    result = tuple(max(ns) if 0 not in ns else 0 for ns in zip(*padded, strict=True))
    for shape in padded:
        if any(n not in (1, m) for n, m in zip(shape, result, strict=True)):
            shown = " and ".join(dict.fromkeys(map(format_shape, shapes)))
            sign = _SIGNS.get(operation, operation)
            raise ShapeError(
                f"cannot broadcast shapes {shown} in {sign}",
                hint="trailing dimensions must be equal or 1",
            )
    return result


def normalize_axes(shape: Shape, axes: int | Sequence[int] | None) -> tuple[int, ...]:
    """Return axes as sorted negative indices; None selects all axes.

    Raises:
        ShapeError: an axis is out of bounds or repeated.
    """
    if axes is None:
        return tuple(range(-len(shape), 0))
    sequence = axes if isinstance(axes, Sequence) else (axes,)
    result = sorted(normalize_axis(shape, axis) for axis in sequence)
    if len(set(result)) < len(result):
        raise ShapeError(f"axes must be distinct, got {list(sequence)}")
    return tuple(result)


def normalize_axis(shape: Shape, axis: int) -> int:
    """Return an axis as a negative index; the last axis is -1.

    Raises:
        ShapeError: the axis is not an integer or out of bounds.
    """
    if not hasattr(axis, "__index__"):
        raise ShapeError(f"an axis must be an integer, got {axis!r}")
    if not -len(shape) <= axis < len(shape):
        axes = "the only axis is 0" if len(shape) == 1 else f"the axes are 0 to {len(shape) - 1}"
        raise ShapeError(
            f"axis {axis} is out of bounds for shape {format_shape(shape)}"
            if shape
            else "a scalar has no axes",
            hint=axes if shape else "",
        )
    return axis % len(shape) - len(shape)


def convert_index_entry(entry: Any) -> Any:
    """Convert an entry of an index for numpy: a range to a slice, a tuple to an array."""
    if isinstance(entry, range):
        return slice(entry.start, entry.stop if entry.stop >= 0 else None, entry.step)
    if isinstance(entry, tuple):
        import numpy as np

        return np.array(entry, dtype=int)
    return entry
