"""Find the values of a tape that others depend on, or that depend on others."""

from __future__ import annotations

from collections.abc import Iterable

from cgprimer.core.tape.tape import Tape


def reachable(tape: Tape, roots: Iterable[int]) -> list[bool]:
    """Return for each value of a tape whether at least one of the root values depends on it.

    Args:
        tape: the tape.
        roots: indices of values. Each root depends on itself.

    Returns:
        A boolean for each value, in tape order.
    """
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
    """Return for each value of a tape whether it depends on at least one of the source values.

    Args:
        tape: the tape.
        sources: indices of values. Each source depends on itself.

    Returns:
        A boolean for each value, in tape order.
    """
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
    """Return for each value of a tape whether it depends on a column, so differs by sample."""
    return find_dependents(tape, [i for i, leaf in enumerate(tape.leaves) if leaf.kind == "column"])
