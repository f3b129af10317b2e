"""Answers to sheets: correct ones, and ones that follow from one mistake made throughout."""

from __future__ import annotations

from typing import Any

import numpy as np

import cgprimer
from tests.trial.grading.evaluation import NUMPY, Values, definitions
from tests.trial.grading.submission_files import read

GRAPHS = {
    "cube": "input x = 2; parameter k = 3; a = x*k; b = a^2; y = a*b",
    "chain": "input x = 2; parameter k = 3, m = 2; a = k*x; b = a*m; c = b*a; y = c - k",
    "square": "input x = 2; parameter k = 3, m = 5; a = k*x; b = m - a; y = b^2",
}
Answers = dict[tuple[int, str, str], str]


WRONG_TABLES = read("tables")


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
    sheet = make_sheet(table["graph"], table["kind"], seed)
    problem = sheet.to_dict()["problems"][0]
    graph = cgprimer.parse(problem["graph"])
    values = _evaluate(graph, dict(graph.values))
    if table["kind"] == "tangent":
        values["da"] = _slope(graph, problem["asked"]["wrt"], "a")
    column = "value" if table["kind"] == "trace" else table["kind"]
    answers = correct_answers(sheet)
    for row, formula in table["rows"].items():
        answers[1, row, column] = repr(float(eval(formula, {}, values)))  # noqa: S307
    return cgprimer.check_trace(sheet, answers)
