"""The runs of a sweep on one slide, with a panel for each value of the first setting."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from cgprimer.errors import join_names
from cgprimer.training.runs import TrainingRun
from cgprimer.training.sweeps import Sweep, format_cell
from cgprimer.visualization.diagrams.theme import Theme
from cgprimer.visualization.plots import slide
from cgprimer.visualization.plots.final_losses import choose_sweep_axis, final_losses
from cgprimer.visualization.plots.loss_plot import loss, over_time
from cgprimer.visualization.plots.plotted_runs import choose_axis, steps_per_epoch

_MAX_PANELS = 9
_PANELS_PER_ROW, _PANELS_IN_TWO_ROWS = 3, 8
_TITLE_LENGTH = 60  # characters above all panels of a row


def sweep(found: Sweep, *, dark: bool = False, title: str | None = None) -> slide.Figure:
    """Draw the losses of all runs of a sweep on a common scale.

    Each value of the first setting has a panel, each combination of other settings a line. A
    setting with more than nine values has no panels. If only one setting varies, all lines are in
    one panel. A run that diverges leaves the plot at the top, and the title of its panel says so.
    If the number of samples varies, or only the graph (with validation samples), the plot shows
    final training and validation losses over the number of samples or over the graphs.

    Args:
        found: result of :func:`cgprimer.sweep`.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa; parameter k = 3")
    >>> data = cgprimer.make_dataset(graph, samples=100)
    >>> vary = {"optimizer": ["sgd", "adam"], "learning_rate": [0.1, 0.01]}
    >>> figure = sweep(cgprimer.sweep(graph, data, vary, epochs=5))
    >>> [axes.get_title() for axes in figure.axes]
    ['sgd', 'adam']
    """
    if (axis := choose_sweep_axis(found)) is not None:
        return final_losses(found, axis, dark=dark, title=title)
    values_of = {
        n: list(dict.fromkeys(format_cell(v[n]) for v in found.varied)) for n in found.varied[0]
    }
    few = [name for name, values in values_of.items() if 1 < len(values) <= _MAX_PANELS]
    if len(values_of) == 1 or not few:
        return loss(found.named, dark=dark, title=title)
    first, names = few[0], values_of[few[0]]
    stable = {name: run for name, run in found.named.items() if run.stopped != "diverged"}
    by = choose_axis(stable or found.named)
    others = ", ".join(name.replace("_", " ") for name in found.varied[0] if name != first)
    default_title = f"Loss by {first.replace('_', ' ')} and {others}"
    figure, look = slide.create_figure(dark, title, default_title)
    rows = 1 + (len(names) > _PANELS_PER_ROW)
    if len(names) > _PANELS_IN_TWO_ROWS:
        rows = -(-len(names) // _PANELS_PER_ROW)
    grid: Any = figure.subplots(
        rows, -(-len(names) // rows), sharex=True, sharey=True, squeeze=False
    )
    panels = dict(zip(names, grid.flat, strict=False))
    diverged = _draw_lines(panels, found, first, by, look)
    every = [v for run in stable.values() for v in _list_losses(run, by)[1] if isfinite(v)]
    every += [run.start_loss for run in found.runs if isfinite(run.start_loss)]
    for position, (name, axes) in enumerate(panels.items()):
        is_lowest = position + grid.shape[1] >= len(names)
        y = "loss" if position % grid.shape[1] == 0 else ""
        slide.style_axes(axes, look, x=by if is_lowest else "", y=y)
        if is_lowest:  # below it there can be an empty cell of the grid
            axes.tick_params(labelbottom=True)
        label = _format_panel_title(name, diverged[name], len(axes.lines), grid.shape[1])
        axes.set_title(label, **slide.text_style(look) | {"weight": "bold"})
        if every and min(every) > 0:
            factor = 10 if any(diverged.values()) else 2
            _use_log_loss_axis(axes, (min(every) / 2, factor * max(every)))
        slide.use_linear_axis(axes, "x", max_ticks=5, integers=True)
    for axes in grid.flat[len(names) :]:
        axes.set_visible(False)
    slide.draw_legend_below(figure, max(panels.values(), key=lambda axes: len(axes.lines)), look)
    return figure


def _use_log_loss_axis(axes: Any, limits: tuple[float, float]) -> None:
    """Make the loss axis logarithmic, with the given limits."""
    # Limits come first: for losses of 1e300 a logarithmic axis chooses infinite limits.
    axes.set_ylim(*limits)
    axes.set_yscale("log", nonpositive="mask")
    slide.use_log_axis(axes, "y", max_ticks=6)


def _draw_lines(
    panels: Mapping[str, Any], result: Sweep, first: str, by: str, look: Theme
) -> dict[str, list[str]]:
    """Draw each run in the panel for its first setting; return the diverged runs of each panel."""
    labels = [
        ", ".join(format_cell(v) for n, v in of.items() if n != first) for of in result.varied
    ]
    order = list(dict.fromkeys(labels))
    diverged: dict[str, list[str]] = {name: [] for name in panels}
    for settings, label, run in zip(result.varied, labels, result.runs, strict=True):
        panel, (positions, losses) = format_cell(settings[first]), _list_losses(run, by)
        style = slide.choose_line_style(order.index(label), look, len(losses))
        style |= {"linewidth": 2.0, "label": slide.format_label(label)}
        panels[panel].plot(positions, losses, **style)
        if run.stopped == "diverged":
            diverged[panel].append(label)
    return diverged


def _format_panel_title(name: str, diverged: list[str], lines: int, columns: int) -> str:
    """Format the title of a panel from the value of its setting and its diverged runs.

    `lines` is the number of runs of the panel, `columns` the number of panels in a row.
    """
    if not diverged:
        return name
    if len(", ".join(diverged)) * columns <= _TITLE_LENGTH:  # fits above the panel
        return f"{name}\ndiverges: {join_names(diverged)}"
    return f"{name}\n{len(diverged)} of {lines} diverge"


def _list_losses(run: TrainingRun, by: str) -> tuple[list[float], list[float]]:
    """Return the steps or epochs of a training run, and the loss at each of them."""
    if run.stopped != "diverged" or by == "step":
        return over_time(run, by)
    steps, losses = over_time(run, "step")
    return [step / steps_per_epoch(run) for step in steps], losses
