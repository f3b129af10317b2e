"""Learned parameters and their true values: over time, or all parameters after training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite
from typing import Any, NamedTuple, TypeAlias

from cgprimer.core.methods.derivative_program import Names, normalize_names
from cgprimer.errors import UsageError
from cgprimer.support.validation import check_choice
from cgprimer.support.value_names import element_hint
from cgprimer.training.runs import TrainingRun
from cgprimer.visualization.diagrams.theme import Theme
from cgprimer.visualization.plots import slide
from cgprimer.visualization.plots.plotted_runs import (
    BY,
    FAR,
    Run,
    choose_axis,
    merge_true_values,
    name_runs,
    steps_per_epoch,
)

Values: TypeAlias = Mapping[str, float]
_MAX_PANELS = 9  # with more, ticks cannot be read from the last row
_MAX_NAMES = 24  # names of parameters that fit below a plot
_FEW = 24  # maximum number of values with a marker each
_GRID = {1: (1, 1), 2: (1, 2), 3: (1, 3), 4: (2, 2), 5: (2, 3), 6: (2, 3)}
_TRUE_DASHES = (0, (4, 4))


def parameters(
    *runs: Run | Mapping[str, Run],
    names: Names = (),
    final: bool = False,
    by: str = "auto",
    log_steps: bool = False,
    dark: bool = False,
    title: str | None = None,
) -> slide.Figure:
    """Draw the parameters of one or more runs over time, together with their true values.

    Every parameter has a panel with its own scale; a dashed line is its true value. A run whose
    values become a thousand times as large as the true value leaves the panel, and the legend says
    that it diverges.

    Args:
        runs: as for :func:`loss`.
        names: parameters to draw; arrays (``W``) or single elements (``W[0,1]``). Default: all,
            of which only the first nine are drawn over time.
        final: draw the learned values of all parameters side by side instead.
        by: horizontal axis, steps or epochs; auto: epochs if every run has five.
        log_steps: logarithmic axis of steps or epochs; it begins after the start.

    Raises:
        UsageError: no run, a run without a step or without recorded parameters, runs with
            different true values, an unknown name.
        DataError: a file is not a run.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    >>> run = cgprimer.train(graph, cgprimer.make_dataset(graph, samples=500), epochs=8)
    >>> figure = parameters({"adam": run})
    >>> [axes.get_title() for axes in figure.axes], figure.axes[0].get_xlabel()
    (['k', 'b'], 'epoch')
    """
    learned = {name: run.in_numbers() for name, run in name_runs(runs).items()}
    truth = merge_true_values(learned)
    chosen = _choose_parameters(learned, names)
    if final and log_steps:
        raise UsageError(
            "`log_steps` (--log-steps) cannot be combined with `final` (--final)",
            hint="omit --log-steps",
        )
    if final:
        labels = {"x": "parameter", "y": "value"}
        figure, axes, look = slide.create_plot(dark, title, "Learned values", **labels)
        _draw_final_values(axes, learned, chosen, truth, look)
        slide.draw_legend_below(figure, axes, look)
        return figure
    by = choose_axis(learned, check_choice("axis", by, BY))
    drawn = chosen[:_MAX_PANELS]
    cut = f", the first {len(drawn)} of {len(chosen)}" if len(drawn) < len(chosen) else ""
    figure, look = slide.create_figure(dark, title, f"Parameters over time{cut}")
    panels = _draw_panels(figure, learned, drawn, truth, (by, log_steps), look)
    slide.draw_legend_below(figure, panels[0], look)
    return figure


def _draw_panels(
    figure: slide.Figure,
    runs: Mapping[str, TrainingRun],
    names: Sequence[str],
    truth: Values,
    axis: tuple[str, bool],
    look: Theme,
) -> list[slide.Axes]:
    """Draw a panel for each parameter over time; return the panels.

    `axis` has `step` or `epoch`, and True for a logarithmic axis.
    """
    by, is_log = axis
    histories = {name: over_time(run, by, names) for name, run in runs.items()}
    diverged = {n for n, run in runs.items() if run.stopped == "diverged"}
    diverged |= {
        n for n, h in histories.items() if any(_has_diverged(h, name, truth) for name in names)
    }
    if is_log:  # the start is at 0, which a logarithmic axis does not have
        for positions, values in histories.values():
            for series in (positions, *values.values()):
                del series[0]
    rows, columns = _GRID.get(len(names), (3, 3))
    panels = list(figure.subplots(rows, columns, squeeze=False, sharex=True).flat)
    for axes in panels[len(names) :]:
        axes.remove()
    for number, (name, axes) in enumerate(zip(names, panels, strict=False)):
        is_lowest = number + columns >= len(names)  # no panel below
        y = "value" if number % columns == 0 else ""
        slide.style_axes(axes, look, x=by if is_lowest else "", y=y)
        axes.set_title(name, parse_math=False, fontsize=17, color=look.ink, weight="bold", pad=4)
        _draw_panel(axes, name, histories, truth, diverged, look)
        axes.tick_params(axis="x", labelbottom=is_lowest)
        if is_log:
            slide.use_log_axis(axes, "x", max_ticks=9 - columns)
        else:
            slide.use_linear_axis(axes, "x", max_ticks=8 // columns + 1, integers=True)
        slide.use_linear_axis(axes, "y", max_ticks=7 - rows)
    return panels


def _choose_parameters(runs: Mapping[str, TrainingRun], names: Names) -> tuple[str, ...]:
    """Return the scalars and array elements to be drawn, in the order of the runs' parameters."""
    elements = tuple(dict.fromkeys(name for run in runs.values() for name in run.parameters))
    chosen: set[str] = set()
    for name in normalize_names(names, "names") if names else elements:
        parts = [name] if name in elements else [e for e in elements if e.startswith(f"{name}[")]
        if not parts:
            hint = element_hint(name, elements)
            raise UsageError(f"unknown parameter {name!r}", hint=hint)
        chosen.update(parts)
    if not chosen:
        raise UsageError("the runs have no parameters to draw")
    return tuple(name for name in elements if name in chosen)


