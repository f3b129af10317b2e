"""Programs as they run: sizes, sums, precision, order of operations, long chains."""

from __future__ import annotations

import gc
import sys
import weakref
from functools import partial

import numpy as np
import pytest

import cgprimer
from cgprimer.core.evaluation import runner as running

Runner = partial(running.Runner, engine="numpy")

GRAPH = cgprimer.parse(
    "input xa, xb; parameter p = 0.8, q = -0.3; xu = sin(p*xa) + q*xb; xw = exp(xu)*xu + p*q*xa"
)
SCALARS = {"p": 0.8, "q": -0.3}
NAMES = ("p", "q", "xa", "xb", "xu")


def columns(samples: int, dtype: str = "float64") -> dict[str, np.ndarray]:
    generator = np.random.default_rng(7)
    return {name: generator.uniform(-1, 1, samples).astype(dtype) for name in ("xa", "xb")}


def program(method: str, **options):
    return cgprimer.differentiate(cgprimer.tape(GRAPH), wrt=NAMES, method=method, **options)


def block_size(method: str) -> int:
    return Runner(program(method)).execute.block_size


@pytest.mark.parametrize("blocks", [1, 2, 3])
@pytest.mark.parametrize("offset", [-1, 0, 1])
@pytest.mark.parametrize("method", ["reverse", "forward", "path-sum", "symbolic"])
def test_the_sum_is_the_sum_of_all_samples(method, offset, blocks):
    samples = blocks * block_size(method) + offset
    data = columns(samples)
    each = Runner(program(method))(data, SCALARS, samples)
    total = Runner(program(method), reduction="sum")(data, SCALARS, samples)
    for pair, values in each.derivatives.items():
        scale = np.sum(np.abs(values))
        assert abs(float(total.derivatives[pair]) - np.sum(values)) <= 1e-12 * scale
    assert float(total.values["xw"]) == pytest.approx(np.sum(each.values["xw"]), rel=1e-12)


def test_results_are_nobody_elses_memory():
    data = columns(10)
    run = Runner(program("reverse"))
    first = run(data, SCALARS, 10).derivatives["xw", "p"]
    kept = first.copy()
    run({name: v + 1 for name, v in data.items()}, SCALARS, 10)
    np.testing.assert_array_equal(first, kept)
    found = cgprimer.gradient(cgprimer.parse("xw = p*xa"), {"p": 2.0, "xa": data["xa"]})["p"]
    found[:] = 0.0
    assert np.all(data["xa"] != 0.0)


@pytest.mark.parametrize("count", [1, 10, 100])
def test_reverse_costs_the_same_for_any_number_of_parameters(count):
    """The number of parameters does not multiply the cost: it is what reverse mode is for."""
    terms = " + ".join(f"p{i}*xa" for i in range(count))
    tape = cgprimer.tape(cgprimer.parse(f"xu = {terms}; xw = sin(xu)^2"))
    reverse = cgprimer.differentiate(tape, method="reverse")
    forward = cgprimer.differentiate(tape, method="forward")
    central = cgprimer.differentiate(tape, method="finite-difference")
    assert reverse.operation_count <= 4 * len(tape) + 4
    assert forward.pass_count == count
    assert central.pass_count == 2 * count
    assert central.operation_count == 2 * count * len(tape)
    if count >= 10:
        assert reverse.operation_count < forward.operation_count < central.operation_count * 2


LONG = 5_000


def chain() -> cgprimer.ExpressionGraph:
    lines = ["input x0 = 0.3; parameter p = 0.5", "x1 = p*x0"]
    lines.extend(f"x{i + 1} = sin(x{i}) + x0" for i in range(1, LONG - 1))
    return cgprimer.parse(lines)


@pytest.fixture(scope="module")
def long_chain() -> cgprimer.ExpressionGraph:
    return chain()


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("forward", {}),
        ("forward", {"carry": True}),
        ("reverse", {}),
        ("finite-difference", {}),
        ("finite-difference", {"scheme": "forward"}),
        ("finite-difference", {"scheme": "complex-step"}),
    ],
)
def test_a_chain_of_five_thousand_expressions(long_chain, method, options):
    """No method calls itself for every vertex: 5,000 are five times Python's limit."""
    x, slope = 0.5 * 0.3, 0.5  # of x1 with respect to x0
    for _ in range(1, LONG - 1):
        x, slope = np.sin(x) + 0.3, np.cos(x) * slope + 1.0
    assert long_chain.evaluate()[f"x{LONG - 1}"] == pytest.approx(x, rel=1e-12)
    limit = sys.getrecursionlimit()
    found = cgprimer.gradient(long_chain, wrt="x0", method=method, **options)
    assert sys.getrecursionlimit() == limit
    tolerance = 1e-6 if method == "finite-difference" else 1e-12
    assert found["x0"] == pytest.approx(slope, rel=tolerance)


def test_nothing_keeps_a_graph_alive():
    graph = cgprimer.parse("xw = k*xa^3")
    cgprimer.gradient(graph, {"k": 1.0, "xa": 2.0})
    cgprimer.hessian(graph, {"k": 1.0, "xa": 2.0})
    cgprimer.hessian_vector_product(graph, {"k": 1.0, "xa": 2.0}, {"k": 1.0})
    gone = weakref.ref(graph)
    del graph
    gc.collect()
    assert gone() is None
