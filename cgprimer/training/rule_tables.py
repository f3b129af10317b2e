"""The tables of optimizers and schedules, with rules written in the language of graphs.

A row of an optimizer has the statements of the update rule, default hyperparameters and the
publication. Training, the check of students' optimizers and exercise sheets use these statements.
The results equal those of PyTorch for all rules that PyTorch has. The module does not need numpy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRow:
    """A row of the schedule table: the formula of a schedule and its hyperparameters.

    Attributes:
        summary: one sentence about the schedule.
        formula: the learning rate of an update. ``drops`` is the number of completed periods of
            ``every`` epochs.
        hyper: default hyperparameters.
        source: publication; empty if the schedule is folklore.
    """

    summary: str
    formula: str
    hyper: Mapping[str, float] = field(default_factory=dict)
    source: str = ""


SCHEDULES: Mapping[str, ScheduleRow] = {
    "cosine": ScheduleRow(
        summary="Half a cosine wave, from the initial learning rate to 0.",
        formula=f"rate*(0.5 + 0.5*cos({math.pi}*step/steps))",
        source='Loshchilov and Hutter 2017, "SGDR: stochastic gradient descent with warm restarts"',
    ),
    "constant": ScheduleRow(summary="The initial learning rate.", formula="rate"),
    "exponential": ScheduleRow(
        summary="A constant factor per epoch.", formula="rate*gamma^t", hyper={"gamma": 0.9}
    ),
    "steps": ScheduleRow(
        summary="A constant factor after every few epochs.",
        formula="rate*factor^drops",
        hyper={"factor": 0.5, "every": 10},
    ),
}
