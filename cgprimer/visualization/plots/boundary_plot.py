"""What a run says about the plane of its two inputs: classes and the boundaries between them.

The plane is cut into regions: of one class each, or of values between two levels where the targets
are no classes. Their outlines are computed once; a slide and a page draw the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from cgprimer.errors import DataError, UsageError, pluralize
from cgprimer.support.number_format import SHORT, format_number
from cgprimer.tapes import elements
from cgprimer.training.data import Dataset, normalize_data
from cgprimer.training.data.dataset_columns import combine_elements
from cgprimer.training.losses import beside_outputs, samples_for
from cgprimer.training.metrics import beside_labels, class_numbers, classes_of, side_by_side
from cgprimer.training.objective import Objective, Resident
from cgprimer.training.runs import TrainingRun
from cgprimer.visualization.diagrams.theme import Theme, mix
from cgprimer.visualization.plots import slide
from cgprimer.visualization.plots.plotted_runs import Run, named_runs, steps_per_epoch

Array = Any
GRID = 101  # points to either side
BANDS = 6  # of values that are no classes
_MARGIN = 0.08  # of the range of the samples, around them
_MOST = 1000  # samples that are drawn, evenly chosen
_TINT = 0.24  # of a class's colour in its region


@dataclass(frozen=True, eq=False)
class Plane:
    """The plane of two inputs, and the samples in it.

    Attributes:
        names: of the inputs.
        sides: the grid's values of each; shape (GRID,).
        points: the samples; shape (samples, 2).
        regions: what each region is called.
        own: the number of the region that each sample belongs to.
        levels: of one output, ascending: a region lies between two of them; None of several.
        classes: whether the targets are classes.
    """

    names: tuple[str, str]
    sides: tuple[Array, Array]
    points: Array
    regions: tuple[str, ...]
    own: Array
    levels: Array | None
    classes: bool

    @property
    def shown(self) -> Array:
        """The numbers of the samples that are drawn."""
        return np.unique(np.linspace(0, len(self.own) - 1, _MOST).astype(int))


@dataclass(frozen=True, eq=False)
class Moment:
    """What a run had learnt after a step.

    Attributes:
        step: how many steps had been done.
        parameters: their values then.
        loss: the mean over the samples.
        wrong: which samples are predicted to be of another class; nobody where there are none.
        areas: for each region its outlines, closed; what lies in an even number of them is outside.
        lines: the boundaries between the regions.
    """

    step: int
    parameters: dict[str, Any]
    loss: float
    wrong: Array
    areas: list[list[Array]]
    lines: list[Array]

    @property
    def words(self) -> str:
        """Step, loss and, of classes, the share of right ones."""
        said = f"step {self.step:,}, loss {format_number(self.loss, SHORT)}"
        if not len(self.wrong):
            return said
        return f"{said}, accuracy {format_number(1 - float(self.wrong.mean()), 3)}"


def boundary(
    run: Run,
    data: Any,
    *,
    columns: Mapping[str, str] | None = None,
    dark: bool = False,
    title: str | None = None,
) -> slide.Figure:
    """What a run with two inputs says about their plane, with the samples in it.

    Each class has a region; between them lies the decision boundary. Of a few values of one target
    the one nearest to the output is predicted, of several outputs the largest. Targets that are no
    classes are shown as bands of values. Samples that are predicted wrongly have a ring. A .gif is
    the boundary moving while the run learns, a .html file a page with loss, boundary and
    parameters, to be played.

    Args:
        run: a run, or the file of one.
        data: samples: a Dataset, a data frame or a .csv, .npz or .parquet file.
        columns: where columns have other names in files: y=label.
        title: above the picture; step, loss and accuracy unless given.

    Raises:
        UsageError: the graph has not two numbers as inputs.
        DataError: the data are not those of the graph.

    Command line:
        cgprimer new mlp 2-4-1 --output sigmoid -o net.cg
        cgprimer data net.cg --classes moons --samples 200 -o moons.csv
        cgprimer train net.cg --data moons.csv --learning-rate 0.05 --save run.json
        cgprimer plot boundary run.json --data moons.csv -o boundary.png
        cgprimer plot boundary run.json --data moons.csv -o boundary.gif --dark
        cgprimer plot boundary run.json --data moons.csv -o boundary.html

    >>> import cgprimer
    >>> graph = cgprimer.parse("xo = sigmoid(a*x1 + b*x2 + c)")
    >>> data = cgprimer.make_classes("gaussians", graph, samples=100)
    >>> boundary(cgprimer.train(graph, data, learning_rate=0.1), data).axes[0].get_xlabel()
    'x1'
    """
    plane, moments = moments_of(run, data, columns, most=1)
    (last,) = moments
    return drawn(plane, last, dark=dark, title=title)


def drawn(
    plane: Plane, moment: Moment, *, dark: bool = False, title: str | None = None
) -> slide.Figure:
    """The plane at one moment."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    x, y = plane.names
    figure, axes, look = slide.framed(dark, title, moment.words, x=x, y=y)
    axes.grid(visible=False)
    fills, inks = colours(plane, look)
    for rings, fill in zip(moment.areas, fills, strict=True):
        if rings:
            whole = Path.make_compound_path(*(Path(ring, closed=True) for ring in rings))
            axes.add_patch(PathPatch(whole, facecolor=fill, linewidth=0, zorder=1))
    for line in moment.lines:
        axes.plot(*line.T, color=look.ink, linewidth=2.6, label="_boundary", zorder=2)
    points, own = plane.points[plane.shown], plane.own[plane.shown]
    for k, name in enumerate(plane.regions):
        marker = slide.MARKERS[k % len(slide.MARKERS)] if plane.classes else "o"
        axes.plot(*points[own == k].T, linestyle="", color=inks[k], label=slide.plain(name),
                  markeredgecolor=look.background if plane.classes else look.ink,
                  zorder=3, marker=marker, markersize=9)  # fmt: skip
    if plane.classes:  # also where there are none, so that no frame has another legend
        wrong = points[moment.wrong[plane.shown]]
        axes.plot(*wrong.T, linestyle="", marker="o", markersize=17, markerfacecolor="none",
                  markeredgewidth=2.0, linewidth=2.0, color=look.ink, label="predicted wrongly",
                  zorder=4)  # fmt: skip
    axes.set_xlim(plane.sides[0][0], plane.sides[0][-1])
    axes.set_ylim(plane.sides[1][0], plane.sides[1][-1])
    for which in "xy":
        slide.linear_axis(axes, which)
    slide.legend_below(figure, axes, look)
    return figure


