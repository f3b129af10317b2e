"""What does not fit says both shapes, where it stands, and what would fit."""

from __future__ import annotations

import pytest

import cgprimer
from cgprimer.core.methods import differentiate
from cgprimer.errors import ShapeError, SourceError

MISFITS = {
    # text: what the message says, and what the carets stand under
    "parameter W[2,3]; input x[2]\nxh = 2 + (W @ x)*3": ("[2,3] @ [2] does not fit", "W @ x"),
    "parameter W[2,3], b[4]; input x[3]\nxh = tanh(W @ x + b)": ("[2] and [4]", "W @ x + b"),
    "input x[3]\nxh = (x @ x[0:3]) + (x[1:])**2.0 * (x)": ("* of", "(x[1:])**2.0 * (x)"),
    "parameter W[2,3]; input x[3]\nxh = W @ x[:3] + W @ x[:2]": ("does not", "W @ x[:2]"),
    "input x[3]\nxh = 2*sum((x + 1), 2.0)": ("[3] has no axis 2", "sum((x + 1), 2.0)"),
    "input x[3]\nxh = sum(x, 1)": ("its only axis is 0", "sum(x, 1)"),
    "input x[3]; parameter W[3,3]\nxh = w @ x": ("'w' is a number, 'W' has sizes", "w @ x"),
    "input x[2,3,4], w[3,4,5]\nxh = x @ w": ("[2,3,4] @ [3,4,5]: a stack of", "x @ w"),
    "input x[3]\nxh = mean(x, 0.5)": ("integers", "mean(x, 0.5)"),
    "input x[2,3]\nxh = sum(x, 0, 0)": ("named twice", "sum(x, 0, 0)"),
    "input x[3]\nxh = 1 + x[5]": ("the index 5 is outside of [3]", "x[5]"),
    "input x[3]\nxh = x[[0,-4]]": ("the index -4 is outside", "x[[0,-4]]"),
    "input x[3]\nxh = x[::0]": ("steps of 0", "x[::0]"),
    "input x[3]\nxh = x[0,1]": ("2 places does not fit [3]", "x[0,1]"),
    "input x[3]; parameter k\nxh = k[0] + x": ("a single number has no places", "k[0]"),
    "input x[3]; parameter k\nxh = k @ x": ("not a number and [3]", "k @ x"),
    "input x[3]\nxh = broadcast(x, 2)": ("[3] and [2]", "broadcast(x, 2)"),
    "input x[3]\nxh = 1 + sum(broadcast(x, 1000000, 100, 3))": (
        "[1000000,100,3] has more than 100,000,000 numbers",
        "broadcast(x, 1000000, 100, 3)",
    ),
    "input x[3]\nxh = reshape(x, 2, 2)": ("they do not fill [2,2]", "reshape(x, 2, 2)"),
    "input x[3]; parameter k\nxh = concatenate(x, k)": ("[3] and a number", "concatenate(x, k)"),
    "input x[2,3]\nxh = transpose(x, 0, 0)": ("[0, 0] is no order", "transpose(x, 0, 0)"),
}
DECLARED = {
    "input x[3] = [1, 2]\nxh = x": "3 values of 'x' belong here, not 2",
    "input x[2,2] = [[1, 2], [3]]\nxh = x": "2 values of 'x' belong here, not 1",
    "input x[2] = [[1], 2]\nxh = x": "a number as the value of 'x', one bracket a size",
    "input x[2,2] = [1, 2]\nxh = x": "'x' has 2 axes here, found '1'",
    "input x = [1, 2]\nxh = x": "a number as the value of 'x', one bracket a size, as x[2]",
    "input x[2] = [1, xa]\nxh = x": "a number as the value of 'x'",
    "input x[0]\nxh = x": "the sizes of 'x'",
    "input x[1000000,1000000]\nxh = x": "'x' would have more than 100,000,000 numbers",
    "input x[99999999999999999999999] = 1\nxh = x": "'x' would have more than",
    "input x[" + "1" * 5000 + "]\nxh = x": "expected a whole number",
    "input x[2.5]\nxh = x": "expected a whole number, found '2.5'",
    "input x[2]\nxh = x[0.5]": "expected a whole number, found '0.5'",
}


