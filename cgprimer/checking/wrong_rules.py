"""Wrong derivatives of functions: the table of local rules that students get wrong.

Each row states a wrong derivative as text in cgprimer's own language, as the table of primitives
states the right one: ``a``, ``b``, ``c`` are the operands and ``out`` is the result. A new mistake
is a new row.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from cgprimer.core.language.syntax import Name, Number, fold
from cgprimer.core.primitives import OPERANDS, RESULT
from cgprimer.core.primitives.registry import partial_tree
from cgprimer.core.tape.builder import Builder

DERIVATIVE = "wrong derivative of a function"
POWER = "power rule"
EXPONENT = "power rule on a variable exponent"
LOGARITHM = "logarithm missing"
QUOTIENT = "quotient rule"
PRODUCT = "product rule"
DEGREES = "degrees for radians"
_DEGREE = repr(math.pi / 180)


class WrongRule(NamedTuple):
    """A derivative of a primitive that students confuse with the right one.

    Attributes:
        primitive: the name of the primitive.
        partials: one text per operand; an empty text keeps the right partial.
        mistake: the name of the mistake.
        message: what the student computed; ``u`` is the operand.
        value: what the student computes instead of the primitive's value; empty for the right one.
    """

    primitive: str
    partials: tuple[str, ...]
    mistake: str
    message: str
    value: str = ""


def _rows(mistake: str, *rows: tuple[str, str, str]) -> tuple[WrongRule, ...]:
    """Return rules of functions with one operand: name, wrong derivative, message."""
    return tuple(WrongRule(name, (text,), mistake, message) for name, text, message in rows)


def _degrees(name: str, slope: str) -> tuple[WrongRule, ...]:
    """Return the rules of a function whose argument is taken in degrees instead of radians."""
    small, large = f"({_DEGREE}*a)", f"(a/{_DEGREE})"
    turned = slope.replace("(a)", small)
    said, value = "u is converted from degrees to radians", name + small
    return (
        WrongRule(name, (turned,), DEGREES, said, value),
        WrongRule(name, (f"{_DEGREE}*({turned})",), DEGREES, said, value),
        WrongRule(name, (turned,), DEGREES, f"{said} in the derivative alone"),
        WrongRule(name, (f"{_DEGREE}*({slope})",), DEGREES, "the derivative has a factor pi/180"),
        WrongRule(name, (slope.replace("(a)", large),), DEGREES, "u is converted to degrees"),
    )


WRONG_RULES: tuple[WrongRule, ...] = (
    *_rows(
        DERIVATIVE,
        ("tanh", "1 - out", "1 - tanh(u) for 1 - tanh(u)^2"),
        ("tanh", "1 + out*out", "1 + tanh(u)^2 for 1 - tanh(u)^2"),
        ("tanh", "(1 - out)*(1 - out)", "(1 - tanh(u))^2 for 1 - tanh(u)^2"),
        ("tanh", "out*(1 - out)", "the derivative of sigmoid for that of tanh"),
        ("tanh", "out*out", "tanh(u)^2 for 1 - tanh(u)^2"),
        ("sigmoid", "1 - out", "1 - sigmoid(u) for sigmoid(u)*(1 - sigmoid(u))"),
        ("sigmoid", "out*(1 + out)", "sigmoid(u)*(1 + sigmoid(u)), with the wrong sign inside"),
        ("sigmoid", "1 - out*out", "the derivative of tanh for that of sigmoid"),
        ("sigmoid", "(1 - out)*(1 - out)", "(1 - sigmoid(u))^2, without sigmoid(u)"),
        ("softplus", "sigmoid(-a)", "sigmoid(-u) for sigmoid(u)"),
        ("softplus", "sigmoid(a)*(1 - sigmoid(a))", "the derivative of sigmoid for sigmoid(u)"),
        ("relu", "out", "relu(u) for its derivative, which is 0 or 1"),
        ("relu", "less(a, 0)", "1 where u < 0 and 0 where u > 0: the mask is inverted"),
        ("relu", "sign(a)", "the sign of u for 0 or 1"),
        ("abs", "less(0, a)", "0 or 1 for the sign of u"),
        ("exp", "a*out", "u*exp(u) for exp(u)"),
        ("log", "1/out", "1/log(u) for 1/u"),
        ("log", "a", "u for 1/u"),
        ("log", "1/(a*a)", "1/u^2 for 1/u"),
        ("sqrt", "1/out", "1/sqrt(u): the 2 of 1/(2*sqrt(u)) is missing"),
        ("sqrt", "0.5*out", "sqrt(u)/2 for 1/(2*sqrt(u))"),
        ("sqrt", "0.5/a", "1/(2*u) for 1/(2*sqrt(u))"),
        ("sin", "-sin(a)", "-sin(u) for cos(u)"),
        ("cos", "-cos(a)", "-cos(u) for -sin(u)"),
        ("tan", "1/cos(a)", "1/cos(u) for 1/cos(u)^2"),
        ("tan", "1 - out*out", "1 - tan(u)^2 for 1 + tan(u)^2"),
        ("tan", "out/cos(a)", "the derivative of sec for that of tan"),
        ("cot", "-1/sin(a)", "-1/sin(u) for -1/sin(u)^2"),
        ("coth", "-1/sinh(a)", "-1/sinh(u) for -1/sinh(u)^2"),
        ("coth", "1 + out*out", "1 + coth(u)^2 for 1 - coth(u)^2"),
        ("asin", "1/sqrt(1 + a*a)", "1/sqrt(1 + u^2) for 1/sqrt(1 - u^2)"),
        ("asin", "1/(1 - a*a)", "1/(1 - u^2) for 1/sqrt(1 - u^2)"),
        ("acos", "-1/sqrt(1 + a*a)", "-1/sqrt(1 + u^2) for -1/sqrt(1 - u^2)"),
        ("atan", "1/(1 - a*a)", "1/(1 - u^2) for 1/(1 + u^2)"),
        ("atan", "1/sqrt(1 + a*a)", "1/sqrt(1 + u^2) for 1/(1 + u^2)"),
        ("atan", "1/(1 + a)", "1/(1 + u) for 1/(1 + u^2)"),
        ("asec", "1/(a*sqrt(a*a - 1))", "u for |u| in the denominator"),
        ("acsc", "-1/(a*sqrt(a*a - 1))", "u for |u| in the denominator"),
        ("acsch", "-1/(a*sqrt(1 + a*a))", "u for |u| in the denominator"),
        ("gelu", "a*exp(-0.5*a*a)", "the normalization of the density is missing"),
    ),
    WrongRule("leaky_relu", ("less(0, a)", ""), DERIVATIVE, "0 for the slope where u < 0"),
    WrongRule("leaky_relu", ("where(less(a, 0), -b, 1)", ""), DERIVATIVE,
              "minus the slope where u < 0"),
    WrongRule("max", ("less(a, b)", "less(b, a)"), DERIVATIVE, "the derivative of min"),
    WrongRule("min", ("less(b, a)", "less(a, b)"), DERIVATIVE, "the derivative of max"),
    WrongRule("max", ("0.5", "0.5"), DERIVATIVE, "one half for each operand"),
    WrongRule("where", ("", "where(a, 0, 1)", "where(a, 1, 0)"), DERIVATIVE,
              "the branches are exchanged"),
    WrongRule("clamp", ("1 - (1 - less(a, b))*(1 - less(c, a))", "", ""), DERIVATIVE,
              "1 outside the bounds and 0 inside: the mask is inverted"),
    WrongRule("gelu", ("0.5*erfc(-0.7071067811865476*a)",), PRODUCT, "only one of two terms"),
    WrongRule("pow", ("b*a^b", ""), POWER, "the exponent is not lowered"),
    WrongRule("pow", ("a^(b - 1)", ""), POWER, "the exponent is not brought down"),
    WrongRule("div", ("", "-out"), POWER, "the divisor is not squared"),
    WrongRule("pow", ("b*a", ""), POWER, "n*u for n*u^(n - 1)"),
    WrongRule("pow", ("(b - 1)*a^(b - 1)", ""), POWER, "(n - 1)*u^(n - 1) for n*u^(n - 1)"),
    WrongRule("pow", ("b*a^(b + 1)", ""), POWER, "n*u^(n + 1): the exponent is raised"),
    WrongRule("pow", ("a^(b + 1)/(b + 1)", ""), POWER, "the antiderivative of u^n"),
    WrongRule("pow", ("out*log(a)", ""), POWER, "u^n*ln(u): the rule for a variable exponent"),
    WrongRule("pow", ("", "b*a^(b - 1)"), EXPONENT, "u*a^(u - 1) for a^u*ln(a)"),
    WrongRule("exp", ("a*exp(a - 1)",), EXPONENT, "u*exp(u - 1) for exp(u)"),
    WrongRule("exp", ("a*out/2.718281828459045",), EXPONENT, "u*exp(u - 1) for exp(u)"),
    WrongRule("pow", ("", "out"), LOGARITHM, "a^u for a^u*ln(a)"),
    WrongRule("pow", ("", "out*log10(a)"), LOGARITHM, "log10(a) for ln(a)"),
    WrongRule("log2", ("1/a",), LOGARITHM, "1/u for 1/(u*ln(2))"),
    WrongRule("log10", ("1/a",), LOGARITHM, "1/u for 1/(u*ln(10))"),
    WrongRule("log_base", ("1/a", ""), LOGARITHM, "1/u for 1/(u*ln(b))"),
    WrongRule("div", ("-1/b", "out/b"), QUOTIENT, "the terms are in the wrong order"),
    WrongRule("div", ("1/b", "out/b"), QUOTIENT, "the terms are added"),
    WrongRule("div", ("1", "-out"), QUOTIENT, "the divisor is not squared"),
    WrongRule("div", ("", "-1/(b*b)"), QUOTIENT, "-1/u^2: the numerator is missing"),
    WrongRule("div", ("", "1/b"), QUOTIENT, "1/u for -1/u^2, as if u were the numerator"),
    *_degrees("sin", "cos(a)"),
    *_degrees("cos", "-sin(a)"),
    *_degrees("tan", "1/cos(a)^2"),
)  # fmt: skip


def emit_text(builder: Builder, text: str, operands: tuple[int, ...], out: int) -> int:
    """Emit a text in ``a``, ``b``, ``c`` and ``out`` and return the index of its value."""
    slots = dict(zip(OPERANDS, operands, strict=False)) | {RESULT: out}

    def leaf(node: Name | Number) -> int:
        return slots[node.name] if isinstance(node, Name) else builder.constant(node.value)

    return fold(partial_tree(text), leaf, lambda name, parts: builder.emit(name, *parts))
