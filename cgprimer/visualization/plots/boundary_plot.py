"""The plane of the two inputs of a run: its classes and the decision boundaries between them.

The plane is divided into regions: one for each class, or bands of values if the targets are not
classes. Outlines of regions are computed once; slides and pages draw the same outlines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from cgprimer.errors import DataError, UsageError
from cgprimer.support.number_format import SHORT, format_number
from cgprimer.tapes import elements
from cgprimer.training.data import Dataset, normalize_data
from cgprimer.training.data.dataset_columns import combine_elements
from cgprimer.training.losses import align_targets, load_samples
from cgprimer.training.metrics import (
    convert_to_probabilities,
    find_class_indices,
    find_classes,
    stack_elements,
)
from cgprimer.training.objective import Objective, ResidentData
from cgprimer.training.runs import TrainingRun
from cgprimer.visualization.diagrams.theme import Theme, mix
from cgprimer.visualization.plots import slide
from cgprimer.visualization.plots.plotted_runs import Run, name_runs, steps_per_epoch

Array = Any
GRID = 101  # grid points per side
BANDS = 6  # bands of values that are not classes
_MARGIN = 0.08  # of the range of the samples, around them
_MAX_SAMPLES = 1000  # samples that are drawn, evenly chosen
_TINT = 0.24  # strength of the color of a class in its region


@dataclass(frozen=True, eq=False)
class Plane:
    """The plane spanned by two inputs, with its decision regions and its samples.

    Attributes:
        names: names of the inputs.
        sides: grid values of each input; shape (GRID,).
        points: the samples; shape (samples, 2).
        regions: names of the regions.
        region_of: index of the region that each sample belongs to.
        levels: the bounds of the regions of a single output, ascending; None for several outputs.
        classes: True if the targets are classes.
    """

    names: tuple[str, str]
    sides: tuple[Array, Array]
    points: Array
    regions: tuple[str, ...]
    region_of: Array
    levels: Array | None
    classes: bool

    @property
    def drawn_samples(self) -> Array:
        """Indices of the samples that are drawn."""
        return np.unique(np.linspace(0, len(self.region_of) - 1, _MAX_SAMPLES).astype(int))


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The decision regions and wrong predictions of a run after a given number of updates.

    Attributes:
        step: number of completed steps.
        parameters: values of the parameters.
        loss: mean loss over the samples.
        wrong: True for each sample that is predicted to be of another class; empty without classes.
        areas: closed outlines of each region; points inside an even number of them are outside.
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
        """Caption with the step, the loss and, for classification, the accuracy."""
        text = f"step {self.step:,}, loss {format_number(self.loss, SHORT)}"
        if not len(self.wrong):
            return text
        return f"{text}, accuracy {format_number(1 - float(self.wrong.mean()), 3)}"


def boundary(
    run: Run,
    data: Any,
    *,
    columns: Mapping[str, str] | None = None,
    dark: bool = False,
    title: str | None = None,
) -> slide.Figure:
    """Draw the samples and the decision regions of a trained model with two inputs.

    Each class has a region, with the decision boundary between the regions. With one target that
    has a few values, the value nearest to the output is predicted; with several outputs, the class
    of the largest. Targets that are not classes are drawn as bands of values. Wrongly predicted
    samples have a ring. A .gif file is an animation of the boundary during training, a .html file
    a page with loss, boundary and parameters to be played.

    Args:
        run: a run, or a saved run.
        data: samples: a Dataset, a data frame or a .csv, .npz or .parquet file.
        columns: names of columns in files: y=label.
        title: title above the plot. Default: step, loss and accuracy.

    Raises:
        UsageError: the graph does not have two scalar inputs.
        DataError: the data do not match the graph.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xo = sigmoid(a*x1 + b*x2 + c)")
    >>> data = cgprimer.make_classes("gaussians", graph, samples=40)
    >>> run = cgprimer.train(graph, data, learning_rate=0.1, epochs=2)
    >>> boundary(run, data).axes[0].get_xlabel()
    'x1'
    """
    plane, (last,) = moments_of(run, data, columns, most=1)
    return draw_plane(plane, last, dark=dark, title=title)


def draw_plane(
    plane: Plane, snapshot: Snapshot, *, dark: bool = False, title: str | None = None
) -> slide.Figure:
    """Draw the samples, and the decision regions and boundaries of one snapshot."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    x, y = plane.names
    figure, axes, look = slide.create_plot(dark, title, snapshot.words, x=x, y=y)
    axes.grid(visible=False)
    fills, inks = choose_region_colors(plane, look)
    for rings, fill in zip(snapshot.areas, fills, strict=True):
        if rings:
            outline = Path.make_compound_path(*(Path(ring, closed=True) for ring in rings))
            axes.add_patch(PathPatch(outline, facecolor=fill, linewidth=0, zorder=1))
    for line in snapshot.lines:
        axes.plot(*line.T, color=look.ink, linewidth=2.6, label="_boundary", zorder=2)
    _draw_samples(axes, plane, snapshot, inks, look)
    axes.set_xlim(plane.sides[0][0], plane.sides[0][-1])
    axes.set_ylim(plane.sides[1][0], plane.sides[1][-1])
    for which in "xy":
        slide.use_linear_axis(axes, which)
    slide.draw_legend_below(figure, axes, look)
    return figure


