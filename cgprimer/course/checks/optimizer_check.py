"""Optimizers that students wrote: what they did in a few steps, and which rule does the same.

A submission is asked for steps along given gradients. The same steps are done by the right rule,
by the conventions that there are, and by the mistakes that are usual
(:mod:`cgprimer.course.checks.optimizer_variants`): what gives the student's numbers is named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cgprimer.course.checks import optimizer_driver
from cgprimer.course.checks.answer_validation import OPTIMIZER
from cgprimer.course.checks.check_results import Failure, Part, Result, create_failed_result
from cgprimer.course.checks.optimizer_verdicts import (
    DECAY,
    DECAY_POINTS,
    GIVEN,
    PARTS,
    SLOPE,
    Run,
    parts_of,
    runs,
)
from cgprimer.course.checks.sandbox import Limits, Request, Submission, run_submission, source_of
from cgprimer.course.checks.verdicts import rename_hint
from cgprimer.errors import Source, UsageError, join_names, name_hint, pluralize
from cgprimer.training.optimizers import optimizer as rule_of

#: The optimizers, with the parts of names by which a submission's are recognised.
CALLED = {
    "adamw": ("adamw",),
    "adam": ("adam",),
    "rmsprop": ("rmsprop", "rms"),
    "adagrad": ("adagrad",),
    "nesterov": ("nesterov", "nag"),
    "momentum": ("momentum", "heavyball"),
    "sgd": ("sgd", "gradientdescent"),
}
_CLASSES = {"sgd": "SGD", "adagrad": "AdaGrad", "rmsprop": "RMSprop", "adamw": "AdamW"}
_RATES = ("rate", "learningrate", "lr", "eta", "stepsize", "step")
_BETAS = ("beta", "momentum", "mu", "gamma", "rho", "beta1", "b")
_AVERAGES = ("alpha", "rho", "decayrate", "beta", "beta2", "gamma", "decay", "smoothing", "b")
_DECAYS = ("weightdecay", "wd", "lambda", "lam", "l2", "decay", "regularization", "reg")
_EPSILON = ("epsilon", "eps", "delta", "e")


def check_optimizer(
    submission: Submission,
    optimizer: str | Sequence[str] | None = None,
    *,
    seed: int = 0,
    limits: Limits | None = None,
) -> Result:
    """Check optimizers that a student wrote, and name what is wrong with them.

    A submission has a class for each optimizer, ``class Adam`` with ``__init__(self, rate=...,
    beta1=..., ...)`` and ``step(self, parameters, gradients)``; or a function
    ``adam(parameters, gradients, state, rate=..., ...)`` whose ``state`` is a dictionary, empty
    before the first step. Parameters and gradients are dictionaries or lists of numbers, or of
    arrays; a step changes them in place or returns new ones. A step of Nesterov's may take a
    function of parameters in the place of gradients.

    Args:
        submission: a file, or the ``globals()`` of a notebook.
        optimizer: of ``sgd``, ``momentum``, ``nesterov``, ``adagrad``, ``rmsprop``, ``adam``,
            ``adamw`` one or several; otherwise all that are recognised by their names.
        seed: of the gradients.
        limits: what the submission may use.

    Returns:
        For each optimizer its parts: the first step, more steps, several parameters, small
        gradients, and weight decay if it has an argument for it.

    Raises:
        UsageError: there is no such optimizer, or no such file.

    >>> class Momentum:
    ...     def __init__(self, rate=0.1, beta=0.9):
    ...         self.rate, self.beta, self.v = rate, beta, 0.0
    ...     def step(self, parameters, gradients):
    ...         for k, g in enumerate(gradients):
    ...             self.v = self.beta*self.v + g
    ...             parameters[k] -= self.rate*self.v
    >>> result = check_optimizer({"Momentum": Momentum, "__name__": __name__})
    >>> [part.verdict for part in result.parts], result.mistakes
    (['right', 'right', 'wrong', 'wrong'], ('state shared between parameters',))
    """
    rules = [optimizer] if isinstance(optimizer, str) else list(optimizer or ())
    worth = possible(rules)
    file = None if isinstance(submission, Mapping) else Path(submission)
    title = file.name if file else "notebook"
    driver = optimizer_driver.__file__
    asked: list[Request] = [{"call": "listed", "arguments": []}]
    there = run_submission(submission, asked, limits, driver=driver, forms=OPTIMIZER)
    names = there.values[0]
    if isinstance(names, Failure):
        return there.add_run_to(create_failed_result("optimizer", title, worth, names))
    found = recognised(names, rules)
    rules = rules or list(found)
    defined = _defined(names)
    if not found:
        what = _missing(rules[0], names) if rules else f"there is no optimizer; {defined}"
        return there.add_run_to(
            create_failed_result("optimizer", title, worth, Failure("missing", what))
        )
    tests = runs(seed)
    requests: Any = [
        {"call": "tried", "arguments": [name, _question(rule, tests, decay)]}
        for rule, name in found.items()
        for decay in (0.0, DECAY)
    ]
    answers = run_submission(
        submission,
        requests,
        limits,
        driver=driver,
        forms=OPTIMIZER,
        restarts=len(requests) - 1,
    )
    reported = iter(answers.values)
    read = source_of(file) if file else None
    source = read if isinstance(read, Source) else Source(title, "")
    parts: list[Part] = []
    for rule in rules:
        if rule in found:
            judged = parts_of(rule, tests, next(reported), next(reported), source)
        else:
            missing = _missing(rule, [one for one in names if one[0] not in found.values()])
            judged = [Part(n, p, 0, "not run", "missing name", missing) for n, p in PARTS.items()]
        parts += [replace(part, name=f"{rule}: {part.name}") for part in judged]
    return answers.add_run_to(Result("optimizer", title, tuple(parts)))


def _defined(names: Sequence[Sequence[str]]) -> str:
    return f"it defines {join_names(n for n, _ in names) or 'no class and no function'}"


def _missing(rule: str, names: Sequence[Sequence[str]]) -> str:
    """Return that an optimizer is missing, and what to rename or what there is instead."""
    hint = rename_hint(_CLASSES.get(rule, rule.capitalize()), [name for name, _ in names])
    return f"there is no {rule}; {hint or _defined(names)}"


def possible(rules: Sequence[str]) -> dict[str, float]:
    """The points that each part of these optimizers can bring; of weight decay only AdamW's.

    Raises:
        UsageError: there is no optimizer of a name.
    """
    found: dict[str, float] = {}
    for rule in rules:
        if rule not in CALLED:
            hint = name_hint(rule, CALLED)
            raise UsageError(f"there is no optimizer {rule!r} to check", hint=hint)
        names = {**PARTS, "weight decay": DECAY_POINTS} if rule == "adamw" else PARTS
        found |= {f"{rule}: {name}": float(points) for name, points in names.items()}
    return found or {"optimizer": float(sum(PARTS.values()))}


def recognised(names: Sequence[Sequence[str]], rules: Sequence[str] = ()) -> dict[str, str]:
    """The submission's name for each optimizer that it has, of those that are asked for.

    Of a class a part of the name will do; a function may be a helper, so it is called like an
    optimizer, or like one and ``step`` or ``update``.

    Args:
        names: of what the submission defines, each with ``class`` or ``function``.
        rules: that are asked for; all unless given.

    >>> recognised([("MyAdam", "class"), ("norm", "function"), ("nag_step", "function")])
    {'adam': 'MyAdam', 'nesterov': 'nag_step'}
    >>> recognised([("Mine", "class")], ["adam"])
    {'adam': 'Mine'}
    """
    found: dict[str, str] = {}
    for name, kind in sorted(names, key=lambda one: one[1]):  # classes come first
        plain = re.sub(r"[^a-z]", "", name.casefold())
        whole = re.sub(r"step|update|optimi[sz]er", "", plain)
        for rule, parts in CALLED.items():
            if whole in parts or (kind == "class" and parts[0] in plain):
                if (rule in rules or not rules) and not re.search("nadam|adamax|radam", plain):
                    found.setdefault(rule, name)
                break
    if not found and len(rules) == len(names) == 1:
        return {rules[0]: names[0][0]}
    return found


def _question(rule: str, tests: Sequence[Run], decay: float) -> dict[str, Any]:
    usual: dict[str, tuple[str, ...]] = {"rate": _RATES}
    for name in rule_of(rule).hyper:
        usual[name] = {"alpha": _AVERAGES, "epsilon": _EPSILON, "beta": _BETAS}.get(
            name, (name, name.replace("beta", "b"))
        )
    usual["weight_decay"] = _DECAYS
    if "alpha" not in usual:
        usual["rate"] = (*_RATES, "alpha")
    hyper = {name: GIVEN[name] for name in usual} | {"weight_decay": decay}
    return {
        "hyper": hyper, "usual": usual, "runs": [run.asked() for run in tests],
        "ahead": rule == "nesterov", "slope": SLOPE,
    }  # fmt: skip


def skeleton(rule: str) -> str:
    """What a student starts from: the class, its arguments, and what a step has to do.

    >>> print(skeleton("sgd").splitlines()[2])
    class SGD:
    """
    if rule not in CALLED:
        raise UsageError(f"there is no optimizer {rule!r}", hint=name_hint(rule, CALLED))
    known = rule_of(rule)
    hyper = {"rate": known.rate, **known.hyper}
    arguments = ", ".join(f"{name}={value:g}" for name, value in hyper.items())
    stored = "\n".join(f"        self.{name} = {name}" for name in hyper)
    return _SKELETON.format(
        name=_CLASSES.get(rule, rule.capitalize()), arguments=arguments, stored=stored,
        about=pluralize(len(hyper), "hyperparameter"),
    )  # fmt: skip


_SKELETON = '''"""An optimizer. To check it: cgprimer check optimizer FILE"""

class {name}:
    """{about}; the state is made in the first step, when the parameters are known."""

    def __init__(self, {arguments}):
{stored}
        # TODO: what has to be remembered from step to step

    def step(self, parameters, gradients):
        """One step: change `parameters` in place, or return new ones.

        Both are dictionaries from names to numbers, or to numpy arrays; as lists they will do, too.
        """
        raise NotImplementedError  # TODO
'''
