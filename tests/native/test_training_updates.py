"""Training steps in compiled code: a failed step is reported and changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import cgprimer
from cgprimer.backends.interfaces import SampleBatches
from cgprimer.training.objective import Objective
from cgprimer.training.optimizers import optimizer
from tests.native.engine_agreement import FORMS, form


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam"])
@pytest.mark.parametrize("form_name", FORMS)
def test_updates_end_before_the_step_whose_loss_is_not_finite(form_name: str, name: str) -> None:
    graph = cgprimer.parse("xw = sqrt(xa)*k + b")
    xa = np.linspace(1.0, 2.0, 20)
    xa[13] = -1.0
    columns = {"xa": xa, "target.xw": np.ones(20)}
    rule = optimizer(name)
    with form(form_name):
        trainer = Objective(graph, engine="cpu").trainer(rule, 3)
    assert trainer is not None
    start, rates = np.array([0.25, -1.0]), np.full(7, 1e-3)
    state = rule.start(start)
    batches = SampleBatches(columns, np.arange(20), 3)
    values, after, losses, failed = trainer.run_updates(batches, start, state, rates)
    assert failed == 4
    assert np.isfinite(losses[:4]).all()
    assert np.isnan(losses[4:]).all()
    first = SampleBatches(columns, np.arange(12), 3)
    known, known_state, known_losses, none = trainer.run_updates(first, start, state, rates[:4])
    assert none == -1
    np.testing.assert_array_equal(values, known)
    np.testing.assert_array_equal(losses[:4], known_losses)
    assert [part.shape for part in after] == [part.shape for part in state]
    for part, other in zip(after, known_state, strict=True):
        np.testing.assert_array_equal(part, other)
    np.testing.assert_array_equal(start, [0.25, -1.0])
    for part in state:
        np.testing.assert_array_equal(part, np.zeros_like(part))
    if name == "sgd":  # the first step by hand
        x = np.sqrt(xa[:3])
        error = 0.25 * x - 1.0 - 1.0
        one = trainer.run_updates(SampleBatches(columns, np.arange(3), 3), start, state, rates[:1])
        np.testing.assert_allclose(one[2], [np.mean(error**2)], rtol=1e-13)
        step = 1e-3 * 2 * np.array([np.mean(error * x), np.mean(error)])
        np.testing.assert_allclose(one[0], start - step, rtol=1e-12)
