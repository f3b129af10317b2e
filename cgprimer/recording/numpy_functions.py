"""Functions of numpy on values: what they are made of here, so that they are recorded.

Source of what they mean: numpy's reference, NEP 13 and NEP 18.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np

from cgprimer.core.primitives import arrays, shaped
from cgprimer.core.primitives.array_functions import root_of_squares
from cgprimer.errors import CgprimerError, DifferentiationError, ShapeError, UsageError
from cgprimer.recording.eager import EAGER, Recorded, locating, misfit
from cgprimer.recording.operators import lifted
from cgprimer.recording.products import einsum, kron, tensordot
from cgprimer.recording.rearranging import joined, rearranged, value_of


def _emitted(name: str, *operands: Any) -> Any:
    return EAGER.emit(name, *map(lifted, operands))


UFUNCS: dict[Any, Callable[..., Any]] = {
    function: partial(EAGER.emit if function.nin == 1 else _emitted, name)
    for name, function in reversed(arrays.FUNCTIONS.items())
    if isinstance(function, np.ufunc)
}
UFUNCS |= {
    np.matmul: lambda a, b: shaped.matmul(EAGER, lifted(a), lifted(b)),
    np.square: lambda a: a * a,
    np.reciprocal: lambda a: 1.0 / a,
    np.positive: lambda a: a,
    np.logaddexp: partial(_emitted, "logaddexp"),
    np.float_power: lambda a, b: EAGER.emit("pow", lifted(a), lifted(b)),
    np.fabs: lambda a: EAGER.emit("abs", a),
    np.exp2: lambda a: EAGER.emit("pow", 2.0, a),
    np.hypot: lambda a, b: _hypotenuse(lifted(a), lifted(b)),
    np.heaviside: lambda a, b: EAGER.emit("where", EAGER.emit("equal", a, 0.0), b,
                                          EAGER.emit("less", 0.0, a)),
}  # fmt: skip
REDUCTIONS = {np.add: "sum", np.maximum: "max", np.minimum: "min", np.multiply: "prod"}
#: What has no derivative that is not zero: computed on the plain numbers.
PLAIN = {
    np.greater, np.greater_equal, np.less, np.less_equal, np.equal, np.not_equal, np.isnan,
    np.isfinite, np.isinf, np.signbit, np.floor, np.ceil, np.rint, np.trunc, np.logical_not,
    np.logical_and, np.logical_or, np.argmax, np.argmin, np.argsort, np.shape, np.ndim, np.size,
    np.zeros_like, np.ones_like, np.full_like, np.empty_like, np.allclose, np.isclose, np.all,
    np.any, np.array_equal, np.round, np.result_type, np.nonzero, np.count_nonzero,
    np.array_repr, np.array_str, np.array2string, np.searchsorted,
}  # fmt: skip


def apply_ufunc(ufunc: Any, method: str, inputs: Any, options: Any) -> Any:
    """What numpy asks for when one of its element-by-element functions meets a value."""
    if method == "__call__" and not options and ufunc in UFUNCS:
        return UFUNCS[ufunc](*inputs)
    return _less_plain(ufunc, method, inputs, options)


@locating
def _less_plain(ufunc: Any, method: str, inputs: Any, options: Any) -> Any:
    axis = options.get("axis", 0)  # None is all of them
    options = {k: v for k, v in options.items() if v is not None}
    if "out" in options:
        raise DifferentiationError(
            f"numpy.{ufunc.__name__} cannot write into an array that is recorded",
            hint="use its result, without out= or an in-place operator",
        )
    left = options.keys() - ({"axis", "keepdims"} if method == "reduce" else {})
    if left and method in ("__call__", "reduce", "outer") and ufunc not in PLAIN:
        raise DifferentiationError(
            f"numpy.{ufunc.__name__} is recorded without the option {min(left)}="
        )
    if method == "reduce" and ufunc in REDUCTIONS:
        keepdims = options.get("keepdims", False)
        return getattr(inputs[0], REDUCTIONS[ufunc])(axis, keepdims=keepdims)
    if method == "outer" and ufunc in UFUNCS:
        a, b = map(value_of, inputs)
        return UFUNCS[ufunc](a.reshape(*a.shape, *[1] * b.ndim), b)
    if ufunc in PLAIN:
        data = [*map(_plain, inputs)]
        try:
            return getattr(ufunc, method)(*data, **options)
        except ValueError as error:
            raise misfit(ufunc.__name__, data, error) from None
    if method != "__call__" or ufunc not in UFUNCS:
        what = ufunc.__name__ + ("" if method == "__call__" else f".{method}")
        raise _no_derivative(f"numpy.{what}", [u.__name__ for u in UFUNCS])
    return UFUNCS[ufunc](*inputs)


def apply_function(function: Any, args: Any, kwargs: Any) -> Any:
    """What numpy asks for when one of its other functions meets a value."""
    known = FUNCTIONS.get(function.__name__)
    if function in PLAIN:
        known, args, kwargs = function, map(_plain, args), {k: _plain(v) for k, v in kwargs.items()}
    if known is None:
        raise _no_derivative(f"{function.__module__}.{function.__name__}", FUNCTIONS)
    try:
        return known(*args, **kwargs)
    except TypeError as error:
        if "argument" not in str(error):
            raise UsageError(f"numpy.{function.__name__}: {error}") from None
        said = str(error).partition("() ")[2] or error
        what = f"numpy.{function.__name__} is recorded without this argument: {said}"
        raise DifferentiationError(what) from None
    except (ValueError, IndexError, ZeroDivisionError) as error:
        if isinstance(error, CgprimerError):
            raise
        raise ShapeError(f"numpy.{function.__name__}: {error}") from None


#: The nearest in meaning, where that is not the nearest in spelling.
_INSTEAD = {
    "remainder": "floor", "floor_divide": "floor", "median": "sort", "partition": "sort",
    "arctan2": "arctan", "nansum": "where", "nanmean": "where", "convolve": "matmul",
    "fft": "matmul", "inv": "matmul", "det": "prod", "solve": "matmul", "conjugate": "positive",
    "meshgrid": "broadcast_to", "select": "where", "nan_to_num": "where",
    "interp": "where", "gradient": "diff",
    "i0": "exp", "unique": "sort", "cumprod": "prod", "block": "concatenate", "cross": "roll",
    "divmod": "floor", "fmod": "floor", "copysign": "sign", "fmax": "maximum", "fmin": "minimum",
    "nanmax": "where", "nanmin": "where", "nanstd": "where", "nanvar": "where", "choose": "where",
    "piecewise": "where", "put": "where", "copyto": "where", "insert": "concatenate",
    "percentile": "sort", "quantile": "sort", "rad2deg": "multiply", "deg2rad": "multiply",
    "pinv": "matmul", "lstsq": "matmul", "cbrt": "power", "sinc": "sin", "trapezoid": "sum",
    "ediff1d": "diff",
}  # fmt: skip


def _no_derivative(name: str, known: Any) -> DifferentiationError:
    own = name.rpartition(".")[2]
    near = difflib.get_close_matches(own, list(known), 1, 0.75)
    near = [_INSTEAD[own]] if own in _INSTEAD else near
    hint = f"the nearest that can is numpy.{near[0]}" if near else "write it with those that can"
    return DifferentiationError(
        f"{name} cannot be differentiated here",
        hint=f"{hint}; primitive() makes one of a function and its derivative",
    )


def _hypotenuse(a: Any, b: Any) -> Any:
    """Where squares would leave the range of numbers, of sides that are scaled."""
    top = np.fmax(abs(_plain(a)), abs(_plain(b)))
    far = (top > 0) & (top < np.inf) & ((top < 1e-15) | (top > 1e15))
    if not np.any(far):
        return np.sqrt(a * a + b * b)
    scale = np.where(far, top, top.dtype.type(1.0))
    return np.sqrt((a / scale) ** 2 + (b / scale) ** 2) * scale


def _plain(value: Any) -> Any:
    return value._data if isinstance(value, Recorded) else value


def _concatenate(parts: Any, axis: int | None = 0) -> Any:
    values = [value_of(p) for p in parts]
    if axis is None:
        values, axis = [v.reshape(-1) for v in values], 0
    return shaped.concatenate(EAGER, values, axis)


def _dot(a: Any, b: Any) -> Any:
    a, b = value_of(a), value_of(b)
    if not (a.ndim and b.ndim):
        return a * b
    return tensordot(a, b, (-1, -2)) if b.ndim > 2 else a @ b


def _inner(a: Any, b: Any) -> Any:
    """``numpy.inner``: the sum over the last axes; a product if an operand is a scalar."""
    a, b = value_of(a), value_of(b)
    if not (a.ndim and b.ndim):
        return a * b
    return tensordot(a, b, (-1, -1)) if b.ndim > 2 else a @ b.T


def _outer(a: Any, b: Any) -> Any:
    return value_of(a).reshape(-1, 1) * value_of(b).reshape(1, -1)


def _where(condition: Any, *choices: Any) -> Any:
    if not choices:
        return np.nonzero(_plain(condition))
    return EAGER.emit("where", lifted(_plain(condition)), *map(lifted, choices))


def _norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if ord in (1, np.inf) and (a.ndim == 1 or isinstance(axis, int)):
        return abs(a).sum(axis, keepdims) if ord == 1 else abs(a).max(axis, keepdims)
    if ord not in (None, 2, "fro") or (ord == 2 and not isinstance(axis, int) and a.ndim > 1):
        raise DifferentiationError(
            "numpy.linalg.norm is recorded for the Euclidean norm, and 1 and inf of vectors"
        )
    return root_of_squares(EAGER, (a * a).sum(axis, keepdims))


def _variance(a: Any, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Any:
    moved = a - a.mean(axis, True)
    count = a.size / max(np.size(_plain(a.sum(axis))), 1)
    return (moved * moved).sum(axis, keepdims) / max(count - ddof, 0.0)


def _product(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Two by two, so that a zero among the factors has its derivative."""
    gone = shaped.axes_of(a.shape, axis)
    kept = [i for i in range(-a.ndim, 0) if i not in gone]
    rows = a.transpose([*gone, *kept]).reshape(-1, *[a.shape[i] for i in kept])
    parts = [rows[i] for i in range(len(rows))] or [rows.sum(0) + 1.0]
    while len(parts) > 1:
        pairs = [p * q for p, q in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[len(parts) // 2 * 2 :]
    shape = [1 if i in gone else a.shape[i] for i in range(-a.ndim, 0)]
    return parts[0].reshape(shape) if keepdims else parts[0]


def _cumulated(a: Any, axis: int | None = None) -> Any:
    if axis is None:
        a, axis = a.reshape(-1), 0
    a, step = _moved(a, axis, 0), 1
    while step < len(a):  # sums of 2, 4, 8 and so on; a matrix would make nan of an infinity
        a, step = _concatenate([a[:step], a[step:] + a[:-step]]), 2 * step
    return _moved(a, 0, axis)


def _along(a: Any, places: Any, axis: int | None = -1) -> Any:
    """``numpy.take_along_axis``: places of the rank of ``a``, along one axis."""
    if axis is None:
        a, axis = a.reshape(-1), 0
    if places.ndim != a.ndim:
        raise ShapeError(f"places of shape {places.shape} have other axes than {a.shape}")
    index = [*np.ogrid[tuple(map(slice, a.shape))]]
    index[shaped.axes_of(a.shape, axis)[0]] = places  # those of one row are those of all
    return a[tuple(np.broadcast_arrays(*index))]


def _sorted(a: Any, axis: int | None = -1) -> Any:
    return _along(a, np.argsort(_plain(a), axis, kind="stable"), axis)


def _differences(a: Any, n: int = 1, axis: int = -1) -> Any:
    a = _moved(a, axis, 0)
    if n < 0:
        raise ShapeError(f"differences are taken 0 times or more, not {n}")
    for _ in range(n):
        a = a[1:] - a[:-1]
    return _moved(a, 0, axis)


def _padded(a: Any, pad_width: Any, mode: Any = "constant") -> Any:
    if mode not in ("constant", "edge", "reflect", "symmetric", "wrap"):
        raise DifferentiationError(f"numpy.pad is recorded without the mode {mode!r}")
    return rearranged(np.pad)(a, pad_width, mode)


def _bound(none: float, *given: Any) -> Any:
    return next((lifted(one) for one in given if one is not None), none)


def _average(a: Any, axis: Any = None, weights: Any = None) -> Any:
    if weights is None:
        return a.mean(axis)
    a, weights = value_of(a), value_of(weights)
    if weights.shape != a.shape:
        if axis is None or weights.ndim != 1:
            raise ShapeError(f"weights of shape {weights.shape} do not fit {a.shape}")
        weights = weights.reshape([-1 if i == axis % a.ndim else 1 for i in range(a.ndim)])
    return (a * weights).sum(axis) / weights.sum(axis)


_moved = rearranged(np.moveaxis)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda a, axis=None, *, keepdims=False: value_of(a).sum(axis, keepdims),
    "mean": lambda a, axis=None, *, keepdims=False: value_of(a).mean(axis, keepdims),
    "max": lambda a, axis=None, *, keepdims=False: value_of(a).max(axis, keepdims),
    "amax": lambda a, axis=None, *, keepdims=False: value_of(a).max(axis, keepdims),
    "min": lambda a, axis=None, *, keepdims=False: value_of(a).min(axis, keepdims),
    "amin": lambda a, axis=None, *, keepdims=False: value_of(a).min(axis, keepdims),
    "var": _variance,
    "std": lambda a, axis=None, *, ddof=0, keepdims=False: root_of_squares(
        EAGER, _variance(a, axis, ddof=ddof, keepdims=keepdims)
    ),
    "dot": _dot,
    "vdot": lambda a, b: _dot(value_of(a).reshape(-1), value_of(b).reshape(-1)),
    "inner": _inner,
    "outer": _outer,
    "transpose": lambda a, axes=None: value_of(a).transpose(*(() if axes is None else axes)),
    "reshape": lambda a, shape: value_of(a).reshape(shape),
    "broadcast_to": lambda a, shape: EAGER.broadcast(
        value_of(a), tuple(shape) if hasattr(shape, "__iter__") else (shape,)),
    "concatenate": _concatenate,
    "stack": joined,
    "vstack": lambda parts: _concatenate([p.reshape(1, -1) if p.ndim < 2 else p
                                          for p in map(value_of, parts)]),
    "hstack": lambda parts: _concatenate(
        [*map(np.atleast_1d, map(value_of, parts))], 1 if value_of(parts[0]).ndim > 1 else 0),
    "where": _where,
    "clip": lambda a, a_min=None, a_max=None, *, min=None, max=None: EAGER.emit(
        "clamp", lifted(a), _bound(-np.inf, a_min, min), _bound(np.inf, a_max, max)),
    "norm": _norm,
    "copy": lambda a: a * 1.0,
    "prod": _product,
    "cumsum": _cumulated,
    "sort": _sorted,
    "take_along_axis": _along,
    "average": _average,
    "ptp": lambda a, axis=None, *, keepdims=False: a.max(axis, keepdims) - a.min(axis, keepdims),
    "diff": _differences,
    "append": lambda a, b, axis=None: _concatenate([a, b], axis),
    "trace": lambda a, *places, **axes: np.diagonal(a, *places, **axes).sum(-1),
    "atleast_1d": rearranged(np.atleast_1d, 0),
    "atleast_2d": rearranged(np.atleast_2d, 0),
    "atleast_3d": rearranged(np.atleast_3d, 0),
    "dstack": lambda parts: _concatenate([rearranged(np.atleast_3d)(p) for p in parts], 2),
    "pad": _padded,
    "kron": kron,
    "einsum": einsum,
    "tensordot": tensordot,
    "multi_dot": lambda parts: reduce(_dot, parts),
    "column_stack": lambda parts: _concatenate(
        [p.reshape(-1, 1) if p.ndim < 2 else p for p in map(value_of, parts)], 1),
}  # fmt: skip
FUNCTIONS |= {
    function.__name__: rearranged(function)
    for function in (
        np.array_split, np.delete, np.diag, np.diagonal, np.dsplit, np.expand_dims, np.flip,
        np.fliplr, np.flipud, np.hsplit, np.matrix_transpose, np.moveaxis, np.ravel, np.repeat,
        np.roll, np.rollaxis, np.rot90, np.split, np.squeeze, np.swapaxes, np.take, np.tile,
        np.tril, np.triu, np.vsplit,
    )
}  # fmt: skip
