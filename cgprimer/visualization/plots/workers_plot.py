"""Training with several workers: timelines, staleness, and losses over steps and time."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from cgprimer.errors import UsageError, pluralize
from cgprimer.support.number_format import format_number
from cgprimer.support.validation import check_choice, check_real_number
from cgprimer.training.distributed.worker_record import TeamRecord, record_of
from cgprimer.training.runs import TrainingRun
from cgprimer.visualization.diagrams.theme import Theme, mix
from cgprimer.visualization.plots import slide
from cgprimer.visualization.plots.loss_plot import compute_moving_average
from cgprimer.visualization.plots.plotted_runs import Run, name_runs

SHOW = ("auto", "timeline", "loss", "staleness")
_GAP = 400  # width of the plot over the gap between two spans
_NUMBERED = 72  # width of the plot over the minimum width of a span with a number
_MAX_ROWS = 16  # workers in a timeline
_MAX_STEPS = 60  # steps in a timeline that are drawn as lines
_MAX_BARS = 40  # bars of a histogram
_SMOOTH = 40  # windows of a smoothed curve
_SYNCHRONOUS = ("sync", "backup", "layers")  # protocols in which all workers end a step together
_SPAN_STYLES = {  # index of the color, strength of the color, and hatch of each kind of span
    "compute": (0, 0.75, ""),
    "forward": (0, 0.75, ""),
    "backward": (2, 0.55, "//"),
    "receive": (3, 0.55, ".."),
    "send": (1, 0.75, "\\\\"),
    "dropped": (1, 0.12, "xx"),
    "lost": (1, 0.12, "++"),
    "away": (6, 0.25, "--"),
}


def workers(
    *runs: Run | Mapping[str, Run],
    show: str = "auto",
    until: float | None = None,
    dark: bool = False,
    title: str | None = None,
) -> slide.Figure:
    """Draw the activities of workers, the losses or the staleness for one or more runs.

    Args:
        runs: results of :func:`cgprimer.train` with workers, files written by ``cgprimer train
            --workers 8 --simulate --save``, or mappings from names to results or files.
        show: timeline (the activities of each worker of one run, and the fraction of its time that
            is used), loss (over steps and over time), or staleness (number of steps during the
            computation of a gradient); auto: the timeline of one run, or the losses of several.
        until: end of the timeline, in seconds.

    Raises:
        UsageError: a timeline of several runs, a run without a step.
        DataError: a run has no workers.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    >>> data = cgprimer.make_dataset(graph, samples=20)
    >>> options = {"workers": 2, "simulate": True, "delays": "1,2", "batch_size": 10, "epochs": 1}
    >>> run = cgprimer.train(graph, data, **options)
    >>> workers(run).axes[0].get_title()
    '2 workers, sync: 2 s per step'
    """
    runs_by_name = name_runs(runs)
    records = {name: record_of(run) for name, run in runs_by_name.items()}
    if check_choice("way to show workers", show, SHOW) == "auto":
        show = "timeline" if len(runs_by_name) == 1 else "loss"
    for name, run in runs_by_name.items():
        if not run.steps:
            raise UsageError(f"the run {name!r} has no training step, so there is nothing to draw")
    if show == "loss":
        return _draw_losses(runs_by_name, records, dark=dark, title=title)
    if show == "staleness":
        return _draw_staleness(records, dark=dark, title=title)
    if len(records) > 1:
        raise UsageError(f"a timeline requires exactly one run, got {len(records)}")
    ((record, run),) = zip(records.values(), runs_by_name.values(), strict=True)
    if until is not None:
        until = check_real_number("the end of the timeline", until, above=0)
    return timeline(record, run.steps, until, dark=dark, title=title)


def timeline(
    record: TeamRecord, steps: int, until: float | None = None, *, dark: bool, title: str | None
) -> slide.Figure:
    """Draw each worker's activities as a row of bars, with a line at the end of each step."""
    end = until or record.timeline_end()
    rows = min(record.workers, _MAX_ROWS)
    pace = format_number(record.clock / steps, 4)
    default_title = f"{pluralize(record.workers, 'worker')}, {record.protocol}: {pace} s per step"
    if record.has_stages:
        default_title += f", bubble {100 * record.time_fractions()['wait']:.0f} %"
    clock = "seconds of the virtual clock" if record.is_simulated else "seconds"
    figure, axes, look = slide.create_plot(dark, title, default_title, x=clock, y="")
    bars = _draw_spans(axes, record, rows, end, look)
    last = "send" if "send" in bars else "compute"  # the activity whose end is the end of a step
    _draw_steps(axes, record, last, (rows, end), look)
    for worker in range(rows):
        axes.plot([0, end], [worker, worker], color=look.edge, linewidth=1.0, zorder=0)
        text = f"{100 * record.utilization[worker]:.0f} %"
        slide.annotate_point(axes, text, (end, worker), (8, 0), look, ha="left", va="center")
    slide.annotate_point(axes, "used", (end, -0.5), (8, 4), look, ha="left", va="bottom")
    for kind, bar in bars.items():
        bar.set_label(record.label(kind))
    axes.plot([], [], color=look.edge, linewidth=1.0, label=record.label("wait"))
    axes.set_xlim(0, end)
    axes.set_ylim(rows - 0.5, -0.5)
    names = [f"worker {k + 1}" for k in range(rows)]
    if rows < record.workers:
        names[-1] += f" of {record.workers:,}"
    axes.set_yticks(range(rows), names)
    axes.grid(visible=False)
    slide.use_linear_axis(axes, "x")
    slide.draw_legend_below(figure, axes, look)
    return figure


