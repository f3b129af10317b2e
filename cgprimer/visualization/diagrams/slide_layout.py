"""The layout of a diagram on a slide, before it is drawn.

The texts of vertices and edges are broken into lines and measured, and `layout.py` computes
positions: first with comfortable settings, then with more economical settings (narrower gaps,
shorter lines, fewer digits), until the picture can be read on a slide. The title is above the
graph, notes and legend are below it. Lengths are in points.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from cgprimer.errors import UsageError
from cgprimer.visualization.diagrams.diagram import Diagram
from cgprimer.visualization.diagrams.edge_labels import PlacedLabels, move_labels
from cgprimer.visualization.diagrams.geometry import Size, overlap_length
from cgprimer.visualization.diagrams.layout import (
    COMFORTABLE,
    Gaps,
    Layout,
    lay_out,
    lay_out_straight,
)
from cgprimer.visualization.diagrams.part_frames import lay_out_parts
from cgprimer.visualization.diagrams.slide_pen import Entry, Legend
from cgprimer.visualization.diagrams.text_layout import (
    measure_block,
    measure_row_widths,
    round_results,
    wrap_lines,
    wrap_words,
)
from cgprimer.visualization.diagrams.theme import (
    DETAIL_SIZE,
    LABEL_SIZE,
    READABLE_SIZE,
    SLIDE_ASPECT,
    SLIDE_HEIGHT,
    SLIDE_WIDTH,
    TITLE_SIZE,
    list_roles,
    theme,
)
from cgprimer.visualization.diagrams.vertex_shapes import measure_shape

MARGIN = 18.0
NOTES_GAP = 16.0
_TITLE_GAP = 18.0
_SMALLEST_WIDTH = 640.0
NOTE_WIDTH = 900.0  #: notes are broken into lines of about the width of a slide
_MAX_VERTICES = 600  # the layout of more vertices takes minutes
_SMALL, _LARGE = 100, 250  # vertices and edges up to which all settings are tried, or some of them
_FEW = 50  # vertices and edges that a slide always has room for
_LEGIBLE = 9.0  # points of the smallest text, below which a graph is summarized by layers
_HOPELESS = 6.0  # points of the smallest text, below which no setting makes it readable
_MAX_GAP = 320.0
_MIN_GROWTH = 4.0  # points by which gaps must grow for another layout
_LONG, _MANY_LAYERS = 3.0, 8  # width over height, and layers, from which on a layout is folded
# Costs of the faults of a picture, in points of its smallest text: a label that touches something,
# a label over the line of another edge, a point of overlap between edges, a setting further down
# the list, rows of matrices that are broken, and a network with bent edges.
_TOUCHING, _COVERING, _CROWDED, _LATER = 30.0, 1.5, 0.02, 0.01
_CUT = 4.0
_BENT = 1.5
_WRAP = 18


@dataclass(frozen=True, slots=True)
class Setting:
    """A combination of gaps and line lengths that is tried for the layout of a diagram.

    Attributes:
        gaps: gaps of the layout.
        wrap: characters of a line in a vertex.
        edge_wrap: characters of a line on an edge.
        terse: True for five digits, and less room between the text of a vertex and its outline.
        straight: True for networks in columns and, with `gaps.fold`, chains in rows.
    """

    gaps: Gaps = COMFORTABLE
    wrap: int = _WRAP
    edge_wrap: int = 14
    terse: bool = False
    straight: bool = False

    @property
    def whole_rows(self) -> bool:
        """True if matrix rows are never broken, regardless of their length."""
        return self.wrap >= _WRAP


_SETTINGS: tuple[Setting, ...] = (
    Setting(),
    Setting(Gaps(16, 2, 10)),
    Setting(Gaps(16, 2, 10), terse=True),
    Setting(Gaps(16, 12, 22, square=True, fold=SLIDE_ASPECT)),
    Setting(Gaps(10, 30, 6), 12, 10, terse=True),
    Setting(Gaps(10, 2, 6), 10, 7, terse=True),
    Setting(Gaps(16, 12, 22, square=True, fold=SLIDE_ASPECT), 10, 7, terse=True),
    Setting(Gaps(10, 60, 20), terse=True),
)
# Settings for networks, tried first.
_NETWORK = (
    Setting(Gaps(110, 22), straight=True),
    Setting(Gaps(170, 22), straight=True),
    Setting(Gaps(60, 14), straight=True),
    Setting(Gaps(90, 24, 12), terse=True, straight=True),
    Setting(Gaps(24, 8, 14), terse=True, straight=True),
    Setting(Gaps(24, 2, 10), 12, 10, terse=True, straight=True),
    Setting(Gaps(56, 24, 8), 12, terse=True, straight=True),
    Setting(Gaps(40, 40, 8), 12, terse=True, straight=True),
)
# Settings for chains that are too long for one row, and for graphs along one path.
_ROWS = (
    Setting(Gaps(36, 14, 24, spine=True), straight=True),
    Setting(Gaps(24, 8, 16, spine=True), terse=True, straight=True),
    Setting(Gaps(24, 8, 12, spine=True), edge_wrap=18, terse=True, straight=True),
    Setting(Gaps(24, 8, 16, spine=True), 12, 10, terse=True, straight=True),
    Setting(Gaps(24, 8, 16, spine=True), 10, 7, terse=True, straight=True),
    Setting(Gaps(fold=SLIDE_ASPECT), edge_wrap=24, straight=True),
    Setting(Gaps(20, 8, 12, fold=SLIDE_ASPECT), edge_wrap=24, terse=True, straight=True),
)
# Settings for labels without a free position.
_ROOMY = (Setting(Gaps(108, 42, 90)), Setting(Gaps(180, 70, 150), 10, 7, terse=True))


class Captions:
    """The title, notes and legend around a graph, and the size of the figure that holds them.

    >>> from cgprimer.visualization.diagrams.diagram import Node
    >>> captions = Captions(Diagram((Node("xa", "xa", "input"),), (), "A title"), (900, 300))
    >>> captions.title, captions.legend.rows, captions.size
    (('A title',), [['input']], (936.0, 526.5))
    """

    def __init__(self, diagram: Diagram, graph: Size) -> None:
        entries: list[Entry] = [*list_roles(diagram)]
        if any(edge.emphasis for edge in diagram.edges):
            entries.append("path")
        if any(node.dropped for node in diagram.nodes):
            entries.append("dropped")
        widest = Legend(entries, 0.0).width  # width of the widest entry
        inner = max(graph[0], _SMALLEST_WIDTH - 2 * MARGIN, widest)
        width = max(inner, NOTE_WIDTH)
        title = wrap_words(diagram.title, inner, TITLE_SIZE, bold=True)
        notes = [line for note in diagram.notes for line in wrap_words(note, width, DETAIL_SIZE)]
        title_width, title_height = measure_block(title, TITLE_SIZE, bold=True)
        notes_width, notes_height = measure_block(notes, DETAIL_SIZE)
        inner = max(inner, title_width, notes_width)
        self.title, self.notes, self.legend = title, notes, Legend(entries, inner)
        # Heights above and below the graph, with margins.
        self.above = MARGIN + (title_height + _TITLE_GAP if title else 0.0)
        self.below = MARGIN + (self.legend.height + NOTES_GAP if entries else 0.0)
        self.below += notes_height + NOTES_GAP if notes else 0.0
        self.filled = wide, tall = inner + 2 * MARGIN, graph[1] + self.above + self.below
        # The figure is padded to the shape of a slide if this at most doubles a side.
        padded = max(wide, tall * SLIDE_ASPECT), max(tall, wide / SLIDE_ASPECT)
        near = padded[0] <= 2 * wide and padded[1] <= 2 * tall
        self.size = padded if near or wide <= _SMALLEST_WIDTH else self.filled
        self.smallest_text = compute_text_size_on_slide(*self.size)


def compute_text_size_on_slide(width: float, height: float) -> float:
    """Return the size, in points, of a picture's smallest text on a 13.33 by 7.5 inch slide.

    A picture smaller than the slide is not enlarged.

    >>> compute_text_size_on_slide(800, 400), compute_text_size_on_slide(1920, 1080)
    (16.0, 8.0)
    """
    return DETAIL_SIZE * min(SLIDE_WIDTH / width, SLIDE_HEIGHT / height, 1.0)


@dataclass(frozen=True, slots=True)
class SlideLayout:
    """The positions and texts of all elements of a diagram on a slide.

    Attributes:
        layout: positions of vertices, edges and frames.
        labels: positions of edge labels.
        captions: title, notes and legend.
        details: the lines below the label of each vertex.
        label_texts: the lines of the label of each edge.
        overlap_length: length over which edges overlap, in points.
        cut: True if rows of matrices are broken.
    """

    layout: Layout
    labels: PlacedLabels
    captions: Captions
    details: Mapping[str, tuple[str, ...]]
    label_texts: tuple[tuple[str, ...], ...]
    overlap_length: float
    cut: bool = False

    @property
    def badness(self) -> float:
        """The total cost of faults that make the picture hard to read, such as overlaps."""
        # Text of half the size is more than twice as hard to read.
        small = READABLE_SIZE * max(0.0, READABLE_SIZE / self.captions.smallest_text - 1.0)
        wrong = _TOUCHING * self.labels.touching + _COVERING * self.labels.covering
        return small + wrong + _CROWDED * self.overlap_length + _CUT * self.cut


def fits_slide(diagram: Diagram) -> bool:
    """Return whether the text of a diagram is legible on a slide; small graphs always fit.

    >>> from cgprimer.visualization.diagrams.diagram import Node
    >>> fits_slide(Diagram((Node("xa", "xa", "input"),), ()))
    True
    """
    if len(diagram.nodes) + len(diagram.edges) <= _FEW:
        return True
    return slide_layout(diagram).captions.smallest_text >= _LEGIBLE


@lru_cache(maxsize=16)
def slide_layout(diagram: Diagram) -> SlideLayout:
    """Compute the layout of a diagram on a slide.

    It uses the first setting without faults, or else the setting with the lowest cost of faults.

    Raises `cgprimer.errors.UsageError` for too many vertices.

    >>> from cgprimer.visualization.diagrams.diagram import Edge, Node
    >>> nodes = (Node("xa", "xa", "input"), Node("xb", "xb", "output", ("ab*xa",)))
    >>> layout = slide_layout(Diagram(nodes, (Edge("xa", "xb", "ab"),))).layout
    >>> layout.boxes["xa"].x < layout.labels[0].x < layout.boxes["xb"].x
    True
    """
    if len(diagram.nodes) > _MAX_VERTICES:
        raise UsageError(
            f"a picture can have at most {_MAX_VERTICES} vertices, got {len(diagram.nodes):,}",
            hint="write a page (-o NAME.html), or draw the summary (omit --all)",
        )
    size = len(diagram.nodes) + len(diagram.edges)
    best, least = None, math.inf
    for number, setting in enumerate(_NETWORK if size <= _LARGE else ()):
        picture = _try_setting(diagram, setting, least)
        if picture is not None and (badness := picture.badness + _LATER * number) < least:
            best, least = picture, badness
    if best is not None and not best.badness:
        return best
    return _find_best_layout(diagram, size, best, least - _BENT)


def _find_best_layout(
    diagram: Diagram, size: int, network: SlideLayout | None, least: float
) -> SlideLayout:
    """Try several layout settings for a diagram, and return the layout with the lowest cost."""
    best = _try_setting(diagram, _SETTINGS[0])
    assert best is not None  # every graph has this layout
    wide = _find_widest_row(diagram) > _WRAP
    few = size > _SMALL or (best.captions.smallest_text <= _HOPELESS and not wide)
    tried = _SETTINGS[1:3] if few else (*_SETTINGS[1:], *_ROWS)
    if best.badness == _CROWDED * best.overlap_length:  # narrower settings help text and labels
        tried = tuple(setting for setting in tried if setting.gaps.square)
    best, least = (best, best.badness) if best.badness < least or not network else (network, least)
    for number, setting in enumerate((*(tried if size <= _LARGE else ()), *_ROOMY), 1):
        if not best.badness or (setting in _ROOMY and not best.labels.touching):
            break
        picture = _try_setting(diagram, setting, least)
        if picture is not None and (badness := picture.badness + _LATER * number) < least:
            best, least = picture, badness
    return best


def _try_setting(
    diagram: Diagram, setting: Setting, max_cost: float = math.inf
) -> SlideLayout | None:
    """Lay out a diagram with one setting; return None if the setting does not fit the graph.

    Labels stay at the middle of their edges if the cost exceeds `max_cost` without them.
    """
    styles = theme(dark=False).roles  # shapes, and so sizes, are the same in both themes
    shapes = {node.key: styles[node.role].shape for node in diagram.nodes}
    details = {node.key: _break_texts(node.detail, setting, setting.wrap) for node in diagram.nodes}
    sizes = {}
    for node in diagram.nodes:
        label = measure_block([node.label], LABEL_SIZE, bold=True)
        below = measure_block(details[node.key], DETAIL_SIZE)
        text = (max(label[0], below[0]), label[1] + below[1])
        sizes[node.key] = measure_shape(shapes[node.key], text, tight=setting.terse)
    parts = ([part for part in edge.label.split("\n") if part.strip()] for edge in diagram.edges)
    texts = tuple(_break_texts(lines, setting, setting.edge_wrap) for lines in parts)
    blocks = (measure_block(lines, DETAIL_SIZE) for lines in texts)
    label_sizes = [(wide + 8.0, high + 2.0) if high else None for wide, high in blocks]
    edges = [(edge.tail, edge.head) for edge in diagram.edges]

    def lay_out_with(gaps: Gaps) -> Layout | None:
        """Lay out the diagram with the given gaps."""
        how = partial(lay_out_straight if setting.straight else lay_out, shapes=shapes, gaps=gaps)
        if diagram.parts:
            return lay_out_parts(diagram.parts, how, sizes, edges, label_sizes)
        return how(sizes, edges, label_sizes)

    gaps = setting.gaps
    layout = lay_out_with(gaps)
    if layout is None:
        return None
    wider = _widen_gap(gaps.layer, layout, Captions(diagram, (layout.width, layout.height)))
    if setting.straight and (gaps.fold or gaps.spine):
        pass  # its length is determined by its texts
    elif wider > gaps.layer + _MIN_GROWTH:
        layout = lay_out_with(replace(gaps, layer=wider)) or layout
    elif (
        not (gaps.square or setting.straight)
        and layout.layers >= _MANY_LAYERS
        and layout.width > _LONG * layout.height
    ):
        folded = lay_out_with(replace(gaps, square=True, fold=SLIDE_ASPECT))
        layout = folded if folded and folded.width < 0.8 * layout.width else layout
    around = Captions(diagram, (layout.width, layout.height))
    on_top = overlap_length(edges, layout.lines)
    cut = _find_widest_row(diagram) > setting.wrap and not setting.whole_rows
    picture = SlideLayout(layout, PlacedLabels(layout.labels), around, details, texts, on_top, cut)
    if picture.badness >= max_cost:
        return picture
    return replace(picture, labels=move_labels(layout, backward=diagram.backward_arrows))


def _widen_gap(gap: float, layout: Layout, around: Captions) -> float:
    """Return the gap between layers that makes a picture fill the width of a slide."""
    if layout.layers < 2:
        return gap
    # Many edges in a narrow gap are hard to follow.
    fan = gap + (SLIDE_ASPECT * layout.height - layout.width) / (layout.layers - 1)
    fan = min(fan, _MAX_GAP * max(1.0, gap / COMFORTABLE.layer))
    widest = SLIDE_WIDTH * DETAIL_SIZE / READABLE_SIZE
    room = gap + 0.9 * (widest - around.filled[0]) / (layout.layers - 1)
    return max(fan, min(room, COMFORTABLE.layer))


def _break_texts(texts: Iterable[str], setting: Setting, limit: int) -> tuple[str, ...]:
    """Break texts into lines of at most `limit` characters."""
    texts = [*map(round_results, texts)] if setting.terse else [*texts]
    return wrap_lines(texts, limit, whole_rows=setting.whole_rows)


def _find_widest_row(diagram: Diagram) -> int:
    """Return the number of characters in the longest matrix row at the vertices of a diagram."""
    return max(
        (wide for node in diagram.nodes for wide in measure_row_widths(node.detail)), default=0
    )
