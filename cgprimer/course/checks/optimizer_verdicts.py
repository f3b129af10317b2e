"""Verdicts on students' optimizers: find the rule or mistake that explains their updates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from cgprimer.course.checks.check_results import Failure, Part, show_position
from cgprimer.course.checks.optimizer_mistakes import DECAYS
from cgprimer.course.checks.optimizer_variants import Variant, list_variants, simulate
from cgprimer.course.checks.verdicts import accept, assign_points, postpone, reject, suspect
from cgprimer.errors import Source
from cgprimer.training.optimizers import optimizer as find_optimizer

TEST_SETTINGS = {
    "rate": 0.07, "beta": 0.8, "beta1": 0.8, "beta2": 0.95, "alpha": 0.9, "epsilon": 1e-6,
    "weight_decay": 0.0,
}  # fmt: skip
_COMMON_VALUES = {  # values in books and libraries, for hyperparameters that are not arguments
    "rate": (0.1, 0.01, 0.001, 0.05),
    "beta": (0.9, 0.99, 0.5),
    "beta1": (0.9,),
    "beta2": (0.999, 0.99),
    "alpha": (0.9, 0.99, 0.999),
    "epsilon": (1e-8, 1e-7, 1e-10, 1e-6),
}
SLOPE = 0.3
PARTS = {"first step": 2, "more steps": 3, "several parameters": 3, "small gradients": 2}
DECAY, DECAY_POINTS = 0.1, 2


@dataclass(frozen=True)
class GradientSequence:
    """The initial parameters and the gradients for a test run of an optimizer.

    Attributes:
        start: the initial parameters; shape (parameters,).
        gradients: shape (updates, parameters).
    """

    start: Any
    gradients: Any

    def to_json(self) -> dict[str, Any]:
        """Return the gradient sequence as a JSON-compatible dictionary."""
        return {"start": self.start.tolist(), "gradients": self.gradients.tolist()}


def create_test_runs(seed: int = 0) -> tuple[GradientSequence, ...]:
    """Create the gradient sequences on which students' optimizers are run.

    Returns:
        Sequences for one parameter, for three, for three with small or zero gradients, the second
        sequence again, and a sequence that equals it in the last gradients only.
    """
    draw = np.random.default_rng(seed)
    signs = draw.choice([-1.0, 1.0], (7, 3))
    signs[0, 0] = 1.0  # roots of gradients fail, but not in the first update
    one = draw.uniform(0.2, 1.5, (6, 1)) * signs[:6, :1]
    three = draw.uniform(0.2, 1.5, (6, 3)) * signs[:6] * np.array([1.0, 0.15, 6.0])
    small = 10 ** draw.uniform(-8, -3, (7, 3)) * signs
    small[:2, 1] = 0
    several = GradientSequence(draw.uniform(-2, 2, 3), three)
    other = GradientSequence(several.start, np.concatenate([three[:-1] * 0.7, three[-1:]]))
    return (
        GradientSequence(draw.uniform(-2, 2, 1), one),
        several,
        GradientSequence(np.zeros(3), small),
        several,
        other,
    )


@dataclass(frozen=True)
class _Match:
    """The comparison of a variant of an update rule with the runs of a student's optimizer.

    Attributes:
        variant: the variant.
        hyper: values of all hyperparameters.
        agrees: whether each run of the student has the updates of the variant.
        ignored: name of an argument that the student does not use; empty for none.
    """

    variant: Variant
    hyper: Mapping[str, float]
    agrees: tuple[bool, ...]
    ignored: str = ""


def judge_optimizer(
    rule: str, tests: Sequence[GradientSequence], plain: Any, with_decay: Any, source: Source
) -> list[Part]:
    """Return the verdict on each part of an optimizer, based on the reports of the driver.

    Args:
        rule: name of the optimizer.
        tests: the gradient sequences.
        plain: report without weight decay.
        with_decay: report with weight decay.
        source: the submission.
    """
    if isinstance(plain, Failure):
        verdicts = [postpone(str(plain))] * len(PARTS)
    elif not plain["moved"] and not plain["runs"][0]["error"].get("arithmetic"):
        verdicts = _judge_unmoved(plain["runs"][0], plain["tries"], source)
    else:
        verdicts = _judge_runs(rule, tests, plain, with_decay, source)
    names = {**PARTS, "weight decay": DECAY_POINTS}.items()
    return [assign_points(one, *labels) for one, labels in zip(verdicts, names, strict=False)]


def _judge_runs(
    rule: str, tests: Sequence[GradientSequence], plain: Any, with_decay: Any, source: Source
) -> list[Part]:
    """Return the verdict on each part of an optimizer that changes its parameters."""
    runs, ahead = plain["runs"], plain["form"].startswith("gradient function")
    right_one, match = _explain_runs(rule, tests, plain, ahead)
    name, message = _name_mistake(match, runs, right_one)
    first = _are_equal(runs[0]["steps"][:1], _simulate_match(right_one, tests[0])[:1], tests[0])
    one, several, small, again, _ = right_one.agrees
    # Whether each part is correct, and the run that shows the mistake.
    passed = (
        (first and bool(runs[0]["steps"]), 0), (one, 0), (several and again, 3 if several else 1),
        (small, 2),
    )  # fmt: skip
    parts = []
    for good, run in passed:
        if good:
            parts.append(accept(_describe_conventions(right_one, plain)))
        elif match and _is_disputed(match):
            parts.append(suspect(name, message))
        else:
            evidence = _describe_first_difference(
                runs[run], _simulate_match(right_one, tests[run]), tests[run]
            )
            error = runs[run]["error"]
            if error:
                evidence = (error["message"], *_show_line(source, error))
            parts.append(reject(name, message, *evidence))
    decay = _judge_weight_decay(rule, tests, with_decay, match or right_one, ahead)
    return [*parts, decay] if decay else parts


def _show_line(source: Source, error: Mapping[str, Any]) -> list[str]:
    """Return the line of the submission at which an error occurred, with its position."""
    return show_position(source, error["line"]).splitlines()


def _judge_unmoved(run: Mapping[str, Any], tries: Mapping[str, str], source: Source) -> list[Part]:
    """Return the verdict on each part of an optimizer that does not change its parameters."""
    error = run["error"]
    if not error or run["steps"]:
        message = "step must change the parameters in place or return new parameters"
        return [reject("parameters never moved", message)] * len(PARTS)
    evidence, notes = _show_line(source, error), error["message"]
    if re.match(
        "(Type|Key|Index|Attribute)Error", notes
    ):  # the form of the arguments can be the cause
        others = [f"as {form}: {why}" for form, why in tries.items() if why != notes]
        evidence = (evidence + others)[:3]
    notes = "not written yet" if notes.startswith("NotImplementedError") else notes
    return [postpone(notes, *evidence)] + [postpone(notes)] * (len(PARTS) - 1)


def _explain_runs(
    rule: str, tests: Sequence[GradientSequence], plain: Mapping[str, Any], ahead: bool
) -> tuple[_Match, _Match | None]:
    """Return the best correct variant, and the wrong variant that explains all runs, or None."""
    runs = plain["runs"]

    def compare_variants(
        settings: Sequence[Mapping[str, float]], n_changes: int, ignored: str = ""
    ) -> Iterator[_Match]:
        """Yield a match for every variant with every setting of the hyperparameters."""
        for variant in list_variants(rule, ahead, n_changes):
            for hyper in settings:
                yield _compare_variant(variant, hyper, tests, runs, ignored)

    settings = _list_settings(rule, plain)
    rights = []
    for one in compare_variants(settings, 1):  # conventions are first
        if one.variant.is_right:
            rights.append(one)
        if all(one.agrees):
            match = one
            break
    else:
        match = None
    if match and match.variant.is_right:
        return match, None
    nearest = max(rights, key=lambda one: sum(one.agrees))
    for name in plain["taken"]:  # arguments that the submission ignores
        if match or name not in _COMMON_VALUES:
            continue
        values = (plain["defaults"].get(name), *_COMMON_VALUES[name])
        values = tuple(value for value in values if value is not None)
        other = [{**one, name: v} for one in settings[:4] for v in values if v != one[name]]
        unused = (one for one in compare_variants(other, 1, name) if one.variant.is_right)
        match = next((one for one in unused if all(one.agrees)), None)
    if not match and len(settings) <= 4:
        match = next((one for one in compare_variants(settings, 2) if all(one.agrees)), None)
    return nearest, match


def _list_settings(rule: str, plain: Mapping[str, Any]) -> list[dict[str, float]]:
    """List the possible combinations of hyperparameter values in a student's optimizer."""
    names = ("rate", *(n for n in find_optimizer(rule).hyper if n != "weight_decay"))
    choices: list[tuple[float, ...]] = []
    for name in names:
        default = plain["defaults"].get(name)
        choices_of_name = (
            (TEST_SETTINGS[name],)
            if name in plain["taken"]
            else (default,)
            if default is not None
            else ()
        )
        choices.append(choices_of_name or _COMMON_VALUES[name])
    fixed = {"slope": SLOPE, "wd": DECAY}
    return [dict(zip(names, values, strict=True)) | fixed for values in product(*choices)]


