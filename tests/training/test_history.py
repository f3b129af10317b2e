"""Validation losses and parameters over time: right, bounded, kept by resuming."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.errors import DataError, NonFiniteError, UsageError
from cgprimer.training.checkpoint import load_run
from cgprimer.training.data import Dataset
from cgprimer.training.loop import TrainingRun, train
from cgprimer.training.parameter_snapshots import MAX_RECORDS, RecordingSchedule, plan_recording
from cgprimer.training.runs import save_run
from tests.approval import refused
from tests.training.training_graphs import lecture, lecture_data, line, line_data

SLOW: dict[str, Any] = {"optimizer": "sgd", "learning_rate": 1e-4, "schedule": "constant"}


def mean_loss(dataset: Dataset, parameters: dict[str, float]) -> float:
    call = cgprimer.loss_and_gradient(lecture(), dataset, reduction="mean")
    return call(parameters)[0]


def at(run: TrainingRun, position: int) -> dict[str, float]:
    return {name: values[position] for name, values in run.recorded_parameters.items()}


# --- validation ----------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["numpy", "cpu"])
@pytest.mark.parametrize("method", ["reverse", "forward", "finite-difference"])
def test_validation_is_the_mean_loss_after_each_epoch(engine: str, method: str) -> None:
    others = lecture_data(80, seed=5)
    run = train(
        lecture(), lecture_data(), epochs=6, engine=engine, method=method, validation=others, **SLOW
    )
    assert len(run.validation_losses) == len(run.epoch_losses) == 6
    assert run.recorded_steps == [4, 8, 12, 16, 20, 24]
    for k, loss in enumerate(run.validation_losses):
        assert loss == pytest.approx(mean_loss(others, at(run, k)), rel=1e-9)


def test_other_samples_change_nothing_in_training() -> None:
    alone = train(lecture(), lecture_data(), epochs=3)
    watched = train(lecture(), lecture_data(), epochs=3, validation=lecture_data(50, seed=1))
    assert watched.parameters == alone.parameters
    assert watched.step_losses == alone.step_losses
    assert alone.validation_losses == []


def test_a_share_is_not_trained_on() -> None:
    rest, kept_out = lecture_data().split(0.25, seed=3)
    assert (len(rest), len(kept_out)) == (150, 50)
    together = np.concatenate([rest.inputs["xa"], kept_out.inputs["xa"]])
    assert sorted(together) == sorted(lecture_data().inputs["xa"])
    assert list(lecture_data().split(0.25, seed=3)[1].inputs["xa"]) == list(kept_out.inputs["xa"])
    assert list(lecture_data().split(0.25, seed=4)[1].inputs["xa"]) != list(kept_out.inputs["xa"])
    run = train(lecture(), lecture_data(), epochs=2, validation=0.25, seed=3)
    same = train(lecture(), rest, epochs=2, validation=kept_out, seed=3)
    assert run.parameters == same.parameters
    assert run.validation_losses == same.validation_losses
    assert run.settings["samples"] == 200
    assert run.settings["validation_samples"] == 50


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, 2, float("nan")])
def test_no_share(share: float) -> None:
    with refused(UsageError):
        train(line(), line_data(), validation=share)


@pytest.mark.parametrize(
    ("validation", "kind", "words"),
    [
        ("0.2", UsageError, "0.2"),
        (True, UsageError, ""),
        (0.01, DataError, ""),
        (0.95, DataError, ""),
        (Dataset.from_arrays({"xa": [1.0]}, {"xv": [1.0]}), DataError, "'xw'"),
        (Dataset.from_arrays({"xa": [1.0]}, {"xw": [np.nan]}), DataError, "0"),
        (Dataset.from_arrays({"xa": []}, {"xw": []}), DataError, ""),
    ],
)
def test_mistakes_with_validation(validation: Any, kind: type[Exception], words: str) -> None:
    with refused(kind, words):
        train(line(), line_data(), validation=validation)


def test_a_validation_loss_that_is_not_finite_is_recorded_and_does_no_harm(tmp_path: Path) -> None:
    graph = cgprimer.parse("xw = k*log(xa); parameter k = 2")
    good = Dataset.from_arrays({"xa": [1.0, 2.0, 3.0]}, {"xw": 2 * np.log([1.0, 2.0, 3.0])})
    others = Dataset.from_arrays({"xa": [-1.0]}, {"xw": [0.0]})
    run = train(graph, good, epochs=3, validation=others)
    assert np.isnan(run.validation_losses).all()
    save_run(run, tmp_path / "run.json", graph)
    assert np.isnan(load_run(tmp_path / "run.json", graph).validation_losses).all()


def test_validation_that_begins_or_ends_midway_leaves_nan() -> None:
    settings: dict[str, Any] = {"schedule": "constant"}
    others = line_data(0.1, 0.2)
    bare = train(line(), line_data(), epochs=2, **settings)
    later = train(line(), line_data(), epochs=4, resume=bare, validation=others, **settings)
    assert np.isnan(later.validation_losses).tolist() == [True, True, False, False]
    last = train(line(), line_data(), epochs=5, resume=later, **settings)
    assert np.isnan(last.validation_losses).tolist() == [True, True, False, False, True]


def test_another_share_cannot_go_on() -> None:
    data = lecture_data()
    run = train(lecture(), data, epochs=1, validation=0.25)
    with refused(UsageError, "0.25"):
        train(lecture(), data, epochs=2, resume=run)
    assert len(train(lecture(), data, epochs=2, resume=run, validation=0.25).validation_losses) == 2


def test_another_seed_would_draw_other_samples_to_validate_with() -> None:
    data = lecture_data()
    run = train(lecture(), data, epochs=1, validation=0.5, seed=0)
    with refused(UsageError, "--seed 0"):
        train(lecture(), data, epochs=2, resume=run, validation=0.5, seed=1)
    # Without a share, or with samples of their own, the seed only orders the samples.
    others = lecture_data(50, seed=1)
    for validation in (None, others):
        bare = train(lecture(), data, epochs=1, validation=validation, seed=0)
        on = train(lecture(), data, epochs=2, resume=bare, validation=validation, seed=1)
        assert on.epochs == 2


def test_epochs_without_validation_are_only_marked_where_others_have_some() -> None:
    """A run that is taken up with validation, and ended before its first, has had none."""

    def stop(_step: int, _steps: int, _loss: float) -> None:
        raise KeyboardInterrupt

    bare = train(line(), line_data(), epochs=2)
    run = train(line(), line_data(), epochs=3, resume=bare, validation=line_data(1.0), on_step=stop)
    assert run.interrupted
    assert run.validation_losses == []


# --- parameters over time ------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["numpy", "cpu"])
@pytest.mark.parametrize("epochs", [1, 3, 7])
def test_what_is_recorded_is_what_a_shorter_run_learns(engine: str, epochs: int) -> None:
    settings: dict[str, Any] = {**SLOW, "learning_rate": 1e-6, "batch_size": 2, "engine": engine}
    run = train(lecture(), lecture_data(), epochs=epochs, **settings)
    seen: dict[int, dict[str, float]] = {}
    ends = [100 * (k + 1) for k in range(epochs)]
    assert set(ends) <= set(run.recorded_steps)
    for k in range(epochs):
        seen[ends[k]] = train(lecture(), lecture_data(), epochs=k + 1, **settings).parameters
    for step, parameters in seen.items():
        assert at(run, run.recorded_steps.index(step)) == parameters
    assert run.recorded_steps == sorted(set(run.recorded_steps))


@pytest.mark.parametrize("engine", ["numpy", "cpu"])
def test_a_long_epoch_is_recorded_on_the_way(engine: str) -> None:
    settings: dict[str, Any] = {**SLOW, "learning_rate": 1e-6, "batch_size": 1, "engine": engine}
    run = train(lecture(), lecture_data(), epochs=1, short_run_records=64, **settings)
    assert run.recorded_steps == [25, 50, 75, 100, 125, 150, 175, 200]  # 16 steps apart at least
    bare = train(lecture(), lecture_data(), epochs=1, short_run_records=1, **settings)
    assert bare.recorded_steps == [200]
    assert (run.parameters, run.step_losses) == (bare.parameters, bare.step_losses)
    assert at(run, -1) == run.parameters
    assert at(run, 0) != at(run, 1)


def test_one_step_after_the_other_records_the_same() -> None:
    settings: dict[str, Any] = {**SLOW, "learning_rate": 1e-6, "batch_size": 1, "epochs": 2}
    settings["short_run_records"] = 64
    fast = train(lecture(), lecture_data(), **settings)
    slow = train(lecture(), lecture_data(), on_step=lambda *_: None, **settings)
    assert fast.recorded_steps == slow.recorded_steps
    for name in lecture().parameters:
        assert fast.recorded_parameters[name] == pytest.approx(slow.recorded_parameters[name])


def test_a_run_that_is_taken_up_records_what_a_whole_one_does() -> None:
    settings: dict[str, Any] = {
        **SLOW,
        "learning_rate": 1e-6,
        "batch_size": 1,
        "short_run_records": 64,
    }
    settings["engine"] = "cpu"  # auto goes by the number of epochs, and engines differ in a digit
    found: TrainingRun | None = None
    for epochs in (1, 2, 3, 9):
        found = train(lecture(), lecture_data(), epochs=epochs, resume=found, **settings)
        whole = train(lecture(), lecture_data(), epochs=epochs, **settings)
        assert found.recorded_steps == whole.recorded_steps
        assert found.recorded_parameters == whole.recorded_parameters


def test_an_interrupted_run_records_each_moment_once() -> None:
    settings: dict[str, Any] = {**SLOW, "learning_rate": 1e-6, "batch_size": 1, "epochs": 2}
    settings["short_run_records"] = 64

    def stop(step: int, _steps: int, _loss: float) -> None:
        if step == 120:
            raise KeyboardInterrupt

    half = train(lecture(), lecture_data(), on_step=stop, **settings)
    assert half.interrupted
    assert half.recorded_steps == [25, 50, 75, 100]
    found = train(lecture(), lecture_data(), resume=half, **settings)
    whole = train(lecture(), lecture_data(), **settings)
    assert found.recorded_steps == whole.recorded_steps
    for name in lecture().parameters:
        assert found.recorded_parameters[name] == pytest.approx(whole.recorded_parameters[name])


@pytest.mark.parametrize("listener", ["on_step", "on_progress"])
@pytest.mark.parametrize("engine", ["numpy", "cpu"])
def test_ctrl_c_at_a_recorded_step_keeps_the_record(engine: str, listener: str) -> None:
    settings: dict[str, Any] = {**SLOW, "epochs": 3, "batch_size": 10, "engine": engine}
    whole = train(lecture(), lecture_data(), **settings)
    assert set(whole.recorded_steps) >= {20, 40, 60}
    found: TrainingRun | None = None
    for at_step in whole.recorded_steps:

        def stop(step: int, _steps: int, _loss: float, at_step: int = at_step) -> None:
            if step == at_step:
                raise KeyboardInterrupt

        ears: dict[str, Any] = {listener: stop}
        found = train(lecture(), lecture_data(), resume=found, **ears, **settings)
        assert found.interrupted
        assert found.recorded_steps[-1] == found.steps == at_step
        assert at(found, -1) == found.parameters
    found = train(lecture(), lecture_data(), resume=found, **settings)
    assert (found.stopped, found.recorded_steps) == ("finished", whole.recorded_steps)
    for name in lecture().parameters:
        assert found.recorded_parameters[name] == pytest.approx(whole.recorded_parameters[name])


@pytest.mark.parametrize("engine", ["numpy", "cpu"])
@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_step_that_fails_is_not_recorded_twice(
    engine: str, one_by_one: bool, tmp_path: Path
) -> None:
    """The step after a recorded one fails: the record before it stands there once."""
    graph = cgprimer.parse("xw = log(k)*xa; parameter k = 1")
    data = Dataset.from_arrays({"xa": [1.0]}, {"xw": [-100.0]})
    with pytest.raises(NonFiniteError) as stopped:
        train(
            graph, data, epochs=9, start={"k": 1.0}, learning_rate=0.01, optimizer="sgd",
            schedule="constant", engine=engine, on_step=(lambda *_: None) if one_by_one else None,
        )  # fmt: skip
    run = stopped.value.run
    assert isinstance(run, TrainingRun)
    assert run.stopped == "diverged"
    assert run.recorded_steps == list(range(1, run.steps + 1))
    save_run(run, tmp_path / "run.json", graph)
    assert load_run(tmp_path / "run.json", graph).recorded_steps == run.recorded_steps


def test_there_are_never_too_many_records() -> None:
    run = train(line(), line_data(), epochs=2 * MAX_RECORDS + 1, batch_size=None)
    assert MAX_RECORDS // 2 <= len(run.recorded_steps) <= MAX_RECORDS
    assert len({b - a for a, b in pairwise(run.recorded_steps)}) == 1


@pytest.mark.parametrize("parameters", [1, 4, 1_000, 25_000, 10**6])
@pytest.mark.parametrize("epochs", [1, 2, 4, 5, 100, 5_000, 10**6])
@pytest.mark.parametrize("within", [1, 8, 128, 10**6])
def test_records_and_their_numbers_are_bounded(epochs: int, parameters: int, within: int) -> None:
    found = plan_recording(epochs, 100_000, parameters, within)
    count = found.records_per_epoch * (epochs // found.epoch_interval)
    assert 1 <= count <= MAX_RECORDS
    assert count * parameters <= max(200_000, 8 * parameters)


def test_moments_of_a_longer_run_are_some_of_those_of_a_shorter_one() -> None:
    for per_epoch in (1, 7, 200, 10_000):
        kinds = [
            plan_recording(epochs, per_epoch, 4, 128) for epochs in (1, 2, 3, 4, 5, 900, 1001, 4000)
        ]
        for fine, coarse in pairwise(kinds):
            for epoch in (0, 1, 3, 7):
                assert set(coarse.list_steps(epoch)) <= set(fine.list_steps(epoch))


def test_no_epochs_no_records() -> None:
    run = train(line(), line_data(), epochs=0)
    assert (run.recorded_steps, run.validation_losses) == ([], [])
    assert run.recorded_parameters == {"k": [], "b": []}
    assert plan_recording(0, 5, 2) == RecordingSchedule(5)
    with pytest.raises(UsageError, match="short_run_records"):
        train(line(), line_data(), short_run_records=0)


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"recorded_steps": None},
        {"recorded_steps": [1, 2, 3]},
        {"recorded_steps": [5, 2]},
        {"recorded_steps": [1.5, 2]},
        {"recorded_parameters": []},
        {"recorded_parameters": {"k": [1.0, 2.0]}},
        {"recorded_parameters": {"k": [1.0], "b": [1.0, 2.0]}},
        {"recorded_parameters": {"k": ["a", "b"], "b": [1.0, 2.0]}},
        {"validation_losses": [1.0]},
        {"validation_losses": "none"},
    ],
)
def test_records_that_do_not_fit_are_refused(change: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    save_run(train(line(), line_data(), epochs=2, validation=line_data(1.0)), path, line())
    fields = json.loads(path.read_text())
    assert load_run(path, line()).recorded_steps == [1, 2]
    path.write_text(json.dumps(fields | change))
    with refused(DataError):
        load_run(path, line())


def test_records_belong_to_names_not_to_positions(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    run = train(line(), line_data(), epochs=3)
    save_run(run, path, line())
    turned = cgprimer.parse("xw = b + k*xa; parameter k = 3, b = -1")
    found = load_run(path, turned)
    assert list(found.recorded_parameters) == ["b", "k"]
    assert found.recorded_parameters == run.recorded_parameters
    on = train(turned, line_data(), epochs=4, resume=found)
    assert on.recorded_parameters["k"][:3] == run.recorded_parameters["k"]
