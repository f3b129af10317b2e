"""The layout of the graph in the picture: layers from top to bottom or from left to right.

The picture shares the screen with a table and a program. Its vertices are therefore small (a name,
a value, a derivative), and its direction is the one that allows the larger text.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields, replace
from typing import Any

from cgprimer.errors import UsageError
from cgprimer.visualization.diagrams.edge_labels import move_labels
from cgprimer.visualization.diagrams.geometry import (
    Box,
    Point,
    bounding_box,
    compute_line_length,
    find_point_at,
    shorten_line,
)
from cgprimer.visualization.diagrams.layer_summary import assign_layers
from cgprimer.visualization.diagrams.layout import Gaps, lay_out
from cgprimer.visualization.diagrams.theme import theme
from cgprimer.visualization.diagrams.vertex_shapes import compute_pill_radius
from cgprimer.visualization.pages.stepping.scene import Scene

LETTER = 18.0  #: size of the text, in units of the picture
_CHARACTER = 0.62 * LETTER
_HEIGHT = 4.2 * LETTER
_PADDING = 26.0
_MARGIN = 26.0  # holds the marker of a highlighted vertex
RING = 5.0  #: distance of the ring around a highlighted vertex
FLAG = 24.0  #: length of the marker of a highlighted vertex
_ARROW = 13.0
MANY = 80  # edges; for larger graphs only one gap is tried
_HUGE = 200  # edges; for larger graphs only one direction is tried
_WIDEST = 300  # vertices of a layer; the layout takes ten seconds, and eight times that for 600


def compute_label_size(n_characters: int) -> tuple[float, float]:
    """Return width and height of a number on an edge, with room for at least seven characters."""
    return max(7, n_characters) * 0.66 * LETTER + 4.0, 1.15 * LETTER


LABEL = compute_label_size(7)  #: as 21.5469 or ≈1.2346 is
WIDE = compute_label_size(8)  #: as ≈0.47606 is, if there is room


@dataclass(frozen=True, slots=True)
class SceneLayout:
    """The positions of a graph's vertices, edges and numbers in the picture.

    The y axis points down, and letters have the size ``LETTER``.

    Attributes:
        boxes: one box per vertex.
        lines: one polyline per edge, which ends at the base of its arrow head.
        tips: the tip of each arrow head.
        labels: the position of each edge's number.
        width: the width of the picture.
        height: the height of the picture.
        is_horizontal: the layers go from left to right, not from top to bottom.
    """

    boxes: tuple[Box, ...]
    lines: tuple[tuple[Point, ...], ...]
    tips: tuple[Point, ...]
    labels: tuple[Point, ...]
    width: float
    height: float
    is_horizontal: bool = False


def lay_out_scene(
    scene: Scene,
    aspect: float = 1.0,
    gaps: tuple[float, ...] = (58.0, 84.0, 104.0, 140.0),
    label: tuple[float, float] = LABEL,
    quick: bool = False,
) -> SceneLayout:
    """Compute the positions of a graph's vertices, edges and value labels.

    Args:
        scene: the vertices and edges.
        aspect: width over height of the available area.
        gaps: gaps between layers, which are tried until no number on an edge overlaps anything.
        label: the size of the numbers on edges.
        quick: compute a single layout, in which more numbers may overlap.

    Raises:
        UsageError: a layer has so many vertices that the layout would take minutes.
    """
    layer = assign_layers((vertex.name for vertex in scene.vertices), scene.edges)
    layers = Counter(layer.values())
    if (widest := max(layers.values())) > _WIDEST:
        raise UsageError(
            f"a layer of the graph has {widest:,} vertices, but a picture can have at most"
            f" {_WIDEST} next to each other",
            hint="select part of the graph with --of NAME (in Python, of=...), or list all"
            " values with cgprimer trace",
        )
    if quick:
        sizes = len(layers) * (_HEIGHT + gaps[0]), widest * 12 * _CHARACTER
        return _lay_out_with_gap(scene, sizes[0] <= sizes[1], gaps[0], label, quick=True)[1]
    candidates: list[tuple[int, float, SceneLayout]] = []
    edges = len(scene.edges)
    # A large graph is laid out once: this takes seconds, and the graph does not fit anyway.
    for down in (True, False) if edges <= _HUGE else (True,):
        for gap in gaps if edges <= MANY else gaps[:1]:
            conflicts, layout = _lay_out_with_gap(scene, down, gap, label)
            scale = min(aspect / layout.width, 1 / layout.height)
            candidates.append((conflicts, -scale, layout))
            if not conflicts:
                break
    return min(candidates, key=lambda candidate: candidate[:2])[2]


def _lay_out_with_gap(
    scene: Scene, down: bool, gap: float, label: tuple[float, float], *, quick: bool = False
) -> tuple[int, SceneLayout]:
    """Lay out a graph with the given gap between layers, and count the overlapping labels."""
    sizes = {
        vertex.name: (
            max(12, len(vertex.name) + 1, vertex.n_characters) * _CHARACTER + _PADDING,
            _HEIGHT,
        )
        for vertex in scene.vertices
    }
    shapes = {vertex.name: theme(False).roles[vertex.role].shape for vertex in scene.vertices}
    gaps = Gaps(layer=gap, node=26.0, clear=0.0)
    no_labels = [None] * len(scene.edges)
    layout = lay_out(sizes, list(scene.edges), no_labels, shapes=shapes, gaps=gaps, down=down)
    # No room is reserved for labels: the picture would be much larger.
    middles = (find_point_at(line, compute_line_length(line) / 2) for line in layout.lines)
    layout = replace(layout, labels=tuple(Box(*middle, *label) for middle in middles))

    labels = move_labels(layout, label[0] / 2, quick=quick)
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    area = Box(layout.width / 2, layout.height / 2, width, height)
    area = bounding_box([area, *(box for box in labels.boxes if box)])
    left, top = area.x - area.width / 2, area.y - area.height / 2
    lines = [tuple((x - left, y - top) for x, y in line) for line in layout.lines]
    return labels.touching, SceneLayout(
        tuple(box.translate(-left, -top) for box in layout.boxes.values()),
        tuple(shorten_line(line, _ARROW) for line in lines),
        tuple(line[-1] for line in lines),
        tuple((box.x - left, box.y - top) for box in labels.boxes if box),
        area.width,
        area.height,
        not down,
    )


def encode_layout(layout: SceneLayout) -> dict[str, Any]:
    """Return a layout as built-in types for the page, rounded to a tenth of a unit."""

    def round_numbers(part: Any) -> Any:
        """Round all numbers in nested boxes and tuples."""
        if isinstance(part, Box):
            part = (part.x, part.y, part.width, part.height)
        if isinstance(part, tuple):
            return [round_numbers(p) for p in part]
        return part if isinstance(part, bool) else round(part, 1)

    data = {field.name: round_numbers(getattr(layout, field.name)) for field in fields(layout)}
    return {**data, "pill": round_numbers(compute_pill_radius(layout.boxes[0]))}
