"""Functions of arrays in the language: what each is written out to when shapes are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from cgprimer.core.language.syntax import Structural
from cgprimer.core.primitives import shaped
from cgprimer.core.primitives.shaped import Builder
from cgprimer.errors import ShapeError


class ArrayFunction(NamedTuple):
    """A function of the language that is written out in primitives when shapes are known.

    Attributes:
        name: what a tree calls it.
        operands: how many operands come first; 0 for all that are no numbers. What follows them
            are whole numbers: axes, or sizes.
        least, most: how many arguments there are.
        spelling: what it is called in expressions.
        expand: emits it, from a builder, the operands and the numbers behind them.
        latex: a format string with ``{a}``, ``{b}``; empty for the name and its arguments.
    """

    name: str
    operands: int
    least: int
    most: int
    spelling: str
    expand: Callable[..., Any]
    latex: str = ""
    associative: bool = False

    @property
    def arity(self) -> int:
        """The most arguments that it takes."""
        return self.most

    @property
    def defaults(self) -> tuple[None, ...]:
        """One for each argument that may be left out."""
        return (None,) * (self.most - self.least)


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
    if any(n is None or n != int(n) for n in numbers):
        raise ShapeError(f"what follows the operands of {row.spelling!r} are whole numbers")
    operands = arguments[:count] if row.operands else (arguments[:count],)
    return row.expand(b, *operands, *map(int, numbers))


def _indexed(b: Builder, a: int, places: tuple[Any, ...]) -> int:
    shape = b.shape(a)
    if len(places) > len(shape):
        raise ShapeError(
            f"an index of {len(places)} places does not fit {shaped.shape_text(shape)}",
            hint="one place for each axis at most",
        )
    return shaped.take(
        b,
        a,
        tuple(
            range(*place.indices(size)) if isinstance(place, slice) else place
            for place, size in zip(places, shape, strict=False)
        ),
    )


def mean(b: Builder, a: int, *axes: int) -> int:
    """The sum over axes, divided by how many there are."""
    made = shaped.total(b, a, axes or None)
    count = math.prod(b.shape(a)) / max(math.prod(b.shape(made)), 1)
    return b.emit("div", made, b.constant(float(count)))


def softmax(b: Builder, a: int, axis: int = -1) -> int:
    """Exponentials that add up to 1; nothing overflows, as the largest is taken off first."""
    powers = b.emit("exp", _shifted(b, a, axis))
    return b.emit("div", powers, shaped.total(b, powers, [axis], keep=True))


def log_softmax(b: Builder, a: int, axis: int = -1) -> int:
    """The logarithm of softmax, with all its digits."""
    moved = _shifted(b, a, axis)
    total = shaped.total(b, b.emit("exp", moved), [axis], keep=True)
    return b.emit("sub", moved, b.emit("log", total))


def _shifted(b: Builder, a: int, axis: int) -> int:
    top = b.emit("stop_gradient", shaped.largest(b, a, [axis], keep=True))
    return b.emit("sub", a, top)


_MANY = 32  # more axes than numpy has
ARRAY_FUNCTIONS = {
    row.name: row
    for row in (
        ArrayFunction("matmul", 2, 2, 2, "", shaped.matmul, r"{a} \, {b}"),
        ArrayFunction("dot", 2, 2, 2, "dot", lambda b, a, c: shaped.total(b, b.emit("mul", a, c))),
        ArrayFunction("norm", 1, 1, 1, "norm",
                      lambda b, a: b.emit("sqrt", shaped.total(b, b.emit("mul", a, a)))),
        ArrayFunction("sum", 1, 1, _MANY, "sum",
                      lambda b, a, *axes: shaped.total(b, a, axes or None)),
        ArrayFunction("mean", 1, 1, _MANY, "mean", mean),
        ArrayFunction("largest", 1, 1, 1, "max", shaped.largest),
        ArrayFunction("smallest", 1, 1, 1, "min",
                      lambda b, a: b.emit("neg", shaped.largest(b, b.emit("neg", a)))),
        ArrayFunction("softmax", 1, 1, 2, "softmax", softmax),
        ArrayFunction("log_softmax", 1, 1, 2, "log_softmax", log_softmax),
        ArrayFunction("transpose", 1, 1, _MANY, "transpose",
                      lambda b, a, *axes: shaped.transpose(b, a, axes or None)),
        ArrayFunction("reshape", 1, 2, _MANY, "reshape",
                      lambda b, a, *sizes: shaped.reshape(b, a, sizes)),
        ArrayFunction("broadcast", 1, 2, _MANY, "broadcast",
                      lambda b, a, *sizes: b.broadcast(a, sizes)),
        ArrayFunction("concatenate", 0, 1, _MANY, "concatenate", shaped.concatenate),
        ArrayFunction("batch_mean", 1, 1, 1, "batch_mean",
                      lambda b, a: b.emit(Structural("batch_mean"), a)),
    )
}  # fmt: skip
