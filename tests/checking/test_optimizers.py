"""Optimizers of students: right ones are never accused, and mistakes are named."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.course.checks.check_results import Failure
from cgprimer.course.checks.optimizer_check import (
    OPTIMIZER_NAMES,
    create_skeleton,
    recognize_optimizers,
)
from cgprimer.course.checks.optimizer_mistakes import RULES
from cgprimer.course.checks.optimizer_variants import Variant, list_variants, simulate
from cgprimer.course.checks.optimizer_verdicts import create_test_runs
from cgprimer.training.optimizers import optimizer
from tests.approval import approved
from tests.checking.independent_optimizers import WRONG as INDEPENDENT
from tests.checking.student_optimizers import (
    PLANTED,
    from_catalogue,
    names_of,
    planted,
    right_ones,
    source,
)

HYPER = {
    "beta": 0.8,
    "beta1": 0.8,
    "beta2": 0.95,
    "alpha": 0.9,
    "epsilon": 1e-6,
    "slope": 0.3,
    "rate": 0.07,
}
RIGHT = right_ones()
WRONG = planted()
FROM_CATALOGUE = from_catalogue()


@pytest.mark.parametrize("name", RULES)
def test_the_texts_are_the_rules_of_the_package(name: str) -> None:
    for run in create_test_runs(3):
        rule = optimizer(name, {k: v for k, v in HYPER.items() if k in optimizer(name).hyper})
        rule = rule.but({"weight_decay": 0.0}) if name == "adamw" else rule
        p, state = run.start, rule.start(run.start)
        found = simulate(Variant(RULES[name]), HYPER, run.start, run.gradients)
        for step, gradient in enumerate(run.gradients):
            p, state = rule.update(p, gradient, state, 0.07)
            np.testing.assert_allclose(found[step], p, rtol=1e-13)


@pytest.mark.slow
def test_every_variant_can_be_run() -> None:
    run = create_test_runs()[1]
    for name in RULES:
        for variant in (*list_variants(name, name == "nesterov"), *list_variants(name, False)):
            simulate(variant, HYPER, run.start, run.gradients)


@pytest.mark.slow
def test_no_two_names_stand_for_the_same_numbers() -> None:
    for name in RULES:
        seen: list[tuple[list[Any], Variant]] = []
        for variant in list_variants(name, False):
            found = [simulate(variant, HYPER, r.start, r.gradients) for r in create_test_runs()[:3]]
            for other, before in seen:
                pairs = zip(found, other, strict=True)
                if all(np.allclose(a, b, 1e-9, 1e-13, equal_nan=True) for a, b in pairs):
                    assert {c.name for c in variant.changes} == {c.name for c in before.changes}
            seen.append((found, variant))


def test_right_ones_are_not_accused() -> None:
    assert len(RIGHT) >= 350
    for rule, text in RIGHT[::10]:  # the others: the slow test
        result = cgprimer.check_optimizer(names_of(text), rule)
        assert result.points == result.possible, text
        assert not result.mistakes, text


@pytest.mark.slow
def test_no_right_one_is_accused() -> None:
    for seed, (rule, text) in enumerate(RIGHT * 3):
        result = cgprimer.check_optimizer(names_of(text), rule, seed=seed)
        assert {part.verdict for part in result.parts} == {"right"}, text


def _named(cases: list[tuple[str, str]], name: str) -> float:
    good = 0
    for seed, (rule, text) in enumerate(cases):
        result = cgprimer.check_optimizer(names_of(text), rule, seed=seed)
        assert result.points < result.possible or result.parts[0].verdict == "suspicious", text
        good += result.mistakes == (name,)
    return good / len(cases)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", dict.fromkeys(name for name, *_ in PLANTED))
def test_planted_mistakes_are_named(name: str) -> None:
    few = WRONG[name]
    assert _named(few[:1], name) == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", dict.fromkeys(name for name, *_ in PLANTED))
def test_planted_mistakes_are_named_in_95_of_100(name: str) -> None:
    cases = WRONG[name][:: max(1, len(WRONG[name]) // 20)]
    cases = cases * (20 // len(cases) + 1) if len(cases) < 20 else cases
    assert _named(cases, name) >= 0.95


def _every(name: str) -> list[tuple[str, str]]:
    """At least 20 submissions with a mistake, in all styles that it can have."""
    cases = FROM_CATALOGUE[name][:: max(1, len(FROM_CATALOGUE[name]) // 24)]
    return cases * (20 // len(cases) + 1) if len(cases) < 20 else cases


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", FROM_CATALOGUE)
def test_mistakes_of_the_catalogue_are_named(name: str) -> None:
    assert _named(_every(name)[:1], name) == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", FROM_CATALOGUE)
def test_mistakes_of_the_catalogue_are_named_in_95_of_100(name: str) -> None:
    assert _named(_every(name), name) >= 0.95


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("name", "rule", "text"),
    INDEPENDENT,
    ids=[f"{k}-{one[0]}" for k, one in enumerate(INDEPENDENT)],
)
def test_mistakes_written_by_hand_are_named(name: str, rule: str, text: str) -> None:
    for seed in range(3):
        result = cgprimer.check_optimizer(names_of(text), rule, seed=seed)
        assert result.mistakes == (name,)
        assert result.points < result.possible


def test_each_new_mistake_is_written_in_five_styles() -> None:
    counts = Counter(name for name, *_ in INDEPENDENT)
    assert len(counts) == 5
    assert min(counts.values()) >= 5


DECAYING = """
class {name}:
    def __init__(self, rate=0.1, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.0):
        self.rate, self.b1, self.b2, self.eps, self.wd = rate, beta1, beta2, epsilon, weight_decay
        self.m, self.v, self.t = {{}}, {{}}, 0
    def step(self, parameters, gradients):
        self.t += 1
        for k, g in gradients.items():
            p = parameters[k]
            {before}
            m = self.m[k] = self.b1*self.m.get(k, 0) + (1 - self.b1)*g
            v = self.v[k] = self.b2*self.v.get(k, 0) + (1 - self.b2)*g*g
            p -= self.rate*m/(1 - self.b1**self.t)/((v/(1 - self.b2**self.t))**0.5 + self.eps)
            {behind}
            parameters[k] = p
