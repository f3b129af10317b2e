"""Numbers and arrays of samples, alike: numpy comes in when arrays do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from cgprimer.errors import ShapeError, UsageError

Value = Any  # a float, or an ndarray of samples
_ROWS = "its rows are equally long, and of numbers, none of them masked: filled(0.0), say"


def as_value(name: str, value: Any, shape: tuple[int, ...] = ()) -> Value:
    """A float, or an array of doubles.

    With a shape it is an array whose last axes have that shape; one number fills it.

    Raises:
        UsageError: it is neither a real number nor an array of them.

    >>> as_value("xa", 2), as_value("xa", [1, 2])
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
            given, wanted = list(array.shape), list(shape)
            raise ShapeError(
                f"{name!r} has the shape {wanted}, the value {given}",
                hint=f"one number for all, or shape {wanted}; axes before it are samples",
            )
    return array.astype(float) if array.ndim else float(array)


def common_shape(
    values: Mapping[str, Value], own: Mapping[str, tuple[int, ...]] = MappingProxyType({})
) -> tuple[int, ...]:
    """The shape of the samples that values broadcast to; ``()`` where there is one sample.

    Args:
        values: numbers and arrays by name.
        own: the shapes of those that are arrays for one sample; samples are the axes before.

    Raises:
        ValueError: they do not broadcast together.
    """
    arrays = {n: v for n, v in values.items() if not isinstance(v, float)}
    shapes = [v.shape[: v.ndim - len(own.get(n, ()))] for n, v in arrays.items()]
    if not shapes:
        return ()
    import numpy as np

    return tuple(np.broadcast_shapes(*shapes))


def all_finite(value: Any) -> bool:
    """Whether a number, or every number of an array, is finite.

    >>> all_finite(1.0), all_finite(float("nan"))
    (True, False)
    """
    if isinstance(value, float):
        return math.isfinite(value)
    import numpy as np

    return bool(np.isfinite(value).all())


def first_bad(value: Value, rank: int = 0) -> tuple[float, int, str] | None:
    """The first number that is not finite, its sample and its place; None if all are finite.

    Args:
        value: a number or an array of samples.
        rank: how many axes, the last ones, a sample has of its own: they give the place.

    >>> import numpy as np
    >>> first_bad(1.0), first_bad(np.array([[1.0, 2.0], [3.0, np.inf]]), 1)
    (None, (inf, 1, '[1]'))
    """
    if all_finite(value):
        return None
    if isinstance(value, float):
        return value, 0, ""
    import numpy as np

    flat = value.reshape(-1)
    first = int(np.flatnonzero(~np.isfinite(flat))[0])
    own = value.shape[value.ndim - rank :]
    sample, inside = divmod(first, math.prod(own))
    place = ",".join(str(int(n)) for n in np.unravel_index(inside, own)) if own else ""
    return float(flat[first]), sample, f"[{place}]" if place else ""


def axes(value: Value) -> int:
    """How many axes a value has; a number has none."""
    return 0 if isinstance(value, float) else int(value.ndim)


def zeros(shape: tuple[int, ...]) -> Any:
    """An array of zeros."""
    import numpy as np

    return np.zeros(shape)
