"""Mini-batch noise at a local minimum: what leaves it, and what the picture says about that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer import plot
from cgprimer.errors import CgprimerError
from cgprimer.training.data import Dataset
from cgprimer.visualization.plots.noise_plot import noisy_descents
from tests.approval import approved, refused

SINE = cgprimer.parse("y = sin(k*x); parameter k = 6")
START = {"k": -1.8}


def test_full_batches_stay_and_single_samples_leave() -> None:
    found = noisy_descents(SINE, start=START, rate=1.6)
    assert found.full[-1] == pytest.approx(-0.5255, abs=1e-3)
    assert not found.in_lowest
    one, four = found.panels
    assert one.batch_size == 1
    assert one.left.sum() > 5
    assert four.left.sum() == 0
    assert one.sentence == f"batch size 1: {one.left.sum()} of 20 runs leave the valley"
    assert one.ends[one.left] == pytest.approx(np.full(one.left.sum(), 6.0), abs=1e-3)


def test_the_descent_is_the_one_of_the_formulas() -> None:
    x = np.array([0.5, -1.0, 2.0])
    data = Dataset.from_arrays({"x": x}, {"y": np.sin(6 * x)})
    found = noisy_descents(SINE, data, start={"k": 1.0}, rate=0.01, steps=5, batch_sizes=1)
    k, path = 1.0, [1.0]
    for _ in range(5):
        k -= 0.01 * np.mean(2 * (np.sin(k * x) - np.sin(6 * x)) * np.cos(k * x) * x)
        path.append(k)
    assert found.full == pytest.approx(np.array(path))
    losses = [np.mean((np.sin(value * x) - np.sin(6 * x)) ** 2) for value in found.values]
    assert found.losses == pytest.approx(np.array(losses))


def test_batches_of_all_samples_have_no_noise() -> None:
    found = noisy_descents(SINE, start=START, rate=0.5, batch_sizes=100, seeds=2, steps=20)
    for path in found.panels[0].paths:
        assert path == pytest.approx(found.full)


def test_the_same_seed_gives_the_same_runs_and_others_differ() -> None:
    first, again, other = (
        noisy_descents(SINE, start=START, rate=1.6, steps=20, seeds=2, seed=seed)
        for seed in (0, 0, 5)
    )
    assert np.array_equal(first.panels[0].paths, again.panels[0].paths)
    assert not np.array_equal(first.panels[0].paths, other.panels[0].paths)


def test_the_valley_ends_at_maxima_of_the_loss() -> None:
    found = noisy_descents(SINE, start=START, rate=1.6, seeds=1, steps=50)
    low, high = found.valley
    for end in (low, high):
        index = int(np.argmin(abs(found.values - end)))
        assert found.losses[index] == found.losses[index - 5 : index + 6].max()


def test_a_descent_that_has_not_converged_is_not_called_a_minimum() -> None:
    found = noisy_descents(SINE, start=START, rate=1e-4, seeds=1, steps=5)
    approved(found.sentence)
    away = noisy_descents(SINE, start={"k": 6.3}, rate=0.1, seeds=1)
    approved(away.sentence)


def test_runs_that_diverge_are_counted_separately() -> None:
    graph = cgprimer.parse("y = k*x; parameter k = 1")
    data = Dataset.from_arrays({"x": [100.0, 0.1, 0.1, 0.1]}, {"y": [100.0, 0.1, 0.1, 0.1]})
    found = noisy_descents(graph, data, start={"k": 2}, rate=3e-4, batch_sizes=1, steps=2000)
    (panel,) = found.panels
    assert panel.diverged == 20
    assert not panel.left.any()
    assert "20 diverge" in panel.sentence


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "start"),
        ({"start": {"j": 1}}, "j"),
        ({"start": START, "over": "z"}, "z"),
        ({"start": START, "rate": 0}, "rate"),
        ({"start": START, "seeds": 0}, "seeds"),
        ({"start": START, "batch_sizes": (1, 2, 3, 4)}, "3"),
        ({"start": START, "batch_sizes": 101}, "100"),
        ({"start": START, "ranges": [(0, 1)]}, "range"),
        ({"start": START, "ranges": [(-3, 1), (0, 1)]}, ""),
        ({"start": START, "ranges": [(-3, float("nan"))]}, "range"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], message: str) -> None:
    with refused(CgprimerError, message):
        plot.noise(SINE, **settings)


def test_a_graph_with_several_parameters_needs_a_name() -> None:
    graph = cgprimer.load("lecture")
    with pytest.raises(CgprimerError, match="several"):
        plot.noise(graph, start={"ab": 1})
    found = noisy_descents(graph, over="cd", start={"cd": -5}, seeds=1)
    assert found.full[-1] == pytest.approx(3.0, abs=1e-3)