def _compare_variant(
    variant: Variant,
    hyper: Mapping[str, float],
    tests: Sequence[GradientSequence],
    runs: Sequence[Mapping[str, Any]],
    ignored: str = "",
) -> _Match:
    """Compare a simulated variant with each run of a student's optimizer."""
    match = _Match(variant, hyper, (), ignored)
    agrees: list[bool] = []
    if not variant.is_right:  # the first update excludes most variants
        one, run = runs[0], GradientSequence(tests[0].start, tests[0].gradients[:1])
        error = one["error"] if not one["steps"] else None
        if not _are_equal(one["steps"][:1], _simulate_match(match, run), run, error):
            return replace(match, agrees=(False,) * len(tests))
    for one, run in zip(runs, tests, strict=True):
        wanted = (
            not agrees or agrees[-1] or variant.is_right
        )  # of mistakes all or none is asked for
        agrees.append(
            wanted and _are_equal(one["steps"], _simulate_match(match, run), run, one["error"])
        )
    return replace(match, agrees=tuple(agrees))


def _simulate_match(match: _Match, run: GradientSequence) -> Any:
    """Simulate the update rule of a match on a gradient sequence."""
    return simulate(match.variant, match.hyper, run.start, run.gradients)


def _are_equal(
    steps: Sequence[Sequence[float]],
    expected: Any,
    run: GradientSequence,
    error: Mapping[str, Any] | None = None,
) -> bool:
    """Return whether updates equal the expected updates up to rounding errors."""
    with np.errstate(all="ignore"):
        wild = ~np.isfinite(expected).all(axis=1)
        end = int(np.argmax(wild)) if wild.any() else len(expected)
        got = np.array(steps, dtype=float).reshape(len(steps), len(run.start))
        mad = ~np.isfinite(got).all(axis=1)
        stop = int(np.argmax(mad)) if mad.any() else len(got)
        if error and not error["arithmetic"]:
            return False
        if stop != end:
            return False
        moved = np.abs(expected[:end] - run.start).max(axis=0, initial=0)
        near = 1e-8 * moved + 1e-14 * (np.abs(run.start) + moved)
        return bool((np.abs(got[:end] - expected[:end]) <= near).all())


