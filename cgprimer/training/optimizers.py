"""Optimizers: objects for the rows of the table of update rules, and registered optimizers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf, nextafter
from types import MappingProxyType
from typing import Any

from cgprimer.errors import UsageError
from cgprimer.support.plugins import Registry
from cgprimer.support.validation import check_real_number
from cgprimer.training.rule_tables import OPTIMIZER_TABLE
from cgprimer.training.update_rules import Array, Optimizer, Update, run_trial_updates
from cgprimer.training.written_rules import State, create_named_rule, parse_rule

_FITTING_METHODS = ("gauss-newton", "levenberg-marquardt")
_BELOW_ONE = (0.0, nextafter(1.0, 0.0))  # factors that an update multiplies with earlier values
_RANGES = {
    **dict.fromkeys(("beta", "beta1", "beta2", "alpha"), _BELOW_ONE),
    **dict.fromkeys(("epsilon", "weight_decay"), (0.0, inf)),
    **dict.fromkeys(("block", "memory"), (1.0, inf)),
}


def _reject_single_update(
    parameters: Array, gradient: Array, state: State, rate: float, memory: float = 10
) -> tuple[Array, State]:
    """Raise UsageError, because SciPy computes all updates of L-BFGS in one call."""
    raise UsageError("cannot run a single update of l-bfgs: SciPy runs the whole minimization")


def _create_optimizer(name: str) -> Optimizer:
    """Create the optimizer with the given name from its row of the optimizer table."""
    row = OPTIMIZER_TABLE[name]
    if not row.formula:
        update: Update = _reject_single_update
        return Optimizer(name, update, rate=row.rate, ranges=_RANGES, kind=row.kind)
    rule = create_named_rule(row.formula, tuple(row.hyper.items()))
    return Optimizer(name, rule, rule.start, row.rate, _RANGES, row.kind, row.formula, row.source)


SGD = _create_optimizer("sgd")
MOMENTUM = _create_optimizer("momentum")
NESTEROV = _create_optimizer("nesterov")
ADAGRAD = _create_optimizer("adagrad")
RMSPROP = _create_optimizer("rmsprop")
ADAM = _create_optimizer("adam")
ADAMW = _create_optimizer("adamw")
COORDINATES = _create_optimizer("coordinates")
L_BFGS = _create_optimizer("l-bfgs")
OPTIMIZERS: Registry[Optimizer] = Registry(
    "optimizer",
    "cgprimer.optimizers",
    {name: f"{__name__}:{name.upper().replace('-', '_')}" for name in OPTIMIZER_TABLE},
)


def optimizer(name: str, hyper: Mapping[str, Any] = MappingProxyType({})) -> Optimizer:
    """Return the optimizer with the given name, or create one from a written update rule.

    Args:
        name: a name in ``OPTIMIZERS``, or statements such as ``v = mu*v + g; p = p - rate*v``.
        hyper: hyperparameters; those of a named optimizer have defaults.

    Raises:
        UsageError: the name is unknown, an installed package registers an object that is not an
            optimizer, or a hyperparameter is unknown or out of range.
        SourceError: the statements are not a valid update rule.

    >>> optimizer("adam").rate, optimizer("momentum", {"beta": 0.8}).hyper
    (0.05, {'beta': 0.8})
    """
    if not isinstance(name, str):
        raise UsageError(f"`optimizer` must be a string, got {type(name).__name__}")
    if "=" in name:
        rule = parse_rule(name, hyper)
        return Optimizer(name, rule, rule.start, formula=name)
    if name in _FITTING_METHODS and name not in OPTIMIZERS:
        hint = f"use cgprimer fit --algorithm {name} or cgprimer.fit(...)"
        raise UsageError(
            f"the algorithm {name!r} cannot train on batches: it needs all samples", hint=hint
        )
    registered = OPTIMIZERS[name]
    if not isinstance(registered, Optimizer):
        raise UsageError(f"optimizer {name!r} must be a cgprimer.Optimizer, got {registered!r}")
    configured = registered.but(hyper)
    for count in configured.hyper.keys() & {"block", "memory"}:
        if configured.hyper[count] % 1:
            value = configured.hyper[count]
            raise UsageError(f"{count} of {name} must be an integer, got {value:g}")
    return configured


def register_optimizer(
    name: str,
    update: Update,
    *,
    start: Callable[[Array], State] = lambda parameters: (),
    rate: float = 0.01,
) -> Optimizer:
    """Register an optimizer, so that ``train(..., optimizer=name)`` finds it.

    Engines that run whole epochs compile the update if it consists of arithmetic and elementwise
    functions of numpy. Otherwise (with an ``if``, or a sum over the parameters), Python runs the
    updates, and a warning says so. Packages register optimizers by an entry point of the group
    ``cgprimer.optimizers`` that refers to a :class:`cgprimer.Optimizer`.

    Args:
        name: the new name.
        update, start, rate: see :class:`Optimizer`.

    Raises:
        UsageError: the name is in use, the rate is not positive, or the update fails on arrays.

    >>> import numpy as np
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
    rule = Optimizer(name, update, start, check_real_number("rate", rate, above=0))
    run_trial_updates(rule)
    OPTIMIZERS.register(name, rule)
    return rule


def unregister_optimizer(name: str) -> None:
    """Remove an optimizer that was added by :func:`register_optimizer`.

    Raises:
        UsageError: no optimizer was registered under this name.
    """
    OPTIMIZERS.unregister(name)
