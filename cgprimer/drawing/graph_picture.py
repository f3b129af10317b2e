"""A diagram as a matplotlib figure.

The text of every vertex is measured, the boxes that hold it are laid out, edges become rounded
lines, their labels look for free places, and only then is anything drawn. One data unit of the
figure's axes is one point, so fonts keep their size whatever the size of the graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cgprimer.drawing.diagram import Diagram, Node, Role
from cgprimer.drawing.labels import place_labels
from cgprimer.drawing.layout import Box, Layout, Point, Size, place
from cgprimer.drawing.lettering import block_size, text_width, wrap_expression, wrap_words
from cgprimer.drawing.routes import rounded, shortened
from cgprimer.drawing.saving import save_figure
from cgprimer.drawing.shapes import meet, patches, shape_size
from cgprimer.drawing.theme import (
    DETAIL_SIZE,
    EDGE_LABEL_SIZE,
    FONT,
    LABEL_SIZE,
    LEGEND_SIZE,
    LINE_SPACING,
    SLIDE_ASPECT,
    TITLE_SIZE,
    Theme,
    theme,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Picture", "arrange", "draw_diagram", "save_figure"]

_MARGIN = 24.0
_SMALLEST_WIDTH = 640.0
_CORNER = 36.0  # rounding of the bends of edges
_HEAD_LENGTH, _HEAD_HALF_WIDTH = 12.0, 5.0
_SWATCH: Size = (34.0, 22.0)
_LEGEND_GAP = 26.0
_STRETCHES = (1.0, 1.4, 2.0, 2.8, 4.0)


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything about a diagram's drawing but the ink; points, within the layout's frame.

    `frame` is the rectangle around all of it. `lines` has one polyline per edge, `labels` one box
    per edge (None without a label), `label_texts` and `details` the texts as broken into lines.
    `conflicts` counts edge labels for which no free place was found; it is 0 but for extremely
    dense graphs.
    """

    layout: Layout
    frame: Box
    lines: tuple[tuple[Point, ...], ...]
    labels: tuple[Box | None, ...]
    label_texts: tuple[tuple[str, ...], ...]
    details: Mapping[str, tuple[str, ...]]
    conflicts: int


def arrange(diagram: Diagram) -> Picture:
    """Decide where everything in the picture of `diagram` goes; nothing is drawn yet.

    >>> from cgprimer.drawing.diagram import Edge
    >>> nodes = (Node("xa", "xa", "input"), Node("xb", "xb", "output", ("ab*xa",)))
    >>> picture = arrange(Diagram(nodes, (Edge("xa", "xb", "ab"),)))
    >>> picture.layout.boxes["xa"].x < picture.labels[0].x < picture.layout.boxes["xb"].x
    True
    """
    styles = theme(dark=False).roles  # shapes, and so sizes, are the same in both themes
    shapes = {node.key: styles[node.role].shape for node in diagram.nodes}
    details = {node.key: _wrapped(node) for node in diagram.nodes}
    sizes = {
        node.key: shape_size(shapes[node.key], _text_size(node, details[node.key]))
        for node in diagram.nodes
    }
    texts = tuple(wrap_expression(e.label) if e.label.strip() else () for e in diagram.edges)
    label_sizes = [_label_size(lines) if lines else None for lines in texts]
    ellipses = {key for key, shape in shapes.items() if shape == "circle"}
    best: Picture | None = None
    for stretch in _STRETCHES:
        layout = place(diagram, sizes, label_sizes, ellipses=ellipses, stretch=stretch)
        lines = tuple(
            rounded(_ends_met(route, edge.tail, edge.head, layout, shapes), _CORNER)
            for edge, route in zip(diagram.edges, layout.routes, strict=True)
        )
        placed = place_labels(lines, label_sizes, layout.boxes.values())
        if best is None or placed.conflicts < best.conflicts:
            frame = _frame(layout, lines, placed.boxes)
            best = Picture(layout, frame, lines, placed.boxes, texts, details, placed.conflicts)
        if not best.conflicts:
            break
    assert best is not None  # _STRETCHES is not empty
    return best


