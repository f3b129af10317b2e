"""Optimizers: pure functions from parameters, gradient and state to parameters and state.

The state is a tuple of arrays of the parameters' shape (and for Adam the number of steps), so a
checkpoint can hold it and a lecture can print it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cgprimer.core.engines import UpdateRule
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.recorder import Recorded
from cgprimer.errors import UsageError, name_hint

Array = Any
PARAMETER, GRADIENT, RATE = "update.parameter", "update.gradient", "update.rate"
State = tuple[Array, ...]


@dataclass(frozen=True, slots=True)
class Optimizer:
    """An update rule.

    Attributes:
        name: what it is called.
        start: parameters to the state before the first step.
        update: ``(parameters, gradient, state, rate) -> (parameters, state)``.
        rate: a learning rate that is a fair first try; unit: that of a parameter for Adam, of a
            parameter squared over the loss for the others.
    """

    name: str
    start: Callable[[Array], State]
    update: Callable[[Array, Array, State, float], tuple[Array, State]]
    rate: float


def sgd(parameters: Array, gradient: Array, state: State, rate: float) -> tuple[Array, State]:
    """One step down the gradient.

    >>> sgd(np.array([1.0]), np.array([2.0]), (), 0.1)
    (array([0.8]), ())
    """
    return parameters - rate * gradient, state


def momentum(
    parameters: Array, gradient: Array, state: State, rate: float, beta: float = 0.9
) -> tuple[Array, State]:
    """A step along a velocity that remembers earlier gradients.

    Source: Polyak 1964, "Some methods of speeding up the convergence of iteration methods".
    """
    velocity = beta * state[0] + gradient
    return parameters - rate * velocity, (velocity,)


def adam(
    parameters: Array,
    gradient: Array,
    state: State,
    rate: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
) -> tuple[Array, State]:
    """A step scaled, for each parameter by itself, by the size of its gradients.

    The first step is the rate times the sign of the gradient, up to epsilon, which stands outside
    the root.

    Source: Kingma and Ba 2015, "Adam: a method for stochastic optimization", algorithm 1.

    >>> zero = np.zeros(1)
    >>> step, _ = adam(zero, np.array([1e-5]), (zero, zero, np.array(0.0)), rate=1.0)
    >>> round(float(-step[0]), 9)
    0.999000999
    """
    first = beta1 * state[0] + (1 - beta1) * gradient
    second = beta2 * state[1] + (1 - beta2) * gradient * gradient
    steps = state[2] + 1
    # Both moments start at zero; dividing takes that bias out again.
    corrected = first / (1 - beta1**steps)
    scale = np.sqrt(second / (1 - beta2**steps)) + epsilon
    return parameters - rate * corrected / scale, (first, second, np.asarray(steps))


OPTIMIZERS = {
    "sgd": Optimizer("sgd", lambda _: (), sgd, 0.1),
    "momentum": Optimizer("momentum", lambda p: (np.zeros_like(p),), momentum, 0.02),
    "adam": Optimizer(
        "adam", lambda p: (np.zeros_like(p), np.zeros_like(p), np.array(0.0)), adam, 0.05
    ),
}


def optimizer(name: str) -> Optimizer:
    """The optimizer of a name.

    Raises:
        UsageError: there is none.

    >>> optimizer("adam").rate
    0.05
    """
    if name not in OPTIMIZERS:
        raise UsageError(
            f"there is no optimizer {name!r}",
            hint=name_hint(name, OPTIMIZERS),
        )
    return OPTIMIZERS[name]


def update_rule(rule: Optimizer) -> UpdateRule:
    """The update rule as a tape over the parameters, for engines that train by themselves.

    Its columns have a value per parameter, its scalars one for all. Each part of the state is
    there before (``update.state.0``) and, as an output, after (``new.update.state.0``).

    >>> print(update_rule(optimizer("momentum")).tape)
    column  update_parameter
    column  update_gradient
    column  update_state_0
    scalar  update_rate
    v1 = 0.9*update_state_0
    v2 = v1 + update_gradient
    v3 = update_rate*v2
    v4 = update_parameter - v3
    output  new_update_parameter = v4
    output  new_update_state_0 = v2
    """
    builder = Builder()
    parameter, gradient = (builder.column(name) for name in (PARAMETER, GRADIENT))
    begin = rule.start(np.zeros(1))
    names = [f"update.state.{k}" for k in range(len(begin))]
    arrays = [name for name, part in zip(names, begin, strict=True) if np.ndim(part)]
    numbers = [name for name in names if name not in arrays]
    state = [builder.column(name) if name in arrays else builder.scalar(name) for name in names]
    made, after = rule.update(
        Recorded(builder, parameter),
        Recorded(builder, gradient),
        tuple(Recorded(builder, index) for index in state),
        Recorded(builder, builder.scalar(RATE)),  # type: ignore[arg-type]
    )
    outputs = {"new." + PARAMETER: made.index}
    for name, part in zip(names, after, strict=True):
        recorded = part.item() if isinstance(part, np.ndarray) else part
        outputs["new." + name] = recorded.index
    return UpdateRule(
        rule.name,
        builder.finish(outputs),
        (PARAMETER, GRADIENT, *arrays),
        (RATE, *numbers),
        tuple("new." + name for name in (PARAMETER, *arrays, *numbers)),
    )
