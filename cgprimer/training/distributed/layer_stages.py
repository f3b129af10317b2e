"""Stages of a graph that several workers run: activations forward, adjoints backward."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cgprimer.core.evaluation.runner import compile_tape
from cgprimer.core.loss_expressions import LOSS
from cgprimer.core.methods.derivative_program import Execute
from cgprimer.core.tape.tape_passes import remove_dead_code
from cgprimer.errors import UsageError
from cgprimer.tapes import Tape, scalarize
from cgprimer.training.distributed.gradient_tasks import Gradients
from cgprimer.training.distributed.layer_cuts import Stage, adjoint_name, cut
from cgprimer.training.distributed.protocols import Task

Array = Any
Inputs = Mapping[str, Array]


class Stages:
    """The compiled stages of a graph with its loss, for training with one worker per stage.

    Args:
        gradients: the gradients of tasks; the same gradients lead to the same stages in any
            process.
        count: the number of stages.

    Raises:
        UsageError: the method is not reverse mode, the loss is a Python function, or the graph has
            too few layers.
    """

    def __init__(self, gradients: Gradients, count: int) -> None:
        objective = self.objective = gradients.objective
        self.gradients = gradients
        method = objective.program.method
        if method != "reverse" or objective.function:
            loss = f"the loss {objective.loss!r}"
            what = f"place cannot be used with {loss if objective.function else f'{method} mode'}"
            raise UsageError(what, hint="use reverse mode and a loss that is an expression")
        tape = scalarize(objective.primal) if objective.in_numbers else objective.primal
        self.parts: Sequence[Stage] = cut(tape, count, objective.graph.definitions, objective.wrt)
        self._forward = [self._compile_tape(part.tape, "none") for part in self.parts]
        self._backward = [self._compile_backward(part) for part in self.parts]

    def _compile_tape(self, tape: Tape, reduction: Any) -> Execute:
        """Compile a tape for the objective's engine."""
        engine, dtype = self.objective.runner.selected_engine, self.objective.dtype
        return compile_tape(engine, tape, reduction=reduction, dtype=dtype)

    def _compile_backward(self, part: Stage) -> tuple[Execute | None, Execute | None]:
        """Compile the derivatives of a stage with respect to its inputs and parameters.

        Returns:
            The function for the adjoints of the inputs, once per sample, and the function for the
            derivatives with respect to the parameters, summed over the samples.
        """
        if part.back is None:
            return None, None
        tape = part.back.tape
        names = {read.wrt: read.output for read in part.back.passes[0].reads}
        adjoints = {n: tape.outputs[o] for n, o in names.items() if n in part.inputs}
        sums = {n: tape.outputs[o] for n, o in names.items() if n not in part.inputs}

        def compile_outputs(outputs: dict[str, int], reduction: str) -> Execute | None:
            """Compile the part of the derivative tape that the given outputs need."""
            if not outputs:
                return None
            reduced = remove_dead_code(replace(tape, outputs=outputs, shares=()))
            return self._compile_tape(reduced, reduction)

        return compile_outputs(adjoints, "none"), compile_outputs(sums, "sum")

    def run_forward(
        self, stage: int, values: Array, task: Task, inputs: Inputs
    ) -> dict[str, Array]:
        """Compute the outputs of a stage for the samples of a task.

        The output of the last stage is the loss of each sample.

        Args:
            stage: the index of the stage, from 0.
            values: the parameter vector.
            task: the samples.
            inputs: the outputs of earlier stages.
        """
        return self._run_stage(self._forward[stage], values, task, inputs)

    def run_backward(
        self, stage: int, values: Array, task: Task, inputs: Inputs, adjoints: Inputs
    ) -> tuple[dict[str, Array], Array]:
        """Compute the adjoints of a stage's inputs and the gradient summed over a task's samples.

        Args:
            stage, values, task, inputs: as for :meth:`run_forward`.
            adjoints: the adjoints of the stage's outputs; empty for the last stage.
        """
        part, (input_adjoints, sums) = self.parts[stage], self._backward[stage]
        columns = {**inputs, **{adjoint_name(name): adjoints[name] for name in part.outputs}}
        derivatives = self._run_stage(sums, values, task, columns) if sums else {}
        shapes = self.objective.vectors.shapes
        parts = [
            np.ravel(derivatives[name])
            if name in derivatives
            else np.zeros(shapes.get(name, ()) or 1).ravel()
            for name in self.objective.wrt
        ]
        gradient = np.concatenate(parts, dtype=self.objective.precision, casting="same_kind")
        backward = self._run_stage(input_adjoints, values, task, columns) if input_adjoints else {}
        return backward, self.objective.spread(gradient)

    def _run_stage(
        self, execute: Execute, values: Array, task: Task, inputs: Inputs
    ) -> dict[str, Array]:
        """Run a compiled stage on the samples of a task."""
        columns = {**self.gradients.read_columns(task), **inputs}
        scalars = self.objective.scalars(values)
        return execute(columns, scalars, task.samples)

    def sum_losses(self, outputs: Inputs) -> float:
        """Return the sum of the losses in the outputs of the last stage."""
        return float(np.sum(outputs[LOSS]))


def create_stages(create_gradients: Callable[[], Gradients], count: int) -> Stages:
    """Compile the stages of a graph in the process that calls this function."""
    return Stages(create_gradients(), count)
