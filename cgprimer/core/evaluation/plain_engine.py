"""The engine ``plain``: the evaluation loop, on floats or on numpy arrays."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from cgprimer.core.evaluation.evaluator import evaluate_steps, prepare_steps, values_of
from cgprimer.core.methods.derivative_program import Execute, Inputs, Number
from cgprimer.core.operations import float_arithmetic
from cgprimer.core.tape.tape import Tape

if TYPE_CHECKING:
    from cgprimer.core.evaluation.engines import Reduction


class Plain:
    """The evaluator as an engine: outputs are floats where columns are floats, else arrays."""

    name = "plain"
    scalarize_up_to = 0

    def unavailable(self) -> str:
        """Return the empty string: the engine needs Python alone, and numpy for arrays."""
        return ""

    def unsupported(self, tape: Tape, dtype: str) -> str:
        """Return the empty string: the engine runs every tape."""
        return ""

    def describe(self) -> str:
        """Return the libraries in use, for ``cgprimer info``."""
        return "arithmetic: Python's for numbers, numpy's for arrays"

    def compile(self, tape: Tape, *, reduction: Reduction, dtype: str) -> Execute:
        """Prepare a tape to be run many times."""
        steps = cache(lambda: prepare_steps(tape, float_arithmetic.float_function))
        plain = dtype == "float64" and not any(tape.shapes)  # arrays may be made of numbers

        @cache
        def on_arrays() -> Execute:
            from cgprimer.core.evaluation.array_evaluator import ArraySteps

            return ArraySteps(tape, sums=reduction == "sum", dtype=dtype)

        def execute(columns: Inputs, scalars: Inputs, samples: int) -> dict[str, Number]:
            leaf_values = {**scalars, **columns}
            if plain and set(map(type, leaf_values.values())) <= {float}:
                start = [
                    v if kind == "constant" else leaf_values[n] for kind, n, v, _ in tape.leaves
                ]
                values = evaluate_steps(steps(), start)
                times = samples if reduction == "sum" else 1
                return {name: values[i] * times for name, i in tape.outputs.items()}
            if tape.has_arrays:
                return on_arrays()(columns, scalars, samples)
            import numpy as np

            leaf_values = {
                n: np.asarray(v).astype(dtype, copy=False) for n, v in leaf_values.items()
            }
            with np.errstate(all="ignore"):
                values = values_of(tape, leaf_values)
                outputs = {n: np.asarray(values[i], dtype) for n, i in tape.outputs.items()}
                shapes = {n: tape.shapes[tape.outputs[n]] for n in outputs}
                per_sample = {
                    n: np.broadcast_to(v, (samples, *shapes[n])) for n, v in outputs.items()
                }
                if reduction == "sum":  # in double precision
                    return {n: v.sum(0, np.result_type(v, float)) for n, v in per_sample.items()}
                return {name: np.array(value) for name, value in per_sample.items()}

        return execute


PLAIN = Plain()