def _describe_first_difference(
    run: Mapping[str, Any], expected: Any, test: GradientSequence
) -> tuple[str, ...]:
    """Describe the first wrong update of a run, without the correct value."""
    for k, row in enumerate(run["steps"]):
        for j, value in enumerate(row):
            single = GradientSequence(test.start[j : j + 1], test.gradients[:, j : j + 1])
            if not _are_equal([[value]], expected[k : k + 1, j : j + 1], single):
                before = test.start[j] if k == 0 else run["steps"][k - 1][j]
                which = f", parameter {j + 1} of {len(row)}" if len(row) > 1 else ""
                gradient = test.gradients[k, j]
                return (
                    f"step {k + 1}{which}: gradient {gradient:.4g},"
                    f" moved from {before:.6g} to {value:.6g}",
                )
    return ()


def _is_disputed(match: _Match) -> bool:
    """Return whether a variant differs only in conventions on which textbooks disagree."""
    return not match.ignored and all(
        one.is_disputed or one.is_convention for one in match.variant.changes
    )


def _name_mistake(
    match: _Match | None, runs: Sequence[Mapping[str, Any]], nearest: _Match
) -> tuple[str, str]:
    """Return the name of an optimizer mistake and a sentence that explains it, or empty strings."""
    if runs[1]["steps"] != runs[3]["steps"] and not np.array_equal(
        runs[1]["steps"], runs[3]["steps"], equal_nan=True
    ):
        return "state shared between optimizers", (
            "a new optimizer starts with the state of another one: create the state in __init__,"
            " not in the class, a default argument or the module"
        )
    if match is None:
        return "", "" if any(nearest.agrees) else "no known mistake explains these values"
    if match.ignored:
        return f"{match.ignored} ignored", f"the argument {match.ignored} is not used"
    changes = [change for change in match.variant.changes if not change.is_convention]
    names = [_refine_state_mistake(change.name, runs) for change in changes]
    return " and ".join(dict.fromkeys(names)), "; ".join(
        dict.fromkeys(change.message for change in changes)
    )


