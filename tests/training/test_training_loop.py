"""Whole runs: results, seeds, interruption, stopping rules, validation, records, machine code."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import cgprimer
from cgprimer.backends.cpu import cpu_trainer
from cgprimer.errors import CgprimerError, DataError, NonFiniteError, UsageError
from cgprimer.training import compiled_updates
from cgprimer.training.data import Dataset
from cgprimer.training.loop import TrainingRun, train
from cgprimer.training.parameter_snapshots import MAX_RECORDS, RecordingSchedule, plan_recording
from tests.approval import approved, refused
from tests.native.engine_agreement import FORMS, form
from tests.training.training_graphs import (
    PLAIN,
    TRUTH,
    fields_of,
    interrupt_at,
    lecture,
    lecture_data,
    line,
    line_data,
    table,
    two_outputs,
    two_targets,
)

SLOW: dict[str, Any] = {**PLAIN, "learning_rate": 1e-6, "batch_size": 2}


@pytest.fixture(autouse=True)
def without_disk_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGPRIMER_CACHE", "off")


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in range(1, 16))]
)
def test_lecture_example_with_defaults(seed: int) -> None:
    run = train(lecture(), cgprimer.make_dataset(lecture(), seed=seed), seed=seed)
    assert run.loss < 1e-6 * run.start_loss
    assert run.parameters["ab"] + run.parameters["bc"] == pytest.approx(3, abs=0.02)
    assert run.parameters["cd"] == pytest.approx(3, abs=0.02)
    assert run.parameters["ac"] == pytest.approx(4, abs=0.02)
    assert run.truth == TRUTH
    assert (run.epochs, run.steps, run.stopped) == (30, 6000, "finished")
    assert (len(run.step_losses), len(run.epoch_losses)) == (6000, 30)
    assert not run.interrupted


def test_graphs_without_inputs_other_columns_and_ground_truth() -> None:
    three = Dataset.from_arrays({}, {"xw": [1.0, 2.0, 6.0]})
    mean = train(cgprimer.parse("xw = k"), three, optimizer="l-bfgs", epochs=9)
    assert mean.parameters["k"] == pytest.approx(3.0, abs=1e-3)
    inputs, targets = line_data().inputs, line_data().targets
    more = Dataset.from_arrays({"xq": np.zeros(5), **inputs}, {"xv": np.ones(5), **targets})
    runs = [train(line(), data, epochs=2) for data in (line_data(), more)]
    assert fields_of(runs[0]) == fields_of(runs[1])
    made = cgprimer.make_dataset(line(), samples=5, truth={"b": 7.0})
    assert train(line(), made, epochs=1, validation=0.4).truth == {"k": 3.0, "b": 7.0}
    measured = Dataset.from_arrays(made.inputs, made.targets)
    resumed = train(line(), measured, epochs=2, resume=train(line(), made, epochs=1))
    assert train(line(), measured, epochs=1).truth == resumed.truth == {}


def test_start_values_are_uniform_or_given() -> None:
    starts = [train(lecture(), lecture_data(5), epochs=0, seed=s).start for s in range(50)]
    values = np.array([list(s.values()) for s in starts])
    assert 0 <= values.min() < 0.1
    assert 0.9 < values.max() < 1
    assert len(np.unique(values)) == values.size
    run = train(lecture(), lecture_data(5), epochs=0, start={"cd": -7.0})
    assert run.start == run.parameters == {**starts[0], "cd": -7.0}
    assert (run.recorded_steps, run.validation_losses) == ([], [])
    assert run.recorded_parameters == {name: [] for name in run.parameters}
    with refused(UsageError, "'zz'"):
        train(lecture(), lecture_data(5), start={"zz": 1.0})
    first, same, other = (train(line(), line_data(), epochs=5, seed=seed) for seed in (3, 3, 5))
    assert fields_of(same) == fields_of(first)
    assert other.step_losses != first.step_losses


@pytest.mark.parametrize("schedule", ["cosine", "constant"])
@pytest.mark.parametrize(("batch_size", "total"), [(1, 200), (10, 20), (None, 4)])
def test_keyboard_interrupts_keep_the_run(
    schedule: str, batch_size: int | None, total: int
) -> None:
    on_step = mock.Mock(side_effect=interrupt_at(3))
    settings: dict[str, Any] = {"batch_size": batch_size, "epochs": 4, "schedule": schedule}
    run = train(lecture(), lecture_data(50), on_step=on_step, **settings)
    assert (run.interrupted, run.stopped, run.steps) == (True, "interrupted", 3)
    losses = enumerate(run.step_losses, start=1)
    assert on_step.call_args_list == [mock.call(step, total, loss) for step, loss in losses]
    assert run.parameters != run.start
    assert "interrupted" in repr(run)
    resumed = train(lecture(), lecture_data(50), resume=run, **settings)
    whole = train(lecture(), lecture_data(50), on_step=lambda *_: None, **settings)
    assert fields_of(resumed) == fields_of(whole)


def test_long_runs_start_at_once_and_thin_their_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    run = train(line(), line_data(), epochs=10**12, batch_size=1, on_progress=interrupt_at(1))
    assert run.interrupted
    assert run.steps >= 1
    monkeypatch.setattr("cgprimer.training.epochs.MAX_STEP_LOSSES", 100)
    data = cgprimer.make_dataset(line(), samples=19)  # not a multiple of 4
    settings: dict[str, Any] = {"batch_size": 1, "schedule": "constant", "learning_rate": 1e-4}
    known = train(line(), data, epochs=5, **settings)
    assert (len(known.step_losses), known.steps_apart) == (95, 1)
    longer = train(line(), data, epochs=12, **settings)
    assert (longer.steps_apart, len(longer.step_losses)) == (4, 57)
    assert longer.step_losses[:24] == known.step_losses[::4]
    resumed = train(line(), data, epochs=12, resume=known, **settings)
    assert resumed.step_losses == longer.step_losses
    assert resumed.epoch_losses == longer.epoch_losses


@pytest.mark.parametrize("engine", ["numpy", "cpu"])
@pytest.mark.parametrize("batch", [1, 50, None])
def test_short_batches_count_for_their_samples(engine: str, batch: int | None) -> None:
    """Train with 50 losses of 100 and one of 5,000, whatever is learned."""
    target = np.full(51, 10.0)
    target[7] = np.sqrt(5000)
    data = Dataset.from_arrays({"xa": np.ones(51)}, {"xw": target})
    graph = cgprimer.parse("xw = 0*k*xa")
    settings: dict[str, Any] = {"epochs": 8, "batch_size": batch, "engine": engine}
    run = train(graph, data, stop_below=150, **settings)
    assert (run.stopped, run.epochs) == ("finished", 8)
    assert run.losses_by_epoch == [run.start_loss, *run.epoch_losses]
    assert run.losses_by_epoch == pytest.approx([10_000 / 51] * 9)
    half = train(graph, data, on_step=interrupt_at(3), **settings)
    run = train(graph, data, resume=half, **settings)
    assert run.epoch_losses == pytest.approx([10_000 / 51] * 8)


def test_training_stops_by_patience_at_the_lowest_validation_loss_or_below_a_loss() -> None:
    """Case F13."""
    graph = cgprimer.parse("xw = k*xa + b")
    data = Dataset.from_arrays({"xa": [0.0, 1.0]}, {"xw": [0.0, 3.0]})
    other = Dataset.from_arrays({"xa": [1.0, 1.0]}, {"xw": [1.4, 1.6]})  # on the way to 3
    settings: dict[str, Any] = {"batch_size": None, "validation": other, "schedule": "constant"}
    settings |= {"optimizer": "sgd", "learning_rate": 0.05, "start": {"k": 0.0, "b": 0.0}}
    run = train(graph, data, epochs=200, patience=5, **settings)
    best = int(np.argmin(run.validation_losses)) + 1
    assert (run.best_epoch, run.stopped, run.epochs) == (best, "patience", best + 5)
    assert run.reason == f"the validation loss has not fallen since epoch {best}"
    until, whole = (train(graph, data, epochs=n, **settings) for n in (best, best + 5))
    assert (run.parameters, run.loss) == (until.parameters, until.loss)
    assert run.last_parameters == whole.parameters
    assert run.validation_losses == whole.validation_losses
    settings |= {"patience": 9, "metrics": "r2"}
    begun = train(graph, data, epochs=best + 3, **settings)
    resumed = train(graph, data, epochs=60, resume=begun, **settings)
    assert fields_of(resumed) == fields_of(train(graph, data, epochs=60, **settings))
    data = cgprimer.make_dataset(line(), samples=500)
    run = train(line(), data, stop_below=1e-3, epochs=500, schedule="constant")
    assert run.stopped == "converged"
    assert run.epochs < 500
    assert run.epoch_losses[-1] < 1e-3 <= min(run.epoch_losses[:-1])
    assert run.steps == run.epochs * 10


@pytest.mark.parametrize("batch_size", [1, 3, None])
def test_first_vertex_and_sample_that_are_not_finite_are_named(batch_size: int | None) -> None:
    graph, xa = cgprimer.parse("xr = 1/xa; xw = k*xr"), np.arange(1.0, 11.0)
    xa[7] = 0.0
    data = Dataset.from_arrays({"xa": xa}, {"xw": xa})
    with pytest.raises(NonFiniteError, match=r"xr = 1/xa is inf for sample 7 \(xa=0\)") as caught:
        train(graph, data, batch_size=batch_size, optimizer="sgd", learning_rate=1e-9)
    order = np.random.default_rng([0, 0]).permutation(10).tolist()
    step = order.index(7) // (batch_size or 10) + 1
    assert f"step {step} (epoch 1)" in str(caught.value)
    run = caught.value.run
    assert run.steps == step - 1 == len(run.step_losses)
    assert (run.parameters == run.start) == (step == 1)
    assert caught.value.exit_code == 1


def test_losses_and_derivatives_that_are_not_finite() -> None:
    for text, xa, target, settings, values in table("losses that are not finite"):
        data = Dataset.from_arrays({"xa": xa}, {"xw": target})
        with refused(NonFiniteError, values):
            train(cgprimer.parse(text), data, batch_size=None, **settings)


@pytest.mark.parametrize("engine", ["numpy", "cpu"])
def test_divergence_is_reported_by_loss_and_by_values(engine: str) -> None:
    settings: dict[str, Any] = {"engine": engine, "batch_size": None, **PLAIN}
    run = train(line(), line_data(), epochs=9, learning_rate=2.0, **settings)
    assert run.loss > 10 * run.start_loss
    assert run.stopped == "diverged"
    approved(run.reason)
    resumed = train(line(), line_data(), epochs=10, learning_rate=1e-9, resume=run, **settings)
    assert resumed.stopped == "diverged"
    with refused(NonFiniteError, "step ... for sample ... --learning-rate") as caught:
        train(line(), line_data(), epochs=900, learning_rate=50.0, **settings)
    failed = caught.value.run
    assert all(np.isfinite(v) for v in (*failed.parameters.values(), *failed.step_losses))
    assert (failed.stopped, failed.reason in str(caught.value)) == ("diverged", True)
    assert train(line(), line_data(), epochs=1).reason == ""


@pytest.mark.parametrize("settings", table("train, refused"), ids=str)
def test_wrong_settings(settings: dict[str, Any]) -> None:
    with refused(CgprimerError):
        train(line(), line_data(), **settings)


def test_wrong_data_and_settings_that_resuming_cannot_change() -> None:
    earlier = train(line(), line_data(), epochs=1, optimizer="sgd", batch_size=2)
    for settings in table("settings that resuming cannot change"):
        with refused(UsageError):
            train(line(), line_data(), epochs=2, resume=earlier, **settings)
    for inputs, targets in table("data, refused"):
        data = Dataset.from_arrays(inputs, targets)  # fmt: skip
        with refused(DataError):
            train(line(), data)
        with refused(DataError):
            train(line(), line_data(), validation=data)
    with refused(UsageError):
        train(cgprimer.parse("xw = xa^2"), line_data())


def parameters_at(run: TrainingRun, position: int) -> dict[str, float]:
    return {name: values[position] for name, values in run.recorded_parameters.items()}


@pytest.mark.parametrize("engine", ["numpy", "cpu"])
@pytest.mark.parametrize("method", ["reverse", "finite-difference"])
def test_validation_losses_are_means_after_each_epoch(engine: str, method: str) -> None:
    others = lecture_data(80, seed=5)
    settings: dict[str, Any] = {"engine": engine, "method": method, **SLOW, "batch_size": 50}
    run = train(lecture(), lecture_data(), epochs=6, validation=others, **settings)
    assert len(run.validation_losses) == len(run.epoch_losses) == 6
    assert run.recorded_steps == [4, 8, 12, 16, 20, 24]
    for k, loss in enumerate(run.validation_losses):
        outputs = lecture().evaluate({**others.inputs, **parameters_at(run, k)})["xw"]
        assert loss == pytest.approx(np.mean((outputs - others.targets["xw"]) ** 2), rel=1e-9)
    without = train(lecture(), lecture_data(), epochs=6, **settings)
    assert (without.parameters, without.step_losses) == (run.parameters, run.step_losses)
    assert without.validation_losses == []


def test_a_fraction_of_the_samples_is_held_out() -> None:
    rest, held_out = lecture_data().split(0.25, seed=3)
    both = np.concatenate([rest.inputs["xa"], held_out.inputs["xa"]])
    assert sorted(both) == sorted(lecture_data().inputs["xa"])
    assert (lecture_data().split(0.25, seed=4)[1].inputs["xa"] != held_out.inputs["xa"]).any()
    run = train(lecture(), lecture_data(), epochs=2, validation=0.25, seed=3)
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
    size: dict[str, Any] = {"batch_size": 10}
    run = train(lecture(), data, epochs=1, validation=0.25, seed=0, **size)
    with refused(UsageError, "0.25"):
        train(lecture(), data, epochs=2, resume=run, **size)
    with refused(UsageError, "--seed 0"):
        train(lecture(), data, epochs=2, resume=run, validation=0.25, seed=1, **size)
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
        found, whole = None, train(lecture(), lecture_data(), **settings)
        for step in (whole.recorded_steps[0], 20, 33, 99):
            callback: Any = {listener: interrupt_at(step)}
            found = train(lecture(), lecture_data(), resume=found, **callback, **settings)
            if found.steps in whole.recorded_steps:
                assert parameters_at(found, -1) == found.parameters
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


@contextmanager
def counted_calls() -> Iterator[list[int]]:
    """Yield a list that receives the number of updates of each call of the compiled trainer."""
    counts: list[int] = []
    run_updates = cpu_trainer.CpuTrainer.run_updates

    def run_counted(self: Any, batches: Any, values: Any, state: Any, rates: Any) -> Any:
        counts.append(len(rates))
        return run_updates(self, batches, values, state, rates)

    with mock.patch.object(cpu_trainer.CpuTrainer, "run_updates", run_counted):
        yield counts


def settings_of(optimizer: str, batch: int | None, **settings: Any) -> dict[str, Any]:
    rate = 0.005 if optimizer == "momentum" else 0.02
    return {"optimizer": optimizer, "batch_size": batch, "learning_rate": rate, "epochs": 3,
            "seed": 2, **settings}  # fmt: skip


def train_two(**settings: Any) -> TrainingRun:
    return train(two_outputs(), two_targets(), **settings)


@cache
def by_numpy(optimizer: str, batch: int | None, dtype: str = "float64") -> TrainingRun:
    return train(
        two_outputs(), two_targets(), engine="numpy", **settings_of(optimizer, batch, dtype=dtype)
    )


def check_equal(found: TrainingRun, expected: TrainingRun, rtol: float) -> None:
    for name in ("steps", "epochs", "stopped", "start"):
        assert getattr(found, name) == getattr(expected, name)
    assert [*found.parameters] == [*expected.parameters]
    for name in ("step_losses", "epoch_losses", "start_loss", "loss"):
        values = getattr(expected, name)
        np.testing.assert_allclose(getattr(found, name), values, rtol=rtol, atol=rtol * 0.01)
    assert found.parameters == pytest.approx(expected.parameters, rel=rtol, abs=rtol)
    for part, other in zip(found.state, expected.state, strict=True):
        assert np.shape(part) == np.shape(other)
        np.testing.assert_allclose(part, other, rtol=rtol, atol=rtol)


@pytest.mark.parametrize(("form_name", "optimizer", "batch", "dtype"), table("engine: "))
def test_every_update_is_that_of_python(
    form_name: str, optimizer: str, batch: int | None, dtype: str
) -> None:
    with form(form_name):
        found = train(
            two_outputs(), two_targets(), engine="cpu", **settings_of(optimizer, batch, dtype=dtype)
        )
    assert found.settings["engine"] == "cpu"
    rtol = 1e-10 if dtype == "float64" else 2e-4
    check_equal(found, by_numpy(optimizer, batch, dtype), rtol)


def test_the_engine_runs_the_updates_of_every_method_unless_each_is_reported() -> None:
    settings: dict[str, Any] = settings_of("adam", 7)
    with counted_calls() as counts:
        train_two(engine="cpu", on_step=lambda *_: None, **settings)
        expected = by_numpy("adam", 7)
        assert counts == []
        for method in ("forward", "symbolic", "finite-difference"):
            found = train_two(engine="cpu", method=method, **settings)
            check_equal(found, expected, 1e-4 if method == "finite-difference" else 1e-10)
        assert sum(counts) == 2 * 3 * 8  # updates by finite differences run in Python


def test_full_batches_are_not_copied() -> None:
    line, column = cgprimer.parse("xw = sin(k*xa)*tanh(b*xa)"), np.linspace(-1, 1, 100_000)
    settings: dict[str, Any] = {"batch_size": None, "epochs": 2, "start": {"k": 1, "b": 2}}
    whole = Dataset.from_arrays({"xa": column}, {"xw": column})
    train(line, whole, engine="cpu", **settings)
    tracemalloc.start()
    try:
        found = train(line, whole, engine="cpu", **settings)
        assert tracemalloc.get_traced_memory()[1] < 2 * column.nbytes
    finally:
        tracemalloc.stop()
    check_equal(found, train(line, whole, engine="numpy", **settings), 1e-10)


@pytest.mark.parametrize(
    ("form_name", "optimizer"), [("straight", "adam"), ("interpreted", "momentum")]
)
def test_calls_and_interruptions_change_nothing(form_name: str, optimizer: str) -> None:
    settings = settings_of(optimizer, 7, engine="cpu")
    before = {name: column.copy() for name, column in two_targets().columns.items()}
    with form(form_name), counted_calls() as counts:
        whole = train_two(**settings)
        counts.clear()
        with mock.patch.object(compiled_updates, "_CALL_SECONDS", 0.0):
            joined = None
            for step in (1, 8, 9):  # of 8 updates per epoch
                joined = train(
                    two_outputs(),
                    two_targets(),
                    on_progress=interrupt_at(step),
                    resume=joined,
                    **settings,
                )
                assert joined.interrupted
                assert joined.steps == len(joined.step_losses) == step
                assert joined.epochs == (step - 1) // 8
            joined = train_two(resume=joined, **settings)
    assert max(counts) == 1
    assert fields_of(joined) == fields_of(whole)
    np.testing.assert_equal(two_targets().columns, before)


@pytest.mark.parametrize("engine", ["cpu", "numpy"])
def test_callbacks_report_every_update_or_the_latest(engine: str) -> None:
    settings: dict[str, Any] = {"engine": engine, "epochs": 2, "batch_size": 10}
    steps: list[Any] = []
    run = train_two(on_step=lambda *a: steps.append(a), **settings)
    assert steps == [(k + 1, 12, loss) for k, loss in enumerate(run.step_losses)]
    progress: list[Any] = []
    run = train_two(on_progress=lambda *a: progress.append(a), **settings)
    assert progress == sorted({step: (step, *rest) for step, *rest in progress}.values())
    assert {6, 12} <= {step for step, _, _ in progress}  # never across the end of an epoch
    assert all((total, loss) == (12, run.step_losses[step - 1]) for step, total, loss in progress)


def check_failures(
    form_name: str, text: str, xa: Any, xw: Any, message: str, **settings: Any
) -> None:
    """Compare the errors of a run with numpy and with the compiled engine."""
    errors, columns = [], Dataset.from_arrays({"xa": xa}, {"xw": xw})
    settings |= {"start": {"k": 1.0, "b": 0.5}}
    for engine in ("numpy", "cpu"):
        with form(form_name), pytest.raises(NonFiniteError, match=message) as caught:
            train(cgprimer.parse(text), columns, engine=engine, **settings)
        errors.append(caught.value)
    expected, found = (error.run for error in errors)
    assert str(errors[0]).split(": ")[0] == str(errors[1]).split(": ")[0]
    assert (found.steps, found.epochs) == (expected.steps, expected.epochs)
    assert len(found.step_losses) == found.steps
    for name in ("step_losses", "state"):
        for part, other in zip(getattr(found, name), getattr(expected, name), strict=True):
            np.testing.assert_allclose(part, other, rtol=1e-6)
    assert found.parameters == pytest.approx(expected.parameters, rel=1e-6)
    assert all(np.isfinite([*found.parameters.values(), *found.step_losses]))


@pytest.mark.parametrize("form_name", FORMS)
def test_runs_end_at_the_first_update_that_is_not_finite(form_name: str) -> None:
    xa = np.linspace(-2.0, 3.0, 31)
    fast: dict[str, Any] = {"epochs": 20, "schedule": "constant", "learning_rate": 0.5}
    for optimizer, batch in (("sgd", 1), ("momentum", 7), ("sgd", None)):
        check_failures(form_name, "xh = (k*xa + b)^3; xw = xh*k", xa, xa, "at step",
                       optimizer=optimizer, batch_size=batch, **fast)  # fmt: skip
    rules: dict[str, Any] = {"learning_rate": 1e-3, "shuffle": False}
    xa = np.linspace(0.0, 1.0, 60)
    xa[41] = -5.0
    for optimizer in ("momentum", "adam"):
        check_failures(form_name, "xh = sqrt(k + xa); xw = xh*b", xa, np.ones(60), "step 11 ",
                       batch_size=4, optimizer=optimizer, **rules)  # fmt: skip
    xa = np.linspace(0.5, 1.0, 23)
    xa[17] = 0.0  # at the edge of the root, the loss is finite and its derivative is not
    for batch, step in ((1, 18), (5, 4)):
        check_failures(form_name, "xw = sqrt(k*xa) + b", xa, xa, f"step {step} .*derivative",
                       batch_size=batch, **rules)  # fmt: skip
