"""The loss, or a function, over two parameters, and the path of each optimizer on it.

All other parameters keep their values, on the surface and on the paths, so that a path runs on
the surface that is shown. Each step uses all samples, so paths differ by their optimizer only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from cgprimer.analysis.element_graph import numbers_of
from cgprimer.core.evaluation.evaluator import evaluate_instructions, prepare_instructions
from cgprimer.core.graph import check_graph
from cgprimer.core.loss_expressions import LOSS
from cgprimer.core.methods.derivative_program import Names, normalize_names
from cgprimer.core.operations import numpy_arithmetic
from cgprimer.core.operations.matrix_operations import Matmul
from cgprimer.core.tape.scalarization import split_arrays
from cgprimer.core.tape.tape_dependencies import find_varying_values
from cgprimer.errors import UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.validation import check_integer, check_named_values, check_real_number
from cgprimer.support.value_names import element_hint
from cgprimer.training.data import Dataset, make_dataset, require_in_memory
from cgprimer.training.losses import DEFAULT, samples_for
from cgprimer.training.objective import Objective
from cgprimer.training.optimizers import OPTIMIZERS
from cgprimer.training.optimizers import optimizer as _optimizer
from cgprimer.training.parameter_vector import Vectors

Array = Any
FUNCTION = "output"  # the loss that is the output itself
Range = tuple[float, float]
_FLOOR = 0.02  # of the grid's points are the bottom
_DEEPEST = 1e-6  # of the greatest loss: what is less counts as the bottom
_FINER = 4  # times as many points to either side as were computed: contours without corners
_COMPILED = 20_000  # samples from which on a compiled gradient goes through them point by point
_AT_ONCE = 2**22  # numbers of all values of some points: 32 megabytes
_SHOWN = 10  # names in a hint
_ALONE = 2**18  # multiplications for which OpenBLAS takes one thread
_STEEP = 10.0  # times the median height of a function: its scale is logarithmic from there on
_SAME_HEIGHT = 1e-3  # of all heights: less is no difference between the edge and the inside
_SIDE = 3.0  # from the middle of a range to its ends, at least
_AROUND = 1.25  # times the distance between the start and the minimum: half of a range
_MOST_STEPS = 200  # of the search for a minimum
_BY_SIZE = ("adagrad", "rmsprop", "adam", "adamw")  # first steps are about the rate


@dataclass(frozen=True, eq=False)
class Descent:
    """The path of one optimizer."""

    optimizer: str
    rate: float
    points: Array  # before each step and after the last; shape (steps + 1, 2)
    losses: Array  # the mean loss at each point; shape (steps + 1,)
    diverged: bool  # it ended early, at a loss or a gradient that is not finite


@dataclass(frozen=True, eq=False)
class Landscape:
    """The mean loss over a grid of two parameters."""

    names: tuple[str, str]
    first: Array  # values of the first parameter, ascending; shape (n,)
    second: Array  # shape (m,)
    losses: Array  # shape (m, n): row k has the k-th value of the second parameter
    known: tuple[float, float] | None  # the two, where true, declared or given values are known
    called: str  # what these values are called: true, declared or given
    paths: tuple[Descent, ...]  # one per optimizer, all from one start
    start: Array  # where they begin; shape (2,)
    at_point: Callable[[Any], tuple[float, Array]]  # mean loss and gradient at two values
    function: str = ""  # the output whose values these are; empty where they are losses
    averaged: bool = True  # over samples, which differ

    @property
    def quantity(self) -> str:
        """What the heights are: `loss`, or the name of an output."""
        return self.function or "loss"

    @property
    def holds_minimum(self) -> bool:
        """Whether a point inside the grid is about as low as the lowest point on its edge."""
        finite = np.where(np.isfinite(self.losses), self.losses, np.inf)
        if min(finite.shape) < 3:
            return True
        inside, least = finite[1:-1, 1:-1].min(), finite.min()
        highest = np.max(finite, initial=least, where=np.isfinite(finite))
        return bool(inside - least <= _SAME_HEIGHT * (highest - least))

    @property
    def lowest(self) -> tuple[float, float]:
        """The grid's point of least loss."""
        row, column = np.unravel_index(np.nanargmin(self.losses), self.losses.shape)
        return float(self.first[column]), float(self.second[row])


