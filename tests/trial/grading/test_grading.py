"""The grader is tried with submissions that its authors did not write.

The default run checks a sample, the slow tests check everything. Wrong submissions must not get
full marks; a mistake in the catalogue must be named. Correct submissions must get full marks.
"""

from __future__ import annotations

import warnings
from itertools import islice

import numpy as np
import pytest

import cgprimer
from cgprimer.errors import CgprimerError
from tests.trial.grading.correct_submissions import (
    check_formula,
    check_program,
    outcome,
    trials,
)
from tests.trial.grading.evaluation import namespace
from tests.trial.grading.submission_files import Submission, read_formulas, read_submissions

GRADIENTS = read_submissions("gradients")
WRONG = {
    "gradient": [s for s in GRADIENTS if s.mistake],
    "optimizer": [s for s in read_submissions("optimizers") if s.mistake],
    "engine": [s for s in read_submissions("engines") if s.mistake],
    "formula": [s for s in read_formulas() if s.mistake],
}

CHECKS = {
    "gradient": check_program,
    "optimizer": lambda s: cgprimer.check_optimizer(namespace(s.code), s.options["optimizer"]),
    "engine": lambda s: cgprimer.check_engine(namespace(s.code), s.options["stage"]),
    "formula": check_formula,
}


def judge(kind: str, submission: Submission) -> tuple[bool, bool, str]:
    """Return whether a submission has full marks and whether its mistake is named; the verdicts."""
    try:
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            result = CHECKS[kind](submission)
    except CgprimerError as error:
        return False, submission.accepts(set()), f"{type(error).__name__}: {error}"
    full = result.points >= result.possible
    if submission.mistake == "wrong number":
        full = result.points > 0  # not even half a point
    names = {part.mistake for part in result.parts if part.mistake}
    verdicts = [f"{p.name} {p.verdict} ({p.mistake or '-'})" for p in result.parts]
    return full, submission.accepts(names), ", ".join(verdicts)


def test_sample_of_correct_submissions() -> None:
    for trial in islice(trials(), 0, None, 173):
        assert outcome(trial) == ("right", ""), (trial.kind, trial.text)


@pytest.mark.parametrize("kind", WRONG)
def test_sample_of_wrong_submissions(kind: str) -> None:
    for submission in WRONG[kind][::37]:
        full, _, verdicts = judge(kind, submission)
        assert not full, (submission, verdicts)


@pytest.mark.slow
@pytest.mark.parametrize("kind", WRONG)
def test_wrong_submissions(kind: str) -> None:
    results = [(submission, *judge(kind, submission)) for submission in WRONG[kind]]
    assert [(s, verdicts) for s, full, _, verdicts in results if full] == []
    unnamed = [(s, verdicts) for s, _, named, verdicts in results if not named]
    assert len(unnamed) <= 0.05 * len(results), unnamed


@pytest.mark.slow
def test_correct_submissions() -> None:
    results = [(trial.kind, trial.text, *outcome(trial)) for trial in trials()]
    assert len(results) >= 1000
    assert [result for result in results if result[2] != "right"] == []
