"""Finite differences: run a program with one variable shifted at a time, and divide."""

from __future__ import annotations

from collections.abc import Mapping

from cgprimer.core.methods.derivative_program import (
    DerivativeProgram,
    Entry,
    Execute,
    Inputs,
    Number,
)


def compute_difference_quotients(
    program: DerivativeProgram,
    execute: Execute,
    columns: Inputs,
    scalars: Inputs,
    samples: int,
    bits: int,
) -> tuple[Mapping[str, Number], dict[Entry, Number]]:
    """Run the passes of finite differences; return the outputs and the difference quotients."""
    shifts = {
        single_pass.shift.name: single_pass.shift
        for single_pass in program.passes
        if single_pass.shift is not None
    }
    unshifted = {shift.leaf: 0.0 for name, shift in shifts.items() if shift.leaf != name}
    columns, scalars = {**unshifted, **columns}, dict(scalars)
    base = execute(columns, scalars, samples)
    point = {**base, **scalars, **columns}
    step_sizes = _choose_step_sizes(
        program, {name: point.get(name, 0.0).real for name in shifts}, bits
    )
    totals: dict[Entry, Number] = {}
    for single_pass in program.passes:
        outputs = base
        if single_pass.shift is not None:
            name, leaf, multiple = single_pass.shift
            inputs = columns if leaf in columns else scalars
            value = inputs.get(leaf, 0.0)
            inputs[leaf] = value + multiple * step_sizes[name]
            outputs = execute(columns, scalars, samples)
            inputs[leaf] = value
        if program.is_complex:
            outputs = {name: value.imag for name, value in outputs.items()}
        single_pass.accumulate_reads(totals, outputs)
    base = {name: value.real for name, value in base.items()}
    for entry, total in totals.items():
        of, wrt, *_ = entry
        if program.is_complex:
            totals[entry] = _compute_complex_step_derivative(
                total, base[of], step_sizes[wrt], point.get(wrt, 0.0).real
            )
        else:
            totals[entry] = total / step_sizes[wrt]
    return base, totals


def _choose_step_sizes(
    program: DerivativeProgram, sizes: dict[str, Number], bits: int
) -> dict[str, Number]:
    """Choose the step size of the finite difference for each variable."""
    if program.tape.combines_samples:
        import numpy as np  # samples that are shifted together have one step size

        sizes = {name: float(np.max(np.abs(v), initial=0.0)) for name, v in sizes.items()}
    assert program.step_rule is not None
    return {name: program.step_rule.choose_step(size, bits) for name, size in sizes.items()}


def _compute_complex_step_derivative(
    imaginary: Number, value: Number, step: Number, variable: Number
) -> Number:
    """Compute a derivative from the imaginary part of a complex step; nan if it is meaningless.

    Outside the real domain, or where a complex function leaves rounding errors in the imaginary
    part, the imaginary part is meaningless; divided by h = 1e-90, it is enormous.
    """
    import numpy as np

    with np.errstate(all="ignore"):
        quotient = np.divide(imaginary, step)
        # Near 0 a derivative may be large: that of log(x) is 1/x.
        scale = np.maximum(1.0, np.where(np.equal(variable, 0.0), 1.0, 1.0 / np.abs(variable)))
        plausible = np.abs(quotient) <= 1e30 * scale * np.maximum(1.0, np.abs(value))
        return np.where(np.isfinite(value) & plausible, quotient, np.nan)