def _draw_samples(
    axes: slide.Axes, plane: Plane, snapshot: Snapshot, inks: Sequence[str], look: Theme
) -> None:
    """Draw the samples, with a ring around each wrong prediction."""
    points, regions = plane.points[plane.drawn_samples], plane.region_of[plane.drawn_samples]
    for k, name in enumerate(plane.regions):
        marker = slide.MARKERS[k % len(slide.MARKERS)] if plane.classes else "o"
        axes.plot(*points[regions == k].T, linestyle="", color=inks[k],
                  label=slide.format_label(name),
                  markeredgecolor=look.background if plane.classes else look.ink,
                  zorder=3, marker=marker, markersize=9)  # fmt: skip
    if plane.classes:  # even without wrong samples, so that all frames have the same legend
        wrong = points[snapshot.wrong[plane.drawn_samples]]
        axes.plot(*wrong.T, linestyle="", marker="o", markersize=17, markerfacecolor="none",
                  markeredgewidth=2.0, linewidth=2.0, color=look.ink, label="wrong prediction",
                  zorder=4)  # fmt: skip


def choose_region_colors(plane: Plane, look: Theme) -> tuple[list[str], list[str]]:
    """Choose a fill color and a marker color for each decision region."""
    count = len(plane.regions)
    if plane.classes:
        inks = [look.curves[k % len(look.curves)] for k in range(count)]
        return [mix(ink, look.background, _TINT) for ink in inks], inks
    shades = [mix(look.curves[0], look.background, (k + 0.3) / count) for k in range(count)]
    return shades, shades


def moments_of(
    run: Run, data: Any, columns: Mapping[str, str] | None = None, most: int = 60
) -> tuple[Plane, list[Snapshot]]:
    """Return the plane of the inputs, and evenly spaced snapshots of a run (at most `most`)."""
    ((_, loaded),) = name_runs([run]).items()
    graph = loaded.known_graph
    loss = loaded.settings.get("loss", "squared-error")
    data = load_samples(graph, data, loss, columns).block(0)  # the first samples of a large file
    data.check_finite()
    plane = _build_plane(loaded, data)
    last = loaded.steps  # or the step of the best epoch, if validation chose it
    if loaded.best_epoch:
        last = round(loaded.best_epoch * steps_per_epoch(loaded))
    earlier = [(0, loaded.start)] + [
        (step, {name: values[k] for name, values in loaded.recorded_parameters.items()})
        for k, step in enumerate(loaded.recorded_steps)
        if step < last
    ]
    chosen = np.unique(np.linspace(0, len(earlier) - 1, most - 1).astype(int))
    points = [*(earlier[k] for k in chosen), (last, loaded.parameters)]
    scaled = normalize_data(data, loaded.scales)
    objective = Objective(graph, loss=loss, samples=len(data), mode="training", dataset=scaled)
    resident, snapshots = ResidentData(objective, scaled), []
    for step, parameters in points:
        mean = resident.mean_loss(objective.vectors.vector(parameters), loaded.statistics)
        run_then = replace(loaded, parameters=parameters)
        snapshots.append(_take_snapshot(run_then, plane, data, step, mean))
    return plane, snapshots


