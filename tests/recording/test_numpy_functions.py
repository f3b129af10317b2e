"""Every function of numpy that is recorded: against differences, and against torch where it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer import CgprimerError, Value, grad, hessian, record
from cgprimer.errors import ShapeError, UsageError
from cgprimer.recording.numpy_functions import FUNCTIONS, UFUNCS
from tests.approval import refused

RNG = np.random.default_rng(0)
A, B = RNG.uniform(0.2, 0.8, (3, 4)), RNG.uniform(0.2, 0.8, (3, 4))
SQUARE, ROW, TALL = RNG.uniform(0.2, 0.8, (3, 3)), B[0], RNG.uniform(0.2, 0.8, (4, 2))
CUBE = RNG.uniform(0.2, 0.8, (2, 3, 4))
MASK = A > 0.5

#: For each function of numpy what it is tried on: a call, and its arguments.
CASES: dict[str, list[tuple[Callable[..., Any], tuple[Any, ...]]]] = {
    "sum": [(np.sum, (A,)), (lambda a: np.sum(a, axis=0), (A,)),
            (lambda a: np.sum(a, axis=(0, 2), keepdims=True), (CUBE,)),
            (lambda a: np.add.reduce(a, axis=1), (A,))],
    "mean": [(np.mean, (A,)), (lambda a: np.mean(a, axis=-1, keepdims=True), (CUBE,))],
    "max": [(np.max, (A,)), (lambda a: np.max(a, axis=(0, 1)), (CUBE,))],
    "min": [(np.min, (A,)), (lambda a: np.min(a, axis=1, keepdims=True), (A,))],
    "amax": [(lambda a: np.amax(a, axis=0), (A,))],
    "amin": [(lambda a: np.amin(a, axis=0), (A,))],
    "ptp": [(lambda a: np.ptp(a, axis=1), (A,))],
    "var": [(np.var, (A,)), (lambda a: np.var(a, axis=0, ddof=1), (A,)),
            (lambda a: np.var(a, axis=-1, ddof=2, keepdims=True), (A,))],
    "std": [(np.std, (A,)), (lambda a: np.std(a, axis=1, keepdims=True), (A,))],
    "average": [(np.average, (A,)), (lambda a: np.average(a, axis=1, weights=ROW), (A,)),
                (lambda a: np.average(a, axis=-1, weights=ROW), (A,)),
                (lambda a: np.average(a, axis=-2, weights=ROW[:3]), (A,))],
    "prod": [(np.prod, (ROW,)), (lambda a: np.prod(a, axis=1), (A,)),
             (lambda a: np.prod(a, axis=(0, 2), keepdims=True), (CUBE,))],
    "cumsum": [(np.cumsum, (A,)), (lambda a: np.cumsum(a, axis=0), (A,)),
               (lambda a: np.cumsum(a, axis=1), (CUBE,)), (lambda a: np.cumsum(a, axis=-1), (A,))],
    "diff": [(np.diff, (A,)), (lambda a: np.diff(a, axis=0), (A,)),
             (lambda a: np.diff(a, 2), (A,))],
    "sort": [(np.sort, (A,)), (lambda a: np.sort(a, axis=0), (A,)),
             (lambda a: np.sort(a, axis=None), (A,))],
    "take_along_axis": [
        (lambda a: np.take_along_axis(a, np.argsort(A, axis=1), axis=1), (A,)),
        (lambda a: np.take_along_axis(a, np.array([[1, 0]]), axis=1), (A,)),
        (lambda a: np.take_along_axis(a, np.array([[1], [0], [2]]), axis=-1), (A,))],
    "dot": [(np.dot, (A, TALL)), (np.dot, (ROW, ROW[::-1].copy())), (np.dot, (2.0, ROW))],
    "vdot": [(np.vdot, (A, B))],
    "inner": [(np.inner, (A, B)), (np.inner, (ROW, ROW + 1))],
    "outer": [(np.outer, (ROW, A)), (np.multiply.outer, (ROW, ROW + 1))],
    "trace": [(np.trace, (SQUARE,)), (np.trace, (CUBE,)), (lambda a: np.trace(a, 1), (SQUARE,))],
    "diag": [(np.diag, (SQUARE,)), (np.diag, (ROW,)), (lambda a: np.diag(a, -1), (ROW,))],
    "diagonal": [(np.diagonal, (SQUARE,)), (np.diagonal, (CUBE,))],
    "tril": [(np.tril, (A,)), (lambda a: np.tril(a, 1), (CUBE,))],
    "triu": [(np.triu, (A,)), (lambda a: np.triu(a, k=-1), (A,))],
    "transpose": [(np.transpose, (A,)), (lambda a: np.transpose(a, (2, 0, 1)), (CUBE,))],
    "swapaxes": [(lambda a: np.swapaxes(a, 0, -1), (CUBE,))],
    "moveaxis": [(lambda a: np.moveaxis(a, 0, -1), (CUBE,))],
    "reshape": [(lambda a: np.reshape(a, (2, -1)), (A,))],
    "ravel": [(np.ravel, (A,))],
    "squeeze": [(np.squeeze, (A[None],)), (lambda a: np.squeeze(a, axis=0), (A[None],))],
    "expand_dims": [(lambda a: np.expand_dims(a, 1), (A,)),
                    (lambda a: np.expand_dims(a, -1), (A,))],
    "broadcast_to": [(lambda a: np.broadcast_to(a, (2, 3, 4)), (A,))],
    "concatenate": [(lambda a, b: np.concatenate([a, b], axis=1), (A, B)),
                    (lambda a, b: np.concatenate([a, b], axis=None), (A, ROW))],
    "stack": [(lambda a, b: np.stack([a, b], axis=1), (A, B)),
              (lambda a, b: np.stack([a, b], axis=-1), (A, B))],
    "vstack": [(lambda a, b: np.vstack([a, b]), (A, ROW)),
               (lambda a, b: np.vstack([a, b]), (A, B))],
    "hstack": [(lambda a, b: np.hstack([a, b]), (ROW, ROW + 1)),
               (lambda a, b: np.hstack([a, b]), (A, B))],
    "column_stack": [(lambda a, b: np.column_stack([a, b]), (ROW, TALL))],
    "where": [(lambda a, b: np.where(MASK, a, b), (A, B)),
              (lambda a: np.where(a > 0.5, a, 0.0), (A,))],
    "clip": [(lambda a: np.clip(a, 0.3, 0.6), (A,)), (lambda a: np.clip(a, None, 0.6), (A,))],
    "norm": [(np.linalg.norm, (A,)), (lambda a: np.linalg.norm(a, 1), (ROW - 0.5,)),
             (lambda a: np.linalg.norm(a, np.inf, axis=0), (A,)),
             (lambda a: np.linalg.norm(a, 1, axis=1, keepdims=True), (A,)),
             (lambda a: np.linalg.norm(a, np.inf, axis=-1, keepdims=True), (A,)),
             (lambda a: np.linalg.norm(a, axis=1), (A,))],
    "copy": [(np.copy, (A,))],
    "flip": [(lambda a: np.flip(a, axis=1), (A,))],
    "roll": [(lambda a: np.roll(a, 2), (A,)), (lambda a: np.roll(a, -1, axis=1), (A,))],
    "repeat": [(lambda a: np.repeat(a, 2), (A,)), (lambda a: np.repeat(a, 3, axis=0), (A,))],
    "tile": [(lambda a: np.tile(a, 2), (ROW,)), (lambda a: np.tile(a, (2, 3)), (A,))],
    "atleast_1d": [(np.atleast_1d, (0.5,)), (np.atleast_1d, (ROW,))],
    "atleast_2d": [(np.atleast_2d, (ROW,))],
    "atleast_3d": [(np.atleast_3d, (ROW,)), (np.atleast_3d, (A,))],
    "array_split": [(lambda a: np.array_split(a, 3)[0], (ROW,))],
    "split": [(lambda a: np.split(a, [1, 3], axis=1)[1], (A,)),
              (lambda a: np.split(a, 2)[1], (ROW,))],
    "hsplit": [(lambda a: np.hsplit(a, 2)[1], (A,))],
    "vsplit": [(lambda a: np.vsplit(a, 3)[2], (A,))],
    "dsplit": [(lambda a: np.dsplit(a, 2)[0], (CUBE,))],
    "delete": [(lambda a: np.delete(a, 1), (ROW,)), (lambda a: np.delete(a, [0, 2], axis=1), (A,))],
    "fliplr": [(np.fliplr, (A,))],
    "flipud": [(np.flipud, (A,))],
    "rot90": [(np.rot90, (A,)), (lambda a: np.rot90(a, 2), (A,))],
    "rollaxis": [(lambda a: np.rollaxis(a, 2), (CUBE,))],
    "matrix_transpose": [(np.matrix_transpose, (CUBE,))],
    "take": [(lambda a: np.take(a, [0, 5, 0]), (A,)), (lambda a: a.take([3, 0], 1), (A,)),
             (lambda a: np.take(a, 2, axis=1), (A,))],
    "append": [(np.append, (A, ROW)), (lambda a, b: np.append(a, b, axis=0), (A, B)),
               (lambda a, b: np.append(a, b, axis=1), (A, B)),
               (lambda a: np.append(a, 2.0), (ROW,))],
    "dstack": [(lambda a, b: np.dstack([a, b]), (A, B))],
    "pad": [(lambda a: np.pad(a, ((1, 0), (0, 2))), (A,))],
    "kron": [(np.kron, (A, SQUARE)), (np.kron, (ROW, A)), (np.kron, (ROW, ROW + 1))],
    "einsum": [(lambda *a, text=text: np.einsum(text, *a), args) for text, args in [
        ("ij,jk->ik", (A, TALL)), ("ij,jk", (A, TALL)), ("ij,kj->ki", (A, B)), ("ij->ji", (A,)),
        ("ii", (SQUARE,)), ("ii->i", (SQUARE,)), ("ij->j", (A,)), ("ij->", (A,)),
        ("iij->ij", (CUBE[:, :2],)),
        ("i,j->ij", (ROW, ROW + 1)), ("i,i", (ROW, ROW + 1)), ("ij,ij->i", (A, B)),
        ("bij,jk->bik", (CUBE, TALL)), ("bij,bkj->bik", (CUBE, CUBE + 1)), ("ij,k->j", (A, ROW)),
        ("ij,jk,k->i", (A, TALL, ROW[:2])), ("i,ij,j", (ROW[:3], A, ROW)),
        (" i , i -> i ", (ROW, ROW)),
    ]],
    "tensordot": [(lambda a, b: np.tensordot(a, b, 1), (A, TALL)), (np.tensordot, (A, B)),
                  (lambda a, b: np.tensordot(a, b, ([2, 0], [2, 0])), (CUBE, CUBE + 1)),
                  (lambda a, b: np.tensordot(a, b, (1, 1)), (A, B))],
    "multi_dot": [(lambda a, b: np.linalg.multi_dot([a, b]), (A, TALL))],
}  # fmt: skip
ABOVE_ONE = ("arccosh",)
UNARY = [u for u in UFUNCS if u.nin == 1]
BINARY = [u for u in UFUNCS if u.nin == 2 and u is not np.matmul]
ALL = [(name, *case) for name, cases in CASES.items() for case in cases]


def numbers(function: Callable[..., Any], args: tuple[Any, ...], weights: Any) -> list[Any]:
    """The gradient of a weighted sum by central differences."""
    found = []
    for which, arg in enumerate(args):
        base = np.array(arg, float)
        slopes = np.zeros_like(base)
        for place in np.ndindex(*base.shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = base.copy()
                moved[place] += step
                call = [*args[:which], moved if moved.ndim else float(moved), *args[which + 1 :]]
                ends.append(np.sum(function(*call) * weights))
            slopes[place] = (ends[0] - ends[1]) / 2e-6
        found.append(slopes)
    return found


def agrees(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Value and gradient, the gradient of the gradient's norm with it, and float32."""
    plain = np.asarray(function(*args))
    values = [Value(a) for a in args]
    made = function(*values)
    assert isinstance(made, Value)
    assert made.shape == plain.shape
    np.testing.assert_allclose(made.data, plain, rtol=1e-14, atol=1e-15)
    weights = np.random.default_rng(1).uniform(0.5, 1.5, plain.shape)
    (made * weights).sum().backward()
    for value, expected in zip(values, numbers(function, args, weights), strict=True):
        np.testing.assert_allclose(value.grad, expected, rtol=2e-7, atol=2e-8)
    single = [Value(np.asarray(a, np.float32)) for a in args]
    made = function(*single)
    if function is not np.float_power:  # double by its name; here in the precision of its base
        assert made.dtype == np.asarray(function(*[v.detach().data for v in single])).dtype
    made.sum().backward()
    assert {np.asarray(v.grad).dtype for v in single} == {np.dtype(np.float32)}


