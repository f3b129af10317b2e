"""Graph to tape: what is shared, what stays apart, what is folded, and how it prints."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

import cgprimer
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.lowering import lower
from cgprimer.core.tape.tape_printing import labels
from tests.approval import approved
from tests.tape.tape_running import POINTS, all_values, lowered, outputs, texts, tree_values


def test_the_printed_tape_of_the_lecture_example() -> None:
    approved(str(lowered("xx=xa^2; xy=ab*xx+ac*xa; xz=bc*xx+xy; xw=cd*xx+xz^3")))


def test_the_parts_of_a_tape() -> None:
    tape = lowered("parameter k; input xb; xw = 3*k + xb; xz = xw*xa; output xw")
    parts = [*tape.leaves, *tape.instructions, tape.outputs, tape.names, tape]
    approved("\n".join(map(repr, parts)))
    assert (len(tape), tape.size) == (3, 7)
    assert (tape.of_kind("column"), tape.of_kind("scalar")) == (("xb", "xa"), ("k",))
    assert (tape.instruction(3), tape.instruction(4)) == (None, tape.instructions[0])


def test_constants_are_stored_once_but_zero_and_minus_zero_are_two() -> None:
    assert len(lowered("xw = xa*2 + k*2 + 2").of_kind("constant")) == 1
    tape = lowered("xw = xa*0 + k*(-0)")
    constants = [leaf.value for leaf in tape.leaves if leaf.kind == "constant"]
    assert sorted(math.copysign(1.0, value) for value in constants) == [-1.0, 1.0]


@pytest.mark.parametrize(
    "text",
    [
        "xb = xa^2; xc = xa^2; xw = xb*xc",
        "xb = sin(xa) + 1; xc = sin(xa); xw = xb*xc",
        "xb = sin(xa); xc = sin(xa) + 1; xw = xb*xc",
        "xb = xa; xc = xa; xw = xb*xc",
        "xb = xa; xc = xb; xw = xb*xc",
        "xb = 2; xc = 2; xw = xb*xc",
        "xb = k; xc = k; xw = xb*xc",
        "xb = k*xa; xc = xb; xd = k*xa; xw = xb*xc*xd",
        "xb = 1 + 1; xc = 2; xw = xb*xc",
        "xb = (xa + k)*2; xc = xa + k; xw = (xa + k)*xb*xc",
    ],
)
def test_two_vertices_are_never_one_value(text: str) -> None:
    graph = cgprimer.parse(text)
    tape = lower(graph)
    places = [tape.names[name] for name in graph.variables]
    assert len(set(places)) == len(places)
    for name in graph.definitions:  # each is an instruction, so that derivatives can stop at it
        assert tape.instruction(tape.names[name]) is not None
    shown = [label for label in labels(tape) if label]
    assert len(set(shown)) == len(shown)


def test_a_vertex_is_not_used_where_another_wrote_the_same_expression() -> None:
    # d xw / d xb is k, not k + 1: xw uses xb once, and xa^2 beside it.
    graph = cgprimer.parse("xb = xa^2; xw = k*xb + xa^2")
    tape = lower(graph)
    assert len([i for i in tape.instructions if tape.names["xb"] in i.operands]) == 1
    assert cgprimer.gradient(graph, {"xa": 3, "k": 5}, wrt=["xb"]) == {"xb": 5.0}


@given(texts(numbers=["0.5", "1", "2", "3", "0.1", "-1"], functions=True), POINTS)
@settings(max_examples=15, deadline=None)
def test_a_tape_computes_what_the_graph_does(text: str, point: dict[str, float]) -> None:
    graph = cgprimer.parse(text)
    expected, tape = tree_values(graph, point), lower(graph)
    values = all_values(tape, point)
    assert set(tape.outputs) == set(graph.outputs)
    for name in graph.variables:
        np.testing.assert_allclose(values[tape.names[name]], expected[name], rtol=1e-12, atol=0.0)


def test_leaves_come_first_and_columns_before_scalars_before_constants() -> None:
    b = Builder()
    two = b.constant(2.0)
    k = b.scalar("k")
    v = b.emit("mul", two, k)
    x = b.column("xa")
    tape = b.finish({"xw": b.emit("add", v, x)})
    assert [leaf.kind for leaf in tape.leaves] == ["column", "scalar", "constant"]
    assert outputs(tape, {"xa": 1.0, "k": 3.0}) == {"xw": 7.0}