def draw_diagram(diagram: Diagram, *, dark: bool = False) -> Figure:
    """Draw a diagram, inputs to the left and outputs to the right.

    Vertices carry their label (20 points) and detail lines (16 points, long expressions broken at
    operators), edges their labels (16 points); a legend at the bottom names the roles that occur.
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
    roles = [role for role in look.roles if role in present]
    inner_width = max(picture.frame.width, _SMALLEST_WIDTH - 2 * _MARGIN)
    inner_width = max(inner_width, *(_entry_width(look, role) for role in roles), 0.0)
    title = wrap_words(diagram.title, inner_width, TITLE_SIZE, bold=True)
    title_width, title_height = block_size(title, TITLE_SIZE, bold=True)
    inner_width = max(inner_width, title_width)
    rows = _legend_rows(look, roles, inner_width)
    legend_height = len(rows) * (_SWATCH[1] + 10.0)
    above = _MARGIN + (title_height + 18.0 if title else 0.0)
    below = _MARGIN + (legend_height + 22.0 if rows else 0.0)
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
    _draw_edges(axes, picture, look)
    for node in diagram.nodes:
        _draw_node(axes, node, picture.layout.boxes[node.key], picture.details[node.key], look)
    centre = left + padded[0] / 2
    for number, line in enumerate(title):
        y = bottom + padded[1] - _MARGIN - (number + 0.5) * TITLE_SIZE * LINE_SPACING
        _write(axes, (centre, y), line, TITLE_SIZE, look.ink, weight="bold")
    first_row = bottom + _MARGIN + legend_height - _SWATCH[1] / 2 - 5.0
    for number, row in enumerate(rows):
        _draw_legend(axes, row, (centre, first_row - number * (_SWATCH[1] + 10.0)), look)
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


def _wrapped(node: Node) -> tuple[str, ...]:
    return tuple(line for text in node.detail for line in wrap_expression(text))


def _text_size(node: Node, detail: tuple[str, ...]) -> Size:
    label = block_size([node.label], LABEL_SIZE, bold=True)
    below = block_size(detail, DETAIL_SIZE)
    return (max(label[0], below[0]), label[1] + below[1])


def _label_size(lines: tuple[str, ...]) -> Size:
    width, height = block_size(lines, EDGE_LABEL_SIZE)
    return (width + 8.0, height + 2.0)


def _ends_met(
    route: tuple[Point, ...], tail: str, head: str, layout: Layout, shapes: Mapping[str, str]
) -> tuple[Point, ...]:
    """Lead both ends of a route on from the vertices' boxes to their outlines."""
    first, last = route[0], route[-1]
    if shapes[tail] == "hexagon":
        first = meet("hexagon", layout.boxes[tail], first)
    if shapes[head] == "hexagon":
        last = meet("hexagon", layout.boxes[head], last)
    start = () if first == route[0] else (first,)
    end = () if last == route[-1] else (last,)
    return (*start, *route, *end)


def _slide_size(width: float, height: float) -> Size:
    """Pad to 16:9 where that adds at most half of a side; other pictures stay as they are.

    >>> _slide_size(1600, 700), _slide_size(5000, 500)
    ((1600, 900.0), (5000, 500))
    """
    wide, tall = max(width, height * SLIDE_ASPECT), max(height, width / SLIDE_ASPECT)
    if (wide <= 1.5 * width and tall <= 1.5 * height) or width <= _SMALLEST_WIDTH:
        return (wide, tall)
    return (width, height)


