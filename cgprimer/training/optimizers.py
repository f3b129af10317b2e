"""Optimizers: a table of update rules written in the language of graphs.

A row has the statements of the rule, default hyperparameters and the publication. Training, the
check of students' optimizers and exercise sheets use these statements. The results equal those of
PyTorch for all rules that PyTorch has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf, nextafter
from types import MappingProxyType
from typing import Any

from cgprimer.errors import UsageError
from cgprimer.support.plugins import Registry
from cgprimer.support.validation import check_real_number
from cgprimer.training.update_rules import Array, Optimizer, Update, run_trial_updates
from cgprimer.training.written_rules import State, create_named_rule, parse_rule

_FITTING_METHODS = ("gauss-newton", "levenberg-marquardt")
_BELOW_ONE = (0.0, nextafter(1.0, 0.0))  # factors that an update multiplies with earlier values
_RANGES = {
    **dict.fromkeys(("beta", "beta1", "beta2", "alpha"), _BELOW_ONE),
    **dict.fromkeys(("epsilon", "weight_decay"), (0.0, inf)),
    **dict.fromkeys(("block", "memory"), (1.0, inf)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerRow:
    """A row of the optimizer table: an update rule, its defaults and its publication.

    Attributes:
        summary: one sentence about the method.
        formula: statements for each parameter ``p`` with gradient ``g``, as described in
            :mod:`cgprimer.training.written_rules`; empty if SciPy computes the updates.
        rate: default learning rate.
        hyper: default hyperparameters.
        source: publication.
        kind: see :class:`cgprimer.training.update_rules.Optimizer`.
    """

    summary: str
    formula: str
    rate: float
    source: str
    hyper: Mapping[str, float] = field(default_factory=dict)
    kind: str = "rule"


_ADAM_FORMULA = (
    "m = beta1*m + (1 - beta1)*g; v = beta2*v + (1 - beta2)*g*g;"
    " mh = m/(1 - beta1^t); vh = v/(1 - beta2^t); p = p - rate*mh/(sqrt(vh) + epsilon)"
)
_ADAM_HYPER = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
OPTIMIZER_TABLE: Mapping[str, OptimizerRow] = {
    "sgd": OptimizerRow(
        summary="Steps along the negative gradient.",
        formula="p = p - rate*g",
        rate=0.1,
        source='Robbins and Monro 1951, "A stochastic approximation method"',
    ),
    "momentum": OptimizerRow(
        summary="Steps along a velocity, a decaying sum of all gradients.",
        formula="v = beta*v + g; p = p - rate*v",
        rate=0.02,
        hyper={"beta": 0.9},
        source='Polyak 1964, "Some methods of speeding up the convergence of iteration methods"',
    ),
    "nesterov": OptimizerRow(
        summary="Momentum with a look-ahead, for gradients at the current parameters.",
        formula="v = beta*v + g; p = p - rate*(g + beta*v)",
        rate=0.02,
        hyper={"beta": 0.9},
        source='Nesterov 1983, in the form of Sutskever et al. 2013, "On the importance of'
        ' initialization and momentum in deep learning"',
    ),
    "adagrad": OptimizerRow(
        summary="Steps divided by the root of the sum of squared gradients.",
        formula="s = s + g*g; p = p - rate*g/(sqrt(s) + epsilon)",
        rate=0.1,
        hyper={"epsilon": 1e-10},
        source='Duchi, Hazan and Singer 2011, "Adaptive subgradient methods"',
    ),
    "rmsprop": OptimizerRow(
        summary="AdaGrad with a moving average of the squared gradients.",
        formula="s = alpha*s + (1 - alpha)*g*g; p = p - rate*g/(sqrt(s) + epsilon)",
        rate=0.01,
        hyper={"alpha": 0.99, "epsilon": 1e-8},
        source='Tieleman and Hinton 2012, lecture 6.5 of "Neural networks for machine learning"',
    ),
    "adam": OptimizerRow(
        summary="Moving averages of gradient and squared gradient, corrected for their start at 0.",
        formula=_ADAM_FORMULA,
        rate=0.05,
        hyper=_ADAM_HYPER,
        source='Kingma and Ba 2015, "Adam: a method for stochastic optimization", algorithm 1',
    ),
    "adamw": OptimizerRow(
        summary="Adam with weight decay of the parameters before each update.",
        formula=f"p = (1 - rate*weight_decay)*p; {_ADAM_FORMULA}",
        rate=0.05,
        hyper={**_ADAM_HYPER, "weight_decay": 0.01},
        source='Loshchilov and Hutter 2019, "Decoupled weight decay regularization", algorithm 2',
    ),
    "coordinates": OptimizerRow(
        summary="Gradient steps of a few randomly chosen parameters at a time.",
        formula="p = p - rate*g",
        rate=0.1,
        hyper={"block": 1},
        source='Nesterov 2012, "Efficiency of coordinate descent methods on huge-scale'
        ' optimization problems"; Wright 2015, "Coordinate descent algorithms"',
        kind="coordinates",
    ),
    "l-bfgs": OptimizerRow(
        summary="SciPy's quasi-Newton method with line searches, over all samples.",
        formula="",
        rate=1.0,
        hyper={"memory": 10},
        source='Byrd, Lu, Nocedal and Zhu 1995, "A limited memory algorithm for bound constrained'
        ' optimization"',
        kind="whole",
    ),
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
