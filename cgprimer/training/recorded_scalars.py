"""Scalars that record: a formula written in Python for numbers, run once, becomes a tape.

Update rules of optimizers are ordinary Python functions of arrays. Called with recorded scalars
instead, they leave a tape behind, which an engine can put into its own loop.
"""

from __future__ import annotations

from typing import Any, NoReturn

from numpy.lib.mixins import NDArrayOperatorsMixin

from cgprimer.core.primitives import primitive
from cgprimer.core.tape.builder import Builder
from cgprimer.errors import TapeError

_FUNCTIONS = {  # numpy's names of primitives that are called otherwise here
    "subtract": "sub", "multiply": "mul", "divide": "div", "negative": "neg", "power": "pow",
    "float_power": "pow", "absolute": "abs", "fabs": "abs", "maximum": "max", "minimum": "min",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh",
}  # fmt: skip


class Recorded(NDArrayOperatorsMixin):
    """A value of a tape that is being built; arithmetic on it makes further ones.

    So do numpy's functions of a number, such as ``np.sqrt``, ``np.sign`` and ``np.maximum``. What
    would have to look at a value (an ``if``) or at others beside it (a sum over the parameters)
    raises TapeError: it cannot be recorded.

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

    def __array_ufunc__(self, function: Any, way: str, *given: Any, **options: Any) -> Recorded:
        """Operators, and numpy's functions of arrays, a value at a time."""
        name = function.__name__
        if name == "square":
            return self * self  # type: ignore[no-any-return]
        row = primitive(_FUNCTIONS.get(name, name)) if way == "__call__" and not options else None
        if row is None or row.arity != len(given):
            raise TapeError(f"numpy's {name} cannot be recorded")
        values = [
            value.index if isinstance(value, Recorded) else self.builder.constant(float(value))
            for value in given
        ]
        return Recorded(self.builder, self.builder.emit(row.name, *values))

    def _looked_at(self, *_: object, **__: object) -> NoReturn:
        raise TapeError("what looks at values, or at several at once, cannot be recorded")

    __bool__ = __float__ = __int__ = __index__ = __array__ = __array_function__ = _looked_at
