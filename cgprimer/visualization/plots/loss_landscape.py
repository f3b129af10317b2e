"""The loss, or a function, on a grid of two parameters, and the path of each optimizer.

All other parameters keep their values, on the grid and along the paths, so a path lies on the
surface that is shown. Each iteration uses all samples, so paths differ by their optimizer only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cgprimer.analysis.element_graph import expand_with_point
from cgprimer.core.graph import check_graph
from cgprimer.core.methods.derivative_program import Names, normalize_names
from cgprimer.core.tape.scalarization import split_arrays
from cgprimer.errors import UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.validation import check_integer, check_named_values, check_real_number
from cgprimer.support.value_names import element_hint
from cgprimer.training.data import Dataset, make_dataset, require_in_memory
from cgprimer.training.losses import DEFAULT, load_samples
from cgprimer.training.objective import Objective
from cgprimer.training.optimizers import OPTIMIZERS
from cgprimer.training.optimizers import optimizer as find_optimizer
from cgprimer.training.parameter_vector import ParameterVectors
from cgprimer.visualization.plots.grid_losses import MANY_SAMPLES, LossAtPoint, MeanLoss

Array = Any
FUNCTION = "output"  # the loss that is the output itself
Range = tuple[float, float]
_MAX_HINT_NAMES = 10
_SAME_HEIGHT = 1e-3  # fraction of the range of losses below which two losses count as equal
_MIN_HALF_RANGE = 3.0
_START_MARGIN = 1.25  # half of a range, over the distance between the start and the minimum
_MAX_SEARCH_ITERATIONS = 200  # of the search for a minimum
_NORMALIZED = ("adagrad", "rmsprop", "adam", "adamw")  # the first update is about the rate


@dataclass(frozen=True)
class LandscapeOptions:
    """Options for a loss landscape and its paths, which :func:`cgprimer.plot.surface` describes.

    `grid` is the number of values of each parameter.
    """

    over: Names = ()
    ranges: Sequence[Range] = ()
    at: Mapping[str, float] | None = None
    start: Mapping[str, float] | None = None
    optimizers: Names | None = None
    rates: Mapping[str, float] | None = None
    steps: int = 200
    loss: str | None = None
    seed: int = 0
    grid: int = 81


@dataclass(frozen=True, eq=False)
class Descent:
    """The path of one optimizer over a loss landscape.

    Attributes:
        optimizer: name of the optimizer.
        rate: learning rate.
        points: values of the two parameters before each update and after the last; shape
            (updates + 1, 2).
        losses: the mean loss at each point; shape (updates + 1,).
        diverged: True if it ended early, at a loss or gradient that is not finite.
    """

    optimizer: str
    rate: float
    points: Array
    losses: Array
    diverged: bool


@dataclass(frozen=True, eq=False)
class Landscape:
    """The mean loss on a grid over two parameters.

    Attributes:
        names: the two parameters.
        first: values of the first parameter, ascending; shape (n,).
        second: values of the second parameter, ascending; shape (m,).
        losses: mean losses; shape (m, n).
        reference: true, declared or given values of the two parameters; None without such values.
        reference_kind: `true`, `declared` or `given`.
        paths: the paths of the optimizers, all from one start.
        start: start of the paths; shape (2,).
        at_point: function that returns mean loss and gradient at two values.
        function: the output that is shown; empty for losses.
        averaged: True if the losses are means over several samples.
    """

    names: tuple[str, str]
    first: Array
    second: Array
    losses: Array
    reference: tuple[float, float] | None
    reference_kind: str
    paths: tuple[Descent, ...]
    start: Array
    at_point: LossAtPoint
    function: str = ""
    averaged: bool = True

    @property
    def quantity(self) -> str:
        """Name of the quantity on the vertical axis: `loss`, or the name of an output."""
        return self.function or "loss"

    @property
    def has_inner_minimum(self) -> bool:
        """True if the grid point with the minimum loss is not on the edge of the grid."""
        finite = np.where(np.isfinite(self.losses), self.losses, np.inf)
        if min(finite.shape) < 3:
            return True
        inside, least = finite[1:-1, 1:-1].min(), finite.min()
        highest = np.max(finite, initial=least, where=np.isfinite(finite))
        return bool(inside - least <= _SAME_HEIGHT * (highest - least))

    @property
    def lowest(self) -> tuple[float, float]:
        """The grid point with the minimum loss."""
        row, column = np.unravel_index(np.nanargmin(self.losses), self.losses.shape)
        return float(self.first[column]), float(self.second[row])


def landscape(
    graph: ExpressionGraph, over: Names = (), data: Dataset | str | Path | None = None,
    ranges: Sequence[Range] = (), at: Mapping[str, float] | None = None,
    start: Mapping[str, float] | None = None, optimizers: Names | None = None,
    rates: Mapping[str, float] | None = None, steps: int = 200, loss: str | None = None,
    seed: int = 0, grid: int = 81,
) -> Landscape:  # fmt: skip
    """Compute the loss landscape of two parameters on a grid with ``grid`` values per parameter.

    >>> from cgprimer.core.graph import parse
    >>> result = landscape(parse("xw = k*xa + b; parameter k = 3, b = -1"), ["k", "b"], steps=50)
    >>> result.lowest, result.losses.shape
    ((3.0, -1.0), (81, 81))
    """
    options = LandscapeOptions(over, ranges, at, start, optimizers, rates, steps, loss, seed, grid)
    return compute_landscape(graph, data, options)


def compute_landscape(
    graph: ExpressionGraph, data: Dataset | str | Path | None, options: LandscapeOptions
) -> Landscape:
    """Compute the losses on a grid over two parameters, and the paths of optimizers."""
    check_graph(graph)
    names = _choose_parameters(graph, options.over)
    values = _resolve_parameter_values(graph, data, options, names)
    steps = check_integer("steps", options.steps, minimum=1)
    grid = check_integer("grid", options.grid, minimum=2)
    loss = options.loss
    if loss is None:  # a graph without inputs has no samples: its surface is the function
        loss = DEFAULT if graph.inputs or data is not None or len(graph.outputs) != 1 else FUNCTION
    if data is None:
        samples = 200 if graph.inputs else 1
        data = make_dataset(graph, samples=samples, truth=values, seed=options.seed)
    dataset = require_in_memory(load_samples(graph, data, loss), "a loss surface uses all samples")
    elements = split_arrays(values, graph.shapes)
    scalars = {name: float(value) for name, value in elements.items()}
    engine = "numpy" if len(dataset) < MANY_SAMPLES else "auto"
    free = np.isin(ParameterVectors(graph).elements, names)
    objective = Objective(graph, loss=loss, engine=engine, free=free)
    mean_loss = MeanLoss(objective, dataset, names, scalars)
    truth = {} if loss == FUNCTION else split_arrays(dataset.truth, graph.shapes)
    reference, kind = _choose_reference(graph, options, names, truth, scalars)
    start = check_named_values("start", options.start, "parameter", names)
    sides = _choose_ranges(names, options.ranges, mean_loss.at_point, reference, kind, start)
    first, second = (np.linspace(low, high, grid) for low, high in sides)
    points = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
    losses = mean_loss.at_points(points).reshape(grid, grid)
    if not np.isfinite(losses).any():
        raise UsageError("the loss is not finite anywhere in the given ranges")
    corner = {name: low + (high - low) / 10 for name, (low, high) in zip(names, sides, strict=True)}
    if loss == FUNCTION and reference is not None:  # a descent of a function starts at its point
        corner, reference = dict(zip(names, reference, strict=True)), None
    first_point = np.array([(corner | start)[name] for name in names])
    span = min(high - low for low, high in sides)
    paths = _compute_paths(mean_loss.at_point, options, first_point, steps, span)
    function = graph.outputs[0] if loss == FUNCTION and len(graph.outputs) == 1 else ""
    return Landscape(
        names, first, second, losses, reference, kind, paths, first_point, mean_loss.at_point,
        function, len(dataset) > 1,
    )  # fmt: skip


def _resolve_parameter_values(
    graph: ExpressionGraph, data: Any, options: LandscapeOptions, names: tuple[str, str]
) -> dict[str, Any]:
    """Return the given or declared value of each parameter; arrays stay whole."""
    given_values = check_named_values(
        "at", options.at, "parameter", graph.parameters, shapes=graph.shapes, parts=True
    )
    needed = [n for n in graph.parameters if data is None or n not in names]
    point = graph.point(given_values, needed=needed)
    return {name: point[name] for name in graph.parameters if name in point}


def _choose_reference(
    graph: ExpressionGraph,
    options: LandscapeOptions,
    names: tuple[str, str],
    truth: Mapping[str, float],
    declared: Mapping[str, float],
) -> tuple[tuple[float, float] | None, str]:
    """Choose reference values for both parameters, and their kind: true, given or declared."""
    if all(name in truth for name in names):
        return (float(truth[names[0]]), float(truth[names[1]])), "true"
    given_values = check_named_values(
        "at", options.at, "parameter", graph.parameters, shapes=graph.shapes, parts=True
    )
    kind = "given" if split_arrays(given_values, graph.shapes).keys() & {*names} else "declared"
    if declared.keys() >= {*names}:
        return (declared[names[0]], declared[names[1]]), kind
    return None, kind


def format_full_batch_name(optimizer: str) -> str:
    """Return the display name of an optimizer whose updates use all samples.

    >>> format_full_batch_name("sgd"), format_full_batch_name("adam")
    ('gradient descent', 'adam')
    """
    return "gradient descent" if optimizer == "sgd" else optimizer


def _compute_paths(
    at_point: LossAtPoint, options: LandscapeOptions, start: Array, steps: int, span: float
) -> tuple[Descent, ...]:
    """Compute the path of each chosen optimizer over the loss landscape."""
    rates = check_named_values("rates", options.rates, "optimizer", OPTIMIZERS, above=0)
    chosen = ("sgd", "momentum", "adam") if options.optimizers is None else options.optimizers
    chosen = normalize_names(chosen, "optimizers") if chosen else ()
    names = () if chosen == ("none",) else chosen
    return tuple(
        _compute_path(at_point, name, start, steps, rates.get(name), span) for name in names
    )


def _compute_path(
    at_point: LossAtPoint, name: str, start: Array, steps: int, rate: float | None, span: float
) -> Descent:
    """Compute the path of one optimizer, with full-batch updates and a constant learning rate."""
    rule = find_optimizer(name)
    if rule.kind != "rule":
        raise UsageError(f"cannot draw the path of {name}: it does not define a single update")
    loss, slope = at_point(start)
    if rate is None:  # the first update moves by about a hundredth of the picture
        steepness = 1.0 if name in _NORMALIZED else float(np.max(np.abs(slope)))
        is_usable = np.isfinite(steepness) and steepness > 0
        rate = 0.01 * span / steepness if is_usable else rule.rate
    points, losses, state = [start], [loss], rule.start(start)
    diverged = not np.isfinite(loss)
    for _ in range(0 if diverged else steps):
        with np.errstate(all="ignore"):
            point, state = rule.update(points[-1], slope, state, rate)
        loss, slope = at_point(point)
        if not (np.isfinite(loss) and np.isfinite(slope).all()):
            diverged = True
            break
        points.append(point)
        losses.append(loss)
    return Descent(name, rate, np.array(points), np.array(losses), diverged)


def _choose_parameters(graph: ExpressionGraph, over: Names) -> tuple[str, str]:
    """Return the two parameters of a surface; the default is the first two parameter elements."""
    elements = ParameterVectors(graph).elements
    chosen = over or elements[:2]
    names = normalize_names(chosen, "over") if chosen else ()
    for name in names:
        if name not in elements:
            if name in graph.parameters:
                expand_with_point(graph, None, [name])  # raises an error: the name is an array
            hint = element_hint(name, elements)
            if name in graph.inputs:
                hint = f"{name} is an input; declare it as 'parameter {name} = VALUE'"
            raise UsageError(f"unknown parameter {name!r}", hint=hint)
    if len(names) != 2:
        shown = [*elements[:_MAX_HINT_NAMES], *["..."][: len(elements) - _MAX_HINT_NAMES]]
        hint = f"choose from {', '.join(shown)}" if elements else "the graph has no parameters"
        raise UsageError("a surface requires two different parameters", hint=hint)
    return names[0], names[1]


def _choose_ranges(
    names: tuple[str, str],
    ranges: Sequence[Range],
    at_point: LossAtPoint,
    reference: tuple[float, float] | None,
    kind: str,
    start: Mapping[str, float],
) -> list[Range]:
    """Return the given range of each parameter, or choose a range around the minimum."""
    pairs = list(ranges) if isinstance(ranges, Iterable) else [ranges]
    if not pairs:
        return _choose_ranges_around_minimum(names, at_point, reference, kind, start)
    if len(pairs) != 2 or any(np.shape(pair) != (2,) for pair in pairs):
        raise UsageError("`ranges` must have two pairs (low, high), one for each parameter")
    checked = []
    for name, ends in zip(names, pairs, strict=True):
        low, high = (check_real_number(f"an end of the range of {name}", end) for end in ends)
        if not low < high:
            raise UsageError(f"the range of {name} must be ascending, got {low:g} to {high:g}")
        checked.append((low, high))
    return checked


def _choose_ranges_around_minimum(
    names: tuple[str, str],
    at_point: LossAtPoint,
    reference: tuple[float, float] | None,
    kind: str,
    start: Mapping[str, float],
) -> list[Range]:
    """Choose ranges around the true values or around a minimum near the start."""
    middle = np.array(reference or (0.0, 0.0))
    half = np.full(2, _MIN_HALF_RANGE)
    if kind != "true":
        search_start = np.array([start.get(n, v) for n, v in zip(names, middle, strict=True)])
        minimum = _find_minimum(at_point, search_start)
        if minimum is not None:
            half = np.maximum(half, _START_MARGIN * np.abs(search_start - minimum))
            middle = minimum
    return list(zip((middle - half).tolist(), (middle + half).tolist(), strict=True))


def _find_minimum(at_point: LossAtPoint, start: Array) -> Array | None:
    """Find a local minimum by the BFGS method; return None if the method does not converge.

    SciPy has the same method; to import it takes longer than the rest of the plot.

    Source: Nocedal and Wright, "Numerical Optimization" (2006), algorithm 6.1.
    """
    point, (value, slope) = start, at_point(start)
    steepness = np.abs(slope).max()
    inverse = np.eye(2) / max(steepness, 1e-300)  # the first update has a length of about 1
    for _ in range(_MAX_SEARCH_ITERATIONS):
        if not (np.isfinite(value) and np.isfinite(slope).all()):
            return None
        if np.abs(slope).max() <= 1e-8 * max(1.0, steepness):
            return _round_minimum(at_point, point, value)
        direction, size = -inverse @ slope, 1.0
        while not at_point(point + size * direction)[0] <= value + 1e-4 * size * (
            slope @ direction
        ):
            size /= 2
            if size < 1e-12:
                return None
        step = size * direction
        point = point + step
        value, old_slope = at_point(point)[0], slope
        slope = at_point(point)[1]
        change = slope - old_slope
        if (curvature := float(change @ step)) > 1e-300:
            left = np.eye(2) - np.outer(step, change) / curvature
            inverse = left @ inverse @ left.T + np.outer(step, step) / curvature
    return None


def _round_minimum(at_point: LossAtPoint, point: Array, value: float) -> Array:
    """Round a minimum to 3 decimal places, unless this increases the loss."""
    near = np.round(point, 3) + 0.0
    return near if at_point(near)[0] <= value + 1e-5 * max(1.0, abs(value)) else point
