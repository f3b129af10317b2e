"""The plan of a run: batch size, learning rates and update rule, the same for all its updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cgprimer.errors import UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.training.constraints import Constraints, create_constraints
from cgprimer.training.optimizers import optimizer
from cgprimer.training.parameter_vector import ParameterVectors
from cgprimer.training.schedules import rates, split_hyperparameters
from cgprimer.training.settings import DEFAULT_SETTINGS, Settings
from cgprimer.training.update_rules import Optimizer

Array = Any


@dataclass(frozen=True, eq=False)
class UpdatePlan:
    """The configuration that all parameter updates of a run share.

    Attributes:
        settings: the settings of the run.
        rule: the optimizer with its hyperparameters.
        constraints: regularizers, bounds and frozen parameters.
        method: the method of differentiation.
        learning_rate: the learning rate before the schedule is applied.
        batch_size: the number of samples of one gradient.
        gradients_per_update: the number of gradients that are combined in one update.
        updates_per_epoch: the number of updates of one epoch.
        learning_rates: the learning rates of the updates from a first to before a last index.
    """

    settings: Settings
    rule: Optimizer
    constraints: Constraints
    method: str
    learning_rate: float
    batch_size: int
    gradients_per_update: int
    updates_per_epoch: int
    learning_rates: Callable[[int, int], Array]

    @cached_property
    def constrained_rule(self) -> Optimizer:
        """The optimizer, extended so that each update applies the constraints."""
        return self.constraints.constrain_rule(self.rule)


def configure_optimizer(settings: Settings) -> Optimizer:
    """Create the optimizer of a run with the hyperparameters in its settings."""
    _, hyperparameters = split_hyperparameters(
        settings.hyper or {}, settings.schedule, settings.optimizer
    )
    return optimizer(settings.optimizer, hyperparameters)


def plan_updates(
    settings: Settings,
    graph: ExpressionGraph,
    block_lengths: Sequence[int],
    *,
    gradients_per_update: int = 1,
) -> UpdatePlan:
    """Plan the parameter updates of a run over blocks of samples.

    Args:
        settings: the settings of the run.
        graph: the graph to train.
        block_lengths: the number of samples of each block.
        gradients_per_update: the number of gradients that are combined in one update.

    Raises:
        UsageError, SourceError: an unknown name, a value out of range, or an invalid expression.
    """
    schedule_values, _ = split_hyperparameters(
        settings.hyper or {}, settings.schedule, settings.optimizer
    )
    rule, method = configure_optimizer(settings), settings.method
    rate = rule.rate if settings.learning_rate is None else settings.learning_rate
    batch_size = _choose_batch_size(settings, block_lengths, gradients_per_update)
    if rule.kind == "whole":
        if len(block_lengths) > 1:
            hint = (
                "load the data with Dataset.load(path) if memory allows, or use another optimizer"
            )
            raise UsageError(
                f"the optimizer {rule.name!r} needs all samples in memory, not blocks", hint=hint
            )
        batch_size = sum(block_lengths)
    if rule.kind == "coordinates":  # forward mode with a pass for each updated parameter
        from cgprimer.training.coordinate_descent import check_coordinate_count

        check_coordinate_count(len(ParameterVectors(graph)))
        method = "forward"
    samples_per_update = batch_size * gradients_per_update
    updates_per_epoch = sum(-(-length // samples_per_update) for length in block_lengths)
    return UpdatePlan(
        settings=settings,
        rule=rule,
        constraints=create_constraints(settings, graph),
        method=method,
        learning_rate=rate,
        batch_size=batch_size,
        gradients_per_update=gradients_per_update,
        updates_per_epoch=updates_per_epoch,
        learning_rates=rates(
            settings.schedule,
            rate,
            settings.epochs,
            updates_per_epoch,
            schedule_values,
            settings.warm_up,
        ),
    )


def _choose_batch_size(
    settings: Settings, block_lengths: Sequence[int], gradients_per_update: int
) -> int:
    """Return the number of samples per gradient, at most the length of the longest data block.

    Raises:
        UsageError: the batch size in the settings exceeds the number of available samples.
    """
    requested, longest = settings.batch_size, max(block_lengths)
    if requested is None:
        return -(-sum(block_lengths) // gradients_per_update)
    batch_size = min(requested, longest // gradients_per_update)
    if batch_size < requested != DEFAULT_SETTINGS["batch_size"]:
        workers = f" for each of {gradients_per_update:,} workers"
        raise UsageError(
            f"`batch_size` must be at most the number of samples, got {requested:,}"
            f"{workers if gradients_per_update > 1 else ''} with {longest:,} samples",
            hint="choose a smaller batch_size (--batch-size), or batch_size=None"
            " (--batch-size all) for all samples",
        )
    return batch_size
