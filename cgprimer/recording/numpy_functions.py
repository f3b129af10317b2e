"""NumPy's functions for recorded values, composed of recorded operations.

Source of their meaning: numpy's reference, NEP 13 and NEP 18.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np

from cgprimer.core.operations import matrix_operations, numpy_arithmetic
from cgprimer.core.operations.array_shapes import normalize_axes
from cgprimer.core.operations.element_operations import concatenate
from cgprimer.core.operations.function_expansions import emit_root_of_squares
from cgprimer.errors import (
    CgprimerError,
    DifferentiationError,
    ShapeError,
    UsageError,
    pluralize,
)
from cgprimer.recording.data_conversion import to_operand
from cgprimer.recording.eager_builder import EAGER, shape_error
from cgprimer.recording.einsum import einsum, kron, tensordot
from cgprimer.recording.rearranging import stack, to_value, wrap_rearrangement
from cgprimer.recording.source_lines import locate_errors
from cgprimer.recording.value_base import get_data


def _emit_primitive(name: str, *operands: Any) -> Any:
    """Apply a primitive to operands that may be plain numbers or arrays."""
    return EAGER.emit(name, *map(to_operand, operands))


UFUNCS: dict[Any, Callable[..., Any]] = {
    function: partial(EAGER.emit if function.nin == 1 else _emit_primitive, name)
    for name, function in reversed(numpy_arithmetic.FUNCTIONS.items())
    if isinstance(function, np.ufunc)
}
UFUNCS |= {
    np.matmul: lambda a, b: matrix_operations.matmul(EAGER, to_operand(a), to_operand(b)),
    np.square: lambda a: a * a,
    np.reciprocal: lambda a: 1.0 / a,
    np.positive: lambda a: a,
    np.logaddexp: partial(_emit_primitive, "logaddexp"),
    np.float_power: partial(_emit_primitive, "pow"),
    np.fabs: lambda a: EAGER.emit("abs", a),
    np.exp2: lambda a: EAGER.emit("pow", 2.0, a),
    np.hypot: lambda a, b: _hypotenuse(to_operand(a), to_operand(b)),
    np.heaviside: lambda a, b: EAGER.emit("where", EAGER.emit("equal", a, 0.0), b,
                                          EAGER.emit("less", 0.0, a)),
}  # fmt: skip
REDUCTIONS = {np.add: "sum", np.maximum: "max", np.minimum: "min", np.multiply: "prod"}
#: Functions with zero derivative, computed on plain data.
PLAIN = {
    np.greater, np.greater_equal, np.less, np.less_equal, np.equal, np.not_equal, np.isnan,
    np.isfinite, np.isinf, np.signbit, np.floor, np.ceil, np.rint, np.trunc, np.logical_not,
    np.logical_and, np.logical_or, np.argmax, np.argmin, np.argsort, np.shape, np.ndim, np.size,
    np.zeros_like, np.ones_like, np.full_like, np.empty_like, np.allclose, np.isclose, np.all,
    np.any, np.array_equal, np.round, np.result_type, np.nonzero, np.count_nonzero,
    np.array_repr, np.array_str, np.array2string, np.searchsorted,
}  # fmt: skip


def apply_ufunc(ufunc: Any, method: str, inputs: Any, options: Any) -> Any:
    """Apply a numpy ufunc to recorded values: the implementation of ``__array_ufunc__``."""
    if method == "__call__" and not options and ufunc in UFUNCS:
        return UFUNCS[ufunc](*inputs)
    return _apply_ufunc_method(ufunc, method, inputs, options)


@locate_errors
def _apply_ufunc_method(ufunc: Any, method: str, inputs: Any, options: Any) -> Any:
    """Apply a ufunc with options, or a method of a ufunc such as ``np.add.reduce``."""
    axis = options.get("axis", 0)  # None means all axes
    options = {k: v for k, v in options.items() if v is not None}
    _check_ufunc_options(ufunc, method, options)
    if method == "reduce" and ufunc in REDUCTIONS:
        keepdims = options.get("keepdims", False)
        return getattr(inputs[0], REDUCTIONS[ufunc])(axis, keepdims=keepdims)
    if method == "outer" and ufunc in UFUNCS:
        a, b = map(to_value, inputs)
        return UFUNCS[ufunc](a.reshape(*a.shape, *[1] * b.ndim), b)
    if ufunc in PLAIN:
        data = [*map(get_data, inputs)]
        try:
            return getattr(ufunc, method)(*data, **options)
        except ValueError as error:
            raise shape_error(ufunc.__name__, data, error) from None
    if method != "__call__" or ufunc not in UFUNCS:
        name = ufunc.__name__ + ("" if method == "__call__" else f".{method}")
        raise _unsupported_function_error(f"numpy.{name}", [u.__name__ for u in UFUNCS])
    return UFUNCS[ufunc](*inputs)


def _check_ufunc_options(ufunc: Any, method: str, options: dict[str, Any]) -> None:
    """Raise DifferentiationError for an option that recording a ufunc does not support."""
    if "out" in options:
        raise DifferentiationError(
            f"recording numpy.{ufunc.__name__} does not support the option out=",
            hint="use the returned value instead of out= or an in-place operator on an array",
        )
    unsupported = options.keys() - ({"axis", "keepdims"} if method == "reduce" else {})
    if unsupported and method in ("__call__", "reduce", "outer") and ufunc not in PLAIN:
        raise DifferentiationError(
            f"recording numpy.{ufunc.__name__} does not support the option {min(unsupported)}="
        )


def apply_function(function: Any, args: Any, kwargs: Any) -> Any:
    """Apply a numpy function to recorded values: the implementation of ``__array_function__``."""
    implementation = FUNCTIONS.get(function.__name__)
    if function in PLAIN:
        implementation, args = function, map(get_data, args)
        kwargs = {k: get_data(v) for k, v in kwargs.items()}
    if implementation is None:
        raise _unsupported_function_error(f"{function.__module__}.{function.__name__}", FUNCTIONS)
    try:
        return implementation(*args, **kwargs)
    except TypeError as error:
        if "argument" not in str(error):
            raise UsageError(f"numpy.{function.__name__}: {error}") from None
        detail = str(error).partition("() ")[2] or error
        raise DifferentiationError(
            f"recording numpy.{function.__name__} does not support these arguments: {detail}"
        ) from None
    except (ValueError, IndexError, ZeroDivisionError) as error:
        if isinstance(error, CgprimerError):
            raise
        raise ShapeError(f"numpy.{function.__name__}: {error}") from None


#: Suggested replacements; for other functions, the closest name is suggested.
_REPLACEMENTS = {
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


def _unsupported_function_error(name: str, supported: Any) -> DifferentiationError:
    """Return the error for an unsupported numpy function, with a replacement as a hint."""
    short_name = name.rpartition(".")[2]
    similar = difflib.get_close_matches(short_name, list(supported), 1, 0.75)
    if short_name in _REPLACEMENTS:
        similar = [_REPLACEMENTS[short_name]]
    hint = "rewrite the expression with supported functions"
    if similar:
        hint = f"use the closest supported function, numpy.{similar[0]}"
    return DifferentiationError(
        f"cannot differentiate {name}",
        hint=f"{hint}, or define a derivative with primitive(f, derivative=...)",
    )


def _hypotenuse(a: Any, b: Any) -> Any:
    """Compute ``numpy.hypot``; scale operands whose squares would overflow or underflow."""
    longest = np.fmax(abs(get_data(a)), abs(get_data(b)))
    extreme = (longest > 0) & (longest < np.inf) & ((longest < 1e-15) | (longest > 1e15))
    if not np.any(extreme):
        return np.sqrt(a * a + b * b)
    scale = np.where(extreme, longest, longest.dtype.type(1.0))
    return np.sqrt((a / scale) ** 2 + (b / scale) ** 2) * scale


def _concatenate(arrays: Any, axis: int | None = 0) -> Any:
    """Compute ``numpy.concatenate`` of recorded values."""
    values = [to_value(a) for a in arrays]
    if axis is None:
        values, axis = [v.reshape(-1) for v in values], 0
    return concatenate(EAGER, values, axis)


def _vstack(arrays: Any) -> Any:
    """Compute ``numpy.vstack`` of recorded values."""
    return _concatenate([a.reshape(1, -1) if a.ndim < 2 else a for a in map(to_value, arrays)])


def _hstack(arrays: Any) -> Any:
    """Compute ``numpy.hstack`` of recorded values."""
    axis = 1 if to_value(arrays[0]).ndim > 1 else 0
    return _concatenate([*map(np.atleast_1d, map(to_value, arrays))], axis)


def _column_stack(arrays: Any) -> Any:
    """Compute ``numpy.column_stack`` of recorded values."""
    columns = [a.reshape(-1, 1) if a.ndim < 2 else a for a in map(to_value, arrays)]
    return _concatenate(columns, 1)


def _dot(a: Any, b: Any) -> Any:
    """Compute ``numpy.dot`` of recorded values."""
    a, b = to_value(a), to_value(b)
    if not (a.ndim and b.ndim):
        return a * b
    return tensordot(a, b, (-1, -2)) if b.ndim > 2 else a @ b


def _inner(a: Any, b: Any) -> Any:
    """Compute ``numpy.inner``: a sum of products over the last axes of both operands."""
    a, b = to_value(a), to_value(b)
    if not (a.ndim and b.ndim):
        return a * b
    return tensordot(a, b, (-1, -1)) if b.ndim > 2 else a @ b.T


def _outer(a: Any, b: Any) -> Any:
    """Compute ``numpy.outer`` of recorded values."""
    return to_value(a).reshape(-1, 1) * to_value(b).reshape(1, -1)


def _broadcast_to(a: Any, shape: Any) -> Any:
    """Compute ``numpy.broadcast_to`` of a recorded value."""
    return EAGER.broadcast(to_value(a), tuple(shape) if hasattr(shape, "__iter__") else (shape,))


def _where(condition: Any, *choices: Any) -> Any:
    """Compute ``numpy.where``; without choices, return the indices of nonzero elements."""
    if not choices:
        return np.nonzero(get_data(condition))
    return EAGER.emit("where", to_operand(get_data(condition)), *map(to_operand, choices))


def _norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Compute ``numpy.linalg.norm`` of a recorded value."""
    if ord in (1, np.inf) and (a.ndim == 1 or isinstance(axis, int)):
        return abs(a).sum(axis, keepdims) if ord == 1 else abs(a).max(axis, keepdims)
    if ord not in (None, 2, "fro") or (ord == 2 and not isinstance(axis, int) and a.ndim > 1):
        raise DifferentiationError(
            "cannot record numpy.linalg.norm with this ord: use the Euclidean norm or, for vectors,"
            f" ord=1 or ord=inf, got {ord!r}"
        )
    return emit_root_of_squares(EAGER, (a * a).sum(axis, keepdims))


