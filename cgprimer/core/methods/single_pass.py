"""Build derivative programs that have a single pass and no seeds: path-sum and symbolic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cgprimer.core.methods.derivative_program import (
    DerivativeProgram,
    Pass,
    Read,
    derivative_name,
)
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape


def build_single_pass_program(
    method: str,
    builder: Builder,
    tape: Tape,
    wrt: tuple[str, ...],
    values: Mapping[str, int],
    derivatives: Mapping[tuple[str, str], int],
    **more: Any,
) -> DerivativeProgram:
    """Build a derivative program with a single pass.

    Args:
        method: the name of the method.
        builder: the builder, with all values and derivatives emitted.
        tape: the tape that was differentiated.
        wrt: the names with respect to which it was differentiated.
        values: the value of each differentiated name in the builder.
        derivatives: the value of the derivative for each pair ``(of, wrt)`` in the builder.
        more: other attributes of the program.
    """
    reads = tuple(Read(of, name, derivative_name(of, name)) for of, name in derivatives)
    outputs = {**values, **{derivative_name(*pair): index for pair, index in derivatives.items()}}
    for name, index in outputs.items():
        builder.names.setdefault(name, index)
    derived, primal = builder.finish(outputs, prune=True), frozenset(tape.names)
    return DerivativeProgram(
        method, derived, tuple(values), wrt, (Pass(reads),), primal_names=primal, **more
    )
