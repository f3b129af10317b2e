"""Optimizers: pure functions from parameters, gradient and state to parameters and state.

The state is a tuple of arrays of the parameters' shape (and for Adam the number of steps), so a
checkpoint can hold it and a lecture can print it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cgprimer.errors import UsageError, name_hint

Array = Any
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
    steps = float(state[2]) + 1
    # Both moments start at zero; dividing takes that bias out again.
    corrected = first / (1 - beta1**steps)
    scale = np.sqrt(second / (1 - beta2**steps)) + epsilon
    return parameters - rate * corrected / scale, (first, second, np.array(steps))


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
