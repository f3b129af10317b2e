"""Optimizers that students wrote: what they did in a few steps, and which rule does the same.

A submission is asked for steps along given gradients. The same steps are done by the right rule,
by the conventions that there are, and by the mistakes that are usual
(:mod:`cgprimer.checking.optimizer_variants`): what gives the student's numbers is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from cgprimer.checking import optimizer_driver
from cgprimer.checking.optimizer_variants import DECAYS, Variant, decayed, simulate, variants
from cgprimer.checking.results import Failure, Part, Result, not_run, place
from cgprimer.checking.sandbox import Answers, Limits, Submission, run_submission
from cgprimer.errors import Source, UsageError, name_hint, plural
from cgprimer.training.optimizers import optimizer as rule_of

#: The optimizers, with the parts of names by which a submission's are recognised.
CALLED = {
    "adamw": ("adamw",),
    "adam": ("adam",),
    "rmsprop": ("rmsprop", "rms"),
    "adagrad": ("adagrad",),
    "nesterov": ("nesterov", "nag"),
    "momentum": ("momentum", "heavyball"),
    "sgd": ("sgd", "gradientdescent"),
}
_RATES = ("rate", "learningrate", "lr", "eta", "stepsize", "step")
_BETAS = ("beta", "momentum", "mu", "gamma", "rho", "beta1", "b")
_AVERAGES = ("alpha", "rho", "decayrate", "beta", "beta2", "gamma", "decay", "smoothing", "b")
_DECAYS = ("weightdecay", "wd", "lambda", "lam", "l2", "decay", "regularization", "reg")
_EPSILON = ("epsilon", "eps", "delta", "e")
_GIVEN = {
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
_SLOPE = 0.3
_PARTS = {"first step": 2, "more steps": 3, "several parameters": 3, "small gradients": 2}
_DECAY = 0.1


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


def check_optimizer(
    submission: Submission,
    optimizer: str | None = None,
    *,
    seed: int = 0,
    limits: Limits | None = None,
) -> Result:
    """Check optimizers that a student wrote, and name what is wrong with them.

    A submission has a class for each optimizer, ``class Adam`` with ``__init__(self, rate=...,
    beta1=..., ...)`` and ``step(self, parameters, gradients)``; or a function
    ``adam(parameters, gradients, state, rate=..., ...)`` whose ``state`` is a dictionary, empty
    before the first step. Parameters and gradients are dictionaries or lists of numbers, or of
    arrays; a step changes them in place or returns new ones. A step of Nesterov's may take a
    function of parameters in the place of gradients.

    Args:
        submission: a file, or the ``globals()`` of a notebook.
        optimizer: one of ``sgd``, ``momentum``, ``nesterov``, ``adagrad``, ``rmsprop``, ``adam``,
            ``adamw``; otherwise all that are recognised by their names.
        seed: of the gradients.
        limits: what the submission may use.

    Returns:
        For each optimizer its parts: the first step, more steps, several parameters, small
        gradients, and weight decay if it has an argument for it.

    Raises:
        UsageError: there is no such optimizer, or no such file.

    >>> class Momentum:
    ...     def __init__(self, rate=0.1, beta=0.9):
    ...         self.rate, self.beta, self.v = rate, beta, 0.0
    ...     def step(self, parameters, gradients):
    ...         for k, g in enumerate(gradients):
    ...             self.v = self.beta*self.v + g
    ...             parameters[k] -= self.rate*self.v
    >>> result = check_optimizer({"Momentum": Momentum, "__name__": __name__})
    >>> [part.verdict for part in result.parts], result.mistakes
    (['right', 'right', 'wrong', 'wrong'], ('state shared between parameters',))
    """
    if optimizer is not None and optimizer not in CALLED:
        hint = name_hint(optimizer, CALLED)
        raise UsageError(f"there is no optimizer {optimizer!r} to check", hint=hint)
    title = Path(submission).name if isinstance(submission, str | Path) else "notebook"
    driver = optimizer_driver.__file__
    there = run_submission(submission, [{"call": "listed", "arguments": []}], limits, driver=driver)
    asked = f"{optimizer or 'optimizer'}: "
    worth = {asked + name: float(points) for name, points in _PARTS.items()}
    if isinstance(there.values[0], Failure):
        return _with(not_run("optimizer", title, worth, there.values[0]), there)
    found = recognised(there.values[0], optimizer)
    if not found:
        what = f"there is no {optimizer or 'optimizer'}"
        names = ", ".join(there.values[0][:8])
        what += f"; it defines {names}" if names else "; it defines no class and no function"
        return _with(not_run("optimizer", title, worth, Failure("missing", what)), there)
    tests = runs(seed)
    requests: Any = [
        {"call": "tried", "arguments": [name, _question(rule, tests, decay)]}
        for rule, name in found.items()
        for decay in (0.0, _DECAY)
    ]
    answers = run_submission(
        submission, requests, limits, driver=driver, restarts=len(requests) - 1
    )
    parts: list[Part] = []
    source = Source(title, Path(submission).read_text("utf-8", "replace")) if isinstance(
        submission, str | Path) else Source(title, "")  # fmt: skip
    for k, rule in enumerate(found):
        plain, with_decay = answers.values[2 * k : 2 * k + 2]
        judged = parts_of(rule, tests, plain, with_decay, source)
        parts += [replace(part, name=f"{rule}: {part.name}") for part in judged]
    return _with(Result("optimizer", title, tuple(parts)), answers)


def _with(result: Result, answers: Answers) -> Result:
    notes = tuple(answers.protections)
    return replace(result, output=answers.output, seconds=answers.seconds, notes=notes)


def recognised(names: Sequence[str], optimizer: str | None) -> dict[str, str]:
    """The submission's name for each optimizer that it has.

    >>> recognised(["MyAdam", "helper", "NAG"], None)
    {'adam': 'MyAdam', 'nesterov': 'NAG'}
    >>> recognised(["Mine"], "adam")
    {'adam': 'Mine'}
    """
    found: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"[^a-z]", "", name.casefold())
        rule = next((r for r, parts in CALLED.items() if any(p in plain for p in parts)), None)
        if rule:
            found.setdefault(rule, name)
    if optimizer is None:
        return found
    if optimizer in found:
        return {optimizer: found[optimizer]}
    return {optimizer: names[0]} if len(names) == 1 else {}


def _question(rule: str, tests: Sequence[Run], decay: float) -> dict[str, Any]:
    usual: dict[str, tuple[str, ...]] = {"rate": _RATES}
    for name in rule_of(rule).hyper:
        usual[name] = {"alpha": _AVERAGES, "epsilon": _EPSILON, "beta": _BETAS}.get(
            name, (name, name.replace("beta", "b"))
        )
    usual["weight_decay"] = _DECAYS
    if "alpha" not in usual:
        usual["rate"] = (*_RATES, "alpha")
    hyper = {name: _GIVEN[name] for name in usual} | {"weight_decay": decay}
    return {
        "hyper": hyper, "usual": usual, "runs": [run.asked() for run in tests],
        "ahead": rule == "nesterov", "slope": _SLOPE,
    }  # fmt: skip


# --- verdicts ------------------------------------------------------------------------------------


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
        said = {"message": str(plain), "mistake": ""}
        return [Part(name, points, 0, "not run", **said) for name, points in _PARTS.items()]  # type: ignore[arg-type]
    did = plain["runs"]
    if not plain["moved"] and not did[0]["error"].get("arithmetic"):
        return _unmoved(did[0], plain["tries"], source)
    ahead = plain["form"].startswith("gradient function")
    right, found = _explained(rule, tests, plain, ahead)
    errors = [one["error"] for one in did]
    name, says = _named(found, did, right)
    note = _conventions(right, plain)
    first = _agree(did[0]["steps"][:1], _simulated(right, tests[0])[:1], tests[0])
    passed = (first and bool(did[0]["steps"]), *right.agrees[:1])
    passed = (*passed, right.agrees[1] and right.agrees[3], right.agrees[2])
    parts = []
    for k, (part, points) in enumerate(_PARTS.items()):
        if passed[k]:
            said = (name, says) if found and _doubtful(found) else ("", note)
            verdict: Any = "suspicious" if found and _doubtful(found) else "right"
            parts.append(Part(part, points, points, verdict, *said))
            continue
        run = max(0, k - 1)
        run = 3 if run == 1 and right.agrees[1] else run
        evidence = _where(did[run], _simulated(right, tests[run]), tests[run])
        if errors[run]:
            line = place(source, errors[run]["line"])
            evidence = (f"{errors[run]['message']}", *line.split("\n")) if line else (
                errors[run]["message"],)  # fmt: skip
        parts.append(Part(part, points, 0, "wrong", name, says, evidence))
    best = found or right
    return [*parts, *_decay_part(rule, tests, with_decay, best, ahead)]


def _unmoved(run: Mapping[str, Any], tries: Mapping[str, str], source: Source) -> list[Part]:
    error = run["error"]
    if error and not run["steps"]:
        where = place(source, error["line"])
        evidence = tuple(where.split("\n")) if where else ()
        evidence += tuple(f"given a {form}: {said}" for form, said in tries.items())[:4]
        said = error["message"]
        return [Part(n, p, 0, "not run", "", said, evidence) for n, p in _PARTS.items()]
    says = "step neither changes the parameters in place nor returns new ones"
    name = "parameters never moved"
    return [Part(part, points, 0, "wrong", name, says) for part, points in _PARTS.items()]


def _explained(
    rule: str, tests: Sequence[Run], plain: Mapping[str, Any], ahead: bool
) -> tuple[_Match, _Match | None]:
    """The right rule that comes nearest, and the variant that gives all numbers, if there is one."""
    did = plain["runs"]

    def matches(
        settings: Sequence[Mapping[str, float]], most: int, ignored: str = ""
    ) -> Iterator[_Match]:
        for variant in variants(rule, ahead, most):
            for hyper in settings:
                yield _match(variant, hyper, tests, did, ignored)

    settings = _settings(rule, plain)
    rights = []
    for one in matches(settings, 1):  # conventions come first
        if one.variant.right:
            rights.append(one)
        if all(one.agrees):
            found = one
            break
    else:
        found = None
    right = found if found and found.variant.right else max(rights, key=lambda one: sum(one.agrees))
    if all(right.agrees):
        return right, None
    for name in plain["taken"]:  # arguments that are taken and not used
        if found or name not in _TYPICAL:
            continue
        values = (plain["defaults"].get(name), *_TYPICAL[name])
        other = [{**one, name: v} for one in settings[:4] for v in values if v not in (None, one[name])]
        unused = (one for one in matches(other, 1, name) if one.variant.right)
        found = next((one for one in unused if all(one.agrees)), None)
    if not found and len(settings) <= 4:
        found = next((one for one in matches(settings, 2) if all(one.agrees)), None)
    return right, found


def _settings(rule: str, plain: Mapping[str, Any]) -> list[dict[str, float]]:
    """Numbers for all names; several where a submission has one of its own that nobody can see."""
    names = ("rate", *(n for n in rule_of(rule).hyper if n != "weight_decay"))
    choices: list[tuple[float, ...]] = []
    for name in names:
        own = plain["defaults"].get(name)
        given = (_GIVEN[name],) if name in plain["taken"] else (own,) if own is not None else ()
        choices.append(given or _TYPICAL[name])
    fixed = {"slope": _SLOPE, "wd": _DECAY}
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
    if not variant.right:  # most are refuted by the first step
        one, run = did[0], Run(tests[0].start, tests[0].gradients[:1])
        error = one["error"] if not one["steps"] else None
        if not _agree(one["steps"][:1], _simulated(found, run), run, error):
            return replace(found, agrees=(False,) * len(tests))
    for one, run in zip(did, tests, strict=True):
        wanted = not agrees or agrees[-1] or variant.right  # of mistakes all or none is asked for
        agrees.append(wanted and _agree(one["steps"], _simulated(found, run), run, one["error"]))
    return replace(found, agrees=tuple(agrees))


def _simulated(match: _Match, run: Run) -> Any:
    return simulate(match.variant, match.hyper, run.start, run.gradients, match.hyper["rate"])


def _agree(
    steps: Sequence[Sequence[float]], expected: Any, run: Run, error: Mapping[str, Any] | None = None
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
    return all(change.doubtful or change.right for change in found.variant.changes)


def _named(found: _Match | None, did: Sequence[Mapping[str, Any]], right: _Match) -> tuple[str, str]:
    """The name of what is wrong, and a sentence."""
    if did[1]["steps"] != did[3]["steps"] and not np.array_equal(
        did[1]["steps"], did[3]["steps"], equal_nan=True
    ):
        return "state shared between optimizers", (
            "a new optimizer begins with what another has left: the state belongs into __init__,"
            " not into the class, a default argument or the module"
        )
    if found is None:
        done = sum(right.agrees)
        return "", "" if done else "the numbers are those of no mistake that is known here"
    if found.ignored:
        return f"{found.ignored} ignored", f"the argument {found.ignored} is taken and not used"
    changes = [change for change in found.variant.changes if not change.right]
    names = [_kept(change.name, did) for change in changes]
    return " and ".join(dict.fromkeys(names)), "; ".join(
        dict.fromkeys(change.says for change in changes)
    )


def _kept(name: str, did: Sequence[Mapping[str, Any]]) -> str:
    """State that is not kept: never stored, thrown away, or, if it tells of earlier steps, unused."""
    if name != "state not kept":
        return name
    if not did[1]["changed"]:
        return "state not updated"
    same = did[1]["changed"] == did[4]["changed"]
    return "state reset every step" if same else "state not used"


def _conventions(right: _Match, plain: Mapping[str, Any]) -> str:
    said = [change.says for change in right.variant.changes]
    if plain["form"] in ("dict of arrays", "list of arrays", "number"):
        said.append(f"it works on a {plain['form']}")
    return "; ".join(said)


def _decay_part(
    rule: str, tests: Sequence[Run], answer: Any, best: _Match, ahead: bool
) -> list[Part]:
    """Weight decay, judged by what the optimizer does without it."""
    points = 2
    if isinstance(answer, Failure) or "weight_decay" not in answer["taken"]:
        if rule != "adamw":
            return []
        says = "there is no argument weight_decay"
        return [Part("weight decay", points, 0, "wrong", "no weight decay", says)]
    did = answer["runs"]
    wanted = "decoupled" if rule == "adamw" else "coupled"
    for name, says, before, behind, kind in () if ahead else DECAYS:
        variant = replace(best.variant, text=decayed(best.variant.text, before, behind))
        if not all(_match(variant, best.hyper, tests, did).agrees[:2]):
            continue
        if kind and (kind == wanted or rule != "adamw"):
            return [Part("weight decay", points, points, "right", "", f"{name}: {says}")]
        name = "coupled weight decay" if kind else name
        hint = "; AdamW's parameters shrink by themselves" if kind else ""
        return [Part("weight decay", points, 0, "wrong", name, says + hint)]
    if all(_match(best.variant, best.hyper, tests, did).agrees[:2]):
        says = "the argument weight_decay is taken and not used"
        return [Part("weight decay", points, 0, "wrong", "decay not applied", says)]
    where = _where(did[0], _simulated(best, tests[0]), tests[0])
    says = "the numbers are those of no way of weight decay that is known here"
    return [Part("weight decay", points, 0, "wrong", "", says, where)]


def skeleton(rule: str) -> str:
    """What a student starts from: the class, its arguments, and what a step has to do.

    >>> print(skeleton("sgd").splitlines()[2])
    class SGD:
    """
    if rule not in CALLED:
        raise UsageError(f"there is no optimizer {rule!r}", hint=name_hint(rule, CALLED))
    known = rule_of(rule)
    called = {"sgd": "SGD", "adagrad": "AdaGrad", "rmsprop": "RMSprop", "adamw": "AdamW"}
    hyper = {"rate": known.rate, **known.hyper}
    arguments = ", ".join(f"{name}={value:g}" for name, value in hyper.items())
    stored = "\n".join(f"        self.{name} = {name}" for name in hyper)
    return _SKELETON.format(
        name=called.get(rule, rule.capitalize()), arguments=arguments, stored=stored,
        about=plural(len(hyper), "hyperparameter"),
    )  # fmt: skip


_SKELETON = '''"""An optimizer. To check it: cgprimer check optimizer FILE"""

class {name}:
    """{about}; the state is made in the first step, when the parameters are known."""

    def __init__(self, {arguments}):
{stored}
        # TODO: what has to be remembered from step to step

    def step(self, parameters, gradients):
        """One step: change `parameters` in place, or return new ones.

        Both are dictionaries from names to numbers, or to numpy arrays; as lists they will do, too.
        """
        raise NotImplementedError  # TODO
'''
