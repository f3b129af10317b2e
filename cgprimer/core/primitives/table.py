"""The rows.

Source of the derivatives: the rule table of any calculus text, for instance Abramowitz and
Stegun, sections 3.3, 4.1 to 4.6 and 7.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cgprimer.core.primitives import arrays as forms
from cgprimer.core.primitives.registry import add_row
from cgprimer.core.primitives.row import OPERANDS, Array, Primitive


def _operator(
    name: str,
    partials: tuple[str, ...],
    function: Callable[..., Array],
    python: str,
    sympy: Callable[..., Any],
    latex: str,
    **more: Any,
) -> None:
    add_row(Primitive(name, partials, function, python, sympy, latex, **more))


def _function(
    name: str,
    partials: str | tuple[str, ...],
    function: Callable[..., Array],
    python: str,
    sympy: Callable[..., Any] | str | None = None,
    **more: Any,
) -> None:
    """A row whose name is also its spelling; ``sympy`` may be the name of sympy's function."""
    texts = (partials,) if isinstance(partials, str) else partials
    operands = ", ".join("{" + o + "}" for o in OPERANDS[: len(texts)])
    latex = more.pop("latex", rf"\operatorname{{{name.replace('_', chr(92) + '_')}}}")
    if "{a}" not in latex:  # a bare name such as \sin: braces of LaTeX are doubled for format()
        latex = latex.replace("{", "{{").replace("}", "}}") + rf"\left({operands}\right)"
    symbolic = (
        (lambda s, *args, called=sympy: getattr(s, called)(*args))
        if isinstance(sympy, str)
        else sympy
    )
    more.setdefault("spelling", name)
    add_row(Primitive(name, texts, function, python, symbolic, latex, **more))


# The greater and the lesser of two numbers, as Python text: a nan wins, as in numpy.
_GREATER = "(a if a > b or a != a else b)"
_LESSER = "(a if a < b or a != a else b)"

_operator("add", ("1", "1"), np.add, "a + b", lambda s, a, b: a + b, "{a} + {b}")
_operator("sub", ("1", "-1"), np.subtract, "a - b", lambda s, a, b: a - b, "{a} - {b}")
_operator("mul", ("b", "a"), np.multiply, "a * b", lambda s, a, b: a * b, r"{a} \, {b}")
_operator(
    "div", ("1/b", "-out/b"), np.divide, "a / b", lambda s, a, b: a / b, r"\frac{{{a}}}{{{b}}}",
    domain="b != 0", edges="1/0 = inf, 1/-0 = -inf, 0/0 = nan",
)  # fmt: skip
_operator("neg", ("-1",), np.negative, "-a", lambda s, a: -a, "-{a}")
_operator(
    "copy", ("1",), forms.copy, "a", lambda s, a: a, "{a}",
    edges="a name given to another name's value",
)  # fmt: skip
_operator(
    "pow",
    # Both texts choose a harmless exponent or logarithm at the edge, so that no nan is made that
    # a later multiplication by zero could not remove (and second derivatives stay right too).
    ("b * a^where(equal(b, 0), where(equal(a, 0), 1, b - 1), b - 1)",
     "out * log(where(equal(a, 0) * (1 - less(b, 0)), 1, a))"),
    np.power, "a ** b", lambda s, a, b: s.Pow(a, b), "{{{a}}}^{{{b}}}",
    domain="a > 0, or a = 0 and b >= 0, or b an integer",
    edges="a^0 = 1 and its derivative 0, also at a = 0 and at infinity; at nan it is nan; "
    "d/db 0^b = 0 for b >= 0; d/db is nan for a < 0, where only integers b have a value",
)  # fmt: skip

_function("exp", "out", np.exp, "math.exp(a)", "exp", latex=r"\exp")
_function("expm1", "exp(a)", np.expm1, "math.expm1(a)", lambda s, a: s.exp(a) - 1,
          edges="keeps its digits near 0, where exp(a) - 1 loses them")  # fmt: skip
