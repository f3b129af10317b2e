"""Optimizers as update rules, and their tapes: engines run a recorded rule in their own code.

The state is a tuple of arrays in the shape of the parameters (and, for Adam, the number of
updates), so that checkpoints can store it and a lecture can print it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np

from cgprimer.backends.interfaces import UpdateRule
from cgprimer.errors import TapeError, UsageError
from cgprimer.support.validation import check_named_values
from cgprimer.support.value_names import internal_name
from cgprimer.tapes import Builder, Tape, values_of
from cgprimer.training.recorded_values import RecordedValue
from cgprimer.training.written_rules import State, WrittenRule, create_named_rule

Array = Any
PARAMETER, GRADIENT, RATE = "update.parameter", "update.gradient", "update.rate"
Update = Callable[..., tuple[Array, State]]
Range = tuple[float, float]
_TRIAL_GRADIENT, _TRIAL_RATE = np.array([-3.0, 0.25, 1.5]), 0.25


@dataclass(frozen=True, slots=True)
class Optimizer:
    """An optimizer: an update rule with its name and default values.

    Attributes:
        name: name of the optimizer.
        update: ``(parameters, gradient, state, rate) -> (parameters, state)``; it must not modify
            its arguments. Further arguments with defaults are hyperparameters.
        start: function from the parameters to the state before the first update; by default, the
            state is empty.
        rate: default learning rate; in units of a parameter for rules that divide by the size of
            the gradient, else in units of a squared parameter divided by the loss.
        ranges: lower and upper bounds of hyperparameters, inclusive, keyed by name; other
            hyperparameters can be any finite number.
        kind: ``rule``; ``coordinates`` if an update differentiates with respect to a few parameters
            only; ``whole`` if the optimizer computes all updates by itself.
        formula: the statements of the rule; empty for a Python function.
        source: publication of the rule.
    """

    name: str
    update: Update
    start: Callable[[Array], State] = lambda parameters: ()
    rate: float = 0.01
    ranges: Mapping[str, Range] = field(default_factory=dict, hash=False, compare=False)
    kind: str = "rule"
    formula: str = field(default="", compare=False)
    source: str = field(default="", compare=False)

    @property
    def hyper(self) -> dict[str, float]:
        """The values of the hyperparameters, keyed by name.

        >>> Optimizer("sgd", lambda p, g, state, rate, mu=0.5: (p - rate*g, state)).hyper
        {'mu': 0.5}
        """
        return dict(_read_hyperparameters(self.update))

    def but(self, given: Mapping[str, Any]) -> Optimizer:
        """Return a copy of the optimizer with the given hyperparameters replaced.

        Raises:
            UsageError: a hyperparameter is unknown, or a value is outside its range.

        >>> rule = Optimizer("one", lambda p, g, state, rate, mu=0.5: (p, state))
        >>> rule.but({"mu": 0.25}).hyper
        {'mu': 0.25}
        """
        hyper = check_named_values(f"{self.name}", given, "hyperparameter", self.hyper)
        for name, value in hyper.items():
            low, high = self.ranges.get(name, (value, value))
            if not low <= value <= high:
                allowed = f"at least {low:g}" + (" and less than 1" if high < 1 else "")
                raise UsageError(f"{name} of {self.name} must be {allowed}, got {value:g}")
        if not hyper:
            return self
        return replace(self, update=_bind_hyperparameters(self.update, tuple(hyper.items())))


@lru_cache(maxsize=64)  # a signature takes 20 us, and a run asks three times
def _read_hyperparameters(update: Update) -> dict[str, float]:
    """Return the hyperparameters of an update function, with their defaults."""
    if isinstance(update, WrittenRule):
        return update.hyper
    arguments = inspect.signature(update).parameters.values()
    return {one.name: one.default for one in arguments if one.default is not one.empty}


@cache  # equal arguments give the same object, so that an update is recorded once
def _bind_hyperparameters(update: Update, hyper: tuple[tuple[str, float], ...]) -> Update:
    """Return an update function with new values for some of its hyperparameters."""
    if isinstance(update, WrittenRule):
        return create_named_rule(update.text, tuple({**update.hyper, **dict(hyper)}.items()))
    return partial(update, **dict(hyper))


def run_trial_updates(rule: Optimizer) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Run two updates on trial values; return the values before and after the second update.

    Returns:
        Two tuples: the parameters, then the parts of the state.

    Raises:
        UsageError: the update fails, or changes the shape of its parameters or state.
    """
    start = np.array([0.5, -2.0, 0.0])
    try:
        points = [(start, *rule.start(start))]
        for _ in range(2):
            with np.errstate(all="ignore"):
                parameters, *parts = points[-1]
                updated, state = rule.update(parameters, _TRIAL_GRADIENT, tuple(parts), _TRIAL_RATE)
            points.append((updated, *state))
        shapes = [[np.shape(part) for part in point] for point in points]
        if any(shape not in ((), (3,)) for shape in shapes[0]):
            raise ValueError(
                "each part of the state must be a scalar or have the shape of the parameters"
            )
        if shapes[0] != shapes[1] or shapes[1] != shapes[2]:
            raise ValueError("an update must keep the shapes of parameters and state")
    except Exception as error:
        raise UsageError(
            f"the optimizer {rule.name!r} fails on an array of three parameters:"
            f" {type(error).__name__}: {error}",
            hint="return (parameters, state) from update(parameters, gradient, state, rate), and"
            " the initial state from start(parameters)",
        ) from error
    return points[1], points[2]


