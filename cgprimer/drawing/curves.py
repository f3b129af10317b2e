"""Training as curves: one line per run over its steps or epochs, and what was learnt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite
from typing import TYPE_CHECKING

from cgprimer.drawing.frame import MARKERS, framed, legend_below, log_axis, plain, tick
from cgprimer.drawing.theme import DASHES
from cgprimer.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOG_AXES = ("auto", "none", "x", "y", "both")
_FAR = 1000.0  # times the loss of the start, or the size of the truth: a run that has diverged
_FIRST = 9  # losses that say where a run begins
_AROUND = 30.0  # times the means' least and greatest: what is outside is noise
_LONG = 1000  # steps beyond which a thick line would hide its own ups and downs
_MOST_NAMES = 24  # parameters whose names fit under a picture


def draw_loss(
    histories: Mapping[str, Sequence[float]],
    *,
    validation: Mapping[str, Sequence[float]] | None = None,
    places: Mapping[str, Sequence[float]] | None = None,
    smooth: int = 1,
    log: str = "auto",
    dark: bool = False,
    title: str = "",
    step_name: str = "step",
) -> Figure:
    """Draw the loss of one or several runs, one value per step (or epoch).

    `histories` maps the name of a run to its losses, first step first; `validation` maps some of
    the same names to losses measured on other samples, drawn thin and with markers in the run's
    colour, at the steps that `places` has for the name, or else spread evenly over the run's. With
    `smooth` above 1 a curve shows the mean of so many neighbouring losses, and the losses
    themselves stay behind it, faint. A run that diverges leaves the picture through its top.

    `log` says which axes are logarithmic: ``auto`` (the loss, where none is negative), ``none``,
    ``x``, ``y`` or ``both``. On such an axis a loss of 0 leaves a gap, as on any axis does one
    that is not finite.

    Raises `cgprimer.errors.UsageError` for another `log`, or a logarithmic axis of losses of which
    one is negative or none is positive.

    >>> figure = draw_loss({"adam": [1.0, 0.1, 0.01]})
    >>> figure.axes[0].get_yscale()
    'log'
    """
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    from cgprimer.teaching.runs import smoothed

    figure, axes, look = framed(dark=dark, title=title, x=step_name, y="loss")
    others = dict(validation or {})
    values = [v for run in (*histories.values(), *others.values()) for v in run if isfinite(v)]
    logarithmic = _log_axes(log, values)
    names = list(dict.fromkeys((*histories, *others)))
    shown: list[list[float]] = []
    for number, name in enumerate(names):
        colour = look.curves[number % len(look.curves)]
        dash = DASHES[number % len(DASHES)]
        run, other = histories.get(name, ()), others.get(name, ())
        if run:
            means = smoothed(run, smooth)
            shown.append(means)
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
                markersize=10,
            )
            gone = "" if any(map(isfinite, run)) else ": no finite loss"
            curve.set_label(plain((name if smooth == 1 else f"{name}, mean of {smooth}") + gone))
        if other:
            (curve,) = axes.plot(
                (places or {}).get(name) or _spread(len(other), len(run)),
                list(other),
                color=colour,
                linestyle=dash,
                linewidth=1.4,
                marker=MARKERS[number % len(MARKERS)],
                markersize=8,
                markeredgewidth=1.6,
                markevery=max(1, len(other) // 20),
                markerfacecolor=look.background,
            )
            curve.set_label(plain(f"{name}, validation"))
    if max(map(len, histories.values()), default=0) == 1:
        axes.set_xlim(0, 2)  # one step: around it there is nothing to number
        axes.set_xticks([1])
    elif "x" in logarithmic:
        log_axis(axes, "x")
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
    if "y" in logarithmic:
        axes.set_yscale("log", nonpositive="mask")  # a loss that is exactly 0 leaves a gap
        top = _FAR * max((_beginning(run) for run in histories.values() if run), default=0.0)
        means = [v for run in (*shown, *others.values()) for v in run]
        low, high = _window(values, means, top)
        axes.set_ylim(low, high)
        log_axis(axes, "y")
    else:
        axes.ticklabel_format(axis="y", useOffset=False)  # numbers that can be read as they stand
    if sum(not str(line.get_label()).startswith("_") for line in axes.lines) > 1 or smooth > 1:
        legend_below(figure, axes, look)
    return figure


def _beginning(run: Sequence[float]) -> float:
    """The loss that a run begins with: the first, or where that is a lucky sample's a usual one."""
    first = sorted(v if isfinite(v) else inf for v in run[:_FIRST])
    usual = first[(len(first) - 1) * 3 // 4]
    return max(v for v in (run[0], usual, 0.0) if isfinite(v))


def _window(
    losses: Sequence[float], means: Sequence[float], top: float
) -> tuple[float | None, float | None]:
    """From where to where a logarithmic axis goes, None for as far as the curves do.

    It ends above the beginning of runs that diverge, and not far outside the means: single
    samples that happen to fit leave losses of almost 0 behind.
    """
    positive = [v for v in losses if v > 0]
    inside = [v for v in means if isfinite(v) and v > 0]
    least, most = (min(inside), max(inside)) if inside else (min(positive), max(positive))
    low = least / _AROUND if min(positive) < least / _AROUND else None
    high = most * _AROUND if max(positive) > most * _AROUND else None
    if least < top < (high or max(positive)):
        low, high = low or min(positive) / 2, top
    return low, high


def _log_axes(log: str, losses: Sequence[float]) -> str:
    """The letters of the logarithmic axes."""
    if log not in LOG_AXES:
        raise UsageError(f"logarithmic axes are one of {', '.join(LOG_AXES)}, not {log!r}")
    possible = bool(losses) and max(losses) > 0 and min(losses) >= 0
    if log in ("y", "both") and not possible:
        why = "a loss is negative" if losses and min(losses) < 0 else "no loss is above 0"
        raise UsageError(f"{why}: it has no place on a logarithmic axis", hint="--log none")
    return {"auto": "y" if possible else "", "none": "", "both": "xy"}.get(log, log)


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
    legend_below(figure, axes, look)
    return figure


def _spread(count: int, steps: int) -> list[float]:
    """Return the steps at which `count` values were taken, the last of them at the last step."""
    if not steps or count == steps:
        return [float(k) for k in range(1, count + 1)]
    return [steps * (k + 1) / count for k in range(count)]
