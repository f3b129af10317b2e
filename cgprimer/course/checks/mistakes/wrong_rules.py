"""Wrong derivatives of functions: the table of local rules that students get wrong.

Each row states a wrong derivative as a formula in cgprimer's own language, as the table of
primitives states the correct one: ``a``, ``b``, ``c`` are the operands and ``out`` is the result.
A new mistake is a new row.
"""

from __future__ import annotations

import math
from typing import NamedTuple

DERIVATIVE = "wrong derivative of a function"
POWER = "power rule"
EXPONENT = "power rule on a variable exponent"
LOGARITHM = "logarithm missing"
QUOTIENT = "quotient rule"
PRODUCT = "product rule"
DEGREES = "degrees instead of radians"
_DEGREE = repr(math.pi / 180)


class WrongRule(NamedTuple):
    """A wrong derivative of a primitive, as students often write it.

    Attributes:
        primitive: the name of the primitive.
        partials: one formula per operand; an empty string keeps the correct partial.
        mistake: the name of the mistake.
        message: the student's derivative, where ``u`` is the operand; it does not reveal the
            correct derivative.
        value: the formula that replaces the primitive's value; empty for the correct value.
    """

    primitive: str
    partials: tuple[str, ...]
    mistake: str
    message: str
    value: str = ""

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions of the operands with a wrong partial derivative."""
        return tuple(position for position, text in enumerate(self.partials) if text)


def _create_rules(mistake: str, *rows: tuple[str, str, str]) -> tuple[WrongRule, ...]:
    """Create wrong rules for unary functions from (primitive, derivative, message) rows."""
    return tuple(WrongRule(name, (text,), mistake, message) for name, text, message in rows)


def _create_degree_rules(name: str, slope: str) -> tuple[WrongRule, ...]:
    """Create wrong rules for a trigonometric function whose argument is mistaken for degrees."""
    small, large = f"({_DEGREE}*a)", f"(a/{_DEGREE})"
    converted = slope.replace("(a)", small)
    message, value = "if u were in degrees", name + small
    return (
        WrongRule(name, (converted,), DEGREES, message, value),
        WrongRule(name, (f"{_DEGREE}*({converted})",), DEGREES, message, value),
        WrongRule(name, (converted,), DEGREES, f"{message}, only in the backward pass"),
        WrongRule(name, (f"{_DEGREE}*({slope})",), DEGREES, "if it had a factor pi/180"),
        WrongRule(name, (slope.replace("(a)", large),), DEGREES, "if u were converted to degrees"),
    )


WRONG_RULES: tuple[WrongRule, ...] = (
    *_create_rules(
        DERIVATIVE,
        ("tanh", "1 - out", "1 - tanh(u)"),
        ("tanh", "1 + out*out", "1 + tanh(u)^2"),
        ("tanh", "(1 - out)*(1 - out)", "(1 - tanh(u))^2"),
        ("tanh", "out*(1 - out)", "the derivative of sigmoid"),
        ("tanh", "out*out", "tanh(u)^2"),
        ("sigmoid", "1 - out", "1 - sigmoid(u)"),
        ("sigmoid", "out*(1 + out)", "sigmoid(u)*(1 + sigmoid(u))"),
        ("sigmoid", "1 - out*out", "the derivative of tanh"),
        ("sigmoid", "(1 - out)*(1 - out)", "(1 - sigmoid(u))^2"),
        ("softplus", "sigmoid(-a)", "sigmoid(-u)"),
        ("softplus", "sigmoid(a)*(1 - sigmoid(a))", "the derivative of sigmoid"),
        ("relu", "out", "relu(u)"),
        ("relu", "less(a, 0)", "1 where u < 0 and 0 where u > 0: the mask is inverted"),
        ("relu", "sign(a)", "sign(u)"),
        ("abs", "less(0, a)", "0 where u < 0 and 1 where u > 0"),
        ("exp", "a*out", "u*exp(u)"),
        ("log", "1/out", "1/log(u)"),
        ("log", "a", "u"),
        ("log", "1/(a*a)", "1/u^2"),
        ("sqrt", "1/out", "1/sqrt(u)"),
        ("sqrt", "0.5*out", "sqrt(u)/2"),
        ("sqrt", "0.5/a", "1/(2*u)"),
        ("sin", "-sin(a)", "-sin(u)"),
        ("cos", "-cos(a)", "-cos(u)"),
        ("tan", "1/cos(a)", "1/cos(u)"),
        ("tan", "1 - out*out", "1 - tan(u)^2"),
        ("tan", "out/cos(a)", "the derivative of sec"),
        ("cot", "-1/sin(a)", "-1/sin(u)"),
        ("coth", "-1/sinh(a)", "-1/sinh(u)"),
        ("coth", "1 + out*out", "1 + coth(u)^2"),
        ("asin", "1/sqrt(1 + a*a)", "1/sqrt(1 + u^2)"),
        ("asin", "1/(1 - a*a)", "1/(1 - u^2)"),
        ("acos", "-1/sqrt(1 + a*a)", "-1/sqrt(1 + u^2)"),
        ("atan", "1/(1 - a*a)", "1/(1 - u^2)"),
        ("atan", "1/sqrt(1 + a*a)", "1/sqrt(1 + u^2)"),
        ("atan", "1/(1 + a)", "1/(1 + u)"),
        ("asec", "1/(a*sqrt(a*a - 1))", "a formula with u instead of |u|"),
        ("acsc", "-1/(a*sqrt(a*a - 1))", "a formula with u instead of |u|"),
        ("acsch", "-1/(a*sqrt(1 + a*a))", "a formula with u instead of |u|"),
    ),
    WrongRule("leaky_relu", ("less(0, a)", ""), DERIVATIVE, "0 where u < 0"),
    WrongRule("leaky_relu", ("where(less(a, 0), -b, 1)", ""), DERIVATIVE,
              "minus the slope parameter where u < 0"),
    WrongRule("max", ("less(a, b)", "less(b, a)"), DERIVATIVE, "the derivative of min"),
    WrongRule("min", ("less(b, a)", "less(a, b)"), DERIVATIVE, "the derivative of max"),
    WrongRule("max", ("0.5", "0.5"), DERIVATIVE, "1/2 for each operand"),
    WrongRule("where", ("", "where(a, 0, 1)", "where(a, 1, 0)"), DERIVATIVE,
              "if its branches were exchanged"),
    WrongRule("where", ("", "1", "0"), DERIVATIVE, "if its first branch were always taken"),
    WrongRule("where", ("", "0", "1"), DERIVATIVE, "if its second branch were always taken"),
    WrongRule("max", ("1", "0"), DERIVATIVE, "if its first operand were always taken"),
    WrongRule("max", ("0", "1"), DERIVATIVE, "if its second operand were always taken"),
    WrongRule("min", ("1", "0"), DERIVATIVE, "if its first operand were always taken"),
    WrongRule("min", ("0", "1"), DERIVATIVE, "if its second operand were always taken"),
    WrongRule("clamp", ("1 - (1 - less(a, b))*(1 - less(c, a))", "", ""), DERIVATIVE,
              "1 outside the bounds and 0 inside: the mask is inverted"),
    WrongRule("gelu", ("0.5*erfc(-0.7071067811865476*a)",), PRODUCT,
              "one of the two terms of its derivative"),
    WrongRule("pow", ("b*a^b", ""), POWER, "n*u^n: the exponent is not decreased by 1"),
    WrongRule("pow", ("a^(b - 1)", ""), POWER, "u^(n - 1): the exponent is missing as a factor"),
    WrongRule("div", ("", "-out"), POWER, "-1/u: the divisor is not squared"),
    WrongRule("pow", ("b*a", ""), POWER, "n*u"),
    WrongRule("pow", ("(b - 1)*a^(b - 1)", ""), POWER, "(n - 1)*u^(n - 1)"),
    WrongRule("pow", ("b*a^(b + 1)", ""), POWER, "n*u^(n + 1): the exponent is raised"),
    WrongRule("pow", ("a^(b + 1)/(b + 1)", ""), POWER, "the antiderivative of u^n"),
    WrongRule("pow", ("out*log(a)", ""), POWER, "u^n*ln(u): the rule for a variable exponent"),
    WrongRule("pow", ("", "b*a^(b - 1)"), EXPONENT, "u*a^(u - 1)"),
    WrongRule("exp", ("a*exp(a - 1)",), EXPONENT, "u*exp(u - 1)"),
    WrongRule("pow", ("", "out"), LOGARITHM, "a^u"),
    WrongRule("pow", ("", "out*log10(a)"), LOGARITHM, "a^u*log10(a)"),
    WrongRule("log2", ("1/a",), LOGARITHM, "1/u"),
    WrongRule("log10", ("1/a",), LOGARITHM, "1/u"),
    WrongRule("log_base", ("1/a", ""), LOGARITHM, "1/u"),
    WrongRule("div", ("-1/b", "out/b"), QUOTIENT, "(f*g' - f'*g)/g^2: the order is wrong"),
    WrongRule("div", ("1/b", "out/b"), QUOTIENT, "(f'*g + f*g')/g^2"),
    WrongRule("div", ("1", "-out"), QUOTIENT, "(f'*g - f*g')/g: the divisor is not squared"),
    WrongRule("div", ("", "-1/(b*b)"), QUOTIENT, "-1/u^2: the numerator is missing"),
    WrongRule("div", ("", "1/b"), QUOTIENT, "1/u"),
    *_create_degree_rules("sin", "cos(a)"),
    *_create_degree_rules("cos", "-sin(a)"),
    *_create_degree_rules("tan", "1/cos(a)^2"),
)  # fmt: skip
