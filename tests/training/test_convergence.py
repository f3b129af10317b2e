"""Whether a report tells a run that has converged from one that has not."""

from __future__ import annotations

from pathlib import Path

import pytest

import cgprimer
from cgprimer.training.convergence import estimate_decrease, has_converged
from cgprimer.training.settings import compute_default_epochs
from tests.cli.cli_tools import good, read_json
from tests.training.training_graphs import TRUTH, lecture

LINE = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")


@pytest.mark.parametrize(
    ("settings", "converged"),
    [
        ({}, True),
        ({"epochs": 2}, False),
        ({"epochs": 0}, False),
        ({"optimizer": "sgd", "learning_rate": 1e-6, "epochs": 3}, False),
        ({"batch_size": "all", "epochs": 30}, False),
        ({"batch_size": 1, "epochs": 20}, True),
    ],
)
@pytest.mark.parametrize("noise", [0.0, 20.0])
def test_the_lecture_example(settings: dict, converged: bool, noise: float) -> None:
    data = cgprimer.make_dataset(lecture(), samples=500, truth=TRUTH, noise=noise)
    run = cgprimer.train(lecture(), data, **settings)
    if noise and settings.get("epochs") == 2:
        return  # the noise is larger than what is left
    assert has_converged(run, lecture(), data) == converged


@pytest.mark.parametrize("schedule", ["constant", "cosine"])
def test_noise_is_not_taken_for_a_loss_that_can_fall(schedule: str) -> None:
    """At a least-squares solution the residuals are orthogonal to the Jacobian's columns."""
    data = cgprimer.make_dataset(LINE, samples=2000, noise=0.5)
    run = cgprimer.train(LINE, data, epochs=20, schedule=schedule)
    assert estimate_decrease(run, LINE, data) < 0.01


def test_the_history_decides_for_other_losses() -> None:
    graph = cgprimer.parse("xo = sigmoid(w*xa + b)")
    columns = cgprimer.make_dataset(
        cgprimer.parse("xo = heaviside(xa - t); parameter t = 0.2"), samples=400, seed=3
    )
    for epochs, l2, converged in ((12, None, False), (400, 0.01, True)):
        settings = {"learning_rate": 0.05, "schedule": "constant", "epochs": epochs, "l2": l2}
        run = cgprimer.train(graph, columns, loss="cross-entropy", **settings)
        assert has_converged(run, graph, columns) == converged


def test_few_samples_have_as_many_steps_as_many_samples(tmp_path: Path) -> None:
    good("data", "lecture", "--samples", "500", "--seed", "1", "-o", "new.csv", cwd=tmp_path)
    run = read_json("train", "lecture", "--data", "new.csv", "--json", cwd=tmp_path)
    assert (run["epochs"], run["steps"]) == (compute_default_epochs(500), 6000)
    assert run["converged"]
    assert run["parameters"]["cd"] == pytest.approx(3, abs=0.01)


def test_values_that_are_not_learnt_are_not_presented_as_learnt() -> None:
    text = good("train", "lecture", "--samples", "500", "--epochs", "30")
    assert "not converged" in text
    assert "--epochs 300" in text
    rows = text.splitlines()
    assert not any(row.startswith("parameter") and "learnt" in row for row in rows)
    assert next(row for row in rows if row.startswith("ab + bc")).endswith("not yet reached")
    assert not read_json("train", "lecture", "--samples", "500", "--epochs", "30", "--json")[
        "converged"
    ]
