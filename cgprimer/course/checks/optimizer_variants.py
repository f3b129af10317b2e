"""Simulation of update rules as students write them: correct ones, conventions and mistakes.

A variant is a rule of the optimizer table with changes. :func:`simulate` runs its updates, so that
the updates of a student's optimizer can be compared with those of each variant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from cgprimer.course.checks.optimizer_mistakes import AHEAD, CHANGES, LOOKING_AHEAD, RULES, Change
from cgprimer.training.statement_evaluator import StatementEvaluator
from cgprimer.training.statement_tapes import parse_statements


@dataclass(frozen=True)
class Variant:
    """A correct or wrong update rule: its statements, and the changes to the original rule."""

    text: str
    changes: tuple[Change, ...] = ()

    @property
    def is_right(self) -> bool:
        """True if every change is a convention rather than a mistake."""
        return all(change.is_convention for change in self.changes)


@lru_cache(maxsize=16)
def list_variants(rule: str, ahead: bool, changes: int = 1) -> tuple[Variant, ...]:
    """List the variants of an update rule with the given number of changes, correct ones first.

    Args:
        rule: the name of an optimizer.
        ahead: whether Nesterov's rule computes the gradient at the position ahead.
        changes: the number of changes; for 1, the unchanged rule is included.

    >>> [variant.changes[0].name for variant in list_variants("sgd", False)[1:5]]
    ['sign', 'rate applied twice', 'rate not applied', 'normalized gradient']
    """
    name = AHEAD if ahead else rule
    original = LOOKING_AHEAD if ahead else RULES[rule]
    variants = {original: Variant(original)} if changes == 1 else {}
    for chosen in combinations(_list_changes(rule, name), changes):
        text: str | None = original
        for change in chosen:
            text = None if text is None else change.apply(name, text)
        if text is None:
            continue
        handling = "".join(
            "t" * c.counts_per_parameter
            + "s" * c.shares_state
            + "f" * c.resets_state
            + f"{c.normalizes}{c.offset:g}"
            for c in chosen
        )
        variants.setdefault(f"{text} {handling}", Variant(text, chosen))
    return tuple(sorted(variants.values(), key=lambda variant: not variant.is_right))


def _list_changes(rule: str, name: str) -> list[Change]:
    """List the changes that can apply to an update rule; sgd has no state to change."""
    changes = [c for c in CHANGES if not c.optimizers or name in c.optimizers]
    return [c for c in changes if c.replacements or c.normalizes or rule != "sgd"]


@lru_cache(maxsize=2048)
def _compile_rule(text: str) -> StatementEvaluator:
    """Compile the statements of an update rule to Python code."""
    return StatementEvaluator(parse_statements(text))


class RuleSimulation:
    """An executable update rule with its state, which is 0 before the first update.

    Args:
        statements: the rule.
        hyper: values of the hyperparameters and of the learning rate.
        size: number of parameters that are updated together.
        resets_state: whether each update starts with the initial state.

    >>> rule = RuleSimulation("v = 0.5*v + g; p = p - rate*v", {"rate": 0.1}, 1)
    >>> rule.update(np.zeros(1), np.ones(1), 1.0)
    array([-0.1])
    """

    def __init__(
        self, statements: str, hyper: Mapping[str, float], size: int, *, resets_state: bool = False
    ) -> None:
        self.evaluator, self.hyper = _compile_rule(statements), hyper
        self.resets_state = resets_state
        self.zero, self.state = np.zeros(size), dict[str, Any]()

    def update(self, parameters: Any, gradient: Any, number: Any) -> Any:
        """Run one update, and return the new parameters.

        Args:
            parameters, gradient: shape (parameters,).
            number: number of the update, from 1; a float or one number per parameter.
        """
        values_by_name = {**self.hyper, "p": parameters, "g": gradient, "t": number}
        state = {} if self.resets_state else self.state
        values = [
            values_by_name[name] if name in values_by_name else state.get(name, self.zero)
            for name in self.evaluator.inputs
        ]
        computed = self.evaluator(values)
        self.state = {name: computed[i] for name, i in self.evaluator.tape.outputs.items()}
        return self.state["p"]


def simulate(variant: Variant, hyper: Mapping[str, float], start: Any, gradients: Any) -> Any:
    """Simulate a variant of an update rule on a gradient sequence.

    Args:
        variant: the variant of a rule.
        hyper: values of the hyperparameters and of the learning rate.
        start: the initial parameters; shape (parameters,).
        gradients: shape (updates, parameters).

    Returns:
        The parameters after each update, of shape (updates, parameters); nan after the first update
        with a value that is not finite.

    >>> hyper = {"beta": 0.5, "rate": 0.1}
    >>> simulate(Variant(RULES["momentum"]), hyper, np.zeros(1), np.ones((2, 1)))
    array([[-0.1 ],
           [-0.25]])
    """
    shares_state = any(change.shares_state for change in variant.changes)
    counts_per_parameter = any(change.counts_per_parameter for change in variant.changes)
    rows = np.full(np.shape(gradients), np.nan)
    parameters, size = np.array(start, dtype=float), len(start)
    resets_state = any(change.resets_state for change in variant.changes)
    simulation = RuleSimulation(
        variant.text, hyper, 1 if shares_state else size, resets_state=resets_state
    )
    with np.errstate(all="ignore"):
        for change in variant.changes:
            gradients = _normalize_gradients(np.asarray(gradients), change)
        for index, gradient in enumerate(gradients):
            if counts_per_parameter:
                numbers = index * size + 1.0 + np.arange(size)
            else:
                numbers = np.full(size, index + 1.0)
            if shares_state:
                for k in range(size):
                    one = slice(k, k + 1)
                    parameters[one] = simulation.update(
                        parameters[one], gradient[one], numbers[one]
                    )
            else:
                parameters = simulation.update(parameters, gradient, numbers)
            rows[index] = parameters
            if not np.all(np.isfinite(parameters)):
                break
    return rows


def _normalize_gradients(gradients: Any, change: Change) -> Any:
    """Normalize gradients of shape (updates, parameters) as a change requires."""
    if change.normalizes == "sign":
        return np.sign(gradients)
    if change.normalizes == "all":
        return gradients / (np.linalg.norm(gradients, axis=1, keepdims=True) + change.offset)
    if change.normalizes == "each":
        return gradients / (np.abs(gradients) + change.offset)
    return gradients
