"""Shapes of values: how they are written, how they broadcast, and what an index selects.

A value has a shape *per sample*; samples are leading axes that no operation sees, so axes are
counted from the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cgprimer.core.language.syntax_tree import Shape
from cgprimer.errors import ShapeError

_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "^"}


def format_shape(shape: Shape) -> str:
    """Return the text of a shape: ``[8,4]``; ``a number`` for a scalar.

    >>> format_shape((8, 4)), format_shape(())
    ('[8,4]', 'a number')
    """
    return f"[{','.join(map(str, shape))}]" if shape else "a number"


def broadcast_shapes(operation: str, *shapes: Shape) -> Shape:
    """Return the shape to which the operands of an elementwise primitive broadcast, as in numpy.

    Raises:
        ShapeError: the shapes cannot be broadcast; the message contains ``name``.

    >>> broadcast_shapes("add", (8, 1), (4,))
    (8, 4)
    """
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    result = tuple(max(ns) if 0 not in ns else 0 for ns in zip(*padded, strict=True))
    for shape in padded:
        if any(n not in (1, m) for n, m in zip(shape, result, strict=True)):
            texts = " and ".join(dict.fromkeys(map(format_shape, shapes)))
            raise ShapeError(
                f"cannot broadcast shapes {texts} in {_SIGNS.get(operation, operation)}",
                hint="counted from the last axis, sizes must be equal or 1",
            )
    return result


def normalize_axes(shape: Shape, axes: int | Sequence[int] | None) -> tuple[int, ...]:
    """Return axes counted from the end, sorted; all of them for None.

    Raises:
        ShapeError: the shape does not have one of the axes, or an axis is repeated.
    """
    if axes is None:
        return tuple(range(-len(shape), 0))
    sequence = axes if isinstance(axes, Sequence) else (axes,)
    result = sorted(normalize_axis(shape, axis) for axis in sequence)
    if len(set(result)) < len(result):
        raise ShapeError(f"repeated axis of a value of shape {format_shape(shape)}")
    return tuple(result)


def normalize_axis(shape: Shape, axis: int) -> int:
    """Return an axis counted from the end: -1 is the last.

    Raises:
        ShapeError: the shape does not have such an axis.
    """
    if not hasattr(axis, "__index__"):
        raise ShapeError(f"an axis must be an integer, got {axis!r}")
    if not -len(shape) <= axis < len(shape):
        axes = "its only axis is 0" if len(shape) == 1 else f"its axes are 0 to {len(shape) - 1}"
        raise ShapeError(
            f"the shape {format_shape(shape)} has no axis {axis}", hint=axes if shape else ""
        )
    return axis % len(shape) - len(shape)


def convert_index_entry(entry: Any) -> Any:
    """Return an entry of an index for numpy: a range becomes a slice, a tuple an array."""
    if isinstance(entry, range):
        return slice(entry.start, entry.stop if entry.stop >= 0 else None, entry.step)
    if isinstance(entry, tuple):
        import numpy as np

        return np.array(entry, dtype=int)
    return entry
