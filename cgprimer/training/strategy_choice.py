"""The choice of a strategy: how the epochs of a run are trained.

Modules of strategies that only some runs need are imported when they are chosen.
"""

from __future__ import annotations

from collections.abc import Sequence

from cgprimer.expressions import ExpressionGraph
from cgprimer.training.compiled_updates import CompiledUpdates
from cgprimer.training.epoch_strategy import EpochStrategy
from cgprimer.training.objective import Objective, ResidentData
from cgprimer.training.settings import Settings
from cgprimer.training.update_plan import UpdatePlan, plan_updates
from cgprimer.training.worker_options import WorkerOptions

_LARGE_UPDATE = 1e6  # operations; beyond, the time that Python takes for an update is negligible


def plan_training(
    settings: Settings, graph: ExpressionGraph, block_lengths: Sequence[int]
) -> UpdatePlan:
    """Plan the parameter updates of a run with one or multiple workers.

    Raises:
        UsageError, SourceError: an unknown name, a value out of range, an invalid expression, or
            settings that contradict each other.
    """
    options = WorkerOptions.from_settings(settings)
    if options is None:
        return plan_updates(settings, graph, block_lengths)
    from cgprimer.training.distributed.team_plan import plan_team

    team = plan_team(options, settings, block_lengths)
    return plan_updates(
        settings,
        graph,
        [sum(block_lengths)],  # the tasks of workers may cross the ends of blocks
        gradients_per_update=team.gradients_per_update,
    )


def choose_strategy(
    objective: Objective, data: ResidentData, plan: UpdatePlan, *, observed: bool
) -> EpochStrategy:
    """Choose and create the strategy that trains the epochs of a run.

    Args:
        objective: the loss and its gradient.
        data: the samples.
        plan: the batch size, learning rates and update rule.
        observed: whether the caller observes every single update.

    Raises:
        UsageError: the strategy cannot train the graph.
    """
    options = WorkerOptions.from_settings(plan.settings)
    if options is not None:
        from cgprimer.training.distributed.worker_epochs import WorkerEpochs

        return WorkerEpochs(objective, data, plan, options)
    if plan.rule.kind == "whole":
        from cgprimer.training.lbfgs_epochs import LbfgsEpochs

        return LbfgsEpochs(objective, data, plan)
    if plan.rule.kind == "coordinates":
        from cgprimer.training.coordinate_updates import CoordinateUpdates

        return CoordinateUpdates(objective, data, plan)
    if not observed and _is_compilation_faster(objective, data, plan):
        summed = plan.settings.reduction == "sum"
        trainer = objective.trainer(plan.constrained_rule, plan.batch_size, summed)
        if trainer is not None:
            return CompiledUpdates(objective, data, plan, trainer)
    from cgprimer.training.python_updates import ArrayUpdates, FloatUpdates

    if _can_run_on_floats(objective, plan):
        return FloatUpdates(objective, data, plan)
    return ArrayUpdates(objective, data, plan)


def _is_compilation_faster(objective: Objective, data: ResidentData, plan: UpdatePlan) -> bool:
    """Return whether compiled updates are possible and faster than updates in Python.

    One large batch of all samples is as fast in Python, without a copy of the samples.
    """
    if plan.constraints.norms:
        return False
    work = objective.program.operation_count * plan.batch_size
    return work <= _LARGE_UPDATE or plan.batch_size != max(data.dataset.lengths)


def _can_run_on_floats(objective: Objective, plan: UpdatePlan) -> bool:
    """Return whether single samples can be evaluated on Python floats."""
    if plan.batch_size != 1 or objective.dtype != "float64":
        return False
    return not (objective.program.tape.has_arrays or objective.layers.masks)
