"""The function :func:`fit`: nonlinear least squares for a graph's parameters."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

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
from cgprimer.training.constraints import constraints, find_indices, set_start_values
from cgprimer.training.data import Dataset, require_in_memory, resolve_dataset
from cgprimer.training.fitting.damping import DAMPINGS
from cgprimer.training.fitting.fit_result import Fit, compute_covariance_factor, find_undetermined
from cgprimer.training.fitting.least_squares_descent import (
    Descent,
    Trial,
    gauss_newton,
    levenberg_marquardt,
)
from cgprimer.training.fitting.residuals import RANK, Linearization, Residuals, stack_targets
from cgprimer.training.fitting.scipy_minimizers import METHODS, minimize_with_scipy
from cgprimer.training.losses import convert_sample_columns
from cgprimer.training.nonfinite_steps import explain_nonfinite_update
from cgprimer.training.objective import Objective, check_learnable
from cgprimer.training.parameter_vector import ParameterVectors

Array = Any
ALGORITHMS = ("auto", "gauss-newton", "levenberg-marquardt", *METHODS)
_LOSS = "squared-error"
DAMPING_NAMES = ("auto", *DAMPINGS)
_RANDOM_POINTS = 8  # rounds of other points at which the rank of J is compared
_RANK_SAMPLES = 1_000  # maximum number of samples for the comparison of ranks
_EXACT_FIT = 1e-8  # norm of the residuals relative to the targets that no fit can improve
_EQUAL_SUMS = 1e-9  # relative difference of sums of squares that differ by rounding only


class _Attempt(NamedTuple):
    """The run of one algorithm with one damping strategy, from the initial values."""

    algorithm: str
    damping: str
    descent: Descent


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

    Each step uses all data: the residuals are the outputs minus their targets, and a derivative
    program computes their Jacobian J. A step is accepted only if the sum of squares decreases.

    Args:
        graph: the graph.
        dataset: a column for each input and each output: a Dataset, a file or a data frame.
        start: start values, scalars or arrays, or elements of arrays by name (``W[0]``). By
            default the values that the graph declares, unless the data were generated from them;
            other parameters start at random values.
        freeze: parameters that keep their start value.
        bounds: names to (minimum, maximum); infinite for no bound.
        weights: weights of the samples in the sum of squares: an array, or one per output by name.
        algorithm: ``gauss-newton``, ``levenberg-marquardt``, or one of SciPy's: ``trust-region``,
            ``dogleg``, ``minpack``, ``l-bfgs``. With ``auto``: Gauss-Newton if the graph is linear
            in its parameters and the data determine them, otherwise Levenberg-Marquardt, and the
            trust region if that reaches no minimum.
        damping: the strategy for lambda: ``tens``, ``marquardt`` or ``nielsen``; with ``auto``,
            the first of them that reaches a minimum.
        first_damping: the initial lambda; by default that of the damping strategy.
        iterations: the maximum number of trial steps.
        method: the differentiation method; ``forward`` and ``reverse`` give the same J.
        engine: the engine that runs the derivative program.
        seed: the seed of random start values, which are uniform in [0, 1).
        on_step: called after each trial step.
        options: options of the differentiation method.

    Returns:
        The fit. If ``converged`` is False, it holds the best point, and ``reason`` says why the
        algorithm failed. Ctrl-C stops the fit and returns the best point so far.

    Raises:
        UsageError, DataError: invalid arguments, missing columns, fewer data than parameters.
        NonFiniteError: residuals or derivatives at the start are not finite.

    >>> import cgprimer
    >>> graph = cgprimer.parse("y = exp(k*x)")
    >>> data = cgprimer.make_dataset(graph, truth={"k": 0.5}, samples=20)
    >>> result = fit(graph, data, start={"k": 1})
    >>> round(result.parameters["k"], 12), result.converged
    (0.5, True)
    """
    begin = time.perf_counter()
    check_graph(graph)
    check_functions(on_step=on_step)
    check_type("freeze", freeze or (), Iterable, "names of parameters")
    check_type("method", method, str, "a name")
    if bounds:
        check_type("bounds", bounds, Mapping, "a mapping of names to (minimum, maximum)")
    first_damping = _check_algorithm(algorithm, damping, first_damping, bool(bounds))
    limit = check_integer("iterations", iterations, minimum=1)
    dataset = require_in_memory(
        resolve_dataset(dataset, graph), "each step of least squares uses all samples"
    )
    problem, values = _build_residuals(
        graph, dataset, start, freeze, bounds, weights, seed, method, engine, options
    )
    origin = Linearization(problem, values)
    if not origin.is_finite:
        explanation, cause = _explain_nonfinite(graph, dataset, problem, values)
        hint = "choose other start values (--start), or inputs inside the domains"
        error = NonFiniteError(f"cannot fit from these start values: {explanation}", hint=hint)
        error.why = cause
        raise error
    attempts = []
    for name, rule in _list_attempts(problem, origin, algorithm, damping):
        start_trial = Trial(0, values, origin.sum_of_squares, None, True)
        descent = Descent(origin, [start_trial], limit, on_step)
        attempts.append(_Attempt(name, rule, descent))
        _run_attempt(problem, attempts[-1], first_damping)
        if descent.converged or descent.reason == "interrupted":
            break
    best = _select_best(attempts)
    if attempts[-1].descent.reason == "interrupted":
        best.descent.converged, best.descent.reason = False, "interrupted"
    elif not best.descent.converged:
        _explain_nonfinite_trials(graph, dataset, problem, best.descent)
    return _build_fit(graph, dataset, problem, best, time.perf_counter() - begin)