def test_every_function_has_its_case() -> None:
    assert set(CASES) == set(FUNCTIONS)
    names = """
        absolute add arccos arccosh arcsin arcsinh arctan arctanh cos cosh divide exp exp2 expm1
        fabs float_power heaviside hypot log log10 log1p log2 logaddexp matmul maximum minimum
        multiply negative positive power reciprocal sign sin sinh sqrt square subtract tan tanh
    """
    assert {ufunc.__name__ for ufunc in UFUNCS} == set(names.split())


@pytest.mark.parametrize(("name", "function", "args"), ALL, ids=[n for n, *_ in ALL])
def test_functions(name: str, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    agrees(function, args)


@pytest.mark.parametrize("ufunc", UNARY, ids=[u.__name__ for u in UNARY])
def test_functions_of_one_operand(ufunc: Any) -> None:
    agrees(ufunc, (A + (ufunc.__name__ in ABOVE_ONE),))
    agrees(ufunc, (0.4 + (ufunc.__name__ in ABOVE_ONE),))


@pytest.mark.parametrize("ufunc", BINARY, ids=[u.__name__ for u in BINARY])
def test_functions_of_two_operands_of_unlike_shapes(ufunc: Any) -> None:
    for args in ((A, B), (A, ROW), (TALL[:, :1], ROW), (0.3, ROW), (A, 0.7)):
        agrees(ufunc, args)


@pytest.mark.parametrize(
    "args",
    [(A, TALL), (CUBE, TALL), (ROW, TALL), (A, ROW), (ROW, ROW + 1), (CUBE, CUBE.swapaxes(1, 2)),
     (A, CUBE.swapaxes(1, 2)), (CUBE, ROW)],
    ids=lambda args: "@".join(str(a.shape) for a in args),
)  # fmt: skip
def test_matrix_products(args: tuple[Any, ...]) -> None:
    agrees(np.matmul, args)


def test_a_zero_among_factors_has_its_slope() -> None:
    np.testing.assert_array_equal(grad(np.prod)(np.array([2.0, 0.0, 3.0])), [0.0, 6.0, 0.0])


TORCH = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "absolute": "abs", "fabs": "abs", "power": "pow",
}  # fmt: skip


