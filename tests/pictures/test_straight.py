"""Networks, chains and paths: straight edges, natural order, and text of a readable size."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

import cgprimer
from cgprimer.visualization.diagrams.diagram import Diagram
from cgprimer.visualization.diagrams.diagram_figure import draw_diagram
from cgprimer.visualization.diagrams.geometry import Box, Point
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
from cgprimer.visualization.diagrams.slide_layout import SlideLayout, slide_layout
from cgprimer.visualization.diagrams.theme import READABLE_SIZE
from tests.approval import refused
from tests.cli.cli_tools import good
from tests.pictures.drawing_graphs import overlaps

ELEMENTS = {"scalars": "all"}
FULL = "input x[3]; parameter W[2,3], v[2]; xh = sigmoid(W @ x); xo = v @ xh"


def bent(picture: SlideLayout) -> int:
    """How many edges are not straight."""
    return sum(len(route) > 2 for route in picture.layout.routes)


def crossings(picture: SlideLayout) -> int:
    """How many pairs of straight edges cross."""

    def side(a: Point, b: Point, c: Point) -> float:
        return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])

    def cross(first: tuple[Point, ...], second: tuple[Point, ...]) -> bool:
        (a, b), (c, d) = first, second
        return side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0

    return sum(cross(a, b) for a, b in combinations(picture.layout.routes, 2))


def columns(picture: SlideLayout) -> list[list[str]]:
    """Vertices that stand under each other, from the left, each column from the top."""
    found: list[list[tuple[Box, str]]] = []
    for key, box in sorted(picture.layout.boxes.items(), key=lambda item: item[1].x):
        if found and box.x - box.width / 2 < max(b.x + b.width / 2 for b, _ in found[-1]):
            found[-1].append((box, key))
        else:
            found.append([(box, key)])
    return [[key for _, key in sorted(column, key=lambda c: c[0].y)] for column in found]


def check_apart(picture: SlideLayout) -> None:
    """No vertex or label touches another one."""
    shown = [*picture.layout.boxes.values(), *filter(None, picture.labels.boxes)]
    assert not [pair for pair in combinations(shown, 2) if overlaps(*pair)]


@pytest.mark.parametrize(
    ("graph", "settings", "fewest"),
    [
        (cgprimer.load("two_layers"), {}, 6),  # of two full layers: each pair of inputs once
        (cgprimer.load("two_layers"), ELEMENTS, 6),
        (cgprimer.parse(FULL), ELEMENTS, 3),
        (cgprimer.load("mazur"), {}, None),
    ],
)
def test_a_network_has_straight_edges(
    graph: cgprimer.ExpressionGraph, settings: dict, fewest: int | None
) -> None:
    picture = slide_layout(graph_diagram(graph, **settings))
    assert bent(picture) == 0
    assert picture.captions.smallest_text >= READABLE_SIZE
    check_apart(picture)
    if fewest is not None:
        assert crossings(picture) == fewest


@pytest.mark.parametrize("name", ["softmax", "dropout", "batch_normalization"])
@pytest.mark.parametrize("values", [False, True])
def test_elements_stand_in_their_natural_order(name: str, values: bool) -> None:
    graph = cgprimer.load(name)
    picture = slide_layout(graph_diagram(graph, scalars="all", values=values))
    for column in columns(picture):
        for base in {key.partition("[")[0] for key in column if "[" in key}:
            elements = [key for key in column if key.partition("[")[0] == base]
            assert elements == sorted(elements)
    check_apart(picture)


def test_a_long_chain_goes_over_several_rows() -> None:
    graph = cgprimer.load("batch_normalization")
    for settings in ({}, {"values": True}):
        picture = slide_layout(graph_diagram(graph, level="operations", **settings))
        assert picture.captions.smallest_text >= READABLE_SIZE
        assert bent(picture) == 1  # the edge from one row to the next
        check_apart(picture)


@pytest.mark.parametrize("settings", [{}, {"values": True}, {"backward_arrows": True}])
def test_adjoints_of_the_lecture_keep_their_distance(settings: dict) -> None:
    picture = slide_layout(graph_diagram(cgprimer.load("lecture"), adjoints=True, **settings))
    assert picture.captions.smallest_text >= READABLE_SIZE - 0.5
    assert (picture.labels.touching, picture.labels.covering) == (0, 0)
    check_apart(picture)
    near = picture.layout.boxes["xy"]
    around = Box(near.x, near.y, near.width + 60, near.height + 60)
    touching = [box for box in picture.labels.boxes if box and overlaps(box, around)]
    assert len(touching) <= 4
    assert not [pair for pair in combinations(touching, 2) if overlaps(*pair, gap=2.0)]


def test_labels_of_matrices_are_short() -> None:
    diagram = graph_diagram(cgprimer.load("matrix_backpropagation"), adjoints=True)
    picture = slide_layout(diagram)
    assert picture.captions.smallest_text >= READABLE_SIZE
    assert not any("transpose" in line or "less(" in line
                   for lines in picture.label_texts for line in lines)  # fmt: skip
    for edge, lines in zip(diagram.edges, picture.label_texts, strict=True):
        assert lines[0] == edge.label.partition("\n")[0]  # the formula is one line
    check_apart(picture)


def deep(everything: bool = False) -> Diagram:
    """A network of 5-5-5-1 units, written out in numbers."""
    graph = cgprimer.networks.mlp("5-5-5-1")
    return graph_diagram(graph, scalars="all", everything=everything)


def test_a_network_that_is_too_large_is_drawn_as_stacks() -> None:
    short = deep()
    assert short.summary
    assert [node.count for node in short.nodes if node.role in ("input", "inner")] == [5, 5, 5]
    picture = slide_layout(short)
    assert picture.captions.smallest_text >= READABLE_SIZE
    figure = draw_diagram(short)
    outlines = len(figure.axes[0].patches)
    assert outlines > len(draw_diagram(deep(True)).axes[0].patches) / 9  # stacks have three each
    opened = deep(True)
    assert not opened.summary
    assert {node.count for node in opened.nodes} == {1}
    assert {"xh1[0]", "xh2[4]"} <= {node.key for node in opened.nodes}


def heads(diagram: Diagram) -> list[Point]:
    """The tips of all arrows, from the left."""
    picture, figure = slide_layout(diagram), draw_diagram(diagram)
    ends = {point for line in picture.layout.lines for point in (line[0], line[-1])}
    tips = [tuple(patch.get_xy()[0]) for patch in figure.axes[0].patches
            if hasattr(patch, "get_xy") and len(getattr(patch, "_path", ())) == 4]  # fmt: skip
    return sorted(tip for tip in tips if tip in ends)


def test_arrows_of_a_backward_pass_point_backwards() -> None:
    graph = cgprimer.parse("input xa = 3; xb = 2*xa; xw = xb^2")
    diagram = graph_diagram(graph, adjoints=True, backward_arrows=True)
    boxes = slide_layout(diagram).layout.boxes
    for tip, key in zip(heads(diagram), ("xa", "xb"), strict=True):
        assert tip[0] == pytest.approx(boxes[key].x + boxes[key].width / 2, abs=1)
    backward = graph_diagram(graph, level="backward", backward_arrows=True)
    places = {n.label: slide_layout(backward).layout.boxes[n.key].x for n in backward.nodes}
    assert places["bar_xa"] < places["bar_xb"] < places["bar_xw"]
    with refused(cgprimer.UsageError):
        graph_diagram(graph, backward_arrows=True)


@pytest.mark.parametrize("ending", ["dot", "mmd", "tex"])
def test_texts_point_backwards(ending: str, tmp_path: Path) -> None:
    given = ("draw", "olah", "--adjoints", "-o")
    good(*given, tmp_path / f"a.{ending}")
    good(*given, tmp_path / f"b.{ending}", "--backward-arrows")
    forward, backward = ((tmp_path / f"{k}.{ending}").read_text() for k in "ab")
    assert forward != backward
    assert len(forward.splitlines()) == len(backward.splitlines())


# --- from Python ----------------------------------------------------------------------------------


def test_draw_writes_a_file(tmp_path: Path) -> None:
    graph = cgprimer.load("lecture")
    figure = cgprimer.draw(graph, tmp_path / "a.png", at={"xa": 1})
    assert type(figure).__name__ == "Figure"
    assert (tmp_path / "a.png").read_bytes()[1:4] == b"PNG"
    cgprimer.draw(graph, str(tmp_path / "a.dot"))
    assert (tmp_path / "a.dot").read_text().startswith("//") or "digraph" in (
        tmp_path / "a.dot"
    ).read_text()


@pytest.mark.parametrize("output", ["a.docx", "no/such/folder/a.png", {"xa": 1}, 3])
def test_draw_explains_what_it_cannot_write(output: object) -> None:
    with pytest.raises(cgprimer.UsageError):
        cgprimer.draw(cgprimer.load("lecture"), output)


def test_all_scalars_in_python_are_those_of_the_command() -> None:
    graph = cgprimer.load("dropout")
    assert graph_diagram(graph, scalars="all") == graph_diagram(graph, scalars=True)
    named = cgprimer.parse("input all[2]; xw = sum(all)")
    assert "all[0]" in {node.key for node in graph_diagram(named, scalars="all").nodes}


def test_nodes_are_drawn() -> None:
    import numpy as np

    exp, multiply = cgprimer.primitive(np.exp), cgprimer.primitive(np.multiply)
    z = cgprimer.Node(1.5, name="z")
    figure = cgprimer.draw(exp(multiply(z, -1.0)))
    texts = {text.get_text() for text in figure.axes[0].texts}
    assert "z" in texts
    assert any("exp" in text for text in texts)
    assert cgprimer.draw(cgprimer.Node(3.0, name="k")).axes
