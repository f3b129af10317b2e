"""Reports of convergence: least-squares residuals at a minimum, and losses that no longer fall."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cgprimer
from cgprimer.training.convergence import estimate_decrease, has_converged
from cgprimer.training.settings import compute_default_epochs
from tests.cli.cli_tools import good, read_json
from tests.training.training_graphs import TRUTH, lecture, line


@pytest.mark.parametrize("noise", [0.0, 20.0])
@pytest.mark.parametrize(
    ("settings", "converged"),
    [
        ({}, True),
        ({"epochs": 0}, False),
        ({"optimizer": "sgd", "learning_rate": 1e-6, "epochs": 3}, False),
        ({"batch_size": "all", "epochs": 30}, False),
        ({"batch_size": 1, "epochs": 20}, True),
    ],
)
def test_lecture_example(settings: dict, converged: bool, noise: float) -> None:
    data = cgprimer.make_dataset(lecture(), samples=500, truth=TRUTH, noise=noise)
    run = cgprimer.train(lecture(), data, **settings)
    assert has_converged(run, lecture(), data) == converged


@pytest.mark.parametrize("text", ["xw = k*xa + b", "xw = k*xa + b + c"])  # of rank 2
def test_the_decrease_is_that_of_least_squares(text: str) -> None:
    graph = cgprimer.parse(text)
    data = cgprimer.make_dataset(line(), samples=1000, noise=0.5)
    x, y = data.inputs["xa"], data.targets["xw"]
    minimum = np.mean((y - np.polyval(np.polyfit(x, y, 1), x)) ** 2)
    for epochs in (0, 1, 4, 20):
        run = cgprimer.train(graph, data, epochs=epochs, start={"k": 1.0, "b": 1.0})
        found = estimate_decrease(run, graph, data)
        assert found == pytest.approx(1 - minimum / run.loss, abs=1e-9)
    assert found < 0.01  # noise remains


@pytest.mark.parametrize("loss", ["cross-entropy", "(out - target)^4"])
def test_other_losses_have_converged_if_they_no_longer_fall(loss: str) -> None:
    graph = cgprimer.parse("xo = sigmoid(w*xa + b)")
    steps = cgprimer.parse("xo = heaviside(xa - t); parameter t = 0.2")
    data = cgprimer.make_dataset(steps, samples=400, seed=3)
    for epochs, l2, converged in ((12, None, False), (200, 0.01, True), (0, None, False)):
        settings = {"learning_rate": 0.05, "schedule": "constant", "epochs": epochs, "l2": l2}
        run = cgprimer.train(graph, data, loss=loss, **settings)
        assert has_converged(run, graph, data) == converged


def test_reports_of_the_command(tmp_path: Path) -> None:
    good("data", "lecture", "--samples", "500", "--seed", "1", "-o", "new.csv", cwd=tmp_path)
    run = read_json("train", "lecture", "--data", "new.csv", cwd=tmp_path)
    assert (run["epochs"], run["steps"]) == (compute_default_epochs(500), 6000)
    assert run["converged"]
    assert run["parameters"]["cd"] == pytest.approx(3, abs=0.01)
    words = ("train", "lecture", "--samples", "500", "--epochs", "30")
    text = good(*words)
    assert "not converged" in text
    assert "--epochs 300" in text
    rows = text.splitlines()
    assert not any(row.startswith("parameter") and "learnt" in row for row in rows)
    assert next(row for row in rows if row.startswith("ab + bc")).endswith("not yet reached")
    assert not read_json(*words)["converged"]
