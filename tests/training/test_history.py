"""Validation losses, and the parameters that a run records over time."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.errors import UsageError
from cgprimer.training.data import Dataset
from cgprimer.training.loop import TrainingRun, train
from cgprimer.training.parameter_snapshots import MAX_RECORDS, RecordingSchedule, plan_recording
from tests.approval import refused
from tests.training.training_graphs import (
    PLAIN,
    fields_of,
    interrupt_at,
    lecture,
    lecture_data,
    line,
    line_data,
)

SLOW: dict[str, Any] = {**PLAIN, "learning_rate": 1e-6, "batch_size": 2}


def parameters_at(run: TrainingRun, position: int) -> dict[str, float]:
    return {name: values[position] for name, values in run.recorded_parameters.items()}


@pytest.mark.parametrize("engine", ["numpy", "cpu"])
@pytest.mark.parametrize("method", ["reverse", "finite-difference"])
def test_validation_losses_are_means_after_each_epoch(engine: str, method: str) -> None:
    others = lecture_data(80, seed=5)
    settings: dict[str, Any] = {"epochs": 6, "engine": engine, "method": method}
    settings |= {**PLAIN, "learning_rate": 1e-4}
    run = train(lecture(), lecture_data(), validation=others, **settings)
    assert len(run.validation_losses) == len(run.epoch_losses) == 6
    assert run.recorded_steps == [4, 8, 12, 16, 20, 24]
    for k, loss in enumerate(run.validation_losses):
        outputs = lecture().evaluate({**others.inputs, **parameters_at(run, k)})["xw"]
        assert loss == pytest.approx(np.mean((outputs - others.targets["xw"]) ** 2), rel=1e-9)
    without = train(lecture(), lecture_data(), **settings)
    assert (without.parameters, without.step_losses) == (run.parameters, run.step_losses)
    assert without.validation_losses == []


def test_a_fraction_of_the_samples_is_held_out() -> None:
    data = lecture_data()
    rest, held_out = data.split(0.25, seed=3)
    assert (len(rest), len(held_out)) == (150, 50)
    both = np.concatenate([rest.inputs["xa"], held_out.inputs["xa"]])
    assert sorted(both) == sorted(data.inputs["xa"])
    assert data.split(0.25, seed=3)[1].inputs["xa"].tolist() == held_out.inputs["xa"].tolist()
    assert data.split(0.25, seed=4)[1].inputs["xa"].tolist() != held_out.inputs["xa"].tolist()
    run = train(lecture(), data, epochs=2, validation=0.25, seed=3)
    same = train(lecture(), rest, epochs=2, validation=held_out, seed=3)
    assert run.parameters == same.parameters
    assert run.validation_losses == same.validation_losses
    assert (run.settings["samples"], run.settings["validation_samples"]) == (200, 50)


def test_validation_losses_that_are_missing_or_not_finite_are_nan(tmp_path: Path) -> None:
    graph = cgprimer.parse("xw = k*log(xa); parameter k = 2")
    good, bad = (Dataset.from_arrays({"xa": [xa]}, {"xw": [0.0]}) for xa in (1.0, -1.0))
    train(graph, good, epochs=3, validation=bad).save(tmp_path / "run.json")
    assert np.isnan(cgprimer.load_run(tmp_path / "run.json").validation_losses).all()
    bare = train(line(), line_data(), epochs=2)
    later = train(line(), line_data(), epochs=4, resume=bare, validation=line_data(0.1, 0.2))
    last = train(line(), line_data(), epochs=5, resume=later)
    assert np.isnan(last.validation_losses).tolist() == [True, True, False, False, True]
    interrupted = train(line(), line_data(), epochs=3, resume=bare, validation=line_data(1.0),
                        on_step=interrupt_at(0))  # fmt: skip
    assert (interrupted.interrupted, interrupted.validation_losses) == (True, [])


def test_resuming_keeps_the_validation_samples() -> None:
    data, others = lecture_data(50), lecture_data(50, seed=1)
    run = train(lecture(), data, epochs=1, validation=0.25, seed=0)
    with refused(UsageError, "38"):
        train(lecture(), data, epochs=2, resume=run)
    with refused(UsageError, "--seed 0"):
        train(lecture(), data, epochs=2, resume=run, validation=0.25, seed=1)
    for validation in (None, others):  # here the seed only orders the samples
        bare = train(lecture(), data, epochs=1, validation=validation, seed=0)
        more = train(lecture(), data, epochs=2, resume=bare, validation=validation, seed=1)
        assert more.epochs == 2


@pytest.mark.parametrize("engine", ["numpy", "cpu"])
def test_records_are_the_parameters_of_shorter_runs(engine: str) -> None:
    settings: dict[str, Any] = {**SLOW, "engine": engine}
    run = train(lecture(), lecture_data(), epochs=5, **settings)
    assert run.recorded_steps == sorted({*run.recorded_steps})
    for epoch in range(1, 6):
        shorter = train(lecture(), lecture_data(), epochs=epoch, **settings)
        assert parameters_at(run, run.recorded_steps.index(100 * epoch)) == shorter.parameters
    settings["batch_size"] = 1
    run = train(lecture(), lecture_data(), epochs=1, short_run_records=64, **settings)
    assert run.recorded_steps == [25, 50, 75, 100, 125, 150, 175, 200]  # at least 16 apart
    bare = train(lecture(), lecture_data(), epochs=1, short_run_records=1, **settings)
    assert bare.recorded_steps == [200]
    assert (run.parameters, run.step_losses) == (bare.parameters, bare.step_losses)
    assert parameters_at(run, -1) == run.parameters
    assert parameters_at(run, 0) != parameters_at(run, 1)


def test_runs_without_updates_have_no_records() -> None:
    run = train(line(), line_data(), epochs=0)
    assert (run.recorded_steps, run.validation_losses) == ([], [])
    assert run.recorded_parameters == {"k": [], "b": []}


@pytest.mark.parametrize("engine", ["numpy", "cpu"])
def test_resumed_and_interrupted_runs_have_the_records_of_whole_runs(engine: str) -> None:
    settings: dict[str, Any] = {**SLOW, "batch_size": 1, "engine": engine, "short_run_records": 64}
    found: TrainingRun | None = None
    for epochs in (1, 2, 9):
        found = train(lecture(), lecture_data(), epochs=epochs, resume=found, **settings)
        whole = train(lecture(), lecture_data(), epochs=epochs, **settings)
        assert fields_of(found) == fields_of(whole)
    settings |= {"epochs": 3, "batch_size": 10}
    for listener in ("on_step", "on_progress"):
        found = None
        whole = train(lecture(), lecture_data(), **{listener: lambda *_: None}, **settings)
        assert {20, 40, 60} <= {*whole.recorded_steps}
        for step in (whole.recorded_steps[0], 20, 33):
            callback: Any = {listener: interrupt_at(step)}
            found = train(lecture(), lecture_data(), resume=found, **callback, **settings)
            assert found.interrupted
            if found.steps in whole.recorded_steps:
                assert found.recorded_steps[-1] == found.steps
                assert parameters_at(found, -1) == found.parameters
        found = train(lecture(), lecture_data(), resume=found, **settings)
        assert (found.stopped, found.recorded_steps) == ("finished", whole.recorded_steps)
        for name, values in whole.recorded_parameters.items():
            assert found.recorded_parameters[name] == pytest.approx(values, rel=1e-12)


def test_the_number_of_records_is_bounded() -> None:
    run = train(line(), line_data(), epochs=2 * MAX_RECORDS + 1, batch_size=None)
    assert MAX_RECORDS // 2 <= len(run.recorded_steps) <= MAX_RECORDS
    assert len({b - a for a, b in pairwise(run.recorded_steps)}) == 1
    for epochs in (1, 5, 100, 10**6):
        for parameters in (1, 4, 25_000, 10**6):
            for within in (1, 128, 10**6):
                found = plan_recording(epochs, 100_000, parameters, within)
                count = found.records_per_epoch * (epochs // found.epoch_interval)
                assert 1 <= count <= MAX_RECORDS
                assert count * parameters <= max(200_000, 8 * parameters)
    assert plan_recording(0, 5, 2) == RecordingSchedule(5)
