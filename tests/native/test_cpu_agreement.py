"""The CPU engine against numpy: random graphs, all methods, every primitive at awkward points."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.core.evaluation.runner import Runner
from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.methods import differentiate
from cgprimer.core.operations import Primitive, find_primitive, numpy_arithmetic, primitives
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape
from tests.native.engine_agreement import (
    DTYPES,
    FORMS,
    REDUCTIONS,
    assert_alike,
    by_numpy,
    check,
    compiled,
    directly,
    form,
)

METHODS = ("reverse", "forward", "symbolic", "path-sum", "finite-difference")
INPUTS = ("xa", "xb", "xc")
PARAMETERS = ("p", "q", "r", "s")
FUNCTIONS = (
    "sin({})", "cos({})", "tanh({})", "sigmoid({})", "atan({})", "exp(0.5*{})", "softplus({})",
    "log(1 + ({})^2)", "sqrt(1 + ({})^2)", "erf({})", "asinh({})", "abs({})", "relu({})",
    "max({}, 0.5)", "min(-1, {})", "leaky_relu({}, 0.1)", "clamp({}, -1, 1)", "gelu({})",
)  # fmt: skip
# Each of these gives exactly what numpy gives, so that no rounding decides about a class.
EXACT = (
    "abs({})", "sign({})", "relu({})", "max({}, 0.5)", "min({}, xa)", "clamp({}, -1, 1)",
    "heaviside({})", "sqrt(abs({}))", "leaky_relu({}, 0.5)", "stop_gradient({})",
)  # fmt: skip
SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, np.inf, -np.inf, np.nan)


@pytest.fixture(autouse=True)
def nothing_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGPRIMER_CACHE", "off")


@st.composite
def expressions(draw: st.DrawFn, names: tuple[str, ...], functions: tuple[str, ...], depth: int):
    kind = draw(st.integers(0, 8)) if depth else 0
    if kind <= 1:
        return draw(st.sampled_from((*names, *names, "2", "0.5", "1")))
    inner = draw(expressions(names, functions, depth - 1))
    if kind == 2:
        return f"({inner})^{draw(st.sampled_from(('2', '3', '-1')))}"
    if kind <= 4:
        return draw(st.sampled_from(functions)).format(inner)
    other = draw(expressions(names, functions, depth - 1))
    return f"({inner}){draw(st.sampled_from('+-**/'))}({other})"


@st.composite
def graphs(draw: st.DrawFn, functions: tuple[str, ...] = FUNCTIONS) -> ExpressionGraph:
    """1 to 3 inputs, 0 to 4 parameters, 1 to 6 expressions that take each other up."""
    names = [*INPUTS[: draw(st.integers(1, 3))], *PARAMETERS[: draw(st.integers(0, 4))]]
    lines = []
    count = draw(st.integers(1, 6))
    for number in range(1, count + 1):
        text = draw(expressions(tuple(names), functions, 2))
        earlier = f"v{draw(st.integers(1, number - 1))}" if number > 1 else names[0]
        lines.append(f"v{number} = ({text}) {draw(st.sampled_from('+-*'))} {earlier}")
        names.append(f"v{number}")
    return cgprimer.parse([*lines, f"output v{count}"])


def sizes(tape: Tape, columns: dict[str, Any], scalars: dict[str, float], samples: int) -> Any:
    """For each sample the largest number that a tape computes on its way."""
    values: list[Any] = []
    with np.errstate(all="ignore"):
        for leaf in tape.leaves:
            given_values = {**scalars, **columns}
            values.append(leaf.value if leaf.kind == "constant" else given_values[leaf.name])
        for name, operands in tape.instructions:
            values.append(numpy_arithmetic.numpy_function(name)(*[values[o] for o in operands]))
    return np.max([np.abs(np.broadcast_to(v, samples)) for v in [1.0, *values]], axis=0)


def point(
    graph: ExpressionGraph, seed: int, samples: int
) -> tuple[dict[str, Any], dict[str, float]]:
    random = np.random.default_rng(seed)
    columns = {name: random.uniform(-2, 2, samples) for name in graph.inputs}
    return columns, {name: float(random.uniform(-2, 2)) for name in graph.parameters}


def moderate(
    graph: ExpressionGraph, columns: dict[str, Any], scalars: dict[str, float]
) -> tuple[dict[str, Any], Any, int]:
    """The samples at which no number on the way through value and gradient is above 30."""
    names = (*graph.variables, *graph.parameters)
    program = differentiate(cgprimer.tape(graph), method="reverse", wrt=names)
    large = sizes(program.tape, columns, scalars, len(next(iter(columns.values()))))
    fine = large < 30
    return {n: c[fine] for n, c in columns.items()}, large[fine], int(fine.sum())


def agree(graph: ExpressionGraph, seed: int, form_name: str, methods: Any, dtype: str) -> None:
    columns, scalars = point(graph, seed, 41)
    columns, large, samples = moderate(graph, columns, scalars)
    assume(samples > 0)
    names = (*graph.variables, *graph.parameters)
    columns = {n: c.astype(dtype) for n, c in columns.items()}
    for method in methods:
        program = differentiate(cgprimer.tape(graph), method=method, wrt=names)
        close = 1e-12 if dtype == "float64" else 2e-5
        if method == "finite-difference":  # differences of rounded values, divided by the step
            close = 2.0**-29 if dtype == "float64" else 0.2
        for reduction in REDUCTIONS:
            runs = []
            for engine in ("cpu", "numpy"):
                with form(form_name):
                    run = Runner(program, engine=engine, reduction=reduction, dtype=dtype)
                derivatives = run(columns, scalars, samples)
                pairs = derivatives.derivatives.items()
                runs.append({**derivatives.values, **{f"d {a} {b}": v for (a, b), v in pairs}})
            scale = large if reduction == "none" else float(np.sum(large))
            assert_alike(runs[0], runs[1], scale=scale * np.max(large), close=close)


@given(graphs(), st.integers(0, 99), st.sampled_from(METHODS))
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
def test_straight_line_code_agrees_with_numpy(graph: Any, seed: int, method: str) -> None:
    agree(graph, seed, "straight", (method,), "float64")


@given(graphs(), st.integers(0, 99))
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
def test_the_interpreter_agrees_with_numpy(graph: Any, seed: int) -> None:
    agree(graph, seed, "interpreted", METHODS, "float64")


@pytest.mark.parametrize("form_name", FORMS)
@given(graph=graphs(), seed=st.integers(0, 99), method=st.sampled_from(METHODS))
@settings(max_examples=12, suppress_health_check=list(HealthCheck))
def test_float32_agrees_with_numpy(form_name: str, graph: Any, seed: int, method: str) -> None:
    agree(graph, seed, form_name, (method,), "float32")


@pytest.mark.parametrize(("form_name", "examples"), [("straight", 12), ("interpreted", 80)])
def test_infinities_and_nans_come_out_where_numpy_has_them(form_name: str, examples: int) -> None:
    @given(graphs(EXACT), st.integers(0, 10_000))
    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    def agree_in_class(graph: ExpressionGraph, seed: int) -> None:
        names = (*graph.inputs, *graph.parameters)
        tape = differentiate(cgprimer.tape(graph), method="reverse", wrt=names).tape
        random = np.random.default_rng(seed)
        columns = {n: random.choice(SPECIAL, 37) for n in tape.of_kind("column")}
        scalars = {n: float(random.choice(SPECIAL)) for n in tape.of_kind("scalar")}
        wanted = by_numpy(tape)(columns, scalars, 37)
        assert_alike(compiled(tape, form_name)(columns, scalars, 37), wanted)

    agree_in_class()


@pytest.mark.parametrize("form_name", FORMS)
@pytest.mark.parametrize(
    ("text", "xa", "xb"),
    [
        ("(1e-200*xa)*xb", 1e200, 1e200),
        ("1e-200*(1e-200*xa) + 0*xb", 1e300, 1.0),
        ("1e-200*(1e-200*xa)", 1e300, 1.0),
        ("1e-200*(1e-200*xa)*xb", np.inf, 1.0),
        ("1e200*(1e200*xa)*xb", 1e-300, 1e-50),
        ("(-1e300)*(xa*1e-300)/xb", 1e100, -1e-100),
        ("-(0*xa)*3", np.inf, 1.0),
        ("2*(3*xa)*sin(xb)", np.nan, 1.0),
    ],
)
def test_constants_at_the_ends_of_the_range(
    text: str, xa: float, xb: float, form_name: str
) -> None:
    """A factor that is taken out of a sum may neither overflow nor vanish on the way."""
    tape = cgprimer.tape(cgprimer.parse(f"xw = {text}"))
    columns = {"xa": np.full(3, xa), "xb": np.full(3, xb)}
    with np.errstate(all="ignore"):
        wanted = {n: np.sum(v) for n, v in directly(tape, columns, {}, 3).items()}
    assert_alike(compiled(tape, form_name, "sum")(columns, {}, 3), wanted, scale=0.0)


# --- every primitive -----------------------------------------------------------------------------

_NUMBERS = (
    0.0, 0.5, 1.0, 2.0, 3.0, 0.75, 37.0, 1e-8, 5e-324, 1e-310, 1e-160, 1e160, 1.7e308, np.inf,
    1e-45, 3e38, 1.5707963267948966, 709.7, 745.2, 88.7, 1e22,
)  # fmt: skip
AWKWARD = np.array([*_NUMBERS, *(-n for n in _NUMBERS), np.nan])


@cache
def operands(arity: int) -> list[Any]:
    """Every pair of awkward numbers, with a third that is drawn; columns of an odd length."""
    if arity == 1:
        return [AWKWARD]
    first, second = (grid.ravel() for grid in np.meshgrid(AWKWARD, AWKWARD))
    third = np.random.default_rng(5).choice(AWKWARD, len(first))
    return [first, second, third][:arity]


@cache
def all_of(arity: int, part: int, parts: int) -> tuple[Tape, dict[str, Primitive]]:
    """One tape with an output for each primitive of an arity."""
    builder = Builder()
    columns = [builder.column(f"x{number}") for number in range(arity)]
    rows = [row for row in primitives() if row.built_in and row.arity == arity][part::parts]
    outputs = {row.name: builder.emit(row.name, *columns, pinned=True) for row in rows}
    return builder.finish(outputs), {row.name: row for row in rows}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("arity", [1, 2, 3])
@pytest.mark.parametrize("form_name", FORMS)
def test_every_primitive_at_awkward_points(form_name: str, arity: int, dtype: str) -> None:
    tape, rows = all_of(arity, 0, 1)
    with np.errstate(all="ignore"):
        points = [column.astype(dtype) for column in operands(arity)]
    columns = {f"x{number}": column for number, column in enumerate(points)}
    found = compiled(tape, form_name, "none", dtype)(columns, {}, len(points[0]))
    for name, row in rows.items():
        with np.errstate(all="ignore"):
            wanted = np.asarray(numpy_arithmetic.numpy_function(row.name)(*points)).astype(dtype)
        tiny = np.finfo(dtype).tiny  # subnormal results have fewer digits
        size = np.where(np.isfinite(wanted), np.maximum(np.abs(wanted), tiny), 1.0)
        if name == "logaddexp":
            finite = np.where(np.isfinite(points), points, 0)
            size = np.maximum(size, np.max(np.abs(finite), axis=0))
        close = 1e-12 if dtype == "float64" else 1e-6
        assert_alike({name: found[name] / size}, {name: wanted / size}, scale=0.0, close=close)


@pytest.mark.parametrize("form_name", FORMS)
def test_sums_of_every_primitive_are_sums_of_its_values(form_name: str) -> None:
    for arity in (1, 2, 3):
        tape, rows = all_of(arity, 0, 1)
        points = np.random.default_rng(arity).uniform(0.3, 0.9, (arity, 77))
        columns = {f"x{number}": column for number, column in enumerate(points)}
        sums = compiled(tape, form_name, "sum")(columns, {}, 77)
        for name, row in rows.items():
            with np.errstate(all="ignore"):
                wanted = np.sum(
                    np.broadcast_to(numpy_arithmetic.numpy_function(row.name)(*points), 77)
                )
            assert_alike({name: sums[name]}, {name: wanted}, scale=77.0)


def test_the_table_is_covered() -> None:
    names = [name for arity in (1, 2, 3) for name in all_of(arity, 0, 1)[1]]
    assert sorted(names) == sorted(row.name for row in primitives() if row.built_in)


# Straight-line code is the same for single numbers as for columns, so it is compiled for a few.
_ALONE = [("interpreted", row.name) for row in primitives() if row.built_in]
_ALONE += [("straight", name) for name in ("sin", "pow", "where", "log", "max", "erf")]


@pytest.mark.parametrize(("form_name", "name"), _ALONE)
def test_primitives_of_single_numbers(form_name: str, name: str) -> None:
    """What no sample changes is computed apart from the samples: the same values there."""
    row = find_primitive(name)
    builder = Builder()
    scalars = [builder.scalar(f"s{number}") for number in range(row.arity)]
    value = builder.emit(row.name, *scalars)
    tape = builder.finish(
        {"alone": value, "mixed": builder.emit("add", value, builder.column("x"))}
    )
    run, reference = compiled(tape, form_name), by_numpy(tape)
    columns = {"x": np.array([0.0, 1.0, 2.0])}
    for seed in range(8):
        drawn = np.random.default_rng(seed).choice(AWKWARD[np.abs(AWKWARD) != 1.7e308], row.arity)
        given_values = {f"s{number}": float(value) for number, value in enumerate(drawn)}
        wanted = reference(columns, given_values, 3)
        assert_alike(run(columns, given_values, 3), wanted, scale=0.0)


@pytest.mark.parametrize("form_name", FORMS)
def test_the_gradient_of_every_method_in_one_check(form_name: str) -> None:
    graph = cgprimer.parse("xh = tanh(p*xa + q); xg = xh*sin(xh) + cos(xh); xw = (xg - r)^2 + p")
    for method in METHODS[:-1]:
        tape = differentiate(cgprimer.tape(graph), method=method).tape
        columns, scalars = point(graph, 3, 29)
        for name in tape.of_kind("scalar"):
            scalars.setdefault(name, 1.0)  # seeds
        for dtype in DTYPES:
            here = {n: c.astype(dtype) for n, c in columns.items()}
            check(tape, form_name, here, scalars, 29, dtype=dtype)
