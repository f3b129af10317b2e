"""A diagram as a matplotlib figure.

The text of every vertex is measured, the boxes that hold it are laid out, edges become rounded
lines, their labels look for free places, and only then is anything drawn. One data unit of the
figure's axes is one point, so fonts keep their size whatever the size of the graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cgprimer.drawing.diagram import Diagram, Edge, Node
from cgprimer.drawing.labels import place_labels
from cgprimer.drawing.layout import Box, Layout, Point, Size, place
from cgprimer.drawing.legend import (
    ROW_HEIGHT,
    SWATCH,
    Entry,
    draw_row,
    entry_width,
    legend_rows,
    write,
)
from cgprimer.drawing.lettering import block_size, wrap_expression, wrap_words
from cgprimer.drawing.routes import rounded, shortened
from cgprimer.drawing.saving import save_figure
from cgprimer.drawing.shapes import meet, patches, shape_size
from cgprimer.drawing.theme import (
    DETAIL_SIZE,
    EDGE_LABEL_SIZE,
    LABEL_SIZE,
    LINE_SPACING,
    SLIDE_ASPECT,
    TITLE_SIZE,
    Shape,
    Theme,
    theme,
)
from cgprimer.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Picture", "arrange", "draw_diagram", "save_figure"]

_MOST = 600  # vertices; to find the layers of more takes minutes
_MARGIN = 24.0
_SMALLEST_WIDTH = 640.0
_NOTE_WIDTH = 900.0  # notes are broken into lines of about a slide's width
_EDGE_LINE = 28  # characters of a line on an edge: `upstream x local = downstream` fits
_CORNER = 36.0  # rounding of the bends of edges
_HEAD_LENGTH, _HEAD_HALF_WIDTH = 12.0, 5.0
_ROOM = ((1.0, 1.0), (1.0, 2.4), (1.4, 1.4), (2.0, 1.0), (2.8, 1.0), (4.0, 1.0))
_FEW_EDGES = 40  # up to which a second layout is made so that no label lies over another line


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything about a diagram's drawing but the ink; points, within the layout's frame.

    `frame` is the rectangle around all of it. `routes` has one polyline per edge, `lines` the same
    with rounded corners, `labels` one box per edge (None without a label), `label_texts` and
    `details` the texts as broken into lines.
    `conflicts` counts edge labels for which no free place was found; it is 0 but for extremely
    dense graphs.
    """

    layout: Layout
    frame: Box
    routes: tuple[tuple[Point, ...], ...]
    lines: tuple[tuple[Point, ...], ...]
    labels: tuple[Box | None, ...]
    label_texts: tuple[tuple[str, ...], ...]
    details: Mapping[str, tuple[str, ...]]
    conflicts: int


