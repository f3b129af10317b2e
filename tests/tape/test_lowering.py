"""Graph to tape: what is shared, what stays apart, what is folded, and how it prints."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.lowering import lower
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_entries import Instruction, Leaf
from cgprimer.core.tape.tape_printing import labels
from tests.tape.tape_running import all_values, outputs, texts, tree_values

LECTURE = "xx=xa^2; xy=ab*xx+ac*xa; xz=bc*xx+xy; xw=cd*xx+xz^3"


def lowered(text: str) -> Tape:
    return lower(cgprimer.parse(text))


def named_instructions(tape: Tape) -> dict[str, Instruction | None]:
    return {name: tape.instruction(index) for name, index in tape.names.items()}


def test_the_printed_tape_of_the_lecture_example() -> None:
    assert str(cgprimer.tape(cgprimer.parse(LECTURE))) == (
        "input     xa\n"
        "parameter ab\n"
        "parameter ac\n"
        "parameter bc\n"
        "parameter cd\n"
        "xx = xa^2\n"
        "v1 = ab*xx\n"
        "v2 = ac*xa\n"
        "xy = v1 + v2\n"
        "v3 = bc*xx\n"
        "xz = v3 + xy\n"
        "v4 = cd*xx\n"
        "v5 = xz^3\n"
        "xw = v4 + v5\n"
        "output    xw"
    )


def test_the_parts_of_a_tape() -> None:
    tape = lowered("parameter k; input xb; xw = 3*k + xb; xz = xw*xa; output xw")
    assert tape.leaves == (
        Leaf("column", "xb"),
        Leaf("column", "xa"),
        Leaf("scalar", "k"),
        Leaf("constant", (3.0).hex(), 3.0),
    )
    assert tape.instructions == (
        Instruction("mul", (3, 2)),
        Instruction("add", (4, 0)),
        Instruction("mul", (5, 1)),
    )
    assert tape.outputs == {"xw": 5}
    assert tape.names == {"xb": 0, "xa": 1, "k": 2, "xw": 5, "xz": 6}
    assert (len(tape), tape.size) == (3, 7)
    assert tape.of_kind("column") == ("xb", "xa")
    assert tape.of_kind("scalar") == ("k",)
    assert (tape.instruction(3), tape.instruction(4)) == (None, Instruction("mul", (3, 2)))
    assert repr(tape) == "<Tape: 4 leaves, 3 instructions, outputs xw>"


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
    tape = lowered("xb = xa^2; xw = k*xb + xa^2")
    uses = [i for i in tape.instructions if tape.names["xb"] in i.operands]
    assert len(uses) == 1
    assert cgprimer.gradient(
        cgprimer.parse("xb = xa^2; xw = k*xb + xa^2"), {"xa": 3, "k": 5}, wrt=["xb"]
    ) == {"xb": 5.0}


NUMBERS = ["0.5", "1", "2", "3", "0.1", "-1"]
POINTS = st.fixed_dictionaries(
    {
        n: st.floats(-3.0, 3.0, allow_nan=False) | st.sampled_from([0.5, 1.0, 2.0])
        for n in ("xa", "xb", "k", "m")
    }
)


@given(texts(numbers=NUMBERS, functions=True), POINTS)
@settings(max_examples=25, deadline=None)
def test_a_tape_computes_what_the_graph_does(text: str, point: dict[str, float]) -> None:
    graph = cgprimer.parse(text)
    expected = tree_values(graph, point)
    tape = lower(graph)
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


SIMPLER = {
    "x*1": ("mul", "x", 1.0),
    "1*x": ("mul", 1.0, "x"),
    "x/1": ("div", "x", 1.0),
    "x^1": ("pow", "x", 1.0),
    "x - 0": ("sub", "x", 0.0),
    "where(1, x, k)": ("where", 1.0, "x", "k"),
    "where(0, k, x)": ("where", 0.0, "k", "x"),
}


@pytest.mark.parametrize("rule", SIMPLER)
def test_neutral_elements_vanish(rule: str) -> None:
    b = Builder()
    known = {"x": b.column("x"), "k": b.scalar("k")}
    name, *operands = SIMPLER[rule]
    assert (
        b.emit(name, *(known[o] if isinstance(o, str) else b.constant(o) for o in operands))
        == known["x"]
    )


@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("mul", ("x", 0.0)),
        ("mul", (0.0, "x")),
        ("sub", ("x", "x")),
        ("div", ("x", "x")),
        ("div", (0.0, "x")),
        ("pow", (1.0, "x")),
        ("pow", (0.0, "x")),
        ("where", (math.nan, "x", "k")),
    ],
)
def test_rules_that_would_hide_a_nan_or_an_infinity_are_not_used(name: str, operands) -> None:
    b = Builder()
    known = {"x": b.column("x"), "k": b.scalar("k")}
    made = b.emit(name, *(known[o] if isinstance(o, str) else b.constant(o) for o in operands))
    assert b.entries[made] == Instruction(name, b.entries[made].operands)
