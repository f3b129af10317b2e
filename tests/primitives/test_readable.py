"""Formulas for readers: conditions are written out, and parentheses are kept."""

from __future__ import annotations

import pytest
from hypothesis import given

from cgprimer.core.language.syntax_tree import Apply, Expression, Name, Number
from cgprimer.core.operations import find_primitive
from cgprimer.core.operations.notation import parse_expression, readable, unparse
from tests.language.language_trees import trees

TEXTS = {
    "where(equal(x2, x1), 0.5, less(x1, x2))": "1 if x2 > x1 else 0",
    "where(equal(x1, x2), 0.5, less(x1, x2))": "1 if x2 > x1 else 0",
    "less(0, a)": "1 if a > 0 else 0",
    "less(a, 0)": "1 if a < 0 else 0",
    "bar*less(0, a) + 1": "bar*(1 if a > 0 else 0) + 1",
    "sin(less(a, b))": "sin(1 if b > a else 0)",
    "-less(a, b)^2": "-(1 if b > a else 0)^2",
    "equal(a + 1, b)": "1 if a + 1 == b else 0",
    "where(less(x, 0), a + b, c)*d": "(a + b if x < 0 else c)*d",
    "where(k, 1, 0)": "1 if k != 0 else 0",
    "where(k, less(a, b), less(b, a))": "(1 if b > a else 0) if k != 0 else 1 if a > b else 0",
    "where(equal(a, b), 0.5, less(a, c))": "0.5 if a == b else 1 if c > a else 0",
    "where(equal(a, b), 0.25, less(a, b))": "0.25 if a == b else 1 if b > a else 0",
    "cd*xx + xz^3": "cd*xx + xz^3",
}


@pytest.mark.parametrize("text", TEXTS)
def test_conditions_are_written_out(text: str) -> None:
    assert readable(parse_expression(text)) == TEXTS[text]


@pytest.mark.parametrize("name", ["max", "min", "relu"])
def test_partials_read_as_a_choice_of_one_or_zero(name: str) -> None:
    for partial in find_primitive(name).partials:
        text = readable(parse_expression(partial))
        assert text.startswith("1 if ")
        assert text.endswith(" else 0")


@given(trees())
def test_other_expressions_stay_as_they_are(tree: Expression) -> None:
    text = unparse(tree)
    if not any(word in text for word in ("less(", "equal(", "where(")):
        assert readable(tree) == text


def test_deep_trees_do_not_recurse() -> None:
    tree: Expression = Name("a")
    for _ in range(5_000):
        tree = Apply("where", (Name("k"), Number(1.0), Apply("less", (Number(0.0), tree))))
    assert readable(tree).count(" if ") == 10_000
