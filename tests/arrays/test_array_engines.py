"""Arrays on engines that know numbers alone, and which engine ``auto`` takes."""

from __future__ import annotations

import numpy as np
import pytest

import cgprimer
from cgprimer.core.evaluation.engine_choice import choose_engine
from cgprimer.core.evaluation.runner import Runner

SMALL = """
input x[3], xt
parameter W[4,3], b[4], w[4]
xh = tanh(W @ x + b)
xl = (w @ softmax(xh[::-1]) + max(xh) - xt)^2
"""


def at(graph, samples: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    columns = {n: rng.normal(size=(samples, *graph.shapes.get(n, ()))) for n in graph.inputs}
    scalars = {n: rng.normal(size=graph.shapes.get(n, ())) for n in graph.parameters}
    return columns, scalars


@pytest.mark.parametrize("method", ["reverse", "forward", "symbolic"])
@pytest.mark.parametrize("reduction", ["sum", "none"])
def test_compiled_numbers_are_the_arrays(method, reduction):
    graph = cgprimer.parse(SMALL)
    if method == "symbolic":
        graph = cgprimer.parse(SMALL.replace("softmax(xh[::-1]) + max(xh)", "xh[::-1]"))
    columns, scalars = at(graph, 70)
    program = cgprimer.differentiate(cgprimer.tape(graph), method=method)
    known = Runner(program, reduction=reduction)(columns, scalars, 70)
    found = Runner(program, engine="cpu", reduction=reduction)(columns, scalars, 70)
    np.testing.assert_allclose(found.values["xl"], known.values["xl"], rtol=1e-11)
    for pair, value in known.derivatives.items():
        np.testing.assert_allclose(found.derivatives[pair], value, atol=1e-10)


def network(width: int) -> cgprimer.ExpressionGraph:
    return cgprimer.parse(
        f"input x[{width}]; parameter W[{width},{width}]; xo = sum(tanh(W @ x)^2)"
    )


@pytest.mark.parametrize(
    ("width", "samples", "engine"),
    [
        (4, 1_000_000, "cpu"),  # the numbers of small matrices are compiled
        (4, 20, "plain"),  # too few samples to pay for a call's dictionaries
        (4, None, "plain"),
        (200, 1_000_000, "cpu"),  # matrix products, and kernels between them
        (100, 20, "plain"),  # too few samples to pay for loading what compiles
    ],
)
def test_auto_takes_numbers_or_matrix_products(width, samples, engine):
    program = cgprimer.differentiate(cgprimer.tape(network(width)))
    if not any(e.available for e in cgprimer.engines() if e.name == "cpu"):
        pytest.skip("the engine cpu cannot be used here")
    assert choose_engine("auto", program, samples).name == engine
