"""The common parts of all plots: a slide of 13.33 by 7.5 inches, axes, ticks, styles, legends.

No text is smaller than 14 points. Powers of ten are therefore written `1e-8`: the exponent of a
typeset power would be smaller.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any

from cgprimer.support.number_format import SHORT, format_number
from cgprimer.visualization.diagrams.text_layout import measure_text
from cgprimer.visualization.diagrams.theme import (
    AXIS_SIZE,
    DASHES,
    FONT,
    SLIDE_HEIGHT,
    SLIDE_WIDTH,
    TITLE_SIZE,
    Theme,
    theme,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes  # noqa: PLC0414, for the plots
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure as Figure  # noqa: PLC0414

_LEGEND_WIDTH = 930.0  # points
_STEPS = (1, 2, 5, 10)  # ticks are multiples of these times a power of ten
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def create_figure(dark: bool, title: str | None, default_title: str) -> tuple[Figure, Theme]:
    """Create an empty slide with a title; return the figure and its theme."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    look = theme(dark)
    padding = ConstrainedLayoutEngine(w_pad=0.2, h_pad=0.12)  # inches
    figure = Figure(
        figsize=(SLIDE_WIDTH / 72, SLIDE_HEIGHT / 72), facecolor=look.background, layout=padding
    )
    if title or title is None:
        figure.suptitle(default_title if title is None else title, **_choose_title_style(look))
    return figure, look


def _choose_title_style(look: Theme) -> dict[str, Any]:
    """Return the font, size, weight and color of a title."""
    return {**text_style(look), "fontsize": TITLE_SIZE, "weight": "bold"}


def create_plot(
    dark: bool, title: str | None, default_title: str, *, x: str, y: str
) -> tuple[Figure, Axes, Theme]:
    """Create a slide with a title and one pair of axes; return its figure, axes and theme.

    >>> figure, axes, look = create_plot(False, None, "Loss", x="step", y="loss")
    >>> axes.get_title(), axes.get_xlabel(), [float(side) for side in figure.get_size_inches()][1]
    ('Loss', 'step', 7.5)
    """
    figure, look = create_figure(dark, "", "")
    axes = figure.add_subplot()
    style_axes(axes, look, x=x, y=y)
    axes.set_title(default_title if title is None else title, pad=14, **_choose_title_style(look))
    return figure, axes, look


def style_axes(axes: Axes, look: Theme, *, x: str = "", y: str = "") -> None:
    """Set the labels, colors, fonts and grid of a pair of axes."""
    axes.set_facecolor(look.background)
    axes.set_xlabel(x, **text_style(look))
    axes.set_ylabel(y, **text_style(look))
    style_ticks(axes, look)
    axes.grid(which="major", color=look.grid, linewidth=0.9)
    axes.set_axisbelow(True)
    for name, spine in axes.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set_color(look.edge)


def style_ticks(axes: Axes, look: Theme) -> None:
    """Set the font, size and color of tick labels."""
    axes.tick_params(which="both", labelsize=AXIS_SIZE - 1, colors=look.ink, labelfontfamily=FONT)


def text_style(look: Theme) -> dict[str, Any]:
    """Return the font, size and color of plot text; `$` and `_` are printed literally."""
    return {"fontsize": AXIS_SIZE, "color": look.ink, "family": FONT, "parse_math": False}


def use_log_axis(axes: Axes, which: str, *, max_ticks: int = 9) -> None:
    """Make the axis `x` or `y` logarithmic, with at most about `max_ticks` labeled ticks."""
    axes.set(**{f"{which}scale": "log"})
    axis: Axis = getattr(axes, f"{which}axis")
    axis.set_ticks(choose_log_ticks(*axis.get_view_interval(), max_ticks=max_ticks))
    axis.set_major_formatter(lambda value, _: format_log_tick(value))
    axis.set_minor_formatter("")


def format_log_tick(value: float) -> str:
    """Format the label of a tick on a logarithmic axis.

    >>> format_log_tick(10_000), format_log_tick(0.01), format_log_tick(1e6)
    ('10,000', '0.01', '1e6')
    """
    text = format_number(value, SHORT)
    return f"{value:,.0f}" if text.isdecimal() else text


def choose_log_ticks(low: float, high: float, *, max_ticks: int = 9) -> list[float]:
    """Choose at least two and at most about `max_ticks` ticks for a logarithmic axis.

    They are powers of ten, or 1, 2 and 5 times powers of ten if there are fewer than three powers,
    or equidistant within a decade. If there are too many powers of ten, their exponents are
    multiples of an integer, so that 1 has a tick.

    >>> choose_log_ticks(0.05, 2000.0), choose_log_ticks(1.0, 30.0)
    ([0.1, 1.0, 10.0, 100.0, 1000.0], [1.0, 2.0, 5.0, 10.0, 20.0])
    >>> choose_log_ticks(1.0, 1.7, max_ticks=4), choose_log_ticks(1e-7, 1e5, max_ticks=4)
    ([1.0, 1.2, 1.4, 1.6], [0.0001, 1.0, 10000.0])
    """
    from matplotlib.ticker import MaxNLocator

    def keep_visible(ticks: Iterable[float]) -> list[float]:
        """Return the ticks that lie within the limits of the axis."""
        return [tick for tick in ticks if low <= tick <= high]

    exponents = range(floor(log10(low)), floor(log10(high)) + 1)
    powers = keep_visible(float(f"1e{exponent}") for exponent in exponents)
    if len(powers) > 2:
        stride = ceil(len(powers) / max_ticks)
        return [power for power in powers if round(log10(power)) % stride == 0]
    multiples = keep_visible(
        float(f"{step}e{exponent}") for exponent in exponents for step in _STEPS[:3]
    )
    if len(multiples) > 2:
        return multiples if len(multiples) <= max_ticks or len(powers) < 2 else powers
    equidistant = MaxNLocator(nbins=max_ticks, steps=_STEPS).tick_values(low, high)
    return keep_visible(float(f"{tick:.12g}") for tick in equidistant)


