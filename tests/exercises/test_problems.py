"""Problems have simple numbers, depend on nothing but their seed, and are not degenerate."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.course.checks.sheets.sheet_problems import KINDS, Problem
from cgprimer.course.checks.sheets.sheet_questions import build_worksheet
from cgprimer.course.exercises import problem_generation
from cgprimer.errors import UsageError
from cgprimer.expressions import names_in
from tests.approval import approved, refused
from tests.exercises.neatness import (
    check_column,
    check_number,
    check_problem,
    count_digits,
    evaluate_strictly,
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("difficulty", [1, 2, 3])
def test_problems_can_be_solved_by_hand(kind: str, difficulty: int) -> None:
    few = 2 if kind == "shapes" else 4
    for problem in cgprimer.exercise(kinds=kind, difficulty=difficulty, count=few).problems:
        check_problem(problem, difficulty)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_seeds_give_problems_that_can_be_solved_by_hand(kind: str) -> None:
    for seed in range(60 if kind == "shapes" else 300):
        difficulty = 1 + seed % 3
        sheet = cgprimer.exercise(kinds=kind, seed=seed, difficulty=difficulty)
        check_problem(sheet.problems[0], difficulty)


@pytest.mark.parametrize(
    "check",
    [
        lambda: evaluate_strictly("input xa = 2; xb = xa - 2; xw = relu(xb) + xa"),
        lambda: evaluate_strictly("input xa = 2, xb = 2; xw = max(xa, xb)"),
        lambda: evaluate_strictly("input xa = 6; xw = tanh(xa)"),
        lambda: evaluate_strictly("input xa = 1; xw = xa/(xa - 1)"),
        lambda: check_number(101.0, 1, 0),
        lambda: check_number(1.234, 1, 0),
        lambda: check_number(9e-4, 1, 4),
        lambda: check_column([3.0, 0.0]),
        lambda: check_column([0.0, 0.0, 2.0, 3.0]),
        lambda: check_column([2.0, -2.0, 1.0]),
        lambda: check_column([1.0, 1.0, -1.0, 2.0, 3.0]),
    ],
)
def test_oracle_rejects_degenerate_numbers(check: Callable[[], Any]) -> None:
    with pytest.raises((AssertionError, FloatingPointError)):
        check()
    assert [count_digits(v) for v in (0.0, 1200.0, -0.25, 3.125)] == [1, 2, 2, 4]


# Graphs of which many values are degenerate: a filter that is removed is noticed at once.
TEMPTING = {
    "equal operands of max": "xb = a*xa; xc = max(xb, b); xw = xc + a*xa",
    "relu of 0": "xb = a*xa + b; xc = relu(xb); xw = xc*a + xa",
    "abs of 0": "xb = a*xa + b; xc = abs(xb); xw = xc*a + xa",
    "division by 0": "xb = xa + a; xc = b/xb; xw = xc + xa*b",
    "last number 0": "xb = 2*xa; xc = xb + a; xd = xc - xa; xw = xd + b",
    "mostly 0": "xb = xa + a; xc = xb + b; xd = xc*a; xe = xd + xb; xw = xe + a",
    "saturation": "xb = a*xa + b; xc = tanh(xb); xw = 3*xc + xa",
}


@pytest.mark.parametrize("name", TEMPTING)
def test_degenerate_values_of_a_given_graph_are_rejected(name: str) -> None:
    graph = cgprimer.parse(TEMPTING[name])
    for problem in cgprimer.exercise(graph, kinds="trace", difficulty=3, count=40).problems:
        check_problem(problem, 3)


def test_matrices_of_a_given_graph_are_not_zero() -> None:
    graph = cgprimer.parse(
        "input x[1,2], y[1,1]; parameter w[2,2], v[2,1]; h = relu(x @ w); L = sum((h @ v - y)^2)"
    )
    for problem in cgprimer.exercise(graph, kinds="shapes", count=4).problems:
        worksheet = check_problem(problem, 1)
        assert {"bar_w", "bar_v"} <= {blank.row for blank in worksheet.blanks}


def test_values_of_matrices_with_functions_are_small() -> None:
    """So that the sums in the operands of functions are small, too."""
    graph = cgprimer.parse("input x[2]; parameter w[2,2]; h = tanh(w @ x); L = sum(h)")
    for problem in cgprimer.exercise(graph, kinds="shapes", count=8).problems:
        values = cgprimer.parse(problem.graph).values
        numbers = {abs(v) for name in ("x", "w") for v in np.ravel(values[name])}
        assert numbers <= {0.5, 1.0}


def test_operands_of_saturating_functions_are_at_most_five() -> None:
    graph = cgprimer.parse("xb = a*xa; xc = tanh(xb); xw = 3*xc + b")
    problems = cgprimer.exercise(graph, kinds="trace", difficulty=2, count=50).problems
    operands = [abs(evaluate_strictly(problem.graph)["xb"]) for problem in problems]
    assert max(operands) == 5


@pytest.mark.parametrize(("extra", "level"), [(0, "operations"), (1, "variables")])
def test_long_traces_have_a_row_per_variable(extra: int, level: str) -> None:
    """A trace of the operations has at most 18 rows, including inputs and parameters."""
    lines = [f"x{k + 1} = x{k}*x0 - x0" for k in range(7)]  # 2 operations each
    graph = cgprimer.parse([*lines, f"xw = x7 + a - x0{' + a' * extra}"])
    assert cgprimer.tape(graph).size == 18 + extra
    (problem,) = cgprimer.exercise(graph, kinds="trace").problems
    assert problem.asked["level"] == level


def test_values_of_few_names_differ() -> None:
    """With equal numbers, some mistakes would not be visible."""
    graph = cgprimer.parse("xb = a*xa; xw = xb + b")
    for problem in cgprimer.exercise(graph, kinds="trace", count=30).problems:
        sizes = [abs(v) for v in cgprimer.parse(problem.graph).values.values()]
        assert len({*sizes}) == 3


def test_bound_on_the_norm_reduces_the_norm() -> None:
    problems = cgprimer.exercise(kinds="optimizer", difficulty=2, seed=5, count=12).problems
    bounded = [problem for problem in problems if problem.asked["rule"] == "max-norm"]
    assert bounded
    for problem in bounded:
        norms = {b.value for b in build_worksheet(problem).blanks if b.row == "n"}
        assert min(norms) > problem.asked["settings"]["c"]


@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_gives_the_same_problems_in_every_version(kind: str) -> None:
    """A lecturer may have to create the sheets of a class again."""
    for difficulty in (1, 2, 3):
        (problem,) = cgprimer.exercise(kinds=kind, seed=difficulty, difficulty=difficulty).problems
        approved(f"{problem.graph}\n{json.dumps(dict(problem.asked))}")


def test_settings_of_optimizers_belong_to_the_rule() -> None:
    problems = [
        problem
        for difficulty in (1, 2, 3)
        for problem in cgprimer.exercise(
            kinds="optimizer", difficulty=difficulty, count=16
        ).problems
    ]
    for problem in problems:
        asked = problem.asked
        assert all(0 < value <= 5 for value in asked["settings"].values())
        for part, values in asked["state"].items():
            is_square = part == "s" or (asked["rule"], part) == ("adam", "v")
            assert set(values) == set(asked["wrt"])
            assert all(0 < abs(v) <= 4 and (v > 0 or not is_square) for v in values.values())
    settings = {p.asked["rule"]: {*p.asked["settings"]} | {*p.asked["state"]} for p in problems}
    assert settings == {
        "sgd": {"rate"}, "decaying rate": {"rate", "gamma", "t"},
        "weight decay": {"rate", "lambda"}, "momentum": {"rate", "beta", "v"},
        "nesterov": {"rate", "beta", "v"}, "proximal l1": {"rate", "lambda"},
        "max-norm": {"rate", "c"}, "adagrad": {"rate", "s"}, "rmsprop": {"rate", "alpha", "s"},
        "adam": {"rate", "beta1", "beta2", "t", "m", "v"},
    }  # fmt: skip


def test_questions_of_paths_have_several_paths() -> None:
    for difficulty, most in ((1, 2), (2, 3), (3, 6)):
        sheet = cgprimer.exercise(kinds="paths", difficulty=difficulty, count=8)
        for problem in sheet.problems:
            graph, asked = cgprimer.parse(problem.graph), problem.asked
            assert 2 <= _count_paths(graph, asked["wrt"], asked["of"]) <= most


def _count_paths(graph: Any, start: str, end: str) -> int:
    tails = {*names_in(graph.definitions[end])} if end in graph.definitions else ()
    return 1 if start == end else sum(_count_paths(graph, start, tail) for tail in tails)


def test_planted_mistake_is_the_first_wrong_row() -> None:
    for difficulty in (1, 2, 3):
        sheet = cgprimer.exercise(kinds="mistake", difficulty=difficulty, count=8)
        for problem in sheet.problems:
            asked = {k: v for k, v in problem.asked.items() if k not in ("shown", "table")}
            worksheet = build_worksheet(Problem(problem.asked["table"], problem.graph, asked))
            correct = [b for b in worksheet.blanks if b.form == "number"]
            shown = problem.asked["shown"]
            assert len(shown) == len(correct)
            near = 0.01 if problem.asked["digits"] else 1e-12  # a mistake is larger
            wrong = [
                (b.row, b.value)
                for b, value in zip(correct, shown, strict=True)
                if abs(b.value - value) > near * max(abs(b.value), abs(value))
            ]
            row, value = (b.value for b in build_worksheet(problem).blanks)
            assert wrong[0][0] == row
            assert value == pytest.approx(wrong[0][1], rel=0.01)


def test_tables_with_a_mistake_depend_on_the_difficulty() -> None:
    for difficulty, tables in ((1, {"trace", "adjoint"}), (3, {"tangent", "adjoint"})):
        sheet = cgprimer.exercise(kinds="mistake", difficulty=difficulty, count=12)
        assert {problem.asked["table"] for problem in sheet.problems} == tables


def test_gradient_of_many_names_asks_for_four_in_their_order() -> None:
    names = ["a", "b", "c", "d", "e"]
    graph = cgprimer.parse("xw = a*xa + b*c + d*e")
    for problem in cgprimer.exercise(graph, kinds="gradient", count=6).problems:
        wrt = problem.asked["wrt"]
        assert len(wrt) == 4
        assert wrt == sorted(wrt, key=["xa", *names].index)
    graph = cgprimer.parse("xw = a*xa + b*c")
    (problem,) = cgprimer.exercise(graph, kinds="gradient").problems
    assert problem.asked["wrt"] == ["xa", "a", "b", "c"]


def test_same_seed_gives_the_same_sheet() -> None:
    few = ["trace", "adjoint", "mistake"]
    one, again = (cgprimer.exercise(kinds=few, seed=3) for _ in range(2))
    assert one == again
    others = {"seed": 4}, {"seed": 3, "student": "Ann"}, {"seed": 3, "difficulty": 2}
    sheets = [one, *(cgprimer.exercise(kinds=few, **other) for other in others)]
    assert len({sheet.identifier for sheet in sheets}) == 4
    alone = cgprimer.exercise(kinds="adjoint", seed=3).problems[0]
    assert alone in one.problems, "other kinds on the sheet change nothing"
    several = cgprimer.exercise(kinds="trace", count=6).problems
    assert len({p.graph for p in several}) == 6


def test_values_come_from_domains_or_are_kept() -> None:
    graph = cgprimer.parse("input xa = 7, y = 1; xb = a*xa; xw = xb*y + b")
    sheet = cgprimer.exercise(graph, kinds="trace", count=8, keep="xa", domain={"y": (3, 4)})
    values = [cgprimer.parse(problem.graph).values for problem in sheet.problems]
    assert {v["xa"] for v in values} == {7.0}
    assert {v["y"] for v in values} == {3.0, 4.0}
    assert len({v["a"] for v in values}) > 2


def test_difficulties_have_names() -> None:
    for name, number in (("easy", 1), ("medium", 2), ("Hard", 3)):
        by_name = cgprimer.exercise(kinds="trace", difficulty=name)
        assert by_name == cgprimer.exercise(kinds="trace", difficulty=number)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("input x[2]; parameter W[3,2]; xw = sum(W @ x)", {"kinds": "trace"}, ""),
        ("xw = a*xa", {"kinds": "shapes"}, ""),
        ("xw = xa^2", {"kinds": "optimizer"}, ""),
        ("xw = a*xa", {"kinds": "paths"}, "paths"),
        ("xb = dropout(a*xa, 0.5)", {"kinds": "all"}, "layers"),
        ("xb = a*xa; xc = a/xa", {"kinds": "trace"}, ""),  # two outputs
        ("xw = a*xa", {"kinds": "tracing"}, "'tracing'"),
        ("xw = exp(exp(exp(100*xa + 10*a)))", {"kinds": "adjoint"}, ""),
        ("xw = a*xa", {"difficulty": 4}, "'4'"),
        ("xw = a*xa", {"count": 0}, "0"),
        ("xw = a*xa", {"count": 51}, "50 ... 51"),
        ("input x[65]; xw = sum(x)", {}, "64 ... 65"),
        ("", {"keep": "xa"}, "graph"),
        ("", {"domain": {"y": (0, 1)}}, "graph"),
    ],
)
def test_unsuitable_questions_are_rejected(
    text: str, options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(problem_generation, "_TRIES", 50)
    with refused(UsageError, message):
        cgprimer.exercise(cgprimer.parse(text) if text else None, **options)
