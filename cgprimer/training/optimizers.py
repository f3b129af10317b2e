"""Optimizers: pure functions from parameters, gradient and state to parameters and state.

Each is a rule of a few lines; the arguments behind the rate are its hyperparameters, with the
values that they have unless others are given. Where PyTorch has the same rule, the numbers are
the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf, nextafter
from types import MappingProxyType
from typing import Any

import numpy as np

from cgprimer.errors import UsageError
from cgprimer.support.plugins import Registry
from cgprimer.support.validation import check_real_number
from cgprimer.training.update_rules import Array, Optimizer, State, Update, tried

_OF_FITS = ("gauss-newton", "levenberg-marquardt")
_BELOW_ONE = (0.0, nextafter(1.0, 0.0))  # of what is multiplied with itself at each step
_RANGES = {
    **dict.fromkeys(("beta", "beta1", "beta2", "alpha"), _BELOW_ONE),
    **dict.fromkeys(("epsilon", "weight_decay"), (0.0, inf)),
    **dict.fromkeys(("block", "memory"), (1.0, inf)),
}


def sgd(parameters: Array, gradient: Array, state: State, rate: float) -> tuple[Array, State]:
    """One step down the gradient: ``p = p - rate*g``.

    Source: Robbins and Monro 1951, "A stochastic approximation method".

    >>> sgd(np.array([1.0]), np.array([2.0]), (), 0.1)
    (array([0.8]), ())
    """
    return parameters + -rate * gradient, state  # numpy adds where the product is: no third array


def momentum(
    parameters: Array, gradient: Array, state: State, rate: float, beta: float = 0.9
) -> tuple[Array, State]:
    """A step along a velocity that remembers earlier gradients: ``v = beta*v + g; p = p - rate*v``.

    Source: Polyak 1964, "Some methods of speeding up the convergence of iteration methods".
    """
    velocity = beta * state[0] + gradient
    return parameters - rate * velocity, (velocity,)


def nesterov(
    parameters: Array, gradient: Array, state: State, rate: float, beta: float = 0.9
) -> tuple[Array, State]:
    """Momentum that looks ahead: ``v = beta*v + g; p = p - rate*(g + beta*v)``.

    Source: Nesterov 1983, in the form of Sutskever et al. 2013 with the gradient taken where the
    parameters are, "On the importance of initialization and momentum in deep learning".
    """
    velocity = beta * state[0] + gradient
    return parameters - rate * (gradient + beta * velocity), (velocity,)


def adagrad(
    parameters: Array, gradient: Array, state: State, rate: float, epsilon: float = 1e-10
) -> tuple[Array, State]:
    """A step that is shorter the more gradient there was: ``s = s + g^2; p = p - rate*g/sqrt(s)``.

    Source: Duchi, Hazan and Singer 2011, "Adaptive subgradient methods".
    """
    square = state[0] + gradient * gradient
    return parameters - rate * gradient / (np.sqrt(square) + epsilon), (square,)


def rmsprop(
    parameters: Array,
    gradient: Array,
    state: State,
    rate: float,
    alpha: float = 0.99,
    epsilon: float = 1e-8,
) -> tuple[Array, State]:
    """AdaGrad that forgets: ``s = alpha*s + (1 - alpha)*g^2; p = p - rate*g/(sqrt(s) + epsilon)``.

    Source: Tieleman and Hinton 2012, lecture 6.5 of "Neural networks for machine learning".
    """
    square = alpha * state[0] + (1 - alpha) * gradient * gradient
    return parameters - rate * gradient / (np.sqrt(square) + epsilon), (square,)


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


def adamw(
    parameters: Array,
    gradient: Array,
    state: State,
    rate: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.01,
) -> tuple[Array, State]:
    """Adam after the parameters have shrunk: ``p = (1 - rate*weight_decay)*p``, then Adam's step.

    Source: Loshchilov and Hutter 2019, "Decoupled weight decay regularization", algorithm 2.
    """
    shrunk = parameters * (1 - rate * weight_decay)
    return adam(shrunk, gradient, state, rate, beta1, beta2, epsilon)


def coordinates(
    parameters: Array, gradient: Array, state: State, rate: float, block: float = 1
) -> tuple[Array, State]:
    """A plain step of so many parameters, chosen at random; no other is differentiated.

    What is chosen comes from the run's seed: each parameter once, in a random order, before any
    comes again (see :mod:`cgprimer.training.coordinate_descent`). The gradient of the others is
    zero.

    Source: Nesterov 2012, "Efficiency of coordinate descent methods on huge-scale optimization
    problems"; Wright 2015, "Coordinate descent algorithms", on random permutations.
    """
    return parameters - rate * gradient, state


def l_bfgs(
    parameters: Array, gradient: Array, state: State, rate: float, memory: float = 10
) -> tuple[Array, State]:
    """Steps along a direction made of the last ``memory`` steps and gradients, with line searches.

    SciPy does them all (see :mod:`cgprimer.training.lbfgs`); a step by itself there is not.

    Source: Byrd, Lu, Nocedal and Zhu 1995, "A limited memory algorithm for bound constrained
    optimization".
    """
    raise UsageError("l-bfgs has no update of a single step: SciPy does them all")


def _one(parameters: Array) -> State:
    return (np.zeros_like(parameters),)


def _moments(parameters: Array) -> State:
    return np.zeros_like(parameters), np.zeros_like(parameters), np.array(0.0)


SGD = Optimizer("sgd", sgd, rate=0.1)
MOMENTUM = Optimizer("momentum", momentum, _one, 0.02, _RANGES)
NESTEROV = Optimizer("nesterov", nesterov, _one, 0.02, _RANGES)
ADAGRAD = Optimizer("adagrad", adagrad, _one, 0.1, _RANGES)
RMSPROP = Optimizer("rmsprop", rmsprop, _one, 0.01, _RANGES)
ADAM = Optimizer("adam", adam, _moments, 0.05, _RANGES)
ADAMW = Optimizer("adamw", adamw, _moments, 0.05, _RANGES)
COORDINATES = Optimizer("coordinates", coordinates, rate=0.1, ranges=_RANGES, kind="coordinates")
L_BFGS = Optimizer("l-bfgs", l_bfgs, rate=1.0, ranges=_RANGES, kind="whole")
OPTIMIZERS: Registry[Optimizer] = Registry(
    "optimizer",
    "cgprimer.optimizers",
    {
        name: f"{__name__}:{name.upper().replace('-', '_')}"
        for name in (
            "sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam", "adamw", "coordinates",
            "l-bfgs",
        )
    },
)  # fmt: skip


def optimizer(name: str, hyper: Mapping[str, Any] = MappingProxyType({})) -> Optimizer:
    """The optimizer of a name, or of a rule that is written out.

    Args:
        name: one of ``OPTIMIZERS``, or a text such as ``v = mu*v + g; p = p - rate*v``.
        hyper: hyperparameters; those of a name have values of their own unless given.

    Raises:
        UsageError: there is none of the name, the one that an installed package names is none,
            or a hyperparameter is unknown or out of its range.
        SourceError: the text is no update rule.

    >>> optimizer("adam").rate, optimizer("momentum", {"beta": 0.8}).hyper
    (0.05, {'beta': 0.8})
    """
    if not isinstance(name, str):
        raise UsageError(f"an optimizer is called by its name, not by {type(name).__name__}")
    if "=" in name:
        from cgprimer.training.rule_listing import text_rule

        return text_rule(name, hyper)
    if name in _OF_FITS and name not in OPTIMIZERS:
        hint = f"it takes all data at once: cgprimer fit --algorithm {name}, cgprimer.fit(...)"
        raise UsageError(f"{name} is no rule for steps over batches", hint=hint)
    found = OPTIMIZERS[name]
    if not isinstance(found, Optimizer):
        raise UsageError(f"the optimizer {name!r} is no cgprimer.Optimizer but {found!r}")
    rule = found.but(hyper)
    for count in rule.hyper.keys() & {"block", "memory"}:
        if rule.hyper[count] % 1:
            raise UsageError(f"{count} of {name} is a whole number, not {rule.hyper[count]:g}")
    return rule


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

    >>> def signs(parameters, gradient, state, rate, beta=0.9):
    ...     mean = beta*state[0] + (1 - beta)*gradient
    ...     return parameters - rate*np.sign(mean), (mean,)
    >>> rule = register_optimizer("signs", signs, start=lambda p: (np.zeros_like(p),))
    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")
    >>> data = cgprimer.make_dataset(graph, samples=1000)
    >>> run = cgprimer.train(graph, data, optimizer="signs", learning_rate=0.05)
    >>> round(run.parameters["k"], 2)
    3.0
    >>> unregister_optimizer("signs")
    """
    rule = Optimizer(name, update, start, check_real_number("the learning rate", rate, above=0))
    tried(rule)
    OPTIMIZERS.register(name, rule)
    return rule


def unregister_optimizer(name: str) -> None:
    """Remove an optimizer that :func:`register_optimizer` added.

    Raises:
        UsageError: no such optimizer was registered.
    """
    OPTIMIZERS.unregister(name)