_function("log", "1/a", np.log, "math.log(a)", "log", latex=r"\ln", domain="a > 0",
          edges="log(0) = -inf, nan below 0")  # fmt: skip
_function(
    "log_base", ("1/(a*log(b))", "-out/(b*log(b))"),
    lambda a, b: np.log(a) / np.log(b), "math.log(a) / math.log(b)",
    lambda s, a, b: s.log(a) / s.log(b), latex=r"\log_{{{b}}}\left({a}\right)",
    spelling="log", domain="a > 0, b > 0, b != 1",
)  # fmt: skip
_function("log1p", "1/(1 + a)", np.log1p, "math.log1p(a)", lambda s, a: s.log(1 + a),
          domain="a > -1", edges="keeps the digits near 0 that log(1 + a) loses")  # fmt: skip
_function("log2", "1.4426950408889634/a", np.log2, "math.log(a) / math.log(2)",
          lambda s, a: s.log(a) / s.log(2), latex=r"\log_2", domain="a > 0")  # fmt: skip
_function("log10", "0.4342944819032518/a", np.log10, "math.log(a) / math.log(10)",
          lambda s, a: s.log(a) / s.log(10), latex=r"\log_{10}", domain="a > 0")  # fmt: skip
_function(
    "logaddexp", ("exp(a - out)", "exp(b - out)"), np.logaddexp,
    f"(a + math.log(2) if a == b else {_GREATER} + math.log1p(math.exp(-abs(a - b))))",
    lambda s, a, b: s.log(s.exp(a) + s.exp(b)), analytic=False,
    edges="log(exp(a) + exp(b)) without overflow",
)  # fmt: skip
_function("sqrt", "0.5/out", np.sqrt, "math.sqrt(a)", "sqrt", latex=r"\sqrt{{{a}}}",
          domain="a >= 0", edges="sqrt'(0) = inf")  # fmt: skip

_function("sin", "cos(a)", np.sin, "math.sin(a)", "sin", latex=r"\sin")
_function("cos", "-sin(a)", np.cos, "math.cos(a)", "cos", latex=r"\cos")
_function("tan", "1 + out*out", np.tan, "math.tan(a)", "tan", latex=r"\tan",
          domain="a != pi/2 + k pi")  # fmt: skip
_function("sec", "out*tan(a)", lambda a: 1.0 / np.cos(a), "1.0 / math.cos(a)", "sec",
          latex=r"\sec", domain="a != pi/2 + k pi")  # fmt: skip
_function("csc", "-out/tan(a)", lambda a: 1.0 / np.sin(a), "1.0 / math.sin(a)", "csc",
          latex=r"\csc", domain="a != k pi")  # fmt: skip
_function("cot", "-1 - out*out", lambda a: 1.0 / np.tan(a), "1.0 / math.tan(a)", "cot",
          latex=r"\cot", domain="a != k pi")  # fmt: skip
# (1 - a)*(1 + a) instead of 1 - a*a: no digits are lost near the edges of the domain.
_function("asin", "1/sqrt((1 - a)*(1 + a))", np.arcsin, "math.asin(a)", "asin",
          latex=r"\arcsin", domain="-1 <= a <= 1", edges="infinite slope at both ends")  # fmt: skip
_function("acos", "-1/sqrt((1 - a)*(1 + a))", np.arccos, "math.acos(a)", "acos",
          latex=r"\arccos", domain="-1 <= a <= 1", edges="infinite slope at both ends")  # fmt: skip
_function("atan", "1/(1 + a*a)", np.arctan, "math.atan(a)", "atan", latex=r"\arctan")
_function("asec", "1/(abs(a)*sqrt((abs(a) - 1)*(abs(a) + 1)))", lambda a: np.arccos(1.0 / a),
          "math.acos(1.0 / a)", "asec", domain="|a| >= 1", analytic=False,
          edges="infinite slope at a = 1 and a = -1")  # fmt: skip
