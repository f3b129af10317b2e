"""Mistakes that show in the pattern of small errors: difference quotients, float32, rounding.

A step that is too large leaves an error that grows with it: the quotient with the same step has
the same error at every point. A step that is too small leaves rounding: f(x + h) - f(x) is a
multiple of the last place of f, and so is the quotient times h, a small whole number of them.
Source: Press et al., "Numerical Recipes", section 5.7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from cgprimer.course.checks.gradient_questions import VALUE, Points, Question

Array = Any
# Parts of the tolerance for central differences; steps from 1e-6 to 1e-4 stay within them.
_OF_VALUE = 1e-9
_OF_ROUNDING = 1e4  # of the bound of the value's rounding error
_OF_NORM = 2e-7  # of the norm of the gradient
_OF_DERIVATIVE = 1e-3  # the most, of the usual size of the derivative itself
_OF_ZERO = 1e-6  # the most for a derivative that is 0 at every point
_FLOAT32 = 2.0**29  # its unit roundoff, compared with that of float64
GOOD, FINE, SUSPICIOUS = 1e-7, 1e-4, 1e-2  # relative errors: the bands of gradient checks
_DIGITS = 9  # after the point, with which numbers are rounded
_USUAL_STEP = 1e-4  # of central differences, the largest
_LARGEST = 0.5  # step that anybody would take: x^3 with 1 too much is no quotient of step 1
_FEW = 3  # numbers that a pattern must show in
_SMALL = 0.3  # relative: beyond it an error is no pattern of difference quotients
_STEPS = sorted([*(10.0**-k for k in range(4, 17)), *(2.0**-k for k in range(16, 44))])
_WAYS: dict[str, Callable[[Array], Array]] = {
    "h": np.ones_like,
    "h*max(1, |x|)": lambda x: np.maximum(1.0, np.abs(x)),
    "h*|x|": np.abs,
}


def tolerances(points: Points) -> dict[str, Array]:
    """Return how far each derivative, and the value, may be off without being wrong.

    Beyond the rounding errors of the computation itself these are the errors of central differences
    with a good step, whose rounding is large compared with a small derivative next to a large
    value, and whose truncation is large compared with one that is small in a large gradient. The
    tolerance for them stays far below the derivative's own usual size, so that 0 is never right for
    a derivative that is not. A derivative that is 0 everywhere has the rounding of differences.
    """
    value, rounding = np.abs(points.value), points.noise[VALUE]
    with np.errstate(all="ignore"):
        norm = np.sqrt(sum(np.square(v) for v in points.right.values()))
    quotient = _OF_VALUE * value + _OF_ROUNDING * rounding + _OF_NORM * norm
    allowed = {VALUE: rounding + _OF_VALUE * value}
    for name in points.right:
        most = _OF_DERIVATIVE * usual_size(points, name) or _OF_ZERO
        allowed[name] = points.noise[name] + np.minimum(quotient, most)
    return allowed


def usual_size(points: Points, name: str) -> float:
    """Return the median size of a number where it is not 0; 0 if it is 0 at every point."""
    numbers = points.value if name == VALUE else points.right[name]
    sizes = np.abs(numbers[points.smooth])
    return float(np.median(sizes[sizes > 0])) if sizes.any() else 0.0


def is_float32(points: Points, numbers: Array, name: str) -> bool:
    """Return whether right numbers of a name were computed in single precision.

    All of them are representable in float32, and no further off than its rounding errors: the bound
    for double precision, scaled, but at most a hundredth of the number, or of its usual size, or
    1e-5 of the largest derivative: of a saturated unit single precision leaves nothing.
    """
    expected = points.value if name == VALUE else points.right[name]
    with np.errstate(all="ignore"):
        representable = np.array_equal(
            numbers.astype(np.float32)[points.smooth], numbers[points.smooth]
        )
        largest = max((usual_size(points, other) for other in points.right), default=0.0)
        usual = max(usual_size(points, name), _OF_DERIVATIVE * largest)
        most = SUSPICIOUS * np.maximum(usual, np.abs(expected))
        allowed = np.minimum(_FLOAT32 * points.noise[name], most)
        near = np.abs(numbers - expected) <= allowed
    return representable and bool(near[points.smooth].all())


def is_central_difference(question: Question, points: Points, numbers: Array, name: str) -> bool:
    """Return whether numbers have the errors of central differences with a usual step."""
    step = _truncation(question, points, numbers, name)
    return step is not None and step.scheme == "central" and abs(step.size) <= _USUAL_STEP


def rounded(points: Points, theirs: Mapping[str, Array], names: set[str]) -> dict[int, set[str]]:
    """The names whose numbers are the right ones, rounded: by how many digits after the point."""
    found: dict[int, set[str]] = {}
    for name in names:
        yours, ours = theirs[name][points.smooth], points.right[name][points.smooth]
        for digits in range(_DIGITS):
            near = np.abs(yours - ours) <= 0.501 * 10.0**-digits
            if near.all() and np.array_equal(np.round(yours, digits), yours):
                found.setdefault(digits, set()).add(name)
                break
    return found


def step_of_differences(
    question: Question, points: Points, theirs: Mapping[str, Array], names: set[str]
) -> Iterator[tuple[str, str, set[str]]]:
    """What steps of difference quotients explain: a mistake, a sentence, the names."""
    small = set()
    for name in names & points.given.keys():
        yours, ours = theirs[name][points.smooth], points.right[name][points.smooth]
        with np.errstate(all="ignore"):
            size = np.abs(ours) + points.noise[name][points.smooth] / 1e-7
            errors = np.abs(yours - ours) / size
        known = errors[~np.isnan(errors)]
        if known.size and np.median(known) <= _SMALL:
            small.add(name)
    found: dict[tuple[str, str], set[str]] = {}
    for name in [n for n in question.sources if n in names & points.given.keys()]:
        mistake, said = "difference step too large", ""
        if name in small:
            said = str(_truncation(question, points, theirs[name], name) or "")
        if not said:
            mistake, said = "difference step too small", _rounded(points, theirs[name], name)
        if said:
            found.setdefault((mistake, said), set()).add(name)
    for (mistake, said), explained in found.items():
        yield mistake, said, explained


def _rounded(points: Points, yours: Array, name: str) -> str:
    """The step whose quotients are whole numbers of last places of f."""
    here = points.smooth & np.isfinite(yours)
    yours, value = yours[here], points.value[here]
    right = points.right[name][here]
    wrong = np.abs(yours - right)
    shown = wrong[(yours != 0) | (right != 0)] > 0
    if len(yours) < 2 * _FEW or np.ptp(yours) == 0 or np.mean(shown) <= 0.5:
        return ""  # rounding shows at almost every point
    last = np.spacing(np.abs(value)) / 2
    for moves, step in product((1.0, 2.0), _STEPS):  # forward, central
        noisy = wrong * step <= 4 * points.noise[VALUE][here]
        if np.count_nonzero(noisy) <= 0.9 * len(noisy):
            continue
        with np.errstate(all="ignore"):
            count = yours * (moves * step) / last
            whole = np.abs(count - np.round(count)) <= 1e-3 + 1e-15 * np.abs(count)
            whole &= (np.abs(count) > 0.5) | (yours == 0)
        seen = np.abs(count) < 1e12
        # Short numbers are whole numbers of any power of two.
        likely = math.log2(step) % 1 or np.mean(wrong <= np.abs(yours) / 2) > 0.5
        if np.mean(whole & seen & noisy) > 0.9 and likely:
            return f"differences with a step of about {step:.0e}: rounding drowns them"
    return ""


class _Step(NamedTuple):
    """The step of a difference quotient: its scheme, its size, and how it depends on the point."""

    scheme: str
    size: float
    way: str

    def __str__(self) -> str:
        kind = "backward" if self.scheme == "forward" and self.size < 0 else self.scheme
        text = self.way.replace("h", f"{abs(self.size):.1g}", 1)
        return f"{kind} differences with a step of about {text}"


def _truncation(question: Question, points: Points, yours: Array, name: str) -> _Step | None:
    """Return the step whose quotients have the same errors."""
    ours, noise = points.right[name], points.noise[VALUE]
    error, x = yours - ours, points.given[name]
    here = points.smooth & np.isfinite(yours)
    wrong = here & (np.abs(error) > 1e-7 * np.abs(ours) + points.noise[name])

    def quotient(scheme: str, step: Array) -> Array:
        ends = (step, -step) if scheme == "central" else (step, 0.0 * step)
        after, before = (
            question.run(question.primal, {**points.given, name: x + by})[question.of]
            for by in ends
        )
        return (after - before) / ((2 if scheme == "central" else 1) * step)

    with np.errstate(all="ignore"):
        for way, scale in _WAYS.items():
            for scheme, order in (("forward", 1), ("central", 2)):
                step = 1e-3
                for _ in range(12):
                    made = quotient(scheme, step * scale(x)) - ours
                    known = here & (np.abs(made) > noise / abs(step))
                    if np.sum(known) < _FEW:
                        break
                    ratio = float(np.median(error[known] / made[known]))
                    if not np.isfinite(ratio) or ratio == 0 or (order == 2 and ratio < 0):
                        break
                    step *= np.sign(ratio) * min(max(abs(ratio) ** (1 / order), 1e-2), 1e2)
                    if abs(step) > 10:
                        break
                    if abs(ratio - 1) < 1e-9:
                        break
                made = quotient(scheme, step * scale(x)) - ours
                near = np.abs(error - made) <= 0.01 * np.abs(made) + noise / abs(step) / 2
                shown = here & (np.abs(made) > noise / abs(step))
                most = np.mean(shown[wrong]) > 0.5 and np.sum(shown) >= _FEW
                if np.all(near[here]) and most and abs(step) <= _LARGEST:
                    return _Step(scheme, float(step), way)
    return None