def _refine_state_mistake(name: str, runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the name of a mistake in the state: never updated, always reset, or unused."""
    if name != "state not kept":
        return name
    if not runs[1]["changed"]:
        return "state not updated"
    same = runs[1]["changed"] == runs[4]["changed"]
    return "state reset every step" if same else "state not used"


def _describe_conventions(nearest: _Match, plain: Mapping[str, Any]) -> str:
    """Describe the conventions that an optimizer follows, and the format of its arguments."""
    notes = [change.message for change in nearest.variant.changes]
    if plain["form"] in ("dict of arrays", "list of arrays", "number"):
        notes.append(f"the optimizer works on a {plain['form']}")
    return "; ".join(notes)


def _judge_weight_decay(
    rule: str, tests: Sequence[GradientSequence], answer: Any, best: _Match, ahead: bool
) -> Part | None:
    """Return the verdict on weight decay, given the match for the runs without weight decay."""
    if isinstance(answer, Failure) or "weight_decay" not in answer["taken"]:
        message = "the argument weight_decay is missing"
        return reject("no weight decay", message) if rule == "adamw" else None
    runs = answer["runs"]

    def explains(variant: Variant) -> bool:
        """Return whether a variant reproduces the first two runs with weight decay."""
        return all(_compare_variant(variant, best.hyper, tests, runs).agrees[:2])

    for decay in () if ahead else DECAYS:
        if not explains(replace(best.variant, text=decay.apply(best.variant.text))):
            continue
        if not decay.kind:
            return reject(decay.name, decay.message)
        if decay.kind == "coupled" and rule == "adamw":
            hint = f"{decay.message}; in AdamW, the parameters shrink separately"
            return reject("coupled weight decay", hint)
        return accept(f"{decay.name}: {decay.message}")
    if explains(best.variant):
        return reject("decay not applied", "the argument weight_decay is not used")
    message = "no known form of weight decay explains these values"
    return reject(
        "", message, *_describe_first_difference(runs[0], _simulate_match(best, tests[0]), tests[0])
    )
