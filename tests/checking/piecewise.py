"""Random graphs of piecewise functions, and students who differentiate them in a wrong way.

The students share the parser with the package and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import cgprimer
from cgprimer import ExpressionGraph
from cgprimer.course.checks.gradient_check import GradientCheck
from tests.checking.planted_mistakes import samples
from tests.checking.students import RULES, Node, Student

Partials = Callable[..., Sequence[float]]

# Of each piecewise function: its value, and its partials from operands.
PIECEWISE: dict[str, tuple[Callable[..., float], Partials]] = {
    "relu": (lambda a: max(a, 0.0), lambda a: [float(a > 0)]),
    "leaky_relu": (
        lambda a, b: a if a >= 0 else b * a,
        lambda a, b: [1.0, 0.0] if a >= 0 else [b, a],
    ),
    "abs": (abs, lambda a: [math.copysign(1.0, a)]),
    "sign": (lambda a: math.copysign(1.0, a), lambda a: [0.0]),
    "heaviside": (lambda a: float(a > 0), lambda a: [0.0]),
    "step": (lambda a: float(a > 0), lambda a: [0.0]),
    "max": (max, lambda a, b: [1.0, 0.0] if a > b else [0.0, 1.0]),
    "min": (min, lambda a, b: [1.0, 0.0] if a < b else [0.0, 1.0]),
    "clamp": (
        lambda a, b, c: min(max(a, b), c),
        lambda a, b, c: (
            [0.0, 0.0, 1.0] if max(a, b) > c else [0.0, 1.0, 0.0] if a < b else [1.0, 0.0, 0.0]
        ),
    ),
    "where": (
        lambda a, b, c: b if a else c,
        lambda a, b, c: [0.0, 1.0, 0.0] if a else [0.0, 0.0, 1.0],
    ),
    "less": (lambda a, b: float(a < b), lambda a, b: [0.0, 0.0]),
    "equal": (lambda a, b: float(a == b), lambda a, b: [0.0, 0.0]),
}

# Of each piecewise function the partials that a wrong program uses, by what is wrong.
WRONG: dict[str, dict[str, Partials]] = {
    "relu": {
        "no mask": lambda a: [1.0],
        "the other side": lambda a: [float(a < 0)],
        "always inactive": lambda a: [0.0],
        "kink at 1": lambda a: [float(a > 1)],
        "99 where inactive": lambda a: [1.0 if a > 0 else 99.0],
        "small where inactive": lambda a: [1.0 if a > 0 else 0.001],
    },
    "leaky_relu": {
        "no mask": lambda a, b: [1.0, 0.0],
        "slope everywhere": lambda a, b: [b, a],
        "relu": lambda a, b: [float(a > 0), 0.0],
        "slope on the other side": lambda a, b: [b, a] if a >= 0 else [1.0, 0.0],
    },
    "abs": {
        "no sign": lambda a: [1.0],
        "negative": lambda a: [-1.0],
        "relu": lambda a: [float(a > 0)],
    },
    "sign": {"identity": lambda a: [1.0]},
    "heaviside": {"identity": lambda a: [1.0]},
    "step": {"identity": lambda a: [1.0]},
    "max": {
        "both": lambda a, b: [1.0, 1.0],
        "first": lambda a, b: [1.0, 0.0],
        "second": lambda a, b: [0.0, 1.0],
        "min": lambda a, b: [0.0, 1.0] if a > b else [1.0, 0.0],
    },
    "min": {
        "both": lambda a, b: [1.0, 1.0],
        "first": lambda a, b: [1.0, 0.0],
        "second": lambda a, b: [0.0, 1.0],
        "max": lambda a, b: [0.0, 1.0] if a < b else [1.0, 0.0],
    },
    "clamp": {
        "no mask": lambda a, b, c: [1.0, 0.0, 0.0],
        "no upper bound": lambda a, b, c: [0.0, 1.0, 0.0] if a < b else [1.0, 0.0, 0.0],
        "no lower bound": lambda a, b, c: [0.0, 0.0, 1.0] if a > c else [1.0, 0.0, 0.0],
        "outside": lambda a, b, c: [float(a < b or a > c), 0.0, 0.0],
    },
    "where": {
        "both": lambda a, b, c: [0.0, 1.0, 1.0],
        "first": lambda a, b, c: [0.0, 1.0, 0.0],
        "second": lambda a, b, c: [0.0, 0.0, 1.0],
        "the other": lambda a, b, c: [0.0, 0.0, 1.0] if a else [0.0, 1.0, 0.0],
    },
    "less": {"difference": lambda a, b: [-1.0, 1.0]},
    "equal": {"difference": lambda a, b: [-1.0, 1.0]},
}  # fmt: skip
IGNORED = {  # the value of a function that a program leaves out altogether
    "relu": lambda a: a, "leaky_relu": lambda a, b: a, "abs": lambda a: a, "sign": lambda a: 1.0,
    "heaviside": lambda a: 1.0, "step": lambda a: 1.0, "max": lambda a, b: a,
    "min": lambda a, b: a, "clamp": lambda a, b, c: a, "where": lambda a, b, c: b,
    "less": lambda a, b: 1.0, "equal": lambda a, b: 0.0,
}  # fmt: skip


@dataclass(frozen=True)
class Mistake:
    """What a student does with a piecewise function."""

    function: str
    kind: str
    line: str = ""  # in this line alone

    def concerns(self, function: str, line: str) -> bool:
        return function == self.function and self.line in ("", line)


class PiecewiseStudent(Student):
    """A student who knows piecewise functions, and may get one of them wrong."""

    def __init__(self, graph: ExpressionGraph, mistake: Mistake | None = None) -> None:
        super().__init__(graph)
        self.mistake = mistake

    def applied(self, function: str, operands: list[Node], line: str) -> Node:
        if function in RULES and function not in PIECEWISE:
            return super().applied(function, operands, line)
        value, partials = PIECEWISE[function]
        numbers = [o.value for o in operands]
        wrong = self.mistake is not None and self.mistake.concerns(function, line)
        if wrong and self.mistake is not None:
            if self.mistake.kind == "ignored":
                value = IGNORED[function]
            partials = WRONG[function].get(self.mistake.kind, partials)
        return Node(value(*numbers), function, tuple(operands), list(partials(*numbers)), line)


def program(
    check: GradientCheck, mistake: Mistake | None = None
) -> Callable[[Mapping[str, Any]], dict[str, float]]:
    """A student's gradient for a check; of a batch, sample by sample."""
    question = check.question
    student = PiecewiseStudent(question.graph, mistake)

    def gradient(point: Mapping[str, Any]) -> dict[str, float]:
        each = samples(check, point) if question.batch else [point]
        rows = [student.gradient(one, of=question.of) for one in each]
        scale = len(rows) if question.reduction == "mean" else 1
        return {n: math.fsum(row[n] for row in rows) / scale for n in question.wrt}

    return gradient


