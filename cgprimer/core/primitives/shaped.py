"""Structural primitives: how they are emitted, and what their derivatives are.

Each rule is a line or two, because the primitives are linear in every operand: forward mode
applies the primitive to the tangent, reverse mode its transpose to the adjoint (broadcast and sum,
take and scatter, reshape and reshape back, a product with the other factor transposed). The
largest element is not linear: its slope is 1 where the element is, shared where several are.

What a step that has nothing to do would emit (a reshape to the same shape) is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from cgprimer.core.language.syntax import Shape, Structural
from cgprimer.core.primitives.structural import common_shape_of, shape_text
from cgprimer.errors import DifferentiationError, ShapeError

Builder = Any  #: of a tape, or one that computes at once: it has emit, shape, broadcast

# --- what is emitted -----------------------------------------------------------------------------


def matmul(b: Builder, left: Any, right: Any) -> Any:
    """The product of matrices, stacks of matrices and vectors, as numpy's ``@``."""
    ranks = len(b.shape(left)), len(b.shape(right))
    if max(ranks) > 2 and min(ranks) == 1:  # a vector with each matrix of a stack
        row = ranks[0] == 1
        if row:
            left = reshape(b, left, (1, *b.shape(left)))
        else:
            right = reshape(b, right, (*b.shape(right), 1))
        made = matmul(b, left, right)
        shape = b.shape(made)
        return reshape(b, made, shape[:-2] + (shape[-1:] if row else shape[-2:-1]))
    if max(ranks) > 2 and min(ranks) > 1:  # stacks: as many of the one as of the other
        what = f"{shape_text(b.shape(left))} @ {shape_text(b.shape(right))}: a stack"
        stack = common_shape_of(what, b.shape(left)[:-2], b.shape(right)[:-2])
        left = b.broadcast(left, stack + b.shape(left)[-2:])
        right = b.broadcast(right, stack + b.shape(right)[-2:])
    return b.emit(Structural("matmul", *(min(rank, 2) for rank in ranks)), left, right)


