"""Pictures of graphs: nothing overlaps, nothing is cut, nothing changes between runs."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

import cgprimer
from cgprimer.visualization.diagrams.diagram import Diagram, Edge, Node
from cgprimer.visualization.diagrams.diagram_figure import draw_diagram
from cgprimer.visualization.diagrams.geometry import Box, sample_line
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
from cgprimer.visualization.diagrams.slide_layout import slide_layout
from cgprimer.visualization.diagrams.text_layout import wrap_expression
from cgprimer.visualization.diagrams.theme import theme
from tests.pictures import drawing_graphs as graphs
from tests.pictures.drawing_graphs import contains, overlaps

each_graph = pytest.mark.parametrize(
    "diagram",
    [
        pytest.param(diagram, id=name, marks=[pytest.mark.slow] * (name == "labelled-network"))
        for name, diagram in graphs.ALL.items()
    ],
)


@each_graph
def test_nothing_overlaps_and_edges_lead_from_vertex_to_vertex(diagram: Diagram) -> None:
    picture = slide_layout(diagram)
    boxes = picture.layout.boxes
    labels = [box for box in picture.labels.boxes if box is not None]
    for one, other in itertools.combinations([*boxes.values(), *labels], 2):
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


@pytest.mark.parametrize("name", ["lecture", "network", "scattered-1"])
def test_inputs_stand_left_of_what_they_feed(name: str) -> None:
    diagram = graphs.ALL[name]
    boxes = slide_layout(diagram).layout.boxes
    if name == "scattered-1":  # long graphs are folded into rows, so only most edges go right
        right = sum(boxes[e.tail].x < boxes[e.head].x for e in diagram.edges)
        assert right > 0.8 * len(diagram.edges)
    else:
        assert all(boxes[e.tail].x < boxes[e.head].x for e in diagram.edges)


def test_a_source_stands_next_to_what_it_feeds() -> None:
    nodes = (*(Node(k, k, "inner") for k in "abcd"), Node("p", "p", "parameter"))
    edges = tuple(Edge(*pair) for pair in ("ab", "bc", "cd", "pd"))
    boxes = slide_layout(Diagram(nodes, edges)).layout.boxes
    assert boxes["b"].x < boxes["p"].x < boxes["d"].x


def test_a_network_stands_around_one_middle_line() -> None:
    boxes = slide_layout(graphs.network(4, 8, 1)).layout.boxes
    middles = [
        sum(boxes[f"{layer}.{k}"].y for k in range(width)) / width
        for layer, width in enumerate((4, 8, 1))
    ]
    assert max(middles) - min(middles) < 1e-6


@pytest.mark.parametrize("dark", [False, True])
def test_text_is_inside_its_shape_and_inside_the_figure(dark: bool) -> None:
    diagram = graphs.lecture()
    figure = draw_diagram(diagram, dark=dark)
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    renderer = FigureCanvasAgg(figure).get_renderer()
    axes = figure.axes[0]
    to_points = axes.transData.inverted()
    boxes = slide_layout(diagram).layout.boxes
    found = {text.get_text(): text for text in axes.texts}
    for node in diagram.nodes:
        for text in (node.label, *node.detail):
            extent = found[text].get_window_extent(renderer).transformed(to_points)
            box = boxes[node.key]
            assert abs(extent.x0 - box.x) < box.width / 2
            assert abs(extent.x1 - box.x) < box.width / 2
            assert abs(extent.y0 - box.y) < box.height / 2
            assert abs(extent.y1 - box.y) < box.height / 2
            assert found[text].get_fontsize() >= 14
    whole = figure.bbox
    for text in axes.texts:
        extent = text.get_window_extent(renderer)
        assert whole.x0 <= extent.x0 <= extent.x1 <= whole.x1
        assert whole.y0 <= extent.y0 <= extent.y1 <= whole.y1
    assert {style.label for style in theme(dark).roles.values()} & set(found) == {
        "input", "inner variable", "output",
    }  # fmt: skip


def test_text_is_shown_as_written() -> None:
    label, detail = r"$x_1$", r"a_b^2 $\frac{1}{2}$"
    figure = draw_diagram(Diagram((Node("n", label, "inner", (detail,)),), (), title="$$ _^"))
    texts = {text.get_text() for text in figure.axes[0].texts}
    assert {label, detail, "$$ _^"} <= texts
    assert not any(text.get_parse_math() or text.get_usetex() for text in figure.axes[0].texts)


@pytest.mark.parametrize(
    "text",
    [
        "cd*xx + ab*sin(xz) - exp(xy)/2 + a_very_long_name_of_a_parameter*xa - 1.5e-5*xb",
        "+".join(f"w{k}*x{k}" for k in range(300)),
        "averylongname" * 20,
        "f(a,b,c,d,e,f,g,h,i,j,k,l,m,n,o)",
        "",
        "=  -0.25",
    ],
)
def test_wrapping_loses_nothing(text: str) -> None:
    lines = wrap_expression(text)
    assert "".join("".join(lines).split()) == "".join(text.split())
    for line in lines:
        assert not line.endswith(("e", "e-")) or len(lines) == 1


def test_signs_stay_with_what_they_belong_to() -> None:
    assert wrap_expression("a*(-b)", 3) == ("a", "*(-b)")
    assert wrap_expression("2**-1 + 1e-5", 4) == ("2**-1", "+ 1e-5")


def test_an_empty_diagram_is_drawn() -> None:
    assert draw_diagram(Diagram((), (), title="nothing")).axes


def test_a_diagram_refuses_unknown_and_repeated_keys() -> None:
    node = Node("a", "a", "input")
    with pytest.raises(ValueError, match="no node"):
        Diagram((node,), (Edge("a", "b"),))
    with pytest.raises(ValueError, match="two nodes"):
        Diagram((node, node), ())


_DIGEST = """
import hashlib, sys
from pathlib import Path
from tests.pictures import drawing_graphs as graphs
from cgprimer.visualization.diagrams.diagram_figure import draw_diagram
from cgprimer.visualization.diagrams.figure_files import save_figure
for name in ("lecture", "squares"):
    for kind in ("png", "svg", "pdf"):
        path = Path(sys.argv[1], f"{name}.{kind}")
        save_figure(draw_diagram(graphs.ALL[name]), path)
        print(name, kind, hashlib.sha256(path.read_bytes()).hexdigest())
