"""Stages 4 to 6: backward passes, accumulated gradients, and zeroing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from cgprimer.core.language.syntax_tree import operator_name
from cgprimer.course.checks.check_results import Failure, Part
from cgprimer.course.checks.stages.backward_mistakes import Explanations, explain_gradients
from cgprimer.course.checks.stages.stage import Case, Stage, Task, build_task, is_close
from cgprimer.course.checks.stages.stage_diagnosis import Finding, create_finding
from cgprimer.course.checks.stages.value_stages import (
    COMPOUND,
    DIAMOND,
    LECTURE,
    SINGLE_OPERATIONS,
    SQUARE,
    build_long_chain_task,
)
from cgprimer.course.checks.verdicts import accept, accept_with_note, reject, suspect
from cgprimer.errors import join_names
from cgprimer.expressions import parse

# --- 4: reverse -----------------------------------------------------------------------------------

#: Wrong partial derivatives of each operation: formula, position of the operand, explanation.
_WRONG_PARTIALS = {
    "div": (("b", 0, "this is the denominator instead of its reciprocal"),
            ("1/b^2", 0, "the denominator must not be squared"),
            ("-a/b", 1, "the square of the denominator is missing"),
            ("1/b", 1, "this is the derivative with respect to the other operand"),
            ("1/a", 1, "numerator and denominator are swapped")),
    "pow": (("a^(b - 1)", 0, "the factor b of b*a^(b - 1) is missing"),
            ("b*a^b", 0, "the exponent is not decreased by 1"), ("b*a", 0, "the power is missing")),
    "exp": (("a*exp(a)", 0, "the power rule does not apply to exp"),
            ("a*exp(a - 1)", 0, "the power rule does not apply to exp")),
    "log": (("1/log(a)", 0, "evaluated at the result instead of the operand"),),
    "tanh": (("1 - tanh(a)", 0, "the square is missing"),
             ("1 - a^2", 0, "evaluated at the operand instead of the result"),
             ("1 - tanh(tanh(a))^2", 0, "tanh is applied twice"),
             ("tanh(a)*(1 - tanh(a))", 0, "this is the derivative of sigmoid"),
             ("1 + tanh(a)^2", 0, "wrong sign")),
    "mul": (("a", 0, "this is the operand itself instead of the other operand"),
            ("b", 1, "this is the operand itself instead of the other operand")),
}  # fmt: skip
_TREE = Case("e = tanh(a*b - c)/exp(d)", {"a": 0.5, "b": -1.5, "c": 0.25, "d": 0.5})
_CHAIN_RULE = (_TREE, Case("y = 1/(exp(-z) + 1)", {"z": 1.5}))


def _judge_single_operations(answers: Sequence[Any]) -> Finding:
    """Judge a student's derivatives of single operations.

    A mistake of the whole pass that explains every wrong answer is preferred to wrong derivatives
    of several operations.
    """
    pairs = list(zip(SINGLE_OPERATIONS, answers, strict=True))
    incorrect = [(case, a) for case, a in pairs if not is_close(a["grads"], case.gradient)]
    if not incorrect:
        return create_finding(accept())
    if not any(_are_finite(a["grads"]) for _, a in incorrect):
        message = "after a backward pass, grad must be a finite number"
        return create_finding(reject("gradient is not a number", message))
    explanations = [_explain_gradients(answer).matching for _, answer in incorrect]
    for matching in explanations:
        matching.pop("another graph", "")  # the operation that causes it is reported instead
    causes = _select_common_mistakes(explanations)
    if causes:
        mistake, message = next(iter(causes.items()))
        return create_finding(reject(mistake, message), causes)
    single = [pair for pair in incorrect if not _is_composed(pair[1])]
    for (case, _), matching in zip(incorrect, () if single else explanations, strict=False):
        if matching:
            mistake, message = next(iter(matching.items()))
            part = reject(mistake, message, case.text.removeprefix("c = "))
            return create_finding(part, matching)
    return create_finding(_report_wrong_operations(single or incorrect))


def _report_wrong_operations(incorrect: Sequence[tuple[Case, Any]]) -> Part:
    """Return the verdict on wrong derivatives of single operations."""
    reasons: dict[str, str] = {}
    for case, answer in incorrect:
        reasons.setdefault(_name_operation(case), _explain_partials(case, answer["grads"]))
    message = "; ".join(f"{operation}: {reason}" for operation, reason in reasons.items())
    if len(reasons) == len({_name_operation(case) for case in SINGLE_OPERATIONS}):
        return reject("", f"every operation is wrong, so check backward itself: {message}")
    return reject("wrong derivative of " + ", ".join(reasons), message)


def _name_operation(case: Case) -> str:
    """Return the name of the last operation of a case."""
    return operator_name(case.tape.instructions[-1].primitive)


def _is_composed(answer: Any) -> bool:
    """Return whether a student composes an operation from others, such as a - b = a + (-b)."""
    return sum(bool(node["parents"]) for node in answer["nodes"]) > 1


def _select_common_mistakes(explanations: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the mistakes that explain every answer, the earliest cause first."""
    first, *others = explanations
    return {
        mistake: message
        for mistake, message in first.items()
        if all(mistake in other for other in others)
    }


