"""Listings of generated code: LLVM IR, interpreter programs and kernels for GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import NamedTuple

from cgprimer.backends.plan_encoding import ANY, CALL, CodeSection, EncodedPlan
from cgprimer.backends.plans.plan import Plan, PlanStep
from cgprimer.backends.plans.plan_printing import (
    PlanNames,
    align_columns,
    format_row_ranges,
    group_output_names,
)
from cgprimer.core.tape.scalarization import scalarize
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import EngineError

# "cpu" and "cuda": the code that the engine chooses for a tape of this size.
FORMS = ("cpu", "cpu-interpreter", "cuda", "cuda-interpreter")


class ListingRow(NamedTuple):
    """One row of the listing of an interpreter program: an operation as strings.

    Attributes:
        handler: name of the operation, followed by the kinds of its operands if they vary.
        result: buffer row or sum that receives the result.
        operands: buffer rows and uniform values.
        step: the plan step, written with the names of the tape.
    """

    handler: str
    result: str
    operands: str
    step: str


def code_text(tape: Tape, form: str, *, sums: bool, dtype: str = "float64") -> str:
    """Return the code that an engine generates for a tape, as text.

    Args:
        tape: the tape; arrays are expanded into scalars.
        form: one of FORMS.
        sums: sum the outputs over the samples.
        dtype: ``float64`` or ``float32``.

    Raises:
        EngineError: a library of the engine is missing, or the engine cannot run the tape.
    """
    engine, _, interpreter = form.partition("-")
    if engine == "cpu":
        from cgprimer.backends.cpu.llvm_library import explain_unavailability

        reason = explain_unavailability()
        if reason:
            raise EngineError(f"the engine 'cpu' cannot generate code on this machine: {reason}")
    module = import_module(f"cgprimer.backends.{engine}.{engine}_listing")
    text: str = module.build_listing(
        scalarize(tape), sums=sums, dtype=dtype, interpreter=bool(interpreter)
    )
    return text


class InterpreterListing:
    """Listing of an interpreter program, with the value names of its execution plan.

    Args:
        plan: the execution plan.
        program: the plan encoded for the interpreter.
        uniforms: uniform value -> its index in the table of uniform values.
    """

    def __init__(self, plan: Plan, program: EncodedPlan, uniforms: Mapping[int, int]) -> None:
        self.plan, self.program, self.uniforms = plan, program, uniforms
        self.names = PlanNames(plan)

    def list_block_operations(self) -> list[ListingRow]:
        """List the operations that run for every block of samples."""
        stores = [PlanStep("store", (value,), ()) for value in self.program.stored]
        outputs = group_output_names(self.plan.outputs)
        texts = self.names.format_varying_steps()
        texts += [", ".join(outputs[value]) for value in self.program.stored]
        return self._format_section(
            self.program.main, (*self.plan.varying, *stores), texts, format_row_ranges
        )

    def list_uniform_operations(self) -> list[ListingRow]:
        """List the operations that run once per call, on values shared by all samples."""
        steps = self.plan.uniform
        results = sorted(value for step in steps for value in step.results)
        values = [*self.program.uniform_inputs, *results]

        def format_uniform_rows(rows: Iterable[int]) -> str:
            """Format row indices as names of uniform values, such as ``u0 u2``."""
            return " ".join([f"u{self.uniforms[values[row]]}" for row in rows])

        texts = [self.names.format_step(step) for step in steps]
        return self._format_section(self.program.uniform, steps, texts, format_uniform_rows)

    def _format_section(
        self,
        section: CodeSection,
        steps: Sequence[PlanStep],
        texts: Sequence[str],
        format_rows: Callable[[Iterable[int]], str],
    ) -> list[ListingRow]:
        """Format the operations of a code section, one listing row per plan step."""
        codes = section.code.tolist()
        return [
            ListingRow(*self._format_operation(section, words, step, format_rows), text)
            for words, step, text in zip(codes, steps, texts, strict=True)
        ]

    def _format_operation(
        self,
        section: CodeSection,
        words: Sequence[int],
        step: PlanStep,
        format_rows: Callable[[Iterable[int]], str],
    ) -> tuple[str, str, str]:
        """Format the handler, the result and the operands of an encoded operation."""
        opcode, target, *codes = words
        count = len(step.operands)
        name, pattern = self.program.handlers[opcode]
        if pattern == CALL:
            result, *arguments = section.groups[target].rows[: count + 1]
            return f"call {name}", format_rows([result]), format_rows(arguments)
        if not pattern and name in ("affine", "outer"):
            counts, offset, rows = section.groups[target][1:]
            if name == "affine":
                return (
                    name,
                    format_row_ranges(rows[count:][: len(step.results)]),
                    format_row_ranges(rows[:count]),
                )
            middle = counts[0] * self.program.tile[0]
            # Padding repeats the last row.
            left, right = (
                format_row_ranges(dict.fromkeys(r)) for r in (rows[:middle], rows[middle:])
            )
            return name, f"sum {offset} ...", f"{left} x {right}"
        operands = " ".join(
            [format_rows([c]) if c >= 0 else f"u{self.uniforms[~c]}" for c in codes[:count]]
        )
        if pattern:
            several_forms = pattern != ANY and count > 1
            return f"{name} {pattern}" if several_forms else name, format_rows([target]), operands
        results = {"sincos": format_rows([target, codes[1]]), "store": f"result {target}"}
        return name, results.get(name, f"sum {target}"), operands


def format_table(rows: Sequence[ListingRow]) -> list[str]:
    """Format the rows of a listing as the lines of a table, with row numbers.

    >>> fma = ListingRow("fma rsr", "r0", "r1 u0 r2", "xw = k*xa + xb")
    >>> print("\\n".join(format_table([fma])))
    #  handler  result  operands  step
    0  fma rsr  r0      r1 u0 r2  xw = k*xa + xb
    """
    if not rows:
        return ["none"]
    numbered = [(str(position), *row) for position, row in enumerate(rows)]
    return align_columns([("#", *ListingRow._fields), *numbered])