def _draw_spans(
    axes: slide.Axes, record: TeamRecord, rows: int, end: float, look: Theme
) -> dict[str, Any]:
    """Draw a bar for each activity of each worker; return the last bar of each activity kind."""
    bars = dict[str, Any]()
    for span in record.spans:
        if span.worker >= rows or span.begin >= end:
            continue
        width = min(span.end, end) - span.begin
        width -= min(0.3 * width, end / _GAP)  # a gap separates consecutive bars
        style = _choose_span_style(span.kind, look)
        bars[span.kind] = axes.barh(span.worker, width, left=span.begin, height=0.62, **style)
        if record.has_stages and width > end / _NUMBERED:
            middle = span.begin + width / 2, span.worker
            style = {"ha": "center", "va": "center", "zorder": 4, "weight": "bold"}
            slide.annotate_point(axes, str(span.version), middle, (0, 0), look, **style)
    return bars


def _draw_steps(
    axes: slide.Axes, record: TeamRecord, last: str, size: tuple[int, float], look: Theme
) -> None:
    """Draw a line at the end of each training step; for synchronous workers, across all rows.

    `last` is the last activity of a step, and `size` the number of rows and the end of the time.
    """
    rows, end = size
    times = [time for time in record.times if time <= end]
    if len(times) > _MAX_STEPS:
        return
    is_single = record.protocol.partition(":")[0] not in _SYNCHRONOUS
    worker_at = {span.end: span.worker for span in record.spans if span.kind == last}
    for time in times:
        row = worker_at.get(time, 0)
        limits = (row - 0.42, row + 0.42) if is_single else (-0.5, rows - 0.5)
        axes.plot([time] * 2, limits, color=look.ink, linewidth=3.0 if is_single else 1.4,
                  linestyle="-" if is_single else (0, (2, 2)), zorder=3)  # fmt: skip
    mark: dict[str, Any] = {"marker": "|", "markersize": 18, "markeredgewidth": 2.0}
    label = "end of a step of this worker" if is_single else "end of a step"
    axes.plot([], [], color=look.ink, linestyle="", **mark, label=label)


def _choose_span_style(kind: str, look: Theme) -> dict[str, Any]:
    """Choose a color and a hatch for each kind of activity."""
    order, strength, hatch = _SPAN_STYLES[kind]
    color = look.curves[order]
    return {
        "facecolor": mix(color, look.background, strength), "edgecolor": color, "hatch": hatch,
        "linewidth": 1.2, "zorder": 2,
    }  # fmt: skip


def _draw_losses(
    runs: Mapping[str, TrainingRun],
    records: Mapping[str, TeamRecord],
    *,
    dark: bool,
    title: str | None,
) -> slide.Figure:
    """Plot the losses of runs over steps and, in a second panel, over time."""
    figure, look = slide.create_figure(dark, title, "Loss over steps and over time")
    both: Any = figure.subplots(1, 2, sharey=True)
    virtual = all(record.is_simulated for record in records.values())
    clock = f"seconds{virtual * ' of the virtual clock'}"
    for axes, name in zip(both, ("step", clock), strict=True):
        slide.style_axes(axes, look, x=name, y="loss" if axes is both[0] else "")
    positive = True
    for order, (name, run) in enumerate(runs.items()):
        losses = list(run.step_losses)
        means = compute_moving_average(losses, max(1, len(losses) // _SMOOTH))
        steps = [1.0 + k * run.steps_apart for k in range(len(losses))]
        times = list(records[name].times)
        positive = positive and all(v > 0 for v in means if isfinite(v))
        for axes, positions in (both[0], steps), (both[1], times):
            count = min(len(positions), len(means))
            style = slide.choose_line_style(order, look, count) | {
                "label": slide.format_label(name)
            }
            axes.plot(positions[:count], means[:count], linewidth=2.4, **style)
    for axes in both:
        slide.use_linear_axis(axes, "x", max_ticks=5)
        if positive:
            slide.use_log_axis(axes, "y")
        else:
            slide.use_linear_axis(axes, "y")
    slide.draw_legend_below(figure, both[0], look)
    return figure


def _draw_staleness(
    records: Mapping[str, TeamRecord], *, dark: bool, title: str | None
) -> slide.Figure:
    """Draw a histogram of gradient staleness for each run."""
    figure, axes, look = slide.create_plot(
        dark, title, "Staleness of gradients",
        x="staleness: steps while a gradient is computed", y="fraction of gradients",
    )  # fmt: skip
    oldest = max((max(r.staleness, default=0) for r in records.values()), default=0)
    bin_width = -(-(oldest + 1) // _MAX_BARS)
    count = len(records)
    for order, (name, record) in enumerate(records.items()):
        fractions = dict[int, float]()
        total = sum(record.staleness.values()) or 1
        for age, n in record.staleness.items():
            position = age // bin_width
            fractions[position] = fractions.get(position, 0.0) + n / total
        positions = [bin_width * (k + (order + 0.5) / count) - 0.5 for k in fractions]
        color = look.curves[order % len(look.curves)]
        mean = format_number(record.mean_staleness, 3)
        axes.bar(
            positions, list(fractions.values()), width=0.86 * bin_width / count, edgecolor=color,
            facecolor=mix(color, look.background, 0.55), hatch=("", "//", "xx", "..")[order % 4],
            label=slide.format_label(f"{name}, mean {mean}"),
        )  # fmt: skip
    slide.use_linear_axis(axes, "x", integers=True)
    slide.use_linear_axis(axes, "y")
    slide.draw_legend_below(figure, axes, look)
    return figure
