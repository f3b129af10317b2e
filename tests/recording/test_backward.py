"""The backward pass: accumulation, freed graphs, in-place changes and cached passes."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer import DifferentiationError, UsageError, Value, grad, no_grad
from cgprimer.recording import cached_passes
from tests.approval import refused, warned


def test_two_path_example_of_the_lecture() -> None:
    """The example two_path_gradients prints the same numbers."""
    values = [Value(v) for v in (2.0, 3.0, -1.0, 0.5, 4.0)]
    a, w1, w2, w3, w4 = values
    for value in values[:-1]:
        value.requires_grad_(False)
    b = w1 * a
    assert (b.requires_grad, b.grad_fn, (10.0 - w4 * b).requires_grad) == (False, None, True)
    for value in values:
        value.requires_grad_()
    loss = 10.0 - (w3 * (w1 * a) + w4 * (w2 * a))
    loss.backward(retain_graph=True)
    assert [v.grad for v in values] == [2.5, -1.0, -8.0, -6.0, 2.0]
    loss.backward()
    assert [v.grad for v in values] == [5.0, -2.0, -16.0, -12.0, 4.0]
    a.zero_grad()
    assert a.grad == 0.0


def test_sine_chain_example() -> None:
    start = np.linspace(0, 2 * np.pi, 25)
    w, b = Value(start, name="w"), Value(start, name="b")
    out = (3.0 * w + b).sin()
    assert str(out.grad_fn) == "Sin -> Add -> (Mul -> (None, AccumulateGrad w), AccumulateGrad b)"
    for upstream, contains in (([], "np.ones"), ([np.ones(24)], "(25,)")):
        with refused(DifferentiationError, contains):
            out.backward(*upstream)
    out.backward(np.ones(25))
    np.testing.assert_allclose(w.grad, 3 * np.cos(4 * start), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("start", [2.0, np.array([1.0, 2.0])])
def test_second_backward_through_a_freed_graph_raises(start: object) -> None:
    x = Value(start)
    y = x * x
    loss = y.sum()
    loss.backward()
    for again in (loss, (y * 2.0).sum()):
        with pytest.raises(DifferentiationError, match=r"freed.*'(mul|sum)'.*\n.*again.backward"):
            again.backward()
    np.testing.assert_array_equal(x.grad, 2 * np.array(start))


@pytest.mark.parametrize(
    ("start", "change"),
    [
        ([1.0, 2.0], "x.data[0] = 5.0"),
        ([1.0, 2.0], "x.data -= 1.0"),
        ([1.0, 2.0], "x.data = np.zeros(2)"),
        ([1.0, 2.0], "with no_grad(): x -= 0.5"),
        (3.0, "x.data -= 1.0"),
    ],
)
def test_in_place_modification_before_backward_raises(start: Any, change: str) -> None:
    x = Value(start, name="x")
    (x * x).sum().backward()
    np.testing.assert_array_equal(x.grad, 2.0 * np.array(start))
    y = (x * x).sum()
    exec(change, {"x": x, "np": np, "no_grad": no_grad})  # noqa: S102 - of the list above
    with pytest.raises(DifferentiationError, match="modified in place"):
        y.backward()


def test_arrays_saved_for_backward_are_read_only() -> None:
    x, data = Value([1.0, 2.0]), Value([3.0, 4.0], requires_grad=False)
    held, inputs = x.data, data.data
    held[0] = 3.0
    first = (x * data).sum()
    for array in (held, inputs):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 9.0
    with no_grad():
        assert (x * 2.0).data.flags.writeable
    first.backward()
    held[0] = inputs[0] = 1.0
    with no_grad():
        _ = x * data
    held[0] = 2.0
    assert (x.data.tolist(), data.data.tolist()) == ([2.0, 2.0], [1.0, 4.0])


def test_parameters_can_be_updated_after_forward_without_backward() -> None:
    w, x = Value(np.ones(3)), np.arange(3.0)
    for step in range(3):
        ((w * x) ** 2).sum().backward()
        evaluation = ((w * x) ** 2).sum()  # not under no_grad()
        if step % 2:
            w.data -= 0.1 * w.grad
        else:
            w.data[:] = w.data - 0.1 * w.grad
        w.grad = None
        with pytest.raises(DifferentiationError, match="modified in place"):
            evaluation.backward()
    np.testing.assert_allclose(w.data, [1.0, 0.8**3, 0.2**3])


def test_arrays_are_writeable_after_assignment_or_transform() -> None:
    x, w = Value([1.0, 2.0]), Value([3.0, 4.0])
    _ = x * 2.0
    x.data = np.array(x.data)
    x.data[0] = 5.0
    assert grad(lambda v: (v * w).sum())(1.0) == 7.0
    w.data[0] = 1.0
    cgprimer.memory(lambda v: (v * w).sum(), 1.0)
    w.data -= 1.0
    assert (x.data.tolist(), w.data.tolist()) == ([5.0, 2.0], [0.0, 3.0])


def test_views_cannot_modify_saved_arrays() -> None:
    x = Value([1.0, 2.0])
    turned = x.reshape(2, 1)
    y = (x * x).sum()
    with pytest.raises(ValueError, match="read-only"):
        turned.data[0, 0] = 5.0
    with no_grad():
        turned -= 1.0  # allocates a new array, because the memory of the view belongs to x
    y.backward()
    np.testing.assert_array_equal(x.grad, [2.0, 4.0])


def test_views_created_under_no_grad_do_not_alias_saved_arrays() -> None:
    for wanted in (True, False):
        x, w = Value(np.ones((2, 2))), Value([[1.0, 2.0], [3.0, 4.0]], requires_grad=wanted)
        with no_grad():
            views = [w.T, w[::-1], w.reshape(4).reshape(2, 2), np.broadcast_to(w[0], (2, 2))]
        total = sum((x * view).sum() for view in views)
        w.data[...] = 9.0
        total.backward()
        assert x.grad.tolist() == [[6.0, 11.0], [7.0, 12.0]]


@pytest.mark.parametrize("step", [0.5, 2, np.float32(0.5), np.array([1.0, 2.0])])
def test_in_place_update_with_and_without_recording(step: Any) -> None:
    w = Value(np.ones((3, 2)))
    same, held = w, w.data
    with no_grad():
        w -= step
        with pytest.raises(UsageError):
            w += np.ones((2, 3, 2))
    assert w is same
    assert w.requires_grad
    assert held.tolist() == w.data.tolist() == (np.ones((3, 2)) - step).tolist()
    before = w.data.copy()
    w -= np.full((3, 2), 0.25)
    assert w is not same
    assert same.data.tolist() == before.tolist()
    assert w.data.tolist() == (before - 0.25).tolist()
    w.sum().backward()
    assert same.grad.tolist() == np.ones((3, 2)).tolist()


def test_comparisons_block_infinite_gradients() -> None:
    x = Value(0.0)
    kept = x.log()  # -inf, with derivative inf
    y = x * 2.0 + Value(np.where(kept < 0.0, 1.0, 0.0), requires_grad=False)
    y.backward()
    assert x.grad == 2.0


@pytest.mark.slow
def test_backward_of_a_million_operations() -> None:
    x, b = Value(0.1), Value(0.999)
    y = x
    for _ in range(500_000):
        y = y * b + 0.5
    y.backward()
    assert math.isclose(x.grad, 0.999**500_000, rel_tol=1e-9, abs_tol=1e-300)
    del y


def test_results_are_read_only_and_in_place_changes_raise() -> None:
    for used in (lambda y: y.sum(), lambda y: y):
        y = Value([1.0, 2.0]).exp()
        with pytest.raises(ValueError, match="read-only"):
            y.data[0] = 0.0
        with no_grad():
            y *= 0.0
        with refused(DifferentiationError, "'exp'"):
            used(y).backward(np.ones(used(y).shape))


def test_intermediate_scalars_have_gradients_but_arrays_do_not() -> None:
    x = Value([1.0, 2.0])
    y = x * 3.0
    s = y.sum()
    loss = s * s
    loss.backward(retain_graph=True)
    with warned(UserWarning, "no_grad() ... w -="):
        assert (s.grad, loss.grad, y.grad) == (18.0, 1.0, None)
    loss.backward()
    assert s.grad == 36.0
    x.grad = 0  # as in micrograd's scripts
    (x * 2.0).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_grad_fn_returns_operand_gradients() -> None:
    a, b = Value(3.0, name="a"), Value(2.0, name="b")
    assert (a * b).grad_fn(10.0) == (20.0, 30.0)
    assert (a * a).grad_fn(1.0) == (3.0, 3.0)
    assert (a * 4.0).grad_fn(1.0) == (4.0, None)
    assert (a.grad, b.grad) == (0.0, 0.0)
    x, w = Value([[1.0, 2.0], [3.0, 4.0]]), Value(np.ones((2, 3)))
    of_x, of_w = (x @ w).grad_fn(np.ones((2, 3)))
    np.testing.assert_array_equal(of_x, [[3, 3], [3, 3]])
    np.testing.assert_array_equal(of_w, [[4, 4, 4], [6, 6, 6]])


def test_grad_fn_errors() -> None:
    a = Value([1.0, 2.0], name="a")
    y = (a * a).sum()
    with pytest.raises(DifferentiationError, match="shape"):
        y.grad_fn(np.ones(2))
    square = y.grad_fn.next_functions[0][0]
    a.data = [5.0, 2.0]
    with pytest.raises(DifferentiationError, match="modified in place"):
        square(np.ones(2))
    z = a.sum()
    function = z.grad_fn
    z.backward()
    for use in (lambda: function(1.0), lambda: function.saved):
        with pytest.raises(DifferentiationError, match="freed"):
            use()


DATA = np.linspace(-1.0, 2.0, 12).reshape(3, 4)


def _network(w: Any, b: Any) -> Any:
    out = np.tanh(DATA.astype(w.dtype) @ w + b)
    out = out - np.max(out.detach().data, axis=1, keepdims=True)
    return (np.log(np.exp(out).sum(1)) - out[:, 0] / 3.0).mean()


def read_functions(file: str, arguments: str) -> dict[str, Callable[..., Any]]:
    """Return the functions of a file by their names."""
    lines = Path(__file__).with_name(file).read_text("utf-8").splitlines()[1:]
    return {
        name: eval(f"lambda {arguments}: {text}", globals())  # noqa: S307 - of the file
        for name, text in (line.split(": ", 1) for line in lines)
    }


FUNCTIONS = read_functions("cached_functions.txt", "w, b") | {"a network": _network}


@contextlib.contextmanager
def caching_disabled() -> Iterator[None]:
    """Disable the cache of passes."""
    recent, cached_passes._recent = cached_passes._recent, {}
    largest, cached_passes._MAX_VALUES = cached_passes._MAX_VALUES, 0
    try:
        yield
    finally:
        cached_passes._recent, cached_passes._MAX_VALUES = recent, largest


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_cached_pass_matches_uncached_pass(name: str, dtype: Any) -> None:
    cached_passes._passes_by_structure.clear()
    cached_passes._recent.clear()
    random = np.random.default_rng(0)
    for _ in range(4):
        leaves = [Value(random.normal(size=s).astype(dtype)) for s in ((4, 5), (5,))]
        gradients = []
        for context in (contextlib.nullcontext(), caching_disabled()):
            for leaf in leaves:
                leaf.zero_grad()
            with context:
                FUNCTIONS[name](*leaves).backward()
            gradients.append([leaf.grad for leaf in leaves])
        for ours, theirs in zip(*gradients, strict=True):
            assert ours.dtype == theirs.dtype == dtype
            np.testing.assert_allclose(ours, theirs, 1e-6 if dtype == np.float32 else 1e-13)
    kept = cached_passes._passes_by_structure.values()
    assert any(isinstance(p, cached_passes.CachedPass) for p in kept)


SIMILAR_GRAPHS = read_functions("similar_graphs.txt", "odd, x, y")


@pytest.mark.parametrize("kind", SIMILAR_GRAPHS)
def test_cached_pass_is_not_reused_for_similar_graphs(kind: str) -> None:
    """Consecutive graphs differ in one property only."""
    for turn in (*range(8), 1, 1, 1, 0, 0, 0, 1):
        odd = bool(turn % 2)
        x = Value([1.0 + turn, 2.0], name="x")
        y = Value([3.0] if odd and kind == "shape" else [3.0, 4.0], name="y")
        y.requires_grad = odd or kind != "not wanted"
        loss = SIMILAR_GRAPHS[kind](odd, x, y).sum()
        with caching_disabled():
            loss.backward(retain_graph=True)
        expected = [np.copy(v.grad) if v.requires_grad else None for v in (x, y)]
        x.zero_grad(), y.zero_grad()
        loss.backward()
        assert [str(v.grad) for v in (x, y)] == [*map(str, expected)]  # including signs of zeros


def test_cached_pass_detects_changed_or_freed_graphs() -> None:
    x, y = Value([1.0, 2.0], name="x"), Value([3.0, 4.0], name="y")

    def computed() -> tuple[Value, Value]:
        inner = x * x
        return inner, (inner * 2.0).sum()

    for _ in range(3):
        computed()[1].backward()
    assert cached_passes._recent
    _, loss = computed()
    x.data = [7.0, 2.0]
    with refused(DifferentiationError, "'x'"):
        loss.backward()
    inner, loss = computed()
    with no_grad():
        inner -= 7.0
    with refused(DifferentiationError):
        loss.backward()
    _, loss = computed()
    loss.backward()
    with refused(DifferentiationError):
        loss.backward()
    for _ in range(3):
        doubled, squared = x * 2.0, y * y
        (doubled * squared).sum().backward()
    squared = y * y  # in another order, and modified in between
    y.data = [9.0, 4.0]
    doubled = x * 2.0
    with refused(DifferentiationError, "'y'"):
        (doubled * squared).sum().backward()


def test_in_place_update_does_not_alias_the_operand() -> None:
    w, step = Value(np.ones((4, 5))), np.full((4, 5), 0.25)
    with no_grad():
        w -= 1.0 * step
        w -= step
        Value.__isub__(w, step)  # called as a method
        steps = [step]
        w -= steps[0]
        w -= step[::-1]
        w -= np.asfortranarray(step)
    assert step.tolist() == np.full((4, 5), 0.25).tolist()
    assert w.data.tolist() == np.full((4, 5), -0.5).tolist()
    step[0, 0] = 9.0
    assert w.data[0, 0] == -0.5
