"""Training as curves: one line per run over its steps or epochs, and what was learnt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cgprimer.drawing.frame import MARKERS, framed, legend, log_axis, plain
from cgprimer.drawing.theme import DASHES
from cgprimer.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FAR = 1000.0  # times the loss of the start, or the size of the truth: a run that has diverged
_LONG = 1000  # steps beyond which a thick line would hide its own ups and downs
_MOST_NAMES = 24  # parameters whose names fit under a picture


def draw_loss(
    histories: Mapping[str, Sequence[float]],
    *,
    validation: Mapping[str, Sequence[float]] | None = None,
    smooth: int = 1,
    dark: bool = False,
    title: str = "",
    step_name: str = "step",
) -> Figure:
    """Draw the loss of one or several runs, one value per step (or epoch).

    `histories` maps the name of a run to its losses, first step first; `validation` maps some of
    the same names to losses measured on other samples, drawn thin and with markers in the run's
    colour; with fewer values than the run they are spread evenly over its steps. With `smooth`
    above 1 a curve shows the mean of so many neighbouring losses, and the losses themselves stay
    behind it, faint. A run that diverges leaves the picture through its top. The loss axis is
    logarithmic where no loss is negative. A value that is not finite, or 0, leaves a gap.

    >>> figure = draw_loss({"adam": [1.0, 0.1, 0.01]})
    >>> figure.axes[0].get_yscale()
    'log'
    """
    from math import isfinite

    from matplotlib.ticker import MaxNLocator

    from cgprimer.teaching.runs import smoothed

    figure, axes, look = framed(dark=dark, title=title, x=step_name, y="loss")
    others = dict(validation or {})
    values = [v for run in (*histories.values(), *others.values()) for v in run if isfinite(v)]
    names = list(dict.fromkeys((*histories, *others)))
    for number, name in enumerate(names):
        colour = look.curves[number % len(look.curves)]
        dash = DASHES[number % len(DASHES)]
        run, other = histories.get(name, ()), others.get(name, ())
        if run:
            means = smoothed(run, smooth)
            steps = range(1, len(run) + 1)
            if smooth > 1:
                axes.plot(steps, list(run), color=colour, linewidth=1.0, alpha=0.3, label="_raw")
            (curve,) = axes.plot(
                steps,
                means,
                color=colour,
                linestyle=dash,
                linewidth=2.6 if smooth > 1 or len(run) < _LONG else 1.3,
                marker="o" if len(run) == 1 else "",
            )
            curve.set_label(plain(name if smooth == 1 else f"{name}, mean of {smooth}"))
        if other:
            (curve,) = axes.plot(
                _spread(len(other), len(run)),
                list(other),
                color=colour,
                linestyle=dash,
                linewidth=1.2,
                marker="o",
                markersize=6,
                markevery=max(1, len(other) // 20),
                markerfacecolor=look.background,
            )
            curve.set_label(plain(f"{name}, validation"))
    if values and max(values) > 0 and min(values) >= 0:
        top = _FAR * max((run[0] for run in histories.values() if run), default=0.0)
        axes.set_yscale("log", nonpositive="mask")  # a loss that is exactly 0 leaves a gap
        if 0 < top < max(values):
            axes.set_ylim(min(v for v in values if v > 0) / 2, top)
        log_axis(axes, "y")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    if len(axes.lines) > 1:
        legend(axes, look)
    return figure


def draw_parameters(
    learnt: Mapping[str, Mapping[str, float]],
    truth: Mapping[str, float] | None = None,
    *,
    dark: bool = False,
    title: str = "",
) -> Figure:
    """Draw the learnt parameters of one or several runs beside their true values.

    `learnt` maps the name of a run to its parameters. Each parameter has a place on the x axis,
    with a bar at its true value, where `truth` has one, and a marker for each run. A run whose
    values are a thousand times as large as the true ones has diverged: the legend says so, and it
    is not drawn, since nothing else could be told apart beside it.

    Raises `cgprimer.errors.UsageError` where there is no parameter to draw.

    >>> figure = draw_parameters({"adam": {"k": 2.9, "b": -1.1}}, {"k": 3.0, "b": -1.0})
    >>> [text.get_text() for text in figure.axes[0].get_xticklabels()]
    ['k', 'b']
    """
    names = list(dict.fromkeys(name for values in learnt.values() for name in values))
    if not names:
        raise UsageError("there are no learnt parameters to draw")
    figure, axes, look = framed(dark=dark, title=title, x="parameter", y="value")
    known = [(k, truth[name]) for k, name in enumerate(names) if truth and name in truth]
    if known:
        axes.hlines(
            [value for _, value in known],
            [k - 0.35 for k, _ in known],
            [k + 0.35 for k, _ in known],
            color=look.ink,
            linewidth=2.4,
            label="true value",
        )
    far = _FAR * max([1.0, *(abs(value) for _, value in known)]) if known else float("inf")
    for number, (run, values) in enumerate(learnt.items()):
        if any(not abs(value) <= far for value in values.values()):
            axes.plot([], [], linestyle="", label=plain(f"{run}: diverged, not shown"))
            continue
        aside = 0.5 * ((number + 0.5) / len(learnt) - 0.5)
        places = [(k + aside, values[name]) for k, name in enumerate(names) if name in values]
        axes.plot(
            [x for x, _ in places],
            [y for _, y in places],
            linestyle="",
            color=look.curves[number % len(look.curves)],
            marker=MARKERS[number % len(MARKERS)],
            markersize=12,
            label=plain(f"{run}, learnt"),
        )
    step = -(-len(names) // _MOST_NAMES)
    shown = range(0, len(names), step)
    axes.set_xticks(list(shown), [names[k] for k in shown])
    for text in axes.get_xticklabels():
        text.set_parse_math(False)
        if sum(map(len, (names[k] for k in shown))) > 80:
            text.set(rotation=90)
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.grid(visible=False, axis="x")
    axes.margins(y=0.15)
    legend(axes, look)
    return figure


def _spread(count: int, steps: int) -> list[float]:
    """Return the steps at which `count` values were taken, the last of them at the last step."""
    if not steps or count == steps:
        return [float(k) for k in range(1, count + 1)]
    return [steps * (k + 1) / count for k in range(count)]
