"""The runs of a sweep on one slide: a panel for each value of what varies first."""

from __future__ import annotations

from math import isfinite
from typing import Any

from cgprimer.plots import slide
from cgprimer.plots.loss import loss, over_time
from cgprimer.plots.runs import FAR, axis_of
from cgprimer.training.sweeps import Sweep, word

_PANELS = 6
_IN_A_ROW = 3


def sweep(found: Sweep, *, dark: bool = False, title: str | None = None) -> slide.Figure:
    """The losses of all runs over one scale: panels by what varies first, lines by the rest.

    Where one setting varies, or the first has more than six values, all lines are in one panel.
    A run that diverges leaves through the top, and the legend of its panel says so.

    Args:
        found: what :func:`cgprimer.sweep` returned.
        dark: for dark slides.
        title: above the picture.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa; parameter k = 3")
    >>> data = cgprimer.make_dataset(graph, samples=100)
    >>> vary = {"optimizer": ["sgd", "adam"], "learning_rate": [0.1, 0.01]}
    >>> figure = sweep(cgprimer.sweep(graph, data, vary, epochs=5))
    >>> [axes.get_title() for axes in figure.axes]
    ['sgd', 'adam']
    """
    first = next(iter(found.varied[0]))
    panels = list(dict.fromkeys(word(of[first]) for of in found.varied))
    if len(found.varied[0]) == 1 or not 1 < len(panels) <= _PANELS:
        return loss(found.named, dark=dark, title=title)
    runs = found.named
    by = axis_of(runs)
    rows = -(-len(panels) // _IN_A_ROW)
    rest = [", ".join(word(v) for n, v in of.items() if n != first) for of in found.varied]
    names = ", ".join(name.replace("_", " ") for name in found.varied[0] if name != first)
    figure, look = slide.new_figure(dark, title, f"Loss by {first.replace('_', ' ')} and {names}")
    grid: Any = figure.subplots(
        rows, -(-len(panels) // rows), sharex=True, sharey=True, squeeze=False
    )
    every = [v for run in runs.values() for v in over_time(run, by)[1] if isfinite(v)]
    places = list(dict.fromkeys(rest))
    shown = dict(zip(panels, grid.flat, strict=False))
    for name, axes in shown.items():
        last_row = list(shown).index(name) + grid.shape[1] >= len(panels)
        side = axes in grid[:, 0]
        slide.dress(axes, look, x=by if last_row else "", y="loss" if side else "")
        axes.set_title(name, **slide.text_style(look) | {"weight": "bold"})
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for of, other, run in zip(found.varied, rest, found.runs, strict=True):
        axes = shown[word(of[first])]
        where, values = over_time(run, by)
        style = slide.line_style(places.index(other), look, len(values))
        axes.plot(where, values, linewidth=2.0, label=slide.plain(other), **style)
        if run.stopped == "diverged" and values and isfinite(values[-1]):
            top = min(values[-1], FAR * max(run.start_loss, 0))
            slide.mark_end(axes, (where[-1], top), "diverged", style["color"], look, up=False)
    axes = grid.flat[0]
    if every and min(every) > 0:
        start = max(run.start_loss for run in found.runs if isfinite(run.start_loss))
        axes.set_yscale("log", nonpositive="mask")
        axes.set_ylim(min(every) / 2, min(2 * max(every), FAR * start))
        for one in shown.values():
            slide.log_axis(one, "y", most=6)
    for one in shown.values():
        slide.linear_axis(one, "x", most=5, whole=True)
    slide.legend_below(figure, axes, look)
    return figure
