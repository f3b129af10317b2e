"""The primitives as a GPU computes them, with numpy's answers at every edge.

``TEXTS`` gives for each primitive an expression over its operands ``{a}``, ``{b}``, ``{c}``.
In it ``m`` is the module ``math``, whose functions numba turns into those of CUDA's libdevice (in
the simulator, into numpy's, since Python's own raise where a GPU returns nan). ``one``, ``half``
and so on are numbers of the computation's own type: a bare ``1.0`` would turn float32 to float64.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from cgprimer.core.primitives import primitive
from cgprimer.errors import EngineError
from cgprimer.native.cuda.device import device_function, simulated
from cgprimer.native.plans.plan import FUSED

_UNARY = ("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "sin", "cos", "tan", "asin",
          "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf",
          "erfc")  # fmt: skip

TEXTS: dict[str, str] = {
    "add": "{a} + {b}",
    "sub": "{a} - {b}",
    "mul": "{a} * {b}",
    "div": "{a} / {b}",
    "neg": "-{a}",
    "copy": "{a}",
    "stop_gradient": "{a}",
    "pow": "m.pow({a}, {b})",
    "abs": "m.fabs({a})",
    **{name: f"m.{name}({{a}})" for name in _UNARY},
    "log_base": "m.log({a}) / m.log({b})",
    "sec": "one / m.cos({a})",
    "csc": "one / m.sin({a})",
    "cot": "one / m.tan({a})",
    "asec": "m.acos(one / {a})",
    "acsc": "m.asin(one / {a})",
    "acot": "m.atan(one / {a})",
    "sech": "one / m.cosh({a})",
    "csch": "one / m.sinh({a})",
    "coth": "one / m.tanh({a})",
    "asech": "m.acosh(one / {a})",
    "acsch": "m.asinh(one / {a})",
    "acoth": "m.atanh(one / {a})",
    "gelu": "half * {a} * m.erfc(minus_root_half * {a})",
    "sigmoid": "f_sigmoid({a})",
    "softplus": "f_softplus({a})",
    "logaddexp": "f_logaddexp({a}, {b})",
    "relu": "f_greater({a}, zero)",
    "leaky_relu": "f_leaky_relu({a}, {b})",
    "sign": "f_sign({a})",
    "heaviside": "f_step({a})",
    "step": "f_step({a})",
    "max": "f_greater({a}, {b})",
    "min": "f_lesser({a}, {b})",
    "clamp": "f_lesser(f_greater({a}, {b}), {c})",
    "where": "f_where({a}, {b}, {c})",
    "less": "f_less({a}, {b})",
    "equal": "f_equal({a}, {b})",
    # Steps of a plan. The compiler makes one instruction of the product and the sum.
    "fma": "{a} * {b} + {c}",
    "fms": "{a} * {b} - {c}",
    "fnma": "{c} - {a} * {b}",
}


def expression(name: str, operands: tuple[str, ...]) -> str:
    """The text of a primitive applied to operands that are written as these texts.

    >>> expression("sec", ("v3",))
    'one / m.cos(v3)'

    Raises:
        EngineError: the primitive has no form on the GPU.
    """
    own = name in FUSED or primitive(name).built_in
    if name not in TEXTS or not own:
        why = (
            "no text of it stands in cgprimer/native/cuda/mathematics.py"
            if own
            else "it was registered by a program, as a function of Python"
        )
        raise EngineError(
            f"the engine 'cuda' cannot compute the primitive {name!r}: {why}",
            hint="use engine='cpu' or engine='numpy'",
        )
    return TEXTS[name].format(**dict(zip("abc", operands, strict=False)))


def namespace(dtype: str) -> dict[str, Any]:
    """What the texts refer to, for a type of numbers: ``float64`` or ``float32``."""
    real = np.dtype(dtype).type
    numbers = {
        "zero": real(0.0),
        "half": real(0.5),
        "one": real(1.0),
        "minus_root_half": real(-0.7071067811865476),
    }
    return {**numbers, **_functions(real), "m": _numpy_math() if simulated() else math}


def _numpy_math() -> SimpleNamespace:
    """``math`` with numpy's functions, for the simulator."""
    arc = {f"a{n}": f"arc{n}" for n in ("sin", "cos", "tan", "sinh", "cosh", "tanh")}
    found = {n: getattr(np, arc.get(n, n)) for n in _UNARY if not n.startswith("erf")}
    found |= {n: _same_type(getattr(math, n)) for n in ("erf", "erfc")}
    return SimpleNamespace(**found, fabs=np.fabs, pow=_power)


def _power(x: Any, y: Any) -> Any:
    """As numpy does it for arrays, and as C does; its way for single numbers has other nans."""
    return np.power(np.array([x]), np.array([y]))[0]


def _same_type(function: Any) -> Any:
    return lambda x: type(x)(function(x))


def _functions(real: type[Any]) -> dict[str, Any]:
    """The primitives that look at an operand twice, as functions that kernels call."""
    m: Any = _numpy_math() if simulated() else math
    zero, half, one = real(0.0), real(0.5), real(1.0)
    log_two = real(math.log(2.0))

    def f_sigmoid(a: Any) -> Any:
        decay = m.exp(-m.fabs(a))  # at most 1: no overflow
        top = one if a >= zero else decay
        return top / (one + decay)

    def f_softplus(a: Any) -> Any:
        return (a if a >= zero else zero) + m.log1p(m.exp(-m.fabs(a)))

    def f_logaddexp(a: Any, b: Any) -> Any:
        if a == b:  # also two infinities of one sign, whose difference is nan
            return a + log_two
        gap = a - b
        return (a if gap > zero else b) + m.log1p(m.exp(-m.fabs(gap)))

    def f_leaky_relu(a: Any, b: Any) -> Any:
        return a * b if a < zero else a

    def f_sign(a: Any) -> Any:
        if a > zero:
            return one
        if a < zero:
            return -one
        return zero if a == zero else a  # nan stays nan

    def f_step(a: Any) -> Any:
        if a > zero:
            return one
        if a < zero:
            return zero
        return half if a == zero else a

    def f_greater(a: Any, b: Any) -> Any:
        return a if a >= b or a != a else b  # noqa: PLR0124 (a nan wins)

    def f_lesser(a: Any, b: Any) -> Any:
        return a if a <= b or a != a else b  # noqa: PLR0124

    def f_where(a: Any, b: Any, c: Any) -> Any:
        return b if a != zero else c

    def f_less(a: Any, b: Any) -> Any:
        return one if a < b else zero

    def f_equal(a: Any, b: Any) -> Any:
        return one if a == b else zero

    made = (f_sigmoid, f_softplus, f_logaddexp, f_leaky_relu, f_sign, f_step, f_greater, f_lesser,
            f_where, f_less, f_equal)  # fmt: skip
    return {function.__name__: device_function(function) for function in made}
