"""Functions of numpy on values: what they are made of here, so that they are recorded.

Source of what they mean: numpy's reference, NEP 13 and NEP 18.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from functools import partial, reduce
from string import ascii_letters
from typing import Any

import numpy as np

from cgprimer.core.primitives import arrays, shaped
from cgprimer.core.primitives.structural import shape_text
from cgprimer.errors import CgprimerError, DifferentiationError, ShapeError
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
    except (ValueError, IndexError) as error:
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
    "divmod": "floor",
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
    if ord in (1, np.inf) and (a.ndim == 1 or isinstance(axis, int)):
        return abs(a).sum(axis, keepdims) if ord == 1 else abs(a).max(axis, keepdims)
    if ord not in (None, 2, "fro") or (ord == 2 and not isinstance(axis, int) and a.ndim > 1):
        raise DifferentiationError(
            "numpy.linalg.norm is recorded for the Euclidean norm, and 1 and inf of vectors"
        )
    return np.sqrt((a * a).sum(axis, keepdims))


def _variance(a: Any, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Any:
    moved = a - a.mean(axis, True)
    count = a.size / max(np.size(_plain(a.sum(axis))), 1)
    return (moved * moved).sum(axis, keepdims) / (count - ddof)


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


def _rearranged(function: Callable[..., Any], most: int = 9) -> Callable[..., Any]:
    """A function of numpy that moves elements: it is asked where each goes; 0 fills the rest."""

    def applied(a: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) + len(kwargs) > most:
            raise TypeError(f"more than {most} arguments after the array")
        a = _value(a)
        places = function(_places(a), *args, **kwargs)
        return [_placed(a, p) for p in places] if isinstance(places, list) else _placed(a, places)

    return applied


def _places(a: Any) -> Any:
    """For each element its place, counted from 1."""
    return np.arange(1, a.size + 1).reshape(a.shape)


def _placed(a: Any, places: Any) -> Any:
    """The elements at such places, 0 at 0; by a shape, an order of axes or slices if these do."""
    own = _places(a)
    if np.array_equal(places.reshape(-1), own.reshape(-1)):
        return a.reshape(places.shape)
    if places.ndim == a.ndim and places.size and places.all():
        order = np.argsort(np.argsort([-step for step in places.strides], kind="stable"))
        if places.size == a.size and np.array_equal(own.transpose(order), places):
            return a.transpose(order.tolist())
        key = []
        first = np.unravel_index(places.flat[0] - 1, a.shape)
        for axis, (begin, n) in enumerate(zip(map(int, first), places.shape, strict=True)):
            second = places.take(min(1, n - 1), axis).flat[0] - 1
            step = int(np.unravel_index(second, a.shape)[axis]) - begin or 1
            end = begin + step * n
            key.append(slice(begin, end if end >= 0 else None, step))
        if np.array_equal(own[tuple(key)], places):
            return a[tuple(key)]
    made = a.reshape(-1)[places - 1]
    return made if places.all() else np.where(places > 0, made, 0.0)


_moved = _rearranged(np.moveaxis)


def _kron(a: Any, b: Any) -> Any:
    a, b = _value(a), _value(b)
    rank = max(a.ndim, b.ndim)
    left, right = ((1,) * (rank - x.ndim) + x.shape for x in (a, b))
    made = a.reshape([n for size in left for n in (size, 1)]) * b.reshape(
        [n for size in right for n in (1, size)]
    )
    return made.reshape([n * m for n, m in zip(left, right, strict=True)])


def _einsum(subscripts: Any, *operands: Any) -> Any:
    """Products two by two, each a product of matrices; other letters are summed over before."""
    text = subscripts.replace(" ", "") if isinstance(subscripts, str) else "."
    given, arrow, out = text.partition("->")
    names, values = given.split(","), [_value(o) for o in operands]
    if not text.replace("->", "").replace(",", "").isalpha() and text != "->":
        raise DifferentiationError(
            "numpy.einsum is recorded with letters alone", hint="np.einsum('ij,jk->ik', a, b)"
        )
    if [len(name) for name in names] != [v.ndim for v in values]:
        shapes = " and ".join(shape_text(v.shape) for v in values)
        raise ShapeError(f"the letters {given!r} do not fit {shapes}: one for each axis")
    sizes: dict[str, int] = {}
    for letter, n in ((c, n) for w, v in zip(names, values, strict=True)
                      for c, n in zip(w, v.shape, strict=True)):  # fmt: skip
        if sizes.setdefault(letter, n) != n:
            raise ShapeError(f"the letter {letter!r} stands for the sizes {sizes[letter]} and {n}")
    if not arrow:
        out = "".join(sorted(c for c in sizes if given.count(c) == 1))
    if len(set(out)) < len(out) or set(out) - sizes.keys():
        raise ShapeError(f"the result {out!r} has letters twice, or such as no operand has")

    def alone(a: Any, own: str, wanted: str) -> tuple[Any, str]:
        """Letters that stand twice are a diagonal, those that nobody wants are summed over."""
        once = "".join(dict.fromkeys(own))
        if once != own:
            a = _placed(a, np.einsum(f"{own}->{once}", _places(a)))
        gone = tuple(i for i, c in enumerate(once) if c not in wanted)
        return (a.sum(gone) if gone else a), "".join(c for c in once if c in wanted)

    def shaped_as(a: Any, own: str, *groups: str) -> Any:
        """Axes in the order of their letters, each group after the first as one axis."""
        a = a.transpose([own.index(c) for c in "".join(groups)])
        whole = [math.prod(sizes[c] for c in group) for group in groups[1:]]
        return a.reshape([*(sizes[c] for c in groups[0]), *whole])

    a, own = alone(values[0], names[0], out + "".join(names[1:]))
    for i, (b, other) in enumerate(zip(values[1:], names[1:], strict=True), 2):
        later = out + "".join(names[i:])
        a, own = alone(a, own, later + other)
        b, other = alone(b, other, later + own)  # noqa: PLW2901
        both = "".join(c for c in own if c in other and c in later)
        inner = "".join(c for c in own if c in other and c not in later)
        left, right = ("".join(c for c in w if c not in both + inner) for w in (own, other))
        made = shaped_as(a, own, both, left, inner) @ shaped_as(b, other, both, inner, right)
        own = both + left + right
        a = made.reshape([sizes[c] for c in own])
    a, own = alone(a, own, out)
    return a.transpose([own.index(c) for c in out])


def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    a, b = _value(a), _value(b)
    pairs = (range(-axes, 0), range(axes)) if isinstance(axes, int) else axes
    ours, theirs = (np.atleast_1d(places) for places in pairs)
    left, right = list(ascii_letters[: a.ndim]), list(ascii_letters[a.ndim : a.ndim + b.ndim])
    for i, j in zip(ours, theirs, strict=True):
        right[j] = left[i]
    out = [c for c in left + right if (left + right).count(c) == 1]
    return _einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", a, b)


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
    "transpose": lambda a, axes=None: _value(a).transpose(*(axes or ())),
    "reshape": lambda a, shape: _value(a).reshape(shape),
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
    "append": lambda a, b, axis=None: _concatenate([a, b], axis),
    "trace": lambda a, offset=0: np.diagonal(a, offset).sum(-1),
    "atleast_1d": _rearranged(np.atleast_1d, 0),
    "atleast_2d": _rearranged(np.atleast_2d, 0),
    "atleast_3d": _rearranged(np.atleast_3d, 0),
    "dstack": lambda parts: _concatenate([_rearranged(np.atleast_3d)(p) for p in parts], 2),
    "pad": _rearranged(np.pad, 1),
    "kron": _kron,
    "einsum": _einsum,
    "tensordot": _tensordot,
    "multi_dot": lambda parts: reduce(_dot, parts),
    "column_stack": lambda parts: _concatenate(
        [p.reshape(-1, 1) if p.ndim < 2 else p for p in map(_value, parts)], 1),
}  # fmt: skip
FUNCTIONS |= {
    function.__name__: _rearranged(function)
    for function in (
        np.array_split, np.delete, np.diag, np.diagonal, np.dsplit, np.expand_dims, np.flip,
        np.fliplr, np.flipud, np.hsplit, np.matrix_transpose, np.moveaxis, np.ravel, np.repeat,
        np.roll, np.rollaxis, np.rot90, np.split, np.squeeze, np.swapaxes, np.take, np.tile,
        np.tril, np.triu, np.vsplit,
    )
}  # fmt: skip
