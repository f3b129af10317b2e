"""Compilation of a derivative program for an engine, and calls of its passes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cgprimer.core.evaluation.evaluator import choose_arithmetic, ignore_numpy_warnings, values_of
from cgprimer.core.evaluation.passes import run_passes
from cgprimer.core.evaluation.plain_engine import PLAIN
from cgprimer.core.methods.derivative_program import (
    DerivativeProgram,
    Derivatives,
    Execute,
    Inputs,
    Number,
    Pass,
)
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import UsageError, name_hint

if TYPE_CHECKING:
    from cgprimer.core.evaluation.engines import Engine, Reduction

__all__ = ["DTYPES", "Runner", "compile_tape", "values_of"]  # `values_of` for `cgprimer.core.run`

DTYPES = {"float64": 52, "float32": 23}  #: binary digits of each type


class Runner:
    """A derivative program that is compiled for an engine and can be called at many points.

    Args:
        program: the program to run.
        engine: an engine's name, or an engine.
        reduction: ``none`` or ``sum`` over the samples.
        dtype: ``float64`` or ``float32``.
        samples: the number of samples, if known; ``auto`` chooses the engine by it.

    Raises:
        UsageError: unknown engine or dtype, or a complex step on an engine without complex numbers.
        EngineError: the engine is not available.

    >>> import cgprimer
    >>> program = cgprimer.differentiate(cgprimer.tape(cgprimer.parse("xw = k*xa^2")))
    >>> Runner(program)({"xa": 3.0}, {"k": 2.0}, 1).derivatives
    {('xw', 'k'): 9.0}
    """

    def __init__(
        self,
        program: DerivativeProgram,
        *,
        engine: str | Engine = PLAIN,
        reduction: Reduction = "none",
        dtype: str = "float64",
        samples: int | None = None,
    ) -> None:
        if dtype not in DTYPES:
            raise UsageError(f"unknown dtype {dtype!r}", hint=name_hint(dtype, DTYPES))
        self.program, self.bits = program, DTYPES[dtype]
        if isinstance(engine, str):
            from cgprimer.core.evaluation.engine_choice import choose_engine

            engine = choose_engine(engine, program, samples)
        self.selected_engine = engine
        self.engine = engine.name
        self.sum_later = program.by_sample and reduction == "sum"
        self._compile = partial(
            compile_tape,
            engine,
            reduction="none" if self.sum_later else reduction,
            dtype="complex128" if program.is_complex else dtype,
        )
        self.execute = self._compile(program.tape)
        self._isolated: dict[int, Execute] = {}  # keyed by the identity of a pass

    def __call__(self, columns: Inputs, scalars: Inputs, samples: int) -> Derivatives:
        """Compute values and derivatives at a point, or at every sample."""
        run = partial(
            run_passes,
            self.program,
            self.execute,
            columns,
            scalars,
            samples,
            isolate=self._compile_isolated_pass,
            bits=self.bits,
        )
        if self.program.seeds_only and len(self.program.passes) == 1:
            return run()  # no arithmetic besides the engine's
        lookup = choose_arithmetic(columns.values()) if self.selected_engine is PLAIN else None
        with ignore_numpy_warnings(lookup):
            result = run()
            if not self.sum_later:
                return result
            return Derivatives(
                {name: value.sum(axis=0) for name, value in result.values.items()},
                {pair: value.sum(axis=0) for pair, value in result.derivatives.items()},
            )

    def _compile_isolated_pass(self, single_pass: Pass) -> Execute:
        """Compile the tape for a single pass, without products with its zero seeds."""
        if id(single_pass) not in self._isolated:
            from cgprimer.core.tape.tape_passes import substitute_seeds

            self._isolated[id(single_pass)] = self._compile(
                substitute_seeds(self.program.tape, single_pass.seeds)
            )
        return self._isolated[id(single_pass)]


def compile_tape(engine: Engine, tape: Tape, *, reduction: Reduction, dtype: str) -> Execute:
    """Compile a tape for an engine; expand arrays into scalars if the engine prefers them."""
    if not tape.has_arrays:
        return engine.compile(tape, reduction=reduction, dtype=dtype)
    from cgprimer.core.evaluation.engines import prefers_scalars

    if not prefers_scalars(engine, tape):
        return engine.compile(tape, reduction=reduction, dtype=dtype)
    from cgprimer.core.tape.scalarization import join_arrays, scalarize, split_arrays

    in_scalars = engine.compile(scalarize(tape), reduction=reduction, dtype=dtype)
    leaves = {leaf.name: leaf.shape for leaf in tape.leaves if leaf.shape}
    outputs = {name: tape.shapes[index] for name, index in tape.outputs.items()}

    def execute(columns: Inputs, scalars: Inputs, samples: int) -> dict[str, Number]:
        """Split the arguments into scalars, run the scalar tape, and join its outputs to arrays."""
        results = in_scalars(split_arrays(columns, leaves), split_arrays(scalars, leaves), samples)
        return join_arrays(results, outputs)

    return execute
