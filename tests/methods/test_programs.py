"""Hessians, Jacobians and partials; reductions, memory and long chains of programs."""

from __future__ import annotations

import gc
import sys
import weakref

import numpy as np
import pytest

import cgprimer
from cgprimer.core.evaluation.runner import Runner
from tests.approval import refused
from tests.methods.slopes import reference_hessian

SMOOTH = cgprimer.parse(
    "input xa = 0.7, xb = -0.4; parameter p = 1.2, q = 0.3;"
    "xu = sin(p*xa) + xb^2; xv = exp(q*xu)*tanh(xa - q); xw = xv/(1 + xu^2) + p*q*xb"
)
NAMES = ("xa", "xb", "p", "q")
INNER = tuple(method for method in cgprimer.methods() if method != "finite-difference")
COMBINATIONS = [f"{outer}-over-{inner}" for outer in cgprimer.methods() for inner in INNER]


def as_matrix(result, names) -> np.ndarray:
    return np.array([[result[a][b] for b in names] for a in names])


REFERENCE = as_matrix(reference_hessian(SMOOTH, SMOOTH.values, NAMES), NAMES)


@pytest.mark.parametrize("method", [*COMBINATIONS, *INNER])
def test_hessian_by_every_method_pair(method):
    result = as_matrix(cgprimer.hessian(SMOOTH, wrt=NAMES, method=method), NAMES)
    tolerance = 1e-8 if method.startswith("finite-difference") else 1e-13
    np.testing.assert_allclose(result, REFERENCE, rtol=0, atol=tolerance)


