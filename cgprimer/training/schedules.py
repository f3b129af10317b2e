"""Schedules: the learning rate of each update, as a function of the progress of the run.

A schedule is a row of the schedule table or a formula of the user. Formulas are expressions of the
language in ``rate`` (the initial learning rate), ``t`` (the epoch, from 0), ``step`` (the update,
from 0), ``steps`` and ``epochs`` (of the whole run), and hyperparameters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from cgprimer.errors import UsageError, name_hint
from cgprimer.expressions import names_in, parse_expression
from cgprimer.support.validation import check_named_values
from cgprimer.training.optimizers import OPTIMIZERS
from cgprimer.training.rule_tables import SCHEDULES
from cgprimer.training.statement_evaluator import StatementEvaluator
from cgprimer.training.statement_tapes import parse_statements

Array = Any
Rates = Callable[[int, int], Array]  #: from the first update and the end to learning rates
_MAX_CHECKED_UPDATES = 1000  # updates whose learning rates are checked before the run
_PREDEFINED = ("t", "step", "steps", "epochs", "rate")  # names that a formula can use


@lru_cache(maxsize=64)  # called several times per run
def list_hyperparameters(schedule: str) -> Mapping[str, float | None]:
    """Return the hyperparameters of a schedule with their defaults (None if required).

    Raises:
        UsageError: the schedule is unknown.
        SourceError: the formula is not a valid expression.

    >>> list_hyperparameters("steps"), list_hyperparameters("rate/(1 + decay*t)")
    ({'factor': 0.5, 'every': 10}, {'decay': None})
    """
    if schedule in SCHEDULES:
        return dict(SCHEDULES[schedule].hyper)
    if schedule.isidentifier() and schedule not in _PREDEFINED:
        hint = f"{name_hint(schedule, SCHEDULES)} A formula uses {', '.join(_PREDEFINED)}"
        raise UsageError(f"unknown schedule {schedule!r}", hint=hint)
    tree = parse_expression(schedule, source_name="<schedule>")
    return {name: None for name in names_in(tree) if name not in _PREDEFINED}


def split_hyperparameters(
    hyper: Mapping[str, Any], schedule: str, optimizer: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split hyperparameters into hyperparameters for the schedule and for the optimizer.

    Raises:
        UsageError: neither a named optimizer nor the schedule has a hyperparameter.

    >>> split_hyperparameters({"gamma": 0.5, "beta": 0.8}, "exponential", "momentum")
    ({'gamma': 0.5}, {'beta': 0.8})
    """
    of_schedule = list_hyperparameters(schedule)
    if "=" in optimizer:
        of_optimizer = set(re.findall(r"\w+", optimizer))
    else:
        of_optimizer = set(OPTIMIZERS[optimizer].hyper) if optimizer in OPTIMIZERS else set()
        accepted = [*of_optimizer, *of_schedule]
        for name in hyper:
            if name not in accepted and optimizer in OPTIMIZERS:
                raise UsageError(
                    f"unknown hyperparameter {name!r} for optimizer {optimizer!r} and schedule"
                    f" {schedule!r}",
                    hint=name_hint(name, accepted),
                )
    return (
        {name: value for name, value in hyper.items() if name in of_schedule},
        {n: v for n, v in hyper.items() if n in of_optimizer or n not in of_schedule},
    )


