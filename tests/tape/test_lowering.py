"""Lowering of graphs to tapes, printed tapes, and verification of tapes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import cgprimer
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.lowering import lower
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_entries import Instruction, Leaf
from cgprimer.core.tape.tape_printing import labels
from cgprimer.core.tape.verifier import verify
from cgprimer.errors import TapeError
from tests.approval import approved, refused
from tests.tape.tape_running import POINTS, all_values, lowered, outputs, texts, tree_values


def test_printed_tape_of_the_lecture_example() -> None:
    approved(str(lowered("xx=xa^2; xy=ab*xx+ac*xa; xz=bc*xx+xy; xw=cd*xx+xz^3")))


def test_tape_attributes() -> None:
    tape = lowered("parameter k; input xb; xw = 3*k + xb; xz = xw*xa; output xw")
    parts = [*tape.leaves, *tape.instructions, tape.outputs, tape.names, tape]
    approved("\n".join(map(repr, parts)))
    assert (len(tape), tape.size) == (3, 7)
    assert (tape.of_kind("column"), tape.of_kind("scalar")) == (("xb", "xa"), ("k",))
    assert (tape.instruction(3), tape.instruction(4)) == (None, tape.instructions[0])


def test_constants_are_deduplicated_except_signed_zeros() -> None:
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
def test_each_vertex_has_a_separate_tape_entry(text: str) -> None:
    graph = cgprimer.parse(text)
    tape = lower(graph)
    places = [tape.names[name] for name in graph.variables]
    assert len(set(places)) == len(places)
    for name in graph.definitions:  # a separate instruction, so that derivatives can stop at it
        assert tape.instruction(tape.names[name]) is not None
    shown = [label for label in labels(tape) if label]
    assert len(set(shown)) == len(shown)


def test_equal_subexpressions_do_not_reuse_a_vertex() -> None:
    # d xw / d xb is k, not k + 1: xw uses xb once, and xa^2 separately.
    graph = cgprimer.parse("xb = xa^2; xw = k*xb + xa^2")
    tape = lower(graph)
    assert len([i for i in tape.instructions if tape.names["xb"] in i.operands]) == 1
    assert cgprimer.gradient(graph, {"xa": 3, "k": 5}, wrt=["xb"]) == {"xb": 5.0}


@given(texts(numbers=["0.5", "1", "2", "3", "0.1", "-1"], functions=True), POINTS)
@settings(max_examples=15, deadline=None)
def test_lowered_tape_matches_the_graph(text: str, point: dict[str, float]) -> None:
    graph = cgprimer.parse(text)
    expected, tape = tree_values(graph, point), lower(graph)
    values = all_values(tape, point)
    assert set(tape.outputs) == set(graph.outputs)
    for name in graph.variables:
        np.testing.assert_allclose(values[tape.names[name]], expected[name], rtol=1e-12, atol=0.0)


def test_leaf_order_is_columns_scalars_constants() -> None:
    b = Builder()
    two = b.constant(2.0)
    k = b.scalar("k")
    v = b.emit("mul", two, k)
    x = b.column("xa")
    tape = b.finish({"xw": b.emit("add", v, x)})
    assert [leaf.kind for leaf in tape.leaves] == ["column", "scalar", "constant"]
    assert outputs(tape, {"xa": 1.0, "k": 3.0}) == {"xw": 7.0}


VALID = Tape(
    leaves=(Leaf("column", "xa"), Leaf("scalar", "k"), Leaf("constant", "two", 2.0)),
    instructions=(Instruction("mul", (0, 1)), Instruction("sin", (3,)), Instruction("pow", (4, 2))),
    outputs={"xw": 5},
    names={"xa": 0, "k": 1, "xw": 5},
)


def with_instruction(position: int, name: str, *operands: int) -> Tape:
    instructions = list(VALID.instructions)
    instructions[position] = Instruction(name, operands)
    return replace(VALID, instructions=tuple(instructions))


def with_leaf(kind: Any, name: str) -> Tape:
    return replace(VALID, leaves=(VALID.leaves[0], Leaf(kind, name), VALID.leaves[2]))


FAULTS = {
    "uses itself": (with_instruction(1, "sin", 4), "1 ... 4"),
    "uses a later value": (with_instruction(0, "mul", 0, 4), "0 ... 4"),
    "uses a value beyond the end": (with_instruction(2, "pow", 4, 99), "2 ... 99"),
    "uses a negative index": (with_instruction(1, "sin", -1), "-1"),
    "too few operands": (with_instruction(0, "mul", 0), "0 ... 'mul' ... 2 ... 1"),
    "too many operands": (with_instruction(1, "sin", 3, 0), "1 ... 'sin' ... 2"),
    "no operands": (with_instruction(1, "sin"), "1 ... 'sin' ... 0"),
    "unknown primitive": (with_instruction(2, "sine", 4), "2 ... 'sine'"),
    "a function's spelling that is no row": (with_instruction(2, "+", 4, 0), "'+'"),
    "output outside": (replace(VALID, outputs={"xw": 6}), "'xw' ... 6"),
    "output before the start": (replace(VALID, outputs={"xw": -1}), "'xw' ... -1"),
    "name outside": (replace(VALID, names={"xa": 0, "xq": 17}), "'xq' ... 17"),
    "two columns with one name": (with_leaf("column", "xa"), "'xa'"),
    "column and scalar with one name": (with_leaf("scalar", "xa"), "'xa'"),
    "unknown kind": (with_leaf("row", "xb"), "'xb' ... 'row'"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_verifier_rejects_invalid_tapes(fault: str) -> None:
    tape, says = FAULTS[fault]
    with refused(TapeError, says):
        verify(tape)


def test_verifier_returns_valid_tapes() -> None:
    alike = Leaf("constant", "c", 1.0), Leaf("constant", "c", 2.0)
    for tape in (VALID, Tape(alike, (), {}), Tape((), (), {})):
        assert verify(tape) is tape
