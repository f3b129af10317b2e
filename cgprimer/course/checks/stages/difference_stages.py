"""Stages 1 and 9: difference quotients, and second and higher derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import comb, factorial, isfinite
from typing import Any

from cgprimer.core.second_derivatives import hessian
from cgprimer.course.checks.check_results import Part
from cgprimer.course.checks.stages.stage import Case, Stage, Task, build_task, is_close
from cgprimer.course.checks.verdicts import accept, reject, suspect
from cgprimer.tapes import values_of

# --- 1: the difference quotient -------------------------------------------------------------------

_SINE = Case("y = sin(x)", {"x": 1.0})
_CUBIC = Case("y = x^3 + 2*x^2 - 3*x + 1", {"x": 1.0})
_ONE_INPUT = tuple((case, h) for case in (_SINE, _CUBIC) for h in (0.25, 1e-4))
_SEVERAL_INPUTS = Case("y = 6*(x1 + x2^2*x3)", {"x1": 1.0, "x2": 2.0, "x3": 3.0})
_H = 0.25
_ROUNDING, _TIGHT_ROUNDING = 1e-12, 2e-15  # of the values of a function
Shift = Sequence[float]  #: the displacement of each input


def _evaluate_case(case: Case, shift: Shift) -> float:
    """Evaluate the function of a case at shifted inputs."""
    point = {n: case.at[n] + by for n, by in zip(case.names, shift, strict=True)}
    return float(values_of(case.tape, point)[-1])


def _compute_quotients(values: Sequence[float], h: float) -> dict[str, float]:
    """Return correct and wrong difference quotients of three function values, keyed by kind."""
    low, middle, high = values
    return {
        "central": (high - low) / (2 * h),
        "forward": (high - middle) / h,
        "backward": (middle - low) / h,
        "divided by h instead of 2h": (high - low) / h,
        "divided by 2h instead of h": (high - middle) / (2 * h),
        "sign": (low - high) / (2 * h),
        "sign of the difference": (middle - high) / h,
        "not divided by h": high - middle,
        "not divided by 2h": high - low,
        "multiplied by h": (high - middle) * h,
    }


_CORRECT_KINDS = ("central", "forward", "backward")
_MESSAGES = {
    "sign": "the two values are subtracted in the wrong order",
    "h ignored": "the argument h is not used",
    "all inputs moved at once": "only one input may be shifted at a time",
    "input not put back": "an input is still shifted when the next input is shifted",
    "wrong length": "the gradient must have one number per input",
    "": "this is neither a forward nor a central difference with the given h",
}


def _report_kind(kind: str) -> Part:
    """Return the verdict on a submission that computes a known kind of difference quotient."""
    if kind in _CORRECT_KINDS:
        return accept(f"{kind} differences")
    mistake = "sign" if kind.startswith("sign") else kind
    return reject(mistake, _MESSAGES.get(mistake, f"the difference is {kind}"))


def _judge_quotients(answers: Sequence[Any]) -> Part:
    """Judge a student's difference quotients of functions of one input."""
    values = [answer["value"] for answer in answers]

    def match_kinds(rounding: float, step: float = 0.0) -> list[str]:
        """Return the kinds of quotient that match all values for ``step``, or for h if it is 0."""
        steps = [step or h for _, h in _ONE_INPUT]
        quotients = [
            _compute_quotients([_evaluate_case(case, (by,)) for by in (-h, 0.0, h)], h)
            for (case, _), h in zip(_ONE_INPUT, steps, strict=True)
        ]
        rows = list(zip(values, quotients, steps, strict=True))
        return [
            kind
            for kind in quotients[0]
            if all(is_close(value, q[kind], rounding / h) for value, q, h in rows)
        ]

    if kinds := match_kinds(_ROUNDING):
        return _report_kind(kinds[0])
    # With a larger tolerance, tiny steps would match any value close to the derivative.
    tiny_steps = [10.0**-k for k in range(1, 11)]
    ignored = any({*_CORRECT_KINDS} & {*match_kinds(_TIGHT_ROUNDING, h)} for h in tiny_steps)
    return _report_kind("h ignored" if ignored else "")


