"""Stages 1 and 9: difference quotients, and derivatives of derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import comb, factorial, isfinite
from typing import Any

from cgprimer.core.second_derivatives import hessian
from cgprimer.course.checks.check_results import Part
from cgprimer.course.checks.stages.stage import Case, Stage, Task, close, of_cases
from cgprimer.course.checks.verdicts import doubtful, right, wrong
from cgprimer.tapes import values_of

# --- 1: the difference quotient -------------------------------------------------------------------

_SINE = Case("y = sin(x)", {"x": 1.0})
_CUBIC = Case("y = x^3 + 2*x^2 - 3*x + 1", {"x": 1.0})
_ONE = tuple((case, h) for case in (_SINE, _CUBIC) for h in (0.25, 1e-4))
_SEVERAL = Case("y = 6*(x1 + x2^2*x3)", {"x1": 1.0, "x2": 2.0, "x3": 3.0})
_H = 0.25


def _at(case: Case, *moves: float) -> float:
    """The value with the inputs moved."""
    point = {n: case.at[n] + move for n, move in zip(case.names, moves, strict=True)}
    return float(values_of(case.tape, point)[-1])


def _quotients(low: float, middle: float, high: float, h: float) -> dict[str, float]:
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


_WAYS = ("central", "forward", "backward")
_SAYS = {
    "sign": "the difference is taken the wrong way round",
    "h ignored": "the argument h is not used",
    "all inputs moved at once": "one input is moved at a time, the others stay",
    "input not put back": "an input that was moved is still moved when the next one is",
    "wrong length": "one number for each input",
    "": "this is neither a forward nor a central difference with the given h",
}


def _said(kind: str) -> Part:
    if kind in _WAYS:
        return right(f"{kind} differences")
    mistake = "sign" if kind.startswith("sign") else kind
    return wrong(mistake, _SAYS.get(mistake, f"the difference is {kind}"))


def _quotient(answers: Sequence[Any]) -> Part:
    found = [answer["value"] for answer in answers]

    def kinds(noise: float, step: float = 0.0) -> list[str]:
        steps = [step or h for _, h in _ONE]
        ways = [
            _quotients(_at(case, -h), _at(case, 0.0), _at(case, h), h)
            for (case, _), h in zip(_ONE, steps, strict=True)
        ]
        rows = list(zip(found, ways, steps, strict=True))
        return [kind for kind in ways[0] if all(close(v, w[kind], noise / h) for v, w, h in rows)]

    # Rounding alone: with more, tiny steps would fit anything that is near the derivative.
    unused = any({*_WAYS} & {*kinds(2e-15, 10.0**-k)} for k in range(1, 11))
    return _said(next(iter(kinds(1e-12)), "h ignored" if unused else ""))


def _gradient(case: Case, answer: Any) -> Part:
    zero, every = (0.0,) * 3, (_H,) * 3
    unit = [tuple(_H * (j == k) for j in range(3)) for k in range(3)]
    kept = [tuple(_H * (j < k) for j in range(3)) for k in range(4)]  # inputs that stay moved

    def fits(*places: Sequence[Sequence[float]]) -> list[str]:
        """The quotients that these places, low, middle and high for each input, give."""
        rows = [
            _quotients(_at(case, *low), _at(case, *middle), _at(case, *high), _H)
            for low, middle, high in places
        ]
        return [kind for kind in rows[0] if close(answer["value"], [row[kind] for row in rows])]

    def minus(place: Sequence[float]) -> list[float]:
        return [-move for move in place]

    found = fits(*((minus(u), zero, u) for u in unit))
    if found:
        return _said(found[0])
    if fits((minus(every), zero, every), (minus(every), zero, every), (minus(every), zero, every)):
        return _said("all inputs moved at once")
    low = [[u - k for u, k in zip(unit[j], kept[j], strict=True)] for j in range(3)]
    still = (
        fits(*((zero, zero, after) for after in kept[1:])),
        fits(*((before, before, after) for before, after in pairwise(kept))),
        fits(*((minus(after), zero, high) for after, high in zip(kept[1:], low, strict=True))),
    )
    if any(still):
        return _said("input not put back")
    return _said("" if len(answer["value"]) == 3 else "wrong length")


def _kept(case: Case, answer: Any) -> Part:
    if answer["point"] == [case.at[n] for n in case.names]:
        return right()
    says = "the list that the function was given holds other numbers afterwards"
    return wrong("point changed", says)


QUOTIENTS = Stage(1, "difference quotient", ("difference_quotient", "numerical_gradient"), (
    Task("difference quotient", 3, tuple(c.asked("quotient", h) for c, h in _ONE), _quotient),
    of_cases("gradient by differences", 3, [_SEVERAL], _gradient, "gradient", _H),
    of_cases("the point stays as it is", 1, [_SEVERAL], _kept, "gradient", _H),
))  # fmt: skip

# --- 9: derivatives of derivatives ----------------------------------------------------------------

_POWERS = (_CUBIC, Case(_CUBIC.text, {"x": -0.5}))
_TANH = Case("y = tanh(x)*x", {"x": 0.75})
_HIGHER = {_CUBIC.text: [6.0, 0.0]}  # derivatives than the second
_MATRIX = Case("y = 6*(x1 + x2^2*x3) + x1*x3", {"x1": 1.0, "x2": 2.0, "x3": 3.0})


def _orders(case: Case, answer: Any) -> Part:
    """Whether these are the derivatives of all orders, or what went wrong from the second on."""
    second = float(hessian(case.graph, dict(case.at), wrt="x")["x"]["x"])
    numbers, expected = answer["value"], [*case.gradient, second, *_HIGHER.get(case.text, [])]
    if close(numbers, expected):
        return right()
    if len(numbers) != len(expected) or not all(isinstance(one, float) for one in numbers):
        return wrong("wrong length", "a number for each order, from the first on")
    orders = range(len(expected))
    sums = [sum(expected[: k + 1]) for k in orders]
    sums_of_sums = [sum(comb(k, j) * expected[j] for j in range(k + 1)) for k in orders]
    taylor = [value / factorial(k + 1) for k, value in enumerate(expected)]
    if close(numbers, sums) or close(numbers, sums_of_sums):
        return wrong(
            "gradients not zeroed",
            "each derivative has the earlier ones in it: gradients are to be zero before a pass",
        )
    if close(numbers, taylor):
        return wrong("Taylor coefficients", "the k-th derivative is k! times the coefficient")
    if close(numbers, [expected[0]] * len(expected)):
        return wrong("first derivative again", "every order gives the first derivative")
    if close(numbers[0], expected[0]) and all(value == 0 for value in numbers[1:]):
        return wrong(
            "second derivative lost",
            "the gradient is a plain number, which remembers nothing: let it be a value that was"
            " computed",
        )
    if close(numbers, expected, 1e-2):
        return wrong("difference quotient", "these numbers have the errors of differences")
    return wrong("", f"not those of {case}")


def _matrix(case: Case, answer: Any) -> Part:
    found = hessian(case.graph, dict(case.at), wrt=case.names)
    expected = [[float(found[a][b]) for b in case.names] for a in case.names]
    value = answer["value"]
    if close(value, expected):
        return right()
    if len(value) != 3 or any(len(row) != 3 for row in value):
        return wrong("wrong shape", "a row and a column for each input")
    if not all(isinstance(v, float) and isfinite(v) for row in value for v in row):
        return wrong("", "an entry is not a finite number")
    diagonal = [[e * (i == j) for j, e in enumerate(row)] for i, row in enumerate(expected)]
    if close(value, diagonal):
        return wrong("mixed derivatives missing", "only the diagonal is there")
    rows = [[sum(expected[k][j] for k in range(i + 1)) for j in range(3)] for i in range(3)]
    with_slope = [[e + g for e, g in zip(r, case.gradient, strict=True)] for r in rows]
    if close(value, rows) or close(value, with_slope):
        says = "each row has the rows above it added: gradients are to be zero before a pass"
        return wrong("gradients not zeroed", says)
    plus = [[e + g for e, g in zip(row, case.gradient, strict=True)] for row in expected]
    if close(value, plus):
        says = "the gradient of the first pass is in every row"
        return wrong("gradients not zeroed", says)
    if not any(any(row) for row in value):
        says = "the gradient is a plain number, which remembers nothing"
        return wrong("second derivative lost", says)
    if close(value, expected, 1e-3):
        says = "these numbers have the errors of differences"
        return doubtful("difference quotient", says)
    uneven = not close(value, [list(column) for column in zip(*value, strict=True)])
    says = "it is not symmetric" if uneven else f"not that of {case}"
    return wrong("not symmetric" if uneven else "", says)


SECOND = Stage(9, "second order", ("derivatives", "hessian"), (
    of_cases("derivatives of a polynomial", 3, _POWERS, _orders, "derivatives", 4),
    of_cases("derivatives of tanh", 2, [_TANH], _orders, "derivatives", 2),
    of_cases("Hessian", 3, [_MATRIX], _matrix, "hessian"),
), (2, 3, 4, 5, 9))  # fmt: skip
