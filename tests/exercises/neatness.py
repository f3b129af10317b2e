"""An oracle for problems that students solve by hand, independent of the code that samples them.

Graphs are parsed by the package and evaluated by Python itself, with functions that refuse kinks,
saturation and numbers that are not finite.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

import cgprimer
from cgprimer.course.checks.sheets.sheet_problems import Problem, Worksheet
from cgprimer.course.checks.sheets.sheet_questions import build_worksheet
from cgprimer.expressions import Number
from tests.checking.submissions import read_rows
from tests.trial.grading.evaluation import NUMPY, Values, definitions

ROWS = read_rows(Path(__file__).with_name("tables.txt"))
MAX_DIGITS = {1: 3, 2: 4, 3: 4}
MAX_EXACT = {1: 100, 2: 1000, 3: 1000}


def _away_from_kink(name: str) -> Callable[..., Any]:
    def function(a: Any, b: Any = 0.0) -> Any:
        assert np.all(np.abs(np.asarray(a) - b) > 1e-9), f"{name} at a kink"
        return NUMPY[name](a, b) if name in ("max", "min") else NUMPY[name](a)

    return function


def _unsaturated(name: str) -> Callable[..., Any]:
    def function(a: Any) -> Any:
        assert np.all(np.abs(a) <= 5), f"{name} of {a}"
        return NUMPY[name](a)

    return function


STRICT: Values = {
    **NUMPY,
    **{name: _away_from_kink(name) for name in ("relu", "abs", "max", "min")},
    **{name: _unsaturated(name) for name in ("sigmoid", "tanh", "exp")},
}


def evaluate_strictly(text: str) -> Values:
    """Return all values of a graph at its declared values; fail at kinks and infinities."""
    graph = cgprimer.parse(text)
    scope = {**STRICT, **{name: np.asarray(v) for name, v in graph.values.items()}}
    names = []
    for name, code in definitions(graph):
        with np.errstate(all="raise"):
            scope[name] = eval(code, {"__builtins__": {}}, scope)  # noqa: S307
        assert np.isfinite(scope[name]).all()
        names.append(name)
    return {name: scope[name] for name in names}


def check_number(value: float, difficulty: int, digits: int) -> None:
    """Check one number that a student computes or is shown; ``digits`` is 0 for exact ones."""
    if digits:
        assert digits == 4
        assert value == 0 or 1e-3 <= abs(value) <= 1e4
    else:
        assert abs(value) <= MAX_EXACT[difficulty]
        written = Decimal(repr(float(value))).normalize().as_tuple().digits
        assert len(written) <= MAX_DIGITS[difficulty]


def check_column(values: list[float]) -> None:
    """Check that the numbers of a column are neither mostly 0 nor mostly 1."""
    sizes = [abs(v) for v in values]
    assert values[-1] != 0
    assert 3 * values.count(0.0) <= len(values)
    if len(values) > 2:
        assert len({*sizes} - {0.0, 1.0}) >= 2
    if len(values) > 3:
        assert 2 * sum(size not in (0.0, 1.0) for size in sizes) >= len(values)


def check_problem(problem: Problem, difficulty: int) -> Worksheet:
    """Check that a student can solve a problem by hand; return its worksheet."""
    worksheet = build_worksheet(problem)
    evaluate_strictly(problem.graph)
    assert worksheet.blanks
    numbers = list(problem.asked.get("shown", ()))  # in a table with a mistake
    columns: dict[str, list[float]] = {}
    for blank in worksheet.blanks:
        if blank.form in ("number", "array"):
            numbers += np.ravel(blank.value).tolist()
        if blank.form == "array":
            assert blank.value.any()
        elif blank.form == "number" and not isinstance(blank.tree, Number):  # 1, of the output
            columns.setdefault(blank.column, []).append(blank.value)
    for number in numbers:
        check_number(number, difficulty, worksheet.digits)
    for values in columns.values():
        check_column(values)
    return worksheet
