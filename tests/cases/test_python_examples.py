"""The examples in Python run as their head says, and print what the lectures have."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.cases.case_tools import EXAMPLES

FILES = sorted(EXAMPLES.glob("*.py"))


def printed(name: str, folder: Path, *arguments: str) -> str:
    run = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={"PYTHONPATH": str(EXAMPLES.parent), "PATH": ""},
    )
    assert run.returncode == 0, run.stderr
    assert [path.name for path in folder.iterdir()] == list(arguments)
    return run.stdout


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_says_what_it_teaches_and_is_tested_here(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for word in ("Teaches: ", "Source: ", f"Run: python examples/{path.name}"):
        assert word in text
    assert f'printed("{path.stem}"' in Path(__file__).read_text(encoding="utf-8")


def test_dynamic_beside_static(tmp_path: Path) -> None:
    out = printed("dynamic_graph", tmp_path)
    assert re.search(r"^top = x\[2\] +\d+  top = x\[i\]$", out, re.MULTILINE)
    assert re.search(r"^top = x\[0\] +\d+  top = x\[0\]$", out, re.MULTILINE)
    assert "\ntop = max(x)\n" in out
    assert re.findall(r"(\w+) +\[ ?0. +0. *(\S+)\]", out) == [
        ("rising", "1."),
        ("falling", "nan"),
        ("static", "1."),
    ]
    jacobian = [float(n) for n in re.findall(r"-?0\.\d+", out.partition("s s^T")[2])]
    s = np.array([0.09003057, 0.24472847, 0.66524096])
    np.testing.assert_allclose(np.reshape(jacobian, (3, 3)), np.diag(s) - np.outer(s, s), atol=1e-6)
    assert out.endswith("equal: True\n")


def test_the_recurrent_unit(tmp_path: Path) -> None:
    out = printed("recurrent_unit", tmp_path)
    assert "h = 0.998146762128968\ndh/dw = 0.003687663930368\ndh/du = 0.011246733018121\n" in out
    assert [out.count(f"\n{name} = tanh") for name in ("h", "h_2", "h_3")] == [3, 2, 1]
    found = [float(n) for n in out.splitlines()[-1].strip("()").split(",")]
    assert found == pytest.approx([0.003687663930367874, 0.011246733018121341], rel=1e-12)


def test_the_two_paths(tmp_path: Path) -> None:
    out = printed("two_path_gradients", tmp_path, "two_paths.png")
    grad_fns = dict(re.findall(r"^(\w+) +requires_grad (\w+ +grad_fn \S+)$", out, re.MULTILINE))
    assert grad_fns.pop("d") == "True   grad_fn <Add>"
    assert grad_fns.pop("L") == "True   grad_fn <Sub>"
    assert grad_fns.pop("w4") == "True   grad_fn None"
    assert set(grad_fns.values()) == {"False  grad_fn None"}
    assert "L = 15.0 dL/da = 2.5 dL/dw1 = -1.0 dL/dw2 = -8.0 dL/dw3 = -6.0 dL/dw4 = 2.0" in out
    assert "a.grad = 5.0\nafter zero_grad: 0.0" in out
    assert "created implicitly only for scalar outputs" in out
    assert (tmp_path / "two_paths.png").read_bytes().startswith(b"\x89PNG")


def test_the_sine_chain(tmp_path: Path) -> None:
    out = printed("sine_gradients", tmp_path, "sine_chain.png")
    assert "Sin -> Add -> (Mul -> (None, AccumulateGrad w), AccumulateGrad b)" in out
    assert "Mul ['None', '<AccumulateGrad w>']" in out
    assert "d sum/dw = 3.0 1.5 -1.5 -3.0 -1.5 1.5 ...\n3 cos(3w + b): True\n" in out
    assert (tmp_path / "sine_chain.png").read_bytes().startswith(b"\x89PNG")


def test_the_wrapped_functions(tmp_path: Path) -> None:
    out = printed("wrapped_functions", tmp_path)
    assert out.startswith(
        "-1.5\n0.22313016014842982\n1.22313016014843\n0.8175744761936437\nFinal answer: 0.818\n"
    )
    assert "    exp = 0.22313016014842982\n      multiply = -1.5\n        z = 1.5\n" in out
    slope = re.search(r"backward pass: (\S+)", out)
    assert slope
    assert float(slope[1]) == pytest.approx(0.14914645207033286, rel=1e-12)
    assert "sigmoid = 1/(exp(-z) + 1)" in out


def test_the_quantization(tmp_path: Path) -> None:
    out = printed("quantization", tmp_path)
    assert "forward: [3. 4.]\nbackward of (2, 3): [2.75 3.5 ]\n" in out
    assert "reverse: {'k': 3.0, 'x': 2.75}\n" in out
    assert "a custom backward pass" in out


def test_the_hamilton_product(tmp_path: Path) -> None:
    out = printed("hamilton_product", tmp_path)
    assert "[-6.25 -5.    9.75  0.5 ]\nd sum/dp = [10. -2.  0. -4.]\n" in out
    assert "d sum/dq = [ 1.75  3.25 -2.75 -0.25]\n" in out
    counts = {
        name: [int(n.replace(",", "")) for n in row.split()]
        for name, row in re.findall(r"^(matrix saved|computed again) +(.*)$", out, re.MULTILINE)
    }
    assert counts["matrix saved"][2] == 16 * 32 * 32 * 8
    assert counts["computed again"][2] == 0
    assert [row[3] for row in counts.values()] == [sum(row[:3]) for row in counts.values()]
    ratio = counts["matrix saved"][3] / counts["computed again"][3]
    assert 2.5 < ratio < 3  # 24 to 8 without the input and its gradient
    assert f"\n{ratio:.2f} : 1\n" in out
    assert out.endswith("same gradients: True\n")


def test_an_optional_argument(tmp_path: Path) -> None:
    out = printed("optional_argument", tmp_path)
    assert "needs_input_grad: (False, True, False)\n" in out
    assert "needs_input_grad: (False, True, True)\n" in out
    assert out.count("d sum/d weight = [[4.0, 4.0, 4.0], [6.0, 6.0, 6.0]]\n") == 2
    assert out.endswith("d sum/d bias = [2.0, 2.0, 2.0]\n")


def test_two_gaussian_classes(tmp_path: Path) -> None:
    first, last = printed("two_gaussian_classes", tmp_path).splitlines()
    losses = re.fullmatch(r"loss (\S+) -> (\S+) in 2,000 steps of one sample", first)
    assert losses is not None
    assert float(losses[2]) < float(losses[1])
    assert float(last.split()[-1]) < 1e-12
