"""Conversion of arguments to the data of a value: a float, or an array of float64 or float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from cgprimer.errors import UsageError
from cgprimer.recording.source_lines import add_location
from cgprimer.recording.value_base import ValueBase

_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def to_operand(operand: Any) -> Any:
    """Convert an operand of an operation to a value, a float or an array.

    Plain arrays are copied, so that later changes to them do not affect the graph.
    """
    if isinstance(operand, ValueBase) or type(operand) is float:
        return operand
    if type(operand) is np.ndarray and operand.ndim and operand.dtype in _FLOATS:
        return operand.copy()
    return to_data(operand)


def to_data(data: Any) -> Any:
    """Convert scalars, lists or arrays to a float, or to a new float64 or float32 array.

    Raises:
        UsageError: the data is not real-valued, or nested lists have different lengths.
    """
    if type(data) is float:
        return data
    if type(data) is int and -1e308 < data < 1e308:
        return float(data)
    if isinstance(data, ValueBase):
        data = data._data
    if isinstance(data, np.ma.MaskedArray):
        raise UsageError(
            "masked arrays are not supported", hint="fill masked elements: array.filled(0.0)"
        )
    array = to_array(data)
    if array.dtype.kind not in "fiub":
        element = type(next(iter(array.flat), None)).__name__
        kinds = {"c": "complex numbers", "U": "strings", "O": f"objects ({element})"}
        kind = kinds.get(array.dtype.kind, array.dtype)
        raise add_location(UsageError(f"data must consist of real numbers, got {kind}"))
    if not array.ndim and array.dtype != np.float32:
        return float(array)
    return np.array(array, np.float32 if array.dtype == np.float32 else np.float64)


def to_array(data: Any) -> Any:
    """Convert scalars, lists or arrays to an array of any dtype.

    Raises:
        UsageError: nested lists have different lengths.
    """
    try:
        return np.asarray(data)
    except ValueError:
        message = "cannot convert nested lists of different lengths to an array"
        raise add_location(UsageError(message)) from None


def to_tuples(nested: Any) -> Any:
    """Convert nested lists to nested tuples; return other objects unchanged."""
    return tuple(map(to_tuples, nested)) if isinstance(nested, list) else nested
