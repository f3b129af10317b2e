"""Correct submissions by kind: at least 1,000 of them, none of which may be accused."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import cgprimer
from cgprimer.errors import CgprimerError
from tests.trial.grading.correct_gradients import ARRAY_WAYS, SCALAR_WAYS, Gradient
from tests.trial.grading.correct_graphs import lecture_graphs, network, random_graph
from tests.trial.grading.evaluation import Question, Values, namespace
from tests.trial.grading.submission_files import (
    Submission,
    read_formulas,
    read_labels,
    read_submissions,
)
from tests.trial.grading.trace_answers import GRAPHS, correct_answers, make_sheet


class Trial(NamedTuple):
    """A correct submission: its kind, a description, and a check that returns a result."""

    kind: str
    text: str
    check: Callable[[], Any]


def gradient_trial(
    kind: str, text: str, way: Callable[[Question], Gradient], **options: Any
) -> Trial:
    """Return the trial of one way to compute the gradient of one graph."""

    @cache
    def submission() -> tuple[Any, dict[str, Any], Gradient]:  # symbolic ones take a while
        graph = cgprimer.parse(text)
        asked = {} if graph.parameters else {"wrt": ",".join(graph.inputs)}
        gradient = way(Question(graph, **asked, **options))
        return graph, {name: names.split(",") for name, names in asked.items()}, gradient

    def check() -> Any:
        graph, asked, gradient = submission()

        def answer(values: Values) -> Any:
            return gradient(values)

        return cgprimer.check_gradient(graph, answer, **asked, **options)

    return Trial(kind, f"{text}\n{options}", check)


def trials() -> Iterator[Trial]:
    """Yield all correct submissions of the trial."""
    for text in lecture_graphs():
        ways = ARRAY_WAYS if any(cgprimer.parse(text).shapes.values()) else SCALAR_WAYS
        for way, build in ways.items():
            yield gradient_trial(f"lecture graphs, {way}", text, build)
    for piecewise, k in product((False, True), range(25)):
        for way, build in SCALAR_WAYS.items():
            if way != "sympy" or k < 15:
                exact = "differences" not in way
                text = random_graph(2 * k + piecewise, piecewise=piecewise, steep=exact)
                kind = f"random {'piecewise' if piecewise else 'smooth'}, {way}"
                yield gradient_trial(kind, text, build)
    yield from network_trials()
    for submission in read_labels():
        for seed in range(3):
            yield program_trial("labels", submission, seed)
    for submission in read_submissions("gradients"):
        if not submission.mistake:
            yield program_trial("hand-written", submission)
    for name, code, options in other_programs():
        check = {"optimizer": cgprimer.check_optimizer, "engine": cgprimer.check_engine}[name]
        yield Trial(
            name, f"{options}\n{code}", lambda a=code, b=options, f=check: f(namespace(a), b)
        )
    for graph, answer in ((f.graph, f.code) for f in read_formulas() if not f.mistake):
        asked = (cgprimer.parse(graph), answer) if answer else (graph,)
        yield Trial("formulas", f"{graph} | {answer}", lambda a=asked: cgprimer.check_formula(*a))
    for name, kind, seed in product(
        GRAPHS, ("trace", "tangent", "adjoint", "gradient"), range(1, 6)
    ):
        yield Trial("sheets", f"{name} {kind} {seed}", lambda *a, b=(name, kind, seed): sheet(*b))


def sheet(*question: Any) -> Any:
    """Check the right answers to a sheet."""
    problems = make_sheet(*question)
    return cgprimer.check_trace(problems, correct_answers(problems))


def program_trial(kind: str, submission: Submission, seed: int = 0) -> Trial:
    """Return the trial of a program in the files of submissions."""

    def check() -> Any:
        graph, names = cgprimer.parse(submission.graph), namespace(submission.code)
        return cgprimer.check_gradient(graph, names, seed=seed, **submission.options)

    return Trial(kind, f"{submission.graph}\n{submission.code}\n{submission.options}", check)


def other_programs() -> Iterator[tuple[str, str, Any]]:
    """Yield the correct optimizers, and the correct engine at each stage of the ladder."""
    for submission in read_submissions("optimizers"):
        if not submission.mistake:
            yield "optimizer", submission.code, submission.options["optimizer"]
    engine = next(s for s in read_submissions("engines") if not s.mistake)
    for stage in (1, 2, 3, 4, 5, 6, 7, 10):
        yield "engine", engine.code, stage


def network_trials() -> Iterator[Trial]:
    """Yield networks of 10 to 300 parameters, alone, with losses and in batches."""
    shapes = ((2, 3), (3, 4), (4, 8, 2), (3, 10, 5), (5, 12, 8), (8, 16, 8))
    activations = ("tanh", "sigmoid", "relu", "leaky_relu", "abs")
    batches: list[dict[str, Any]] = [
        {"loss": "squared-error", "batch": 4},
        {"loss": "half-squared-error", "batch": 3, "reduction": "sum"},
        {"loss": "absolute-error", "batch": 2},
    ]
    for k, (sizes, activation) in enumerate(product(shapes, activations)):
        text = network(k, sizes, activation)
        small = sizes in shapes[:3]
        for options in ({}, {"loss": "squared-error"}, *(batches if small else ())):
            for way, build in ARRAY_WAYS.items():
                if (len(options) < 2 or "1e-6" not in way) and (small or way in LARGE_WAYS):
                    yield gradient_trial(f"networks, {way}", text, build, **options)


LARGE_WAYS = ("complex step", "central differences 1e-5")  # two calls for each of 300 parameters


def outcome(trial: Trial) -> tuple[str, str]:
    """Return 'right', 'accused' or 'refused', and the verdicts or the error."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            result = trial.check()
    except (CgprimerError, TypeError) as error:
        return "refused", f"{type(error).__name__}: {error}".splitlines()[0]
    wrong = [p for p in result.parts if p.verdict != "right"]
    if result.points >= result.possible and not wrong:
        return "right", ""
    return "accused", "; ".join(f"{p.name} {p.verdict} ({p.mistake or '-'})" for p in wrong)