"""


@pytest.mark.parametrize(
    ("name", "before", "behind", "mistake"),
    [
        ("Adam", "g = g + self.wd*p", "", ""),
        ("Adam", "p -= self.rate*self.wd*p", "", ""),
        ("AdamW", "p -= self.rate*self.wd*p", "", ""),
        ("AdamW", "p *= 1 - self.wd", "", ""),
        ("AdamW", "", "p -= self.rate*self.wd*p", ""),
        ("AdamW", "g = g + self.wd*p", "", "coupled weight decay"),
        ("AdamW", "p += self.rate*self.wd*p", "", "sign of the decay"),
        ("Adam", "g = g - self.wd*p", "", "sign of the decay"),
        ("AdamW", "", "", "decay not applied"),
        ("Adam", "g = g + self.wd*p; p -= self.rate*self.wd*p", "", "decay applied twice"),
    ],
)
def test_weight_decay(name: str, before: str, behind: str, mistake: str) -> None:
    text = DECAYING.format(name=name, before=before or "pass", behind=behind or "pass")
    result = cgprimer.check_optimizer(names_of(text))
    assert result.mistakes == ((mistake,) if mistake else ())
    assert [part.name for part in result.parts][-1] == f"{name.lower()}: weight decay"
    assert result.possible - result.points == (2 if mistake else 0)


def test_weight_decay_is_judged_with_several_parameters_too() -> None:
    first = "p = p*(1 - self.rate*self.wd) if k == min(gradients) else p"
    text = DECAYING.format(name="AdamW", before=first, behind="pass")
    result = cgprimer.check_optimizer(names_of(text))
    assert result.possible - result.points == 2
    assert result.parts[-1].verdict == "wrong"


AHEAD = """
class Nesterov:
    def __init__(self, rate=0.02, beta=0.9):
        self.rate, self.beta, self.v = rate, beta, {{}}
    def step(self, parameters, gradient):
        v = {{k: self.v.get(k, 0.0) for k in parameters}}
        g = gradient({place})
        for k in parameters:
            self.v[k] = self.beta*v[k] - self.rate*g[k]
            parameters[k] += self.v[k]
"""


@pytest.mark.parametrize(
    ("place", "mistake"),
    [
        ("{k: p + self.beta*v[k] for k, p in parameters.items()}", ()),
        ("parameters", ("look-ahead missing",)),
        ("{k: p + v[k] for k, p in parameters.items()}", ("look-ahead by the whole velocity",)),
        ("{k: p - self.beta*v[k] for k, p in parameters.items()}", ("look-ahead backwards",)),
    ],
)
def test_nesterov_may_ask_for_the_gradient_ahead(place: str, mistake: tuple[str, ...]) -> None:
    assert cgprimer.check_optimizer(names_of(AHEAD.format(place=place))).mistakes == mistake


def test_two_mistakes_are_both_named() -> None:
    body = (
        "s['m'] = o.beta1*s['m'] + (1 - o.beta1)*g\ns['v'] = o.beta2*s['v'] + (1 - o.beta2)*g**2\n"
        "p = p + o.rate*s['m']/(sqrt(s['v']) + o.epsilon)"
    )
    text = source("adam", "dict in place", body, "rate=0.1, beta1=0.9, beta2=0.999, epsilon=1e-8")
    assert cgprimer.check_optimizer(names_of(text)).mistakes == ("sign and no bias correction",)


def test_epsilon_where_gradients_are_small() -> None:
    """Adam's first step is the rate times the sign of the gradient up to epsilon (case E9)."""
    for text, first in (("", 0.999000999000999), ("inside", 0.09950371902099893)):
        change = [
            v for v in list_variants("adam", False) if text in "".join(c.name for c in v.changes)
        ]
        hyper = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "rate": 1.0}
        moved = simulate(change[0], hyper, np.zeros(1), np.array([[1e-5]]))
        assert -moved[0, 0] == pytest.approx(first, rel=1e-12)


