"""Sizes of a slide in points, and the pen that writes and draws on it in one look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cgprimer.core.number_format import number
from cgprimer.pictures.layout import Point
from cgprimer.pictures.lettering import text_width, wrap_words
from cgprimer.pictures.theme import FONT, READABLE_SIZE, SLIDE_HEIGHT, SLIDE_WIDTH, Theme, mix

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = SLIDE_WIDTH, SLIDE_HEIGHT
EDGE = 16.0
TEXT, LARGE = READABLE_SIZE, 16.0
ROW = 20.0


class Pen:
    """Writes and draws in one look on one set of axes, whose y goes downwards."""

    def __init__(self, axes: Axes, look: Theme) -> None:
        self.axes, self.look = axes, look
        self.lit = look.curves[1]
        self.faint = mix(look.ink, look.background, 0.72)

    def write(self, x: float, y: float, text: str, size: float = TEXT, **more: Any) -> None:
        """One line of text, vertically centred; nothing in it is markup."""
        style = {"color": self.look.ink, "family": FONT, "horizontalalignment": "left", **more}
        self.axes.text(
            x, y, text, fontsize=size, verticalalignment="center", parse_math=False,
            clip_on=True, **style
        )  # fmt: skip

    def polygon(self, points: list[Point], colour: str, **more: Any) -> None:
        """A filled polygon."""
        from matplotlib.patches import Polygon

        style = {"facecolor": colour, "linewidth": 0.0, **more}
        self.axes.add_patch(Polygon(points, closed=True, **style))

    def line(self, points: list[Point], colour: str, width: float, **more: Any) -> None:
        """A line through points."""
        from matplotlib.lines import Line2D

        x, y = zip(*points, strict=True)
        # Not plot: it looks for units and limits, which takes longer than to draw the line.
        self.axes.add_artist(Line2D(x, y, color=colour, linewidth=width, **more))

    def pieces(self, pieces: list[list[Point]], colours: list[str], width: float) -> None:
        """Many short lines, each in a colour of its own, drawn at once."""
        from matplotlib.collections import LineCollection

        made = LineCollection(pieces, colors=colours, linewidths=width, capstyle="butt", zorder=2)
        self.axes.add_artist(made)

    def band(self, left: float, right: float, y: float, *, first: bool = True) -> None:
        """Behind a line that is lit; at its first the triangle says so without colour."""
        a, b = y - ROW / 2, y + ROW / 2
        glow = mix(self.lit, self.look.background, 0.2)
        self.polygon([(left, a), (right + 4, a), (right + 4, b), (left, b)], glow, zorder=0)
        if first:
            self.polygon([(left + 2, y - 6), (left + 2, y + 6), (left + 11, y)], self.lit)

    def unless_known(self, value: float | None) -> dict[str, Any]:
        """How a text looks that stands where a number is missing; nothing for a number."""
        missing = {"color": self.faint, "style": "italic", "weight": "normal"}
        return missing if value is None else {}


def known(value: float | None, digits: int = 8) -> str:
    """A number, or that there is none yet.

    >>> known(0.25), known(None)
    ('0.25', 'not computed')
    """
    return "not computed" if value is None else number(value, digits)


def lines_of(text: str, width: float, size: float = TEXT, *, bold: bool = False) -> list[str]:
    """Break a text into lines of at most so many points: at spaces, and inside what is too long.

    A word that is too long is broken after a sign of the language, where it has one.

    >>> lines_of("path 1: xa → xw", 60.0), lines_of("temperature*pressure", 110.0)
    (['path 1:', 'xa → xw'], ['temperature*', 'pressure'])
    """
    found = []
    for line in wrap_words(text, width, size, bold=bold):
        rest = line
        while text_width(rest, size, bold) > width and len(rest) > 1:
            fits = len(rest) - 1
            while fits > 1 and text_width(rest[:fits], size, bold) > width:
                fits -= 1
            signs = [k for k in range(1, fits + 1) if rest[k - 1] in "*/^(,+-_"]
            cut = signs[-1] if signs else fits
            found.append(rest[:cut])
            rest = rest[cut:]
        found.append(rest)
    return found