def landscape(
    graph: ExpressionGraph, over: Names = (), data: Dataset | str | Path | None = None,
    ranges: Sequence[Range] = (), at: Mapping[str, float] | None = None,
    start: Mapping[str, float] | None = None, optimizers: Names | None = None,
    rates: Mapping[str, float] | None = None, steps: int = 200, loss: str | None = None,
    seed: int = 0, grid: int = 81,
) -> Landscape:  # fmt: skip
    """Compute what :func:`cgprimer.plot.surface` draws, on a grid of ``grid`` values per parameter.

    >>> from cgprimer.core.graph import parse
    >>> found = landscape(parse("xw = k*xa + b; parameter k = 3, b = -1"), ["k", "b"], steps=50)
    >>> found.lowest, found.losses.shape
    ((3.0, -1.0), (81, 81))
    """
    check_graph(graph)
    shapes, numbers = graph.shapes, Vectors(graph).elements
    names = _two(graph, numbers, over or numbers[:2])
    given = check_named_values("at", at, "parameter", graph.parameters, shapes=shapes, parts=True)
    needed = [n for n in graph.parameters if data is None or n not in names]
    point = graph.point(given, needed=needed)
    own = {name: point[name] for name in graph.parameters if name in point}
    values = {name: float(value) for name, value in split_arrays(own, shapes).items()}
    steps, grid = check_integer("steps", steps, minimum=1), check_integer("grid", grid, minimum=2)
    if loss is None:  # without inputs there are no samples to fit: the surface is the function
        loss = DEFAULT if graph.inputs or data is not None or len(graph.outputs) != 1 else FUNCTION
    if data is None:
        data = make_dataset(graph, samples=200 if graph.inputs else 1, truth=own, seed=seed)
    data = require_in_memory(samples_for(graph, data, loss), "a surface is of all samples")
    truth = (
        {} if loss == FUNCTION else split_arrays(data.truth, shapes)
    )  # of targets made from them
    engine = "numpy" if len(data) < _COMPILED else "auto"
    objective = Objective(graph, loss=loss, engine=engine, free=np.isin(numbers, names))
    at_point, at_points = _mean_loss(objective, data, names, values)
    known, called = values, "given" if split_arrays(given, shapes).keys() & {*names} else "declared"
    if all(name in truth for name in names):
        known, called = truth, "true"
    both = (known[names[0]], known[names[1]]) if known.keys() >= {*names} else None
    begin = check_named_values("start", start, "parameter", names)
    sides = _ranges(names, ranges, at_point, both, called, begin)
    first, second = (np.linspace(low, high, grid) for low, high in sides)
    points = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
    losses = at_points(points).reshape(grid, grid)
    if not np.isfinite(losses).any():
        raise UsageError("the loss is not finite anywhere in these ranges")
    corner = {name: low + (high - low) / 10 for name, (low, high) in zip(names, sides, strict=True)}
    if loss == FUNCTION and both is not None:  # a descent of a function begins at its point
        corner, both = dict(zip(names, both, strict=True)), None
    place = np.array([(corner | begin)[name] for name in names])
    paths = _paths(at_point, optimizers, rates, place, steps, min(b - a for a, b in sides))
    function = graph.outputs[0] if loss == FUNCTION and len(graph.outputs) == 1 else ""
    return Landscape(
        names, first, second, losses, both, called, paths, place, at_point, function, len(data) > 1
    )


def _paths(
    at_point: Callable[[Any], tuple[float, Array]],
    optimizers: Names | None,
    rates: Mapping[str, float] | None,
    begin: Array,
    steps: int,
    span: float,
) -> tuple[Descent, ...]:
    """Return the path of each optimizer."""
    given = check_named_values("rates", rates, "optimizer", OPTIMIZERS, above=0)
    chosen = ("sgd", "momentum", "adam") if optimizers is None else optimizers
    chosen = normalize_names(chosen, "optimizers") if chosen else ()
    names = () if chosen == ("none",) else chosen
    return tuple(_path(at_point, name, begin, steps, given.get(name), span) for name in names)


