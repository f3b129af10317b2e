"""The points at which a check asks for a gradient.

Points have simple coordinates and cover every branch of every piecewise function. Difference
quotients of the graph, which do not use the table of derivatives, must agree with the gradient at
every point: near a kink or an edge of the domain they do not, and the point is not used.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import numpy as np

from cgprimer.core.tape.scalarization import split_arrays
from cgprimer.course.checks.branch_coverage import choose_candidates, cover_features
from cgprimer.course.checks.gradient_questions import RIGHT, ROUNDING, VALUE, Question
from cgprimer.course.checks.point_sampling import sample_values
from cgprimer.errors import DifferentiationError

Array = Any
_MAX_SIZE_RATIO = 1e8  # of the largest to the median derivative, for the rounding of small ones
_MAX_EXPONENT = 300.0  # exp of it, and its square, do not overflow in textbook formulas
_NEGLIGIBLE = 1e-28  # of the largest derivative: errors of second order, if factors vanish
_STEP = 1e-4  # of the difference quotients, relative: no kink is as near
_MIN_POINTS = 4
_TRIES = 24  # candidates per point, for every width
_WIDTHS = (1.0, 0.3, 0.1, 0.03)  # distances from the declared values
# The search for missing branches: distances, candidates and rounds.
_NEAR_WIDTHS = (0.03, 0.3)  # from a parent; other distances are from the declared values
_SEARCH_WIDTHS = (*_NEAR_WIDTHS, *_NEAR_WIDTHS, 1.0, 1.0, 3.0, 10.0, 30.0, 100.0)
_SEARCH_DIGITS = 4  # decimals of coordinates close to a parent
_SEARCH_TRIES = 192  # candidates of a round
_MAX_IDLE_ROUNDS = 12  # rounds without a new branch or step
_MAX_STEPS = 8  # parents per round that only make a step
_MAX_CHANGES = 6  # coordinates in which a candidate differs from its parent, on average
_REFUTED = 1e-3  # relative error that refutes a wrong gradient
_MAX_POINTS_RATIO = 4  # points used, compared with those requested, if all branches need them


@dataclass(frozen=True, eq=False)
class Points:
    """The evaluation points of a check, with the correct values and gradients.

    Attributes:
        arguments: for each element of an argument its values, as :meth:`Question.evaluate` takes
            them.
        value: the values of the output, of shape (points,).
        gradient: for each element in ``wrt`` its derivatives, of shape (points,).
        noise: the bounds of rounding errors, of the gradient and of the value (key ``VALUE``).
        smooth: for each point, whether the output is differentiable: no kink is near.
        is_sequence: whether a function is called at one point after another.
    """

    arguments: dict[str, Array]
    value: Array
    gradient: dict[str, Array]
    noise: dict[str, Array]
    smooth: Array
    is_sequence: bool = True

    def __len__(self) -> int:
        return len(self.value)


def choose_points(question: Question, count: int = 20, seed: int = 0) -> Points:
    """Choose points with simple coordinates that cover all branches of piecewise functions.

    The first point has the declared values if every parameter has one. There are more than
    `count` points if covering every branch once requires them.

    Raises:
        DifferentiationError: the gradient is finite and smooth at too few points.
    """
    graph, random = question.graph, Random(seed)
    center = _read_declared_values(question)
    chosen: list[dict[str, Array]] = []
    total = 0
    if all(n in graph.values for n in graph.parameters):
        first = _sample_arguments(question, random, 1, center, 0.0, fixed=question.declared_names)
        if np.isfinite(question.evaluate(question.gradient_tape, first)[VALUE]).all():
            chosen, total = [first], 1
    for width in _WIDTHS:
        if total < count:
            candidates = _sample_arguments(question, random, _TRIES * count, center, width)
            indices = _select_candidates(
                question, evaluate_points(question, candidates), count - total
            )
            chosen.append({n: v[..., indices] for n, v in candidates.items()})
            total += len(indices)
    if total < min(count, _MIN_POINTS):
        raise DifferentiationError(
            f"found too few points at which the derivatives of {question.of} are finite and agree"
            " with difference quotients",
            hint="declare values near which the graph is differentiable",
        )
    if question.branches.decisions:
        chosen += _search_branches(question, random, center, _concatenate(chosen), 2 * count)
    return evaluate_points(question, _concatenate(chosen))


def evaluate_points(question: Question, arguments: dict[str, Array]) -> Points:
    """Evaluate the correct gradient at points, and mark the points at which it is smooth."""
    value, gradient, noise = question.evaluate_gradient(arguments)
    largest = max(np.abs(v[np.isfinite(v)]).max(initial=0.0) for v in (value, *gradient.values()))
    finite = np.isfinite(value)
    for name in question.sources:
        noise[name] = noise[name] + _NEGLIGIBLE * largest + _bound_cancellation(gradient[name])
        finite &= np.isfinite(gradient[name]) & np.isfinite(noise[name])
    smooth = finite & _is_smooth_at_labels(question, arguments, value, gradient)
    return Points(arguments, value, gradient, noise, smooth)


def select_arguments(
    question: Question, arguments: Mapping[str, Array], index: int, names: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the arguments of a student's function at one point, keyed by name.

    Args:
        question: the question.
        arguments: the arguments at all points, keyed by element.
        index: the index of the point.
        names: the names to return; all arguments unless given.

    Returns:
        Scalars, nested lists for arrays, and for inputs of a batch a list with an entry per sample.
    """
    values: dict[str, Any] = {}
    for name in names or question.arguments:
        entries = [arguments[e][..., index] for e in question.list_elements(name)]
        array = np.stack(np.broadcast_arrays(*entries), axis=-1)  # samples are the first axis
        values[name] = array.reshape(array.shape[:-1] + question.shapes[name]).tolist()
    return values