def arrange(diagram: Diagram) -> Picture:
    """Decide where everything in the picture of `diagram` goes; nothing is drawn yet.

    Raises `cgprimer.errors.UsageError` where there are too many vertices.

    >>> from cgprimer.drawing.diagram import Edge
    >>> nodes = (Node("xa", "xa", "input"), Node("xb", "xb", "output", ("ab*xa",)))
    >>> picture = arrange(Diagram(nodes, (Edge("xa", "xb", "ab"),)))
    >>> picture.layout.boxes["xa"].x < picture.labels[0].x < picture.layout.boxes["xb"].x
    True
    """
    if len(diagram.nodes) > _MOST:
        raise UsageError(
            f"{len(diagram.nodes):,} vertices are too many for one picture (at most {_MOST})",
            hint="draw the summary (without --all), or write .dot or .mmd for another program",
        )
    styles = theme(dark=False).roles  # shapes, and so sizes, are the same in both themes
    shapes = {node.key: styles[node.role].shape for node in diagram.nodes}
    details = {node.key: _wrapped(node) for node in diagram.nodes}
    sizes = {
        node.key: shape_size(shapes[node.key], _text_size(node, details[node.key]))
        for node in diagram.nodes
    }
    texts = tuple(_label_lines(edge.label) for edge in diagram.edges)
    label_sizes = [_label_size(lines) if lines else None for lines in texts]
    ellipses = {
        key for key, shape in shapes.items() if shape == "circle" and len({*sizes[key]}) == 1
    }
    best: Picture | None = None
    least = (len(diagram.edges) + 1, 0)
    few = len(diagram.edges) <= _FEW_EDGES
    for stretch, spread in _ROOM:
        if best and not best.conflicts and (stretch > 1.0 or not few):
            break
        layout = place(
            diagram, sizes, label_sizes, ellipses=ellipses, stretch=stretch, spread=spread
        )
        routes = tuple(
            _ends_met(route, edge, layout, shapes)
            for edge, route in zip(diagram.edges, layout.routes, strict=True)
        )
        lines = tuple(rounded(route, _CORNER) for route in routes)
        placed = place_labels(lines, label_sizes, layout.boxes.values())
        if (len(placed.conflicts), placed.covered) < least:
            least = (len(placed.conflicts), placed.covered)
            frame = _frame(layout, lines, placed.boxes)
            best = Picture(
                layout, frame, routes, lines, placed.boxes, texts, details, len(placed.conflicts)
            )
        if least == (0, 0):
            break
    assert best is not None  # _ROOM is not empty
    return best


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

    picture = arrange(diagram)
    look = theme(dark)
    present = {node.role for node in diagram.nodes}
    entries: list[Entry] = [role for role in look.roles if role in present]
    if any(edge.emphasis for edge in diagram.edges):
        entries.append("path")
    inner_width = max(picture.frame.width, _SMALLEST_WIDTH - 2 * _MARGIN)
    inner_width = max(inner_width, *(entry_width(look, entry) for entry in entries), 0.0)
    title = wrap_words(diagram.title, inner_width, TITLE_SIZE, bold=True)
    title_width, title_height = block_size(title, TITLE_SIZE, bold=True)
    notes = _notes(diagram, max(inner_width, _NOTE_WIDTH))
    notes_width, notes_height = block_size(notes, DETAIL_SIZE)
    inner_width = max(inner_width, title_width, notes_width)
    rows = legend_rows(look, entries, inner_width)
    legend_height = len(rows) * ROW_HEIGHT
    above = _MARGIN + (title_height + 18.0 if title else 0.0)
    below = _MARGIN + (legend_height + 22.0 if rows else 0.0)
    below += notes_height + 22.0 if notes else 0.0
    width = inner_width + 2 * _MARGIN
    height = picture.frame.height + above + below
    padded = _slide_size(width, height)
    # The figure's left and bottom border in the layout's coordinates.
    left = picture.frame.x - padded[0] / 2
    bottom = picture.frame.y - picture.frame.height / 2 - below - (padded[1] - height) / 2

    figure = Figure(figsize=(padded[0] / 72, padded[1] / 72), facecolor=look.background)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(left, left + padded[0])
    axes.set_ylim(bottom, bottom + padded[1])
    _draw_edges(axes, diagram, picture, look)
    for node in diagram.nodes:
        _draw_node(axes, node, picture.layout.boxes[node.key], picture.details[node.key], look)
    centre = left + padded[0] / 2
    for number, line in enumerate(title):
        y = bottom + padded[1] - _MARGIN - (number + 0.5) * TITLE_SIZE * LINE_SPACING
        write(axes, (centre, y), line, TITLE_SIZE, look.ink, weight="bold")
    first_row = bottom + _MARGIN + legend_height - SWATCH[1] / 2 - 5.0
    for number, row in enumerate(rows):
        draw_row(axes, row, (centre, first_row - number * ROW_HEIGHT), look)
    first_note = bottom + below - 22.0 - DETAIL_SIZE * LINE_SPACING / 2
    for number, line in enumerate(notes):
        y = first_note - number * DETAIL_SIZE * LINE_SPACING
        write(axes, (centre, y), line, DETAIL_SIZE, look.ink)
    return figure


