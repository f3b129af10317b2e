"""Optimizers: pure functions from parameters, gradient and state to parameters and state.

The state is a tuple of arrays of the parameters' shape (and for Adam the number of steps), so a
checkpoint can hold it and a lecture can print it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from cgprimer.checked_numbers import real_number
from cgprimer.core.primitives import primitive
from cgprimer.core.run import values_of
from cgprimer.core.tape.builder import Builder
from cgprimer.errors import TapeError, UsageError
from cgprimer.native.contract import UpdateRule
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
    _tried(rule)
    OPTIMIZERS.register(name, rule)
    return rule


unregister_optimizer = OPTIMIZERS.unregister
_GRADIENT, _RATE = np.array([-3.0, 0.25, 1.5]), 0.25  # with which an update is tried


def _tried(rule: Optimizer) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Parameters and the parts of the state before and after the second step from some values."""
    start = np.array([0.5, -2.0, 0.0])
    try:
        points = [(start, *rule.start(start))]
        for _ in range(2):
            with np.errstate(all="ignore"):
                moved, state = rule.update(points[-1][0], _GRADIENT, points[-1][1:], _RATE)
            points.append((moved, *state))
        shapes = [[np.shape(part) for part in point] for point in points]
        if any(shape not in ((), (3,)) for shape in shapes[0]):
            raise ValueError("a part of the state is a number, or has the parameters' shape")
        if shapes[0] != shapes[1] or shapes[1] != shapes[2]:
            raise ValueError("parameters and state must keep their shapes")
    except Exception as error:
        what = f"the optimizer {rule.name!r} fails on an array of three parameters"
        raise UsageError(
            f"{what}: {type(error).__name__}: {error}",
            hint="update(parameters, gradient, state, rate) gives (parameters, state);"
            " start(parameters) gives the first state",
        ) from error
    return points[1], points[2]


# --- an update as a tape: called once with numbers that record, it leaves one behind -------------

_FUNCTIONS = {  # numpy's names of primitives that are called otherwise here, beside arcsin and kin
    "subtract": "sub", "multiply": "mul", "divide": "div", "negative": "neg", "power": "pow",
    "float_power": "pow", "absolute": "abs", "fabs": "abs", "maximum": "max", "minimum": "min",
}  # fmt: skip


class Recorded(NDArrayOperatorsMixin):
    """A value of a tape that is being built; arithmetic on it makes further ones.

    So do numpy's functions of a number, such as ``np.sqrt``, ``np.sign`` and ``np.maximum``. What
    would have to look at a value (an ``if``) or at others beside it (a sum over the parameters)
    raises TapeError: it cannot be recorded.

    >>> builder = Builder()
    >>> x = Recorded(builder, builder.column("x"))
    >>> y = 2*x - x/(1 + x)
    >>> print(builder.finish({"y": y.index}))
    column  x
    v1 = 2*x
    v2 = 1 + x
    v3 = x/v2
    v4 = v1 - v3
    output  y = v4
    """

    def __init__(self, builder: Builder, index: int) -> None:
        self.builder = builder
        self.index = index

    def __array_ufunc__(self, function: Any, way: str, *given: Any, **options: Any) -> Recorded:
        """Operators, and numpy's functions of arrays, a value at a time."""
        name = function.__name__
        if name == "square":
            return self * self  # type: ignore[no-any-return]
        known = _FUNCTIONS.get(name, name.replace("arc", "a"))
        row = primitive(known) if way == "__call__" and not options else None
        if row is None or row.arity != len(given):
            raise TapeError(f"numpy's {name} cannot be recorded")
        values = [
            value.index if isinstance(value, Recorded) else self.builder.constant(float(value))
            for value in given
        ]
        return Recorded(self.builder, self.builder.emit(row.name, *values))

    def _looked_at(self, *_: object, **__: object) -> NoReturn:
        raise TapeError("what looks at values, or at several at once, cannot be recorded")

    __bool__ = __float__ = __int__ = __index__ = __array__ = __array_function__ = _looked_at


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
    before, after = _tried(rule)
    names = [PARAMETER, *(f"update.state.{k}" for k in range(len(before) - 1))]
    point = {PARAMETER: before[0], GRADIENT: _GRADIENT, RATE: _RATE}
    point |= dict(zip(names, before, strict=True))
    columns = tuple(name for name, part in point.items() if np.ndim(part))
    scalars = tuple(name for name in point if name not in columns)
    builder = Builder()
    value: dict[str, Any] = {name: Recorded(builder, builder.column(name)) for name in columns}
    value |= {name: Recorded(builder, builder.scalar(name)) for name in scalars}
    try:
        state = tuple(value[name] for name in names[1:])
        made, state = rule.update(value[PARAMETER], value[GRADIENT], state, value[RATE])
        outputs = {}
        for name, part in zip(names, (made, *state), strict=True):
            known = isinstance(part, Recorded)
            outputs["new." + name] = part.index if known else builder.constant(float(part))
        tape = builder.finish(outputs)
        found = values_of(tape, point)
        for index, expected in zip(tape.outputs.values(), after, strict=True):
            if not np.allclose(found[index], expected, rtol=1e-9, equal_nan=True):
                raise TapeError("its steps are more than arithmetic")  # a sum, well hidden
    except Exception as error:
        raise TapeError(f"the optimizer {rule.name!r} cannot be recorded: {error}") from error
    parts = [name for name in (*columns, *scalars) if name in names]
    return UpdateRule(rule.name, tape, columns, scalars, tuple(f"new.{name}" for name in parts))
