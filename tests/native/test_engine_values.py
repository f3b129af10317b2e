"""All engines compute the values and derivatives of random graphs, for any number of samples.

The reference is forward mode on dual numbers, written here with numpy for one operation at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.backends.cpu.llvm_library import get_target_processor
from cgprimer.backends.cpu.straight_line import TILE
from cgprimer.backends.numpy_blocks import NumpyExecutable
from cgprimer.backends.plans.plan import AffineGroup
from cgprimer.core.evaluation.engines import select_engine
from cgprimer.core.evaluation.runner import Runner
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape
from tests.native.engine_agreement import (
    DTYPES,
    FORMS,
    REDUCTIONS,
    TOLERANCE,
    assert_close,
    check,
    compiled,
    form,
    gradient_tape,
    network,
    random_point,
    run_instructions,
)

METHODS = ("reverse", "forward", "symbolic", "path-sum", "finite-difference")
Array = Any
Partials = tuple[Callable[..., Array], ...]
# Text of an operation, its function, and its partial derivatives.
OPERATIONS: dict[str, tuple[Callable[..., Array], Partials]] = {
    "{} + {}": (np.add, (lambda a, b: 1.0, lambda a, b: 1.0)),
    "{} - {}": (np.subtract, (lambda a, b: 1.0, lambda a, b: -1.0)),
    "{}*{}": (np.multiply, (lambda a, b: b, lambda a, b: a)),
    "{}/{}": (np.divide, (lambda a, b: 1 / b, lambda a, b: -a / b**2)),
    "-{}": (np.negative, (lambda a: -1.0,)),
    "{}^2": (lambda a: a * a, (lambda a: 2 * a,)),
    "{}^3": (lambda a: a * a * a, (lambda a: 3 * a * a,)),
    "{}^(-1)": (lambda a: 1 / a, (lambda a: -1 / a**2,)),
    "sin({})": (np.sin, (np.cos,)),
    "cos({})": (np.cos, (lambda a: -np.sin(a),)),
    "tanh({})": (np.tanh, (lambda a: 1 - np.tanh(a) ** 2,)),
    "exp(0.5*{})": (lambda a: np.exp(a / 2), (lambda a: np.exp(a / 2) / 2,)),
    "log(1 + {}^2)": (lambda a: np.log(1 + a * a), (lambda a: 2 * a / (1 + a * a),)),
    "sqrt(1 + {}^2)": (lambda a: np.sqrt(1 + a * a), (lambda a: a / np.sqrt(1 + a * a),)),
    "atan({})": (np.arctan, (lambda a: 1 / (1 + a * a),)),
    "sigmoid({})": (
        lambda a: 1 / (1 + np.exp(-a)),
        (lambda a: np.exp(-a) / (1 + np.exp(-a)) ** 2,),
    ),
    "abs({})": (np.abs, (np.sign,)),
    "relu({})": (lambda a: np.maximum(a, 0.0), (lambda a: (a > 0) * 1.0,)),
    "max({}, {})": (np.maximum, (lambda a, b: (a > b) * 1.0, lambda a, b: (a < b) * 1.0)),
    "min({}, 0.5)": (lambda a: np.minimum(a, 0.5), (lambda a: (a < 0.5) * 1.0,)),
}
NUMBERS = {"2": 2.0, "0.5": 0.5, "1": 1.0}


@dataclass(frozen=True)
class Model:
    """A graph as lines (result, operation, operands), the last of which is the output."""

    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    lines: tuple[tuple[str, str, tuple[str, ...]], ...]

    @property
    def graph(self) -> cgprimer.ExpressionGraph:
        text = [f"{result} = {form.format(*names)}" for result, form, names in self.lines]
        parameters = [f"parameter {', '.join(self.parameters)}"] if self.parameters else []
        inputs = [f"input {', '.join(self.inputs)}"]
        return cgprimer.parse([*inputs, *parameters, *text, f"output {self.lines[-1][0]}"])

    def evaluate(self, at: dict[str, Array]) -> tuple[Array, dict[str, Array], Array]:
        """Return the output, its derivatives, and the largest number of each sample."""
        leaves = (*self.inputs, *self.parameters)
        shape = np.shape(at[self.inputs[0]])
        values = {name: np.broadcast_to(value, shape) for name, value in (at | NUMBERS).items()}
        slopes = {n: {leaf: np.full(shape, float(n == leaf)) for leaf in leaves} for n in values}
        sizes = [np.ones(shape)]
        for result, text, names in self.lines:
            function, partials = OPERATIONS[text]
            operands = [values[name] for name in names]
            values[result] = function(*operands)
            edges = [partial(*operands) for partial in partials]
            slopes[result] = {
                leaf: sum(
                    edge * slopes[name][leaf] for edge, name in zip(edges, names, strict=True)
                )
                for leaf in leaves
            }
            sizes += [values[result], *edges, *slopes[result].values()]
        largest = np.max([np.broadcast_to(np.abs(size), shape) for size in sizes], axis=0)
        return values[self.lines[-1][0]], slopes[self.lines[-1][0]], largest


@st.composite
def models(draw: st.DrawFn) -> Model:
    inputs = ("xa", "xb")[: draw(st.integers(1, 2))]
    parameters = ("p", "q", "r")[: draw(st.integers(0, 3))]
    names = [*inputs, *parameters]
    lines = []
    for number in range(draw(st.integers(2, 9))):
        text = draw(st.sampled_from(sorted(OPERATIONS)))
        last = f"v{number - 1}" if number else "xa"  # so that every line is on a path
        others = [draw(st.sampled_from([*names, *NUMBERS])) for _ in range(text.count("{}") - 1)]
        lines.append((f"v{number}", text, tuple(draw(st.permutations([last, *others])))))
        names.append(f"v{number}")
    return Model(inputs, parameters, tuple(lines))


def agree(engine: str, model: Model, seed: int, method: str, dtype: str) -> None:
    """Compare an engine with dual numbers: samples, sums, single rows and single points."""
    random = np.random.default_rng(seed)
    at: dict[str, Array] = {name: random.uniform(-2, 2, 37) for name in model.inputs}
    scalars = {name: float(random.uniform(-2, 2)) for name in model.parameters}
    with np.errstate(all="ignore"):
        _, _, largest = model.evaluate(at | scalars)
    at = {name: column[largest < 20].astype(dtype) for name, column in at.items()}
    samples = len(at["xa"])
    assume(samples > 1)
    value, slopes, largest = model.evaluate(at | scalars)
    expected = {"": value, **slopes}
    tolerance = 1e-11 if dtype == "float64" else 2e-4
    if method == "finite-difference":  # differences of rounded values, divided by the step
        tolerance = 1e-7 if dtype == "float64" else 0.2
    program = cgprimer.differentiate(
        cgprimer.tape(model.graph), method=method, wrt=(*model.inputs, *model.parameters)
    )

    def run(columns: dict[str, Array], count: int, reduction: Any) -> dict[str, Array]:
        with form(engine if engine in FORMS else "straight"):
            runner = Runner(program, engine="cpu" if engine in FORMS else engine,
                            reduction=reduction, dtype=dtype)  # fmt: skip
            result = runner(columns, scalars, count)
        (output,) = result.values.values()
        return {"": output, **{wrt: d for (_, wrt), d in result.derivatives.items()}}

    rows = run(at, samples, "none")
    scale = np.max(largest) ** 2
    assert_close(rows, expected, scale=scale, tolerance=tolerance)
    sums = {name: np.sum(np.broadcast_to(v, samples)) for name, v in expected.items()}
    assert_close(run(at, samples, "sum"), sums, scale=scale * samples, tolerance=tolerance)
    row = samples // 2
    single = run({name: column[row : row + 1] for name, column in at.items()}, 1, "none")
    picked = {name: np.asarray(column)[row : row + 1] for name, column in rows.items()}
    assert_close(single, picked, scale=scale, tolerance=tolerance / 10)
    point = {name: float(column[row]) for name, column in at.items()} | scalars
    if engine not in FORMS and dtype == "float64":
        gradient = cgprimer.gradient(model.graph, point, wrt=list(slopes), engine=engine)
        one = {name: slope[row] for name, slope in slopes.items()}
        assert_close(gradient, one, scale=scale, tolerance=1e-11)


@pytest.mark.parametrize(
    ("engine", "examples"), [("plain", 5), ("numpy", 15), ("interpreted", 15), ("straight", 5)]
)
def test_an_engine_computes_the_derivatives_of_dual_numbers(engine: str, examples: int) -> None:
    @given(models(), st.integers(0, 99), st.sampled_from(METHODS), st.sampled_from(DTYPES))
    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    def agree_with_dual_numbers(model: Model, seed: int, method: str, dtype: str) -> None:
        assume(engine != "plain" or dtype == "float64")
        agree(engine, model, seed, method, dtype)

    agree_with_dual_numbers()


SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, np.inf, -np.inf, np.nan)
EXACT = ("{} + {}", "{} - {}", "{}*{}", "{}/{}", "-{}", "{}^2", "abs({})", "relu({})")


@pytest.mark.parametrize(("engine", "examples"), [("numpy", 15), ("interpreted", 25)])
def test_infinities_and_nans_propagate_as_in_numpy(engine: str, examples: int) -> None:
    @given(models(), st.integers(0, 10_000))
    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    def agree_in_class(model: Model, seed: int) -> None:
        lines = [
            (n, t if t in EXACT else EXACT[len(t) % 4 if len(o) == 2 else -1 - len(t) % 4], o)
            for n, t, o in model.lines
        ]
        model = Model(model.inputs, model.parameters, tuple(lines))
        random = np.random.default_rng(seed)
        columns = {n: random.choice(SPECIAL, 37) for n in model.inputs}
        scalars = {n: float(random.choice(SPECIAL)) for n in model.parameters}
        with np.errstate(all="ignore"):
            value, _, _ = model.evaluate(columns | scalars)
        graph = model.graph
        with form("interpreted"):
            run = select_engine("cpu" if engine in FORMS else engine).compile(cgprimer.tape(graph))
        assert_close(run(columns, scalars, 37), {graph.outputs[0]: value})

    agree_in_class()


@pytest.mark.parametrize("form_name", FORMS)
def test_constant_factors_of_sums_neither_overflow_nor_vanish(form_name: str) -> None:
    texts = {
        "(1e-200*xa)*xb": (1e200, 1e200),
        "1e-200*(1e-200*xa) + 0*xb": (1e300, 1.0),
        "1e200*(1e200*xa)*xb": (1e-300, 1e-50),
        "(-1e300)*(xa*1e-300)/xb": (1e100, -1e-100),
        "-(0*xa)*3 + 0*xb": (np.inf, 1.0),
        "((64*xa)^64)^3 + 0*xb": (0.016, 1.0),
        "(64*xa)^64 + 0*xb": (1e-6, 1.0),
    }
    for text, (xa, xb) in texts.items():
        tape = cgprimer.tape(cgprimer.parse(f"xw = {text}"))
        columns = {"xa": np.full(3, xa), "xb": np.full(3, xb)}
        with np.errstate(all="ignore"):
            expected = {n: np.sum(v) for n, v in run_instructions(tape, columns, {}, 3).items()}
        assert_close(compiled(tape, form_name, "sum")(columns, {}, 3), expected, scale=0.0)


# --- numbers of samples --------------------------------------------------------------------------

MOST = 20_000  # samples, more than any boundary below
CASES = [(form_name, dtype) for form_name in FORMS for dtype in DTYPES]


@cache
def loss() -> Tape:
    """Return a tape with matrices, sums of products and plain sums."""
    lines = [f"h{j} = tanh(a{j}*xa + b{j}*xb + c{j}*xc)" for j in range(3)]
    return gradient_tape(cgprimer.parse([*lines, "xw = h0*h1 + d*h2 + max(xa, xb)", "output xw"]))


@cache
def loss_values(form_name: str, dtype: str) -> tuple[Any, ...]:
    """Return runs per sample and of sums, a point with many samples, and the values there."""
    runs = [compiled(loss(), form_name, reduction, dtype) for reduction in REDUCTIONS]
    columns, scalars = random_point(loss(), MOST, dtype=dtype, low=-1.0)
    return (*runs, columns, scalars, runs[0](columns, scalars, MOST))


def boundaries(form_name: str, dtype: str) -> list[int]:
    """Return the samples of a vector, a unit, and a block or a tile of sums."""
    run = loss_values(form_name, dtype)[1]
    lanes = get_target_processor().count_lanes(dtype)
    if form_name == "straight":
        return [lanes, run.lanes, TILE * run.lanes]
    itemsize = np.dtype(dtype).itemsize
    return [lanes, run.code.unit // itemsize, run.code.stride // itemsize]


@pytest.mark.parametrize(("form_name", "dtype"), CASES)
def test_the_number_of_samples_changes_no_value(form_name: str, dtype: str) -> None:
    """The first samples of many have equal bits alone; sums are the sums of these values."""
    run, run_sums, columns, scalars, known = loss_values(form_name, dtype)
    expected = run_instructions(loss(), columns, scalars, MOST)
    assert_close(known, expected, scale=20.0, tolerance=TOLERANCE[dtype])
    sizes = {0, 1, 2, 3, 5, 31, 33}
    edges = boundaries(form_name, dtype)
    sizes |= {edge * times + more for edge in edges for times in (1, 2, 3) for more in (-1, 0, 1)}
    for samples in sorted(size for size in sizes if size <= MOST):
        first = {name: column[:samples] for name, column in columns.items()}
        values, sums = run(first, scalars, samples), run_sums(first, scalars, samples)
        for name, value in known.items():
            np.testing.assert_array_equal(values[name], value[:samples], err_msg=name)
            total = np.sum(value[:samples], dtype=float)
            scale = max(1.0, float(np.sum(np.abs(value[:samples]))))
            assert abs(float(sums[name]) - total) <= TOLERANCE[dtype] * scale, (name, samples)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_a_tape_with_many_live_values_has_small_blocks(reduction: Any) -> None:
    lines = [f"v{i} = sin({i + 1}*xa)" for i in range(1000)]
    total = " + ".join(f"v{i}*v{(i * 7 + 3) % 1000}" for i in range(1000))
    tape = cgprimer.tape(cgprimer.parse([*lines, f"xw = {total}", "output xw"]))
    run = compiled(tape, "interpreted", reduction)
    assert run.code.stride == 512
    assert run.code.buffer <= 2**20
    for samples in (0, 1, 33, 64, 127, 500):
        columns, scalars = random_point(tape, samples)
        expected = run_instructions(tape, columns, scalars, samples)["xw"]
        expected = expected if reduction == "none" else np.sum(expected)
        result = run(columns, scalars, samples)
        assert_close(result, {"xw": expected}, scale=1000.0 * max(1, samples))


# --- matrices ------------------------------------------------------------------------------------


@pytest.mark.parametrize("inputs", [2, 3, 4, 5, 9])
def test_matrices_of_all_small_sizes(inputs: int) -> None:
    for outputs in (1, 2, 3, 4, 5, 7):
        tape = gradient_tape(network(inputs, outputs, 2))
        columns, scalars = random_point(tape, 71, seed=outputs, low=-1.0)
        check(tape, "interpreted", columns, scalars, 71)
        for reduction in REDUCTIONS:
            result = select_engine("numpy").compile(tape, reduction=reduction)
            expected = run_instructions(tape, columns, scalars, 71)
            if reduction == "sum":
                expected = {name: np.sum(value) for name, value in expected.items()}
            assert_close(result(columns, scalars, 71), expected, scale=200.0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_straight_line_code_computes_matrices(dtype: str) -> None:
    tape = gradient_tape(network(5, 7, 2, bypass=True))
    columns, scalars = random_point(tape, 45, dtype=dtype, low=-1.0)
    check(tape, "straight", columns, scalars, 45, dtype=dtype)
    check(tape, "interpreted", columns, scalars, 45, dtype=dtype)


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


def test_the_engine_numpy_splits_samples_and_matrices() -> None:
    tape = gradient_tape(network(70, 40, 2))
    run = NumpyExecutable(tape, reduction="sum", dtype="float64")
    assert any(isinstance(g, AffineGroup) and len(g.inputs) == 70 for g in run.plan.groups.values())
    columns, scalars = random_point(tape, 700, low=-1.0)
    expected = run_instructions(tape, columns, scalars, 700)
    sums = run(columns, scalars, 700)
    for name, value in expected.items():
        np.testing.assert_allclose(sums[name], np.sum(value), atol=1e-12 * np.sum(np.abs(value)))
    small = gradient_tape(network(3, 4, 4, 2, bypass=True))
    run = NumpyExecutable(small, reduction="sum", dtype="float64")
    each = NumpyExecutable(small, reduction="none", dtype="float64")
    assert 512 <= run.block_size <= 2**13
    for samples in (run.block_size - 1, 2 * run.block_size + 1):
        columns, scalars = random_point(small, samples, low=-1.0)
        expected = run_instructions(small, columns, scalars, samples)
        assert_close(each(columns, scalars, samples), expected, scale=10.0)
        sums = {name: np.sum(value) for name, value in expected.items()}
        assert_close(run(columns, scalars, samples), sums, scale=10.0 * samples)


# --- outputs -------------------------------------------------------------------------------------


def leaf_outputs() -> Tape:
    builder = Builder()
    xa, k, three = builder.column("xa"), builder.scalar("k"), builder.constant(3.0)
    total = builder.emit("add", xa, k)
    twice = builder.emit("mul", k, three)
    outputs = {"input": xa, "again": xa, "parameter": k, "number": three, "sum": total}
    return builder.finish({**outputs, "total": total, "twice": twice, "product": twice})


@pytest.mark.parametrize("engine", ["numpy", *FORMS])
def test_outputs_may_be_leaves_and_belong_to_the_caller(engine: str) -> None:
    tape, column = leaf_outputs(), np.linspace(0.0, 1.0, 37)
    column.flags.writeable = False
    runs = [
        compiled(tape, engine, r) if engine in FORMS else by_engine(tape, r) for r in REDUCTIONS
    ]
    for samples in (0, 1, 37):
        columns = {"xa": column[:samples]}
        expected = run_instructions(tape, columns, {"k": 2.0}, samples)
        result, again = (runs[0](columns, {"k": 2.0}, samples) for _ in range(2))
        assert_close(result, expected)
        for name in result:  # no two outputs share memory
            result[name][...] = -7.0
            for other in list(result)[list(result).index(name) + 1 :]:
                np.testing.assert_array_equal(result[other], again[other])
        sums = {name: np.sum(value) for name, value in expected.items()}
        assert_close(runs[1](columns, {"k": 2.0}, samples), sums, scale=40.0)
    # Infinite values of no samples have the sum zero.
    assert float(runs[1]({"xa": column[:0]}, {"k": np.inf}, 0)["twice"]) == 0.0


def by_engine(tape: Tape, reduction: Any) -> Any:
    return select_engine("numpy").compile(tape, reduction=reduction)


@pytest.mark.parametrize("form_name", FORMS)
def test_the_sign_of_zero_is_preserved(form_name: str) -> None:
    text = "a = -xa; b = xa*k; c = sqrt(xa); d = xa/3; e = xa + 0*k; output a, b, c, d, e"
    tape = cgprimer.tape(cgprimer.parse(text))
    columns, scalars = {"xa": np.array([0.0, -0.0] * 20)}, {"k": -1.0}
    result = compiled(tape, form_name)(columns, scalars, 40)
    for name, value in run_instructions(tape, columns, scalars, 40).items():
        np.testing.assert_array_equal(np.signbit(result[name]), np.signbit(value), err_msg=name)


# --- long tapes ----------------------------------------------------------------------------------


def long_tape(operations: int) -> Tape:
    """Return a tape of several kinds of operations, whose values stay between -2 and 2."""
    builder = Builder(share=False)
    x, k, half = builder.column("x"), builder.scalar("k"), builder.constant(0.5)
    values = [x]
    for number in range(operations):
        last, earlier = values[-1], values[max(0, len(values) - 2 - number % 40)]
        name, operands = (
            ("sin", (last,)), ("mul", (last, k)), ("add", (last, x)), ("mul", (last, half)),
            ("tanh", (last,)), ("sub", (earlier, last)), ("max", (last, earlier)),
        )[number % 7]  # fmt: skip
        values.append(builder.emit(name, *operands))
    return builder.finish({"w": builder.emit("sin", values[-1]), "early": values[operations // 2]})


@pytest.mark.parametrize("operations", [5_000, pytest.param(300_000, marks=pytest.mark.slow)])
def test_long_tapes_need_few_rows_and_their_gradients_agree(operations: int) -> None:
    tape = long_tape(operations)
    tape = cgprimer.differentiate(tape, of="w", wrt=("k",), method="reverse").tape
    columns, scalars = {"x": np.linspace(-1.0, 1.0, 50)}, {"k": 0.75}
    run = select_engine("cpu").compile(tape, reduction="sum", dtype="float64")
    expected = run_instructions(tape, columns, scalars, 50)
    sums = {name: np.sum(value) for name, value in expected.items()}
    scale = 50 * max(float(np.max(np.abs(value))) for value in expected.values())
    assert_close(run(columns, scalars, 50), sums, scale=scale, tolerance=1e-9)
    forward = select_engine("cpu").compile(long_tape(operations))
    assert forward.code.buffer < 2**21  # rows are reused
