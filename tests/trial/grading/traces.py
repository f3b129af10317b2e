"""Answers to sheets: correct ones, and ones that follow from one mistake made throughout."""

# Texts of graphs and submissions stay on one line.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import cgprimer
from tests.trial.grading.evaluation import NUMPY, Values, definitions
from tests.trial.grading.records import ACCEPTABLE_NAMES, Collection

WRONG_TRACES = Collection()
ACCEPTABLE_NAMES |= {
    "trace: another operation": ("another operation",),
    "tangent: one term of the product rule dropped": ("product rule", "term"),
    "tangent: product of tangents": ("product rule",),
    "tangent: exponent stays": ("exponent", "power", "wrong point"),  # 2*a^2 is 2*b, too
    "adjoint: = instead of +=": ("= instead of +=",),
    "adjoint: exponent stays": ("exponent", "power", "wrong point"),
    "adjoint: upstream missing": ("upstream",),
    "adjoint: sign": ("sign",),
    "adjoint: partial at the wrong point": ("wrong point",),
}
GRAPHS = {
    "cube": "input x = 2; parameter k = 3; a = x*k; b = a^2; y = a*b",
    "chain": "input x = 2; parameter k = 3, m = 2; a = k*x; b = a*m; c = b*a; y = c - k",
    "square": "input x = 2; parameter k = 3, m = 5; a = k*x; b = m - a; y = b^2",
}
Answers = dict[tuple[int, str, str], str]


def make_sheet(name: str, kind: str, seed: int) -> Any:
    """Return a sheet with one problem about a graph."""
    return cgprimer.exercise(cgprimer.parse(GRAPHS[name]), kinds=kind, seed=seed, difficulty=2)


def correct_answers(sheet: Any) -> Answers:
    """Return the right answers to a sheet about values, tangents or adjoints."""
    problem = sheet.to_dict()["problems"][0]
    graph = cgprimer.parse(problem["graph"])
    values = {**_scope(graph, dict(graph.values))}
    names = [*graph.inputs, *graph.parameters, *(n for n, _ in definitions(graph))]
    answers: Answers = {}
    for line in sheet.to_csv().splitlines()[1:]:
        _, number, row, column, *_ = line.split(",")
        if column == "value":
            value = values[row]
        elif column == "tangent":
            value = _slope(graph, problem["asked"]["wrt"], row)
        elif column == "adjoint":
            value = _slope(graph, row, problem["asked"]["of"])
        else:
            value = (
                values[row]
                if row in names
                else _slope(graph, row.split("/d")[1], row[1:].split("/")[0])
            )
        answers[int(number), row, column] = repr(float(value))
    return answers


def _scope(graph: Any, values: Values, moved: str = "") -> Values:
    scope = {**NUMPY, **values}
    for name, code in definitions(graph):
        result = eval(code, {"__builtins__": {}}, scope)  # noqa: S307 - texts of this folder
        scope[name] = result + (1e-30j if name == moved else 0)
    return scope


def _slope(graph: Any, by: str, of: str) -> float:
    values = {n: v + (1e-30j if n == by else 0) for n, v in graph.values.items()}
    return float(np.imag(_scope(graph, values, by)[of]) / 1e-30)


# Each mistake: the graph, the kind of problem, and the rows that come out wrong.
Mistake = Callable[[Values, Any], Values]
MISTAKES: dict[str, tuple[str, str, str, Mistake]] = {
    "trace: another operation": (
        "cube",
        "trace",
        "value",
        lambda v, wrt: {"y": v["a"] + v["a"] ** 2},
    ),
    "tangent: one term of the product rule dropped": (
        "cube",
        "tangent",
        "tangent",
        lambda v, wrt: {"y": v["da"] * v["a"] ** 2},
    ),
    "tangent: product of tangents": (
        "cube",
        "tangent",
        "tangent",
        lambda v, wrt: {"y": v["da"] * 2 * v["a"] * v["da"]},
    ),
    "tangent: exponent stays": (
        "cube",
        "tangent",
        "tangent",
        lambda v, wrt: {
            "b": 2 * v["a"] ** 2 * v["da"],
            "y": v["da"] * v["a"] ** 2 + v["a"] * 2 * v["a"] ** 2 * v["da"],
        },
    ),
    "adjoint: = instead of +=": (
        "cube",
        "adjoint",
        "adjoint",
        lambda v, wrt: {"a": v["a"] ** 2, "x": v["a"] ** 2 * v["k"], "k": v["a"] ** 2 * v["x"]},
    ),
    "adjoint: exponent stays": (
        "cube",
        "adjoint",
        "adjoint",
        lambda v, wrt: {
            "a": v["a"] ** 2 + 2 * v["a"] ** 3,
            "x": (v["a"] ** 2 + 2 * v["a"] ** 3) * v["k"],
            "k": (v["a"] ** 2 + 2 * v["a"] ** 3) * v["x"],
        },
    ),
    "adjoint: upstream missing": (
        "square",
        "adjoint",
        "adjoint",
        lambda v, wrt: {"a": -1, "m": 1, "x": -v["k"], "k": -v["x"]},
    ),
    "adjoint: sign": (
        "square",
        "adjoint",
        "adjoint",
        lambda v, wrt: {"a": 2 * v["b"], "x": 2 * v["b"] * v["k"], "k": 2 * v["b"] * v["x"]},
    ),
    "adjoint: partial at the wrong point": (
        "square",
        "adjoint",
        "adjoint",
        lambda v, wrt: {
            "b": 2 * v["a"],
            "m": 2 * v["a"],
            "a": -2 * v["a"],
            "x": -2 * v["a"] * v["k"],
            "k": -2 * v["a"] * v["x"],
        },
    ),
}


def wrong_answers(kind: str, seed: int) -> tuple[Any, Answers]:
    """Return a sheet and its answers with one mistake, which later rows follow."""
    name, problem, column, mistake = MISTAKES[kind]
    sheet = make_sheet(name, problem, seed)
    data = sheet.to_dict()["problems"][0]
    graph = cgprimer.parse(data["graph"])
    values = _scope(graph, dict(graph.values))
    wrt = data["asked"].get("wrt")
    if isinstance(wrt, str):
        values["da"] = _slope(graph, wrt, "a")
    answers = correct_answers(sheet)
    for row, value in mistake(values, wrt).items():
        answers[1, row, column] = repr(float(value))
    return sheet, answers


for _kind in MISTAKES:
    for _seed in range(1, 8):
        WRONG_TRACES.add(_kind, "", str(_seed), seed=_seed)


def trace_check(record: Any) -> Any:
    """Check the answers of a record."""
    sheet, answers = wrong_answers(record.kind, record.options["seed"])
    return cgprimer.check_trace(sheet, answers)
