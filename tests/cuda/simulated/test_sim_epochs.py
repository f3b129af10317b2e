"""Epochs on the device against the plain loop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cgprimer.errors import EngineError, UsageError
from cgprimer.native.cuda import epochs
from cgprimer.native.cuda.device import SIMULATED
from cgprimer.native.cuda.engine import ENGINE, CudaEngine
from cgprimer.training.optimizers import OPTIMIZERS, update_rule
from tests.cuda import cuda_tools as tools

STEPWISE = CudaEngine(replace(SIMULATED, straight=-1))


@pytest.mark.parametrize("optimizer", list(OPTIMIZERS))
@pytest.mark.parametrize("batch", [1, 3, 10, 13])
def test_an_epoch_is_that_of_the_plain_loop(optimizer: str, batch: int) -> None:
    given = tools.lesson(13, batch, optimizer)
    start = OPTIMIZERS[optimizer].start(given.values)
    trainer = tools.trainer(ENGINE, given)
    for columns in (given.columns, ENGINE.resident(given.columns)):
        found = trainer.epoch(columns, given.order, batch, given.values, start, given.rates)
        tools.assert_same_lesson(found, given)


@pytest.mark.parametrize("optimizer", list(OPTIMIZERS))
def test_a_tape_too_large_for_one_kernel_goes_step_by_step(optimizer: str) -> None:
    given = tools.lesson(7, 4, optimizer)
    start = OPTIMIZERS[optimizer].start(given.values)
    trainer = tools.trainer(STEPWISE, given)
    assert trainer.body is None
    columns = STEPWISE.resident(given.columns)
    found = trainer.epoch(columns, given.order, 4, given.values, start, given.rates)
    tools.assert_same_lesson(found, given)


def test_a_batch_too_large_for_one_block(monkeypatch) -> None:
    monkeypatch.setattr(epochs, "LARGEST_BATCH", 8)
    given = tools.lesson(13, 13, "adam")
    start = OPTIMIZERS["adam"].start(given.values)
    found = tools.trainer(ENGINE, given).epoch(
        given.columns, given.order, 13, given.values, start, given.rates
    )
    tools.assert_same_lesson(found, given)


def test_epochs_follow_each_other() -> None:
    given = tools.lesson(12, 4, "adam")
    trainer = tools.trainer(ENGINE, given)
    values, state = given.values, OPTIMIZERS["adam"].start(given.values)
    for part in (slice(0, 8), slice(8, 12)):
        rates = given.rates[part.start // 4 : part.stop // 4]
        values, state, losses, failed = trainer.epoch(
            given.columns, given.order[part], 4, values, state, rates
        )
        assert (failed, len(losses)) == (-1, (part.stop - part.start) // 4)
    np.testing.assert_allclose(values, tools.in_python(given)[0], rtol=1e-12)
    assert float(state[2]) == 3.0


def test_float32() -> None:
    given = tools.lesson(9, 4, "momentum", "float32")
    start = OPTIMIZERS["momentum"].start(given.values)
    found = tools.trainer(ENGINE, given, "float32").epoch(
        given.columns, given.order, 4, given.values, start, given.rates
    )
    tools.assert_same_lesson(found, given, "float32")


@pytest.mark.parametrize("engine", [ENGINE, STEPWISE], ids=["kernel", "steps"])
@pytest.mark.parametrize("step", [0, 2])
def test_a_step_that_is_not_finite_ends_the_epoch(engine: CudaEngine, step: int) -> None:
    given = tools.lesson(9, 3, "adam")
    columns = {name: column.copy() for name, column in given.columns.items()}
    columns["xa"][given.order[3 * step + 1]] = 1e200
    start = OPTIMIZERS["adam"].start(given.values)
    values, state, losses, failed = tools.trainer(engine, given).epoch(
        columns, given.order, 3, given.values, start, given.rates
    )
    assert failed == step
    assert len(losses) == step + 1
    assert np.isfinite(values).all()
    assert float(state[2]) == step
    if step == 0:
        assert values.tolist() == given.values.tolist()


def test_what_cannot_be_trained() -> None:
    given = tools.lesson(9, 3, "sgd")
    trainer = tools.trainer(ENGINE, given)
    with pytest.raises(UsageError, match="3 steps need as many rates"):
        trainer.epoch(given.columns, given.order, 3, given.values, (), given.rates[:1])
    with pytest.raises(EngineError, match="'cd' is not among"):
        ENGINE.trainer(
            tools.gradient_tape(given.graph),
            loss="loss.sample",
            gradients=[],
            parameters=["ab", "bc", "ac"],
            rule=update_rule(OPTIMIZERS["sgd"]),
        )