def _concatenate(parts: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Concatenate several sets of points: the values of each argument along the last axis."""
    return {n: np.concatenate([part[n] for part in parts], axis=-1) for n in parts[0]}


# --- candidates ----------------------------------------------------------------------------------


def _read_declared_values(question: Question) -> dict[str, float]:
    """Return the declared value of each argument element, or 0 if the graph declares none."""
    shapes = {n: question.shapes[n] for n in question.arguments}
    values = {n: question.graph.values.get(n, 0.0) for n in question.arguments}
    arrays = {n: np.broadcast_to(np.array(v, float), shapes[n]) for n, v in values.items()}
    return {n: float(v) for n, v in split_arrays(arrays, shapes).items()}


def _sample_arguments(
    question: Question,
    random: Random,
    count: int,
    center: Mapping[str, float],
    width: float,
    fixed: Collection[str] = (),
) -> dict[str, Array]:
    """Sample arguments around a center, rounded to two or three digits.

    Args:
        question: the question.
        random: the source of random numbers.
        count: the number of points.
        center: the value around which each element is sampled.
        width: the relative distance from the center.
        fixed: names that stay at the center.
    """
    arguments: dict[str, Array] = {}
    for name in question.arguments:
        names, shape = question.list_elements(name), question.shapes[name]
        samples = question.batch * (name in question.graph.inputs)
        is_fixed = name in question.fixed_inputs or (name in fixed and not samples)

        def sample_element(
            index: int, n: int, names: Sequence[str] = names, is_fixed: bool = is_fixed
        ) -> list[float]:
            """Return rounded random values for one array element, or its fixed value, n times."""
            middle = center[names[index]]
            if is_fixed:
                return [middle] * n
            radius = 2.0 * max(1.0, abs(middle)) * width or 2.0
            digits = 2 - math.floor(math.log10(radius))
            return [round(middle + random.uniform(-radius, radius), digits) + 0.0 for _ in range(n)]

        domain = None if is_fixed else question.domains.get(name)
        values = sample_values(random, shape, max(samples, 1) * count, domain, sample_element)
        columns = values.reshape(*((samples,) if samples else ()), count, len(names))
        arguments |= {element: columns[..., k] for k, element in enumerate(names)}
    return arguments


def _select_candidates(question: Question, candidates: Points, count: int) -> list[int]:
    """Select the best candidate points, which cover as many branches as possible."""
    smooth, badness = np.flatnonzero(candidates.smooth), _rate_badness(question, candidates)
    if not question.branches.decisions or not len(smooth):
        order = np.argsort(badness[smooth], kind="stable")
        return [int(k) for k in smooth[order][:count]]
    arguments = {n: v[..., smooth] for n, v in candidates.arguments.items()}
    evaluate = partial(question.evaluate, arguments=arguments, reduce=False)
    required, optional = question.branches.compute_features(evaluate)
    gradient = {e: v[smooth] for e, v in candidates.gradient.items()}
    required = np.concatenate([required, *_find_refutations(question, arguments, gradient)])
    features = (required, optional)
    indices = choose_candidates(features, badness[smooth], count, _MAX_POINTS_RATIO * count)
    return [int(smooth[k]) for k in indices]


def _find_refutations(
    question: Question, arguments: Mapping[str, Array], gradient: Mapping[str, Array]
) -> Iterator[Array]:
    """Yield, for each piecewise function, the points that refute a gradient that ignores it.

    Each array has shape (names, points): a point may refute only some of the derivatives.
    """
    for tape in question.kinkless_gradient_tapes:
        outputs = question.evaluate(tape, arguments)
        with np.errstate(all="ignore"):
            differs = {
                e: np.abs(outputs[RIGHT + e] - v)
                > _REFUTED * np.maximum(np.abs(outputs[RIGHT + e]), np.abs(v))
                for e, v in gradient.items()
            }
        rows = [[differs[e] for e in question.list_elements(name)] for name in question.wrt]
        yield np.stack([np.any(row, axis=0) for row in rows])


def _rate_badness(question: Question, candidates: Points) -> Array:
    """Rate how unsuitable each candidate point is: 0 (suitable), 1 or 2 (unusable).

    The badness is 2 if a derivative has too few digits to distinguish a mistake from rounding, or
    if the exponentials of textbook formulas overflow. It is 1 if a derivative is too small compared
    with the value for students' difference quotients. A derivative of exactly 0 on a flat branch
    has no effect.
    """
    badness = np.zeros(len(candidates), int)
    if question.exponent_tape is not None:
        exponents = question.evaluate(question.exponent_tape, candidates.arguments, reduce=False)
        for exponent in exponents.values():
            large = ~(np.abs(exponent) <= _MAX_EXPONENT)
            overflows = large.reshape(-1, len(candidates)).any(axis=0)
            badness = np.maximum(badness, 2 * overflows)
    value = np.abs(candidates.value)
    for name, derivative in candidates.gradient.items():
        size = np.abs(derivative)
        regular = size[candidates.smooth]
        typical = np.quantile(regular, 0.9) if regular.size else 0.0
        saturated = (size < 1e-6 * typical) & (size > 0)
        scale = np.where(size > 0, size, typical)
        noisy = candidates.noise[name] > 1e-9 * scale + 1e-12 * value
        steep = (value / 1e4 > size) & (size > 0)
        badness = np.maximum(badness, np.maximum(2 * (saturated | noisy), steep))
    return badness


def _search_branches(
    question: Question,
    random: Random,
    center: Mapping[str, float],
    chosen: Mapping[str, Array],
    max_points: int,
) -> list[dict[str, Array]]:
    """Search for points that cover the remaining branches, step by step from the chosen points.

    A point that covers a feature for the first time is kept as a parent. New candidates differ from
    a parent in a few coordinates, which are sampled at different distances from the center.
    """
    shown, steps = _find_features(question, chosen)
    covered, reached = shown.any(axis=1), steps.any(axis=1)
    parents, points = dict(chosen), list[dict[str, Array]]()
    variation = _Variation(question, random, center)
    idle = total = 0
    while idle < _MAX_IDLE_ROUNDS and total < max_points and not covered.all():
        candidates = variation.vary(parents)
        shown, steps = _find_features(question, candidates)
        missing = shown & ~covered[:, None]
        new = np.flatnonzero(missing.any(axis=0))
        suitable = np.zeros(shown.shape[1], bool)
        if len(new):
            evaluated = evaluate_points(question, {n: v[..., new] for n, v in candidates.items()})
            suitable[new] = evaluated.smooth & (_rate_badness(question, evaluated) < 1)
        indices, stepping = list[int](), list[int]()
        cover_features(missing, suitable, indices, 1, max_points - total)
        cover_features(steps & ~reached[:, None], np.ones(len(suitable), bool), stepping, 1,
                       _MAX_STEPS)  # fmt: skip
        if indices:
            points.append({n: v[..., indices] for n, v in candidates.items()})
            covered, total = covered | shown[:, indices].any(axis=1), total + len(indices)
        reached = reached | steps[:, stepping].any(axis=1)
        idle = 0 if indices or stepping else idle + 1
        selected = indices + stepping
        parents = _concatenate([parents, {n: v[..., selected] for n, v in candidates.items()}])
    return points


def _find_features(question: Question, arguments: Mapping[str, Array]) -> tuple[Array, Array]:
    """Return the branches that points show, and the steps toward other branches."""
    evaluate = partial(question.evaluate, arguments=arguments, reduce=False)
    return question.branches.compute_search_features(evaluate)


@dataclass
class _Variation:
    """A source of candidates that differ from given points in a few coordinates.

    The coordinates are taken from points that are sampled once for each distance, which is much
    faster than sampling them again for every candidate.
    """

    question: Question
    random: Random
    center: Mapping[str, float]

    def __post_init__(self) -> None:
        self.generator = np.random.default_rng(self.random.getrandbits(32))
        self.samples: dict[float, dict[str, Array]] = {}

    def vary(self, parents: Mapping[str, Array]) -> dict[str, Array]:
        """Return candidates with coordinates around the center, or close to those of a parent."""
        width = self.random.choice(_SEARCH_WIDTHS)
        is_near, samples = width in _NEAR_WIDTHS, self._sample(width)
        n_parents = next(iter(parents.values())).shape[-1]
        origin = self.generator.integers(n_parents, size=_SEARCH_TRIES)
        n_changes = self.generator.integers(1, _MAX_CHANGES + 1, size=_SEARCH_TRIES)
        rate = n_changes / len(parents)
        candidates: dict[str, Array] = {}
        for name in self.question.arguments:
            elements, has_domain = self.question.list_elements(name), name in self.question.domains
            shape = (*parents[elements[0]].shape[:-1], _SEARCH_TRIES)
            rows, is_changed = self._choose(shape, rate)
            for element in elements:
                if not has_domain:  # the elements of a label change together
                    rows, is_changed = self._choose(shape, rate)
                parent, new = parents[element][..., origin], samples[element][..., rows]
                if is_near and not has_domain:
                    shift = new - self.center[element]
                    new = np.round(parent + shift, _SEARCH_DIGITS)
                candidates[element] = np.where(is_changed, new, parent)
        return candidates

    def _choose(self, shape: tuple[int, ...], rate: Array) -> tuple[Array, Array]:
        """Choose one sampled point for each candidate, and the candidates to change."""
        rows = self.generator.integers(_SEARCH_TRIES, size=_SEARCH_TRIES)
        return rows, self.generator.random(shape) < rate

    def _sample(self, width: float) -> dict[str, Array]:
        """Return points sampled at a distance from the center."""
        if width not in self.samples:
            self.samples[width] = _sample_arguments(
                self.question, self.random, _SEARCH_TRIES, self.center, width
            )
        return self.samples[width]


# --- smooth points -------------------------------------------------------------------------------


def _bound_cancellation(derivatives: Array) -> float:
    """Return a bound on cancellation errors in derivatives such as f*(1 - f) for f near 1."""
    sizes = np.abs(derivatives[np.isfinite(derivatives)])
    if not sizes.any():
        return 0.0
    median = float(np.median(sizes[sizes > 0]))  # exp(u^2) can be 1e24 at a single point
    return ROUNDING * min(float(sizes.max()), _MAX_SIZE_RATIO * median)


def _is_smooth_at_labels(
    question: Question, arguments: Mapping[str, Array], value: Array, gradient: Mapping[str, Array]
) -> Array:
    """Return a mask of the points at which the output is smooth, apart from jumps between labels.

    A graph such as ``where(equal(y, 1), a, b)`` jumps next to a label. The values between labels
    are not in the domain, so such a jump does not affect the derivatives at labels.
    """
    smooth = _is_smooth(question, arguments, value, gradient)
    labels = [e for e in question.sources if e in question.domain_elements]
    if not labels or smooth.all():
        return smooth
    jumps = np.zeros(value.shape, bool)
    for label in labels:
        for step in (_STEP, -_STEP):
            near, nearer = (
                question.evaluate(question.primal, {**arguments, label: arguments[label] + size})
                for size in (step, step / 10)
            )
            with np.errstate(all="ignore"):
                far, close = (np.abs(at[question.of] - value) for at in (near, nearer))
                jumps |= ~(close <= 0.5 * far)  # a continuous change shrinks with the step
    return smooth | (jumps & _is_smooth(question, arguments, value, gradient, fixed=labels))


def _is_smooth(
    question: Question,
    arguments: Mapping[str, Array],
    value: Array,
    gradient: Mapping[str, Array],
    fixed: Collection[str] = (),
) -> Array:
    """Return a mask of the points at which difference quotients agree with the gradient.

    For graphs with kinks, the one-sided quotients of both sides must agree as well.
    """
    free = [e for e in question.sources if e in arguments and e not in fixed]
    smooth, random = np.ones(value.shape, bool), Random(len(free))
    for _ in range(2):
        direction = {
            e: random.choice((-1.0, 1.0)) * np.maximum(1.0, np.abs(arguments[e])) for e in free
        }

        def compute_quotients(
            step: float, direction: Mapping[str, Array] = direction
        ) -> tuple[Array, Array]:
            """Return the central quotient, and the difference of the two one-sided quotients."""
            shifted = (
                {**arguments, **{e: arguments[e] + sign * step * direction[e] for e in free}}
                for sign in (1, -1)
            )
            after, before = (question.evaluate(question.primal, p)[question.of] for p in shifted)
            return (after - before) / (2 * step), np.abs(after - 2 * value + before) / step

        with np.errstate(all="ignore"):
            slope = sum(gradient[e] * direction[e] for e in free)
            size = sum(np.abs(gradient[e] * direction[e]) for e in free) + 1e-300
            quotient, jump = compute_quotients(_STEP)
            smooth &= np.abs(quotient - slope) <= 1e-4 * size + 1e-10 * np.abs(value)
            if question.has_kinks:  # the jump of a smooth function shrinks with the step
                smooth &= (jump <= 1e-3 * size) | (compute_quotients(_STEP / 10)[1] <= 0.5 * jump)
    return smooth
