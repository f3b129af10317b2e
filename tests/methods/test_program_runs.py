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


def columns(samples: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(7)
    return {name: generator.uniform(-1, 1, samples) for name in ("xa", "xb")}


def program(method: str):
    return cgprimer.differentiate(cgprimer.tape(GRAPH), wrt=NAMES, method=method)


@pytest.mark.parametrize("method", ["reverse", "forward", "path-sum", "symbolic"])
def test_the_sum_is_the_sum_of_all_samples(method):
    each, summed = Runner(program(method)), Runner(program(method), reduction="sum")
    size = each.execute.block_size
    for samples in (size - 1, size, size + 1, 2 * size, 3 * size - 1):
        data = columns(samples)
        rows, total = each(data, SCALARS, samples), summed(data, SCALARS, samples)
        for pair, values in rows.derivatives.items():
            scale = np.sum(np.abs(values))
            assert abs(float(total.derivatives[pair]) - np.sum(values)) <= 1e-12 * scale
        assert float(total.values["xw"]) == pytest.approx(np.sum(rows.values["xw"]), rel=1e-12)


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
def test_a_chain_of_two_thousand_expressions(long_chain, method, options):
    """No method calls itself for every vertex: 2,000 are twice Python's limit."""
    x, slope = 0.5 * 0.3, 0.5  # of x1 with respect to x0
    for _ in range(1, LONG - 1):
        x, slope = np.sin(x) + 0.3, np.cos(x) * slope + 1.0
    assert long_chain.evaluate()[f"x{LONG - 1}"] == pytest.approx(x, rel=1e-12)
    limit = sys.getrecursionlimit()
    found = cgprimer.gradient(long_chain, wrt="x0", method=method, **options)
    assert limit == sys.getrecursionlimit() < LONG
    tolerance = 1e-6 if method == "finite-difference" else 1e-12
    assert found["x0"] == pytest.approx(slope, rel=tolerance)


def test_nothing_keeps_a_graph_alive():
    gc.collect()
    gc.freeze()  # so that the second collection has few objects to visit
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
