"""Graphs with arrays: shapes and small matrices, what flows back, vertices that open."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.analysis.element_graph import expand_elements
from cgprimer.core.derivatives import jacobian
from cgprimer.core.graph import ExpressionGraph, parse
from cgprimer.errors import CgprimerError, UsageError
from cgprimer.visualization.diagrams.diagram import Diagram
from cgprimer.visualization.diagrams.diagram_formats import format_diagram, save_diagram
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
from cgprimer.visualization.diagrams.slide_layout import slide_layout
from cgprimer.visualization.diagrams.vertex_sweeps import (
    compute_local_jacobians,
    run_backward_sweep,
)
from tests.approval import refused

F1 = """input x[2] = [1, 2]; parameter w1[2,2] = [[1, -1], [.5, -2]], w2[2] = [1, 3], y = 1
xh = x @ w1; xr = relu(xh); xp = xr @ w2; xL = (xp - y)^2"""
NETWORK = """input x[4]; parameter W1[8,4], b1[8], W2[8,8], b2[8], W3[8], b3
xh = tanh(W1 @ x + b1); xg = tanh(W2 @ xh + b2); xo = W3 @ xg + b3"""
SOFTMAX = "input x[3] = [1, 2, 3]; xs = softmax(x); xl = -log(xs[2])"
LEVELS = ("variables", "operations", "backward")


def lines_at(found: Diagram, key: str) -> tuple[str, ...]:
    return next(node.detail for node in found.nodes if node.key == key)


def label(found: Diagram, tail: str, head: str) -> list[str]:
    edge = next(edge for edge in found.edges if (edge.tail, edge.head) == (tail, head))
    return edge.label.split("\n")


def test_vertices_have_shapes_and_small_matrices() -> None:
    found = graph_diagram(parse(F1), values=True)
    shown = {node.key: (node.label, *node.detail) for node in found.nodes}
    assert shown["w1"] == ("w1 [2,2]", "= [[1, -1],", "[0.5, -2]]")
    assert shown["xh"] == ("xh [2]", "x @ w1", "= [2, -5]")
    assert shown["xL"] == ("xL", "(xp - y)^2", "= 1")


def test_the_three_steps_of_the_lecture_stand_on_the_edges() -> None:
    """F1: the gradients are exact, and each edge says how its part is computed."""
    found = graph_diagram(parse(F1), adjoints=True)
    assert lines_at(found, "w1")[-2:] == ("adjoint = [[2, 0],", "[4, 0]]")
    assert lines_at(found, "w2")[-1] == "adjoint = [4, 0]"
    assert label(found, "w1", "xh") == ["outer(x, bar_xh) [2,2]", "= [[2, 0],", "[4, 0]]"]
    assert label(found, "w2", "xp") == ["bar_xp*xr [2]", "= [4, 0]"]
    assert label(found, "xh", "xr") == ["bar_xr*(xh > 0) [2]", "= [2, 0]"]
    assert label(found, "xp", "xL") == ["2*(xp - y)", "= 2"]


def test_large_arrays_have_their_first_numbers_and_their_norm() -> None:
    graph = parse(NETWORK)
    at = dict.fromkeys((*graph.inputs, *graph.parameters), 0.1)
    found = graph_diagram(graph, at=at)
    assert lines_at(found, "W1") == ("= [0.1, 0.1, …]", "norm ≈ 0.5657")
    assert found.nodes[0].label == "W1 [8,4]"
    assert len(found.nodes) == 10


def test_the_row_of_a_matrix_is_a_line() -> None:
    """Also a wide one, and the expression beside it is no narrower."""
    graph = parse(
        "input x[2,4] = [[0.15, -0.25, 0.35, 0.45], [1, 2, 3, 4]]; xl = sum(2*x - tanh(x))"
    )
    assert slide_layout(graph_diagram(graph, values=True)).details["x"] == (
        "= [[0.15, -0.25, 0.35, 0.45],", "[1, 2, 3, 4]]",
    )  # fmt: skip


def test_a_size_or_an_axis_is_no_operand() -> None:
    found = graph_diagram(
        parse("input x[2,3] = 1; xl = sum(reshape(x, 3, 2), 0)"), level="operations"
    )
    assert [node.role for node in found.nodes] == ["input", "operation", "output"]


def test_what_is_long_on_an_edge_is_a_product_of_adjoint_and_jacobian() -> None:
    found = graph_diagram(
        parse("input z[2] = [1, 2]; p = softmax(z); xl = -log(p[1])"), adjoints=True
    )
    assert label(found, "z", "p")[0] == "bar_p · ∂p/∂z [2]"
    mean = graph_diagram(parse("input x[9] = 1; xl = mean(x)"), adjoints=True)
    assert label(mean, "x", "xl")[0] == "0.11111 [9]"


@pytest.mark.parametrize("text", [F1, SOFTMAX])
def test_partials_and_adjoints_are_those_of_core(text: str) -> None:
    """What is drawn, against the Jacobian of the whole graph and of each vertex alone."""
    graph = parse(text)
    names = (*graph.inputs, *graph.parameters)
    flow = run_backward_sweep(graph)
    totals = {flow.tape.labels[i]: value for i, value in flow.totals.items()}
    for method in ("forward", "path-sum"):
        exact = jacobian(graph, of=graph.only_output(), wrt=names, method=method)
        for name in names:
            np.testing.assert_allclose(totals[name], exact[graph.only_output()][name], atol=1e-14)
    for (tail, head), (_, handed) in flow.products.items():
        ends = flow.tape.labels[tail], flow.tape.labels[head]
        jacobi = compute_local_jacobians(graph)[ends]
        expected = np.tensordot(flow.totals[head], jacobi, axes=np.ndim(flow.totals[head]))
        np.testing.assert_allclose(handed, expected, atol=1e-14)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 3), st.integers(1, 3), st.sampled_from(["tanh", "exp", "softmax"]), st.data())
def test_the_numbers_of_a_graph_agree_with_its_arrays(
    m: int, n: int, function: str, data: st.DataObject
) -> None:
    graph = parse(
        f"input x[{n}]; parameter W[{m},{n}], b[{m}]\n"
        f"xh = {function}(W @ x + b); xs = xh*xh[0]; xl = sum(xs) + norm(x)"
    )
    reals = st.floats(0.1, 1.0)
    shapes: dict[str, Any] = {"x": (n,), "W": (m, n), "b": (m,)}
    at = {
        name: np.array([data.draw(reals) for _ in range(int(np.prod(shape)))]).reshape(shape)
        for name, shape in shapes.items()
    }
    numbers = {
        f"{name}[{','.join(map(str, place))}]": float(value[place])
        for name, value in at.items()
        for place in np.ndindex(*value.shape)
    }
    written_out = expand_elements(graph)
    whole = cgprimer.gradient(graph, at)
    single = cgprimer.gradient(written_out, numbers)
    assert written_out.evaluate(numbers)["xl"] == pytest.approx(graph.evaluate(at)["xl"])
    for name in ("W", "b"):
        for place in np.ndindex(*whole[name].shape):
            key = f"{name}[{','.join(map(str, place))}]"
            assert single[key] == pytest.approx(whole[name][place], rel=1e-11, abs=1e-13)


def test_a_vertex_opens_into_its_numbers() -> None:
    graph = parse(F1)
    every = graph_diagram(graph, scalars=True, values=True)
    assert lines_at(every, "xh[1]") == ("x[0]*w1[0,1] + x[1]*w1[1,1]", "= -5")
    assert label(every, "x[1]", "xh[0]") == ["w1[1,0]=0.5"]
    some = graph_diagram(graph, scalars="xh, xr", values=True)
    assert " ".join(n.key for n in some.nodes) == "w1 w2 y x xh[0] xh[1] xr[0] xr[1] xp xL"
    ends = {(edge.tail, edge.head) for edge in some.edges}
    assert ("w1", "xh[0]") in ends
    assert ("xr[1]", "xp") in ends
    assert len(ends) == 11
    shared = graph_diagram(parse(SOFTMAX), scalars="xs")
    assert {node.key for node in shared.nodes} >= {"x", "xs[0]", "xs[1]", "xs[2]", "xl"}


def test_names_of_numbers_are_names_of_their_own_graph() -> None:
    """The graph of arrays and that of its numbers differentiate by the same names."""
    graph = parse(F1)
    numbers = expand_elements(graph)
    found = cgprimer.gradient(numbers, wrt=["w1[1,0]", "x[0]"])
    assert found == cgprimer.gradient(graph, wrt=["w1[1,0]", "x[0]"]) == {"w1[1,0]": 4, "x[0]": 2}


def test_of_a_network_the_numbers_are_summarised() -> None:
    found = graph_diagram(parse(NETWORK), scalars=True)
    assert found.summary
    assert found.nodes[0].label == "4 inputs"
    whole = graph_diagram(parse(NETWORK), scalars=True, everything=True)
    assert len([edge for edge in whole.edges if edge.tail.startswith("x[")]) == 32


def test_a_path_multiplies_jacobians_and_the_sum_over_paths_is_the_derivative() -> None:
    graph = parse("input x[2] = [1, 2]; xa = x^2; xb = 3*x; xl = sum(xa*xb)")
    notes = graph_diagram(graph, path="x xa xl").notes
    assert notes == (
        "this path: ∂xl/∂xa [2] · ∂xa/∂x [2,2] = [6, 24]",
        "x → xa → xl: = [6, 24]",
        "x → xb → xl: = [3, 12]",
        "dxl/dx = [9, 36], the sum over 2 paths",
    )


def test_a_tangent_is_along_one_number() -> None:
    found = graph_diagram(parse(F1), tangents="w1[1,0]")
    assert lines_at(found, "xL")[-1] == "tangent = 4"
    assert lines_at(found, "xh")[-1] == "tangent = [2, 0]"
    assert lines_at(found, "w1")[-2:] == ("tangent = [[0, 0],", "[1, 0]]")
    assert lines_at(found, "x")[-1] == "tangent = 0"


def test_the_backward_graph_has_shapes_and_matrices() -> None:
    found = graph_diagram(parse(F1), level="backward", values=True)
    shown = {node.label: node.detail for node in found.nodes}
    assert shown["bar_w1 [2,2]"] == ("outer(x, bar_xh)", "= [[2, 0],", "[4, 0]]")
    assert shown["bar_xh [2]"] == ("bar_xr*(xh > 0)", "= [2, 0]")


@pytest.mark.parametrize("level", LEVELS)
def test_operations_and_other_formats(level: str) -> None:
    found = graph_diagram(parse(F1), level=level, values=True)
    for kind, bracket in {"dot": "[2]", "mmd": "#91;2#93;", "tex": "[2]"}.items():
        assert bracket in format_diagram(found, kind)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"tangents": "x"}, "'x' ... [2]"),
        ({"scalars": "xq"}, "'xq'"),
        ({"adjoints": True, "of": "xh"}, "'xh' ... [2]"),
        ({"partials": True, "level": "operations"}, ""),
        ({"scalars": "xh", "path": "x xh"}, ""),
        ({"path": "x[0] xh"}, "'x[0]'"),
        ({"path": "xh"}, ""),
        ({"path": "xh x"}, "'xh' ... 'x'"),
    ],
)
def test_what_cannot_be_drawn_is_said(settings: dict[str, Any], said: str) -> None:
    with refused(UsageError, said) as found:
        graph_diagram(parse(F1), **settings)
    assert found.value.hint


def test_a_graph_too_large_to_write_out_is_refused_with_its_count() -> None:
    graph = parse("input x[784]; parameter W[128,784]; xh = W @ x")
    with refused(CgprimerError, "about ... vertices"):
        graph_diagram(graph, scalars=True)


@pytest.mark.parametrize("text", [F1, NETWORK, SOFTMAX])
@pytest.mark.parametrize("shown", [{"values": True}, {"adjoints": True}, {"partials": True}])
def test_no_labels_overlap(text: str, shown: dict[str, bool]) -> None:
    graph: ExpressionGraph = parse(text)
    at = {name: 0.1 for name in (*graph.inputs, *graph.parameters) if name not in graph.values}
    assert not slide_layout(graph_diagram(graph, at=at, **shown)).labels.touching


def test_pictures_are_written_light_and_dark(tmp_path: Path) -> None:
    found = graph_diagram(parse(F1), adjoints=True, scalars="xh")
    for dark in (False, True):
        save_diagram(found, tmp_path / f"{dark}.svg", dark=dark)
    assert (tmp_path / "True.svg").stat().st_size > 10_000


def test_the_time_of_opening_an_array_goes_with_its_numbers() -> None:
    """Each number was looked for among all, and each point of a line compared with all others."""
    text = "input x[N] = 0.5; parameter W[N,N] = 0.01; h = tanh(W @ x); y = sum(h)"
    begun = time.process_time()
    graph_diagram(parse(text.replace("N", "60")), scalars="h")
    slide_layout(graph_diagram(parse(text.replace("N", "18")), scalars="h"))
    assert time.process_time() - begun < 6.0  # 30 before


def test_an_array_that_is_not_finite_stands_once() -> None:
    graph = parse("input x[2] = [1, 0]; xl = sum(log(x))")
    found = graph_diagram(graph, at={"x": [np.nan, 0.0]}, why=True)
    assert lines_at(found, "x") == ("= [nan, 0]", "first value not finite")
    with pytest.raises(UsageError, match=r"--of 'x\[0\]'"):
        graph_diagram(graph, adjoints=True, of="x")
