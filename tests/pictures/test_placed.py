"""Graphs with their cut for model parallelism: frames, and what crosses between them."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest

import cgprimer
from cgprimer.errors import UsageError
from cgprimer.training.distributed.layer_cuts import cut
from cgprimer.visualization.diagrams.diagram import Diagram
from cgprimer.visualization.diagrams.diagram_figure import draw_diagram
from cgprimer.visualization.diagrams.diagram_formats import format_diagram
from cgprimer.visualization.diagrams.geometry import Box
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
from cgprimer.visualization.diagrams.slide_layout import slide_layout
from tests.approval import refused
from tests.cli.cli_tools import bad, good

CASES = [("lecture", 2), ("lecture", 3), ("mlp", 2), ("two_paths", 2), ("mazur", 2)]


def placed(name: str, count: int, **more: Any) -> Diagram:
    return graph_diagram(cgprimer.load(name), place=f"layers:{count}", loss="squared-error", **more)


def inside(box: Box, frame: Box) -> bool:
    return (
        abs(box.x - frame.x) + box.width / 2 <= frame.width / 2
        and abs(box.y - frame.y) + box.height / 2 <= frame.height / 2
    )


@pytest.mark.parametrize(("name", "count"), CASES)
def test_parts_are_those_of_the_cut(name: str, count: int) -> None:
    graph = cgprimer.graph_with_loss(cgprimer.load(name), "squared-error")
    stages = cut(cgprimer.tape(graph), count, graph.definitions, graph.parameters)
    diagram = placed(name, count)
    assert len(diagram.parts) == count
    for part, stage in zip(diagram.parts, stages, strict=True):
        computed = {n for n, i in stage.tape.names.items() if i >= len(stage.tape.leaves)}
        assert computed & {*graph.definitions} <= part.keys
    keys = [key for part in diagram.parts for key in part.keys]
    assert sorted(keys) == sorted(node.key for node in diagram.nodes)


@pytest.mark.parametrize(("name", "count"), CASES)
def test_frames_hold_their_vertices_and_are_separate(name: str, count: int) -> None:
    diagram = placed(name, count)
    layout = slide_layout(diagram).layout
    for part, frame in zip(diagram.parts, layout.frames, strict=True):
        assert all(inside(layout.boxes[key], frame) for key in part.keys)
    for before, after in pairwise(layout.frames):
        assert before.x + before.width / 2 < after.x - after.width / 2
    for one, other in combinations(layout.boxes.values(), 2):
        apart = 2 * abs(one.x - other.x) >= one.width + other.width
        assert apart or 2 * abs(one.y - other.y) >= one.height + other.height


@pytest.mark.parametrize(("name", "count"), CASES)
def test_lines_end_at_their_vertices(name: str, count: int) -> None:
    diagram = placed(name, count)
    layout = slide_layout(diagram).layout
    for edge, route in zip(diagram.edges, layout.routes, strict=True):
        for key, (x, y) in ((edge.tail, route[0]), (edge.head, route[-1])):
            box = layout.boxes[key]
            assert abs(x - box.x) <= box.width / 2 + 1
            assert abs(y - box.y) <= box.height / 2 + 1


def test_edges_across_the_cut_say_what_is_sent_and_others_do_not() -> None:
    diagram = placed("lecture", 2)
    first, second = (part.keys for part in diagram.parts)
    assert any(edge.tail in first and edge.head in second for edge in diagram.edges)
    for edge in diagram.edges:
        crosses = edge.tail in first and edge.head in second
        assert (f"{edge.tail} →" in edge.label and "← adjoint" in edge.label) == crosses


def test_labels_of_crossing_edges_stand_between_the_frames() -> None:
    diagram = graph_diagram(cgprimer.load("two_paths"), place="layers:2")
    picture = slide_layout(diagram)
    left, right = picture.layout.frames
    for edge, box in zip(diagram.edges, picture.labels.boxes, strict=True):
        if "adjoint" in edge.label:
            assert box is not None
            assert box.x - box.width / 2 > left.x + left.width / 2
            assert box.x + box.width / 2 < right.x - right.width / 2


def test_an_input_that_both_parts_use_is_not_sent() -> None:
    graph = cgprimer.parse("input x; a = k*x; b = exp(a); c = m*b + x")
    diagram = graph_diagram(graph, place="layers:2")
    (edge,) = (edge for edge in diagram.edges if (edge.tail, edge.head) == ("x", "c"))
    assert "adjoint" not in edge.label


def test_workers_give_their_names_to_the_frames_and_the_messages() -> None:
    diagram = placed("mlp", 2, workers=["gpu0", "gpu1"])
    assert [part.label.partition(":")[0] for part in diagram.parts] == ["gpu0", "gpu1"]
    assert diagram.notes[0].startswith("gpu0 → gpu1: xh [8]")
    texts = [text.get_text() for text in draw_diagram(diagram).axes[0].texts]
    assert "gpu0" in texts
    assert "gpu1" in texts


def test_numbers_of_arrays_stand_with_their_array() -> None:
    graph = cgprimer.load("matrix_backpropagation")
    diagram = graph_diagram(graph, place="layers:2", scalars=True)
    owner = {key: k for k, part in enumerate(diagram.parts) for key in part.keys}
    arrays = graph_diagram(graph, place="layers:2")
    whole = {key: k for k, part in enumerate(arrays.parts) for key in part.keys}
    assert all(owner[key] == whole[key.partition("[")[0]] for key in owner)


def test_formats_of_other_programs_have_frames() -> None:
    diagram = placed("lecture", 2)
    assert format_diagram(diagram, "dot").count('subgraph "cluster part') == 2
    assert format_diagram(diagram, "mmd").count("subgraph part") == 2
    assert format_diagram(diagram, "tex").count("dash dot") == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"place": "layers:99"}, "99 parts"),
        ({"place": "rows:2"}, "rows:2"),
        ({"place": 2}, "2"),
        ({"place": "layers:2", "workers": ["a"]}, "2 parts"),
        ({"place": "layers:2", "workers": ["a", "a"]}, "2 parts"),
        ({"place": "layers:2", "level": "backward"}, "variables"),
        ({"workers": ["a", "b"]}, ""),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], message: str) -> None:
    with refused(UsageError, message):
        graph_diagram(cgprimer.load("lecture"), **settings)


def test_several_outputs_need_a_loss() -> None:
    with refused(UsageError):
        graph_diagram(cgprimer.parse("a = k*x; b = m*x; output a, b"), place="layers:2")


def test_the_command_draws_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    good("draw", "lecture", "--place", "layers:2", "-o", "parts.svg")
    good("draw", "mlp", "--place", "layers:2", "--workers", "gpu0,gpu1", "-o", "workers.pdf")
    assert "workers" in bad("draw", "lecture", "--workers", "a,b", "-o", "none.svg")
