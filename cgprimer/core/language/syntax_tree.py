"""The syntax tree of an expression, with traversals that do not recurse.

A tree has three kinds of node. Operators and functions are the same kind: ``xa + xb`` is the
primitive ``add`` applied to two names. Nodes are immutable, so that trees can share them; their
positions in the text are computed when an error message shows them. A tree can be 100,000 levels
deep (a long sum is nested to the left), so the traversals keep their own stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from cgprimer.core.language.tokens import locate_tokens
from cgprimer.errors import Source, Span

T = TypeVar("T")
Shape: TypeAlias = tuple[int, ...]
"""The lengths of the axes of a value for one sample; ``()`` for a scalar."""


# eq=False and repr=False: the generated methods would recurse into the tree.
@dataclass(slots=True, eq=False, repr=False)
class Number:
    """A numeric literal: a leaf of a syntax tree."""

    value: float


@dataclass(slots=True, eq=False, repr=False)
class Name:
    """The name of a variable or parameter: a leaf of a syntax tree."""

    name: str


MAX_ELEMENTS = 10**8  #: of an array: 0.8 GB


class Operator:
    """An operator with static attributes, such as an index expression or the axes of a sum.

    A function without settings is represented by its name only.

    Attributes:
        name: identifies the kind of operator.
        is_index: whether the operator is written in brackets after its operand.
    """

    name: str
    is_index = False

    @property
    def settings(self) -> tuple[Any, ...]:
        """The settings of the operator."""
        return ()

    @property
    def spelling(self) -> str:
        """The name of the function in expressions."""
        return self.name

    def format_settings(self) -> list[str]:
        """Return the settings as strings, in the syntax of the language."""
        return []

    def __str__(self) -> str:
        return f"{self.name}{list(self.settings)}" if self.settings else self.name


@dataclass(frozen=True)
class Index(Operator):
    """An index such as ``[0, 1:3]``: an integer, a slice or a tuple of integers for each axis.

    >>> Index((0, slice(1, 3))).format_settings()
    ['0', '1:3']
    """

    entries: tuple[Any, ...]
    name = "index"
    is_index = True

    @property
    def settings(self) -> tuple[Any, ...]:
        """The entries of the index."""
        return self.entries

    def __hash__(self) -> int:  # slices have no hash before Python 3.12
        return hash(str(self.entries))

    def format_settings(self) -> list[str]:
        """Return the settings of the operator as strings: the entries of the index."""
        return list(map(format_index_entry, self.entries))


@dataclass(frozen=True)
class Symbol(Operator):
    """A symbolic function such as ``f'``, which formulas show but the language does not define."""

    name: str


def operator_name(applied: str | Operator) -> str:
    """Return the name of an applied primitive or operator, without settings."""
    return applied if isinstance(applied, str) else applied.name


def format_index_entry(entry: Any) -> str:
    """Format one entry of an index, in the syntax of the language.

    >>> format_index_entry(2), format_index_entry(range(0, 6, 2)), format_index_entry((0, 3))
    ('2', '0:6:2', '[0,3]')
    """
    if isinstance(entry, range | slice):
        parts = [entry.start, entry.stop, None if entry.step == 1 else entry.step]
        if isinstance(entry, range) and entry.stop < 0:
            parts[1] = None  # down to the first
        start, stop, step = ("" if n is None else str(n) for n in parts)
        return f"{start}:{stop}" + (f":{step}" if step else "")
    return (
        f"[{','.join(map(format_index_entry, entry))}]" if isinstance(entry, tuple) else str(entry)
    )


@dataclass(slots=True, eq=False, repr=False)
class Apply:
    """The application of a primitive to arguments: an operation, a function call or an index."""

    primitive: str | Operator
    arguments: tuple[Expression, ...]


Expression: TypeAlias = Number | Name | Apply
"""A syntax tree: a number, a name, or the application of a primitive to arguments."""


@dataclass(slots=True, eq=False, repr=False)
class Definition:
    """A statement ``name = expression``.

    Attributes:
        name: the defined variable.
        expression: the right-hand side.
        names: names in the expression, in order of appearance.
        at: index of the token of the name.
    """

    name: str
    expression: Expression
    names: tuple[str, ...]
    at: int


@dataclass(slots=True, eq=False, repr=False)
class Declaration:
    """One name of an ``input``, ``parameter`` or ``output`` statement.

    Attributes:
        role: ``input``, ``parameter`` or ``output``.
        name: the declared name.
        value: a number, nested tuples of numbers in the declared shape, an
            :class:`~cgprimer.core.language.initializers.Initializer`, or None.
        at: index of the token of the name.
        shape: the declared shape.
        domain: the possible values of an input, ``one-hot``, or None.
    """

    role: str
    name: str
    value: Any
    at: int
    shape: Shape = ()
    domain: tuple[float, ...] | str | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Program:
    """A parsed source text: its statements in the original order."""

    source: Source
    statements: tuple[Definition | Declaration, ...]

    def name_span(self, statement: Definition | Declaration) -> Span:
        """Return the span of the name that a statement defines or declares."""
        return locate_tokens(self.source)[statement.at]

    def expression_span(self, statement: Definition, text: str) -> Span:
        """Return the span of a subexpression in a definition.

        Redundant parentheses and the spelling of numbers and powers are ignored. If the definition
        does not contain the subexpression, return the span of the right-hand side.
        """
        from cgprimer.core.language.expression_location import locate_expression

        return locate_expression(self.source, statement.at, text)


# The functions that the parser accepts: for each name the table rows that ``name(...)`` may mean,
# with ``name``, ``arity``, ``defaults`` and ``associative``; no rows for an unknown name.
Functions: TypeAlias = Mapping[str, Sequence[Any]]


def postorder(expression: Expression) -> Iterator[Expression]:
    """Yield the nodes of a syntax tree in postorder: each call after its arguments."""
    nodes, stack = [], [expression]
    while stack:  # right to left, functions before their arguments, and reversed at the end
        node = stack.pop()
        nodes.append(node)
        if isinstance(node, Apply):
            stack.extend(node.arguments)
    return reversed(nodes)


def fold(
    expression: Expression, leaf: Callable[[Number | Name], T], apply: Callable[[Any, list[T]], T]
) -> T:
    """Reduce a syntax tree to a single value, from the leaves to the root.

    Args:
        expression: the syntax tree.
        leaf: returns the value of a leaf.
        apply: returns the value of a call, given the primitive and the values of its arguments.

    >>> from cgprimer.core.operations.notation import parse_expression
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


def names_in(tree: Expression) -> dict[str, None]:
    """Return the names in a syntax tree as the keys of a dict, in order of first appearance."""
    return {node.name: None for node in postorder(tree) if isinstance(node, Name)}


def substitute(tree: Expression, trees: Mapping[str, Expression]) -> Expression:
    """Return a syntax tree in which the given names are replaced by other trees."""
    return fold(
        tree,
        lambda leaf: trees.get(leaf.name, leaf) if isinstance(leaf, Name) else leaf,
        lambda name, arguments: Apply(name, tuple(arguments)),
    )