def rates(
    schedule: str,
    rate: float,
    epochs: int,
    per_epoch: int,
    hyper: Mapping[str, Any] = MappingProxyType({}),
    warm_up: float = 0.0,
) -> Rates:
    """Return a function from a range of updates to their learning rates.

    Args:
        schedule: a name in ``SCHEDULES``, or a formula.
        rate: the initial learning rate.
        epochs, per_epoch: the number of epochs of the run, and of updates per epoch.
        hyper: the hyperparameters of the schedule.
        warm_up: number of epochs in which the rate rises linearly to the rate of the schedule.

    Raises:
        UsageError: a hyperparameter is unknown or missing, or a rate is negative or not finite.

    >>> [round(float(r), 4) for r in rates("exponential", 0.1, 4, 1, {"gamma": 0.9})(0, 4)]
    [0.1, 0.09, 0.081, 0.0729]
    >>> [round(float(r), 3) for r in rates("cosine", 1.0, 2, 2)(0, 4)]
    [1.0, 0.854, 0.5, 0.146]
    >>> rates("rate/(1 + t)", 1.0, 4, 1, warm_up=2)(0, 4).round(3).tolist()
    [0.5, 0.5, 0.333, 0.25]
    """
    constants = _check_hyperparameters(schedule, hyper)
    total = max(1, epochs * per_epoch)  # a run without epochs is checked as a run of one update
    constants |= {"rate": rate, "steps": float(total), "epochs": float(epochs)}
    evaluate_formula = _compile_formula(schedule, constants)
    rising = warm_up * per_epoch

    def compute_rates(updates: Array) -> Array:
        """Compute the learning rates, including the warm-up, of an array of update indices."""
        result = evaluate_formula(updates, updates // per_epoch)
        return result * np.minimum(1.0, (updates + 1) / rising) if rising else result

    _check_rates(schedule, compute_rates, total, per_epoch)
    return lambda first, last: compute_rates(np.arange(first, last))


def _check_hyperparameters(schedule: str, hyper: Mapping[str, Any]) -> dict[str, float]:
    """Return the checked hyperparameters of a schedule, including its defaults.

    Raises:
        UsageError: a hyperparameter is unknown, missing or out of range.
    """
    defaults = list_hyperparameters(schedule)
    values = {**defaults, **check_named_values("the schedule", hyper, "hyperparameter", defaults)}
    missing = [name for name, value in values.items() if value is None]
    if missing:
        hint = f"pass --hyper {missing[0]}=...; only {', '.join(_PREDEFINED)} are predefined"
        raise UsageError(f"missing value for {missing[0]!r} in schedule {schedule!r}", hint=hint)
    every = values.get("every", 1.0)
    if every is not None and every <= 0:
        raise UsageError(
            f"`every` must be positive, got {every:g}: it is the number of epochs between two drops"
        )
    return {name: float(value) for name, value in values.items() if value is not None}


def _compile_formula(
    schedule: str, constants: Mapping[str, float]
) -> Callable[[Array, Array], Array]:
    """Compile the formula of a schedule to a function of update indices and epoch indices."""
    row = SCHEDULES.get(schedule)
    statements = parse_statements(f"result = {row.formula if row else schedule}")
    evaluate = StatementEvaluator(statements, constants, ("step", "t", "drops"))
    index = evaluate.tape.outputs["result"]
    every = constants.get("every", 1.0) if row else 1.0

    def evaluate_formula(updates: Array, epochs: Array) -> Array:
        """Evaluate the formula for arrays of update indices and epoch indices."""
        drops = epochs // every if row and "every" in row.hyper else 0.0
        result = evaluate([updates, epochs, drops])[index]
        is_array = isinstance(result, np.ndarray)
        return np.array(result, float) if is_array else np.full(len(updates), float(result))

    return evaluate_formula


def _check_rates(
    schedule: str, compute_rates: Callable[[Array], Array], total: int, per_epoch: int
) -> None:
    """Raise UsageError if a learning rate of a schedule is negative or not finite."""
    count = min(total, _MAX_CHECKED_UPDATES)
    some = np.unique(np.linspace(0, total - 1, count, dtype=int))
    values = compute_rates(some)
    invalid = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(invalid):
        step, value = int(some[invalid[0]]), values[invalid[0]]
        raise UsageError(
            f"schedule {schedule!r} has learning rate {value:g} at update {step + 1:,}"
            f" (t = {step // per_epoch})",
            hint="choose a schedule whose learning rates are finite and never negative",
        )
