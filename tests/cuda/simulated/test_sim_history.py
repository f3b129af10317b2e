"""Validation and parameters over time, recorded while the device does the steps."""

from __future__ import annotations

from typing import Any

import pytest

import cgprimer


def test_what_is_recorded_is_what_the_plain_loop_records() -> None:
    graph = cgprimer.parse("xw = k*xa + b*xa^2; parameter k = 3, b = -1")
    data = cgprimer.make_dataset(graph, samples=40)
    settings: dict[str, Any] = {
        "optimizer": "sgd", "learning_rate": 0.01, "schedule": "constant", "batch_size": 1,
        "epochs": 2, "validation": 0.2, "short_run_records": 64,
    }  # fmt: skip
    found = cgprimer.train(graph, data, engine="cuda", **settings)
    plain = cgprimer.train(graph, data, engine="numpy", **settings)
    assert found.settings["engine"] == "cuda"
    assert found.recorded_steps == plain.recorded_steps == [16, 32, 48, 64]
    assert found.validation_losses == pytest.approx(plain.validation_losses)
    for name, values in plain.recorded_parameters.items():
        assert found.recorded_parameters[name] == pytest.approx(values)
