"""Where everything of a graph's picture goes, before anything is drawn.

The text of every vertex is measured, the boxes that hold it are laid out, edges become rounded
lines, and their labels look for free places. That is done with more and more economical settings
(narrower gaps, then shorter lines of text) until the picture can be read on a slide.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from cgprimer.errors import UsageError
from cgprimer.pictures.diagram import Diagram, Edge, Node
from cgprimer.pictures.labels import place_labels
from cgprimer.pictures.layout import COMFORTABLE, Box, Gaps, Layout, Point, Size, place
from cgprimer.pictures.lettering import block_size, fewer_digits, wrap_expression
from cgprimer.pictures.margins import Margins, margins
from cgprimer.pictures.routes import rounded
from cgprimer.pictures.shapes import meet, shape_size
from cgprimer.pictures.tangles import tangled
from cgprimer.pictures.theme import (
    DETAIL_SIZE,
    EDGE_LABEL_SIZE,
    LABEL_SIZE,
    READABLE_SIZE,
    SLIDE_WIDTH,
    SMALLEST_SIZE,
    Shape,
    theme,
)

_MOST = 600  # vertices; to find the layers of more takes minutes
_CORNER = 36.0  # rounding of the bends of edges
_SMALL, _LARGE = 100, 250  # vertices and edges up to which every setting is tried, and beyond none
_HOPELESS = 6.0  # points: no setting makes text of less than half the size readable
# What a fault of a picture weighs, in points of its smallest text: labels that touch something,
# labels over the line of another edge, every point over which edges lie on top of each other, and
# every setting further down the list.
_TOUCHING, _COVERING, _TANGLED, _LATER = 30.0, 1.5, 0.02, 0.01
_WORTHWHILE = 4.0  # points by which gaps must grow to lay a picture out once more


@dataclass(frozen=True, slots=True)
class Setting:
    """How texts are broken and how much room is left between things.

    Attributes:
        wrap: characters of a line in a vertex.
        edge_wrap: characters of a line on an edge.
        terse: results with five digits.
        tight: less room between a vertex's text and its outline.
        gaps: of the layout.
    """

    wrap: int = 18
    edge_wrap: int = 14
    terse: bool = False
    tight: bool = False
    gaps: Gaps = COMFORTABLE


_COMFORTABLE = Setting()
_NARROW = (Gaps(16, 6), Gaps(16, 6, 10), Gaps(16, 6, square=True))
_TALL = (  # lines of labels need height
    Gaps(16, 12, 22, square=True),
    Gaps(16, 6, 22, spread=3.0),
    Gaps(16, 30),
    Gaps(16, 30, 10),
    Gaps(16, 60, 10),
    Gaps(16, 12, spread=5.0),
    Gaps(16, 12, 10, spread=5.0),
)
_DENSE = tuple(
    Setting(wrap=10, edge_wrap=7, terse=True, tight=True, gaps=gaps)
    for gaps in (*_NARROW, *_TALL, Gaps(10, 2, 6))
)
_SETTINGS = (
    Setting(gaps=Gaps(spread=2.4)),
    Setting(gaps=Gaps(label=10)),
    *(Setting(gaps=gaps) for gaps in _NARROW),
    Setting(wrap=24, terse=True, tight=True, gaps=Gaps(20, 4)),
    Setting(wrap=18, terse=True, tight=True, gaps=Gaps(16, 2, 10)),
    *(Setting(wrap=14, terse=True, gaps=gaps) for gaps in (*_NARROW, *_TALL)),
    *_DENSE,
)
# For labels that found no free place.
_ROOMY = (
    *(Setting(gaps=COMFORTABLE.times(stretch)) for stretch in (1.4, 2.0)),
    *(replace(_DENSE[0], gaps=COMFORTABLE.times(stretch)) for stretch in (2.0, 3.0, 4.0)),
    *(Setting(gaps=COMFORTABLE.times(stretch)) for stretch in (2.8, 4.0)),
)


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything about a diagram's drawing but the ink; points, within the layout's frame.

    `frame` is the rectangle around the graph, `margins` what stands around that. `routes` has one
    polyline per edge, `lines` the same with rounded corners, `labels` one box per edge (None
    without a label), `label_texts` and `details` the texts as broken into lines.
    `conflicts` counts edge labels for which no free place was found; it is 0 but for extremely
    dense graphs. `covered` counts labels that lie over the line of another edge, `tangled` is the
    length over which edges lie on top of each other.
    """

    layout: Layout
    frame: Box
    margins: Margins
    routes: tuple[tuple[Point, ...], ...]
    lines: tuple[tuple[Point, ...], ...]
    labels: tuple[Box | None, ...]
    label_texts: tuple[tuple[str, ...], ...]
    details: Mapping[str, tuple[str, ...]]
    conflicts: int
    covered: int
    tangled: float

    @property
    def faults(self) -> float:
        """What keeps the picture from being read on a slide; 0 for nothing."""
        # Text of half the size is more than twice as hard to read.
        unreadable = READABLE_SIZE * max(0.0, READABLE_SIZE / self.margins.smallest_text - 1.0)
        labels = _TOUCHING * self.conflicts + _COVERING * self.covered
        return unreadable + labels + _TANGLED * self.tangled


