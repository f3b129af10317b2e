"""``fit``: a graph's parameters from data by least squares, from checked arguments to a result."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from cgprimer.core.evaluation.runner import Runner
from cgprimer.core.graph import check_graph
from cgprimer.core.loss_expressions import target_column_name
from cgprimer.core.loss_node import build_loss
from cgprimer.errors import DataError, NonFiniteError, UsageError
from cgprimer.expressions import ExpressionGraph, parse_element
from cgprimer.support.type_checks import check_functions, check_type
from cgprimer.support.validation import (
    check_choice,
    check_integer,
    check_named_values,
    check_real_number,
)
from cgprimer.support.value_names import element_hint
from cgprimer.tapes import differentiate, tape
from cgprimer.training.constraints import constraints, places_of, put_into
from cgprimer.training.data import Dataset, require_in_memory, resolve_dataset
from cgprimer.training.fitting.damping import DAMPINGS
from cgprimer.training.fitting.fit_result import Fit, covariance_factor, undetermined
from cgprimer.training.fitting.least_squares_descent import (
    Descent,
    Trial,
    gauss_newton,
    levenberg_marquardt,
)
from cgprimer.training.fitting.residuals import RANK, Local, Residuals, target_of
from cgprimer.training.fitting.scipy_minimizers import METHODS, by_scipy
from cgprimer.training.losses import sample_columns
from cgprimer.training.nonfinite_steps import not_finite
from cgprimer.training.objective import Objective, check_learnable
from cgprimer.training.parameter_vector import Vectors

Array = Any
ALGORITHMS = ("auto", "gauss-newton", "levenberg-marquardt", *METHODS)
_LOSS = "squared-error"
DAMPING_NAMES = ("auto", *DAMPINGS)
_ELSEWHERE = 8  # other points, to see whether what changes nothing here does so everywhere
_FEW = 1_000  # samples that say it
_EXACT = 1e-8  # share of the targets: residuals that no fit can improve
_EQUAL_SUMS = 1e-9  # relative difference of sums of squares that are equal except for rounding


def fit(
    graph: ExpressionGraph,
    dataset: Any,
    *,
    start: Mapping[str, Any] | None = None,
    freeze: Iterable[str] = (),
    bounds: Mapping[str, tuple[float, float]] | None = None,
    weights: Any = None,
    algorithm: str = "auto",
    damping: str = "auto",
    first_damping: float | None = None,
    iterations: int = 1000,
    method: str = "reverse",
    engine: str = "auto",
    seed: int = 0,
    on_step: Callable[[Trial], None] | None = None,
    **options: Any,
) -> Fit:
    """Fit a graph's parameters to data by nonlinear least squares.

    All data count at each step: residuals are the outputs less their targets, J their derivatives
    by the parameters, from a program of ours. A step is accepted only if the sum of squares falls.

    Args:
        graph: the graph.
        dataset: a column for each input and each output: a Dataset, a file or a data frame.
        start: start values, numbers or arrays; a number of an array by name, ``W[0]``. Those not
            given are what the graph declares, unless the data were made from that; else drawn.
        freeze: parameters that keep their start value.
        bounds: name to (least, most), infinite for no bound.
        weights: of the samples in the sum of squares: an array, or one for each output.
        algorithm: ``gauss-newton``, ``levenberg-marquardt``, or one of SciPy's: ``trust-region``,
            ``dogleg``, ``minpack``, ``l-bfgs``; ``auto`` is Gauss-Newton where the graph is linear
            in its parameters and the data determine them, else Levenberg-Marquardt, and if that
            gets to no minimum the trust region.
        damping: how lambda is chosen: ``tens``, ``marquardt`` or ``nielsen``; ``auto`` takes the
            first of them that gets from the start to a minimum.
        first_damping: lambda of the first step; by damping unless given.
        iterations: the most steps that are tried.
        method: the differentiator; ``forward`` and ``reverse`` give the same J.
        engine: the engine that runs it.
        seed: of start values that are drawn, uniform in [0, 1).
        on_step: called after each step that was tried.
        options: of the method.

    Returns:
        The fit; where ``converged`` is False it is the best point that was found, and ``reason``
        says what went wrong. Ctrl-C ends it early and cleanly.

    Raises:
        UsageError, DataError: wrong arguments, missing columns, fewer data than parameters.
        NonFiniteError: residuals or derivatives at the start are not finite.

    >>> import cgprimer
    >>> graph = cgprimer.parse("y = exp(k*x)")
    >>> data = cgprimer.make_dataset(graph, truth={"k": 0.5}, samples=20)
    >>> found = fit(graph, data, start={"k": 1})
    >>> round(found.parameters["k"], 12), found.converged
    (0.5, True)
    """
    begun = time.perf_counter()
    check_graph(graph)
    check_functions(on_step=on_step)
    check_type("freeze", freeze or (), Iterable, "names of parameters")
    check_type("method", method, str, "a name")
    if bounds:
        check_type("bounds", bounds, Mapping, "a mapping of names to (least, most)")
    dataset = require_in_memory(
        resolve_dataset(dataset, graph), "least squares takes all data at each step"
    )
    check_choice("algorithm", algorithm, ALGORITHMS)
    check_choice("damping", damping, DAMPING_NAMES)
    if damping != "auto" and algorithm not in ("auto", "levenberg-marquardt"):
        raise UsageError(f"damping belongs to levenberg-marquardt, not to {algorithm}")
    if bounds and algorithm == "minpack":
        raise UsageError("minpack knows no bounds", hint="trust-region and dogleg do")
    limit = check_integer("iterations", iterations, minimum=1)
    if first_damping is not None:
        if algorithm not in ("auto", "levenberg-marquardt"):
            raise UsageError(f"first_damping belongs to levenberg-marquardt, not to {algorithm}")
        first_damping = check_real_number("the first damping", first_damping, above=0)
    problem, values = _problem(
        graph, dataset, start, freeze, bounds, weights, seed, method, engine, options
    )

    def broken(at: Array) -> tuple[str, Any]:
        everything = np.arange(len(dataset))
        return not_finite(Objective(graph), dataset, problem.vectors.values(at), everything, {})

    first = Local(problem, values)
    if not first.finite:
        said, why = broken(values)
        hint = "choose other start values (--start), or inputs inside the domains"
        error = NonFiniteError(f"there is nothing to fit from this start: {said}", hint=hint)
        error.why = why
        raise error
    ways: list[tuple[str, str, Descent]] = []
    for name, rule in _tried(problem, first, algorithm, damping):
        way = Descent(first, [Trial(0, values, first.sum, None, True)], limit, on_step)
        ways.append((name, rule, way))
        try:
            if name == "levenberg-marquardt":
                levenberg_marquardt(problem, way, DAMPINGS[rule], first_damping)
            elif name == "gauss-newton":
                gauss_newton(problem, way)
            else:
                by_scipy(problem, way, name)
        except KeyboardInterrupt:
            way.settled, way.reason = False, "interrupted"
            break
        _refuse_flat_ends(problem, way, values)
        if way.settled:
            break
    name, rule, way = _best(ways)
    if ways[-1][2].reason == "interrupted":
        way.settled, way.reason = False, "interrupted"
    elif not way.settled:
        sums = [(t.residual_sum_of_squares, t.values) for t in way.trials[-20:]]
        beyond = [values for found, values in sums if not math.isfinite(found)]
        way.reason += f"; a step further {broken(beyond[-1])[0]}" if beyond else ""
    return _result(graph, dataset, problem, way, name, rule, time.perf_counter() - begun)


def _best(ways: list[tuple[str, str, Descent]]) -> tuple[str, str, Descent]:
    """Return the descent that reached a minimum, or else the first one with the smallest sum.

    In a flat region all of them end at the same sum except for rounding, which must not decide.
    """
    if ways[-1][2].settled:
        return ways[-1]
    smallest = min(way.here.sum for _, _, way in ways)
    return next(found for found in ways if found[2].here.sum <= smallest * (1 + _EQUAL_SUMS))


def _tried(problem: Residuals, first: Local, algorithm: str, damping: str) -> list[tuple[str, str]]:
    """Algorithms and their damping, in the order in which they are tried from the same start."""
    own = "levenberg-marquardt"
    if algorithm not in ("auto", own):
        return [(algorithm, "")]
    if damping != "auto":
        return [(own, damping)]
    if algorithm == own:
        return [(own, name) for name in DAMPINGS]
    bounded = np.isfinite([problem.low, problem.high]).any()
    if problem.linear and first.rank == first.size and not bounded:
        return [("gauss-newton", "")]
    return [*((own, name) for name in DAMPINGS), ("trust-region", "")]


def _problem(
    graph: ExpressionGraph,
    dataset: Dataset,
    start: Mapping[str, Any] | None,
    freeze: Iterable[str],
    bounds: Mapping[str, tuple[float, float]] | None,
    weights: Any,
    seed: int,
    method: str,
    engine: str,
    options: Mapping[str, Any],
) -> tuple[Residuals, Array]:
    """Residuals with their J, compiled, and the vector to start from."""
    check_learnable(graph)
    vectors = Vectors(graph)
    limits = constraints(vectors, bounds=bounds, freeze=freeze).columns
    low = limits.get("low", np.full(len(vectors), -math.inf))
    high = limits.get("high", np.full(len(vectors), math.inf))
    values = _start(graph, dataset, vectors, start, seed, low, high)
    free = np.flatnonzero(limits.get("free", np.ones(len(vectors))))
    moving = tuple(dict.fromkeys(parse_element(vectors.elements[k]).array for k in free))
    dataset.check_finite()
    whole = tape(graph)
    if whole.combines_samples:
        method = "forward"  # samples depend on each other: this alone says how each of them moves
    needed = build_loss(whole, _LOSS).columns
    columns, _ = sample_columns(graph, _LOSS, needed, dataset, "float64")
    target, samples = target_of(columns, graph.outputs), len(dataset)
    if len(target) < len(free):
        raise DataError(
            f"{len(target)} data cannot determine {len(free)} parameters",
            hint="more samples, or fewer parameters: freeze=[...] (--freeze NAME)",
        )
    program = differentiate(whole, graph.outputs, moving, method=method, **options)
    sizes = [columns[target_column_name(name)].size // samples for name in graph.outputs]
    problem = Residuals(
        Runner(program, engine=engine, samples=samples),
        vectors,
        {name: columns[name] for name in graph.inputs},
        samples,
        free,
        low,
        high,
        _weights(graph, weights, sizes, samples),
        target=target,
        sizes=tuple(sizes),
    )
    return problem, values


def _start(
    graph: ExpressionGraph,
    dataset: Dataset,
    vectors: Vectors,
    given: Mapping[str, Any] | None,
    seed: int,
    low: Array,
    high: Array,
) -> Array:
    """What is given; else what is declared, unless the data were made from it; else drawn."""
    drawn = vectors.sampled_start(check_integer("the seed", seed))
    values = np.clip(drawn, low, high)  # the same numbers as `train` draws
    shapes = {name: shape for name, shape in vectors.shapes.items() if shape}
    start = check_named_values(
        "start", given, "parameter", vectors.shapes, shapes=shapes, parts=True
    )
    declared = graph.point(needed=()) if not dataset.truth else {}
    sampled = graph.initializers
    own = {n: v for n, v in declared.items() if n in vectors.shapes and n not in sampled}
    for name, value in own.items():
        values[places_of(vectors, "start", name)] = np.ravel(value)
    put_into(values, vectors, start)
    for name, value, least, most in zip(vectors.elements, values, low, high, strict=True):
        if not least <= value <= most:
            raise UsageError(f"the start of {name}, {value:g}, is outside of its bounds")
    return values


def _weights(graph: ExpressionGraph, given: Any, sizes: list[int], samples: int) -> Array:
    """Square roots of the weights: 1, or one for each residual."""
    if given is None:
        return np.array(1.0)
    each = given if isinstance(given, Mapping) else dict.fromkeys(graph.outputs, given)
    if unknown := [name for name in each if name not in graph.outputs]:
        hint = element_hint(str(unknown[0]), graph.outputs)
        raise UsageError(f"weights: there is no output {unknown[0]!r}", hint=hint)
    found = []
    for name, size in zip(graph.outputs, sizes, strict=True):
        try:
            weights = np.asarray(each.get(name, 1.0), float)
            weights = np.broadcast_to(weights, (samples,))
        except (TypeError, ValueError):
            raise DataError(f"the weights are {samples} numbers, one for each sample") from None
        if not (np.isfinite(weights) & (weights >= 0)).all():
            raise DataError("weights are finite numbers from 0 on")
        found.append(np.repeat(np.sqrt(weights), size))
    return np.concatenate(found)


def _refuse_flat_ends(problem: Residuals, way: Descent, start: Array) -> None:
    """A point where J has lost rank is flat, and not a minimum: elsewhere parameters do more."""
    here, free = way.here, problem.free
    exact = here.sum <= (_EXACT * problem.target_length) ** 2
    if not way.settled or here.rank == len(free) or exact:
        return
    chosen = np.linspace(0, problem.samples - 1, min(problem.samples, _FEW)).astype(int)
    few = {name: column[chosen] for name, column in problem.columns.items()}

    def rank(values: Array) -> int:
        """Of J at these values and some of the samples; 0 where it is not finite."""
        moved = here.values.copy()
        moved[free] = values[free]
        with np.errstate(all="ignore"):
            slopes = problem.outputs(problem.clipped(moved), few, len(chosen))[1]
            lengths = np.linalg.norm(slopes, axis=0)
        if not np.isfinite(lengths).all():
            return 0
        scaled = slopes / np.where(lengths > 0, lengths, 1.0)
        return int(np.linalg.matrix_rank(scaled, rtol=RANK))

    random, others = np.random.default_rng(0), [start]
    for _ in range(_ELSEWHERE):
        near = random.uniform(0.5, 2.0, len(start))
        others += [start * near, here.values * near, random.normal(size=len(start))]
    least, most = rank(here.values), max(map(rank, others))
    if most > least:
        way.settled = False
        way.reason = (
            f"a flat region: the data determine {least} of {len(free)} parameters here,"
            f" {most} elsewhere, so that nothing shows the way to a minimum"
        )


def _result(
    graph: ExpressionGraph,
    dataset: Dataset,
    problem: Residuals,
    way: Descent,
    algorithm: str,
    damping: str,
    seconds: float,
) -> Fit:
    names, end = problem.vectors.elements, way.here
    counted = np.broadcast_to(problem.weights, len(end.residuals)) > 0
    freedom = max(0, int(counted.sum()) - end.rank)
    spread = math.sqrt(end.sum / freedom) if freedom else math.nan
    errors = spread * np.linalg.norm(covariance_factor(end), axis=1)
    unknown, _ = undetermined(end)
    errors[unknown] = math.inf
    estimated = [names[k] for k in end.places]
    sentences: list[str] = []
    if end.rank < end.size:
        from cgprimer.training.identifiability import identifiability

        values = problem.vectors.values(end.values)
        if found := identifiability(graph, dataset, values, wrt=estimated):
            sentences += found.sentences(graph.outputs)
    held = sorted({*problem.free.tolist()} - {*end.places.tolist()})
    for k in held:
        sentences.append(
            f"{names[k]} stands at its bound {end.values[k]:g}: the sum of squares falls beyond."
        )
    return Fit(
        parameters=dict(zip(names, end.values.tolist(), strict=True)),
        start=dict(zip(names, way.trials[0].values.tolist(), strict=True)),
        standard_errors=dict(zip(estimated, errors.tolist(), strict=True)),
        residual_sum_of_squares=end.sum,
        residual_standard_deviation=spread,
        degrees_of_freedom=freedom,
        rank=end.rank,
        relative_offset=float(end.offset),
        converged=way.settled,
        reason=way.reason,
        sentences=tuple(sentences),
        algorithm=algorithm,
        damping=damping,
        iterations=len(way.trials) - 1,
        seconds=seconds,
        history=tuple(way.trials),
        graph=graph,
        dataset=dataset,
        problem=problem,
        end=end,
    )
