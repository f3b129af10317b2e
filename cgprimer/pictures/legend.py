"""The legend under a picture, and text as every picture writes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from cgprimer.pictures.diagram import Role
from cgprimer.pictures.fonts import families
from cgprimer.pictures.geometry import Box, Point, Size
from cgprimer.pictures.lettering import text_width
from cgprimer.pictures.shapes import patches
from cgprimer.pictures.theme import LEGEND_SIZE, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Entry: TypeAlias = Role | Literal["path", "step"]

SWATCH: Size = (34.0, 22.0)
ROW_HEIGHT = SWATCH[1] + 10.0
_GAP = 26.0
_PATH_WORD, _STEP_WORD = "highlighted path", "this step"


def entry_width(look: Theme, entry: Entry) -> float:
    """Return the width of an entry of the legend, its swatch included."""
    return SWATCH[0] + 8.0 + text_width(_word(look, entry), LEGEND_SIZE)


def legend_rows(look: Theme, entries: Sequence[Entry], width: float) -> list[list[Entry]]:
    """Break the entries into rows that are at most `width` wide."""
    rows: list[list[Entry]] = []
    used = width
    for entry in entries:
        needed = entry_width(look, entry) + _GAP
        if not rows or used + needed - _GAP > width:
            rows.append([])
            used = 0.0
        rows[-1].append(entry)
        used += needed
    return rows


def draw_row(
    axes: Axes, row: Sequence[Entry], centre: Point, look: Theme, scale: float = 1.0
) -> None:
    """Draw one row of the legend around its middle, `scale` times as large as usual."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Polygon, Rectangle

    total = sum(entry_width(look, entry) + _GAP for entry in row) - _GAP
    x, y = centre[0] - scale * total / 2, centre[1]
    wide, high = scale * SWATCH[0], scale * SWATCH[1]
    for entry in row:
        if entry == "path":
            for height, ink in ((6.0, look.path), (2.0, look.background)):
                band = Rectangle((x, y - height / 2), wide, height, color=ink, linewidth=0)
                band.set_zorder(4)
                axes.add_patch(band)
        elif entry == "step":  # the mark and the dashes of what is lit
            flag = Polygon([(x + 11, y), (x + 1, y - 7), (x + 1, y + 7)], color=look.curves[1])
            axes.add_patch(flag)
            dash = Line2D((x + 13, x + wide), (y, y), color=look.curves[1], linewidth=3.6)
            dash.set_linestyle((0, (2.2, 1.0)))
            axes.add_artist(dash)
        else:
            style = look.roles[entry]
            box = Box(x + wide / 2, y, high if style.shape == "circle" else wide, high)
            for patch in patches(style, box, look, small=True):
                patch.set_zorder(4)
                axes.add_patch(patch)
        at, size = (x + wide + 8.0 * scale, y), scale * LEGEND_SIZE
        write(axes, at, _word(look, entry), size, look.ink, horizontalalignment="left")
        x += scale * (entry_width(look, entry) + _GAP)


def _word(look: Theme, entry: Entry) -> str:
    if entry == "path":
        return _PATH_WORD
    return _STEP_WORD if entry == "step" else look.roles[entry].word


def write(axes: Axes, at: Point, text: str, size: float, colour: str, **look: Any) -> None:
    """Write one line of text, vertically centred at a point."""
    # parse_math=False and usetex=False: `$`, `_` and `^` are a user's characters, not markup.
    usual = {"weight": "normal", "horizontalalignment": "center", "zorder": 5}
    style = {**usual, "family": list(families()), **look}
    axes.text(
        at[0],
        at[1],
        text,
        fontsize=size,
        color=colour,
        verticalalignment="center_baseline",
        parse_math=False,
        usetex=False,
        **style,
    )