def test_hessian_vector_product():
    vector = dict(zip(NAMES, (0.5, -2.0, 1.25, 3.0), strict=True))
    result = cgprimer.hessian_vector_product(SMOOTH, vector=vector)
    expected = REFERENCE @ np.array(list(vector.values()))
    np.testing.assert_allclose([result[n] for n in NAMES], expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("method", ["forward-over-reverse", "reverse-over-forward", "path-sum"])
def test_second_derivatives_of_powers_at_zero(method):
    for exponent in range(5):
        expected = {"p": {"p": 2.0 if exponent == 2 else 0.0}}
        written, given = cgprimer.parse(f"xw = p^{exponent}"), cgprimer.parse("xw = p^k")
        assert cgprimer.hessian(written, {"p": 0.0}, method=method) == expected
        at = {"p": 0.0, "k": float(exponent)}
        assert cgprimer.hessian(given, at, wrt="p", method=method) == expected


@pytest.mark.parametrize("method", cgprimer.methods())
def test_jacobian_of_multiple_outputs(method):
    graph = cgprimer.parse("xb = p*xa^2; xc = sin(q)*xb; xd = p + q; xe = xc*xd; output xb, xc, xe")
    at, names = {"p": 1.5, "q": 0.5, "xa": 2.0}, ("p", "q", "xa")
    result = cgprimer.jacobian(graph, at, wrt=names, method=method)
    s, c = np.sin(0.5), np.cos(0.5)
    expected = {
        "xb": (4, 0, 6),
        "xc": (4 * s, 6 * c, 6 * s),
        "xe": (14 * s, 12 * c + 6 * s, 12 * s),
    }
    assert list(result) == list(expected)
    tolerance = 1e-7 if method == "finite-difference" else 1e-13
    for of, slopes in expected.items():
        row = dict(zip(names, slopes, strict=True))
        assert result[of] == pytest.approx(row, rel=tolerance, abs=tolerance)


LECTURE = cgprimer.parse(
    "xx=xa^2; xy=ab*xx+ac*xa; xz=bc*xx+xy; xw=cd*xx+xz^3;"
    "input xa = 0.5; parameter ab = 1, bc = 2, cd = 3, ac = 4"
)


def test_partials_include_zero_valued_edges():
    edges = cgprimer.partials(LECTURE)
    assert edges.variable_to_variable == {
        ("xx", "xa"): 1.0, ("xy", "xa"): 4.0, ("xy", "xx"): 1.0, ("xz", "xx"): 2.0,
        ("xz", "xy"): 1.0, ("xw", "xx"): 3.0, ("xw", "xz"): 3 * 2.75**2,
    }  # fmt: skip
    assert edges.variable_to_parameter == {
        ("xy", "ab"): 0.25, ("xy", "ac"): 0.5, ("xz", "bc"): 0.25, ("xw", "cd"): 0.25,
    }  # fmt: skip
    edges = cgprimer.partials(cgprimer.parse("xw = step(xa)*k"), {"xa": 1.0, "k": 2.0})
    assert edges.variable_to_variable == {("xw", "xa"): 0.0}
    assert edges.variable_to_parameter == {("xw", "k"): 1.0}


def test_nested_forward_mode_has_no_perturbation_confusion():
    """The first program's tape holds the direction of its tangents as scalars; a second forward
    sweep over the tape has another direction, and must not confuse the two.
    """
    graph, at = cgprimer.parse("v5 = log(a) + a*b - sin(b); w = v5^2; output w"), {"a": 2, "b": 5}
    once = cgprimer.differentiate(cgprimer.tape(graph), wrt=("a", "b"), method="forward")
    along_a = once.passes[0]
    assert along_a.reads[0].wrt == "a"
    tangent = along_a.reads[0].output
    gradient, hessian = cgprimer.gradient(graph, at), cgprimer.hessian(graph, at)
    for second in ("a", "b"):
        twice = cgprimer.differentiate(once.tape, of=tangent, wrt=second, method="forward")
        result = Runner(twice)({}, {**at, **along_a.seeds}, 1)
        assert result.values[tangent] == pytest.approx(gradient["a"], rel=1e-12)
        derivative = result.derivatives[tangent, second]
        assert derivative == pytest.approx(hessian["a"][second], rel=1e-12)


@pytest.mark.parametrize(
    "method",
    ["forward-over-reverse", "reverse-over-forward", "reverse", "forward",
     "path-sum-over-reverse", "symbolic-over-reverse", "reverse-over-path-sum"],
)  # fmt: skip
def test_hessian_with_respect_to_intermediate_variables(method):
    """By hand: xw = cd*xx + xz^3, so d2xw/dxz2 = 6 xz, and dxz/dxx = ab + bc = 3."""
    result = cgprimer.hessian(LECTURE, wrt=["xz", "xx"], method=method)
    assert result == {"xz": {"xz": 16.5, "xx": 49.5}, "xx": {"xz": 49.5, "xx": 148.5}}


def test_second_derivatives_reject_variables_without_a_path_to_the_output():
    """The tape of the gradient lacks such a variable, which must not be reported as unknown."""
    graph, at = cgprimer.parse("xv = k*xa^2; xu = k + xa; output xu, xv"), {"k": 1, "xa": 2}
    for second in (
        lambda: cgprimer.hessian(graph, at, of="xu", wrt=["xv", "xa"]),
        lambda: cgprimer.hessian_vector_product(graph, at, {"xv": 1}, of="xu"),
    ):
        with refused(cgprimer.UsageError, "'xu' ... 'xv'"):
            second()


GRAPH = cgprimer.parse(
    "input xa, xb; parameter p = 0.8, q = -0.3; xu = sin(p*xa) + q*xb; xw = exp(xu)*xu + p*q*xa"
)
PARAMETER_VALUES = {"p": 0.8, "q": -0.3}
WRT = ("p", "q", "xa", "xb", "xu")


def columns(samples: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(7)
    return {name: generator.uniform(-1, 1, samples) for name in ("xa", "xb")}


def program(method: str):
    return cgprimer.differentiate(cgprimer.tape(GRAPH), wrt=WRT, method=method)


@pytest.mark.parametrize("method", ["reverse", "forward", "path-sum", "symbolic"])
def test_sum_reduction_adds_per_sample_derivatives(method):
    kwargs = [{"engine": "numpy", "reduction": reduction} for reduction in ("none", "sum")]
    each, summed = (Runner(program(method), **options) for options in kwargs)
    size = each.execute.block_size
    for samples in (size - 1, size, size + 1, 2 * size, 3 * size - 1):
        data = columns(samples)
        rows, total = each(data, PARAMETER_VALUES, samples), summed(data, PARAMETER_VALUES, samples)
        for pair, values in rows.derivatives.items():
            scale = np.sum(np.abs(values))
            assert abs(float(total.derivatives[pair]) - np.sum(values)) <= 1e-12 * scale
        assert float(total.values["xw"]) == pytest.approx(np.sum(rows.values["xw"]), rel=1e-12)


def test_results_do_not_share_memory():
    data = columns(10)
    run = Runner(program("reverse"), engine="numpy")
    first = run(data, PARAMETER_VALUES, 10).derivatives["xw", "p"]
    kept = first.copy()
    run({name: v + 1 for name, v in data.items()}, PARAMETER_VALUES, 10)
    np.testing.assert_array_equal(first, kept)
    result = cgprimer.gradient(cgprimer.parse("xw = p*xa"), {"p": 2.0, "xa": data["xa"]})["p"]
    result[:] = 0.0
    assert np.all(data["xa"] != 0.0)


LONG = 2_000


@pytest.fixture(scope="module")
def long_chain() -> cgprimer.ExpressionGraph:
    lines = ["input x0 = 0.3; parameter p = 0.5", "x1 = p*x0"]
    return cgprimer.parse(lines + [f"x{i + 1} = sin(x{i}) + x0" for i in range(1, LONG - 1)])


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("forward", {}),
        ("forward", {"carry": True}),
        ("reverse", {}),
        ("finite-difference", {}),
        ("finite-difference", {"scheme": "complex-step"}),
    ],
)
def test_long_chain_does_not_need_recursion(long_chain, method, options):
    """A chain of 2,000 vertices is twice as long as Python's recursion limit."""
    x, slope = 0.5 * 0.3, 0.5  # of x1 with respect to x0
    for _ in range(1, LONG - 1):
        x, slope = np.sin(x) + 0.3, np.cos(x) * slope + 1.0
    assert long_chain.evaluate()[f"x{LONG - 1}"] == pytest.approx(x, rel=1e-12)
    limit = sys.getrecursionlimit()
    result = cgprimer.gradient(long_chain, wrt="x0", method=method, **options)
    assert limit == sys.getrecursionlimit() < LONG
    tolerance = 1e-6 if method == "finite-difference" else 1e-12
    assert result["x0"] == pytest.approx(slope, rel=tolerance)


def test_graph_is_garbage_collected():
    gc.collect()
    gc.freeze()  # makes the second collection fast
    try:
        graph = cgprimer.parse("xw = k*xa^3")
        cgprimer.gradient(graph, {"k": 1.0, "xa": 2.0})
        cgprimer.hessian(graph, {"k": 1.0, "xa": 2.0})
        cgprimer.hessian_vector_product(graph, {"k": 1.0, "xa": 2.0}, {"k": 1.0})
        gone = weakref.ref(graph)
        del graph
        gc.collect()
        assert gone() is None
    finally:
        gc.unfreeze()