def _frame(
    layout: Layout, lines: tuple[tuple[Point, ...], ...], labels: tuple[Box | None, ...]
) -> Box:
    """Return the rectangle around vertices, edges and their labels."""
    if not layout.boxes:
        return Box(0.0, 0.0, 0.0, 0.0)
    boxes = [*layout.boxes.values(), *(box for box in labels if box is not None)]
    xs = [box.x + side * box.width / 2 for box in boxes for side in (-1, 1)]
    ys = [box.y + side * box.height / 2 for box in boxes for side in (-1, 1)]
    xs += [x for line in lines for x, _ in line]
    ys += [y for line in lines for _, y in line]
    middle = ((min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2)
    return Box(*middle, max(xs) - min(xs), max(ys) - min(ys))


def _notes(diagram: Diagram, width: float) -> tuple[str, ...]:
    return tuple(line for note in diagram.notes for line in wrap_words(note, width, DETAIL_SIZE))


def _wrapped(node: Node) -> tuple[str, ...]:
    return tuple(line for text in node.detail for line in wrap_expression(text))


def _text_size(node: Node, detail: tuple[str, ...]) -> Size:
    label = block_size([node.label], LABEL_SIZE, bold=True)
    below = block_size(detail, DETAIL_SIZE)
    return (max(label[0], below[0]), label[1] + below[1])


def _label_size(lines: tuple[str, ...]) -> Size:
    width, height = block_size(lines, EDGE_LABEL_SIZE)
    return (width + 8.0, height + 2.0)


def _label_lines(label: str) -> tuple[str, ...]:
    parts = (part for part in label.split("\n") if part.strip())
    return tuple(line for part in parts for line in wrap_expression(part, _EDGE_LINE))


def _ends_met(
    route: tuple[Point, ...], edge: Edge, layout: Layout, shapes: Mapping[str, Shape]
) -> tuple[Point, ...]:
    """Lead both ends of a route on to the vertices' outlines."""
    first = meet(shapes[edge.tail], layout.boxes[edge.tail], route[1], route[0])
    last = meet(shapes[edge.head], layout.boxes[edge.head], route[-2], route[-1])
    return (first, *route[1:-1], last)


def _slide_size(width: float, height: float) -> Size:
    """Pad to 16:9 where that adds at most half of a side; other pictures stay as they are.

    >>> _slide_size(1600, 700), _slide_size(5000, 500)
    ((1600, 900.0), (5000, 500))
    """
    wide, tall = max(width, height * SLIDE_ASPECT), max(height, width / SLIDE_ASPECT)
    if (wide <= 1.5 * width and tall <= 1.5 * height) or width <= _SMALLEST_WIDTH:
        return (wide, tall)
    return (width, height)


def _draw_edges(axes: Axes, diagram: Diagram, picture: Picture, look: Theme) -> None:
    from matplotlib.patches import Rectangle

    for edge, line in zip(diagram.edges, picture.lines, strict=True):
        _draw_line(axes, line, edge.emphasis, look)
    for box, lines in zip(picture.labels, picture.label_texts, strict=True):
        if box is None:
            continue
        height = box.height / len(lines)
        for number, text in enumerate(lines):
            y = box.y + ((len(lines) - 1) / 2 - number) * EDGE_LABEL_SIZE * LINE_SPACING
            width = block_size([text], EDGE_LABEL_SIZE)[0] + 8.0
            back = Rectangle((box.x - width / 2, y - height / 2), width, height)
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
    y = box.y + height / 2 - LABEL_SIZE * LINE_SPACING / 2
    write(axes, (box.x, y), node.label, LABEL_SIZE, look.ink, weight="bold")
    y -= LINE_SPACING * (LABEL_SIZE + DETAIL_SIZE) / 2
    for line in detail:
        write(axes, (box.x, y), line, DETAIL_SIZE, look.ink)
        y -= LINE_SPACING * DETAIL_SIZE
