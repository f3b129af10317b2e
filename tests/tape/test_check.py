"""The verifier: every planted fault is refused, and the message says where it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_entries import Instruction, Leaf
from cgprimer.core.tape.verifier import verify
from cgprimer.errors import TapeError
from tests.approval import refused

SOUND = Tape(
    leaves=(Leaf("column", "xa"), Leaf("scalar", "k"), Leaf("constant", "two", 2.0)),
    instructions=(Instruction("mul", (0, 1)), Instruction("sin", (3,)), Instruction("pow", (4, 2))),
    outputs={"xw": 5},
    names={"xa": 0, "k": 1, "xw": 5},
)


def with_instruction(position: int, name: str, *operands: int) -> Tape:
    instructions = list(SOUND.instructions)
    instructions[position] = Instruction(name, operands)
    return replace(SOUND, instructions=tuple(instructions))


def with_leaf(kind: Any, name: str) -> Tape:
    return replace(SOUND, leaves=(SOUND.leaves[0], Leaf(kind, name), SOUND.leaves[2]))


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
    "output outside": (replace(SOUND, outputs={"xw": 6}), "'xw' ... 6"),
    "output before the start": (replace(SOUND, outputs={"xw": -1}), "'xw' ... -1"),
    "name outside": (replace(SOUND, names={"xa": 0, "xq": 17}), "'xq' ... 17"),
    "two columns with one name": (with_leaf("column", "xa"), "'xa'"),
    "column and scalar with one name": (with_leaf("scalar", "xa"), "'xa'"),
    "unknown kind": (with_leaf("row", "xb"), "'xb' ... 'row'"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_tape_is_refused(fault: str) -> None:
    tape, says = FAULTS[fault]
    with refused(TapeError, says):
        verify(tape)


def test_a_sound_tape_is_returned_also_with_equal_constants_or_nothing() -> None:
    alike = Leaf("constant", "c", 1.0), Leaf("constant", "c", 2.0)
    for tape in (SOUND, Tape(alike, (), {}), Tape((), (), {})):
        assert verify(tape) is tape
