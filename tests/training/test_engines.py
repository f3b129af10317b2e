"""Training inside the CPU engine is training in Python: the same steps, losses, state and ends."""

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
from cgprimer.backends.cpu import cpu_engine
from cgprimer.core.registration import register_primitive, unregister_primitive
from cgprimer.errors import NonFiniteError
from cgprimer.training import compiled_updates
from cgprimer.training.data import Dataset
from cgprimer.training.loop import TrainingRun, train
from tests.approval import refused
from tests.native.engine_agreement import FORMS, form
from tests.training.training_graphs import two_outputs as graph
from tests.training.training_graphs import two_targets as data

METHODS = ("reverse", "forward", "symbolic", "path-sum")
OPTIMIZERS = {"sgd": 0.02, "momentum": 0.005, "adam": 0.02}
BATCHES = (1, 7, 50, None)


@pytest.fixture(autouse=True)
def nothing_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGPRIMER_CACHE", "off")


@contextmanager
def watched_trainer() -> Iterator[list[int]]:
    """The number of steps of each call in which the engine trained."""
    done: list[int] = []
    real = cpu_engine.CpuEngine.trainer

    class Watched:
        def __init__(self, trainer: Any) -> None:
            self.trainer = trainer

        def run_updates(self, batches: Any, values: Any, state: Any, rates: Any):
            done.append(len(rates))
            return self.trainer.run_updates(batches, values, state, rates)

    def make(self: Any, *arguments: Any, **more: Any) -> Watched:
        return Watched(real(self, *arguments, **more))

    with mock.patch.object(cpu_engine.CpuEngine, "trainer", make):
        yield done


@cache
def by_numpy(method: str, optimizer: str, batch: int | None, dtype: str) -> TrainingRun:
    return train(
        graph(), data(), engine="numpy", method=method, optimizer=optimizer, epochs=3,
        learning_rate=OPTIMIZERS[optimizer], batch_size=batch, dtype=dtype, seed=2,
    )  # fmt: skip


def assert_same_run(found: TrainingRun, wanted: TrainingRun, close: float) -> None:
    assert list(found.parameters) == list(wanted.parameters)
    assert (found.steps, found.epochs, found.stopped) == (
        wanted.steps, wanted.epochs, wanted.stopped
    )  # fmt: skip
    assert found.start == wanted.start
    known = wanted.step_losses
    assert len(found.step_losses) == len(known)
    np.testing.assert_allclose(found.step_losses, known, rtol=close, atol=close * 0.01)
    np.testing.assert_allclose(found.epoch_losses, wanted.epoch_losses, rtol=close)
    np.testing.assert_allclose(
        list(found.parameters.values()), list(wanted.parameters.values()), rtol=close, atol=close
    )
    assert len(found.state) == len(wanted.state)
    for part, other in zip(found.state, wanted.state, strict=True):
        assert np.shape(part) == np.shape(other)
        np.testing.assert_allclose(part, other, rtol=close, atol=close)
    np.testing.assert_allclose(
        [found.start_loss, found.loss], [wanted.start_loss, wanted.loss], close
    )


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("form_name", FORMS)
def test_every_step_is_the_one_in_python(form_name: str, optimizer: str, batch: int | None) -> None:
    for dtype, close in (("float64", 1e-10), ("float32", 2e-4)):
        with form(form_name):
            found = train(
                graph(), data(), engine="cpu", optimizer=optimizer, epochs=3, seed=2,
                learning_rate=OPTIMIZERS[optimizer], batch_size=batch, dtype=dtype,
            )  # fmt: skip
        assert found.settings["engine"] == "cpu"
        assert_same_run(found, by_numpy("reverse", optimizer, batch, dtype), close)


@pytest.mark.parametrize("batch", [1, 50])
@pytest.mark.parametrize("method", METHODS[1:])
@pytest.mark.parametrize("form_name", FORMS)
def test_every_method(form_name: str, method: str, batch: int) -> None:
    with form(form_name):
        found = train(
            graph(), data(), engine="cpu", method=method, optimizer="adam", epochs=3, seed=2,
            learning_rate=OPTIMIZERS["adam"], batch_size=batch,
        )  # fmt: skip
    assert_same_run(found, by_numpy(method, "adam", batch, "float64"), 1e-10)


