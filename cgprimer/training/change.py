"""How steps change parameters, as the settings of a run say: rule, constraints, rates, batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cgprimer.core.graph import ExpressionGraph
from cgprimer.errors import UsageError
from cgprimer.training.constraints import Constraints, constraints_of
from cgprimer.training.coordinates import check_count
from cgprimer.training.optimizers import optimizer
from cgprimer.training.schedules import divided, rates
from cgprimer.training.settings import Settings
from cgprimer.training.update_rules import Optimizer
from cgprimer.training.vectors import Vectors

Array = Any


@dataclass(frozen=True, eq=False)
class Change:
    """What is the same for all steps of a run.

    Attributes:
        rule: the optimizer.
        around: regularizers, bounds, frozen parameters.
        method: the differentiator.
        rate: the learning rate.
        batch: samples of a step.
        per_epoch: steps of an epoch.
        rates: of the steps from one to before another.
        summed: whether the sum over a batch is minimised, not the mean.
    """

    rule: Optimizer
    around: Constraints
    method: str
    rate: float
    batch: int
    per_epoch: int
    rates: Callable[[int, int], Array]
    summed: bool


def change_of(settings: Settings, graph: ExpressionGraph, lengths: Sequence[int]) -> Change:
    """What settings say about the steps over blocks of so many samples each.

    Raises:
        UsageError, SourceError: an unknown name, a number out of its range, a wrong text.
    """
    of_schedule, of_rule = divided(settings.hyper or {}, settings.schedule, settings.optimizer)
    rule = optimizer(settings.optimizer, of_rule)
    rate = rule.rate if settings.learning_rate is None else settings.learning_rate
    samples, method = sum(lengths), settings.method
    batch = min(settings.batch_size or samples, max(lengths))
    if rule.kind == "whole":
        if len(lengths) > 1:
            hint = "Dataset.load(path) if memory is enough, or another optimizer"
            raise UsageError("l-bfgs takes all samples at once, not in blocks", hint=hint)
        batch = samples
    if rule.kind == "coordinates":  # a pass for each, and no others
        check_count(len(Vectors(graph)))
        method = "forward"
    per_epoch, way = sum(-(-n // batch) for n in lengths), (of_schedule, settings.warm_up)
    of_steps = rates(settings.schedule, rate, settings.epochs, per_epoch, *way)
    around = constraints_of(settings, graph)
    summed = settings.reduction == "sum"
    return Change(rule, around, method, rate, batch, per_epoch, of_steps, summed)