def full_batch_name(optimizer: str) -> str:
    """Return what lectures call an optimizer whose steps use all samples.

    >>> full_batch_name("sgd"), full_batch_name("adam")
    ('gradient descent', 'adam')
    """
    return "gradient descent" if optimizer == "sgd" else optimizer


def _mean_loss(
    objective: Objective, data: Dataset, names: Sequence[str], values: Mapping[str, float]
) -> tuple[Callable[[Any], tuple[float, Array]], Callable[[Array], Array]]:
    """What computes mean loss and gradient at values of the two parameters, and losses at many."""
    columns, samples, primal = objective.columns(data), len(data), objective.primal
    numbers = objective.vectors.elements
    point = np.array([float(values.get(n, 0.0)) for n in numbers])
    places = [numbers.index(name) for name in names]

    def at_point(two: Any) -> tuple[float, Array]:
        point[places] = two
        with np.errstate(all="ignore"):
            total, gradient = objective.sums(columns, point, samples)
        return total / samples, gradient[places] / samples

    def at_points(points: Array) -> Array:
        """Arrays with one of the two have an axis for the points, and one for the samples."""
        alone = objective.function or primal.custom or primal.combines_samples  # they know one axis
        if alone or samples >= _COMPILED:
            return np.array([at_point(two)[0] for two in points])
        own = objective.vectors.parts(np.arange(len(point)))
        moved = {name: at for name, at in own.items() if np.isin(places, at).any()}
        fixed, steps = (
            {**columns, **objective.scalars(point)},
            prepare_instructions(primal, _stacked),
        )
        counts = [samples if each else 1 for each in find_varying_values(primal)]
        size = sum(count * prod(primal.shapes[k]) for k, count in enumerate(counts))
        losses = []
        for begin in range(0, len(points), many := max(1, _AT_ONCE // size)):
            two = points[begin : begin + many]
            some = np.repeat(point[None], len(two), axis=0)
            some[:, places] = two
            given = fixed | {name: some[:, None, at] for name, at in moved.items()}
            start = [f.value if f.kind == "constant" else given[f.name] for f in primal.leaves]
            with np.errstate(all="ignore"):
                found = evaluate_instructions(steps, start)[primal.outputs[LOSS]]
                losses.append(np.broadcast_to(found, (len(two), samples)).mean(axis=1))
        return np.concatenate(losses)

    return at_point, at_points


def _stacked(name: Any) -> Callable[..., Array]:
    """numpy's function of a primitive; products with the matrices of all points are one call."""
    plain = numpy_arithmetic.numpy_function(name)
    if name == "pow":  # numpy's squares take ten times as long
        return lambda a, b: a * a if isinstance(b, float) and b == 2.0 else plain(a, b)
    if not isinstance(name, Matmul) or {*name.ranks} != {1, 2}:
        return plain

    def product(a: Array, b: Array) -> Array:
        vector, matrix = (a, b) if name.left_rank == 1 else (b, np.swapaxes(a, -1, -2))
        if matrix.ndim == 4 and matrix.shape[1] == 1 and vector.ndim > 1:  # one for each point
            return _in_rows(vector, matrix[:, 0])
        return _in_rows(vector, matrix) if vector.ndim == 3 and matrix.ndim == 2 else plain(a, b)

    return product


def _in_rows(a: Array, b: Array) -> Array:
    """``a @ b``, so many rows at a time that OpenBLAS needs no threads, which wait long."""
    rows, whole = _ALONE // (b.shape[-2] * b.shape[-1] or 1), a.shape[-2]
    if not 8 <= rows < whole:
        return np.matmul(a, b)
    whole -= whole % rows
    blocks = a[..., :whole, :].reshape(*a.shape[:-2], -1, rows, a.shape[-1])
    made = np.matmul(blocks, b[..., None, :, :])
    made = made.reshape(*made.shape[:-3], whole, made.shape[-1])
    return np.concatenate([made, np.matmul(a[..., whole:, :], b)], axis=-2)


def _path(
    at_point: Callable[[Any], tuple[float, Array]],
    name: str,
    begin: Array,
    steps: int,
    rate: float | None,
    span: float,
) -> Descent:
    """The steps of one optimizer, each with all samples and the same rate."""
    rule = _optimizer(name)
    if rule.kind != "rule":
        raise UsageError(f"{name} has no rule for one step from a point, of which a path is made")
    loss, slope = at_point(begin)
    if rate is None:  # the first step is about a hundredth of the picture; that of adam is the rate
        steep = 1.0 if name in _BY_SIZE else float(np.max(np.abs(slope)))
        rate = 0.01 * span / steep if np.isfinite(steep) and steep > 0 else rule.rate
    points, losses, state = [begin], [loss], rule.start(begin)
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


def _two(graph: ExpressionGraph, numbers: Sequence[str], over: Names) -> tuple[str, str]:
    names = normalize_names(over, "over") if over else ()
    for name in names:
        if name not in numbers:
            if name in graph.parameters:
                numbers_of(graph, None, [name])  # says that it is an array
            hint = element_hint(name, numbers)
            if name in graph.inputs:
                hint = f"{name} is an input: write 'parameter {name} = VALUE' in the text"
            raise UsageError(f"the graph has no parameter {name!r}", hint=hint)
    if len(names) != 2:
        shown = [*numbers[:_SHOWN], *["..."][: len(numbers) - _SHOWN]]
        raise UsageError(
            "a surface is over two different parameters",
            hint=f"choose from {', '.join(shown) or 'none: the graph has none'}",
        )
    return names[0], names[1]


def _ranges(
    names: tuple[str, str],
    ranges: Sequence[Range],
    at_point: Callable[[Any], tuple[float, Array]],
    known: tuple[float, float] | None,
    called: str,
    begin: Mapping[str, float],
) -> list[Range]:
    """Return both ranges: those given, or else ranges with the minimum in their middle."""
    pairs = list(ranges) if isinstance(ranges, Iterable) else [ranges]
    if not pairs:
        middle = np.array(known or (0.0, 0.0))
        if called == "true":
            return [(value - _SIDE, value + _SIDE) for value in middle.tolist()]
        from_there = np.array(
            [begin.get(name, value) for name, value in zip(names, middle, strict=True)]
        )
        least = _minimum(at_point, from_there)
        half = np.full(2, _SIDE)
        if least is not None:
            half = np.maximum(half, _AROUND * np.abs(from_there - least))
            middle = least
        return list(zip((middle - half).tolist(), (middle + half).tolist(), strict=True))
    if len(pairs) != 2 or any(np.shape(pair) != (2,) for pair in pairs):
        raise UsageError("a range, from where to where, is needed for each of the two parameters")
    found = []
    for name, ends in zip(names, pairs, strict=True):
        low, high = (check_real_number(f"an end of the range of {name}", end) for end in ends)
        if not low < high:
            raise UsageError(f"the range of {name} must ascend, not go from {low:g} to {high:g}")
        found.append((low, high))
    return found


def _minimum(at_point: Callable[[Any], tuple[float, Array]], begin: Array) -> Array | None:
    """Return a local minimum that descent from a point reaches; None where it reaches none.

    Source: Nocedal and Wright, "Numerical Optimization" (2006), algorithm 6.1 (BFGS).
    """
    point, (value, slope) = begin, at_point(begin)
    steep = np.abs(slope).max()
    inverse = np.eye(2) / max(steep, 1e-300)  # the first step has a length of about 1
    for _ in range(_MOST_STEPS):
        if not (np.isfinite(value) and np.isfinite(slope).all()):
            return None
        if np.abs(slope).max() <= 1e-8 * max(1.0, steep):
            return _rounded(at_point, point, value)
        way, size = -inverse @ slope, 1.0
        while not at_point(point + size * way)[0] <= value + 1e-4 * size * (slope @ way):
            size /= 2
            if size < 1e-12:
                return None
        moved = size * way
        point = point + moved
        value, before = at_point(point)[0], slope
        slope = at_point(point)[1]
        change = slope - before
        if (along := float(change @ moved)) > 1e-300:
            left = np.eye(2) - np.outer(moved, change) / along
            inverse = left @ inverse @ left.T + np.outer(moved, moved) / along
    return None


def _rounded(at_point: Callable[[Any], tuple[float, Array]], point: Array, value: float) -> Array:
    """Return the point with few digits where that is as low, so that axes have short numbers."""
    near = np.round(point, 3) + 0.0
    return near if at_point(near)[0] <= value + 1e-5 * max(1.0, abs(value)) else point


@dataclass(frozen=True, eq=False)
class Relief:
    """The losses of a landscape as they are shown."""

    first: Array  # shape (n,)
    second: Array  # shape (m,)
    losses: Array  # shape (m, n); nan where there is none
    floor: float  # the least loss that is shown; all below are at the floor
    logarithmic: bool  # the scale of losses, as it is where they differ and none is negative

    def contains(self, points: Array) -> Array:
        """Which points, of shape (..., 2), lie in the picture or on its edge."""
        low, high = ([side[k] for side in (self.first, self.second)] for k in (0, -1))
        return ((points >= low) & (points <= high)).all(axis=-1)

    @property
    def holes(self) -> bool:
        """Whether there is no finite loss somewhere."""
        return bool(np.isnan(self.losses).any())

    @cached_property
    def heights(self) -> Array:
        """What stands up in 3-D: the losses, or their logarithms; shape (m, n)."""
        return np.log10(self.losses) if self.logarithmic else self.losses

    @property
    def top(self) -> float:
        """The greatest loss."""
        return float(np.nanmax(self.losses))


def relief(found: Landscape) -> Relief:
    """Return the heights of a landscape on a finer grid, with a floor on a logarithmic scale."""
    finite = np.where(np.isfinite(found.losses), found.losses, np.nan)
    floor, high = float(np.nanmin(finite)), float(np.nanmax(finite))
    logarithmic = floor >= 0
    if found.function:  # a bowl is shown as a bowl unless almost all of it would look flat
        logarithmic &= high > _STEEP * float(np.nanmedian(finite))
    if logarithmic:
        # The bottom of a narrow valley lies between the points of the grid: a few are its floor.
        floor = max(high * _DEEPEST, float(np.nanquantile(finite, _FLOOR)))
    fine = np.clip(_finer(_finer(finite).T).T, floor, high)
    sides = _between(found.first), _between(found.second)
    return Relief(*sides, fine, floor, logarithmic and high > floor)


def _between(values: Array) -> Array:
    count = _FINER * (len(values) - 1) + 1
    return np.interp(np.arange(count) / _FINER, np.arange(len(values)), values)


def _finer(values: Array) -> Array:
    """Rows with more points between their own: exact for parabolas, straight beside holes.

    Catmull-Rom splines: through each point, with the slope of the line through its neighbours.
    """
    if values.shape[1] < 4:
        return np.array([_between(row) for row in values])
    first = 3 * values[:, :1] - 3 * values[:, 1:2] + values[:, 2:3]
    last = 3 * values[:, -1:] - 3 * values[:, -2:-1] + values[:, -3:-2]
    p = np.concatenate([first, values, last], axis=1)
    p0, p1, p2, p3 = (p[:, k : k + values.shape[1] - 1] for k in range(4))
    share = np.arange(_FINER) / _FINER
    weights = np.array([[0, 2, 0, 0], [-1, 0, 1, 0], [2, -5, 4, -1], [-1, 3, -3, 1]]) / 2
    smooth = np.einsum("sk,kij->ijs", share[:, None] ** np.arange(4) @ weights, [p0, p1, p2, p3])
    inner = np.where(np.isnan(smooth), p1[..., None] + share * (p2 - p1)[..., None], smooth)
    inner[..., 0] = p1
    return np.concatenate([inner.reshape(len(values), -1), values[:, -1:]], axis=1)
