"""The backward pass: what it adds to, what it lets go of, and what it refuses."""

from __future__ import annotations

import gc
import math
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer import DifferentiationError, UsageError, Value, grad, no_grad
from cgprimer.recording.backward_pass import compute_adjoints
from tests.approval import refused, warned


def test_the_two_path_notes_with_one_parameter_that_requires_a_gradient() -> None:
    a, w1, w2, w3 = (Value(v, requires_grad=False) for v in (2.0, 3.0, -1.0, 0.5))
    w4 = Value(4.0, name="w4")
    b, c = w1 * a, w2 * a
    d = w3 * b + w4 * c
    loss = 10.0 - d
    assert (b.requires_grad, c.requires_grad, d.requires_grad, loss.requires_grad) == (
        False,
        False,
        True,
        True,
    )
    assert b.grad_fn is None
    assert w4.grad_fn is None
    assert str(loss.grad_fn) == "Sub -> (None, Add -> (None, Mul -> (AccumulateGrad w4, None)))"
    loss.backward()
    assert (loss.data, w4.grad, w3.grad) == (15.0, 2.0, None)


def test_all_gradients_of_the_two_path_notes_and_a_second_pass_that_adds() -> None:
    values = [Value(v) for v in (2.0, 3.0, -1.0, 0.5, 4.0)]
    a, w1, w2, w3, w4 = values
    loss = 10.0 - (w3 * (w1 * a) + w4 * (w2 * a))
    loss.backward(retain_graph=True)
    assert [v.grad for v in values] == [2.5, -1.0, -8.0, -6.0, 2.0]
    loss.backward()
    assert [v.grad for v in values] == [5.0, -2.0, -16.0, -12.0, 4.0]
    a.zero_grad()
    assert a.grad == 0.0


