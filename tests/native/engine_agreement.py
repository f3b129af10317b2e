"""Run tapes on the engine cpu in either form of code, and compare results with references."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np

import cgprimer
from cgprimer.backends.cpu import cpu_engine
from cgprimer.core.evaluation.engines import Reduction, select_engine
from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.loss_expressions import LOSS
from cgprimer.core.loss_node import with_loss
from cgprimer.core.operations import numpy_arithmetic
from cgprimer.core.tape.tape import Tape

Array = Any
FORMS = ("straight", "interpreted")
ENGINES = ("numpy", *FORMS)
REDUCTIONS: tuple[Reduction, ...] = ("none", "sum")
DTYPES = ("float64", "float32")
TOLERANCE = {"float64": 1e-12, "float32": 2e-5}
# The longest tape that becomes straight-line code.
_LONGEST = {"straight": 4000, "interpreted": -1}


@contextmanager
def form(name: str) -> Iterator[None]:
    """Make the engine cpu generate straight-line code always, or never."""
    with mock.patch.object(cpu_engine, "STRAIGHT", _LONGEST[name]):
        yield


def compiled(tape: Tape, on: Any, reduction: Reduction = "none", dtype: str = "float64") -> Any:
    """Compile a tape on an engine, on the engine numpy, or in one form on the engine cpu."""
    if on not in FORMS:
        engine = select_engine(on) if isinstance(on, str) else on
        return engine.compile(tape, reduction=reduction, dtype=dtype)
    with form(on):
        executable = select_engine("cpu").compile(tape, reduction=reduction, dtype=dtype)
    classes = {"straight": "StraightLineExecutable", "interpreted": "InterpretedExecutable"}
    assert type(executable).__name__ == classes[on]  # the engine may choose the other form
    return executable


def compile_text(text: str, reduction: Reduction = "none", engine: str = "cpu") -> Any:
    tape = cgprimer.tape(cgprimer.parse(text))
    return select_engine(engine).compile(tape, reduction=reduction, dtype="float64")


def instruction_values(
    tape: Tape, columns: Mapping[str, Array], scalars: Mapping[str, float]
) -> list[Any]:
    """Return all values of a tape, computed by one instruction after the other in doubles."""
    values: list[Any] = []
    with np.errstate(all="ignore"):
        for leaf in tape.leaves:
            if leaf.kind == "constant":
                values.append(np.float64(leaf.value))
            else:
                chosen = columns if leaf.kind == "column" else scalars
                values.append(np.asarray(chosen[leaf.name], float))
        for name, operands in tape.instructions:
            values.append(numpy_arithmetic.numpy_function(name)(*[values[o] for o in operands]))
    return values


def run_instructions(
    tape: Tape, columns: Mapping[str, Array], scalars: Mapping[str, float], samples: int
) -> dict[str, Array]:
    """Return the outputs of a tape, computed by one instruction after the other in doubles."""
    values = instruction_values(tape, columns, scalars)
    return {n: np.array(np.broadcast_to(values[i], samples)) for n, i in tape.outputs.items()}


def random_point(
    tape: Tape,
    samples: int,
    *,
    seed: int = 0,
    dtype: str = "float64",
    low: float = -2.0,
    high: float = 2.0,
) -> tuple[dict[str, Array], dict[str, float]]:
    """Return columns and scalars between ``low`` and ``high``."""
    random = np.random.default_rng(seed)
    columns = {n: random.uniform(low, high, samples).astype(dtype) for n in tape.of_kind("column")}
    return columns, {n: float(random.uniform(low, high)) for n in tape.of_kind("scalar")}


def network(*sizes: int, bypass: bool = False) -> ExpressionGraph:
    """Return a tanh network as scalar expressions; its last layer is linear."""
    lines = []
    before = [f"x{i}" for i in range(sizes[0])]
    for layer, size in enumerate(sizes[1:]):
        outputs = []
        for j in range(size):
            terms = [f"w{layer}_{i}_{j}*{name}" for i, name in enumerate(before)]
            text = " + ".join([*terms, f"b{layer}_{j}"])
            text = text if layer == len(sizes) - 2 else f"tanh({text})"
            if bypass and size == len(before):
                text += f" + {before[j]}"
            lines.append(f"h{layer}_{j} = {text}")
            outputs.append(f"h{layer}_{j}")
        before = outputs
    return cgprimer.parse([*lines, f"output {', '.join(before)}"])


def gradient_tape(graph: ExpressionGraph, method: str = "reverse", **options: Any) -> Tape:
    """Return the tape of the squared error and its gradient, as in training."""
    tape = with_loss(cgprimer.tape(graph), "squared-error")
    program = cgprimer.differentiate(tape, of=LOSS, wrt=graph.parameters, method=method, **options)
    return program.tape


def classify(values: Array) -> Array:
    """Return 0 for finite numbers, 1 and -1 for infinities, 2 for nan."""
    values = np.asarray(values)
    return np.where(np.isnan(values), 2, np.where(np.isinf(values), np.sign(values), 0))


def assert_close(
    result: Mapping[str, Array],
    expected: Mapping[str, Array],
    *,
    scale: Array = 1.0,
    tolerance: float = 1e-12,
) -> None:
    """Compare outputs: equal infinities and nans, and finite numbers within a tolerance.

    Args:
        result, expected: output -> values.
        scale: size of the numbers that are added in between, one for all or one per sample.
        tolerance: relative to the larger of scale and value.
    """
    assert sorted(result) == sorted(expected)
    for name, value in expected.items():
        got, want = np.asarray(result[name]), np.asarray(value)
        assert got.shape == want.shape, name
        wrong = np.flatnonzero(classify(got) != classify(want))
        assert [(name, i, got.flat[i], want.flat[i]) for i in wrong[:5]] == []
        finite = np.isfinite(want)
        size = np.maximum(np.broadcast_to(scale, want.shape)[finite], np.abs(want[finite]))
        error = np.abs(got[finite].astype(float) - want[finite])
        wrong = np.flatnonzero(error > tolerance * size)
        assert [(name, got[finite][i], want[finite][i], size[i]) for i in wrong[:5]] == []


def check(
    tape: Tape,
    on: Any,
    columns: Mapping[str, Array],
    scalars: Mapping[str, float],
    samples: int,
    *,
    dtype: str = "float64",
    tolerance: float | None = None,
    scale: float = 1.0,
) -> None:
    """Compare values per sample and sums of an engine with the tape's instructions.

    Sums are compared relative to the sum of the absolute values, with which rounding errors grow.
    """
    tolerance = TOLERANCE[dtype] if tolerance is None else tolerance
    expected = run_instructions(tape, columns, scalars, samples)
    result = compiled(tape, on, "none", dtype)(columns, scalars, samples)
    assert {value.dtype for value in result.values()} <= {np.dtype(dtype)}
    assert_close(result, expected, tolerance=tolerance, scale=scale)
    with np.errstate(all="ignore"):
        sums = {n: np.sum(v, dtype=float) for n, v in expected.items()}
        finite = [np.abs(v[np.isfinite(v)]) for v in expected.values()]
        total = max([1.0, scale * samples, *(float(np.sum(v)) for v in finite)])
    result = compiled(tape, on, "sum", dtype)(columns, scalars, samples)
    assert_close(result, sums, tolerance=tolerance, scale=total)
