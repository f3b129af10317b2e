"""Examples are self-contained, and scripts print the numbers of the lectures."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import cgprimer
from tests.approval import approved
from tests.cases.case_tools import EXAMPLES, METHODS
from tests.methods.slopes import reference_gradient

FILES = sorted(EXAMPLES.glob("*.cg"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_example_is_self_contained(path):
    graph = cgprimer.load(path)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# "), "the file starts with a comment on what it teaches"
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
def test_example_gradients_by_every_method(path):
    graph = cgprimer.load(path)
    everything, methods = (*graph.variables, *graph.parameters), [*METHODS]
    if graph.shapes or graph.layered:  # sympy's derivatives are independent of the table
        methods.remove("symbolic")
        expected = cgprimer.gradient(graph, wrt=everything, method="symbolic")
    else:
        expected = reference_gradient(graph, graph.values, everything)
    for method in methods:
        result = cgprimer.gradient(graph, wrt=everything, method=method)
        tolerance = 1e-6 if method == "finite-difference" else 1e-12
        assert result.keys() == expected.keys()
        for name, value in result.items():
            np.testing.assert_allclose(value, expected[name], tolerance, tolerance, err_msg=method)


SCRIPTS = sorted(EXAMPLES.glob("*.py"))
PICTURES = {"two_path_gradients": "two_paths.png", "sine_gradients": "sine_chain.png"}
DIGITS = {  # expected output; approved texts mask numbers with many digits
    "recurrent_unit": "0.998146762128968 ... 0.003687663930368 ... 0.011246733018121",
    "wrapped_functions": "0.22313016014842982 ... 1.22313016014843 ... 0.8175744761936437 ..."
    " backward pass: 0.149146452070332",
}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_example_script_output(
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = path.read_text(encoding="utf-8")
    for word in ("Teaches: ", "Source: ", f"Run: python examples/{path.name}"):
        assert word in text
    monkeypatch.chdir(tmp_path)
    pictures = [PICTURES[path.stem]] if path.stem in PICTURES else []
    monkeypatch.setattr("sys.argv", [str(path), *pictures])
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out
    assert [file.name for file in tmp_path.iterdir()] == pictures
    for name in pictures:
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    if path.stem == "two_gaussian_classes":
        assert " in 2,000 steps of one sample\n" in printed
        assert float(printed.split()[-1]) < 1e-12
        return
    approved(printed, DIGITS.get(path.stem, ""))
    if path.stem == "dynamic_graph":
        jacobian = [float(n) for n in re.findall(r"-?0\.\d+", printed.partition("s s^T")[2])]
        s = np.array([0.09003057, 0.24472847, 0.66524096])
        expected = np.diag(s) - np.outer(s, s)
        np.testing.assert_allclose(np.reshape(jacobian, (3, 3)), expected, atol=1e-6)
