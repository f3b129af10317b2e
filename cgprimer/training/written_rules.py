"""Update rules written in the language of graphs: ``v = mu*v + g; p = p - rate*v``.

The statements run in order, for each parameter separately. ``p`` is the parameter, ``g`` its
gradient, ``rate`` the learning rate and ``t`` the number of the update, counted from 1. An assigned
name that is read before its assignment is state: its initial value is 0 unless another value is
given. Every other name is a hyperparameter and needs a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import Any, NoReturn

import numpy as np

from cgprimer.core.evaluation.evaluator import run_instructions
from cgprimer.core.language.parser import parse_program
from cgprimer.core.operations.primitive_registry import ARRAY_FUNCTIONS, FUNCTIONS
from cgprimer.errors import SourceError, did_you_mean
from cgprimer.expressions import (
    Apply,
    Declaration,
    Definition,
    Name,
    Program,
    names_in,
    postorder,
    unparse,
)
from cgprimer.support.validation import check_named_values
from cgprimer.tapes import reachable, values_of
from cgprimer.training.statement_evaluator import StatementEvaluator
from cgprimer.training.statement_tapes import (
    PREDEFINED,
    READ_ONLY,
    build_statement_tape,
    find_state_names,
    parse_statements,
)

Array = Any
State = tuple[Array, ...]
_LARGE = 4096  # elements of an array
_FLOAT64 = np.dtype(np.float64)
#: Values for a trial run of the first update.
_TRIAL = {
    "p": np.array([0.5, -2.0, 1.5]), "g": np.array([-3.0, 0.25, 1.5]), "rate": 0.25, "t": 1.0,
}  # fmt: skip


class UpdateRuleError(SourceError):
    """Error in the text of an update rule; a caret marks the position."""


class WrittenRule:
    """An update rule written as statements, callable like an update function in Python.

    Args:
        text: the statements.
        constants: values of the hyperparameters.
        initial: initial values of state variables; 0 for all others.
        hyper: the constants that :meth:`Optimizer.but` can change.

    The state is a tuple: an array for each state variable and, if the rule reads ``t``, the number
    of updates so far.

    >>> rule = WrittenRule("v = mu*v + g; p = p - rate*v", {"mu": 0.9})
    >>> rule(np.array([1.0]), np.array([2.0]), (np.array([1.0]),), 0.1)
    (array([0.71]), (array([2.9]),))
    """

    def __init__(
        self,
        text: str,
        constants: Mapping[str, float],
        initial: Mapping[str, float] | None = None,
        *,
        hyper: Mapping[str, float] | None = None,
    ) -> None:
        self.text, self.constants = text, dict(constants)
        self.initial, self.hyper = dict(initial or {}), dict(hyper or {})

    @cached_property
    def state_names(self) -> tuple[str, ...]:
        """The names of the state variables, in the order of the state."""
        return find_state_names(parse_statements(self.text))

    @cached_property
    def counts_updates(self) -> bool:
        """True if the rule reads ``t``, so that its state ends with the number of updates."""
        return any("t" in names_in(expression) for _, expression in parse_statements(self.text))

    @cached_property
    def _evaluator(self) -> StatementEvaluator:
        """The evaluator of the statements of the rule."""
        counter = ["t"] if self.counts_updates else []
        inputs = ("p", "g", "rate", *self.state_names, *counter)
        return StatementEvaluator(parse_statements(self.text), self.constants, inputs)

    @cached_property
    def _array_program(self) -> Any:
        """The instructions for float64 arrays, their constants, and a function that reads results.

        The reader returns the updated parameter twice, because itemgetter returns a tuple for
        several items only, and then the state. The program is None if state can be a scalar.
        """
        if self._has_scalar_state:
            return None
        evaluator = self._evaluator
        counter = [evaluator.inputs.index("t")] if self.counts_updates else []
        outputs = [evaluator.tape.outputs[name] for name in ("p", "p", *self.state_names)]
        read_results: Any = itemgetter(*outputs, *counter)
        return (*evaluator.prepare_for_arrays(("rate", "t")), read_results)

    @cached_property
    def _has_scalar_state(self) -> bool:
        """True if the value of a state variable can be a scalar instead of an array."""
        tape, arrays = self._evaluator.tape, {"p", "g", *self.state_names}
        indices = [k for k, leaf in enumerate(tape.leaves) if leaf.name in arrays]
        needed = [reachable(tape, [tape.outputs[name]]) for name in self.state_names]
        return not all(any(needs[index] for index in indices) for needs in needed)

    def start(self, parameters: Array) -> State:
        """Return the state before the first update: initial values for each parameter."""
        state = tuple(
            np.full_like(parameters, self.initial.get(name, 0.0)) for name in self.state_names
        )
        return (*state, np.array(0.0)) if self.counts_updates else state

    def __call__(
        self, parameters: Array, gradient: Array, state: State, rate: Any
    ) -> tuple[Array, State]:
        """Run one update on arrays or recorded values; return parameters and state."""
        is_float64 = (
            type(rate) is float
            and type(parameters) is np.ndarray
            and parameters.dtype is _FLOAT64
            and gradient.dtype is _FLOAT64
            and parameters.ndim
        )
        if is_float64 and self._array_program is not None:
            rest, small, large, read_results = self._array_program
            if self.counts_updates:
                state = (*state[:-1], float(state[-1]) + 1)
            values = [parameters, gradient, rate, *state, *rest]
            run_instructions(large if parameters.size > _LARGE else small, values)
            results = read_results(values)
            return results[0], results[2:]
        if self.counts_updates:
            state = (*state[:-1], state[-1] + 1)
        values = self._evaluator([parameters, gradient, rate, *state])
        outputs = self._evaluator.tape.outputs
        updated = [values[outputs[name]] for name in self.state_names]
        if self._has_scalar_state and isinstance(parameters, np.ndarray):
            updated = [np.zeros_like(parameters) + part for part in updated]
        if self.counts_updates:
            updated.append(state[-1])
        return values[outputs["p"]], tuple(updated)


@lru_cache(maxsize=64)  # equal rules are one object, which is recorded once
def create_named_rule(text: str, hyper: tuple[tuple[str, float], ...]) -> WrittenRule:
    """Create an update rule of the optimizer table from its statements and hyperparameters."""
    return WrittenRule(text, dict(hyper), hyper=dict(hyper))


def parse_rule(text: str, values: Mapping[str, Any]) -> WrittenRule:
    """Parse and check an update rule that a user has written.

    Args:
        text: the statements.
        values: values of hyperparameters, and initial values of state variables.

    Raises:
        UpdateRuleError: the text does not assign p, assigns a predefined name, reads a name
            without a value, or its first update is not finite.
        ExpressionSyntaxError, UnknownFunctionError: the text is not in the language.
        UsageError: a name of a value does not occur in the text, or a value is not a number.

    >>> rule = parse_rule("v = mu*v + g; p = p - rate*v", {"mu": 0.9, "v": 1})
    >>> rule.constants, rule.initial
    ({'mu': 0.9}, {'v': 1.0})
    """
    checked = check_named_values("the update rule", values, "name", values)
    return _parse_checked_rule(text, tuple(sorted(checked.items())))


@lru_cache(maxsize=64)  # equal rules are one object, which is recorded once
def _parse_checked_rule(text: str, values: tuple[tuple[str, float], ...]) -> WrittenRule:
    """Parse and check an update rule, given validated values in hashable form."""
    program = parse_program(text, FUNCTIONS, "<optimizer>")
    definitions, names = _check_statements(program), dict(values)
    statements = tuple((one.name, one.expression) for one in definitions)
    state = find_state_names(statements)
    _check_rule_names(program, definitions, state, names)
    constants = {name: value for name, value in names.items() if name not in state}
    initial = {name: names.get(name, 0.0) for name in state}
    _check_first_update(program, definitions, constants, initial)
    return WrittenRule(text, constants, initial)


def _check_statements(program: Program) -> list[Definition]:
    """Return the statements of a rule after checking that all expressions are elementwise.

    Raises:
        UpdateRuleError: a statement is a declaration, assigns a read-only name or uses arrays.
    """
    definitions = []
    for statement in program.statements:
        if isinstance(statement, Declaration):
            message = "an update rule cannot contain declarations"
            _raise_error(
                program, statement, "", message, "assign the name instead, as in v = 0.9*v + g"
            )
        if statement.name in READ_ONLY:
            message = f"cannot assign {statement.name}: it is {READ_ONLY[statement.name]}"
            _raise_error(program, statement, "", message, "choose another name")
        for node in postorder(statement.expression):
            if isinstance(node, Apply) and not _is_elementwise(node):
                message = "an update rule must be elementwise; this operation works on arrays"
                hint = "use operators and functions of scalars"
                _raise_error(program, statement, unparse(node), message, hint)
        definitions.append(statement)
    return definitions


def _is_elementwise(node: Apply) -> bool:
    """Return whether a call in an expression applies an elementwise primitive."""
    return type(node.primitive) is str and node.primitive not in ARRAY_FUNCTIONS


def _check_rule_names(
    program: Program,
    definitions: list[Definition],
    state: tuple[str, ...],
    values: Mapping[str, float],
) -> None:
    """Raise an error if a rule does not use `p` or `g`, or if a hyperparameter has no value."""
    assigned, last = {one.name for one in definitions}, program.statements[-1]
    if "p" not in assigned:
        message = "the update rule must assign p, the parameter"
        _raise_error(
            program, last, "", message, "end the rule with a statement such as p = p - rate*g"
        )
    read = {name: one for one in reversed(definitions) for name in names_in(one.expression)}
    for one in definitions:
        for name in names_in(one.expression):
            if name not in assigned | {*PREDEFINED} | values.keys():
                names = [*assigned, *PREDEFINED, *values]
                hint = did_you_mean(name, names) or f"pass a value, such as --hyper {name}=0.9"
                message = f"{name!r} has neither an assignment nor a value"
                _raise_error(program, one, name, message, hint)
    allowed = [*state, *sorted(read.keys() - assigned - {*PREDEFINED})]
    check_named_values("the update rule", dict(values), "hyperparameter or state", allowed)
    if "g" not in read:
        _raise_error(program, last, "", "the update rule must read g, the gradient", "")


def _check_first_update(
    program: Program,
    definitions: list[Definition],
    constants: Mapping[str, float],
    initial: Mapping[str, float],
) -> None:
    """Raise an error if the first update, run on trial values, is not finite."""
    statements = [(one.name, one.expression) for one in definitions]
    tape = build_statement_tape(statements, simplify=False)
    values = values_of(tape, {**constants, **initial, **_TRIAL})
    # The tape has one instruction for each of these nodes.
    nodes = [
        (one, node)
        for one in definitions
        for node in postorder(one.expression)
        if isinstance(node, Apply)
    ]
    computed = zip(nodes, tape.instructions, values[len(tape.leaves) :], strict=True)
    for (definition, node), (_, operands), value in computed:
        if not np.all(np.isfinite(value)):
            last = values[operands[-1]]
            _raise_nonfinite_error(program, definition, node, last, value, initial)


def _raise_nonfinite_error(
    program: Program,
    definition: Definition,
    node: Apply,
    last_operand: Any,
    value: Any,
    initial: Mapping[str, float],
) -> NoReturn:
    """Raise an error at the operation whose result is not finite in the first update."""
    text, hint = unparse(node), ""
    if any(isinstance(part, Name) and part.name in initial for part in postorder(node)):
        hint = "state starts at 0; pass another initial value with --hyper NAME=VALUE"
    if node.primitive == "div" and not np.all(last_operand):
        divisor = unparse(node.arguments[1])
        message = "the update rule divides by zero"
        message += "" if divisor == "0" else f": {divisor} is 0 in the first update"
        hint = hint and f"{hint}, or add a small constant, as in /({divisor} + 1e-8)"
    else:
        wrong = next(scalar for scalar in np.ravel(value) if not np.isfinite(scalar))
        message = f"{text} is {wrong} in the first update"
    _raise_error(program, definition, text, message, hint)


def _raise_error(
    program: Program, statement: Definition | Declaration, text: str, message: str, hint: str
) -> NoReturn:
    """Raise UpdateRuleError at a part of a statement's expression, or at its assigned name."""
    span = program.name_span(statement)
    if text and isinstance(statement, Definition):
        span = program.expression_span(statement, text)
    raise UpdateRuleError(message, span, hint=hint)
