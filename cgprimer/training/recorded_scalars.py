"""Scalars that record: a formula written in Python for numbers, run once, becomes a tape.

Update rules of optimizers are ordinary Python functions of arrays. Called with recorded scalars
instead, they leave a tape behind, which an engine can put into its own loop.
"""

from __future__ import annotations

from typing import Any, NoReturn, Union

from cgprimer.core.primitives import primitive
from cgprimer.core.tape.builder import Builder
from cgprimer.errors import TapeError

Operand = Union["Recorded", float, int]
_FUNCTIONS = {  # numpy's names of primitives that are called otherwise here
    "subtract": "sub", "multiply": "mul", "divide": "div", "negative": "neg", "power": "pow",
    "float_power": "pow", "absolute": "abs", "fabs": "abs", "maximum": "max", "minimum": "min",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh",
}  # fmt: skip


class Recorded:
    """A value of a tape that is being built; arithmetic on it makes further ones.

    So do numpy's functions of a number, such as ``np.sqrt``, ``np.sign`` and ``np.maximum``. What
    would have to look at a value (an ``if``, a comparison) or at others beside it (a sum over the
    parameters) raises TapeError: it cannot be recorded.

    >>> builder = Builder()
    >>> x = Recorded(builder, builder.column("x"))
    >>> y = 2*x - x/(1 + x)
    >>> print(builder.finish({"y": y.index}))
    column  x
    v1 = 2*x
    v2 = 1 + x
    v3 = x/v2
    v4 = v1 - v3
    output  y = v4
    """

    def __init__(self, builder: Builder, index: int) -> None:
        self.builder = builder
        self.index = index

    def _value(self, operand: Operand) -> int:
        if isinstance(operand, Recorded):
            return operand.index
        return self.builder.constant(float(operand))

    def _made(self, name: str, *operands: Operand) -> Recorded:
        values = [self._value(operand) for operand in operands]
        return Recorded(self.builder, self.builder.emit(name, *values))

    def __array_ufunc__(self, function: Any, way: str, *given: Any, **options: Any) -> Recorded:
        """numpy's functions of arrays, a value at a time."""
        name = function.__name__
        if name == "square":
            return self * self
        row = primitive(_FUNCTIONS.get(name, name)) if way == "__call__" and not options else None
        if row is None or row.arity != len(given):
            raise TapeError(f"numpy's {name} cannot be recorded")
        return self._made(row.name, *given)

    def _looked_at(self, *_: object, **__: object) -> NoReturn:
        raise TapeError("what looks at values, or at several at once, cannot be recorded")

    __bool__ = __float__ = __int__ = __index__ = __array__ = __array_function__ = _looked_at
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _looked_at
    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Operand) -> Recorded:
        return self._made("add", self, other)

    def __radd__(self, other: Operand) -> Recorded:
        return self._made("add", other, self)

    def __sub__(self, other: Operand) -> Recorded:
        return self._made("sub", self, other)

    def __rsub__(self, other: Operand) -> Recorded:
        return self._made("sub", other, self)

    def __mul__(self, other: Operand) -> Recorded:
        return self._made("mul", self, other)

    def __rmul__(self, other: Operand) -> Recorded:
        return self._made("mul", other, self)

    def __truediv__(self, other: Operand) -> Recorded:
        return self._made("div", self, other)

    def __rtruediv__(self, other: Operand) -> Recorded:
        return self._made("div", other, self)

    def __pow__(self, other: Operand) -> Recorded:
        return self._made("pow", self, other)

    def __rpow__(self, other: Operand) -> Recorded:
        return self._made("pow", other, self)

    def __neg__(self) -> Recorded:
        return self._made("neg", self)

    def __abs__(self) -> Recorded:
        return self._made("abs", self)