def _check_algorithm(
    algorithm: str, damping: str, first_damping: float | None, has_bounds: bool
) -> float | None:
    """Check that the algorithm accepts the other arguments, and return the initial lambda."""
    check_choice("algorithm", algorithm, ALGORITHMS)
    check_choice("damping", damping, DAMPING_NAMES)
    is_damped = algorithm in ("auto", "levenberg-marquardt")
    if damping != "auto" and not is_damped:
        raise UsageError(f"`damping` applies only to levenberg-marquardt, not to {algorithm}")
    if has_bounds and algorithm == "minpack":
        raise UsageError("minpack does not support bounds", hint="use trust-region or dogleg")
    if first_damping is None:
        return None
    if not is_damped:
        raise UsageError(f"`first_damping` applies only to levenberg-marquardt, not to {algorithm}")
    return check_real_number("the first damping", first_damping, above=0)


def _list_attempts(
    problem: Residuals, origin: Linearization, algorithm: str, damping: str
) -> list[tuple[str, str]]:
    """List the pairs of algorithm and damping strategy to try one after the other."""
    default = "levenberg-marquardt"
    if algorithm not in ("auto", default):
        return [(algorithm, "")]
    if damping != "auto":
        return [(default, damping)]
    damped = [(default, name) for name in DAMPINGS]
    if algorithm == default:
        return damped
    has_bounds = np.isfinite([problem.low, problem.high]).any()
    if problem.is_linear and origin.rank == origin.n_active and not has_bounds:
        return [("gauss-newton", "")]
    return [*damped, ("trust-region", "")]


def _run_attempt(problem: Residuals, attempt: _Attempt, first_damping: float | None) -> None:
    """Run one algorithm from the initial values until it converges, fails or is interrupted."""
    descent = attempt.descent
    start = descent.current.values
    try:
        if attempt.algorithm == "levenberg-marquardt":
            levenberg_marquardt(problem, descent, DAMPINGS[attempt.damping], first_damping)
        elif attempt.algorithm == "gauss-newton":
            gauss_newton(problem, descent)
        else:
            minimize_with_scipy(problem, descent, attempt.algorithm)
    except KeyboardInterrupt:
        descent.converged, descent.reason = False, "interrupted"
        return
    _reject_flat_region(problem, descent, start)


def _select_best(attempts: list[_Attempt]) -> _Attempt:
    """Return the attempt that converged, or else the first with the minimum sum of squares.

    In a flat region all attempts end at equal sums apart from rounding, which must not decide.
    """
    if attempts[-1].descent.converged:
        return attempts[-1]
    sums = [attempt.descent.current.sum_of_squares for attempt in attempts]
    smallest = min(sums) * (1 + _EQUAL_SUMS)
    return next(a for a, total in zip(attempts, sums, strict=True) if total <= smallest)


