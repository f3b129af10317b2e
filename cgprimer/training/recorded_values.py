"""Recorded values: calling a Python function with them turns its operations into a tape.

Update rules and losses that users write in Python become tapes, which engines compile.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from cgprimer.core.operations import find_primitive, numpy_arithmetic
from cgprimer.errors import TapeError
from cgprimer.tapes import Builder

#: Names of primitives for functions of numpy with other names, except arcsin and the like.
_PRIMITIVE_NAMES = {
    "subtract": "sub", "multiply": "mul", "divide": "div", "negative": "neg", "power": "pow",
    "float_power": "pow", "absolute": "abs", "fabs": "abs", "maximum": "max", "minimum": "min",
}  # fmt: skip


class RecordedValue(NDArrayOperatorsMixin):
    """A value of a tape under construction; arithmetic on it emits instructions.

    Elementwise functions of numpy, such as ``np.sqrt``, ``np.sign`` and ``np.maximum``, emit
    instructions too. Operations that read a value (an ``if``) or combine elements (a sum over the
    parameters) raise TapeError, because a tape cannot express them.

    >>> builder = Builder()
    >>> x = RecordedValue(builder, builder.column("x"))
    >>> y = 2*x - x/(1 + x)
    >>> print(builder.finish({"y": y.index}))
    input     x
    v1 = 2*x
    v2 = 1 + x
    v3 = x/v2
    v4 = v1 - v3
    output    y = v4
    """

    def __init__(self, builder: Builder, index: int) -> None:
        self.builder = builder
        self.index = index

    def __array_ufunc__(
        self, function: Any, method: str, *operands: Any, **options: Any
    ) -> RecordedValue:
        """Record an operator or an elementwise function of numpy."""
        name = function.__name__
        if name == "square":
            return self * self  # type: ignore[no-any-return]
        if name == "greater":
            name, operands = "less", operands[::-1]
        primitive = _PRIMITIVE_NAMES.get(name, name.replace("arc", "a"))
        row = find_primitive(primitive) if method == "__call__" and not options else None
        if row is None or row.arity != len(operands):
            raise TapeError(f"cannot record numpy.{name} as an instruction of a tape")
        return apply_primitive(row.name, *operands)  # type: ignore[no-any-return]

    def __array_function__(
        self, function: Any, types: Any, operands: Any, options: Any
    ) -> RecordedValue:
        """Record ``np.where``; refuse all other functions of whole arrays."""
        if function is not np.where or len(operands) != 3 or options:
            self._refuse_to_read()
        return apply_primitive("where", *operands)  # type: ignore[no-any-return]

    def _refuse_to_read(self, *_: object, **__: object) -> NoReturn:
        """Raise TapeError, because a value is not known while operations are recorded."""
        raise TapeError(
            "cannot record operations that need values (float) or combine elements (sum)"
        )

    __bool__ = __float__ = __int__ = __index__ = __array__ = _refuse_to_read


def apply_primitive(name: str, *operands: Any) -> Any:
    """Apply a primitive to arrays and floats, or record it if an operand is a recorded value."""
    builder = next((o.builder for o in operands if isinstance(o, RecordedValue)), None)
    if builder is None:
        with np.errstate(all="ignore"):
            return numpy_arithmetic.numpy_function(name)(*operands)
    indices = [
        o.index if isinstance(o, RecordedValue) else builder.constant(float(o)) for o in operands
    ]
    return RecordedValue(builder, builder.emit(name, *indices))