def _judge_numerical_gradient(case: Case, answer: Any) -> Part:
    """Judge a student's numerical gradient of a function of three inputs."""
    zero, all_shifted = (0.0,) * 3, (_H,) * 3
    units = [tuple(_H * (j == k) for j in range(3)) for k in range(3)]
    accumulated = [tuple(_H * (j < k) for j in range(3)) for k in range(4)]  # not put back

    def match_kinds(*shifts: Sequence[Shift]) -> list[str]:
        """Return the kinds of quotient that match the gradient for three shifts per input."""
        rows = [
            _compute_quotients([_evaluate_case(case, shift) for shift in three], _H)
            for three in shifts
        ]
        return [kind for kind in rows[0] if is_close(answer["value"], [row[kind] for row in rows])]

    def negate(shift: Shift) -> list[float]:
        """Negate the shift of each input."""
        return [-by for by in shift]

    if kinds := match_kinds(*((negate(unit), zero, unit) for unit in units)):
        return _report_kind(kinds[0])
    if match_kinds(*[(negate(all_shifted), zero, all_shifted)] * 3):
        return _report_kind("all inputs moved at once")
    highs = [[u - k for u, k in zip(units[j], accumulated[j], strict=True)] for j in range(3)]
    not_put_back = (
        [(zero, zero, after) for after in accumulated[1:]],
        [(before, before, after) for before, after in pairwise(accumulated)],
        [(negate(after), zero, high) for after, high in zip(accumulated[1:], highs, strict=True)],
    )
    if any(match_kinds(*shifts) for shifts in not_put_back):
        return _report_kind("input not put back")
    return _report_kind("" if len(answer["value"]) == 3 else "wrong length")


def _judge_unchanged_inputs(case: Case, answer: Any) -> Part:
    """Judge whether the numerical gradient leaves the list of inputs unchanged."""
    if answer["point"] == [case.at[n] for n in case.names]:
        return accept()
    return reject("point changed", "the list of inputs contains other numbers after the call")


QUOTIENTS = Stage(1, "difference quotient", ("difference_quotient", "numerical_gradient"), (
    Task("difference quotient", 3,
         tuple(case.call("compute_quotient", h) for case, h in _ONE_INPUT), _judge_quotients),
    build_task("gradient by differences", 3, [_SEVERAL_INPUTS], _judge_numerical_gradient,
               "compute_gradient", _H),
    build_task("the point stays as it is", 1, [_SEVERAL_INPUTS], _judge_unchanged_inputs,
               "compute_gradient", _H),
))  # fmt: skip

# --- 9: derivatives of derivatives ----------------------------------------------------------------

_POLYNOMIALS = (_CUBIC, Case(_CUBIC.text, {"x": -0.5}))
_TANH = Case("y = tanh(x)*x", {"x": 0.75})
_HIGHER_DERIVATIVES = {_CUBIC.text: [6.0, 0.0]}  # from the third order on
_MATRIX = Case("y = 6*(x1 + x2^2*x3) + x1*x3", {"x1": 1.0, "x2": 2.0, "x3": 3.0})
_NOT_ZEROED = "gradients must be zeroed before each pass"
_NO_GRAPH = "the gradient is a plain number without a graph; compute it with values"


