"""A graph's picture as a slide can hold it, before anything is drawn.

The text of every vertex and edge is broken into lines and measured, and `layout.py` lays it out:
with comfortable settings first, then with more economical ones (narrower gaps, shorter lines,
fewer digits), until the picture can be read on a slide. A title stands above the graph, notes and
a legend below it. Lengths are in points.
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
    block_size,
    round_results,
    row_widths,
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
    roles_in,
    theme,
)
from cgprimer.visualization.diagrams.vertex_shapes import shape_size

MARGIN = 18.0
NOTES_GAP = 16.0
_TITLE_GAP = 18.0
_SMALLEST_WIDTH = 640.0
NOTE_WIDTH = 900.0  #: notes are broken into lines of about a slide's width
_MOST = 600  # vertices; to find the layers of more takes minutes
_SMALL, _LARGE = 100, 250  # vertices and edges up to which every setting is tried, and beyond none
_FEW = 50  # vertices and edges that a slide always has room for
_LEGIBLE = 9.0  # points of the smallest text: pictures with less are summarised by layers
_HOPELESS = 6.0  # points: no setting makes text of less than half the size readable
_WIDEST_GAP = 320.0
_WORTHWHILE = 4.0  # points by which gaps must grow to lay a picture out once more
_LONG, _MANY_LAYERS = 3.0, 8  # width over height, and layers, from which a layout is folded
# What a fault of a picture weighs, in points of its smallest text: labels that touch something,
# labels over the line of another edge, every point over which edges lie on top of each other, and
# every setting further down the list.
_TOUCHING, _COVERING, _CROWDED, _LATER = 30.0, 1.5, 0.02, 0.01
_CUT = 4.0  # and rows of matrices over several lines
_BENT = 1.5  # and a network whose edges are not straight
_WRAP = 18


@dataclass(frozen=True, slots=True)
class Setting:
    """How texts are broken and how much room is left between things."""

    gaps: Gaps = COMFORTABLE
    wrap: int = _WRAP  # characters of a line in a vertex
    edge_wrap: int = 14  # characters of a line on an edge
    terse: bool = False  # five digits, and less room between a vertex's text and its outline
    straight: bool = False  # networks in columns; with `gaps.fold` chains over rows

    @property
    def whole_rows(self) -> bool:
        """Whether the row of a matrix is a line, however long."""
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
# Of networks, tried before all others.
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
# Of chains that are too long for one row, and of graphs along one path.
_ROWS = (
    Setting(Gaps(36, 14, 24, spine=True), straight=True),
    Setting(Gaps(24, 8, 16, spine=True), terse=True, straight=True),
    Setting(Gaps(24, 8, 12, spine=True), edge_wrap=18, terse=True, straight=True),
    Setting(Gaps(24, 8, 16, spine=True), 12, 10, terse=True, straight=True),
    Setting(Gaps(24, 8, 16, spine=True), 10, 7, terse=True, straight=True),
    Setting(Gaps(fold=SLIDE_ASPECT), edge_wrap=24, straight=True),
    Setting(Gaps(20, 8, 12, fold=SLIDE_ASPECT), edge_wrap=24, terse=True, straight=True),
)
# For labels that found no free place.
_ROOMY = (Setting(Gaps(108, 42, 90)), Setting(Gaps(180, 70, 150), 10, 7, terse=True))


class Captions:
    """The texts around a graph of some width and height, and the figure that holds all of it.

    >>> from cgprimer.visualization.diagrams.diagram import Node
    >>> found = Captions(Diagram((Node("xa", "xa", "input"),), (), "A title"), (900, 300))
    >>> found.title, found.legend.rows, found.size
    (('A title',), [['input']], (936.0, 526.5))
    """

    def __init__(self, diagram: Diagram, graph: Size) -> None:
        entries: list[Entry] = [*roles_in(diagram)]
        if any(edge.emphasis for edge in diagram.edges):
            entries.append("path")
        if any(node.dropped for node in diagram.nodes):
            entries.append("dropped")
        widest = Legend(entries, 0.0).width  # of the entries
        inner = max(graph[0], _SMALLEST_WIDTH - 2 * MARGIN, widest)
        width = max(inner, NOTE_WIDTH)
        title = wrap_words(diagram.title, inner, TITLE_SIZE, bold=True)
        notes = [line for note in diagram.notes for line in wrap_words(note, width, DETAIL_SIZE)]
        title_width, title_height = block_size(title, TITLE_SIZE, bold=True)
        notes_width, notes_height = block_size(notes, DETAIL_SIZE)
        inner = max(inner, title_width, notes_width)
        self.title, self.notes, self.legend = title, notes, Legend(entries, inner)
        # The heights above and below the graph, the margins included.
        self.above = MARGIN + (title_height + _TITLE_GAP if title else 0.0)
        self.below = MARGIN + (self.legend.height + NOTES_GAP if entries else 0.0)
        self.below += notes_height + NOTES_GAP if notes else 0.0
        self.filled = wide, tall = inner + 2 * MARGIN, graph[1] + self.above + self.below
        # Padded to the shape of a slide where that at most doubles a side.
        padded = max(wide, tall * SLIDE_ASPECT), max(tall, wide / SLIDE_ASPECT)
        near = padded[0] <= 2 * wide and padded[1] <= 2 * tall
        self.size = padded if near or wide <= _SMALLEST_WIDTH else self.filled
        self.smallest_text = text_on_slide(*self.size)


def text_on_slide(width: float, height: float) -> float:
    """The size in points of a picture's smallest text on a slide of 13.33 by 7.5 inches.

    A picture smaller than the slide is not blown up.

    >>> text_on_slide(800, 400), text_on_slide(1920, 1080)
    (16.0, 8.0)
    """
    return DETAIL_SIZE * min(SLIDE_WIDTH / width, SLIDE_HEIGHT / height, 1.0)


@dataclass(frozen=True, slots=True)
class SlideLayout:
    """Everything about a diagram's drawing but the ink."""

    layout: Layout
    labels: PlacedLabels
    captions: Captions
    details: Mapping[str, tuple[str, ...]]  # of every vertex, broken into lines
    label_texts: tuple[tuple[str, ...], ...]  # of every edge, broken into lines
    overlap_length: float  # points over which edges lie on top of each other
    cut: bool = False  # whether rows of matrices go over several lines

    @property
    def badness(self) -> float:
        """What keeps the picture from being read on a slide; 0 for nothing."""
        # Text of half the size is more than twice as hard to read.
        small = READABLE_SIZE * max(0.0, READABLE_SIZE / self.captions.smallest_text - 1.0)
        wrong = _TOUCHING * self.labels.touching + _COVERING * self.labels.covering
        return small + wrong + _CROWDED * self.overlap_length + _CUT * self.cut


