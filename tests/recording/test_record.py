"""Recording of Python functions: names, lines and derivatives of the recorded graph."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer import Value, grad, no_grad, record
from tests.approval import approved, refused

DATA = np.array([[1.0, -2.0], [3.0, 4.0]])
LABELS = np.array([0, 1])


def softmax(x: Any) -> Any:
    top = x[0]
    for i in range(1, len(x)):
        if x[i] > top:  # noqa: PLR1730 - the branch is recorded
            top = x[i]
    total = 0.0
    for i in range(len(x)):
        total = total + np.exp(x[i] - top)
    return np.exp(x - top) / total


def recurrent(w: Any, u: Any, xs: Any) -> Any:
    h = 0.0
    for x in xs:
        h = np.tanh(w * h + u * x)
    return h


def neuron(z: Any) -> Any:
    t1 = np.multiply(z, -1)
    t2 = np.exp(t1)
    t3 = np.add(t2, 1)
    y = np.divide(1, t3)
    return y


def network(weights: Any, x: Any) -> Any:
    hidden = np.maximum(x @ weights["first"], 0)
    scores = hidden @ weights["second"] + DATA
    scores = scores - scores.max(axis=1, keepdims=True)
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return -np.mean(np.log(chances[np.arange(2), LABELS]))


WEIGHTS = {
    "first": np.linspace(-1, 1, 6).reshape(2, 3),
    "second": np.linspace(1, -0.5, 6).reshape(3, 2),
}


def check_recording(function: Callable[..., Any], *args: Any) -> cgprimer.Recording:
    """Return a recording after checking its values and its derivatives by several methods."""
    recording = record(function, *args)
    graph = recording.graph
    assert np.allclose(graph.evaluate()[graph.only_output()], recording.value, 1e-13, 1e-13)
    again = cgprimer.parse(graph.text)
    assert again.text == graph.text
    at = {name: _shift(np.array(graph.values[name])) for name in graph.parameters}
    elsewhere = function(*_shift(args))
    expected_there = np.asarray(getattr(elsewhere, "data", elsewhere))
    np.testing.assert_allclose(
        again.evaluate(at)[graph.only_output()], expected_there, 1e-12, 1e-13
    )
    expected: list[Any] = []
    for part in grad(function, tuple(range(len(args))))(*args):
        expected += part.values() if isinstance(part, dict) else [part]
    for method in ("forward", "reverse", "finite-difference"):
        slopes = cgprimer.gradient(graph, method=method)
        near = 1e-5 if method == "finite-difference" else 1e-11
        for slope, wanted in zip(slopes.values(), expected, strict=True):
            np.testing.assert_allclose(slope, wanted, near, near, err_msg=method)
    return recording


def _shift(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _shift(part) for key, part in tree.items()}
    return tuple(map(_shift, tree)) if isinstance(tree, tuple) else tree + 1e-6


def test_recorded_loops_and_branches() -> None:
    first, second = record(softmax, np.array([1.0, 2.0, 3.0])), record(softmax, DATA[1, ::-1])
    s = np.array([0.09003057317038046, 0.24472847105479764, 0.6652409557748219])
    np.testing.assert_allclose(first.value, s, 1e-15)
    assert first.graph.expression("top") == "x[2]"
    assert second.graph.expression("top") == "x[0]"
    totals = [n for n in first.graph.variables if n.startswith("total")]
    assert totals == ["total", "total_2", "total_3"]
    slopes = cgprimer.jacobian(first.graph)["softmax"]["x"]
    np.testing.assert_allclose(slopes, np.diag(s) - np.outer(s, s), atol=1e-15)
    check_recording(lambda x: softmax(x)[1], np.array([1.0, 2.0, 3.0]))


def test_recorded_neuron() -> None:
    recording = check_recording(neuron, 1.5)
    values = [*recording.graph.evaluate().values()]
    assert values == [-1.5, 0.22313016014842982, 1.22313016014843, 0.8175744761936437]
    assert cgprimer.gradient(recording.graph)["z"] == pytest.approx(0.14914645207033286, rel=1e-15)
    first = neuron.__code__.co_firstlineno
    approved(re.sub(r"(?<=  )\d+", lambda n: f"<line {int(n[0]) - first}>", str(recording)))


def test_recorded_network_with_dictionary_parameters() -> None:
    recording = check_recording(network, WEIGHTS, DATA)
    assert recording.graph.parameters == ("weights_first", "weights_second", "x")
    assert recording.graph.expression("hidden") == "max(x @ weights_first, 0)"
    assert recording.graph.expression("scores_2").startswith("scores - reshape(largest(scores, 1)")
    assert recording.lines["hidden"].text.startswith("hidden = np.maximum")
    assert recording.lines["hidden"].file == __file__


CALLS = Path(__file__).with_name("recorded_calls.txt").read_text("utf-8").splitlines()[1:]


@pytest.mark.parametrize("call", CALLS)
def test_numpy_functions_are_recorded_in_the_language(call: str) -> None:
    names = {"np": np, "DATA": DATA, "grad": grad}
    function = eval(f"lambda x: {call}", names)  # noqa: S307 - of the file
    check_recording(function, np.array([[0.5, -1.5], [2.5, 0.25]]))


LINES = Path(__file__).with_name("recorded_steps.txt").read_text("utf-8").splitlines()[1:]
STEPS = [eval(f"lambda a, b: {line}", {"np": np, "DATA": DATA}) for line in LINES]  # noqa: S307
INDICES = st.integers(0, 30)
NUMBERS = st.floats(-1.25, 1.25).map(lambda f: round(f, 3) + 0.01)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(STEPS), INDICES, INDICES), min_size=1, max_size=8),
    st.tuples(*[NUMBERS] * 4),
)
def test_recordings_of_random_programs(steps: list[Any], numbers: tuple[float, ...]) -> None:
    def program(w: Any, x: Any) -> Any:
        pool = [w, x, x[1]]
        for step, one, other in steps:
            made = step(pool[one % len(pool)], pool[other % len(pool)])
            pool.append(np.clip(made, -3.0, 3.0))
        total = w * x.sum() * 0.125
        for made in pool[3:]:
            total = total + (made * made).sum()
        return total

    args = numbers[0], np.array([numbers[1:3], [numbers[3], 0.75]])
    recording = record(program, *args)
    graph = recording.graph
    np.testing.assert_allclose(graph.evaluate()[f"total_{len(steps) + 1}"], recording.value)
    expected = dict(zip(("w", "x"), grad(program, (0, 1))(*args), strict=True))
    for method in ("forward", "reverse"):
        result = cgprimer.gradient(graph, method=method)
        for name, slope in expected.items():
            np.testing.assert_allclose(result[name], slope, 1e-9, 1e-9)


def test_argument_names() -> None:
    def f(a: Any, *more: Any, scale: Any = 2.0, **others: Any) -> Any:
        return a * more[0] + more[1] * scale + others["lam"] * others["names"]["x y"]

    recording = record(f, Value(2.0, name="speed"), 3.0, 4.0, lam=0.5, names={"x y": 7.0})
    assert recording.graph.parameters == ("speed", "more_0", "more_1", "lam", "names_x_y")
    assert recording.value == 17.5
    assert cgprimer.gradient(recording.graph)["lam"] == 7.0


def test_captured_values_are_named_inputs() -> None:
    scale, bias = Value(3.0, requires_grad=False), np.array([1.0, 2.0])
    graph = record(lambda w: (w * DATA[0] * scale + bias).sum(), 2.0).graph
    assert graph.parameters == ("w",)
    assert set(graph.inputs) >= {"scale", "bias"}
    assert graph.values["bias"] == (1.0, 2.0)


class Network:
    def __init__(self) -> None:
        self.weights = Value(np.eye(2), name="W")
        self.bias = np.array([1.0, 2.0])

    def __call__(self, x: Any) -> Any:
        h = np.tanh(self.weights @ x + self.bias)
        return self.loss(h)

    def loss(self, h: Any) -> Any:
        d = h - 1.0
        return (d * d).sum()


def test_attribute_names_of_objects_methods_and_partials() -> None:
    network, x = Network(), np.array([0.25, -0.5])
    recording = record(network, x)
    approved(recording.graph.text)
    assert recording.graph.evaluate()["y"] == pytest.approx(network(x).item(), rel=1e-15)
    assert record(network.loss, x).graph.outputs == ("loss",)
    assert record(functools.partial(recurrent, 0.5, 1.0), [1.0, 2.0]).value > 0.9


def test_exception_restores_tracing_state() -> None:
    def f(x: Any) -> Any:
        y = x * 2.0
        raise KeyError(y.data)

    before = sys.gettrace()
    with pytest.raises(KeyError) as caught:
        record(f, 1.0)
    assert caught.traceback[-1].name == "f"
    assert sys.gettrace() is before
    assert (Value(1.0) * 2.0).line is None


def test_shape_error_reports_the_line() -> None:
    def f(a: Any, b: Any) -> Any:
        return (a @ b).sum()

    with refused(cgprimer.UsageError, "3 ... 4 ... test_record ... @ b"):
        record(f, np.ones(3), np.ones(4))


def freed(x: Any) -> Any:
    y = x * x
    y.backward()
    return y * 2.0


def held(x: Any) -> Any:
    with no_grad():
        factor = x * x
        factor = factor + (grad(lambda x: np.sum(x**3))(x) - 3.0 * x**2)
    return x * factor + x * x.detach()


@pytest.mark.parametrize("x", [2.0, np.array([2.0, 2.0])])
def test_no_gradient_through_no_grad_or_detach(x: Any) -> None:
    result = cgprimer.record(lambda x: np.sum(held(x)), x).graph
    for method in ("symbolic", "forward", "reverse", "path-sum"):  # differences include them
        assert np.all(cgprimer.gradient(result, method=method)["x"] == 6.0)
    assert result.evaluate({"x": 2 * x})[result.outputs[0]] == np.size(x) * (64.0 + 16.0)


@pytest.mark.parametrize(
    ("function", "args", "contains"),
    [
        (lambda n: n * n, (3,), "arg ... 3.0"),
        (freed, (2.0,), "retain_graph"),
        (lambda x: x * 2.0, (float("nan"),), "'x'"),
        (lambda x: x.sum(), (np.ones((0, 2)),), ""),
        (lambda x: (x[:0] * np.ones((0, 2))).sum(), (np.ones((3, 2)),), ""),
        (lambda x: x * 2.0, (1.0, 2.0), ""),
    ],
)
def test_unsupported_functions_raise(function: Any, args: Any, contains: str) -> None:
    with refused(cgprimer.UsageError, contains):
        record(function, *args)


def test_infinities_are_recorded_as_quotients() -> None:
    assert record(lambda x: np.maximum(x, -np.inf), 2.0).graph.expression("y") == "max(x, -1/0)"


def test_in_place_modification_while_recording_raises() -> None:
    outside = Value([1.0, 2.0])

    def f(w: Any) -> Any:
        first = w * outside
        with cgprimer.no_grad():
            w -= 0.5
        return (w * outside + first).sum()

    def g(w: Any) -> Any:
        first = w * outside
        outside.data[0] = 7.0
        return (w * outside + first).sum()

    for function in (f, g):
        with refused(cgprimer.UsageError, "w = w -"):
            record(function, 2.0)
    outside.data -= 1.0  # changes before recording are allowed
    assert record(lambda w: (w * outside).sum(), 2.0).value == 14.0
