"""Operations on numpy arrays of any shape. Primitives broadcast and never raise.

Analytic primitives also accept complex numbers, for the complex step. The caller suppresses numpy's
warnings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cgprimer.core.operations.array_operation import ArrayOperation
from cgprimer.core.operations.primitive_registry import RECIPROCALS, find_primitive, primitives

Array: TypeAlias = npt.NDArray[Any]


def _sign_of_real_part(x: Array) -> Array:
    """Return the sign of the real part as +1 or -1, in the precision of x.

    A complex step of any direction uses the same sign.
    """
    real = np.asarray(x).real
    return np.where(real >= 0, 1.0, -1.0).astype(real.dtype)


def _sigmoid(x: Array) -> Any:
    """Compute 1/(1 + exp(-x)) without overflow."""
    sign = _sign_of_real_part(x)
    decay = np.exp(-sign * x)  # at most 1: exp never sees a large positive argument
    return np.where(sign > 0, 1.0, decay) / (1.0 + decay)


def _softplus(x: Array) -> Any:
    """Compute log(1 + exp(x)) without overflow."""
    sign = _sign_of_real_part(x)
    return np.where(sign > 0, x, 0.0) + np.log1p(np.exp(-sign * x))


def _convert_to_float(comparison: Array, a: Array, b: Array) -> Array:
    """Convert the result of a comparison to 0.0 and 1.0, in the precision of its operands."""
    kinds = {getattr(a, "dtype", None), getattr(b, "dtype", None)} - {None}
    return comparison.astype("f" if kinds == {np.dtype("f")} else "d")


def _call_scipy(name: str, x: Array) -> Any:
    """Evaluate a function of scipy.special; scipy is imported at the first call."""
    from scipy import special

    return getattr(special, name)(x)


_SAME = """
    add pow exp expm1 log log1p log2 log10 sqrt abs sign
    sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh
"""
FUNCTIONS: dict[str, Callable[..., Array]] = {name: getattr(np, name) for name in _SAME.split()} | {
    "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative,
    "copy": np.positive, "log_base": lambda a, b: np.log(a) / np.log(b),
    "xlogy": lambda a, b: a * np.log(np.where(np.equal(a, 0.0) & np.equal(b, 0.0), 1.0, b)),
    "sigmoid": _sigmoid, "softplus": _softplus, "relu": lambda a: np.maximum(a, 0.0),
    "leaky_relu": lambda a, b: np.where(np.less(a, 0.0), b * a, a),
    "erf": lambda a: _call_scipy("erf", a), "erfc": lambda a: _call_scipy("erfc", a),
    # 1 + erf would lose digits.
    "gelu": lambda a: 0.5 * a * _call_scipy("erfc", -0.7071067811865476 * a),
    # Complex steps elsewhere make operands complex, with imaginary part 0.
    "heaviside": lambda a: np.heaviside(np.real(a), 0.5),
    "step": lambda a: np.heaviside(np.real(a), 0.5),
    "logaddexp": lambda a, b: np.logaddexp(np.real(a), np.real(b)),
    "max": np.maximum, "min": np.minimum,
    "clamp": lambda a, b, c: np.minimum(np.maximum(a, b), c), "stop_gradient": np.positive,
    "where": lambda a, b, c: np.where(  # scalars have the precision of a
        a != 0.0, np.result_type(a, 0.0).type(b) if type(b) is type(c) is float else b, c
    ),
    "less": lambda a, b: _convert_to_float(np.less(a, b), a, b),
    "equal": lambda a, b: _convert_to_float(np.equal(a, b), a, b),
}  # fmt: skip
for _name, _other in RECIPROCALS.items():  # sec(a) = 1/cos(a), asec(a) = acos(1/a)
    FUNCTIONS[_name] = lambda a, f=FUNCTIONS[_other]: 1.0 / f(a)
    FUNCTIONS[f"a{_name}"] = lambda a, f=FUNCTIONS[f"a{_other}"]: f(np.divide(1.0, a))
assert FUNCTIONS.keys() >= {r.name for r in primitives() if r.built_in}, "a row lacks its line here"


def numpy_function(operation: str | ArrayOperation) -> Callable[..., Any]:
    """Return the function that computes an operation on arrays.

    >>> numpy_function("max")(np.array([1.0, 5.0]), 3.0)
    array([3., 5.])
    """
    if not isinstance(operation, str):
        return operation.run
    return find_primitive(operation).function or FUNCTIONS[operation]