def fits_slide(diagram: Diagram) -> bool:
    """Tell whether a picture is at least half legible on a slide; a small one always is.

    >>> from cgprimer.visualization.diagrams.diagram import Node
    >>> fits_slide(Diagram((Node("xa", "xa", "input"),), ()))
    True
    """
    if len(diagram.nodes) + len(diagram.edges) <= _FEW:
        return True
    return slide_layout(diagram).captions.smallest_text >= _LEGIBLE


@lru_cache(maxsize=16)
def slide_layout(diagram: Diagram) -> SlideLayout:
    """Decide where everything in the picture of `diagram` goes; nothing is drawn yet.

    The first setting with which the picture has no fault is taken, or else that with the least.

    Raises `cgprimer.errors.UsageError` where there are too many vertices.

    >>> from cgprimer.visualization.diagrams.diagram import Edge, Node
    >>> nodes = (Node("xa", "xa", "input"), Node("xb", "xb", "output", ("ab*xa",)))
    >>> found = slide_layout(Diagram(nodes, (Edge("xa", "xb", "ab"),))).layout
    >>> found.boxes["xa"].x < found.labels[0].x < found.boxes["xb"].x
    True
    """
    if len(diagram.nodes) > _MOST:
        raise UsageError(
            f"{len(diagram.nodes):,} vertices are too many for one picture (at most {_MOST})",
            hint="draw the summary (without --all), or write .dot or .mmd for another program",
        )
    size = len(diagram.nodes) + len(diagram.edges)
    best, least = None, math.inf
    for number, setting in enumerate(_NETWORK if size <= _LARGE else ()):
        found = _try_setting(diagram, setting, least)
        if found is not None and (badness := found.badness + _LATER * number) < least:
            best, least = found, badness
    if best is not None and not best.badness:
        return best
    return _best_of_graph(diagram, size, best, least - _BENT)


