"""What does not fit says both shapes, where it stands, and what would fit."""

from __future__ import annotations

import pytest

import cgprimer
from cgprimer.core.methods import differentiate
from cgprimer.errors import ShapeError, SourceError
from tests.approval import refused

MISFITS = {
    # text: what the message says, and what the carets stand under
    "parameter W[2,3]; input x[2]\nxh = 2 + (W @ x)*3": ("[2,3] @ [2]", "W @ x"),
    "parameter W[2,3], b[4]; input x[3]\nxh = tanh(W @ x + b)": ("[2] and [4]", "W @ x + b"),
    "input x[3]\nxh = (x @ x[0:3]) + (x[1:])**2.0 * (x)": (
        "[2] and [3] in *",
        "(x[1:])**2.0 * (x)",
    ),
    "parameter W[2,3]; input x[3]\nxh = W @ x[:3] + W @ x[:2]": ("", "W @ x[:2]"),
    "input x[3]\nxh = 2*sum((x + 1), 2.0)": ("[3] ... 2", "sum((x + 1), 2.0)"),
    "input x[3]\nxh = sum(x, 1)": ("0", "sum(x, 1)"),
    "input x[3]; parameter W[3,3]\nxh = w @ x": ("'w' ... 'W'", "w @ x"),
    "input x[2,3,4], w[3,4,5]\nxh = x @ w": ("[2,3,4] @ [3,4,5]", "x @ w"),
    "input x[3]\nxh = mean(x, 0.5)": ("integers", "mean(x, 0.5)"),
    "input x[2,3]\nxh = sum(x, 0, 0)": ("", "sum(x, 0, 0)"),
    "input x[3]\nxh = 1 + x[5]": ("5 ... [3]", "x[5]"),
    "input x[3]\nxh = x[[0,-4]]": ("-4", "x[[0,-4]]"),
    "input x[3]\nxh = x[::0]": ("0", "x[::0]"),
    "input x[3]\nxh = x[0,1]": ("2 ... [3]", "x[0,1]"),
    "input x[3]; parameter k\nxh = k[0] + x": ("", "k[0]"),
    "input x[3]; parameter k\nxh = k @ x": ("[3]", "k @ x"),
    "input x[3]\nxh = broadcast(x, 2)": ("[3] and [2]", "broadcast(x, 2)"),
    "input x[3]\nxh = 1 + sum(broadcast(x, 1000000, 100, 3))": (
        "[1000000,100,3] ... 100,000,000",
        "broadcast(x, 1000000, 100, 3)",
    ),
    "input x[3]\nxh = reshape(x, 2, 2)": ("[2,2]", "reshape(x, 2, 2)"),
    "input x[3]; parameter k\nxh = concatenate(x, k)": ("[3]", "concatenate(x, k)"),
    "input x[2,3]\nxh = transpose(x, 0, 0)": ("[0, 0]", "transpose(x, 0, 0)"),
}
DECLARED = {
    "input x[3] = [1, 2]\nxh = x": "3 ... 'x' ... 2",
    "input x[2,2] = [[1, 2], [3]]\nxh = x": "2 ... 'x' ... 1",
    "input x[2] = [[1], 2]\nxh = x": "'x'",
    "input x[2,2] = [1, 2]\nxh = x": "'x' ... 2 ... '1'",
    "input x = [1, 2]\nxh = x": "'x' ... x[2]",
    "input x[2] = [1, xa]\nxh = x": "'x'",
    "input x[0]\nxh = x": "'x'",
    "input x[1000000,1000000]\nxh = x": "'x' ... 100,000,000",
    "input x[99999999999999999999999] = 1\nxh = x": "'x'",
    "input x[" + "1" * 5000 + "]\nxh = x": "",
    "input x[2.5]\nxh = x": "'2.5'",
    "input x[2]\nxh = x[0.5]": "'0.5'",
}


@pytest.mark.parametrize("text", MISFITS)
def test_misfits_are_shown_in_the_text_by_tape_and_by_values(text, tmp_path):
    said, marked = MISFITS[text]
    path = tmp_path / "net.cg"
    path.write_text(text)
    graph = cgprimer.load(path)
    ones = dict.fromkeys((*graph.inputs, *graph.parameters), 1.0)
    for compute in (lambda: cgprimer.tape(graph), lambda: graph.evaluate(ones)):
        with refused(ShapeError, said) as caught:
            compute()
        line = text.split("\n")[1]
        where = f"net.cg:2:{line.index(marked) + 1}: "
        assert where in str(caught.value)
        carets = str(caught.value).split("\n")[2]
        assert carets.count("^") == len(marked)
        assert isinstance(caught.value, SourceError)


@pytest.mark.parametrize("text", DECLARED)
def test_declared_values_have_the_declared_shape(text):
    with refused(cgprimer.ExpressionSyntaxError, DECLARED[text]):
        cgprimer.parse(text)


def test_given_values_have_the_declared_shape():
    graph = cgprimer.parse("input x[3]; xh = 2*x")
    with refused(ShapeError, "[3] ... [2]"):
        graph.evaluate({"x": [1, 2]})
    for wrong in ([[1, 2], [3]], "abc", [1j, 2, 3], [None, 1, 2]):
        with refused(cgprimer.UsageError):
            graph.evaluate({"x": wrong})


def test_second_derivatives_of_an_array_say_what_to_do():
    graph = cgprimer.parse("parameter w[2] = 1; xh = w*w")
    with refused(cgprimer.DifferentiationError, "'xh' ... [2]"):
        cgprimer.hessian(graph)
    graph = cgprimer.parse("parameter w[2] = 1; xh = w @ w")
    with refused(cgprimer.UsageError, "'w'"):
        cgprimer.hessian(graph, wrt="w[0]")


def test_hints_for_arrays_can_be_followed():
    graph = cgprimer.parse("input x[3]; parameter W[2,3]; h = W @ x")
    with refused(cgprimer.MissingValueError, "x[3] = 0.5"):
        graph.evaluate()
    with refused(cgprimer.UsageError):
        graph.evaluate({"W": [[1, 2, 3], [1, 2]], "x": 1})
    at = {"W": 1, "x": 1}
    with pytest.raises(cgprimer.UsageError, match=r"--wrt 'W\[0,0\]'"):
        cgprimer.trace(graph, at, of="h[0]", wrt="W[0]")


def test_seeds_of_arrays_are_shown_by_their_elements():
    graph = cgprimer.parse("input x[3]; parameter W[2,3]; h = W @ x")
    program = differentiate(cgprimer.tape(graph), ["h"], ["W"], method="reverse")
    assert str(program).endswith("""# 2 passes
#   1: seed_h[0] = 1, the other seeds 0
#   2: seed_h[1] = 1, the other seeds 0""")
