"""The engine cuda on a GPU; skipped with the reason if the machine has none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.backends.cuda import device
from cgprimer.backends.cuda.cuda_engine import ENGINE, CudaEngine
from cgprimer.backends.cuda.device import LaunchSettings
from cgprimer.core.operations import primitives
from tests.cuda import cuda_tools as tools

REASON = "the simulator runs" if device.is_simulated() else device.unavailable()
pytestmark = pytest.mark.skipif(bool(REASON), reason=REASON or "there is a GPU")

INTERPRETER = CudaEngine(LaunchSettings(straight_line=-1))
BOTH = pytest.mark.parametrize("engine", [ENGINE, INTERPRETER], ids=["straight", "interpreter"])


@BOTH
@pytest.mark.parametrize("path", tools.LEARNING, ids=lambda path: path.stem)
def test_loss_and_gradient_of_every_example(path: Path, engine: CudaEngine) -> None:
    tools.assert_agrees(engine, tools.gradient_tape(cgprimer.load(path)), (1, 1000))


@BOTH
@pytest.mark.parametrize("reduction", ["sum", "none"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_numbers_of_samples(engine: CudaEngine, reduction: str, dtype: str) -> None:
    sizes = (0, 1, 31, 32, 33, 255, 257, 100_003)
    tape = tools.gradient_tape(tools.LECTURE)
    tools.assert_agrees(engine, tape, sizes, reduction=reduction, dtype=dtype)


@pytest.mark.parametrize("sizes", [(4, 8, 8, 1), (64, 128, 128, 1)])
def test_networks_run_in_the_interpreter(sizes: tuple[int, ...]) -> None:
    tape = tools.gradient_tape(tools.network(*sizes))
    assert not tools.assert_agrees(ENGINE, tape, (1, 100, 3000)).code.straight_line


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("row", [r for r in primitives() if r.built_in], ids=lambda row: row.name)
def test_primitives_have_numpys_values(row: Any, dtype: str) -> None:
    rng = np.random.default_rng(0)
    grid = rng.choice([*tools.SPECIAL, *rng.normal(0, 2, 50)], (row.arity, 2000))
    tools.check_primitive(row, dtype, grid)


@BOTH
def test_results_are_reproducible(engine: CudaEngine) -> None:
    tape = tools.gradient_tape(tools.network(4, 8, 8, 1))
    columns, scalars = tools.random_point(tape, 50_000)
    resident = engine.resident(columns)
    run = engine.compile(tape, reduction="sum")
    first = run(resident, scalars, 50_000)
    assert all(run(resident, scalars, 50_000) == first for _ in range(5))
    assert run(columns, scalars, 50_000) == first


def test_samples_are_processed_in_chunks_that_fit_the_memory() -> None:
    engine = CudaEngine(LaunchSettings(memory=2**20))
    tools.assert_agrees(engine, tools.gradient_tape(tools.network(3, 4, 1)), (100_000,))