def test_the_same_as_torch() -> None:
    """All that torch has under the name, numbers and slopes, to the last digits."""
    torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
    compared = 0
    for ufunc in (*UNARY, *BINARY):
        theirs = getattr(torch, TORCH.get(ufunc.__name__, ufunc.__name__), None)
        if theirs is None or ufunc is np.heaviside:  # which has no derivative there
            continue
        args = (A + (ufunc.__name__ in ABOVE_ONE), ROW)[: ufunc.nin]
        ours, other = [Value(a) for a in args], [torch.tensor(a, requires_grad=True) for a in args]
        made, expected = ufunc(*ours), theirs(*other)
        if not expected.requires_grad:
            continue
        np.testing.assert_allclose(made.data, expected.detach().numpy(), rtol=1e-14)
        made.sum().backward()
        expected.sum().backward()
        for value, tensor in zip(ours, other, strict=True):
            if tensor.grad is not None:
                np.testing.assert_allclose(value.grad, tensor.grad.numpy(), rtol=1e-12, atol=1e-14)
        compared += 1
    assert compared > 30


def log_softmax_written(a: Any, axis: int) -> Any:
    moved = a - np.max(getattr(a, "_data", a), axis=axis, keepdims=True)
    return moved - np.log(np.sum(np.exp(moved), axis=axis, keepdims=True))


