"""Where the vertices of the page's picture stand: layers downwards or to the right.

The picture shares the screen with a table and a program, so its vertices are small (a name, a
value, a derivative) and it takes the direction in which its text comes out larger.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cgprimer.drawing.layout import Box, Point
from cgprimer.drawing.routes import length, point_at, rounded, shortened
from cgprimer.stepping.scene import Scene

LETTER = 18.0  #: size of the picture's text, in its own units
_CHARACTER = 0.62 * LETTER
_HEIGHT = 4.2 * LETTER
_PADDING = 26.0
_MARGIN = 26.0  # holds the mark beside a vertex that is lit
_ARROW = 9.0


@dataclass(frozen=True, slots=True)
class Placed:
    """A picture without ink; lengths in units of which a letter has ``LETTER``, y downwards.

    `boxes` has one box per vertex, `lines` one polyline per edge, which ends where its arrow head
    begins; `tips` where the head ends; `labels` where an edge's number stands.
    """

    boxes: tuple[Box, ...]
    lines: tuple[tuple[Point, ...], ...]
    tips: tuple[Point, ...]
    labels: tuple[Point, ...]
    width: float
    height: float


def placed(scene: Scene, aspect: float = 1.0) -> Placed:
    """Lay a scene out for a pane whose width over height is ``aspect``.

    >>> import cgprimer
    >>> from cgprimer.stepping.scene import scene
    >>> found = placed(scene(cgprimer.tape(cgprimer.parse("xw = cd*xa")), "xw", ["cd"]))
    >>> len(found.boxes), len(found.lines)
    (3, 2)
    """
    found = [_placed(scene, direction) for direction in ("topbottom", "leftright")]
    return max(found, key=lambda p: min(aspect / p.width, 1 / p.height))


def _placed(scene: Scene, direction: str) -> Placed:
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
        "spacing": {"layer_gap": 66.0, "node_gap": 26.0, "dummy_gap": 22.0},
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
    bent = [rounded([(x - left, y - top) for x, y in line], 24.0) for line in lines]
    return Placed(
        tuple(Box(b.x - left, b.y - top, b.width, b.height) for b in boxes),
        tuple(shortened(line, _ARROW) for line in bent),
        tuple(line[-1] for line in bent),
        tuple(point_at(line, length(line) * (0.35 + 0.3 * (k % 2))) for k, line in enumerate(bent)),
        max(xs) - left + _MARGIN,
        max(ys) - top + _MARGIN,
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
        "width": round(found.width, 1),
        "height": round(found.height, 1),
    }
