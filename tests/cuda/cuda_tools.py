"""Graphs, tapes and points that the tests of the engine cuda share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import cgprimer
from cgprimer.backends.cuda.cuda_engine import ENGINE, CudaEngine
from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.operations import numpy_arithmetic
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.scalarization import scalarize
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_passes import substitute_seeds
from cgprimer.training.objective import Objective
from tests.native.engine_agreement import network, run_instructions

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.cg"))
LECTURE = cgprimer.load(EXAMPLES[0].parent / "lecture.cg")
# Examples whose loss is of one sample: a normalized batch is refused.
LEARNING = [
    path
    for path in EXAMPLES
    if (graph := cgprimer.load(path)).parameters and not graph.mode({"x": np.zeros(2)})
]
TOLERANCE = {"float64": 1e-12, "float32": 2e-4}
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-300, 800.0, -800.0)
__all__ = ["network"]


def gradient_tape(graph: ExpressionGraph) -> Tape:
    """Return the loss and its gradient on one tape of scalars that contains the seeds."""
    program = Objective(graph, method="reverse", engine="numpy").program
    return scalarize(substitute_seeds(program.tape, program.passes[0].seeds))


def random_point(tape: Tape, samples: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return columns and scalars inside the domains of the example graphs."""
    rng = np.random.default_rng(1)
    columns = {name: rng.uniform(0.1, 0.9, samples) for name in tape.of_kind("column")}
    return columns, {name: float(rng.uniform(0.2, 0.7)) for name in tape.of_kind("scalar")}


def assert_agrees(
    engine: CudaEngine,
    tape: Tape,
    samples: Sequence[int],
    *,
    reduction: Any = "sum",
    dtype: str = "float64",
) -> Any:
    """Compare an engine with the tape's instructions in doubles; return the compiled tape."""
    compiled = engine.compile(tape, reduction=reduction, dtype=dtype)
    columns, scalars = random_point(tape, max(samples))
    for count in samples:
        given = {name: column[:count].astype(dtype) for name, column in columns.items()}
        result = compiled(given, scalars, count)
        expected = run_instructions(tape, given, scalars, count)
        assert list(result) == list(expected)
        for name, values in expected.items():
            value = np.sum(values) if reduction == "sum" else values
            assert np.shape(result[name]) == np.shape(value)
            close = TOLERANCE[dtype] * (max(1, count) if reduction == "sum" else 1)
            np.testing.assert_allclose(result[name], value, rtol=close, atol=close, err_msg=name)
    return compiled


def check_primitive(row: Any, dtype: str, grid: np.ndarray, engine: CudaEngine = ENGINE) -> None:
    """Compare a primitive at points of shape (operands, samples) with numpy."""
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
