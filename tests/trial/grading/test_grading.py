"""The grader is tried with submissions that its authors did not write.

The fast tests run a sample. The slow ones run everything; ``python -m tests.trial.grading.report``
prints the tables.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import cgprimer
from tests.trial.grading.correct import outcome, trials
from tests.trial.grading.evaluation import Question, call, largest_error, namespace
from tests.trial.grading.hand_written import HAND_WRITTEN
from tests.trial.grading.report import gradient_outcome
from tests.trial.grading.tables import WRONG_GRADIENTS, WRONG_TABLES

TABLES = {title: (records, check) for title, records, check in WRONG_TABLES}


def _smallest_error(kind: str) -> float:
    return 1e-9 if "step" in kind else 1e-4 if kind == "rounded" else 1e-2


@pytest.mark.slow
def test_wrong_gradients_are_wrong() -> None:
    errors = [(r, largest_error(r)) for r in WRONG_GRADIENTS]
    assert [r for r, error in errors if error < _smallest_error(r.kind)] == []


def test_every_mistake_has_five_submissions() -> None:
    counts = Counter(record.kind for record in WRONG_GRADIENTS)
    assert min(counts.values()) >= 5


def test_correct_gradients_are_correct() -> None:
    for graph, code, options in HAND_WRITTEN:
        if options.get("loss") == "huber":
            continue
        question, names = Question(cgprimer.parse(graph), **options), namespace(code)
        at = question.point(np.random.default_rng(1))
        answers = call(names["gradient"], question, at, "np" in names)
        for expected, answer in zip(question.differences(at), answers, strict=True):
            assert answer == pytest.approx(expected, rel=1e-5, abs=1e-7), code


def test_sample_of_correct_submissions() -> None:
    for trial in islice(trials(0), 0, None, 101):
        assert outcome(trial) == ("right", ""), (trial.kind, trial.text)


def test_sample_of_wrong_submissions() -> None:
    for title, (records, check) in TABLES.items():
        for record in records[::31]:
            result = check(record)
            assert not result.full, (title, record, result)


@pytest.mark.slow
def test_files_are_judged_as_functions_are(tmp_path: Path) -> None:
    for index, record in enumerate(WRONG_GRADIENTS[::19]):
        path = tmp_path / f"submission_{index}.py"
        path.write_text(record.code)
        result = cgprimer.check_gradient(cgprimer.parse(record.graph), str(path), **record.options)
        names = tuple(dict.fromkeys(part.mistake for part in result.parts if part.mistake))
        assert names == gradient_outcome(record).names


@pytest.mark.slow
@pytest.mark.parametrize("title", TABLES)
def test_wrong_submissions(title: str) -> None:
    records, check = TABLES[title]
    results = [(record, check(record)) for record in records]
    assert [(record, result.detail) for record, result in results if result.full] == []
    unnamed = [(record, result.detail) for record, result in results if not result.named]
    assert len(unnamed) <= 0.05 * len(results), unnamed


@pytest.mark.slow
def test_correct_submissions() -> None:
    count, accused = 0, []
    for trial in trials(0):
        count += 1
        result, detail = outcome(trial)
        if result != "right":
            accused.append((trial.kind, trial.text, result, detail))
    assert count >= 1000
    assert accused == []
