"""Stages 2 and 3: values that remember, and their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cgprimer.checking.results import Failure, Part
from cgprimer.checking.stages.graphs import operation
from cgprimer.checking.stages.stage import Case, Stage, close, doubtful, failed, right, wrong

_AT = {"a": 1.25, "b": -0.5}
_BINARY = {
    "a + b": "add", "a - b": "sub", "a*b": "mul", "a/b": "div", "a^3": "pow", "-a": "neg",
    "a^-1": "pow",
}  # fmt: skip
_UNARY = ("exp", "log", "sin", "tanh", "relu")
_MIXED = ("a + 2", "2 + a", "a - 2", "2 - a", "a*2", "2*a", "a/2", "2/a")
COMPOUND = Case("c = (a + b)*(b + 1)", {"a": 2.0, "b": 1.0})  # Olah's
SQUARE = Case("c = a*a", {"a": 3.0})


def _case(text: str, **at: float) -> Case:
    return Case(
        f"c = {text}", {n: v for n, v in (at or _AT).items() if n in text.replace("tanh", "")}
    )


SINGLE = {
    **{text: _case(text) for text in _BINARY},
    **{f"{name}(a)": Case(f"c = {name}(a)", {"a": 1.25}) for name in _UNARY},
    "relu(-a)": Case("c = relu(a)", {"a": -0.5}),
}
_REFLECTED = {text: Case(f"c = {text}", {"a": 1.25}) for text in _MIXED}

# --- 2: values ------------------------------------------------------------------------------------


def _second(answers: Sequence[Any]) -> list[Part]:
    single = dict(zip(SINGLE, answers, strict=False))
    mixed = dict(zip(_REFLECTED, answers[len(SINGLE) :], strict=False))
    compound, square = answers[-2:]
    return [
        _numbers("operations", 3, single, SINGLE),
        _numbers("numbers beside values", 2, mixed, _REFLECTED),
        _links(compound),
        _twice(square),
        _start(compound),
    ]


def _numbers(name: str, points: float, answers: dict[str, Any], cases: dict[str, Case]) -> Part:
    """Whether every operation gives its number."""
    unwritten = [a for a in answers.values() if isinstance(a, Failure)]
    bad = []
    for text, answer in answers.items():
        case = cases[text]
        if isinstance(answer, Failure):
            flipped = text[0].isdigit() and "unsupported operand" in answer.message
            if flipped and len(unwritten) < len(answers):
                missing = [t for t, a in answers.items() if isinstance(a, Failure)]
                says = f"no operator for a number on the left: {', '.join(missing)}"
                return wrong(name, points, "reflected operator missing", says)
            return failed(name, points, answer, text)
        data = answer["nodes"][answer["at"][-1]]["data"]
        if close(answer["inputs"], [float(case.at[n]) for n in case.names]) is False:
            says = f"{text} changes the data of its operand"
            return wrong(name, points, "operand changed", says)
        if isinstance(data, str):
            says = f"the data of {text} is {data}, not a number"
            return wrong(name, points, "data is no number", says)
        if not close(data, case.values[-1]):
            flipped_data = [2.0 - 1.25, 2.0 / 1.25, 1.25 - 2.0, 1.25 / 2.0]
            swapped = text in ("2 - a", "2/a") and any(close(data, v) for v in flipped_data)
            if swapped:
                return wrong(name, points, "reflected operands swapped",
                             f"{text} has its operands the wrong way round")  # fmt: skip
            bad.append(text)
    if bad:
        return wrong(name, points, "wrong value", f"wrong number: {', '.join(bad)}")
    return right(name, points)


def _links(answer: Any) -> Part:
    name, points = "links to the operands", 3
    if isinstance(answer, Failure):
        return failed(name, points, answer)
    nodes, at = answer["nodes"], answer["at"]
    top = nodes[at[-1]]
    if not top["parents"]:
        says = "a result does not keep its operands: parents is empty, or is not there"
        return wrong(name, points, "no parents", says)
    reached = [at[k] for k in range(2)]
    if -1 in reached:
        says = "from the result some of the inputs cannot be reached"
        return wrong(name, points, "parents missing", says)
    if not top["op"]:
        return wrong(name, points, "no operation", "a result does not keep its operation: op")
    if operation(top["op"])[0] != "mul":
        return doubtful(name, points, "unusual operation",
                        f"the result of a product calls its operation {top['op']!r}")  # fmt: skip
    return right(name, points)


def _twice(answer: Any) -> Part:
    name, points = "a value used twice", 1
    if isinstance(answer, Failure):
        return failed(name, points, answer)
    top = answer["nodes"][answer["at"][-1]]
    if top["set"]:
        says = "parents are a set: a*a has one parent, and a - b forgets which comes first"
        return doubtful(name, points, "parents in a set", says)
    if len(top["parents"]) != 2:
        return wrong(name, points, "operand dropped", "a*a has two operands, both of them a")
    return right(name, points)


def _start(answer: Any) -> Part:
    name, points = "gradients begin at zero", 1
    if isinstance(answer, Failure):
        return failed(name, points, answer)
    if all(node["grad"] == 0 for node in answer["nodes"]):
        return right(name, points)
    return wrong(name, points, "no gradient", "grad is 0.0 before any backward pass")


VALUE = Stage(
    2,
    "values",
    ("Value",),
    tuple(
        case.asked("built") for case in (*SINGLE.values(), *_REFLECTED.values(), COMPOUND, SQUARE)
    ),
    _second,
    {"operations": 3, "numbers beside values": 2, "links to the operands": 3,
     "a value used twice": 1, "gradients begin at zero": 1},
)  # fmt: skip

# --- 3: topological order -------------------------------------------------------------------------

LECTURE = Case(
    "xx = xa^2; xy = ab*xx + ac*xa; xz = bc*xx + xy; xw = cd*xx + xz^3",
    {"xa": 0.5, "ab": 1.0, "bc": 2.0, "cd": 3.0, "ac": 4.0},
)
DIAMOND = Case("b = a + a; c = b*a; d = c + b; e = d*c + a", {"a": 1.5})
_TWOS = Case(
    "; ".join(f"{x}{k + 1} = {x}{k} + {x}{k}" for x in "v" for k in range(12)), {"v0": 1.0}
)
_ORDERED = (COMPOUND, DIAMOND, LECTURE, _TWOS)
LONG = 5_000


def _third(answers: Sequence[Any]) -> list[Part]:
    name, points = "parents before children", 6
    parts = []
    for case, answer in zip(_ORDERED, answers, strict=False):
        found = _order_part(name, points, case, answer)
        if found.verdict != "right":
            parts = [found]
            break
    return [*(parts or [right(name, points)]), long_part("a long chain", 1, answers[-1])]


def _order_part(name: str, points: float, case: Case, answer: Any) -> Part:
    if isinstance(answer, Failure):
        return failed(name, points, answer, case.text)
    nodes, order = answer["nodes"], answer["order"]
    kinds = [kind for kind, _ in case.program["leaves"]]
    if any(at < 0 for at, kind in zip(answer["at"], kinds, strict=False) if kind == "input"):
        says = "from the result some of the inputs cannot be reached: its parents are not there"
        return wrong(name, points, "parents missing", says)
    every = set(range(len(nodes)))
    if order and order[0] == len(nodes) - 1 and _in_order(nodes, order[::-1]) and len(order) > 1:
        says = "children stand before their parents: the whole order is the wrong way round"
        return wrong(name, points, "order reversed", says)
    if len(set(order)) < len(order):
        says = "a value that is used several times stands in the list several times"
        return wrong(name, points, "values listed twice", says)
    if not every <= set(order):
        says = "some values that lead to the result are not in the list"
        inner = {k for k in every if nodes[k]["parents"]}
        which = "the leaves are" if every - set(order) == every - inner else "some are"
        return wrong(name, points, "values missing", f"{says}: {which} missing")
    if not _in_order(nodes, order):
        says = f"a value stands before one of its parents, in {case.text}"
        return wrong(name, points, "child before parent", says)
    return right(name, points)


def _in_order(nodes: Sequence[Any], order: Sequence[int]) -> bool:
    place = {node: k for k, node in enumerate(order)}
    return all(
        parent in place and place[parent] < place[node]
        for node in order
        if node >= 0
        for parent in nodes[node]["parents"]
    )


def long_part(name: str, points: float, answer: Any) -> Part:
    """Whether a long sum could be done; a recursion that is too deep costs no points."""
    if isinstance(answer, Failure):
        return failed(name, points, answer, f"a sum of {LONG:,} terms")
    if answer["error"]:
        says = f"a sum of {LONG:,} terms ends in a RecursionError: a loop with a stack has no limit"
        return doubtful(name, points, "recursion too deep", says)
    return right(name, points)


ORDER = Stage(
    3,
    "topological order",
    ("Value", "topological_order"),
    (
        *(case.asked("built", "order") for case in _ORDERED),
        {"call": "chain", "arguments": [LONG, "order"]},
    ),
    _third,
    {"parents before children": 6, "a long chain": 1},
)
