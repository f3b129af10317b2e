"""Primitives on the engine cpu: numpy's values at special points, and few ulp of error anywhere."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest

pytest.importorskip("llvmlite")

import cgprimer
from cgprimer.backends.cpu import interpreter, llvm_library
from cgprimer.backends.cpu.interpreter_handlers import number_opcodes
from cgprimer.backends.plans.planning import build_plan
from cgprimer.core.operations import Primitive, numpy_arithmetic, primitives
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape
from tests.native.conftest import TABLES
from tests.native.engine_agreement import (
    DTYPES,
    FORMS,
    assert_close,
    check,
    classify,
    compiled,
    run_instructions,
)

BUILT_IN = {row.name: row for row in primitives() if row.built_in}
# Bits of a vector: on generic processors, no fused operations; on scalar ones, no vectors.
PROCESSORS = {"host": "", "generic": "128", "scalar": "64"}
# Zeros, ends of domains, ties, subnormals, the largest numbers, overflow in one dtype or the other,
# points where the code changes its formula, operands too large for their reduction.
_POSITIVE = [float(number) for (row,) in TABLES["special points"] for number in row.split()]
SPECIAL = np.array([*_POSITIVE, *(-p for p in _POSITIVE), np.nan])


@pytest.fixture(
    params=["host", *(pytest.param(n, marks=pytest.mark.slow) for n in ("generic", "scalar"))]
)
def processor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Generate code for this machine, or for a plainer one of its family."""
    bits = PROCESSORS[request.param]
    monkeypatch.setenv("CGPRIMER_VECTORS", bits)
    caches = (llvm_library.get_target_processor, interpreter.load_interpreter)
    for function in caches:
        function.cache_clear()
    yield
    for function in caches:
        function.cache_clear()


@cache
def points(arity: int) -> tuple[np.ndarray, ...]:
    random = np.random.default_rng(7)
    if arity == 1:
        spread = (
            random.normal(size=300) * 3,
            random.uniform(-1, 1, 200),
            random.uniform(-750, 750, 200),
            np.exp(random.uniform(-700, 700, 200)) * random.choice([-1, 1], 200),
            np.arange(-60, 60) * np.pi / 4,
            *(1 + sign * np.geomspace(1e-15, 1, 60) for sign in (1, -1)),
        )
        return (np.concatenate([SPECIAL, *spread]),)
    first, second = (grid.ravel() for grid in np.meshgrid(SPECIAL[::3], SPECIAL[::3]))
    first = np.append(first, np.exp(random.normal(size=1000) * 3) * random.choice([1, 1, -1], 1000))
    second = np.append(second, random.normal(size=1000) * random.choice([1, 10, 100], 1000))
    second[-300:] = np.round(second[-300:])
    third = random.choice(SPECIAL, len(first))
    return (first, second, third)[:arity]


@cache
def all_primitives(arity: int, kind: str = "column") -> tuple[Tape, list[Primitive]]:
    """Return one tape with an output for each primitive of an arity."""
    builder = Builder()
    leaves = [getattr(builder, kind)(f"x{number}") for number in range(arity)]
    rows = [row for row in BUILT_IN.values() if row.arity == arity]
    outputs = {row.name: builder.emit(row.name, *leaves, pinned=True) for row in rows}
    return builder.finish(outputs), rows


def assert_all_as_numpy(rows: list[Primitive], result: Any, *operands: np.ndarray) -> None:
    for row in rows:
        with np.errstate(all="ignore"):
            want = np.asarray(numpy_arithmetic.numpy_function(row.name)(*operands))
        assert_as_numpy(row.name, result[row.name], want.astype(operands[0].dtype), *operands)


