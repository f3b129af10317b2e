"""A diagram as a matplotlib figure.

`slide_layout.py` computes all positions. One data unit of the axes is one point, so fonts have the
same size for graphs of any size; y increases downwards.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cgprimer.visualization.diagrams.diagram import Diagram, Edge, Node, Part
from cgprimer.visualization.diagrams.geometry import Box, Point, shorten_line
from cgprimer.visualization.diagrams.part_frames import PADDING, format_header_lines
from cgprimer.visualization.diagrams.slide_layout import (
    MARGIN,
    NOTES_GAP,
    SlideLayout,
    slide_layout,
)
from cgprimer.visualization.diagrams.slide_pen import Pen, check_matplotlib, create_canvas
from cgprimer.visualization.diagrams.text_layout import measure_text
from cgprimer.visualization.diagrams.theme import (
    DETAIL_SIZE,
    DROPPED,
    FRAME,
    LABEL_SIZE,
    LINE_SPACING,
    TITLE_SIZE,
    choose_faded_ink,
    fade_color,
)
from cgprimer.visualization.diagrams.vertex_shapes import build_shape_patches

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEAD_LENGTH, _HEAD_HALF_WIDTH = 12.0, 5.0
_STACK = 5.0  # points between the outlines of a stack
_OVERHANG, _WIDE_OVERHANG = 1.5, 4.0  # of the background of a label over thin and wide lines


def draw_diagram(diagram: Diagram, *, dark: bool = False) -> Figure:
    """Draw a diagram as a figure, with inputs on the left and outputs on the right.

    Vertices show their label (20 points) and detail lines (16 points, long expressions broken at
    operators), edges their labels (16 points). Notes (16 points) and a legend of the roles are at
    the bottom. The figure has the size of the graph, padded to the shape of a 16:9 slide if that
    adds little. Figures of the same diagram are identical.

    >>> nodes = (Node("xa", "xa", "input"),)
    >>> draw_diagram(Diagram(nodes, ())).get_size_inches().tolist()
    [8.88..., 5.0]
    """
    check_matplotlib()
    picture = slide_layout(diagram)
    around = picture.captions
    wide, tall = around.size
    figure, pen = create_canvas(wide, tall, dark=dark)
    # The figure's left and upper border in the layout's coordinates.
    center = picture.layout.width / 2
    left, top = center - wide / 2, -around.above - (tall - around.filled[1]) / 2
    bottom = top + tall
    pen.axes.set_xlim(left, left + wide)
    pen.axes.set_ylim(bottom, top)
    draw_vertices_and_edges(pen, diagram, picture)
    pen.lines(center, top + MARGIN, around.title, TITLE_SIZE, align="center", weight="bold")
    around.legend.draw(pen, center, bottom - MARGIN - around.legend.height)
    pen.lines(center, bottom - around.below + NOTES_GAP, around.notes, DETAIL_SIZE, align="center")
    return figure


def draw_vertices_and_edges(pen: Pen, diagram: Diagram, picture: SlideLayout) -> None:
    """Draw the frames, edges and vertices of a diagram, but not its title and its legend.

    >>> diagram = Diagram((Node("xa", "xa", "input"),), ())
    >>> _, pen = create_canvas()
    >>> draw_vertices_and_edges(pen.part(0, 0, 90, 90, scale=0.9), diagram, slide_layout(diagram))
    >>> [(text.get_text(), text.get_fontsize()) for text in pen.axes.figure.axes[1].texts]
    [('xa', 18.0)]
    """
    for part, around in zip(diagram.parts, picture.layout.frames, strict=True):
        _draw_frame(pen, part, around)
    for edge, line in zip(diagram.edges, picture.layout.lines, strict=True):
        points = line[::-1] if diagram.backward_arrows else line
        _draw_edge(pen, points, edge.emphasis, edge.dropped)
    labels = zip(diagram.edges, picture.labels.boxes, picture.label_texts, strict=True)
    for edge, box, lines in labels:
        if box is not None:
            _draw_edge_label(pen, edge, box, lines)
    for node in diagram.nodes:
        box, detail = picture.layout.boxes[node.key], picture.details[node.key]
        if node.count > 1:
            _draw_stack(pen, node, box, _STACK * (-1 if diagram.backward_arrows else 1))
        _draw_node(pen, node, box, detail)


def _draw_frame(pen: Pen, part: Part, box: Box) -> None:
    """Draw the frame around a part of a diagram, with the part's label at the top."""
    left, right = box.x - box.width / 2, box.x + box.width / 2
    top, bottom = box.y - box.height / 2, box.y + box.height / 2
    corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
    pen.line(corners, pen.look.edge, 2.2, zorder=0.5, linestyle=FRAME)
    lines = format_header_lines(part)
    y = pen.lines(box.x, top + PADDING / 2, lines[:1], DETAIL_SIZE, align="center", weight="bold")
    pen.lines(box.x, y, lines[1:], DETAIL_SIZE, align="center")