@pytest.mark.parametrize("text", MISFITS)
def test_misfits_are_shown_in_the_text_by_tape_and_by_values(text, tmp_path):
    said, marked = MISFITS[text]
    path = tmp_path / "net.cg"
    path.write_text(text)
    graph = cgprimer.load(path)
    ones = dict.fromkeys((*graph.inputs, *graph.parameters), 1.0)
    for compute in (lambda: cgprimer.tape(graph), lambda: graph.evaluate(ones)):
        with pytest.raises(ShapeError) as caught:
            compute()
        line = text.split("\n")[1]
        where = f"net.cg:2:{line.index(marked) + 1}: "
        assert where in str(caught.value)
        assert said in str(caught.value)
        carets = str(caught.value).split("\n")[2]
        assert carets.count("^") == len(marked)
        assert isinstance(caught.value, SourceError)


def test_a_product_that_does_not_fit_says_what_would():
    graph = cgprimer.parse("parameter W[8,4]; input x[3]; xh = W @ x")
    with pytest.raises(ShapeError, match=r"\[8,3\] @ \[3\] would fit"):
        cgprimer.tape(graph)


@pytest.mark.parametrize("text", DECLARED)
def test_declared_values_have_the_declared_shape(text):
    with pytest.raises(cgprimer.ExpressionSyntaxError) as caught:
        cgprimer.parse(text)
    assert DECLARED[text] in str(caught.value)


def test_given_values_have_the_declared_shape():
    graph = cgprimer.parse("input x[3]; xh = 2*x")
    with pytest.raises(ShapeError, match=r"has the shape \[3\], the value \[2\]"):
        graph.evaluate({"x": [1, 2]})
    for wrong in ([[1, 2], [3]], "abc", [1j, 2, 3], [None, 1, 2]):
        with pytest.raises(cgprimer.UsageError, match="a real number or an array"):
            graph.evaluate({"x": wrong})


def test_second_derivatives_of_an_array_say_what_to_do():
    graph = cgprimer.parse("parameter w[2] = 1; xh = w*w")
    with pytest.raises(cgprimer.DifferentiationError, match=r"'xh' has the shape \[2\]"):
        cgprimer.hessian(graph)
    graph = cgprimer.parse("parameter w[2] = 1; xh = w @ w")
    with pytest.raises(cgprimer.UsageError, match="take 'w' as a whole"):
        cgprimer.hessian(graph, wrt="w[0]")


def test_the_shape_of_an_output_is_not_declared():
    with pytest.raises(
        cgprimer.DefinitionError, match=r"(?s)1:20: an output is computed.*write: output z"
    ):
        cgprimer.parse("input x[3]; output z[2]; z = x")


@pytest.mark.parametrize("name", ["x[0", "x[0]]", "x[]", "x[a]"])
def test_an_element_has_its_brackets(name):
    graph = cgprimer.parse("input x[3] = 1; z = sum(x)")
    with pytest.raises(cgprimer.UsageError, match="no variable or parameter"):
        cgprimer.gradient(graph, wrt=name)


def test_hints_for_arrays_can_be_followed():
    graph = cgprimer.parse("input x[3]; parameter W[2,3]; h = W @ x")
    with pytest.raises(cgprimer.MissingValueError, match=r"in the text: input x\[3\] = 0.5"):
        graph.evaluate()
    with pytest.raises(cgprimer.UsageError, match="equally long"):
        graph.evaluate({"W": [[1, 2, 3], [1, 2]], "x": 1})
    at = {"W": 1, "x": 1}
    with pytest.raises(cgprimer.UsageError, match=r"--wrt 'W\[0,0\]'"):
        cgprimer.trace(graph, at, of="h[0]", wrt="W[0]")


def test_a_product_by_its_name_elsewhere_is_said():
    with pytest.raises(cgprimer.UnknownFunctionError, match="write a @ b"):
        cgprimer.parse("input x[3]; parameter W[2,3]; h = matmul(W, x)")


def test_seeds_of_arrays_are_shown_by_their_elements():
    graph = cgprimer.parse("input x[3]; parameter W[2,3]; h = W @ x")
    program = differentiate(cgprimer.tape(graph), ["h"], ["W"], method="reverse")
    assert str(program).endswith("""# 2 passes
#   1: seed_h[0] = 1, the other seeds 0
#   2: seed_h[1] = 1, the other seeds 0""")
