"""Learnt parameters against the truth over time: a panel per parameter, a curve per run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING

from cgprimer.errors import UsageError
from cgprimer.pictures.frame import (
    MARKERS,
    dress,
    headline,
    legend_below,
    linear_axis,
    log_axis,
    new_figure,
    plain,
)
from cgprimer.pictures.theme import DASHES, Theme, theme
from cgprimer.plots.run_curves import OverTime

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 9  # whose numbers are still read from the last row
_FAR = 1000.0  # times the true value, or the start: a run that has diverged
_FEW = 24  # values that are shown by a marker each
_GRID = {1: (1, 1), 2: (1, 2), 3: (1, 3), 4: (2, 2), 5: (2, 3), 6: (2, 3)}
_TRUE_DASH = (0, (4, 4))


def draw_parameters_over_time(
    runs: Mapping[str, OverTime],
    truth: Mapping[str, float] | None = None,
    *,
    step_name: str = "step",
    log_steps: bool = False,
    dark: bool = False,
    title: str = "",
) -> Figure:
    """Draw each parameter of one or several runs over time, its true value as a dashed level.

    Every parameter has a panel with its own scale. A run whose values become a thousand times as
    large as the true one leaves the panel, and the legend says that it diverges. Of more than
    nine parameters the first nine are drawn, and the title says so.

    Raises `cgprimer.errors.UsageError` where there is no parameter to draw.

    >>> found = OverTime([0.0, 1.0, 2.0], {"k": [0.5, 2.0, 2.9], "b": [0.1, -0.8, -1.0]})
    >>> figure = draw_parameters_over_time({"adam": found}, {"k": 3.0, "b": -1.0})
    >>> [axes.get_title() for axes in figure.axes]
    ['k', 'b']
    """
    every = list(dict.fromkeys(name for run in runs.values() for name in run.values))
    if not every:
        raise UsageError("there are no parameters to draw")
    names = every[:MOST_PANELS]
    look = theme(dark)
    figure = new_figure(look)
    rows, columns = _GRID.get(len(names), (3, 3))
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True)
    panels = list(grid.flat)
    for axes in panels[len(names) :]:
        axes.remove()
    gone = {run for run, found in runs.items() if any(_far(found, n, truth) for n in names)}
    drawn = {run: _after_start(found) if log_steps else found for run, found in runs.items()}
    for number, (name, axes) in enumerate(zip(names, panels, strict=False)):
        lowest = number + columns >= len(names)  # no panel below
        dress(axes, look, x=step_name if lowest else "", y="value" if number % columns == 0 else "")
        axes.set_title(name, parse_math=False, fontsize=17, color=look.ink, weight="bold", pad=4)
        _panel(axes, name, drawn, truth or {}, gone, look)
        axes.tick_params(axis="x", labelbottom=lowest)
        _numbers(axes, log_steps, rows, columns)
    cut = f", the first {len(names)} of {len(every)}" if len(names) < len(every) else ""
    headline(figure, look, title or f"Parameters over time{cut}")
    legend_below(figure, panels[0], look)
    return figure


def _far(found: OverTime, name: str, truth: Mapping[str, float] | None) -> bool:
    values = found.values.get(name, [])
    return any(not abs(value) <= _limit(values, name, truth or {}) for value in values)


def _limit(values: Sequence[float], name: str, truth: Mapping[str, float]) -> float:
    near = truth.get(name, values[0] if values and isfinite(values[0]) else 0.0)
    return _FAR * max(1.0, abs(near))


def _after_start(found: OverTime) -> OverTime:
    """Without the start, which has no place on a logarithmic axis and so no say in the scales."""
    kept = [k for k, place in enumerate(found.places) if place > 0]
    return OverTime(
        [found.places[k] for k in kept],
        {name: [values[k] for k in kept] for name, values in found.values.items()},
    )


def _panel(
    axes: Axes,
    name: str,
    runs: Mapping[str, OverTime],
    truth: Mapping[str, float],
    gone: set[str],
    look: Theme,
) -> None:
    if truth:  # in every panel, so that the legend of the first has it
        axes.plot([], [], color=look.ink, linestyle=_TRUE_DASH, linewidth=2.0, label="true value")
    seen = [truth[name]] if name in truth else []
    for level in seen:
        axes.axhline(level, color=look.ink, linestyle=_TRUE_DASH, linewidth=2.0, label="_level")
    for number, (run, found) in enumerate(runs.items()):
        values = found.values.get(name, [])
        apart = max(1, len(values) // 4)
        axes.plot(
            found.places if values else [],
            values,
            color=look.curves[number % len(look.curves)],
            linestyle=DASHES[number % len(DASHES)],
            linewidth=2.4,
            marker=MARKERS[number % len(MARKERS)],
            markersize=6 if len(values) <= _FEW else 8,
            markevery=1 if len(values) <= _FEW else (number * 3 % apart, apart),
            label=plain(f"{run}: diverges" if run in gone else run),
        )
        limit = _limit(values, name, truth)
        seen += [value for value in values if abs(value) <= limit]
    if any(_far(found, name, truth) for found in runs.values()) and seen:
        calm = [
            value
            for found in runs.values()
            if not _far(found, name, truth)
            for value in found.values.get(name, [])
        ]
        calm += [truth[name]] if name in truth else []
        low, high = min(calm or seen), max(calm or seen)
        room = 0.1 * (high - low) or 1.0
        axes.set_ylim(low - room, high + room)


def _numbers(axes: Axes, log_steps: bool, rows: int, columns: int) -> None:
    if log_steps:
        log_axis(axes, "x", most=9 - columns)
    else:
        linear_axis(axes, "x", most=8 // columns + 1, whole=True)
    linear_axis(axes, "y", most=7 - rows)
