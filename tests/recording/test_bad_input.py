"""What a user gets wrong: one clear error each, of the package's own, shapes with their line."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer import (
    CgprimerError,
    DifferentiationError,
    UsageError,
    Value,
    checkpoint,
    grad,
    jacobian,
    no_grad,
)
from cgprimer.errors import ShapeError
from tests.approval import refused

X, W = Value(np.ones((8, 4)), name="x"), Value(np.ones((3, 4)), name="w")


@pytest.mark.parametrize(
    "data",
    [
        [[1, 2], [3]],
        "abc",
        ["a"],
        None,
        {"a": 1},
        np.array([object()]),
        1j,
        np.array([1 + 2j]),
    ],
)
def test_what_is_no_real_array(data: Any) -> None:
    for wrong in (lambda: Value(data), lambda: X + data, lambda: grad(lambda v: v)(data)):
        if isinstance(data, dict | list) and wrong.__code__.co_names[0] == "grad":
            continue  # a tree of arguments
        with refused(UsageError) as caught:
            wrong()
        assert f"{__file__}:{wrong.__code__.co_firstlineno}: for wrong in" in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: X @ W, "[8,4] @ [3,4]"),
        (lambda: X + W, "+ ... [8,4] ... [3,4]"),
        (lambda: X @ 5.0, ""),
        (lambda: X.reshape(5, 5), "[8,4] ... 32 ... [5,5]"),
        (lambda: X.sum(axis=3), "[8,4] ... 3"),
        (lambda: X.sum(axis=1.5), "1.5"),
        (lambda: np.sum(X, axis=7), "7"),
        (lambda: np.mean(X, axis=(0, 0)), ""),
        (lambda: X[9], "9 ... [8,4]"),
        (lambda: X[:, 4], "index 4"),
        (lambda: X[0, 0, 0], "2 ... 3"),
        (lambda: X.transpose(0, 0), ""),
        (lambda: np.concatenate([X, W[:, :3]]), ""),
        (lambda: np.stack([X, W]), ""),
        (lambda: np.where(X > 0, X, W), ""),
        (lambda: np.max(Value(np.ones((0, 3)))), ""),
        (lambda: np.broadcast_to(X, (3, 3)), "[8,4]"),
        (lambda: np.swapaxes(X, 0, 4), "swapaxes ... axis2 ... 4"),
        (lambda: np.expand_dims(X, 5), "5"),
        (lambda: np.squeeze(X, axis=0), ""),
        (lambda: np.flip(X, axis=3), "3"),
        (lambda: np.einsum("ij,kl->im", X, W), ""),
        (lambda: np.einsum("ij,ij->i", X, W), "'i' ... 8 ... 3"),
        (lambda: np.einsum("ij", X, W), ""),
        (lambda: np.tensordot(X, W, 1), "4 ... 3"),
        (lambda: np.split(X, 3), ""),
        (lambda: np.take(X, 99), ""),
    ],
)
def test_shapes_that_do_not_fit_say_both_and_the_line(wrong: Any, said: str) -> None:
    with refused(ShapeError, said) as caught:
        wrong()
    place = f"{__file__}:{wrong.__code__.co_firstlineno}: (lambda:"
    assert place in str(caught.value)
    assert str(caught.value).count(__file__) == 1


@pytest.mark.parametrize("key", [np.nan, 1.5, np.array([0.0, 1.0]), "a", X])
def test_indices_that_are_no_whole_numbers(key: Any) -> None:
    with refused(UsageError):
        X[key]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: np.fft.fft(X), "numpy.fft.fft ... numpy.matmul"),
        (lambda: np.median(X), "numpy.median ... numpy.sort"),
        (lambda: np.linalg.inv(X), "numpy.linalg.inv"),
        (lambda: np.linalg.svd(X), "numpy.linalg.svd"),
        (lambda: np.quantile(X, 0.5), "numpy.quantile ... numpy.sort"),
        (lambda: np.remainder(X, 2), "numpy.remainder ... numpy.floor"),
        (lambda: np.add.accumulate(X), "numpy.add.accumulate"),
        (lambda: np.bitwise_and(X, 1), "numpy.bitwise_and"),
        (lambda: np.isin(X, [1]), "numpy.isin ... primitive()"),
        (lambda: np.add(X, 1, out=np.ones((8, 4))), ""),
        (lambda: np.exp(X, dtype=np.float32), "dtype="),
        (lambda: np.average(X, returned=True), ""),
        (lambda: np.linalg.norm(X, ord=1), "Euclidean"),
    ],
)
def test_functions_of_numpy_that_are_not_differentiable_are_named(wrong: Any, said: str) -> None:
    with refused(DifferentiationError, said) as caught:
        wrong()
    assert str(caught.value).count(f"{__file__}:{wrong.__code__.co_firstlineno}: (lambda:") == 1


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: np.asarray(X), "detach"),
        (lambda: math.exp(X), "(8, 4)"),
        (lambda: math.exp(Value(1.0)), "np.exp"),
        (lambda: grad(lambda x: x * math.exp(x))(1.0), "np.exp"),
        (lambda: cgprimer.record(lambda x: x * math.exp(x), 1.0), "np.exp"),
        (lambda: cgprimer.record("x*2"), ""),  # type: ignore[arg-type]
        (lambda: cgprimer.record(lambda x, w: x * w, 1.0), "'w'"),
        (lambda: cgprimer.gradient(cgprimer.record(abs, 1.0)), "Recording ... recording.graph"),
        (lambda: X % 2, "numpy.remainder cannot"),
        (lambda: X // 2, "numpy.floor_divide cannot"),
        (lambda: setattr(Value([1.0, 2.0]), "grad", np.ones(3)), "(2,) ... (3,)"),
        (lambda: int(X), ""),
        (lambda: bool(X), ""),
        (lambda: X.__setitem__(0, 1.0), ""),
        (lambda: len(Value(1.0)), ""),
        (lambda: X.clamp(min="a"), "text"),
        (lambda: X.sum().backward("a"), "text"),
        (lambda: grad(3), "3 ... cgprimer.gradient"),  # type: ignore[arg-type]
        (lambda: grad(abs, argument=[0, 1]), "0 ... 1"),  # type: ignore[arg-type]
        (lambda: grad(abs, 1)(2.0), "1"),
        (lambda: grad(lambda v: "a")(1.0), "text"),
        (lambda: grad(lambda v: v)(np.ones(2)), "jacobian"),
        (lambda: grad(lambda v: (v, v))(1.0), "jacobian"),
        (lambda: grad(lambda v: None)(1.0), ""),
        (lambda: W <= X, "[3,4] ... [8,4] ... W <= X"),
        (lambda: np.less(X, np.ones(3)), "[8,4] ... [3] ... np.less"),
        (lambda: np.allclose(X, np.ones(3)), "numpy.allclose ... np.allclose(X"),
        (lambda: X.reshape("a"), ""),
        (lambda: X.reshape(16.0, 2), ""),
        (lambda: Value(10**400), ""),
        (lambda: jacobian(lambda v: v, 0, 1, 2), ""),
        (lambda: cgprimer.hessian(3), "graph ... 3"),
    ],
)
def test_other_slips(wrong: Any, said: str) -> None:
    with refused(CgprimerError, said):
        wrong()


def test_an_array_of_numpys_own_does_not_swallow_values() -> None:
    def squares(x: Any) -> Any:
        out = np.zeros(2)
        out[0] = x[0] ** 2
        return out.sum()

    for run in (grad(squares), lambda x: cgprimer.record(squares, x)):
        with refused(UsageError, "out[0] = ... np.stack"):
            run(np.ones(2))
    with pytest.raises(ValueError, match="array element") as caught:  # where nothing is around it
        squares(Value(np.ones(2)))
    assert isinstance(caught.value.__cause__, UsageError)


def test_what_is_printed_of_a_value_is_a_number() -> None:
    loss = Value(2.0) * 1.25
    assert f"{loss:.3f} {round(loss, 1)}" == "2.500 2.5"
    assert repr(Value(np.float32(6))) == "Value(6., dtype=float32)"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: bool(X), ""),
        (lambda: divmod(X, 2.0), ""),
        (lambda: 7.0 % X, ""),
        (lambda: checkpoint(3), "3"),
        (lambda: copy.deepcopy(deep()), ""),
        (lambda: pickle.dumps(deep()), ""),
        (lambda: np.einsum("...i,i", X, X), ""),
        (lambda: np.pad(X, 1, mode="mean"), "'mean'"),
        (lambda: np.cumprod(X), "numpy.prod"),
    ],
)
def test_what_is_not_done_says_so(wrong: Any, said: str) -> None:
    with refused(CgprimerError, said):
        wrong()


def deep() -> Value:
    value = Value(1.0)
    for _ in range(20_000):
        value = value * 1.0
    return value


def test_values_that_were_given_are_copied_with_their_gradient() -> None:
    w = Value(np.ones(3, np.float32), name="w")
    (w * w).sum().backward()
    for made in (copy.deepcopy(w), pickle.loads(pickle.dumps(w))):
        assert (made.name, made.dtype, made.grad.tolist()) == ("w", np.float32, [2.0] * 3)
        made.data[0] = 5.0
        assert w.data[0] == 1.0


def test_single_precision_stays_single_when_it_is_updated() -> None:
    w = Value(np.ones(3, np.float32))
    first, second = np.zeros(3), np.zeros(3)  # of double precision, as homework has them
    for turn in range(1, 4):
        (w * w).sum().backward()
        first = 0.9 * first + 0.1 * w.grad
        second = 0.999 * second + 0.001 * w.grad**2
        step = 0.1 * (first / (1 - 0.9**turn)) / (np.sqrt(second / (1 - 0.999**turn)) + 1e-8)
        if turn == 2:
            w.data = w.data - step
        else:
            with no_grad():
                w -= step
        assert w.dtype == w.grad.dtype == np.float32
        w.zero_grad()
    np.testing.assert_allclose(w.data, 0.7007, atol=1e-3)
