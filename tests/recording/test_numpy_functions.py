"""Supported numpy functions: values, and gradients against difference quotients."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer import CgprimerError, Value, grad, hessian, record
from cgprimer.errors import ShapeError
from cgprimer.recording.numpy_functions import FUNCTIONS, UFUNCS
from tests.approval import approved, refused
from tests.arrays.array_graphs import difference_quotients

RNG = np.random.default_rng(0)
A, B = RNG.uniform(0.2, 0.8, (3, 4)), RNG.uniform(0.2, 0.8, (3, 4))
SQUARE, ROW, TALL = RNG.uniform(0.2, 0.8, (3, 3)), B[0], RNG.uniform(0.2, 0.8, (4, 2))
CUBE = RNG.uniform(0.2, 0.8, (2, 3, 4))
MASK = A > 0.5

ARRAYS = {
    "A": A, "B": B, "SQUARE": SQUARE, "ROW": ROW, "TALL": TALL, "CUBE": CUBE, "HALF": 0.5,
    "BLOCK": RNG.uniform(0.2, 0.8, (3, 3, 3)),
}  # fmt: skip
CONSTANTS = {"np": np, "MASK": A > 0.5, "ORDER": np.argsort(A, axis=1)}


def read_calls() -> list[tuple[str, str]]:
    """Return names of functions, and calls of them with arrays."""
    lines = Path(__file__).with_name("numpy_calls.txt").read_text("utf-8").splitlines()
    return [tuple(line.split(": ", 1)) for line in lines if not line.startswith("#")]  # type: ignore[misc]


def compile_call(call: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return a call as a function of its arrays, and the arrays."""
    code = compile(call, "numpy_calls.txt", "eval")
    names = [name for name in code.co_names if name in ARRAYS]

    def function(*values: Any) -> Any:
        return eval(code, CONSTANTS | dict(zip(names, values, strict=True)))  # noqa: S307

    return function, tuple(ARRAYS[name] for name in names)


CALLS = [(name, call) for name, call in read_calls() if name != "refused"]
REFUSED = [call for name, call in read_calls() if name == "refused"]


