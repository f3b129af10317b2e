"""Update rules written out: ``v = mu*v + g; p = p - rate*v`` in the language of the graphs.

Statements are done one after the other, for each parameter by itself. ``p`` is the parameter, ``g``
its gradient, ``rate`` the learning rate, ``t`` the number of the step, from 1 on. A name that is
assigned is state, if it is read before: it begins at 0, or at the value that is given for it. Any
other name is a hyperparameter, which must be given.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np

from cgprimer.core.language.parser import parse_program
from cgprimer.core.operations.primitive_registry import ARRAY_FUNCTIONS, FUNCTIONS
from cgprimer.errors import SourceError, did_you_mean
from cgprimer.expressions import (
    Apply,
    Declaration,
    Definition,
    Expression,
    Name,
    Program,
    postorder,
    unparse,
)
from cgprimer.support.validation import check_named_values
from cgprimer.training.update_rules import Array, Optimizer, State, evaluated

_GIVEN = ("g", "rate", "t")  # what a rule reads and may not assign
_PROBES = np.array([0.5, -2.0, 1.5]), np.array([-3.0, 0.25, 1.5]), 0.25  # p, g and rate


class UpdateRuleError(SourceError):
    """A text that is no update rule; a caret shows where."""


def text_rule(text: str, hyper: Mapping[str, Any]) -> Optimizer:
    """The optimizer of a text.

    Raises:
        UpdateRuleError: it does not assign p, assigns what it is given, reads a name without a
            value, or divides by zero in its first step.
        ExpressionSyntaxError, UnknownFunctionError: the text leaves the language.
        UsageError: a value is given for a name that the rule has not, or is none.

    >>> rule = text_rule("v = mu*v + g; p = p - rate*v", {"mu": 0.9})
    >>> rule.update(np.array([1.0]), np.array([2.0]), (np.array([1.0]),), 0.1)
    (array([0.71]), (array([2.9]),))
    """
    values = check_named_values("the update rule", hyper, "name", hyper)
    return _made(text, tuple(sorted(values.items())))


@lru_cache(maxsize=64)  # the same rule is one object, so that it is recorded once
def _made(text: str, hyper: tuple[tuple[str, float], ...]) -> Optimizer:
    rule = _TextRule(text, dict(hyper))
    return Optimizer(text, rule.update, rule.start)


class _TextRule:
    """A parsed rule, and what it needs."""

    def __init__(self, text: str, hyper: Mapping[str, float]) -> None:
        self.program = program = parse_program(text, FUNCTIONS, "<optimizer>")
        self.steps = [(one.name, one.expression) for one in _definitions(program)]
        assigned = {name for name, _ in self.steps}
        if "p" not in assigned:
            last = program.statements[-1]
            _fail(program, last, "", "the rule does not assign p, the parameter",
                  "it ends with something like p = p - rate*g")  # fmt: skip
        names = {name for one in _definitions(program) for name in one.names}
        # The state: what is read before it is assigned.
        self.state: list[str] = []
        done = {"p", *_GIVEN}
        for one in _definitions(program):
            for name in one.names:
                if name in assigned - done and name not in self.state:
                    self.state.append(name)
                if name not in assigned | done | hyper.keys():
                    known = [*assigned, "p", *_GIVEN, *hyper]
                    hint = did_you_mean(name, known) or f"--hyper {name}=0.9, or another number"
                    what = f"the rule reads {name!r}, which it does not assign and nobody gives"
                    _fail(program, one, name, what, hint)
            done.add(one.name)
        allowed = [*self.state, *sorted(names - assigned - {"p", *_GIVEN})]
        check_named_values("the update rule", dict(hyper), "hyperparameter or state", allowed)
        if "g" not in names:
            _fail(program, program.statements[-1], "", "the rule never reads g, the gradient", "")
        self.hyper = {name: value for name, value in hyper.items() if name not in self.state}
        self.begin = {name: hyper.get(name, 0.0) for name in self.state}
        self.counts = "t" in names
        self._first_step()

    def start(self, parameters: Array) -> State:
        """The state before the first step; at the end, where it counts, how many were done."""
        kept = tuple(np.full_like(parameters, value) for value in self.begin.values())
        return (*kept, np.array(0.0)) if self.counts else kept

    def update(
        self, parameters: Array, gradient: Array, state: State, rate: Any
    ) -> tuple[Array, State]:
        """One step; of arrays, or of values that are being recorded."""
        known = {**self.hyper, "p": parameters, "g": gradient, "rate": rate}
        known |= dict(zip(self.state, state, strict=False))
        if self.counts:
            known["t"] = state[-1] + 1
        for name, tree in self.steps:
            known[name] = evaluated(tree, known)
        after = tuple(known[name] for name in self.state)
        if isinstance(parameters, np.ndarray):  # one number for all is one of each
            after = tuple(np.zeros_like(parameters) + part for part in after)
        return known["p"], (*after, known["t"]) if self.counts else after

    def _first_step(self) -> None:
        """Do it with some numbers, and point at the first thing that is not finite."""
        p, g, rate = _PROBES
        known = {**self.hyper, "p": p, "g": g, "rate": rate, "t": 1.0, **self.begin}
        for one in _definitions(self.program):
            for node in postorder(one.expression):
                value = evaluated(node, known)
                if isinstance(node, Apply) and not np.all(np.isfinite(value)):
                    below = evaluated(node.arguments[-1], known)
                    self._not_finite(one, node, below, value)
            known[one.name] = value  # of the last node, which is the whole

    def _not_finite(self, one: Definition, node: Apply, last: Any, value: Any) -> NoReturn:
        text, hint = unparse(node), ""
        if any(isinstance(part, Name) and part.name in self.state for part in postorder(node)):
            hint = "state begins at 0 unless a start is given: --hyper NAME=VALUE"
        if node.primitive == "div" and not np.all(last):
            below = unparse(node.arguments[1])
            what = "the rule divides by zero"
            what += "" if below == "0" else f": {below} is 0 in the first step"
            hint = hint and f"{hint}; or add a small number, as in /({below} + 1e-8)"
        else:
            wrong = next(number for number in np.ravel(value) if not np.isfinite(number))
            what = f"{text} is {wrong} in the first step"
        _fail(self.program, one, text, what, hint)


def _definitions(program: Program) -> list[Definition]:
    """The statements, each of which must assign a number to a name of the rule's own."""
    found = []
    for one in program.statements:
        if isinstance(one, Declaration):
            what = "an update rule has no declarations: names are what the rule makes of them"
            _fail(program, one, "", what, "write what is assigned, as in v = 0.9*v + g")
        if one.name in _GIVEN:
            given = "the gradient" if one.name == "g" else "the learning rate"
            given = "the number of the step" if one.name == "t" else given
            hint = "choose another name"
            _fail(program, one, "", f"{one.name} is {given}, which a rule does not assign", hint)
        for node in postorder(one.expression):
            if isinstance(node, Apply) and not _single(node):
                what = "a rule is about one number at a time; this is made for arrays"
                _fail(program, one, unparse(node), what, "functions of one number each")
        found.append(one)
    return found


def _single(node: Expression) -> bool:
    name = node.primitive  # type: ignore[union-attr]
    return type(name) is str and name not in ARRAY_FUNCTIONS


def _fail(
    program: Program, one: Definition | Declaration, text: str, what: str, hint: str
) -> NoReturn:
    """Raise what is wrong with a text in a statement; with its name where that is empty."""
    span = program.name_span(one)
    if text and isinstance(one, Definition):
        span = program.expression_span(one, text)
    raise UpdateRuleError(what, span, hint=hint)