def test_each_optimizer_of_a_file_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "ann.py"
    adam = source("adam", "dict in place", "p = p", "rate=0.1")
    sgd = "def sgd(parameters, gradients, state, rate=0.1):\n    for k, g in gradients.items():\n"
    sgd += "        parameters[k] -= rate*g\n"
    file.write_text(f"{adam}\n{sgd}\nprint('hello')\n")
    result = cgprimer.check_optimizer(file)
    assert {part.name.split(":")[0] for part in result.parts} == {"adam", "sgd"}
    assert result.mistakes == ("parameters never moved",)
    assert "hello" in result.output
    assert result.points == 10


def test_helpers_are_no_optimizers() -> None:
    names = [("norms", "function"), ("momentum_term", "function"), ("DataManager", "class")]
    names += [("Nadam", "class"), ("adam_update", "function")]
    assert recognize_optimizers(names) == {"adam": "adam_update"}
    assert recognize_optimizers([*names, ("AdamOptimizer", "class")]) == {"adam": "AdamOptimizer"}
    assert recognize_optimizers(
        [("RMS", "class"), ("NAG", "class"), ("GradientDescent", "class")]
    ) == {
        "rmsprop": "RMS",
        "nesterov": "NAG",
        "sgd": "GradientDescent",
    }


def test_a_name_that_is_nearly_right_is_to_be_renamed() -> None:
    result = cgprimer.check_optimizer(
        names_of("class Mometum:\n    def step(self, p, g): pass\ndef norm(x): pass"), "momentum"
    )
    assert result.failure is not None
    approved(result.failure.message, "`Mometum` ... `Momentum`")


def test_errors_have_their_line(tmp_path: Path) -> None:
    file = tmp_path / "bob.py"
    file.write_text("class SGD:\n    def step(self, p, g):\n        return p[0] + nothing\n")
    result = cgprimer.check_optimizer(file)
    assert {part.verdict for part in result.parts} == {"not run"}
    text = "\n".join(result.parts[0].evidence)
    assert "bob.py:3" in text
    assert "nothing" in text


@pytest.mark.parametrize("junk", ["None", "'x'", "{}", "[[]]", "[None]*3", "float('nan')", "p"])
def test_whatever_a_step_returns_the_check_goes_on(junk: str) -> None:
    text = f"class Adam:\n    def step(self, p, g):\n        return {junk}\n"
    result = cgprimer.check_optimizer(names_of(text))
    assert result.points == 0


def test_a_class_or_a_function_is_a_submission() -> None:
    class _Momentum:
        def __init__(self, rate: float = 0.1, beta: float = 0.9) -> None:
            self.rate, self.beta, self.velocity = rate, beta, dict[Any, Any]()

        def step(self, parameters: Any, gradients: Any) -> None:
            for k, g in gradients.items():
                self.velocity[k] = self.beta * self.velocity.get(k, 0) + g
                parameters[k] = parameters[k] - self.rate * self.velocity[k]

    def descend(parameters: Any, gradients: Any, rate: float = 0.1) -> Any:
        return {k: p - rate * gradients[k] for k, p in parameters.items()}

    for result in (
        cgprimer.check_optimizer(_Momentum, "momentum"),
        cgprimer.check_optimizer(_Momentum),
        cgprimer.check_optimizer(descend, "sgd"),
    ):
        assert result.points == result.possible > 0, str(result)


def test_what_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "cal.py"
    file.write_text("def helper(x): return x\n")
    assert isinstance(cgprimer.check_optimizer(file).failure, Failure)
    with pytest.raises(cgprimer.UsageError, match="'adm'"):
        cgprimer.check_optimizer(file, "adm")
    file.write_text("class Adam(:\n")
    result = cgprimer.check_optimizer(file, "adam")
    assert result.mistakes == ("syntax error",)


@pytest.mark.parametrize("name", OPTIMIZER_NAMES)
def test_a_skeleton_runs_and_gets_no_points(name: str) -> None:
    names = names_of(create_skeleton(name))
    assert recognize_optimizers([(one, "class") for one in names])
    result = cgprimer.check_optimizer(names)
    assert result.points == 0
    assert result.parts[0].message == "not written yet"
