"""What an engine makes of a tape, as text: code for LLVM, code for an interpreter, a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

from cgprimer.core.tape.tape import Tape
from cgprimer.errors import EngineError

# The engines' own form for a tape of this size, or the interpreter's whatever the size.
FORMS = ("cpu", "cpu-interpreter", "cuda", "cuda-interpreter")


class Operation(NamedTuple):
    """A line of an interpreter's code.

    Attributes:
        handler: what is done, with the pattern of the operands where there are several.
        result: where to.
        operands: where from.
        step: the same with names.
    """

    handler: str
    result: str
    operands: str
    step: str


def code_text(tape: Tape, form: str, *, sums: bool, dtype: str = "float64") -> str:
    """The code that an engine makes of a tape.

    Args:
        tape: any tape.
        form: one of FORMS.
        sums: the outputs are wanted as sums over the samples.
        dtype: ``float64`` or ``float32``.

    Raises:
        EngineError: a library that the engine needs is missing, or the engine refuses the tape.
    """
    engine, _, interpreter = form.partition("-")
    if engine == "cpu":
        from cgprimer.native.cpu.library import unavailable

        reason = unavailable()
        if reason:
            raise EngineError(f"the engine 'cpu' makes no code here: {reason}")
    room = import_module(f"cgprimer.native.{engine}.listing")
    text: str = room.listing(tape, sums=sums, dtype=dtype, interpreter=bool(interpreter))
    return text


def table(operations: Sequence[Operation], first: int = 0) -> list[str]:
    """Operations under each other, with their positions.

    >>> print(*table([Operation("fma rsr", "r0", "r1 u0 r2", "xw = k*xa + xb")]), sep="\\n")
    #  handler  result  operands  step
    0  fma rsr  r0      r1 u0 r2  xw = k*xa + xb
    """
    if not operations:
        return ["none"]
    rows = [("#", "handler", "result", "operands", "step")]
    rows += [(str(first + k), *operation) for k, operation in enumerate(operations)]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def several(names: Sequence[str], most: int = 8) -> str:
    """Names, or the first of many and how many there are.

    >>> several(["u0 a", "u1 b"]), several(["a"] * 20, 2)
    ('u0 a, u1 b', 'a, a, ... (20 in all)')
    """
    if len(names) <= most:
        return ", ".join(names) or "none"
    return f"{', '.join(names[:most])}, ... ({len(names)} in all)"


def ranges(rows: Sequence[int]) -> str:
    """Rows; neighbours as their first and last.

    >>> ranges([4, 5, 6, 2])
    'r4-r6 r2'
    """
    runs: list[list[int]] = []
    for row in rows:
        if runs and row == runs[-1][-1] + 1:
            runs[-1].append(row)
        else:
            runs.append([row])
    return " ".join(
        f"r{run[0]}-r{run[-1]}" if len(run) > 2 else " ".join(f"r{row}" for row in run)
        for run in runs
    )
