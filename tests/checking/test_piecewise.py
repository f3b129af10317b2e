"""Gradients of piecewise functions: wrong ones get no full marks, and right ones get them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest

import cgprimer
from cgprimer import ExpressionGraph
from cgprimer.core.operations.primitive_registry import FUNCTIONS, Primitive
from cgprimer.course.checks import gradient_check as gradient_module
from cgprimer.course.checks.gradient_check import GradientCheck, build_gradient_check
from cgprimer.course.checks.question_points import select_arguments
from tests.checking.planted_mistakes import Function, answers, with_habits
from tests.checking.students import Habits, Node
from tests.checking.submissions import sample

Partials = Callable[..., Sequence[float]]
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
ASKED: tuple[dict[str, Any], ...] = (
    {},
    {"loss": "squared-error"},
    {"loss": "hinge"},
    {"loss": "squared-error", "batch": 3},
)
SMOOTH = {"logaddexp", "asec", "acsc", "acsch", "stop_gradient"}  # or no derivative of their own


class Mistake(NamedTuple):
    """Wrong partials of a piecewise function: in one line, or in all of them."""

    function: str
    kind: str
    line: str = ""


def program(check: GradientCheck, mistake: Mistake | None = None) -> Function:
    """Return a student's gradient for a check; of a batch, sample by sample."""

    def partials(node: Node) -> list[float] | None:
        if mistake and node.function == mistake.function and mistake.line in ("", node.line):
            numbers = [operand.value for operand in node.operands]
            return [*map(float, WRONG[mistake.function][mistake.kind](*numbers))]
        return None

    return with_habits(check, Habits(partials=partials))


def list_mistakes(graph: ExpressionGraph) -> Iterator[Mistake]:
    """Yield every mistake of a graph: in one line, and in all lines with a function."""
    used: dict[str, list[str]] = {}

    def walk(tree: Any, line: str) -> None:
        if getattr(tree, "primitive", "") in WRONG:
            used.setdefault(tree.primitive, []).append(line)
        for argument in getattr(tree, "arguments", ()):
            walk(argument, line)

    for line, tree in graph.definitions.items():
        walk(tree, line)
    for function, lines in used.items():
        for kind in WRONG[function]:
            yield from (Mistake(function, kind, line) for line in dict.fromkeys(lines))
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


def verdicts(check: GradientCheck, mistake: Mistake | None = None) -> dict[str, str]:
    result = check.grade(answers(check, program(check, mistake)))
    return {part.name: part.verdict for part in result.parts}


def differs(check: GradientCheck, other: GradientCheck, mistake: Mistake) -> set[str]:
    """Return the names whose derivatives the mistake changes at a point of another check."""
    right, wrong = program(check), program(check, mistake)
    names: set[str] = set()
    for index in np.flatnonzero(other.points.smooth):
        point = select_arguments(other.question, other.points.arguments, int(index))
        ours, theirs = right(point), wrong(point)
        names |= {n for n, v in ours.items() if not math.isclose(v, theirs[n], rel_tol=1e-3)}
    return names


def test_every_piecewise_primitive_is_tried() -> None:
    rows = [row for group in FUNCTIONS.values() for row in group if isinstance(row, Primitive)]
    piecewise = {row.name for row in rows if row.built_in and not row.analytic} - SMOOTH
    assert piecewise == WRONG.keys()
    assert piecewise - {"equal"} == ALONE.keys()


@pytest.mark.parametrize("settings", sample(ASKED, 4), ids=str)
@pytest.mark.parametrize("function", sample([*ALONE], 3))
def test_a_wrong_mask_is_found(function: str, settings: dict[str, Any]) -> None:
    check = build_gradient_check(alone(function), **settings)
    assert {*verdicts(check).values()} == {"right"}
    for mistake in list_mistakes(check.question.graph):
        wrong = differs(check, check, mistake)
        assert wrong or mistake.function != function, mistake
        found = verdicts(check, mistake)
        assert "right" not in {found[name] for name in wrong}, (mistake, found)


@pytest.mark.parametrize("count", [1, pytest.param(30, marks=pytest.mark.slow)])
def test_wrong_programs_of_networks_get_no_full_marks(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gradient_module, "find_mistakes", lambda *_: {})  # which takes most time
    tried = 0
    for seed in range(count):
        settings = ASKED[seed % len(ASKED)]
        check = build_gradient_check(random_piecewise(seed), seed=seed, **settings)
        assert {*verdicts(check).values()} == {"right"}, check.question.graph
        graph, question = check.question.graph, check.question
        other = build_gradient_check(
            graph, of=question.of, batch=question.batch, count=60, seed=1000
        )
        for mistake in list_mistakes(graph):
            if wrong := differs(check, other, mistake):
                tried += 1
                found = verdicts(check, mistake)
                assert not all(found[n] == "right" for n in wrong), (graph.source.text, mistake)
    assert tried > 8 * count
