"""Run the passes of a derivative program, and sum the values that they read."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cgprimer.core.methods.derivative_program import (
    DerivativeProgram,
    Derivatives,
    Entry,
    Execute,
    Inputs,
    Number,
    Pass,
)
from cgprimer.support.array_values import all_finite


def run_passes(
    program: DerivativeProgram,
    execute: Execute,
    columns: Inputs,
    scalars: Inputs,
    samples: int,
    *,
    isolate: Callable[[Pass], Execute] | None = None,
    bits: int = 52,
) -> Derivatives:
    """Run all passes of a derivative program; return its values and derivatives.

    Args:
        program: the program.
        execute: the program's tape, compiled.
        columns: an array of shape (samples, ...) for each column, or a number.
        scalars: a number or an array for each scalar.
        samples: the number of samples.
        isolate: compiles the tape for a single pass, without products with its zero seeds. A pass
            runs again in this form if an output is not finite; never by default.
        bits: binary digits of the arithmetic, from which step sizes are chosen.
    """
    if program.elements:
        from cgprimer.core.tape.scalarization import split_arrays

        columns, scalars = (
            split_arrays(columns, program.elements),
            split_arrays(scalars, program.elements),
        )
    if program.step_rule is None:
        outputs, totals = _run_seeded_passes(program, execute, columns, scalars, samples, isolate)
    else:
        from cgprimer.core.evaluation.difference_quotients import compute_difference_quotients

        outputs, totals = compute_difference_quotients(
            program, execute, columns, scalars, samples, bits
        )
    if program.elements:
        from cgprimer.core.evaluation.derivative_arrays import join_elements

        return join_elements(program, outputs, totals)
    values = {name: outputs[name] for name in program.of}
    if program.shapes:
        from cgprimer.core.evaluation.derivative_arrays import join_blocks

        return Derivatives(values, join_blocks(program, totals))
    return Derivatives(values, {(of, wrt): total for (of, wrt, _, _), total in totals.items()})


def _run_seeded_passes(
    program: DerivativeProgram,
    execute: Execute,
    columns: Inputs,
    scalars: Inputs,
    samples: int,
    isolate: Callable[[Pass], Execute] | None,
) -> tuple[Mapping[str, Number], dict[Entry, Number]]:
    """Run all passes; return the outputs of the first pass and the sums of the derivatives read."""
    first: Mapping[str, Number] = {}
    totals: dict[Entry, Number] = {}
    for single_pass in program.passes:
        outputs = execute(columns, {**scalars, **single_pass.seeds}, samples)
        first = first or outputs
        # A seed of 0 that meets an infinite partial would make a finite derivative nan.
        if (
            isolate
            and len(single_pass.seeds) > 1
            and not all(all_finite(outputs[read.output]) for read in single_pass.reads)
        ):
            outputs = isolate(single_pass)(columns, scalars, samples)
        single_pass.accumulate_reads(totals, outputs)
    return first, totals
