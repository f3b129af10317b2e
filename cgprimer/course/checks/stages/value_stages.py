"""Stages 2 and 3: values that record how they were computed, and their topological order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from cgprimer.course.checks.check_results import Part
from cgprimer.course.checks.stages.stage import (
    Case,
    DriverCall,
    Stage,
    Task,
    build_task,
    is_close,
)
from cgprimer.course.checks.stages.student_graphs import parse_operation
from cgprimer.course.checks.stages.visiting_orders import find_order_mistake
from cgprimer.course.checks.verdicts import accept, reject, suspect

COMPOUND = Case(
    "c = (a + b)*(b + 1)", {"a": 2.0, "b": 1.0}
)  # Olah, "Calculus on Computational Graphs"
SQUARE = Case("c = a*a", {"a": 3.0})
SINGLE_OPERATIONS = (
    *(Case(f"c = {text}", {"a": 1.25, "b": -0.5}) for text in ("a + b", "a - b", "a*b", "a/b")),
    *(
        Case(f"c = {text}", {"a": 1.25})
        for text in ("a^3", "-a", "a^-1", "exp(a)", "log(a)", "sin(a)", "tanh(a)", "relu(a)")
    ),
    Case("c = relu(a)", {"a": -0.5}),
)
_MIXED_OPERATIONS = tuple(
    Case(f"c = {text}", {"a": 1.25})
    for text in ("a + 2", "2 + a", "a - 2", "2 - a", "a*2", "2*a", "a/2", "2/a")
)

# --- 2: values ------------------------------------------------------------------------------------


def _judge_data(cases: Sequence[Case], answers: Sequence[Any]) -> Part:
    """Judge whether the results of operations have the correct data."""
    incorrect = []
    for case, answer in zip(cases, answers, strict=True):
        text = case.text.removeprefix("c = ")
        data = answer["nodes"][answer["at"][-1]]["data"]
        if not is_close(answer["inputs"], [float(case.at[n]) for n in case.names]):
            return reject("operand changed", f"{text} changes the data of its operand")
        if isinstance(data, str):
            return reject(
                "data is not a number", f"the data of {text} must be a number, got {data}"
            )
        if is_close(data, case.values[-1]):
            continue
        if text in ("2 - a", "2/a") and any(is_close(data, v) for v in (1.25 - 2.0, 1.25 / 2.0)):
            message = f"the operands of {text} are swapped"
            return reject("reflected operands swapped", message)
        incorrect.append(text)
    if incorrect:
        return reject("wrong value", f"wrong result: {', '.join(incorrect)}")
    return accept()


def _judge_links(_: Case, answer: Any) -> Part:
    """Judge whether the result of a product records its operands and its operation."""
    root = answer["nodes"][answer["at"][-1]]
    if not root["parents"]:
        message = "a result must record its operands: parents is missing or empty"
        return reject("no parents", message)
    if -1 in answer["at"][:2]:
        return reject("parents missing", "some inputs cannot be reached from the result")
    if not root["op"]:
        return reject("no operation", "a result must record its operation: op is missing or empty")
    if parse_operation(root["op"])[0] != "mul":
        message = f"the operation of a product is called {root['op']!r} instead of '*' or 'mul'"
        return suspect("unusual operation", message)
    return accept()


def _judge_repeated_operand(_: Case, answer: Any) -> Part:
    """Judge whether ``a*a`` records its operand twice."""
    root = answer["nodes"][answer["at"][-1]]
    if root["set"]:
        message = "parents is a set: a*a has only one parent, and a - b loses the operand order"
        return suspect("parents in a set", message)
    if len(root["parents"]) != 2:
        return reject("operand dropped", "a*a must have two parents, both of them a")
    return accept()


def _judge_initial_gradients(_: Case, answer: Any) -> Part:
    """Judge whether gradients are 0 before a backward pass."""
    if all(node["grad"] == 0 for node in answer["nodes"]):
        return accept()
    return reject("no gradient", "grad must be 0.0 before a backward pass")


VALUE = Stage(2, "values", ("Value",), (
    Task("operations", 3, tuple(case.call("build_values") for case in SINGLE_OPERATIONS),
         partial(_judge_data, SINGLE_OPERATIONS)),
    Task("values and numbers", 2, tuple(case.call("build_values") for case in _MIXED_OPERATIONS),
         partial(_judge_data, _MIXED_OPERATIONS)),
    build_task("links to the operands", 3, [COMPOUND], _judge_links, "build_values"),
    build_task("a value used twice", 1, [SQUARE], _judge_repeated_operand, "build_values"),
    build_task("gradients begin at zero", 1, [COMPOUND], _judge_initial_gradients, "build_values"),
))  # fmt: skip

# --- 3: topological order -------------------------------------------------------------------------

LECTURE = Case(
    "xx = xa^2; xy = ab*xx + ac*xa; xz = bc*xx + xy; xw = cd*xx + xz^3",
    {"xa": 0.5, "ab": 1.0, "bc": 2.0, "cd": 3.0, "ac": 4.0},
)
DIAMOND = Case("b = a + a; c = b*a; d = c + b; e = d*c + a", {"a": 1.5})
_DOUBLINGS = Case("; ".join(f"v{k + 1} = v{k} + v{k}" for k in range(12)), {"v0": 1.0})
CHAIN_LENGTH = 5_000


def _judge_order(case: Case, answer: Any) -> Part:
    """Judge a student's topological order of a graph."""
    nodes, order = answer["nodes"], answer["order"]
    kinds = [kind for kind, _ in case.program["leaves"]]
    if any(at < 0 for at, kind in zip(answer["at"], kinds, strict=False) if kind == "input"):
        message = "some inputs cannot be reached from the result: their parents are missing"
        return reject("parents missing", message)
    fault = find_order_mistake(nodes, order)
    return reject(*fault, f"in {case.text}") if fault else accept()


def build_long_chain_task(action: str) -> Task:
    """Build a task about a sum with thousands of terms; a RecursionError costs no points.

    Args:
        action: ``order`` or ``backward``.
    """

    def judge(answers: Sequence[Any]) -> Part:
        """Judge whether the submission handles a long sum without a RecursionError."""
        if not answers[0]["error"]:
            return accept()
        message = (
            f"a sum of {CHAIN_LENGTH:,} terms raises a RecursionError; a loop with a stack does not"
        )
        return suspect("recursion too deep", message)

    call = DriverCall("run_chain", (CHAIN_LENGTH, action), f"a sum of {CHAIN_LENGTH:,} terms")
    return Task("a long chain", 1, (call,), judge)


ORDER = Stage(3, "topological order", ("Value", "topological_order"), (
    build_task("parents before children", 6, [COMPOUND, DIAMOND, LECTURE, _DOUBLINGS], _judge_order,
               "build_values", "order"),
    build_long_chain_task("order"),
), (2, 3))  # fmt: skip
