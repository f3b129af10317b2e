"""The table of primitives: names, partial derivatives, LaTeX, domains and edge cases.

Source of the derivatives: the table of rules in any calculus textbook, for instance Abramowitz
and Stegun, sections 3.3, 4.1 to 4.6 and 7.1.
"""

from __future__ import annotations

from typing import Any

from cgprimer.core.operations.primitive_registry import (
    ARRAY_FUNCTIONS,
    FUNCTIONS,
    OPERANDS,
    ArrayFunction,
    Primitive,
    insert_primitive,
)


def add_primitive(name: str, *partials: str, latex: str = "", **fields: Any) -> Primitive:
    """Add an elementwise function to the table of primitives.

    The name is also the spelling in expressions, unless ``fields`` contains a spelling.
    """
    operands = ", ".join("{" + o + "}" for o in OPERANDS[: len(partials)])
    latex = latex or rf"\operatorname{{{name.replace('_', chr(92) + '_')}}}"
    if "{a}" not in latex:  # a bare name such as \sin: braces of LaTeX are doubled for format()
        latex = latex.replace("{", "{{").replace("}", "}}") + rf"\left({operands}\right)"
    return insert_primitive(Primitive(name, partials, latex, **{"spelling": name, **fields}))


def _add_operator(name: str, *partials: str, latex: str, **fields: Any) -> None:
    """Add a primitive that is written as an operator, such as ``a + b``."""
    add_primitive(name, *partials, latex=latex, spelling="", **fields)


# Preserving the digits would cost a second exponential in the backward pass of a tanh layer.
_FLAT = (
    "computed from the result, the partial loses digits where the function is flat: relative error "
)

_add_operator("add", "1", "1", latex="{a} + {b}")
_add_operator("sub", "1", "-1", latex="{a} - {b}")
_add_operator("mul", "b", "a", latex=r"{a} \, {b}")
_add_operator("div", "1/b", "-out/b", latex=r"\frac{{{a}}}{{{b}}}",
              domain="b != 0", edges="1/0 = inf, 1/-0 = -inf, 0/0 = nan")  # fmt: skip
_add_operator("neg", "-1", latex="-{a}")
_add_operator("copy", "1", latex="{a}", edges="the value of another variable")
# Both partials choose a harmless exponent or logarithm at the edge, so that no nan is made that a
# later multiplication by zero could not remove (and second derivatives stay right too).
_add_operator("pow", "b * a^where(equal(b, 0), where(equal(a, 0), 1, b - 1), b - 1)",
              "out * log(where(equal(a, 0) * (1 - less(b, 0)), 1, a))",
              latex="{{{a}}}^{{{b}}}", domain="a > 0, or a = 0 and b >= 0, or b an integer",
              edges="a^0 = 1 and its derivative 0, also at a = 0 and at infinity; at nan it is nan;"
              " d/db 0^b = 0 for b >= 0; d/db is nan for a < 0, where only integers b have a value",
)  # fmt: skip

add_primitive("exp", "out", latex=r"\exp")
add_primitive("expm1", "exp(a)", edges="accurate near 0, where exp(a) - 1 loses digits")
add_primitive("log", "1/a", latex=r"\ln", domain="a > 0", edges="log(0) = -inf, nan below 0")
add_primitive("log_base", "1/(a*log(b))", "-out/(b*log(b))", latex=r"\log_{{{b}}}\left({a}\right)",
              spelling="log", domain="a > 0, b > 0, b != 1")  # fmt: skip
add_primitive("log1p", "1/(1 + a)", domain="a > -1",
              edges="accurate near 0, where log(1 + a) loses digits")  # fmt: skip
add_primitive("log2", "1.4426950408889634/a", latex=r"\log_2", domain="a > 0")
add_primitive("log10", "0.4342944819032518/a", latex=r"\log_{10}", domain="a > 0")
# The smaller of sigmoid and its complement keeps the digits of the slope, second derivatives too.
_SHARE = "where(less({1}, {0}), 1 - sigmoid({1} - {0}), sigmoid({0} - {1}))"
add_primitive("logaddexp", _SHARE.format("a", "b"), _SHARE.format("b", "a"), analytic=False,
              edges="log(exp(a) + exp(b)) without overflow")  # fmt: skip
