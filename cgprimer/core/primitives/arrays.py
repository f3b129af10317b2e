"""Primitives on numpy arrays, element by element, of any shape; they broadcast and never raise.

Those that are analytic also take complex numbers, for the complex step. The caller silences
numpy's warnings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from cgprimer.core.language.syntax import Structural
from cgprimer.core.primitives.registry import RECIPROCALS, primitive, primitives
from cgprimer.core.primitives.structural import numpy_key

Array = Any


def _sign_of_real_part(x: Array) -> Array:
    """+1 or -1 in the precision of x; complex steps stay on one branch."""
    real = np.asarray(x).real
    return np.where(real >= 0, 1.0, -1.0).astype(real.dtype)


def _sigmoid(x: Array) -> Array:
    sign = _sign_of_real_part(x)
    decay = np.exp(-sign * x)  # at most 1: exp never sees a large positive argument
    return np.where(sign > 0, 1.0, decay) / (1.0 + decay)


def _softplus(x: Array) -> Array:
    sign = _sign_of_real_part(x)
    return np.where(sign > 0, x, 0.0) + np.log1p(np.exp(-sign * x))


def _flags(found: Array, a: Array, b: Array) -> Array:
    """0 and 1 in the precision of what was compared."""
    kinds = {getattr(a, "dtype", None), getattr(b, "dtype", None)} - {None}
    return found.astype("f" if kinds == {np.dtype("f")} else "d")


def _scipy(name: str, x: Array) -> Array:
    from scipy import special

    return getattr(special, name)(x)


_SAME = """
    add pow exp expm1 log log1p log2 log10 sqrt abs sign
    sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh
"""
FUNCTIONS: dict[str, Callable[..., Array]] = {name: getattr(np, name) for name in _SAME.split()} | {
    "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative,
    "copy": np.positive, "log_base": lambda a, b: np.log(a) / np.log(b),
    "xlogy": lambda a, b: a * np.log(np.where(np.equal(a, 0.0) & np.equal(b, 0.0), 1.0, b)),
    "sigmoid": _sigmoid, "softplus": _softplus, "relu": lambda a: np.maximum(a, 0.0),
    "leaky_relu": lambda a, b: np.where(np.less(a, 0.0), b * a, a),
    "erf": lambda a: _scipy("erf", a), "erfc": lambda a: _scipy("erfc", a),
    "gelu": lambda a: 0.5 * a * _scipy("erfc", -0.7071067811865476 * a),  # 1 + erf loses digits
    # Complex numbers come here, too, where a complex step goes by: they have no imaginary part.
    "heaviside": lambda a: np.heaviside(np.real(a), 0.5),
    "step": lambda a: np.heaviside(np.real(a), 0.5),
    "logaddexp": lambda a, b: np.logaddexp(np.real(a), np.real(b)),
    "max": np.maximum, "min": np.minimum,
    "clamp": lambda a, b, c: np.minimum(np.maximum(a, b), c), "stop_gradient": np.positive,
    "where": lambda a, b, c: np.where(  # of two numbers in the precision of a
        a != 0.0, np.result_type(a, 0.0).type(b) if type(b) is type(c) is float else b, c
    ),
    "less": lambda a, b: _flags(np.less(a, b), a, b),
    "equal": lambda a, b: _flags(np.equal(a, b), a, b),
}  # fmt: skip
for _name, _other in RECIPROCALS.items():  # sec(a) = 1/cos(a), asec(a) = acos(1/a)
    FUNCTIONS[_name] = lambda a, f=FUNCTIONS[_other]: 1.0 / f(a)
    FUNCTIONS[f"a{_name}"] = lambda a, f=FUNCTIONS[f"a{_other}"]: f(1.0 / a)
assert FUNCTIONS.keys() >= {r.name for r in primitives() if r.built_in}, "a row lacks its line here"


# --- structural primitives: axes are counted from the end, samples lead --------------------------


def matmul(a: Array, b: Array, left: int, right: int) -> Array:
    """Products of matrices and vectors; ranks per sample say which.

    A matrix that all samples share meets all of them in one product.
    """
    if left == right == 1:
        return np.einsum("...i,...i->...", a, b)
    if right == 1:
        return _product(b, a.T) if a.ndim == 2 else np.matmul(a, b[..., None])[..., 0]
    if left == 1:
        return _product(a, b) if b.ndim == 2 else np.matmul(a[..., None, :], b)[..., 0, :]
    if b.ndim == 2 and a.ndim > 2:
        return _product(a.reshape(-1, a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[-1])
    return np.matmul(a, b)


def _product(a: Array, b: Array) -> Array:
    """A product with a matrix; with a small one some rows at a time, which takes no longer.

    OpenBLAS calls further threads for more than 2**18 multiplications. On a busy machine waiting
    for them takes many times as long as such a product does.
    """
    rows = 2**18 // max(1, b.size)
    if rows < 1024 or a.ndim != 2 or len(a) <= rows:
        return a @ b
    made = np.empty((len(a), b.shape[1]), np.result_type(a, b))
    for begin in range(0, len(a), rows):
        np.matmul(a[begin : begin + rows], b, out=made[begin : begin + rows])
    return made


def transpose(a: Array, axes: tuple[int, ...]) -> Array:
    """Axes in another order."""
    samples = a.ndim - len(axes)
    return a.transpose(*range(samples), *[a.ndim + axis for axis in axes])


def reshape(a: Array, rank: int, shape: tuple[int, ...]) -> Array:
    """The same numbers in another shape; ``rank`` is how many axes are reshaped."""
    return np.asarray(a).reshape(np.shape(a)[: np.ndim(a) - rank] + shape)


def broadcast(a: Array, rank: int, shape: tuple[int, ...]) -> Array:
    """Repeated along new axes and axes of length 1."""
    a = np.asarray(a)
    samples = a.shape[: a.ndim - rank]
    if rank == a.ndim <= len(shape) and a.flags.c_contiguous and a.size:  # a tenth of the time
        own = (1,) * (len(shape) - rank) + a.shape
        steps = (0,) * (len(shape) - rank) + a.strides
        if all(m in (1, n) for m, n in zip(own, shape, strict=True)):
            strides = tuple([s if m == n else 0 for s, m, n in zip(steps, own, shape, strict=True)])
            made = np.ndarray(shape, a.dtype, a, 0, strides)
            made.flags.writeable = False
            return made
    filled = a.reshape(samples + (1,) * (len(shape) - rank) + a.shape[a.ndim - rank :])
    return np.broadcast_to(filled, samples + shape)


def take(a: Array, key: tuple[Any, ...]) -> Array:
    """Elements by an index over all axes."""
    return a[(..., *map(numpy_key, key))]


def scatter(a: Array, key: tuple[Any, ...], shape: tuple[int, ...]) -> Array:
    """Elements at their places in zeros: the transpose of :func:`take`."""
    a, places = np.asarray(a), tuple(map(numpy_key, key))
    taken = np.broadcast_to(np.float64(0.0), shape)[places].ndim
    made = np.zeros(a.shape[: a.ndim - taken] + shape, a.dtype)
    if any(isinstance(part, tuple) for part in key):
        np.add.at(made, (..., *places), a)  # an element may have been taken more than once
    else:
        made[(..., *places)] = a
    return made


def concatenate(*more: Any) -> Array:
    """Operands one after the other along an axis, which comes last among the arguments."""
    operands, axis = more[:-1], more[-1]
    try:
        return np.concatenate(operands, axis=axis)
    except ValueError:  # what samples share stands beside what each has
        last = [np.moveaxis(a, axis, -1) for a in operands]
        rest = np.broadcast_shapes(*(a.shape[:-1] for a in last))
        made = np.concatenate([np.broadcast_to(a, rest + a.shape[-1:]) for a in last], axis=-1)
        return np.moveaxis(made, -1, axis)


def batch_mean(a: Array, rank: int) -> Array:
    """The mean over the samples, for each of them; they are the axes before those of a sample."""
    a = np.asarray(a)
    samples = a.shape[: a.ndim - rank]
    total = np.add.reduce(a, axis=tuple(range(len(samples))), keepdims=True)  # faster than mean
    return np.broadcast_to(total / max(math.prod(samples), 1), a.shape)


def batch_sum(a: Array, rank: int) -> Array:
    """The sum over the samples, in double precision."""
    return np.add.reduce(a, axis=0, dtype=np.result_type(a, float)) if np.ndim(a) > rank else a


def batch_matmul(a: Array, b: Array, left: int, right: int) -> Array:
    """The sum over the samples of their matrix products: one product over all of them."""
    if a.ndim == left and b.ndim == right:
        return matmul(a, b, left, right)
    if a.ndim > 3 or b.ndim > 3:
        return np.sum(matmul(a, b, left, right), axis=0)
    if right == 2 and a.shape[-1] == 1:  # columns, or numbers, times rows
        return a[..., 0].T @ b[:, 0]
    return np.tensordot(a, b, ([0, a.ndim - 1], [0, 1]))


STRUCTURAL: dict[str, Callable[..., Array]] = {
    "matmul": matmul,
    "transpose": transpose,
    "reshape": reshape,
    "broadcast": broadcast,
    "sum": lambda a, axes: np.add.reduce(a, axis=axes),
    "largest": lambda a, axes: np.maximum.reduce(a, axis=axes),
    "take": take,
    "scatter": scatter,
    "concatenate": concatenate,
    "batch_mean": batch_mean,
    "batch_sum": batch_sum,
    "custom": lambda *a: a[-2].value(*a[:-2], ranks=a[-1]),
    "backward": lambda *a: a[-3].bar(*a[:-3], which=a[-2], ranks=a[-1]),
    "batch_matmul": batch_matmul,
}


def function(name: str) -> Callable[..., Array]:
    """A primitive on arrays.

    >>> function("max")(np.array([1.0, 5.0]), 3.0)
    array([3., 5.])
    """
    if isinstance(name, Structural):
        run, setting = STRUCTURAL[name.kind], name.setting
        return lambda *operands: run(*operands, *setting)
    return primitive(name).function or FUNCTIONS[name]
