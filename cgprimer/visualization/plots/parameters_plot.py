"""Learnt parameters against the truth: over time, a panel each, or all of them in the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite
from typing import Any, NamedTuple

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
    axis_of,
    common_truth,
    named_runs,
    steps_per_epoch,
)

Values = Mapping[str, float]
_MOST_PANELS = 9  # whose numbers are still read from the last row
_MOST_NAMES = 24  # parameters whose names fit under a picture
_FEW = 24  # values that are shown by a marker each
_GRID = {1: (1, 1), 2: (1, 2), 3: (1, 3), 4: (2, 2), 5: (2, 3), 6: (2, 3)}
_TRUE_DASH = (0, (4, 4))


def parameters(
    *runs: Run | Mapping[str, Run],
    names: Names = (),
    final: bool = False,
    by: str = "auto",
    log_steps: bool = False,
    dark: bool = False,
    title: str | None = None,
) -> slide.Figure:
    """The parameters of one or several runs over time, and their true values as dashed levels.

    Every parameter has a panel with its own scale. A run whose values become a thousand times as
    large as the true one leaves the panel, and the legend says that it diverges.

    Args:
        runs: as for :func:`loss`.
        names: only this parameter, or these, of an array all its numbers (``W``) or some
            (``W[0,1]``); all unless given, of which over time the first nine are drawn.
        final: what was learnt in the end, all parameters side by side, instead.
        by: over steps or epochs; auto: epochs if every run has five.
        log_steps: a logarithmic axis of steps or epochs; it begins after the start.

    Raises:
        UsageError: no run, a run without a step, one saved before parameters were recorded, runs
            with different true values, an unknown name.
        DataError: a file holds no run.

    Command line:
        cgprimer train lecture --save adam.json
        cgprimer train lecture --optimizer sgd --learning-rate 1e-4 --save sgd.json
        cgprimer plot parameters adam.json sgd.json -o parameters.png
        cgprimer plot parameters adam.json --names cd,ac --log-steps -o two.svg --dark
        cgprimer plot parameters adam.json sgd.json --final -o learnt.pdf

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    >>> run = cgprimer.train(graph, cgprimer.make_dataset(graph, samples=500), epochs=8)
    >>> figure = parameters({"adam": run})
    >>> [axes.get_title() for axes in figure.axes], figure.axes[0].get_xlabel()
    (['k', 'b'], 'epoch')
    """
    found = {name: run.in_numbers() for name, run in named_runs(runs).items()}
    truth = common_truth(found)
    known = tuple(dict.fromkeys(name for run in found.values() for name in run.parameters))
    chosen = normalize_names(names, "names") if names else known
    whole = {n: tuple(e for e in known if e.startswith(f"{n}[")) for n in chosen if n not in known}
    chosen = tuple(e for name in chosen for e in whole.get(name) or (name,))
    for name in chosen:
        if name not in known:
            raise UsageError(f"no run has a parameter {name!r}", hint=element_hint(name, known))
    if not chosen:
        raise UsageError("there are no parameters to draw")
    chosen = tuple(name for name in known if name in chosen)
    if final and log_steps:
        raise UsageError("final values have no axis of steps", hint="without --log-steps")
    if final:
        words = {"x": "parameter", "y": "value"}
        figure, axes, look = slide.framed(dark, title, "Learned values", **words)
        _draw_final(axes, found, chosen, truth, look)
        slide.legend_below(figure, axes, look)
        return figure
    by = axis_of(found, check_choice("axis", by, BY))
    drawn = chosen[:_MOST_PANELS]
    cut = f", the first {len(drawn)} of {len(chosen)}" if len(drawn) < len(chosen) else ""
    figure, look = slide.new_figure(dark, title, f"Parameters over time{cut}")
    moved = {name: over_time(run, by, drawn) for name, run in found.items()}
    gone = {name for name, m in moved.items() if any(_far(m, n, truth) for n in drawn)}
    gone |= {name for name, run in found.items() if run.stopped == "diverged"}
    if log_steps:  # the start has no place there, and no say in the scales
        for places, values in moved.values():
            for begun in (places, *values.values()):
                del begun[0]
    rows, columns = _GRID.get(len(drawn), (3, 3))
    panels = list(figure.subplots(rows, columns, squeeze=False, sharex=True).flat)
    for axes in panels[len(drawn) :]:
        axes.remove()
    for number, (name, axes) in enumerate(zip(drawn, panels, strict=False)):
        lowest = number + columns >= len(drawn)  # no panel below
        slide.dress(axes, look, x=by if lowest else "", y="value" if number % columns == 0 else "")
        axes.set_title(name, parse_math=False, fontsize=17, color=look.ink, weight="bold", pad=4)
        _draw_panel(axes, name, moved, truth, gone, look)
        axes.tick_params(axis="x", labelbottom=lowest)
        if log_steps:
            slide.log_axis(axes, "x", most=9 - columns)
        else:
            slide.linear_axis(axes, "x", most=8 // columns + 1, whole=True)
        slide.linear_axis(axes, "y", most=7 - rows)
    slide.legend_below(figure, panels[0], look)
    return figure


class OverTime(NamedTuple):
    """Parameters over time."""

    places: list[float]  # steps or epochs, ascending, from 0
    values: dict[str, list[float]]  # of each parameter, at each place


def over_time(run: TrainingRun, by: str, chosen: Sequence[str]) -> OverTime:
    """The chosen parameters, as far as the run has them, over steps or epochs.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa; parameter k = 2")
    >>> data = cgprimer.make_dataset(graph, samples=100)
    >>> found = over_time(cgprimer.train(graph, data, epochs=3, start={"k": 1.0}), "epoch", "k")
    >>> found.places, found.values["k"][0]
    ([0.0, 1.0, 2.0, 3.0], 1.0)
    """
    last = run.recorded_steps[-1] if run.recorded_steps else 0
    end = [run.steps] if last < run.steps else []  # ended between two moments
    apart = 1.0 if by == "step" else steps_per_epoch(run)
    values = {
        n: [run.start[n], *run.recorded_parameters[n]] + [run.parameters[n]] * len(end)
        for n in chosen
        if n in run.parameters
    }
    return OverTime([step / apart for step in (0, *run.recorded_steps, *end)], values)


def _far(moved: OverTime, name: str, truth: Values) -> bool:
    values = moved.values.get(name, [])
    return any(not abs(value) <= _limit(values, name, truth) for value in values)


def _limit(values: Sequence[float], name: str, truth: Values) -> float:
    """Of the size of a parameter: beyond, a run has diverged."""
    near = truth.get(name, values[0] if values and isfinite(values[0]) else 0.0)
    return FAR * max(1.0, abs(near))


def _draw_panel(
    axes: slide.Axes,
    name: str,
    runs: Mapping[str, OverTime],
    truth: Values,
    gone: set[str],
    look: Theme,
) -> None:
    level: dict[str, Any] = {"color": look.ink, "linestyle": _TRUE_DASH, "linewidth": 2.0}
    if truth:  # in every panel, so that the legend of the first has it
        axes.plot([], [], **level, label="true value")
    seen = [truth[name]] if name in truth else []
    calm = list(seen)
    for value in seen:
        axes.axhline(value, **level, label="_level")
    for order, (run, moved) in enumerate(runs.items()):
        values = moved.values.get(name, [])
        few, apart = len(values) <= _FEW, max(1, len(values) // 4)
        label = slide.plain(f"{run}: diverges" if run in gone else run)
        axes.plot(moved.places if values else [], values, **slide.curve_style(order, look),
                  linewidth=2.4, markersize=6 if few else 8, label=label,
                  markevery=1 if few else (order * 3 % apart, apart))  # fmt: skip
        seen += [value for value in values if abs(value) <= _limit(values, name, truth)]
        calm += [] if _far(moved, name, truth) else values
    if seen and any(_far(moved, name, truth) for moved in runs.values()):
        low, high = min(calm or seen), max(calm or seen)
        room = 0.1 * (high - low) or 1.0
        axes.set_ylim(low - room, high + room)


def _draw_final(
    axes: slide.Axes,
    runs: Mapping[str, TrainingRun],
    names: Sequence[str],
    truth: Values,
    look: Theme,
) -> None:
    """Learnt parameters beside their true values, where those are known.

    A run that has diverged is named but not drawn: nothing else could be told apart beside it.
    """
    known = {k: truth[name] for k, name in enumerate(names) if name in truth}
    if known:
        axes.hlines(list(known.values()), [k - 0.35 for k in known], [k + 0.35 for k in known],
                    color=look.ink, linewidth=2.4, label="true value")  # fmt: skip
    far = FAR * max(1.0, *map(abs, known.values())) if known else inf
    for order, (name, run) in enumerate(runs.items()):
        aside = 0.5 * ((order + 0.5) / len(runs) - 0.5)
        learnt = {k + aside: run.parameters[n] for k, n in enumerate(names) if n in run.parameters}
        style = {**slide.curve_style(order, look), "linestyle": "", "markersize": 12}
        label = f"{name}, learnt"
        if run.stopped == "diverged" or any(not abs(value) <= far for value in learnt.values()):
            learnt, label = {}, f"{name}: diverged, not shown"
            style["marker"] = ""
        axes.plot(list(learnt), list(learnt.values()), **style, label=slide.plain(label))
    shown = range(0, len(names), -(-len(names) // _MOST_NAMES))
    axes.set_xticks(list(shown), [names[k] for k in shown], parse_math=False)
    if sum(len(names[k]) for k in shown) > 80:
        axes.tick_params(axis="x", rotation=90)
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.grid(visible=False, axis="x")
    axes.margins(y=0.15)
    slide.linear_axis(axes, "y")
