"""Where the vertices of the page's picture stand: layers downwards or to the right.

The picture shares the screen with a table and a program, so its vertices are small (a name, a
value, a derivative) and it takes the direction in which its text comes out larger.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cgprimer.pages.stepping.scene import Scene
from cgprimer.pictures.labels import place_labels
from cgprimer.pictures.layout import Box, Point
from cgprimer.pictures.routes import length, point_at, rounded, shortened
from cgprimer.pictures.shapes import meet, pill_radius
from cgprimer.pictures.theme import theme

LETTER = 18.0  #: size of the picture's text, in its own units
_CHARACTER = 0.62 * LETTER
_HEIGHT = 4.2 * LETTER
_PADDING = 26.0
_MARGIN = 26.0  # holds the mark beside a vertex that is lit
RING = 5.0  #: from a vertex to the middle of the ring around it, where it is lit
FLAG = 24.0  #: how far the flag beside a vertex that is lit goes
_ARROW = 13.0
LABEL = (8 * 0.66 * LETTER + 4.0, 1.15 * LETTER)  #: an edge's number, as ≈0.12346 is
_MANY = 80  # edges beyond which not all gaps are tried
_HUGE = 200  # edges beyond which numbers stand on the middles of their edges


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
    scene: Scene, aspect: float = 1.0, gaps: tuple[float, ...] = (58.0, 84.0, 104.0, 140.0)
) -> Placed:
    """Lay a scene out for a pane whose width over height is ``aspect``.

    ``gaps`` between layers are tried until no number on an edge lies over something else.

    >>> import cgprimer
    >>> from cgprimer.pages.stepping.scene import scene
    >>> found = placed(scene(cgprimer.tape(cgprimer.parse("xw = cd*xa")), "xw", ["cd"]))
    >>> len(found.boxes), len(found.lines)
    (3, 2)
    """
    found: list[tuple[int, float, Placed]] = []
    edges = len(scene.edges)
    # A large graph is laid out once: it takes seconds, and does not fit into the pane anyway.
    for direction in ("topbottom", "leftright") if edges <= _HUGE else ("topbottom",):
        for gap in gaps if edges <= _MANY else gaps[:1]:
            conflicts, shape = _placed(scene, direction, gap)
            found.append((conflicts, -min(aspect / shape.width, 1 / shape.height), shape))
            if not conflicts:
                break
    return min(found, key=lambda candidate: candidate[:2])[2]


def _placed(scene: Scene, direction: str, gap: float) -> tuple[int, Placed]:
    """A picture, and how many of its labels lie over something."""
    from graphlay import Graph, layout

    graph = Graph()
    for vertex in scene.vertices:
        width = max(12, len(vertex.name) + 1) * _CHARACTER + _PADDING
        graph.node(vertex.name, width=width, height=_HEIGHT, shape="box")
    for tail, head in scene.edges:
        graph.edge(tail, head)
    options = {
        "direction": direction,
        "routing": {"style": "diagonal", "port_sides": "facing_only"},
        "spacing": {"layer_gap": gap, "node_gap": 26.0, "dummy_gap": 22.0},
        "coords": {"branch_style": "straight_main"},
    }
    answer: dict[str, Any] = layout(graph, preset="layered", options=options).to_dict()
    lines = [[(p["x"], p["y"]) for p in edge["points"]] for edge in answer["edges"]]
    boxes = [
        Box(n["center"]["x"], n["center"]["y"], n["size"]["width"], n["size"]["height"])
        for n in answer["nodes"]
    ]
    xs = [b.x + s * b.width / 2 for b in boxes for s in (-1, 1)]
    xs += [x for line in lines for x, _ in line]
    ys = [b.y + s * b.height / 2 for b in boxes for s in (-1, 1)]
    ys += [y for line in lines for _, y in line]
    left, top = min(xs) - _MARGIN, min(ys) - _MARGIN
    moved = tuple(Box(b.x - left, b.y - top, b.width, b.height) for b in boxes)
    box_of = {v.name: box for v, box in zip(scene.vertices, moved, strict=True)}
    shape = {v.name: theme(False).roles[v.role].shape for v in scene.vertices}
    bent = []
    for (tail, head), line in zip(scene.edges, lines, strict=True):
        points = [(x - left, y - top) for x, y in line]
        points[0] = meet(shape[tail], box_of[tail], points[1], points[0])
        points[-1] = meet(shape[head], box_of[head], points[-2], points[-1])
        bent.append(rounded(points, 24.0))
    conflicts, labels = 0, tuple(point_at(line, length(line) / 2) for line in bent)
    if len(bent) <= _HUGE:
        chosen = place_labels(bent, [LABEL] * len(bent), moved)
        conflicts = len(chosen.conflicts)
        labels = tuple((b.x, b.y) for b in chosen.boxes if b is not None)
    return conflicts, Placed(
        moved,
        tuple(shortened(line, _ARROW) for line in bent),
        tuple(line[-1] for line in bent),
        labels,
        max(xs) - left + _MARGIN,
        max(ys) - top + _MARGIN,
        direction == "leftright",
    )


def drawing_data(found: Placed) -> dict[str, Any]:
    """The same as plain data, rounded to a tenth of a unit."""

    def near(point: Point) -> list[float]:
        return [round(point[0], 1), round(point[1], 1)]

    return {
        "boxes": [[round(v, 1) for v in (b.x, b.y, b.width, b.height)] for b in found.boxes],
        "lines": [[near(p) for p in line] for line in found.lines],
        "tips": [near(p) for p in found.tips],
        "labels": [near(p) for p in found.labels],
        "pill": round(pill_radius(found.boxes[0]), 1),
        "width": round(found.width, 1),
        "height": round(found.height, 1),
        "across": found.across,
    }
