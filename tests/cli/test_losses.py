"""``--loss`` in every command that shows a graph, and in training: columns of files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.approval import approved
from tests.cli.cli_tools import EXAMPLES, bad, good, read_json, run

NEURON = "input x = 2; parameter w = 0.5, b = -1; z = w*x + b; yhat = 1/(1 + exp(-z))"


def test_the_lectures_neuron() -> None:
    loss = ("--loss", "(yhat - y)^2/2", "--at", "y=1")
    found = read_json("grad", "-e", NEURON, *loss, "--wrt", "w,b,x", "--json")
    assert found["values"] == {"loss": 0.125}
    assert found["gradient"]["loss"] == {"w": -0.25, "b": -0.125, "x": -0.0625}
    own = read_json("grad", EXAMPLES / "logistic_loss.cg", "--wrt", "w,b,x", "--json")
    assert own["gradient"]["l"] == found["gradient"]["loss"]


@pytest.mark.parametrize(
    "command",
    [
        ("trace", "--method", "reverse"), ("trace", "--wrt", "w", "--format", "latex"),
        ("compare",), ("info",), ("tape",), ("grad", "--show"),
    ],
)  # fmt: skip
def test_the_loss_is_a_vertex_everywhere(command: tuple[str, ...]) -> None:
    at = () if command[0] in ("info", "tape") else ("--at", "target=1")
    name, *more = command
    assert "loss" in good(name, "-e", NEURON, "--loss", "cross-entropy", *at, *more)


def test_pictures_and_pages_have_the_loss(tmp_path: Path) -> None:
    for name in ("g.svg", "g.dot"):  # without values any name may be a new input
        good("draw", "-e", NEURON, "--loss", "(yhat - y)^2", "-o", name, cwd=tmp_path)
        assert "loss" in (tmp_path / name).read_text(encoding="utf-8")
    of = ("-e", NEURON, "--loss", "cross-entropy", "--at", "target=1")
    good("draw", *of, "--adjoints", "-o", "a.svg", cwd=tmp_path)
    good("step", *of, "--method", "reverse", "-o", "s.html", cwd=tmp_path)
    assert '"target":"loss"' in (tmp_path / "s.html").read_text(encoding="utf-8")


def test_classes_of_a_point() -> None:
    three = "x0 = a*x; x1 = b*x; x2 = c*x; parameter a = 1, b = 2, c = 3; input x = 1"
    by_class = read_json("grad", "-e", three, "--loss", "softmax-cross-entropy", "--at", "target=2",
                         "--json")  # fmt: skip
    at = "target_x0=0,target_x1=0,target_x2=1"
    each = read_json("grad", "-e", three, "--loss", "softmax-cross-entropy", "--at", at, "--json")
    assert each["gradient"]["loss"] == pytest.approx(by_class["gradient"]["loss"], rel=1e-14)
    row = "input x[2] = [1, 2]; parameter W[2,2] = [[1, 2], [3, 4]]; xo = W @ x"
    good("grad", "-e", row, "--loss", "softmax-cross-entropy", "--at", "target=1")
    good("grad", "-e", row, "--loss", "softmax-cross-entropy", "--at", "target=[0.5,0.5]")
    good("grad", "-e", row, "--loss", "(xo - y)^2", "--at", "y=[1,2]")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("grad", "--loss", "(yhatt - y)^2", "--at", "y=1"), "'yhat'"),
        (("grad", "--loss", "(yhat - y)^2"), "'y'"),
        (("draw", "--loss", "croos-entropy"), "'cross-entropy'"),
        (("trace", "--loss", "cross-entropy", "--at", "target=3", "--wrt", "w"), "0 ... 1"),
        (("compare", "--loss", "cross-entropy"), "target"),
        (("grad", "--loss", "softmax-cross-entropy"), "cross-entropy-logit"),
    ],
)
def test_mistakes(args: tuple[str, ...], said: str, tmp_path: Path) -> None:
    approved(bad(args[0], "-e", NEURON, *args[1:], cwd=tmp_path), said)


def test_training_reads_the_columns_that_the_loss_needs(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("x,y,note\n0,0.5,9\n1,2,9\n2,4.5,9\n", encoding="utf-8")
    (tmp_path / "c.csv").write_text("x,label\n-1,0\n0,1\n1,2\n", encoding="utf-8")
    (tmp_path / "i.csv").write_text("x,y\n1,3\n2,6\n", encoding="utf-8")
    line, few = ("train", "-e", "xo = k*x + b"), ("--epochs", "5", "--json")
    loss = "(xo - y)^2/2 + 0.1*k^2"
    found = read_json(*line, "--data", "d.csv", "--loss", loss, *few, cwd=tmp_path)
    assert found["settings"]["loss"] == loss
    assert found["loss"] < found["start_loss"]
    three = ("train", "-e", "xa = a*x + d; xb = b*x + e; xc = c*x + f")
    given = ("--data", "c.csv", "--loss", "softmax-cross-entropy")
    assert read_json(*three, *given, *few, cwd=tmp_path)["loss"] < 1.2
    alone = run("train", "-e", "input x, y; l = (k*x - y)^2", "--data", "i.csv", *few, cwd=tmp_path)
    approved(alone.stderr, "'l'")
    assert json.loads(alone.stdout)["settings"]["loss"] == "output"
    text = bad(*line, "--data", "d.csv", "--loss", "(xo - z)^2", cwd=tmp_path)
    approved(text)
    approved(bad(*line, "--data", "d.csv", cwd=tmp_path), "'xo'")
    good("train", "-e", "l = 2*p^2 + 3*q^2", "--loss", "output", "--epochs", "1", "--samples", "9")
