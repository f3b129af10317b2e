"""Where a run decides between classes: the plane of two inputs, and samples in it."""

from __future__ import annotations

import numpy as np

from cgprimer.data import Blocks, Dataset
from cgprimer.errors import UsageError
from cgprimer.number_format import number
from cgprimer.plots import slide
from cgprimer.training.losses import beside_outputs
from cgprimer.training.metrics import beside_labels, classes_of, side_by_side
from cgprimer.training.runs import TrainingRun

_ACROSS = 240  # points of the plane, each way
_MOST = 2_000  # samples that are drawn; more hide each other


def boundary(
    run: TrainingRun,
    data: Dataset | Blocks,
    *,
    dark: bool = False,
    title: str | None = None,
) -> slide.Figure:
    """The class that is predicted at each point of the plane, and samples with their own.

    Args:
        run: of a graph with two inputs, or with one of two numbers.
        data: samples, whose range is the part of the plane that is shown.
        dark: for dark slides.
        title: above the picture.

    Raises:
        UsageError: the inputs are not two numbers.
        DataError: the targets are no classes.

    >>> import cgprimer
    >>> inputs = {"x1": [0.0, 0.2, 2.0, 1.8], "x2": [0.1, 0.0, 2.0, 2.2]}
    >>> data = cgprimer.Dataset.from_arrays(inputs, {"xo": [0, 0, 1, 1]})
    >>> graph = cgprimer.parse("xo = sigmoid(w1*x1 + w2*x2 + b)")
    >>> figure = boundary(cgprimer.train(graph, data, loss="cross-entropy", epochs=100), data)
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['class 0', 'class 1']
    """
    given = data.block(0)
    shapes = {name: np.shape(column)[1:] for name, column in given.inputs.items()}
    places = side_by_side(given.inputs, given.inputs)[:_MOST]
    if places.shape[1] != 2:
        what = f"a boundary is drawn over two inputs, and these are {places.shape[1]}"
        raise UsageError(what, hint="a graph with the inputs x1 and x2, or x[2]")
    assert run.graph is not None
    targets = beside_outputs(run.graph, run.settings["loss"], given)
    labels, true = classes_of(targets, targets)
    low, high = places.min(axis=0), places.max(axis=0)
    room = 0.08 * np.where(high > low, high - low, 1.0)
    across, along = (
        np.linspace(a, b, _ACROSS) for a, b in zip(low - room, high + room, strict=True)
    )
    grid = np.stack([part.ravel() for part in np.meshgrid(across, along)], axis=1)
    whole = {} if len(shapes) > 1 else dict.fromkeys(shapes, grid)
    outputs = run.predict(whole or {name: grid[:, k] for k, name in enumerate(shapes)})
    outputs = beside_labels(outputs, run.settings["loss"])
    _, predicted = classes_of(outputs, targets)
    names = [f"{name}[{k}]" for name in shapes for k in (0, 1)] if whole else [*shapes]
    figure, axes, look = slide.framed(dark, title, "Decision boundary", x=names[0], y=names[1])
    colours = [slide.curve_style(k, look)["color"] for k in range(len(labels))]
    over = predicted.reshape(_ACROSS, _ACROSS)
    levels = np.arange(len(labels) + 1) - 0.5
    axes.contourf(across, along, over, levels=levels, colors=colours, alpha=0.25)
    axes.contour(across, along, over, levels=levels[1:-1], colors=look.ink, linewidths=1.6)
    for k, label in enumerate(labels):
        own = places[true[:_MOST] == k].T
        marker = slide.curve_style(k, look)["marker"]
        word = label if isinstance(label, str) else f"class {number(label)}"
        axes.plot(*own, linestyle="", marker=marker, markersize=7, color=colours[k],
                  markeredgecolor=look.background, label=slide.plain(word))  # fmt: skip
    slide.linear_axis(axes, "x")
    slide.linear_axis(axes, "y")
    slide.legend_below(figure, axes, look)
    return figure
