"""The engine cuda on a GPU or in numba's simulator (see test_kernels); skipped without both."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import cgprimer
from cgprimer.backends.cuda import device, device_columns
from cgprimer.backends.cuda.cuda_engine import ENGINE, CudaEngine
from cgprimer.backends.cuda.device import SIMULATED, LaunchSettings
from cgprimer.backends.cuda.device_columns import DeviceColumn
from cgprimer.core.evaluation import engines
from cgprimer.core.operations import numpy_arithmetic, primitives
from cgprimer.core.registration import register_primitive, unregister_primitive
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import EngineError
from tests.cuda import cuda_tools as tools
from tests.native.engine_agreement import REDUCTIONS, check, network, random_point

IS_SIMULATED = device.is_simulated()
REASON = "" if IS_SIMULATED else device.unavailable()
pytestmark = pytest.mark.skipif(bool(REASON), reason=REASON or "there is a GPU")
SETTINGS = SIMULATED if IS_SIMULATED else LaunchSettings()
MANY = 130 if IS_SIMULATED else 100_003  # samples; a simulated thread is slow
INTERPRETER = CudaEngine(replace(SETTINGS, straight_line=-1))
BOTH = pytest.mark.parametrize("engine", [ENGINE, INTERPRETER], ids=["straight", "interpreter"])
DTYPES = {"float64": 1e-12, "float32": 2e-4}  # and the largest relative error
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-300, 800.0, -800.0)
ARRAYS = """
input x[2], xt; parameter W[3,2], b[3], w[3]; xh = tanh(W @ x + b)
xl = (w @ softmax(xh)[::-1] - xt)^2
"""


def assert_agrees(
    engine: CudaEngine, tape: Tape, *samples: int, dtype: str = "float64"
) -> dict[str, Any]:
    """Compare values and sums with the tape's instructions; return the columns."""
    columns, scalars = random_point(tape, max(samples), dtype=dtype, low=0.1, high=0.9)
    for count in samples:
        first = {name: column[:count] for name, column in columns.items()}
        check(tape, engine, first, scalars, count, dtype=dtype, tolerance=DTYPES[dtype])
    return columns


@BOTH
@pytest.mark.parametrize("row", [r for r in primitives() if r.built_in], ids=lambda row: row.name)
def test_primitives_have_numpys_values(row: Any, engine: CudaEngine) -> None:
    points = SPECIAL if row.arity < 3 else (np.nan, -np.inf, -1.0, 0.0, 2.0, np.inf)
    grid = np.array(list(product(points, repeat=row.arity))).T
    if not IS_SIMULATED:
        random = np.random.default_rng(0).normal(0, 2, (row.arity, 2000))
        grid = np.concatenate([grid, random], axis=1)
    dtype = "float64" if engine is ENGINE else "float32"
    grid = grid.astype(dtype)
    with np.errstate(all="ignore"):
        expected = np.asarray(numpy_arithmetic.numpy_function(row.name)(*grid), dtype)
    builder = Builder()
    operands = [builder.column(name) for name in "abc"[: row.arity]]
    tape = builder.finish({"out": builder.emit(row.name, *operands, pinned=True)})
    columns = dict(zip("abc", grid, strict=False))
    result = engine.compile(tape, reduction="none", dtype=dtype)(columns, {}, grid.shape[1])["out"]
    assert result.dtype == expected.dtype
    tolerance = 1e-13 if dtype == "float64" else 5e-6  # libdevice's pow and tan
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(result, expected, rtol=tolerance, atol=1e-300)
    if row.name not in ("max", "min", "relu", "clamp"):  # of two zeros numpy returns either
        zero = expected == 0
        np.testing.assert_array_equal(np.signbit(result[zero]), np.signbit(expected[zero]))


def test_custom_primitives_are_refused_unless_they_are_equal_for_all_samples() -> None:
    register_primitive("twice", lambda a: 2 * a, partials="2")
    try:
        for engine in (ENGINE, INTERPRETER):
            with pytest.raises(EngineError, match=r"'twice'.*registered"):
                engine.compile(cgprimer.tape(cgprimer.parse("xw = twice(xa)")))
        run = ENGINE.compile(cgprimer.tape(cgprimer.parse("xw = twice(k)*xa")))
        assert run({"xa": np.ones(2)}, {"k": 3.0}, 2)["xw"].tolist() == [6.0, 6.0]
    finally:
        unregister_primitive("twice")


@BOTH
@pytest.mark.parametrize(
    "path", tools.LEARNING[:: 5 if IS_SIMULATED else 1], ids=lambda path: path.stem
)
def test_loss_and_gradient_of_examples(path: Path, engine: CudaEngine) -> None:
    tape = tools.gradient_tape(cgprimer.load(path))
    assert_agrees(engine, tape, 7)
    too_long = path.stem in ("network", "mlp")  # for straight-line code
    assert engine.compile(tape).code.straight_line == (engine is ENGINE and not too_long)


@BOTH
@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_of_samples_around_the_blocks(engine: CudaEngine, dtype: str) -> None:
    assert_agrees(engine, tools.gradient_tape(tools.LECTURE), 0, 1, 31, 33, MANY, dtype=dtype)


