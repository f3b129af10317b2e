"""The primitives as CUDA expressions, with the same results as numpy in every edge case.

``EXPRESSIONS`` has an expression of the operands ``{a}``, ``{b}``, ``{c}`` for each primitive. In
the expressions, ``m`` is the module ``math``, which numba maps to CUDA's libdevice. In the
simulator, ``m`` has numpy's functions, since Python's functions raise an error where a GPU returns
nan. ``one``, ``half`` and so on are constants of the computation's dtype: a literal ``1.0`` would
convert float32 to float64.
"""

from __future__ import annotations

from cgprimer.backends.plans.plan import FUSED
from cgprimer.core.operations import find_primitive
from cgprimer.core.operations.primitive_registry import RECIPROCALS
from cgprimer.errors import EngineError

UNARY = ("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "sin", "cos", "tan", "asin",
         "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf",
         "erfc")  # fmt: skip

EXPRESSIONS: dict[str, str] = {
    "add": "{a} + {b}",
    "sub": "{a} - {b}",
    "mul": "{a} * {b}",
    "div": "{a} / {b}",
    "neg": "-{a}",
    "copy": "{a}",
    "stop_gradient": "{a}",
    "pow": "m.pow({a}, {b})",
    "abs": "m.fabs({a})",
    **{name: f"m.{name}({{a}})" for name in UNARY},
    "log_base": "m.log({a}) / m.log({b})",
    **{name: f"one / m.{other}({{a}})" for name, other in RECIPROCALS.items()},
    **{f"a{name}": f"m.a{other}(one / {{a}})" for name, other in RECIPROCALS.items()},
    "gelu": "half * {a} * m.erfc(minus_root_half * {a})",
    # The exponents are at most 0: no overflow.
    "sigmoid": "(one if {a} >= zero else m.exp({a})) / (one + m.exp(-m.fabs({a})))",
    "softplus": "({a} if {a} >= zero else zero) + m.log1p(m.exp(-m.fabs({a})))",
    # Equal operands first: the difference of two equal infinities is nan.
    "logaddexp": "{a} + log_two if {a} == {b} else"
    " ({a} if {a} > {b} else {b}) + m.log1p(m.exp(-m.fabs({a} - {b})))",
    "xlogy": "{a} if {a} == zero and {b} == zero else {a} * m.log({b})",
    "relu": "f_greater({a}, zero)",
    "leaky_relu": "{a} * {b} if {a} < zero else {a}",
    "sign": "one if {a} > zero else -one if {a} < zero else zero if {a} == zero else {a}",
    **dict.fromkeys(
        ("heaviside", "step"),
        "one if {a} > zero else zero if {a} < zero else half if {a} == zero else {a}",
    ),
    "max": "f_greater({a}, {b})",
    "min": "f_lesser({a}, {b})",
    "clamp": "f_lesser(f_greater({a}, {b}), {c})",
    "where": "{b} if {a} != zero else {c}",
    "less": "one if {a} < {b} else zero",
    "equal": "one if {a} == {b} else zero",
    # Steps of a plan. The compiler fuses the multiplication and the addition.
    "fma": "{a} * {b} + {c}",
    "fms": "{a} * {b} - {c}",
    "fnma": "{c} - {a} * {b}",
}

FUNCTIONS = """
@device
def f_greater(a, b):
    return a if a >= b or a != a else b  # propagates nan

@device
def f_lesser(a, b):
    return a if a <= b or a != a else b
"""


def format_expression(name: str, operands: tuple[str, ...]) -> str:
    """Return the CUDA expression of a primitive applied to the given operands.

    >>> format_expression("sec", ("v3",))
    'one / m.cos(v3)'

    Raises:
        EngineError: the primitive is not implemented on the GPU.
    """
    built_in = name in FUSED or find_primitive(name).built_in
    if name not in EXPRESSIONS or not built_in:
        reason = (
            "cgprimer/backends/cuda/cuda_primitives.py contains no expression for it"
            if built_in
            else "it is registered as a Python function"
        )
        raise EngineError(
            f"the engine 'cuda' does not support the primitive {name!r}: {reason}",
            hint="use engine='cpu' or engine='numpy'",
        )
    return EXPRESSIONS[name].format(**dict(zip("abc", operands, strict=False)))