def _build_residuals(
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
    """Build the compiled residuals of a fit, and the vector of initial parameter values."""
    check_learnable(graph)
    vectors = ParameterVectors(graph)
    limits = constraints(vectors, bounds=bounds, freeze=freeze).columns
    low = limits.get("low", np.full(len(vectors), -math.inf))
    high = limits.get("high", np.full(len(vectors), math.inf))
    values = _resolve_start(graph, dataset, vectors, start, seed, low, high)
    free = np.flatnonzero(limits.get("free", np.ones(len(vectors))))
    wrt = tuple(dict.fromkeys(parse_element(vectors.elements[k]).array for k in free))
    dataset.check_finite()
    lowered = tape(graph)
    if lowered.combines_samples:
        method = "forward"  # reverse mode gives only the sum over dependent samples
    needed = build_loss(lowered, _LOSS).columns
    columns, _ = convert_sample_columns(graph, _LOSS, needed, dataset, "float64")
    target, samples = stack_targets(columns, graph.outputs), len(dataset)
    if len(target) < len(free):
        raise DataError(
            f"{len(target)} data values cannot determine {len(free)} parameters",
            hint="use more samples, or freeze parameters: freeze=[...] (--freeze NAME)",
        )
    program = differentiate(lowered, graph.outputs, wrt, method=method, **options)
    sizes = [columns[target_column_name(name)].size // samples for name in graph.outputs]
    problem = Residuals(
        Runner(program, engine=engine, samples=samples),
        vectors,
        {name: columns[name] for name in graph.inputs},
        samples,
        free,
        low,
        high,
        _resolve_weights(graph, weights, sizes, samples),
        target=target,
        sizes=tuple(sizes),
    )
    return problem, values


def _resolve_start(
    graph: ExpressionGraph,
    dataset: Dataset,
    vectors: ParameterVectors,
    start: Mapping[str, Any] | None,
    seed: int,
    low: Array,
    high: Array,
) -> Array:
    """Return the vector of initial parameter values: given, declared or else random.

    Declared values are ignored if the dataset was generated from them.
    """
    random_values = vectors.sampled_start(check_integer("the seed", seed))
    values = np.clip(random_values, low, high)  # the random values that `train` starts from
    shapes = {name: shape for name, shape in vectors.shapes.items() if shape}
    checked = check_named_values(
        "start", start, "parameter", vectors.shapes, shapes=shapes, parts=True
    )
    declared = graph.point(needed=()) if not dataset.truth else {}
    for name, value in declared.items():
        if name in vectors.shapes and name not in graph.initializers:
            values[find_indices(vectors, "start", name)] = np.ravel(value)
    set_start_values(values, vectors, checked)
    for name, value, least, most in zip(vectors.elements, values, low, high, strict=True):
        if not least <= value <= most:
            rule = f"the start value of {name} must lie within its bounds {least:g} and {most:g}"
            raise UsageError(f"{rule}, got {value:g}")
    return values


def _resolve_weights(graph: ExpressionGraph, weights: Any, sizes: list[int], samples: int) -> Array:
    """Return the square roots of the weights: one per residual, or 1 if there are no weights."""
    if weights is None:
        return np.array(1.0)
    by_output = weights if isinstance(weights, Mapping) else dict.fromkeys(graph.outputs, weights)
    if unknown := [name for name in by_output if name not in graph.outputs]:
        hint = element_hint(str(unknown[0]), graph.outputs)
        raise UsageError(f"unknown output in `weights`: {unknown[0]!r}", hint=hint)
    roots = []
    for name, size in zip(graph.outputs, sizes, strict=True):
        try:
            weights = np.asarray(by_output.get(name, 1.0), float)
            weights = np.broadcast_to(weights, (samples,))
        except (TypeError, ValueError):
            raise DataError(f"`weights` must contain {samples} numbers, one per sample") from None
        if not (np.isfinite(weights) & (weights >= 0)).all():
            raise DataError("`weights` must be finite and at least 0")
        roots.append(np.repeat(np.sqrt(weights), size))
    return np.concatenate(roots)


def _explain_nonfinite(
    graph: ExpressionGraph, dataset: Dataset, problem: Residuals, values: Array
) -> tuple[str, Any]:
    """Explain at which vertex and sample the residuals or derivatives are not finite."""
    point, samples = problem.vectors.values(values), np.arange(len(dataset))
    return explain_nonfinite_update(Objective(graph), dataset, point, samples, {})


def _explain_nonfinite_trials(
    graph: ExpressionGraph, dataset: Dataset, problem: Residuals, descent: Descent
) -> None:
    """Append to the reason of a failed fit why its latest trials were not finite."""
    latest = descent.trials[-20:]
    nonfinite = [t.values for t in latest if not math.isfinite(t.residual_sum_of_squares)]
    if nonfinite:
        explanation = _explain_nonfinite(graph, dataset, problem, nonfinite[-1])[0]
        descent.reason += f"; at the next step {explanation}"


def _reject_flat_region(problem: Residuals, descent: Descent, start: Array) -> None:
    """Mark a fit as not converged if it ended in a flat region, where J has a reduced rank."""
    current, free = descent.current, problem.free
    is_exact = current.sum_of_squares <= (_EXACT_FIT * problem.target_norm) ** 2
    if not descent.converged or current.rank == len(free) or is_exact:
        return
    n = min(problem.samples, _RANK_SAMPLES)
    subset = np.linspace(0, problem.samples - 1, n).astype(int)
    columns = {name: column[subset] for name, column in problem.columns.items()}

    def compute_rank(values: Array) -> int:
        """Compute the rank of J for some of the samples; 0 if J is not finite."""
        point = current.values.copy()
        point[free] = values[free]
        with np.errstate(all="ignore"):
            jacobian = problem.compute_outputs(problem.clip(point), columns, n)[1]
            norms = np.linalg.norm(jacobian, axis=0)
        if not np.isfinite(norms).all():
            return 0
        scaled = jacobian / np.where(norms > 0, norms, 1.0)
        return int(np.linalg.matrix_rank(scaled, rtol=RANK))

    generator, points = np.random.default_rng(0), [start]
    for _ in range(_RANDOM_POINTS):
        factors = generator.uniform(0.5, 2.0, len(start))
        points += [start * factors, current.values * factors, generator.normal(size=len(start))]
    rank, best_rank = compute_rank(current.values), max(map(compute_rank, points))
    if best_rank > rank:
        descent.converged = False
        descent.reason = (
            f"a flat region: the data determine {rank} of {len(free)} parameters at this point and"
            f" {best_rank} elsewhere, so there is no direction toward a minimum"
        )


def _build_fit(
    graph: ExpressionGraph,
    dataset: Dataset,
    problem: Residuals,
    attempt: _Attempt,
    seconds: float,
) -> Fit:
    """Build the result of a fit, with standard errors and a list of undetermined parameters."""
    descent = attempt.descent
    names, end = problem.vectors.elements, descent.current
    is_weighted = np.broadcast_to(problem.weights, len(end.residuals)) > 0
    freedom = max(0, int(is_weighted.sum()) - end.rank)
    deviation = math.sqrt(end.sum_of_squares / freedom) if freedom else math.nan
    errors = deviation * np.linalg.norm(compute_covariance_factor(end), axis=1)
    undetermined, _ = find_undetermined(end)
    errors[undetermined] = math.inf
    estimated = [names[k] for k in end.active_indices]
    return Fit(
        parameters=dict(zip(names, end.values.tolist(), strict=True)),
        start=dict(zip(names, descent.trials[0].values.tolist(), strict=True)),
        standard_errors=dict(zip(estimated, errors.tolist(), strict=True)),
        residual_sum_of_squares=end.sum_of_squares,
        residual_standard_deviation=deviation,
        degrees_of_freedom=freedom,
        rank=end.rank,
        relative_offset=float(end.relative_offset),
        converged=descent.converged,
        reason=descent.reason,
        sentences=tuple(_explain_undetermined(graph, dataset, problem, end)),
        algorithm=attempt.algorithm,
        damping=attempt.damping,
        iterations=len(descent.trials) - 1,
        seconds=seconds,
        history=tuple(descent.trials),
        graph=graph,
        dataset=dataset,
        problem=problem,
        end=end,
    )


def _explain_undetermined(
    graph: ExpressionGraph, dataset: Dataset, problem: Residuals, end: Linearization
) -> list[str]:
    """Explain which parameters the data do not determine, and which are at a bound."""
    names, sentences = problem.vectors.elements, []
    if end.rank < end.n_active:
        from cgprimer.training.identifiability import identifiability

        values = problem.vectors.values(end.values)
        estimated = [names[k] for k in end.active_indices]
        if explanation := identifiability(graph, dataset, values, wrt=estimated):
            sentences += explanation.sentences(graph.outputs)
    for k in sorted({*problem.free.tolist()} - {*end.active_indices.tolist()}):
        sentences.append(
            f"{names[k]} is at its bound {end.values[k]:g}: the sum of squares decreases beyond it."
        )
    return sentences
