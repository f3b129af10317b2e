"""The numpy engine does what a plan says: against the tape, an operation and sample at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.backends.numpy_blocks import NumpyExecutable
from cgprimer.backends.plans.plan import AffineGroup
from cgprimer.core.evaluation.engines import select_engine
from cgprimer.core.tape.tape import Tape
from tests.native.plan_running import loss_program, network
from tests.tape.tape_running import outputs

NETWORK = loss_program(network(3, 4, 4, 2, bypass=True))


def point(tape: Tape, samples: int, seed: int = 0) -> tuple[dict, dict]:
    rng = np.random.default_rng(seed)
    columns = {n: rng.uniform(-1, 1, samples) for n in tape.of_kind("column")}
    return columns, {n: float(rng.uniform(-1, 1)) for n in tape.of_kind("scalar")}


def one_by_one(tape: Tape, columns: dict, scalars: dict, samples: int) -> dict[str, np.ndarray]:
    each = [
        outputs(tape, {**scalars, **{n: c[i] for n, c in columns.items()}}) for i in range(samples)
    ]
    return {name: np.array([one[name] for one in each]) for name in tape.outputs}


@pytest.mark.parametrize("reduction", ["none", "sum"])
@pytest.mark.parametrize("samples", [0, 1, 2, 7])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_network_is_computed_as_its_tape_says(reduction, samples: int, dtype: str) -> None:
    columns, scalars = point(NETWORK, samples)
    columns = {n: c.astype(dtype) for n, c in columns.items()}
    found = select_engine("numpy").compile(NETWORK, reduction=reduction, dtype=dtype)(
        columns, scalars, samples
    )
    expected = one_by_one(NETWORK, columns, scalars, samples)
    close = 1e-12 if dtype == "float64" else 1e-4
    for name, value in expected.items():
        wanted = value if reduction == "none" else np.sum(value)
        np.testing.assert_allclose(found[name], wanted, rtol=close, atol=close)


@given(blocks=st.integers(0, 3), more=st.integers(-1, 1))
@settings(max_examples=12)
def test_blocks_make_no_difference(blocks: int, more: int) -> None:
    run = NumpyExecutable(NETWORK, reduction="sum", dtype="float64")
    each = NumpyExecutable(NETWORK, reduction="none", dtype="float64")
    samples = max(0, run.block_size * blocks + more)
    columns, scalars = point(NETWORK, samples)
    found, wanted = run(columns, scalars, samples), each(columns, scalars, samples)
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], np.sum(value), rtol=1e-11, atol=1e-11)


def test_large_matrices_are_cut_into_parts_and_nothing_is_lost() -> None:
    wide = loss_program(network(40, 70, 70, 2))
    run = NumpyExecutable(wide, reduction="sum", dtype="float64")
    assert any(isinstance(g, AffineGroup) and len(g.inputs) == 70 for g in run.plan.groups.values())
    columns, scalars = point(wide, 700)
    plain = select_engine("plain").compile(wide, reduction="none", dtype="float64")
    found, wanted = run(columns, scalars, 700), plain(columns, scalars, 700)
    for name, value in wanted.items():
        scale = float(np.sum(np.abs(value)))
        np.testing.assert_allclose(found[name], np.sum(value), atol=1e-12 * scale)


def test_the_same_result_every_time_and_the_samples_stay_as_they_are() -> None:
    columns, scalars = point(NETWORK, 3000)
    before = {n: c.copy() for n, c in columns.items()}
    run = select_engine("numpy").compile(NETWORK, reduction="sum", dtype="float64")
    first = run(columns, scalars, 3000)
    for other in (run, select_engine("numpy").compile(NETWORK, reduction="sum", dtype="float64")):
        assert other(columns, scalars, 3000) == first
    for name, column in before.items():
        np.testing.assert_array_equal(columns[name], column)


def test_read_only_columns_and_constants_for_all() -> None:
    tape = cgprimer.tape(
        cgprimer.parse("xw = sin(xa)*cos(xa) + k*xa; xv = xa; xu = k*2; output xw, xv, xu")
    )
    column = np.linspace(-1, 1, 5)
    column.flags.writeable = False
    for reduction, sums in (("none", False), ("sum", True)):
        found = select_engine("numpy").compile(tape, reduction=reduction, dtype="float64")(
            {"xa": column}, {"k": 3.0}, 5
        )
        wanted = {
            "xw": np.sin(column) * np.cos(column) + 3 * column,
            "xv": column,
            "xu": np.full(5, 6.0),
        }
        for name, value in wanted.items():
            np.testing.assert_allclose(found[name], np.sum(value) if sums else value, atol=1e-15)


def test_infinities_and_nans_go_through_a_matrix_as_through_a_sum() -> None:
    sizes = range(4)
    text = "\n".join(f"xw{j} = {' + '.join(f'w{j}{i}*x{i}' for i in sizes)}" for j in sizes)
    tape = cgprimer.tape(cgprimer.parse(text))
    special = [0.0, -0.0, 1.0, np.inf, -np.inf, np.nan]
    rng = np.random.default_rng(1)
    columns = {f"x{i}": rng.choice(special, 200) for i in sizes}
    scalars = {f"w{j}{i}": float(rng.choice(special)) for i in sizes for j in sizes}
    run = NumpyExecutable(tape, reduction="none", dtype="float64")
    assert run.plan.groups
    found = run(columns, scalars, 200)
    for name, value in one_by_one(tape, columns, scalars, 200).items():
        np.testing.assert_array_equal(found[name], value)


def test_primitives_from_outside_stand_between_matrices() -> None:
    cgprimer.register_primitive("mine", lambda a: a, partials="1")  # gives its argument back
    try:
        graph = cgprimer.parse(
            "\n".join(
                [
                    *(f"xh{j} = mine({'+'.join(f'w{j}{i}*x{i}' for i in range(4))})" for j in "01"),
                    "xw = v0*xh0 + v1*xh1",
                ]
            )
        )
        tape = loss_program(graph)
        columns, scalars = point(tape, 50)
        found = select_engine("numpy").compile(tape, reduction="sum", dtype="float64")(
            columns, scalars, 50
        )
        for name, value in one_by_one(tape, columns, scalars, 50).items():
            np.testing.assert_allclose(found[name], np.sum(value), rtol=1e-12, atol=1e-12)
    finally:
        cgprimer.unregister_primitive("mine")
