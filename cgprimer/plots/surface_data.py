"""The loss as a landscape over two parameters, and the way down that each optimizer takes.

All other parameters keep their values, on the surface and on the paths, so that a path runs on
the surface that is shown. A step sees all samples: what differs between the paths is the
optimizer alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.methods.contract import Names, as_names
from cgprimer.data import Dataset, make_dataset
from cgprimer.errors import MissingValueError, UsageError, name_hint
from cgprimer.training.objective import Objective
from cgprimer.training.optimizers import OPTIMIZERS
from cgprimer.training.optimizers import optimizer as _optimizer

Array = Any
Range = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Descent:
    """The path of one optimizer.

    Attributes:
        optimizer: its name.
        rate: its learning rate.
        points: the two parameters before each step and after the last; shape (steps + 1, 2).
        losses: the mean loss at each point; shape (steps + 1,).
        diverged: whether it ended early, at a loss or a gradient that is not finite.
    """

    optimizer: str
    rate: float
    points: Array
    losses: Array
    diverged: bool


@dataclass(frozen=True, eq=False)
class Landscape:
    """The mean loss over a grid of two parameters.

    Attributes:
        names: the two parameters.
        first, second: their values on the grid, ascending; shapes (n,) and (m,).
        losses: mean losses; shape (m, n): row k has the k-th value of the second parameter.
        held: values of the other parameters.
        truth: values of the two that the data were made with, if both are known.
        paths: a path per optimizer, all from one start.
    """

    names: tuple[str, str]
    first: Array
    second: Array
    losses: Array
    held: dict[str, float]
    truth: tuple[float, float] | None
    paths: tuple[Descent, ...]

    @property
    def lowest(self) -> tuple[float, float]:
        """The grid's point of least loss."""
        row, column = np.unravel_index(np.nanargmin(self.losses), self.losses.shape)
        return float(self.first[column]), float(self.second[row])


def landscape(
    graph: ExpressionGraph,
    over: Names,
    dataset: Dataset | None = None,
    *,
    ranges: Sequence[Range] = (),
    at: Mapping[str, float] | None = None,
    start: Mapping[str, float] | None = None,
    optimizers: Names = tuple(OPTIMIZERS),
    rates: Mapping[str, float] | None = None,
    steps: int = 200,
    grid: int = 81,
    loss: str = "squared-error",
    seed: int = 0,
) -> Landscape:
    """The loss over two parameters, and the paths of optimizers on it.

    Args:
        graph: the graph.
        over: two of its parameters.
        dataset: inputs and targets; 200 samples made from the true values unless given.
        ranges: from where to where each of the two goes; three to either side of its value
            unless given.
        at: values of parameters; declared values fill the rest. They are the truth where the
            data are made here.
        start: where the paths begin; a tenth from the lower left corner unless given.
        optimizers: a name or names; none for the surface alone.
        rates: learning rates by optimizer. Unless given the rate is chosen from the steepness at
            the start: the first step, were it a plain one, is a hundredth of the ranges.
        steps: of each optimizer.
        grid: values of each of the two parameters.
        loss: as in :func:`cgprimer.train`.
        seed: of the data.

    Raises:
        UsageError: not two different parameters, an unknown optimizer, an empty range.
        MissingValueError: a parameter has no value to be held at.

    >>> from cgprimer.core.graph import parse
    >>> found = landscape(parse("xw = k*xa + b; parameter k = 3, b = -1"), ["k", "b"], steps=50)
    >>> found.lowest, found.losses.shape
    ((3.0, -1.0), (81, 81))
    """
    names = _two(graph, over)
    values = {**{n: v for n, v in graph.values.items() if n in graph.parameters}, **(at or {})}
    for name in values:
        if name not in graph.parameters:
            hint = name_hint(name, graph.parameters)
            raise UsageError(f"the graph has no parameter {name!r}", hint=hint)
    missing = [n for n in graph.parameters if n not in values and n not in names]
    if dataset is None:
        missing = [n for n in graph.parameters if n not in values]
    if missing:
        raise MissingValueError(
            f"no value for the parameter {missing[0]!r}", hint="at={...} (--at NAME=VALUE)"
        )
    for name, number in (("steps", steps), ("grid", grid - 1)):
        if number < 1:
            raise UsageError(f"there must be more of {name}")
    if dataset is None:
        dataset = make_dataset(graph, samples=200, truth=values, seed=seed)
    (low1, high1), (low2, high2) = _ranges(names, ranges, values)
    objective = Objective(graph, loss=loss, engine="numpy")
    descend = _Descending(objective, dataset, names, values)
    first, second = np.linspace(low1, high1, grid), np.linspace(low2, high2, grid)
    losses = np.array([[descend.at((a, b))[0] for a in first] for b in second])
    if not np.isfinite(losses).any():
        raise UsageError("the loss is not finite anywhere in these ranges")
    corner = {names[0]: low1 + (high1 - low1) / 10, names[1]: low2 + (high2 - low2) / 10}
    for name in start or {}:
        if name not in names:
            raise UsageError(f"a start is a value of {names[0]} or {names[1]}, not of {name!r}")
    begin = np.array([float({**corner, **(start or {})}[name]) for name in names])
    span = np.array([high1 - low1, high2 - low2])
    for name in rates or {}:
        _optimizer(name)
    chosen = as_names(optimizers, "optimizers") if optimizers else ()
    paths = tuple(
        descend.path(name, begin, steps, (rates or {}).get(name), span) for name in chosen
    )
    truth = None
    if all(name in values for name in names):
        truth = (values[names[0]], values[names[1]])
    held = {n: float(v) for n, v in values.items() if n not in names}
    return Landscape(names, first, second, losses, held, truth, paths)


