"""Stages 1 and 9: difference quotients, and derivatives of derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, factorial
from typing import Any

from cgprimer.checking.results import Failure, Part
from cgprimer.checking.stages.stage import Case, Stage, close, doubtful, failed, right, wrong
from cgprimer.core.run import values_of
from cgprimer.core.second_derivatives import hessian

# --- 1: the difference quotient -------------------------------------------------------------------

_SINE = Case("y = sin(x)", {"x": 1.0})
_CUBIC = Case("y = x^3 + 2*x^2 - 3*x + 1", {"x": 1.0})
_ONE = tuple((case, h) for case in (_SINE, _CUBIC) for h in (0.25, 1e-4))
_SEVERAL = Case("y = 6*(x1 + x2^2*x3)", {"x1": 1.0, "x2": 2.0, "x3": 3.0})
_H = 0.25
_TYPICAL = tuple(10.0**-k for k in range(1, 13))


def _at(case: Case, *moves: float) -> float:
    """The value with the inputs moved."""
    point = {n: case.at[n] + move for n, move in zip(case.names, moves, strict=True)}
    return float(values_of(case.tape, point)[-1])


def _quotients(case: Case, h: float) -> dict[str, float]:
    low, middle, high = _at(case, -h), _at(case, 0.0), _at(case, h)
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


def _one(found: Sequence[float]) -> tuple[str, bool]:
    """Which quotient the numbers are, and whether that is a right one."""
    for name in _quotients(*_ONE[0]):
        if all(
            close(value, _quotients(case, h)[name], 1e-9 / h)
            for value, (case, h) in zip(found, _ONE, strict=True)
        ):
            return name, name in ("central", "forward", "backward")
    for h in _TYPICAL:
        for name in ("central", "forward"):
            if all(
                close(value, _quotients(case, h)[name], 1e-10 / h)
                for value, (case, _) in zip(found, _ONE, strict=True)
            ):
                return "h ignored", False
    return "", False


_SAYS = {
    "sign": "the difference is taken the wrong way round",
    "h ignored": "the argument h is not used",
    "": "this is no difference quotient with the given h",
}


def _first(answers: Sequence[Any]) -> list[Part]:
    name, points = "difference quotient", 3
    values, several = answers[: len(_ONE)], answers[len(_ONE)]
    failure = next((one for one in values if isinstance(one, Failure)), None)
    if failure:
        parts = [failed(name, points, failure)]
    else:
        kind, good = _one([one["value"] for one in values])
        if good:
            parts = [right(name, points, f"{kind} differences")]
        else:
            mistake = "sign" if kind.startswith("sign") else kind
            parts = [wrong(name, points, mistake, _SAYS.get(mistake, f"the difference is {kind}"))]
    return [*parts, *_gradient(several)]


def _gradient(answer: Any) -> list[Part]:
    name, points = "gradient by differences", 3
    kept = right("the point stays as it is", 1)
    if isinstance(answer, Failure):
        return [failed(name, points, answer), failed(kept.name, 1, answer)]
    if answer["point"] != [_SEVERAL.at[n] for n in _SEVERAL.names]:
        says = "the list that the function was given holds other numbers afterwards"
        kept = wrong(kept.name, 1, "point changed", says)
    units = [[_H * (j == k) for j in range(3)] for k in range(3)]
    base, every = _at(_SEVERAL, 0, 0, 0), _at(_SEVERAL, _H, _H, _H)
    low = _at(_SEVERAL, -_H, -_H, -_H)
    central = [(_at(_SEVERAL, *u) - _at(_SEVERAL, *[-m for m in u])) / (2 * _H) for u in units]
    forward = [(_at(_SEVERAL, *u) - base) / _H for u in units]
    backward = [(base - _at(_SEVERAL, *[-m for m in u])) / _H for u in units]
    sums = [[_H * (j <= k) for j in range(3)] for k in range(3)]
    steps = [_at(_SEVERAL, 0, 0, 0), *(_at(_SEVERAL, *s) for s in sums)]
    value = answer["value"]
    for kind, expected in (("central", central), ("forward", forward), ("backward", backward)):
        if close(value, expected):
            return [right(name, points, f"{kind} differences"), kept]
    candidates = {
        "all inputs moved at once": (
            [[(every - base) / _H] * 3, [(every - low) / (2 * _H)] * 3],
            "one input is moved at a time, the others stay",
        ),
        "input not put back": (
            [
                [(steps[k + 1] - base) / _H for k in range(3)],
                [(steps[k + 1] - steps[k]) / _H for k in range(3)],
                _left_over(),
            ],
            "an input that was moved is still moved when the next one is",
        ),
        "divided by h instead of 2h": ([[2 * c for c in central]], "the difference spans 2h"),
        "divided by 2h instead of h": ([[f / 2 for f in forward]], "the difference spans h"),
        "sign": ([[-c for c in central], [-f for f in forward]], _SAYS["sign"]),
        "not divided by h": (
            [[f * _H for f in forward], [2 * _H * c for c in central]],
            "differences, not quotients",
        ),
    }
    for mistake, (numbers, says) in candidates.items():
        if any(close(value, one) for one in numbers):
            return [wrong(name, points, mistake, says), kept]
    if len(value) != 3:
        return [wrong(name, points, "wrong length", "one number for each input"), kept]
    return [wrong(name, points, "", "these are no difference quotients with the given h"), kept]


def _left_over() -> list[float]:
    """Central differences whose inputs stay at minus h."""
    found = []
    for k in range(3):
        before = [-_H * (j < k) for j in range(3)]
        high = [m + _H * (j == k) for j, m in enumerate(before)]
        low = [m - _H * (j == k) for j, m in enumerate(before)]
        found.append((_at(_SEVERAL, *high) - _at(_SEVERAL, *low)) / (2 * _H))
    return found


QUOTIENTS = Stage(
    1,
    "difference quotient",
    ("difference_quotient", "numerical_gradient"),
    (*(case.asked("quotient", h) for case, h in _ONE), _SEVERAL.asked("gradient", _H)),
    _first,
    {"difference quotient": 3, "gradient by differences": 3, "the point stays as it is": 1},
)

# --- 9: derivatives of derivatives ----------------------------------------------------------------

_POWERS = [_CUBIC, Case("y = x^3 + 2*x^2 - 3*x + 1", {"x": -0.5})]
_EXACT = ([4.0, 10.0, 6.0, 0.0], [-4.25, 1.0, 6.0, 0.0])
_TANH = Case("y = tanh(x)*x", {"x": 0.75})
_MATRIX = Case("y = 6*(x1 + x2^2*x3) + x1*x3", {"x1": 1.0, "x2": 2.0, "x3": 3.0})


def _wrong_orders(found: Sequence[float], expected: Sequence[float]) -> tuple[str, str]:
    """What went wrong from the second derivative on."""
    numbers = list(found)
    if len(numbers) != len(expected) or not all(isinstance(one, float) for one in numbers):
        return "wrong length", "a number for each order, from the first on"
    orders = range(len(expected))
    sums = [sum(expected[: k + 1]) for k in orders]
    sums_of_sums = [sum(comb(k, j) * expected[j] for j in range(k + 1)) for k in orders]
    taylor = [value / factorial(k + 1) for k, value in enumerate(expected)]
    if close(numbers, sums) or close(numbers, sums_of_sums):
        return "gradients not zeroed", (
            "each derivative has the earlier ones in it: gradients are to be zero before a pass"
        )
    if close(numbers, taylor):
        return "Taylor coefficients", "the k-th derivative is k! times the coefficient"
    if numbers[0] == numbers[1] == numbers[-1]:
        return "first derivative again", "every order gives the first derivative"
    if close(numbers[0], expected[0]) and all(value == 0 for value in numbers[1:]):
        return "second derivative lost", (
            "the gradient is a plain number, which remembers nothing: let it be a value that was"
            " computed"
        )
    if close(numbers, list(expected), 1e-2) and not close(numbers, list(expected), 1e-9):
        return "difference quotient", "these numbers have the errors of differences"
    return "", ""


def _ninth(answers: Sequence[Any]) -> list[Part]:
    parts = []
    powers = answers[: len(_POWERS)]
    name = "derivatives of a polynomial"
    failure = next((one for one in powers if isinstance(one, Failure)), None)
    if failure:
        parts.append(failed(name, 3, failure))
    elif all(close(a["value"], e) for a, e in zip(powers, _EXACT, strict=True)):
        parts.append(right(name, 3))
    else:
        bad = next(k for k, e in enumerate(_EXACT) if not close(powers[k]["value"], e))
        value = powers[bad]["value"]
        mistake, says = _wrong_orders(value, _EXACT[bad])
        parts.append(wrong(name, 3, mistake, says or f"not those of {_POWERS[bad]}"))
    name, answer = "derivatives of tanh", answers[len(_POWERS)]
    second = hessian(_TANH.graph, dict(_TANH.at), wrt="x")["x"]["x"]
    expected = [_TANH.gradient[0], float(second)]
    if isinstance(answer, Failure):
        parts.append(failed(name, 2, answer))
    elif close(answer["value"], expected):
        parts.append(right(name, 2))
    else:
        mistake, says = _wrong_orders(answer["value"], expected)
        parts.append(wrong(name, 2, mistake, says or f"not those of {_TANH}"))
    return [*parts, _hessian_part(answers[-1])]


def _hessian_part(answer: Any) -> Part:
    name, points = "Hessian", 3
    if isinstance(answer, Failure):
        return failed(name, points, answer)
    found = hessian(_MATRIX.graph, dict(_MATRIX.at), wrt=_MATRIX.names)
    expected = [[float(found[a][b]) for b in _MATRIX.names] for a in _MATRIX.names]
    value = answer["value"]
    if close(value, expected):
        return right(name, points)
    if len(value) != 3 or any(len(row) != 3 for row in value):
        return wrong(name, points, "wrong shape", "a row and a column for each input")
    diagonal = [[e * (i == j) for j, e in enumerate(row)] for i, row in enumerate(expected)]
    if close(value, diagonal):
        return wrong(name, points, "mixed derivatives missing", "only the diagonal is there")
    rows = [[sum(expected[k][j] for k in range(i + 1)) for j in range(3)] for i in range(3)]
    with_slope = [[e + g for e, g in zip(r, _MATRIX.gradient, strict=True)] for r in rows]
    if close(value, rows) or close(value, with_slope):
        says = "each row has the rows above it added: gradients are to be zero before a pass"
        return wrong(name, points, "gradients not zeroed", says)
    plus = [[e + g for e, g in zip(row, _MATRIX.gradient, strict=True)] for row in expected]
    if close(value, plus):
        says = "the gradient of the first pass is in every row"
        return wrong(name, points, "gradients not zeroed", says)
    if not any(any(row) for row in value):
        says = "the gradient is a plain number, which remembers nothing"
        return wrong(name, points, "second derivative lost", says)
    if close(value, expected, 1e-3):
        says = "these numbers have the errors of differences"
        return doubtful(name, points, "difference quotient", says)
    uneven = not close(value, [list(column) for column in zip(*value, strict=True)])
    says = "it is not symmetric" if uneven else f"not that of {_MATRIX}"
    return wrong(name, points, "not symmetric" if uneven else "", says)


SECOND = Stage(
    9,
    "second order",
    ("derivatives", "hessian"),
    (
        *(case.asked("derivatives", 4) for case in _POWERS),
        _TANH.asked("derivatives", 2),
        _MATRIX.asked("hessian"),
    ),
    _ninth,
    {"derivatives of a polynomial": 3, "derivatives of tanh": 2, "Hessian": 3},
)
