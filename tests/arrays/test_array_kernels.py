"""Matrix products with compiled kernels between them, compared with the plain engine."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.core.evaluation.array_evaluator import ArrayEvaluator
from cgprimer.core.evaluation.engine_choice import choose_engine
from cgprimer.core.evaluation.runner import Runner
from tests.arrays.array_graphs import array_cases

if not any(e.available for e in cgprimer.engines() if e.name == "cpu"):
    pytest.skip("the engine cpu cannot be used here", allow_module_level=True)

from cgprimer.backends.cpu import blas_threads, matrix_executable
from cgprimer.backends.cpu.matrix_executable import ArrayExecutable

NETWORK = """
input x[6], t[1]; parameter W1[19,6], b1[19], W2[19,19], b2[19], w3[1,19], b3[1]
h = tanh(W1 @ x + b1); g = sigmoid(W2 @ h + b2)
xo = sum((w3 @ g + b3 - t)^2)
"""
CLASSES = """
input x[7], t[10]; parameter W1[16,7], b1[16], W2[10,16], b2[10]
y = W2 @ relu(W1 @ x + b1) + b2
xo = -sum(t*log_softmax(y))
"""
ROWS = """
input x[4,3], k; parameter W[5,4], c[3], d
h = W @ x*c; m = softmax(h, 0)*k
xo = sum(exp(d*m)) + max(h)*k + norm(x[1:,::2]) + sum(concatenate(h, x)[:,0])/sum(x^2)
"""
POWERS = "input x[5]; xo = sum(x^(-2)*(x^3 + x^4 + 2) + x^(-1) + abs(x)^0.5)"
ROUNDING = {"float64": 1e-11, "float32": 2e-4}


def gradient_tape(text: str) -> Any:
    graph = cgprimer.parse(text)
    wrt = (*graph.parameters, *graph.inputs)
    return cgprimer.differentiate(cgprimer.tape(graph), of="xo", wrt=wrt).executed


def random_point(tape: Any, samples: int, seed: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    random = np.random.default_rng(seed)

    def values(kind: str, *samples: int) -> dict[str, Any]:
        leaves = [leaf for leaf in tape.leaves if leaf.kind == kind]
        return {leaf.name: random.uniform(-1.5, 1.5, (*samples, *leaf.shape)) for leaf in leaves}

    return values("column", samples), values("scalar")


def assert_close(result: dict[str, Any], known: dict[str, Any], dtype: str) -> None:
    assert list(result) == list(known)
    for name, value in known.items():
        expected = np.asarray(value, float)
        assert np.shape(result[name]) == expected.shape, name
        scale = max(1.0, float(np.abs(expected[np.isfinite(expected)]).max(initial=0)))
        atol = ROUNDING[dtype] * scale
        np.testing.assert_allclose(result[name], expected, rtol=0, atol=atol, err_msg=name)


@pytest.mark.parametrize(
    ("text", "dtype", "sums"),
    [
        *itertools.product([NETWORK], ["float64", "float32"], [True, False]),
        *itertools.product([CLASSES, ROWS, POWERS], ["float64"], [True, False]),
    ],
)
def test_kernels_match_the_plain_engine(text: str, dtype: str, sums: bool) -> None:
    tape = gradient_tape(text)
    made = ArrayExecutable(tape, sums=sums, dtype=dtype)
    for samples in (1, 7, 64, 7, 0):
        columns, scalars = random_point(tape, samples, samples)
        result = made(columns, scalars, samples)
        if not sums:
            assert {value.dtype.name for value in result.values()} == {dtype}
        assert_close(
            result, ArrayEvaluator(tape, sums=sums, dtype=dtype)(columns, scalars, samples), dtype
        )
    for bad in (np.nan, np.inf, -np.inf):
        columns, scalars = random_point(tape, 20)
        columns["x"].reshape(20, -1)[3, 1] = bad
        known = ArrayEvaluator(tape, sums=sums, dtype=dtype)(columns, scalars, 20)
        assert_close(made(columns, scalars, 20), known, dtype)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=array_cases(steps=5), samples=st.sampled_from([1, 3, 300]), sums=st.booleans())
def test_kernels_match_the_plain_engine_on_random_graphs(
    case: Any, samples: int, sums: bool
) -> None:
    tape = gradient_tape("\n".join(case.lines))
    if not tape.has_arrays:
        return
    columns, scalars = random_point(tape, samples)
    made = ArrayExecutable(tape, sums=sums, dtype="float64")
    made.block = 100
    known = ArrayEvaluator(tape, sums=sums, dtype="float64")(columns, scalars, samples)
    assert_close(made(columns, scalars, samples), known, "float64")


def test_blas_thread_limit_is_restored() -> None:
    if not blas_threads.can_limit_threads():
        pytest.skip("threadpoolctl does not know the library that multiplies matrices for numpy")

    def get() -> int:
        return int(blas_threads._find_libraries().info()[0]["num_threads"])

    before = get()
    with blas_threads.limit_to_one_thread(), blas_threads.limit_to_one_thread():
        assert get() == 1
    assert get() == before
    with pytest.raises(ValueError, match="x"), blas_threads.limit_to_one_thread():
        raise ValueError("x")
    assert get() == before


@pytest.mark.parametrize(
    "text",
    [
        "input x[64]; parameter W[64,90], c[90]; xo = sum(tanh(x @ W + c))",
        "input x[8,16], k; parameter W[16,40], c[40]; xo = k*sum(relu(x @ W + c)^2)",
        "input k; parameter W[90,64], v[64]; xo = sum(tanh(W @ v*k))",
    ],
)
def test_single_point_without_a_batch_axis(text: str) -> None:
    graph, random = cgprimer.parse(text), np.random.default_rng(4)
    at = {n: random.normal(0, 0.1, graph.shapes.get(n, ())) for n in graph.parameters}
    for shape in ((), (1,), (3,)):
        at |= {n: random.normal(0, 0.1, shape + graph.shapes.get(n, ())) for n in graph.inputs}
        known, result = (cgprimer.gradient(graph, at, engine=e) for e in ("numpy", "cpu"))
        for name, slope in known.items():
            np.testing.assert_allclose(result[name], slope, rtol=1e-11)


@pytest.mark.parametrize("sums", [True, False])
def test_results_are_independent_of_threads_and_blocks(
    sums: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = gradient_tape(CLASSES)
    columns, scalars = random_point(tape, 1001)
    known = ArrayEvaluator(tape, sums=sums, dtype="float64")(columns, scalars, 1001)
    monkeypatch.setenv("CGPRIMER_THREADS", "3")
    for name, value in {"_MIN_OPERATIONS": 1, "_MIN_BLOCK": 50, "_BLOCK_BYTES": 1}.items():
        monkeypatch.setattr(matrix_executable, name, value)
    made = ArrayExecutable(tape, sums=sums, dtype="float64")
    first = made(columns, scalars, 1001)
    assert_close(first, known, "float64")
    again = made(columns, scalars, 1001)
    assert all(np.array_equal(first[name], again[name]) for name in first)  # bit for bit
    kept = {name: value.copy() for name, value in first.items()}
    made({name: 2 * value for name, value in columns.items()}, scalars, 1001)
    assert all(np.array_equal(first[name], kept[name]) for name in kept)  # memory is not shared


@pytest.mark.parametrize("method", ["reverse", "forward"])
@pytest.mark.parametrize("reduction", ["sum", "none"])
def test_compiled_small_matrices_match_numpy(method: str, reduction: str) -> None:
    text = "parameter W[4,3], b[4], w[4]; input x[3], t; h = tanh(W @ x + b)\n"
    graph = cgprimer.parse(f"{text}xo = (w @ softmax(h[::-1]) + max(h) - t)^2")
    program = cgprimer.differentiate(cgprimer.tape(graph), method=method)
    columns, scalars = random_point(cgprimer.tape(graph), 70)
    known = Runner(program, reduction=reduction)(columns, scalars, 70)
    result = Runner(program, engine="cpu", reduction=reduction)(columns, scalars, 70)
    np.testing.assert_allclose(result.values["xo"], known.values["xo"], rtol=1e-11)
    for pair, value in known.derivatives.items():
        np.testing.assert_allclose(result.derivatives[pair], value, atol=1e-10)


@pytest.mark.parametrize(
    ("width", "samples", "engine"),
    [
        (4, 1_000_000, "cpu"),  # small matrices are compiled as scalars
        (4, 20, "plain"),  # too few samples to outweigh the overhead of a call
        (4, None, "plain"),
        (200, 1_000_000, "cpu"),  # matrix products, and kernels between them
        (100, 20, "plain"),  # too few samples to outweigh loading the compiler
    ],
)
def test_auto_engine_choice(width: int, samples: int | None, engine: str) -> None:
    text = f"input x[{width}]; parameter W[{width},{width}]; xo = sum(tanh(W @ x)^2)"
    program = cgprimer.differentiate(cgprimer.tape(cgprimer.parse(text)))
    assert choose_engine("auto", program, samples).name == engine
