"""A graph on several workers, each with some of its layers: activations forward, adjoints back."""

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
from cgprimer.tapes import scalarize
from cgprimer.training.distributed.gradient_tasks import Gradients
from cgprimer.training.distributed.layer_cuts import Stage, adjoint, cut
from cgprimer.training.distributed.protocols import Task

Array = Any
Inputs = Mapping[str, Array]


class Stages:
    """The stages of a graph with its loss, ready to be run: each by its own worker.

    Args:
        gradients: of tasks; whoever has the same has the same stages.
        count: how many stages.

    Raises:
        UsageError: the method is not reverse mode, or the loss no expression; there are not so many
            layers.
    """

    def __init__(self, gradients: Gradients, count: int) -> None:
        objective = self.objective = gradients.objective
        self.gradients = gradients
        method = objective.program.method
        if method != "reverse" or objective.function:
            what = f"the loss {objective.loss!r}" if objective.function else f"the method {method}"
            raise UsageError(f"{what} sends no adjoints back", hint="place goes with reverse mode")
        tape = scalarize(objective.primal) if objective.in_numbers else objective.primal
        self.parts: Sequence[Stage] = cut(tape, count, objective.graph.definitions, objective.wrt)
        self._forward = [self._compiled(part.tape, "none") for part in self.parts]
        self._back = [self._both(part) for part in self.parts]

    def _compiled(self, tape: Any, reduction: Any) -> Execute:
        chosen, dtype = self.objective.runner.selected_engine, self.objective.dtype
        return compile_tape(chosen, tape, reduction=reduction, dtype=dtype)

    def _both(self, part: Stage) -> tuple[Execute | None, Execute | None]:
        """Derivatives by what a stage takes, for each sample; by parameters, summed."""
        if part.back is None:
            return None, None
        tape = part.back.tape
        names = {read.wrt: read.output for read in part.back.passes[0].reads}
        each = {n: tape.outputs[o] for n, o in names.items() if n in part.takes}
        sums = {n: tape.outputs[o] for n, o in names.items() if n not in part.takes}
        made = [
            self._compiled(remove_dead_code(replace(tape, outputs=outputs, shares=())), reduction)
            if outputs
            else None
            for outputs, reduction in ((each, "none"), (sums, "sum"))
        ]
        return made[0], made[1]

    def forward(self, stage: int, values: Array, task: Task, taken: Inputs) -> dict[str, Array]:
        """What a stage gives for a task's samples; of the last one their losses.

        Args:
            stage: its number, from 0.
            values: all parameters; shape (numbers,).
            task: the samples.
            taken: what the stages before give.
        """
        return self._run(self._forward[stage], stage, values, task, taken)

    def back(
        self, stage: int, values: Array, task: Task, taken: Inputs, adjoints: Inputs
    ) -> tuple[dict[str, Array], Array]:
        """The adjoints of what a stage takes, and the sum of the gradient over a task's samples.

        Args:
            stage, values, task, taken: as for :meth:`forward`.
            adjoints: of what the stage gives, by its names; none of the last one.
        """
        part, (each, sums) = self.parts[stage], self._back[stage]
        given = {**taken, **{adjoint(name): adjoints[name] for name in part.gives}}
        found = self._run(sums, stage, values, task, given) if sums else {}
        wrt, shapes = self.objective.wrt, self.objective.vectors.shapes
        parts = [
            np.ravel(found[name]) if name in found else np.zeros(shapes.get(name, ()) or 1).ravel()
            for name in wrt
        ]
        whole = np.concatenate(parts, dtype=self.objective.precision, casting="same_kind")
        back = self._run(each, stage, values, task, given) if each else {}
        return back, self.objective.spread(whole)

    def _run(
        self, execute: Execute, stage: int, values: Array, task: Task, given: Inputs
    ) -> dict[str, Array]:
        columns = {**self.gradients.columns(task), **given}
        scalars = self.objective.scalars(values)
        return execute(columns, scalars, task.samples)

    def loss(self, outputs: Inputs) -> float:
        """The sum of the losses that the last stage gives."""
        return float(np.sum(outputs[LOSS]))


def stages_on(gradients: Callable[[], Gradients], count: int) -> Stages:
    """Stages, made where they are run."""
    return Stages(gradients(), count)