def test_finite_differences_train_step_by_step() -> None:
    settings: dict[str, Any] = {"method": "finite-difference", "epochs": 2, "batch_size": 20}
    found = train(graph(), data(), engine="cpu", **settings)
    assert_same_run(found, train(graph(), data(), engine="numpy", **settings), 1e-4)


def test_the_engine_does_the_steps_itself() -> None:
    """What is tested here is not Python's loop."""
    with watched_trainer() as done:
        train(graph(), data(), engine="numpy", epochs=4, batch_size=7)
        assert done == []
        train(graph(), data(), engine="cpu", epochs=4, batch_size=7)
        assert sum(done) == 4 * 15
        train(graph(), data(), engine="cpu", epochs=4, batch_size=7, on_step=lambda *_: None)
        assert sum(done) == 4 * 15


def test_all_samples_at_once_are_neither_put_in_order_nor_copied() -> None:
    line, column = cgprimer.parse("xw = sin(k*xa)*tanh(b*xa)"), np.linspace(-1, 1, 100_000)
    held: dict[str, Any] = {"batch_size": None, "epochs": 2, "start": {"k": 1, "b": 2}}
    whole = Dataset.from_arrays({"xa": column}, {"xw": column})
    train(line, whole, engine="cpu", **held)
    tracemalloc.start()
    try:
        found = train(line, whole, engine="cpu", **held)
        assert tracemalloc.get_traced_memory()[1] < 2 * column.nbytes
    finally:
        tracemalloc.stop()
    assert_same_run(found, train(line, whole, engine="numpy", **held), 1e-10)


@pytest.mark.parametrize("form_name", FORMS)
def test_the_same_run_every_time(form_name: str) -> None:
    settings: dict[str, Any] = {"engine": "cpu", "epochs": 3, "batch_size": 7}
    with form(form_name):
        once, again = (train(graph(), data(), **settings) for _ in range(2))
    assert once.parameters == again.parameters
    assert once.step_losses == again.step_losses
    assert [np.asarray(p).tolist() for p in once.state] == [
        np.asarray(p).tolist() for p in again.state
    ]


def test_the_samples_and_the_start_stay_as_they_are() -> None:
    start = dict.fromkeys(graph().parameters, 0.25)
    before = {n: c.copy() for n, c in {**data().inputs, **data().targets}.items()}
    run = train(graph(), data(), engine="cpu", epochs=2, start=start, shuffle=False)
    assert run.start == start == dict.fromkeys(graph().parameters, 0.25)
    for name, column in {**data().inputs, **data().targets}.items():
        np.testing.assert_array_equal(column, before[name])
    wanted = train(graph(), data(), engine="numpy", epochs=2, start=start, shuffle=False)
    assert_same_run(run, wanted, 1e-10)


# --- many calls of the engine, few calls, interruptions ------------------------------------------


@contextmanager
def steps_at_a_time(most: int) -> Iterator[None]:
    """The engine is asked for so few steps at a time that an epoch takes many calls."""
    with mock.patch.object(compiled_updates, "_CALL_SECONDS", 0.0), watched_trainer() as done:
        yield
    assert done
    assert max(done) <= most


@pytest.mark.parametrize("batch", [1, 7, 103])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_it_makes_no_difference_how_many_steps_a_call_does(optimizer: str, batch: int) -> None:
    settings: dict[str, Any] = {
        "engine": "cpu", "optimizer": optimizer, "epochs": 2, "batch_size": batch,
        "learning_rate": OPTIMIZERS[optimizer],
    }  # fmt: skip
    whole = train(graph(), data(), **settings)
    with steps_at_a_time(1):
        cut = train(graph(), data(), **settings)
    assert cut.parameters == whole.parameters
    assert cut.step_losses == whole.step_losses


@pytest.mark.parametrize("form_name", FORMS)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("at", [1, 15, 16])  # of 15 steps an epoch
def test_a_run_interrupted_midway_and_taken_up(form_name: str, optimizer: str, at: int) -> None:
    settings: dict[str, Any] = {
        "engine": "cpu", "optimizer": optimizer, "epochs": 3, "batch_size": 7,
        "learning_rate": OPTIMIZERS[optimizer],
    }  # fmt: skip
    with form(form_name):
        whole = train(graph(), data(), **settings)

        def stop(step: int, total: int, loss: float) -> None:
            assert total == 45
            if step >= at:
                raise KeyboardInterrupt

        with steps_at_a_time(1):
            part = train(graph(), data(), on_progress=stop, **settings)
        assert part.interrupted
        assert part.steps == at == len(part.step_losses)
        assert part.epochs == (at - 1) // 15
        joined = train(graph(), data(), resume=part, **settings)
    assert joined.parameters == whole.parameters
    assert joined.step_losses == whole.step_losses
    assert joined.epoch_losses == whole.epoch_losses
    assert (joined.steps, joined.epochs, joined.stopped) == (45, 3, "finished")


