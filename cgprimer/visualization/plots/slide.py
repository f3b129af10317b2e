"""What all plots have in common: a slide of 13.33 by 7.5 inches, axes, numbers, styles, legends.

No text is smaller than 14 points, which is why powers of ten are written `1e-8`: the exponent of
a typeset power would be smaller.
"""

from __future__ import annotations

from itertools import pairwise
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any

from cgprimer.support.number_format import SHORT, format_number
from cgprimer.visualization.diagrams.text_layout import text_width
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

_ROOM = 930.0  # points for a legend under a picture
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def new_figure(dark: bool, title: str | None, usual: str) -> tuple[Figure, Theme]:
    """An empty slide, with its usual title or the given one over the whole, and its colours."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    look = theme(dark)
    padding = ConstrainedLayoutEngine(w_pad=0.2, h_pad=0.12)  # inches
    figure = Figure(
        figsize=(SLIDE_WIDTH / 72, SLIDE_HEIGHT / 72), facecolor=look.background, layout=padding
    )
    if title or title is None:
        figure.suptitle(usual if title is None else title, **_heading(look))
    return figure, look


def _heading(look: Theme) -> dict[str, Any]:
    return {**text_style(look), "fontsize": TITLE_SIZE, "weight": "bold"}


def framed(
    dark: bool, title: str | None, usual: str, *, x: str, y: str
) -> tuple[Figure, Axes, Theme]:
    """A slide with one pair of axes that are named, its usual title or the given one over them.

    >>> figure, axes, look = framed(False, None, "Loss", x="step", y="loss")
    >>> axes.get_title(), axes.get_xlabel(), [float(side) for side in figure.get_size_inches()][1]
    ('Loss', 'step', 7.5)
    """
    figure, look = new_figure(dark, "", "")
    axes = figure.add_subplot()
    dress(axes, look, x=x, y=y)
    axes.set_title(usual if title is None else title, pad=14, **_heading(look))
    return figure, axes, look


def dress(axes: Axes, look: Theme, *, x: str = "", y: str = "") -> None:
    """Give axes their names, colours, fonts and grid."""
    axes.set_facecolor(look.background)
    axes.set_xlabel(x, **text_style(look))
    axes.set_ylabel(y, **text_style(look))
    number_style(axes, look)
    axes.grid(which="major", color=look.grid, linewidth=0.9)
    axes.set_axisbelow(True)
    for name, spine in axes.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set_color(look.edge)


def number_style(axes: Axes, look: Theme) -> None:
    """Font, size and colour of the numbers on axes."""
    axes.tick_params(which="both", labelsize=AXIS_SIZE - 1, colors=look.ink, labelfontfamily=FONT)


def text_style(look: Theme) -> dict[str, Any]:
    """Font, size and colour of the text of a plot, in which nothing is markup."""
    return {"fontsize": AXIS_SIZE, "color": look.ink, "family": FONT, "parse_math": False}


def log_axis(axes: Axes, which: str, *, most: int = 9) -> None:
    """Make the axis `x` or `y` logarithmic, with at most about `most` numbers on it."""
    axes.set(**{f"{which}scale": "log"})
    axis: Axis = getattr(axes, f"{which}axis")
    axis.set_ticks(log_places(*axis.get_view_interval(), most=most))
    axis.set_major_formatter(lambda value, _: grouped(value))
    axis.set_minor_formatter("")


def grouped(value: float) -> str:
    """A number on a logarithmic axis.

    >>> grouped(10_000), grouped(0.01), grouped(1e6)
    ('10,000', '0.01', '1e6')
    """
    text = format_number(value, SHORT)
    return f"{value:,.0f}" if text.isdecimal() else text


def log_places(low: float, high: float, *, most: int = 9) -> list[float]:
    """Where the numbers of a logarithmic axis stand: two of them at least, and about `most`.

    They are powers of ten; 1, 2 and 5 where that makes too few; and even steps within a decade.

    >>> log_places(0.05, 2000.0), log_places(1.0, 30.0)
    ([0.1, 1.0, 10.0, 100.0, 1000.0], [1.0, 2.0, 5.0, 10.0, 20.0])
    >>> log_places(1.0, 1.7, most=4)
    [1.0, 1.2, 1.4, 1.6]
    """
    from matplotlib.ticker import MaxNLocator

    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    few = [float(f"{n}e{power}") for power in decades for n in (1, 2, 5)]
    powers, few = ([place for place in all_ if low <= place <= high] for all_ in (few[::3], few))
    if len(powers) > 2:
        apart = -(-len(powers) // most)
        return [power for power in powers if round(log10(power)) % apart == 0]
    if len(few) > 2:
        return few if len(few) <= most or len(powers) < 2 else powers
    even = MaxNLocator(nbins=most, steps=[1, 2, 5, 10]).tick_values(low, high)
    return [float(f"{place:.12g}") for place in even if low <= place <= high]


def linear_axis(axes: Axes, which: str, *, most: int = 8, whole: bool = False) -> None:
    """Number the axis `x`, `y` or `z` in steps of 1, 2 or 5, each number as it stands.

    With `whole` only whole numbers stand there, if there is but one.
    """
    from matplotlib.ticker import MaxNLocator

    axis: Axis = getattr(axes, f"{which}axis")
    steps = [1, 2, 5, 10]
    axis.set_major_locator(MaxNLocator(most, steps=steps, integer=whole, min_n_ticks=2 - whole))
    low, high = axis.get_view_interval()
    if whole and high - low < 2:  # matplotlib would take fractions to fill the axis
        axis.set_ticks(list(range(ceil(low), floor(high) + 1)))
    axis.set_major_formatter(lambda value, _: on_axis(value, axis.get_majorticklocs()))


def on_axis(value: float, places: Any) -> str:
    """A number on an axis that has numbers at `places`, all in one form.

    >>> [on_axis(value, [999_999, 1_000_000, 1_000_001]) for value in (999_999, 1_000_000)]
    ['999,999', '1,000,000']
    >>> on_axis(2e5, [0, 2e5, 4e5]), on_axis(0.005, [0, 0.005, 0.01]), on_axis(2e-5, [0, 2e-5])
    ('2e5', '0.005', '2e-5')
    """
    steps = [b - a for a, b in pairwise(places) if b > a]
    largest = max(map(abs, places), default=abs(value))
    step = min(steps, default=largest) or 1.0
    if abs(value) < step / 1e6:
        return "0"
    digits = 1 + max(0, floor(log10(largest / step) + 1e-9)) if largest else 1
    if 0.01 <= largest < (1e5 if digits <= 5 else 1e9):
        text = f"{value:,.{max(0, -floor(log10(step) + 1e-9))}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return format_number(value, digits + 1)


def curve_style(order: int, look: Theme) -> dict[str, Any]:
    """Colour, dash and marker of the curve number `order` from 0."""
    return {
        "color": look.curves[order % len(look.curves)],
        "linestyle": DASHES[order % len(DASHES)],
        "marker": MARKERS[order % len(MARKERS)],
    }


def line_style(order: int, look: Theme, points: int) -> dict[str, Any]:
    """Colour, dash and, once the dashes are used up, markers of a curve of many points."""
    rounds, between = order // len(DASHES), max(1, points // 10)
    marker = MARKERS[(rounds - 1) % len(MARKERS)] if rounds else ""
    markers = {"marker": marker, "markevery": (order * between // 4 % between, between)}
    return curve_style(order, look) | markers | {"markersize": 9}


def beside(axes: Axes, text: str, point: Any, aside: Any, look: Theme, **more: Any) -> None:
    """A text so many points beside a point."""
    style = text_style(look) | more
    axes.annotate(text, point, xytext=aside, textcoords="offset points", **style)


def mark_end(
    axes: Axes, point: tuple[float, float], word: str, colour: str, look: Theme, *, up: bool = True
) -> None:
    """A ring around the end of a curve that others go on beyond, and a word over or under it."""
    axes.plot(*point, linestyle="", marker="o", markersize=18, markerfacecolor="none",
              markeredgewidth=2.0, color=colour, label="_end", zorder=6)  # fmt: skip
    aside, va = ((0, 16), "bottom") if up else ((0, -16), "top")
    beside(axes, word, point, aside, look, ha="center", va=va, zorder=7)


def legend_below(figure: Figure, axes: Axes, look: Theme) -> None:
    """The legend under the picture, where it hides nothing; its rows are filled from the left."""
    handles, labels = axes.get_legend_handles_labels()
    size = AXIS_SIZE - 1
    wide = [text_width(label, size) + 6 * size for label in labels]
    fitting = (n for n in (5, 4, 3, 2) if sum(max(wide[c::n], default=0) for c in range(n)) < _ROOM)
    columns = -(-len(labels) // max(1, -(-len(labels) // next(fitting, 1))))  # rows of one length
    # matplotlib fills columns; readers read rows.
    order = [k for c in range(columns) for k in range(c, len(handles), columns)]
    made = figure.legend(
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
    for text in made.get_texts():
        text.set_parse_math(False)


def plain(name: str) -> str:
    """A name for a legend, from which matplotlib leaves labels out that begin with an underscore.

    The invisible word joiner before it keeps the name as the user wrote it.
    """
    return f"\u2060{name}" if name.startswith("_") else name
