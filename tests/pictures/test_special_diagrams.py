"""Diagrams of masks, of model parallelism, and of recorded values."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer import Value
from cgprimer.core.derivatives import tape
from cgprimer.training.distributed.layer_cuts import cut
from cgprimer.training.layer_states import Masks
from cgprimer.visualization.diagrams import diagram_figure
from cgprimer.visualization.diagrams.diagram import Diagram
from cgprimer.visualization.diagrams.diagram_figure import draw_diagram
from cgprimer.visualization.diagrams.diagram_options import DiagramOptions
from cgprimer.visualization.diagrams.dropout_diagram import thin_graph
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
from cgprimer.visualization.diagrams.recorded_diagrams import build_recorded_diagram
from tests.cli.cli_tools import bad, good
from tests.pictures.diagram_tools import details, labels_of

DROPOUT = cgprimer.parse(
    "input x[2] = [1, 2]; parameter W[3,2] = [[1, 2], [3, 4], [5, 6]], b[3] = [0, 0, 0],"
    " v[3] = [1, 1, 1]; xz = W @ x + b; xh = dropout(xz, 0.5); xo = v @ xh; output xo"
)

# --- masks of dropout -----------------------------------------------------------------------------


def test_a_dropped_unit_takes_along_its_edges_and_what_leads_to_it_only() -> None:
    diagram = graph_diagram(DROPOUT, mask={"xh": [1, 0, 1]}, values=True)
    assert {n.key for n in diagram.nodes if n.dropped} == {"xz[1]", "xh[1]", "b[1]"}
    assert {(edge.tail, edge.head) for edge in diagram.edges if edge.dropped} == {
        ("x[0]", "xz[1]"), ("x[1]", "xz[1]"), ("b[1]", "xz[1]"), ("xz[1]", "xh[1]"),
        ("xh[1]", "xo"),
    }  # fmt: skip
    shown = details(diagram)
    assert (shown["xh[1]"][-1], shown["xo"][-1]) == ("= 0", "= 22")
    assert thin_graph(DROPOUT, {"xh": [1, 0, 1]}).graph.evaluate({})["xo"] == 5 + 17
    assert "mask of xh: 1 0 1 (1 of 3 units dropped)" in diagram.notes
    assert "dropped" in [text.get_text() for text in draw_diagram(diagram).axes[0].texts]


def test_masks_of_ones_and_zeros_and_partial_influence() -> None:
    every = {node.key for node in graph_diagram(DROPOUT, scalars=True).nodes}
    for mask, expected in (([1, 1, 1], set()), ([0, 0, 0], every - {"xo"})):
        nodes = graph_diagram(DROPOUT, mask={"xh": mask}).nodes
        assert {node.key for node in nodes if node.dropped} == expected
    graph = cgprimer.parse("input x, y; a = x + dropout(y, 0.5); b = y*a; output b")
    diagram = graph_diagram(graph, mask={"a": 0})
    assert [(e.tail, e.head) for e in diagram.edges if e.dropped] == [("y", "a")]
    assert not any(node.dropped for node in diagram.nodes)


def test_a_seed_selects_the_first_mask_of_a_run() -> None:
    leaves = [leaf for leaf in tape(DROPOUT, "masks").leaves if leaf.name.startswith("mask.")]
    for seed in range(4):
        expected = Masks(leaves, seed, "float64").create_stream(0, 0)(1)["mask.xh"][0]
        assert thin_graph(DROPOUT, seed).masks["xh"].tolist() == expected.tolist()


# --- model parallelism ----------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "count"), [("lecture", 3), ("mlp", 2), ("mazur", 2)])
def test_parts_are_those_of_the_cut(name: str, count: int) -> None:
    graph = cgprimer.graph_with_loss(cgprimer.load(name), "squared-error")
    stages = cut(cgprimer.tape(graph), count, graph.definitions, graph.parameters)
    diagram = graph_diagram(cgprimer.load(name), place=f"layers:{count}", loss="squared-error")
    assert len(diagram.parts) == count
    for part, stage in zip(diagram.parts, stages, strict=True):
        computed = {n for n, i in stage.tape.names.items() if i >= len(stage.tape.leaves)}
        assert computed & {*graph.definitions} <= part.keys
    keys = [key for part in diagram.parts for key in part.keys]
    assert sorted(keys) == sorted(node.key for node in diagram.nodes)


def test_edges_between_parts_have_their_messages() -> None:
    diagram = graph_diagram(cgprimer.load("lecture"), place="layers:2")
    first, second = (part.keys for part in diagram.parts)
    crossing = {e for e in diagram.edges if e.tail in first and e.head in second}
    assert crossing
    for edge in diagram.edges:
        has_message = f"{edge.tail} →" in edge.label and "← adjoint" in edge.label
        assert has_message == (edge in crossing)
    graph = cgprimer.parse("input x; a = k*x; b = exp(a); c = m*b + x")
    inputs = labels_of(graph_diagram(graph, place="layers:2"))
    assert "adjoint" not in inputs["x", "c"]  # both parts have their inputs


def test_workers_name_the_frames_and_elements_stay_with_their_array() -> None:
    options: dict[str, Any] = {"place": "layers:2", "workers": ["gpu0", "gpu1"]}
    diagram = graph_diagram(cgprimer.load("mlp"), loss="squared-error", **options)
    assert [part.label.partition(":")[0] for part in diagram.parts] == ["gpu0", "gpu1"]
    assert diagram.notes[0].startswith("gpu0 → gpu1: xh [8]")
    graph = cgprimer.load("matrix_backpropagation")
    arrays, elements = (graph_diagram(graph, place="layers:2", scalars=s) for s in (False, True))
    owner = {key: k for k, part in enumerate(elements.parts) for key in part.keys}
    whole = {key: k for k, part in enumerate(arrays.parts) for key in part.keys}
    assert all(owner[key] == whole[key.partition("[")[0]] for key in owner)


def test_the_command_draws_masks_and_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    good("draw", "dropout", "--mask", "xh=[1,0,1]", "-o", "mask.dot")
    assert "dashed" in Path("mask.dot").read_text(encoding="utf-8")
    good("draw", "mlp", "--place", "layers:2", "--workers", "gpu0,gpu1", "-o", "parts.dot")
    assert "gpu1" in Path("parts.dot").read_text(encoding="utf-8")
    assert "workers" in bad("draw", "lecture", "--workers", "a,b", "-o", "none.svg")


# --- recorded values ------------------------------------------------------------------------------


def diagram_of(shown: Any, **options: Any) -> Diagram:
    """Return the diagram of a recorded value, with the names of variables of the caller."""
    return build_recorded_diagram(shown, sys._getframe(1), DiagramOptions(**options), list(options))


@pytest.mark.parametrize("option", [{"values": False}, {"values": True}, {"at": {}}])
def test_draw_hides_recorded_gradients_if_values_are_chosen(
    option: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Diagram] = []
    monkeypatch.setattr(diagram_figure, "draw_diagram", lambda made, dark: drawn.append(made))
    w = Value(2.0)
    loss = w * w
    loss.backward(retain_graph=True)
    cgprimer.draw(loss)
    cgprimer.draw(loss, **option)
    shown, hidden = map(details, drawn)
    assert shown["w"] == ("= 2", "grad = 4")
    assert hidden["w"] == (() if option == {"values": False} else ("= 2",))


def test_recorded_gradients_are_summed_over_passes() -> None:
    a, w1, w2, w3 = (Value(v, requires_grad=False) for v in (2.0, 3.0, -1.0, 0.5))
    w4 = Value(4.0)
    b, c = w1 * a, w2 * a
    d = w3 * b + w4 * c
    loss = 10.0 - d
    loss.backward(retain_graph=True)
    made = diagram_of(loss)
    shown = details(made)
    assert shown["w4"] == ("= 4", "grad = 2")
    assert shown["loss"] == ("10 - d", "= 15", "grad = 1")
    assert shown["c"] == ("= -2", "no gradient")
    assert made.notes == ()
    loss.backward(retain_graph=True)
    again = diagram_of(loss)
    assert details(again)["w4"] == ("= 4", "grad = 4", "sum of 2 passes")
    assert "(w4); zero_grad() resets them" in again.notes[0]
    chain = diagram_of(loss.grad_fn)
    assert [(n.label, n.role) for n in chain.nodes] == [
        ("Sub", "seed"), ("Add", "adjoint"), ("Mul", "adjoint"), ("AccumulateGrad", "gradient"),
        *[("None", "constant")] * 3,
    ]  # fmt: skip
    assert details(chain)["AccumulateGrad"] == ("w4", "grad = 4", "sum of 2 passes")
    w4.zero_grad()
    assert details(diagram_of(loss))["w4"] == ("= 4",)


def test_recorded_arrays_overlays_and_nodes() -> None:
    w, b = Value(np.linspace(0, 1, 25), name="w"), Value([1.0, 2.0], name="b")
    y = np.sin(3.0 * w).sum() + (b * b).sum()
    for _ in range(3):
        y.backward(retain_graph=True)
    made = details(diagram_of(y))
    w_lines = ("≈ [0, 0.04167, …]", "norm ≈ 2.917", "grad", "≈ [9, 8.93, …]", "norm ≈ 31.74")
    assert made["w [25]"] == (*w_lines, "sum of 3 passes")
    assert made["b [2]"] == ("= [1, 2]", "grad = [6, 12]", "sum of 3 passes")
    a = Value(2.0)
    z = a * a + a
    assert {*labels_of(diagram_of(z, adjoints=True)).values()} >= {"1 × 4 = 4", "1 × 1 = 1"}
    assert cgprimer.draw(cgprimer.record(lambda a: a * a, 2.0), values=True).axes
    exp, multiply = cgprimer.primitive(np.exp), cgprimer.primitive(np.multiply)
    figure = cgprimer.draw(exp(multiply(cgprimer.Node(1.5, name="z"), -1.0)))
    texts = " ".join(text.get_text() for text in figure.axes[0].texts)
    assert re.search(r"\bz\b.*\bexp\b", texts)