"""


@pytest.mark.slow
def test_the_same_bytes_under_every_hash_seed(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[2])
    answers = {
        subprocess.run(
            [sys.executable, "-c", _DIGEST, str(tmp_path)],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": root},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(answers) == 1
    assert len(answers.pop().splitlines()) == 6


def test_diagrams_need_no_drawing_library() -> None:
    code = (
        "import sys, cgprimer.visualization.diagrams.diagram;"
        "import cgprimer.visualization.diagrams.diagram_figure;"
        "print([n for n in ('matplotlib', 'networkx', 'graphlay') if n in sys.modules])"
    )
    root = str(Path(__file__).parents[2])
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": root}, capture_output=True, check=True, text=True,
    )  # fmt: skip
    assert ran.stdout.strip() == "[]"


@pytest.mark.slow
def test_pyplot_is_never_imported() -> None:
    code = (
        "import sys; from cgprimer.visualization.diagrams.diagram import *;"
        "from cgprimer.visualization.diagrams.diagram_figure import draw_diagram;"
        "import cgprimer; from cgprimer.visualization.diagrams.figure_files import encode_figure;"
        "draw_diagram(Diagram((Node('a', 'a', 'input'),), ()));"
        "line = cgprimer.parse('xw = k*xa + b; parameter k = 3, b = -1');"
        "figures = [cgprimer.plot.surface(line, steps=1, in_3d=deep) for deep in (False, True)];"
        "figures += [cgprimer.plot.swell(depths=[1, 2]), cgprimer.plot.cost('sum', [1, 2])];"
        "[encode_figure(figure, kind) for figure in figures for kind in ('png', 'svg')];"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    root = str(Path(__file__).parents[2])
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": root}, capture_output=True, check=True, text=True,
    )  # fmt: skip
    assert ran.stdout.strip() == "False"


def test_labels_of_a_small_network_stand_on_their_own_edges_only() -> None:
    graph = cgprimer.parse(
        "xh = tanh(w11*xa + w12*xb); xi = tanh(w21*xa + w22*xb); xw = v1*xh + v2*xi"
    )
    picture = slide_layout(graph_diagram(graph))
    for box, line in zip(picture.labels.boxes, picture.layout.lines, strict=True):
        assert box is not None
        assert min(math.dist((box.x, box.y), point) for point in sample_line(line, 1.0)) < 16
        assert not contains(box, line[-1])
    assert picture.labels.touching == 0
    assert picture.labels.covering == 0


@each_graph
def test_no_arrow_head_sits_on_a_corner(diagram: Diagram) -> None:
    layout = slide_layout(diagram).layout
    for edge, line in zip(diagram.edges, layout.lines, strict=True):
        box = layout.boxes[edge.head]
        corners = [
            (box.x + i * box.width / 2, box.y + j * box.height / 2)
            for i in (-1, 1)
            for j in (-1, 1)
        ]
        assert min(math.dist(line[-1], corner) for corner in corners) > 5
