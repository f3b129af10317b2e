"""Operators and methods of :class:`Value`, created from primitives and numpy functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cgprimer.core.operations import float_arithmetic, numpy_arithmetic
from cgprimer.errors import UsageError
from cgprimer.recording.data_conversion import to_operand
from cgprimer.recording.eager_builder import EAGER, shape_error
from cgprimer.recording.recording_state import State, run_silently
from cgprimer.recording.source_lines import locate_errors
from cgprimer.recording.value_base import ValueBase, get_data, initialize

_new = object.__new__


def create_binary_operator(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Create the operator method of a binary primitive, and the reflected one (``__radd__``)."""
    function = float_arithmetic.float_function(name)

    def operator(self: ValueBase, other: Any) -> Any:
        """Apply the primitive to the value and the other operand."""
        left = self._data
        if left.__class__ is float and State.fast_path:  # EAGER.emit without its loop
            if other.__class__ is float:
                if self.requires_grad:
                    value = _new(self.__class__)
                    initialize(value, function(left, other), name, (self, other))
                    return value
            elif other.__class__ is self.__class__ and (self.requires_grad or other.requires_grad):
                right = other._data
                if right.__class__ is float:
                    value = _new(self.__class__)
                    initialize(value, function(left, right), name, (self, other))
                    return value
        return EAGER.emit(name, self, to_operand(other))

    def reflected_operator(self: ValueBase, other: Any) -> Any:
        """Apply the primitive with the value as the right operand."""
        return EAGER.emit(name, to_operand(other), self)

    return operator, reflected_operator


def create_unary_operator(name: str) -> Callable[[Any], Any]:
    """Create the method that applies a unary primitive to a value."""
    function = float_arithmetic.float_function(name)

    def operator(self: ValueBase) -> Any:
        """Apply the primitive to the value."""
        data = self._data
        if data.__class__ is float and State.fast_path and self.requires_grad:
            value = _new(self.__class__)
            initialize(value, function(data), name, (self,))
            return value
        return EAGER.emit(name, self)

    operator.__doc__ = f"Apply {name} to each element."
    return operator


def create_numpy_method(name: str) -> Callable[..., Any]:
    """Create the method that calls the numpy function with the given name."""
    function = getattr(np, name, None) or getattr(np.linalg, name)

    def method(self: ValueBase, *args: Any, **options: Any) -> Any:
        """Call the numpy function on the value."""
        try:
            return function(self, *args, **options)
        except TypeError as error:
            hint = f"pass the arguments of numpy.{name}"
            raise UsageError(str(error), hint=hint) from None

    method.__doc__ = f"Call ``numpy.{name}`` on this value."
    return locate_errors(method)


def create_comparison(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Create a comparison method, whose results are not recorded: their derivative is zero."""

    def compare(self: ValueBase, other: Any) -> Any:
        """Compare the data of the value with the other operand."""
        operands = self._data, get_data(other)
        try:
            result = function(*operands)
        except ValueError as error:
            raise shape_error("a comparison", operands, error) from None
        except TypeError:
            message = f"a Value can be compared only with numbers and arrays, got {other!r}"
            raise UsageError(message) from None
        return result if np.ndim(result) else bool(result)

    return compare


def create_in_place_operator(name: str) -> Callable[..., Any]:
    """Create the method of an in-place operator such as ``w -= rate*gradient``.

    With recording enabled, the operator returns a new value. Otherwise it writes into the array of
    the value, so that all references to the array see the change.
    """
    function = numpy_arithmetic.FUNCTIONS[name]

    def operator(self: Any, other: Any) -> Any:
        """Update the value in place, or return a new value while recording."""
        operand = get_data(other)
        if not State.thread.recording and isinstance(operand, np.ndarray):
            data = self._get_writable_data()
            if data is not None and (data.shape, data.dtype) == (operand.shape, operand.dtype):
                run_silently(function, data, operand, data)
                self._mark_changed()
                return self
        result = EAGER.emit(name, self, to_operand(other))
        if State.thread.recording and result.requires_grad:
            return result
        replace_data(self, result._data)
        return self

    return operator


def replace_data(value: ValueBase, new: Any) -> None:
    """Replace the data of a value with data of equal shape; arrays are updated in place.

    Raises:
        UsageError: the shapes differ.
    """
    if np.shape(new) != np.shape(value._data):
        raise UsageError(
            f"an in-place operation must preserve shape {np.shape(value._data)}, got a result of"
            f" shape {np.shape(new)}"
        )
    data = value._get_writable_data()
    if data is not None:
        data[...] = new  # double precision stays double, and single stays single
    elif type(value._data) is float:
        value._data = float(new)
    else:
        value._data = np.array(new, value._data.dtype)
    value._mark_changed()
