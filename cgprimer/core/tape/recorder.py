"""Scalars that record: a formula written in Python for numbers, run once, becomes a tape.

Update rules of optimizers are ordinary Python functions of arrays. Called with recorded scalars
instead, they leave a tape behind, which an engine can put into its own loop.
"""

from __future__ import annotations

from typing import Union

from cgprimer.core.tape.builder import Builder

Operand = Union["Recorded", float, int]


class Recorded:
    """A value of a tape that is being built; arithmetic on it makes further ones.

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

    def sqrt(self) -> Recorded:
        """The square root; ``numpy.sqrt`` of an object calls this."""
        return self._made("sqrt", self)