def _explain_partials(case: Case, grads: Sequence[Any]) -> str:
    """Explain in a few words which partial derivative of an operation is wrong, and why."""
    expected = case.gradient
    if len(grads) == 2 and is_close(list(grads), expected[::-1]) and expected[0] != expected[1]:
        return "the derivatives with respect to the two operands are swapped"
    for position, (grad, correct) in enumerate(zip(grads, expected, strict=True)):
        if not is_close(grad, correct):
            reason = _explain_partial(case, position, grad)
            is_number = isinstance(grad, float)
            operand = f" ({'first' if position == 0 else 'second'} operand)"
            return reason + operand if len(grads) > 1 and is_number else reason
    return "the derivative is wrong"


def _explain_partial(case: Case, position: int, grad: Any) -> str:
    """Explain a wrong partial derivative in a few words.

    Args:
        case: a single operation.
        position: the position of the operand.
        grad: the student's derivative with respect to the operand.
    """
    if not isinstance(grad, float):
        return f"grad must be a number, got {grad}"
    if grad == 0:
        return "the gradient of the operand is 0"
    if is_close(grad, -case.gradient[position]):
        return "wrong sign"
    constants = [leaf.value for leaf in case.tape.leaves if leaf.kind == "constant"]
    at = {"b": constants[0] if constants else 0.0} | dict(case.at)  # an exponent is a constant
    for formula, operand, explanation in _WRONG_PARTIALS.get(_name_operation(case), ()):
        graph = parse(f"xw = {formula}; input a, b; output xw")
        if operand == position and is_close(grad, float(graph.evaluate(at)["xw"])):
            return explanation
    if is_close(grad, case.values[-1]):
        return "this is the value instead of the derivative"
    if grad == 1:
        return "the local derivative is missing"
    return "the derivative is wrong"


def _build_gradient_task(
    name: str, points: float, cases: Sequence[Case], further_cases: Sequence[Case] = ()
) -> Task:
    """Build a task about the gradients of expressions.

    Args:
        name: the name of the task.
        points: the points for correct gradients.
        cases: the expressions that are judged.
        further_cases: expressions of other tasks; a mistake that they refute is not named.
    """
    further_cases = [case for case in further_cases if case not in cases]

    def judge(answers: Sequence[Any]) -> Finding:
        """Judge the gradients, and name a mistake that explains all wrong ones if possible."""
        pairs = list(zip((*cases, *further_cases), answers, strict=True))
        incorrect = [
            (case, answer)
            for case, answer in pairs[: len(cases)]
            if not is_close(answer["grads"], case.gradient)
        ]
        if not incorrect:
            return create_finding(accept())
        case, answer = incorrect[0]
        explained = {
            case: _explain_gradients(answer)
            for case, answer in pairs
            if not isinstance(answer, Failure)
        }
        matching = [explained[case].matching for case, _ in incorrect]
        refuted = {mistake for one in explained.values() for mistake in one.refuted}
        causes = _select_common_mistakes(matching) or matching[0]
        causes = {m: message for m, message in causes.items() if m not in refuted} or causes
        mistake, message = next(iter(causes.items()), ("", "the gradient is wrong"))
        grads = zip(case.names, answer["grads"], case.gradient, strict=True)
        names = join_names([n for n, grad, correct in grads if not is_close(grad, correct)])
        where = f"{case}: wrong derivative with respect to {names}"
        return create_finding(reject(mistake, message, where), causes)

    calls, further_calls = (
        tuple(case.call("build_values", "backward") for case in group)
        for group in (cases, further_cases)
    )
    return Task(name, points, calls, judge, further_calls)


def _explain_gradients(answer: Any) -> Explanations:
    """Return the mistakes that explain a student's gradients of one expression."""
    at, grads = answer["at"], answer["grads"]
    if not _are_finite(grads):
        return Explanations({})
    by_node = {at[k]: grad for k, grad in enumerate(grads) if at[k] >= 0}
    return explain_gradients(answer["nodes"], by_node, answer.get("order", ()))


REVERSE = Stage(4, "reverse", ("Value",), (
    Task("local derivatives", 4,
         tuple(case.call("build_values", "backward") for case in SINGLE_OPERATIONS),
         _judge_single_operations),
    _build_gradient_task("the chain rule", 3, _CHAIN_RULE),
), (2, 3, 4))  # fmt: skip

