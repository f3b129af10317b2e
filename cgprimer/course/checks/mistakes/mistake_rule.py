"""A mistake as one row of the table: name, meaning, and how its values are predicted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from cgprimer.course.checks.gradient_questions import Question
from cgprimer.course.checks.mistakes.gradient_passes import PredictByPasses
from cgprimer.course.checks.question_points import Points

Array = Any
Gradient = Mapping[str, Array]  #: for each name its derivatives at all points


@dataclass(frozen=True, eq=False)
class Attempt:
    """A student's gradient, with the question and the evaluation points.

    Attributes:
        question: the question.
        points: the points in the order in which the student's function was called.
        answers: the student's derivatives.
        wrong: the names whose derivatives are wrong.
    """

    question: Question
    points: Points
    answers: Gradient
    wrong: frozenset[str]


@dataclass(frozen=True, eq=False)
class Prediction:
    """The derivatives that a submission with a certain mistake returns.

    Attributes:
        message: a sentence for the student: where the mistake is, and what it consists of.
        values: the predicted derivatives, for the names that the mistake changes.
        individual: whether the mistake may affect only some of these names.
        noise: the rounding errors of the predicted values; those of the points unless given.
        ties: for some names, the points at which the wrong computation is at a kink.
    """

    message: str
    values: Gradient
    individual: bool = False
    noise: Gradient | None = None
    ties: Gradient | None = None


@dataclass(frozen=True)
class MistakeRule:
    """A mistake that checks can identify, and functions that predict the resulting derivatives.

    Most mistakes have one such function. Several rules may have the same name.

    Attributes:
        name: the name that users see.
        meaning: an explanation in a few words.
        answers: predicts values from the correct and the student's derivatives.
        errors: recognizes a pattern of small errors: yields a message with the names that have it.
        passes: runs reverse passes with one rule changed.
        points: evaluates derivatives at other points or for other samples; independent of students.
        fits: fits a number, such as a learning rate, to the student's derivatives.
        individual: whether the mistake of ``passes`` may affect only some of the names.
    """

    name: str
    meaning: str
    _: KW_ONLY
    answers: Callable[[Attempt], Iterator[Prediction]] | None = None
    errors: Callable[[Attempt], Iterator[tuple[str, set[str]]]] | None = None
    passes: PredictByPasses | None = None
    points: Callable[[Question, Points], Iterator[Prediction]] | None = None
    fits: Callable[[Attempt], Iterator[Prediction]] | None = None
    individual: bool = False
