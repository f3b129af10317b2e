"""The syntax tree of an expression, and walks over it that never recurse.

A tree has three kinds of node. Operators and functions are the same kind: ``xa + xb`` is the
primitive ``add`` applied to two names. Nodes do not change, so that trees may share them; where
they stand in the text is found out when an error has to show it. Trees can be a hundred thousand
levels deep (a long sum leans to the left), so everything here keeps its own stack.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from cgprimer.core.language.tokens import spans, tokenize
from cgprimer.errors import Source, Span

T = TypeVar("T")
Shape: TypeAlias = tuple[int, ...]  # of a value, for one sample


# eq=False and repr=False: the generated ones would recurse into the tree.
@dataclass(slots=True, eq=False, repr=False)
class Number:
    """A literal."""

    value: float


@dataclass(slots=True, eq=False, repr=False)
class Name:
    """A variable or a parameter."""

    name: str


_MOST_KEPT = 10**6  # letters: lists of indices in them are others in every turn of a program
MOST_NUMBERS = 10**8  # that an array may have: 0.8 GB
_STRUCTURAL: dict[tuple[str, tuple[Any, ...]], Structural] = {}


class Structural(str):
    """A primitive with settings: axes, an index, a shape.

    It is a text, so that equal ones are equal and that it stands wherever a primitive's name does.

    >>> Structural("sum", (-1,)), Structural("sum", (-1,)).setting
    ('sum[(-1,)]', ((-1,),))
    """

    __slots__ = ("kind", "setting")
    kind: str
    setting: tuple[Any, ...]

    def __new__(cls, kind: str, *setting: Any) -> Structural:
        """Of a kind, with settings; those that can be hashed are made once."""
        try:
            found = _STRUCTURAL.get((kind, setting))
        except TypeError:  # a slice
            return cls.made(kind, setting)
        if found is None:
            found = cls.made(kind, setting)
            if kind not in ("custom", "backward") and len(_STRUCTURAL) * len(found) < _MOST_KEPT:
                _STRUCTURAL[kind, setting] = found
        return found

    @classmethod
    def made(cls, kind: str, setting: tuple[Any, ...]) -> Structural:
        """A new one."""
        made = super().__new__(cls, f"{kind}{list(setting)}" if setting else kind)
        made.kind, made.setting = kind, setting
        return made


@dataclass(slots=True, eq=False, repr=False)
class Apply:
    """A primitive applied to arguments: an operator, a function call, or an index."""

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
    """One name of an ``input``, ``parameter`` or ``output`` statement; ``at`` is its token.

    A value is a number, nested tuples of numbers in the declared shape, or an
    :class:`~cgprimer.core.language.initializers.Initializer`. The domain of an input
    is the set of its possible values, or ``one-hot``.
    """

    role: str
    name: str
    value: Any
    at: int
    shape: Shape = ()
    domain: tuple[float, ...] | str | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Program:
    """A whole text: its statements in the order of the text."""

    source: Source
    statements: tuple[Definition | Declaration, ...]

    def place(self, statement: Definition | Declaration) -> Span:
        """Where the name of a statement stands."""
        return spans(self.source)[statement.at]

    def span_of(self, statement: Definition, text: str) -> Span:
        """Where an expression stands in a definition; the whole right side if it is not found.

        Parentheses that say nothing, and ways of writing a number or a power, make no difference.
        """
        found = spans(self.source)
        words = [self.source.text[s.start : s.end] for s in found]
        end = next(i for i in range(statement.at, len(words)) if words[i] in ("\n", ";", ""))
        places = [i for i in range(statement.at + 2, end) if words[i] not in "()"]
        here = [_plain(words[i]) for i in places]
        wanted = [_plain(word) for word in tokenize(text)[:-1] if word not in "()"]
        first, last = statement.at + 2, end - 1
        for at in range(len(here) - len(wanted) + 1):
            after = here[at + len(wanted) :][:1]
            if here[at : at + len(wanted)] == wanted and after != ["["]:
                first, last = places[at], places[at + len(wanted) - 1]
                depth = [0]
                for word in words[first : last + 1]:
                    depth.append(depth[-1] + (word[-1:] == "(") - (word == ")"))
                first += min(depth)  # parentheses that were opened before, and are closed after
                last += depth[-1] - min(depth)
                break
        return Span(self.source, found[first].start, found[last].end)


def _plain(word: str) -> str | float:
    """A token as it is compared: numbers by value, ``**`` as ``^``."""
    if word[:1].isdigit() or word[:1] == ".":
        return float(word)
    return "^" if word == "**" else word


# What the parser has to know of functions: for each name the rows of a table that ``name(...)`` may
# mean, with ``name``, ``arity``, ``defaults`` and ``associative``; none where it is no function.
Functions: TypeAlias = Mapping[str, Sequence[Any]]


def element_place(name: str) -> tuple[str, tuple[int, ...]]:
    """The array that an element's name is about, and its place; no place of other names.

    >>> element_place("W[0, 1]"), element_place("k")
    (('W', (0, 1)), ('k', ()))
    """
    base, bracket, place = name.partition("[")
    place = place.rstrip()
    parts = place.removesuffix("]").split(",")
    if not (
        bracket and place[-1:] == "]" and all(re.fullmatch(r"\s*-?\d+\s*", part) for part in parts)
    ):
        return name, ()
    return base.strip(), tuple(map(int, parts))


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
