"""Answers that are well-formed JSON of any structure: each ends as that student's result."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

import cgprimer
from cgprimer.course.checks import sandbox
from cgprimer.course.checks.check_results import Failure, Result
from cgprimer.course.checks.engine_check import build_engine_graph
from cgprimer.course.checks.engine_ladder import STAGES
from cgprimer.errors import UsageError
from tests.approval import refused
from tests.checking.ladder_mistakes import SOLUTION
from tests.checking.student_optimizers import names_of

JUNK: tuple[Any, ...] = (
    None, True, 0, -1, 10**9, 1.5, float("nan"), float("inf"), "", "text", [], {}, [[]], [None],
    {"no call": "missing"}, {"value": []}, [1.0, "a", None], [[1.0], [2.0, 3.0]],
)  # fmt: skip
ADAM = """class Adam:
    def __init__(self, rate=0.01, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.0):
        self.rate, self.b1, self.b2, self.e, self.wd = rate, beta1, beta2, epsilon, weight_decay
        self.t, self.m, self.v = 0, {}, {}
    def step(self, parameters, gradients):
        self.t += 1
        for k, g in gradients.items():
            g = g + self.wd*parameters[k]
            m = self.m[k] = self.b1*self.m.get(k, 0.0) + (1 - self.b1)*g
            v = self.v[k] = self.b2*self.v.get(k, 0.0) + (1 - self.b2)*g*g
            m, v = m/(1 - self.b1**self.t), v/(1 - self.b2**self.t)
            parameters[k] -= self.rate*m/(v**0.5 + self.e)
"""
GRADIENT = "def gradient(x, w, b):\n    return {'w': [x*w[1], x*w[0]], 'b': x}\n"
GRAPH = "input x = 2; parameter w[2] = [1, 3], b = 1; y = w[0]*w[1]*x + b*x"
CHECKS: dict[str, tuple[str, Callable[[Any], Result]]] = {
    "gradient": (GRADIENT, lambda s: cgprimer.check_gradient(cgprimer.parse(GRAPH), s)),
    "optimizer": (ADAM, lambda s: cgprimer.check_optimizer(s, "adamw")),
    **{
        f"stage {one.number}": (SOLUTION, lambda s, k=one.number: cgprimer.check_engine(s, k))
        for one in STAGES
    },
}  # fmt: skip


def broken(value: Any, draw: Random) -> Any:
    """Return an answer in which something is replaced, left out or repeated."""
    value = json.loads(json.dumps(value))
    holder, key = [value], 0
    while isinstance(holder[key], list | dict) and holder[key] and draw.random() < 0.8:
        holder = holder[key]  # type: ignore[assignment]
        key = draw.choice([*holder] if isinstance(holder, dict) else range(len(holder)))
        if holder == [value]:
            continue
    top = holder[key] is value
    what = draw.random()
    if what < 0.7 or top:
        new = draw.choice(JUNK)
        if top:
            return new
        holder[key] = new
    elif what < 0.85:
        del holder[key]
    elif isinstance(holder, list):
        holder.append(holder[key])
    else:
        holder[f"{key}x"] = holder[key]
    return value


@pytest.mark.parametrize("kind", CHECKS)
def test_answers_of_any_structure(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source, check = CHECKS[kind]
    run, reports = sandbox._run_notebook, list[Any]()

    def once(*given: Any) -> sandbox.Answers:
        reports.append(run(*given))
        return reports[-1]

    monkeypatch.setattr(sandbox, "_run_notebook", once)
    names = names_of(source)
    right = check(names)
    assert not any("structure" in part.message for part in right.parts)
    if kind != "optimizer":  # as AdamW it is Adam
        assert right.points == right.possible, str(right)
    draw = Random(kind)
    for _ in range(60):
        turn, chosen = iter(reports), draw.randrange(len(reports))

        def forged(*given: Any, turn: Any = turn, chosen: int = chosen) -> sandbox.Answers:
            answers = next(turn)
            if answers is reports[chosen]:
                values = list(answers.values)
                k = draw.randrange(len(values))
                values[k] = broken(values[k], draw)
                answers = replace(answers, values=tuple(values))
            return answers

        monkeypatch.setattr(sandbox, "_run_notebook", forged)
        try:
            result = check(names)
        except StopIteration:  # other optimizers are asked for
            continue
        assert isinstance(result, Result)
        json.dumps(result.to_dict())


def test_a_wrong_structure_is_that_students_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, (source, check) in CHECKS.items():
        monkeypatch.setattr(
            sandbox,
            "_run_notebook",
            lambda names, requests, driver: sandbox.Answers(({"no call": 1},) * len(requests)),
        )
        result = check(names_of(source))
        assert result.points == 0
        assert any("broken answers" in part.message for part in result.parts) or (
            isinstance(result.failure, Failure) and result.failure.kind == "answers"
        ), (kind, str(result))


def test_a_graph_of_a_wrong_structure_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    forged = sandbox.Answers(({"nodes": [], "at": [5]},) * 2)
    monkeypatch.setattr(sandbox, "_run_notebook", lambda *_: forged)
    with refused(UsageError):
        build_engine_graph(names_of(SOLUTION))


def test_a_backward_pass_may_free_the_graph() -> None:
    freeing = (
        "_b = Value.backward\ndef backward(self):\n    order = topological_order(self)\n"
        "    _b(self)\n    for v in order: v.parents = ()\nValue.backward = backward\n"
    )
    result = cgprimer.check_engine(names_of(SOLUTION + freeing), 4)
    assert result.points == result.possible, str(result)


def test_a_step_that_changes_the_number_of_parameters_is_wrong() -> None:
    code = (
        "class SGD:\n    def __init__(self, rate=0.1): self.rate = rate\n"
        "    def step(self, p, g):\n"
        "        for k in range(len(p)): p[k] -= self.rate*g[k]\n        p.append(0.0)\n"
    )
    result = cgprimer.check_optimizer(names_of(code), "sgd")
    assert result.points < result.possible
