"""Find the values that a value of a tape depends on, and those that depend on it."""

from __future__ import annotations

from collections.abc import Iterable

from cgprimer.core.tape.tape import Tape


def reachable(tape: Tape, roots: Iterable[int]) -> list[bool]:
    """Return for each value whether any of the roots needs it."""
    needed = [False] * tape.size
    for root in roots:
        needed[root] = True
    first = len(tape.leaves)
    for index in range(tape.size - 1, first - 1, -1):
        if needed[index]:
            for operand in tape.instructions[index - first][1]:
                needed[operand] = True
    return needed


def find_dependents(tape: Tape, sources: Iterable[int]) -> list[bool]:
    """Return for each value whether it is one of the sources or computed from one."""
    reached = [False] * tape.size
    for source in sources:
        reached[source] = True
    for index, (_, operands) in enumerate(tape.instructions, len(tape.leaves)):
        for operand in operands:
            if reached[operand]:
                reached[index] = True
                break
    return reached


def find_varying_values(tape: Tape) -> list[bool]:
    """Return for each value whether it varies with the sample; others are computed once a call."""
    return find_dependents(tape, [i for i, leaf in enumerate(tape.leaves) if leaf.kind == "column"])
