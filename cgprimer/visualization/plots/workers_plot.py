"""Many workers: who computed and who waited, how old gradients were, loss over steps and time."""

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
from cgprimer.visualization.plots.loss_plot import smoothed
from cgprimer.visualization.plots.plotted_runs import Run, named_runs

SHOW = ("auto", "timeline", "loss", "staleness")
_GAP = 400  # of such a part of the picture is what stands between two spans
_NUMBERED = 72  # of such a part of the picture a span has room for the number of its micro-batch
_ROWS = 16  # workers in a timeline
_STEPS = 60  # whose moments are lines in a timeline
_AGES = 40  # bars of a histogram
_SMOOTH = 40  # parts of a curve, of each of which the mean is drawn
_TOGETHER = ("sync", "backup", "layers")  # protocols whose steps end what all workers do
_LOOKS = {  # of a span: which colour of the curves, how much of it, what is drawn into it
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
    """What many workers did in one run or several.

    Args:
        runs: what :func:`cgprimer.train` returned for many workers, files that ``cgprimer train
            --workers 8 --simulate --save`` wrote, or mappings from names to either.
        show: timeline (what each worker of one run was at, from the beginning on, and which share
            of its time was used), loss (over steps, and over time), or staleness (how many steps
            were made while a gradient was computed); auto: the timeline of one run, or the losses
            of several.
        until: the seconds at which a timeline ends.

    Raises:
        UsageError: a timeline of several runs, a run without a step.
        DataError: a run had no workers.

    Command line:
        cgprimer train lecture --workers 4 --simulate --save sync.json
        cgprimer train lecture --workers 4 --simulate --protocol async --save async.json
        cgprimer plot workers sync.json -o timeline.png
        cgprimer plot workers sync.json async.json -o losses.svg --dark
        cgprimer plot workers async.json --show staleness -o staleness.png

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    >>> data = cgprimer.make_dataset(graph, samples=200)
    >>> run = cgprimer.train(graph, data, workers=2, simulate=True, delays="1,2", batch_size=10)
    >>> workers(run).axes[0].get_title()
    '2 workers, sync: 2 s per step'
    """
    given = named_runs(runs)
    found = {name: record_of(run) for name, run in given.items()}
    if check_choice("way to show workers", show, SHOW) == "auto":
        show = "timeline" if len(given) == 1 else "loss"
    for name, run in given.items():
        if not run.steps:
            raise UsageError(f"the run {name!r} has no step, so there is nothing to draw")
    if show == "timeline":
        if len(found) > 1:
            raise UsageError("a timeline is of one run, and there are several")
        ((record, run),) = zip(found.values(), given.values(), strict=True)
        end = (
            None if until is None else check_real_number("the end of the timeline", until, above=0)
        )
        return timeline(record, run.steps, end, dark=dark, title=title)
    if show == "loss":
        return _losses(given, found, dark=dark, title=title)
    return _staleness(found, dark=dark, title=title)


def timeline(
    record: TeamRecord, steps: int, until: float | None = None, *, dark: bool, title: str | None
) -> slide.Figure:
    """A row for each worker; the lines are steps."""
    end = until or record.timeline_end()
    rows = min(record.workers, _ROWS)
    pace = format_number(record.clock / steps, 4)
    usual = f"{pluralize(record.workers, 'worker')}, {record.protocol}: {pace} s per step"
    if record.has_stages:
        usual += f", bubble {100 * record.time_fractions()['wait']:.0f} %"
    clock = "seconds of the virtual clock" if record.is_simulated else "seconds"
    figure, axes, look = slide.framed(dark, title, usual, x=clock, y="")
    seen, alone = dict[str, Any](), record.protocol.partition(":")[0] not in _TOGETHER
    for span in record.spans:
        if span.worker < rows and span.begin < end:
            width = min(span.end, end) - span.begin
            width -= min(0.3 * width, end / _GAP)  # one gradient after the other, and not one bar
            seen[span.kind] = axes.barh(
                span.worker, width, left=span.begin, height=0.62, **_look(span.kind, look)
            )
            if record.has_stages and width > end / _NUMBERED:
                place = span.begin + width / 2, span.worker
                slide.beside(axes, str(span.version), place, (0, 0), look, ha="center",
                             va="center", zorder=4, weight="bold")  # fmt: skip
    made = [time for time in record.times if time <= end]
    if len(made) <= _STEPS:
        last = "send" if "send" in seen else "compute"  # the end of what makes a step
        ends = {span.end: span.worker for span in record.spans if span.kind == last}
        for time in made:
            row = ends.get(time, 0)
            from_to = (row - 0.42, row + 0.42) if alone else (-0.5, rows - 0.5)
            axes.plot([time] * 2, from_to, color=look.ink, linewidth=3.0 if alone else 1.4,
                      linestyle="-" if alone else (0, (2, 2)), zorder=3)  # fmt: skip
        mark: dict[str, Any] = {"marker": "|", "markersize": 18, "markeredgewidth": 2.0}
        says = "makes a step" if alone else "a step"
        axes.plot([], [], color=look.ink, linestyle="", **mark, label=says)
    for worker in range(rows):
        axes.plot([0, end], [worker, worker], color=look.edge, linewidth=1.0, zorder=0)
        text = f"{100 * record.utilization[worker]:.0f} %"
        slide.beside(axes, text, (end, worker), (8, 0), look, ha="left", va="center")
    slide.beside(axes, "used", (end, -0.5), (8, 4), look, ha="left", va="bottom")
    for kind, bars in seen.items():
        bars.set_label(record.label(kind))
    axes.plot([], [], color=look.edge, linewidth=1.0, label=record.label("wait"))
    axes.set_xlim(0, end)
    axes.set_ylim(rows - 0.5, -0.5)
    names = [f"worker {k + 1}" for k in range(rows)]
    if rows < record.workers:
        names[-1] += f" of {record.workers:,}"
    axes.set_yticks(range(rows), names)
    axes.grid(visible=False)
    slide.linear_axis(axes, "x")
    slide.legend_below(figure, axes, look)
    return figure


def _look(kind: str, look: Theme) -> dict[str, Any]:
    """Colour and hatch of a span: told apart without colours, too."""
    order, share, hatch = _LOOKS[kind]
    colour = look.curves[order]
    return {
        "facecolor": mix(colour, look.background, share), "edgecolor": colour, "hatch": hatch,
        "linewidth": 1.2, "zorder": 2,
    }  # fmt: skip


def _losses(
    runs: Mapping[str, TrainingRun],
    records: Mapping[str, TeamRecord],
    *,
    dark: bool,
    title: str | None,
) -> slide.Figure:
    """Two pictures of the same curves: over steps, and over time."""
    figure, look = slide.new_figure(dark, title, "The same runs over steps and over time")
    both: Any = figure.subplots(1, 2, sharey=True)
    virtual = all(record.is_simulated for record in records.values())
    clock = f"seconds{virtual * ' of the virtual clock'}"
    for axes, name in zip(both, ("step", clock), strict=True):
        slide.dress(axes, look, x=name, y="loss" if axes is both[0] else "")
    positive = True
    for order, (name, run) in enumerate(runs.items()):
        losses = list(run.step_losses)
        means = smoothed(losses, max(1, len(losses) // _SMOOTH))
        steps = [1.0 + k * run.steps_apart for k in range(len(losses))]
        times = list(records[name].times)
        positive = positive and all(v > 0 for v in means if isfinite(v))
        for axes, places in (both[0], steps), (both[1], times):
            known = min(len(places), len(means))
            style = slide.line_style(order, look, known) | {"label": slide.plain(name)}
            axes.plot(places[:known], means[:known], linewidth=2.4, **style)
    for axes in both:
        slide.linear_axis(axes, "x", most=5)
        if positive:
            slide.log_axis(axes, "y")
        else:
            slide.linear_axis(axes, "y")
    slide.legend_below(figure, both[0], look)
    return figure


def _staleness(records: Mapping[str, TeamRecord], *, dark: bool, title: str | None) -> slide.Figure:
    """Of each run the share of the gradients that were so many steps old."""
    figure, axes, look = slide.framed(
        dark, title, "How old gradients are when they are used",
        x="staleness: steps between a gradient's parameters and its own", y="share of gradients",
    )  # fmt: skip
    oldest = max((max(r.staleness, default=0) for r in records.values()), default=0)
    wide = -(-(oldest + 1) // _AGES)
    count = len(records)
    for order, (name, record) in enumerate(records.items()):
        shares = dict[int, float]()
        whole = sum(record.staleness.values()) or 1
        for age, n in record.staleness.items():
            shares[age // wide] = shares.get(age // wide, 0.0) + n / whole
        places = [wide * (k + (order + 0.5) / count) - 0.5 for k in shares]
        colour = look.curves[order % len(look.curves)]
        mean = format_number(record.mean_staleness, 3)
        axes.bar(
            places, list(shares.values()), width=0.86 * wide / count, edgecolor=colour,
            facecolor=mix(colour, look.background, 0.55), hatch=("", "//", "xx", "..")[order % 4],
            label=slide.plain(f"{name}, mean {mean}"),
        )  # fmt: skip
    slide.linear_axis(axes, "x", whole=True)
    slide.linear_axis(axes, "y")
    slide.legend_below(figure, axes, look)
    return figure
