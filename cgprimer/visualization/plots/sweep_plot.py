"""The runs of a sweep on one slide: a panel for each value of what varies first."""

from __future__ import annotations

from math import isfinite
from typing import Any

from cgprimer.errors import join_names
from cgprimer.training.runs import TrainingRun
from cgprimer.training.sweeps import Sweep, format_cell
from cgprimer.visualization.plots import slide
from cgprimer.visualization.plots.final_losses import axis_of_sweep, final_losses
from cgprimer.visualization.plots.loss_plot import loss, over_time
from cgprimer.visualization.plots.plotted_runs import axis_of, steps_per_epoch

_PANELS = 9
_IN_A_ROW, _IN_TWO = 3, 8  # panels
_WIDEST = 60  # letters above all panels of a row


def sweep(found: Sweep, *, dark: bool = False, title: str | None = None) -> slide.Figure:
    """The losses of all runs over one scale: panels by what varies first, lines by the rest.

    What has more than nine values is no panel's. Where one setting varies, all lines are in one.
    A run that diverges leaves through the top, and the legend of its panel says so.
    If the number of samples varies, or the graph alone (with validation samples), the picture
    shows training and validation loss at the end over the number of samples, or over the graphs.

    Args:
        found: what :func:`cgprimer.sweep` returned.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa; parameter k = 3")
    >>> data = cgprimer.make_dataset(graph, samples=100)
    >>> vary = {"optimizer": ["sgd", "adam"], "learning_rate": [0.1, 0.01]}
    >>> figure = sweep(cgprimer.sweep(graph, data, vary, epochs=5))
    >>> [axes.get_title() for axes in figure.axes]
    ['sgd', 'adam']
    """
    if (axis := axis_of_sweep(found)) is not None:
        return final_losses(found, axis, dark=dark, title=title)
    values_of = {
        n: list(dict.fromkeys(format_cell(v[n]) for v in found.varied)) for n in found.varied[0]
    }
    few = [name for name, values in values_of.items() if 1 < len(values) <= _PANELS]
    if len(values_of) == 1 or not few:
        return loss(found.named, dark=dark, title=title)
    first, panels = few[0], values_of[few[0]]
    calm = {name: run for name, run in found.named.items() if run.stopped != "diverged"}
    by = axis_of(calm or found.named)
    rows = -(-len(panels) // _IN_A_ROW) if len(panels) > _IN_TWO else 1 + (len(panels) > _IN_A_ROW)
    rest = [", ".join(format_cell(v) for n, v in of.items() if n != first) for of in found.varied]
    names = ", ".join(name.replace("_", " ") for name in found.varied[0] if name != first)
    figure, look = slide.new_figure(dark, title, f"Loss by {first.replace('_', ' ')} and {names}")
    grid: Any = figure.subplots(
        rows, -(-len(panels) // rows), sharex=True, sharey=True, squeeze=False
    )
    order = list(dict.fromkeys(rest))
    shown = dict(zip(panels, grid.flat, strict=False))
    away: dict[str, list[str]] = {name: [] for name in panels}
    for of, other, run in zip(found.varied, rest, found.runs, strict=True):
        panel, (places, values) = format_cell(of[first]), _curve(run, by)
        style = slide.line_style(order.index(other), look, len(values))
        shown[panel].plot(places, values, linewidth=2.0, label=slide.plain(other), **style)
        if run.stopped == "diverged":
            away[panel].append(other)
    every = [v for run in calm.values() for v in _curve(run, by)[1] if isfinite(v)]
    every += [run.start_loss for run in found.runs if isfinite(run.start_loss)]
    logarithmic = bool(every) and min(every) > 0
    for place, (name, axes) in enumerate(shown.items()):
        lowest, leftmost = place + grid.shape[1] >= len(panels), place % grid.shape[1] == 0
        slide.dress(axes, look, x=by if lowest else "", y="loss" if leftmost else "")
        if lowest:  # below it may be a place without a panel
            axes.tick_params(labelbottom=True)
        says = name
        if gone := away[name]:  # a long list would reach into the panel beside it
            short = len(", ".join(gone)) * grid.shape[1] <= _WIDEST
            many = f"{len(gone)} of {len(axes.lines)} diverge"
            says += f"\ndiverges: {join_names(gone)}" if short else f"\n{many}"
        axes.set_title(says, **slide.text_style(look) | {"weight": "bold"})
        if logarithmic:
            # Limits come first: on losses of 1e300 a logarithmic axis chooses infinite ones.
            axes.set_ylim(min(every) / 2, (10 if any(away.values()) else 2) * max(every))
            axes.set_yscale("log", nonpositive="mask")
            slide.log_axis(axes, "y", most=6)
        slide.linear_axis(axes, "x", most=5, whole=True)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    slide.legend_below(figure, max(shown.values(), key=lambda axes: len(axes.lines)), look)
    return figure


def _curve(run: TrainingRun, by: str) -> tuple[list[float], list[float]]:
    """Places and losses; of a run that diverged each step's, however far it came."""
    if run.stopped != "diverged" or by == "step":
        return over_time(run, by)
    steps, losses = over_time(run, "step")
    return [step / steps_per_epoch(run) for step in steps], losses
