"""Passes: small pure functions from a tape to a tape, or to facts about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Leaf, Tape


def reachable(tape: Tape, roots: Iterable[int]) -> list[bool]:
    """For each value, whether any of the roots needs it."""
    needed = [False] * tape.size
    for root in roots:
        needed[root] = True
    first = len(tape.leaves)
    for position in range(len(tape) - 1, -1, -1):
        if needed[first + position]:
            for operand in tape.instructions[position].operands:
                needed[operand] = True
    return needed


def depends(tape: Tape, sources: Iterable[int]) -> list[bool]:
    """For each value, whether it is one of the sources or computed from one."""
    reached = [False] * tape.size
    for source in sources:
        reached[source] = True
    first = len(tape.leaves)
    for position, instruction in enumerate(tape.instructions):
        if not reached[first + position]:
            reached[first + position] = any(reached[o] for o in instruction.operands)
    return reached


def dead_code(tape: Tape) -> Tape:
    """Without what no output needs. Columns and scalars stay: they are the program's signature."""
    builder = Builder(share=False, simplify=False)
    value = builder.extend(tape)
    return builder.finish({name: value[i] for name, i in tape.outputs.items()}, prune=True)


def last_uses(tape: Tape) -> list[int]:
    """For each value the last value computed from it; ``tape.size`` for outputs, -1 if unused."""
    last = [-1] * tape.size
    first = len(tape.leaves)
    for position, (_, operands) in enumerate(tape.instructions):
        for operand in operands:
            last[operand] = first + position
    for index in tape.outputs.values():
        last[index] = tape.size
    return last


def live_memory(tape: Tape) -> int:
    """The most computed values that are alive at one time: memory per sample, in values.

    Leaves are not counted: inputs, parameters and seeds are there anyway.

    >>> from cgprimer.core.graph import parse
    >>> from cgprimer.core.tape.lowering import lower
    >>> live_memory(lower(parse("xb = sin(xa); xc = sin(xb); xd = sin(xc)")))
    2
    """
    last = last_uses(tape)
    first = len(tape.leaves)
    alive = most = 0
    for position, (_, operands) in enumerate(tape.instructions):
        here = first + position
        alive += 1
        most = max(most, alive)
        alive -= sum(1 for o in set(operands) if o >= first and last[o] == here)
        if last[here] < 0:
            alive -= 1
    return most


def as_columns(tape: Tape, names: Iterable[str]) -> Tape:
    """With these scalars as columns: a parameter that has a value per sample."""
    wanted = set(names)
    leaves = tuple(
        Leaf("column", leaf.name) if leaf.kind == "scalar" and leaf.name in wanted else leaf
        for leaf in tape.leaves
    )
    return replace(tape, leaves=leaves)
