"""Formulas for readers: conditions are written out, and parentheses are kept."""

from __future__ import annotations

from hypothesis import given

from cgprimer.core.language.syntax_tree import Apply, Expression, Name, Number
from cgprimer.core.operations import find_primitive
from cgprimer.core.operations.notation import parse_expression, readable, unparse
from tests.approval import approved
from tests.language.language_trees import trees

TEXTS = [
    "where(equal(x2, x1), 0.5, less(x1, x2))",
    "where(equal(x1, x2), 0.5, less(x1, x2))",
    "less(0, a)",
    "less(a, 0)",
    "bar*less(0, a) + 1",
    "sin(less(a, b))",
    "-less(a, b)^2",
    "equal(a + 1, b)",
    "where(less(x, 0), a + b, c)*d",
    "where(k, 1, 0)",
    "where(k, less(a, b), less(b, a))",
    "where(equal(a, b), 0.5, less(a, c))",
    "where(equal(a, b), 0.25, less(a, b))",
]


def test_conditions_are_written_out() -> None:
    partials = [p for name in ("max", "min", "relu") for p in find_primitive(name).partials]
    lines = [f"{text}: {readable(parse_expression(text))}" for text in [*TEXTS, *partials]]
    approved("\n".join(lines))


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
