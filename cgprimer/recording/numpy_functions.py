"""Functions of numpy on values: what they are made of here, so that they are recorded.

Source of what they mean: numpy's reference, NEP 13 and NEP 18.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cgprimer.core.primitives import arrays, shaped
from cgprimer.errors import DifferentiationError, ShapeError
from cgprimer.recording.eager import EAGER, Recorded
from cgprimer.recording.operators import lifted
from cgprimer.recording.value import Value


def _emitted(name: str, *operands: Any) -> Any:
    return EAGER.emit(name, *map(lifted, operands))


UFUNCS: dict[Any, Callable[..., Any]] = {
    function: partial(_emitted, name)
    for name, function in reversed(arrays.FUNCTIONS.items())
    if isinstance(function, np.ufunc)
}
UFUNCS |= {
    np.matmul: lambda a, b: shaped.matmul(EAGER, lifted(a), lifted(b)),
    np.square: lambda a: a * a,
    np.reciprocal: lambda a: 1.0 / a,
    np.positive: lambda a: a,
    np.float_power: lambda a, b: EAGER.emit("pow", lifted(a), lifted(b)),
    np.fabs: lambda a: EAGER.emit("abs", a),
    np.exp2: lambda a: EAGER.emit("pow", 2.0, a),
    np.hypot: lambda a, b: np.sqrt(a * a + b * b),
    np.heaviside: lambda a, b: EAGER.emit("where", EAGER.emit("equal", a, 0.0), b,
                                          EAGER.emit("less", 0.0, a)),
}  # fmt: skip
REDUCTIONS = {np.add: "sum", np.maximum: "max", np.minimum: "min"}
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
    axis = options.get("axis", 0)  # None is all of them
    options = {k: v for k, v in options.items() if v is not None}
    if "out" in options:
        raise DifferentiationError(
            f"numpy.{ufunc.__name__} cannot write into an array that is recorded",
            hint="use its result, without out= or an in-place operator",
        )
    if method == "reduce" and ufunc in REDUCTIONS:
        return getattr(inputs[0], REDUCTIONS[ufunc])(axis, options.get("keepdims", False))
    if method == "outer" and ufunc is np.multiply:
        return _outer(*inputs).reshape(np.shape(inputs[0]) + np.shape(inputs[1]))
    if ufunc in PLAIN:
        return getattr(ufunc, method)(*map(_plain, inputs), **options)
    if options and method == "__call__":
        raise DifferentiationError(
            f"numpy.{ufunc.__name__} is recorded without the option {next(iter(options))}="
        )
    if method != "__call__" or ufunc not in UFUNCS:
        what = ufunc.__name__ + ("" if method == "__call__" else f".{method}")
        raise _no_derivative(what, [u.__name__ for u in UFUNCS])
    return UFUNCS[ufunc](*inputs)


def apply_function(function: Any, args: Any, kwargs: Any) -> Any:
    """What numpy asks for when one of its other functions meets a value."""
    if function in PLAIN:
        return function(*map(_plain, args), **{k: _plain(v) for k, v in kwargs.items()})
    known = FUNCTIONS.get(function.__name__)
    if known is None:
        raise _no_derivative(function.__name__, FUNCTIONS)
    try:
        return known(*args, **kwargs)
    except TypeError as error:
        if "argument" not in str(error):
            raise
        what = f"numpy.{function.__name__} is recorded without this argument: {error}"
        raise DifferentiationError(what) from None


#: The nearest in meaning, where that is not the nearest in spelling.
_INSTEAD = {
    "remainder": "floor", "floor_divide": "floor", "median": "sort", "partition": "sort",
    "arctan2": "arctan", "nansum": "where", "nanmean": "where", "convolve": "matmul",
    "fft": "matmul", "inv": "matmul", "det": "prod", "solve": "matmul", "conjugate": "positive",
    "einsum": "matmul", "tensordot": "matmul", "interp": "where", "gradient": "diff",
    "i0": "exp", "unique": "sort",
}  # fmt: skip


def _no_derivative(name: str, known: Any) -> DifferentiationError:
    near = difflib.get_close_matches(name, list(known), 1, 0.6)
    near = [_INSTEAD[name]] if name in _INSTEAD else near
    hint = f"the nearest that can is numpy.{near[0]}" if near else "write it with those that can"
    return DifferentiationError(
        f"numpy.{name} cannot be differentiated here",
        hint=f"{hint}; primitive() makes one of a function and its derivative",
    )


def _plain(value: Any) -> Any:
    return value._data if isinstance(value, Recorded) else value


def _value(a: Any) -> Any:
    """An argument as a value; lists of values are joined."""
    if isinstance(a, Value):
        return a
    if isinstance(a, list | tuple) and any(isinstance(part, Value) for part in a):
        return _stack(a)
    return Value(a, requires_grad=False)


def _stack(parts: Any, axis: int = 0) -> Any:
    grown = []
    for part in map(_value, parts):
        place = axis % (part.ndim + 1)
        grown.append(part.reshape(*part.shape[:place], 1, *part.shape[place:]))
    return shaped.concatenate(EAGER, grown, axis)


def _concatenate(parts: Any, axis: int | None = 0) -> Any:
    values = [_value(p) for p in parts]
    if axis is None:
        values, axis = [v.reshape(-1) for v in values], 0
    return shaped.concatenate(EAGER, values, axis)


def _dot(a: Any, b: Any) -> Any:
    a, b = _value(a), _value(b)
    if b.ndim > 2:
        raise ShapeError("numpy.dot and inner are recorded for matrices and vectors", hint="use @")
    return a * b if not (a.ndim and b.ndim) else a @ b


def _outer(a: Any, b: Any) -> Any:
    return _value(a).reshape(-1, 1) * _value(b).reshape(1, -1)


def _where(condition: Any, *choices: Any) -> Any:
    if not choices:
        return np.nonzero(_plain(condition))
    return EAGER.emit("where", lifted(_plain(condition)), *map(lifted, choices))


def _norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if ord not in (None, 2) or (ord == 2 and not isinstance(axis, int) and a.ndim > 1):
        raise DifferentiationError("numpy.linalg.norm is recorded for the Euclidean norm alone")
    return np.sqrt((a * a).sum(axis, keepdims))


def _variance(a: Any, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Any:
    moved = a - a.mean(axis, True)
    count = a.size / max(np.size(_plain(a.sum(axis))), 1)
    return (moved * moved).sum(axis, keepdims) / (count - ddof)


def _swapped(a: Any, one: int, other: int) -> Any:
    order = list(range(a.ndim))
    first, second = (shaped.axes_of(a.shape, i)[0] % a.ndim for i in (one, other))
    order[first], order[second] = second, first
    return a.transpose(order)


def _moved(a: Any, source: Any, destination: Any) -> Any:
    for axes in (source, destination):
        shaped.axes_of(a.shape, axes if isinstance(axes, int) else tuple(axes))
    numbered = np.broadcast_to(0, range(1, a.ndim + 1))  # each size is the number of its axis
    return a.transpose([size - 1 for size in np.moveaxis(numbered, source, destination).shape])


def _product(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Two by two, so that a zero among the factors has its derivative."""
    gone = shaped.axes_of(a.shape, axis)
    kept = [i for i in range(-a.ndim, 0) if i not in gone]
    rows = a.transpose([*gone, *kept]).reshape(-1, *[a.shape[i] for i in kept])
    parts = [rows[i] for i in range(len(rows))] or [Value(np.ones(rows.shape[1:]))]
    while len(parts) > 1:
        pairs = [p * q for p, q in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[len(parts) // 2 * 2 :]
    shape = [1 if i in gone else a.shape[i] for i in range(-a.ndim, 0)]
    return parts[0].reshape(shape) if keepdims else parts[0]


def _cumulated(a: Any, axis: int | None = None) -> Any:
    if axis is None:
        a, axis = a.reshape(-1), 0
    size = a.shape[shaped.axes_of(a.shape, axis)[0]]
    return _moved(_moved(a, axis, -1) @ np.triu(np.ones((size, size), a.dtype)), -1, axis)


def _along(a: Any, places: Any, axis: int) -> Any:
    """``numpy.take_along_axis``: places of the shape of ``a``, along one axis."""
    index = list(np.indices(places.shape))
    index[axis] = places
    return a[tuple(index)]


def _sorted(a: Any, axis: int = -1) -> Any:
    return _along(a, np.argsort(_plain(a), axis, kind="stable"), shaped.axes_of(a.shape, axis)[0])


def _average(a: Any, axis: Any = None, weights: Any = None) -> Any:
    if weights is None:
        return a.mean(axis)
    a, weights = _value(a), _value(weights)
    if weights.shape != a.shape:
        if axis is None or weights.ndim != 1:
            raise ShapeError(f"weights of shape {weights.shape} do not fit {a.shape}")
        weights = weights.reshape([-1 if i == axis % a.ndim else 1 for i in range(a.ndim)])
    return (a * weights).sum(axis) / weights.sum(axis)


def _diagonal(a: Any) -> Any:
    if a.ndim != 2:
        raise ShapeError(f"the diagonal is recorded for matrices, not for the shape {a.shape}")
    places = np.arange(min(a.shape))
    return a[places, places]


def _flip(a: Any, axis: Any = None) -> Any:
    turned = shaped.axes_of(a.shape, axis)
    return a[tuple(slice(None, None, -1 if i in turned else 1) for i in range(-a.ndim, 0))]


def _triangle(a: Any, k: int) -> Any:
    return np.tri(a.shape[-2], a.shape[-1], k, dtype=bool)


def _expand(a: Any, axis: int) -> Any:
    if not -a.ndim <= axis + 1 <= a.ndim + 1:
        raise ShapeError(f"a value with {a.ndim} axes cannot get one at {axis}")
    place = axis % (a.ndim + 1)
    return a.reshape(*a.shape[:place], 1, *a.shape[place:])


def _squeeze(a: Any, axis: Any = None) -> Any:
    gone = [i for i, n in enumerate(a.shape) if n == 1] if axis is None else np.atleast_1d(axis)
    gone = [int(i) % a.ndim for i in gone]
    return a.reshape(tuple(n for i, n in enumerate(a.shape) if i not in gone))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda a, axis=None, keepdims=False: _value(a).sum(axis, keepdims),
    "mean": lambda a, axis=None, keepdims=False: _value(a).mean(axis, keepdims),
    "max": lambda a, axis=None, keepdims=False: _value(a).max(axis, keepdims),
    "amax": lambda a, axis=None, keepdims=False: _value(a).max(axis, keepdims),
    "min": lambda a, axis=None, keepdims=False: _value(a).min(axis, keepdims),
    "amin": lambda a, axis=None, keepdims=False: _value(a).min(axis, keepdims),
    "var": _variance,
    "std": lambda a, axis=None, *, ddof=0, keepdims=False: np.sqrt(
        _variance(a, axis, ddof=ddof, keepdims=keepdims)
    ),
    "dot": _dot,
    "vdot": lambda a, b: _dot(_value(a).reshape(-1), _value(b).reshape(-1)),
    "inner": lambda a, b: _dot(a, _value(b).T),
    "outer": _outer,
    "trace": lambda a: _diagonal(a).sum(),
    "diag": lambda a: _diagonal(a)
    if a.ndim > 1
    else a.reshape(-1, 1) * np.eye(len(a), dtype=a.dtype),
    "transpose": lambda a, axes=None: _value(a).transpose(*(axes or ())),
    "swapaxes": _swapped,
    "reshape": lambda a, shape: _value(a).reshape(shape),
    "ravel": lambda a: _value(a).reshape(-1),
    "squeeze": _squeeze,
    "expand_dims": _expand,
    "broadcast_to": lambda a, shape: EAGER.broadcast(_value(a), tuple(shape)),
    "concatenate": _concatenate,
    "stack": _stack,
    "vstack": lambda parts: _concatenate([p.reshape(1, -1) if p.ndim < 2 else p
                                          for p in map(_value, parts)]),
    "hstack": lambda parts: _concatenate(parts, 1 if _value(parts[0]).ndim > 1 else 0),
    "where": _where,
    "clip": lambda a, a_min=None, a_max=None: EAGER.emit(
        "clamp", a, -np.inf if a_min is None else lifted(a_min),
        np.inf if a_max is None else lifted(a_max)),
    "norm": _norm,
    "copy": lambda a: a * 1.0,
    "prod": _product,
    "cumsum": _cumulated,
    "sort": _sorted,
    "take_along_axis": _along,
    "average": _average,
    "ptp": lambda a, axis=None, keepdims=False: a.max(axis, keepdims) - a.min(axis, keepdims),
    "moveaxis": _moved,
    "diff": lambda a, axis=-1: _moved(
        _moved(a, axis, 0)[1:] - _moved(a, axis, 0)[:-1], 0, axis
    ),
    "roll": lambda a, shift, axis=None: _moved(
        _moved(a, axis, 0)[np.roll(np.arange(a.shape[axis]), shift)], 0, axis
    ) if axis is not None else a.reshape(-1)[np.roll(np.arange(a.size), shift)].reshape(a.shape),
    "repeat": lambda a, repeats, axis=None: _moved(
        _moved(a, axis, 0)[np.repeat(np.arange(a.shape[axis]), repeats)], 0, axis
    ) if axis is not None else a.reshape(-1)[np.repeat(np.arange(a.size), repeats)],
    "tile": lambda a, reps: a.reshape(-1)[np.tile(np.arange(a.size).reshape(a.shape), reps)],
    "tril": lambda a, k=0: np.where(_triangle(a, k), a, 0.0),
    "triu": lambda a, k=0: np.where(_triangle(a, k - 1), 0.0, a),
    "diagonal": _diagonal,
    "atleast_2d": lambda a: a if a.ndim > 1 else a.reshape(1, -1),
    "column_stack": lambda parts: _concatenate(
        [p.reshape(-1, 1) if p.ndim < 2 else p for p in map(_value, parts)], 1),
    "flip": _flip,
    "atleast_1d": lambda a: a if a.ndim else a.reshape(1),
}  # fmt: skip