def _draw_edge_label(pen: Pen, edge: Edge, box: Box, lines: tuple[str, ...]) -> None:
    """Draw the label of an edge on a rectangle in the background color."""
    high = box.height / len(lines) / 2 + (_WIDE_OVERHANG if edge.emphasis else _OVERHANG)
    for number, text in enumerate(lines):
        y = box.y + (number - (len(lines) - 1) / 2) * DETAIL_SIZE * LINE_SPACING
        left, right = (box.x + side * (measure_text(text, DETAIL_SIZE) / 2 + 4) for side in (-1, 1))
        corners = [(left, y - high), (right, y - high), (right, y + high), (left, y + high)]
        pen.polygon(corners, pen.look.background, zorder=3)
        ink = choose_faded_ink(pen.look) if edge.dropped else pen.look.ink
        pen.write(box.x, y, text, DETAIL_SIZE, align="center", color=ink)


def _draw_edge(pen: Pen, line: tuple[Point, ...], emphasis: bool, dropped: bool) -> None:
    """Draw an edge and its arrowhead: a double line on the highlighted path, dashed if dropped."""
    large = 1.5 if emphasis else 1.0
    color = pen.look.path if emphasis else pen.look.edge
    color = fade_color(color, pen.look) if dropped else color
    dashes = {"linestyle": DROPPED} if dropped else {}
    shaft = shorten_line(line, _HEAD_LENGTH * large - 1.0)
    inside = (pen.look.background, 2.0, 1.5)
    for ink, width, order in [(color, 6.0, 1.4), inside] if emphasis else [(color, 1.8, 1.0)]:
        pen.line(
            shaft,
            ink,
            width,
            zorder=order,
            solid_capstyle="butt",
            solid_joinstyle="round",
            **dashes,
        )
    (bx, by), (tx, ty) = shorten_line(line, _HEAD_LENGTH * large)[-1], line[-1]
    half = large * _HEAD_HALF_WIDTH / max(math.dist((bx, by), (tx, ty)), 1e-9)
    side = (half * (by - ty), half * (tx - bx))
    corners = [(tx, ty), (bx + side[0], by + side[1]), (bx - side[0], by - side[1])]
    pen.polygon(corners, color, zorder=2)


def _draw_stack(pen: Pen, node: Node, box: Box, step: float) -> None:
    """Draw two shifted outlines behind a vertex that represents several vertices."""
    for behind in (2, 1):
        moved = box.translate(step * behind, -_STACK * behind)
        for patch in build_shape_patches(pen.look.roles[node.role], moved):
            patch.set(zorder=3.9 - behind / 10, linewidth=pen.scale * patch.get_linewidth())
            pen.axes.add_patch(patch)


def _draw_node(pen: Pen, node: Node, box: Box, detail: tuple[str, ...]) -> None:
    """Draw the outline of a vertex, with its label and its detail lines."""
    for number, patch in enumerate(build_shape_patches(pen.look.roles[node.role], box)):
        if node.emphasis:  # only the outer line of a double outline becomes wide
            patch.set(linewidth=1.2 if number else 4.2, edgecolor=pen.look.path)
        if node.dropped:
            outline = fade_color(pen.look.roles[node.role].outline, pen.look)
            patch.set(edgecolor=outline, facecolor=pen.look.background, linestyle=DROPPED)
        patch.set(zorder=4, linewidth=pen.scale * patch.get_linewidth())
        pen.axes.add_patch(patch)
    ink = choose_faded_ink(pen.look) if node.dropped else pen.look.ink
    style: dict[str, Any] = {"align": "center", "color": ink}
    y = box.y - LINE_SPACING * (LABEL_SIZE + len(detail) * DETAIL_SIZE) / 2
    y = pen.lines(box.x, y, [node.label], LABEL_SIZE, weight="bold", **style)
    pen.lines(box.x, y, detail, DETAIL_SIZE, **style)