add_primitive("xlogy", "log(b)", "a/where(equal(a, 0)*equal(b, 0), 1, b)", latex=r"{a} \, \ln {b}",
              domain="b > 0, or a = 0 and b = 0",
              edges="a*log(b); 0 if both operands are 0, and so is d/db")  # fmt: skip
add_primitive("sqrt", "0.5/out", latex=r"\sqrt{{{a}}}", domain="a >= 0", edges="sqrt'(0) = inf")

add_primitive("sin", "cos(a)", latex=r"\sin")
add_primitive("cos", "-sin(a)", latex=r"\cos")
add_primitive("tan", "1 + out*out", latex=r"\tan", domain="a != pi/2 + k pi")
add_primitive("sec", "out*tan(a)", latex=r"\sec", domain="a != pi/2 + k pi")
add_primitive("csc", "-out/tan(a)", latex=r"\csc", domain="a != k pi")
add_primitive("cot", "-1 - out*out", latex=r"\cot", domain="a != k pi")
# (1 - a)*(1 + a) loses no digits near the edges of the domain, nor the slope of 1 - a*a near 0.
_BELOW_1 = "where(less(abs(a), 0.5), 1 - a*a, (1 - a)*(1 + a))"
add_primitive("asin", f"1/sqrt({_BELOW_1})", latex=r"\arcsin", domain="-1 <= a <= 1",
              edges="infinite slope at both ends")  # fmt: skip
add_primitive("acos", f"-1/sqrt({_BELOW_1})", latex=r"\arccos", domain="-1 <= a <= 1",
              edges="infinite slope at both ends")  # fmt: skip
add_primitive("atan", "1/(1 + a*a)", latex=r"\arctan")
add_primitive("asec", "1/(abs(a)*sqrt((abs(a) - 1)*(abs(a) + 1)))", domain="|a| >= 1",
              analytic=False, edges="infinite slope at a = 1 and a = -1")  # fmt: skip
add_primitive("acsc", "-1/(abs(a)*sqrt((abs(a) - 1)*(abs(a) + 1)))", domain="|a| >= 1",
              analytic=False, edges="infinite slope at a = 1 and a = -1")  # fmt: skip
add_primitive("acot", "-1/(1 + a*a)", domain="a != 0",
              edges="atan(1/a): jumps from -pi/2 to pi/2 at 0")  # fmt: skip

add_primitive("sinh", "cosh(a)", latex=r"\sinh")
add_primitive("cosh", "sinh(a)", latex=r"\cosh")
add_primitive("tanh", "1 - out*out", latex=r"\tanh",
              edges=_FLAT + "2e-10 at |a| = 9, 6e-4 at 16")  # fmt: skip
add_primitive("sech", "-out*tanh(a)")
add_primitive("csch", "-out/tanh(a)", domain="a != 0")
add_primitive("coth", "1 - out*out", domain="a != 0",
              edges=_FLAT + "2e-10 at |a| = 9, 6e-4 at 16")  # fmt: skip
add_primitive("asinh", "1/sqrt(1 + a*a)")
add_primitive("acosh", "1/(sqrt(a - 1)*sqrt(a + 1))", domain="a >= 1",
              edges="infinite slope at 1; nan below 1")  # fmt: skip
add_primitive("atanh", f"1/{_BELOW_1}", domain="-1 < a < 1",
              edges="atanh(1) = inf, atanh(-1) = -inf")  # fmt: skip
add_primitive("asech", "-1/(a*sqrt((1 - a)*(1 + a)))", domain="0 < a <= 1")
add_primitive("acsch", "-1/(abs(a)*sqrt(1 + a*a))", domain="a != 0", analytic=False)
add_primitive("acoth", "-1/sqrt((abs(a) - 1)*(abs(a) + 1))^2", domain="|a| > 1",
              edges="nan where |a| < 1, infinite at 1 and -1")  # fmt: skip

add_primitive("sigmoid", "out*(1 - out)", latex=r"\sigma",
              edges="no overflow: sigmoid(-1000) = 0, sigmoid(1000) = 1; "
              + _FLAT + "9e-10 at a = 18, 1e-3 at 30")  # fmt: skip
add_primitive("softplus", "where(less(0, a), 1 - sigmoid(-a), sigmoid(a))",
              edges="no overflow: softplus(1000) = 1000")  # fmt: skip
