"""A student's own engine: reverse mode over syntax trees in plain Python, with mistakes to plant.

It shares the parser with the package and nothing else: no tape, no shares, no table of partials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cgprimer import ExpressionGraph
from cgprimer.core.language.syntax_tree import Apply, Name, Number


def _sigmoid(a: float) -> float:
    return 1 / (1 + math.exp(-a))


# Of each function: its value, and its partials from operands.
RULES: dict[str, tuple[Callable[..., float], tuple[Callable[..., float], ...]]] = {
    "add": (lambda a, b: a + b, (lambda a, b: 1.0, lambda a, b: 1.0)),
    "sub": (lambda a, b: a - b, (lambda a, b: 1.0, lambda a, b: -1.0)),
    "mul": (lambda a, b: a * b, (lambda a, b: b, lambda a, b: a)),
    "div": (lambda a, b: a / b, (lambda a, b: 1 / b, lambda a, b: -a / b**2)),
    "neg": (lambda a: -a, (lambda a: -1.0,)),
    "pow": (
        lambda a, b: a**b,
        (
            lambda a, b: b * a ** (b - 1),
            lambda a, b: a**b * math.log(a) if a > 0 else 0.0,
        ),
    ),
    "exp": (math.exp, (math.exp,)),
    "log": (math.log, (lambda a: 1 / a,)),
    "sqrt": (math.sqrt, (lambda a: 0.5 / math.sqrt(a),)),
    "sin": (math.sin, (math.cos,)),
    "cos": (math.cos, (lambda a: -math.sin(a),)),
    "tanh": (math.tanh, (lambda a: 1 / math.cosh(a) ** 2,)),
    "sigmoid": (_sigmoid, (lambda a: math.exp(-a) / (1 + math.exp(-a)) ** 2,)),
    "softplus": (lambda a: math.log1p(math.exp(a)), (_sigmoid,)),
    "relu": (lambda a: max(a, 0.0), (lambda a: float(a > 0),)),
    "leaky_relu": (
        lambda a, b: a if a >= 0 else b * a,
        (lambda a, b: 1.0 if a >= 0 else b, lambda a, b: 0.0 if a >= 0 else a),
    ),
    "sign": (lambda a: math.copysign(1.0, a), (lambda a: 0.0,)),
    "heaviside": (lambda a: float(a > 0), (lambda a: 0.0,)),
    "step": (lambda a: float(a > 0), (lambda a: 0.0,)),
    "clamp": (
        lambda a, b, c: min(max(a, b), c),
        (
            lambda a, b, c: float(b <= a <= c),
            lambda a, b, c: float(a < b),
            lambda a, b, c: float(max(a, b) > c),
        ),
    ),
    "equal": (lambda a, b: float(a == b), (lambda a, b: 0.0, lambda a, b: 0.0)),
    "tan": (math.tan, (lambda a: 1 / math.cos(a) ** 2,)),
    "atan": (math.atan, (lambda a: 1 / (1 + a * a),)),
    "sinh": (math.sinh, (math.cosh,)),
    "log10": (math.log10, (lambda a: 1 / (a * math.log(10)),)),
    "abs": (abs, (lambda a: math.copysign(1.0, a),)),
    "max": (max, (lambda a, b: float(a > b), lambda a, b: float(b > a))),
    "min": (min, (lambda a, b: float(a < b), lambda a, b: float(b < a))),
    "less": (lambda a, b: float(a < b), (lambda a, b: 0.0, lambda a, b: 0.0)),
    "where": (
        lambda a, b, c: b if a else c,
        (lambda a, b, c: 0.0, lambda a, b, c: float(a != 0), lambda a, b, c: float(a == 0)),
    ),
}
FUNCTIONS = {name for name, (_, partials) in RULES.items() if len(partials) == 1} - {"neg"}


@dataclass
class Node:
    """A value, what it was computed from, and its partials."""

    value: float
    function: str = ""
    operands: tuple[Node, ...] = ()
    partials: list[float] = field(default_factory=list)
    line: str = ""  # the variable in whose expression it stands
    grad: float = 0.0


@dataclass(frozen=True)
class Habits:
    """How this student differentiates."""

    forgets: Callable[[Node], bool] = lambda node: False  # the partial of a function
    elsewhere: Callable[[Node], float | None] = lambda node: None  # where a partial is taken
    overwrites: str = ""  # "all", or "line": contributions of one expression do add up
    drops: Callable[[Node, Node], bool] = lambda head, tail: False  # a share
    sign: Callable[[Node], float] = lambda node: 1.0
    rounded: Callable[[float], float] = float  # every number
    # A wrong value, and wrong partials, of a node; None for the right ones.
    value: Callable[[str, list[Node], str], float | None] = lambda function, operands, line: None
    partials: Callable[[Node], list[float] | None] = lambda node: None


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
        wrong = self.habits.value(function, operands, line)
        result = rounded(value(*[o.value for o in operands]) if wrong is None else wrong)
        node = Node(result, function, tuple(operands), line=line)
        place = self.habits.elsewhere(node)
        numbers = [o.value for o in operands]
        if place is not None:
            numbers[0] = place
        node.partials = [rounded(p(*numbers)) for p in partials]
        node.partials = self.habits.partials(node) or node.partials
        if self.habits.forgets(node):
            node.partials[0] = 1.0
        return node

    def gradient(
        self, point: Mapping[str, float], seed: float = 1.0, of: str = ""
    ) -> dict[str, float]:
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
        root.grad = seed
        writer: dict[int, str] = {}
        for node in reversed(order):
            for operand, partial in zip(node.operands, node.partials, strict=True):
                if self.habits.drops(node, operand):
                    continue
                share = self.habits.rounded(node.grad * partial * self.habits.sign(node))
                again = id(operand) in writer
                same = again and writer[id(operand)] == node.line
                if again and (
                    self.habits.overwrites == "all"
                    or (self.habits.overwrites == "line" and not same)
                ):
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
