"""Layouts: nothing overlaps, text can be read, and every format draws what the layout says."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.visualization.diagrams.diagram import Diagram, Edge, Node, Role
from cgprimer.visualization.diagrams.diagram_figure import draw_diagram
from cgprimer.visualization.diagrams.geometry import Box, Point, sample_line
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
from cgprimer.visualization.diagrams.layer_summary import READABLE, is_readable, summarize
from cgprimer.visualization.diagrams.part_frames import format_header_lines
from cgprimer.visualization.diagrams.slide_layout import SlideLayout, slide_layout
from cgprimer.visualization.diagrams.text_layout import round_results, wrap_expression
from cgprimer.visualization.diagrams.theme import DETAIL_SIZE, READABLE_SIZE
from tests.pictures.diagram_tools import F1, check_texts, load
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
FULL = "input x[3]; parameter W[2,3], v[2]; xh = sigmoid(W @ x); xo = v @ xh"
# Examples, their options, and the size in points of the smallest text on a slide.
EXAMPLES: list[tuple[str, dict[str, Any], float]] = [
    ("lecture", {"values": True}, READABLE_SIZE),
    ("lecture", {"path": "xa xx xz xw", "values": True}, READABLE_SIZE),
    ("lecture", {"adjoints": True, "values": True}, READABLE_SIZE - 0.5),
    ("lecture", {"adjoints": True, "backward_arrows": True}, READABLE_SIZE - 0.5),
    ("mlp", {"place": "layers:2", "loss": "squared-error"}, 8.0),
    ("mazur", {"values": True}, 13.0),
    ("baydin", {"level": "operations", "values": True}, READABLE_SIZE),
    ("batch_normalization", {"level": "operations"}, READABLE_SIZE),
    ("matrix_backpropagation", {"adjoints": True}, READABLE_SIZE),
    ("dropout", {"scalars": "all", "values": True}, 8.0),
    (F1, {"values": True}, READABLE_SIZE),
    (F1, {"partials": True}, 8.0),
]


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


def network(*widths: int, labels: bool = False) -> Diagram:
    """Return layers of vertices, each connected to all vertices of the next layer."""
    layers = [[f"x{'abcd'[n]}{k}" for k in range(width)] for n, width in enumerate(widths)]
    nodes = [Node(name, name, "inner") for layer in layers for name in layer]
    edges = [
        Edge(tail, head, f"w{tail}{head}" * labels)
        for first, second in pairwise(layers)
        for head in second
        for tail in first
    ]
    return Diagram(tuple(nodes), tuple(edges))


def overlaps(box: Box, other: Box) -> bool:
    across = abs(box.x - other.x) * 2 < box.width + other.width
    return across and abs(box.y - other.y) * 2 < box.height + other.height


def contains(box: Box, point: Point) -> bool:
    return overlaps(box, Box(*point, 0.0, 0.0))


def check_layout(diagram: Diagram) -> None:
    """Check that nothing overlaps, and that edges lead from outline to outline."""
    picture = slide_layout(diagram)
    boxes, labels = picture.layout.boxes, [box for box in picture.labels.boxes if box is not None]
    for one, other in combinations([*boxes.values(), *labels], 2):
        assert not overlaps(one, other), (one, other)
    assert picture.labels.touching == 0
    assert len(labels) == sum(bool(edge.label) for edge in diagram.edges)
    for edge, line in zip(diagram.edges, picture.layout.lines, strict=True):
        points = sample_line(line, 2.0)
        for key, box in boxes.items():
            if key not in (edge.tail, edge.head):
                assert not any(contains(box, point) for point in points), (edge, key)
        for key, end in ((edge.tail, line[0]), (edge.head, line[-1])):
            box = boxes[key]
            assert contains(Box(box.x, box.y, box.width + 1, box.height + 1), end)
        head = boxes[edge.head]  # a tip at a corner could point to either side
        corners = [(head.x + i * head.width / 2, head.y + j * head.height / 2)
                   for i in (-1, 1) for j in (-1, 1)]  # fmt: skip
        assert min(math.dist(line[-1], corner) for corner in corners) > 5
    for part, frame in zip(diagram.parts, picture.layout.frames, strict=True):
        for box in (boxes[key] for key in part.keys):
            assert abs(box.x - frame.x) + box.width / 2 <= frame.width / 2
            assert abs(box.y - frame.y) + box.height / 2 <= frame.height / 2
    for before, after in pairwise(picture.layout.frames):
        assert before.x + before.width / 2 < after.x - after.width / 2


@settings(max_examples=3)
@given(diagrams())
@example(network(3, 5, 1, labels=True))
def test_nothing_overlaps_in_generated_graphs(diagram: Diagram) -> None:
    check_layout(diagram)


@pytest.mark.parametrize(("graph", "options", "smallest"), EXAMPLES)
def test_examples_can_be_read_and_nothing_overlaps(
    graph: str, options: dict[str, Any], smallest: float
) -> None:
    diagram = graph_diagram(load(graph), **options)
    check_layout(diagram)
    picture = slide_layout(diagram)
    assert picture.captions.smallest_text >= smallest
    for edge, lines in zip(diagram.edges, picture.label_texts, strict=True):
        assert "".join("".join(lines).split()) == "".join(round_results(edge.label).split())


@pytest.mark.parametrize(
    ("name", "options"), [("lecture", {"values": True}), ("two_paths", {"place": "layers:2"})]
)
def test_text_is_inside_the_figure_and_large(name: str, options: dict[str, Any]) -> None:
    diagram = graph_diagram(cgprimer.load(name), title="A title", **options)
    figure = draw_diagram(diagram)
    (axes,) = figure.axes
    check_texts(figure, axes.texts)
    smallest = min(text.get_fontsize() for text in axes.texts)
    width, height = figure.get_size_inches()
    on_slide = smallest * min(13.333 / width, 7.5 / height, 1.0)
    assert smallest == DETAIL_SIZE
    assert slide_layout(diagram).captions.smallest_text == pytest.approx(on_slide, rel=1e-3)


def crossings(picture: SlideLayout) -> int:
    """Return the number of pairs of straight edges that cross."""

    def side(a: Point, b: Point, c: Point) -> float:
        return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])

    def cross(first: tuple[Point, ...], second: tuple[Point, ...]) -> bool:
        (a, b), (c, d) = first, second
        return side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0

    return sum(cross(a, b) for a, b in combinations(picture.layout.routes, 2))


@pytest.mark.parametrize(
    ("graph", "options", "fewest"),
    [("two_layers", {}, 6), ("two_layers", {"scalars": "all"}, 6), (FULL, {"scalars": "all"}, 3)],
)
def test_a_network_has_straight_edges_with_the_fewest_crossings(
    graph: str, options: dict[str, Any], fewest: int
) -> None:
    picture = slide_layout(graph_diagram(load(graph), **options))
    assert all(len(route) == 2 for route in picture.layout.routes)
    assert crossings(picture) == fewest  # each pair of inputs of two full layers once
    assert picture.captions.smallest_text >= READABLE_SIZE


def test_a_long_chain_goes_over_several_rows() -> None:
    chain = graph_diagram(cgprimer.load("batch_normalization"), level="operations", values=True)
    routes = slide_layout(chain).layout.routes
    assert sum(len(route) > 2 for route in routes) == 1  # from one row to the next


def test_vertices_are_ordered_from_left_to_right_and_from_top_to_bottom() -> None:
    for diagram in (graph_diagram(cgprimer.load("lecture")), layers := network(3, 5, 5, 1)):
        boxes = slide_layout(diagram).layout.boxes
        assert all(boxes[e.tail].x < boxes[e.head].x for e in diagram.edges)
    columns = [[boxes[n.key].y for n in layers.nodes if n.key[1] == letter] for letter in "abcd"]
    middles = [sum(column) / len(column) for column in columns]
    assert max(middles) - min(middles) < 1e-6
    nodes = (*(Node(k, k, "inner") for k in "abcd"), Node("p", "p", "parameter"))
    edges = tuple(Edge(*pair) for pair in ("ab", "bc", "cd", "pd"))
    boxes = slide_layout(Diagram(nodes, edges)).layout.boxes
    assert boxes["b"].x < boxes["p"].x < boxes["d"].x  # next to the vertex that it leads to
    elements = cgprimer.parse("input x[3]; xe = exp(x); xs = xe/sum(xe)")
    boxes = slide_layout(graph_diagram(elements, scalars="all")).layout.boxes
    for array in ("x", "xe", "xs"):
        column = [boxes[f"{array}[{k}]"] for k in range(3)]
        assert column[0].x == pytest.approx(column[2].x)
        assert column[0].y < column[1].y < column[2].y


def test_labels_are_next_to_their_own_edges_and_messages_between_frames() -> None:
    graph = cgprimer.parse("xh = tanh(w*xa + v*xb); xi = tanh(q*xa + r*xb); xw = s*xh + t*xi")
    picture = slide_layout(graph_diagram(graph))
    for box, line in zip(picture.labels.boxes, picture.layout.lines, strict=True):
        assert box is not None
        assert min(math.dist((box.x, box.y), point) for point in sample_line(line, 1.0)) < 16
        assert not contains(box, line[-1])
    assert picture.labels.covering == 0
    diagram = graph_diagram(cgprimer.load("two_paths"), place="layers:2")
    picture = slide_layout(diagram)
    left, right = picture.layout.frames
    for edge, box in zip(diagram.edges, picture.labels.boxes, strict=True):
        if box is not None and "adjoint" in edge.label:
            assert box.x - box.width / 2 > left.x + left.width / 2
            assert box.x + box.width / 2 < right.x - right.width / 2


PARTS = ["cd*xx", " + ", "sin(xz)", "/2", "a_long_name*xa", "1.5e-5", " = "]


@given(st.lists(st.sampled_from(PARTS), max_size=20))
def test_wrapping_loses_nothing(parts: list[str]) -> None:
    text = "".join(parts)
    lines = wrap_expression(text)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert not any(re.search(r"\de-?$", line) for line in lines)  # within 1.5e-5


@pytest.mark.parametrize(
    ("text", "limit", "lines"),
    [
        ("a*(-b)", 3, ("a", "*(-b)")),
        ("2**-1 + 1e-5", 4, ("2**-1", "+ 1e-5")),
        ("22.688 × 0.25 = 5.6719", 14, ("22.688 × 0.25", "= 5.6719")),
        ("22.688 × 0.25 = 5.6719", 7, ("22.688", "× 0.25", "= 5.6719")),
        ("∂xw/∂xz = 22.688", 7, ("∂xw/∂xz", "= 22.688")),
        ("v1 = ab*xx", 18, ("v1 = ab*xx",)),
    ],
)
def test_lines_break_at_equals_signs_and_before_operators(
    text: str, limit: int, lines: tuple[str, ...]
) -> None:
    assert wrap_expression(text, limit) == lines


@pytest.mark.parametrize(
    ("text", "rounded"),
    [
        ("= -0.046746235", "≈ -0.046746"), ("= 1.2345678e-7", "≈ 1.2346e-7"),
        ("= 161812500.0", "≈ 1.6181e8"), ("22.6875 × 4 = 90.75", "22.688 × 4 ≈ 90.75"),
        *((t, t) for t in ("0.19661 × (-2) ≈ -0.39322", "= nan", "= -inf", "= 1234567",
                           "v1 = xa*3.14159265", "3.14159265", "3 × 0.5 = 1.5")),
    ],
)  # fmt: skip
def test_results_get_fewer_digits_and_expressions_do_not(text: str, rounded: str) -> None:
    assert round_results(text) == rounded


def test_dense_graphs_are_not_readable() -> None:
    nodes = tuple(Node(str(k), f"x{k}", "inner") for k in range(50))
    chain = tuple(Edge(str(k), str(k + 1)) for k in range(49))
    fan = tuple(Edge(str(k), "49") for k in range(49))
    assert [is_readable(Diagram(nodes, edges)) for edges in ((), chain, fan)] == [True, True, False]


def test_a_summary_counts_every_vertex_and_edges_between_layers() -> None:
    nodes = tuple(Node(str(k), f"x{k}", "inner") for k in range(200))
    edges = tuple(Edge(str(k), str(k + 1)) for k in range(199))
    found = summarize(Diagram(nodes[::-1], edges))
    assert sum(int(n.label.split()[0]) for n in found.nodes) == 200
    assert [e.label for e in found.edges] == ["1"] * (len(found.nodes) - 1)
    constants = tuple(Node(str(k), str(k), "constant") for k in range(200))
    assert summarize(Diagram(constants, edges)).nodes[0].detail[1] == "0, 1, 2, …"
    small = Diagram(nodes[:READABLE], ())
    assert summarize(small) is small


@pytest.mark.slow
@pytest.mark.parametrize("level", ["variables", "operations", "backward"])
def test_a_summary_can_be_read_and_says_what_it_omits(level: str) -> None:
    lines = [f"v{k} = w{k % 7}*v{k - 1}*v{k - 5} + sin(v{k - 12})" for k in range(12, 292)]
    graph = cgprimer.parse([f"input {', '.join(f'v{k}' for k in range(12))}", *lines])
    picture = slide_layout(diagram := graph_diagram(graph, level=level))
    assert picture.captions.smallest_text >= 12
    assert picture.labels.touching == 0
    assert "summarized by layers" in diagram.notes[0]
    if level == "variables":
        point = dict.fromkeys((*graph.inputs, *graph.parameters), 0.5)
        adjoints = graph_diagram(graph, at=point, adjoints=True)
        assert any("the summary omits" in note for note in adjoints.notes)
        assert len(graph_diagram(graph, at=point, everything=True).nodes) >= 280


@pytest.mark.slow
def test_a_network_that_is_too_large_is_summarized_as_stacks() -> None:
    graph = cgprimer.networks.mlp("5-5-5-1")
    short = graph_diagram(graph, scalars="all")
    assert [node.count for node in short.nodes if node.role in ("input", "inner")] == [5, 5, 5]
    assert slide_layout(short).captions.smallest_text >= READABLE_SIZE
    opened = graph_diagram(graph, scalars="all", everything=True)
    assert [short.summary, opened.summary] == [True, False]
    assert {node.count for node in opened.nodes} == {1}


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
    for part, frame, wanted_frame in zip(diagram.parts, drawn.frames, layout.frames, strict=True):
        name = format_header_lines(part)[0]
        assert any(
            name in text
            and abs(x - frame.x) <= frame.width / 2
            and 0 <= y - frame.y + frame.height / 2 <= 40
            for text, (x, y) in drawn.texts
        )
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
    check(graph_diagram(load(graph), **options), kind, tmp_path)
