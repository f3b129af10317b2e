"""Every mistake that gradient checks know, and every wrong mask, is found in a submission."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer import ExpressionGraph
from cgprimer.core.operations.primitive_registry import FUNCTIONS, Primitive
from cgprimer.course.checks import gradient_check as gradient_module
from cgprimer.course.checks.check_results import Part
from cgprimer.course.checks.gradient_check import GradientCheck, build_gradient_check
from cgprimer.course.checks.mistake_search import MISTAKES
from cgprimer.course.checks.mistakes.wrong_rules import WRONG_RULES, WrongRule
from cgprimer.course.checks.question_points import select_arguments
from tests.approval import approved
from tests.checking.planted_mistakes import (
    PLANTED,
    UNITS,
    Function,
    answers,
    plant,
    random_graph,
    with_habits,
)
from tests.checking.students import TABLES, Formula, Habits, Node, compile_formula, list_uses
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


# Of each piecewise function the partials that a wrong program uses, by what is wrong.
MASKS: dict[str, dict[str, Formula]] = {}
for signature, kind, partials in TABLES["wrong masks"]:
    name, _, operands = signature.rstrip(")").partition("(")
    MASKS.setdefault(name, {})[kind] = compile_formula(operands, f"({partials},)")
ASKED: tuple[dict[str, Any], ...] = (
    {},
    {"loss": "squared-error"},
    {"loss": "hinge"},
    {"loss": "squared-error", "batch": 3},
)
SMOOTH = {"logaddexp", "asec", "acsc", "acsch", "stop_gradient"}  # or no derivative of their own


Mistake = tuple[str, str, str]  # function, wrong partials, and the line; "" for all lines


def program(check: GradientCheck, mistake: Mistake = ("", "", "")) -> Function:
    """Return a student's gradient for a check; of a batch, sample by sample."""
    function, kind, line = mistake

    def partials(node: Node) -> Any:
        is_wrong = node.function == function and line in ("", node.line)
        return MASKS[function][kind](*node.numbers) if is_wrong else None

    return with_habits(check, Habits(partials=partials))


def list_mistakes(graph: ExpressionGraph) -> Iterator[Mistake]:
    """Yield every mistake of a graph: in one line, and in all lines with a function."""
    uses = {use for use in list_uses(graph) if use[0] in MASKS}
    functions = [function for function, _ in uses]
    uses |= {(function, "") for function in functions if functions.count(function) > 1}
    for function, line in sorted(uses):
        yield from ((function, kind, line) for kind in MASKS[function])


ALONE = dict(TABLES["one mask"])


def verdicts(check: GradientCheck, mistake: Mistake = ("", "", "")) -> dict[str, str]:
    result = check.grade(answers(check, program(check, mistake)))
    return {part.name: part.verdict for part in result.parts}


def differs(check: GradientCheck, other: GradientCheck, mistake: Mistake) -> set[str]:
    """Return the names whose derivatives the mistake changes at a point of another check."""
    right, wrong = program(check), program(check, mistake)
    names: set[str] = set()
    for index in np.flatnonzero(other.points.smooth):
        point = select_arguments(other.question, other.points.arguments, int(index))
        ours, theirs = right(point), wrong(point)
        names |= {n for n, v in ours.items() if not math.isclose(v, theirs[n], rel_tol=1e-3)}
    return names


def test_every_piecewise_primitive_is_tried() -> None:
    rows = [row for group in FUNCTIONS.values() for row in group if isinstance(row, Primitive)]
    piecewise = {row.name for row in rows if row.built_in and not row.analytic} - SMOOTH
    assert piecewise == MASKS.keys()
    assert piecewise - {"equal"} == ALONE.keys()


@pytest.mark.parametrize("settings", sample(ASKED, 4), ids=str)
@pytest.mark.parametrize("function", sample([*ALONE], 3))
def test_a_wrong_mask_is_found(function: str, settings: dict[str, Any]) -> None:
    graph = cgprimer.parse(f"input x = 1.2; parameter w, b, v; y = {ALONE[function]}; output y")
    check = build_gradient_check(graph, **settings)
    assert {*verdicts(check).values()} == {"right"}
    for mistake in list_mistakes(check.question.graph):
        wrong = differs(check, check, mistake)
        assert wrong or mistake[0] != function, mistake
        found = verdicts(check, mistake)
        assert "right" not in {found[name] for name in wrong}, (mistake, found)


@pytest.mark.parametrize("line", ["v5", "v6"])
def test_wrong_masks_at_the_start_of_a_long_chain_are_found(line: str) -> None:
    check = build_gradient_check(random_graph(11, UNITS, 13), seed=11, **ASKED[3])
    parts = check.grade(answers(check, program(check, ("relu", "no mask", line)))).parts
    assert {part.verdict for part in parts} == {"right", "wrong"}


@pytest.mark.parametrize(
    ("seeds", "most"),
    [
        ([0], 8),
        pytest.param(range(8), 8, marks=pytest.mark.slow),
        pytest.param([11], 13, marks=pytest.mark.slow),
    ],
)
def test_wrong_programs_of_networks_get_no_full_marks(
    seeds: Sequence[int], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gradient_module, "find_mistakes", lambda *_: {})  # which takes most time
    tried = 0
    for seed in seeds:
        settings = ASKED[seed % len(ASKED)]
        check = build_gradient_check(random_graph(seed, UNITS, most), seed=seed, **settings)
        assert {*verdicts(check).values()} == {"right"}, check.question.graph
        graph, question = check.question.graph, check.question
        other = build_gradient_check(
            graph, of=question.of, batch=question.batch, count=60, seed=1000
        )
        for mistake in list_mistakes(graph):
            if wrong := differs(check, other, mistake):
                tried += 1
                found = verdicts(check, mistake)
                assert not all(found[n] == "right" for n in wrong), (graph.source.text, mistake)
    assert tried >= 10 * len(seeds)
