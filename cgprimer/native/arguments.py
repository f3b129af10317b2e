"""What engines are given and give back: columns and scalars in the form they need, and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cgprimer.errors import EngineError, name_hint

Array = Any


def as_columns(
    columns: Mapping[str, Array], names: Sequence[str], dtype: Any, samples: int
) -> list[Array]:
    """Contiguous arrays of shape (samples,) and of one type, in the order of the names.

    Arrays that are so already are not copied; nothing is written to any of them. Numbers that are
    too large for ``float32`` become infinite, as in any conversion.

    Raises:
        EngineError: a column is missing, has another length, or holds no real numbers.

    >>> as_columns({"xa": [1, 2]}, ["xa"], np.dtype("float64"), 2)
    [array([1., 2.])]
    """
    found = []
    for name in names:
        if name not in columns:
            raise EngineError(
                f"there is no column {name!r} among those given: {', '.join(columns) or 'none'}",
                hint=name_hint(name, columns),
            )
        column = columns[name]
        if (  # as it should be: the common case, at every call of a loop
            type(column) is np.ndarray
            and column.dtype == dtype
            and column.shape == (samples,)
            and column.flags.c_contiguous
        ):
            found.append(column)
            continue
        try:
            given = _numbers(column)
            with np.errstate(all="ignore"):
                array = np.ascontiguousarray(given, dtype)
        except (TypeError, ValueError, OverflowError):
            raise EngineError(f"the column {name!r} does not hold real numbers") from None
        if array.shape != (samples,):
            if given.ndim != 0:
                has = f"{len(given):,} values" if given.ndim == 1 else f"the shape {given.shape}"
                raise EngineError(f"the column {name!r} has {has}, not {samples:,} samples")
            array = np.full(samples, array)
        found.append(array)
    return found


def as_scalars(scalars: Mapping[str, Any], names: Sequence[str], dtype: Any) -> Array:
    """One array of numbers, in the order of the names.

    Raises:
        EngineError: a scalar is missing or no real number.
    """
    missing = [name for name in names if name not in scalars]
    if missing:
        raise EngineError(
            f"there is no value for {missing[0]!r}", hint=name_hint(missing[0], scalars)
        )
    try:
        numbers = _numbers([scalars[name] for name in names])
        if numbers.ndim != 1:
            raise TypeError
        if numbers.dtype != np.float64:
            numbers = numbers.astype(float)
        if numbers.dtype == dtype:
            return numbers
        with np.errstate(all="ignore"):
            return numbers.astype(dtype)
    except (TypeError, ValueError, OverflowError):
        bad = next((n for n in names if np.ndim(scalars[n]) or not _real(scalars[n])), names[0])
        raise EngineError(f"the value of {bad!r} is not one real number") from None


def times_samples(value: Array, samples: int) -> Array:
    """The sum over the samples of what does not vary with them, in double precision.

    Of no samples it is 0, for infinite values too.

    >>> float(times_samples(2.0, 3)), float(times_samples(float("inf"), 0))
    (6.0, 0.0)
    """
    wide = np.asarray(value, float)
    return wide * samples if samples else np.zeros_like(wide)


def apart(found: Sequence[Array], places: Mapping[str, int]) -> dict[str, Array]:
    """Outputs by name, each an array of its own: who writes to one changes no other.

    Args:
        found: arrays.
        places: output name to the array's number.
    """
    outputs: dict[str, Array] = {}
    given: set[int] = set()
    for name, place in places.items():
        outputs[name] = found[place].copy() if place in given else found[place]
        given.add(place)
    return outputs


def _numbers(given: Any) -> Array:
    """An array of what is given, if it holds numbers: numpy would take words and dates for some.

    Raises:
        TypeError: it does not.
    """
    array = np.asarray(given)
    if array.dtype.kind == "O":
        if any(value is None or isinstance(value, str | bytes) for value in array.flat):
            raise TypeError
    elif array.dtype.kind not in "biuf":
        raise TypeError
    return array


def _real(value: Any) -> bool:
    try:
        _numbers(value).astype(float)
    except (TypeError, ValueError, OverflowError):
        return False
    return True
