"""Statements of the language as one tape: update rules, schedules and rules of exercise sheets.

A statement assigns an expression to a name, as in ``v = 0.9*v + g``. Statements are elementwise:
values are floats, arrays of one shape, or recorded values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TypeAlias

from cgprimer.core.language.parser import parse_program
from cgprimer.core.operations.primitive_registry import FUNCTIONS
from cgprimer.expressions import Definition, Expression, Name, Number, fold, names_in
from cgprimer.tapes import Builder, Tape

Statement: TypeAlias = tuple[str, Expression]
#: Names that a rule may read but not assign, with their meanings.
READ_ONLY = {"g": "the gradient", "rate": "the learning rate", "t": "the number of the update"}
PREDEFINED = ("p", *READ_ONLY)


@lru_cache(maxsize=2048)
def parse_statements(text: str) -> tuple[Statement, ...]:
    """Parse statements into pairs of an assigned name and its expression, in execution order.

    >>> [name for name, _ in parse_statements("v = 0.9*v + g; p = p - rate*v")]
    ['v', 'p']
    """
    statements = parse_program(text, FUNCTIONS, "<rule>").statements
    return tuple((one.name, one.expression) for one in statements if isinstance(one, Definition))


def build_statement_tape(
    statements: Iterable[Statement],
    constants: Mapping[str, float] | None = None,
    *,
    inputs: Iterable[str] = (),
    simplify: bool = True,
) -> Tape:
    """Build a tape that evaluates a sequence of assignment statements.

    Args:
        statements: assigned names and expressions in execution order. An expression reads the
            latest value of a name; a name that is not assigned before is a leaf of the tape.
        constants: values of names that are compiled into the tape.
        inputs: names of the first leaves, in this order.
        simplify: whether to simplify and share instructions. Otherwise the tape has one
            instruction for each operator and function of the expressions, in postorder.

    Returns:
        A tape whose outputs are the assigned names, with their last values.

    >>> print(build_statement_tape(parse_statements("v = b*v + g; p = p - rate*v"), {"b": 0.5}))
    parameter v
    parameter g
    parameter p
    parameter rate
    v1 = 0.5*v
    v2 = v1 + g
    v3 = rate*v2
    v4 = p - v3
    output    v = v2
    output    p = v4
    """
    builder = Builder(share=simplify, simplify=simplify, fold_constants=simplify)
    latest = {name: builder.scalar(name) for name in inputs}
    latest |= {name: builder.constant(value) for name, value in (constants or {}).items()}
    assigned: dict[str, int] = {}

    def emit_leaf(node: Name | Number) -> int:
        """Return the index of a name or number on the tape, after adding a leaf if it is new."""
        if isinstance(node, Number):
            return builder.constant(node.value)
        if node.name not in latest:
            latest[node.name] = builder.scalar(node.name)
        return latest[node.name]

    for name, expression in statements:
        value = fold(expression, emit_leaf, lambda function, o: builder.emit(function, *o))
        latest[name] = assigned[name] = value
    return builder.finish(assigned)


def find_state_names(statements: tuple[Statement, ...]) -> tuple[str, ...]:
    """Return the assigned names that statements read before their assignment, except ``p``.

    >>> find_state_names(parse_statements("v = 0.9*v + g; d = rate*v; p = p - d"))
    ('v',)
    """
    assigned = {name for name, _ in statements}
    names, state = {*PREDEFINED}, dict[str, None]()
    for name, expression in statements:
        state |= {read: None for read in names_in(expression) if read in assigned - names}
        names.add(name)
    return tuple(state)
