"""Stages 2 and 3: values that remember, and their order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from cgprimer.course.checks.check_results import Part
from cgprimer.course.checks.stages.stage import Ask, Case, Stage, Task, close, of_cases
from cgprimer.course.checks.stages.student_graphs import parse_operation
from cgprimer.course.checks.stages.visiting_orders import find_order_mistake
from cgprimer.course.checks.verdicts import doubtful, right, wrong

COMPOUND = Case("c = (a + b)*(b + 1)", {"a": 2.0, "b": 1.0})  # Olah's
SQUARE = Case("c = a*a", {"a": 3.0})
SINGLE = (
    *(Case(f"c = {text}", {"a": 1.25, "b": -0.5}) for text in ("a + b", "a - b", "a*b", "a/b")),
    *(
        Case(f"c = {text}", {"a": 1.25})
        for text in ("a^3", "-a", "a^-1", "exp(a)", "log(a)", "sin(a)", "tanh(a)", "relu(a)")
    ),
    Case("c = relu(a)", {"a": -0.5}),
)
_SIDES = ("a + 2", "2 + a", "a - 2", "2 - a", "a*2", "2*a", "a/2", "2/a")
_MIXED = tuple(Case(f"c = {text}", {"a": 1.25}) for text in _SIDES)

# --- 2: values ------------------------------------------------------------------------------------


def _numbers(cases: Sequence[Case], answers: Sequence[Any]) -> Part:
    """Whether every operation gives its number."""
    bad = []
    for case, answer in zip(cases, answers, strict=True):
        text = case.text.removeprefix("c = ")
        data = answer["nodes"][answer["at"][-1]]["data"]
        if not close(answer["inputs"], [float(case.at[n]) for n in case.names]):
            return wrong("operand changed", f"{text} changes the data of its operand")
        if isinstance(data, str):
            return wrong("data is no number", f"the data of {text} is {data}, not a number")
        if close(data, case.values[-1]):
            continue
        if text in ("2 - a", "2/a") and any(close(data, v) for v in (1.25 - 2.0, 1.25 / 2.0)):
            says = f"{text} has its operands the wrong way round"
            return wrong("reflected operands swapped", says)
        bad.append(text)
    return wrong("wrong value", f"wrong number: {', '.join(bad)}") if bad else right()


def _links(_: Case, answer: Any) -> Part:
    top = answer["nodes"][answer["at"][-1]]
    if not top["parents"]:
        says = "a result does not keep its operands: parents is empty, or is not there"
        return wrong("no parents", says)
    if -1 in answer["at"][:2]:
        return wrong("parents missing", "from the result some of the inputs cannot be reached")
    if not top["op"]:
        return wrong("no operation", "a result does not keep its operation: op")
    if parse_operation(top["op"])[0] != "mul":
        says = f"the result of a product calls its operation {top['op']!r}"
        return doubtful("unusual operation", says)
    return right()


def _twice(_: Case, answer: Any) -> Part:
    top = answer["nodes"][answer["at"][-1]]
    if top["set"]:
        says = "parents are a set: a*a has one parent, and a - b forgets which comes first"
        return doubtful("parents in a set", says)
    if len(top["parents"]) != 2:
        return wrong("operand dropped", "a*a has two operands, both of them a")
    return right()


def _start(_: Case, answer: Any) -> Part:
    if all(node["grad"] == 0 for node in answer["nodes"]):
        return right()
    return wrong("no gradient", "grad is 0.0 before any backward pass")


VALUE = Stage(2, "values", ("Value",), (
    Task("operations", 3, tuple(c.asked("built") for c in SINGLE), partial(_numbers, SINGLE)),
    Task("numbers beside values", 2, tuple(case.asked("built") for case in _MIXED),
         partial(_numbers, _MIXED)),
    of_cases("links to the operands", 3, [COMPOUND], _links, "built"),
    of_cases("a value used twice", 1, [SQUARE], _twice, "built"),
    of_cases("gradients begin at zero", 1, [COMPOUND], _start, "built"),
))  # fmt: skip

# --- 3: topological order -------------------------------------------------------------------------

LECTURE = Case(
    "xx = xa^2; xy = ab*xx + ac*xa; xz = bc*xx + xy; xw = cd*xx + xz^3",
    {"xa": 0.5, "ab": 1.0, "bc": 2.0, "cd": 3.0, "ac": 4.0},
)
DIAMOND = Case("b = a + a; c = b*a; d = c + b; e = d*c + a", {"a": 1.5})
_TWOS = Case("; ".join(f"v{k + 1} = v{k} + v{k}" for k in range(12)), {"v0": 1.0})
LONG = 5_000


def _ordered(case: Case, answer: Any) -> Part:
    nodes, order = answer["nodes"], answer["order"]
    kinds = [kind for kind, _ in case.program["leaves"]]
    if any(at < 0 for at, kind in zip(answer["at"], kinds, strict=False) if kind == "input"):
        says = "from the result some of the inputs cannot be reached: its parents are not there"
        return wrong("parents missing", says)
    fault = find_order_mistake(nodes, order)
    return wrong(*fault, f"in {case.text}") if fault else right()


def long_chain(do: str) -> Task:
    """A part about a long sum; a recursion that is too deep costs no points."""

    def judged(answers: Sequence[Any]) -> Part:
        if not answers[0]["error"]:
            return right()
        says = f"a sum of {LONG:,} terms ends in a RecursionError: a loop with a stack has no limit"
        return doubtful("recursion too deep", says)

    return Task("a long chain", 1, (Ask("chain", (LONG, do), f"a sum of {LONG:,} terms"),), judged)


ORDER = Stage(3, "topological order", ("Value", "topological_order"), (
    of_cases("parents before children", 6, [COMPOUND, DIAMOND, LECTURE, _TWOS], _ordered,
             "built", "order"),
    long_chain("order"),
), (2, 3))  # fmt: skip
