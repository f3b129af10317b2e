"""Diagrams of graphs and of recorded values: what vertices, edges, frames and notes show."""

from __future__ import annotations

import math
import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer import Value
from cgprimer.analysis.element_graph import expand_elements
from cgprimer.core.derivatives import jacobian, tape
from cgprimer.core.graph import parse
from cgprimer.errors import CgprimerError
from cgprimer.support.number_format import format_number
from cgprimer.training.distributed.layer_cuts import cut
from cgprimer.training.layer_states import Masks
from cgprimer.visualization.diagrams import diagram_figure
from cgprimer.visualization.diagrams.backward_graph import build_backward_diagram
from cgprimer.visualization.diagrams.diagram import Diagram, Edge, Node
from cgprimer.visualization.diagrams.diagram_options import DiagramOptions
from cgprimer.visualization.diagrams.dropout_diagram import thin_graph
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
from cgprimer.visualization.diagrams.recorded_diagrams import build_recorded_diagram
from cgprimer.visualization.diagrams.slide_layout import slide_layout
from cgprimer.visualization.diagrams.vertex_sweeps import (
    compute_local_jacobians,
    compute_sweep_numbers,
    run_backward_sweep,
)
from tests.approval import approved, lines_with_values
from tests.cli.cli_tools import bad, good
from tests.pictures.diagram_tools import F1, load

SOFTMAX = "input x[3] = [1, 2, 3]; xs = softmax(x); xl = -log(xs[2])"
SIGNS = "input xa = 2; xs = sign(xa); xw = xs*2 + xa"
DROPOUT = (
    "input x[2] = [1, 2]; parameter W[3,2] = [[1, 2], [3, 4], [5, 6]], b[3] = [0, 0, 0],"
    " v[3] = [1, 1, 1]; xz = W @ x + b; xh = dropout(xz, 0.5); xo = v @ xh; output xo"
)
# Calls with the name of what they show, and calls that are refused.
DIAGRAMS = lines_with_values(Path(__file__).with_name("diagrams.txt"))
REFUSED = lines_with_values(Path(__file__).with_name("wrong_diagrams.txt"))


def describe(diagram: Diagram) -> str:
    """Return the vertices, edges, frames and notes of a diagram as lines of text."""
    keys = {n.key: n.key if len(n.key) < 12 else n.label for n in diagram.nodes}  # not addresses

    def style(item: Node | Edge) -> str:
        return " (emphasis)" * item.emphasis + " (dropped)" * item.dropped

    lines = []
    for node in diagram.nodes:
        name = f"{node.role} {keys[node.key]}: {node.label}{style(node)}"
        lines.append(" | ".join([name, *node.detail]))
    for edge in diagram.edges:
        ends = f"{keys[edge.tail]} -> {keys[edge.head]}"
        lines.append(f"{ends}: {' | '.join(edge.label.splitlines())}{style(edge)}")
    frames = [f"frame {part.label}: {' '.join(sorted(part.keys))}" for part in diagram.parts]
    return "\n".join([*lines, *frames, *diagram.notes])


@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in DIAGRAMS])
def test_diagrams_show_what_is_approved(call: str) -> None:
    approved(describe(eval(call, globals())))  # noqa: S307


def test_the_backward_sweep_of_the_slide() -> None:
    """Case B3: upstream times local, downstream; the slide prints 1.3633 and 0.1912."""
    shown = describe(graph_diagram(cgprimer.load("log_sine"), values=True, adjoints=True))
    assert "x1 -> v1: 1.8177 × 0.75 ≈ 1.3633" in shown
    assert "v3 -> y: 1 × (-0.98083) ≈ -0.98083" in shown
    assert re.search(r"x1: x1 .* adjoint ≈ 1\.3632775\n", shown)
    assert re.search(r"x2: x2 .* adjoint ≈ 0\.19118983\n", shown)
    for edge in graph_diagram(cgprimer.load("lecture"), adjoints=True).edges:
        left, sign, right = re.fullmatch(r"(.*) ([=≈]) (.*)", edge.label).groups()  # type: ignore[union-attr]
        upstream, local = (float(part.strip("()")) for part in left.split(" × "))
        assert (upstream * local == float(right)) == (sign == "=")


