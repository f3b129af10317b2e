"""Graphs, tapes and points that the tests of the engine cuda share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import cgprimer
from cgprimer.backends.cuda.cuda_engine import CudaEngine
from cgprimer.backends.numpy_blocks import ENGINE as NUMPY
from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.methods.derivative_program import DerivativeProgram
from cgprimer.core.tape.scalarization import scalarize
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_passes import substitute_seeds
from cgprimer.training.objective import Objective

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.cg"))
# Those whose loss is of one sample: a batch that is normalized is refused.
LEARNING = [
    path
    for path in EXAMPLES
    if (graph := cgprimer.load(path)).parameters and not graph.mode({"x": np.zeros(2)})
]
TOLERANCE = {"float64": 1e-12, "float32": 2e-4}


def network(*sizes: int) -> ExpressionGraph:
    """A network of tanh layers and a linear last one, written as scalar expressions."""
    lines = []
    layer = [f"x{i}" for i in range(sizes[0])]
    for number, size in enumerate(sizes[1:]):
        last = number == len(sizes) - 2
        names = [f"xh{number}_{j}" for j in range(size)]
        for j, name in enumerate(names):
            terms = [f"w{number}_{i}_{j}*{x}" for i, x in enumerate(layer)]
            text = " + ".join([*terms, f"b{number}_{j}"])
            lines.append(f"{name} = {text}" if last else f"{name} = tanh({text})")
        layer = names
    return cgprimer.parse("\n".join(lines))


def program(graph: ExpressionGraph, method: str = "reverse") -> DerivativeProgram:
    """The loss and its gradient."""
    return Objective(graph, method=method, engine="numpy").program


def gradient_tape(graph: ExpressionGraph) -> Tape:
    """The loss and its gradient on one tape, with all seeds in, written out in numbers."""
    found = program(graph)
    return scalarize(substitute_seeds(found.tape, found.passes[0].seeds))


def point(tape: Tape, samples: int, seed: int = 1) -> tuple[dict[str, Any], dict[str, Any]]:
    """Columns and scalars inside the domains of the example graphs."""
    rng = np.random.default_rng(seed)
    columns = {name: rng.uniform(0.1, 0.9, samples) for name in tape.of_kind("column")}
    scalars = {name: float(rng.uniform(0.2, 0.7)) for name in tape.of_kind("scalar")}
    return columns, scalars


def assert_agrees(
    engine: CudaEngine,
    tape: Tape,
    samples: Sequence[int],
    *,
    reduction: Any = "sum",
    dtype: str = "float64",
) -> Any:
    """The engine computes what numpy does; returns the compiled tape."""
    compiled = engine.compile(tape, reduction=reduction, dtype=dtype)
    reference = NUMPY.compile(tape, reduction=reduction, dtype=dtype)
    columns, scalars = point(tape, max(samples))
    for count in samples:
        given = {name: column[:count].astype(dtype) for name, column in columns.items()}
        found = compiled(given, scalars, count)
        expected = reference(given, scalars, count)
        assert list(found) == list(expected)
        for name in expected:
            assert np.shape(found[name]) == np.shape(expected[name])
            np.testing.assert_allclose(
                found[name], expected[name], rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype],
                err_msg=f"{name} of {count} samples",
            )  # fmt: skip
    return compiled
