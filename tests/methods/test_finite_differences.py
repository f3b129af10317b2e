"""Step sizes of finite differences, and agreement of batches with single points."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.core.evaluation.runner import Runner
from tests.approval import approved

# At x = c, the difference quotients are exact powers of the step h, without rounding.
FORMULAS = {"forward": ("(x - c)^2", 1), "central": ("(x - c)^3", 2)}
RELATIVE = {"forward": 2.0**-26, "central": 2.0**-17}
POINTS = st.integers(-(2**40), 2**40).map(lambda n: n / 1024) | st.sampled_from([0.0, 1.0, -2.0])


def expected_quotient(size: float, scheme: str, relative: float | None = None) -> float:
    """Return a power of the documented step, relative to the power of two below max(1, |x|)."""
    step = (relative or RELATIVE[scheme]) * 2.0 ** math.floor(math.log2(max(1.0, abs(size))))
    return step ** FORMULAS[scheme][1]


def difference_quotients(text: str, x: object, scheme: str, **options: float) -> list[float]:
    graph = cgprimer.parse(text)
    kwargs = {"method": "finite-difference", "scheme": scheme, **options}
    at = {"x": x, "c": x} if "c" in graph.parameters else {"x": x}
    return np.asarray(cgprimer.gradient(graph, at, of="y", wrt="x", **kwargs)["x"]).tolist()


@pytest.mark.parametrize("scheme", FORMULAS)
@settings(max_examples=20)
@given(x=st.lists(POINTS, min_size=1, max_size=4))
def test_step_size_scales_with_each_element(scheme: str, x: list[float]) -> None:
    """Check scalars, samples, array elements and samples of arrays."""
    text, n = FORMULAS[scheme][0], len(x)
    expected = [expected_quotient(v, scheme) for v in x]
    assert [difference_quotients(f"y = {text}", v, scheme) for v in x] == expected
    assert difference_quotients(f"y = {text}", np.array(x), scheme) == expected
    arrays = f"input x[{n}]; parameter c[{n}]; y = sum({text})"
    assert difference_quotients(arrays, np.array(x), scheme) == expected
    assert difference_quotients(arrays, np.array([x, x[::-1]]), scheme) == [
        expected,
        expected[::-1],
    ]


@pytest.mark.parametrize("scheme", FORMULAS)
@settings(max_examples=20)
@given(x=st.lists(POINTS, min_size=1, max_size=4))
def test_coupled_samples_share_the_largest_step(scheme: str, x: list[float]) -> None:
    text = f"y = {FORMULAS[scheme][0]} + 0*batch_mean(x)"
    expected = expected_quotient(max(map(abs, x)), scheme)
    assert difference_quotients(text, np.array(x), scheme) == [expected] * len(x)


@pytest.mark.parametrize("scheme", FORMULAS)
@pytest.mark.parametrize("step", [2.0**-10, 0.5])
def test_explicit_step_is_used(scheme: str, step: float) -> None:
    text, power = FORMULAS[scheme]
    x = np.array([-2.0, 0.0, 0.25, 4.0])
    assert difference_quotients(f"y = {text}", x, scheme, step=step) == [step**power] * 4
    assert difference_quotients(f"y = {text}", -2.0, scheme, step=step) == step**power


@pytest.mark.parametrize("scheme", FORMULAS)
def test_float32_uses_a_larger_step(scheme: str) -> None:
    """Steps are roots of 2^-23: 2^-12 for forward and 2^-8 for central differences."""
    tape = cgprimer.tape(cgprimer.parse(f"y = {FORMULAS[scheme][0]}"))
    program = cgprimer.differentiate(tape, wrt="x", method="finite-difference", scheme=scheme)
    x = np.array([0.0, 1.0, -2.0, 20.0], np.float32)
    columns = {"x": x, "c": x}
    result = Runner(program, dtype="float32")(columns, {}, 4).derivatives["y", "x"]
    relative = {"forward": 2.0**-12, "central": 2.0**-8}[scheme]
    assert result.tolist() == [expected_quotient(v, scheme, relative) for v in x.tolist()]


@pytest.mark.parametrize("scheme", ["forward", "central", "complex-step"])
def test_printed_program_lists_the_shift_of_each_pass(scheme: str) -> None:
    tape = cgprimer.tape(cgprimer.parse("h = k*x; y = h^2 + x"))
    kwargs = {"method": "finite-difference", "scheme": scheme}
    approved(str(cgprimer.differentiate(tape, wrt=["x", "h"], **kwargs)))


def test_complex_step_is_accurate_at_any_magnitude() -> None:
    points = np.array([1e-200, 1e-3, 1.0, 1e200])
    result = difference_quotients("y = log(x)", points, "complex-step")
    np.testing.assert_allclose(result, 1 / points, rtol=1e-12)


TEXTS = (  # a graph, and a statement that couples the samples
    ("y = x*k + x*x*k - x", "z = y + x*batch_mean(k)"),
    ("h = x*x; y = h*h - k*h*x", "z = y + x*batch_mean(k)"),
    ("input x[2]; y = sum(x*x*k + x)", "z = y + sum(x)*batch_mean(k)"),
    ("input x[2]; parameter k[2]; h = x*k; y = (h @ x)*h[0]", "z = y + sum(x)*batch_mean(sum(k))"),
)
COORDINATES = st.floats(-1e6, 1e6) | st.floats(-2.0, 2.0) | st.sampled_from((0.0, 1.0, -1e-9))
METHODS = [
    *((method, {}) for method in cgprimer.methods()),
    ("forward", {"carry": True}),
    ("reverse", {"simplify": False}),
    *(
        ("finite-difference", {"scheme": scheme, **step})
        for scheme in ("forward", "central", "complex-step")
        for step in ({}, {"step": 0.01})
    ),
]


@pytest.mark.parametrize(
    ("method", "options"),
    [pytest.param(*m, marks=[pytest.mark.slow] * (m[0] == "symbolic")) for m in METHODS],
    ids=str,
)
@settings(max_examples=6)
@given(
    texts=st.sampled_from(TEXTS),
    rows=st.lists(st.tuples(*[COORDINATES] * 4), min_size=1, max_size=3),
    mean=st.booleans(),
)
def test_single_point_matches_its_row_of_a_batch(
    method: str, options: dict, texts: tuple[str, str], rows: list, mean: bool
) -> None:
    """Check scalars and arrays; samples are coupled only in batches of one."""
    mean = mean and method not in ("symbolic", "path-sum")
    values = np.array(rows[:1] if mean else rows)
    graph, names = cgprimer.parse("; ".join(texts[: 1 + mean])), ("x", "k")
    kwargs = {"of": "z" if mean else "y", "wrt": names, "method": method, **options}
    columns = {"x": values[:, :2], "k": values[:, 2:]}
    batch = {n: columns[n] if graph.shapes.get(n) else columns[n][:, 0] for n in names}
    result = cgprimer.gradient(graph, batch, **kwargs)
    for row in range(len(values)):
        single = cgprimer.gradient(graph, {n: v[row] for n, v in batch.items()}, **kwargs)
        for name in names:
            np.testing.assert_array_equal(result[name][row], single[name])


def test_central_differences_use_two_evaluations_per_parameter() -> None:
    tape = cgprimer.tape(cgprimer.parse("h = p*x + q*x + r; y = sin(h)^2"))
    program = cgprimer.differentiate(tape, method="finite-difference")
    assert (program.pass_count, program.operation_count) == (2 * 3, 2 * 3 * len(tape))
