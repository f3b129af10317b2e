"""Structural primitives: those that look at a value's shape, not at its elements one by one.

Beside the table of elementwise primitives stand a few that move elements, add them up or multiply
matrices. A value has a shape *per sample*; samples are leading axes that no primitive sees, so
axes are counted from the end. Each is linear in every operand (``max`` apart), so that its
derivative is itself in forward mode and its transpose in reverse mode; those rules are in
:mod:`cgprimer.core.primitives.shaped`, its arithmetic in ``arrays.py``.

Source: the operations of numpy; Giles 2008, "Collected matrix derivative results for forward and
reverse mode algorithmic differentiation".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from cgprimer.core.language.syntax import MOST_NUMBERS, Shape, Structural
from cgprimer.errors import ShapeError


def result_shape(name: Structural, *operands: Shape) -> Shape:
    """The shape of what a structural primitive makes of operands of these shapes.

    Raises:
        ShapeError: they do not go together; the message says both.

    >>> result_shape(Structural("sum", (-1,)), (8, 4))
    (8,)
    """
    return _SHAPES[name.kind](name.setting, *operands)


def _matmul(setting: Any, a: Shape, b: Shape) -> Shape:
    if not a or not b:
        said = f"@ multiplies matrices and vectors, not {shape_text(a)} and {shape_text(b)}"
        raise ShapeError(said, hint="use *, or declare its sizes: parameter W[8,4]")
    left, right = a[-2:], b[-2:]
    if left[-1] != right[0]:
        fits = f"{shape_text((*left[:-1], right[0]))} @ {shape_text(right)}"
        raise ShapeError(
            f"{shape_text(a)} @ {shape_text(b)} does not fit: {left[-1]} is not {right[0]}",
            hint=f"the last axis of the left side meets the first of the right: {fits} would fit",
        )
    return a[:-2] + left[:-1] + right[1:]


def _take(setting: Any, a: Shape) -> Shape:
    import numpy as np

    (key,) = setting
    return tuple(np.broadcast_to(np.float64(0.0), a)[tuple(map(numpy_key, key))].shape)


def _concatenate(setting: Any, *operands: Shape) -> Shape:
    (axis,) = setting
    rest = {(len(a), a[:axis], a[axis:][1:]) for a in operands if -axis <= len(a)}
    if len(rest) != 1 or any(-axis > len(a) for a in operands):
        texts = " and ".join(map(shape_text, operands))
        raise ShapeError(f"{texts} do not join: only the axis that grows may differ")
    first = operands[0]
    place = len(first) + axis
    return (*first[:place], sum(a[axis] for a in operands), *first[place + 1 :])


def _broadcast(setting: Any, a: Shape) -> Shape:
    shape: Shape = setting[1]
    if min(shape, default=0) < 0 or common_shape_of("a broadcast", a, shape) != shape:
        raise ShapeError(
            f"{shape_text(a)} cannot be repeated to {shape_text(shape)}",
            hint="from the last axis on, sizes must be equal, or that of what is repeated 1",
        )
    if math.prod(shape) > MOST_NUMBERS:
        raise ShapeError(f"{shape_text(shape)} has more than {MOST_NUMBERS:,} numbers")
    return shape


_SHAPES: dict[str, Callable[..., Shape]] = {
    "matmul": _matmul,
    "transpose": lambda setting, a: tuple(a[axis] for axis in setting[0]),
    "reshape": lambda setting, a: setting[1],
    "broadcast": _broadcast,
    "sum": lambda setting, a: tuple(n for i, n in enumerate(a, -len(a)) if i not in setting[0]),
    "largest": lambda setting, a: tuple(n for i, n in enumerate(a, -len(a)) if i not in setting[0]),
    "take": _take,
    "scatter": lambda setting, a: setting[1],
    "concatenate": _concatenate,
    "batch_mean": lambda setting, a: a,
    "batch_sum": lambda setting, a: a,
    "custom": lambda setting, *operands: setting[0].shape(*operands),
    "backward": lambda setting, bar, *operands: operands[setting[1]],
    "batch_matmul": _matmul,
}
KINDS = frozenset(_SHAPES)  #: of structural primitives


def numpy_key(part: Any) -> Any:
    """A part of an index as numpy takes it: a number, a range as a slice, nested tuples."""
    if isinstance(part, range):
        return slice(part.start, part.stop if part.stop >= 0 else None, part.step)
    if isinstance(part, tuple):
        import numpy as np

        return np.array(part, dtype=int)
    return part


def shape_text(shape: Shape) -> str:
    """A shape as it is declared: ``[8,4]``; ``a number`` where there are no axes.

    >>> shape_text((8, 4)), shape_text(())
    ('[8,4]', 'a number')
    """
    return f"[{','.join(map(str, shape))}]" if shape else "a number"


_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "^"}


def common_shape_of(what: str, *shapes: Shape) -> Shape:
    """The shape to which operands of an elementwise primitive are broadcast, as numpy does it.

    Raises:
        ShapeError: they do not fit.

    >>> common_shape_of("add", (8, 1), (4,))
    (8, 4)
    """
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    found = tuple(max(ns) if 0 not in ns else 0 for ns in zip(*padded, strict=True))
    for shape in padded:
        if any(n not in (1, m) for n, m in zip(shape, found, strict=True)):
            texts = " and ".join(dict.fromkeys(map(shape_text, shapes)))
            raise ShapeError(
                f"{_SIGNS.get(what, what)} of shapes {texts} does not fit",
                hint="from the last axis on, sizes must be equal, or one of them 1",
            )
    return found
