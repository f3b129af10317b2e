"""Schedules: the learning rate of each step, as a function of how far the run is.

Each is one formula; the arguments behind ``when`` are its hyperparameters. A text is a formula of
one's own.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any

import numpy as np

from cgprimer.errors import UsageError, name_hint
from cgprimer.expressions import Expression, names_in, parse_expression
from cgprimer.support.validation import check_named_values
from cgprimer.training.optimizers import OPTIMIZERS
from cgprimer.training.update_rules import evaluated

Array = Any
_LOOKED_AT = 1000  # steps of a run at which a schedule is checked before the first is done
KNOWN = ("t", "step", "steps", "epochs", "rate")  # what a text may name


@dataclass(frozen=True)
class When:
    """Where in a run some steps are."""

    rate: float  # that was asked for
    step: Array  # numbers of steps, from 0 on; shape (n,)
    t: Array  # the epochs that they are in, from 0 on; shape (n,)
    steps: int  # of the run
    epochs: int


def constant(when: When) -> Array:
    """``rate``, at every step."""
    return np.full(len(when.step), when.rate)


def cosine(when: When) -> Array:
    """Half a wave of a cosine over the run, from ``rate`` down to 0 at its end.

    Source: Loshchilov and Hutter 2017, "SGDR: stochastic gradient descent with warm restarts".
    """
    return when.rate * (0.5 + 0.5 * np.cos(np.pi * when.step / when.steps))


def exponential(when: When, gamma: float = 0.9) -> Array:
    """``rate*gamma^t``: a constant factor from epoch to epoch."""
    return when.rate * gamma**when.t


def steps(when: When, factor: float = 0.5, every: float = 10) -> Array:
    """``rate`` times a factor after every so many epochs: stairs down."""
    return when.rate * factor ** (when.t // every)


SCHEDULES: dict[str, Callable[..., Array]] = {
    "cosine": cosine, "constant": constant, "exponential": exponential, "steps": steps,
}  # fmt: skip


@lru_cache(maxsize=64)  # asked for several times a run; nobody writes into it
def hyper_of(schedule: str) -> Mapping[str, float | None]:
    """The hyperparameters of a schedule: of a text, the names that it does not know, without value.

    Raises:
        UsageError: there is no such schedule.
        SourceError: the text is no expression.

    >>> hyper_of("steps"), hyper_of("rate/(1 + decay*t)")
    ({'factor': 0.5, 'every': 10}, {'decay': None})
    """
    if schedule in SCHEDULES:
        known = list(inspect.signature(SCHEDULES[schedule]).parameters.values())[1:]
        return {one.name: one.default for one in known}
    if schedule.isidentifier() and schedule not in KNOWN:
        hint = f"{name_hint(schedule, SCHEDULES)} A formula names {', '.join(KNOWN)}"
        raise UsageError(f"there is no schedule {schedule!r}", hint=hint)
    tree = parse_expression(schedule, source_name="<schedule>")
    return {name: None for name in names_in(tree) if name not in KNOWN}


def divided(
    hyper: Mapping[str, Any], schedule: str, optimizer: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Hyperparameters of the schedule, and those of the optimizer, which may be a text, too.

    >>> divided({"gamma": 0.5, "beta": 0.8}, "exponential", "momentum")
    ({'gamma': 0.5}, {'beta': 0.8})
    """
    for_schedule = {name: value for name, value in hyper.items() if name in hyper_of(schedule)}
    if "=" in optimizer:
        own = set(re.findall(r"\w+", optimizer))
    else:
        own = set(OPTIMIZERS[optimizer].hyper) if optimizer in OPTIMIZERS else set()
        known = [*own, *hyper_of(schedule)]
        for name in hyper:
            if name not in known and optimizer in OPTIMIZERS:
                what = f"neither {optimizer!r} nor the schedule {schedule!r} has a hyperparameter"
                raise UsageError(f"{what} {name!r}", hint=name_hint(name, known))
    return for_schedule, {n: v for n, v in hyper.items() if n in own or n not in for_schedule}


def rates(
    schedule: str,
    rate: float,
    epochs: int,
    per_epoch: int,
    hyper: Mapping[str, Any] = MappingProxyType({}),
    warm_up: float = 0.0,
) -> Callable[[int, int], Array]:
    """The learning rates of the steps from one to before another.

    Args:
        schedule: one of ``SCHEDULES``, or a text in ``t`` (the epoch, from 0 on), ``step`` (from 0
            on), ``steps`` and ``epochs`` (of the whole run), ``rate`` and names in ``hyper``.
        rate: the learning rate.
        epochs, per_epoch: epochs of the run, and the steps of each.
        hyper: the schedule's hyperparameters.
        warm_up: so many epochs long the rate rises in a straight line to that of the schedule.

    Raises:
        UsageError: a hyperparameter is unknown or missing, or a rate is negative or not finite.

    >>> [round(float(r), 4) for r in rates("exponential", 0.1, 4, 1, {"gamma": 0.9})(0, 4)]
    [0.1, 0.09, 0.081, 0.0729]
    >>> [round(float(r), 3) for r in rates("cosine", 1.0, 2, 2)(0, 4)]
    [1.0, 0.854, 0.5, 0.146]
    >>> rates("rate/(1 + t)", 1.0, 4, 1, warm_up=2)(0, 4).round(3).tolist()
    [0.5, 0.5, 0.333, 0.25]
    """
    known = hyper_of(schedule)
    values = {**known, **check_named_values("the schedule", hyper, "hyperparameter", known)}
    missing = [name for name, value in values.items() if value is None]
    if missing:
        hint = f"{', '.join(KNOWN)} are known; give others a value: --hyper {missing[0]}=..."
        raise UsageError(f"the schedule {schedule!r} names {missing[0]!r}", hint=hint)
    if not values.get("every", 1.0):
        raise UsageError("every of steps must be positive: so many epochs are a stair")
    if schedule in SCHEDULES:
        formula = partial(SCHEDULES[schedule], **values)
    else:
        formula = partial(_evaluated, parse_expression(schedule), values)
    rising = warm_up * per_epoch
    # A run of no epochs is checked as one of one.
    whole = max(1, epochs * per_epoch)

    def of_steps(number: Array) -> Array:
        when = When(rate, number, number // per_epoch, whole, epochs)
        with np.errstate(all="ignore"):
            found = formula(when)
            if rising:
                found = found * np.minimum(1.0, (number + 1) / rising)
        return found

    some = np.unique(np.linspace(0, whole - 1, min(whole, _LOOKED_AT), dtype=int))
    tried = of_steps(some)
    wrong = np.flatnonzero(~(np.isfinite(tried) & (tried >= 0)))
    if len(wrong):
        step = int(some[wrong[0]])
        raise UsageError(
            f"the schedule {schedule!r} gives a learning rate of {tried[wrong[0]]:g} at step"
            f" {step + 1:,} (t = {step // per_epoch})",
            hint="rates are positive numbers, or 0",
        )
    return lambda first, last: of_steps(np.arange(first, last))


def _evaluated(tree: Expression, hyper: Mapping[str, float], when: When) -> Array:
    """A text at some steps."""
    found = evaluated(tree, {**vars(when), **hyper})
    return np.broadcast_to(np.asarray(found, float), np.shape(when.step)).copy()
