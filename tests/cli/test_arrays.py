"""Commands about graphs with arrays: values in brackets, elements by name, nested lists."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import cgprimer
from cgprimer.cli import cli
from cgprimer.cli.primitives_command import ARRAYS
from cgprimer.core.operations.primitive_registry import ARRAY_FUNCTIONS
from tests.approval import approved

MATRICES = "matrix_backpropagation"


def run(*arguments: str) -> str:
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_points_are_given_in_brackets():
    printed = run("grad", MATRICES, "--at", "x=[[1, 2.5]],y = 3", "--wrt", "w1,w2[0,0]")
    assert printed == (
        "L = 0.5625\nd L / d w1 = [[-1.5, 0.0],\n              [-3.75, 0.0]]\n"
        "d L / d w2[0,0] = -3.375\n"
    )
    one_for_all = run("grad", MATRICES, "--at", "w1=1;w2=[[1],[-2]]", "--json")
    at = {"w1": [[1, 1], [1, 1]], "w2": [[1], [-2]]}
    expected = cgprimer.gradient(cgprimer.load(MATRICES), at)
    for name, value in json.loads(one_for_all)["gradient"]["L"].items():
        np.testing.assert_array_equal(value, expected[name])


def test_brackets_of_deep_arrays_stand_below_each_other():
    printed = run("grad", "-e", "input x[2] = 1; parameter W[2,2] = 1; y = W @ x")
    assert printed.endswith(
        "d y / d W = [[[1.0, 1.0],\n              [0.0, 0.0]],\n"
        "             [[0.0, 0.0],\n              [1.0, 1.0]]]\n"
    )


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("x=[1,2", "'x=[1,2'"),
        ("x=[a]", "'[a]' ... x"),
        ("x=1]", "'1]' ... x"),
        ("x=[[1,2],[3]]", "'x'"),
        ("w1=[1,2]", "'w1' ... [2, 2] ... [2]"),
    ],
)
def test_values_that_do_not_fit_are_said_in_a_sentence(at, said):
    done = CliRunner().invoke(cli, ["grad", MATRICES, "--at", at])
    assert done.exit_code != 0
    approved(str(done.exception) + done.output, said)


def test_a_large_gradient_is_shown_by_its_shape():
    printed = run("grad", "-e", "input x[100] = 0.5; y = sum(x^2); output y", "--wrt", "x")
    assert printed == "y = 25.0\nd y / d x = [100]: 1, 1, 1, 1, ...\n"


def test_the_first_element_that_is_not_finite_is_named():
    text = "input x[2,2] = [[1, 2], [3, -1]]; xl = log(x); y = sum(xl); output y"
    done = CliRunner().invoke(cli, ["grad", "-e", text, "--wrt", "x"])
    assert "log(x), in xl, is nan at [1,1]" in done.output


def test_info_says_shapes_and_the_tape_has_them_on_every_line():
    assert "shapes:\n  x: [1, 2]\n" in run("info", MATRICES)
    assert json.loads(run("info", MATRICES, "--json"))["shapes"]["h_relu"] == [1, 2]
    printed = run("tape", MATRICES, "--method", "reverse").splitlines()
    assert "h = x @ w1                    # [1,2]" in printed
    assert "bar_w1 = v6 @ bar_h           # [2,2]" in printed
    assert "L = sum(v2)" in printed
    assert "bar_h_relu = bar_y_pred @ transpose(w2)" in run("grad", MATRICES, "--show")


def test_a_tape_is_written_out_in_numbers():
    lines = run("tape", "hidden_layer", "--scalars").splitlines()
    assert "v1 = W1[0,0]*x[0]" in lines
    assert lines[-2:] == ["L = v14^2", "output    L"]
    swept = run("tape", "hidden_layer", "--scalars", "--method", "reverse")
    assert "bar_W1[2,1] = bar_h[2]*x[1]" in swept


def test_functions_of_arrays_are_listed():
    printed = run("primitives")
    assert {*ARRAYS} == {*ARRAY_FUNCTIONS, "index"}
    for call, meaning, back in ARRAYS.values():
        assert call in printed
        assert meaning in printed
        assert back in printed
    assert "bar @ transpose(b)" in run("primitives", "@")
    both = run("primitives", "max")
    assert "max(a, b)" in both
    assert "max(a)" in both
    assert {"matmul", "softmax", "tanh"} <= {
        r["name"] for r in json.loads(run("primitives", "--json"))
    }


def test_sympy_has_the_elements():
    found = cgprimer.load("hidden_layer").to_sympy()
    assert str(found["h[2]"]) == "W1[2,0]*x[0] + W1[2,1]*x[1]"
    assert list(found) == ["h[0]", "h[1]", "h[2]", "y_pred", "L"]


def test_sympy_agrees_with_what_is_computed():
    import sympy

    graph = cgprimer.parse(
        "input x[2,3]; parameter W[3]; m = largest(x, 0); n = max(x) + norm(W)\n"
        "y = W @ m + dot(W, tanh(x[1])); z = concatenate(W, transpose(x)[:,0])"
    )
    at = {"x": [[1.0, 2.0, 3.0], [4.0, 0.5, 0.25]], "W": [1.0, -1.0, 2.0]}
    known = {
        sympy.Symbol(f"{name}[{','.join(map(str, place))}]", real=True): value
        for name, values in at.items()
        for place, value in np.ndenumerate(values)
    }
    for name, formula in graph.to_sympy().items():
        known[sympy.Symbol(name, real=True)] = float(formula.subs(known))
    for name, value in graph.evaluate(at).items():
        found = [v for s, v in known.items() if str(s).partition("[")[0] == name]
        np.testing.assert_allclose(found, np.ravel(value), rtol=1e-14)
