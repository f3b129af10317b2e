"""The primitives as a GPU computes them, with numpy's answers at every edge.

``TEXTS`` gives for each primitive an expression over its operands ``{a}``, ``{b}``, ``{c}``.
In it ``m`` is the module ``math``, whose functions numba turns into those of CUDA's libdevice (in
the simulator, into numpy's, since Python's own raise where a GPU returns nan). ``one``, ``half``
and so on are numbers of the computation's own type: a bare ``1.0`` would turn float32 to float64.
"""

from __future__ import annotations

from cgprimer.core.primitives import primitive
from cgprimer.core.primitives.registry import RECIPROCALS
from cgprimer.errors import EngineError
from cgprimer.native.plans.plan import FUSED

UNARY = ("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "sin", "cos", "tan", "asin",
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
    **{name: f"m.{name}({{a}})" for name in UNARY},
    "log_base": "m.log({a}) / m.log({b})",
    **{name: f"one / m.{other}({{a}})" for name, other in RECIPROCALS.items()},
    **{f"a{name}": f"m.a{other}(one / {{a}})" for name, other in RECIPROCALS.items()},
    "gelu": "half * {a} * m.erfc(minus_root_half * {a})",
    # What is exponentiated is at most 0: no overflow.
    "sigmoid": "(one if {a} >= zero else m.exp({a})) / (one + m.exp(-m.fabs({a})))",
    "softplus": "({a} if {a} >= zero else zero) + m.log1p(m.exp(-m.fabs({a})))",
    # Equal ones first: two infinities of one sign are, and their difference is nan.
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
    # Steps of a plan. The compiler makes one instruction of the product and the sum.
    "fma": "{a} * {b} + {c}",
    "fms": "{a} * {b} - {c}",
    "fnma": "{c} - {a} * {b}",
}

FUNCTIONS = """
@device
def f_greater(a, b):
    return a if a >= b or a != a else b  # a nan wins

@device
def f_lesser(a, b):
    return a if a <= b or a != a else b
"""


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