def check_against_numpy(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Check the value, the gradient of a weighted sum, and float32."""
    plain = np.asarray(function(*args))
    values = [Value(a) for a in args]
    made = function(*values)
    assert isinstance(made, Value)
    assert made.shape == plain.shape
    np.testing.assert_allclose(made.data, plain, rtol=1e-14, atol=1e-15)
    weights = np.random.default_rng(1).uniform(0.5, 1.5, plain.shape)
    (made * weights).sum().backward()
    for index, value in enumerate(values):

        def total(moved: Any, index: int = index) -> Any:
            return np.sum(function(*args[:index], moved, *args[index + 1 :]) * weights)

        expected = difference_quotients(total, np.array(args[index], float), 1e-6)
        np.testing.assert_allclose(value.grad, expected, rtol=2e-7, atol=2e-8)
    single = [Value(np.asarray(a, np.float32)) for a in args]
    made = function(*single)
    if (
        function is not np.float_power
    ):  # numpy returns float64; recorded values keep the precision of the base
        assert made.dtype == np.asarray(function(*[v.detach().data for v in single])).dtype
    made.sum().backward()
    assert {np.asarray(v.grad).dtype for v in single} == {np.dtype(np.float32)}


def test_every_supported_function_has_a_case() -> None:
    assert {name for name, _ in CALLS} == {*FUNCTIONS, "matmul", "axes"}
    approved(" ".join(sorted(ufunc.__name__ for ufunc in UFUNCS)))


@pytest.mark.parametrize("call", [call for _, call in CALLS])
def test_values_and_gradients_match_numpy(call: str) -> None:
    check_against_numpy(*compile_call(call))


@pytest.mark.parametrize("call", REFUSED)
def test_unsupported_arguments_raise(call: str) -> None:
    function, args = compile_call(call)
    with pytest.raises(CgprimerError):
        function(*map(Value, args))


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda u: u.__name__)
def test_ufuncs_broadcast(ufunc: Any) -> None:
    offset = ufunc is np.arccosh
    unary = [(A + offset,), (0.4 + offset,)]
    binary = [(A, B), (A, ROW), (TALL[:, :1], ROW), (0.3, ROW), (A, 0.7)]
    for args in [(A, TALL)] if ufunc is np.matmul else [unary, binary][ufunc.nin - 1]:
        check_against_numpy(ufunc, args)


def test_gradient_of_prod_with_a_zero_factor() -> None:
    np.testing.assert_array_equal(grad(np.prod)(np.array([2.0, 0.0, 3.0])), [0.0, 6.0, 0.0])


def reference_log_softmax(a: Any, axis: int) -> Any:
    moved = a - np.max(getattr(a, "_data", a), axis=axis, keepdims=True)
    return moved - np.log(np.sum(np.exp(moved), axis=axis, keepdims=True))


@pytest.mark.parametrize("axis", [-1, 0, 1, -3])
def test_log_softmax_matches_numpy(axis: int) -> None:
    """Check values, first and second derivatives, and that softmax is the exponential."""
    weights, scores = RNG.normal(size=CUBE.shape), 3.0 * CUBE
    mine, theirs = (
        lambda a: np.sum(a.log_softmax(axis) ** 2 * weights),
        lambda a: np.sum(reference_log_softmax(a, axis) ** 2 * weights),
    )
    for derivative in (grad, hessian):
        result, expected = (derivative(function)(scores) for function in (mine, theirs))
        np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-12)
    value = Value(scores)
    softmax = np.exp(value.log_softmax(axis).data)
    np.testing.assert_allclose(value.softmax(axis).data, softmax, rtol=1e-14)
    recording = record(mine, scores)
    assert "log_softmax(a, " in str(recording)
    result = cgprimer.gradient(recording.graph, method="forward")["a"]
    np.testing.assert_allclose(result, grad(theirs)(scores), rtol=1e-10)


def test_log_softmax_edge_cases() -> None:
    large = Value(np.array([[1000.0, 0.0], [-np.inf, 0.0]], np.float32)).log_softmax(1)
    assert large.dtype == np.float32
    assert large.data.tolist() == [[0.0, -1000.0], [-np.inf, 0.0]]
    empty = Value(np.zeros((2, 0)))
    for axis in (0, 1):
        assert empty.log_softmax(axis).shape == empty.softmax(axis).shape == (2, 0)
    assert np.pad(empty, 1).data.tolist() == np.zeros((4, 2)).tolist()
    assert not Value(np.zeros((2, 0)), requires_grad=False).prod(1).requires_grad
    for axis in (2, "x", None, [0], 1.0):
        with pytest.raises(ShapeError, match="axis"):
            Value(A).log_softmax(axis)  # type: ignore[arg-type]
    with refused(ShapeError):
        Value(1.0).log_softmax()


@pytest.mark.parametrize("function", [np.inner, np.dot], ids=lambda f: f.__name__)
def test_inner_and_dot_of_all_ranks(function: Any) -> None:
    right = {np.inner: [(), (3,), (5, 3), (2, 4, 3)], np.dot: [(), (3,), (3, 5), (2, 3, 4)]}
    for a, b in itertools.product([(), (3,), (2, 3), (4, 2, 3)], right[function]):
        check_against_numpy(function, (RNG.normal(size=a), RNG.normal(size=b)))


def test_norm_and_std_gradients_match_torch() -> None:
    lines = Path(__file__).with_name("torch_gradients.txt").read_text("utf-8").splitlines()
    for call, *numbers in (line.split(" | ") for line in lines[1:]):
        at, gradient = (np.array(json.loads(text), float) for text in numbers)
        array = Value(at)
        out, plain = (eval(call, {"np": np, "a": a}) for a in (array, at))  # noqa: S307
        out.backward()
        assert float(out.data) == pytest.approx(float(plain)), call
        np.testing.assert_allclose(array.grad, gradient, atol=1e-15, err_msg=call)


def test_boolean_mask_indexing() -> None:
    mask = CUBE[0] > 0.5
    check_against_numpy(lambda x: x[mask] ** 2, (CUBE[0],))
    for index in ((..., mask), (slice(1), mask)):
        check_against_numpy(lambda x, index=index: x[index] ** 2, (CUBE,))
