"""The examples in Python run as their head says, and print what the lectures have."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from tests.cases.case_tools import EXAMPLES

FILES = sorted(EXAMPLES.glob("*.py"))
PICTURES = {"two_path_gradients": "two_paths.png", "sine_gradients": "sine_chain.png"}
PRINTED = {  # what each example prints
    "dynamic_graph": ["\ntop = max(x)\n", "equal: True\n"],
    "recurrent_unit": [
        "h = 0.998146762128968\ndh/dw = 0.003687663930368\ndh/du = 0.011246733018121\n",
        "(0.00368766393036",
    ],
    "two_path_gradients": [
        "L = 15.0 dL/da = 2.5 dL/dw1 = -1.0 dL/dw2 = -8.0 dL/dw3 = -6.0 dL/dw4 = 2.0",
        "a.grad = 5.0\nafter zero_grad: 0.0",
        "created implicitly only for scalar outputs",
    ],
    "sine_gradients": [
        "Sin -> Add -> (Mul -> (None, AccumulateGrad w), AccumulateGrad b)",
        "d sum/dw = 3.0 1.5 -1.5 -3.0 -1.5 1.5 ...\n3 cos(3w + b): True\n",
    ],
    "wrapped_functions": [
        "0.22313016014842982\n1.22313016014843\n0.8175744761936437\nFinal answer: 0.818\n",
        "backward pass: 0.149146452070332",
        "sigmoid = 1/(exp(-z) + 1)",
    ],
    "quantization": [
        "forward: [3. 4.]\nbackward of (2, 3): [2.75 3.5 ]\n",
        "reverse: {'k': 3.0, 'x': 2.75}\n",
    ],
    "hamilton_product": [
        "[-6.25 -5.    9.75  0.5 ]\nd sum/dp = [10. -2.  0. -4.]\n",
        "d sum/dq = [ 1.75  3.25 -2.75 -0.25]\n",
        "same gradients: True\n",
    ],
    "optional_argument": [
        "needs_input_grad: (False, True, False)\n",
        "needs_input_grad: (False, True, True)\n",
        "d sum/d weight = [[4.0, 4.0, 4.0], [6.0, 6.0, 6.0]]\n",
        "d sum/d bias = [2.0, 2.0, 2.0]\n",
    ],
    "two_gaussian_classes": [" in 2,000 steps of one sample\n"],
}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_prints_what_it_teaches(
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
    for part in PRINTED[path.stem]:
        assert part in printed
    assert [file.name for file in tmp_path.iterdir()] == pictures
    for name in pictures:
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    if path.stem == "dynamic_graph":
        jacobian = [float(n) for n in re.findall(r"-?0\.\d+", printed.partition("s s^T")[2])]
        s = np.array([0.09003057, 0.24472847, 0.66524096])
        expected = np.diag(s) - np.outer(s, s)
        np.testing.assert_allclose(np.reshape(jacobian, (3, 3)), expected, atol=1e-6)
    if path.stem == "two_gaussian_classes":
        assert float(printed.split()[-1]) < 1e-12
