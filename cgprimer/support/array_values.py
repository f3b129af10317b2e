"""Values that are floats or arrays; numpy is imported when the first array is used."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cgprimer.errors import ShapeError, UsageError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Value = Any  #: a float, or an array of samples
_ROWS = "all rows must be lists of numbers of equal length; fill masked arrays, as in filled(0.0)"


def convert_value(name: str, value: Any, shape: tuple[int, ...] = ()) -> Value:
    """Convert a value to a float or to an array of doubles.

    If a shape is given, the last axes of the result have this shape; a scalar fills the array.

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
            raise UsageError(f"{name!r} must be within the range of float64") from None
    try:
        import numpy as np

        array = np.asarray(value)
        if array.dtype.kind not in "fiub" or type(value).__name__ == "MaskedArray":
            raise TypeError
    except ImportError:
        raise UsageError(
            f"{name!r} must be a real number, because arrays require the package numpy",
            hint="run pip install numpy",
        ) from None
    except (TypeError, ValueError):
        raise UsageError(
            f"{name!r} must be a real number or an array of real numbers",
            hint=_ROWS if type(value).__name__ in ("list", "MaskedArray") else "",
        ) from None
    if shape:
        if not array.ndim:
            return np.full(shape, float(array))
        if array.shape[-len(shape) :] != shape:
            raise ShapeError(
                f"{name!r} must have shape {list(shape)}, got {list(array.shape)}",
                hint="pass a scalar to fill the array; additional leading axes are samples",
            )
    return array.astype(float) if array.ndim else float(array)


def broadcast_sample_shapes(
    values: Mapping[str, Value], shapes: Mapping[str, tuple[int, ...]] = MappingProxyType({})
) -> tuple[int, ...]:
    """Return the broadcast shape of the sample axes of all values; ``()`` for a single sample.

    Args:
        values: floats and arrays, keyed by name.
        shapes: the shapes per sample of array-valued names; leading axes are samples.

    Raises:
        ValueError: the sample axes cannot be broadcast.
    """
    arrays = {n: v for n, v in values.items() if not isinstance(v, float)}
    samples = [v.shape[: v.ndim - len(shapes.get(n, ()))] for n, v in arrays.items()]
    if not samples:
        return ()
    import numpy as np

    return tuple(np.broadcast_shapes(*samples))


def all_finite(value: Any) -> bool:
    """Return whether a float, or every element of an array, is finite.

    >>> all_finite(1.0), all_finite(float("nan"))
    (True, False)
    """
    if isinstance(value, float):
        return math.isfinite(value)
    import numpy as np

    return bool(np.isfinite(value).all())


def find_nonfinite(value: Value, rank: int = 0) -> tuple[float, int, str] | None:
    """Find the first infinite or nan element of a value.

    Args:
        value: a float or an array of samples.
        rank: number of axes of one sample, which are the last axes of the array.

    Returns:
        The element, the index of its sample and its indices as a string; None if all are finite.

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
    """Return the number of axes of an array; 0 for a float."""
    return 0 if isinstance(value, float) else int(value.ndim)


def zeros(shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Return an array of zeros with the given shape."""
    import numpy as np

    return np.zeros(shape)