def mistakes(graph: ExpressionGraph) -> Iterator[Mistake]:
    """Every mistake that is possible in a graph: in one line, and in all lines with a function."""
    used: dict[str, list[str]] = {}

    def walk(tree: Any, line: str) -> None:
        if getattr(tree, "primitive", "") in PIECEWISE:
            used.setdefault(tree.primitive, []).append(line)
        for argument in getattr(tree, "arguments", ()):
            walk(argument, line)

    for line, tree in graph.definitions.items():
        walk(tree, line)
    for function, lines in used.items():
        kinds = [*WRONG[function], "ignored"]
        for kind in kinds:
            for line in dict.fromkeys(lines):
                yield Mistake(function, kind, line)
            if len({*lines}) > 1:
                yield Mistake(function, kind)


ALONE = {
    "relu": "relu(w*x + b)", "leaky_relu": "leaky_relu(w*x + b, v)", "abs": "abs(w*x + b)",
    "sign": "v*sign(w*x + b)", "heaviside": "v*heaviside(w*x + b)", "step": "v*step(w*x + b)",
    "max": "max(w*x, b)", "min": "min(w*x, b)", "clamp": "clamp(w*x + b, -1, v)",
    "where": "where(less(x, 0), w*x, b*x)", "less": "v*less(w*x, b)",
}  # fmt: skip
_UNITS = (
    "relu({z})", "relu({z})", "leaky_relu({z}, 0.1)", "abs({z})", "max({z}, {o})", "min({z}, {o})",
    "clamp({z}, -1, 1)", "where(less({o}, {p}), {z}, {p}*{o})", "{o}*step({z})", "{p}*sign({z})",
    "{o}*less({z}, {p})", "max({z}, 0)", "tanh({z})", "relu(1 - {z})",
    "where(less(0, {z}), {o}, {p})",
)  # fmt: skip


def alone(function: str) -> ExpressionGraph:
    """A graph with one piecewise function."""
    text = ALONE[function]
    values = [
        n for n in ("w", "b", "v") if f"{n}" in text.replace("where", "").replace("leaky", "")
    ]
    return cgprimer.parse(f"input x = 1.2; parameter {', '.join(values)}; y = {text}; output y")


def random_piecewise(seed: int) -> ExpressionGraph:
    """A network of one to three layers of piecewise units, with values on a random side."""
    draw = Random(seed)
    inputs = [f"x{k + 1}" for k in range(draw.choice((1, 1, 2)))]
    parameters: list[str] = []

    def parameter() -> str:
        parameters.append(f"p{len(parameters) + 1}")
        return parameters[-1]

    below, lines = inputs, list[str]()
    for layer in range(draw.choice((1, 2, 2, 3))):
        units = []
        for k in range(draw.choice((1, 2, 2, 3))):
            text = draw.choice(_UNITS)
            affine = " + ".join(f"{parameter()}*{o}" for o in below) + f" + {parameter()}"
            text = text.replace("{z}", affine).replace("{o}", draw.choice(below))
            while "{p}" in text:
                text = text.replace("{p}", parameter(), 1)
            units.append(f"h{layer + 1}{k + 1}")
            lines.append(f"{units[-1]} = {text}")
        below = units
    ends = " + ".join(f"{parameter()}*{o}" for o in below)
    declared = ", ".join(f"{p} = {round(draw.uniform(-2, 2), 1) or 1}" for p in parameters)
    given = ", ".join(f"{x} = {round(draw.uniform(-2, 2), 1)}" for x in inputs)
    head = [f"input {given}", f"parameter {declared}"]
    return cgprimer.parse("\n".join([*head, *lines, f"y = {ends}", "output y"]))
