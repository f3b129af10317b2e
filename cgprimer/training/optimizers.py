"""Optimizers: pure functions from parameters, gradient and state to parameters and state.

The state is a tuple of arrays of the parameters' shape (and for Adam the number of steps), so a
checkpoint can hold it and a lecture can print it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from cgprimer.core.engines import UpdateRule, select
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.recorder import Recorded
from cgprimer.errors import TapeError, UsageError, real_number
from cgprimer.plugins import Registry

Array = Any
PARAMETER, GRADIENT, RATE = "update.parameter", "update.gradient", "update.rate"
State = tuple[Array, ...]
Update = Callable[[Array, Array, State, float], tuple[Array, State]]


@dataclass(frozen=True, slots=True)
class Optimizer:
    """An update rule.

    Attributes:
        name: what it is called.
        update: ``(parameters, gradient, state, rate) -> (parameters, state)``; it changes none
            of the arrays that it is given.
        start: parameters to the state before the first step; none unless given.
        rate: a learning rate that is a fair first try; unit: that of a parameter for Adam, of a
            parameter squared over the loss for the others.
    """

    name: str
    update: Update
    start: Callable[[Array], State] = lambda parameters: ()
    rate: float = 0.01


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
    return parameters - rate * corrected / scale, (first, second, steps)


SGD = Optimizer("sgd", sgd, rate=0.1)
MOMENTUM = Optimizer("momentum", momentum, lambda p: (np.zeros_like(p),), rate=0.02)
ADAM = Optimizer(
    "adam", adam, lambda p: (np.zeros_like(p), np.zeros_like(p), np.array(0.0)), rate=0.05
)
OPTIMIZERS: Registry[Optimizer] = Registry(
    "optimizer",
    "cgprimer.optimizers",
    {name: f"{__name__}:{name.upper()}" for name in ("sgd", "momentum", "adam")},
)


def optimizer(name: str) -> Optimizer:
    """The optimizer of a name.

    Raises:
        UsageError: there is none, or the one that an installed package names is none.

    >>> optimizer("adam").rate
    0.05
    """
    if not isinstance(name, str):
        raise UsageError(f"an optimizer is called by its name, not by {type(name).__name__}")
    found = OPTIMIZERS[name]
    if not isinstance(found, Optimizer):
        raise UsageError(f"the optimizer {name!r} is no cgprimer.Optimizer but {found!r}")
    return found


def register_optimizer(
    name: str,
    update: Update,
    *,
    start: Callable[[Array], State] = lambda parameters: (),
    rate: float = 0.01,
) -> Optimizer:
    """Add an optimizer of one's own; ``train(..., optimizer=name)`` finds it at once.

    An engine that trains by itself runs the update in its own code, if the update is arithmetic
    and numpy's functions of single numbers. If it is more (an ``if``, a sum over the parameters),
    Python does the steps, and a warning says so. A package adds one by an entry point of the group
    ``cgprimer.optimizers`` that names a :class:`cgprimer.Optimizer`.

    Args:
        name: what it shall be called.
        update, start, rate: as in :class:`Optimizer`.

    Raises:
        UsageError: the name is taken, the rate is not positive, or the update does not work on
            arrays.

    >>> def rmsprop(parameters, gradient, state, rate):
    ...     square = 0.9*state[0] + 0.1*gradient**2
    ...     return parameters - rate*gradient/(np.sqrt(square) + 1e-8), (square,)
    >>> rule = register_optimizer("rmsprop", rmsprop, start=lambda p: (np.zeros_like(p),))
    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    >>> data = cgprimer.make_dataset(graph, samples=1000)
    >>> run = cgprimer.train(graph, data, optimizer="rmsprop", learning_rate=0.05)
    >>> round(run.parameters["k"], 3)
    3.0
    >>> unregister_optimizer("rmsprop")
    """
    rule = Optimizer(name, update, start, real_number("the learning rate", rate, above=0))
    _once(rule)
    OPTIMIZERS.register(name, rule)
    return rule


def unregister_optimizer(name: str) -> None:
    """Take an optimizer out again that :func:`register_optimizer` added.

    Raises:
        UsageError: there is none of that name.
    """
    OPTIMIZERS.unregister(name)


_PARAMETERS = np.array([0.5, -2.0, 0.0])  # where an update is tried
_GRADIENT = np.array([-3.0, 0.25, 1.5])


def _once(rule: Optimizer) -> tuple[State, Array, State]:
    """The state before a step on three parameters; the parameters and the state after it.

    Raises:
        UsageError: the update fails, or gives something of another shape.
    """
    try:
        begin = tuple(rule.start(_PARAMETERS.copy()))
        moved, after = rule.update(_PARAMETERS.copy(), _GRADIENT.copy(), begin, 0.25)
        shapes = [np.shape(part) for part in (*begin, moved)]
        if shapes != [np.shape(part) for part in (*after, moved)] or shapes[-1] != (3,):
            raise ValueError("parameters and state must keep their shapes")
        if any(shape not in ((), (3,)) for shape in shapes):
            raise ValueError("a part of the state is a number, or has the parameters' shape")
    except Exception as error:
        raise UsageError(
            f"the optimizer {rule.name!r} fails on an array of three parameters:"
            f" {type(error).__name__}: {error}",
            hint="update(parameters, gradient, state, rate) gives (parameters, state);"
            " start(parameters) gives the first state",
        ) from error
    return begin, moved, tuple(after)


@cache
def update_rule(rule: Optimizer) -> UpdateRule:
    """The update rule as a tape over the parameters, for engines that train by themselves.

    Its columns have a value per parameter, its scalars one for all. Each part of the state is
    there before (``update.state.0``) and, as an output, after (``new.update.state.0``).

    Raises:
        UsageError: the update fails.
        TapeError: it cannot be recorded.

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
    begin, moved, later = _once(rule)
    builder = Builder()
    names = [f"update.state.{k}" for k in range(len(begin))]
    arrays = [name for name, part in zip(names, begin, strict=True) if np.ndim(part)]
    numbers = [name for name in names if name not in arrays]
    columns, scalars = (PARAMETER, GRADIENT, *arrays), (RATE, *numbers)
    value = {name: Recorded(builder, builder.column(name)) for name in columns}
    value |= {name: Recorded(builder, builder.scalar(name)) for name in scalars}
    state = tuple(value[name] for name in names)
    try:
        made, after = rule.update(value[PARAMETER], value[GRADIENT], state, value[RATE])  # type: ignore[arg-type]
        given = {
            "new." + PARAMETER: made,
            **{f"new.{n}": p for n, p in zip(names, after, strict=True)},
        }
        outputs = {
            name: part.index if isinstance(part, Recorded) else builder.constant(float(part))
            for name, part in given.items()
        }
        tape = builder.finish(outputs)
        # What it computes is what the function computes, or it is not taken.
        known = {
            PARAMETER: _PARAMETERS,
            GRADIENT: _GRADIENT,
            RATE: 0.25,
            **dict(zip(names, begin, strict=True)),
        }
        found = select("numpy").compile(tape, reduction="none", dtype="float64")(
            {name: known[name] for name in columns}, {name: known[name] for name in scalars}, 3
        )
        expected = {
            "new." + PARAMETER: moved,
            **{f"new.{n}": p for n, p in zip(names, later, strict=True)},
        }
        if not all(np.allclose(found[n], expected[n], rtol=1e-9, equal_nan=True) for n in outputs):
            raise TapeError("its steps depend on more than arithmetic")
    except Exception as error:
        raise TapeError(f"the optimizer {rule.name!r} cannot be recorded: {error}") from error
    after_names = tuple("new." + name for name in (PARAMETER, *arrays, *numbers))
    return UpdateRule(rule.name, tape, columns, scalars, after_names)
