"""A run with two inputs as a page to be played, or as a GIF: loss, boundary and parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cgprimer.core.tape.scalarization import split_arrays
from cgprimer.visualization.diagrams.animation import encode_gif
from cgprimer.visualization.diagrams.theme import theme
from cgprimer.visualization.pages.page_rendering import encode_script_data, render_page
from cgprimer.visualization.plots.boundary_plot import Plane, draw_plane, moments_of, region_colours
from cgprimer.visualization.plots.plotted_runs import Run

Array = Any
MOST = 60  #: moments of a run that a page shows
_FRAMES = 40  # of an animation: a few seconds of work
_WEIGHTS = 30  # parameters that a page shows
_UNITS = 1000  # to either side of the page's picture
_SPEED = 5.0  # moments per second of an animation


def animation(
    run: Run,
    data: Any,
    *,
    columns: Mapping[str, str] | None = None,
    dark: bool = False,
    title: str | None = None,
) -> bytes:
    """The boundary moving, as a GIF; the arguments are those of ``cgprimer.plot.boundary``."""
    plane, moments = moments_of(run, data, columns, _FRAMES)
    figures = (draw_plane(plane, moment, dark=dark, title=title) for moment in moments)
    return encode_gif(figures, speed=_SPEED)


def page(
    run: Run,
    data: Any,
    *,
    columns: Mapping[str, str] | None = None,
    dark: bool = False,
    title: str | None = None,
) -> str:
    """A page with loss, boundary and parameters; arguments as ``cgprimer.plot.boundary``.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xo = sigmoid(a*x1 + b*x2 + c)")
    >>> data = cgprimer.make_classes("gaussians", graph, samples=50)
    >>> page(cgprimer.train(graph, data, epochs=5), data, title="a < b").count("a &lt; b")
    2
    """
    plane, moments = moments_of(run, data, columns, MOST)
    learnt = moments[-1].parameters
    numbers = [
        split_arrays(moment.parameters, {n: np.shape(v) for n, v in learnt.items()})
        for moment in moments
    ]
    names = [*numbers[0]]
    shown = plane.drawn_samples
    read = {
        "names": plane.names,
        "ends": [[float(side[0]), float(side[-1])] for side in plane.sides],
        "regions": plane.regions,
        "classes": plane.classes,
        "samples": [
            [*_scaled(plane, point[None])[0].tolist(), int(own)]
            for point, own in zip(plane.points[shown], plane.region_of[shown], strict=True)
        ],
        "weights": names[:_WEIGHTS],
        "more": max(0, len(names) - _WEIGHTS),
        "frames": [
            {
                "step": moment.step,
                "loss": moment.loss,
                "words": moment.words,
                "areas": ["".join(_path(plane, ring, "Z") for ring in r) for r in moment.areas],
                "lines": "".join(_path(plane, line, "") for line in moment.lines),
                "wrong": np.flatnonzero(moment.wrong[shown] if len(moment.wrong) else []).tolist(),
                "weights": [float(values[name]) for name in names[:_WEIGHTS]],
            }
            for moment, values in zip(moments, numbers, strict=True)
        ],
    }
    default_title = (
        "The decision boundary during training" if plane.classes else "Predictions during training"
    )
    return render_page(
        "visualization/pages/learning/learning_page.html",
        default_title if title is None else title,
        dark=dark,
        region_colors={
            scheme: list(zip(*region_colours(plane, theme(scheme == "dark")), strict=True))
            for scheme in ("light", "dark")
        },
        data=encode_script_data(read),
    )


def _scaled(plane: Plane, points: Array) -> Array:
    """Points in the picture's units, from its upper left corner."""
    low, high = (np.array([side[k] for side in plane.sides]) for k in (0, -1))
    share = (points - low) / (high - low)
    return np.round(_UNITS * np.stack([share[:, 0], 1 - share[:, 1]], axis=1), 1)


def _path(plane: Plane, points: Sequence[Any], end: str) -> str:
    places = _scaled(plane, np.asarray(points)).round().astype(int)
    return "M" + "L".join(f"{x},{y}" for x, y in places) + end