@cache
def record_update(rule: Optimizer) -> UpdateRule:
    """Record the update of an optimizer as a tape, for engines that run whole epochs.

    The columns of the tape have one value per parameter; its scalars are common to all parameters.
    Each part of the state is an argument (``update.state.0``) and an output
    (``new.update.state.0``).

    Raises:
        UsageError: the update fails.
        TapeError: the update cannot be recorded.

    >>> from cgprimer.training.optimizers import optimizer
    >>> print(record_update(optimizer("momentum")).tape)
    input     update_parameter
    input     update_gradient
    input     update_state_0
    parameter update_rate
    v1 = 0.9*update_state_0
    v2 = v1 + update_gradient
    v3 = update_rate*v2
    v4 = update_parameter - v3
    output    new_update_parameter = v4
    output    new_update_state_0 = v2
    """
    before, after = run_trial_updates(rule)
    names = [PARAMETER, *(f"update.state.{k}" for k in range(len(before) - 1))]
    point = {PARAMETER: before[0], GRADIENT: _TRIAL_GRADIENT, RATE: _TRIAL_RATE}
    point |= dict(zip(names, before, strict=True))
    columns = tuple(name for name, part in point.items() if np.ndim(part))
    scalars = tuple(name for name in point if name not in columns)
    try:
        tape = _record_update_tape(rule, names, columns, scalars)
        values = values_of(tape, point)
        for index, expected in zip(tape.outputs.values(), after, strict=True):
            if not np.allclose(values[index], expected, rtol=1e-9, equal_nan=True):
                raise TapeError("its updates are not elementwise")  # a sum over the parameters
    except Exception as error:
        raise TapeError(f"the optimizer {rule.name!r} cannot be recorded: {error}") from error
    outputs = [internal_name("new", name) for name in (*columns, *scalars) if name in names]
    return UpdateRule(rule.name, tape, columns, scalars, tuple(outputs))


def _record_update_tape(
    rule: Optimizer, names: list[str], columns: tuple[str, ...], scalars: tuple[str, ...]
) -> Tape:
    """Record an update as a tape by calling it with recorded values.

    Args:
        rule: the optimizer.
        names: the names of the parameter and of the parts of the state.
        columns, scalars: the names of all arguments, by kind.
    """
    builder = Builder()
    values = {name: RecordedValue(builder, builder.column(name)) for name in columns}
    values |= {name: RecordedValue(builder, builder.scalar(name)) for name in scalars}
    state = tuple(values[name] for name in names[1:])
    parameter, state = rule.update(values[PARAMETER], values[GRADIENT], state, values[RATE])
    outputs = {}
    for name, part in zip(names, (parameter, *state), strict=True):
        is_recorded = isinstance(part, RecordedValue)
        index = part.index if is_recorded else builder.constant(float(part))
        outputs[internal_name("new", name)] = index
    return builder.finish(outputs)
