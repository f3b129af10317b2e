"""Training in machine code equals training in Python: steps, losses, state and ends of runs."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import cgprimer
from cgprimer.backends.cpu import cpu_trainer
from cgprimer.errors import NonFiniteError
from cgprimer.training import compiled_updates
from cgprimer.training.data import Dataset
from cgprimer.training.loop import TrainingRun, train
from tests.native.engine_agreement import FORMS, form
from tests.training.training_graphs import fields_of, interrupt_at, table
from tests.training.training_graphs import two_outputs as graph
from tests.training.training_graphs import two_targets as data


@pytest.fixture(autouse=True)
def without_disk_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGPRIMER_CACHE", "off")


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


@cache
def by_numpy(optimizer: str, batch: int | None, dtype: str = "float64") -> TrainingRun:
    return train(graph(), data(), engine="numpy", **settings_of(optimizer, batch, dtype=dtype))


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
        found = train(graph(), data(), engine="cpu", **settings_of(optimizer, batch, dtype=dtype))
    assert found.settings["engine"] == "cpu"
    rtol = 1e-10 if dtype == "float64" else 2e-4
    check_equal(found, by_numpy(optimizer, batch, dtype), rtol)


def test_the_engine_runs_the_updates_of_every_method_unless_each_is_reported() -> None:
    settings: dict[str, Any] = settings_of("adam", 7)
    with counted_calls() as counts:
        train(graph(), data(), engine="cpu", on_step=lambda *_: None, **settings)
        expected = by_numpy("adam", 7)
        assert counts == []
        for method in ("forward", "symbolic", "finite-difference"):
            found = train(graph(), data(), engine="cpu", method=method, **settings)
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
    before = {name: column.copy() for name, column in data().columns.items()}
    with form(form_name), counted_calls() as counts:
        whole = train(graph(), data(), **settings)
        counts.clear()
        with mock.patch.object(compiled_updates, "_CALL_SECONDS", 0.0):
            joined = None
            for step in (1, 8, 9):  # of 8 updates per epoch
                joined = train(
                    graph(), data(), on_progress=interrupt_at(step), resume=joined, **settings
                )
                assert joined.interrupted
                assert joined.steps == len(joined.step_losses) == step
                assert joined.epochs == (step - 1) // 8
            joined = train(graph(), data(), resume=joined, **settings)
    assert max(counts) == 1
    assert fields_of(joined) == fields_of(whole)
    np.testing.assert_equal(data().columns, before)


@pytest.mark.parametrize("engine", ["cpu", "numpy"])
def test_callbacks_report_every_update_or_the_latest(engine: str) -> None:
    settings: dict[str, Any] = {"engine": engine, "epochs": 2, "batch_size": 10}
    steps: list[Any] = []
    run = train(graph(), data(), on_step=lambda *a: steps.append(a), **settings)
    assert steps == [(k + 1, 12, loss) for k, loss in enumerate(run.step_losses)]
    progress: list[Any] = []
    run = train(graph(), data(), on_progress=lambda *a: progress.append(a), **settings)
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