def _draw_edges(axes: Axes, picture: Picture, look: Theme) -> None:
    from matplotlib.patches import PathPatch, Polygon, Rectangle
    from matplotlib.path import Path as Outline

    for line in picture.lines:
        shaft = shortened(line, _HEAD_LENGTH - 1.0)
        axes.add_patch(
            PathPatch(
                Outline(shaft),
                fill=False,
                edgecolor=look.edge,
                linewidth=1.8,
                capstyle="butt",
                joinstyle="round",
                zorder=1,
            )
        )
        (bx, by), (tx, ty) = shortened(line, _HEAD_LENGTH)[-1], line[-1]
        across = (-(ty - by), tx - bx)
        scale = _HEAD_HALF_WIDTH / max((across[0] ** 2 + across[1] ** 2) ** 0.5, 1e-9)
        side = (across[0] * scale, across[1] * scale)
        corners = [(tx, ty), (bx + side[0], by + side[1]), (bx - side[0], by - side[1])]
        axes.add_patch(Polygon(corners, closed=True, color=look.edge, linewidth=0, zorder=2))
    for box, lines in zip(picture.labels, picture.label_texts, strict=True):
        if box is None:
            continue
        corner = (box.x - box.width / 2, box.y - box.height / 2)
        back = Rectangle(corner, box.width, box.height, facecolor=look.background, linewidth=0)
        back.set_zorder(3)
        axes.add_patch(back)
        for number, text in enumerate(lines):
            y = box.y + ((len(lines) - 1) / 2 - number) * EDGE_LABEL_SIZE * LINE_SPACING
            _write(axes, (box.x, y), text, EDGE_LABEL_SIZE, look.ink)


def _draw_node(axes: Axes, node: Node, box: Box, detail: tuple[str, ...], look: Theme) -> None:
    for patch in patches(look.roles[node.role], box, look):
        patch.set_zorder(4)
        axes.add_patch(patch)
    height = LINE_SPACING * (LABEL_SIZE + len(detail) * DETAIL_SIZE)
    y = box.y + height / 2 - LABEL_SIZE * LINE_SPACING / 2
    _write(axes, (box.x, y), node.label, LABEL_SIZE, look.ink, weight="bold")
    y -= LINE_SPACING * (LABEL_SIZE + DETAIL_SIZE) / 2
    for line in detail:
        _write(axes, (box.x, y), line, DETAIL_SIZE, look.ink)
        y -= LINE_SPACING * DETAIL_SIZE


def _entry_width(look: Theme, role: Role) -> float:
    return _SWATCH[0] + 8.0 + text_width(look.roles[role].word, LEGEND_SIZE)


def _legend_rows(look: Theme, roles: list[Role], width: float) -> list[list[Role]]:
    rows: list[list[Role]] = []
    used = width
    for role in roles:
        needed = _entry_width(look, role) + _LEGEND_GAP
        if not rows or used + needed - _LEGEND_GAP > width:
            rows.append([])
            used = 0.0
        rows[-1].append(role)
        used += needed
    return rows


def _draw_legend(axes: Axes, row: list[Role], centre: Point, look: Theme) -> None:
    total = sum(_entry_width(look, role) + _LEGEND_GAP for role in row) - _LEGEND_GAP
    x, y = centre[0] - total / 2, centre[1]
    for role in row:
        style = look.roles[role]
        width = _SWATCH[1] if style.shape == "circle" else _SWATCH[0]
        for patch in patches(
            style, Box(x + _SWATCH[0] / 2, y, width, _SWATCH[1]), look, small=True
        ):
            patch.set_zorder(4)
            axes.add_patch(patch)
        _write(
            axes,
            (x + _SWATCH[0] + 8.0, y),
            style.word,
            LEGEND_SIZE,
            look.ink,
            horizontalalignment="left",
        )
        x += _entry_width(look, role) + _LEGEND_GAP


def _write(axes: Axes, at: Point, text: str, size: float, colour: str, **look: Any) -> None:
    # parse_math=False and usetex=False: `$`, `_` and `^` are a user's characters, not markup.
    style = {"weight": "normal", "horizontalalignment": "center", **look}
    axes.text(
        at[0],
        at[1],
        text,
        fontsize=size,
        color=colour,
        family=FONT,
        zorder=5,
        verticalalignment="center_baseline",
        parse_math=False,
        usetex=False,
        **style,
    )
