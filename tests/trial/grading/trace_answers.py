"""Answers to sheets: correct ones, and ones that follow from one mistake made throughout."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import cgprimer
from tests.trial.grading.evaluation import NUMPY, Values, definitions

GRAPHS = {
    "cube": "input x = 2; parameter k = 3; a = x*k; b = a^2; y = a*b",
    "chain": "input x = 2; parameter k = 3, m = 2; a = k*x; b = a*m; c = b*a; y = c - k",
    "square": "input x = 2; parameter k = 3, m = 5; a = k*x; b = m - a; y = b^2",
}
Answers = dict[tuple[int, str, str], str]


class WrongTable(NamedTuple):
    """A mistake: the graph, the kind of problem, and the rows that come out wrong as formulas.

    In a formula, `da` is the tangent of `a`.
    """

    graph: str
    kind: str
    rows: dict[str, str]


WRONG_TABLES = {
    "trace: another operation": WrongTable("cube", "trace", {"y": "a + a**2"}),
    "tangent: one term of the product rule dropped": WrongTable(
        "cube", "tangent", {"y": "da*a**2"}
    ),
    "tangent: product of tangents": WrongTable("cube", "tangent", {"y": "da*2*a*da"}),
    "tangent: exponent stays": WrongTable(
        "cube", "tangent", {"b": "2*a**2*da", "y": "da*a**2 + a*2*a**2*da"}
    ),
    "adjoint: = instead of +=": WrongTable(
        "cube", "adjoint", {"a": "a**2", "x": "a**2*k", "k": "a**2*x"}
    ),
    "adjoint: exponent stays": WrongTable(
        "cube",
        "adjoint",
        {"a": "a**2 + 2*a**3", "x": "(a**2 + 2*a**3)*k", "k": "(a**2 + 2*a**3)*x"},
    ),
    "adjoint: upstream missing": WrongTable(
        "square", "adjoint", {"a": "-1", "m": "1", "x": "-k", "k": "-x"}
    ),
    "adjoint: sign": WrongTable("square", "adjoint", {"a": "2*b", "x": "2*b*k", "k": "2*b*x"}),
    "adjoint: partial at the wrong point": WrongTable(
        "square", "adjoint", {"b": "2*a", "m": "2*a", "a": "-2*a", "x": "-2*a*k", "k": "-2*a*x"}
    ),
}


def make_sheet(name: str, kind: str, seed: int) -> Any:
    """Return a sheet with one problem about a graph."""
    return cgprimer.exercise(cgprimer.parse(GRAPHS[name]), kinds=kind, seed=seed, difficulty=2)


def correct_answers(sheet: Any) -> Answers:
    """Return the right answers to a sheet about values, tangents or adjoints."""
    problem = sheet.to_dict()["problems"][0]
    graph, asked = cgprimer.parse(problem["graph"]), problem["asked"]
    values = _evaluate(graph, dict(graph.values))
    answers: Answers = {}
    for line in sheet.to_csv().splitlines()[1:]:
        _, number, row, column, *_ = line.split(",")
        if column == "tangent":
            value = _slope(graph, asked["wrt"], row)
        elif column == "adjoint":
            value = _slope(graph, row, asked["of"])
        elif row in values:
            value = values[row]
        else:  # dy/dx
            value = _slope(graph, row.split("/d")[1], row[1:].split("/")[0])
        answers[int(number), row, column] = repr(float(value))
    return answers


def _evaluate(graph: Any, values: Values, moved: str = "") -> Values:
    scope = {**NUMPY, **values}
    for name, code in definitions(graph):
        result = eval(code, {"__builtins__": {}}, scope)  # noqa: S307 - texts of this folder
        scope[name] = result + (1e-30j if name == moved else 0)
    return scope


def _slope(graph: Any, by: str, of: str) -> float:
    values = {n: v + (1e-30j if n == by else 0) for n, v in graph.values.items()}
    return float(np.imag(_evaluate(graph, values, by)[of]) / 1e-30)


def check_wrong_table(mistake: str, seed: int) -> Any:
    """Check answers with one mistake, which later rows follow."""
    table = WRONG_TABLES[mistake]
    sheet = make_sheet(table.graph, table.kind, seed)
    problem = sheet.to_dict()["problems"][0]
    graph = cgprimer.parse(problem["graph"])
    values = _evaluate(graph, dict(graph.values))
    if table.kind == "tangent":
        values["da"] = _slope(graph, problem["asked"]["wrt"], "a")
    column = "value" if table.kind == "trace" else table.kind
    answers = correct_answers(sheet)
    for row, formula in table.rows.items():
        answers[1, row, column] = repr(float(eval(formula, {}, values)))  # noqa: S307
    return cgprimer.check_trace(sheet, answers)