def test_a_run_goes_on_with_another_engine() -> None:
    settings: dict[str, Any] = {"optimizer": "adam", "epochs": 4, "batch_size": 7}

    def stop(step: int, _: int, __: float) -> None:
        if step == 20:
            raise KeyboardInterrupt

    for first, second in (("cpu", "numpy"), ("numpy", "cpu")):
        part = train(graph(), data(), engine=first, on_step=stop, **settings)
        assert part.steps == 20
        joined = train(graph(), data(), engine=second, resume=part, **settings)
        assert_same_run(joined, train(graph(), data(), engine="numpy", **settings), 1e-10)


@pytest.mark.parametrize("engine_name", ["cpu", "numpy"])
def test_on_step_is_told_every_step_and_on_progress_the_last_one(engine_name: str) -> None:
    told: dict[str, list[tuple[int, int, float]]] = {"step": [], "progress": []}
    settings: dict[str, Any] = {"engine": engine_name, "epochs": 2, "batch_size": 10}
    run = train(graph(), data(), on_step=lambda *a: told["step"].append(a), **settings)
    assert told["step"] == [(k + 1, 22, loss) for k, loss in enumerate(run.step_losses)]
    run = train(graph(), data(), on_progress=lambda *a: told["progress"].append(a), **settings)
    seen = [step for step, _, _ in told["progress"]]
    assert seen == sorted(set(seen))
    assert {11, 22} <= set(seen)  # at least once an epoch, and never across its end
    for step, total, loss in told["progress"]:
        assert (total, loss) == (22, run.step_losses[step - 1])


@pytest.mark.parametrize("form_name", FORMS)
def test_training_stops_below_a_loss(form_name: str) -> None:
    settings: dict[str, Any] = {"epochs": 30, "batch_size": 10, "seed": 2, "schedule": "constant"}
    losses = train(graph(), data(), engine="numpy", **settings).epoch_losses
    below = sorted(losses)[-9]
    wanted = train(graph(), data(), engine="numpy", stop_below=below, **settings)
    with form(form_name):
        found = train(graph(), data(), engine="cpu", stop_below=below, **settings)
    assert found.stopped == wanted.stopped == "converged"
    assert found.epochs == wanted.epochs < 30
    assert_same_run(found, wanted, 1e-8)


# --- what is not finite --------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", ["sgd", "momentum"])
@pytest.mark.parametrize("batch", [1, 7, None])
@pytest.mark.parametrize("form_name", FORMS)
def test_divergence_stops_at_the_same_step(
    form_name: str, batch: int | None, optimizer: str
) -> None:
    graph = cgprimer.parse("xh = (k*xa + b)^3; xw = xh*k")
    xa = np.linspace(-2.0, 3.0, 31)
    dataset = Dataset.from_arrays({"xa": xa}, {"xw": xa})
    errors = []
    for engine_name in ("numpy", "cpu"):
        with form(form_name), pytest.raises(NonFiniteError) as caught:
            train(
                graph, dataset, engine=engine_name, optimizer=optimizer, batch_size=batch,
                learning_rate=0.5, epochs=20, schedule="constant", start={"k": 1.0, "b": 0.5},
            )  # fmt: skip
        errors.append(caught.value)
    wanted, found = errors
    assert "at step" in str(wanted)
    where = str(wanted).split(": ")[0]
    assert str(found).startswith(where)
    run, known = found.run, wanted.run
    assert run.steps == known.steps == len(run.step_losses)
    assert run.epochs == known.epochs
    np.testing.assert_allclose(run.step_losses, known.step_losses, rtol=1e-6)
    np.testing.assert_allclose(
        list(run.parameters.values()), list(known.parameters.values()), rtol=1e-6
    )
    assert all(np.isfinite(value) for value in run.parameters.values())