def _judge_derivatives(case: Case, answer: Any) -> Part:
    """Judge a student's first and higher derivatives of a function of one input."""
    second = float(hessian(case.graph, dict(case.at), wrt="x")["x"]["x"])
    expected = [*case.gradient, second, *_HIGHER_DERIVATIVES.get(case.text, [])]
    numbers = answer["value"]
    if is_close(numbers, expected):
        return accept()
    if len(numbers) != len(expected) or not all(isinstance(value, float) for value in numbers):
        message = "derivatives must return one number per order, from the first order on"
        return reject("wrong length", message)
    orders = range(len(expected))
    sums = [sum(expected[: k + 1]) for k in orders]
    sums_of_sums = [sum(comb(k, j) * expected[j] for j in range(k + 1)) for k in orders]
    if is_close(numbers, sums) or is_close(numbers, sums_of_sums):
        message = f"each derivative includes the lower orders: {_NOT_ZEROED}"
        return reject("gradients not zeroed", message)
    if is_close(numbers, [value / factorial(k + 1) for k, value in enumerate(expected)]):
        return reject("Taylor coefficients", "the k-th derivative is k! times the k-th coefficient")
    if is_close(numbers, [expected[0]] * len(expected)):
        return reject("first derivative again", "all derivatives are equal to the first one")
    if is_close(numbers[0], expected[0]) and all(value == 0 for value in numbers[1:]):
        return reject("second derivative lost", _NO_GRAPH)
    if is_close(numbers, expected, 1e-2):
        return reject(
            "difference quotient", "these numbers have the errors of difference quotients"
        )
    return reject("", f"these are not the derivatives of {case}")


def _judge_hessian(case: Case, answer: Any) -> Part:
    """Judge a student's Hessian of a function of three inputs."""
    rows = hessian(case.graph, dict(case.at), wrt=case.names)
    expected = [[float(rows[a][b]) for b in case.names] for a in case.names]
    matrix = answer["value"]
    if is_close(matrix, expected):
        return accept()
    if len(matrix) != 3 or any(len(row) != 3 for row in matrix):
        return reject("wrong shape", "the Hessian must have one row and one column per input")
    if not all(isinstance(v, float) and isfinite(v) for row in matrix for v in row):
        return reject("", "the entries must be finite numbers")
    diagonal = [[e * (i == j) for j, e in enumerate(row)] for i, row in enumerate(expected)]
    if is_close(matrix, diagonal):
        return reject("mixed derivatives missing", "all entries off the diagonal are 0")
    if reason := _explain_unzeroed_hessian(case, matrix, expected):
        return reject("gradients not zeroed", reason)
    if not any(any(row) for row in matrix):
        return reject("second derivative lost", _NO_GRAPH)
    if is_close(matrix, expected, 1e-3):
        message = "these numbers have the errors of difference quotients"
        return suspect("difference quotient", message)
    if not is_close(matrix, [list(column) for column in zip(*matrix, strict=True)]):
        return reject("not symmetric", "the Hessian must be symmetric")
    return reject("", f"this is not the Hessian of {case}")


def _explain_unzeroed_hessian(
    case: Case, matrix: Sequence[Sequence[float]], expected: Sequence[Sequence[float]]
) -> str:
    """Return an explanation if gradients were not zeroed between rows, else an empty string."""

    def add_gradient(rows: Sequence[Sequence[float]]) -> list[list[float]]:
        """Add the gradient to each row of a Hessian."""
        return [[e + g for e, g in zip(row, case.gradient, strict=True)] for row in rows]

    sums = [[sum(expected[k][j] for k in range(i + 1)) for j in range(3)] for i in range(3)]
    if is_close(matrix, sums) or is_close(matrix, add_gradient(sums)):
        return f"each row includes the rows above it: {_NOT_ZEROED}"
    if is_close(matrix, add_gradient(expected)):
        return "each row includes the gradient of the first pass"
    return ""


SECOND = Stage(9, "second order", ("derivatives", "hessian"), (
    build_task("derivatives of a polynomial", 3, _POLYNOMIALS, _judge_derivatives,
               "compute_derivatives", 4),
    build_task("derivatives of tanh", 2, [_TANH], _judge_derivatives, "compute_derivatives", 2),
    build_task("Hessian", 3, [_MATRIX], _judge_hessian, "compute_hessian"),
), (2, 3, 4, 5, 9))  # fmt: skip
