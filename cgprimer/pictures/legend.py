"""The legend under a picture: what each shape and colour stands for. Lengths are in points."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from cgprimer.pictures.diagram import Role
from cgprimer.pictures.geometry import Box, Size
from cgprimer.pictures.lettering import text_width
from cgprimer.pictures.pen import Pen
from cgprimer.pictures.shapes import patches
from cgprimer.pictures.theme import LEGEND_SIZE, theme

Entry: TypeAlias = Role | Literal["path", "step"]

_SWATCH: Size = (34.0, 22.0)
_ROW = _SWATCH[1] + 10.0
_GAP, _NEAR = 26.0, 8.0  # between entries, and between a swatch and its word
# Both themes have the same words.
_WORDS: dict[Entry, str] = {"path": "highlighted path", "step": "this step"}
_WORDS |= {role: style.word for role, style in theme(dark=False).roles.items()}


class Legend:
    """Rows of a legend, measured when made, and drawn when their place is known.

    >>> Legend(["input", "output"], 400).height, Legend(["input", "output"], 120).height
    (32.0, 64.0)
    """

    def __init__(
        self, entries: Iterable[Entry], room: float, *, row: float = _ROW, scale: float = 1.0
    ) -> None:
        """Break the entries into rows of at most so many points, drawn `scale` times as large."""
        self.row, self.scale = row, scale
        self.rows: list[list[Entry]] = []
        self.width = used = 0.0
        for entry in entries:
            needed = _width(entry)
            if not self.rows or used + _GAP + needed > room / scale:
                self.rows.append([])
                used = -_GAP
            self.rows[-1].append(entry)
            used += _GAP + needed
            self.width = max(self.width, scale * used)

    @property
    def height(self) -> float:
        """Of all rows."""
        return len(self.rows) * self.row

    def draw(self, pen: Pen, middle: float, top: float) -> None:
        """Draw the rows around a middle, the first one's upper end at `top`."""
        for number, row in enumerate(self.rows):
            wide = self.scale * (sum(map(_width, row)) + _GAP * (len(row) - 1))
            x, y = middle - wide / 2, top + (number + 0.5) * self.row
            for entry in row:
                self._draw(pen, entry, x, y)
                x += self.scale * (_width(entry) + _GAP)

    def _draw(self, pen: Pen, entry: Entry, x: float, y: float) -> None:
        look, wide, high = pen.look, self.scale * _SWATCH[0], self.scale * _SWATCH[1]
        if entry == "path":
            for width, ink in ((6.0, look.path), (2.0, look.background)):
                pen.line([(x, y), (x + wide, y)], ink, width, zorder=4, solid_capstyle="butt")
        elif entry == "step":  # the mark and the dashes of what is lit
            pen.flag(x + 11, y)
            pen.line([(x + 13, y), (x + wide, y)], pen.lit, 3.6, linestyle=(0, (2.2, 1.0)))
        else:
            style = look.roles[entry]
            box = Box(x + wide / 2, y, high if style.shape == "circle" else wide, high)
            for patch in patches(style, box, small=True):
                patch.set_zorder(4)
                pen.axes.add_patch(patch)
        pen.write(x + wide + _NEAR * self.scale, y, _WORDS[entry], self.scale * LEGEND_SIZE)


def _width(entry: Entry) -> float:
    return _SWATCH[0] + _NEAR + text_width(_WORDS[entry], LEGEND_SIZE)
