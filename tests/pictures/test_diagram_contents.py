"""Diagrams of graphs: vertices, roles, edges, and the values and derivatives that they show."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.support.number_format import format_number
from cgprimer.visualization.diagrams.backward_graph import build_backward_diagram
from cgprimer.visualization.diagrams.diagram import Diagram
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
from cgprimer.visualization.diagrams.level_diagrams import (
    build_operation_diagram,
    build_variable_diagram,
)
from cgprimer.visualization.diagrams.vertex_sweeps import compute_sweep_numbers
from tests.pictures.diagram_tools import details, labels_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LECTURE = cgprimer.load("lecture")
LOG_SINE = cgprimer.load("log_sine")
TWO_PATHS = cgprimer.load("two_paths")


def last_lines(diagram: Diagram) -> dict[str, str]:
    """Return the last line of the text of each vertex, by its label."""
    return {label: lines[-1] for label, lines in details(diagram).items() if lines}


# --- variables and operations ---------------------------------------------------------------------


def test_the_lecture_example() -> None:
    found = build_variable_diagram(LECTURE, at={})
    assert [(n.key, n.label, n.role, n.detail) for n in found.nodes] == [
        ("xa", "xa", "input", ("= 0.5",)),
        ("xx", "xx", "inner", ("xa^2", "= 0.25")),
        ("xy", "xy", "inner", ("ab*xx + ac*xa", "= 2.25")),
        ("xz", "xz", "inner", ("bc*xx + xy", "= 2.75")),
        ("xw", "xw", "output", ("cd*xx + xz^3", "= 21.546875")),
    ]
    assert labels_of(build_variable_diagram(LECTURE)) == {
        ("xa", "xx"): "", ("xa", "xy"): "ac", ("xx", "xy"): "ab", ("xx", "xz"): "bc",
        ("xx", "xw"): "cd", ("xy", "xz"): "", ("xz", "xw"): "",
    }  # fmt: skip
    unused = cgprimer.parse("input a = 1, u = 1; parameter s = 2; xv = k*a; xw = xv^2; output xv")
    assert {n.key: n.role for n in build_variable_diagram(unused).nodes} == {
        "a": "input", "u": "input", "xv": "output", "xw": "inner", "s": "parameter",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("xw = k*xa + b", {("xa", "xw"): "k", ("b", "xw"): ""}),
        ("xw = b*a*xa", {("xa", "xw"): "b, a"}),
        ("xw = xa^n", {("xa", "xw"): "n"}),
        ("xw = xa/k", {("xa", "xw"): "k"}),
        ("xw = sin(k*xa)", {("xa", "xw"): "k"}),
        ("xw = k*(xa + xb*m)", {("xa", "xw"): "k", ("xb", "xw"): "k, m"}),
        ("xb = k*xa; xw = xb^2", {("xa", "xb"): "k", ("xb", "xw"): ""}),
        ("xw = xa - xa + k", {("xa", "xw"): "", ("k", "xw"): ""}),
        ("xw = m*tanh(k*xa + b)", {("xa", "xw"): "m, k", ("b", "xw"): ""}),
        ("xw = xa*xa", {("xa", "xw"): ""}),
    ],
)
def test_parameters_are_on_the_edges_of_their_factors(
    text: str, labels: dict[tuple[str, str], str]
) -> None:
    assert labels_of(build_variable_diagram(cgprimer.parse(text))) == labels


def test_parameters_as_vertices_and_their_values_on_edges() -> None:
    found = build_variable_diagram(LECTURE, at={"xa": -0.5}, parameters="vertices")
    roles = {n.key: n.role for n in found.nodes}
    assert {k for k, role in roles.items() if role == "parameter"} == {"ab", "bc", "cd", "ac"}
    assert set(labels_of(found).values()) == {""}
    assert {("ab", "xy"), ("ac", "xy"), ("bc", "xz"), ("cd", "xw")} <= set(labels_of(found))
    assert len(found.edges) == 11
    assert (last_lines(found)["xw"], last_lines(found)["ac"]) == ("= -1.203125", "= 4")
    text = "input xa = 1; parameter k = 0.123456789, c = 0.5; xw = k*xa; xv = c*xw"
    labels = labels_of(graph_diagram(cgprimer.parse(text), values=True))
    assert labels == {("xa", "xw"): "k≈0.12346", ("xw", "xv"): "c=0.5"}


def test_operations_are_the_instructions_of_the_tape() -> None:
    found = build_operation_diagram(cgprimer.parse("xz = ab*xa + 1; xw = sin(xz) - xz^2"))
    label = {n.key: n.label for n in found.nodes}
    assert {n.label: n.role for n in found.nodes} == {
        "xa": "input", "ab": "parameter", "1": "constant", "2": "constant", "×": "operation",
        "+": "operation", "sin": "operation", "^": "operation", "−": "output",
    }  # fmt: skip
    assert {(label[e.tail], label[e.head]) for e in found.edges} == {
        ("ab", "×"), ("xa", "×"), ("×", "+"), ("1", "+"), ("+", "sin"), ("+", "^"), ("2", "^"),
        ("sin", "−"), ("^", "−"),
    }  # fmt: skip
    assert details(found)["−"][0].startswith("xw = ")
    twice = graph_diagram(cgprimer.parse("y = xa + xa; z = y*xb"), level="operations")
    assert [edge.label for edge in twice.edges] == ["twice", "", ""]
    merged = cgprimer.parse("input xa = 0.5; xw = -(-xa) + xa")  # simplified in programs
    shown = graph_diagram(merged, level="operations", adjoints=True)
    assert {e.label for e in shown.edges} == {"-1 × (-1) = 1", "1 × (-1) = -1", "1 × 1 = 1"}


# --- derivatives ----------------------------------------------------------------------------------


def test_the_backward_sweep_of_the_slide() -> None:
    """Case B3: upstream times local, downstream; the slide prints 1.3633 and 0.1912."""
    found = graph_diagram(LOG_SINE, values=True, adjoints=True)
    assert labels_of(found)["x1", "v1"] == "1.8177 × 0.75 ≈ 1.3633"
    assert labels_of(found)["v3", "y"] == "1 × (-0.98083) ≈ -0.98083"
    shown = last_lines(found)
    assert (shown["x1"], shown["x2"]) == ("adjoint ≈ 1.3632775", "adjoint ≈ 0.19118983")
    assert shown["y"] == "adjoint = 1"
    for edge in graph_diagram(LECTURE, adjoints=True).edges:
        left, sign, right = re.fullmatch(r"(.*) ([=≈]) (.*)", edge.label).groups()  # type: ignore[union-attr]
        upstream, local = (float(part.strip("()")) for part in left.split(" × "))
        assert (upstream * local == float(right)) == (sign == "=")


def test_tangents_and_adjoints_are_zero_where_a_sweep_does_not_reach() -> None:
    shown = last_lines(graph_diagram(TWO_PATHS, tangents="w1"))
    assert (shown["w1"], shown["c"]) == ("tangent = 1", "tangent = 0")
    for row in cgprimer.trace(TWO_PATHS, wrt="w1", level="variables").rows:
        assert shown[row.name] == f"tangent = {row.derivative:g}"
    graph = cgprimer.parse("input xa = 2; xb = xa^2; xc = 3*xa; output xb, xc")
    found = graph_diagram(graph, adjoints=True, of="xb")
    assert last_lines(found)["xc"] == "adjoint = 0"
    assert labels_of(found)["xa", "xc"] == "0 × 3 = 0"
    signs = cgprimer.parse("input xa = 2; xb = sign(xa); xc = xa*xb")
    assert labels_of(graph_diagram(signs, partials=True)) == {
        ("xa", "xb"): "∂xb/∂xa = 0", ("xa", "xc"): "∂xc/∂xa = 1", ("xb", "xc"): "∂xc/∂xb = 2",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["lecture", "mazur", "baydin", "two_paths", "cs231n_max"])
@pytest.mark.parametrize("level", ["variables", "operations"])
def test_the_sweeps_of_a_picture_agree_with_the_symbolic_method(name: str, level: str) -> None:
    graph = cgprimer.load(name)
    tape, names = cgprimer.tape(graph), [*graph.inputs, *graph.parameters]
    keys = {n: str(tape.index(n)) if level == "operations" else n for n in [*names, *graph.outputs]}
    expected = cgprimer.gradient(graph, wrt=names, method="symbolic")
    back = compute_sweep_numbers(graph, level=level, of=graph.outputs[0]).totals
    for wrt in names:
        assert back.get(keys[wrt], 0.0) == pytest.approx(expected[wrt], rel=1e-12, abs=1e-15)
        tangents = compute_sweep_numbers(graph, level=level, wrt=wrt).totals
        forward = tangents.get(keys[graph.outputs[0]], 0.0)
        assert forward == pytest.approx(expected[wrt], rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("name", ["lecture", "two_paths", "baydin", "mazur", "cs231n_max", "olah"])
def test_a_vertex_of_the_backward_graph_has_edges_from_the_names_in_its_expression(
    name: str,
) -> None:
    graph = cgprimer.load(name)
    found = build_backward_diagram(graph, at={}, of=graph.outputs[0])
    label = {n.key: n.label for n in found.nodes}
    role = {n.label: n.role for n in found.nodes}
    assert role[f"bar_{graph.outputs[0]}"] == "seed"
    for node in found.nodes:
        tails = {label[e.tail] for e in found.edges if e.head == node.key}
        assert tails == set(re.findall(r"\bbar_\w+", node.detail[0])), node.label
    names = [*graph.inputs, *graph.parameters]
    for wrt, value in cgprimer.gradient(graph, of=graph.outputs[0], wrt=names).items():
        shown = last_lines(found).get(f"bar_{wrt}", "= 0")
        assert float(shown.split()[1]) == pytest.approx(value, rel=1e-7)
        assert role.get(f"bar_{wrt}", "gradient") == "gradient"


def test_an_operand_that_is_used_twice_has_two_contributions() -> None:
    found = build_backward_diagram(cgprimer.parse("input xa = 3; xw = xa*xa"), at={})
    assert found.nodes[-1].detail == ("bar_xw*xa + bar_xw*xa", "= 6")
    assert len(found.edges) == 1


# --- paths ----------------------------------------------------------------------------------------


def test_a_path_and_the_sum_over_paths() -> None:
    """Case C1: the common factor dL/dd belongs to both paths."""
    found = graph_diagram(TWO_PATHS, path="a b d L")
    assert found.notes == (
        "this path: ∂b/∂a · ∂d/∂b · ∂L/∂d = 3 · 0.5 · (-1) = -1.5",
        "dL/da is the sum over 2 paths:",
        "a → b → d → L: 3 · 0.5 · (-1) = -1.5",
        "a → c → d → L: -1 · 4 · (-1) = 4",
        "dL/da = -1.5 + 4 = 2.5",
    )
    assert [(e.tail, e.head) for e in found.edges if e.emphasis] == [*pairwise("abdL")]
    assert {n.key for n in found.nodes if n.emphasis} == {"a", "b", "d", "L"}
    mazur = graph_diagram(cgprimer.load("mazur"), path="i1 h1 o1 xe").notes[-1]
    assert mazur.startswith("dxe/di1 ≈ ")
    assert mazur.count("≈") == 2  # the terms are rounded, and so is their sum


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


@pytest.mark.parametrize(
    ("text", "path", "first", "last"),
    [
        ("xs=sign(xa); xw=xs*2+xa", "xa xs xw", "= 0", "dxw/dxa = 1 + 0 = 1"),
        ("xs=sign(xa); xw=xs*2+xa", "xa xw", "= 1", "dxw/dxa = 1 + 0 = 1"),
        ("xs=1/(xa-0.5); xt=sign(xs); xw=xt*2", "xa xs xt xw", "= 0", "there is no other path"),
    ],
)
def test_a_path_over_an_edge_that_is_zero_everywhere_counts(
    text: str, path: str, first: str, last: str
) -> None:
    notes = graph_diagram(cgprimer.parse(f"input xa = 0.5; {text}"), path=path).notes
    assert notes[0].endswith(first)
    assert notes[-1].endswith(last)