def reshape(b: Builder, a: Any, shape: Shape) -> Any:
    """The same numbers in another shape; one size may be -1, for what is left."""
    own = b.shape(a)
    known = math.prod(n for n in shape if n != -1)
    full = tuple(math.prod(own) // max(known, 1) if n == -1 else n for n in shape)
    if shape.count(-1) > 1 or math.prod(full) != math.prod(own) or min(full, default=1) < 0:
        raise ShapeError(
            f"{shape_text(own)} has {math.prod(own)} numbers: they do not fill {shape_text(shape)}"
        )
    return a if full == own else b.emit(Structural("reshape", len(own), full), a)


def transpose(b: Builder, a: Any, axes: Sequence[int] | None = None) -> Any:
    """Axes in another order; backwards unless given."""
    rank = len(b.shape(a))
    order = tuple(_axis(b.shape(a), i) for i in (range(rank)[::-1] if axes is None else axes))
    if sorted(order) != list(range(-rank, 0)):
        raise ShapeError(f"{list(axes or ())} is no order of the axes of {shape_text(b.shape(a))}")
    return a if order == tuple(range(-rank, 0)) else b.emit(Structural("transpose", order), a)


def total(b: Builder, a: Any, axes: Any = None, *, keep: bool = False) -> Any:
    """The sum over axes, all unless given; ``keep`` leaves axes of length 1 in their places."""
    return _reduced(b, "sum", a, axes, keep)


def largest(b: Builder, a: Any, axes: Any = None, *, keep: bool = False) -> Any:
    """The largest element along axes, all unless given."""
    if 0 in b.shape(a):
        raise ShapeError(f"{shape_text(b.shape(a))} has no largest element: it has none")
    return _reduced(b, "largest", a, axes, keep)


def take(b: Builder, a: Any, key: tuple[Any, ...]) -> Any:
    """Elements by an index: for each axis a number, a range, or nested tuples of numbers."""
    own = b.shape(a)
    if len(key) > len(own):
        raise ShapeError(f"{shape_text(own)} has {len(own)} axes, the index has {len(key)}")
    full = (*key, *map(range, own[len(key) :]))
    places = [i for i, part in enumerate(full) if not isinstance(part, range)]
    if any(isinstance(p, tuple) for p in full) and places[-1] - places[0] != len(places) - 1:
        raise ShapeError("lists of places stand side by side in an index, with no slice between")
    full = tuple(_checked_part(part, n, own) for part, n in zip(full, own, strict=True))
    if full == tuple(map(range, own)):
        return a
    return b.emit(Structural("take", full), a)


def scatter(b: Builder, a: Any, key: tuple[Any, ...], shape: Shape) -> Any:
    """Elements at their places in zeros of a shape: the transpose of :func:`take`."""
    return b.emit(Structural("scatter", key, shape), a)


def concatenate(b: Builder, parts: Sequence[Any], axis: int = 0) -> Any:
    """Values one after the other along an axis."""
    if not parts:
        raise ShapeError("there is nothing to join")
    place = _axis(b.shape(parts[0]), axis)
    return parts[0] if len(parts) == 1 else b.emit(Structural("concatenate", place), *parts)


def axes_of(shape: Shape, axes: int | Sequence[int] | None) -> tuple[int, ...]:
    """Axes counted from the end, sorted; all unless given.

    Raises:
        ShapeError: there is no such axis, or one twice.
    """
    if axes is None:
        return tuple(range(-len(shape), 0))
    found = sorted(_axis(shape, a) for a in (axes if isinstance(axes, Sequence) else (axes,)))
    if len(set(found)) < len(found):
        raise ShapeError(f"an axis of {shape_text(shape)} is named twice")
    return tuple(found)


def _reduced(b: Builder, kind: str, a: Any, axes: Any, keep: bool) -> Any:
    name, kept = _reduction(kind, b.shape(a), tuple(axes) if hasattr(axes, "__iter__") else axes)
    made = a if name is None else b.emit(name, a)
    return reshape(b, made, kept) if keep else made


@lru_cache(maxsize=4096, typed=True)
def _reduction(kind: str, shape: Shape, axes: Any) -> tuple[Structural | None, Shape]:
    """The primitive that reduces a shape along axes, and what is left if they stay as 1."""
    gone = axes_of(shape, axes)
    kept = tuple(1 if i in gone else n for i, n in enumerate(shape, -len(shape)))
    return Structural(kind, gone) if gone else None, kept


def _axis(shape: Shape, axis: int) -> int:
    if not hasattr(axis, "__index__"):
        raise ShapeError(f"an axis is a whole number, not {axis!r}")
    if not -len(shape) <= axis < len(shape):
        what = f"{shape_text(shape)} has no axis {axis}"
        has = "its only axis is 0" if len(shape) == 1 else f"its axes are 0 to {len(shape) - 1}"
        raise ShapeError(what, hint=has if shape else "")
    return axis % len(shape) - len(shape)


def _checked_part(part: Any, size: int, shape: Shape) -> Any:
    if isinstance(part, range):
        return range(0) if part.start < 0 else part  # of an empty slice: -1 is the last place
    if isinstance(part, tuple):
        import numpy as np

        places = np.array(part)  # all at once: a thousand labels are an index, too
        if places.size and places.min() >= 0 and places.max() < size:
            return part
        return tuple(_checked_part(p, size, shape) for p in part)
    if not -size <= part < size:
        raise ShapeError(
            f"the index {part} is outside of {shape_text(shape)}",
            hint=f"this axis has the places 0 to {size - 1}" if size else "this axis is empty",
        )
    return part % size


# --- derivatives ---------------------------------------------------------------------------------


def push(b: Builder, name: Structural, which: int, tangent: Any, values: Sequence[Any]) -> Any:
    """What the tangent of one operand adds to the result's: forward mode.

    Args:
        b: where to.
        name: the primitive.
        which: the operand's number.
        tangent: its tangent, of its shape.
        values: the operands; the result comes last.
    """
    if name.kind in ("custom", "backward"):
        _refuse(name)
    if name.kind == "largest":
        weighted = b.emit("mul", tangent, _slope_of_largest(b, name, values))
        return b.emit(Structural("sum", *name.setting), weighted)
    if name.kind == "concatenate":
        return scatter(b, tangent, _place(b, name, which, values), b.shape(values[-1]))
    return b.emit(name, *[tangent if i == which else v for i, v in enumerate(values[:-1])])


def pull(b: Builder, name: Structural, which: int, bar: Any, values: Sequence[Any]) -> Any:
    """What the adjoint of the result, ``bar``, adds to one operand's: reverse mode.

    The other arguments are those of :func:`push`.
    """
    return _PULL[name.kind](b, name, which, bar, values)


def _pull_matmul(b: Builder, name: Structural, which: int, bar: Any, v: Sequence[Any]) -> Any:
    left, right, _ = v
    ranks = name.setting
    if ranks == (1, 1):  # a dot product
        return b.emit("mul", bar, v[1 - which])
    if which == 0:
        if ranks == (2, 1):
            return _outer(b, bar, right)
        turned = transpose_last(b, right)
        return matmul(b, right, bar) if ranks == (1, 2) else matmul(b, bar, turned)
    if ranks == (1, 2):
        return _outer(b, left, bar)
    return matmul(b, transpose_last(b, left), bar)


def _outer(b: Builder, left: Any, right: Any) -> Any:
    """A column times a row."""
    column = reshape(b, left, (*b.shape(left), 1))
    row = reshape(b, right, (*b.shape(right)[:-1], 1, b.shape(right)[-1]))
    return matmul(b, column, row)


def transpose_last(b: Builder, a: Any) -> Any:
    """Each matrix of a stack transposed."""
    rank = len(b.shape(a))
    return transpose(b, a, (*range(rank - 2), rank - 1, rank - 2))


def _pull_transpose(b: Builder, name: Structural, _: int, bar: Any, v: Sequence[Any]) -> Any:
    (order,) = name.setting
    return transpose(b, bar, [order.index(i) for i in range(-len(order), 0)])


def unrepeated(b: Builder, bar: Any, own: Shape) -> Any:
    """An adjoint summed over what a value of a shape was repeated to."""
    shape = b.shape(bar)
    if shape == own:
        return bar
    new = len(shape) - len(own)
    grown = [i for i, n in enumerate(shape) if i < new or (own[i - new] == 1 and n != 1)]
    return reshape(b, total(b, bar, grown), own)


def _pull_sum(b: Builder, name: Structural, _: int, bar: Any, v: Sequence[Any]) -> Any:
    (axes,), shape = name.setting, b.shape(v[0])
    if b.shape(bar):
        bar = reshape(b, bar, _reduction("sum", shape, axes)[1])
    return b.broadcast(bar, shape)


def _pull_largest(b: Builder, name: Structural, which: int, bar: Any, v: Sequence[Any]) -> Any:
    return b.emit("mul", _pull_sum(b, name, which, bar, v), _slope_of_largest(b, name, v))


def _slope_of_largest(b: Builder, name: Structural, v: Sequence[Any]) -> Any:
    """1 where the largest element is; where several are, each has its part."""
    where = b.emit("equal", v[0], _pull_sum(b, name, 0, v[-1], v))
    return b.emit("div", where, _pull_sum(b, name, 0, total(b, where, name.setting[0]), v))


def _place(b: Builder, name: Structural, which: int, v: Sequence[Any]) -> tuple[Any, ...]:
    """Where one part stands in what was joined."""
    (axis,) = name.setting
    before = sum(b.shape(part)[axis] for part in v[:which])
    key = [range(n) for n in b.shape(v[-1])]
    key[axis] = range(before, before + b.shape(v[which])[axis])
    return tuple(key)


def _refuse(name: Structural) -> Any:
    called = name.setting[0].name
    if name.kind == "custom":
        raise no_derivative(called)
    raise DifferentiationError(f"the backward pass of {called!r} has no derivative of its own")


def no_derivative(name: str) -> DifferentiationError:
    """Of a function that has a backward pass alone."""
    return DifferentiationError(
        f"{name!r} has a backward pass of its own, which may differ from its derivative: only"
        " reverse mode uses it",
        hint="method='reverse' (--method reverse)",
    )


_PULL: dict[str, Callable[[Builder, Structural, int, Any, Sequence[Any]], Any]] = {
    "matmul": _pull_matmul,
    "transpose": _pull_transpose,
    "reshape": lambda b, name, which, bar, v: reshape(b, bar, b.shape(v[0])),
    "broadcast": lambda b, name, which, bar, v: unrepeated(b, bar, b.shape(v[0])),
    "sum": _pull_sum,
    "largest": _pull_largest,
    "take": lambda b, name, which, bar, v: scatter(b, bar, name.setting[0], b.shape(v[0])),
    "scatter": lambda b, name, which, bar, v: b.emit(Structural("take", name.setting[0]), bar),
    "concatenate": lambda b, name, which, bar, v: take(b, bar, _place(b, name, which, v)),
    "batch_mean": lambda b, name, which, bar, v: b.emit(name, bar),
    "custom": lambda b, name, which, bar, v: name.setting[0].pull(b, name, which, bar, v),
    "backward": lambda b, name, *more: _refuse(name),
}
