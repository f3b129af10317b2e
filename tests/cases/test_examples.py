"""Every example can be differentiated with nothing but its file: values are declared."""

from __future__ import annotations

import numpy as np
import pytest

import cgprimer
from tests.cases.case_tools import EXAMPLES, METHODS
from tests.methods.slopes import slopes

FILES = sorted(EXAMPLES.glob("*.cg"))


def test_there_are_examples():
    assert len(FILES) >= 20


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_example_stands_alone(path):
    graph = cgprimer.load(path)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# "), "a comment at the top says what it teaches"
    for word in ("Topic:", "Teaches:", "Source:", "\noutput "):
        assert word in text
    assert len(graph.outputs) == 1
    assert set(graph.values) == {*graph.inputs, *graph.parameters}


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(p, marks=[pytest.mark.slow] * (p.stem in ("mlp", "network", "softmax")))
        for p in FILES
    ],
    ids=lambda path: path.stem,
)
def test_every_method_gives_the_slope_of_everything(path):
    graph = cgprimer.load(path)
    everything, methods = (*graph.variables, *graph.parameters), [*METHODS]
    if graph.shapes or graph.layered:  # sympy differentiates by rules of its own
        methods.remove("symbolic")
        expected = cgprimer.gradient(graph, wrt=everything, method="symbolic")
    else:
        expected = slopes(graph, graph.values, everything)
    for method in methods:
        found = cgprimer.gradient(graph, wrt=everything, method=method)
        tolerance = 1e-6 if method == "finite-difference" else 1e-12
        assert found.keys() == expected.keys()
        for name, value in found.items():
            np.testing.assert_allclose(value, expected[name], tolerance, tolerance, err_msg=method)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_command_line_needs_nothing_but_the_file(path):
    from click.testing import CliRunner

    from cgprimer.cli import cli

    result = CliRunner().invoke(cli, ["grad", str(path)])
    assert result.exit_code == 0, result.output
    for name in cgprimer.load(path).parameters:
        assert name in result.output
