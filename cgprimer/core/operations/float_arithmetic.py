"""Primitives on Python's floats. They return IEEE 754 values and never raise.

Functions of ``math`` raise errors outside their domain and on overflow; the functions of this
module return nan or infinity instead.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import cache
from math import copysign, inf, isnan, nan
from typing import TYPE_CHECKING, Any

from cgprimer.core.operations.primitive_registry import RECIPROCALS, find_primitive, primitives

if TYPE_CHECKING:
    from cgprimer.core.operations.array_operation import ArrayOperation

Function = Callable[..., float]


def _suppress_errors(
    function: Function, outside: Function = lambda a: nan, overflow: Function = lambda a: inf
) -> Function:
    """Wrap a function of ``math`` to return IEEE 754 values instead of raising errors."""

    def evaluate(a: float) -> float:
        """Evaluate the wrapped function."""
        try:
            return function(a)
        except ValueError:
            return outside(a)
        except OverflowError:
            return overflow(a)

    return evaluate


def _div(a: float, b: float) -> float:
    """Return a/b; infinity or nan if b is zero."""
    try:
        return a / b
    except ZeroDivisionError:
        return nan if a == 0.0 or isnan(a) else copysign(inf, a) * copysign(1.0, b)


def _pow(a: float, b: float) -> float:
    """Return a to the power of b; infinity at a pole and on overflow, nan outside the domain."""
    odd = b % 2.0 == 1.0  # also for negative integers
    try:
        return math.pow(a, b)
    except OverflowError:
        return -inf if a < 0.0 and odd else inf
    except ValueError:  # a pole at 0, or a fractional power of a negative number
        return nan if a != 0.0 else copysign(inf, a) if odd else inf


def _pole_at_zero(a: float) -> float:
    """Return the value of a logarithm outside its domain: -inf at 0, nan elsewhere."""
    return -inf if a == 0.0 else nan


_log = _suppress_errors(math.log, _pole_at_zero)


def _sigmoid(a: float) -> float:
    """Return 1/(1 + exp(-a)) without overflow."""
    decay = math.exp(-abs(a))  # at most 1: no overflow
    return (1.0 if a >= 0.0 else decay) / (1.0 + decay)


def _max(a: float, b: float) -> float:
    """Return the maximum of two floats; nan if either of them is nan."""
    return a if a > b or isnan(a) else b


def _min(a: float, b: float) -> float:
    """Return the minimum of two floats; nan if either of them is nan."""
    return a if a < b or isnan(a) else b


_SAME = "exp expm1 sqrt sin cos tan asin acos cosh acosh"
FUNCTIONS: dict[str, Function] = {
    name: _suppress_errors(getattr(math, name)) for name in _SAME.split()
} | {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": _div,
    "neg": operator.neg, "copy": operator.pos, "pow": _pow,
    "log": _log, "log_base": lambda a, b: _div(_log(a), _log(b)),
    "log1p": _suppress_errors(math.log1p, lambda a: _pole_at_zero(1.0 + a)),
    "log2": _suppress_errors(math.log2, _pole_at_zero),
    "log10": _suppress_errors(math.log10, _pole_at_zero),
    "logaddexp": lambda a, b: (
        a + math.log(2.0) if a == b else _max(a, b) + math.log1p(math.exp(-abs(a - b)))
    ),
    "xlogy": lambda a, b: a if a == 0.0 == b else a * _log(b),
    "atan": math.atan, "tanh": math.tanh, "asinh": math.asinh,
    "sinh": _suppress_errors(math.sinh, overflow=lambda a: copysign(inf, a)),
    "atanh": _suppress_errors(math.atanh, lambda a: copysign(inf, a) if abs(a) == 1.0 else nan),
    "sigmoid": _sigmoid, "softplus": lambda a: _max(a, 0.0) + math.log1p(math.exp(-abs(a))),
    "relu": lambda a: _max(a, 0.0), "leaky_relu": lambda a, b: a * b if a < 0.0 else a,
    "erf": math.erf, "erfc": math.erfc,
    "gelu": lambda a: 0.5 * a * math.erfc(-0.7071067811865476 * a),
    "abs": abs, "sign": lambda a: copysign(1.0, a) if a > 0.0 or a < 0.0 else a,  # 0 and nan stay
    "heaviside": lambda a: 1.0 if a > 0.0 else 0.0 if a < 0.0 else 0.5 + a,
    "max": _max, "min": _min, "clamp": lambda a, b, c: _min(_max(a, b), c),
    "stop_gradient": operator.pos, "where": lambda a, b, c: b if a != 0.0 else c,
    "less": lambda a, b: float(a < b), "equal": lambda a, b: float(a == b),
}  # fmt: skip
FUNCTIONS["step"] = FUNCTIONS["heaviside"]
for _name, _other in RECIPROCALS.items():  # sec(a) = 1/cos(a), asec(a) = acos(1/a)
    FUNCTIONS[_name] = lambda a, f=FUNCTIONS[_other]: _div(1.0, f(a))
    FUNCTIONS[f"a{_name}"] = lambda a, f=FUNCTIONS[f"a{_other}"]: f(_div(1.0, a))
assert FUNCTIONS.keys() >= {r.name for r in primitives() if r.built_in}, "a row lacks its line here"


@cache
def _wrap_custom_function(function: Callable[..., Any]) -> Function:
    """Wrap a registered function to return floats and to suppress numpy's warnings."""

    def evaluate(*operands: float) -> float:
        """Evaluate the registered function on floats."""
        try:
            import numpy as np
        except ImportError:  # the function may work on floats
            return float(function(*operands))
        with np.errstate(all="ignore"):
            return float(function(*map(np.float64, operands)))

    return evaluate


def float_function(operation: str | ArrayOperation) -> Function:
    """Return the function that computes an operation on floats.

    >>> float_function("div")(1.0, 0.0), float_function("log")(-1.0), float_function("exp")(1000.0)
    (inf, nan, inf)
    """
    if not isinstance(operation, str):  # a custom function of scalars
        return _wrap_custom_function(operation.run)
    outside = find_primitive(operation).function
    return FUNCTIONS[operation] if outside is None else _wrap_custom_function(outside)
