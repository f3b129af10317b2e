"""A diagram as a matplotlib figure.

`slide_layout.py` says where everything goes. One data unit of the figure's axes is one point, so
fonts keep their size whatever the size of the graph; y goes downwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cgprimer.pictures.captions import MARGIN, NOTES_GAP
from cgprimer.pictures.diagram import Diagram, Edge, Node
from cgprimer.pictures.geometry import Box, Point, shortened
from cgprimer.pictures.legend import ROW_HEIGHT, draw_row, write
from cgprimer.pictures.lettering import block_size
from cgprimer.pictures.shapes import patches
from cgprimer.pictures.slide_layout import SlideLayout, slide_layout
from cgprimer.pictures.theme import (
    DETAIL_SIZE,
    EDGE_LABEL_SIZE,
    LABEL_SIZE,
    LINE_SPACING,
    TITLE_SIZE,
    Theme,
    theme,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HEAD_LENGTH, _HEAD_HALF_WIDTH = 12.0, 5.0
# Of the ground behind a row of a label, so that no half of a line shows beside it.
_OVERHANG, _WIDE_OVERHANG = 1.5, 4.0


def draw_diagram(diagram: Diagram, *, dark: bool = False) -> Figure:
    """Draw a diagram, inputs to the left and outputs to the right.

    Vertices carry their label (20 points) and detail lines (16 points, long expressions broken at
    operators), edges their labels (16 points). Notes (16 points) and a legend of the roles that
    occur stand at the bottom.
    The figure is as large as the graph needs, and where that is not far off, as wide as a 16:9
    slide. The same diagram gives the same figure at every run.

    >>> nodes = (Node("xa", "xa", "input"),)
    >>> draw_diagram(Diagram(nodes, ())).get_size_inches().tolist()
    [8.88..., 5.0]
    """
    from matplotlib.figure import Figure

    picture = slide_layout(diagram)
    look = theme(dark)
    around = picture.captions
    wide, tall = around.size
    # The figure's left and upper border in the layout's coordinates.
    centre = picture.layout.width / 2
    left, top = centre - wide / 2, -around.above - (tall - around.filled[1]) / 2
    bottom = top + tall

    figure = Figure(figsize=(wide / 72, tall / 72), facecolor=look.background)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(left, left + wide)
    axes.set_ylim(bottom, top)
    paint(axes, diagram, picture, dark=dark)
    for number, line in enumerate(around.title):
        y = top + MARGIN + (number + 0.5) * TITLE_SIZE * LINE_SPACING
        write(axes, (centre, y), line, TITLE_SIZE, look.ink, weight="bold")
    first_row = bottom - MARGIN - around.legend_height + ROW_HEIGHT / 2
    for number, row in enumerate(around.rows):
        draw_row(axes, row, (centre, first_row + number * ROW_HEIGHT), look)
    first_note = bottom - around.below + NOTES_GAP + DETAIL_SIZE * LINE_SPACING / 2
    for number, line in enumerate(around.notes):
        y = first_note + number * DETAIL_SIZE * LINE_SPACING
        write(axes, (centre, y), line, DETAIL_SIZE, look.ink)
    return figure


def paint(
    axes: Axes, diagram: Diagram, picture: SlideLayout, *, dark: bool = False, scale: float = 1.0
) -> None:
    """Draw a diagram into axes of somebody else's figure, without title and legend.

    The axes' limits are the layout's width and height (downwards), or more, and one of their data
    units is `scale` points: texts and lines get the size that fits.

    >>> from matplotlib.figure import Figure
    >>> diagram = Diagram((Node("xa", "xa", "input"),), ())
    >>> axes = Figure().add_axes((0, 0, 1, 1))
    >>> paint(axes, diagram, slide_layout(diagram), scale=0.9)
    >>> [(text.get_text(), text.get_fontsize()) for text in axes.texts]
    [('xa', 18.0)]
    """
    look, layout = theme(dark), picture.layout
    for edge, line in zip(diagram.edges, layout.lines, strict=True):
        _draw_line(axes, line, edge.emphasis, look)
    labels = zip(diagram.edges, picture.labels.boxes, picture.label_texts, strict=True)
    for edge, box, lines in labels:
        if box is not None:
            _draw_label(axes, edge, box, lines, look)
    for node in diagram.nodes:
        _draw_node(axes, node, layout.boxes[node.key], picture.details[node.key], look)
    for text in axes.texts:
        text.set_fontsize(scale * float(text.get_fontsize()))
    for patch in axes.patches:
        patch.set_linewidth(scale * patch.get_linewidth())


def _draw_label(axes: Axes, edge: Edge, box: Box, lines: tuple[str, ...], look: Theme) -> None:
    from matplotlib.patches import Rectangle

    row = box.height / len(lines) + 2 * (_WIDE_OVERHANG if edge.emphasis else _OVERHANG)
    for number, text in enumerate(lines):
        y = box.y + (number - (len(lines) - 1) / 2) * EDGE_LABEL_SIZE * LINE_SPACING
        width = block_size([text], EDGE_LABEL_SIZE)[0] + 8.0
        back = Rectangle((box.x - width / 2, y - row / 2), width, row)
        back.set(facecolor=look.background, linewidth=0, zorder=3)
        axes.add_patch(back)
        write(axes, (box.x, y), text, EDGE_LABEL_SIZE, look.ink)


def _draw_line(axes: Axes, line: tuple[Point, ...], emphasis: bool, look: Theme) -> None:
    """A line with its arrow head; a highlighted one is wide and double."""
    from matplotlib.patches import PathPatch, Polygon
    from matplotlib.path import Path as Outline

    large = 1.5 if emphasis else 1.0
    colour = look.path if emphasis else look.edge
    shaft = Outline(shortened(line, _HEAD_LENGTH * large - 1.0))
    strokes = [(colour, 6.0, 1.4), (look.background, 2.0, 1.5)] if emphasis else [(colour, 1.8, 1)]
    for ink, width, order in strokes:
        stroke = PathPatch(shaft, fill=False, edgecolor=ink, linewidth=width, zorder=order)
        stroke.set_capstyle("butt")
        stroke.set_joinstyle("round")
        axes.add_patch(stroke)
    (bx, by), (tx, ty) = shortened(line, _HEAD_LENGTH * large)[-1], line[-1]
    across = (-(ty - by), tx - bx)
    scale = large * _HEAD_HALF_WIDTH / max((across[0] ** 2 + across[1] ** 2) ** 0.5, 1e-9)
    side = (across[0] * scale, across[1] * scale)
    corners = [(tx, ty), (bx + side[0], by + side[1]), (bx - side[0], by - side[1])]
    axes.add_patch(Polygon(corners, closed=True, color=colour, linewidth=0, zorder=2))


def _draw_node(axes: Axes, node: Node, box: Box, detail: tuple[str, ...], look: Theme) -> None:
    for number, patch in enumerate(patches(look.roles[node.role], box, look)):
        patch.set_zorder(4)
        if node.emphasis:  # of a double outline the outer one gets wide, and two are still seen
            patch.set(linewidth=1.2 if number else 4.2, edgecolor=look.path)
        axes.add_patch(patch)
    height = LINE_SPACING * (LABEL_SIZE + len(detail) * DETAIL_SIZE)
    y = box.y - height / 2 + LABEL_SIZE * LINE_SPACING / 2
    write(axes, (box.x, y), node.label, LABEL_SIZE, look.ink, weight="bold")
    y += LINE_SPACING * (LABEL_SIZE + DETAIL_SIZE) / 2
    for line in detail:
        write(axes, (box.x, y), line, DETAIL_SIZE, look.ink)
        y += LINE_SPACING * DETAIL_SIZE
