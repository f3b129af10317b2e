"""Check students' optimizers: run them on given gradients, and find the rule with equal results.

The updates of a submission are compared with those of the correct rule, its conventions and common
mistakes (:mod:`cgprimer.course.checks.optimizer_mistakes`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cgprimer.course.checks import optimizer_driver
from cgprimer.course.checks.answer_validation import OPTIMIZER
from cgprimer.course.checks.check_results import Failure, Part, Result, create_failed_result
from cgprimer.course.checks.optimizer_verdicts import (
    DECAY,
    DECAY_POINTS,
    PARTS,
    SLOPE,
    TEST_SETTINGS,
    GradientSequence,
    create_test_runs,
    judge_optimizer,
)
from cgprimer.course.checks.sandbox import (
    Limits,
    Request,
    Submission,
    convert_submission,
    read_source,
    run_submission,
)
from cgprimer.course.checks.verdicts import rename_hint
from cgprimer.errors import Source, UsageError, join_names, name_hint, pluralize
from cgprimer.support.type_checks import check_type
from cgprimer.training.optimizers import optimizer as find_optimizer

#: Parts of the names of classes and functions that identify an optimizer.
OPTIMIZER_NAMES = {
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
    submission: Submission | Callable[..., Any],
    optimizer: str | Sequence[str] | None = None,
    *,
    seed: int = 0,
    limits: Limits | None = None,
) -> Result:
    """Check the optimizers in a submission, and name their likely mistakes.

    A submission has a class for each optimizer, ``class Adam`` with ``__init__(self, rate=...,
    beta1=..., ...)`` and ``step(self, parameters, gradients)``; or a function
    ``adam(parameters, gradients, state, rate=..., ...)`` whose ``state`` is a dictionary, empty
    before the first update. Parameters and gradients are dictionaries or lists of numbers or
    arrays; an update changes the parameters in place or returns new ones. For Nesterov's rule, the
    gradients can be a function of the parameters.

    Args:
        submission: a file, the ``globals()`` of a notebook, or the class or function itself.
        optimizer: one or several of ``sgd``, ``momentum``, ``nesterov``, ``adagrad``,
            ``rmsprop``, ``adam``, ``adamw``; by default all that are recognized by their names.
        seed: random seed of the gradients.
        limits: limits of time and memory for the submission.

    Returns:
        The parts of each optimizer: first step, more steps, several parameters, small gradients,
        and weight decay if the optimizer has an argument for it.

    Raises:
        UsageError: an argument is invalid, or the file does not exist.

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
    submission = convert_submission(submission)
    expected = "the name of an optimizer or a sequence of names"
    check_type("optimizer", optimizer, (str, Iterable, type(None)), expected)
    rules = [optimizer] if isinstance(optimizer, str) else list(optimizer or ())
    worth = list_points(rules)
    file = None if isinstance(submission, Mapping) else Path(submission)
    title = file.name if file else "notebook"
    driver = optimizer_driver.__file__
    first_requests: list[Request] = [{"call": "list_definitions", "arguments": []}]
    there = run_submission(submission, first_requests, limits, driver=driver, forms=OPTIMIZER)
    names = there.values[0]
    if isinstance(names, Failure):
        return there.add_run_to(create_failed_result("optimizer", title, worth, names))
    definitions = recognize_optimizers(names, rules)
    rules = rules or list(definitions)
    defined = _describe_definitions(names)
    if not definitions:
        what = _explain_missing(rules[0], names) if rules else f"found no optimizer; {defined}"
        return there.add_run_to(
            create_failed_result("optimizer", title, worth, Failure("missing", what))
        )
    tests = create_test_runs(seed)
    requests: Any = [
        {"call": "try_optimizer", "arguments": [name, _build_question(rule, tests, decay)]}
        for rule, name in definitions.items()
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
    read = read_source(file) if file else None
    source = read if isinstance(read, Source) else Source(title, "")
    parts: list[Part] = []
    for rule in rules:
        if rule in definitions:
            judged = judge_optimizer(rule, tests, next(reported), next(reported), source)
        else:
            missing = _explain_missing(
                rule, [one for one in names if one[0] not in definitions.values()]
            )
            judged = [Part(n, p, 0, "not run", "missing name", missing) for n, p in PARTS.items()]
        parts += [replace(part, name=f"{rule}: {part.name}") for part in judged]
    return answers.add_run_to(Result("optimizer", title, tuple(parts)))


def _describe_definitions(names: Sequence[Sequence[str]]) -> str:
    """Return a clause that lists the classes and functions that a submission defines."""
    return f"the submission defines {join_names(n for n, _ in names) or 'no class or function'}"


def _explain_missing(rule: str, names: Sequence[Sequence[str]]) -> str:
    """Return the message for a missing optimizer, with a hint to rename a similar definition."""
    hint = rename_hint(_CLASSES.get(rule, rule.capitalize()), [name for name, _ in names])
    return f"{rule} is missing; {hint or _describe_definitions(names)}"


def list_points(rules: Sequence[str]) -> dict[str, float]:
    """Return the maximum points for each part of the given optimizers, keyed by part.

    Raises:
        UsageError: an optimizer is unknown.
    """
    definitions: dict[str, float] = {}
    for rule in rules:
        if rule not in OPTIMIZER_NAMES:
            hint = name_hint(rule, OPTIMIZER_NAMES)
            raise UsageError(f"unknown optimizer {rule!r}", hint=hint)
        names = {**PARTS, "weight decay": DECAY_POINTS} if rule == "adamw" else PARTS
        definitions |= {f"{rule}: {name}": float(points) for name, points in names.items()}
    return definitions or {"optimizer": float(sum(PARTS.values()))}


def recognize_optimizers(
    names: Sequence[Sequence[str]], rules: Sequence[str] = ()
) -> dict[str, str]:
    """Find the class or function in a submission that implements each optimizer.

    A class is recognized by a part of its name. A function can be a helper, so its name must be
    that of an optimizer, possibly with ``step`` or ``update``.

    Args:
        names: the names in the submission, each with ``class`` or ``function``.
        rules: the optimizers to find; all by default.

    Returns:
        The names in the submission, keyed by optimizer.

    >>> recognize_optimizers([("MyAdam", "class"), ("norm", "function"), ("nag_step", "function")])
    {'adam': 'MyAdam', 'nesterov': 'nag_step'}
    >>> recognize_optimizers([("Mine", "class")], ["adam"])
    {'adam': 'Mine'}
    """
    definitions: dict[str, str] = {}
    for name, kind in sorted(names, key=lambda one: one[1]):  # classes first
        plain = re.sub(r"[^a-z]", "", name.casefold())
        stem = re.sub(r"step|update|optimi[sz]er", "", plain)
        for rule, parts in OPTIMIZER_NAMES.items():
            if stem in parts or (kind == "class" and parts[0] in plain):
                if (rule in rules or not rules) and not re.search("nadam|adamax|radam", plain):
                    definitions.setdefault(rule, name)
                break
    if not definitions and len(rules) == len(names) == 1:
        return {rules[0]: names[0][0]}
    return definitions


def _build_question(rule: str, tests: Sequence[GradientSequence], decay: float) -> dict[str, Any]:
    """Build the input of the driver: hyperparameters, their usual names, and gradients."""
    usual: dict[str, tuple[str, ...]] = {"rate": _RATES}
    for name in find_optimizer(rule).hyper:
        usual[name] = {"alpha": _AVERAGES, "epsilon": _EPSILON, "beta": _BETAS}.get(
            name, (name, name.replace("beta", "b"))
        )
    usual["weight_decay"] = _DECAYS
    if "alpha" not in usual:
        usual["rate"] = (*_RATES, "alpha")
    hyper = {name: TEST_SETTINGS[name] for name in usual} | {"weight_decay": decay}
    return {
        "hyper": hyper, "usual": usual, "runs": [run.to_json() for run in tests],
        "ahead": rule == "nesterov", "slope": SLOPE,
    }  # fmt: skip


def create_skeleton(rule: str) -> str:
    """Return the skeleton for students to complete: an optimizer class without the update.

    >>> print(create_skeleton("sgd").splitlines()[2])
    class SGD:
    """
    if rule not in OPTIMIZER_NAMES:
        raise UsageError(f"unknown optimizer {rule!r}", hint=name_hint(rule, OPTIMIZER_NAMES))
    optimizer = find_optimizer(rule)
    hyper = {"rate": optimizer.rate, **optimizer.hyper}
    arguments = ", ".join(f"{name}={value:g}" for name, value in hyper.items())
    stored = "\n".join(f"        self.{name} = {name}" for name in hyper)
    return _SKELETON.format(
        name=_CLASSES.get(rule, rule.capitalize()), arguments=arguments, stored=stored,
        about=pluralize(len(hyper), "hyperparameter"),
    )  # fmt: skip


_SKELETON = '''"""An optimizer. To check it: cgprimer check optimizer FILE"""

class {name}:
    """{about}; create the state in the first step, when the parameters are known."""

    def __init__(self, {arguments}):
{stored}
        # TODO: state that steps share

    def step(self, parameters, gradients):
        """Run one step: change `parameters` in place, or return new parameters.

        Both are dictionaries of numbers or numpy arrays, keyed by name, or lists.
        """
        raise NotImplementedError  # TODO
'''
