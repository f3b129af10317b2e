"""What every plot has in common: a slide of 13.33 by 7.5 inches, axes, numbers on them, legends.

No text is smaller than 14 points, which is why powers of ten are written `1e-8`: the exponent of
a typeset power would be smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any

from cgprimer.core.number_format import number
from cgprimer.pictures.lettering import text_width
from cgprimer.pictures.theme import (
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
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

SLIDE = (SLIDE_WIDTH / 72, SLIDE_HEIGHT / 72)  # inches
_ROOM = 930.0  # points for a legend under a picture
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""Shapes of points, cycled beside colours and dashes."""


def new_figure(look: Theme) -> Figure:
    """An empty slide in the colours of a theme."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    padding = ConstrainedLayoutEngine(w_pad=0.2, h_pad=0.12)  # inches
    return Figure(figsize=SLIDE, facecolor=look.background, layout=padding)


def framed(
    *, dark: bool = False, title: str = "", x: str = "", y: str = ""
) -> tuple[Figure, Axes, Theme]:
    """A slide with one pair of axes, named and in the theme's colours.

    >>> figure, axes, look = framed(x="step", y="loss")
    >>> axes.get_xlabel(), axes.get_ylabel(), [float(side) for side in figure.get_size_inches()][1]
    ('step', 'loss', 7.5)
    """
    look = theme(dark)
    figure = new_figure(look)
    axes = figure.add_subplot()
    dress(axes, look, title=title, x=x, y=y)
    return figure, axes, look


def dress(axes: Axes, look: Theme, *, title: str = "", x: str = "", y: str = "") -> None:
    """Give axes their names, colours, fonts and grid."""
    axes.set_facecolor(look.background)
    style = text_style(look)
    axes.set_xlabel(x, parse_math=False, **style)
    axes.set_ylabel(y, parse_math=False, **style)
    if title:
        heading: dict[str, Any] = {**style, "fontsize": TITLE_SIZE, "weight": "bold"}
        axes.set_title(title, pad=14, parse_math=False, **heading)
    axes.tick_params(which="both", labelsize=AXIS_SIZE - 1, colors=look.ink, labelfontfamily=FONT)
    for axis in (axes.xaxis, axes.yaxis):  # a power of ten that all numbers of an axis share
        axis.get_offset_text().set(fontsize=AXIS_SIZE - 1, color=look.ink, family=FONT)
    axes.grid(which="major", color=look.grid, linewidth=0.9)
    axes.set_axisbelow(True)
    for name, spine in axes.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set_color(look.edge)


def text_style(look: Theme) -> dict[str, Any]:
    """Font, size and colour of the text of a plot."""
    return {"fontsize": AXIS_SIZE, "color": look.ink, "family": FONT}


def log_axis(axes: Axes, which: str, *, most: int = 9) -> None:
    """Make the axis `x` or `y` logarithmic, with at most about `most` numbers on it."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    scale = axes.set_xscale if which == "x" else axes.set_yscale
    scale("log", nonpositive="mask")
    axis: Axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axis.get_view_interval()
    few = low > 0 and high / low < 50
    axis.set_major_locator(LogLocator(numticks=most, subs=(1.0, 2.0, 5.0) if few else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value, 5)))
    axis.set_minor_formatter(NullFormatter())


def linear_axis(axes: Axes, which: str, *, most: int = 8, whole: bool = False) -> None:
    """Number the axis `x`, `y` or `z` in steps of 1, 2 or 5, each number as it stands.

    With `whole` only whole numbers stand there, if there is but one.
    """
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis: Axis = getattr(axes, f"{which}axis")
    fewest = 1 if whole else 2
    axis.set_major_locator(
        MaxNLocator(nbins=most, steps=[1, 2, 5, 10], integer=whole, min_n_ticks=fewest)
    )
    if whole:
        low, high = axis.get_view_interval()
        if high - low < 2:  # matplotlib would take fractions to fill the axis
            axis.set_ticks(list(range(ceil(low), floor(high) + 1)))
    axis.set_major_formatter(
        FuncFormatter(lambda value, _: on_axis(value, list(axis.get_majorticklocs())))
    )


def on_axis(value: float, places: Sequence[float]) -> str:
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
    most = 1e5 if digits <= 5 else 1e9
    if 0.01 <= largest < most:
        decimals = max(0, -floor(log10(step) + 1e-9))
        return f"{value:,.{decimals}f}".rstrip("0").rstrip(".") if decimals else f"{value:,.0f}"
    return number(value, digits + 1)


def line_look(order: int, look: Theme, points: int) -> dict[str, Any]:
    """Colour, dash and, once the dashes are used up, markers of the curve number `order` from 0.

    >>> from cgprimer.pictures.theme import LIGHT
    >>> looks = [line_look(k, LIGHT, 100) for k in range(8)]
    >>> len({(str(one["linestyle"]), one["marker"]) for one in looks})
    8
    """
    rounds, dash = divmod(order, len(DASHES))
    between = max(1, points // 10)
    return {
        "color": look.curves[order % len(look.curves)],
        "linestyle": DASHES[dash],
        "marker": MARKERS[(rounds - 1) % len(MARKERS)] if rounds else "",
        "markersize": 9,
        "markevery": (order * between // 4 % between, between),
    }


def legend_below(figure: Figure, axes: Axes, look: Theme) -> Legend:
    """The legend under the picture, where it hides nothing; its rows are filled from the left."""
    handles, labels = axes.get_legend_handles_labels()
    columns = next((n for n in (5, 4, 3, 2) if _legend_width(labels, n) < _ROOM), 1)
    columns = -(-len(labels) // max(1, -(-len(labels) // columns)))  # rows of about one length
    # matplotlib fills columns; readers read rows.
    order = [k for c in range(columns) for k in range(c, len(handles), columns)]
    made = figure.legend(
        [handles[k] for k in order],
        [labels[k] for k in order],
        loc="outside lower center",
        ncols=min(columns, len(handles)),
        prop={"family": FONT, "size": AXIS_SIZE - 1},
        facecolor=look.background,
        edgecolor=look.grid,
        labelcolor=look.ink,
        handlelength=3.2,
    )
    for text in made.get_texts():
        text.set_parse_math(False)
    return made


def _legend_width(labels: list[str], columns: int) -> float:
    """The width in points of a legend of so many columns."""
    size = AXIS_SIZE - 1
    widest = [
        max((text_width(label, size) for label in labels[c::columns]), default=0.0)
        for c in range(columns)
    ]
    return sum(width + 6 * size for width in widest)


def headline(figure: Figure, look: Theme, title: str) -> None:
    """A title over the whole slide."""
    text = figure.suptitle(title, fontsize=TITLE_SIZE, color=look.ink, family=FONT, weight="bold")
    text.set_parse_math(False)


def plain(name: str) -> str:
    """A name for a legend.

    matplotlib leaves a label that begins with an underscore out of the legend; the invisible word
    joiner before it keeps the name as the user wrote it.
    """
    return f"\u2060{name}" if name.startswith("_") else name