def assert_as_numpy(name: str, got: np.ndarray, want: np.ndarray, *operands: np.ndarray) -> None:
    """Compare a primitive's values with numpy's: class, relative error, and sign of zero."""
    wrong = np.flatnonzero(classify(got) != classify(want))
    assert [(name, *(o[i] for o in operands), got[i], want[i]) for i in wrong[:5]] == []
    finite = np.isfinite(want)
    got, want = got[finite], want[finite]
    double = want.dtype == np.float64
    # scipy's erfc gives up its last digits, and is 0 where subnormal numbers would be left.
    relative = 1e-12 if name in ("erfc", "gelu") else 1.2e-15 if double else 7e-7
    smallest = 2.0 * np.finfo(want.dtype).smallest_subnormal
    absolute: Any = 1e-300 if double and name in ("erfc", "gelu") else smallest
    if name == "logaddexp":  # numpy's formula loses digits where both terms are large
        absolute = np.max(np.abs(operands), axis=0)[finite] * relative
    error = np.abs(got.astype(np.float64) - want)
    wrong = np.flatnonzero(error > relative * np.abs(want).astype(np.float64) + absolute)
    assert [(name, *(o[finite][i] for o in operands), got[i], want[i]) for i in wrong[:5]] == []
    if name not in ("max", "min", "clamp"):  # of two zeros numpy returns either
        wrong = np.flatnonzero((np.signbit(got) != np.signbit(want)) & ((got != 0) | (want == 0)))
        assert [(name, *(o[finite][i] for o in operands)) for i in wrong[:5]] == []


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("arity", sorted({row.arity for row in BUILT_IN.values()}))
@pytest.mark.parametrize("form_name", FORMS)
def test_every_primitive_has_numpys_values(
    form_name: str, arity: int, dtype: str, processor: None
) -> None:
    tape, rows = all_primitives(arity)
    with np.errstate(all="ignore"):
        operands = [column.astype(dtype) for column in points(arity)]
    columns = {f"x{number}": column for number, column in enumerate(operands)}
    result = compiled(tape, form_name, "none", dtype)(columns, {}, len(operands[0]))
    assert_all_as_numpy(rows, result, *operands)


@pytest.mark.parametrize("form_name", FORMS)
def test_primitives_of_scalars_have_the_values_of_columns(form_name: str) -> None:
    """Values that are equal for all samples are computed by other code."""
    usual = SPECIAL[np.abs(SPECIAL) != 1.7e308]
    for arity in (1, 2, 3):
        tape, rows = all_primitives(arity, "scalar")
        run = compiled(tape, form_name)
        for seed in range(8):
            operands = np.random.default_rng(seed).choice(usual, arity)
            result = run({}, {f"x{k}": float(value) for k, value in enumerate(operands)}, 3)
            assert_all_as_numpy(rows, result, *(np.full(3, value) for value in operands))


# Small integers: products and sums are exact, whether they are rounded once or twice.
INTEGERS = np.array([0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 5.0, np.inf, -np.inf, np.nan])
BINARY = ("add", "sub", "mul", "div", "max", "min", "less", "equal", "pow", "logaddexp", "log_base")
TERNARY = ("where", "clamp")


def emit_operand(builder: Builder, letter: str, position: int) -> int:
    """Emit an operand: r a column, s a scalar, c a constant, u and v computed from s and r."""
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


CASES = [("interpreted", "float64"), ("interpreted", "float32"), ("straight", "float64")]


