"""Diagrams of graphs with arrays: shapes, small matrices, Jacobians, and vertices as elements."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.analysis.element_graph import expand_elements
from cgprimer.core.derivatives import jacobian
from cgprimer.core.graph import parse
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
from cgprimer.visualization.diagrams.slide_layout import slide_layout
from cgprimer.visualization.diagrams.vertex_sweeps import (
    compute_local_jacobians,
    run_backward_sweep,
)
from tests.pictures.diagram_tools import F1, details, labels_of

SOFTMAX = "input x[3] = [1, 2, 3]; xs = softmax(x); xl = -log(xs[2])"


def test_the_three_steps_of_the_lecture_are_on_the_edges() -> None:
    """F1: the gradients are exact, and each edge has the formula of its contribution."""
    found = graph_diagram(parse(F1), values=True, adjoints=True)
    shown, edges = details(found), labels_of(found)
    assert shown["w1 [2,2]"] == ("= [[1, -1],", "[0.5, -2]]", "adjoint = [[2, 0],", "[4, 0]]")
    assert shown["xh [2]"] == ("x @ w1", "= [2, -5]", "adjoint = [2, 0]")
    assert shown["xL"][:2] == ("(xp - y)^2", "= 1")
    assert edges["w1", "xh"] == "outer(x, bar_xh) [2,2] = [[2, 0], [4, 0]]"
    assert edges["xh", "xr"] == "bar_xr*(xh > 0) [2] = [2, 0]"
    assert edges["xp", "xL"] == "2*(xp - y) = 2"
    backward = details(graph_diagram(parse(F1), level="backward", values=True))
    assert backward["bar_w1 [2,2]"] == ("outer(x, bar_xh)", "= [[2, 0],", "[4, 0]]")


def test_large_arrays_and_long_formulas_are_abbreviated() -> None:
    large = graph_diagram(parse("input x[4] = 0.1; parameter W[8,4] = 0.1; xo = sum(W @ x)"), at={})
    assert details(large)["W [8,4]"] == ("= [0.1, 0.1, …]", "norm ≈ 0.5657")
    softmax = graph_diagram(
        parse("input z[2] = [1, 2]; p = softmax(z); xl = -log(p[1])"), adjoints=True
    )
    assert labels_of(softmax)["z", "p"].startswith("bar_p · ∂p/∂z [2]")
    mean = graph_diagram(parse("input x[9] = 1; xl = mean(x)"), adjoints=True)
    assert labels_of(mean)["x", "xl"].startswith("0.11111 [9]")
    rows = parse(
        "input x[2,4] = [[0.15, -0.25, 0.35, 0.45], [1, 2, 3, 4]]; xl = sum(2*x - tanh(x))"
    )
    lines = slide_layout(graph_diagram(rows, values=True)).details["x"]
    assert lines == ("= [[0.15, -0.25, 0.35, 0.45],", "[1, 2, 3, 4]]")  # rows are not broken


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


def test_a_vertex_is_drawn_as_its_elements() -> None:
    every = graph_diagram(parse(F1), scalars=True, values=True)
    assert details(every)["xh[1]"] == ("x[0]*w1[0,1] + x[1]*w1[1,1]", "= -5")
    assert labels_of(every)["x[1]", "xh[0]"] == "w1[1,0]=0.5"
    some = graph_diagram(parse(F1), scalars="xh, xr", values=True)
    assert " ".join(n.key for n in some.nodes) == "w1 w2 y x xh[0] xh[1] xr[0] xr[1] xp xL"
    assert {("w1", "xh[0]"), ("xr[1]", "xp")} <= {*labels_of(some)}
    assert len(some.edges) == 11
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
    shown = details(graph_diagram(parse(F1), tangents="w1[1,0]"))
    assert shown["xL"][-1] == "tangent = 4"
    assert shown["w1 [2,2]"][-2:] == ("tangent = [[0, 0],", "[1, 0]]")
    assert shown["x [2]"][-1] == "tangent = 0"


def test_the_first_array_that_is_not_finite_is_marked() -> None:
    graph = parse("input x[2] = [1, 0]; xl = sum(log(x))")
    found = graph_diagram(graph, at={"x": [np.nan, 0.0]}, why=True)
    assert details(found)["x [2]"] == ("= [nan, 0]", "first value not finite")
