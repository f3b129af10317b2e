"""Numbers and arrays of samples, alike: numpy comes in when arrays do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from cgprimer.errors import ShapeError, UsageError

Value = Any  # a float, or an ndarray of samples


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
        if array.dtype.kind not in "fiub":
            raise TypeError
    except (TypeError, ValueError, ImportError):
        raise UsageError(
            f"the value of {name!r} must be a real number or an array of them"
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
    shapes = [
        value.shape[: value.ndim - len(own.get(name, ()))]
        for name, value in values.items()
        if not isinstance(value, float)
    ]
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


def first_bad(value: Value) -> tuple[float, int] | None:
    """The first number that is not finite, and its sample; None if all are finite.

    >>> first_bad(1.0), first_bad(float("inf"))
    (None, (inf, 0))
    """
    if all_finite(value):
        return None
    numbers = [value] if isinstance(value, float) else value.reshape(-1).tolist()
    return next((n, sample) for sample, n in enumerate(numbers) if not math.isfinite(n))


def axes(value: Value) -> int:
    """How many axes a value has; a number has none."""
    return 0 if isinstance(value, float) else int(value.ndim)


def zeros(shape: tuple[int, ...]) -> Any:
    """An array of zeros."""
    import numpy as np

    return np.zeros(shape)
