"""Stages 4 to 6: gradients that flow back through the graph, add up, and are zeroed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from cgprimer.core.language.syntax_tree import operator_name
from cgprimer.course.checks.check_results import Failure, Part
from cgprimer.course.checks.stages.backward_mistakes import Explanations, explain_gradients
from cgprimer.course.checks.stages.stage import Case, Stage, Task, close, of_cases
from cgprimer.course.checks.stages.stage_diagnosis import Finding, finding
from cgprimer.course.checks.stages.value_stages import (
    COMPOUND,
    DIAMOND,
    LECTURE,
    SINGLE,
    SQUARE,
    long_chain,
)
from cgprimer.course.checks.verdicts import doubtful, noted, right, wrong
from cgprimer.errors import join_names
from cgprimer.expressions import parse

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
    "log": (("1/log(a)", 0, "taken of the result instead of the operand"),),
    "tanh": (("1 - tanh(a)", 0, "the square is missing"),
             ("1 - a^2", 0, "taken of the operand instead of the result"),
             ("1 - tanh(tanh(a))^2", 0, "tanh is applied twice"),
             ("tanh(a)*(1 - tanh(a))", 0, "it is the sigmoid's"), ("1 + tanh(a)^2", 0, "the sign")),
    "mul": (("a", 0, "the operand itself instead of the other one"),
            ("b", 1, "the operand itself instead of the other one")),
}  # fmt: skip
_TREE = Case("e = tanh(a*b - c)/exp(d)", {"a": 0.5, "b": -1.5, "c": 0.25, "d": 0.5})
_COMPOUNDS = (_TREE, Case("y = 1/(exp(-z) + 1)", {"z": 1.5}))


def _local(answers: Sequence[Any]) -> Finding:
    """Judge the derivatives of single operations.

    A mistake of the whole pass explains every wrong answer; only otherwise are derivatives wrong.
    """
    pairs = list(zip(SINGLE, answers, strict=True))
    bad = [(case, a) for case, a in pairs if not close(a["grads"], case.gradient)]
    if not bad:
        return finding(right())
    if not any(_finite(a["grads"]) for _, a in bad):
        says = "after a pass, grad is not a finite number"
        return finding(wrong("gradient is no number", says))
    own = [_explanations(*pair).matching for pair in bad]
    for fitting in own:
        fitting.pop("another graph", "")  # which operation makes it is reported instead
    causes = _shared(own)
    if causes:
        mistake, says = next(iter(causes.items()))
        return finding(wrong(mistake, says), causes)
    single = [pair for pair in bad if not _composed(pair[1])]
    for (case, _), fitting in zip(bad, () if single else own, strict=False):
        if fitting:
            mistake, says = next(iter(fitting.items()))
            return finding(wrong(mistake, says, case.text.removeprefix("c = ")), fitting)
    named: dict[str, str] = {}
    for case, answer in single or bad:
        named.setdefault(
            operator_name(case.tape.instructions[-1].primitive), _how(case, answer["grads"])
        )
    says = "; ".join(f"{op}: {how}" for op, how in named.items())
    if len(named) == len({operator_name(case.tape.instructions[-1].primitive) for case in SINGLE}):
        return finding(wrong("", f"wrong for every operation, so look at backward itself: {says}"))
    return finding(wrong("wrong derivative of " + ", ".join(named), says))


def _composed(answer: Any) -> bool:
    """Return whether an operation is made of others, as a - b of a + (-b)."""
    return sum(bool(node["parents"]) for node in answer["nodes"]) > 1


def _shared(explanations: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the mistakes that explain every answer, the earliest cause first."""
    first, *others = explanations
    return {name: says for name, says in first.items() if all(name in one for one in others)}


def _how(case: Case, grads: Sequence[Any]) -> str:
    """In what way the derivatives of one operation are wrong."""
    op = operator_name(case.tape.instructions[-1].primitive)
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
        # The second operand may be a constant: an exponent.
        at = {"b": next((one.value for one in case.tape.leaves if one.kind == "constant"), 0.0)}
        at |= case.at
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


def _gradients(
    name: str, points: float, cases: Sequence[Case], others: Sequence[Case] = ()
) -> Task:
    """A part about gradients of expressions, and what it looks like where they are wrong.

    The mistake that is named explains them all, and those of other parts, if one does.
    """
    others = [case for case in others if case not in cases]

    def judged(answers: Sequence[Any]) -> Finding:
        pairs = list(zip((*cases, *others), answers, strict=True))
        bad = [p for p in pairs[: len(cases)] if not close(p[1]["grads"], p[0].gradient)]
        if not bad:
            return finding(right())
        case, answer = bad[0]
        own = [_explanations(*pair).matching for pair in bad]
        read = [_explanations(*pair) for pair in pairs if not isinstance(pair[1], Failure)]
        refuted = {name for one in read for name in one.refuted}
        causes = _shared(own) or own[0]
        causes = {n: says for n, says in causes.items() if n not in refuted} or causes
        mistake, says = next(iter(causes.items()), ("", "the gradient is wrong"))
        grads = zip(case.names, answer["grads"], case.gradient, strict=True)
        where = f"{case}: wrong by {join_names([n for n, v, good in grads if not close(v, good)])}"
        return finding(wrong(mistake, says, where), causes)

    asks, beside = (
        tuple(case.asked("built", "backward") for case in some) for some in (cases, others)
    )
    return Task(name, points, asks, judged, beside)


