"""What the operators of a value do, and what they take for an operand."""

from __future__ import annotations

import sys
from collections.abc import Callable
from opcode import opmap
from types import FrameType
from typing import Any

import numpy as np

from cgprimer.core.primitives import arrays, floats
from cgprimer.errors import UsageError
from cgprimer.recording.eager import (
    EAGER,
    UNSEEN,
    Recorded,
    State,
    located,
    locating,
    misfit,
    serial,
)

_new = object.__new__
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_NEW = 2**25  # bytes: for more, the system is asked for memory each time


def binary(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """An operator and the one for a value on its right."""
    function = floats.function(name)

    def forwards(self: Recorded, other: Any) -> Any:
        left = self._data
        if left.__class__ is float and State.plain:  # as Eager.emit does it, without its questions
            if other.__class__ is float:
                right, tracked = other, self.requires_grad
            elif other.__class__ is self.__class__:
                right, tracked = other._data, self.requires_grad or other.requires_grad
            else:
                right, tracked = None, False
            if tracked and right.__class__ is float:
                made = _new(self.__class__)
                made._data, made.primitive = function(left, right), name
                made.operands, made.serial, made.requires_grad = (self, other), serial(), True
                made._grad = made._bar = None
                return made
        return EAGER.emit(name, self, lifted(other))

    def reflected(self: Recorded, other: Any) -> Any:
        return EAGER.emit(name, lifted(other), self)

    return forwards, reflected


def of_numpy(name: str) -> Callable[..., Any]:
    """The method of an array that is numpy's function of the same name."""
    function = getattr(np, name, None) or getattr(np.linalg, name)

    def applied(self: Recorded, *args: Any, **options: Any) -> Any:
        try:
            return function(self, *args, **options)
        except TypeError as error:
            raise UsageError(str(error), hint=f"arguments are those of numpy's {name}") from None

    applied.__doc__ = f"As ``numpy.{name}``."
    return locating(applied)


def unary(name: str) -> Callable[[Any], Any]:
    """A function of a value."""
    function = floats.function(name)

    def applied(self: Recorded) -> Any:
        data = self._data
        if type(data) is float and State.plain and self.requires_grad:
            made = _new(self.__class__)
            made._data, made.primitive, made.operands = function(data), name, (self,)
            made.serial, made.requires_grad, made._grad, made._bar = serial(), True, None, None
            return made
        return EAGER.emit(name, self)

    applied.__doc__ = f"The primitive {name}, element by element."
    return applied


def compared(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Comparisons are of numbers: nothing flows through them."""

    def applied(self: Recorded, other: Any) -> Any:
        data = self._data, other._data if isinstance(other, Recorded) else other
        try:
            made = function(*data)
        except ValueError as error:
            raise misfit("a comparison", data, error) from None
        except TypeError:
            raise UsageError(f"a value is compared with numbers, not with {other!r}") from None
        return made if np.ndim(made) else bool(made)

    return applied


def in_place(name: str) -> Callable[..., Any]:
    """``w -= step``: writes into a leaf where nothing is recorded, else makes a new value."""

    function = arrays.FUNCTIONS[name]

    def applied(self: Any, other: Any) -> Any:
        alone, passing = sys.getrefcount(self._data) <= 2, sys.getrefcount(other) == _PASSING
        data, step = self._data, other._data if isinstance(other, Recorded) else other
        own = not State.here.recording and type(data) is np.ndarray and data.flags.owndata
        if own and (getattr(step, "shape", 0), getattr(step, "dtype", 0)) == (
            data.shape,
            data.dtype,
        ):
            if not alone or data.nbytes > _NEW:
                function(data, step, out=data)
            else:  # another core has read it: to write into that takes longer than a new array
                passing = passing and step is other and step.flags.carray and step.flags.owndata
                passing = passing and _by_operator(sys._getframe(1))
                self._data = function(data, step, out=step if passing else None)
            self._mark = None if self._mark is None else UNSEEN
            self.changed()
            return self
        made = EAGER.emit(name, self, lifted(other))
        if State.here.recording and made.requires_grad:
            return made
        if np.shape(made._data) != np.shape(self._data):
            raise UsageError(
                f"a value of shape {np.shape(self._data)} stays of this shape: it cannot become"
                f" {np.shape(made._data)} in place"
            )
        new = float(made._data) if type(data) is float else made._data  # double stays double
        if own and not alone:  # whoever holds the array sees it change
            data[...], new = new, data
        self.data = new
        return self

    return applied


class _Probe:
    def __isub__(self, other: object) -> Any:
        return sys.getrefcount(other)


def _passing() -> int:
    """How many references a right side of ``-=`` has that nobody else has; 0 if that is unclear."""
    alone: Any = _Probe()
    held: Any = _Probe()
    kept = [object()]
    alone -= [*kept]
    held -= kept
    return int(alone) if alone != held else 0


def _by_operator(frame: FrameType) -> bool:
    """Whether a frame is at an operator, and has not called a method by its name."""
    return frame.f_code.co_code[frame.f_lasti] == opmap["BINARY_OP"]


_PASSING = _passing()


def lifted(other: Any) -> Any:
    """An operand as the builder takes it: a value, a float or an array."""
    if isinstance(other, Recorded) or type(other) is float:
        return other
    if type(other) is np.ndarray and other.ndim and other.dtype in _FLOATS:
        return other.copy()
    return as_data(other)


def as_data(data: Any) -> Any:
    """A float, or an array of its own of float64 or float32.

    Raises:
        UsageError: it holds no real numbers, or lists of unlike lengths.
    """
    if type(data) is float:
        return data
    if type(data) is int and -1e308 < data < 1e308:
        return float(data)
    if isinstance(data, Recorded):
        data = data._data
    if isinstance(data, np.ma.MaskedArray):
        raise UsageError("a masked array hides what a value would show", hint="filled(0.0), say")
    array = as_array(data)
    if array.dtype.kind not in "fiub":
        kind = type(next(iter(array.flat), None)).__name__
        what = {"c": "complex numbers", "U": "text", "O": f"objects ({kind})"}
        found = what.get(array.dtype.kind, array.dtype)
        raise located(UsageError(f"a value is made of real numbers, not of {found}"))
    if not array.ndim and array.dtype != np.float32:
        return float(array)
    return np.array(array, np.float32 if array.dtype == np.float32 else np.float64)


def as_array(data: Any) -> Any:
    """Lists as an array of whatever they hold.

    Raises:
        UsageError: they have unlike lengths.
    """
    try:
        return np.asarray(data)
    except ValueError:
        said = "the lists have unlike lengths: they make no array"
        raise located(UsageError(said)) from None
