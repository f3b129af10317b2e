"""What students' optimizers did, step by step, and which rule or mistake does the same."""

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
from cgprimer.training.optimizers import optimizer as rule_of

GIVEN = {
    "rate": 0.07, "beta": 0.8, "beta1": 0.8, "beta2": 0.95, "alpha": 0.9, "epsilon": 1e-6,
    "weight_decay": 0.0,
}  # fmt: skip
_TYPICAL = {  # of what is no argument: the values that stand in books and libraries
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
class Run:
    """Gradients that an optimizer is given: ``start`` (parameters,), ``gradients`` (steps, ...)."""

    start: Any
    gradients: Any

    def asked(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"start": self.start.tolist(), "gradients": self.gradients.tolist()}


def runs(seed: int = 0) -> tuple[Run, ...]:
    """One parameter; three; three with small gradients, among them zeros; the three again; and
    three whose last gradients alone are the same.
    """
    draw = np.random.default_rng(seed)
    signs = draw.choice([-1.0, 1.0], (7, 3))
    signs[0, 0] = 1.0  # what takes roots of gradients fails, but not in the first step
    one = draw.uniform(0.2, 1.5, (6, 1)) * signs[:6, :1]
    three = draw.uniform(0.2, 1.5, (6, 3)) * signs[:6] * np.array([1.0, 0.15, 6.0])
    small = 10 ** draw.uniform(-8, -3, (7, 3)) * signs
    small[:2, 1] = 0
    several = Run(draw.uniform(-2, 2, 3), three)
    other = Run(several.start, np.concatenate([three[:-1] * 0.7, three[-1:]]))
    return Run(draw.uniform(-2, 2, 1), one), several, Run(np.zeros(3), small), several, other


@dataclass(frozen=True)
class _Match:
    """A variant with its settings, and the runs in which it gives the student's numbers."""

    variant: Variant
    hyper: Mapping[str, float]
    agrees: tuple[bool, ...]
    ignored: str = ""


def parts_of(
    rule: str, tests: Sequence[Run], plain: Any, with_decay: Any, source: Source
) -> list[Part]:
    """What was reached, part by part, from what the driver reported."""
    if isinstance(plain, Failure):
        verdicts = [postpone(str(plain))] * len(PARTS)
    elif not plain["moved"] and not plain["runs"][0]["error"].get("arithmetic"):
        verdicts = _unmoved(plain["runs"][0], plain["tries"], source)
    else:
        verdicts = _moved(rule, tests, plain, with_decay, source)
    names = {**PARTS, "weight decay": DECAY_POINTS}.items()
    return [assign_points(one, *named) for one, named in zip(verdicts, names, strict=False)]


def _moved(
    rule: str, tests: Sequence[Run], plain: Any, with_decay: Any, source: Source
) -> list[Part]:
    did, ahead = plain["runs"], plain["form"].startswith("gradient function")
    right_one, found = _explained(rule, tests, plain, ahead)
    name, says = _named(found, did, right_one)
    first = _agree(did[0]["steps"][:1], _simulated(right_one, tests[0])[:1], tests[0])
    one, several, small, again, _ = right_one.agrees
    # Of each part whether it is right, and the run that shows what is not.
    passed = (
        (first and bool(did[0]["steps"]), 0), (one, 0), (several and again, 3 if several else 1),
        (small, 2),
    )  # fmt: skip
    parts = []
    for good, run in passed:
        if good:
            parts.append(accept(_conventions(right_one, plain)))
        elif found and _doubtful(found):
            parts.append(suspect(name, says))
        else:
            evidence = _where(did[run], _simulated(right_one, tests[run]), tests[run])
            error = did[run]["error"]
            if error:
                evidence = (error["message"], *_line(source, error))
            parts.append(reject(name, says, *evidence))
    decay = _decay(rule, tests, with_decay, found or right_one, ahead)
    return [*parts, decay] if decay else parts


def _line(source: Source, error: Mapping[str, Any]) -> list[str]:
    return show_position(source, error["line"]).splitlines()


def _unmoved(run: Mapping[str, Any], tries: Mapping[str, str], source: Source) -> list[Part]:
    error = run["error"]
    if not error or run["steps"]:
        says = "step neither changes the parameters in place nor returns new ones"
        return [reject("parameters never moved", says)] * len(PARTS)
    evidence, said = _line(source, error), error["message"]
    if re.match("(Type|Key|Index|Attribute)Error", said):  # perhaps of the form alone
        others = [f"as {form}: {why}" for form, why in tries.items() if why != said]
        evidence = (evidence + others)[:3]
    said = "not written yet" if said.startswith("NotImplementedError") else said
    return [postpone(said, *evidence)] + [postpone(said)] * (len(PARTS) - 1)


def _explained(
    rule: str, tests: Sequence[Run], plain: Mapping[str, Any], ahead: bool
) -> tuple[_Match, _Match | None]:
    """The right rule that comes nearest, and the variant that gives all numbers, if any does."""
    did = plain["runs"]

    def matches(
        settings: Sequence[Mapping[str, float]], most: int, ignored: str = ""
    ) -> Iterator[_Match]:
        for variant in list_variants(rule, ahead, most):
            for hyper in settings:
                yield _match(variant, hyper, tests, did, ignored)

    settings = _settings(rule, plain)
    rights = []
    for one in matches(settings, 1):  # conventions come first
        if one.variant.is_right:
            rights.append(one)
        if all(one.agrees):
            found = one
            break
    else:
        found = None
    if found and found.variant.is_right:
        return found, None
    nearest = max(rights, key=lambda one: sum(one.agrees))
    for name in plain["taken"]:  # arguments that are taken and not used
        if found or name not in _TYPICAL:
            continue
        values = (plain["defaults"].get(name), *_TYPICAL[name])
        values = tuple(value for value in values if value is not None)
        other = [{**one, name: v} for one in settings[:4] for v in values if v != one[name]]
        unused = (one for one in matches(other, 1, name) if one.variant.is_right)
        found = next((one for one in unused if all(one.agrees)), None)
    if not found and len(settings) <= 4:
        found = next((one for one in matches(settings, 2) if all(one.agrees)), None)
    return nearest, found


def _settings(rule: str, plain: Mapping[str, Any]) -> list[dict[str, float]]:
    """Numbers for all names; several where a submission has one of its own that nobody can see."""
    names = ("rate", *(n for n in rule_of(rule).hyper if n != "weight_decay"))
    choices: list[tuple[float, ...]] = []
    for name in names:
        own = plain["defaults"].get(name)
        given = (GIVEN[name],) if name in plain["taken"] else (own,) if own is not None else ()
        choices.append(given or _TYPICAL[name])
    fixed = {"slope": SLOPE, "wd": DECAY}
    return [dict(zip(names, values, strict=True)) | fixed for values in product(*choices)]


def _match(
    variant: Variant,
    hyper: Mapping[str, float],
    tests: Sequence[Run],
    did: Sequence[Mapping[str, Any]],
    ignored: str = "",
) -> _Match:
    found = _Match(variant, hyper, (), ignored)
    agrees: list[bool] = []
    if not variant.is_right:  # most are refuted by the first step
        one, run = did[0], Run(tests[0].start, tests[0].gradients[:1])
        error = one["error"] if not one["steps"] else None
        if not _agree(one["steps"][:1], _simulated(found, run), run, error):
            return replace(found, agrees=(False,) * len(tests))
    for one, run in zip(did, tests, strict=True):
        wanted = (
            not agrees or agrees[-1] or variant.is_right
        )  # of mistakes all or none is asked for
        agrees.append(wanted and _agree(one["steps"], _simulated(found, run), run, one["error"]))
    return replace(found, agrees=tuple(agrees))


def _simulated(match: _Match, run: Run) -> Any:
    return simulate(match.variant, match.hyper, run.start, run.gradients)


def _agree(
    steps: Sequence[Sequence[float]],
    expected: Any,
    run: Run,
    error: Mapping[str, Any] | None = None,
) -> bool:
    """Whether the numbers are the same but for rounding; an error of arithmetic is a nan."""
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


def _where(run: Mapping[str, Any], expected: Any, test: Run) -> tuple[str, ...]:
    """The first step that is not right, without a right number."""
    for k, row in enumerate(run["steps"]):
        for j, value in enumerate(row):
            single = Run(test.start[j : j + 1], test.gradients[:, j : j + 1])
            if not _agree([[value]], expected[k : k + 1, j : j + 1], single):
                before = test.start[j] if k == 0 else run["steps"][k - 1][j]
                which = f", parameter {j + 1} of {len(row)}" if len(row) > 1 else ""
                gradient = test.gradients[k, j]
                return (
                    f"step {k + 1}{which}: gradient {gradient:.4g},"
                    f" moved from {before:.6g} to {value:.6g}",
                )
    return ()


def _doubtful(found: _Match) -> bool:
    return not found.ignored and all(
        one.is_disputed or one.is_convention for one in found.variant.changes
    )


def _named(
    found: _Match | None, did: Sequence[Mapping[str, Any]], nearest: _Match
) -> tuple[str, str]:
    """The name of what is wrong, and a sentence."""
    if did[1]["steps"] != did[3]["steps"] and not np.array_equal(
        did[1]["steps"], did[3]["steps"], equal_nan=True
    ):
        return "state shared between optimizers", (
            "a new optimizer begins with what another has left: the state belongs into __init__,"
            " not into the class, a default argument or the module"
        )
    if found is None:
        return "", "" if any(
            nearest.agrees
        ) else "the numbers are those of no mistake that is known here"
    if found.ignored:
        return f"{found.ignored} ignored", f"the argument {found.ignored} is taken and not used"
    changes = [change for change in found.variant.changes if not change.is_convention]
    names = [_kept(change.name, did) for change in changes]
    return " and ".join(dict.fromkeys(names)), "; ".join(
        dict.fromkeys(change.message for change in changes)
    )


def _kept(name: str, did: Sequence[Mapping[str, Any]]) -> str:
    """State that is not kept: never stored, thrown away, or, if it tells of more, unused."""
    if name != "state not kept":
        return name
    if not did[1]["changed"]:
        return "state not updated"
    same = did[1]["changed"] == did[4]["changed"]
    return "state reset every step" if same else "state not used"


def _conventions(nearest: _Match, plain: Mapping[str, Any]) -> str:
    said = [change.message for change in nearest.variant.changes]
    if plain["form"] in ("dict of arrays", "list of arrays", "number"):
        said.append(f"it works on a {plain['form']}")
    return "; ".join(said)


def _decay(rule: str, tests: Sequence[Run], answer: Any, best: _Match, ahead: bool) -> Part | None:
    """Weight decay, judged by what the optimizer does without it."""
    if isinstance(answer, Failure) or "weight_decay" not in answer["taken"]:
        says = "there is no argument weight_decay"
        return reject("no weight decay", says) if rule == "adamw" else None
    did = answer["runs"]

    def fits(variant: Variant) -> bool:
        return all(_match(variant, best.hyper, tests, did).agrees[:2])

    for decay in () if ahead else DECAYS:
        if not fits(replace(best.variant, text=decay.apply(best.variant.text))):
            continue
        if not decay.kind:
            return reject(decay.name, decay.message)
        if decay.kind == "coupled" and rule == "adamw":
            hint = f"{decay.message}; in AdamW, the parameters shrink separately"
            return reject("coupled weight decay", hint)
        return accept(f"{decay.name}: {decay.message}")
    if fits(best.variant):
        return reject("decay not applied", "the argument weight_decay is taken and not used")
    says = "the numbers are those of no way of weight decay that is known here"
    return reject("", says, *_where(did[0], _simulated(best, tests[0]), tests[0]))
