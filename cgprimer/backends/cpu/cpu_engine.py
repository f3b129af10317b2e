"""The engine ``cpu``: machine code for the whole tape, on all cores.

Small tapes become straight-line code (:mod:`.straight_line`), large ones code for an interpreter
whose handlers are compiled once (:mod:`.handlers`).
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
_PRODUCTS = 50  # operations of matrix products take as long as one operation elsewhere


class CpuEngine:
    """LLVM code for this machine's processor."""

    name = "cpu"
    scalarize_up_to = SCALARIZE_UP_TO

    def unavailable(self) -> str:
        """Return the reason why LLVM cannot be used here; empty if it can."""
        return llvm_library.unavailable()

    def minimum_work(self, tape: Tape) -> float:
        """Return the work below which numpy is done before compiled code is loaded."""
        in_matrices = tape.has_arrays and count_scalar_operations(tape)[0] > SCALARIZE_UP_TO
        return _MINIMUM_WORK * (_PRODUCTS if in_matrices else 1)

    def describe(self) -> str:
        """Return processor, vector width, number of threads and cache folder."""
        from cgprimer.backends.cpu import worker_threads
        from cgprimer.support import disk_cache

        chosen = llvm_library.get_target_processor()
        bits = f"{chosen.bits} bits" if chosen.bits > 64 else "none"
        return "\n".join(
            (
                f"processor: {chosen.name or 'any of its family'}",
                f"vectors: {bits} ({llvm_library.VECTORS}=64 for none, up to 512)",
                f"threads: {worker_threads.thread_count()} ({worker_threads.THREADS}=1 for one)",
                f"cache: {disk_cache.describe_cache()} (CGPRIMER_CACHE=off keeps nothing)",
            )
        )

    def compile(
        self, tape: Tape, *, reduction: Reduction = "none", dtype: str = "float64", batch: int = 0
    ) -> CpuExecutable | ArrayExecutable:
        """Prepare a tape for repeated execution, on ``batch`` samples per call (0: unknown).

        Args:
            tape: a tape; one with arrays becomes matrix products with kernels between them.
            reduction: `none` or `sum` over the samples.
            dtype: `float64` or `float32`.
            batch: the number of samples of each call, for tapes of scalars; 0 if it varies.
        """
        if tape.has_arrays:
            from cgprimer.backends.cpu.matrix_executable import ArrayExecutable

            return ArrayExecutable(tape, sums=reduction == "sum", dtype=dtype)
        return self._compile_scalars(tape, reduction, dtype, batch)

    def _compile_scalars(
        self, tape: Tape, reduction: Reduction, dtype: str, batch: int
    ) -> CpuExecutable:
        small = straight_line_tape(tape)
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
        """Compile whole epochs of training.

        Args:
            tape: its outputs, summed over a batch, are the loss and its derivatives.
            loss: the output that is the loss.
            gradients: the outputs that are the derivatives, in the order of the parameters; empty
                for a parameter that is not differentiated.
            parameters: names of the tape's scalars, in the order of their values.
            rule: how parameters are changed.
            dtype: of loss and derivatives; parameters are ``float64`` always.
            batch: samples per step.
        """
        from cgprimer.backends.cpu.cpu_trainer import CpuTrainer

        program = self._compile_scalars(tape, "sum", dtype, batch)
        return CpuTrainer(program, (loss, *gradients), parameters, rule, batch)


def straight_line_tape(tape: Tape) -> Tape | None:
    """Return the optimized tape if it is short enough for straight-line code, else None."""
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
