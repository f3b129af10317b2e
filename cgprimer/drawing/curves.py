"""Losses as curves: one line per run over its steps or epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cgprimer.drawing.theme import AXIS_SIZE, DASHES, FONT, TITLE_SIZE, theme

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_loss(
    histories: Mapping[str, Sequence[float]],
    *,
    validation: Mapping[str, Sequence[float]] | None = None,
    dark: bool = False,
    title: str = "",
    step_name: str = "step",
) -> Figure:
    """Draw the loss of one or several runs, one value per step (or epoch).

    `histories` maps the name of a run to its losses, first step first; `validation` maps some of
    the same names to losses measured on other samples, drawn thin and with markers in the run's
    colour; with fewer values than the run they are spread evenly over its steps. The loss axis is
    logarithmic where no loss is negative. A value that is not finite, or 0, leaves a gap.

    >>> figure = draw_loss({"adam": [1.0, 0.1, 0.01]})
    >>> figure.axes[0].get_yscale()
    'log'
    """
    from math import isfinite

    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.ticker import MaxNLocator

    look = theme(dark)
    others = dict(validation or {})
    values = [v for run in (*histories.values(), *others.values()) for v in run if isfinite(v)]
    padding = ConstrainedLayoutEngine(w_pad=0.2, h_pad=0.2)
    size = (960 / 72, 540 / 72)
    figure = Figure(figsize=size, facecolor=look.background, layout=padding)
    axes = figure.add_subplot()
    axes.set_facecolor(look.background)
    names = list(dict.fromkeys((*histories, *others)))
    for number, name in enumerate(names):
        colour = look.curves[number % len(look.curves)]
        dash = DASHES[number % len(DASHES)]
        run, other = histories.get(name, ()), others.get(name, ())
        if run:
            (curve,) = axes.plot(
                range(1, len(run) + 1),
                list(run),
                color=colour,
                linestyle=dash,
                linewidth=2.6,
                marker="o" if len(run) == 1 else "",
            )
            curve.set_label(_plain(name))
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
            curve.set_label(_plain(f"{name}, validation"))
    if values and max(values) > 0 and min(values) >= 0:
        axes.set_yscale("log", nonpositive="mask")  # a loss that is exactly 0 leaves a gap
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    style: dict[str, Any] = {"fontsize": AXIS_SIZE, "color": look.ink, "family": FONT}
    axes.set_xlabel(step_name, parse_math=False, **style)
    axes.set_ylabel("loss", **style)
    if title:
        heading: dict[str, Any] = {**style, "fontsize": TITLE_SIZE, "weight": "bold"}
        axes.set_title(title, pad=14, parse_math=False, **heading)
    axes.tick_params(which="both", labelsize=AXIS_SIZE - 1, colors=look.ink, labelfontfamily=FONT)
    axes.grid(which="major", color=look.grid, linewidth=0.9)
    axes.set_axisbelow(True)
    for name, spine in axes.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set_color(look.edge)
    if len(axes.lines) > 1:
        legend = axes.legend(
            prop={"family": FONT, "size": AXIS_SIZE - 1},
            facecolor=look.background,
            edgecolor=look.grid,
            labelcolor=look.ink,
            handlelength=3.2,
        )
        for text in legend.get_texts():
            text.set_parse_math(False)
    return figure


def _spread(count: int, steps: int) -> list[float]:
    """Return the steps at which `count` values were taken, the last of them at the last step."""
    if not steps or count == steps:
        return [float(k) for k in range(1, count + 1)]
    return [steps * (k + 1) / count for k in range(count)]


def _plain(name: str) -> str:
    # matplotlib leaves a label that begins with an underscore out of the legend; the invisible
    # word joiner before it keeps the name as the user wrote it.
    return f"\u2060{name}" if name.startswith("_") else name
