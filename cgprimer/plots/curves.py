"""Training as curves: one line per run over its steps or epochs, and what was learnt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import inf, isfinite
from typing import TYPE_CHECKING

from cgprimer.errors import UsageError
from cgprimer.pictures.frame import (
    MARKERS,
    framed,
    legend_below,
    line_look,
    linear_axis,
    log_axis,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOG_AXES = ("auto", "none", "x", "y", "both")
_FAR = 1000.0  # times the loss of the start, or the size of the truth: a run that has diverged
_FIRST = 9  # losses that say where a run begins
_AROUND = 30.0  # times the means' least and greatest: what is outside is noise
_LONG = 1000  # steps beyond which a thick line would hide its own ups and downs
_STEADY = 10  # times the window: a run that diverges in fewer steps has no means
_SHORT = 20  # times as long is another run: then each loss has a marker
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
    themselves stay behind it, faint; a run of fewer losses is shown as it is. A run
    that diverges leaves the picture through its top, and the legend says that it does.

    `log` says which axes are logarithmic: ``auto`` (the loss, where none is negative), ``none``,
    ``x``, ``y`` or ``both``. On such an axis a loss of 0 leaves a gap, as on any axis does one
    that is not finite.

    Raises `cgprimer.errors.UsageError` for another `log`, or a logarithmic axis of losses of which
    one is negative or none is positive.

    >>> figure = draw_loss({"adam": [1.0, 0.1, 0.01]})
    >>> figure.axes[0].get_yscale()
    'log'
    """
    from cgprimer.plots.run_curves import smoothed

    figure, axes, look = framed(dark=dark, title=title or "Loss", x=step_name, y="loss")
    others = dict(validation or {})
    values = [v for run in (*histories.values(), *others.values()) for v in run if isfinite(v)]
    logarithmic = _log_axes(log, values)
    names = list(dict.fromkeys((*histories, *others)))
    longest = max(map(len, histories.values()), default=0)
    shown: list[list[float]] = []
    for number, name in enumerate(names):
        run, other = histories.get(name, ()), others.get(name, ())
        shape = line_look(number, look, len(run))
        if run:
            # The mean of an explosion is the explosion, at every step that it is near to.
            least = _STEADY * smooth if _explodes(run) else smooth
            window = smooth if len(run) >= least else 1
            means = smoothed(run, window)
            shown.append(means)
            steps = range(1, len(run) + 1)
            if window > 1:
                axes.plot(
                    steps, list(run), color=shape["color"], linewidth=1.0, alpha=0.3, label="_raw"
                )
            # A short run beside long ones is a stroke at the edge: markers make it a curve.
            brief = {"marker": MARKERS[number % len(MARKERS)], "markevery": 1}
            short = len(run) == 1 or _SHORT * len(run) < longest
            (curve,) = axes.plot(
                steps,
                means,
                linewidth=2.6 if window > 1 or len(run) < _LONG else 1.3,
                **(shape | brief if short else shape),
            )
            curve.set_label(plain(_run_label(name, run, window)))
        if other:
            (curve,) = axes.plot(
                (places or {}).get(name) or _spread(len(other), len(run)),
                list(other),
                color=shape["color"],
                linestyle=shape["linestyle"],
                linewidth=1.4,
                marker=MARKERS[number % len(MARKERS)],
                markersize=8,
                markeredgewidth=1.6,
                markevery=max(1, len(other) // 20),
                markerfacecolor=look.background,
            )
            gone = "" if any(map(isfinite, other)) else ": no finite loss"
            curve.set_label(plain(f"{name}, validation{gone}"))
    if longest == 1:
        axes.set_xlim(0, 2)  # one step: around it there is nothing to number
        axes.set_xticks([1])
    elif "x" in logarithmic:
        log_axis(axes, "x")
    else:
        linear_axis(axes, "x", whole=True)
    if "y" in logarithmic:
        axes.set_yscale("log", nonpositive="mask")  # a loss that is exactly 0 leaves a gap
        top = _FAR * _beginning([run for run in histories.values() if run])
        means = [v for run in (*shown, *others.values()) for v in run]
        low, high = _window(values, means, top)
        axes.set_ylim(low, high)
        log_axis(axes, "y")
    else:
        linear_axis(axes, "y")
    if sum(not str(line.get_label()).startswith("_") for line in axes.lines) > 1 or any(
        ", mean of" in str(line.get_label()) for line in axes.lines
    ):
        legend_below(figure, axes, look)
    return figure


def _run_label(name: str, run: Sequence[float], window: int) -> str:
    label = name if window == 1 else f"{name}, mean of {window}"
    if not any(map(isfinite, run)):
        return f"{label}: no finite loss"
    return f"{label}: diverges" if _explodes(run) else label


def _explodes(run: Sequence[float]) -> bool:
    """Whether a run ends far above its beginning.

    Its first losses say where it begins, unless every one is above the one before: then it
    explodes from its first step, and the first loss does.
    """
    ascends = all(before < after for before, after in pairwise(run[:_FIRST]))
    start = abs(run[0] if ascends else _usual(run))
    return not isfinite(run[-1]) or (start > 0 and run[-1] > _FAR * start)


def _beginning(runs: Sequence[Sequence[float]]) -> float:
    """The loss that runs begin with, or 0: that of the runs that do not diverge if there are some.

    That is the first loss, or where that is a lucky sample's a usual one.
    """
    calm = [run for run in runs if not _explodes(run)]
    first = [max(run[0], _usual(run)) for run in calm] or [run[0] for run in runs]
    return max((v for v in first if isfinite(v)), default=0.0)


def _usual(run: Sequence[float]) -> float:
    """What most of the first losses do not exceed."""
    first = sorted(v if isfinite(v) else inf for v in run[:_FIRST])
    return first[(len(first) - 1) * 3 // 4]


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
    figure, axes, look = framed(
        dark=dark, title=title or "What was learnt", x="parameter", y="value"
    )
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
    linear_axis(axes, "y")
    legend_below(figure, axes, look)
    return figure


def _spread(count: int, steps: int) -> list[float]:
    """Return the steps at which `count` values were taken, the last of them at the last step."""
    if not steps or count == steps:
        return [float(k) for k in range(1, count + 1)]
    return [steps * (k + 1) / count for k in range(count)]
