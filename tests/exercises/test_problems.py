"""Problems have simple numbers, depend on nothing but their seed, and are not degenerate."""

from __future__ import annotations

import json
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
from tests.exercises.neatness import ROWS, check_problem, evaluate_strictly


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seeds", [6, pytest.param(120, marks=pytest.mark.slow)])
def test_problems_can_be_solved_by_hand(kind: str, seeds: int) -> None:
    for seed in range(seeds):
        difficulty = 1 + seed % 3
        sheet = cgprimer.exercise(kinds=kind, seed=seed, difficulty=difficulty)
        check_problem(sheet.problems[0], difficulty)


# Graphs of which many values are degenerate: a filter that is removed is noticed at once.
TEMPTING = dict(ROWS["degenerate graphs"])


@pytest.mark.parametrize("name", TEMPTING)
def test_degenerate_values_of_a_given_graph_are_rejected(name: str) -> None:
    graph = cgprimer.parse(TEMPTING[name])
    for problem in cgprimer.exercise(graph, kinds="trace", difficulty=3, count=40).problems:
        check_problem(problem, 3)


def test_matrices_of_a_given_graph_are_small_and_not_zero() -> None:
    graph = cgprimer.parse(
        "input x[1,2], y[1,1]; parameter w[2,2], v[2,1]; h = relu(x @ w); L = sum((h @ v - y)^2)"
    )
    (problem,) = cgprimer.exercise(graph, kinds="shapes").problems
    worksheet = check_problem(problem, 1)
    assert {"bar_w", "bar_v"} <= {blank.row for blank in worksheet.blanks}
    graph = cgprimer.parse("input x[2]; parameter w[2,2]; h = tanh(w @ x); L = sum(h)")
    for problem in cgprimer.exercise(graph, kinds="shapes", count=8).problems:
        values = cgprimer.parse(problem.graph).values
        numbers = {abs(v) for name in ("x", "w") for v in np.ravel(values[name])}
        assert numbers <= {0.5, 1.0}  # so that the sums in the operands of functions are small


def test_operands_of_saturating_functions_are_at_most_five() -> None:
    graph = cgprimer.parse("xb = a*xa; xc = tanh(xb); xw = 3*xc + b")
    problems = cgprimer.exercise(graph, kinds="trace", difficulty=2, count=50).problems
    assert max(abs(evaluate_strictly(problem.graph)["xb"]) for problem in problems) == 5


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
    settings = {}
    for difficulty in (1, 2, 3):
        sheet = cgprimer.exercise(kinds="optimizer", difficulty=difficulty, count=16)
        for asked in (problem.asked for problem in sheet.problems):
            settings[asked["rule"]] = {*asked["settings"], *asked["state"]}
            assert all(0 < value <= 5 for value in asked["settings"].values())
            for part, values in asked["state"].items():
                is_square = part == "s" or (asked["rule"], part) == ("adam", "v")
                assert set(values) == set(asked["wrt"])
                assert all(0 < abs(v) <= 4 and (v > 0 or not is_square) for v in values.values())
    assert settings == dict(ROWS["settings of rules"])


@pytest.mark.parametrize(("difficulty", "most"), [(1, 2), (2, 3), (3, 6)])
def test_questions_of_paths_have_several_paths(difficulty: int, most: int) -> None:
    for problem in cgprimer.exercise(kinds="paths", difficulty=difficulty, count=6).problems:
        asked, answers = problem.asked, build_worksheet(problem).blanks
        assert 2 <= sum(blank.row.startswith("path") for blank in answers) <= most
        assert 2 <= _count_paths(cgprimer.parse(problem.graph), asked["wrt"], asked["of"]) <= most


def _count_paths(graph: Any, start: str, end: str) -> int:
    tails = {*names_in(graph.definitions[end])} if end in graph.definitions else ()
    return 1 if start == end else sum(_count_paths(graph, start, tail) for tail in tails)


@pytest.mark.parametrize(
    ("difficulty", "tables"),
    [(1, {"trace", "adjoint"}), (2, {"adjoint", "tangent"}), (3, {"tangent", "adjoint"})],
)
def test_planted_mistake_is_the_first_wrong_row(difficulty: int, tables: set[str]) -> None:
    sheet = cgprimer.exercise(kinds="mistake", difficulty=difficulty, count=8)
    assert {problem.asked["table"] for problem in sheet.problems} == tables
    for problem in sheet.problems:
        asked = {k: v for k, v in problem.asked.items() if k not in ("shown", "table")}
        correct = build_worksheet(Problem(problem.asked["table"], problem.graph, asked)).blanks
        near = 0.01 if problem.asked["digits"] else 1e-12  # a mistake is larger
        numbers = (blank for blank in correct if blank.form == "number")
        wrong = [
            (blank.row, blank.value)
            for blank, value in zip(numbers, problem.asked["shown"], strict=True)
            if abs(blank.value - value) > near * max(abs(blank.value), abs(value))
        ]
        row, value = (blank.value for blank in build_worksheet(problem).blanks)
        assert wrong[0] == (row, pytest.approx(value, rel=0.01))


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


@pytest.mark.parametrize(("name", "number"), [("easy", 1), ("medium", 2), ("Hard", 3)])
def test_difficulties_have_names(name: str, number: int) -> None:
    by_name = cgprimer.exercise(kinds="trace", difficulty=name)
    assert by_name == cgprimer.exercise(kinds="trace", difficulty=number)


@pytest.mark.parametrize(("text", "options", "message"), ROWS["unsuitable questions"])
def test_unsuitable_questions_are_rejected(
    text: str, options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(problem_generation, "_TRIES", 50)
    with refused(UsageError, message):
        cgprimer.exercise(cgprimer.parse(text) if text else None, **options)
