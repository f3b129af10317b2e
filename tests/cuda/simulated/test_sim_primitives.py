"""Every primitive, at points where careless code fails."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import cgprimer
from cgprimer.backends.cuda.cuda_engine import ENGINE, CudaEngine
from cgprimer.backends.cuda.cuda_primitives import EXPRESSIONS
from cgprimer.backends.cuda.device import SIMULATED
from cgprimer.core.operations import numpy_arithmetic, primitives
from cgprimer.core.registration import register_primitive, unregister_primitive
from cgprimer.core.tape.builder import Builder
from cgprimer.errors import EngineError

INTERPRETER = CudaEngine(replace(SIMULATED, straight_line=-1, block_limit=1))
ROWS = [row for row in primitives() if row.built_in]
AWKWARD = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-300, 800.0, -800.0)
# Of two zeros numpy's vectorised maximum takes either.
EITHER_ZERO = {"max", "min", "relu", "clamp"}


@pytest.mark.parametrize("engine", [ENGINE, INTERPRETER], ids=["straight", "interpreter"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_primitive_is_numpys(row, dtype: str, engine: CudaEngine) -> None:
    points = AWKWARD if row.arity < 3 else (np.nan, -np.inf, -1.0, 0.0, 2.0, np.inf)
    with np.errstate(all="ignore"):
        grid = np.array(list(product(points, repeat=row.arity))).T.astype(dtype)
        expected = np.asarray(numpy_arithmetic.numpy_function(row.name)(*grid), dtype)
    builder = Builder()
    operands = [builder.column(name) for name in "abc"[: row.arity]]
    value = builder.emit(row.name, *operands, pinned=True)
    tape = builder.finish({"out": value})
    columns = dict(zip("abc", grid, strict=False))
    found = engine.compile(tape, reduction="none", dtype=dtype)(columns, {}, grid.shape[1])["out"]
    assert found.dtype == expected.dtype
    tolerance = 1e-14 if dtype == "float64" else 1e-6
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=0)
    if row.name not in EITHER_ZERO:
        zero = expected == 0
        assert (np.signbit(found[zero]) == np.signbit(expected[zero])).all()


def test_every_built_in_primitive_has_a_form() -> None:
    assert {row.name for row in ROWS} <= set(EXPRESSIONS)


def test_a_primitive_of_the_users_is_refused_by_name() -> None:
    register_primitive("twice", lambda a: 2 * a, partials="2")
    try:
        for engine in (ENGINE, INTERPRETER):
            tape = cgprimer.tape(cgprimer.parse("xw = twice(xa)"))
            with pytest.raises(EngineError, match=r"'twice'.*registered"):
                engine.compile(tape)
        # What no sample changes is computed on the host, where everything can be.
        uniform = cgprimer.tape(cgprimer.parse("xw = twice(k)*xa"))
        found = ENGINE.compile(uniform)({"xa": np.ones(2)}, {"k": 3.0}, 2)
        assert found["xw"].tolist() == [6.0, 6.0]
    finally:
        unregister_primitive("twice")
