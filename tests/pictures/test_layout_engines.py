"""Layout engines: the built-in layout, dagre, and pictures where libraries do not exist."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain, combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgprimer.visualization import pages
from cgprimer.visualization.diagrams.dagre_layout import create_dagre_engine
from cgprimer.visualization.diagrams.diagram import Diagram, Edge, Node
from cgprimer.visualization.diagrams.geometry import Box, Point, sample_line
from cgprimer.visualization.diagrams.graphlay_layout import lay_out_with_graphlay
from cgprimer.visualization.diagrams.layered_layout import lay_out_layers
from cgprimer.visualization.diagrams.layout_requests import (
    LayoutAnswer,
    LayoutEngine,
    LayoutRequest,
)
from cgprimer.visualization.diagrams.svg_pictures import render_svg

SVG = "image/svg+xml"
_MISSING = ("graphlay", "llvmlite", "matplotlib", "numpy", "pyarrow", "scipy", "sympy", "networkx")
_START = f"import sys\nfor name in {_MISSING}: sys.modules[name] = None\n"
_SCALAR_GRAPHS = """
import json, cgprimer
from cgprimer.visualization.diagrams.diagram_formats import format_diagram
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
graph = cgprimer.load("lecture")
print(json.dumps({
    "gradient": cgprimer.gradient(graph),
    "methods": len(cgprimer.compare(graph).results),
    "cell": sorted(cgprimer.step(graph)._repr_mimebundle_()),
    "picture": graph._repr_mimebundle_(),
    "dot": format_diagram(graph_diagram(graph, adjoints=True), "dot"),
    "c": cgprimer.export(graph, "c"),
}))
"""


@st.composite
def requests(draw: st.DrawFn) -> LayoutRequest:
    """Draw an acyclic graph with sizes and labels; all vertices but the first have edges."""
    length = st.floats(4, 160)
    n = draw(st.integers(1, 14))
    edges = []
    for head in range(1, n):
        tails = draw(st.lists(st.integers(0, head - 1), min_size=1, max_size=4, unique=True))
        edges += [(tail, head) for tail in tails]
    label = st.none() | st.tuples(length, length)
    return LayoutRequest(
        tuple(draw(st.tuples(length, length)) for _ in range(n)),
        tuple(edges),
        tuple(draw(label) for _ in edges),
        layer_gap=draw(st.floats(10, 60)),
        node_gap=draw(st.floats(2, 30)),
        edge_gap=draw(st.floats(6, 30)),
        down=draw(st.booleans()),
        symmetric=draw(st.booleans()),
    )


def contains(box: Box, point: Point, margin: float = 0.01) -> bool:
    """Return whether a point is inside a box, but not on its outline."""
    across, along = abs(point[0] - box.x), abs(point[1] - box.y)
    return across < box.width / 2 - margin and along < box.height / 2 - margin


def check_readable(request: LayoutRequest, answer: LayoutAnswer) -> None:
    """Check that no vertices overlap, ranks increase along edges, and edges avoid vertices."""
    boxes = [Box(*c, *s) for c, s in zip(answer.centers, request.sizes, strict=True)]
    gap = min(request.node_gap, request.layer_gap, 2 * request.edge_gap)
    for number, a in enumerate(boxes):
        for b in boxes[:number]:
            across = abs(a.x - b.x) - (a.width + b.width) / 2
            along = abs(a.y - b.y) - (a.height + b.height) / 2
            assert max(across, along) >= gap - 1e-6
    for (tail, head), route in zip(request.edges, answer.routes, strict=True):
        assert (answer.ranks[tail] or 0) < (answer.ranks[head] or 0)
        axis = 1 if request.down else 0
        sides = (boxes[tail], 1, route[0]), (boxes[head], -1, route[-1])
        for box, sign, end in sides:  # an edge starts and ends on the sides that face each other
            half, center = ((box.width, box.height)[axis] / 2, (box.x, box.y)[axis])
            assert end[axis] == pytest.approx(center + sign * half)
            assert not contains(box, end)
            assert contains(box, end, -0.01)
        crossed = [p for p in sample_line(route, 2.0) if any(contains(b, p) for b in boxes)]
        assert crossed == []


@settings(max_examples=60, deadline=None)
@given(requests())
def test_the_built_in_layout_is_readable_and_deterministic(request: LayoutRequest) -> None:
    answer = lay_out_layers(request)
    check_readable(request, answer)
    assert lay_out_layers(request) == answer


@pytest.fixture(scope="module")
def dagre() -> Iterator[LayoutEngine]:
    """Yield dagre, which runs in node."""
    if (node := shutil.which("node")) is None:
        pytest.skip("node is not installed")
    folder = Path(pages.__file__).parent
    files = [folder / "vendor" / "dagre.min.js", folder / "dagre_layout.js"]
    script = "".join(file.read_text(encoding="utf-8") + "\n" for file in files) + (
        'require("readline").createInterface({ input: process.stdin })'
        '.on("line", (line) => console.log(layOutWithDagre(line)));'
    )
    command = [node, "-e", script]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        sent, received = process.stdin, process.stdout
        assert sent is not None
        assert received is not None

        def lay_out(text: str) -> str:
            sent.write(text + "\n")
            sent.flush()
            return received.readline()

        yield create_dagre_engine(lay_out)
        process.kill()


@pytest.mark.parametrize("down", [False, True])
def test_all_engines_lay_out_the_same_request(dagre: LayoutEngine, down: bool) -> None:
    edges = ((0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (1, 4), (3, 4), (5, 4))
    sizes = ((40, 30), (60, 30), (90, 60), (90, 30), (80, 50), (30, 30))
    request = LayoutRequest(sizes, edges, ((20, 10),) * len(edges), down=down)
    ranks = []
    for engine in (lay_out_with_graphlay, lay_out_layers, dagre):
        answer = engine(request)
        check_readable(request, answer)
        ranks.append(answer.ranks)
    assert ranks == [(0, 1, 2, 3, 4, 3)] * 3


def test_scalar_graphs_need_no_installed_library() -> None:
    """`tests/playground/test_playground_archives.py` runs traces, pages and other exports."""
    command = [sys.executable, "-c", _START + _SCALAR_GRAPHS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    assert result["gradient"] == {"ab": 5.671875, "bc": 5.671875, "cd": 0.25, "ac": 11.34375}
    assert result["methods"] >= 5
    assert result["cell"] == ["text/html", "text/plain"]
    texts = [element.text for element in ElementTree.fromstring(result["picture"][SVG])]
    names = [text for text in texts if text and text.startswith("x")]
    assert names == ["xa", "xx", "xa^2", "xy", "xz", "xw"]
    assert "5.671875" in result["dot"]
    assert "double" in result["c"]
    assert done.stderr.count("graphlay is not installed") == 1


def test_texts_cannot_leave_a_picture() -> None:
    label = "</text><script>&\"'"
    nodes = (Node("a", label, "input", (label,)), Node("b", "b", "output"))
    root = ElementTree.fromstring(render_svg(Diagram(nodes, (Edge("a", "b", label),))))
    assert [element.text for element in root].count(label) == 3
    assert label in root.get("aria-label", "")


@pytest.mark.parametrize(("down", "distance"), [(False, 40 + 100 + 60), (True, 20 + 10 + 60)])
def test_layers_leave_room_for_labels(down: bool, distance: float) -> None:
    request = LayoutRequest(((40, 20),) * 2, ((0, 1),), ((100, 10),), label_gap=30, down=down)
    start, end = lay_out_layers(request).centers
    assert end[down] - start[down] == distance


@pytest.mark.parametrize("seed", range(5))
def test_trees_are_drawn_without_crossings(seed: int) -> None:
    heads = [[*range(27, 36)] * 3, [*range(36, 39)] * 3, [39] * 3]
    for part in heads:
        random.Random(seed).shuffle(part)
    edges = tuple(enumerate(chain(*heads)))
    ys = [y for _, y in lay_out_layers(LayoutRequest(((9, 9),) * 40, edges, (None,) * 39)).centers]
    layers = [edges[:27], edges[27:36], edges[36:]]
    pairs = (pair for layer in layers for pair in combinations(layer, 2))
    assert not [1 for (a, b), (c, d) in pairs if (ys[a] - ys[c]) * (ys[b] - ys[d]) < 0]


def test_pictures_without_graphlay_are_drawn_with_a_note(tmp_path: Path) -> None:
    program = f"{_START}from cgprimer.__main__ import main; main()"
    command = [sys.executable, "-c", program, "draw", "lecture", "-o", str(tmp_path / "a.tex")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == [
        "note: graphlay is not installed, so graphs are drawn with the built-in layout",
        f"wrote {tmp_path / 'a.tex'}",
    ]