@pytest.mark.parametrize("form_name", FORMS)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_one_bad_sample_stops_at_its_step(form_name: str, optimizer: str) -> None:
    """The message names sample and vertex; the run is that up to the step before."""
    graph = cgprimer.parse("xh = sqrt(k + xa); xw = xh*b")
    xa = np.linspace(0.0, 1.0, 60)
    xa[41] = -5.0
    dataset = Dataset.from_arrays({"xa": xa}, {"xw": np.ones(60)})
    errors = []
    for engine_name in ("numpy", "cpu"):
        with form(form_name), pytest.raises(NonFiniteError) as caught:
            train(
                graph, dataset, engine=engine_name, batch_size=4, optimizer=optimizer,
                learning_rate=1e-3, start={"k": 1.0, "b": 0.5}, shuffle=False,
            )  # fmt: skip
        errors.append(caught.value)
    assert str(errors[0]) == str(errors[1])
    assert "step 11 " in str(errors[0])
    runs = [error.run for error in errors]
    assert [run.steps for run in runs] == [10, 10]
    np.testing.assert_allclose(runs[1].step_losses, runs[0].step_losses, rtol=1e-10)
    assert runs[1].parameters == pytest.approx(runs[0].parameters, rel=1e-10)
    for part, other in zip(runs[1].state, runs[0].state, strict=True):
        np.testing.assert_allclose(part, other, rtol=1e-10)


@pytest.mark.parametrize("form_name", FORMS)
@pytest.mark.parametrize("batch", [1, 5])
def test_a_gradient_that_is_not_finite_stops_too(form_name: str, batch: int) -> None:
    """At the edge of the root the loss is a number and its derivative is none."""
    graph = cgprimer.parse("xw = sqrt(k*xa) + b")
    xa = np.linspace(0.5, 1.0, 23)
    xa[17] = 0.0
    dataset = Dataset.from_arrays({"xa": xa}, {"xw": xa})
    errors = []
    for engine_name in ("numpy", "cpu"):
        with form(form_name), pytest.raises(NonFiniteError, match="derivative") as caught:
            train(
                graph, dataset, engine=engine_name, batch_size=batch, learning_rate=1e-3,
                start={"k": 1.0, "b": 0.5}, shuffle=False,
            )  # fmt: skip
        errors.append(caught.value)
    assert str(errors[0]) == str(errors[1])
    assert [error.run.steps for error in errors] == [17 // batch] * 2
    assert all(np.isfinite(value) for value in errors[1].run.step_losses)


# --- primitives of one's own ---------------------------------------------------------------------


@pytest.fixture
def picky() -> Iterator[list[float]]:
    """``picky(a)`` is the sine; once the list has a number, larger operands raise."""
    limit: list[float] = []

    def function(a: Any) -> Any:
        if limit and np.any(np.abs(a) > limit[0]):
            raise LookupError("too picky for this")
        return np.sin(a)

    register_primitive("picky", function, partials="cos(a)")
    yield limit
    unregister_primitive("picky")


@pytest.mark.parametrize("batch", [1, 7, None])
def test_a_primitive_of_ones_own_learns_the_same(picky: list[float], batch: int | None) -> None:
    text = "xw = {}(k*xa + b)*c + {}(c)"
    mine, known = (cgprimer.parse(text.format(name, name)) for name in ("picky", "sin"))
    dataset = Dataset.from_arrays({"xa": data().inputs["xa"]}, {"xw": data().targets["xv"]})
    settings: dict[str, Any] = {"epochs": 2, "batch_size": batch, "seed": 1}
    wanted = train(known, dataset, engine="numpy", **settings)
    assert_same_run(train(mine, dataset, engine="cpu", **settings), wanted, 1e-10)


def test_a_primitive_that_raises_ends_the_training(picky: list[float]) -> None:
    mine = cgprimer.parse("xw = picky(k*xa)")
    dataset = Dataset.from_arrays({"xa": np.linspace(0, 1, 50)}, {"xw": np.ones(50)})
    picky.append(0.1)
    with refused(LookupError):
        train(mine, dataset, engine="cpu", epochs=2, start={"k": 0.9}, batch_size=5)
    picky[0] = 100.0
    run = train(mine, dataset, engine="cpu", epochs=2, start={"k": 0.9}, batch_size=5)
    assert run.stopped == "finished"
