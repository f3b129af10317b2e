"""What engines are given and give back: columns and scalars in the form they need, what no sample
changes, results of functions that somebody registered, and outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from cgprimer.core.primitives import arrays
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import EngineError, name_hint
from cgprimer.native.plans.plan import Step

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
        hint = name_hint(missing[0], scalars)
        raise EngineError(f"there is no value for {missing[0]!r}", hint=hint)
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


class UniformValues:
    """The values of a tape or plan that do not vary with the sample.

    Args:
        tape: its leaves are the values that are given.
        steps: on such values alone, in the order in which they run; primitives, with one result.
        size: number of values.
        dtype: type of the numbers.
    """

    def __init__(self, tape: Tape, steps: Iterable[Step], size: int, dtype: Any) -> None:
        self.dtype, self.size = np.dtype(dtype), size
        self.real = self.dtype.type
        leaves = list(enumerate(tape.leaves))
        self.constants = [(i, self.real(f.value)) for i, f in leaves if f.kind == "constant"]
        self.places = [i for i, leaf in leaves if leaf.kind == "scalar"]
        self.names = tape.of_kind("scalar")
        self.steps = [(arrays.function(name), operands, out) for name, operands, (out,) in steps]

    def __call__(self, scalars: Mapping[str, Any]) -> list[Any]:
        """All values that do not vary with the sample; None for the others."""
        values: list[Any] = [None] * self.size
        for index, value in self.constants:
            values[index] = value
        given = as_scalars(scalars, self.names, self.dtype)
        for index, number in zip(self.places, given, strict=True):
            values[index] = number
        with np.errstate(all="ignore"):
            for function, operands, result in self.steps:
                values[result] = self.real(function(*[values[o] for o in operands]))
        return values


def result_of(
    name: str, function: Callable[..., Array], operands: Sequence[Array], shape: tuple[int, ...]
) -> Array:
    """What a function makes of arrays; it gets copies, which it may keep or change.

    Raises:
        EngineError: the result is no array of real numbers of the operands' shape.

    >>> import numpy as np
    >>> result_of("twice", lambda a: a + a, [np.ones(2)], (2,))
    array([2., 2.])
    """
    found = function(*[np.array(operand) for operand in operands])
    array = np.asarray(found)
    if found is None or array.dtype.kind not in "biuf":
        kind = "None" if found is None else f"numbers of the type {array.dtype}"
        raise EngineError(f"the primitive {name!r} returned {kind}; it must return real numbers")
    if array.shape not in ((), shape):
        raise EngineError(
            f"the primitive {name!r} returned the shape {array.shape} for operands of the shape"
            f" {shape}",
            hint="a primitive works element by element, on arrays of any length",
        )
    return array


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