@pytest.mark.parametrize("name", ["lecture", "mazur", "baydin", "two_paths", "cs231n_max"])
@pytest.mark.parametrize("level", ["variables", "operations"])
def test_the_sweeps_of_a_picture_agree_with_the_symbolic_method(name: str, level: str) -> None:
    graph = load(name)
    tape, names = cgprimer.tape(graph), [*graph.inputs, *graph.parameters]
    keys = {n: str(tape.index(n)) if level == "operations" else n for n in [*names, *graph.outputs]}
    expected = cgprimer.gradient(graph, wrt=names, method="symbolic")
    back = compute_sweep_numbers(graph, level=level, of=graph.outputs[0]).totals
    for wrt in names:
        assert back.get(keys[wrt], 0.0) == pytest.approx(expected[wrt], rel=1e-12, abs=1e-15)
        tangents = compute_sweep_numbers(graph, level=level, wrt=wrt).totals
        forward = tangents.get(keys[graph.outputs[0]], 0.0)
        assert forward == pytest.approx(expected[wrt], rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("name", ["lecture", "baydin", "mazur", "cs231n_max", "olah"])
def test_a_vertex_of_the_backward_graph_has_edges_from_the_names_in_its_expression(
    name: str,
) -> None:
    graph = cgprimer.load(name)
    found = build_backward_diagram(graph, at={}, of=graph.outputs[0])
    label = {n.key: n.label for n in found.nodes}
    for node in found.nodes:
        tails = {label[e.tail] for e in found.edges if e.head == node.key}
        assert tails == set(re.findall(r"\bbar_\w+", node.detail[0])), node.label
    values = {node.label: node.detail[-1] for node in found.nodes}
    names = [*graph.inputs, *graph.parameters]
    for wrt, value in cgprimer.gradient(graph, of=graph.outputs[0], wrt=names).items():
        shown = values.get(f"bar_{wrt}", "= 0")
        assert float(shown.split()[1]) == pytest.approx(value, rel=1e-7)


@pytest.mark.parametrize("count", [3, 5, 6])
@settings(max_examples=4)
@given(data=st.data())
def test_listed_paths_and_the_remainder_sum_to_the_derivative(
    count: int, data: st.DataObject
) -> None:
    """The derivative and the number of paths by linear algebra; at most twelve paths are listed."""
    weights = np.zeros((count, count))
    lines = ["input x0 = 1"]
    for head in range(1, count):
        for tail in range(head):
            weights[tail, head] = data.draw(st.sampled_from([-3, -2, -1, 2, 3, 5]))
        terms = (f"({weights[tail, head]:g})*x{tail}" for tail in range(head))
        lines.append(f"x{head} = {' + '.join(terms)}")
    middle = data.draw(st.sets(st.integers(1, count - 2)))
    path = [0, *sorted(middle), count - 1]
    notes = graph_diagram(cgprimer.parse(lines), path=[f"x{k}" for k in path]).notes
    derivative = np.linalg.inv(np.eye(count) - weights)[0, -1]
    n_paths = round(np.linalg.inv(np.eye(count) - (weights != 0))[0, -1])

    def value(text: str) -> float:
        return float(text.replace("= ", "").split(" ")[-1])

    listed = {note.partition(":")[0]: value(note) for note in notes if "→" in note}
    for names, product in listed.items():
        steps = pairwise(int(name[1:]) for name in names.split(" → "))
        assert product == math.prod(weights[step] for step in steps)
    assert " → ".join(f"x{k}" for k in path) in listed
    remainder = [note for note in notes if "more path" in note]
    rest = [int(found) for note in remainder for found in re.findall(r"and (\d+) more", note)]
    assert len(listed) == min(n_paths, 12)
    assert len(listed) + sum(rest) == n_paths
    total = sum(listed.values()) + sum(map(value, remainder))
    assert total == pytest.approx(derivative)
    assert value(notes[-1]) == pytest.approx(derivative)
    assert value(notes[0]) == listed[" → ".join(f"x{k}" for k in path)]


def test_a_huge_number_of_paths_is_counted_and_not_listed() -> None:
    diamonds = "; ".join(f"a{k}=x{k}; b{k}=2*x{k}; x{k + 1}=a{k}+b{k}" for k in range(20))
    path = ["x0", *(n for k in range(20) for n in (f"a{k}", f"x{k + 1}"))]
    graph = cgprimer.parse("input x0=1;" + diamonds)
    notes = graph_diagram(graph, path=path, everything=True).notes
    assert f"sum over {2**20:,} paths" in notes[1]
    assert notes[-1] == f"dx20/dx0 ≈ {format_number(3.0**20, 5)}"


@pytest.mark.parametrize("text", [F1, SOFTMAX])
def test_partials_and_adjoints_are_those_of_core(text: str) -> None:
    graph = parse(text)
    names = (*graph.inputs, *graph.parameters)
    flow = run_backward_sweep(graph)
    totals = {flow.tape.labels[i]: value for i, value in flow.totals.items()}
    for method in ("forward", "path-sum"):
        exact = jacobian(graph, of=graph.only_output(), wrt=names, method=method)
        for name in names:
            np.testing.assert_allclose(totals[name], exact[graph.only_output()][name], atol=1e-14)
    for (tail, head), (_, contribution) in flow.products.items():
        ends = flow.tape.labels[tail], flow.tape.labels[head]
        local = compute_local_jacobians(graph)[ends]
        expected = np.tensordot(flow.totals[head], local, axes=np.ndim(flow.totals[head]))
        np.testing.assert_allclose(contribution, expected, atol=1e-14)


@settings(max_examples=6)
@given(
    st.integers(1, 3), st.integers(1, 3), st.sampled_from(["tanh", "softmax"]), st.integers(0, 999)
)
def test_the_elements_of_a_graph_agree_with_its_arrays(
    m: int, n: int, function: str, seed: int
) -> None:
    graph = parse(
        f"input x[{n}]; parameter W[{m},{n}], b[{m}]\n"
        f"xh = {function}(W @ x + b); xs = xh*xh[0]; xl = sum(xs) + norm(x)"
    )
    random = np.random.default_rng(seed)
    at = {name: random.uniform(0.1, 1.0, shape) for name, shape in
          (("x", n), ("W", (m, n)), ("b", m))}  # fmt: skip
    places = [(name, index) for name, value in at.items() for index in np.ndindex(value.shape)]
    keys = {(name, index): f"{name}[{','.join(map(str, index))}]" for name, index in places}
    numbers = {key: float(at[name][index]) for (name, index), key in keys.items()}
    elements = expand_elements(graph)
    assert elements.evaluate(numbers)["xl"] == pytest.approx(graph.evaluate(at)["xl"])
    whole, single = cgprimer.gradient(graph, at), cgprimer.gradient(elements, numbers)
    for (name, index), key in keys.items():
        if name != "x":
            assert single[key] == pytest.approx(whole[name][index], rel=1e-11, abs=1e-13)


def test_a_seed_selects_the_first_mask_of_a_run() -> None:
    graph = parse(DROPOUT)
    leaves = [leaf for leaf in tape(graph, "masks").leaves if leaf.name.startswith("mask.")]
    for seed in range(4):
        expected = Masks(leaves, seed, "float64").create_stream(0, 0)(1)["mask.xh"][0]
        assert thin_graph(graph, seed).masks["xh"].tolist() == expected.tolist()


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


def test_the_command_draws_masks_and_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    good("draw", "dropout", "--mask", "xh=[1,0,1]", "-o", "mask.dot")
    assert "dashed" in Path("mask.dot").read_text(encoding="utf-8")
    good("draw", "mlp", "--place", "layers:2", "--workers", "gpu0,gpu1", "-o", "parts.dot")
    assert "gpu1" in Path("parts.dot").read_text(encoding="utf-8")
    assert "workers" in bad("draw", "lecture", "--workers", "a,b", "-o", "none.svg")


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
    approved("\n".join(map(describe, drawn)))


def test_recorded_gradients_are_summed_over_passes() -> None:
    a, w1, w2, w3 = (Value(v, requires_grad=False) for v in (2.0, 3.0, -1.0, 0.5))
    w4 = Value(4.0)
    b, c = w1 * a, w2 * a
    d = w3 * b + w4 * c
    loss = 10.0 - d
    for _ in range(2):
        loss.backward(retain_graph=True)
        approved(describe(diagram_of(loss)))
    approved(describe(diagram_of(loss.grad_fn)))
    w4.zero_grad()
    approved(describe(diagram_of(loss, adjoints=True)))


def test_recorded_arrays_and_nodes() -> None:
    w, b = Value(np.arange(25.0), name="w"), Value([1.0, 2.0], name="b")
    y = (w * w).sum() + (b * b).sum()
    for _ in range(3):
        y.backward(retain_graph=True)
    approved(describe(diagram_of(y)))
    assert cgprimer.draw(cgprimer.record(lambda a: a * a, 2.0), values=True).axes
    exp, multiply = cgprimer.primitive(np.exp), cgprimer.primitive(np.multiply)
    approved(describe(diagram_of(exp(multiply(cgprimer.Node(1.5, name="z"), -2.0)))))


@pytest.mark.parametrize("call", [call for call, _ in REFUSED])
def test_wrong_options_are_refused(call: str) -> None:
    with pytest.raises(CgprimerError) as caught:
        slide_layout(eval(call, globals()))  # noqa: S307
    approved(f"{caught.typename}: {caught.value}")


def test_what_cannot_be_drawn_is_refused() -> None:
    y = cgprimer.Value(2.0) * 3.0
    y.backward()
    for subject in ("xw = xa", y):
        with pytest.raises(CgprimerError) as caught:
            cgprimer.draw(subject)
        approved(str(caught.value))
