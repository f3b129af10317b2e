"""The syntax tree of an expression, and walks over it that never recurse.

A tree has three kinds of node. Operators and functions are the same kind: ``xa + xb`` is the
primitive ``add`` applied to two names. Nodes do not change, so that trees may share them; where
they stand in the text is found out when an error has to show it. Trees can be a hundred thousand
levels deep (a long sum leans to the left), so everything here keeps its own stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from cgprimer.core.language.tokens import spans
from cgprimer.errors import Source, Span

T = TypeVar("T")


# eq=False and repr=False: the generated ones would recurse into the tree.
@dataclass(slots=True, eq=False, repr=False)
class Number:
    """A literal."""

    value: float


@dataclass(slots=True, eq=False, repr=False)
class Name:
    """A variable or a parameter."""

    name: str


@dataclass(slots=True, eq=False, repr=False)
class Apply:
    """A primitive applied to arguments: an operator or a function call."""

    primitive: str
    arguments: tuple[Expression, ...]


Expression: TypeAlias = Number | Name | Apply


@dataclass(slots=True, eq=False, repr=False)
class Definition:
    """``name = expression``; ``names`` in it, in the order of the text; ``at``: its token."""

    name: str
    expression: Expression
    names: tuple[str, ...]
    at: int


@dataclass(slots=True, eq=False, repr=False)
class Declaration:
    """One name of an ``input``, ``parameter`` or ``output`` statement; ``at`` is its token."""

    role: str
    name: str
    value: float | None
    at: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Program:
    """A whole text: its statements in the order of the text."""

    source: Source
    statements: tuple[Definition | Declaration, ...]

    def place(self, statement: Definition | Declaration) -> Span:
        """Where the name of a statement stands."""
        return spans(self.source)[statement.at]


# What the parser has to know of functions: for each name the rows of a table that ``name(...)`` may
# mean, with ``name``, ``arity``, ``defaults`` and ``associative``; none where it is no function.
Functions: TypeAlias = Mapping[str, Sequence[Any]]


def postorder(expression: Expression) -> Iterator[Expression]:
    """Every node, arguments before what they are arguments of, left to right."""
    nodes, stack = [], [expression]
    while stack:  # from right to left, what has arguments before them: the same backwards
        node = stack.pop()
        nodes.append(node)
        if isinstance(node, Apply):
            stack.extend(node.arguments)
    return reversed(nodes)


def fold(
    expression: Expression, leaf: Callable[[Number | Name], T], apply: Callable[[str, list[T]], T]
) -> T:
    """Evaluate a tree from its leaves up: what ``leaf`` and ``apply`` return is put together.

    >>> from cgprimer.core.primitives.notation import parse_expression
    >>> fold(parse_expression("1 + 2*xa"), lambda leaf: 1, lambda name, counts: sum(counts))
    3
    """
    stack: list[T] = []
    for node in postorder(expression):
        if isinstance(node, Apply):
            count = len(node.arguments)
            arguments = stack[-count:]
            del stack[-count:]
            stack.append(apply(node.primitive, arguments))
        else:
            stack.append(leaf(node))
    return stack[0]