@pytest.mark.parametrize(("form_name", "dtype"), CASES)
def test_operands_may_be_columns_scalars_and_constants(form_name: str, dtype: str) -> None:
    builder = Builder()
    outputs = {}
    for names, arity in ((BINARY, 2), (TERNARY, 3)):
        for name, kinds in itertools.product(names, itertools.product("rsuvc", repeat=arity)):
            if arity == 2 or len(set(kinds)) <= 2:
                operands = [emit_operand(builder, kind, i) for i, kind in enumerate(kinds)]
                outputs[f"{name} {''.join(kinds)}"] = builder.emit(name, *operands)
    for a, b, c in itertools.product("rs", "rsuv", "rsuv"):
        for name, first in (("add", True), ("sub", True), ("sub", False)):
            x = emit_operand(builder, a, 3 + len(outputs))  # every product is used once
            product = builder.emit("mul", x, emit_operand(builder, b, 1))
            other = emit_operand(builder, c, 2)
            pair = (product, other) if first else (other, product)
            outputs[f"{name} {a}{b}{c} {first}"] = builder.emit(name, *pair)
    tape = builder.finish(outputs)
    steps = {step.name for step in build_plan(tape, sums=False).varying}
    assert {"fma", "fms", "fnma"} <= steps
    mixed = {name for name, pattern in number_opcodes() if "s" in pattern}
    assert mixed <= steps  # every handler with a scalar operand is reached
    run = compiled(tape, form_name, "none", dtype)
    for seed in range(6):
        random = np.random.default_rng(seed)
        columns = {name: random.choice(INTEGERS, 83) for name in tape.of_kind("column")}
        scalars = {name: float(random.choice(INTEGERS)) for name in tape.of_kind("scalar")}
        expected = run_instructions(tape, columns, scalars, 83)
        tolerance = 1e-14 if dtype == "float64" else 1e-6
        assert_close(run(columns, scalars, 83), expected, scale=0.0, tolerance=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers_with_constant_exponents(dtype: str, processor: None) -> None:
    exponents = (-3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0)
    builder = Builder(simplify=False)
    x = builder.column("x")
    outputs = {str(e): builder.emit("pow", x, builder.constant(e)) for e in exponents}
    (column,) = points(1)
    limit = 1e60 if dtype == "float64" else 1e7
    size = np.abs(column)
    column = column[((size < limit) & (size > 1 / limit)) | (size == 0) | ~np.isfinite(size)]
    column = column.astype(dtype)
    result = compiled(builder.finish(outputs), "straight", "none", dtype)(
        {"x": column}, {}, len(column)
    )
    for exponent in exponents:
        with np.errstate(all="ignore"):  # an array: at a single 1/2 numpy takes the root
            want = np.power(column, np.full_like(column, exponent))
        assert_as_numpy(f"pow {exponent}", result[str(exponent)], want, column)


@pytest.mark.parametrize(("form_name", "dtype"), CASES)
def test_sine_and_cosine_of_one_value_share_a_step(form_name: str, dtype: str) -> None:
    text = "a = sin(xa); b = cos(xa); c = sin(k)*cos(k)*xa; d = cos(k*xa)^2; e = sin(k*xa)*b"
    tape = cgprimer.tape(cgprimer.parse(f"{text}; output a, b, c, d, e"))
    assert "sincos" in {step.name for step in build_plan(tape, sums=False).varying}
    special = [0.0, -0.0, 1e3, -1e5, np.inf, -np.inf, np.nan]
    column = np.concatenate([np.linspace(-20, 20, 41), special]).astype(dtype)
    check(tape, form_name, {"xa": column}, {"k": 0.75}, len(column), dtype=dtype)
    large = np.array([1e10, 1e22, 1e38]).astype(dtype)
    result = compiled(tape, form_name, "none", dtype)({"xa": large}, {"k": 1.0}, 3)
    exact = [float(mpmath.sin(mpmath.mpf(float(x)))) for x in large]
    np.testing.assert_allclose(result["a"], exact, rtol=1e-6)


# The largest error in ulp that was measured on some thousand points, rounded up.
BOUNDS = {name: float(bound) for name, bound in TABLES["ulp"]}
EXACT: dict[str, Callable[..., Any]] = {
    "log2": lambda x: mpmath.log(x, 2),
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
}


def count_ulps(got: np.ndarray, exact: list[Any]) -> np.ndarray:
    """Return distances in units in the last place of the exact values."""
    unit = np.spacing(np.abs(np.array([float(e) for e in exact])))
    return np.array(
        [
            float(abs(mpmath.mpf(float(g)) - e) / mpmath.mpf(float(u)))
            for g, e, u in zip(got, exact, unit, strict=True)
        ]
    )


@cache
def exact_values(name: str) -> tuple[np.ndarray, list[Any]]:
    function = EXACT.get(name) or getattr(mpmath, name)
    x = points(1)[0]
    x = x[np.abs(x) <= 26.5] if name == "erfc" else x  # beyond, its values are subnormal
    with np.errstate(all="ignore"):
        x = x[np.isfinite(x) & np.isfinite(numpy_arithmetic.numpy_function(name)(x))]
    with mpmath.workprec(1200 if name in ("sin", "cos", "tan") else 300):
        return x, [function(mpmath.mpf(float(v))) for v in x]


@pytest.mark.slow
def test_errors_are_a_few_units_in_the_last_place(processor: None) -> None:
    run = compiled(all_primitives(1)[0], "interpreted")
    for name, bound in BOUNDS.items():
        x, exact = exact_values(name)
        with mpmath.workprec(300):
            error = count_ulps(run({"x0": x}, {}, len(x))[name], exact)
        assert error.max() <= bound, (name, x[np.argmax(error)], error.max())


def test_powers_have_few_ulp_of_error_over_the_whole_range(processor: None) -> None:
    random = np.random.default_rng(11)
    a = np.concatenate([np.exp(random.uniform(-5, 5, 300)), 1 + random.normal(size=200) * 1e-3])
    b = np.concatenate([random.uniform(-140, 140, 300), random.uniform(-1e5, 1e5, 200)])
    tape, _ = all_primitives(2)
    result = compiled(tape, "interpreted")({"x0": a, "x1": b}, {}, 500)["pow"]
    with mpmath.workprec(300):
        exact = [mpmath.power(mpmath.mpf(float(p)), float(q)) for p, q in zip(a, b, strict=True)]
        assert count_ulps(result, exact).max() <= 1.5