class _Descending:
    """Loss and gradient over two parameters, and the steps of an optimizer."""

    def __init__(
        self,
        objective: Objective,
        dataset: Dataset,
        names: tuple[str, str],
        values: Mapping[str, float],
    ) -> None:
        self.objective = objective
        self.columns = objective.columns(dataset)
        self.samples = len(dataset)
        self.values = np.array([float(values.get(n, 0.0)) for n in objective.parameters])
        self.places = [objective.parameters.index(name) for name in names]

    def at(self, point: Any) -> tuple[float, Array]:
        """Mean loss and gradient at values of the two parameters."""
        self.values[self.places] = point
        with np.errstate(all="ignore"):
            total, gradient = self.objective.sums(self.columns, self.values, self.samples)
        return total / self.samples, gradient[self.places] / self.samples

    def path(self, name: str, begin: Array, steps: int, rate: float | None, span: Array) -> Descent:
        """The steps of one optimizer, each with all samples and the same rate."""
        rule = _optimizer(name)
        loss, slope = self.at(begin)
        if rate is None:
            rate = _rate(name, slope, span)
        elif not 0 < rate < np.inf:
            raise UsageError(f"the learning rate must be positive, not {rate:g}")
        points, losses, state = [begin], [loss], rule.start(begin)
        diverged = not np.isfinite(loss)
        for _ in range(0 if diverged else steps):
            with np.errstate(all="ignore"):
                point, state = rule.update(points[-1], slope, state, rate)
            loss, slope = self.at(point)
            if not (np.isfinite(loss) and np.isfinite(slope).all()):
                diverged = True
                break
            points.append(point)
            losses.append(loss)
        return Descent(name, rate, np.array(points), np.array(losses), diverged)


def _rate(name: str, slope: Array, span: Array) -> float:
    """A rate whose first step is about a hundredth of the picture."""
    step = 0.01 * float(np.min(span))
    if name == "adam":  # its first step is the rate, whatever the slope
        return step
    steep = float(np.max(np.abs(slope)))
    return step / steep if np.isfinite(steep) and steep > 0 else _optimizer(name).rate


def _two(graph: ExpressionGraph, over: Names) -> tuple[str, str]:
    names = [over] if isinstance(over, str) else list(over)
    for name in names:
        if name not in graph.parameters:
            hint = name_hint(name, graph.parameters)
            raise UsageError(f"the graph has no parameter {name!r}", hint=hint)
    if len(names) != 2 or names[0] == names[1]:
        raise UsageError(
            "a surface is over two different parameters",
            hint=f"choose from {', '.join(graph.parameters) or 'none: the graph has none'}",
        )
    return names[0], names[1]


def _ranges(
    names: tuple[str, str], ranges: Sequence[Range], values: Mapping[str, float]
) -> tuple[Range, Range]:
    if not ranges:
        middle = [float(values.get(name, 0.0)) for name in names]
        return (middle[0] - 3, middle[0] + 3), (middle[1] - 3, middle[1] + 3)
    if len(ranges) != 2:
        raise UsageError("a range is needed for each of the two parameters")
    for name, (low, high) in zip(names, ranges, strict=True):
        if not (np.isfinite([low, high]).all() and low < high):
            raise UsageError(f"the range of {name} must ascend, not go from {low:g} to {high:g}")
    return ranges[0], ranges[1]
