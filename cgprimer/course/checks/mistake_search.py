"""Find the mistake that explains a student's wrong derivatives.

Each rule of :mod:`cgprimer.course.checks.mistakes.mistake_table` predicts the derivatives that a
mistake leads to. A mistake explains a derivative if the prediction equals the student's values at
all smooth points. If several mistakes do, the one that explains most derivatives is named, and of
these the likeliest. Other mistakes that explain the same derivatives are listed with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from cgprimer.course.checks.gradient_questions import Question
from cgprimer.course.checks.mistakes.gradient_passes import GradientPasses
from cgprimer.course.checks.mistakes.mistake_rule import Array, Attempt, Gradient, Prediction
from cgprimer.course.checks.mistakes.mistake_table import MISTAKE_RULES
from cgprimer.course.checks.mistakes.prediction_matching import MIN_POINTS, is_predicted
from cgprimer.course.checks.mistakes.wrong_values import list_second_mistakes
from cgprimer.course.checks.question_points import Points
from cgprimer.tapes import Tape

#: The meaning of each mistake, keyed by name, the likeliest mistake first.
MISTAKES = {rule.name: rule.meaning for rule in reversed(MISTAKE_RULES)}
MISTAKES = {rule.name: MISTAKES[rule.name] for rule in MISTAKE_RULES}
_MAX_WORK = 45_000  # an estimate of the instructions of all reverse passes
_MAX_WORK_PER_RULE = 15_000
_MAX_OPERATIONS = 300  # of a graph whose reverse passes run even if values explain everything
_MAX_TIES = 0.2  # fraction of the points
_UNLIKELY = "constant factor"  # never named as an alternative


@dataclass(frozen=True)
class Mistake:
    """A mistake that explains a student's wrong derivatives.

    Attributes:
        name: the name of the mistake, a key of :data:`MISTAKES`.
        message: a sentence for the student: where the mistake is, and what it consists of.
        explained: the names whose derivatives the mistake explains.
        alternatives: other mistakes that explain the same derivatives.
    """

    name: str
    message: str
    explained: frozenset[str]
    alternatives: tuple[str, ...] = ()


class _Candidate(NamedTuple):
    """A prediction of the derivatives that result from a mistake; lower ranks are likelier."""

    rank: tuple[int, int]
    mistake: str
    prediction: Prediction


class _Match(NamedTuple):
    """A mistake that predicts some of the student's derivatives exactly.

    Attributes:
        rank: the likelihood; likelier mistakes have lower ranks.
        mistake: the name of the mistake.
        message: a sentence for the student.
        explained: the names for which the prediction is equal.
        is_complete: whether these are all names that the mistake should change.
    """

    rank: tuple[int, int]
    mistake: str
    message: str
    explained: set[str]
    is_complete: bool


def find_mistakes(
    question: Question, points: Points, answers: Gradient, wrong: Iterable[str]
) -> dict[str, Mistake]:
    """Return the mistake that explains each wrong derivative, keyed by name.

    Args:
        question: the question.
        points: the points in the order in which the student's function was called.
        answers: the student's derivatives.
        wrong: the names whose derivatives are wrong.
    """
    remaining = {*wrong}
    if not remaining:
        return {}
    attempt = Attempt(question, points, answers, frozenset(remaining))
    matches = [*_match_predictions(attempt, _predict_from_answers(attempt))]
    if not _explains_all(matches, remaining):
        matches += _match_error_patterns(attempt)
    is_large = len(question.primal) > _MAX_OPERATIONS
    skips_passes = is_large and _explains_all(matches, remaining)
    shared = () if skips_passes else _predict_for_all_students(question, points)
    matches += _match_predictions(attempt, shared)
    mistakes = _select_mistakes(matches, remaining)
    for predict in (_predict_by_fitting, lambda attempt: _add_second_mistakes(attempt, shared)):
        if remaining:
            attempt = replace(attempt, wrong=frozenset(remaining))
            mistakes += _select_mistakes(
                [*_match_predictions(attempt, predict(attempt))], remaining
            )
    return {name: mistake for mistake in mistakes for name in mistake.explained}


def _explains_all(matches: Iterable[_Match], names: set[str]) -> bool:
    """Return whether a single mistake explains the derivatives with respect to all given names."""
    return any(names <= match.explained for match in matches)


# --- predictions ---------------------------------------------------------------------------------


def _predict_from_answers(attempt: Attempt) -> Iterator[_Candidate]:
    """Yield the predictions that are based only on correct and students' derivatives."""
    for order, rule in enumerate(MISTAKE_RULES):
        for prediction in rule.answers(attempt) if rule.answers else ():
            yield _Candidate((order, 0), rule.name, prediction)


@lru_cache(maxsize=4)
def _predict_for_all_students(question: Question, points: Points) -> tuple[_Candidate, ...]:
    """Return the predictions that do not depend on the student's derivatives; cached."""
    candidates = [*_predict_by_reverse_passes(question, points)]
    for order, rule in enumerate(MISTAKE_RULES):
        for prediction in rule.points(question, points) if rule.points else ():
            candidates.append(_Candidate((order, 0), rule.name, prediction))
    return tuple(candidates)