def _build_plane(run: TrainingRun, data: Dataset) -> Plane:
    """Build the plane spanned by the two inputs, with the decision region of each sample."""
    graph = run.graph
    assert graph is not None
    names = [e for n in graph.inputs for e in elements(n, graph.shapes.get(n, ()))]
    if len(names) != 2:
        hint = "create a graph with two inputs: cgprimer new mlp 2-4-1 --output sigmoid"
        raise UsageError(f"`boundary` requires two scalar inputs, got {len(names)}", hint=hint)
    points = stack_elements(data.inputs, graph.inputs)
    low, high = points.min(axis=0), points.max(axis=0)
    margin = np.where(high > low, _MARGIN * (high - low), 1.0)
    first, second = np.linspace(low - margin, high + margin, GRID).T
    targets = align_targets(graph, run.settings.get("loss", "squared-error"), data)
    expected = stack_elements(targets, targets)
    inner: Array = None
    levels, classes = None, True
    try:
        labels, region_of = find_classes(targets, targets)
    except DataError:
        classes, ends = False, np.linspace(expected.min(), expected.max(), BANDS + 1)
        labels, inner = tuple(pairwise(ends)), ends[1:-1]
        region_of = np.searchsorted(inner, expected[:, 0])
        regions = tuple(f"{format_number(a, 3)} to {format_number(b, 3)}" for a, b in labels)
    else:
        prefix = f"{graph.outputs[0]} = "
        regions = tuple(
            k if isinstance(k, str) else prefix + format_number(k, SHORT) for k in labels
        )
        inner = np.mean([*pairwise(labels)], axis=1) if expected.shape[1] == 1 else None
    if inner is not None:
        levels = np.array([-np.inf, *inner, np.inf])
    x, y = names
    return Plane((x, y), (first, second), points, regions, region_of, levels, classes)


def _predict(run: TrainingRun, data: Any) -> Array:
    """Compute predictions of shape (samples, outputs); for classes, predict probabilities."""
    predictions = convert_to_probabilities(
        run.predict(data), run.settings.get("loss", "squared-error")
    )
    return stack_elements(predictions, predictions)


def _take_snapshot(
    run: TrainingRun, plane: Plane, data: Dataset, step: int, loss: float
) -> Snapshot:
    """Compute the predictions and decision regions for the current parameters of a run."""
    first, second = np.meshgrid(*plane.sides)
    grid = combine_elements(dict(zip(plane.names, (first.ravel(), second.ravel()), strict=True)))
    fields = _predict(run, grid).T.reshape(-1, *first.shape)
    outputs = _predict(run, data)
    if plane.levels is not None:
        bounds = [(fields[0], low, high) for low, high in pairwise(plane.levels)]
        labels = plane.levels[1:-1]
        predicted = np.searchsorted(labels, outputs[:, 0])
    else:  # the lead of each output over the maximum of the other outputs
        others = [np.delete(fields, k, axis=0).max(axis=0) for k in range(len(fields))]
        leads = [field - other for field, other in zip(fields, others, strict=True)]
        bounds = [(lead, 0.0, np.inf) for lead in leads]
        predicted = find_class_indices(outputs, np.array([]))
    wrong = predicted != plane.region_of if plane.classes else np.zeros(0, bool)
    areas, lines = outline_regions(plane.sides, bounds)
    return Snapshot(step, run.parameters, loss, wrong, areas, lines)


def outline_regions(
    sides: tuple[Array, Array], bounds: Sequence[tuple[Array, float, float]]
) -> tuple[list[list[Array]], list[Array]]:
    """Return closed outlines of the regions where each scalar field lies between its bounds.

    The second result has the lines on which a field equals its lower bound.

    >>> field = np.array([[0.0, 1.0], [0.0, 1.0]])
    >>> areas, lines = outline_regions((np.arange(2.0), np.arange(2.0)), [(field, 0.5, np.inf)])
    >>> sorted({tuple(point) for point in areas[0][0].tolist()}), lines[0].tolist()
    ([(0.5, 0.0), (0.5, 1.0), (1.0, 0.0), (1.0, 1.0)], [[0.5, 1.0], [0.5, 0.0]])
    """
    from contourpy import contour_generator

    areas: list[list[Array]] = []
    lines: list[Array] = []
    for field, low, high in bounds:
        finite = np.ma.masked_invalid(field)
        generator: Any = contour_generator(*sides, finite, fill_type="OuterOffset")
        points, offsets = generator.filled(low, high)
        parts = zip(points, offsets, strict=True)
        areas.append([ring[a:b] for ring, ends in parts for a, b in pairwise(ends)])
        lines += generator.lines(low) if np.isfinite(low) else []
    return areas, lines
