"""Values that are floats or arrays. numpy is imported when an array is used."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from cgprimer.errors import ShapeError, UsageError

Value = Any  # a float, or an ndarray of samples
_ROWS = "its rows are equally long, and of numbers, none of them masked: filled(0.0), say"


def convert_value(name: str, value: Any, shape: tuple[int, ...] = ()) -> Value:
    """Return a value as a float, or as an array of doubles.

    With a shape the result is an array whose last axes have that shape; a single number fills it.

    Raises:
        UsageError: the value is neither a real number nor an array of real numbers.
        ShapeError: the array has another shape.

    >>> convert_value("xa", 2), convert_value("xa", [1, 2])
    (2.0, array([1., 2.]))
    """
    if not shape and type(value) in (float, int, bool):
        try:
            return float(value)
        except OverflowError:
            raise UsageError(f"the value of {name!r} is too large for a double") from None
    try:
        import numpy as np

        array = np.asarray(value)
        if array.dtype.kind not in "fiub" or type(value).__name__ == "MaskedArray":
            raise TypeError
    except (TypeError, ValueError, ImportError):
        raise UsageError(
            f"the value of {name!r} must be a real number or an array of them",
            hint=_ROWS if type(value).__name__ in ("list", "MaskedArray") else "",
        ) from None
    if shape:
        if not array.ndim:
            return np.full(shape, float(array))
        if array.shape[-len(shape) :] != shape:
            raise ShapeError(
                f"{name!r} has the shape {list(shape)}, the value {list(array.shape)}",
                hint=f"one number for all, or shape {list(shape)}; axes before it are samples",
            )
    return array.astype(float) if array.ndim else float(array)


def broadcast_sample_shapes(
    values: Mapping[str, Value], shapes: Mapping[str, tuple[int, ...]] = MappingProxyType({})
) -> tuple[int, ...]:
    """Return the shape of the samples that values broadcast to; ``()`` for a single sample.

    Args:
        values: numbers and arrays by name.
        shapes: the shapes, for one sample, of names that stand for arrays; the axes before are
            samples.

    Raises:
        ValueError: the values do not broadcast together.
    """
    arrays = {n: v for n, v in values.items() if not isinstance(v, float)}
    samples = [v.shape[: v.ndim - len(shapes.get(n, ()))] for n, v in arrays.items()]
    if not samples:
        return ()
    import numpy as np

    return tuple(np.broadcast_shapes(*samples))


def all_finite(value: Any) -> bool:
    """Return whether a number, or every number of an array, is finite.

    >>> all_finite(1.0), all_finite(float("nan"))
    (True, False)
    """
    if isinstance(value, float):
        return math.isfinite(value)
    import numpy as np

    return bool(np.isfinite(value).all())


def find_nonfinite(value: Value, rank: int = 0) -> tuple[float, int, str] | None:
    """Return the first number that is not finite, its sample and its indices, or None.

    Args:
        value: a number or an array of samples.
        rank: number of axes, the last ones, of one sample.

    >>> import numpy as np
    >>> find_nonfinite(1.0), find_nonfinite(np.array([[1.0, 2.0], [3.0, np.inf]]), 1)
    (None, (inf, 1, '[1]'))
    """
    if all_finite(value):
        return None
    if isinstance(value, float):
        return value, 0, ""
    import numpy as np

    flat = value.reshape(-1)
    first = int(np.flatnonzero(~np.isfinite(flat))[0])
    shape = value.shape[value.ndim - rank :]
    sample, element = divmod(first, math.prod(shape))
    indices = ",".join(str(int(n)) for n in np.unravel_index(element, shape)) if shape else ""
    return float(flat[first]), sample, f"[{indices}]" if indices else ""


def count_axes(value: Value) -> int:
    """Return the number of axes of a value; a number has none."""
    return 0 if isinstance(value, float) else int(value.ndim)


def zeros(shape: tuple[int, ...]) -> Any:
    """Return an array of zeros."""
    import numpy as np

    return np.zeros(shape)
