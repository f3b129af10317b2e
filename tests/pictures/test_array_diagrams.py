"""Diagrams of graphs with arrays: shapes, small matrices, Jacobians, and vertices as elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.analysis.element_graph import expand_elements
from cgprimer.core.derivatives import jacobian
from cgprimer.core.graph import parse
from cgprimer.errors import UsageError
from cgprimer.visualization.diagrams.diagram import Diagram
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
from cgprimer.visualization.diagrams.slide_layout import slide_layout
from cgprimer.visualization.diagrams.vertex_sweeps import (
    compute_local_jacobians,
    run_backward_sweep,
)
from tests.approval import refused
from tests.pictures.test_layout import F1

NETWORK = """input x[4]; parameter W1[8,4], b1[8], W2[8,8], b2[8], W3[8], b3
xh = tanh(W1 @ x + b1); xg = tanh(W2 @ xh + b2); xo = W3 @ xg + b3"""
SOFTMAX = "input x[3] = [1, 2, 3]; xs = softmax(x); xl = -log(xs[2])"


def lines_at(found: Diagram, key: str) -> tuple[str, ...]:
    """Return the detail lines of a vertex."""
    return next(node.detail for node in found.nodes if node.key == key)


def label(found: Diagram, tail: str, head: str) -> list[str]:
    """Return the lines of the label of an edge."""
    edge = next(edge for edge in found.edges if (edge.tail, edge.head) == (tail, head))
    return edge.label.split("\n")


def test_the_three_steps_of_the_lecture_are_on_the_edges() -> None:
    """F1: the gradients are exact, and each edge has the formula of its contribution."""
    found = graph_diagram(parse(F1), values=True, adjoints=True)
    shown = {node.key: (node.label, *node.detail) for node in found.nodes}
    assert shown["w1"][:3] == ("w1 [2,2]", "= [[1, -1],", "[0.5, -2]]")
    assert shown["w1"][-2:] == ("adjoint = [[2, 0],", "[4, 0]]")
    assert shown["xh"] == ("xh [2]", "x @ w1", "= [2, -5]", "adjoint = [2, 0]")
    assert shown["xL"][:3] == ("xL", "(xp - y)^2", "= 1")
    assert label(found, "w1", "xh") == ["outer(x, bar_xh) [2,2]", "= [[2, 0],", "[4, 0]]"]
    assert label(found, "xh", "xr") == ["bar_xr*(xh > 0) [2]", "= [2, 0]"]
    assert label(found, "xp", "xL") == ["2*(xp - y)", "= 2"]
    backward = graph_diagram(parse(F1), level="backward", values=True)
    shown = {node.label: node.detail for node in backward.nodes}
    assert shown["bar_w1 [2,2]"] == ("outer(x, bar_xh)", "= [[2, 0],", "[4, 0]]")


def test_large_arrays_and_long_formulas_are_abbreviated() -> None:
    graph = parse(NETWORK)
    at = dict.fromkeys((*graph.inputs, *graph.parameters), 0.1)
    found = graph_diagram(graph, at=at)
    assert lines_at(found, "W1") == ("= [0.1, 0.1, …]", "norm ≈ 0.5657")
    assert len(found.nodes) == 10
    found = graph_diagram(
        parse("input z[2] = [1, 2]; p = softmax(z); xl = -log(p[1])"), adjoints=True
    )
    assert label(found, "z", "p")[0] == "bar_p · ∂p/∂z [2]"
    mean = graph_diagram(parse("input x[9] = 1; xl = mean(x)"), adjoints=True)
    assert label(mean, "x", "xl")[0] == "0.11111 [9]"


def test_a_row_of_a_matrix_is_not_broken() -> None:
    graph = parse(
        "input x[2,4] = [[0.15, -0.25, 0.35, 0.45], [1, 2, 3, 4]]; xl = sum(2*x - tanh(x))"
    )
    assert slide_layout(graph_diagram(graph, values=True)).details["x"] == (
        "= [[0.15, -0.25, 0.35, 0.45],", "[1, 2, 3, 4]]",
    )  # fmt: skip


def test_a_size_or_an_axis_is_no_operand() -> None:
    graph = parse("input x[2,3] = 1; xl = sum(reshape(x, 3, 2), 0)")
    found = graph_diagram(graph, level="operations")
    assert [node.role for node in found.nodes] == ["input", "operation", "output"]


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
@given(st.integers(1, 3), st.integers(1, 3), st.sampled_from(["tanh", "softmax"]), st.data())
def test_the_elements_of_a_graph_agree_with_its_arrays(
    m: int, n: int, function: str, data: st.DataObject
) -> None:
    graph = parse(
        f"input x[{n}]; parameter W[{m},{n}], b[{m}]\n"
        f"xh = {function}(W @ x + b); xs = xh*xh[0]; xl = sum(xs) + norm(x)"
    )
    shapes: dict[str, Any] = {"x": (n,), "W": (m, n), "b": (m,)}
    at = {
        name: np.array([data.draw(st.floats(0.1, 1.0)) for _ in range(int(np.prod(shape)))])
        .reshape(shape)
        for name, shape in shapes.items()
    }  # fmt: skip
    numbers = {
        f"{name}[{','.join(map(str, index))}]": float(value[index])
        for name, value in at.items()
        for index in np.ndindex(*value.shape)
    }
    elements = expand_elements(graph)
    assert elements.evaluate(numbers)["xl"] == pytest.approx(graph.evaluate(at)["xl"])
    whole, single = cgprimer.gradient(graph, at), cgprimer.gradient(elements, numbers)
    for name in ("W", "b"):
        for index in np.ndindex(*whole[name].shape):
            key = f"{name}[{','.join(map(str, index))}]"
            assert single[key] == pytest.approx(whole[name][index], rel=1e-11, abs=1e-13)


def test_a_vertex_is_drawn_as_its_elements() -> None:
    every = graph_diagram(parse(F1), scalars=True, values=True)
    assert lines_at(every, "xh[1]") == ("x[0]*w1[0,1] + x[1]*w1[1,1]", "= -5")
    assert label(every, "x[1]", "xh[0]") == ["w1[1,0]=0.5"]
    some = graph_diagram(parse(F1), scalars="xh, xr", values=True)
    assert " ".join(n.key for n in some.nodes) == "w1 w2 y x xh[0] xh[1] xr[0] xr[1] xp xL"
    ends = {(edge.tail, edge.head) for edge in some.edges}
    assert {("w1", "xh[0]"), ("xr[1]", "xp")} <= ends
    assert len(ends) == 11
    shared = graph_diagram(parse(SOFTMAX), scalars="xs")
    assert {node.key for node in shared.nodes} >= {"x", "xs[0]", "xs[1]", "xs[2]", "xl"}
    named = cgprimer.parse("input all[2]; xw = sum(all)")
    assert "all[0]" in {node.key for node in graph_diagram(named, scalars="all").nodes}
    assert graph_diagram(parse(F1), scalars="all") == graph_diagram(parse(F1), scalars=True)


def test_a_path_multiplies_jacobians_and_the_sum_over_paths_is_the_derivative() -> None:
    graph = parse("input x[2] = [1, 2]; xa = x^2; xb = 3*x; xl = sum(xa*xb)")
    assert graph_diagram(graph, path="x xa xl").notes == (
        "this path: ∂xl/∂xa [2] · ∂xa/∂x [2,2] = [6, 24]",
        "x → xa → xl: = [6, 24]",
        "x → xb → xl: = [3, 12]",
        "dxl/dx = [9, 36], the sum over 2 paths",
    )
    alone = parse("input x[2] = [1, 2]; xa = x^2; xl = sum(xa)")
    notes = graph_diagram(alone, path="x xa xl").notes
    assert notes[-1] == "dxl/dx = [2, 4]: there is no other path"


def test_a_tangent_is_along_one_element() -> None:
    found = graph_diagram(parse(F1), tangents="w1[1,0]")
    assert lines_at(found, "xL")[-1] == "tangent = 4"
    assert lines_at(found, "w1")[-2:] == ("tangent = [[0, 0],", "[1, 0]]")
    assert lines_at(found, "x")[-1] == "tangent = 0"


def test_the_first_array_that_is_not_finite_is_marked() -> None:
    graph = parse("input x[2] = [1, 0]; xl = sum(log(x))")
    found = graph_diagram(graph, at={"x": [np.nan, 0.0]}, why=True)
    assert lines_at(found, "x") == ("= [nan, 0]", "first value not finite")


@pytest.mark.parametrize(
    ("options", "words"),
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
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with refused(UsageError, words) as found:
        graph_diagram(parse(F1), **options)
    assert found.value.hint