def test_the_sine_chain() -> None:
    start = np.linspace(0, 2 * np.pi, 25)
    w, b = Value(start, name="w"), Value(start, name="b")
    out = (3.0 * w + b).sin()
    assert str(out.grad_fn) == "Sin -> Add -> (Mul -> (None, AccumulateGrad w), AccumulateGrad b)"
    assert [f and f.name for f, _ in out.grad_fn.next_functions] == ["Add"]
    with refused(DifferentiationError, "np.ones"):
        out.backward()
    with refused(DifferentiationError, "(25,)"):
        out.backward(np.ones(24))
    out.backward(np.ones(25))
    np.testing.assert_allclose(w.grad, 3 * np.cos(4 * start), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(w.grad[:6], [3, 1.5, -1.5, -3, -1.5, 1.5], rtol=1e-12)


def test_three_steps_in_the_words_of_pytorch() -> None:
    """Case F1: what ``backward`` gives is what the lecture's three lines give."""
    x, y = Value([[1.0, 2.0]], requires_grad=False), 1.0
    w1, w2 = Value([[1.0, -1.0], [0.5, -2.0]]), Value([[1.0], [3.0]])
    h = x.mm(w1)
    h_relu = h.clamp(min=0)
    y_pred = h_relu.matmul(w2)
    loss = (y_pred - y).pow(2).sum()
    loss.backward(retain_graph=True)
    grad_y = 2.0 * (y_pred - y)
    grad_w2 = h_relu.t().mm(grad_y)
    grad_h = np.where(h < 0, 0.0, grad_y.mm(w2.t()))
    grad_w1 = x.t().mm(grad_h)
    assert loss.item() == 1.0
    assert w2.grad.tolist() == grad_w2.data.tolist() == [[4.0], [0.0]]
    assert w1.grad.tolist() == grad_w1.data.tolist() == [[2.0, 0.0], [4.0, 0.0]]


@pytest.mark.parametrize("start", [2.0, np.array([1.0, 2.0])])
def test_a_graph_is_freed_by_its_pass_and_says_so_the_second_time(start: object) -> None:
    x = Value(start)
    y = x * x
    loss = y.sum()
    loss.backward()
    for again in (loss, (y * 2.0).sum()):
        with pytest.raises(DifferentiationError, match=r"freed.*'(mul|sum)'.*\n.*again.backward"):
            again.backward()
    np.testing.assert_array_equal(x.grad, 2 * np.array(start))


def test_nothing_that_requires_a_gradient_is_said() -> None:
    with refused(DifferentiationError):
        (Value(1.0, requires_grad=False) * 2.0).backward()


def test_data_that_a_pass_needs_may_not_change_before_it() -> None:
    def used() -> tuple[Value, Value]:
        x = Value([1.0, 2.0], name="x")
        return x, (x * x).sum()

    x, y = used()
    assert x.data.tolist() == [1.0, 2.0]  # reading changes nothing
    y.backward()
    np.testing.assert_array_equal(x.grad, [2.0, 4.0])
    x, y = used()
    x.data[0] = 5.0
    with pytest.raises(DifferentiationError, match="modified in place"):
        y.backward()
    x, y = used()
    x.data -= 1.0
    with pytest.raises(DifferentiationError, match="modified in place"):
        y.backward()
    x, y = used()
    x.data = np.zeros(2)
    with pytest.raises(DifferentiationError, match="modified in place"):
        y.backward()
    x, y = used()
    with no_grad():
        x -= 0.5
    with pytest.raises(DifferentiationError, match="modified in place"):
        y.backward()
    number = Value(3.0, name="w")
    y = number * number
    number.data -= 1.0
    with pytest.raises(DifferentiationError, match="'w'"):
        y.backward()


def test_what_is_changed_before_it_is_used_or_after_the_pass_is_nobodys_concern() -> None:
    x = Value([1.0, 2.0])
    held = x.data
    held[0] = 5.0
    (x * x).sum().backward()
    np.testing.assert_array_equal(x.grad, [10.0, 4.0])
    held[1] = 7.0
    x.zero_grad()
    y = (x * x).sum()
    assert x.data is held  # read, and not written to
    y.backward()
    np.testing.assert_array_equal(x.grad, [10.0, 14.0])


def test_an_array_that_a_graph_uses_is_read_only_until_the_pass() -> None:
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


def test_parameters_may_change_after_a_forward_pass_without_a_backward_pass() -> None:
    w, x = Value(np.ones(3)), np.arange(3.0)
    evaluations = []
    for step in range(3):
        loss = ((w * x) ** 2).sum()
        loss.backward()
        evaluations.append(((w * x) ** 2).sum())  # not under no_grad()
        if step % 2:
            w.data -= 0.1 * w.grad
        else:
            w.data[:] = w.data - 0.1 * w.grad
        w.grad = None
    np.testing.assert_allclose(w.data, [1.0, 0.8**3, 0.2**3])
    for evaluation in evaluations:
        with pytest.raises(DifferentiationError, match="modified in place"):
            evaluation.backward()


def test_an_array_is_released_when_data_are_assigned_or_a_transform_ends() -> None:
    x, w = Value([1.0, 2.0]), Value([3.0, 4.0])
    _ = x * 2.0
    x.data = np.array(x.data)
    x.data[0] = 5.0
    assert grad(lambda v: (v * w).sum())(1.0) == 7.0
    w.data[0] = 1.0
    cgprimer.memory(lambda v: (v * w).sum(), 1.0)
    w.data -= 1.0
    assert (x.data.tolist(), w.data.tolist()) == ([5.0, 2.0], [0.0, 3.0])


def test_parameters_that_are_assigned_between_two_uses_are_noticed_by_the_first() -> None:
    x = Value([1.0, 2.0])
    first = (x * x).sum()
    x.data = [9.0, 2.0]
    second = (x * x).sum()
    second.backward()
    with pytest.raises(DifferentiationError, match="modified in place"):
        first.backward()


def test_writing_into_a_view_is_noticed_or_changes_nothing_else() -> None:
    x = Value([1.0, 2.0])
    turned = x.reshape(2, 1)
    y = (x * x).sum()
    with pytest.raises(ValueError, match="read-only"):
        turned.data[0, 0] = 5.0
    with no_grad():
        turned -= 1.0  # a new array: the view's memory belongs to x
    y.backward()
    np.testing.assert_array_equal(x.grad, [2.0, 4.0])


def test_a_view_that_nobody_recorded_is_nobody_elses() -> None:
    for wanted in (True, False):
        x, w = Value(np.ones((2, 2))), Value([[1.0, 2.0], [3.0, 4.0]], requires_grad=wanted)
        with no_grad():
            views = [w.T, w[::-1], w.reshape(4).reshape(2, 2), np.broadcast_to(w[0], (2, 2))]
        total = sum((x * view).sum() for view in views)
        w.data[...] = 9.0
        total.backward()
        assert x.grad.tolist() == [[6.0, 11.0], [7.0, 12.0]]


def test_a_step_under_no_grad_is_a_step() -> None:
    w = Value([1.0, -2.0])
    same = w
    for _ in range(3):
        w.zero_grad()
        (w * w).sum().backward()
        with no_grad():
            w -= 0.25 * w.grad
    assert w is same
    assert w.requires_grad
    np.testing.assert_array_equal(w.data, [0.125, -0.25])
    with no_grad(), refused(UsageError):
        w += np.ones((3, 2))


def test_whoever_holds_the_data_sees_every_step_and_double_stays_double() -> None:
    for step in (0.5, 2, np.float32(0.5), np.array([1.0, 2.0]), np.array([1.0, 2.0], "f")):
        w, b = Value(np.ones((3, 2))), Value(1.0)
        held = w.data
        with no_grad():
            w -= step
            b -= np.float32(0.1)
        assert held.tolist() == w.data.tolist() == (np.ones((3, 2)) - step).tolist()
        assert type(b.data) is float


def test_gradients_of_two_leaves_do_not_share_an_array() -> None:
    a, b = Value([1.0, 2.0]), Value([3.0, 4.0])
    (a + b).sum().backward()
    a.grad[0] = 7.0
    np.testing.assert_array_equal(b.grad, [1.0, 1.0])


def test_arrays_are_released_by_the_pass() -> None:
    x = Value(np.ones((200, 200)))
    inner = x.tanh()
    held = [weakref.ref(inner._data), weakref.ref(inner)]
    loss = (inner * inner).sum()
    del inner
    gc.disable()
    try:
        assert held[0]() is not None
        loss.backward()
        assert [ref() for ref in held] == [None, None]
    finally:
        gc.enable()


def test_a_long_chain_of_arrays_needs_no_more_than_its_forward_pass_kept() -> None:
    x = Value(np.full(20_000, 0.5))
    tracemalloc.start()
    y = x
    for _ in range(50):
        y = y.sin()
    kept, _ = tracemalloc.get_traced_memory()
    y.sum().backward()
    _, peak = tracemalloc.get_traced_memory()
    del y
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    each = 20_000 * 8
    assert kept > 50 * each
    assert peak < kept + 8 * each
    assert after < 3 * each


def test_adjoints_of_numbers_on_the_way_are_kept_as_micrograd_does() -> None:
    x = Value(3.0)
    inner = x * x
    (inner + inner).backward()
    assert (inner.grad, x.grad) == (2.0, 12.0)


def test_nothing_flows_back_through_what_has_no_slope_infinities_neither() -> None:
    x = Value(0.0)
    kept = x.log()  # -inf, with the slope inf
    y = x * 2.0 + Value(np.where(kept < 0.0, 1.0, 0.0), requires_grad=False)
    y.backward()
    assert x.grad == 2.0


@pytest.mark.slow
def test_a_million_operations_need_no_recursion() -> None:
    x, b = Value(0.1), Value(0.999)
    y = x
    for _ in range(500_000):
        y = y * b + 0.5
    y.backward()
    assert math.isclose(x.grad, 0.999**500_000, rel_tol=1e-9, abs_tol=1e-300)
    del y


def test_numbers_and_arrays_of_one_number_get_the_same() -> None:
    def f(x: Value) -> Value:
        return ((x * x + 1.0).log() / (2.0 - x) ** 3 - x.tanh() * abs(-x)).sigmoid().relu()

    for at in (-1.5, 0.0, 0.3):
        one, array = Value(at), Value([at])
        f(one).backward()
        f(array).sum().backward()
        assert one.grad == pytest.approx(array.grad[0], rel=1e-14, abs=1e-300)
        assert grad(f)(at) == one.grad


def test_a_pass_can_stop_at_what_was_there_before() -> None:
    x = Value(2.0)
    middle = x * x
    found = compute_adjoints(middle * middle, leaf_serial=middle.serial)
    assert found[middle] == 8.0
    assert x not in found


def test_a_result_is_read_only_and_its_change_in_place_is_noticed() -> None:
    for used in (lambda y: y.sum(), lambda y: y):
        y = Value([1.0, 2.0]).exp()
        with pytest.raises(ValueError, match="read-only"):
            y.data[0] = 0.0
        with no_grad():
            y *= 0.0
        with refused(DifferentiationError, "'exp'"):
            used(y).backward(np.ones(used(y).shape))


def test_numbers_on_the_way_have_their_gradient_beside_arrays_and_inner_arrays_none() -> None:
    x = Value([1.0, 2.0])
    y = x * 3.0
    s = y.sum()
    loss = s * s
    loss.backward(retain_graph=True)
    with warned(UserWarning, "no_grad() ... w -="):
        assert (s.grad, loss.grad, y.grad) == (18.0, 1.0, None)
    loss.backward()
    assert s.grad == 36.0
    x.grad = 0  # as micrograd's scripts do it
    (x * 2.0).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_leaf_takes_a_pass_that_begins_with_it_as_often_as_it_comes() -> None:
    for _ in range(3):
        x = Value([1.0, 2.0])
        x.backward([3.0, 4.0])
        assert x.grad.tolist() == [3.0, 4.0]


@pytest.mark.parametrize("function", [lambda x: x + 1.0, lambda x: (x * np.ones(2)).sum()])
def test_a_number_of_single_precision_gets_a_gradient_of_its_own(
    function: Callable[[Any], Any],
) -> None:
    x = Value(np.float32(2.0))
    function(x).backward(1.0)
    assert (x.grad, x.grad.dtype) == (function(1.0) - function(0.0), np.float32)


# --- single steps of the backward pass --------------------------------------------------------


def test_a_step_called_with_a_gradient_returns_those_of_its_operands() -> None:
    a, b = Value(3.0, name="a"), Value(2.0, name="b")
    assert (a * b).grad_fn(10.0) == (20.0, 30.0)
    assert (a * a).grad_fn(1.0) == (3.0, 3.0)
    assert (a * 4.0).grad_fn(1.0) == (4.0, None)
    assert (a.grad, b.grad) == (0.0, 0.0)
    x, w = Value([[1.0, 2.0], [3.0, 4.0]]), Value(np.ones((2, 3)))
    of_x, of_w = (x @ w).grad_fn(np.ones((2, 3)))
    np.testing.assert_array_equal(of_x, [[3, 3], [3, 3]])
    np.testing.assert_array_equal(of_w, [[4, 4, 4], [6, 6, 6]])


def test_the_chain_rule_by_hand_is_the_backward_pass() -> None:
    w, b = Value(0.7, name="w"), Value(0.2, name="b")
    y = (w * 3.0 + b).sin()
    stack = [(y.grad_fn, 1.0)]
    while stack:
        function, gradient = stack.pop()
        parts = function(gradient)
        stack += [
            (following, part)
            for (following, _), part in zip(function.next_functions, parts, strict=False)
            if following is not None
        ]
    by_hand = w.grad, b.grad
    w.zero_grad(), b.zero_grad()
    y.backward()
    assert by_hand == (w.grad, b.grad)


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (lambda a, b: a + b, []),
        (lambda a, b: a * b, ["self", "other"]),
        (lambda a, b: a * 2.0, ["other"]),
        (lambda a, b: np.exp(a), ["result"]),
        (lambda a, b: np.sin(a), ["self"]),
    ],
)
def test_a_step_shows_what_it_has_saved(function: Any, names: list[str]) -> None:
    a, b = Value(3.0), Value(2.0)
    y = function(a, b)
    assert list(y.grad_fn.saved) == names
    data = {"self": 3.0, "other": 2.0, "result": y.data}
    for name in names:
        assert getattr(y.grad_fn, f"_saved_{name}") == data[name]
    with pytest.raises(AttributeError, match="_saved_weight"):
        y.grad_fn._saved_weight  # noqa: B018


def test_mistakes_with_single_steps() -> None:
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
