"""Mistakes that are planted in the programs of students for random graphs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from random import Random
from typing import Any

import cgprimer
from cgprimer import ExpressionGraph, networks
from cgprimer.course.checks.check_results import Part
from cgprimer.course.checks.gradient_check import GradientCheck, build_gradient_check
from cgprimer.course.checks.question_points import select_arguments
from tests.checking.students import FUNCTIONS, TABLES, Habits, Node, Student, list_uses

Point = Mapping[str, Any]
Function = Callable[[Point], dict[str, float]]
Planter = Callable[[ExpressionGraph, int], tuple[GradientCheck, Function] | None]
EXAMPLES = ("lecture", "logistic_loss", "log_sine", "two_paths", "mazur", "olah", "baydin",
            "one_neuron", "two_layers", "network", "cs231n_neuron", "shared_sum")  # fmt: skip


def graphs() -> Iterator[ExpressionGraph]:
    """The lecture's graphs, then networks and random ones without end."""
    for name in EXAMPLES:
        yield cgprimer.load(name)
    for seed in count():
        yield networks.random(4 + seed % 7, inputs=1 + seed % 3, seed=seed)
        activation = ("tanh", "sigmoid", "sin", "softplus")[seed % 4]
        yield networks.mlp([2, 2 + seed % 2, 1], activation=activation, scalars=True, seed=seed)
        yield networks.recurrent(2 + seed % 3, activation=activation, seed=seed)
        yield networks.chain(2 + seed % 3, activation=activation, seed=seed)


STEEP, UNITS = ([row[0] for row in TABLES[name]] for name in ("steep lines", "units"))


def random_graph(seed: int, lines: Sequence[str], most: int) -> ExpressionGraph:
    """A graph of 2 to ``most`` lines with operands {o}, parameters {p}, affine functions {z}."""
    draw = Random(seed)
    names, parameters, written = ["x1", "x2"], list[str](), list[str]()
    waiting = names[:]

    def operand(_: object) -> str:
        if waiting and draw.random() < 0.8:
            return waiting.pop(draw.randrange(len(waiting)))
        return draw.choice(names)

    def parameter(_: object) -> str:
        if not parameters or draw.random() > 0.4:
            parameters.append(f"p{len(parameters) + 1}")
            return parameters[-1]
        return draw.choice(parameters)

    last = 1 + seed % (most - 1)
    for k in range(last + 1):
        line = draw.choice(lines).replace("{z}", "{p}*{o} + {p}")
        text = re.sub("{p}", parameter, re.sub("{o}", operand, line))
        name = "y" if k == last else f"v{k}"
        written.append(f"{name} = " + (" + ".join([text, *waiting]) if k == last else text))
        names.append(name)
        waiting.append(name)
    values = ", ".join(f"{p} = {round(draw.uniform(-2, 2), 2) or 1}" for p in parameters)
    declared = ["input x1 = 0.7, x2 = -0.4", *([f"parameter {values}"] if parameters else [])]
    return cgprimer.parse("\n".join([*declared, *written, "output y"]))


def right(check: GradientCheck) -> Function:
    """The program of a student who makes no mistake."""
    return with_habits(check, Habits())


def with_habits(check: GradientCheck, habits: Habits) -> Function:
    """The same with habits; of a batch, sample by sample."""
    student, question = Student(check.question.graph, habits), check.question

    def gradient(point: Point) -> dict[str, float]:
        each = samples(check, point) if question.batch else [point]
        found = [student.gradient(one, of=question.of) for one in each]
        scale = len(each) if question.reduction == "mean" else 1
        return {n: habits.rounded(math.fsum(one[n] for one in found) / scale) for n in question.wrt}

    return gradient


def asked(graph: ExpressionGraph, number: int) -> GradientCheck:
    """A check: of the graph itself, of a loss behind it, of a batch."""
    if number % 3 == 0 or len(graph.outputs) > 1 or not (graph.inputs and graph.parameters):
        return build_gradient_check(graph, seed=number)
    batch = 3 if number % 3 == 2 else 0
    return build_gradient_check(graph, loss="squared-error", batch=batch, seed=number)


