"""What an engine makes of a tape, as text: code for LLVM, code for an interpreter, a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import NamedTuple

from cgprimer.core.primitives import primitive
from cgprimer.core.tape.scalars import scalarize
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import EngineError
from cgprimer.native.encoding import ANY, CALL, Group, Part, Program
from cgprimer.native.plans.plan import FUSED, Affine, Outer, Plan
from cgprimer.native.plans.printing import PlanNames, output_names, step_line

# The engines' own form for a tape of this size, or the interpreter's whatever the size.
FORMS = ("cpu", "cpu-interpreter", "cuda", "cuda-interpreter")


# Operands of operations that are no primitive's.
_COUNTS = {"sum": 1, "dot": 2, "store": 1, "sincos": 1, "fma": 3, "fms": 3, "fnma": 3}


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
        tape: any tape; one of arrays is written out in numbers.
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
    text: str = room.listing(scalarize(tape), sums=sums, dtype=dtype, interpreter=bool(interpreter))
    return text


class InterpreterListing:
    """The operations of a program, with the names that its plan knows.

    Args:
        plan: the program's.
        program: what is listed.
        shared: the number of each value that no sample changes.
    """

    def __init__(self, plan: Plan, program: Program, shared: Mapping[int, int]) -> None:
        self.plan, self.program, self.shared = plan, program, shared
        self.names = PlanNames(plan.tape, plan.size)

    def main(self) -> list[Operation]:
        """What is done for every block of samples."""
        groups = self.plan.groups
        own = [(step, groups.get(k)) for k, step in enumerate(self.plan.varying)]
        steps = [(step_line(step, self.names, group), group) for step, group in own]
        names = output_names(self.plan.outputs)
        steps += [(", ".join(names[value]), None) for value in self.program.stored]
        return self._operations(self.program.main, steps, ranges)

    def once(self) -> list[Operation]:
        """What is done once a call: rows stand for shared numbers there."""
        steps = self.plan.uniform
        made = sorted(value for step in steps for value in step.results)
        value_of = [*self.program.given, *made]

        def places(rows: Sequence[int]) -> str:
            return " ".join(f"u{self.shared[value_of[row]]}" for row in rows)

        texts = [(step_line(step, self.names), None) for step in steps]
        return self._operations(self.program.uniform, texts, places)

    def _operations(
        self,
        part: Part,
        steps: Sequence[tuple[str, Affine | Outer | None]],
        rows: Callable[[Sequence[int]], str],
    ) -> list[Operation]:
        def place(word: int) -> str:
            return rows([word]) if word >= 0 else f"u{self.shared[~word]}"

        found = []
        for (number, target, *words), (step, group) in zip(part.code.tolist(), steps, strict=True):
            name, pattern = self.program.handlers[number]
            if group is not None:
                high = self.program.tile[0]
                found.append(_group_operation(part.groups[target], group, high, step))
                continue
            own = not pattern or name in FUSED
            count = _COUNTS[name] if own else primitive(name).arity
            given = " ".join(map(place, words[:count]))
            shown, result = name, rows([target]) if pattern else f"sum {target}"
            if pattern == CALL:
                to, *operands = part.groups[target].rows
                shown, result, given = f"call {name}", rows([to]), rows(operands[:count])
            elif pattern and pattern != ANY and count > 1:
                shown = f"{name} {pattern}"
            elif name == "sincos" and own:
                result = rows([target, words[1]])
            elif name == "store" and own:
                result = f"result {target}"
            found.append(Operation(shown, result, given, step))
        return found


def _group_operation(place: Group, group: Affine | Outer, high: int, step: str) -> Operation:
    """A matrix at work, or a block of products, without what pads its tiles."""
    if isinstance(group, Affine):
        count, rows = len(group.inputs), place.rows
        results = ranges(rows[count:][: len(group.outputs)])
        return Operation(place.name, results, ranges(rows[:count]), step)
    right = place.rows[place.counts[0] * high :][: len(group.right)]
    given = f"{ranges(place.rows[: len(group.left)])} x {ranges(right)}"
    return Operation(place.name, f"sum {place.begin} ...", given, step)


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
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


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