def _predict_by_reverse_passes(question: Question, points: Points) -> Iterator[_Candidate]:
    """Yield the derivatives that a reverse pass computes if one of its rules is wrong."""
    passes = GradientPasses(question)
    outputs: dict[str, int] = {}
    predicted: list[tuple[int, str, dict[str, str]]] = []
    for order, rule in enumerate(MISTAKE_RULES):
        start = passes.work
        for message, gradient in rule.passes(passes) if rule.passes else ():
            keys = {name: f"{len(predicted)}.{name}" for name in gradient}
            outputs |= {keys[name]: index for name, index in gradient.items()}
            predicted.append((order, message, keys))
            if passes.work > _MAX_WORK or passes.work - start > _MAX_WORK_PER_RULE:
                break
    tape = passes.builder.finish(outputs, prune=True)
    values = question.evaluate(tape, points.arguments)
    ties = _find_ties(question, points, tape, values) if question.has_kinks else {}
    for number, (order, message, keys) in enumerate(predicted, 1):
        rule = MISTAKE_RULES[order]
        prediction = Prediction(
            message,
            {name: values[key] for name, key in keys.items()},
            individual=rule.individual,
            ties={name: ties[key] for name, key in keys.items() if key in ties},
        )
        yield _Candidate((order, number), rule.name, prediction)


def _find_ties(
    question: Question, points: Points, tape: Tape, values: Gradient
) -> dict[str, Array]:
    """Return masks of the points at which predicted derivatives jump because of a kink.

    Without its bias a unit may be at 0, where programs choose different derivatives. A computation
    that is at a kink at many points is another computation, and has no ties.
    """
    random = np.random.default_rng(0)
    moved = {
        name: v
        if name in question.domain_elements
        else v + random.choice((-1e-9, 1e-9), v.shape) * np.maximum(1.0, np.abs(v))
        for name, v in points.arguments.items()
    }
    ties = {}
    with np.errstate(all="ignore"):
        for name, other in question.evaluate(tape, moved).items():
            jump = np.abs(other - values[name])
            is_tie = jump > 1e-3 * np.maximum(np.abs(other), np.abs(values[name]))
            if is_tie.any() and np.mean(is_tie) <= _MAX_TIES:
                ties[name] = is_tie
    return ties


def _predict_by_fitting(attempt: Attempt) -> Iterator[_Candidate]:
    """Yield predictions that contain a constant fitted to the student's derivatives."""
    if np.sum(attempt.points.smooth) < MIN_POINTS:
        return
    for order, rule in enumerate(MISTAKE_RULES):
        for prediction in rule.fits(attempt) if rule.fits else ():
            yield _Candidate((order, 0), rule.name, prediction)


def _add_second_mistakes(
    attempt: Attempt, candidates: Iterable[_Candidate]
) -> Iterator[_Candidate]:
    """Yield predictions that combine a mistake with a second mistake: a wrong sign or factor."""
    for rank, mistake, prediction in candidates:
        for factor, message in list_second_mistakes(attempt).items():
            values = {name: factor * v for name, v in prediction.values.items()}
            second = Prediction(f"{prediction.message}; {message}", values)
            yield _Candidate(rank, mistake, second)


# --- comparison ----------------------------------------------------------------------------------


def _match_predictions(attempt: Attempt, candidates: Iterable[_Candidate]) -> Iterator[_Match]:
    """Yield a match for each prediction that explains a wrong derivative."""
    points = attempt.points
    for rank, mistake, prediction in candidates:
        noise, ties = prediction.noise or points.noise, prediction.ties or {}
        with np.errstate(all="ignore"):
            explained = {
                name
                for name, values in prediction.values.items()
                if is_predicted(points, attempt.answers[name], values, noise[name], ties.get(name))
            }
        if explained & attempt.wrong:
            is_complete = prediction.individual or len(explained) == len(prediction.values)
            yield _Match(rank, mistake, prediction.message, explained, is_complete)


def _match_error_patterns(attempt: Attempt) -> Iterator[_Match]:
    """Yield a match for each mistake that is recognized by a pattern in small errors."""
    for order, rule in enumerate(MISTAKE_RULES):
        for message, names in rule.errors(attempt) if rule.errors else ():
            yield _Match((order, 0), rule.name, message, names, is_complete=True)


def _select_mistakes(matches: list[_Match], remaining: set[str]) -> list[Mistake]:
    """Select few, likely mistakes, and remove the names that they explain from ``remaining``."""
    mistakes = []
    while relevant := [match for match in matches if match.explained & remaining]:
        best = min(
            relevant,
            key=lambda match: (
                -len(match.explained & remaining), not match.is_complete, match.rank,
            ),
        )  # fmt: skip
        explained = best.explained & remaining
        alternatives = _list_alternatives(matches, best, explained)
        mistakes.append(Mistake(best.mistake, best.message, frozenset(explained), alternatives))
        remaining -= explained
    return mistakes


def _list_alternatives(
    matches: Iterable[_Match], best: _Match, explained: set[str]
) -> tuple[str, ...]:
    """Return the other mistakes that explain all names in `explained`, the likeliest first.

    One mistake may explain several names by several predictions, such as one path for each.
    """
    names_of: dict[str, set[str]] = {}
    for match in sorted(matches, key=lambda match: match.rank):
        if match.is_complete >= best.is_complete:
            names_of.setdefault(match.mistake, set()).update(match.explained)
    excluded = (best.mistake, _UNLIKELY)
    return tuple(m for m, names in names_of.items() if names >= explained and m not in excluded)