def answers(check: GradientCheck, function: Callable[[Point], Any]) -> list[Any]:
    """What a function returns at the points of a check."""
    given = check.points.arguments
    return [function(select_arguments(check.question, given, k)) for k in range(len(check.points))]


def samples(check: GradientCheck, point: Point) -> list[dict[str, float]]:
    """The points of a batch, one after the other."""
    inputs = check.question.graph.inputs
    return [{n: v[k] if n in inputs else v for n, v in point.items()}
            for k in range(check.question.batch)]  # fmt: skip


# --- mistakes: a check of a graph and a wrong program, or None if the mistake is impossible ------


def one_path(graph: ExpressionGraph, number: int) -> Any:
    check = asked(graph, number)
    if check.question.batch:
        return None
    good, student = right(check), Student(check.question.graph)
    place = select_arguments(check.question, check.points.arguments, 0)
    many = {n: student.paths(place, n) for n in check.question.wrt}
    chosen = [n for n, paths in many.items() if len(paths) > 1]
    if not chosen:
        return None
    chosen = chosen if number % 2 else chosen[:1]

    def gradient(point: Point) -> dict[str, float]:
        found = good(point)
        for name in chosen:
            paths = student.paths(point, name)
            left = number % len(paths)
            found[name] = paths[left] if number % 3 else math.fsum(paths) - paths[left]
        return found

    return check, gradient


def overwriting(graph: ExpressionGraph, number: int) -> Any:
    check = asked(graph, number)
    return check, with_habits(check, Habits(overwrites=("all", "line")[number % 2]))


def differences(steps: tuple[float, ...]) -> Any:
    def plant(graph: ExpressionGraph, number: int) -> Any:
        check = asked(graph, number)
        student, of = Student(check.question.graph), check.question.of
        step, central = steps[number % len(steps)], number % 2

        def gradient(point: Point) -> dict[str, float]:
            found = {}
            for name in check.question.wrt:

                def at(by: float, name: str = name) -> float:
                    moved = {**point, name: point[name] + by}
                    each = samples(check, moved) if check.question.batch else [moved]
                    return math.fsum(student.nodes(p)[of].value for p in each) / len(each)

                found[name] = (
                    (at(step) - at(-step)) / (2 * step) if central else (at(step) - at(0)) / step
                )
            return found

        return check, gradient

    return plant


def inner(graph: ExpressionGraph, number: int) -> Any:
    lines = [line for function, line in list_uses(graph) if function in FUNCTIONS]
    if not lines:
        return None

    def elsewhere(node: Node) -> float | None:
        inner = node.operands[0].operands if node.function in FUNCTIONS else ()
        is_here = inner and node.line == lines[number % len(lines)]
        return inner[number % len(inner)].value if is_here else None

    check = asked(graph, number)
    return check, with_habits(check, Habits(elsewhere=elsewhere))


PLANTED: dict[str, Planter] = {
    "one path of several": one_path,
    "= instead of +=": overwriting,
    "difference step too large": differences((1e-1, 1e-2, 3e-3, 1e-3)),
    "difference step too small": differences((1e-10, 1e-11, 1e-12, 1e-13)),
    "inner function not evaluated": inner,
}


def plant(mistake: str, many: int) -> Iterator[list[Part]]:
    """Yield, for programs in which a mistake changes numbers, the parts that are not right."""
    planted = 0
    for number, graph in enumerate(graphs()):
        program = PLANTED[mistake](graph, number)
        if planted == many:
            return
        if program is None:
            continue
        check, function = program
        with suppress(ArithmeticError):  # Python raises an error where IEEE has an infinity
            parts = check.grade(answers(check, function)).parts
            if wrong := [part for part in parts if part.verdict != "right"]:
                planted += 1
                yield wrong
