"""The curve of a run: what an epoch's loss is, where it begins, and why it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.errors import NonFiniteError, UsageError
from cgprimer.training.checkpoint import load_run
from cgprimer.training.data import Dataset
from cgprimer.training.loop import TrainingRun, train
from cgprimer.training.runs import save_run
from tests.approval import approved
from tests.training.training_graphs import line, line_data


def outlier() -> tuple[cgprimer.ExpressionGraph, Dataset]:
    """51 samples of which one is far off: 50 losses of 100 and one of 5,000, whatever is learnt."""
    target = np.full(51, 10.0)
    target[7] = np.sqrt(5000)
    return cgprimer.parse("xw = 0*k*xa"), Dataset.from_arrays({"xa": np.ones(51)}, {"xw": target})


@pytest.mark.parametrize("engine", ["numpy", "cpu"])
@pytest.mark.parametrize("batch", [1, 7, 50, None])
def test_a_short_last_batch_counts_for_the_samples_it_has(engine: str, batch: int | None) -> None:
    graph, data = outlier()
    settings: dict[str, Any] = {"epochs": 8, "batch_size": batch, "engine": engine}
    run = train(graph, data, **settings)
    assert run.epoch_losses == pytest.approx([10_000 / 51] * 8)
    assert run.losses_by_epoch == pytest.approx([10_000 / 51] * 9)
    run = train(graph, data, stop_below=150, **settings)
    assert (run.stopped, run.epochs) == ("finished", 8)


def test_an_interrupted_epoch_is_weighed_as_a_whole_one() -> None:
    graph, data = outlier()

    def stop(step: int, _steps: int, _loss: float) -> None:
        if step == 3:
            raise KeyboardInterrupt

    settings: dict[str, Any] = {"epochs": 3, "batch_size": 50}
    half = train(graph, data, on_step=stop, **settings)
    run = train(graph, data, resume=half, **settings)
    assert run.epoch_losses == pytest.approx([10_000 / 51] * 3)


def test_the_curve_begins_before_the_first_step(tmp_path: Path) -> None:
    run = train(line(), line_data(), epochs=2, batch_size=None)
    assert run.losses_by_epoch == [run.start_loss, *run.epoch_losses]
    assert run.losses_by_epoch[0] == pytest.approx(run.step_losses[0])
    save_run(run, tmp_path / "run.json", line())
    assert load_run(tmp_path / "run.json").losses_by_epoch == run.losses_by_epoch


@pytest.mark.parametrize("engine", ["numpy", "cpu"])
def test_a_run_that_diverged_says_so(engine: str, tmp_path: Path) -> None:
    """By numbers that are not finite, and by a loss far above that of the start."""
    settings: dict[str, Any] = {
        "engine": engine, "optimizer": "sgd", "schedule": "constant", "batch_size": None,
    }  # fmt: skip
    run = train(line(), line_data(), epochs=9, learning_rate=2.0, **settings)
    assert run.loss > 10 * run.start_loss
    assert run.stopped == "diverged"
    with pytest.raises(NonFiniteError) as caught:
        train(line(), line_data(), epochs=900, learning_rate=50.0, **settings)
    failed = caught.value.run
    assert isinstance(failed, TrainingRun)
    for one in (run, failed):
        save_run(one, tmp_path / "run.json", line())
        found = load_run(tmp_path / "run.json")
        assert (found.stopped, found.reason) == ("diverged", one.reason)
    approved(run.reason)
    assert failed.reason in str(caught.value)
    approved(failed.reason)
    again = train(line(), line_data(), epochs=10, learning_rate=1e-9, resume=run, **settings)
    assert (again.stopped, again.reason != "") == ("diverged", True)
    assert train(line(), line_data(), epochs=1).reason == ""


def test_data_of_ones_own_have_no_truth(tmp_path: Path) -> None:
    """What the graph declares is no truth of data that came from elsewhere."""
    made = cgprimer.make_dataset(line(), samples=5, truth={"b": 7.0})
    run = train(line(), made, epochs=1)
    assert run.truth == {"k": 3.0, "b": 7.0}
    assert train(line(), made, epochs=1, validation=0.4).truth == run.truth
    own = Dataset.from_arrays(made.inputs, made.targets)
    assert train(line(), own, epochs=1).truth == {}
    save_run(run, tmp_path / "run.json", line())
    assert train(line(), own, epochs=2, resume=load_run(tmp_path / "run.json")).truth == {}


@pytest.mark.parametrize(
    "settings",
    [
        {"learning_rate": "a"}, {"stop_below": "a"}, {"epochs": "a"}, {"batch_size": "a"},
        {"batch_size": 1.5}, {"seed": -1}, {"start": {"k": "a"}}, {"start": [1.0]}, {"loss": 5},
        {"optimizer": ["adam"]}, {"optimizer": 5}, {"validation": "a"}, {"schedule": ["cosine"]},
        {"resume": 5}, {"short_run_records": 0},
    ],
)  # fmt: skip
def test_arguments_of_the_wrong_kind(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        train(line(), line_data(), **settings)