def colours(plane: Plane, look: Theme) -> tuple[list[str], list[str]]:
    """For each region the colour of its area and of its samples."""
    count = len(plane.regions)
    if plane.classes:
        inks = [look.curves[k % len(look.curves)] for k in range(count)]
        return [mix(ink, look.background, _TINT) for ink in inks], inks
    shades = [mix(look.curves[0], look.background, (k + 0.3) / count) for k in range(count)]
    return shades, shades


def moments_of(
    run: Run, data: Any, columns: Mapping[str, str] | None = None, most: int = 60
) -> tuple[Plane, list[Moment]]:
    """The plane, and at most so many moments of a run, evenly chosen; the last is its end."""
    ((_, learnt),) = named_runs([run]).items()
    graph = learnt.known_graph
    loss = learnt.settings.get("loss", "squared-error")
    data = samples_for(graph, data, loss, columns).block(0)  # of a large file the first samples
    data.check_finite()
    plane = _plane(learnt, data)
    last = learnt.steps  # or earlier, where validation said so
    if learnt.best_epoch:
        last = round(learnt.best_epoch * steps_per_epoch(learnt))
    earlier = [(0, learnt.start)] + [
        (step, {name: values[k] for name, values in learnt.recorded_parameters.items()})
        for k, step in enumerate(learnt.recorded_steps)
        if step < last
    ]
    chosen = np.unique(np.linspace(0, len(earlier) - 1, most - 1).astype(int))
    points = [*(earlier[k] for k in chosen), (last, learnt.parameters)]
    scaled = normalize_data(data, learnt.scales)
    objective = Objective(graph, loss=loss, samples=len(data), mode="training", dataset=scaled)
    resident, found = Resident(objective, scaled), []
    for step, parameters in points:
        mean = resident.mean_loss(objective.vectors.vector(parameters), learnt.statistics)
        found.append(_moment(replace(learnt, parameters=parameters), plane, data, step, mean))
    return plane, found


