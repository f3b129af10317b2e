"""Optimizers of students: right ones are not accused, and mistakes are named."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.course.checks.check_results import Failure, Result
from cgprimer.course.checks.optimizer_check import (
    OPTIMIZER_NAMES,
    create_skeleton,
    recognize_optimizers,
)
from cgprimer.course.checks.optimizer_mistakes import CHANGES, DECAYS, RULES
from cgprimer.course.checks.optimizer_variants import Variant, list_variants, simulate
from cgprimer.course.checks.optimizer_verdicts import create_test_runs
from cgprimer.training.optimizers import optimizer
from tests.approval import approved
from tests.checking.submissions import (
    Submission,
    change,
    compute,
    define_names,
    read_submissions,
    read_tables,
    sample,
)

HYPER = {
    "beta": 0.8, "beta1": 0.8, "beta2": 0.95, "alpha": 0.9, "epsilon": 1e-6, "slope": 0.3,
    "rate": 0.07,
}  # fmt: skip
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))]
TABLES = read_tables("tables.txt")
TEMPLATES, CHANGED = read_submissions("optimizers.txt")
RIGHT = TEMPLATES + [one for one in CHANGED if one.mistake == "right"]
WRONG = [one for one in CHANGED if one.mistake != "right"]
SOURCES = {one.template: one.source for one in TEMPLATES}


@cache
def check(submission: Submission, seed: int = 0) -> Result:
    """Return the result of a submission, which several tests read."""
    return cgprimer.check_optimizer(submission.define(), submission.settings["rule"], seed=seed)


@pytest.mark.parametrize("name", RULES)
def test_the_statements_are_the_rules_of_the_package(name: str) -> None:
    for run in create_test_runs(3):
        rule = optimizer(name, {k: v for k, v in HYPER.items() if k in optimizer(name).hyper})
        rule = rule.but({"weight_decay": 0.0}) if name == "adamw" else rule
        p, state = run.start, rule.start(run.start)
        steps = simulate(Variant(RULES[name]), HYPER, run.start, run.gradients)
        for step, gradient in enumerate(run.gradients):
            p, state = rule.update(p, gradient, state, 0.07)
            np.testing.assert_allclose(steps[step], p, rtol=1e-13)


def test_the_first_gradient_is_positive() -> None:
    """A program that takes roots of gradients fails later, so that its first step is judged."""
    for seed in range(10):
        assert create_test_runs(seed)[0].gradients[0, 0] > 0


@pytest.mark.slow
def test_no_two_names_stand_for_the_same_numbers() -> None:
    for name in RULES:
        seen: list[tuple[list[Any], Variant]] = []
        for variant in list_variants(name, False):
            steps = [simulate(variant, HYPER, r.start, r.gradients) for r in create_test_runs()[:3]]
            for other, before in seen:
                pairs = zip(steps, other, strict=True)
                if all(np.allclose(a, b, 1e-9, 1e-13, equal_nan=True) for a, b in pairs):
                    assert {c.name for c in variant.changes} == {c.name for c in before.changes}
            seen.append((steps, variant))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("submission", RIGHT, ids=str)
def test_right_optimizers_are_not_accused(submission: Submission, seed: int) -> None:
    result = check(submission, seed)
    assert result.points == result.possible, str(result)
    assert not result.mistakes


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("submission", sample(WRONG, 5), ids=str)
def test_a_mistake_is_named(submission: Submission, seed: int) -> None:
    result = check(submission, seed)
    assert result.mistakes == (submission.mistake,)
    assert (result.points < result.possible) is (submission.mistake != "damped by 1 - beta")
    wrong = [part for part in result.parts if part.mistake]
    assert all(submission.note in part.message for part in wrong)


@pytest.mark.slow
def test_every_mistake_of_the_catalogue_has_a_submission() -> None:
    messages = {(s.mistake, p.message) for s in WRONG for p in check(s).parts if p.mistake}
    refined = ("state not updated", "state reset every step", "state not used")
    for one in CHANGES:
        names = refined if one.name == "state not kept" else (one.name,)
        assert one.is_convention or messages & {(n, one.message) for n in names}, one.name
    names = {name for name, _ in messages}
    assert {decay.name for decay in DECAYS if not decay.kind} <= names


@pytest.mark.parametrize("template", ["decay", "coupled"])
def test_weight_decay_costs_only_its_own_part(template: str) -> None:
    wrong = [one for one in WRONG if one.template == template]
    assert len(wrong) >= 3
    for submission in wrong:
        result = check(submission)
        assert result.parts[-1].name.endswith(": weight decay")
        assert result.possible - result.points == 2


@pytest.mark.parametrize("which", ["min", "max"])
def test_weight_decay_is_judged_with_several_parameters(which: str) -> None:
    """A decay of the first parameter only is right where there is one parameter."""
    only = f"-            p -= self.rate*self.wd*p\n+            if k == {which}(gradients): "
    result = cgprimer.check_optimizer(
        define_names(change(SOURCES["decay"], only + "p -= self.rate*self.wd*p\n"))
    )
    assert result.possible - result.points == 2
    assert result.parts[-1].verdict == "wrong"


def test_epsilon_where_gradients_are_small() -> None:
    """Adam's first step is the rate times the sign of the gradient up to epsilon (case E9)."""
    for text, first in (("", 0.999000999000999), ("inside", 0.09950371902099893)):
        variants = list_variants("adam", False)
        variant = next(v for v in variants if text in "".join(c.name for c in v.changes))
        hyper = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "rate": 1.0}
        moved = simulate(variant, hyper, np.zeros(1), np.array([[1e-5]]))
        assert -moved[0, 0] == pytest.approx(first, rel=1e-12)


