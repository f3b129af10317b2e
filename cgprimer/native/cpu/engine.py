"""The engine ``cpu``: machine code for the whole tape, on all cores.

Small tapes become straight-line code (:mod:`.straight_line`), large ones code for an interpreter
whose handlers are compiled once (:mod:`.handlers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cgprimer.core.engines import Reduction
from cgprimer.core.primitives import primitive
from cgprimer.core.tape.tape import Tape
from cgprimer.native.contract import Trainer, UpdateRule
from cgprimer.native.cpu import library
from cgprimer.native.plans.optimization import optimize

if TYPE_CHECKING:
    from cgprimer.native.cpu.executable import Executable
    from cgprimer.native.cpu.matrices import Matrices

STRAIGHT = 400  # instructions up to which straight-line code is compiled


class CpuEngine:
    """LLVM code for this machine's processor."""

    name = "cpu"

    def unavailable(self) -> str:
        """Why LLVM is not there, if it is not."""
        return library.unavailable()

    def describe(self) -> str:
        """Processor, width of vectors, threads, cache folder."""
        from cgprimer import cache
        from cgprimer.native.cpu import threads

        chosen = library.processor()
        bits = f"{chosen.bits} bits" if chosen.bits > 64 else "none"
        return "\n".join(
            (
                f"processor: {chosen.name or 'any of its family'}",
                f"vectors: {bits} ({library.VECTORS}=64 for none, up to 512)",
                f"threads: {threads.count()} ({threads.THREADS}=1 for one)",
                f"cache: {cache.description()} (CGPRIMER_CACHE=off keeps nothing)",
            )
        )

    def compile(
        self, tape: Tape, *, reduction: Reduction = "none", dtype: str = "float64", batch: int = 0
    ) -> Executable:
        """Prepare a tape for being run many times, on ``batch`` samples each unless that is 0."""
        small = straight_line_form(tape)
        if small is not None:
            from cgprimer.native.cpu.straight_line import Fused

            return Fused(small, reduction=reduction, dtype=dtype, batch=batch)
        from cgprimer.native.cpu.interpreted import Interpreted

        return Interpreted(tape, reduction=reduction, dtype=dtype)

    def compile_arrays(
        self, tape: Tape, *, reduction: Reduction = "none", dtype: str = "float64"
    ) -> Matrices:
        """A tape with arrays: matrix products, and kernels for what is between them."""
        from cgprimer.native.cpu.matrices import Matrices

        return Matrices(tape, sums=reduction == "sum", dtype=dtype)

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
        """Epochs in compiled code.

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
        from cgprimer.native.cpu.trainer import CpuTrainer

        program = self.compile(tape, reduction="sum", dtype=dtype, batch=batch)
        return CpuTrainer(program, (loss, *gradients), parameters, rule, batch)


def straight_line_form(tape: Tape) -> Tape | None:
    """The optimized tape if it is one for straight-line code."""
    from cgprimer.native.cpu.operations import SUPPORTED

    if len(tape) > 4 * STRAIGHT:
        return None
    if not all(name in SUPPORTED and primitive(name).built_in for name, _ in tape.instructions):
        return None
    tape = optimize(tape)
    return tape if len(tape) <= STRAIGHT else None


ENGINE = CpuEngine()
