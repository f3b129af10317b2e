"""Whole graphs: sizes, blocks, devices, methods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cgprimer
from cgprimer.backends.cuda import device_columns
from cgprimer.backends.cuda.cuda_engine import ENGINE, CudaEngine
from cgprimer.backends.cuda.device import SIMULATED
from cgprimer.backends.cuda.device_columns import DeviceColumn
from cgprimer.core.evaluation import engines as contract
from cgprimer.errors import EngineError
from tests.cuda import cuda_tools as tools

INTERPRETER = CudaEngine(replace(SIMULATED, straight_line=-1))
BOTH = pytest.mark.parametrize("engine", [ENGINE, INTERPRETER], ids=["straight", "interpreter"])
NETWORK = tools.network(3, 4, 1)
LECTURE = cgprimer.load(tools.EXAMPLES[0].parent / "lecture.cg")
SIZES = (0, 1, 31, 32, 33, 257)


def test_the_simulator_counts_as_a_gpu() -> None:
    assert ENGINE.unavailable() == ""


@BOTH
@pytest.mark.parametrize("path", tools.LEARNING, ids=lambda path: path.stem)
def test_loss_and_gradient_of_every_example(path, engine: CudaEngine) -> None:
    found = tools.assert_agrees(engine, tools.gradient_tape(cgprimer.load(path)), (7,))
    too_long = path.stem in ("network", "mlp")  # for straight-line code
    assert found.code.straight_line == (engine is ENGINE and not too_long)


@BOTH
@pytest.mark.parametrize("reduction", ["sum", "none"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_numbers_of_samples_around_the_blocks(engine, reduction: str, dtype: str) -> None:
    tape = tools.gradient_tape(LECTURE)
    tools.assert_agrees(engine, tape, SIZES, reduction=reduction, dtype=dtype)


@pytest.mark.parametrize("reduction", ["sum", "none"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@BOTH
def test_matrices_and_blocks_of_products(engine, reduction, dtype) -> None:
    graph = NETWORK if engine is INTERPRETER else tools.network(2, 4, 1)
    tape = tools.gradient_tape(graph)
    found = tools.assert_agrees(engine, tape, (1, 5, 33), reduction=reduction, dtype=dtype)
    assert found.code.straight_line == (engine is ENGINE)
    handlers = dict(found.code.program.handlers)
    assert "affine" in handlers
    assert ("outer" in handlers) == (reduction == "sum")


@BOTH
def test_outputs_that_no_sample_changes(engine: CudaEngine) -> None:
    tape = cgprimer.tape(cgprimer.parse("xw = k*2; xv = xa + k; output xw, xv"))
    for reduction in ("sum", "none"):
        tools.assert_agrees(engine, tape, (0, 3), reduction=reduction)
    alone = cgprimer.tape(cgprimer.parse("xw = exp(k) + 1"))
    tools.assert_agrees(engine, alone, (0, 3))


@BOTH
def test_the_same_numbers_in_every_run(engine: CudaEngine) -> None:
    tape = tools.gradient_tape(NETWORK if engine is INTERPRETER else LECTURE)
    columns, scalars = tools.point(tape, 20)
    run = engine.compile(tape, reduction="sum")
    again = engine.compile(tape, reduction="sum")
    first = run(columns, scalars, 20)
    assert first == run(columns, scalars, 20) == again(columns, scalars, 20)


@pytest.mark.parametrize("reduction", ["sum", "none"])
def test_more_samples_than_fit(reduction: str) -> None:
    engine = CudaEngine(replace(SIMULATED, memory=16 * 5))
    tape = tools.gradient_tape(LECTURE)
    tools.assert_agrees(engine, tape, (1, 23), reduction=reduction)
    columns, _ = tools.point(tape, 23)
    assert engine.resident(columns) is columns  # they would not fit


def test_a_limit_from_outside(monkeypatch) -> None:
    columns = {"xa": np.ones(9)}
    monkeypatch.setenv("CGPRIMER_CUDA_MEMORY", "64")
    assert ENGINE.resident(columns) is columns
    run = ENGINE.compile(cgprimer.tape(cgprimer.parse("xw = 2*xa")))
    assert run(columns, {}, 9)["xw"].tolist() == [2.0] * 9
    monkeypatch.setenv("CGPRIMER_CUDA_MEMORY", "much")
    with pytest.raises(EngineError, match="a number of bytes, got 'much'"):
        run(columns, {}, 9)


def test_memory_that_somebody_else_took(monkeypatch) -> None:
    def failing_copy(columns, start, stop, dtype):
        raise MemoryError

    monkeypatch.setattr(device_columns, "copy_chunk_to_device", failing_copy)
    with pytest.raises(EngineError, match="out of GPU memory") as error:
        tools.assert_agrees(ENGINE, tools.gradient_tape(LECTURE), (23,))
    assert "CGPRIMER_CUDA_MEMORY" in error.value.hint


def test_columns_on_the_device() -> None:
    tape = tools.gradient_tape(LECTURE)
    columns, scalars = tools.point(tape, 20)
    kept = ENGINE.resident(columns)
    run = ENGINE.compile(tape, reduction="sum")
    assert run(kept, scalars, 20) == run(columns, scalars, 20)
    cut = {name: column[3:11] for name, column in kept.items()}
    plain = {name: column[3:11] for name, column in columns.items()}
    assert run(cut, scalars, 8) == run(plain, scalars, 8)
    name = next(iter(columns))
    mixed = {**kept, name: columns[name]}
    assert run(mixed, scalars, 20) == run(columns, scalars, 20)
    np.testing.assert_array_equal(np.asarray(kept[name][2:5]), columns[name][2:5])
    single = ENGINE.compile(tape, reduction="sum", dtype="float32")
    assert single(kept, scalars, 20) == single(columns, scalars, 20)


def test_later_changes_do_not_reach_the_device_but_plain_columns_are_read_each_time() -> None:
    tape = cgprimer.tape(cgprimer.parse("xw = 2*xa"))
    column = np.ones(3)
    kept = ENGINE.resident({"xa": column})
    run = ENGINE.compile(tape)
    column[:] = 5.0
    assert run(kept, {}, 3)["xw"].tolist() == [2.0, 2.0, 2.0]
    assert run({"xa": column}, {}, 3)["xw"].tolist() == [10.0, 10.0, 10.0]


@pytest.mark.parametrize(
    "column",
    [np.arange(12.0)[::3], np.arange(4), np.arange(4, dtype=np.float32), [0.0, 1.0, 2.0, 3.0]],
    ids=["steps", "integers", "float32", "list"],
)
def test_columns_of_any_kind(column) -> None:
    run = ENGINE.compile(cgprimer.tape(cgprimer.parse("xw = 2*xa")))
    found = run({"xa": column}, {}, 4)["xw"]
    assert found.tolist() == (2.0 * np.asarray(column)).tolist()


def test_a_column_of_another_length_is_refused() -> None:
    run = ENGINE.compile(cgprimer.tape(cgprimer.parse("xw = 2*xa")))
    with pytest.raises(EngineError, match=r"'xa'.* 3"):
        run({"xa": np.ones(3)}, {}, 4)


@BOTH
@pytest.mark.parametrize("method", [m for m in cgprimer.methods() if m != "symbolic"])
def test_every_method(monkeypatch, engine: CudaEngine, method: str) -> None:
    monkeypatch.setitem(contract.ENGINES._loaded, "cuda", engine)
    at = {"xa": np.linspace(0.2, 0.8, 5), "ab": 0.3, "bc": 0.5, "cd": 0.7, "ac": 0.9}
    wrt = ["xa", "ab", "cd"]
    expected = cgprimer.gradient(LECTURE, at, wrt=wrt, method=method, engine="numpy")
    found = cgprimer.gradient(LECTURE, at, wrt=wrt, method=method, engine="cuda")
    tolerance = 1e-6 if method == "finite-difference" else 1e-12
    for name in wrt:
        np.testing.assert_allclose(found[name], expected[name], rtol=tolerance)


def test_infinities_come_out_as_on_every_engine() -> None:
    tape = cgprimer.tape(cgprimer.parse("xw = log(xa) + 1/xb; xv = k/xb; output xw, xv"))
    columns = {"xa": np.array([-1.0, 0.0, 1.0]), "xb": np.array([1.0, 0.0, -0.0])}
    for engine in (ENGINE, INTERPRETER):
        found = engine.compile(tape)(columns, {"k": 0.0}, 3)
        np.testing.assert_array_equal(found["xw"], [np.nan, np.nan, -np.inf])
        np.testing.assert_array_equal(found["xv"], [0.0, np.nan, np.nan])


def test_a_column_on_the_device_says_what_it_is() -> None:
    kept = ENGINE.resident({"xa": np.arange(4.0)})["xa"]
    assert isinstance(kept, DeviceColumn)
    assert (len(kept), np.shape(kept), kept.dtype) == (4, (4,), np.float64)


def test_through_the_front_door() -> None:
    data = cgprimer.make_dataset(LECTURE, samples=21)
    at = {"ab": 0.3, "bc": 0.5, "cd": 0.7, "ac": 0.9}
    for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-4)):
        expected = cgprimer.loss_and_gradient(LECTURE, data, engine="numpy", dtype=dtype)(at)
        found = cgprimer.loss_and_gradient(LECTURE, data, engine="cuda", dtype=dtype)(at)
        assert found[0] == pytest.approx(expected[0], rel=tolerance)
        assert found[1] == pytest.approx(expected[1], rel=tolerance)


@pytest.mark.parametrize("batch", [1, 5])
def test_training_through_the_front_door(batch: int) -> None:
    data = cgprimer.make_dataset(LECTURE, samples=11)
    expected, found = (
        cgprimer.train(LECTURE, data, engine=engine, epochs=2, batch_size=batch)
        for engine in ("numpy", "cuda")
    )
    assert found.settings["engine"] == "cuda"
    assert found.step_losses == pytest.approx(expected.step_losses, rel=1e-11)
    assert found.parameters == pytest.approx(expected.parameters, rel=1e-11)
