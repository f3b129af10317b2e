"""Every mistake that gradient checks know is made in a submission, and is named."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import pytest

import cgprimer
from cgprimer.course.checks.check_results import Part
from cgprimer.course.checks.mistake_search import MISTAKES
from cgprimer.course.checks.mistakes.wrong_rules import WRONG_RULES, WrongRule
from tests.approval import approved
from tests.checking.planted_mistakes import PLANTED, plant
from tests.checking.submissions import Submission, read_submissions, sample

RIGHT, WRONG = read_submissions("gradient_mistakes.txt")


def check(submission: Submission) -> list[Part]:
    """Return the parts of a submission that are not right."""
    settings = dict(submission.settings)
    graph = cgprimer.parse(settings.pop("graph"))
    function = submission.define()["gradient"]
    result = cgprimer.check_gradient(graph, function, **settings)
    return [part for part in result.parts if part.verdict != "right"]


def test_every_mistake_has_a_submission() -> None:
    rules = {rule.mistake for rule in WRONG_RULES}
    assert {submission.mistake for submission in WRONG} | rules == MISTAKES.keys()


@pytest.mark.parametrize("submission", sample(RIGHT, 4), ids=str)
def test_right_programs_are_not_accused(submission: Submission) -> None:
    assert check(submission) == []


@pytest.mark.parametrize("submission", sample(WRONG, 6), ids=str)
def test_a_mistake_is_named(submission: Submission) -> None:
    wrong = check(submission)
    assert wrong
    assert {part.mistake for part in wrong} == {submission.named}
    for message in dict.fromkeys(part.message for part in wrong):
        approved(message)
        is_likeliest = submission.mistake == submission.named
        assert submission.note in message
        assert is_likeliest or submission.mistake in list_alternatives(message)


def list_alternatives(message: str) -> list[str]:
    """Return the other mistakes that a message lists."""
    return message.partition("other possible mistakes: ")[2].rstrip(")").split(", ")


# --- wrong derivatives of functions ---------------------------------------------------------------

#: The operands of functions in a graph, as text of the language; one operand unless given here.
OPERANDS = {
    "max": "max({u}, {t})",
    "min": "min({u}, {t})",
    "where": "where(less(x, 1), {u}, {t})",
    "clamp": "clamp({u}, -1, 1)",
    "leaky_relu": "leaky_relu({u}, 0.2)",
    "pow": "({u})^3",
    "div": "({u})/({t})",
    "log_base": "log({u}, 3)",
}
VALUES: dict[str, Callable[..., float]] = {
    "max": max,
    "min": min,
    "clamp": lambda u, t: min(max(u, -1), 1),
    "leaky_relu": lambda u, t: u if u > 0 else 0.2 * u,
    "log_base": lambda u, t: math.log(u, 3),
    "relu": lambda u: max(u, 0.0),
    "abs": abs,
    "sigmoid": lambda u: 1 / (1 + math.exp(-u)),
    "softplus": lambda u: math.log1p(math.exp(u)),
    "gelu": lambda u: u * math.erfc(-u / math.sqrt(2)) / 2,
    "cot": lambda u: 1 / math.tan(u),
    "coth": lambda u: 1 / math.tanh(u),
    "asec": lambda u: math.acos(1 / u),
    "acsc": lambda u: math.asin(1 / u),
    "acsch": lambda u: math.asinh(1 / u),
}
#: What sentences that are not formulas mean: the wrong derivative, or one for each operand.
MEANINGS = {
    "tanh: the derivative of sigmoid": "out*(1 - out)",
    "sigmoid: the derivative of tanh": "1 - out**2",
    "softplus: the derivative of sigmoid": "exp(u)/(1 + exp(u))**2",
    "relu: 1 where u < 0 and 0 where u > 0: the mask is inverted": "float(u < 0)",
    "abs: 0 where u < 0 and 1 where u > 0": "float(u > 0)",
    "tan: the derivative of sec": "tan(u)/cos(u)",
    "asec: a formula with u instead of |u|": "1/(u*sqrt(u**2 - 1))",
    "acsc: a formula with u instead of |u|": "-1/(u*sqrt(u**2 - 1))",
    "acsch: a formula with u instead of |u|": "-1/(u*sqrt(1 + u**2))",
    "leaky_relu: 0 where u < 0": "float(u > 0)",
    "leaky_relu: minus the slope parameter where u < 0": "1 if u > 0 else -0.2",
    "max: the derivative of min": "u < t, t < u",
    "min: the derivative of max": "u > t, t > u",
    "max: 1/2 for each operand": "0.5, 0.5",
    "where: if its branches were exchanged": "x >= 1, x < 1",
    "where: if its first branch were always taken": "1, 0",
    "where: if its second branch were always taken": "0, 1",
    "max: if its first operand were always taken": "1, 0",
    "max: if its second operand were always taken": "0, 1",
    "min: if its first operand were always taken": "1, 0",
    "min: if its second operand were always taken": "0, 1",
    "clamp: 1 outside the bounds and 0 inside: the mask is inverted": "not -1 < u < 1",
    "gelu: one of the two terms of its derivative": "erfc(-u/sqrt(2))/2",
    "pow: the antiderivative of u^n": "u**4/4",
    "pow: u^n*ln(u): the rule for a variable exponent": "u**3*log(u) if u > 0 else nan",
    "div: (f*g' - f'*g)/g^2: the order is wrong": "-1/t, u/t**2",
    "div: (f'*g + f*g')/g^2": "1/t, u/t**2",
    "div: (f'*g - f*g')/g: the divisor is not squared": "1, -u/t",
    "div: -1/u^2: the numerator is missing": "1/t, -1/t**2",
    "div: 1/u": "1/t, 1/t",
}
#: Wrong derivatives that equal those of a likelier mistake: 1/log(u) is 1/u at u = log(u).
LIKELIER = {
    "log: 1/log(u)": "derivative at the wrong point",
    "sqrt: 1/(2*u)": "inner function not evaluated",
}
DERIVATIVES = {"sin": "cos({})", "cos": "-sin({})", "tan": "1/cos({})**2"}
DEGREES = {
    "if u were in degrees": ("radians(u)", 1.0),
    "if u were in degrees, only in the backward pass": ("radians(u)", 1.0),
    "if it had a factor pi/180": ("u", math.pi / 180),
    "if u were converted to degrees": ("degrees(u)", 1.0),
}


def read_meaning(rule: WrongRule) -> str:
    """Return the wrong derivative of a rule, in Python, as its message states it to students."""
    key = f"{rule.primitive}: {rule.message}"
    if rule.primitive in DERIVATIVES and rule.message in DEGREES:
        place, factor = DEGREES[rule.message]
        if rule.value and "*(" in rule.partials[0][:25]:  # the derivative of sin(pi*u/180)
            factor = math.pi / 180
        return f"{factor}*({DERIVATIVES[rule.primitive].format(place)})"
    formula = rule.message.partition(":")[0].replace("^", "**").replace("ln(", "log(")
    if rule.primitive == "pow":  # the operand is the base of a cube, or the exponent of 2
        formula = re.sub(r"\bn\b", "3", re.sub(r"\ba\b", "2", formula))
    return MEANINGS.get(key, formula)


def student(rule: WrongRule) -> tuple[str, Callable[..., dict[str, float]]]:
    """Return a graph with a function, and a gradient that uses a wrong derivative of it."""
    primitive, meaning = rule.primitive, read_meaning(rule)
    text = OPERANDS.get(primitive, primitive + "({u})")
    if primitive == "pow" and rule.positions == (1,):
        text = "2^({u})"
    if primitive == "div" and rule.mistake == "power rule":
        text = "1/({u})"
    graph = (
        "input x = 0.7; parameter w = 0.8, b = 0.3, v = 1.5, q = 1.2; "
        f"h = {text.format(u='w*x + b', t='q*x - w')}; y = v*h + w*q; output y"
    )

    def gradient(x: float, w: float, b: float, v: float, q: float) -> dict[str, float]:
        u, t = w * x + b, q * x - w
        values = {"pow": u**3 if "^3" in text else 2**u, "div": u / t if "{t}" in text else 1 / u}
        values["where"] = u if x < 1 else t
        number = math.radians(u) if rule.value else u
        if primitive in values:
            out = values[primitive]
        elif "{t}" in text or primitive in ("clamp", "leaky_relu", "log_base"):
            out = VALUES[primitive](u, t)
        else:
            out = VALUES.get(primitive, vars(math).get(primitive, abs))(number)
        names = {**vars(math), **VALUES, "u": u, "t": t, "x": x, "out": out}
        names["sign"] = lambda value: math.copysign(1, value)
        slopes = eval(meaning, names)  # noqa: S307
        du, dt = slopes if isinstance(slopes, tuple) else (slopes, 0.0)
        return {
            "w": v * (du * x - dt) + q,
            "b": v * du,
            "v": out,
            "q": v * dt * x + w,
        }

    return graph, gradient


@pytest.mark.parametrize(
    "rule", sample(WRONG_RULES, 9), ids=lambda r: f"{r.primitive}: {r.message}"
)
def test_a_wrong_derivative_of_a_function_is_named(rule: WrongRule) -> None:
    graph, gradient = student(rule)
    result = cgprimer.check_gradient(cgprimer.parse(graph), gradient)
    wrong = [part for part in result.parts if part.mistake]
    assert wrong
    named = LIKELIER.get(f"{rule.primitive}: {rule.message}", rule.mistake)
    assert {part.mistake for part in wrong} == {named}, [str(part) for part in wrong]
    for part in wrong:
        listed = rule.mistake in list_alternatives(part.message)
        assert rule.message in part.message if named == rule.mistake else listed


# --- many graphs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mistake", sample([*PLANTED], 5))
@pytest.mark.parametrize("count", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_a_mistake_is_named_in_random_graphs(mistake: str, count: int) -> None:
    missed = [part for parts in plant(mistake, count) for part in parts
              if mistake not in (part.mistake, *list_alternatives(part.message))]  # fmt: skip
    assert len(missed) <= count // 20, missed
