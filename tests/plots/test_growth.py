"""Costs against parameters, and the swell of formulas (case D8)."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from cgprimer.errors import UsageError
from cgprimer.visualization.plots import cost_plot as costs
from cgprimer.visualization.plots.cost_plot import FAMILIES, cost_growth
from cgprimer.visualization.plots.swell_plot import FAMILIES as NESTINGS
from cgprimer.visualization.plots.swell_plot import swell_counts
from tests.approval import refused


@pytest.mark.parametrize("family", FAMILIES)
def test_the_cheap_gradient_bound_holds_and_forward_mode_breaks_it(family: str) -> None:
    growth = cost_growth(family, [1, 8, 64], methods=["forward", "reverse", "finite-difference"])
    for own, reverse in zip(growth.primal, growth.methods["reverse"], strict=True):
        assert reverse.operations <= 3 * own.operations
        assert reverse.parameters == own.parameters
    for method in ("forward", "finite-difference"):
        last, first = growth.methods[method][-1], growth.methods[method][0]
        assert last.operations > 5 * growth.primal[-1].operations
        # A pass per parameter, each of a length that grows with them: the square of their number.
        order = math.log(last.operations / first.operations) / math.log(
            last.parameters / first.parameters
        )
        assert order == pytest.approx(2, abs=0.4)
    assert math.isnan(growth.primal[0].seconds)


def test_times_and_where_symbolic_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "_MAX_SYMBOLIC", 8)
    growth = cost_growth("neuron", [1, 9])
    assert math.isnan(growth.primal[0].seconds)
    assert [cost.parameters for cost in growth.methods["symbolic"]] == [1]
    assert growth.refused == {"symbolic": "then slow"}
    growth = cost_growth("neuron", [1, 9], methods=["symbolic", "path-sum"], timed=True)
    assert growth.primal[0].seconds > 0
    assert [cost.parameters for cost in growth.methods["symbolic"]] == [1, 9], "it was asked for"
    assert all(cost.seconds > 0 for cost in growth.methods["path-sum"])


@pytest.mark.parametrize("family", NESTINGS)
def test_a_formula_swells_and_reverse_mode_does_not(family: str) -> None:
    rows = swell_counts(family, range(1, 5))
    formulas = [row.formula or 0 for row in rows]
    assert all(later > 2 * before for before, later in pairwise(formulas))
    steps = [b.reverse - a.reverse for a, b in pairwise(rows)]
    assert max(steps) - min(steps) <= 5  # as many operations more at each level
    assert all(row.reverse <= 5 * row.expression for row in rows)
    assert all(row.expression < row.written_out for row in rows[1:])


def test_the_counts_of_case_d8() -> None:
    rows = swell_counts("product", [1, 4, 6])
    assert [(r.expression, r.written_out, r.reverse) for r in rows] == [
        (2, 2, 5), (8, 30, 26), (12, 126, 40)]  # fmt: skip
    assert [row.formula for row in rows] == [6, 280, 2060]


def test_formulas_beyond_the_limit_are_left_out() -> None:
    rows = swell_counts("logistic", [2, 6, 30], limit=500)
    assert [row.formula is None for row in rows] == [False, True, True]
    assert rows[-1].written_out > 10**9
    assert rows[-1].reverse < 300


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: cost_growth("netwrok"), "'network'"),
        (lambda: cost_growth("sum", [0]), "positive"),
        (lambda: cost_growth("sum", []), "positive"),
        (lambda: cost_growth("sum", [1], methods=["backward"]), "backward"),
        (lambda: swell_counts("softmx"), "softmax"),
        (lambda: swell_counts("product", [-1]), "positive"),
    ],
)
def test_mistakes(call: object, words: str) -> None:
    with refused(UsageError, words):
        call()  # type: ignore[operator]
