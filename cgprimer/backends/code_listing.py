"""Listings of generated code: LLVM IR, code of the interpreters, kernels for GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import NamedTuple

from cgprimer.backends.plan_encoding import ANY, CALL, CodeSection, EncodedPlan
from cgprimer.backends.plans.plan import Plan, PlanStep
from cgprimer.backends.plans.plan_printing import PlanNames, aligned, output_names, ranges
from cgprimer.core.tape.scalarization import scalarize
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import EngineError

# The form that an engine chooses for a tape, or the interpreter's form for any size.
FORMS = ("cpu", "cpu-interpreter", "cuda", "cuda-interpreter")


class Operation(NamedTuple):
    """One operation of an interpreter's code, as text.

    Attributes:
        handler: the name of the handler, with the pattern of its operands if there are several.
        result: the row or sum of the result.
        operands: the rows and uniform values of the operands.
        step: the operation written with the names of the tape.
    """

    handler: str
    result: str
    operands: str
    step: str


def code_text(tape: Tape, form: str, *, sums: bool, dtype: str = "float64") -> str:
    """Return the code that an engine generates for a tape.

    Args:
        tape: the tape; arrays are written out in scalars.
        form: one of FORMS.
        sums: the outputs are sums over the samples.
        dtype: ``float64`` or ``float32``.

    Raises:
        EngineError: a library of the engine is missing, or the engine cannot run the tape.
    """
    engine, _, interpreter = form.partition("-")
    if engine == "cpu":
        from cgprimer.backends.cpu.llvm_library import unavailable

        reason = unavailable()
        if reason:
            raise EngineError(f"the engine 'cpu' makes no code here: {reason}")
    module = import_module(f"cgprimer.backends.{engine}.{engine}_listing")
    text: str = module.listing(
        scalarize(tape), sums=sums, dtype=dtype, interpreter=bool(interpreter)
    )
    return text


class InterpreterListing:
    """The operations of an interpreter's program, with the names of its plan.

    Args:
        plan: the plan of the program.
        program: the program.
        uniforms: uniform value -> its index in the table of uniform values.
    """

    def __init__(self, plan: Plan, program: EncodedPlan, uniforms: Mapping[int, int]) -> None:
        self.plan, self.program, self.uniforms = plan, program, uniforms
        self.names = PlanNames(plan)

    def main(self) -> list[Operation]:
        """Return the operations for every block of samples."""
        stores = [PlanStep("store", (value,), ()) for value in self.program.stored]
        outputs = output_names(self.plan.outputs)
        texts = self.names.varying_steps()
        texts += [", ".join(outputs[value]) for value in self.program.stored]
        return self._operations(self.program.main, (*self.plan.varying, *stores), texts, ranges)

    def once(self) -> list[Operation]:
        """Return the operations once per call, whose rows are uniform values."""
        steps = self.plan.uniform
        results = sorted(value for step in steps for value in step.results)
        values = [*self.program.uniform_inputs, *results]

        def row_names(rows: Iterable[int]) -> str:
            return " ".join([f"u{self.uniforms[values[row]]}" for row in rows])

        texts = [self.names.step(step) for step in steps]
        return self._operations(self.program.uniform, steps, texts, row_names)

    def _operations(
        self,
        section: CodeSection,
        steps: Sequence[PlanStep],
        texts: Sequence[str],
        row_names: Callable[[Iterable[int]], str],
    ) -> list[Operation]:
        """Return the operations of a section; each belongs to one step."""
        codes = section.code.tolist()
        return [
            Operation(*self._columns(section, words, step, row_names), text)
            for words, step, text in zip(codes, steps, texts, strict=True)
        ]

    def _columns(
        self,
        section: CodeSection,
        words: Sequence[int],
        step: PlanStep,
        row_names: Callable[[Iterable[int]], str],
    ) -> tuple[str, str, str]:
        """Return the handler, the result and the operands of an operation."""
        opcode, target, *codes = words
        count = len(step.operands)
        name, pattern = self.program.handlers[opcode]
        if pattern == CALL:
            result, *arguments = section.groups[target].rows[: count + 1]
            return f"call {name}", row_names([result]), row_names(arguments)
        if not pattern and name in ("affine", "outer"):
            counts, offset, rows = section.groups[target][1:]
            if name == "affine":
                return name, ranges(rows[count:][: len(step.results)]), ranges(rows[:count])
            middle = counts[0] * self.program.tile[0]
            # Padding repeats the last row.
            left, right = (ranges(dict.fromkeys(r)) for r in (rows[:middle], rows[middle:]))
            return name, f"sum {offset} ...", f"{left} x {right}"
        operands = " ".join(
            [row_names([c]) if c >= 0 else f"u{self.uniforms[~c]}" for c in codes[:count]]
        )
        if pattern:
            several_forms = pattern != ANY and count > 1
            return f"{name} {pattern}" if several_forms else name, row_names([target]), operands
        results = {"sincos": row_names([target, codes[1]]), "store": f"result {target}"}
        return name, results.get(name, f"sum {target}"), operands


def operation_table(operations: Sequence[Operation]) -> list[str]:
    """Return operations as lines of a table, with their positions.

    >>> fma = Operation("fma rsr", "r0", "r1 u0 r2", "xw = k*xa + xb")
    >>> print("\\n".join(operation_table([fma])))
    #  handler  result  operands  step
    0  fma rsr  r0      r1 u0 r2  xw = k*xa + xb
    """
    if not operations:
        return ["none"]
    rows = [(str(position), *operation) for position, operation in enumerate(operations)]
    return aligned([("#", *Operation._fields), *rows])
