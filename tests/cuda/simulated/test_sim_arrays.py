"""Arrays on the simulated GPU: written out in numbers."""

from __future__ import annotations

import numpy as np

import cgprimer
from cgprimer.core.evaluation.runner import Runner

TEXT = """
input x[2], xt
parameter W[3,2], b[3], w[3]
xh = tanh(W @ x + b)
xl = (w @ softmax(xh)[::-1] - xt)^2
"""


def test_arrays_are_numbers_there():
    graph, rng = cgprimer.parse(TEXT), np.random.default_rng(0)
    columns = {n: rng.normal(size=(5, *graph.shapes.get(n, ()))) for n in graph.inputs}
    scalars = {n: rng.normal(size=graph.shapes.get(n, ())) for n in graph.parameters}
    program = cgprimer.differentiate(cgprimer.tape(graph))
    for reduction in ("sum", "none"):
        known = Runner(program, reduction=reduction)(columns, scalars, 5)
        found = Runner(program, engine="cuda", reduction=reduction)(columns, scalars, 5)
        for pair, value in known.derivatives.items():
            np.testing.assert_allclose(found.derivatives[pair], value, atol=1e-12)
