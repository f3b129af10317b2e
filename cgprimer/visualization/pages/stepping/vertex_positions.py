"""Where the vertices of the page's picture stand: layers downwards or to the right.

The picture shares the screen with a table and a program, so its vertices are small (a name, a
value, a derivative) and it takes the direction in which its text comes out larger.
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
    line_length,
    point_at,
    shorten_line,
)
from cgprimer.visualization.diagrams.layer_summary import assign_layers
from cgprimer.visualization.diagrams.layout import Gaps, lay_out
from cgprimer.visualization.diagrams.theme import theme
from cgprimer.visualization.diagrams.vertex_shapes import pill_radius
from cgprimer.visualization.pages.stepping.scene import Scene

LETTER = 18.0  #: size of the picture's text, in its own units
_CHARACTER = 0.62 * LETTER
_HEIGHT = 4.2 * LETTER
_PADDING = 26.0
_MARGIN = 26.0  # holds the mark beside a vertex that is lit
RING = 5.0  #: from a vertex to the middle of the ring around it, where it is lit
FLAG = 24.0  #: how far the flag beside a vertex that is lit goes
_ARROW = 13.0
MANY = 80  # edges beyond which not all gaps are tried
_HUGE = 200  # edges beyond which one direction is tried
_WIDEST = 300  # vertices of a layer: ten seconds of work, and eight times as many for twice as many


def label_size(letters: int) -> tuple[float, float]:
    """The room for an edge's number of so many letters, for seven at least."""
    return max(7, letters) * 0.66 * LETTER + 4.0, 1.15 * LETTER


LABEL = label_size(7)  #: as 21.5469 or ≈1.2346 is
WIDE = label_size(8)  #: as ≈0.47606 is, where there is room for it


@dataclass(frozen=True, slots=True)
class Placed:
    """A picture without ink; lengths in units of which a letter has ``LETTER``, y downwards.

    `boxes` has one box per vertex, `lines` one polyline per edge, which ends where its arrow head
    begins; `tips` where the head ends; `labels` where an edge's number stands. `across`: the
    layers go to the right, not down.
    """

    boxes: tuple[Box, ...]
    lines: tuple[tuple[Point, ...], ...]
    tips: tuple[Point, ...]
    labels: tuple[Point, ...]
    width: float
    height: float
    across: bool = False


def placed(
    scene: Scene,
    aspect: float = 1.0,
    gaps: tuple[float, ...] = (58.0, 84.0, 104.0, 140.0),
    label: tuple[float, float] = LABEL,
) -> Placed:
    """Lay a scene out for a pane whose width over height is ``aspect``.

    ``gaps`` between layers are tried until no number on an edge lies over something else.

    Raises:
        UsageError: a layer has so many vertices that laying them out would take minutes.
    """
    layer = assign_layers((vertex.name for vertex in scene.vertices), scene.edges)
    if (widest := max(Counter(layer.values()).values())) > _WIDEST:
        said = f"{widest:,} vertices stand side by side, more than the {_WIDEST} of one picture"
        hint = "a part of the graph: --of NAME (in Python of=...); cgprimer trace has every number"
        raise UsageError(said, hint=hint)
    found: list[tuple[int, float, Placed]] = []
    edges = len(scene.edges)
    # A large graph is laid out once: it takes seconds, and does not fit into the pane anyway.
    for down in (True, False) if edges <= _HUGE else (True,):
        for gap in gaps if edges <= MANY else gaps[:1]:
            conflicts, shape = _placed(scene, down, gap, label)
            found.append((conflicts, -min(aspect / shape.width, 1 / shape.height), shape))
            if not conflicts:
                break
    return min(found, key=lambda candidate: candidate[:2])[2]


def _placed(scene: Scene, down: bool, gap: float, label: tuple[float, float]) -> tuple[int, Placed]:
    """A picture, and how many of its labels lie over something."""
    sizes = {
        vertex.name: (max(12, len(vertex.name) + 1, vertex.room) * _CHARACTER + _PADDING, _HEIGHT)
        for vertex in scene.vertices
    }
    shapes = {vertex.name: theme(False).roles[vertex.role].shape for vertex in scene.vertices}
    gaps = Gaps(layer=gap, node=26.0, clear=0.0)
    without = [None] * len(scene.edges)
    found = lay_out(sizes, list(scene.edges), without, shapes=shapes, gaps=gaps, down=down)
    # Room for the labels is not reserved: a picture with it would be much larger.
    middles = (point_at(line, line_length(line) / 2) for line in found.lines)
    found = replace(found, labels=tuple(Box(*middle, *label) for middle in middles))

    labels = move_labels(found, label[0] / 2)
    width, height = found.width + 2 * _MARGIN, found.height + 2 * _MARGIN
    around = Box(found.width / 2, found.height / 2, width, height)
    whole = bounding_box([around, *(box for box in labels.boxes if box)])
    left, top = whole.x - whole.width / 2, whole.y - whole.height / 2
    lines = [tuple((x - left, y - top) for x, y in line) for line in found.lines]
    return labels.touching, Placed(
        tuple(box.translate(-left, -top) for box in found.boxes.values()),
        tuple(shorten_line(line, _ARROW) for line in lines),
        tuple(line[-1] for line in lines),
        tuple((box.x - left, box.y - top) for box in labels.boxes if box),
        whole.width,
        whole.height,
        not down,
    )


def drawing_data(found: Placed) -> dict[str, Any]:
    """The same as plain data, rounded to a tenth of a unit."""

    def near(part: Any) -> Any:
        if isinstance(part, Box):
            part = (part.x, part.y, part.width, part.height)
        if isinstance(part, tuple):
            return [near(p) for p in part]
        return part if isinstance(part, bool) else round(part, 1)

    data = {field.name: near(getattr(found, field.name)) for field in fields(found)}
    return {**data, "pill": near(pill_radius(found.boxes[0]))}