def arrange(diagram: Diagram) -> Picture:
    """Decide where everything in the picture of `diagram` goes; nothing is drawn yet.

    The first setting with which the picture has no fault is taken, or else that with the least.

    Raises `cgprimer.errors.UsageError` where there are too many vertices.

    >>> from cgprimer.pictures.diagram import Edge
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
    size = len(diagram.nodes) + len(diagram.edges)
    chosen = _COMFORTABLE
    best = _arranged(diagram, chosen)
    assert best is not None  # nothing is better than nothing
    least = best.faults
    hopeful = size <= _SMALL and best.margins.smallest_text > _HOPELESS
    settings = _SETTINGS if hopeful else _DENSE[:3] if size <= _LARGE else ()
    for number, setting in enumerate((*settings, *_ROOMY), 1):
        if not best.faults or (setting in _ROOMY and not best.conflicts):
            break
        found = _arranged(diagram, setting, least - _LATER * number)
        if found is not None:
            chosen, best, least = setting, found, found.faults + _LATER * number
    return _relaxed(diagram, chosen, best) if hopeful else best


def _relaxed(diagram: Diagram, setting: Setting, picture: Picture) -> Picture:
    """The same setting with wider gaps between layers, where a slide has the room for them."""
    widest = SLIDE_WIDTH * SMALLEST_SIZE / READABLE_SIZE
    gaps = max(1, len({box.x for box in picture.layout.boxes.values()}) - 1)
    wider = setting.gaps.layer + 0.9 * (widest - picture.margins.filled[0]) / gaps
    wider = min(wider, COMFORTABLE.layer)
    if wider < setting.gaps.layer + _WORTHWHILE:
        return picture
    wide = replace(setting, gaps=replace(setting.gaps, layer=wider))
    return _arranged(diagram, wide, picture.faults + _LATER) or picture


def _arranged(diagram: Diagram, setting: Setting, most: float = math.inf) -> Picture | None:
    """The picture with a setting; None where its faults are not below `most`."""
    styles = theme(dark=False).roles  # shapes, and so sizes, are the same in both themes
    shapes = {node.key: styles[node.role].shape for node in diagram.nodes}
    details = {node.key: _wrapped(node, setting) for node in diagram.nodes}
    sizes = {
        node.key: shape_size(
            shapes[node.key], _text_size(node, details[node.key]), tight=setting.tight
        )
        for node in diagram.nodes
    }
    texts = tuple(_label_lines(edge.label, setting) for edge in diagram.edges)
    label_sizes = [_label_size(lines) if lines else None for lines in texts]
    ellipses = {
        key for key, shape in shapes.items() if shape == "circle" and len({*sizes[key]}) == 1
    }
    layout = place(diagram, sizes, label_sizes, ellipses=ellipses, gaps=setting.gaps)
    routes = tuple(
        _ends_met(route, edge, layout, shapes)
        for edge, route in zip(diagram.edges, layout.routes, strict=True)
    )
    lines = tuple(rounded(route, _CORNER) for route in routes)
    bare = _frame(layout, lines, ())
    picture = Picture(
        layout=layout,
        frame=bare,
        margins=margins(diagram, (bare.width, bare.height)),
        routes=routes,
        lines=lines,
        labels=(None,) * len(lines),
        label_texts=texts,
        details=details,
        conflicts=0,
        covered=0,
        tangled=tangled(diagram.edges, lines),
    )
    if picture.faults >= most:  # labels, which take the most time to place, make nothing better
        return None
    placed = place_labels(lines, label_sizes, layout.boxes.values())
    frame = _frame(layout, lines, placed.boxes)
    picture = replace(
        picture,
        frame=frame,
        margins=margins(diagram, (frame.width, frame.height)),
        labels=placed.boxes,
        conflicts=len(placed.conflicts),
        covered=placed.covered,
    )
    return picture if picture.faults < most else None


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


def _wrapped(node: Node, setting: Setting) -> tuple[str, ...]:
    texts = map(fewer_digits, node.detail) if setting.terse else node.detail
    return tuple(line for text in texts for line in wrap_expression(text, setting.wrap))


def _text_size(node: Node, detail: tuple[str, ...]) -> Size:
    label = block_size([node.label], LABEL_SIZE, bold=True)
    below = block_size(detail, DETAIL_SIZE)
    return (max(label[0], below[0]), label[1] + below[1])


def _label_size(lines: tuple[str, ...]) -> Size:
    width, height = block_size(lines, EDGE_LABEL_SIZE)
    return (width + 8.0, height + 2.0)


def _label_lines(label: str, setting: Setting) -> tuple[str, ...]:
    parts = (part for part in label.split("\n") if part.strip())
    texts = map(fewer_digits, parts) if setting.terse else parts
    return tuple(line for text in texts for line in wrap_expression(text, setting.edge_wrap))


def _ends_met(
    route: tuple[Point, ...], edge: Edge, layout: Layout, shapes: Mapping[str, Shape]
) -> tuple[Point, ...]:
    """Lead both ends of a route on to the vertices' outlines."""
    first = meet(shapes[edge.tail], layout.boxes[edge.tail], route[1], route[0])
    last = meet(shapes[edge.head], layout.boxes[edge.head], route[-2], route[-1])
    return (first, *route[1:-1], last)
