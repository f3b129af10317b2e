"""Allocation of buffer rows to values, like register allocation by liveness.

The buffer of a block of samples has a row for each live value. After the last use of a value, its
row is reused for a later value. The buffer therefore fits in the processor's cache, however long
the tape is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cgprimer.backends.plans.plan import Plan
from cgprimer.support.garbage_collection import pause_garbage_collection

_SUMS = ("sum", "dot", "outer")
# Steps that write results before they have read all operands: results need separate rows.
_SEPARATE_RESULTS = ("affine", "sincos")
_MIN_SEARCHED = 64  # free rows that are searched for adjacent rows


@dataclass(frozen=True, eq=False, repr=False)
class RowAllocation:
    """Assignment of buffer rows to the values of an execution plan.

    Attributes:
        row_of: value -> row, for values that a step computes for every sample; columns and uniform
            values have no row.
        count: number of rows.
    """

    row_of: dict[int, int]
    count: int


def allocate_rows(plan: Plan) -> RowAllocation:
    """Assign a buffer row to each value of a plan, reusing the rows of dead values.

    An elementwise step may overwrite the row of an operand that it uses last. The results of an
    affine step, and a sine with its cosine, never share a row with an operand. The results of an
    affine step are in adjacent rows if enough adjacent rows are free.

    >>> import cgprimer
    >>> from cgprimer.backends.plans.planning import build_plan
    >>> tape = cgprimer.tape(cgprimer.parse("xw = sin(exp(sin(xa)))"))
    >>> rows = allocate_rows(build_plan(tape, sums=False))
    >>> rows.row_of, rows.count
    ({1: 0, 2: 0, 3: 0}, 1)
    """
    with pause_garbage_collection():
        # The last step that reads each value; outputs are read after all steps.
        steps = enumerate(plan.varying)
        last = {operand: position for position, (_, operands, _) in steps for operand in operands}
        last |= dict.fromkeys(plan.outputs.values(), len(plan.varying))
        row_of: dict[int, int] = {}
        free: list[int] = []
        count = 0
        for position, (name, operands, results) in enumerate(plan.varying):
            dying = []
            for operand in operands:
                if last.get(operand) == position and operand in row_of:
                    dying.append(row_of[operand])
                    last[operand] = -1  # an operand may occur twice
            if name in _SUMS:
                free.extend(dying)
                continue
            if name not in _SEPARATE_RESULTS:
                free.extend(dying)
                dying = []
            if len(results) == 1 and free:
                row_of[results[0]] = free.pop()
            else:
                count = _assign_adjacent_rows(results, row_of, free, count)
            free.extend(dying)
        return RowAllocation(row_of, count)


def _assign_adjacent_rows(
    results: Iterable[int], row_of: dict[int, int], free: list[int], count: int
) -> int:
    """Assign rows to several results, adjacent if possible; return the new number of rows."""
    values = tuple(results)
    run = _take_adjacent_rows(free, len(values))
    if run < 0 and len(free) < len(values):
        run, count = count, count + len(values)
    for offset, value in enumerate(values):
        row_of[value] = free.pop() if run < 0 else run + offset
    return count


def _take_adjacent_rows(free: list[int], length: int) -> int:
    """Remove adjacent rows from the free list and return the first row, or -1 if there are none."""
    if len(free) < length:
        return -1
    searched = max(_MIN_SEARCHED, 4 * length)  # bounded: the total work stays linear
    tail = sorted(free[-searched:])
    for start in range(len(tail) - length + 1):
        if tail[start + length - 1] - tail[start] == length - 1:
            del free[-searched:]
            free.extend(reversed(tail[:start] + tail[start + length :]))
            return tail[start]
    return -1


storage_of = allocate_rows  # deprecated name, kept for imports that the documentation has shown
