"""Conversion of the arguments and results of compiled tapes.

The module converts columns and scalars, computes the values that do not vary with the sample, and
checks the results of custom primitives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from cgprimer.backends.interfaces import Array
from cgprimer.backends.plans.plan import PlanStep
from cgprimer.core.operations import numpy_arithmetic
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import EngineError, name_hint


def convert_columns(
    columns: Mapping[str, Array], names: Sequence[str], dtype: Any, samples: int
) -> list[Array]:
    """Convert input columns to contiguous arrays of the given dtype and length.

    The arrays are in the order of ``names``.

    Arrays that already have this form are not copied, and no array is modified. Values that are too
    large for ``float32`` become infinite, as in any conversion. A scalar is repeated for all
    samples.

    Raises:
        EngineError: a column is missing, has another length, or contains values that are not real.

    >>> convert_columns({"xa": [1, 2]}, ["xa"], np.dtype("float64"), 2)
    [array([1., 2.])]
    """
    arrays = []
    for name in names:
        if name not in columns:
            raise EngineError(
                f"missing column {name!r}; available columns: {', '.join(columns) or 'none'}",
                hint=name_hint(name, columns),
            )
        column = columns[name]
        if (  # fast path: the array has the right form already
            type(column) is np.ndarray
            and column.dtype == dtype
            and column.shape == (samples,)
            and column.flags.c_contiguous
        ):
            arrays.append(column)
            continue
        try:
            values = _convert_to_numeric_array(column)
            with np.errstate(all="ignore"):
                array = np.ascontiguousarray(values, dtype)
        except (TypeError, ValueError, OverflowError):
            raise EngineError(f"column {name!r} must contain real numbers") from None
        if array.shape != (samples,):
            if values.ndim != 0:
                actual = (
                    f"{len(values):,} values"
                    if values.ndim == 1
                    else f"an array of shape {values.shape}"
                )
                raise EngineError(f"column {name!r} must have {samples:,} samples, got {actual}")
            array = np.full(samples, array)
        arrays.append(array)
    return arrays


def convert_scalars(scalars: Mapping[str, Any], names: Sequence[str], dtype: Any) -> Array:
    """Convert scalar inputs to one array of shape (scalars,), in the order of ``names``.

    Raises:
        EngineError: a scalar is missing or is not a real number.
    """
    missing = [name for name in names if name not in scalars]
    if missing:
        hint = name_hint(missing[0], scalars)
        raise EngineError(f"missing value for {missing[0]!r}", hint=hint)
    try:
        numbers = _convert_to_numeric_array([scalars[name] for name in names])
        if numbers.ndim != 1:
            raise TypeError
        if numbers.dtype != np.float64:
            numbers = numbers.astype(float)
        if numbers.dtype == dtype:
            return numbers
        with np.errstate(all="ignore"):
            return numbers.astype(dtype)
    except (TypeError, ValueError, OverflowError):
        invalid = next(
            (n for n in names if np.ndim(scalars[n]) or not _is_real_valued(scalars[n])), names[0]
        )
        actual = type(scalars[invalid]).__name__
        raise EngineError(f"{invalid!r} must be a real number, got {actual}") from None


class UniformEvaluator:
    """Evaluator of the values of a tape that are the same for all samples.

    Args:
        tape: the tape, whose leaves are the inputs.
        steps: primitives on uniform values with one result each, in execution order.
        size: number of values.
        dtype: dtype of the computation.
    """

    def __init__(self, tape: Tape, steps: Iterable[PlanStep], size: int, dtype: Any) -> None:
        self.dtype, self.size = np.dtype(dtype), size
        self.real = self.dtype.type
        leaves = list(enumerate(tape.leaves))
        self.constants = [(i, self.real(f.value)) for i, f in leaves if f.kind == "constant"]
        self.positions = [i for i, leaf in leaves if leaf.kind == "scalar"]
        self.names = tape.of_kind("scalar")
        self.steps = [
            (numpy_arithmetic.numpy_function(name), operands, out)
            for name, operands, (out,) in steps
        ]

    def __call__(self, scalars: Mapping[str, Any]) -> list[Any]:
        """Compute all uniform values; the list has None for values that vary with the sample."""
        values: list[Any] = [None] * self.size
        for index, value in self.constants:
            values[index] = value
        scalar_values = convert_scalars(scalars, self.names, self.dtype)
        for index, scalar in zip(self.positions, scalar_values, strict=True):
            values[index] = scalar
        with np.errstate(all="ignore"):
            for function, operands, result in self.steps:
                values[result] = self.real(function(*[values[o] for o in operands]))
        return values


def call_custom_primitive(
    name: str, function: Callable[..., Array], operands: Sequence[Array], shape: tuple[int, ...]
) -> Array:
    """Call the function of a custom primitive on copies of its operands, and check the result.

    Raises:
        EngineError: the result is not an array of real numbers of the operands' shape.

    >>> import numpy as np
    >>> call_custom_primitive("twice", lambda a: a + a, [np.ones(2)], (2,))
    array([2., 2.])
    """
    result = function(*[np.array(operand) for operand in operands])
    array = np.asarray(result)
    if result is None or array.dtype.kind not in "biuf":
        kind = "None" if result is None else f"an array of type {array.dtype}"
        raise EngineError(f"primitive {name!r} must return real numbers, got {kind}")
    if array.shape not in ((), shape):
        raise EngineError(
            f"primitive {name!r} must return an array of shape {shape}, got {array.shape}",
            hint="define the primitive elementwise, for arrays of any length",
        )
    return array


def sum_uniform_value(value: Array, samples: int) -> Array:
    """Return the sum, in double precision, of a value that is equal for all samples.

    Without samples the sum is 0, even for infinite values.

    >>> float(sum_uniform_value(2.0, 3)), float(sum_uniform_value(float("inf"), 0))
    (6.0, 0.0)
    """
    wide = np.asarray(value, float)
    return wide * samples if samples else np.zeros_like(wide)


def copy_shared_outputs(arrays: Sequence[Array], positions: Mapping[str, int]) -> dict[str, Array]:
    """Return the output arrays keyed by name; an array that several outputs share is copied.

    Args:
        arrays: the computed arrays.
        positions: output name -> index of its array.
    """
    outputs: dict[str, Array] = {}
    returned: set[int] = set()
    for name, position in positions.items():
        outputs[name] = arrays[position].copy() if position in returned else arrays[position]
        returned.add(position)
    return outputs


def _convert_to_numeric_array(value: Any) -> Array:
    """Convert a value to a numeric array, without numpy's conversion of strings and dates.

    Raises:
        TypeError: the value is not numeric.
    """
    array = np.asarray(value)
    if array.dtype.kind == "O":
        if any(value is None or isinstance(value, str | bytes) for value in array.flat):
            raise TypeError
    elif array.dtype.kind not in "biuf":
        raise TypeError
    return array


def _is_real_valued(value: Any) -> bool:
    """Return whether a value can be converted to an array of real numbers."""
    try:
        _convert_to_numeric_array(value).astype(float)
    except (TypeError, ValueError, OverflowError):
        return False
    return True