def use_linear_axis(axes: Axes, which: str, *, max_ticks: int = 8, integers: bool = False) -> None:
    """Set the ticks of axis `x`, `y` or `z` to multiples of 1, 2 or 5, with plain labels.

    With `integers` ticks are integers only, even if there is only one.
    """
    from matplotlib.ticker import MaxNLocator

    axis: Axis = getattr(axes, f"{which}axis")
    least = 1 if integers else 2
    axis.set_major_locator(
        MaxNLocator(max_ticks, steps=_STEPS, integer=integers, min_n_ticks=least)
    )
    low, high = axis.get_view_interval()
    if integers and high - low < 2:  # matplotlib would use fractions to fill the axis
        axis.set_ticks(list(range(ceil(low), floor(high) + 1)))
    axis.set_major_formatter(lambda value, _: format_tick(value, axis.get_majorticklocs()))


def format_tick(value: float, ticks: Any) -> str:
    """Format the label of a tick with the same precision as the labels of all `ticks`.

    >>> [format_tick(value, [999_999, 1_000_000, 1_000_001]) for value in (999_999, 1_000_000)]
    ['999,999', '1,000,000']
    >>> format_tick(2e5, [0, 2e5, 4e5]), format_tick(0.005, [0, 0.005, 0.01])
    ('2e5', '0.005')
    """
    steps = [b - a for a, b in pairwise(ticks) if b > a]
    largest = max(map(abs, ticks), default=abs(value))
    step = min(steps, default=largest) or 1.0
    if abs(value) < step / 1e6:
        return "0"
    digits = 1 + max(0, floor(log10(largest / step) + 1e-9)) if largest else 1
    if 0.01 <= largest < (1e5 if digits <= 5 else 1e9):
        text = f"{value:,.{max(0, -floor(log10(step) + 1e-9))}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return format_number(value, digits + 1)


def choose_curve_style(order: int, look: Theme) -> dict[str, Any]:
    """Choose the color, dashes and marker of the curve with the given index."""
    return {
        "color": look.curves[order % len(look.curves)],
        "linestyle": DASHES[order % len(DASHES)],
        "marker": MARKERS[order % len(MARKERS)],
    }


def choose_line_style(order: int, look: Theme, points: int) -> dict[str, Any]:
    """Choose the style for a curve with many points; markers appear only if dashes repeat."""
    rounds, between = order // len(DASHES), max(1, points // 10)
    marker = MARKERS[(rounds - 1) % len(MARKERS)] if rounds else ""
    markers = {"marker": marker, "markevery": (order * between // 4 % between, between)}
    return choose_curve_style(order, look) | markers | {"markersize": 9}


def annotate_point(
    axes: Axes, text: str, point: Any, offset: Any, look: Theme, **style: Any
) -> None:
    """Write text next to a point of the plot, at an offset in points (1/72 inch)."""
    style = text_style(look) | style
    axes.annotate(text, point, xytext=offset, textcoords="offset points", **style)


def mark_end(
    axes: Axes, point: tuple[float, float], text: str, color: str, look: Theme, *, up: bool = True
) -> None:
    """Mark the end of a curve that ends early with a ring, and write a text next to the ring."""
    axes.plot(*point, linestyle="", marker="o", markersize=18, markerfacecolor="none",
              markeredgewidth=2.0, color=color, label="_end", zorder=6)  # fmt: skip
    offset, va = ((0, 16), "bottom") if up else ((0, -16), "top")
    annotate_point(axes, text, point, offset, look, ha="center", va=va, zorder=7)


def draw_legend_below(figure: Figure, axes: Axes, look: Theme) -> None:
    """Draw the legend below the plot, where it hides no curve; entries are ordered row by row."""
    handles, labels = axes.get_legend_handles_labels()
    size = AXIS_SIZE - 1
    widths = [measure_text(label, size) + 6 * size for label in labels]
    fitting = (
        n
        for n in (5, 4, 3, 2)
        if sum(max(widths[c::n], default=0) for c in range(n)) < _LEGEND_WIDTH
    )
    rows = max(1, -(-len(labels) // next(fitting, 1)))
    columns = -(-len(labels) // rows)  # rows of equal length
    # matplotlib fills columns; readers read rows.
    order = [k for c in range(columns) for k in range(c, len(handles), columns)]
    legend = figure.legend(
        [handles[k] for k in order],
        [labels[k] for k in order],
        loc="outside lower center",
        ncols=columns,
        prop={"family": FONT, "size": size},
        facecolor=look.background,
        edgecolor=look.grid,
        labelcolor=look.ink,
        handlelength=3.2,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def format_label(name: str) -> str:
    """Format a name as a legend label; matplotlib omits labels that begin with an underscore.

    An invisible word joiner before the underscore keeps the name as the user wrote it.
    """
    return f"\u2060{name}" if name.startswith("_") else name