def _best_of_graph(
    diagram: Diagram, size: int, network: SlideLayout | None, least: float
) -> SlideLayout:
    """Return the least bad layout of a graph; that as a network unless one is less bad."""
    best = _try_setting(diagram, _SETTINGS[0])
    assert best is not None  # every graph has it
    wide = _widest_row(diagram) > _WRAP
    few = size > _SMALL or (best.captions.smallest_text <= _HOPELESS and not wide)
    tried = _SETTINGS[1:3] if few else (*_SETTINGS[1:], *_ROWS)
    if best.badness == _CROWDED * best.overlap_length:  # narrower ones are for text and labels
        tried = tuple(setting for setting in tried if setting.gaps.square)
    best, least = (best, best.badness) if best.badness < least or not network else (network, least)
    for number, setting in enumerate((*(tried if size <= _LARGE else ()), *_ROOMY), 1):
        if not best.badness or (setting in _ROOMY and not best.labels.touching):
            break
        found = _try_setting(diagram, setting, least)
        if found is not None and (badness := found.badness + _LATER * number) < least:
            best, least = found, badness
    return best


def _try_setting(diagram: Diagram, setting: Setting, least: float = math.inf) -> SlideLayout | None:
    """Return the picture with a setting; None where the graph is of another kind.

    Labels stay on the middles of lines where the picture is worse than `least` without them.
    """
    styles = theme(dark=False).roles  # shapes, and so sizes, are the same in both themes
    shapes = {node.key: styles[node.role].shape for node in diagram.nodes}
    details = {node.key: _break_texts(node.detail, setting, setting.wrap) for node in diagram.nodes}
    sizes = {}
    for node in diagram.nodes:
        label = block_size([node.label], LABEL_SIZE, bold=True)
        below = block_size(details[node.key], DETAIL_SIZE)
        text = (max(label[0], below[0]), label[1] + below[1])
        sizes[node.key] = shape_size(shapes[node.key], text, tight=setting.terse)
    parts = ([part for part in edge.label.split("\n") if part.strip()] for edge in diagram.edges)
    texts = tuple(_break_texts(lines, setting, setting.edge_wrap) for lines in parts)
    blocks = (block_size(lines, DETAIL_SIZE) for lines in texts)
    label_sizes = [(wide + 8.0, high + 2.0) if high else None for wide, high in blocks]
    edges = [(edge.tail, edge.head) for edge in diagram.edges]

    def placed(gaps: Gaps) -> Layout | None:
        how = partial(lay_out_straight if setting.straight else lay_out, shapes=shapes, gaps=gaps)
        if diagram.parts:
            return lay_out_parts(diagram.parts, how, sizes, edges, label_sizes)
        return how(sizes, edges, label_sizes)

    gaps = setting.gaps
    found = placed(gaps)
    if found is None:
        return None
    wider = _widen_gap(gaps.layer, found, Captions(diagram, (found.width, found.height)))
    if setting.straight and (gaps.fold or gaps.spine):
        pass  # it is as long as suits its texts
    elif wider > gaps.layer + _WORTHWHILE:
        found = placed(replace(gaps, layer=wider)) or found
    elif (
        not (gaps.square or setting.straight)
        and found.layers >= _MANY_LAYERS
        and found.width > _LONG * found.height
    ):
        folded = placed(replace(gaps, square=True, fold=SLIDE_ASPECT))
        found = folded if folded and folded.width < 0.8 * found.width else found
    around = Captions(diagram, (found.width, found.height))
    on_top = overlap_length(edges, found.lines)
    cut = _widest_row(diagram) > setting.wrap and not setting.whole_rows
    picture = SlideLayout(found, PlacedLabels(found.labels), around, details, texts, on_top, cut)
    if picture.badness >= least:
        return picture
    return replace(picture, labels=move_labels(found, backward=diagram.backward_arrows))


def _widen_gap(gap: float, found: Layout, around: Captions) -> float:
    """The gap between layers with which a picture uses a slide's width."""
    if found.layers < 2:
        return gap
    # A fan of many edges in a narrow gap cannot be followed by eye.
    fan = gap + (SLIDE_ASPECT * found.height - found.width) / (found.layers - 1)
    fan = min(fan, _WIDEST_GAP * max(1.0, gap / COMFORTABLE.layer))
    widest = SLIDE_WIDTH * DETAIL_SIZE / READABLE_SIZE
    room = gap + 0.9 * (widest - around.filled[0]) / (found.layers - 1)
    return max(fan, min(room, COMFORTABLE.layer))


def _break_texts(texts: Iterable[str], setting: Setting, limit: int) -> tuple[str, ...]:
    texts = [*map(round_results, texts)] if setting.terse else [*texts]
    return wrap_lines(texts, limit, whole_rows=setting.whole_rows)


def _widest_row(diagram: Diagram) -> int:
    return max((wide for node in diagram.nodes for wide in row_widths(node.detail)), default=0)