def _variance(a: Any, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Any:
    """Compute ``numpy.var`` of a recorded value."""
    centered = a - a.mean(axis, True)
    count = a.size / max(np.size(get_data(a.sum(axis))), 1)
    return (centered * centered).sum(axis, keepdims) / max(count - ddof, 0.0)


def _standard_deviation(a: Any, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Any:
    """Compute ``numpy.std`` of a recorded value."""
    return emit_root_of_squares(EAGER, _variance(a, axis, ddof=ddof, keepdims=keepdims))


def _product(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Compute ``numpy.prod`` pairwise, so that derivatives are correct if factors are zero."""
    reduced = normalize_axes(a.shape, axis)
    remaining = [i for i in range(-a.ndim, 0) if i not in reduced]
    rows = a.transpose([*reduced, *remaining]).reshape(-1, *[a.shape[i] for i in remaining])
    factors = [rows[i] for i in range(len(rows))] or [rows.sum(0) + 1.0]
    while len(factors) > 1:
        pairs = [p * q for p, q in zip(factors[::2], factors[1::2], strict=False)]
        factors = pairs + factors[len(factors) // 2 * 2 :]
    shape = [1 if i in reduced else a.shape[i] for i in range(-a.ndim, 0)]
    return factors[0].reshape(shape) if keepdims else factors[0]


def _cumulative_sum(a: Any, axis: int | None = None) -> Any:
    """Compute ``numpy.cumsum`` of a recorded value in a logarithmic number of operations."""
    if axis is None:
        a, axis = a.reshape(-1), 0
    a, step = _moveaxis(a, axis, 0), 1
    while step < len(a):  # sums of 2, 4, 8 terms; a triangular matrix would turn inf into nan
        a, step = _concatenate([a[:step], a[step:] + a[:-step]]), 2 * step
    return _moveaxis(a, 0, axis)


def _take_along_axis(a: Any, indices: Any, axis: int | None = -1) -> Any:
    """Compute ``numpy.take_along_axis``; both arrays must have the same number of axes."""
    if axis is None:
        a, axis = a.reshape(-1), 0
    if indices.ndim != a.ndim:
        raise ShapeError(
            f"`indices` must have {pluralize(a.ndim, 'axis', 'axes')} to match the array of shape"
            f" {a.shape}, got shape {indices.shape}"
        )
    key = [*np.ogrid[tuple(map(slice, a.shape))]]
    key[normalize_axes(a.shape, axis)[0]] = indices
    return a[tuple(np.broadcast_arrays(*key))]


def _sort(a: Any, axis: int | None = -1) -> Any:
    """Compute ``numpy.sort`` of a recorded value."""
    return _take_along_axis(a, np.argsort(get_data(a), axis, kind="stable"), axis)


def _differences(a: Any, n: int = 1, axis: int = -1) -> Any:
    """Compute ``numpy.diff`` of a recorded value."""
    a = _moveaxis(a, axis, 0)
    if n < 0:
        raise ShapeError(f"`n` (the order of differences) must be non-negative, got {n}")
    for _ in range(n):
        a = a[1:] - a[:-1]
    return _moveaxis(a, 0, axis)


def _pad(a: Any, pad_width: Any, mode: Any = "constant") -> Any:
    """Compute ``numpy.pad`` of a recorded value; the mode must pad with zeros or copies."""
    if mode not in ("constant", "edge", "reflect", "symmetric", "wrap"):
        raise DifferentiationError(f"recording numpy.pad does not support mode={mode!r}")
    return wrap_rearrangement(np.pad)(a, pad_width, mode)


def _clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    """Compute ``numpy.clip`` of a recorded value."""
    lower = next((to_operand(bound) for bound in (a_min, min) if bound is not None), -np.inf)
    upper = next((to_operand(bound) for bound in (a_max, max) if bound is not None), np.inf)
    return EAGER.emit("clamp", to_operand(a), lower, upper)


def _average(a: Any, axis: Any = None, weights: Any = None) -> Any:
    """Compute ``numpy.average`` of a recorded value."""
    if weights is None:
        return a.mean(axis)
    a, weights = to_value(a), to_value(weights)
    if weights.shape != a.shape:
        if axis is None or weights.ndim != 1:
            raise ShapeError(f"`weights` must have shape {a.shape}, got {weights.shape}")
        weights = weights.reshape([-1 if i == axis % a.ndim else 1 for i in range(a.ndim)])
    return (a * weights).sum(axis) / weights.sum(axis)


_moveaxis = wrap_rearrangement(np.moveaxis)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda a, axis=None, *, keepdims=False: to_value(a).sum(axis, keepdims),
    "mean": lambda a, axis=None, *, keepdims=False: to_value(a).mean(axis, keepdims),
    "max": lambda a, axis=None, *, keepdims=False: to_value(a).max(axis, keepdims),
    "amax": lambda a, axis=None, *, keepdims=False: to_value(a).max(axis, keepdims),
    "min": lambda a, axis=None, *, keepdims=False: to_value(a).min(axis, keepdims),
    "amin": lambda a, axis=None, *, keepdims=False: to_value(a).min(axis, keepdims),
    "ptp": lambda a, axis=None, *, keepdims=False: a.max(axis, keepdims) - a.min(axis, keepdims),
    "var": _variance,
    "std": _standard_deviation,
    "dot": _dot,
    "vdot": lambda a, b: _dot(to_value(a).reshape(-1), to_value(b).reshape(-1)),
    "inner": _inner,
    "outer": _outer,
    "transpose": lambda a, axes=None: to_value(a).transpose(*(() if axes is None else axes)),
    "reshape": lambda a, shape: to_value(a).reshape(shape),
    "broadcast_to": _broadcast_to,
    "concatenate": _concatenate,
    "stack": stack,
    "vstack": _vstack,
    "hstack": _hstack,
    "dstack": lambda arrays: _concatenate(
        [wrap_rearrangement(np.atleast_3d)(a) for a in arrays], 2
    ),
    "column_stack": _column_stack,
    "append": lambda a, b, axis=None: _concatenate([a, b], axis),
    "where": _where,
    "clip": _clip,
    "norm": _norm,
    "copy": lambda a: a * 1.0,
    "prod": _product,
    "cumsum": _cumulative_sum,
    "sort": _sort,
    "take_along_axis": _take_along_axis,
    "average": _average,
    "diff": _differences,
    "trace": lambda a, *offsets, **axes: np.diagonal(a, *offsets, **axes).sum(-1),
    "atleast_1d": wrap_rearrangement(np.atleast_1d, 0),
    "atleast_2d": wrap_rearrangement(np.atleast_2d, 0),
    "atleast_3d": wrap_rearrangement(np.atleast_3d, 0),
    "pad": _pad,
    "kron": kron,
    "einsum": einsum,
    "tensordot": tensordot,
    "multi_dot": lambda arrays: reduce(_dot, arrays),
}
FUNCTIONS |= {
    function.__name__: wrap_rearrangement(function)
    for function in (
        np.array_split, np.delete, np.diag, np.diagonal, np.dsplit, np.expand_dims, np.flip,
        np.fliplr, np.flipud, np.hsplit, np.matrix_transpose, np.moveaxis, np.ravel, np.repeat,
        np.roll, np.rollaxis, np.rot90, np.split, np.squeeze, np.swapaxes, np.take, np.tile,
        np.tril, np.triu, np.vsplit,
    )
}  # fmt: skip