@pytest.mark.parametrize("axis", [-1, 0, 1, -3])
def test_log_softmax_is_what_numpy_writes(axis: int) -> None:
    """Values, first and second derivatives, and softmax is its exponential."""
    weights = RNG.normal(size=CUBE.shape)
    mine, theirs = (
        lambda a: np.sum(a.log_softmax(axis) ** 2 * weights),
        lambda a: np.sum(log_softmax_written(a, axis) ** 2 * weights),
    )
    scores = 3.0 * CUBE
    np.testing.assert_allclose(grad(mine)(scores), grad(theirs)(scores), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(
        hessian(mine)(scores), hessian(theirs)(scores), rtol=1e-10, atol=1e-12
    )
    value = Value(scores)
    np.testing.assert_allclose(
        value.softmax(axis).data, np.exp(value.log_softmax(axis).data), rtol=1e-14
    )
    recording = record(lambda a: np.sum(a.log_softmax(axis) * weights), scores)
    assert "log_softmax(a, " in str(recording)
    found = cgprimer.gradient(recording.graph, method="forward")["a"]
    np.testing.assert_allclose(
        found, grad(lambda a: np.sum(log_softmax_written(a, axis) * weights))(scores), rtol=1e-11
    )


def test_log_softmax_of_what_is_large_small_single_or_empty() -> None:
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


def test_a_network_step_is_torchs() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
    shapes = [(5, 7), (7,), (7, 3), (3,)]
    start = [RNG.normal(size=shape) for shape in shapes]
    x, target = RNG.normal(size=(6, 5)), RNG.integers(0, 3, 6)
    w1, b1, w2, b2 = ours = [Value(s) for s in start]
    out = np.maximum(x @ w1 + b1, 0.0) @ w2 + b2
    picked = out[np.arange(6), target]
    loss = (np.log(np.sum(np.exp(out), axis=1)) - picked).mean()
    loss.backward(retain_graph=True)
    slopes = [value.grad for value in ours]
    for value in ours:
        value.zero_grad()
    fused = -(out.log_softmax(1) * np.eye(3)[target]).sum() / 6
    fused.backward()
    assert fused.data == pytest.approx(loss.data, rel=1e-14)
    for value, slope in zip(ours, slopes, strict=True):
        np.testing.assert_allclose(value.grad, slope, rtol=1e-12, atol=1e-15)
    theirs = [torch.tensor(s, requires_grad=True) for s in start]
    hidden = torch.relu(torch.tensor(x) @ theirs[0] + theirs[1])
    expected = torch.nn.functional.cross_entropy(
        hidden @ theirs[2] + theirs[3], torch.tensor(target)
    )
    expected.backward()
    assert loss.data == pytest.approx(float(expected.detach()), rel=1e-14)
    for value, tensor in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(value.grad, tensor.grad.numpy(), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    "function",
    [
        np.flip,
        lambda a: np.flip(a, -1),
        lambda a: np.flip(a, (0, 2)),
        lambda a: np.hstack([a, a]),
        lambda a: np.moveaxis(a, [0, 1], [-1, -2]),
        lambda a: np.add.reduce(a, None),
        lambda a: np.multiply.outer(a, a),
        lambda a: np.average(a[0], 0, weights=[1.0, 2.0, 3.0]),
        lambda a: np.diff(a, 2),
        lambda a: np.transpose(a, np.array([2, 0, 1])),
        lambda a: np.diff(a, 1, 0),
        lambda a: np.subtract.outer(a[0], a[1, 2]),
        np.multiply.reduce,
        lambda a: np.trace(a, 1, axis1=0, axis2=2),
        lambda a: np.sort(a, axis=None),
        lambda a: np.sort(a[:0], 0),
        lambda a: np.take_along_axis(a, np.array([0, 3]), None),
        lambda a: np.broadcast_to(a[0, 0], 3),
        lambda a: np.hstack([a[0, 0, 0], 2.0]),
        lambda a: np.dot(a[0, 0, 0], a),
        lambda a: np.einsum(",->", a[0, 0, 0], a[1, 1, 1]),
        lambda a: np.pad(a, 2, "reflect"),
        lambda a: np.clip(a, max=0.5),
        lambda a: a.clip(min=0.5),
        lambda a: a[[True, False, True]],
        lambda a: a[np.zeros((0, 2), int)],
        lambda a: a[None, [[0, 1], [1, 2]], None, :, None],
    ],
)
def test_all_axes_are_those_of_numpy(function: Any) -> None:
    agrees(function, (RNG.uniform(0.2, 0.8, (3, 3, 3)),))


@pytest.mark.parametrize(
    "function",
    [
        lambda a: np.average(a, weights=[1.0, 2.0, 3.0]),
        lambda a: np.linalg.norm(a, 2, (0, 1)),
        lambda a: np.sum(a, 0, float),
        lambda a: np.pad(a, 1, "mean"),
        lambda a: np.pad(a, "x"),
        lambda a: np.add.reduce(a, initial=3.0),
        lambda a: np.maximum.reduce(a, where=a.detach().data > 0.5, initial=0.0),
        lambda a: np.take(a, [0], out=np.zeros(1, int)),
        lambda a: np.take_along_axis(a, np.array([0]), 1),
        lambda a: np.diff(a, -1),
        lambda a: np.pad(a, 1, constant_values=2.0),
        lambda a: a[np.array(True)],
        lambda a: a[:, [0, 1], None, [0, 1]],
        lambda a: a[:, [0, 1], ..., [0, 1]],
        lambda a: a[[[0], [1, 2]]],
    ],
)
def test_what_another_axis_would_make_other_numbers_of_is_refused(function: Any) -> None:
    with pytest.raises(CgprimerError):
        function(Value(RNG.uniform(0.2, 0.8, (3, 3, 3))))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_hypotenuse_is_as_long_as_numpys_however_long_it_is(dtype: Any) -> None:
    a, b = np.array([[3e30, 0.0, 3.0, 3e-30, np.inf], [4e30, 2.0, 4.0, 4e-30, 1.0]], dtype)
    x, y = Value(a), Value(b)
    made = np.hypot(x, y)
    made[:4].sum().backward()
    assert (made.dtype, x.grad.dtype) == (dtype, dtype)
    np.testing.assert_allclose(made.data, np.hypot(a, b), rtol=1e-6)
    np.testing.assert_allclose(x.grad[:4], [0.6, 0.0, 0.6, 0.6], rtol=1e-6)
    np.testing.assert_allclose(y.grad[:4], [0.8, 1.0, 0.8, 0.8], rtol=1e-6)


def test_an_infinity_stays_where_it_is_in_running_sums_and_long_ones_need_no_matrix() -> None:
    assert np.cumsum(Value([1.0, -np.inf, 2.0])).data.tolist() == [1.0, -np.inf, -np.inf]
    assert np.isinf(np.var(Value([1.0, 2.0]), ddof=3).data)
    x = Value(np.ones(100_000))
    np.cumsum(x)[[0, -1]].sum().backward()
    assert (x.grad[0], set(x.grad[1:])) == (2.0, {1.0})


OTHERS = {
    np.inner: {0: (), 1: (3,), 2: (5, 3), 3: (2, 4, 3)},
    np.dot: {0: (), 1: (3,), 2: (3, 5), 3: (2, 3, 4)},
}


@pytest.mark.parametrize("function", OTHERS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("left", range(4))
@pytest.mark.parametrize("right", range(4))
def test_inner_and_dot_of_all_ranks_are_numpys(function: Any, left: int, right: int) -> None:
    draw = np.random.default_rng(left + 4 * right)
    shapes = {0: (), 1: (3,), 2: (2, 3), 3: (4, 2, 3)}
    a, b = draw.normal(size=shapes[left]), draw.normal(size=OTHERS[function][right])
    agrees(function, (a, b))


def test_inner_of_a_scalar_keeps_the_order_of_axes() -> None:
    S = np.array([[1.0, 2.0], [3.0, 4.0]])
    for product in (np.inner(Value(2.0), S), np.inner(S, Value(2.0)), np.inner(2.0, Value(S))):
        np.testing.assert_array_equal(product.data, 2 * S)
    weights = np.array([[1.0, 10.0], [100.0, 1000.0]])
    value = Value(S)
    (np.inner(Value(2.0), value) * weights).sum().backward()
    np.testing.assert_array_equal(value.grad, 2 * weights)


@pytest.mark.parametrize(
    ("function", "at", "value", "gradient"),
    [  # torch.linalg.norm and torch.std, torch 2.13
        (np.linalg.norm, [0.0, 0.0, 0.0], 0.0, [0.0, 0.0, 0.0]),
        (np.linalg.norm, [3.0, 0.0, 4.0], 5.0, [0.6, 0.0, 0.8]),
        (np.std, [2.0, 2.0, 2.0], 0.0, [0.0, 0.0, 0.0]),
        (np.std, [3.0, 0.0, 4.0], 1.699673171197595,
         [0.13074409009212268, -0.45760431532242946, 0.3268602252303067]),
        (lambda a: a.std(0, ddof=1), [2.0, 2.0, 2.0], 0.0, [0.0, 0.0, 0.0]),
        (lambda a: a.std(0, ddof=1), [3.0, 0.0, 4.0], 2.081665999466133,
         [0.16012815380508708, -0.560448538317805, 0.40032038451271773]),
        (lambda a: np.std(a, 1).sum(), [[1.0, 1.0], [3.0, 5.0]], 1.0, [[0.0, 0.0], [-0.5, 0.5]]),
        (lambda a: np.linalg.norm(a, axis=1).sum(), [[0.0, 0.0], [3.0, 4.0]], 5.0,
         [[0.0, 0.0], [0.6, 0.8]]),
    ],
)  # fmt: skip
def test_norm_and_standard_deviation_have_torchs_gradient(
    function: Any, at: Any, value: float, gradient: Any
) -> None:
    array = Value(np.array(at))
    out = function(array)
    out.backward()
    assert float(out.data) == pytest.approx(value)
    np.testing.assert_allclose(array.grad, gradient, atol=1e-15)
    np.testing.assert_allclose(grad(function)(np.array(at)), gradient, atol=1e-15)


@pytest.mark.parametrize("index", [CUBE[0] > 0.5, (..., CUBE[0] > 0.5), (slice(1), CUBE[0] > 0.5)])
def test_a_mask_stands_for_as_many_axes_as_it_has(index: Any) -> None:
    data = CUBE if isinstance(index, tuple) else CUBE[0]
    x = Value(data)
    np.testing.assert_array_equal(x[index].data, data[index])
    (x[index] ** 2).sum().backward()
    chosen = np.zeros(data.shape)
    chosen[index] = 1.0
    np.testing.assert_allclose(x.grad, 2 * data * chosen)


def test_an_index_has_one_ellipsis() -> None:
    with pytest.raises(UsageError):
        Value(CUBE)[..., 0, ...]