_function("acsc", "-1/(abs(a)*sqrt((abs(a) - 1)*(abs(a) + 1)))", lambda a: np.arcsin(1.0 / a),
          "math.asin(1.0 / a)", "acsc", domain="|a| >= 1", analytic=False,
          edges="infinite slope at a = 1 and a = -1")  # fmt: skip
_function("acot", "-1/(1 + a*a)", lambda a: np.arctan(1.0 / a), "math.atan(1.0 / a)", "acot",
          domain="a != 0", edges="atan(1/a): jumps from -pi/2 to pi/2 at 0")  # fmt: skip

_function("sinh", "cosh(a)", np.sinh, "math.sinh(a)", "sinh", latex=r"\sinh")
_function("cosh", "sinh(a)", np.cosh, "math.cosh(a)", "cosh", latex=r"\cosh")
_function("tanh", "1 - out*out", np.tanh, "math.tanh(a)", "tanh", latex=r"\tanh")
_function("sech", "-out*tanh(a)", lambda a: 1.0 / np.cosh(a), "1.0 / math.cosh(a)", "sech")
_function("csch", "-out/tanh(a)", lambda a: 1.0 / np.sinh(a), "1.0 / math.sinh(a)", "csch",
          domain="a != 0")  # fmt: skip
_function("coth", "1 - out*out", lambda a: 1.0 / np.tanh(a), "1.0 / math.tanh(a)", "coth",
          domain="a != 0")  # fmt: skip
_function("asinh", "1/sqrt(1 + a*a)", np.arcsinh, "math.asinh(a)", "asinh")
_function("acosh", "1/(sqrt(a - 1)*sqrt(a + 1))", np.arccosh, "math.acosh(a)", "acosh",
          domain="a >= 1", edges="infinite slope at 1; nan below 1")  # fmt: skip
_function("atanh", "1/((1 - a)*(1 + a))", np.arctanh, "math.atanh(a)", "atanh",
          domain="-1 < a < 1", edges="atanh(1) = inf, atanh(-1) = -inf")  # fmt: skip
_function("asech", "-1/(a*sqrt((1 - a)*(1 + a)))", lambda a: np.arccosh(1.0 / a),
          "math.acosh(1.0 / a)", "asech", domain="0 < a <= 1")  # fmt: skip
_function("acsch", "-1/(abs(a)*sqrt(1 + a*a))", lambda a: np.arcsinh(1.0 / a),
          "math.asinh(1.0 / a)", "acsch", domain="a != 0", analytic=False)  # fmt: skip
_function("acoth", "-1/sqrt((abs(a) - 1)*(abs(a) + 1))^2", lambda a: np.arctanh(1.0 / a),
          "math.atanh(1.0 / a)", "acoth", domain="|a| > 1",
          edges="nan where |a| < 1, infinite at 1 and -1")  # fmt: skip

_function("sigmoid", "out*(1 - out)", forms.sigmoid, "1.0 / (1.0 + math.exp(-a))",
          lambda s, a: 1 / (1 + s.exp(-a)), latex=r"\sigma",
          edges="no overflow: sigmoid(-1000) = 0, sigmoid(1000) = 1")  # fmt: skip
_function("softplus", "sigmoid(a)", forms.softplus,
          "max(a, 0.0) + math.log1p(math.exp(-abs(a)))",
          lambda s, a: s.log(1 + s.exp(a)), edges="no overflow: softplus(1000) = 1000")  # fmt: skip
_function("relu", "less(0, a)", forms.relu, "(a if a > 0.0 or a != a else 0.0)",
          lambda s, a: s.Piecewise((a, a > 0), (0, True)), analytic=False,
          edges="kink at 0: relu'(0) = 0")  # fmt: skip
_function("leaky_relu", ("where(less(a, 0), b, 1)", "where(less(a, 0), a, 0)"), forms.leaky_relu,
          "(a * b if a < 0.0 else a)",
          lambda s, a, b: s.Piecewise((a * b, a < 0), (a, True)), analytic=False,
          defaults=(0.01,), edges="kink at 0: the slope there is 1")  # fmt: skip