class OverTime(NamedTuple):
    """The history of the parameters in a training run, over steps or epochs.

    `places` are steps or epochs, ascending from 0; `values` has the values of each parameter.
    """

    places: list[float]
    values: dict[str, list[float]]


def over_time(run: TrainingRun, by: str, chosen: Sequence[str]) -> OverTime:
    """Return the history of the chosen parameters of a training run, over steps or epochs.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa; parameter k = 2")
    >>> data = cgprimer.make_dataset(graph, samples=100)
    >>> history = over_time(cgprimer.train(graph, data, epochs=3, start={"k": 1.0}), "epoch", "k")
    >>> history.places, history.values["k"][0]
    ([0.0, 1.0, 2.0, 3.0], 1.0)
    """
    last = run.recorded_steps[-1] if run.recorded_steps else 0
    end = [run.steps] if last < run.steps else []  # the run ended after the last recorded step
    divisor = 1.0 if by == "step" else steps_per_epoch(run)
    values = {
        n: [run.start[n], *run.recorded_parameters[n]] + [run.parameters[n]] * len(end)
        for n in chosen
        if n in run.parameters
    }
    return OverTime([step / divisor for step in (0, *run.recorded_steps, *end)], values)


def _has_diverged(history: OverTime, name: str, truth: Values) -> bool:
    """Return whether a parameter has diverged, because a value is too far from the true value."""
    values = history.values.get(name, [])
    return any(not abs(value) <= _compute_divergence_limit(values, name, truth) for value in values)


def _compute_divergence_limit(values: Sequence[float], name: str, truth: Values) -> float:
    """Return the magnitude of a parameter beyond which its run has diverged."""
    near = truth.get(name, values[0] if values and isfinite(values[0]) else 0.0)
    return FAR * max(1.0, abs(near))


def _draw_panel(
    axes: slide.Axes,
    name: str,
    runs: Mapping[str, OverTime],
    truth: Values,
    diverged: set[str],
    look: Theme,
) -> None:
    """Draw one parameter over time: a curve for each run, and the true value."""
    level: dict[str, Any] = {"color": look.ink, "linestyle": _TRUE_DASHES, "linewidth": 2.0}
    if truth:  # in every panel, because the legend is that of the first panel
        axes.plot([], [], **level, label="true value")
    near = [truth[name]] if name in truth else []
    stable = list(near)
    for value in near:
        axes.axhline(value, **level, label="_level")
    for order, (run, history) in enumerate(runs.items()):
        values = history.values.get(name, [])
        is_short, between = len(values) <= _FEW, max(1, len(values) // 4)
        label = slide.format_label(f"{run}: diverges" if run in diverged else run)
        axes.plot(history.places if values else [], values, **slide.choose_curve_style(order, look),
                  linewidth=2.4, markersize=6 if is_short else 8, label=label,
                  markevery=1 if is_short else (order * 3 % between, between))  # fmt: skip
        near += [
            value
            for value in values
            if abs(value) <= _compute_divergence_limit(values, name, truth)
        ]
        stable += [] if _has_diverged(history, name, truth) else values
    if near and any(_has_diverged(history, name, truth) for history in runs.values()):
        low, high = min(stable or near), max(stable or near)
        margin = 0.1 * (high - low) or 1.0
        axes.set_ylim(low - margin, high + margin)


def _draw_final_values(
    axes: slide.Axes,
    runs: Mapping[str, TrainingRun],
    names: Sequence[str],
    truth: Values,
    look: Theme,
) -> None:
    """Draw learned parameters next to their true values.

    A run that has diverged is named but not drawn: all other values would coincide.
    """
    true_values = {k: truth[name] for k, name in enumerate(names) if name in truth}
    if true_values:
        axes.hlines(list(true_values.values()), [k - 0.35 for k in true_values],
                    [k + 0.35 for k in true_values],
                    color=look.ink, linewidth=2.4, label="true value")  # fmt: skip
    far = FAR * max(1.0, *map(abs, true_values.values())) if true_values else inf
    for order, (name, run) in enumerate(runs.items()):
        offset = 0.5 * ((order + 0.5) / len(runs) - 0.5)
        learned = {
            k + offset: run.parameters[n] for k, n in enumerate(names) if n in run.parameters
        }
        style = {**slide.choose_curve_style(order, look), "linestyle": "", "markersize": 12}
        label = f"{name}, learned"
        if run.stopped == "diverged" or any(not abs(v) <= far for v in learned.values()):
            learned, label = {}, f"{name}: diverged, not shown"
            style["marker"] = ""
        axes.plot(list(learned), list(learned.values()), **style, label=slide.format_label(label))
    shown = range(0, len(names), -(-len(names) // _MAX_NAMES))
    axes.set_xticks(list(shown), [names[k] for k in shown], parse_math=False)
    if sum(len(names[k]) for k in shown) > 80:
        axes.tick_params(axis="x", rotation=90)
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.grid(visible=False, axis="x")
    axes.margins(y=0.15)
    slide.use_linear_axis(axes, "y")
