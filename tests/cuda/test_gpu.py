"""On a real GPU; skipped with the reason where there is none."""

from __future__ import annotations

import numpy as np
import pytest

import cgprimer
from cgprimer.backends.cuda import device
from cgprimer.backends.cuda.cuda_engine import ENGINE, CudaEngine
from cgprimer.backends.cuda.device import LaunchSettings
from cgprimer.backends.numpy_blocks import ENGINE as NUMPY
from cgprimer.core.operations import numpy_arithmetic, primitives
from cgprimer.core.tape.builder import Builder
from tests.cuda import cuda_tools as tools

REASON = "the simulator runs" if device.is_simulated() else device.unavailable()
pytestmark = pytest.mark.skipif(bool(REASON), reason=REASON or "there is a GPU")

INTERPRETER = CudaEngine(LaunchSettings(straight_line=-1))
BOTH = pytest.mark.parametrize("engine", [ENGINE, INTERPRETER], ids=["straight", "interpreter"])
AWKWARD = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-300, 800.0, -800.0)
SIZES = (0, 1, 31, 32, 33, 255, 257, 100_003)


@BOTH
@pytest.mark.parametrize("path", tools.LEARNING, ids=lambda path: path.stem)
def test_loss_and_gradient_of_every_example(path, engine: CudaEngine) -> None:
    tools.assert_agrees(engine, tools.gradient_tape(cgprimer.load(path)), (1, 1000))


@BOTH
@pytest.mark.parametrize("reduction", ["sum", "none"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_numbers_of_samples(engine: CudaEngine, reduction: str, dtype: str) -> None:
    graph = cgprimer.load(tools.EXAMPLES[0].parent / "lecture.cg")
    tape = tools.gradient_tape(graph)
    compiled = engine.compile(tape, reduction=reduction, dtype=dtype)
    reference = NUMPY.compile(tape, reduction=reduction, dtype="float64")
    columns, scalars = tools.point(tape, max(SIZES))
    for count in SIZES:
        given = {name: column[:count] for name, column in columns.items()}
        found, expected = compiled(given, scalars, count), reference(given, scalars, count)
        for name in expected:
            np.testing.assert_allclose(
                found[name], expected[name], rtol=1e-11 if dtype == "float64" else 1e-3, atol=1e-5
            )


@pytest.mark.parametrize("sizes", [(4, 8, 8, 1), (16, 32, 32, 1), (64, 128, 128, 1)])
def test_networks(sizes: tuple[int, ...]) -> None:
    tape = tools.gradient_tape(tools.network(*sizes))
    found = tools.assert_agrees(ENGINE, tape, (1, 100, 3000))
    assert not found.code.straight_line


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("row", [r for r in primitives() if r.built_in], ids=lambda row: row.name)
def test_primitives(row, dtype: str) -> None:
    rng = np.random.default_rng(0)
    grid = rng.choice([*AWKWARD, *rng.normal(0, 2, 50)], (row.arity, 2000)).astype(dtype)
    with np.errstate(all="ignore"):
        expected = np.asarray(numpy_arithmetic.numpy_function(row.name)(*grid), dtype)
    builder = Builder()
    value = builder.emit(row.name, *(builder.column(n) for n in "abc"[: row.arity]), pinned=True)
    tape = builder.finish({"out": value})
    columns = dict(zip("abc", grid, strict=False))
    found = ENGINE.compile(tape, reduction="none", dtype=dtype)(columns, {}, grid.shape[1])["out"]
    # float32: libdevice's pow and tan are good to a few units in the last place.
    tolerance = 1e-13 if dtype == "float64" else 5e-6
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=1e-300)


@BOTH
def test_the_same_numbers_in_every_run(engine: CudaEngine) -> None:
    tape = tools.gradient_tape(tools.network(4, 8, 8, 1))
    columns, scalars = tools.point(tape, 50_000)
    kept = engine.resident(columns)
    run = engine.compile(tape, reduction="sum")
    first = run(kept, scalars, 50_000)
    assert all(run(kept, scalars, 50_000) == first for _ in range(5))
    assert run(columns, scalars, 50_000) == first


def test_little_memory() -> None:
    engine = CudaEngine(LaunchSettings(memory=2**20))
    tools.assert_agrees(engine, tools.gradient_tape(tools.network(3, 4, 1)), (100_000,))
