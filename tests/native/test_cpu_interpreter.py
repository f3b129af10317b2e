"""Operands of all kinds, matrices of odd sizes, and tapes with next to nothing in them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import cgprimer
from cgprimer.backends.cpu import interpreter
from cgprimer.backends.cpu.interpreter_handlers import TILE, number_opcodes
from cgprimer.backends.plans.plan import AffineGroup, OuterProduct
from cgprimer.backends.plans.planning import build_plan
from cgprimer.core.loss_expressions import LOSS
from cgprimer.core.loss_node import with_loss
from cgprimer.core.methods import differentiate
from cgprimer.core.operations import find_primitive
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_entries import Leaf
from tests.native.engine_agreement import (
    DTYPES,
    FORMS,
    assert_alike,
    by_numpy,
    check,
    compiled,
    directly,
    random_point,
)
from tests.primitives.row_tools import replaced

# Small whole numbers: products and sums are exact, whether they are rounded once or twice.
WHOLE = np.array([0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 5.0, np.inf, -np.inf, np.nan])
BINARY = ("add", "sub", "mul", "div", "max", "min", "less", "equal", "pow", "logaddexp", "log_base")
TERNARY = ("where", "clamp")


@pytest.fixture(autouse=True)
def nothing_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGPRIMER_CACHE", "off")


def operand(builder: Builder, letter: str, position: int) -> int:
    """r: a column; s: a scalar; c: a number; u: computed from scalars; v: from columns."""
    match letter:
        case "r":
            return builder.column(f"x{position}")
        case "s":
            return builder.scalar(f"s{position}")
        case "c":
            return builder.constant((0.5, 3.0, -2.0)[position])
        case "u":
            return builder.emit("neg", builder.scalar(f"s{position}"))
    return builder.emit("abs", builder.column(f"x{position}"))


def drawn(tape: Tape, samples: int, seed: int) -> tuple[dict[str, Any], dict[str, float]]:
    random = np.random.default_rng(seed)
    columns = {name: random.choice(WHOLE, samples) for name in tape.of_kind("column")}
    return columns, {name: float(random.choice(WHOLE)) for name in tape.of_kind("scalar")}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form_name", FORMS)
def test_operands_of_every_kind_in_every_place(form_name: str, dtype: str) -> None:
    builder = Builder()
    outputs = {}
    for names, arity in ((BINARY, 2), (TERNARY, 3)):
        for name in names:
            for kinds in itertools.product("rsuvc", repeat=arity):
                if arity == 3 and len(set(kinds)) > 2:  # these are enough
                    continue
                operands = [operand(builder, kind, i) for i, kind in enumerate(kinds)]
                outputs[f"{name} {''.join(kinds)}"] = builder.emit(name, *operands)
    tape = builder.finish(outputs)
    run = compiled(tape, form_name, "none", dtype)
    for seed in range(6):
        columns, scalars = drawn(tape, 83, seed)
        wanted = directly(tape, columns, scalars, 83)
        close = 1e-14 if dtype == "float64" else 1e-6
        assert_alike(run(columns, scalars, 83), wanted, scale=0.0, close=close)


@pytest.mark.parametrize("form_name", FORMS)
def test_products_in_sums_with_operands_of_every_kind(form_name: str) -> None:
    builder = Builder()
    outputs = {}
    for a, b, c in itertools.product("rsuv", repeat=3):
        y, z = operand(builder, b, 1), operand(builder, c, 2)
        for name, first in (("add", True), ("sub", True), ("sub", False)):
            x = operand(builder, a, 3 + len(outputs))  # every product is used once
            product = builder.emit("mul", x, y)
            pair = (product, z) if first else (z, product)
            outputs[f"{name} {a}{b}{c} {first}"] = builder.emit(name, *pair)
    tape = builder.finish(outputs)
    fused = {step.name for step in build_plan(tape, sums=False).varying}
    assert {"fma", "fms", "fnma"} <= fused
    run = compiled(tape, form_name)
    for seed in range(10):
        columns, scalars = drawn(tape, 69, seed)
        wanted = directly(tape, columns, scalars, 69)
        assert_alike(run(columns, scalars, 69), wanted, scale=0.0)


def test_every_pattern_with_a_handler_of_its_own_is_used_here() -> None:
    """The two tests above reach every handler that takes numbers in place of rows."""
    reached = set(BINARY) | set(TERNARY) | {"fma", "fms", "fnma"}
    mixed = {name for name, pattern in number_opcodes() if "s" in pattern}
    assert mixed <= reached


# --- matrices ------------------------------------------------------------------------------------


def layer(inputs: int, outputs: int) -> cgprimer.ExpressionGraph:
    """Two layers, so that the reverse sweep has a matrix too."""
    sums = [
        f"z{j} = " + " + ".join(f"w{j}_{i}*x{i}" for i in range(inputs)) + f" + b{j}"
        for j in range(outputs)
    ]
    hidden = [f"h{j} = tanh(z{j})" for j in range(outputs)]
    last = " + ".join(f"u{j}*h{j}" for j in range(outputs))
    second = " - ".join(f"h{j}*t{j}" for j in range(outputs))
    return cgprimer.parse([*sums, *hidden, f"xw = {last}", f"xv = {second}", "output xw, xv"])


def loss_tape(graph: cgprimer.ExpressionGraph) -> Tape:
    primal = with_loss(cgprimer.tape(graph), "squared-error")
    return differentiate(primal, of=LOSS, wrt=graph.parameters, method="reverse").tape


@pytest.mark.parametrize("inputs", range(2, 10))
def test_matrices_of_all_small_sizes(inputs: int) -> None:
    for outputs in range(1, 10):
        tape = loss_tape(layer(inputs, outputs))
        columns, scalars = random_point(tape, 71, seed=outputs, low=-1.0)
        check(tape, "interpreted", columns, scalars, 71)


def test_these_matrices_are_matrices_and_not_multiples_of_a_tile() -> None:
    found = set()
    for inputs, outputs in itertools.product(range(2, 10), range(1, 10)):
        groups = build_plan(loss_tape(layer(inputs, outputs)), sums=True).groups.values()
        for group in groups:
            sizes = group.outputs if isinstance(group, AffineGroup) else group.left
            found.add((type(group), len(sizes) % TILE))
    assert found == {(kind, rest) for kind in (AffineGroup, OuterProduct) for rest in range(TILE)}


@pytest.mark.parametrize(("inputs", "outputs"), [(2, 3), (5, 7), (9, 2)])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form_name", FORMS)
def test_matrices_in_both_forms_and_types(
    form_name: str, dtype: str, inputs: int, outputs: int
) -> None:
    tape = loss_tape(layer(inputs, outputs))
    columns, scalars = random_point(tape, 45, dtype=dtype, low=-1.0)
    check(tape, form_name, columns, scalars, 45, dtype=dtype)


@pytest.mark.parametrize("form_name", FORMS)
@pytest.mark.parametrize(("inputs", "outputs"), [(3, 3), (5, 7), (4, 8)])
def test_infinities_stay_with_their_samples_in_a_matrix(
    form_name: str, inputs: int, outputs: int
) -> None:
    """The rows and lanes that pad a matrix and a block hold nothing that could spill over."""
    tape = loss_tape(layer(inputs, outputs))
    random = np.random.default_rng(1)
    columns, scalars = random_point(tape, 67, low=-1.0)
    for column in columns.values():
        column[random.integers(0, 67, 4)] = random.choice([np.inf, -np.inf, np.nan], 4)
    columns["x0"][66] = np.inf  # the last sample is the one that fills the last vector
    scalars["w0_0"] = 0.0
    check(tape, form_name, columns, scalars, 67)
    for name in ("w1_1", "b0"):
        check(tape, form_name, columns, {**scalars, name: np.inf}, 67)


@pytest.mark.parametrize("form_name", FORMS)
def test_only_the_last_sample_is_infinite(form_name: str) -> None:
    """Sums of products are nan because of it, not because of lanes without samples."""
    tape = loss_tape(layer(3, 3))
    columns, scalars = random_point(tape, 33, low=-1.0)
    run = compiled(tape, form_name, "sum")
    for special in (np.inf, np.nan):
        columns["x1"][32] = special
        whole = run(columns, scalars, 33)
        wanted = {n: np.sum(v) for n, v in directly(tape, columns, scalars, 33).items()}
        assert_alike(whole, wanted, scale=33.0)
        fewer = {n: c[:32] for n, c in columns.items()}
        assert all(np.isfinite(v) for v in run(fewer, scalars, 32).values())


# --- sine and cosine -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form_name", FORMS)
def test_sine_and_cosine_of_one_value(form_name: str, dtype: str) -> None:
    graph = cgprimer.parse(
        "a = sin(xa); b = cos(xa); c = sin(k)*cos(k)*xa; d = cos(k*xa)^2; e = sin(k*xa)*b;"
        " output a, b, c, d, e"
    )
    tape = cgprimer.tape(graph)
    assert "sincos" in {step.name for step in build_plan(tape, sums=False).varying}
    column = np.concatenate([np.linspace(-20, 20, 41), [0.0, -0.0, 1e3, -1e5]])
    check(tape, form_name, {"xa": column.astype(dtype)}, {"k": 0.75}, 45, dtype=dtype)
    special = np.array([np.inf, -np.inf, np.nan, 1.0])
    check(tape, form_name, {"xa": special.astype(dtype)}, {"k": 0.75}, 4, dtype=dtype)
    large = (
        np.array([1e10, 1e22, 1.7e308, -1e300]) if dtype == "float64" else np.array([1e10, 1e38])
    )
    found = compiled(tape, form_name, "none", dtype)({"xa": large}, {"k": 1.0}, len(large))
    with np.errstate(all="ignore"):
        exact = large.astype(dtype).astype(float)
    assert_alike({"a": found["a"]}, {"a": np.sin(exact)}, close=1e-6)


# --- outputs -------------------------------------------------------------------------------------


def leaves_as_outputs() -> Tape:
    builder = Builder()
    xa, k, three = builder.column("xa"), builder.scalar("k"), builder.constant(3.0)
    total = builder.emit("add", xa, k)
    twice = builder.emit("mul", k, three)
    return builder.finish(
        {
            "input": xa, "parameter": k, "number": three, "sum": total, "again": total,
            "twice": twice, "twice more": twice, "input again": xa,
        }
    )  # fmt: skip


@pytest.mark.parametrize("samples", [0, 1, 5, 64, 301])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form_name", FORMS)
def test_outputs_that_are_leaves_or_each_other(form_name: str, dtype: str, samples: int) -> None:
    tape = leaves_as_outputs()
    columns, scalars = random_point(tape, samples, dtype=dtype)
    check(tape, form_name, columns, scalars, samples, dtype=dtype)


@pytest.mark.parametrize("form_name", FORMS)
def test_what_is_returned_belongs_to_the_caller(form_name: str) -> None:
    """Writing to one result changes no other, and no column."""
    tape = leaves_as_outputs()
    column = np.linspace(0.0, 1.0, 37)
    run = compiled(tape, form_name)
    found, wanted = (run({"xa": column}, {"k": 2.0}, 37) for _ in range(2))
    for name in found:
        found[name][...] = -7.0
        for other in list(found)[list(found).index(name) + 1 :]:
            np.testing.assert_array_equal(found[other], wanted[other], err_msg=f"{name} {other}")
    np.testing.assert_array_equal(column, np.linspace(0.0, 1.0, 37))


@pytest.mark.parametrize("samples", [0, 1, 7, 100])
@pytest.mark.parametrize("form_name", FORMS)
def test_nothing_varies_with_the_sample(form_name: str, samples: int) -> None:
    builder = Builder()
    k = builder.scalar("k")
    outputs = {"w": builder.emit("sin", k), "k": k, "c": builder.constant(0.25)}
    tape = builder.finish(outputs)
    check(tape, form_name, {}, {"k": 1.25}, samples)
    sums = compiled(tape, form_name, "sum")({}, {"k": np.inf}, samples)
    wanted = by_numpy(tape, "sum")({}, {"k": np.inf}, samples)
    assert_alike(sums, wanted)
    assert float(sums["c"]) == 0.25 * samples


@pytest.mark.parametrize("form_name", FORMS)
@pytest.mark.parametrize("reduction", ["none", "sum"])
def test_tapes_with_next_to_nothing(form_name: str, reduction: Any) -> None:
    column, number = Leaf("column", "xa"), Leaf("constant", "0x1p+0", 1.0)
    for leaves, outputs in (
        ((), {}), ((column,), {}), ((column,), {"w": 0}), ((number,), {"w": 0, "v": 0}),
        ((column, number), {"v": 1, "w": 0}),
    ):  # fmt: skip
        tape = Tape(leaves, (), outputs)
        for samples in (0, 1, 41):
            columns = {"xa": np.full(samples, 2.0)}
            found = compiled(tape, form_name, reduction)(columns, {}, samples)
            assert_alike(found, by_numpy(tape, reduction)(columns, {}, samples))


@pytest.mark.parametrize("form_name", FORMS)
def test_the_sign_of_zero_is_kept(form_name: str) -> None:
    graph = cgprimer.parse(
        "a = -xa; b = xa*k; c = sqrt(xa); d = xa/3; e = xa + 0*k; output a, b, c, d, e"
    )
    tape = cgprimer.tape(graph)
    columns, scalars = {"xa": np.array([0.0, -0.0] * 20)}, {"k": -1.0}
    found = compiled(tape, form_name)(columns, scalars, 40)
    for name, value in directly(tape, columns, scalars, 40).items():
        np.testing.assert_array_equal(np.signbit(found[name]), np.signbit(value), err_msg=name)


# --- rows in the place of others -----------------------------------------------------------------


def test_a_row_in_the_place_of_a_built_in_one_shifts_no_handler() -> None:
    """The handlers are compiled once; the numbers by which they are called stay theirs."""
    tape = cgprimer.tape(cgprimer.parse("xw = tanh(xa) + sqrt(xa); xv = exp(xa); output xw, xv"))
    columns = {"xa": np.linspace(0.1, 2.0, 19)}
    known = number_opcodes()
    mine = replace(find_primitive("cos"), function=lambda a: a * 0 + 7.0)
    with replaced(mine):
        assert number_opcodes().items() < known.items()
        check(tape, "interpreted", columns, {}, 19)
        other = cgprimer.tape(cgprimer.parse("xw = cos(xa) + cos(k)"))
        found = compiled(other, "interpreted")(columns, {"k": 1.0}, 19)
        np.testing.assert_array_equal(found["xw"], np.full(19, 14.0))
        interpreter.LoadedInterpreter("float64")  # compiled anew in the meantime
    check(tape, "interpreted", columns, {}, 19)