def _explanations(case: Case, answer: Any) -> Explanations:
    at, grads = answer["at"], answer["grads"]
    if not _finite(grads):
        return Explanations({})
    by_node = {at[k]: grad for k, grad in enumerate(grads) if at[k] >= 0}
    return explain_gradients(answer["nodes"], by_node, answer.get("order", ()))


REVERSE = Stage(4, "reverse", ("Value",), (
    Task("local derivatives", 4, tuple(c.asked("built", "backward") for c in SINGLE), _local),
    _gradients("the chain rule", 3, _COMPOUNDS),
), (2, 3, 4))  # fmt: skip

# --- 5: accumulation ------------------------------------------------------------------------------

_USES = ("a^3", "exp(a)", "log(a)", "sin(a)", "tanh(a)", "relu(a)", "(-a)", "a")
_PAIRS = ("(b - a)", "a/b", "(a - b)", "b/a")
_SHARED = {
    "values used twice": (
        Case("c = a + a", {"a": 3.0}),
        SQUARE,
        Case("y = x*x*x", {"x": 3.0}),
        Case("e = (a + b)*d", {"a": 3.0, "b": 2.0, "d": 1.0}),
        # Of each operation one use is not the first that reaches a, in one order or the other.
        *(Case(f"y = {' + '.join(terms)}", {"a": 1.25}) for terms in (_USES, _USES[::-1])),
        *(
            Case(f"y = {'*'.join(terms)}", {"a": 1.25, "b": -0.5})
            for terms in (_PAIRS, _PAIRS[::-1])
        ),
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


_EVERY = [case for cases in _SHARED.values() for case in cases]
ACCUMULATION = Stage(5, "accumulation", ("Value",), (
    *(_gradients(name, 2, cases, _EVERY) for name, cases in _SHARED.items()),
    long_chain("backward"),
), (2, 3, 4, 5))  # fmt: skip

# --- 6: zeroing -----------------------------------------------------------------------------------


def _zero(case: Case, answer: Any) -> Part:
    zeroed = answer["zeroed"]
    if any(isinstance(value, str) for value in zeroed):
        return wrong("gradient is no number", "grad is to be 0.0, so that it can be added to")
    if not close(zeroed, [0.0, 0.0]):
        which = "some" if 0 in zeroed else "the"
        return wrong("gradients not zeroed", f"{which} gradients are still there")
    if answer["data"] != [case.at[n] for n in case.names]:
        return wrong("data zeroed", "the data have changed; only grad is to be 0")
    return right()


def _finite(values: Sequence[Any]) -> bool:
    return all(isinstance(value, float) and isfinite(value) for value in values)


def _second(case: Case, answer: Any) -> Finding:
    """Judge the pass after zeroing, compared with what a first pass leaves."""
    if close(answer["second"], case.gradient):
        return finding(right())
    first = answer["first"]["grads"]
    if not (_finite(first) and _finite(answer["second"])):
        return finding(wrong("gradient is no number", "after a pass, grad is not a finite number"))
    if close(answer["second"], _double(first)) and any(first):
        says = "the gradient of the second pass has the first in it"
        return finding(wrong("gradients not zeroed", says))
    if not close(first, case.gradient):
        causes = _explanations(case, answer["first"]).matching
        mistake, says = next(iter(causes.items()), ("", "backward computes a wrong gradient"))
        return finding(wrong(mistake, f"wrong in the first pass already: {says}"), causes)
    return finding(wrong("", "the gradient after zeroing and a second pass is wrong"))


def _without(case: Case, answer: Any) -> Part:
    first, second, unzeroed = answer["first"]["grads"], answer["second"], answer["unzeroed"]
    if not _finite(first) or not any(first):
        return wrong("", "a pass leaves no gradient that could be added up")
    if close(unzeroed, first):
        says = "backward forgets what earlier passes left: nothing can be added up over samples"
        return doubtful("backward zeroes", says)
    if not close(unzeroed, _double(first)) and close(second, first):
        return wrong("passes do not add up", "the gradients of two passes must add up")
    if not any(close(answer["again"], one) for one in (_double(first), first)):
        says = "backward twice on one graph counts what the first pass left in inner values"
        return noted("inner gradients kept", says)
    return right()


def _double(gradient: Sequence[float]) -> list[float]:
    return [2 * value for value in gradient]


_PLAIN = Case("b = a*c + a; d = b*b", {"a": 1.5, "c": -0.5})
ZEROING = Stage(6, "zeroing", ("Value", "zero_grad"), (
    of_cases("gradients are zero", 2, [_PLAIN], _zero, "zeroed"),
    of_cases("a second pass", 2, [_PLAIN], _second, "zeroed"),
    of_cases("without zeroing", 2, [_PLAIN], _without, "zeroed"),
), (2, 3, 4, 5, 6))  # fmt: skip
