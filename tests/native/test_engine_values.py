"""All engines compute the values and derivatives of random graphs, for any number of samples.

The reference is numpy, applied to one instruction of a tape after the other in doubles.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.backends import numpy_blocks
from cgprimer.backends.cpu.llvm_library import get_target_processor
from cgprimer.backends.cpu.straight_line import TILE
from cgprimer.core.evaluation.engines import select_engine
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import CgprimerError
from tests.methods.graph_strategies import graphs
from tests.native.conftest import TABLES
from tests.native.engine_agreement import (
    DTYPES,
    ENGINES,
    FORMS,
    REDUCTIONS,
    TOLERANCE,
    assert_close,
    check,
    compiled,
    gradient_tape,
    instruction_values,
    network,
    random_point,
    run_instructions,
)
from tests.tape.tape_running import texts

METHODS = ("reverse", "forward", "symbolic", "path-sum", "finite-difference")
RANDOM = settings(max_examples=8, suppress_health_check=list(HealthCheck))


@cache
def tape_of(text: str) -> Tape:
    return cgprimer.tape(cgprimer.parse(text))


@RANDOM
@given(graphs().map(str), st.sampled_from(METHODS), st.sampled_from(DTYPES), st.integers(0, 99))
def test_derivative_tapes_of_random_graphs_have_the_values_of_their_instructions(
    text: str, method: str, dtype: str, seed: int
) -> None:
    """Compare samples and sums; numbers that are added in between are at most 20."""
    try:
        tape = cgprimer.differentiate(tape_of(text), method=method).executed
    except CgprimerError:  # too long, or without a derivative
        assume(False)
    columns, scalars = random_point(tape, 60, seed=seed, dtype=dtype)
    values = [np.abs(value) for value in instruction_values(tape, columns, scalars)]
    largest = np.max(np.broadcast_arrays(np.ones(60), *values), axis=0)
    near = largest < 20
    assume(np.sum(near) > 1)
    columns = {name: column[near] for name, column in columns.items()}
    scale = np.max(largest[near]) ** 2
    for engine in ENGINES:
        check(tape, engine, columns, scalars, int(np.sum(near)), dtype=dtype, scale=scale)


EXTRAS = ("", "+ b", "- b + c", "+ 1", "+ x0*x1", "- x1", "+ w0*x0", "- (w1*x1 - b)", "+ w0*x9")


@st.composite
def sums_of_products(draw: st.DrawFn) -> str:
    """Draw graphs of sums over equal values, with other operations between the products."""
    inputs = [f"x{i}" for i in range(draw(st.integers(3, 5)))]
    known, lines = list(inputs), []
    for layer in range(draw(st.integers(1, 2))):
        terms = draw(st.lists(st.sampled_from(known), min_size=3, max_size=5, unique=True))
        for j in range(draw(st.integers(3, 5))):
            text = ""
            for i, value in enumerate(draw(st.permutations(terms))):
                weights = [f"w{i}*", f"v{j}*", "2*", "(p*q)*", *[f"u{i}{j}*"] * 12, ""]
                text += f" {draw(st.sampled_from('+-'))} {draw(st.sampled_from(weights))}{value}"
            extra = draw(st.sampled_from(EXTRAS))
            shape = draw(st.sampled_from(["{}", "{}", "({})^2", "-({})", "x1*({})"]))
            lines.append(f"xy{layer}_{j} = {shape.format(f'{text} {extra}'.strip())}")
        known += [line.partition(" ")[0] for line in lines if line.startswith(f"xy{layer}")]
    outputs = [name for name in known if name not in inputs]
    chosen = draw(st.lists(st.sampled_from(outputs), min_size=1, unique=True))
    return "\n".join([*lines, f"output {', '.join(chosen)}"])


@settings(RANDOM, max_examples=20)
@given(sums_of_products(), st.integers(0, 99))
def test_sums_of_products_and_their_gradients_are_exact_for_integers(text: str, seed: int) -> None:
    """Plans turn these sums into matrices, outer products and multiply-adds."""
    graph, random = cgprimer.parse(text), np.random.default_rng(seed)
    for tape in [tape_of(text), *[gradient_tape(graph) for _ in graph.parameters[:1]]]:
        columns = {n: random.integers(-2, 3, 5) * 1.0 for n in tape.of_kind("column")}
        scalars = {n: float(random.integers(-2, 3)) for n in tape.of_kind("scalar")}
        largest = max(np.max(np.abs(v)) for v in instruction_values(tape, columns, scalars))
        for engine in ("numpy", "interpreted"):
            check(tape, engine, columns, scalars, 5, scale=max(1.0, largest))


SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, np.inf, -np.inf, np.nan)


@settings(RANDOM, max_examples=12)
@given(texts(numbers=["2", "0.5"]), st.integers(0, 10_000))
def test_infinities_and_nans_propagate_as_in_numpy(text: str, seed: int) -> None:
    tape, random = tape_of(text), np.random.default_rng(seed)
    columns = {name: random.choice(SPECIAL, 37) for name in tape.of_kind("column")}
    scalars = {name: float(random.choice(SPECIAL)) for name in tape.of_kind("scalar")}
    expected = run_instructions(tape, columns, scalars, 37)
    for engine in ("numpy", "interpreted"):
        assert_close(compiled(tape, engine)(columns, scalars, 37), expected)


@pytest.mark.parametrize("form_name", FORMS)
def test_constant_factors_of_sums_neither_overflow_nor_vanish(form_name: str) -> None:
    for text, *point in TABLES["constant factors"]:
        xa, xb = map(float, point)
        tape = tape_of(f"xw = {text}")
        columns = {"xa": np.full(3, xa), "xb": np.full(3, xb)}
        with np.errstate(all="ignore"):
            expected = {n: np.sum(v) for n, v in run_instructions(tape, columns, {}, 3).items()}
        assert_close(compiled(tape, form_name, "sum")(columns, {}, 3), expected, scale=0.0)


MOST = 20_000  # samples, more than any boundary below


@cache
def loss() -> Tape:
    """Return a tape with matrices, sums of products and plain sums."""
    lines = [f"h{j} = tanh(a{j}*xa + b{j}*xb + c{j}*xc)" for j in range(3)]
    return gradient_tape(cgprimer.parse([*lines, "xw = h0*h1 + d*h2 + max(xa, xb)", "output xw"]))


def boundaries(run: Any, dtype: str) -> list[int]:
    """Return the samples of a vector, a unit, and a block or a tile of sums."""
    lanes = get_target_processor().count_lanes(dtype)
    if hasattr(run, "lanes"):
        return [lanes, run.lanes, TILE * run.lanes]
    itemsize = np.dtype(dtype).itemsize
    return [lanes, run.code.unit // itemsize, run.code.stride // itemsize]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form_name", FORMS)
def test_the_number_of_samples_changes_no_value(form_name: str, dtype: str) -> None:
    """The first samples of many have equal bits alone; sums are the sums of these values."""
    run, run_sums = (compiled(loss(), form_name, reduction, dtype) for reduction in REDUCTIONS)
    columns, scalars = random_point(loss(), MOST, dtype=dtype, low=-1.0)
    known, expected = (
        run(columns, scalars, MOST), run_instructions(loss(), columns, scalars, MOST)
    )  # fmt: skip
    assert_close(known, expected, scale=20.0, tolerance=TOLERANCE[dtype])
    edges = [edge * times for edge in boundaries(run_sums, dtype) for times in (1, 2, 3)]
    sizes = {0, 1, 2, 3, 5, 31, 33} | {edge + more for edge in edges for more in (-1, 0, 1)}
    for samples in sorted(size for size in sizes if size <= MOST):
        first = {name: column[:samples] for name, column in columns.items()}
        values, sums = run(first, scalars, samples), run_sums(first, scalars, samples)
        for name, value in known.items():
            np.testing.assert_array_equal(values[name], value[:samples], err_msg=name)
            total = np.sum(value[:samples], dtype=float)
            scale = max(1.0, float(np.sum(np.abs(value[:samples]))))
            assert abs(float(sums[name]) - total) <= TOLERANCE[dtype] * scale, (name, samples)


def test_a_tape_with_many_live_values_has_small_blocks() -> None:
    lines = [f"v{i} = sin({i + 1}*xa)" for i in range(1000)]
    total = " + ".join(f"v{i}*v{(i * 7 + 3) % 1000}" for i in range(1000))
    tape = tape_of("\n".join([*lines, f"xw = {total}", "output xw"]))
    run = select_engine("cpu").compile(tape, reduction="sum")  # too long for straight-line code
    assert run.code.stride == 512
    assert run.code.buffer <= 2**20
    for samples in (0, 1, 33, 127):
        columns, scalars = random_point(tape, samples)
        expected = np.sum(run_instructions(tape, columns, scalars, samples)["xw"])
        result = run(columns, scalars, samples)
        assert_close(result, {"xw": expected}, scale=1000.0 * max(1, samples))


@pytest.mark.parametrize("engine", ENGINES)
def test_matrices_of_all_small_sizes(engine: str) -> None:
    sizes = [(5, 5)] if engine == "straight" else product((2, 3, 5, 9), (1, 2, 4, 5, 7))
    for inputs, outputs in sizes:
        tape = gradient_tape(network(inputs, outputs, 2, bypass=inputs == outputs))
        for dtype in DTYPES if inputs == 5 else DTYPES[:1]:
            columns, scalars = random_point(tape, 71, seed=outputs, dtype=dtype, low=-1.0)
            check(tape, engine, columns, scalars, 71, dtype=dtype, scale=10.0)


@pytest.mark.parametrize("form_name", FORMS)
def test_infinities_stay_with_their_samples_in_a_matrix(form_name: str) -> None:
    """Padding of a matrix and of a block must not spill into results."""
    tape = gradient_tape(network(3, 5, 2))
    random = np.random.default_rng(1)
    columns, scalars = random_point(tape, 33, low=-1.0)
    run = compiled(tape, form_name, "sum")
    columns["x1"][32] = np.inf  # the last sample is alone in the last vector
    first = {n: c[:32] for n, c in columns.items()}
    assert all(np.isfinite(v) for v in run(first, scalars, 32).values())
    for column in columns.values():
        column[random.integers(0, 33, 3)] = random.choice([np.inf, -np.inf, np.nan], 3)
    check(tape, form_name, columns, {**scalars, "w1_0_0": 0.0, "b1_1": np.inf}, 33)


def test_the_engine_numpy_splits_samples_and_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    tape = gradient_tape(network(3, 4, 4, 2, bypass=True))
    block_size = compiled(tape, "numpy", "sum").block_size
    assert 512 <= block_size <= 2**13
    for most in (numpy_blocks._MAX_SERIAL_PRODUCTS, 1000):
        monkeypatch.setattr(numpy_blocks, "_MAX_SERIAL_PRODUCTS", most)
        for samples in (block_size - 1, 2 * block_size + 1):
            columns, scalars = random_point(tape, samples, low=-1.0)
            check(tape, "numpy", columns, scalars, samples, scale=10.0)


def leaf_outputs() -> Tape:
    builder = Builder()
    xa, k, three = builder.column("xa"), builder.scalar("k"), builder.constant(3.0)
    total = builder.emit("add", xa, k)
    twice = builder.emit("mul", k, three)
    outputs = {"input": xa, "again": xa, "parameter": k, "number": three, "sum": total}
    return builder.finish({**outputs, "total": total, "twice": twice, "product": twice})


@pytest.mark.parametrize("engine", ENGINES)
def test_outputs_may_be_leaves_and_belong_to_the_caller(engine: str) -> None:
    tape, column = leaf_outputs(), np.linspace(0.0, 1.0, 37)
    column.flags.writeable = False
    runs = [compiled(tape, engine, reduction) for reduction in REDUCTIONS]
    for samples in (0, 1, 37):
        columns = {"xa": column[:samples]}
        expected = run_instructions(tape, columns, {"k": 2.0}, samples)
        result = runs[0](columns, {"k": 2.0}, samples)
        assert_close(result, expected)
        for one, other in combinations([column, *result.values()], 2):
            assert not np.shares_memory(one, other)
        sums = {name: np.sum(value) for name, value in expected.items()}
        assert_close(runs[1](columns, {"k": 2.0}, samples), sums, scale=40.0)
    # Infinite values of no samples have the sum zero.
    assert float(runs[1]({"xa": column[:0]}, {"k": np.inf}, 0)["twice"]) == 0.0


@pytest.mark.parametrize("form_name", FORMS)
def test_the_sign_of_zero_is_preserved(form_name: str) -> None:
    text = "a = -xa; b = xa*k; c = sqrt(xa); d = xa/3; e = xa + 0*k; output a, b, c, d, e"
    tape = tape_of(text)
    columns, scalars = {"xa": np.array([0.0, -0.0] * 20)}, {"k": -1.0}
    result = compiled(tape, form_name)(columns, scalars, 40)
    for name, value in run_instructions(tape, columns, scalars, 40).items():
        np.testing.assert_array_equal(np.signbit(result[name]), np.signbit(value), err_msg=name)