# --- 5: accumulation ------------------------------------------------------------------------------

_USES = ("a^3", "exp(a)", "log(a)", "sin(a)", "tanh(a)", "relu(a)", "(-a)", "a")
_PAIRS = ("(b - a)", "a/b", "(a - b)", "b/a")
_REPEATED = {
    "values used twice": (
        Case("c = a + a", {"a": 3.0}),
        SQUARE,
        Case("y = x*x*x", {"x": 3.0}),
        Case("e = (a + b)*d", {"a": 3.0, "b": 2.0, "d": 1.0}),
        # In one of the two orders, the use by each operation is not the first that reaches a.
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


_ALL_REPEATED = [case for cases in _REPEATED.values() for case in cases]
ACCUMULATION = Stage(5, "accumulation", ("Value",), (
    *(_build_gradient_task(name, 2, cases, _ALL_REPEATED) for name, cases in _REPEATED.items()),
    build_long_chain_task("backward"),
), (2, 3, 4, 5))  # fmt: skip

# --- 6: zeroing -----------------------------------------------------------------------------------


def _judge_zeroed(case: Case, answer: Any) -> Part:
    """Judge whether zeroing sets the gradients of leaves to 0 and keeps their data."""
    zeroed = answer["zeroed"]
    if any(isinstance(value, str) for value in zeroed):
        return reject("gradient is not a number", "grad must be 0.0 after zeroing")
    if not is_close(zeroed, [0.0, 0.0]):
        which = "some" if 0 in zeroed else "the"
        return reject("gradients not zeroed", f"{which} gradients are not 0 after zeroing")
    if answer["data"] != [case.at[n] for n in case.names]:
        return reject("data zeroed", "data has changed; zero_grad must only set grad to 0")
    return accept()


def _are_finite(values: Sequence[Any]) -> bool:
    """Return whether all values are finite floats."""
    return all(isinstance(value, float) and isfinite(value) for value in values)


def _judge_second_pass(case: Case, answer: Any) -> Finding:
    """Judge the gradients of a second backward pass, after zeroing the gradients of the first."""
    if is_close(answer["second"], case.gradient):
        return create_finding(accept())
    first = answer["first"]["grads"]
    if not (_are_finite(first) and _are_finite(answer["second"])):
        message = "after a backward pass, grad must be a finite number"
        return create_finding(reject("gradient is not a number", message))
    if is_close(answer["second"], _double_gradient(first)) and any(first):
        message = "the gradient of the second pass includes that of the first pass"
        return create_finding(reject("gradients not zeroed", message))
    if not is_close(first, case.gradient):
        causes = _explain_gradients(answer["first"]).matching
        mistake, message = next(iter(causes.items()), ("", "backward computes a wrong gradient"))
        return create_finding(
            reject(mistake, f"already wrong in the first pass: {message}"), causes
        )
    return create_finding(reject("", "the gradient of a second pass after zeroing is wrong"))


def _judge_without_zeroing(case: Case, answer: Any) -> Part:
    """Judge whether the gradients of two passes add up if they are not zeroed."""
    first, second, unzeroed = answer["first"]["grads"], answer["second"], answer["unzeroed"]
    if not _are_finite(first) or not any(first):
        return reject("", "a backward pass leaves no gradient")
    if is_close(unzeroed, first):
        message = (
            "backward discards the gradients of earlier passes: they cannot be accumulated over"
            " samples"
        )
        return suspect("backward zeroes", message)
    if not is_close(unzeroed, _double_gradient(first)) and is_close(second, first):
        return reject("passes do not add up", "the gradients of two passes must add up")
    if not any(
        is_close(answer["again"], expected) for expected in (_double_gradient(first), first)
    ):
        message = "a second backward pass over the same graph reuses gradients of inner values"
        return accept_with_note("inner gradients kept", message)
    return accept()


def _double_gradient(gradient: Sequence[float]) -> list[float]:
    """Return a gradient multiplied by 2."""
    return [2 * value for value in gradient]


_PLAIN = Case("b = a*c + a; d = b*b", {"a": 1.5, "c": -0.5})
ZEROING = Stage(6, "zeroing", ("Value", "zero_grad"), (
    build_task("gradients are zero", 2, [_PLAIN], _judge_zeroed, "zero_gradients"),
    build_task("a second pass", 2, [_PLAIN], _judge_second_pass, "zero_gradients"),
    build_task("without zeroing", 2, [_PLAIN], _judge_without_zeroing, "zero_gradients"),
), (2, 3, 4, 5, 6))  # fmt: skip
