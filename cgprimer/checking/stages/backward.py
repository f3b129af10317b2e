"""Stages 4 to 6: gradients that flow back through the graph, add up, and are zeroed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cgprimer.checking.results import Failure, Part
from cgprimer.checking.stages.graphs import explained
from cgprimer.checking.stages.stage import Case, Stage, close, doubtful, failed, right, wrong
from cgprimer.checking.stages.values import (
    COMPOUND,
    DIAMOND,
    LECTURE,
    LONG,
    SINGLE,
    SQUARE,
    long_part,
)
from cgprimer.core.graph import parse
from cgprimer.errors import listed

# --- 4: reverse -----------------------------------------------------------------------------------

_WRONG = {  # of a derivative by an operand, in the language: what is out of it, and in what way
    "div": (("b", 0, "the operand itself instead of its reciprocal"),
            ("1/b^2", 0, "a square too many"),
            ("-a/b", 1, "the square of the denominator is missing"),
            ("1/b", 1, "the other operand's"),
            ("1/a", 1, "numerator and denominator are confused")),
    "pow": (("a^(b - 1)", 0, "the exponent is missing as a factor"),
            ("b*a^b", 0, "the exponent is not lowered"), ("b*a", 0, "the power is left out")),
    "exp": (("a*exp(a)", 0, "it is the power's rule"),
            ("a*exp(a - 1)", 0, "it is the power's rule")),
    "log": (("1/log(a)", 0, "taken of the result instead of the operand"),
            ("log(a)", 0, "the value instead of the derivative")),
    "sin": (("-cos(a)", 0, "the sign"), ("sin(a)", 0, "the value instead of the derivative")),
    "tanh": (("1 - tanh(a)", 0, "the square is missing"),
             ("1 - a^2", 0, "taken of the operand instead of the result"),
             ("1 - tanh(tanh(a))^2", 0, "tanh is applied twice"),
             ("tanh(a)*(1 - tanh(a))", 0, "it is the sigmoid's"), ("1 + tanh(a)^2", 0, "the sign")),
    "mul": (("a", 0, "the operand itself instead of the other one"),
            ("b", 1, "the operand itself instead of the other one")),
}  # fmt: skip
_TREE = Case("e = tanh(a*b - c)/exp(d)", {"a": 0.5, "b": -1.5, "c": 0.25, "d": 0.5})
_COMPOUNDS = (_TREE, Case("y = 1/(exp(-z) + 1)", {"z": 1.5}))


def _fourth(answers: Sequence[Any]) -> list[Part]:
    single = list(zip(SINGLE.items(), answers, strict=False))
    parts = [_local(single)]
    compound = answers[len(SINGLE) :]
    known = _common(_COMPOUNDS, compound)
    rule = _gradient_part("the chain rule", 3, _COMPOUNDS, compound, known)
    if rule.verdict == "wrong" and not rule.mistake and parts[0].verdict == "wrong":
        rule = replace(rule, message="wrong, as a local derivative is")
    return [*parts, rule]


def _local(single: Sequence[Any]) -> Part:
    """The derivatives of single operations."""
    name, points = "local derivatives", 4
    failure = next((a for _, a in single if isinstance(a, Failure)), None)
    if failure:
        return failed(name, points, failure)
    if all(all(grad == 0 for grad in a["grads"]) for _, a in single):
        says = "nothing flows: the gradient of the result by itself is 1"
        return wrong(name, points, "seed missing", says)
    bad: dict[str, str] = {}
    made: dict[str, str] = {}  # of others, as a - b of a + -b: they are wrong where those are
    for (text, case), answer in single:
        if not close(answer["grads"], case.gradient):
            composed = sum(bool(node["parents"]) for node in answer["nodes"]) > 1
            found = _explanations(case, answer) if composed else {}
            if found and not bad:
                return wrong(name, points, *next(iter(found.items())), text)
            how = _how(text, case, answer["grads"])
            (made if composed else bad).setdefault(case.tape.instructions[-1].primitive, how)
    bad = bad or made
    if not bad:
        return right(name, points)
    mistake = "wrong derivative of " + ", ".join(bad)
    return wrong(name, points, mistake, "; ".join(f"{op}: {how}" for op, how in bad.items()))


def _how(text: str, case: Case, grads: Sequence[Any]) -> str:
    """In what way the derivatives of one operation are wrong."""
    op = case.tape.instructions[-1].primitive
    expected = case.gradient
    if len(grads) == 2 and close(list(grads), expected[::-1]) and expected[0] != expected[1]:
        return "the derivatives of the two operands are swapped"
    for place, (grad, good) in enumerate(zip(grads, expected, strict=True)):
        which = f" by the {'first' if place == 0 else 'second'} operand" if len(grads) > 1 else ""
        if close(grad, good):
            continue
        if not isinstance(grad, float):
            return f"grad is {grad}, not a number"
        if grad == 0:
            return f"nothing flows back{which}"
        if close(grad, -good):
            return f"the sign{which}"
        at = {
            **case.at,
            "b": 3.0 if text == "a^3" else -1.0 if op == "pow" else case.at.get("b", 0),
        }
        for formula, where, says in _WRONG.get(op, ()):
            graph = parse(f"xw = {formula}; input a, b; output xw")
            if where == place and close(grad, float(graph.evaluate(at)["xw"])):
                return says + which
        if close(grad, case.values[-1]):
            return f"the value instead of the derivative{which}"
        if grad == 1:
            return f"the local derivative is left out{which}"
        return f"wrong{which}"
    return "wrong"


def _gradient_part(
    name: str, points: float, cases: Sequence[Case], answers: Sequence[Any], known: str = ""
) -> Part:
    """The gradients of expressions, and what it looks like where they are wrong.

    ``known`` is the mistake that explains more than these.
    """
    for case, answer in zip(cases, answers, strict=True):
        if isinstance(answer, Failure):
            return failed(name, points, answer, case.text)
        if close(answer["grads"], case.gradient):
            continue
        found = _explanations(case, answer)
        mistake = known if known in found else next(iter(found), "")
        pairs = zip(case.names, answer["grads"], case.gradient, strict=True)
        bad = [n for n, value, good in pairs if not close(value, good)]
        where = f"{case}: wrong by {listed(bad)}"
        return wrong(name, points, mistake, found.get(mistake, "the gradient is wrong"), where)
    return right(name, points)


def _explanations(case: Case, answer: Any) -> dict[str, str]:
    at, grads = answer["at"], answer["grads"]
    by_node = {at[k]: grad for k, grad in enumerate(grads) if at[k] >= 0}
    if not all(isinstance(grad, float) for grad in grads):
        return {}
    return explained(answer["nodes"], by_node, answer.get("order", ()))


def _common(cases: Sequence[Case], answers: Sequence[Any]) -> str:
    """The mistake that gives all of these gradients, the right ones included."""
    pairs = [pair for pair in zip(cases, answers, strict=True) if not isinstance(pair[1], Failure)]
    if all(close(answer["grads"], case.gradient) for case, answer in pairs):
        return ""
    found = [_explanations(case, answer) for case, answer in pairs]
    return next((name for name in found[0] if all(name in one for one in found)), "")


REVERSE = Stage(
    4,
    "reverse",
    ("Value",),
    (
        *(case.asked("built", "backward") for case in SINGLE.values()),
        *(case.asked("built", "backward") for case in _COMPOUNDS),
    ),
    _fourth,
    {"local derivatives": 4, "the chain rule": 3},
)

# --- 5: accumulation ------------------------------------------------------------------------------

_SHARED = {
    "values used twice": (
        Case("c = a + a", {"a": 3.0}),
        SQUARE,
        Case("y = x*x*x", {"x": 3.0}),
        Case("e = (a + b)*d", {"a": 3.0, "b": 2.0, "d": 1.0}),
    ),
    "inner values used twice": (
        Case("b = a + a; c = b + b", {"a": 3.0}),
        COMPOUND,
        Case("b = a*a; c = b*b; d = c*b + a", {"a": 1.5}),
        DIAMOND,
    ),
    "several paths": (
        LECTURE,
        Case("b = w1*a; c = w2*a; d = w3*b + w4*c; L = 10 - d",
             {"a": 2.0, "w1": 3.0, "w2": -1.0, "w3": 0.5, "w4": 4.0}),
    ),
}  # fmt: skip


def _fifth(answers: Sequence[Any]) -> list[Part]:
    parts, at = [], 0
    every = [case for cases in _SHARED.values() for case in cases]
    known = _common(every, answers[: len(every)])
    for name, cases in _SHARED.items():
        parts.append(_gradient_part(name, 2, cases, answers[at : at + len(cases)], known))
        at += len(cases)
    return [*parts, long_part("a long chain", 1, answers[-1])]


ACCUMULATION = Stage(
    5,
    "accumulation",
    ("Value",),
    (
        *(case.asked("built", "backward") for cases in _SHARED.values() for case in cases),
        {"call": "chain", "arguments": [LONG, "backward"]},
    ),
    _fifth,
    {**dict.fromkeys(_SHARED, 2), "a long chain": 1},
)

# --- 6: zeroing -----------------------------------------------------------------------------------

_PLAIN = Case("b = a*c + a; d = b*b", {"a": 1.5, "c": -0.5})


def _sixth(answers: Sequence[Any]) -> list[Part]:
    names = {"gradients are zero": 2, "a second pass": 2, "without zeroing": 2}
    (answer,) = answers
    if isinstance(answer, Failure):
        return [failed(name, points, answer) for name, points in names.items()]
    expected = _PLAIN.gradient
    double = [2 * value for value in expected]
    zero, second, without = names.items()
    data = [float(_PLAIN.at[n]) for n in _PLAIN.names]
    parts = [right(*zero), right(*second), right(*without)]
    if not close(answer["zeroed"], [0.0, 0.0]):
        mistake = "gradients not zeroed"
        says = "the gradients are still there"
        if any(isinstance(value, str) for value in answer["zeroed"]):
            mistake, says = "gradient is no number", "grad is to be 0.0, so that it can be added to"
        elif any(value == 0 for value in answer["zeroed"]):
            says = "some gradients are still there"
        parts[0] = wrong(*zero, mistake, says)
    elif answer["data"] != data:
        parts[0] = wrong(*zero, "data zeroed", "the data have changed; only grad is to be 0")
    if close(answer["second"], double):
        says = "the gradient of the second pass has the first in it"
        parts[1] = wrong(*second, "gradients not zeroed", says)
    elif not close(answer["second"], expected):
        parts[1] = wrong(*second, "", "the gradient after zeroing and a second pass is wrong")
    if close(answer["unzeroed"], expected):
        says = "backward forgets what earlier passes left: nothing can be added up over samples"
        parts[2] = doubtful(*without, "backward zeroes", says)
    elif not close(answer["unzeroed"], double) and parts[1].verdict == "right":
        says = "two passes are to add up"
        parts[2] = wrong(*without, "passes do not add up", says)
    elif not any(close(answer["again"], one) for one in (double, expected)):
        says = "backward twice on one graph counts what the first pass left in inner values"
        parts[2] = doubtful(*without, "inner gradients kept", says)
    return parts


ZEROING = Stage(
    6,
    "zeroing",
    ("Value", "zero_grad"),
    (_PLAIN.asked("zeroed"),),
    _sixth,
    {"gradients are zero": 2, "a second pass": 2, "without zeroing": 2},
)
