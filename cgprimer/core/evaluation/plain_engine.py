"""The engine ``plain``: the evaluation loop, on floats or on numpy arrays."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from cgprimer.core.evaluation.evaluator import evaluate_instructions, prepare_instructions
from cgprimer.core.methods.derivative_program import Execute, Inputs, Number
from cgprimer.core.operations.float_arithmetic import float_function
from cgprimer.core.tape.tape import Tape

if TYPE_CHECKING:
    from cgprimer.core.evaluation.engines import Reduction


class PlainEngine:
    """The evaluator as an engine: outputs are floats if all arguments are floats, else arrays."""

    name = "plain"
    scalarize_up_to = 0

    def unavailable(self) -> str:
        """Return the empty string: the engine is always available (arrays need numpy)."""
        return ""

    def unsupported(self, tape: Tape, dtype: str) -> str:
        """Return the empty string: the engine runs every tape."""
        return ""

    def describe(self) -> str:
        """Describe the arithmetic of the engine, for ``cgprimer info``."""
        return "arithmetic: Python for scalars, numpy for arrays"

    def compile(self, tape: Tape, *, reduction: Reduction, dtype: str) -> Execute:
        """Compile a tape to a function that can be called many times."""
        steps = cache(lambda: prepare_instructions(tape, float_function))
        accepts_floats = dtype == "float64" and not any(tape.shapes)

        @cache
        def prepare_for_arrays() -> Execute:
            """Prepare the tape for numpy arrays."""
            from cgprimer.core.evaluation.array_evaluator import ArrayEvaluator

            return ArrayEvaluator(tape, sums=reduction == "sum", dtype=dtype)

        def execute(columns: Inputs, scalars: Inputs, samples: int) -> dict[str, Number]:
            """Run the tape on floats, or on arrays if an argument is an array."""
            leaf_values = {**scalars, **columns}
            if not accepts_floats or set(map(type, leaf_values.values())) - {float}:
                return prepare_for_arrays()(columns, scalars, samples)
            start = [v if kind == "constant" else leaf_values[n] for kind, n, v, _ in tape.leaves]
            values = evaluate_instructions(steps(), start)
            factor = samples if reduction == "sum" else 1
            return {name: values[i] * factor for name, i in tape.outputs.items()}

        return execute


PLAIN = PlainEngine()
