"""Every mistake that gradient checks know is made in a submission, and is named."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest

import cgprimer
from cgprimer.course.checks.check_results import Part
from cgprimer.course.checks.gradient_check import build_gradient_check
from cgprimer.course.checks.mistake_search import MISTAKES
from cgprimer.course.checks.mistakes.wrong_rules import WRONG_RULES, WrongRule
from tests.approval import approved
from tests.checking.planted_mistakes import PLANTED, answers, plant, with_habits
from tests.checking.students import TABLES, Formula, Habits, Node, compile_formula
from tests.checking.submissions import Submission, read_submissions, sample

RIGHT, WRONG = read_submissions("gradient_mistakes.txt")
#: Wrong derivatives that equal those of a likelier mistake: 1/log(u) is 1/u at u = log(u).
LIKELIER = {
    "log: 1/log(u)": "derivative at the wrong point",
    "sqrt: 1/(2*u)": "inner function not evaluated",
}


def check(submission: Submission) -> list[Part]:
    """Return the parts of a submission that are not right."""
    settings = dict(submission.settings)
    graph = cgprimer.parse(settings.pop("graph"))
    function = submission.define()["gradient"]
    result = cgprimer.check_gradient(graph, function, **settings)
    return [part for part in result.parts if part.verdict != "right"]


def test_every_mistake_has_a_submission() -> None:
    rules = {rule.mistake for rule in WRONG_RULES}
    assert {submission.mistake for submission in WRONG} | rules == MISTAKES.keys()


@pytest.mark.parametrize("submission", sample(RIGHT, 4), ids=str)
def test_right_programs_are_not_accused(submission: Submission) -> None:
    assert check(submission) == []


@pytest.mark.parametrize("submission", sample(WRONG, 6), ids=str)
def test_a_mistake_is_named(submission: Submission) -> None:
    wrong = check(submission)
    assert wrong
    assert {part.mistake for part in wrong} == {submission.named}
    for message in dict.fromkeys(part.message for part in wrong):
        approved(message)
        is_likeliest = submission.mistake == submission.named
        assert submission.note in message
        assert is_likeliest or submission.mistake in list_alternatives(message)


def list_alternatives(message: str) -> list[str]:
    """Return the other mistakes that a message lists."""
    return message.partition("other possible mistakes: ")[2].rstrip(")").split(", ")


@pytest.mark.parametrize(
    ("rule", "row"), sample([*zip(WRONG_RULES, TABLES["wrong rules"], strict=True)], 9)
)
def test_a_wrong_derivative_of_a_function_is_named(rule: WrongRule, row: tuple[str, ...]) -> None:
    """A row has the mistake as students read it, a line of a graph, and the wrong partials."""
    title, line, *formulas = row
    assert title == f"{rule.primitive}: {rule.message}"
    partials, *values = (compile_formula("a, b=0, c=0", f"({text},)") for text in formulas)

    def apply(formula: Formula, node: Node) -> Any:
        is_wrong = node.function == rule.primitive and node.line == "h"
        return formula(*node.numbers) if is_wrong else None

    value = partial(apply, lambda *numbers: values[0](*numbers)[0]) if values else Habits.value
    habits = Habits(partials=partial(apply, partials), value=value)
    line = re.sub(r"\bu\b", "(w*x + b)", re.sub(r"\bt\b", "(q*x - w)", line))
    graph = cgprimer.parse(
        f"input x = 0.7; parameter w = 0.8, b = 0.3, v = 1.5, q = 1.2; h = {line}; y = v*h + w*q"
    )
    one = build_gradient_check(graph)
    result = one.grade(answers(one, with_habits(one, habits)))
    wrong = [part for part in result.parts if part.mistake]
    assert wrong
    named = LIKELIER.get(title, rule.mistake)
    assert {part.mistake for part in wrong} == {named}, [str(part) for part in wrong]
    for part in wrong:
        listed = rule.mistake in list_alternatives(part.message)
        assert rule.message in part.message if named == rule.mistake else listed


@pytest.mark.parametrize("mistake", sample([*PLANTED], 5))
@pytest.mark.parametrize("count", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_a_mistake_is_named_in_random_graphs(mistake: str, count: int) -> None:
    missed = [part for parts in plant(mistake, count) for part in parts
              if mistake not in (part.mistake, *list_alternatives(part.message))]  # fmt: skip
    assert len(missed) <= count // 20, missed