@BOTH
def test_matrices_outer_products_and_values_that_are_equal_for_all_samples(
    engine: CudaEngine,
) -> None:
    for text in ("xw = k*2; xv = xa + k; output xw, xv", "xw = exp(k) + 1"):
        assert_agrees(engine, cgprimer.tape(cgprimer.parse(text)), 0, 3)
    sizes = (3, 4, 1) if engine is INTERPRETER else (2, 4, 1)
    tape = tools.gradient_tape(network(*sizes))
    assert_agrees(engine, tape, 1, 33)
    for reduction in REDUCTIONS:
        code = engine.compile(tape, reduction=reduction).code
        assert code.straight_line == (engine is ENGINE)
        handlers = dict(code.program.handlers)
        assert "affine" in handlers
        assert ("outer" in handlers) == (reduction == "sum")


@BOTH
@pytest.mark.parametrize("method", [m for m in cgprimer.methods() if m != "symbolic"])
def test_gradients_of_every_method(
    monkeypatch: pytest.MonkeyPatch, engine: CudaEngine, method: str
) -> None:
    """Arrays are expanded into scalars."""
    monkeypatch.setitem(engines.ENGINES._loaded, "cuda", engine)
    graph, rng = cgprimer.parse(ARRAYS), np.random.default_rng(0)
    at = {name: rng.normal(size=graph.shapes.get(name, ())) for name in graph.parameters}
    at |= {name: rng.normal(size=(5, *graph.shapes.get(name, ()))) for name in graph.inputs}
    expected, result = (
        cgprimer.gradient(graph, at, wrt=["W", "w", "x"], method=method, engine=name)
        for name in ("plain", "cuda")
    )
    close = 1e-6 if method == "finite-difference" else 1e-12
    for name, value in expected.items():
        np.testing.assert_allclose(result[name], value, rtol=close, atol=close)


# --- columns and memory --------------------------------------------------------------------------


def test_samples_are_processed_in_chunks() -> None:
    engine = CudaEngine(replace(SETTINGS, memory=16 * 5))
    columns = assert_agrees(engine, tools.gradient_tape(tools.LECTURE), 1, 23)
    assert engine.resident(columns) is columns  # they would not fit


def test_memory_can_be_limited_and_can_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"xa": np.ones(9)}
    run = ENGINE.compile(cgprimer.tape(cgprimer.parse("xw = 2*xa")))
    monkeypatch.setenv("CGPRIMER_CUDA_MEMORY", "64")
    assert ENGINE.resident(columns) is columns
    assert run(columns, {}, 9)["xw"].tolist() == [2.0] * 9
    monkeypatch.setenv("CGPRIMER_CUDA_MEMORY", "much")
    with pytest.raises(EngineError, match="a number of bytes, got 'much'"):
        run(columns, {}, 9)
    monkeypatch.delenv("CGPRIMER_CUDA_MEMORY")
    monkeypatch.setattr(device_columns, "copy_chunk_to_device", Mock(side_effect=MemoryError))
    with pytest.raises(EngineError, match="out of GPU memory") as error:
        run(columns, {}, 9)
    assert "CGPRIMER_CUDA_MEMORY" in error.value.hint
    assert ENGINE.resident(columns) is columns


def test_resident_columns_are_copies_that_can_be_sliced_and_mixed() -> None:
    tape = tools.gradient_tape(tools.LECTURE)
    columns, scalars = random_point(tape, 20, low=0.1, high=0.9)
    resident = ENGINE.resident(columns)
    run = ENGINE.compile(tape, reduction="sum")
    expected = run(columns, scalars, 20)
    assert run(resident, scalars, 20) == expected == run(resident, scalars, 20)
    part = {name: column[3:11] for name, column in columns.items()}
    resident_part = {name: column[3:11] for name, column in resident.items()}
    assert run(resident_part, scalars, 8) == run(part, scalars, 8)
    name = next(iter(columns))
    assert run({**resident, name: columns[name]}, scalars, 20) == expected
    single = ENGINE.compile(tape, reduction="sum", dtype="float32")
    assert single(resident, scalars, 20) == single(columns, scalars, 20)
    column = resident[name]
    assert isinstance(column, DeviceColumn)
    assert (len(column), np.shape(column), column.dtype) == (20, (20,), np.float64)
    before = columns[name].copy()
    columns[name][:] = 5.0
    np.testing.assert_array_equal(np.asarray(column), before)
    assert run(columns, scalars, 20) != expected


def test_columns_of_any_kind_are_converted() -> None:
    run = ENGINE.compile(cgprimer.tape(cgprimer.parse("xw = 2*xa")))
    for column in (np.arange(12.0)[::3], np.arange(4), np.float32([0, 1, 2, 3]), [0.0, 1, 2, 3]):
        result = run({"xa": column}, {}, 4)["xw"]
        assert result.tolist() == (2.0 * np.asarray(column)).tolist()
    with pytest.raises(EngineError, match=r"'xa'.* 3"):
        run({"xa": np.ones(3)}, {}, 4)


@pytest.mark.parametrize("batch", [1, 5])
def test_training_agrees_with_numpy(batch: int) -> None:
    data = cgprimer.make_dataset(tools.LECTURE, samples=20)
    settings: dict[str, Any] = {"epochs": 2, "batch_size": batch, "short_run_records": 8}
    expected, result = (
        cgprimer.train(tools.LECTURE, data, engine=engine, validation=0.25, **settings)
        for engine in ("numpy", "cuda")
    )
    assert result.settings["engine"] == "cuda"
    for name in ("step_losses", "parameters", "validation_losses"):
        assert getattr(result, name) == pytest.approx(getattr(expected, name), rel=1e-9)
    assert result.recorded_steps == expected.recorded_steps
    for name, values in expected.recorded_parameters.items():
        assert result.recorded_parameters[name] == pytest.approx(values)
