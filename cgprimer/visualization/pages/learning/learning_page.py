"""The progress of a training run with two inputs as a page or a GIF: loss, boundary, parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cgprimer.core.tape.scalarization import split_arrays
from cgprimer.visualization.diagrams.animation import encode_gif
from cgprimer.visualization.diagrams.theme import theme
from cgprimer.visualization.pages.page_rendering import encode_script_data, render_page
from cgprimer.visualization.plots.boundary_plot import (
    Plane,
    choose_region_colors,
    draw_plane,
    moments_of,
)
from cgprimer.visualization.plots.plotted_runs import Run

Array = Any
MOST = 60  #: snapshots of a run that a page shows
_MAX_FRAMES = 40  # of an animation; drawing them takes a few seconds
_MAX_PARAMETERS = 30
_PICTURE_SIZE = 1000  # width and height of the picture, in its units
_FRAMES_PER_SECOND = 5.0


def learning_animation(
    run: Run,
    data: Any,
    *,
    columns: Mapping[str, str] | None = None,
    dark: bool = False,
    title: str | None = None,
) -> bytes:
    """Render the decision boundary during a training run as an animated GIF.

    Arguments as in ``cgprimer.plot.boundary``.
    """
    plane, snapshots = moments_of(run, data, columns, _MAX_FRAMES)
    figures = (draw_plane(plane, snapshot, dark=dark, title=title) for snapshot in snapshots)
    return encode_gif(figures, speed=_FRAMES_PER_SECOND)


def learning_page(
    run: Run,
    data: Any,
    *,
    columns: Mapping[str, str] | None = None,
    dark: bool = False,
    title: str | None = None,
) -> str:
    """Render a page that animates the decision boundary, loss and parameters of a training run.

    Arguments as in ``cgprimer.plot.boundary``.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xo = sigmoid(a*x1 + b*x2 + c)")
    >>> data = cgprimer.make_classes("gaussians", graph, samples=50)
    >>> run = cgprimer.train(graph, data, epochs=5)
    >>> learning_page(run, data, title="a < b").count("a &lt; b")
    2
    """
    plane, snapshots = moments_of(run, data, columns, MOST)
    default_title = (
        "The decision boundary during training" if plane.classes else "Predictions during training"
    )
    return render_page(
        "visualization/pages/learning/learning_page.html",
        default_title if title is None else title,
        dark=dark,
        region_colors={
            scheme: list(zip(*choose_region_colors(plane, theme(scheme == "dark")), strict=True))
            for scheme in ("light", "dark")
        },
        data=encode_script_data(_collect_page_data(plane, snapshots)),
    )


def _collect_page_data(plane: Plane, snapshots: Sequence[Any]) -> dict[str, Any]:
    """Collect the data of a learning page: axes, samples, and one frame per snapshot of the run."""
    final = snapshots[-1].parameters
    shapes = {name: np.shape(value) for name, value in final.items()}
    scalars = [split_arrays(snapshot.parameters, shapes) for snapshot in snapshots]
    names = [*scalars[0]]
    samples = plane.drawn_samples
    return {
        "names": plane.names,
        "ends": [[float(side[0]), float(side[-1])] for side in plane.sides],
        "regions": plane.regions,
        "classes": plane.classes,
        "samples": [
            [*_convert_to_picture(plane, point[None])[0].tolist(), int(region)]
            for point, region in zip(plane.points[samples], plane.region_of[samples], strict=True)
        ],
        "weights": names[:_MAX_PARAMETERS],
        "more": max(0, len(names) - _MAX_PARAMETERS),
        "frames": [
            _collect_frame_data(
                plane, snapshot, [float(values[name]) for name in names[:_MAX_PARAMETERS]]
            )
            for snapshot, values in zip(snapshots, scalars, strict=True)
        ],
    }


def _collect_frame_data(plane: Plane, snapshot: Any, weights: list[float]) -> dict[str, Any]:
    """Collect the data of one animation frame: regions, boundary, wrong predictions, parameters."""
    is_wrong = snapshot.wrong[plane.drawn_samples] if len(snapshot.wrong) else []
    return {
        "step": snapshot.step,
        "loss": snapshot.loss,
        "words": snapshot.words,
        "areas": [
            "".join(_format_svg_path(plane, ring, "Z") for ring in r) for r in snapshot.areas
        ],
        "lines": "".join(_format_svg_path(plane, line, "") for line in snapshot.lines),
        "wrong": np.flatnonzero(is_wrong).tolist(),
        "weights": weights,
    }


def _convert_to_picture(plane: Plane, points: Array) -> Array:
    """Convert points of the plane to picture coordinates, with the origin at the upper left."""
    low, high = (np.array([side[k] for side in plane.sides]) for k in (0, -1))
    fractions = (points - low) / (high - low)
    scaled = _PICTURE_SIZE * np.stack([fractions[:, 0], 1 - fractions[:, 1]], axis=1)
    return np.round(scaled, 1)


def _format_svg_path(plane: Plane, points: Sequence[Any], end: str) -> str:
    """Format a polyline in the plane as an SVG path; ``end`` is ``Z`` for a closed path."""
    corners = _convert_to_picture(plane, np.asarray(points)).round().astype(int)
    return "M" + "L".join(f"{x},{y}" for x, y in corners) + end
