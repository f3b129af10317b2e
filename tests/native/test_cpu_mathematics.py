"""The CPU engine's operations: numpy's values at ordinary and awkward points, few ulp anywhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest

pytest.importorskip("llvmlite")

from llvmlite import ir

from cgprimer.backends.cpu.primitive_ir import FUSED, INLINE_EXPONENTS, SUPPORTED, PrimitiveEmitter
from cgprimer.core.operations import Primitive, find_primitive, numpy_arithmetic, primitives
from tests.native.kernel_running import Kernels, Write, applied, sine_and_cosine, with_exponent

BUILT_IN = [row for row in primitives() if row.built_in]
KINDS = [(dtype, width) for dtype in ("float64", "float32") for width in (1, 4, 8)]

# Zeros, ends of domains, ties, subnormals, the largest numbers, what overflows in one format or
# the other, places where kernels change their formula, operands too large for their reduction.
_POSITIVE = (
    0.0, 0.5, 1.0, 2.0, 3.0, 20.0, 37.0, 100.0, 1e-8, 1e-17, 5e-324, 1e-310, 2.3e-308, 1e-300,
    1e-160, 1e160, 1e300, 1.7e308, np.inf, 1e-45, 1e-40, 1.2e-38, 3e38, 0.3466, 0.7071067811865476,
    1.4142135623730951, 0.9999999999999999, 1.0000000000000002, 0.41421356, 2.4142135, 0.75,
    1.5707963267948966, 3.141592653589793, 26.5, 27.3, 87.4, 88.7, 88.8, 89.4, 89.5, 103.9, 104.0,
    708.3, 709.78, 709.79, 710.475, 710.48, 745.1, 745.2, 800.0, 4095.0, 4097.0, 1e5, 1048575.0,
    1048577.0, 1e10, 1e22, 4503599627370497.0, 9007199254740991.0, 1e17,
)  # fmt: skip
AWKWARD = np.array([*_POSITIVE, *(-p for p in _POSITIVE), np.nan])


def _operations() -> list[tuple[str, int, int, Write]]:
    made: list[tuple[str, int, int, Write]] = [
        (row.name, row.arity, 1, applied(row.name)) for row in BUILT_IN
    ]
    made += [(name, 3, 1, applied(name)) for name in FUSED]
    made += [
        (f"pow_{number}", 1, 1, with_exponent(p))
        for number, p in enumerate(sorted(INLINE_EXPONENTS))
    ]
    return [*made, ("sincos", 1, 2, sine_and_cosine)]


@cache
def kernels(dtype: str, width: int, **how: Any) -> Kernels:
    return Kernels(_operations(), dtype, width, **how)


@cache
def points(arity: int) -> tuple[np.ndarray, ...]:
    random = np.random.default_rng(7)
    if arity == 1:
        drawn = (
            random.normal(size=300) * 3,
            random.uniform(-1, 1, 200),
            random.uniform(-750, 750, 200),
            np.exp(random.uniform(-700, 700, 200)) * random.choice([-1, 1], 200),
        )
        return (np.concatenate([AWKWARD, *drawn]),)
    first, second = (a.ravel() for a in np.meshgrid(AWKWARD, AWKWARD))
    first = np.append(first, np.exp(random.normal(size=1000) * 3) * random.choice([1, 1, -1], 1000))
    second = np.append(second, random.normal(size=1000) * random.choice([1, 10, 100], 1000))
    second[-300:] = np.round(second[-300:])
    third = random.choice(AWKWARD, len(first))
    return (first, second, third)[:arity]


def expected(row: Primitive, dtype: str) -> tuple[list[np.ndarray], np.ndarray]:
    with np.errstate(all="ignore"):
        operands = [p.astype(dtype) for p in points(row.arity)]
        return operands, np.asarray(numpy_arithmetic.numpy_function(row.name)(*operands))


def kind_of(values: np.ndarray) -> np.ndarray:
    """0 for finite numbers, 1 and -1 for infinities, 2 for nan."""
    return np.where(np.isnan(values), 2, np.where(np.isinf(values), np.sign(values), 0))


def assert_as_numpy(name: str, got: np.ndarray, want: np.ndarray, *operands: np.ndarray) -> None:
    assert got.dtype == want.dtype
    wrong = np.flatnonzero(kind_of(got) != kind_of(want))
    assert [(*(o[i] for o in operands), got[i], want[i]) for i in wrong[:5]] == []
    fine = np.isfinite(want)
    got, want = got[fine], want[fine]
    double = want.dtype == np.float64
    # scipy's erfc gives up its last digits, and is 0 where subnormal numbers would be left.
    relative = 1e-12 if name in ("erfc", "gelu") else 1.2e-15 if double else 7e-7
    least = np.finfo(want.dtype).smallest_subnormal
    absolute = np.full(len(want), 1e-300 if double and name in ("erfc", "gelu") else 2.0 * least)
    if name == "logaddexp":  # its own formula loses digits where the greater meets the correction
        absolute = np.max(np.abs(operands), axis=0)[fine] * relative
    error = np.abs(got.astype(np.float64) - want)
    wrong = np.flatnonzero(error > relative * np.abs(want).astype(np.float64) + absolute)
    assert [(*(o[fine][i] for o in operands), got[i], want[i]) for i in wrong[:5]] == []
    if name not in ("max", "min", "clamp"):  # numpy itself takes now 0, now -0
        wrong = np.flatnonzero((np.signbit(got) != np.signbit(want)) & ((got != 0) | (want == 0)))
        assert [(*(o[fine][i] for o in operands), got[i], want[i]) for i in wrong[:5]] == []


def test_every_primitive_is_written() -> None:
    assert {row.name for row in BUILT_IN} == SUPPORTED


@pytest.mark.parametrize(("dtype", "width"), KINDS)
@pytest.mark.parametrize("row", BUILT_IN, ids=lambda row: row.name)
def test_a_primitive_has_numpys_values(row: Primitive, dtype: str, width: int) -> None:
    operands, want = expected(row, dtype)
    assert_as_numpy(row.name, kernels(dtype, width)(row.name, *operands), want, *operands)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("row", BUILT_IN, ids=lambda row: row.name)
def test_a_processor_without_fused_operations_does_as_well(row: Primitive, dtype: str) -> None:
    operands, want = expected(row, dtype)
    plain = kernels(dtype, 2, cpu="")
    assert_as_numpy(row.name, plain(row.name, *operands), want, *operands)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_functions_written_inline_and_optimised_keep_every_bit(dtype: str) -> None:
    inline, called = kernels(dtype, 8, inline=True, passes=2), kernels(dtype, 8)
    for row in BUILT_IN:
        operands, _ = expected(row, dtype)
        np.testing.assert_array_equal(
            inline(row.name, *operands), called(row.name, *operands), err_msg=row.name
        )


@pytest.mark.parametrize(("dtype", "width"), KINDS)
def test_sine_and_cosine_together_are_sine_and_cosine(dtype: str, width: int) -> None:
    run = kernels(dtype, width)
    (x,) = (p.astype(dtype) for p in points(1)) if dtype == "float64" else (
        points(1)[0][np.abs(points(1)[0]) < 1e38].astype(dtype),
    )  # fmt: skip
    sine, cosine = run("sincos", x)
    np.testing.assert_array_equal(sine, run("sin", x))
    np.testing.assert_array_equal(cosine, run("cos", x))


@pytest.mark.parametrize(("dtype", "width"), KINDS)
def test_fused_operations_add_to_a_product(dtype: str, width: int) -> None:
    run = kernels(dtype, width)
    a, b, c = np.random.default_rng(3).normal(size=(3, 100)).astype(dtype)
    near = 4 * np.finfo(dtype).eps
    np.testing.assert_allclose(run("fma", a, b, c), a * b + c, atol=near)
    np.testing.assert_allclose(run("fms", a, b, c), a * b - c, atol=near)
    np.testing.assert_allclose(run("fnma", a, b, c), c - a * b, atol=near)


@pytest.mark.parametrize(("dtype", "width"), KINDS)
@pytest.mark.parametrize("exponent", sorted(INLINE_EXPONENTS))
def test_known_exponents_need_no_logarithm(exponent: float, dtype: str, width: int) -> None:
    (x,) = points(1)
    x = x[(np.abs(x) < 1e70) & (np.abs(x) > 1e-70) | (x == 0) | ~np.isfinite(x)]
    if dtype == "float32":
        x = x[(np.abs(x) < 1e9) & (np.abs(x) > 1e-9) | (x == 0) | ~np.isfinite(x)].astype(dtype)
    with np.errstate(all="ignore"):
        # An array of exponents: at a single 1/2 numpy takes the root, which is nan at -inf.
        want = np.power(x, np.full_like(x, exponent))
    run = kernels(dtype, width)
    got = run(f"pow_{sorted(INLINE_EXPONENTS).index(exponent)}", x)
    assert_as_numpy("pow", got, want, x)


# --- errors in units in the last place ---------------------------------------------------------

_LARGE = np.geomspace(1e-300, 1e300, 90)
_SIGNED = np.concatenate([_LARGE, -_LARGE])
_NEAR = np.linspace(-3, 3, 301)
_UNIT = np.concatenate([np.linspace(-1, 1, 301), _SIGNED[np.abs(_SIGNED) < 1]])
_AROUND_1 = np.concatenate([1 + np.geomspace(1e-15, 1, 60), 1 - np.geomspace(1e-15, 0.9, 60)])
_LOGS = np.concatenate([np.geomspace(5e-324, 1.7e308, 150), _AROUND_1])
_EXPONENTS = np.linspace(-744.3, 709.7, 200)
_ANGLES = np.concatenate(
    [np.linspace(-1e6, 1e6, 150), np.arange(-60, 60) * np.pi / 4, _SIGNED, _NEAR]
)
_HYPERBOLIC = np.concatenate([np.linspace(-710.4, 710.4, 150), _NEAR, _SIGNED[np.abs(_SIGNED) < 1]])

# The bound in ulp is what was measured on some thousand points more, rounded up.
ACCURACY: dict[str, tuple[Callable[..., Any], float, np.ndarray]] = {
    "exp": (mpmath.exp, 1.5, np.concatenate([_EXPONENTS, _NEAR])),
    "expm1": (mpmath.expm1, 2.5, np.concatenate([_HYPERBOLIC[_HYPERBOLIC < 709], _EXPONENTS])),
    "log": (mpmath.log, 1.5, _LOGS),
    "log2": (lambda x: mpmath.log(x, 2), 2.0, _LOGS),
    "log10": (mpmath.log10, 2.0, _LOGS),
    "log1p": (mpmath.log1p, 1.5, np.concatenate([_LOGS, _LOGS[_LOGS > 1] - 2, _UNIT[1:]])),
    "sin": (mpmath.sin, 2.5, _ANGLES),
    "cos": (mpmath.cos, 2.5, _ANGLES),
    "tan": (mpmath.tan, 4.0, _ANGLES),
    "sinh": (mpmath.sinh, 2.5, _HYPERBOLIC),
    "cosh": (mpmath.cosh, 2.0, _HYPERBOLIC),
    "tanh": (mpmath.tanh, 3.0, np.concatenate([_HYPERBOLIC, np.linspace(-25, 25, 200)])),
    "asinh": (mpmath.asinh, 2.0, np.concatenate([_SIGNED, _NEAR])),
    "acosh": (mpmath.acosh, 2.0, np.concatenate([_LARGE, _AROUND_1])),
    "atanh": (mpmath.atanh, 2.0, _UNIT[1:300]),
    "asin": (mpmath.asin, 2.5, _UNIT),
    "acos": (mpmath.acos, 1.5, _UNIT),
    "atan": (mpmath.atan, 2.0, np.concatenate([_SIGNED, _NEAR])),
    "sigmoid": (lambda x: 1 / (1 + mpmath.exp(-x)), 2.5, np.concatenate([_EXPONENTS, _NEAR])),
    "softplus": (lambda x: mpmath.log1p(mpmath.exp(x)), 2.5, np.concatenate([_EXPONENTS, _NEAR])),
    "erf": (mpmath.erf, 2.5, np.concatenate([_NEAR, _UNIT])),
    "erfc": (mpmath.erfc, 5.0, np.concatenate([_NEAR, np.linspace(-6, 26.5, 200)])),
}


def ulps(got: np.ndarray, exact: list[Any]) -> np.ndarray:
    """Distances in units in the last place of the exact values."""
    unit = np.spacing(np.abs(np.array([float(e) for e in exact])))
    return np.array(
        [
            float(abs(mpmath.mpf(float(g)) - e) / mpmath.mpf(float(u)))
            for g, e, u in zip(got, exact, unit, strict=True)
        ]
    )


@cache
def exact_values(name: str) -> tuple[np.ndarray, list[Any]]:
    function, _, x = ACCURACY[name]
    if name in ("log", "log2", "log10", "acosh", "log1p"):
        x = x[x > (1 if name == "acosh" else -1 if name == "log1p" else 0)]
    with mpmath.workprec(1200 if name in ("sin", "cos", "tan") else 300):
        return x, [function(mpmath.mpf(float(v))) for v in x]


@pytest.mark.parametrize("plain", [False, True], ids=["this processor", "plain processor"])
@pytest.mark.parametrize("name", ACCURACY)
def test_the_error_is_a_few_units_in_the_last_place(name: str, plain: bool) -> None:
    x, exact = exact_values(name)
    run = kernels("float64", 2, cpu="") if plain else kernels("float64", 8)
    with mpmath.workprec(300):
        error = ulps(run(name, x), exact)
    worst = int(np.argmax(error))
    assert error[worst] <= ACCURACY[name][1], x[worst]


@pytest.mark.parametrize("plain", [False, True], ids=["this processor", "plain processor"])
def test_powers_keep_their_digits_over_the_whole_range(plain: bool) -> None:
    random = np.random.default_rng(11)
    a = np.concatenate([np.exp(random.uniform(-5, 5, 600)), 1 + random.normal(size=400) * 1e-3])
    b = np.concatenate([random.uniform(-140, 140, 600), random.uniform(-1e5, 1e5, 400)])
    run = kernels("float64", 2, cpu="") if plain else kernels("float64", 8)
    with mpmath.workprec(300):
        exact = [mpmath.power(mpmath.mpf(float(p)), float(q)) for p, q in zip(a, b, strict=True)]
        assert ulps(run("pow", a, b), exact).max() <= 1.5


# --- what is written ---------------------------------------------------------------------------


def _written(width: int = 4, **how: Any) -> tuple[ir.Module, PrimitiveEmitter, Any, Any]:
    module = ir.Module("text")
    emitter = PrimitiveEmitter(module, "float64", width, **how)
    kind = ir.FunctionType(emitter.type, [emitter.type])
    function = ir.Function(module, kind, "outer")
    return module, emitter, ir.IRBuilder(function.append_basic_block()), function.args[0]


def test_a_function_is_made_once_in_a_module() -> None:
    module, emitter, builder, x = _written()
    emitter.emit(builder, "exp", x)
    emitter.emit(builder, "exp", x)
    PrimitiveEmitter(module, "float64", 4).emit(builder, "exp", x)
    assert str(module).count("define internal") == 1


def test_fast_arithmetic_stays_outside_of_mathematical_functions() -> None:
    module, emitter, builder, x = _written(flags=("reassoc", "nsz", "arcp", "contract"))
    for name in ("exp", "log", "pow", "sec", "gelu", "tanh", "sin"):
        emitter.emit(builder, name, *[x] * find_primitive(name).arity)
    assert "reassoc" not in str(module)
    builder.ret(emitter.emit(builder, "add", x, x))
    lines = [line for line in str(module).splitlines() if "reassoc" in line]
    assert len(lines) == 1
    assert "fadd" in lines[0]


def test_an_unknown_operation_is_a_key_error() -> None:
    _, emitter, builder, x = _written()
    with pytest.raises(KeyError, match="nothing_of_the_kind"):
        emitter.emit(builder, "nothing_of_the_kind", x)
