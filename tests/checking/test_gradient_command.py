"""``cgprimer check gradient`` as it is typed, with submissions that run in the sandbox."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.approval import approved
from tests.cli.cli_tools import bad, good, read_json

RIGHT = """\
def gradient(xa, ab, bc, cd, ac):
    xx = xa**2
    up = 3*(bc*xx + ab*xx + ac*xa)**2
    return {"ab": up*xx, "bc": up*xx, "cd": xx, "ac": up*xa}
"""


@pytest.fixture
def submission(tmp_path: Path) -> Path:
    path = tmp_path / "ann.py"
    path.write_text(RIGHT)
    return path


def test_a_right_submission(submission: Path) -> None:
    said = good("check", "gradient", "lecture", submission)
    assert said.startswith("ann.py: 4 of 4 points\n")


def test_the_mistake_is_named(submission: Path) -> None:
    submission.write_text(RIGHT.replace('"cd": xx', '"cd": -xx').replace("up*xa}", "3*xa**3}"))
    found = read_json("check", "gradient", "lecture", submission)
    assert [part["mistake"] for part in found["parts"]] == [
        "", "", "sign", "inner function not evaluated",
    ]  # fmt: skip
    said = good("check", "gradient", "lecture", submission)
    assert "the derivative of xz^3 in xw is taken at xa instead of xz" in said


def test_the_skeleton_is_a_submission_that_is_not_right_yet(tmp_path: Path) -> None:
    options = ("lecture", "--loss", "squared-error", "--batch", 3, "--value")
    text = good("check", "gradient", *options, "--skeleton")
    assert "def gradient(xa, target, ab, bc, cd, ac):" in text
    path = tmp_path / "gradient.py"
    path.write_text(text)
    assert "0 of 5 points" in good("check", "gradient", *options, path)


def test_a_batch_in_lists_and_in_arrays(tmp_path: Path) -> None:
    lists = """\
def slopes(x, target, w, b):
    n = len(x)
    errors = [2*(w*u + b - t) for u, t in zip(x, target)]
    return sum(e*u for e, u in zip(errors, x))/n, sum(errors)/n
"""
    arrays = """\
import numpy as np
def slopes(x, target, w, b):
    error = 2*(w*x + b - target)
    return np.array([error.mean()*x.mean(), error.mean()])
"""
    graph = tmp_path / "line.cg"
    graph.write_text("input x = 1; parameter w = 2, b = 1; y = w*x + b; output y")
    options = ("--loss", "squared-error", "--batch", 4, "--function", "slopes")
    for text, mistakes in ((lists, ["", ""]), (arrays, ["product of averages", ""])):
        path = tmp_path / "ann.py"
        path.write_text(text)
        found = read_json("check", "gradient", graph, path, *options)
        assert [part["mistake"] for part in found["parts"]] == mistakes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "def grad(): pass",
            "define gradient(xa, ab, bc, cd, ac); rename `grad` to `gradient`",
        ),
        ("def gradient(x): return x['zz']", "KeyError: 'zz'"),
        ("def gradient(a, b): pass", "wrong signature: expected gradient(xa, ab, bc, cd, ac)"),
        ("def gradient(xa, ab, bc, cd, ac) return 1", "syntax error"),
        ("def gradient(**given): return open('/etc/passwd').read()", "0 of 4 points"),
    ],
)
def test_submissions_that_give_no_answer(submission: Path, text: str, said: str) -> None:
    submission.write_text(text)
    found = good("check", "gradient", "lecture", submission)
    assert said in found
    assert "0 of 4 points" in found


def test_prints_of_a_submission_are_no_answers(submission: Path) -> None:
    submission.write_text(RIGHT.replace("    xx", "    print('{\"value\": 1}')\n    xx", 1))
    found = read_json("check", "gradient", "lecture", submission)
    assert found["points"] == 4
    assert '{"value": 1}' in found["output"]


@pytest.mark.slow
def test_eight_parameters_at_a_hundred_points_take_less_than_two_seconds(tmp_path: Path) -> None:
    """As a whole process, the submission's included; of computing, whatever else runs here."""
    graph, path = tmp_path / "network.cg", tmp_path / "ann.py"
    graph.write_text("""\
input x1 = 0.5, x2 = -1
parameter w1 = 0.3, w2 = -0.2, w3 = 0.5, w4 = 0.7, b1 = 0.1, b2 = -0.3, v1 = 1.2, v2 = -0.8
h1 = tanh(w1*x1 + w2*x2 + b1)
h2 = sigmoid(w3*x1 + w4*x2 + b2)
y = v1*h1 + v2*h2
output y
""")
    path.write_text("""\
import numpy as np
def gradient(x1, x2, w1, w2, w3, w4, b1, b2, v1, v2):
    h1 = np.tanh(w1*x1 + w2*x2 + b1)
    h2 = 1/(1 + np.exp(-(w3*x1 + w4*x2 + b2)))
    d1, d2 = v1, v2*h2*(1 - h2)
    return [d1*x1, d1*x2, d2*x1, d2*x2, d1, d2, h1, h2]
""")
    before = os.times()
    said = good("check", "gradient", graph, path, "--points", 100, env={})
    after = os.times()
    assert "that of tanh in h1" in said
    spent = after.children_user + after.children_system
    assert spent - before.children_user - before.children_system < 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("lectur",), "'lecture'"),
        (("lecture", "--wrt", "zz"), "'zz'"),
        (("lecture", "--points", "0"), "x>=1"),
        (("lecture", "--of", "xz", "--loss", "huber"), ""),
    ],
)
def test_wrong_use(submission: Path, arguments: tuple[str, ...], said: str) -> None:
    approved(bad("check", "gradient", arguments[0], submission, *arguments[1:]), said)


def test_a_tolerance(tmp_path: Path) -> None:
    (tmp_path / "g.cg").write_text("input x = 1.2; parameter k = 0.7; y = k*x^2")
    (tmp_path / "a.py").write_text("def gradient(x, k):\n    return x**2*(1 + 1e-5)\n")
    assert "suspicious" in good("check", "gradient", "g.cg", "a.py", cwd=tmp_path)
    shown = good("check", "gradient", "g.cg", "a.py", "--tolerance", "1e-4", cwd=tmp_path)
    assert "1 of 1 points" in shown
    for wrong in ("0", "1", "nan", "-1"):
        said = bad("check", "gradient", "g.cg", "a.py", "--tolerance", wrong, cwd=tmp_path)
        assert "tolerance" in said
