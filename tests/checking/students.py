"""A student's own engine: reverse mode over syntax trees in plain Python, with mistakes to plant.

It shares the parser with the package and nothing else: no tape, no shares, no table of partials.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cgprimer import ExpressionGraph
from cgprimer.core.language.syntax_tree import Apply, Name, Number
from tests.checking.submissions import read_tables

TABLES = read_tables("primitives.txt")
NAMES: dict[str, Any] = {"np": np, **vars(math)}
Formula = Callable[..., Any]


def compile_formula(operands: str, formula: str) -> Formula:
    """Return a formula in Python as a function of operands."""
    return eval(f"lambda {operands}: {formula}", NAMES)  # type: ignore[no-any-return]  # noqa: S307


# Of each function: its value, and its partials from operands.
RULES: dict[str, tuple[Formula, Formula]] = {}
for signature, value, slopes in TABLES["primitives"]:
    name, _, operands = signature.rstrip(")").partition("(")
    RULES[name] = compile_formula(operands, value), compile_formula(operands, f"({slopes},)")
    if not re.search(rf"\b{name}\(", value):
        NAMES[name] = RULES[name][0]
FUNCTIONS = {row[0][:-3] for row in TABLES["primitives"] if row[0].endswith("(a)")} - {"neg"}


def list_uses(graph: ExpressionGraph) -> Iterator[tuple[str, str]]:
    """Yield the function of each operation of a graph, and its line."""

    def walk(tree: Any, line: str) -> Iterator[tuple[str, str]]:
        for argument in getattr(tree, "arguments", ()):
            yield from walk(argument, line)
        if isinstance(tree, Apply):
            yield tree.primitive, line

    for line, tree in graph.definitions.items():
        yield from walk(tree, line)


@dataclass
class Node:
    """A value, what it was computed from, and its partials."""

    value: float
    function: str = ""
    operands: tuple[Node, ...] = ()
    partials: list[float] = field(default_factory=list)
    line: str = ""  # the variable in whose expression it stands
    grad: float = 0.0

    @property
    def numbers(self) -> list[float]:
        return [operand.value for operand in self.operands]


@dataclass(frozen=True)
class Habits:
    """How this student differentiates."""

    elsewhere: Callable[[Node], float | None] = lambda node: None  # where a partial is taken
    overwrites: str = ""  # "all", or "line": contributions of one expression do add up
    rounded: Callable[[float], float] = float  # every number
    # A wrong value, and wrong partials, of a node; None for the right ones.
    value: Callable[[Node], float | None] = lambda node: None
    partials: Callable[[Node], list[float | None] | None] = lambda node: None


class Student:
    """A graph as a student's program."""

    def __init__(self, graph: ExpressionGraph, habits: Habits | None = None) -> None:
        self.graph, self.habits = graph, habits or Habits()

    def nodes(self, point: Mapping[str, float]) -> dict[str, Node]:
        """All variables and parameters at a point, and what they are computed from."""
        known = {name: Node(self.habits.rounded(value), line=name) for name, value in point.items()}

        def build(tree: Any, line: str) -> Node:
            if isinstance(tree, Name):
                return known[tree.name]
            if isinstance(tree, Number):
                return Node(tree.value)
            assert isinstance(tree, Apply)
            return self.applied(tree.primitive, [build(a, line) for a in tree.arguments], line)

        for name, tree in self.graph.definitions.items():
            made = build(tree, name)
            if made.line != name or not made.function:  # a name for another value
                made = Node(made.value, "copy", (made,), [1.0], name)
            known[name] = made
        return known

    def applied(self, function: str, operands: list[Node], line: str) -> Node:
        value, partials = RULES[function]
        rounded = self.habits.rounded
        node = Node(math.nan, function, tuple(operands), line=line)
        wrong = self.habits.value(node)
        node.value = rounded(value(*node.numbers) if wrong is None else wrong)
        place = self.habits.elsewhere(node)
        numbers = node.numbers if place is None else [place, *node.numbers[1:]]
        node.partials = [rounded(partial) for partial in partials(*numbers)]
        for position, partial in enumerate(self.habits.partials(node) or ()):
            if partial is not None:
                node.partials[position] = float(partial)
        return node

    def gradient(self, point: Mapping[str, float], of: str = "") -> dict[str, float]:
        """The derivatives of an output by everything that was given."""
        known = self.nodes(point)
        order: list[Node] = []
        seen: set[int] = set()

        def walk(node: Node) -> None:
            if id(node) not in seen:
                seen.add(id(node))
                for operand in node.operands:
                    walk(operand)
                order.append(node)

        root = known[of or self.graph.only_output()]
        walk(root)
        root.grad = 1.0
        writer: dict[int, str] = {}
        for node in reversed(order):
            for operand, partial in zip(node.operands, node.partials, strict=True):
                share = self.habits.rounded(node.grad * partial)
                before = writer.get(id(operand))
                overwrites = self.habits.overwrites == "all" or (
                    self.habits.overwrites == "line" and before != node.line
                )
                if before is not None and overwrites:
                    operand.grad = share
                else:
                    operand.grad = self.habits.rounded(operand.grad + share)
                writer[id(operand)] = node.line
        return {name: known[name].grad for name in point}

    def paths(self, point: Mapping[str, float], source: str) -> list[float]:
        """The product along each path from a name to the output, between lines."""
        known = self.nodes(point)

        def within(line: str) -> dict[int, float]:
            """The partials of a line by what has a name."""
            found: dict[int, float] = {}
            named = {id(n) for k, n in known.items() if k != line}

            def walk(node: Node, factor: float) -> None:
                for operand, partial in zip(node.operands, node.partials, strict=True):
                    if id(operand) in named:
                        found[id(operand)] = found.get(id(operand), 0.0) + factor * partial
                    else:
                        walk(operand, factor * partial)

            walk(known[line], 1.0)
            return found

        local = {line: within(line) for line in self.graph.definitions}

        def follow(name: str, factor: float) -> Iterator[float]:
            if name == self.graph.only_output():
                yield factor
            for line, partials in local.items():
                if id(known[name]) in partials:
                    yield from follow(line, factor * partials[id(known[name])])

        return list(follow(source, 1.0))