_function("erf", "1.1283791670955126*exp(-a*a)", forms.erf, "math.erf(a)", "erf")
_function("erfc", "-1.1283791670955126*exp(-a*a)", forms.erfc, "math.erfc(a)", "erfc")
_function("gelu",
          "0.5*erfc(-0.7071067811865476*a) + 0.3989422804014327*a*exp(-0.5*a*a)", forms.gelu,
          "0.5 * a * math.erfc(-a / math.sqrt(2))",
          lambda s, a: a * s.erfc(-a / s.sqrt(2)) / 2,
          source="Hendrycks and Gimpel 2016; the form with erf, not with tanh",
          edges="gelu(-inf) is nan: it is -inf times 0")  # fmt: skip
_function("abs", "sign(a)", np.abs, "abs(a)", lambda s, a: s.Abs(a),
          latex=r"\left|{a}\right|", analytic=False, edges="kink at 0: abs'(0) = 0")  # fmt: skip
_function("sign", "0", np.sign, "(1.0 if a > 0.0 else -1.0 if a < 0.0 else 0.0 * a)", "sign",
          analytic=False, edges="sign(0) = 0; derivative 0 everywhere")  # fmt: skip
_function("heaviside", "0", forms.step, "(1.0 if a > 0.0 else 0.0 if a < 0.0 else 0.5 + 0.0 * a)",
          "Heaviside", analytic=False, edges="heaviside(0) = 1/2; its derivative is 0")  # fmt: skip
_function("step", "0", forms.step, "(1.0 if a > 0.0 else 0.0 if a < 0.0 else 0.5 + 0.0 * a)",
          "Heaviside", analytic=False, edges="another name for heaviside")  # fmt: skip
_function("max", ("where(equal(a, b), 0.5, less(b, a))", "where(equal(a, b), 0.5, less(a, b))"),
          np.maximum, _GREATER, "Max", latex=r"\max", analytic=False, associative=True,
          edges="a tie is shared: both partials are 1/2; nan if an operand is nan")  # fmt: skip
_function("min", ("where(equal(a, b), 0.5, less(a, b))", "where(equal(a, b), 0.5, less(b, a))"),
          np.minimum, _LESSER, "Min", latex=r"\min", analytic=False, associative=True,
          edges="a tie is shared: both partials are 1/2; nan if an operand is nan")  # fmt: skip
_function(
    "clamp",
    ("(1 - less(a, b))*(1 - less(c, a))*(1 - less(c, b))", "less(a, b)*(1 - less(c, b))",
     "1 - (1 - less(c, a))*(1 - less(c, b))"),
    forms.clamp, f"({_GREATER} if {_GREATER} < c or {_GREATER} != {_GREATER} else c)",
    lambda s, a, b, c: s.Piecewise((c, (a > c) | (b > c)), (b, a < b), (a, True)),
    analytic=False,
    edges="clamp(a, low, high); slope 1 from low to high, both ends included, 0 outside",
)  # fmt: skip
_function("stop_gradient", "0", forms.copy, "a", None, analytic=False,
          edges="the value of a, but nothing flows back through it; finite differences, which "
          "see values only, disagree on purpose")  # fmt: skip
_function("where", ("0", "where(a, 1, 0)", "where(a, 0, 1)"), forms.where,
          "(b if a != 0.0 else c)",
          lambda s, a, b, c: s.Piecewise((b, s.Ne(a, 0)), (c, True)), analytic=False,
          edges="b where a is not 0, else c")  # fmt: skip
_function("less", ("0", "0"), forms.less, "(1.0 if a < b else 0.0)",
          lambda s, a, b: s.Piecewise((1, a < b), (0, True)), analytic=False,
          edges="1 where a < b, else 0")  # fmt: skip
_function("equal", ("0", "0"), forms.equal, "(1.0 if a == b else 0.0)",
          lambda s, a, b: s.Piecewise((1, s.Eq(a, b)), (0, True)), analytic=False,
          edges="1 where a = b, else 0")  # fmt: skip
