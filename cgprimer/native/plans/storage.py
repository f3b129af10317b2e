"""Storage: where in a block's buffer each value lives, and when its place is free again.

A block of samples is a table with a row for each value that is alive. A value dies where it is
used for the last time; its row then goes to the next value that is made. So the table stays
small enough for the processor's cache, however long the tape is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cgprimer.garbage_collection import collector_paused
from cgprimer.native.plans.plan import Plan

_SUMS = ("sum", "dot", "outer")
# Steps that write a result before they have read all they need: their results get rows apart.
_APART = ("affine", "sincos")
_SEARCHED = 64  # free rows that are looked at for a run of neighbours, if not four times its length


@dataclass(frozen=True, eq=False, repr=False)
class Storage:
    """Where values live.

    Attributes:
        row_of: for each value that a step computes for every sample, its row; columns and
            what is computed once a call have none.
        count: number of rows.
    """

    row_of: dict[int, int]
    count: int


def storage_of(plan: Plan) -> Storage:
    """Give each value of a plan a row, and a dead value's row to the next that needs one.

    A step on single values may write onto the row of an operand that dies there. The results of
    a matrix, and a sine with its cosine, get rows that none of the operands has. The results of a
    matrix are neighbours where a run of free rows is at hand.

    >>> import cgprimer
    >>> from cgprimer.native.plans.making import plan
    >>> tape = cgprimer.tape(cgprimer.parse("xw = sin(exp(sin(xa)))"))
    >>> found = storage_of(plan(tape, sums=False))
    >>> found.row_of, found.count
    ({1: 0, 2: 0, 3: 0}, 1)
    """
    with collector_paused():
        # Of each value the last step that reads it; outputs are read when all steps are done.
        steps = enumerate(plan.varying)
        last = {operand: number for number, (_, operands, _) in steps for operand in operands}
        last |= dict.fromkeys(plan.outputs.values(), len(plan.varying))
        row_of: dict[int, int] = {}
        free: list[int] = []
        count = 0
        for position, (name, operands, results) in enumerate(plan.varying):
            dying = []
            for operand in operands:
                if last.get(operand) == position and operand in row_of:
                    dying.append(row_of[operand])
                    last[operand] = -1  # an operand may be there twice
            if name in _SUMS:
                free.extend(dying)
                continue
            if name not in _APART:
                free.extend(dying)
                dying = []
            if len(results) == 1 and free:
                row_of[results[0]] = free.pop()
            else:
                count = _take(results, row_of, free, count)
            free.extend(dying)
        return Storage(row_of, count)


def _take(results: Iterable[int], row_of: dict[int, int], free: list[int], count: int) -> int:
    """Rows for several results, neighbours if possible; returns the number of rows now."""
    wanted = tuple(results)
    run = _run(free, len(wanted))
    if run < 0 and len(free) < len(wanted):
        run, count = count, count + len(wanted)
    for offset, result in enumerate(wanted):
        row_of[result] = free.pop() if run < 0 else run + offset
    return count


def _run(free: list[int], length: int) -> int:
    """The first of so many neighbouring free rows, which are taken out of the list; or -1."""
    if len(free) < length:
        return -1
    searched = max(_SEARCHED, 4 * length)  # bounded, so that the work grows with the plan alone
    tail = sorted(free[-searched:])
    for start in range(len(tail) - length + 1):
        if tail[start + length - 1] - tail[start] == length - 1:
            del free[-searched:]
            free.extend(reversed(tail[:start] + tail[start + length :]))
            return tail[start]
    return -1
