"""Pictures in every format show the vertices, edges, labels and positions of the layout."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.visualization.diagrams.diagram import Diagram, Edge, Node, Role
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
from cgprimer.visualization.diagrams.slide_layout import slide_layout
from tests.pictures.picture_parsers import PARSERS, Picture, distance_to_line, squeeze

ROLES: tuple[Role, ...] = (
    "input", "inner", "output", "parameter", "constant", "operation", "seed", "adjoint", "gradient",
)  # fmt: skip
TEXTS = ("a*b + c", "= 0.25", "50% {y} #", "<b> & |", "sin(x_1^2) - exp(x_1)/2")
OPERATIONS = "input xa = 2; parameter k = 3; xw = sin(xa)*k + xa^2"
LECTURE_GRAPHS: dict[str, tuple[str, dict[str, Any]]] = {
    "lecture": ("lecture", {"values": True}),
    "path": ("two_paths", {"path": "a b d L", "title": "A path"}),
    "operations": (OPERATIONS, {"level": "operations"}),
    "backward pass": ("two_paths", {"adjoints": True, "backward_arrows": True}),
    "dropout": ("dropout", {"mask": 3}),
    "parts": ("lecture", {"place": "layers:2"}),
    "network": ("mazur", {}),
}


@st.composite
def diagrams(draw: st.DrawFn) -> Diagram:
    """A graph with some of everything that a diagram can have, except frames."""
    count = draw(st.integers(2, 6))
    flags = st.sampled_from([False, False, True])
    nodes = tuple(
        Node(
            str(k), f"x_{k}", draw(st.sampled_from(ROLES)),
            tuple(draw(st.lists(st.sampled_from(TEXTS), max_size=2))),
            emphasis=draw(flags), dropped=draw(flags),
        )
        for k in range(count)
    )  # fmt: skip
    pairs = [(tail, head) for head in range(count) for tail in range(head)]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=8, unique=True))
    labels = st.sampled_from(["", "", "ab", "k_1=2\n= 3 · 4"])
    styles = st.sampled_from([{}, {}, {"emphasis": True}, {"dropped": True}])
    edges = tuple(
        Edge(str(tail), str(head), draw(labels), **draw(styles)) for tail, head in sorted(chosen)
    )
    return Diagram(
        nodes, edges, draw(st.sampled_from(["", "A title"])), backward_arrows=draw(flags)
    )


def check_contents(diagram: Diagram, drawn: Picture) -> None:
    """Compare vertices, edges, styles, directions and parts with the diagram."""
    label = {node.key: node.label for node in diagram.nodes}
    assert {v: (d.text, d.bold, d.dashed) for v, d in drawn.vertices.items()} == {
        node.label: (squeeze([node.label, *node.detail]), node.emphasis, node.dropped)
        for node in diagram.nodes
    }
    ends = [(label[e.tail], label[e.head]) for e in diagram.edges]
    wanted = [pair[::-1] if diagram.backward_arrows else pair for pair in ends]
    assert Counter((a.tail, a.head, a.bold, a.dashed) for a in drawn.arrows) == Counter(
        (*pair, e.emphasis, e.dropped) for pair, e in zip(wanted, diagram.edges, strict=True)
    )
    assert drawn.parts == [{label[key] for key in part.keys} for part in diagram.parts]


def check_positions(diagram: Diagram, drawn: Picture) -> None:
    """Compare outlines, lines and labels with the layout, which is moved as a whole."""
    picture = slide_layout(diagram)
    layout = picture.layout
    first = diagram.nodes[0]
    origin = drawn.vertices[first.label].box
    assert origin
    dx, dy = origin.x - layout.boxes[first.key].x, origin.y - layout.boxes[first.key].y
    for node in diagram.nodes:
        box, around = drawn.vertices[node.label].box, layout.boxes[node.key].translate(dx, dy)
        assert box
        drawn_box = (box.x, box.y, box.width, box.height)
        wanted = (around.x, around.y, around.width, around.height)
        assert drawn_box == pytest.approx(wanted, abs=0.11)
    for edge, line, box, lines in zip(
        diagram.edges, layout.lines, picture.labels.boxes, picture.label_texts, strict=True
    ):
        moved = [(x + dx, y + dy) for x, y in (line[::-1] if diagram.backward_arrows else line)]
        arrow = min(
            drawn.arrows,
            key=lambda a: math.dist(a.line[0], moved[0]) + math.dist(a.line[-1], moved[-1]),
        )
        assert arrow.line[0] == pytest.approx(moved[0], abs=0.11)
        assert arrow.line[-1] == pytest.approx(moved[-1], abs=0.11)
        # TikZ rounds the corners of a route itself; the corner is at most 20 points away.
        assert max(distance_to_line(p, moved) for p in arrow.line) < 20
        assert max(distance_to_line(p, arrow.line) for p in moved) < 20
        if box is not None:
            inside = [
                text for text, (x, y) in sorted(drawn.texts, key=lambda t: t[1][1])
                if abs(x - dx - box.x) <= box.width / 2 and abs(y - dy - box.y) <= box.height / 2
            ]  # fmt: skip
            assert squeeze(inside) == squeeze(lines) == squeeze([edge.label])
    for frame, wanted_frame in zip(drawn.frames, layout.frames, strict=True):
        around = wanted_frame.translate(dx, dy)
        found = (frame.x, frame.y, frame.width, frame.height)
        assert found == pytest.approx((around.x, around.y, around.width, around.height), abs=0.11)


def check(diagram: Diagram, kind: str, folder: Path) -> None:
    """Compare a drawn diagram with its layout; programs compute the positions of flowcharts."""
    drawn = PARSERS[kind](diagram, folder)
    check_contents(diagram, drawn)
    if kind in ("dot", "mmd"):
        assert [a.label for a in drawn.arrows] == [squeeze([e.label]) for e in diagram.edges]
    else:
        check_positions(diagram, drawn)


@pytest.mark.parametrize("kind", PARSERS)
@settings(max_examples=6)
@given(diagram=diagrams())
def test_pictures_of_generated_graphs_have_the_geometry_of_the_layout(
    diagram: Diagram, kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    check(diagram, kind, tmp_path_factory.mktemp("pictures"))


@pytest.mark.parametrize("kind", PARSERS)
@pytest.mark.parametrize("name", LECTURE_GRAPHS)
def test_pictures_of_lecture_graphs_have_the_geometry_of_the_layout(
    name: str, kind: str, tmp_path: Path
) -> None:
    graph, options = LECTURE_GRAPHS[name]
    made = cgprimer.parse(graph) if "=" in graph else cgprimer.load(graph)
    check(graph_diagram(made, **options), kind, tmp_path)
