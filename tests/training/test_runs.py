"""Whole runs: what they reach, that they repeat, that they can be stopped and taken up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.errors import DataError, NonFiniteError, UsageError
from cgprimer.training.data import Dataset
from cgprimer.training.loop import TrainingRun, train
from tests.approval import refused
from tests.training.training_graphs import TRUTH, lecture, lecture_data, line, line_data

METHODS = cgprimer.methods()


def facts(run: TrainingRun) -> dict[str, Any]:
    """What two equal runs have in common: everything but the time they took."""
    found = {k: v for k, v in vars(run).items() if k not in ("seconds", "state")}
    return {**found, "state": [np.asarray(part).tolist() for part in run.state]}


@pytest.mark.parametrize("seed", range(3))
def test_the_lecture_example_with_defaults(seed: int) -> None:
    run = train(lecture(), cgprimer.make_dataset(lecture(), seed=seed), seed=seed)
    assert run.loss < 1e-6 * run.start_loss
    assert run.parameters["ab"] + run.parameters["bc"] == pytest.approx(3, abs=0.02)
    assert run.parameters["cd"] == pytest.approx(3, abs=0.02)
    assert run.parameters["ac"] == pytest.approx(4, abs=0.02)
    assert run.truth == TRUTH
    assert (run.epochs, run.steps, run.stopped) == (30, 6000, "finished")
    assert len(run.step_losses) == 6000
    assert len(run.epoch_losses) == 30
    assert not run.interrupted


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 23))
def test_the_lecture_example_from_many_starts(seed: int) -> None:
    run = train(lecture(), cgprimer.make_dataset(lecture(), seed=seed), seed=seed)
    assert run.loss < 1e-6 * run.start_loss


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
def test_every_optimizer_learns_a_line(optimizer: str) -> None:
    data = cgprimer.make_dataset(line(), samples=1000)
    run = train(line(), data, optimizer=optimizer)
    assert run.parameters == pytest.approx({"k": 3.0, "b": -1.0}, abs=1e-4)
    assert run.loss < 1e-6 * run.start_loss


@pytest.mark.parametrize("batch_size", [1, 7, None])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_alike(method: str, batch_size: int | None) -> None:
    settings: dict[str, Any] = {"epochs": 3, "batch_size": batch_size, "learning_rate": 0.01}
    run = train(lecture(), lecture_data(50), method=method, **settings)
    known = train(lecture(), lecture_data(50), **settings)
    rel = 1e-5 if method == "finite-difference" else 1e-10
    assert run.parameters == pytest.approx(known.parameters, rel=rel)
    assert run.settings["method"] == method


def test_options_of_the_method_are_handed_on() -> None:
    settings: dict[str, Any] = {"epochs": 2, "batch_size": 10}
    known = train(lecture(), lecture_data(50), **settings)
    for method, options in (
        ("forward", {"carry": True}),
        ("symbolic", {"share": False}),
        ("finite-difference", {"scheme": "complex-step"}),
    ):
        run = train(lecture(), lecture_data(50), method=method, **settings, **options)
        assert run.parameters == pytest.approx(known.parameters, rel=1e-9)
    with refused(UsageError):
        train(lecture(), lecture_data(50), carry=True)


@pytest.mark.parametrize("batch_size", [1, 20, None])
def test_a_seed_gives_the_same_run(batch_size: int | None) -> None:
    settings: dict[str, Any] = {"epochs": 3, "batch_size": batch_size, "seed": 4}
    once = train(lecture(), lecture_data(60), **settings)
    again = train(lecture(), lecture_data(60), **settings)
    assert facts(once) == facts(again)
    other = train(lecture(), lecture_data(60), **{**settings, "seed": 5})
    assert other.start != once.start


def test_start_values_are_drawn_from_the_unit_interval_or_given() -> None:
    starts = [train(lecture(), lecture_data(5), epochs=0, seed=s).start for s in range(50)]
    values = np.array([list(s.values()) for s in starts])
    assert values.min() >= 0
    assert values.max() < 1
    assert len(np.unique(values)) == values.size
    run = train(lecture(), lecture_data(5), epochs=0, start={"cd": -7.0})
    assert run.start == {**starts[0], "cd": -7.0}
    assert run.parameters == run.start
    with refused(UsageError, "'zz'"):
        train(lecture(), lecture_data(5), start={"zz": 1.0})


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
@pytest.mark.parametrize("batch_size", [1, 7, None])
def test_a_run_taken_up_is_the_run_without_a_break(optimizer: str, batch_size: int | None) -> None:
    """Counts, losses, optimizer state and the order of the samples all go on."""
    settings: dict[str, Any] = {
        "optimizer": optimizer, "batch_size": batch_size, "schedule": "constant",
        "learning_rate": 0.01, "seed": 3,
    }  # fmt: skip
    data = cgprimer.make_dataset(line(), samples=30, noise=0.1)
    whole = train(line(), data, epochs=5, **settings)
    part = train(line(), data, epochs=2, **settings)
    assert part.epochs == 2
    joined = train(line(), data, epochs=5, resume=part, **settings)
    assert facts(joined) == facts(whole)


def test_taking_up_a_finished_run_does_nothing() -> None:
    run = train(line(), line_data(), epochs=2)
    before = facts(run)
    again = train(line(), line_data(), epochs=2, resume=run)
    assert facts(again) == before


def test_a_run_taken_up_with_another_optimizer() -> None:
    """The state of another rule does not fit: either it starts afresh, or the error says so."""
    for first in ("sgd", "momentum", "adam"):
        for second in ("sgd", "momentum", "adam"):
            part = train(line(), line_data(), optimizer=first, epochs=1)
            try:
                run = train(line(), line_data(), optimizer=second, epochs=40, resume=part)
            except UsageError as error:
                assert first in str(error)  # noqa: PT017
            else:
                assert run.loss < run.start_loss


@pytest.mark.parametrize("schedule", ["cosine", "constant"])
@pytest.mark.parametrize("batch_size", [1, 10, None])
def test_ctrl_c_ends_cleanly(schedule: str, batch_size: int | None) -> None:
    seen = []

    def on_step(step: int, total: int, loss: float) -> None:
        seen.append((step, total, loss))
        if step == 3:
            raise KeyboardInterrupt

    run = train(
        lecture(), lecture_data(50), epochs=4, batch_size=batch_size, schedule=schedule,
        learning_rate=0.01, on_step=on_step,
    )  # fmt: skip
    assert run.interrupted
    assert run.stopped == "interrupted"
    assert run.steps == 3
    per_epoch = {1: 50, 10: 5, None: 1}[batch_size]
    assert [(s, t) for s, t, _ in seen] == [(i, 4 * per_epoch) for i in (1, 2, 3)]
    assert run.step_losses == [loss for _, _, loss in seen]
    assert run.parameters != run.start
    assert np.isfinite(run.loss)
    assert run.seconds > 0
    assert "interrupted" in repr(run)


def test_an_interrupted_run_is_taken_up_at_the_epoch_it_was_in() -> None:
    def on_step(step: int, total: int, loss: float) -> None:
        if step == 8:
            raise KeyboardInterrupt

    settings: dict[str, Any] = {"batch_size": 10, "epochs": 4, "learning_rate": 0.01}
    part = train(lecture(), lecture_data(50), on_step=on_step, **settings)
    assert (part.epochs, part.steps) == (1, 8)
    run = train(lecture(), lecture_data(50), resume=part, **settings)
    assert (run.epochs, run.stopped) == (4, "finished")
    assert run.loss < run.start_loss
    assert len(run.epoch_losses) == 4
    assert len(run.step_losses) == run.steps


def test_on_step_hears_of_every_step() -> None:
    seen = []
    run = train(
        line(), line_data(), epochs=2, batch_size=2, on_step=lambda *told: seen.append(told)
    )
    assert seen == [(i + 1, 6, loss) for i, loss in enumerate(run.step_losses)]


def test_stop_below() -> None:
    data = cgprimer.make_dataset(line(), samples=500)
    run = train(line(), data, stop_below=1e-3, epochs=500, schedule="constant")
    assert run.stopped == "converged"
    assert run.epochs < 500
    assert run.epoch_losses[-1] < 1e-3
    assert all(loss >= 1e-3 for loss in run.epoch_losses[:-1])
    assert run.steps == run.epochs * 10


def test_float32() -> None:
    data = cgprimer.make_dataset(line(), samples=1000)
    run = train(line(), data, dtype="float32")
    double = train(line(), data)
    assert run.loss < 1e-6 * run.start_loss
    assert run.settings["dtype"] == "float32"
    assert run.parameters == pytest.approx(double.parameters, rel=1e-3)
    assert run.step_losses[0] != double.step_losses[0]
    one = train(line(), line_data(), dtype="float32", batch_size=1, epochs=1)
    known = train(line(), line_data(), batch_size=1, epochs=1)
    assert one.step_losses == pytest.approx(known.step_losses, rel=1e-4)


def test_a_graph_without_inputs_learns_the_mean() -> None:
    graph = cgprimer.parse("xw = k")
    data = Dataset.from_arrays({}, {"xw": [1.0, 2.0, 6.0]})
    run = train(graph, data, batch_size=None, epochs=500)
    assert run.parameters["k"] == pytest.approx(3.0, abs=1e-3)


def test_more_columns_than_needed_are_no_matter() -> None:
    data = line_data()
    more = Dataset.from_arrays(
        {"xq": np.zeros(5), **data.inputs}, {"xv": np.ones(5), **data.targets}
    )
    assert facts(train(line(), more, epochs=2)) == facts(train(line(), data, epochs=2))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"epochs": -1}, "0 ... -1"),
        ({"schedule": "cosin"}, "'cosine'"),
        ({"learning_rate": 0.0}, ""),
        ({"learning_rate": float("nan")}, "nan"),
        ({"batch_size": 0}, "1 ... 0"),
        ({"stop_below": 0.0}, ""),
        ({"optimizer": "rmsprob"}, "rmsprop"),
        ({"loss": "nosuch"}, ""),
        ({"dtype": "int8"}, ""),
        ({"engine": "abacus"}, ""),
        ({"method": "backprop"}, ""),
    ],
)
def test_wrong_settings(settings: dict[str, Any], said: str) -> None:
    with refused(UsageError, said):
        train(line(), line_data(), **settings)


def test_wrong_data() -> None:
    with refused(DataError):
        train(line(), Dataset.from_arrays({"xa": []}, {"xw": []}))
    with refused(DataError, "'xa'"):
        train(line(), Dataset.from_arrays({"xb": [1.0]}, {"xw": [1.0]}))
    with refused(DataError, "'xw'"):
        train(line(), Dataset.from_arrays({"xa": [1.0]}, {"xv": [1.0]}))
    with refused(UsageError):
        train(cgprimer.parse("xw = xa^2"), line_data())


# --- values that are not finite -------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [1, 3, None])
def test_the_first_bad_vertex_and_sample_are_named(batch_size: int | None) -> None:
    """Sample 7 divides by zero; xw stays finite there no longer."""
    xa = np.arange(1.0, 11.0)
    xa[7] = 0.0
    graph = cgprimer.parse("xr = 1/xa; xw = k*xr")
    data = Dataset.from_arrays({"xa": xa}, {"xw": np.ones(10)})
    with pytest.raises(NonFiniteError) as caught:
        train(graph, data, batch_size=batch_size, optimizer="sgd", learning_rate=1e-9)
    order = np.random.default_rng([0, 0]).permutation(10).tolist()
    step = order.index(7) // (batch_size or 10) + 1
    message = str(caught.value)
    assert f"step {step} (epoch 1)" in message
    assert "xr = 1/xa is inf for sample 7 (xa=0)" in message
    run = caught.value.run
    assert isinstance(run, TrainingRun)
    assert run.steps == step - 1 == len(run.step_losses)
    assert (run.parameters == run.start) == (step == 1)
    assert caught.value.exit_code == 1


def test_divergence_keeps_the_last_finite_run() -> None:
    with pytest.raises(NonFiniteError) as caught:
        train(lecture(), lecture_data(), optimizer="sgd", learning_rate=10.0)
    run = caught.value.run
    assert isinstance(run, TrainingRun)
    assert all(np.isfinite(v) for v in run.parameters.values())
    assert np.isfinite(run.step_losses).all()
    message = str(caught.value)
    assert f"step {run.steps + 1} " in message
    assert "for sample" in message
    assert "--learning-rate" in message


def test_a_loss_that_overflows_is_named() -> None:
    data = Dataset.from_arrays({"xa": [1.0, 1.0]}, {"xw": [0.0, -1e200]})
    with refused(NonFiniteError, "inf ... 1 (xa=1)"):
        train(cgprimer.parse("xw = k*xa"), data, batch_size=None)


def test_a_derivative_that_is_not_finite_is_named() -> None:
    """sqrt at 0: the value is finite, the slope is not."""
    data = Dataset.from_arrays({"xa": [1.0, 0.0]}, {"xw": [1.0, 1.0]})
    with refused(NonFiniteError):
        train(cgprimer.parse("xw = sqrt(k*xa)"), data, batch_size=None)


def test_a_last_step_that_leaves_the_domain_is_found() -> None:
    """Every step is finite, but the values after the last one are not."""
    data = Dataset.from_arrays({"xa": [1.0]}, {"xw": [-50.0]})
    with refused(NonFiniteError, "xw = log(k*xa) ... nan ... 0"):
        train(
            cgprimer.parse("xw = log(k*xa)"), data, optimizer="sgd", learning_rate=1.0,
            epochs=1, start={"k": 1.0},
        )  # fmt: skip


@pytest.mark.parametrize(
    "wrong", [{"epochs": 1.5}, {"seed": 0.5}, {"batch_size": 2.5}, {"epochs": 10**25}]
)
def test_counts_are_whole_numbers(wrong):
    graph = cgprimer.parse("xw = k*xa; parameter k = 2")
    with refused(cgprimer.CgprimerError):
        cgprimer.train(graph, cgprimer.make_dataset(graph, samples=10), **wrong)


def test_a_long_run_begins_at_once() -> None:
    """Nothing is made for all of its steps beforehand: 10^12 of them would not fit anywhere."""
    graph = cgprimer.parse("xw = k*xa")
    data = cgprimer.Dataset.from_arrays(inputs={"xa": [1.0, 2.0]}, targets={"xw": [3.0, 6.0]})

    def enough(*_: object) -> None:
        raise KeyboardInterrupt

    run = cgprimer.train(graph, data, epochs=10**12, batch_size=1, on_progress=enough)
    assert run.interrupted
    assert run.steps >= 1
