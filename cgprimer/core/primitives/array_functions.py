"""Functions of arrays in the language: what each is written out to when shapes are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from cgprimer.core.language.syntax import Structural
from cgprimer.core.primitives import layers, shaped
from cgprimer.core.primitives.registry import ARRAY_FUNCTIONS, FUNCTIONS, ArrayFunction
from cgprimer.core.primitives.shaped import Builder
from cgprimer.core.primitives.structural import shape_text
from cgprimer.errors import ShapeError


def apply(b: Builder, name: str, arguments: Sequence[Any]) -> Any:
    """Emit what a node of a tree says: a primitive, a function of arrays, or an index."""
    if name in ARRAY_FUNCTIONS or isinstance(name, Structural):
        return expanded(b, name, arguments)
    return b.emit(name, *arguments)


def expanded(b: Builder, name: str, arguments: Sequence[Any]) -> Any:
    """Emit a function of arrays, or an index.

    Args:
        b: where to.
        name: of the function, or an index with its places.
        arguments: what it is applied to, whole numbers such as axes and sizes at the end.

    Raises:
        ShapeError: it does not fit the shapes.
    """
    if isinstance(name, Structural):
        return _indexed(b, arguments[0], name.setting)
    row = ARRAY_FUNCTIONS[name]
    count = row.operands or sum(b.value_of(a) is None for a in arguments)
    numbers = [b.value_of(a) for a in arguments[count:]]
    if any(n is None or not float(n).is_integer() for n in numbers):
        raise ShapeError(f"the arguments after the operands of {row.spelling!r} must be integers")
    if not row.operands and (not count or len(numbers) > 1):
        raise ShapeError(
            f"{row.spelling!r} takes one array or more and at most one axis",
            hint="arrays are names or formulas, not single numbers",
        )
    operands = arguments[:count] if row.operands else (arguments[:count],)
    return _EXPANSIONS[name](b, *operands, *map(int, numbers))


def _indexed(b: Builder, a: Any, places: tuple[Any, ...]) -> Any:
    shape = b.shape(a)
    if not shape:
        hint = "arrays are declared with their sizes, as in input x[3]"
        raise ShapeError("a single number has no places", hint=hint)
    if any(isinstance(place, slice) and place.step == 0 for place in places):
        raise ShapeError("a slice cannot go by steps of 0")
    if len(places) > len(shape):
        raise ShapeError(
            f"an index of {len(places)} places does not fit {shape_text(shape)}",
            hint="one place for each axis at most",
        )
    both = zip(places, shape, strict=False)
    key = (range(*p.indices(n)) if isinstance(p, slice) else p for p, n in both)
    return shaped.take(b, a, tuple(key))


def mean(b: Builder, a: Any, *axes: int) -> Any:
    """The sum over axes, divided by how many there are."""
    made = shaped.total(b, a, axes or None)
    count = math.prod(b.shape(a)) / max(math.prod(b.shape(made)), 1)
    return b.emit("div", made, b.constant(float(count)))


def softmax(b: Builder, a: Any, axis: int = -1) -> Any:
    """Exponentials that add up to 1; nothing overflows, as the largest is taken off first."""
    powers = b.emit("exp", _shifted(b, a, axis))
    return b.emit("div", powers, shaped.total(b, powers, [axis], keep=True))


def log_softmax(b: Builder, a: Any, axis: int = -1) -> Any:
    """The logarithm of softmax, with all its digits."""
    moved = _shifted(b, a, axis)
    total = shaped.total(b, b.emit("exp", moved), [axis], keep=True)
    return b.emit("sub", moved, b.emit("log", total))


def _shifted(b: Builder, a: Any, axis: int) -> Any:
    if 0 in b.shape(a):
        return a
    return b.emit("sub", a, b.emit("stop_gradient", shaped.largest(b, a, [axis], keep=True)))


def root_of_squares(b: Builder, squares: Any) -> Any:
    """Emit the square root of a sum of squares, whose derivative at 0 is 0 and not nan.

    The root is taken of 1 in the place of 0, and the 1 is subtracted again.
    """
    at_zero = b.emit("equal", squares, b.constant(0.0))
    return b.emit("sub", b.emit("sqrt", b.emit("add", squares, at_zero)), at_zero)


def _largest(b: Builder, a: Any) -> Any:
    if not b.shape(a):
        raise ShapeError("a number has no largest element", hint="of two numbers: max(a, b)")
    return shaped.largest(b, a)


def add_function(name: str, custom: Any, count: int) -> ArrayFunction:
    """Put a function with its own backward pass among the language's.

    Args:
        name: what expressions call it.
        custom: has its shapes, values and adjoints (:class:`cgprimer.recording.functions.Custom`).
        count: how many operands it takes.
    """

    def emitted(b: Builder, *operands: Any) -> Any:
        ranks = tuple(len(b.shape(o)) for o in operands)
        return b.emit(Structural("custom", custom, ranks), *operands)

    row = ArrayFunction(name, count, count, count, name)
    FUNCTIONS.generation += 1
    FUNCTIONS[name], ARRAY_FUNCTIONS[name], _EXPANSIONS[name] = [row], row, emitted
    return row


def remove_function(name: str) -> bool:
    """Take a function that was added out again; whether there was one."""
    if name not in ARRAY_FUNCTIONS or name in _OWN:
        return False
    FUNCTIONS.generation += 1
    del FUNCTIONS[name], ARRAY_FUNCTIONS[name], _EXPANSIONS[name]
    return True


_EXPANSIONS: dict[str, Callable[..., Any]] = {
    "matmul": shaped.matmul,
    "dot": lambda b, a, c: shaped.total(b, b.emit("mul", a, c)),
    "norm": lambda b, a: root_of_squares(b, shaped.total(b, b.emit("mul", a, a))),
    "sum": lambda b, a, *axes: shaped.total(b, a, axes or None),
    "mean": mean,
    "largest": _largest,
    "largest_along": lambda b, a, *axes: shaped.largest(b, a, axes or None),
    "smallest": lambda b, a: b.emit("neg", _largest(b, b.emit("neg", a))),
    "softmax": softmax,
    "log_softmax": log_softmax,
    "transpose": lambda b, a, *axes: shaped.transpose(b, a, axes or None),
    "reshape": lambda b, a, *sizes: shaped.reshape(b, a, sizes),
    "broadcast": lambda b, a, *sizes: b.broadcast(a, sizes),
    "concatenate": shaped.concatenate,
    "batch_mean": lambda b, a: b.emit(Structural("batch_mean", len(b.shape(a))), a),
    "dropout": layers.dropout,
    "batchnorm": layers.batchnorm,
}
_OWN = frozenset(ARRAY_FUNCTIONS)
