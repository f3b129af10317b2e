"""Distributions of activations, with and without batch normalization."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cgprimer import plot
from cgprimer.errors import CgprimerError
from cgprimer.visualization.plots.activations_plot import activation_distributions
from tests.approval import approved, refused


def test_small_weights_shrink_activations_and_batch_normalization_keeps_them() -> None:
    plain, normalized = activation_distributions(depth=6, epochs=3)
    assert plain.start.shape == (6, 400, 32)
    spread = plain.start.std(axis=(1, 2))
    assert (spread[1:] < 0.8 * spread[:-1]).all()
    kept = normalized.start.std(axis=(1, 2))
    assert kept == pytest.approx(np.full(6, kept[0]), rel=0.1)


def test_only_the_normalized_network_learns_from_small_weights() -> None:
    plain, normalized = activation_distributions()
    assert plain.losses[0] == pytest.approx(normalized.losses[0], rel=1e-3)
    assert plain.losses[1] > 0.9 * plain.losses[0]
    assert normalized.losses[1] < 0.3 * normalized.losses[0]


def test_normalized_activations_are_those_of_the_formula() -> None:
    _, found = activation_distributions(depth=1, width=4, epochs=1, seed=3)
    random = np.random.default_rng(3)
    x = random.standard_normal((400, 8))
    z = x @ (0.1 * random.standard_normal((4, 8))).T
    expected = np.tanh((z - z.mean(0)) / np.sqrt(z.var(0) + 1e-5))
    assert found.start[0] == pytest.approx(expected)


def test_zeros_of_relu_are_counted_and_not_drawn() -> None:
    plain, _ = activation_distributions(depth=2, width=8, activation="relu", std=0.3, epochs=1)
    share = (plain.start[-1] == 0).mean()
    approved(plain.sentence, f"2 ... {100 * share:.0f} %")
    figure = plot.activations(depth=2, width=8, activation="relu", std=0.3, epochs=1)
    figure.draw_without_rendering()


def test_panels_share_an_axis_and_halves_differ_without_color() -> None:
    figure = plot.activations(depth=3, width=8, epochs=1)
    first, second = figure.axes
    assert first.get_ylim() == second.get_ylim()
    assert {patch.get_hatch() for patch in first.patches} >= {"////"}
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["at initialization", "after 1 epoch of training"]


def test_the_seed_decides() -> None:
    first, again, other = (
        activation_distributions(depth=2, width=4, epochs=1, seed=seed)[0] for seed in (1, 1, 2)
    )
    assert np.array_equal(first.trained, again.trained)
    assert not np.array_equal(first.trained, other.trained)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"depth": 0}, "depth"),
        ({"depth": 100}, "20"),
        ({"width": 1000}, "256"),
        ({"activation": "foo"}, "foo"),
        ({"std": 0}, "std"),
        ({"rate": float("nan")}, "rate"),
        ({"std": 50, "activation": "exp"}, "exp"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], message: str) -> None:
    with refused(CgprimerError, message):
        plot.activations(**settings)