def _plane(run: TrainingRun, data: Dataset) -> Plane:
    """The plane, its regions, and what the samples are."""
    graph = run.graph
    assert graph is not None
    names = [e for n in graph.inputs for e in elements(n, graph.shapes.get(n, ()))]
    if len(names) != 2:
        hint = "one with two: cgprimer new mlp 2-4-1 --output sigmoid"
        count = pluralize(len(names), "number")
        raise UsageError(f"a plane is of two inputs, and this graph has {count}", hint=hint)
    points = side_by_side(data.inputs, graph.inputs)
    low, high = points.min(axis=0), points.max(axis=0)
    room = np.where(high > low, _MARGIN * (high - low), 1.0)
    first, second = np.linspace(low - room, high + room, GRID).T
    targets = beside_outputs(graph, run.settings.get("loss", "squared-error"), data)
    wanted = side_by_side(targets, targets)
    inner: Array = None
    levels, classes = None, True
    try:
        labels, own = classes_of(targets, targets)
    except DataError:
        classes, ends = False, np.linspace(wanted.min(), wanted.max(), BANDS + 1)
        labels, inner = tuple(pairwise(ends)), ends[1:-1]
        own = np.searchsorted(inner, wanted[:, 0])
        regions = tuple(f"{format_number(a, 3)} to {format_number(b, 3)}" for a, b in labels)
    else:
        of = f"{graph.outputs[0]} = "
        regions = tuple(k if isinstance(k, str) else of + format_number(k, SHORT) for k in labels)
        inner = np.mean([*pairwise(labels)], axis=1) if wanted.shape[1] == 1 else None
    if inner is not None:
        levels = np.array([-np.inf, *inner, np.inf])
    x, y = names
    return Plane((x, y), (first, second), points, regions, own, levels, classes)


def _outputs(run: TrainingRun, data: Any) -> Array:
    """What is predicted, as it is compared with labels; shape (samples, numbers)."""
    found = beside_labels(run.predict(data), run.settings.get("loss", "squared-error"))
    return side_by_side(found, found)


def _moment(run: TrainingRun, plane: Plane, data: Dataset, step: int, loss: float) -> Moment:
    """What a run says with its parameters."""
    first, second = np.meshgrid(*plane.sides)
    grid = combine_elements(dict(zip(plane.names, (first.ravel(), second.ravel()), strict=True)))
    fields = _outputs(run, grid).T.reshape(-1, *first.shape)
    outputs = _outputs(run, data)
    if plane.levels is not None:
        bounds = [(fields[0], low, high) for low, high in pairwise(plane.levels)]
        labels = plane.levels[1:-1]
        predicted = np.searchsorted(labels, outputs[:, 0])
    else:  # how far each output is ahead of the others
        others = [np.delete(fields, k, axis=0).max(axis=0) for k in range(len(fields))]
        leads = [field - other for field, other in zip(fields, others, strict=True)]
        bounds = [(lead, 0.0, np.inf) for lead in leads]
        predicted = class_numbers(outputs, np.array([]))
    wrong = predicted != plane.own if plane.classes else np.zeros(0, bool)
    areas, lines = outlines(plane.sides, bounds)
    return Moment(step, run.parameters, loss, wrong, areas, lines)


def outlines(
    sides: tuple[Array, Array], bounds: Sequence[tuple[Array, float, float]]
) -> tuple[list[list[Array]], list[Array]]:
    """The rings around where each field lies between two bounds, and the lines of the lower ones.

    >>> field = np.array([[0.0, 1.0], [0.0, 1.0]])
    >>> areas, lines = outlines((np.arange(2.0), np.arange(2.0)), [(field, 0.5, np.inf)])
    >>> sorted({tuple(point) for point in areas[0][0].tolist()}), lines[0].tolist()
    ([(0.5, 0.0), (0.5, 1.0), (1.0, 0.0), (1.0, 1.0)], [[0.5, 1.0], [0.5, 0.0]])
    """
    from contourpy import contour_generator

    areas: list[list[Array]] = []
    lines: list[Array] = []
    for field, low, high in bounds:
        shown = np.ma.masked_invalid(field)
        made: Any = contour_generator(*sides, shown, fill_type="OuterOffset")
        points, offsets = made.filled(low, high)
        parts = zip(points, offsets, strict=True)
        areas.append([ring[a:b] for ring, ends in parts for a, b in pairwise(ends)])
        lines += made.lines(low) if np.isfinite(low) else []
    return areas, lines