def test_each_optimizer_of_a_file_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "ann.py"
    adam = change(SOURCES["adam"], "-parameters[k] -=\n+p =\n")
    file.write_text(f"{adam}\n{SOURCES['sgd']}\nprint('hello')\n")
    result = cgprimer.check_optimizer(file)
    assert {part.name.split(":")[0] for part in result.parts} == {"adam", "sgd"}
    assert result.mistakes == ("parameters never moved",)
    assert "hello" in result.output
    assert result.points == 10


@pytest.mark.parametrize(("names", "optimizers"), TABLES["names of optimizers"])
def test_optimizers_are_recognized_by_their_names(names: str, optimizers: str) -> None:
    kinds = [(n[:-2], "function") if n.endswith("()") else (n, "class") for n in names.split()]
    assert recognize_optimizers(kinds) == compute(optimizers)


def test_a_similar_name_is_to_be_renamed() -> None:
    source = "class Mometum:\n    def step(self, p, g): pass\ndef norm(x): pass"
    result = cgprimer.check_optimizer(define_names(source), "momentum")
    assert result.failure is not None
    approved(result.failure.message, "`Mometum` ... `Momentum`")


def test_files_that_fail(tmp_path: Path) -> None:
    file = tmp_path / "bob.py"
    file.write_text("class SGD:\n    def step(self, p, g):\n        return p[0] + nothing\n")
    result = cgprimer.check_optimizer(file)
    assert {part.verdict for part in result.parts} == {"not run"}
    text = "\n".join(result.parts[0].evidence)
    assert "bob.py:3" in text
    assert "nothing" in text
    file.write_text("def helper(x): return x\n")
    assert isinstance(cgprimer.check_optimizer(file).failure, Failure)
    with pytest.raises(cgprimer.UsageError, match="'adm'"):
        cgprimer.check_optimizer(file, "adm")
    file.write_text("class Adam(:\n")
    assert cgprimer.check_optimizer(file, "adam").mistakes == ("syntax error",)


def test_any_result_of_a_step_is_judged() -> None:
    for junk in ("None", "'x'", "{}", "[[]]", "[None]*3", "float('nan')", "p"):
        text = f"class Adam:\n    def step(self, p, g):\n        return {junk}\n"
        assert cgprimer.check_optimizer(define_names(text)).points == 0, junk


@pytest.mark.parametrize(("template", "name"), [("momentum", "Momentum"), ("function", "sgd")])
def test_a_class_or_a_function_is_a_submission(template: str, name: str) -> None:
    submission = define_names(SOURCES[template])[name]
    for rule in ({"momentum": None, "sgd": "sgd"}[name.lower()], name.lower()):
        result = cgprimer.check_optimizer(submission, rule)
        assert result.points == result.possible > 0, str(result)


@pytest.mark.parametrize("name", OPTIMIZER_NAMES)
def test_a_skeleton_runs_and_gets_no_points(name: str) -> None:
    names = define_names(create_skeleton(name))
    assert recognize_optimizers([(one, "class") for one in names])
    result = cgprimer.check_optimizer(names)
    assert result.points == 0
    assert result.parts[0].message == "not written yet"