add_primitive("relu", "less(0, a)", analytic=False, edges="kink at 0: relu'(0) = 0")
add_primitive("leaky_relu", "where(less(a, 0), b, 1)", "where(less(a, 0), a, 0)", analytic=False,
              defaults=(0.01,), edges="kink at 0: the slope there is 1")  # fmt: skip
add_primitive("erf", "1.1283791670955126*exp(-a*a)")
add_primitive("erfc", "-1.1283791670955126*exp(-a*a)")
add_primitive("gelu", "0.5*erfc(-0.7071067811865476*a) + 0.3989422804014327*a*exp(-0.5*a*a)",
              source="Hendrycks and Gimpel 2016; the form with erf, not with tanh",
              edges="gelu(-inf) is nan: it is -inf times 0")  # fmt: skip
add_primitive("abs", "sign(a)", latex=r"\left|{a}\right|", analytic=False,
              edges="kink at 0: abs'(0) = 0")  # fmt: skip
add_primitive("sign", "0", analytic=False, edges="sign(0) = 0; derivative 0 everywhere")
add_primitive("heaviside", "0", analytic=False, edges="heaviside(0) = 1/2; its derivative is 0")
add_primitive("step", "0", analytic=False, edges="another name for heaviside")
add_primitive("max", "where(equal(a, b), 0.5, less(b, a))", "where(equal(a, b), 0.5, less(a, b))",
              latex=r"\max", analytic=False, associative=True,
              edges="a tie is shared: both partials are 1/2; nan if an operand is nan")  # fmt: skip
add_primitive("min", "where(equal(a, b), 0.5, less(a, b))", "where(equal(a, b), 0.5, less(b, a))",
              latex=r"\min", analytic=False, associative=True,
              edges="a tie is shared: both partials are 1/2; nan if an operand is nan")  # fmt: skip
add_primitive(
    "clamp", "(1 - less(a, b))*(1 - less(c, a))*(1 - less(c, b))", "less(a, b)*(1 - less(c, b))",
    "1 - (1 - less(c, a))*(1 - less(c, b))", analytic=False,
    edges="clamp(a, low, high); slope 1 from low to high, both ends included, 0 outside",
)  # fmt: skip
add_primitive("stop_gradient", "0", analytic=False,
              edges="the value of a with derivative 0; finite differences disagree by design,"
              " since they use only values")  # fmt: skip
add_primitive("where", "0", "where(a, 1, 0)", "where(a, 0, 1)", analytic=False,
              edges="b where a is not 0, else c")  # fmt: skip
add_primitive("less", "0", "0", analytic=False, edges="1 where a < b, else 0")
add_primitive("equal", "0", "0", analytic=False, edges="1 where a = b, else 0")

# Functions of arrays: name, operands, fewest and most arguments, spelling, LaTeX. They are written
# out in primitives when shapes are known, by ``function_expansions.py``.
_MANY = 32  # more axes than numpy has
for _row in (
    ("matmul", 2, 2, 2, "", r"{a} \, {b}"), ("dot", 2, 2, 2, "dot", r"{a} \cdot {b}"),
    ("norm", 1, 1, 1, "norm", r"\left\lVert {a} \right\rVert"), ("sum", 1, 1, _MANY, "sum"),
    ("mean", 1, 1, _MANY, "mean"), ("largest", 1, 1, 1, "max"), ("smallest", 1, 1, 1, "min"),
    ("softmax", 1, 1, 2, "softmax"), ("log_softmax", 1, 1, 2, "log_softmax"),
    ("transpose", 1, 1, _MANY, "transpose"), ("reshape", 1, 2, _MANY, "reshape"),
    ("broadcast", 1, 2, _MANY, "broadcast"), ("concatenate", 0, 1, _MANY, "concatenate"),
    ("batch_mean", 1, 1, 1, "batch_mean"), ("largest_along", 1, 1, _MANY, "largest"),
    ("dropout", 2, 2, 2, "dropout", r"\operatorname{{dropout}}_{{{b}}}\left({a}\right)"),
    ("batchnorm", 4, 3, 4, "batchnorm", r"\operatorname{{BN}}_{{{b}, {c}}}\left({a}\right)"),
):  # fmt: skip
    _function = ARRAY_FUNCTIONS[_row[0]] = ArrayFunction(*_row)
    if _function.spelling:
        FUNCTIONS.setdefault(_function.spelling, []).append(_function)
