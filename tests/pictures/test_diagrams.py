"""What is drawn: vertices, roles, edges, parameters on edges, values."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

import cgprimer
from cgprimer.errors import MissingValueError, UsageError
from cgprimer.visualization.diagrams.drawing import draw
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
from cgprimer.visualization.diagrams.level_diagrams import (
    build_operation_diagram,
    build_variable_diagram,
)
from tests.approval import refused

LECTURE = cgprimer.load(Path(__file__).resolve().parents[2] / "examples" / "lecture.cg")


def edges_of(text: str, **settings: str) -> dict[tuple[str, str], str]:
    found = build_variable_diagram(cgprimer.parse(text), **settings)
    return {(e.tail, e.head): e.label for e in found.edges}


def test_the_lecture_example() -> None:
    found = build_variable_diagram(LECTURE)
    assert [(n.key, n.label, n.role, n.detail) for n in found.nodes] == [
        ("xa", "xa", "input", ()),
        ("xx", "xx", "inner", ("xa^2",)),
        ("xy", "xy", "inner", ("ab*xx + ac*xa",)),
        ("xz", "xz", "inner", ("bc*xx + xy",)),
        ("xw", "xw", "output", ("cd*xx + xz^3",)),
    ]
    assert {(e.tail, e.head): e.label for e in found.edges} == {
        ("xa", "xx"): "",
        ("xa", "xy"): "ac",
        ("xx", "xy"): "ab",
        ("xx", "xz"): "bc",
        ("xx", "xw"): "cd",
        ("xy", "xz"): "",
        ("xz", "xw"): "",
    }
    assert len(found.edges) == 7


def test_edges_are_leads_to() -> None:
    pairs = [(e.tail, e.head) for e in build_variable_diagram(LECTURE).edges]
    assert pairs == [(t, h) for t, heads in LECTURE.leads_to.items() for h in heads]


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("xw = k*xa + b", {("xa", "xw"): "k", ("b", "xw"): ""}),
        ("xw = a*b*xa", {("xa", "xw"): "a, b"}),
        ("xw = b*a*xa", {("xa", "xw"): "b, a"}),
        ("xw = xa^n", {("xa", "xw"): "n"}),
        ("xw = xa/k", {("xa", "xw"): "k"}),
        ("xw = k*xa*xb", {("xa", "xw"): "k", ("xb", "xw"): "k"}),
        ("xw = sin(k*xa)", {("xa", "xw"): "k"}),
        ("xw = k*(xa + xb*m)", {("xa", "xw"): "k", ("xb", "xw"): "k, m"}),
        ("xb = k*xa; xw = xb^2", {("xa", "xb"): "k", ("xb", "xw"): ""}),
        ("xw = xa - xa + k", {("xa", "xw"): "", ("k", "xw"): ""}),
        ("xw = exp(xa + k)", {("xa", "xw"): "", ("k", "xw"): ""}),
        ("xw = m*tanh(k*xa + b)", {("xa", "xw"): "m, k", ("b", "xw"): ""}),
        ("xw = xa", {("xa", "xw"): ""}),
    ],
)
def test_parameters_stand_on_the_edges_of_what_they_multiply(
    text: str, labels: dict[tuple[str, str], str]
) -> None:
    assert edges_of(text) == labels


def test_parameters_as_vertices() -> None:
    found = build_variable_diagram(LECTURE, parameters="vertices")
    roles = {n.key: n.role for n in found.nodes}
    assert {k for k, role in roles.items() if role == "parameter"} == {"ab", "bc", "cd", "ac"}
    assert all(e.label == "" for e in found.edges)
    pairs = {(e.tail, e.head) for e in found.edges}
    assert {("ab", "xy"), ("ac", "xy"), ("bc", "xz"), ("cd", "xw")} <= pairs
    assert len(pairs) == len(found.edges) == 11


def test_values() -> None:
    found = build_variable_diagram(LECTURE, at={})
    shown = {n.key: n.detail[-1] for n in found.nodes}
    assert shown == {
        "xa": "= 0.5", "xx": "= 0.25", "xy": "= 2.25", "xz": "= 2.75", "xw": "= 21.546875",
    }  # fmt: skip
    other = build_variable_diagram(LECTURE, at={"xa": -0.5}, parameters="vertices")
    shown = {n.key: n.detail[-1] for n in other.nodes}
    assert shown["xw"] == "= -1.203125"
    assert shown["ac"] == "= 4"


def test_roles_follow_declarations() -> None:
    graph = cgprimer.parse("input a = 1; xv = k*a; xw = xv^2; output xv, xw")
    assert {n.key: n.role for n in build_variable_diagram(graph).nodes} == {
        "a": "input", "xv": "output", "xw": "output",
    }  # fmt: skip


def test_operations() -> None:
    found = build_operation_diagram(cgprimer.parse("xz = ab*xa + 1; xw = sin(xz) - xz^2"))
    by_key = {n.key: n for n in found.nodes}
    labels = [n.label for n in found.nodes]
    assert sorted(labels) == sorted(["xa", "ab", "1", "2", "×", "+", "sin", "^", "−"])
    roles = {n.label: n.role for n in found.nodes}
    assert (roles["xa"], roles["ab"], roles["1"]) == ("input", "parameter", "constant")
    assert (roles["×"], roles["−"]) == ("operation", "output")
    pairs = {(by_key[e.tail].label, by_key[e.head].label) for e in found.edges}
    assert pairs == {
        ("ab", "×"), ("xa", "×"), ("×", "+"), ("1", "+"), ("+", "sin"), ("+", "^"), ("2", "^"),
        ("sin", "−"), ("^", "−"),
    }  # fmt: skip
    assert next(n for n in found.nodes if n.label == "−").detail[0].startswith("xw = ")


def test_operations_with_values() -> None:
    found = build_operation_diagram(LECTURE, at={"xa": -0.5})
    assert next(n for n in found.nodes if n.role == "output").detail[-1] == "= -1.203125"
    assert next(n for n in found.nodes if n.label == "xa").detail == ("= -0.5",)
    assert sum(n.role == "operation" for n in found.nodes) == len(cgprimer.tape(LECTURE)) - 1


def test_an_operand_used_twice_is_one_edge() -> None:
    found = build_operation_diagram(cgprimer.parse("xw = xa*xa"))
    assert len(found.edges) == 1


def test_every_node_of_the_operations_is_on_an_edge() -> None:
    found = build_operation_diagram(LECTURE)
    ends = {k for e in found.edges for k in (e.tail, e.head)}
    assert ends == {n.key for n in found.nodes}


def test_an_unused_declaration_is_no_problem() -> None:
    graph = cgprimer.parse("xw = k*xa; input xu = 1; parameter spare = 2")
    for level in ("variables", "operations"):
        draw(graph, level=level)


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"level": "atoms"}, UsageError, "'atoms'"),
        ({"parameters": "nowhere"}, UsageError, "'nowhere'"),
        ({"at": {"xq": 1.0}}, UsageError, "'xq'"),
        ({"at": {"xa": [1.0, 2.0]}}, UsageError, "array"),
    ],
)
def test_mistakes(settings: dict, error: type[Exception], said: str) -> None:
    with refused(error, said):
        draw(LECTURE, **settings)


def test_what_is_missing() -> None:
    with refused(MissingValueError, "xa"):
        draw(cgprimer.parse("xw = k*xa"), at={"k": 1.0})
    with refused(UsageError):
        draw(cgprimer.parse("parameter k = 1"))


@pytest.mark.parametrize("level", ["variables", "operations"])
def test_figures_show_names_and_values(level: str) -> None:
    figure = draw(LECTURE, at={}, level=level, title="A title", dark=level == "operations")
    texts = [t.get_text() for t in figure.findobj(match=lambda a: hasattr(a, "get_text"))]
    assert "A title" in texts
    # The tape needs more of a slide than the graph: there results have five digits.
    assert any(("21.546875" if level == "variables" else "21.547") in t for t in texts)
    assert any(t == "xa" for t in texts)


def test_values_that_are_not_finite_are_drawn() -> None:
    figure = draw(cgprimer.parse("input xa = 0; xw = 1/xa"), at={})
    figure.savefig(io.BytesIO(), format="svg")


@pytest.mark.slow
def test_the_same_picture_whatever_the_hash_seed(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib, cgprimer;"
        "from cgprimer.visualization.diagrams.figure_files import save_figure;"
        "g = cgprimer.parse('xv = k*xa + m*xb; xw = xv*xa + n; xu = xw + xv');"
        "save_figure(cgprimer.draw(g), pathlib.Path(sys.argv[1]))"
    )
    digests = set()
    for seed in ("1", "2"):
        path = tmp_path / f"{seed}.svg"
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", code, str(path)], check=True, env=environment)
        digests.add(hashlib.sha256(path.read_bytes()).hexdigest())
    assert len(digests) == 1


def test_a_rounded_parameter_on_an_edge_says_so() -> None:
    text = "input xa = 1; parameter k = 0.123456789, c = 0.5; xw = k*xa; xv = c*xw"
    assert [e.label for e in graph_diagram(cgprimer.parse(text), values=True).edges] == [
        "k≈0.12346",
        "c=0.5",
    ]
