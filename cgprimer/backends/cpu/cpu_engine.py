"""The engine ``cpu``: machine code for a whole tape, on all cores.

Small tapes become straight-line code (:mod:`.straight_line`). Large tapes become code for an
interpreter, whose handlers are compiled once (:mod:`.interpreter_handlers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cgprimer.backends.cpu import llvm_library
from cgprimer.backends.interfaces import Trainer, UpdateRule
from cgprimer.backends.plans.optimization import optimize
from cgprimer.core.evaluation.engines import SCALARIZE_UP_TO, Reduction, count_scalar_operations
from cgprimer.core.operations import find_primitive
from cgprimer.core.tape.tape import Tape

if TYPE_CHECKING:
    from cgprimer.backends.cpu.cpu_executable import CpuExecutable
    from cgprimer.backends.cpu.matrix_executable import ArrayExecutable

STRAIGHT = 400  # instructions up to which straight-line code is compiled
_MINIMUM_WORK = 20_000  # operations of a run
_PRODUCTS = 50  # operations of a matrix product that take as long as one elementwise operation


class CpuEngine:
    """The engine that compiles tapes to machine code with LLVM."""

    name = "cpu"
    scalarize_up_to = SCALARIZE_UP_TO

    def unavailable(self) -> str:
        """Return the reason why LLVM cannot be loaded, or an empty string if it can."""
        return llvm_library.explain_unavailability()

    def minimum_work(self, tape: Tape) -> float:
        """Return the number of operations below which numpy is faster than loading machine code."""
        has_matrices = tape.has_arrays and count_scalar_operations(tape)[0] > SCALARIZE_UP_TO
        return _MINIMUM_WORK * (_PRODUCTS if has_matrices else 1)

    def describe(self) -> str:
        """Return a description of the processor, the vector width, the threads and the cache."""
        from cgprimer.backends.cpu import worker_threads
        from cgprimer.support import disk_cache

        processor, threads = llvm_library.get_target_processor(), worker_threads.get_thread_count()
        bits = f"{processor.bits} bits" if processor.bits > 64 else "none"
        return "\n".join(
            (
                f"processor: {processor.name or 'any of its family'}",
                f"vectors: {bits} ({llvm_library.VECTORS}=64 for none, up to 512)",
                f"threads: {threads} ({worker_threads.THREADS}=1 for one)",
                f"cache: {disk_cache.describe_cache()} (CGPRIMER_CACHE=off disables the cache)",
            )
        )

    def compile(
        self, tape: Tape, *, reduction: Reduction = "none", dtype: str = "float64", batch: int = 0
    ) -> CpuExecutable | ArrayExecutable:
        """Compile a tape for repeated execution.

        Args:
            tape: the tape; with arrays, it becomes matrix products with fused kernels between them.
            reduction: ``none``, or ``sum`` over the samples.
            dtype: ``float64`` or ``float32``.
            batch: number of samples per call, for tapes of scalars; 0 if it varies.
        """
        if tape.has_arrays:
            from cgprimer.backends.cpu.matrix_executable import ArrayExecutable

            return ArrayExecutable(tape, sums=reduction == "sum", dtype=dtype)
        return self._compile_scalars(tape, reduction, dtype, batch)

    def _compile_scalars(
        self, tape: Tape, reduction: Reduction, dtype: str, batch: int
    ) -> CpuExecutable:
        """Compile a tape of scalars to straight-line code, or to code for the interpreter."""
        small = optimize_for_straight_line(tape)
        if small is not None:
            from cgprimer.backends.cpu.straight_line import StraightLineExecutable

            return StraightLineExecutable(small, reduction=reduction, dtype=dtype, batch=batch)
        from cgprimer.backends.cpu.interpreter import InterpretedExecutable

        return InterpretedExecutable(tape, reduction=reduction, dtype=dtype)

    def trainer(
        self,
        tape: Tape,
        *,
        loss: str,
        gradients: Sequence[str],
        parameters: Sequence[str],
        rule: UpdateRule,
        dtype: str,
        batch: int,
    ) -> Trainer:
        """Compile a loop over batches that computes gradients and updates the parameters.

        Args:
            tape: a tape whose outputs, summed over a batch, are the loss and its derivatives.
            loss: name of the output that is the loss.
            gradients: names of the outputs that are the derivatives, in the order of the
                parameters; empty for a parameter that is not differentiated.
            parameters: names of the tape's scalars, in the order of their values.
            rule: the update rule of the optimizer.
            dtype: dtype of the loss and the derivatives; parameters are always ``float64``.
            batch: number of samples per training step.
        """
        from cgprimer.backends.cpu.cpu_trainer import CpuTrainer

        program = self._compile_scalars(tape, "sum", dtype, batch)
        return CpuTrainer(program, (loss, *gradients), parameters, rule, batch)


def optimize_for_straight_line(tape: Tape) -> Tape | None:
    """Optimize a tape; return None if straight-line code does not support the tape."""
    from cgprimer.backends.cpu.primitive_ir import SUPPORTED

    if len(tape) > 4 * STRAIGHT:
        return None
    if not all(
        name in SUPPORTED and find_primitive(name).built_in for name, _ in tape.instructions
    ):
        return None
    tape = optimize(tape)
    return tape if len(tape) <= STRAIGHT else None


ENGINE = CpuEngine()
