"""Random graphs, all methods: the derivatives are the gradient's, and edges carry its shares."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import pytest

import cgprimer
from cgprimer.errors import CgprimerError
from cgprimer.visualization.pages.stepping.method_walks import METHODS
from cgprimer.visualization.pages.stepping.step_frames import Stepping, stepping
from cgprimer.visualization.pages.stepping.step_page import render_step_page
from tests.pages.stepping_graphs import Problem, problem

SEEDS = 400
CHUNK = 50

# A later share of an edge is computed first; a tail that is used twice inside of one vertex.
LATE = "xw = (xa-k)/xa; input xa=2; parameter k=1"
LATER = "x0 = ((min(m,xb)+(xb-k))/xb)\nxw = x0*xb+x0\ninput xb=-0.3; parameter m=0,k=1.3"
# Two variables use sin(xa), and only one can be its neighbour in the program.
SHARED = "x0 = sin(xa)*k; xw = x0 + sin(xa)\ninput xa=1; parameter k=2"


def graphs(first: int) -> Iterator[tuple[Problem, cgprimer.ExpressionGraph]]:
    for seed in range(first, first + CHUNK):
        made = problem(seed)
        try:
            yield made, cgprimer.parse(made.text)
        except CgprimerError:  # an unlucky one, such as a constant that has no logarithm
            continue


def assert_the_gradient(graph: cgprimer.ExpressionGraph, shown: Stepping, method: str) -> None:
    scene, last = shown.scene, shown.frames(method)[-1]
    expected = cgprimer.gradient(graph, of=scene.target, wrt=scene.wrt, method=method)
    size = 1.0
    if method == "finite-difference":  # rounding of the output is divided by h
        output = last.values[scene.row_indices[scene.target]]
        size = 1e4 * max(1.0, abs(output or 0.0) if math.isfinite(output or 0.0) else 1.0)
    for name, found in zip(scene.wrt, last.results, strict=True):
        assert found is not None, name
        if math.isfinite(expected[name]):
            assert found == pytest.approx(expected[name], rel=1e-9 * size, abs=1e-12 * size), name
        else:
            assert not math.isfinite(found), name


def assert_the_shares(shown: Stepping) -> int:
    """The shares that leave a vertex add up to its adjoint; returns how many vertices it was."""
    scene, frames = shown.scene, shown.frames("reverse")
    last, counted = frames[-1], 0
    for vertex in scene.vertices:
        ends = [k for k, (tail, _) in enumerate(scene.edges) if tail == vertex.name]
        shares = [share for k in ends if (share := last.partials[k]) is not None]
        adjoint = last.derivatives[vertex.row]
        if adjoint is None:
            assert not shares, vertex
        elif vertex.name != scene.target and all(map(math.isfinite, [adjoint, *shares])):
            size = max([1.0, *map(abs, shares)])
            assert sum(shares) == pytest.approx(adjoint, rel=1e-9, abs=1e-9 * size), vertex
            counted += 1
    for frame in frames:
        for k, share in enumerate(frame.partials):
            if share is not None and math.isnan(share):  # never a number that is not known yet
                assert math.isnan(last.partials[k] or 0.0), (frame.number, scene.edges[k])
    return counted


def dependencies(text: str) -> set[tuple[str, str]]:
    lines = [line.split(" = ") for line in text.splitlines() if " = " in line]
    return {(name, head) for head, right in lines for name in re.findall(r"\b(?:xa|k|y)\d", right)}


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_random_graphs(first: int) -> None:
    counted = sums = 0
    for made, graph in graphs(first):
        shown = stepping(graph, of=made.of, wrt=made.wrt, level=made.level)
        for method in METHODS:
            try:
                assert_the_gradient(graph, shown, method)
            except AssertionError as error:
                raise AssertionError(f"{method}, {made}: {error}") from error
        try:
            sums += assert_the_shares(shown)
        except AssertionError as error:
            raise AssertionError(f"{made}: {error}") from error
        if made.level == "variables":  # the picture has every edge that the text has
            wanted, names = dependencies(made.text), {v.name for v in shown.scene.vertices}
            assert set(shown.scene.edges) == {e for e in wanted if e[1] in names}, made
        if counted % 10 == 0:
            assert render_step_page(shown).startswith("<!doctype html>")
        counted += 1
    assert counted > 0.8 * CHUNK
    assert sums > CHUNK


@pytest.mark.parametrize("level", ["variables", "operations"])
@pytest.mark.parametrize("text", [LATE, LATER, SHARED])
def test_shares_that_are_computed_out_of_order(text: str, level: str) -> None:
    graph = cgprimer.parse(text)
    names = (*graph.inputs, *graph.parameters)
    shown = stepping(graph, wrt=names, level=level)
    assert assert_the_shares(shown) > 0
    for method in METHODS:
        assert_the_gradient(graph, shown, method)


def test_an_edge_shows_the_sum_of_its_shares() -> None:
    shown = stepping(cgprimer.parse(LATE), wrt=["xa", "k"], methods=["reverse"])
    edge = shown.scene.edges.index(("xa", "xw"))
    assert [frame.partials[edge] for frame in shown.frames("reverse")][-2:] == [0.25, 0.25]


def test_a_value_that_two_variables_use_lies_on_both_edges() -> None:
    shown = stepping(cgprimer.parse(SHARED), wrt=["xa"])
    assert shown.scene.edges == (("xa", "x0"), ("xa", "xw"), ("k", "x0"), ("x0", "xw"))
    last = shown.frames("reverse")[-1]
    assert last.partials[:2] == pytest.approx((2 * math.cos(1.0), math.cos(1.0)))
    value = next(s for s in shown.walk("reverse").steps if s.text == "v1 = sin(xa)")
    assert value.vertices == ("x0", "xw")
    assert value.edges == (0, 1)
    paths = [s.edges for s in shown.walk("path-sum").steps if s.text.startswith("path ")]
    assert paths == [(1,), (0, 3)]


def test_a_tangent_whose_seed_is_zero_does_not_meet_infinity() -> None:
    graph = cgprimer.parse("xw = sqrt(k*m) + p\nparameter k=0, m=1, p=2")
    shown = stepping(graph, wrt=["k", "p"], methods=["forward"])
    assert shown.frames("forward")[-1].results == (math.inf, 1.0)
    assert cgprimer.gradient(graph, wrt=["k", "p"], method="forward")["p"] == 1.0


def test_a_variable_that_does_not_lead_to_the_output() -> None:
    text = "x0=xb\nx1=k\nxw=xb*x1\ninput xb=-0.3; parameter k=1.3\noutput xw"
    graph = cgprimer.parse(text)
    for names in (["x0", "k"], ["k", "x0"], ["x0"]):
        for scheme in ("central", "forward"):
            shown = stepping(graph, of="xw", wrt=names, scheme=scheme)
            for method in METHODS:
                expected = [{"x0": 0.0, "k": -0.3}[name] for name in names]
                results = shown.frames(method)[-1].results
                assert results == pytest.approx(expected, abs=1e-9)
                assert results[names.index("x0")] == 0.0
    last = shown.walk("finite-difference").steps[-1]
    assert last.text == "dxw/dx0 = xw - xw"
    assert last.note == "xw does not depend on x0"
