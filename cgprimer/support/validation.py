"""Checks of arguments: numbers, names and arrays; a failed check raises UsageError."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Hashable, Iterable, Mapping
from operator import index
from types import MappingProxyType
from typing import Any

from cgprimer.errors import ShapeError, UsageError, name_hint
from cgprimer.support.array_values import all_finite, convert_value
from cgprimer.support.value_names import element_hint, extract_array_name

_LONGEST_NAME = 500  # characters; a message shows only the ends of longer text


def _shorten(value: Any) -> str:
    """Return a value as Python code, without the middle of a long text."""
    shown = repr(value)
    return shown if len(shown) <= _LONGEST_NAME else reprlib.repr(value)


def check_real_number(
    name: str, value: Any, *, above: float = -math.inf, minimum: float = -math.inf
) -> float:
    """Convert an argument to a finite float.

    Args:
        name: the name of the argument in messages.
        value: the argument.
        above: exclusive lower bound.
        minimum: inclusive lower bound.

    Raises:
        UsageError: the argument is not a finite number, or it violates a bound.

    >>> check_real_number("the rate", 1), check_real_number("the rate", "a")
    Traceback (most recent call last):
        ...
    cgprimer.errors.UsageError: the rate must be a number, got 'a'
    """
    try:
        if isinstance(value, str | bytes | bool):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"{name} must be a number, got {reprlib.repr(value)}") from None
    if not math.isfinite(number):
        raise UsageError(f"{name} must be finite, got {number:g}")
    if number <= above:
        rule = "positive" if above == 0 else f"greater than {above:g}"
        raise UsageError(f"{name} must be {rule}, got {number:g}")
    if number < minimum:
        raise UsageError(f"{name} must be at least {minimum:g}, got {number:g}")
    return number


def check_fraction(name: str, value: Any) -> float:
    """Convert an argument to a float greater than 0 and less than 1.

    Raises:
        UsageError: the argument is not a number between 0 and 1.

    >>> check_fraction("the level", 0.95)
    0.95
    """
    fraction = check_real_number(name, value)
    if not 0 < fraction < 1:
        raise UsageError(f"{name} must be between 0 and 1, got {fraction:g}")
    return fraction


def check_integer(name: str, value: Any, *, minimum: int = 0) -> int:
    """Convert an argument, such as an integer of Python or numpy, to an int.

    Raises:
        UsageError: the argument is not an integer, or less than ``minimum``.

    >>> check_integer("epochs", -1)
    Traceback (most recent call last):
        ...
    cgprimer.errors.UsageError: epochs must be an integer >= 0, got -1
    """
    try:
        integer = minimum - 1 if isinstance(value, bool) else index(value)
    except TypeError:
        integer = minimum - 1
    if integer < minimum:
        shown = reprlib.repr(value)
        raise UsageError(f"{name} must be an integer >= {minimum}, got {shown}")
    if integer > 2**53 and name != "the seed":  # larger ones are not exact in floats
        raise UsageError(f"{name} must be at most 2^53, got {reprlib.repr(integer)}")
    return integer


def check_choice(name: str, value: Any, choices: Iterable[str]) -> Any:
    """Return an argument that must be one of the given names.

    Raises:
        UsageError: the argument is not one of the names.

    >>> check_choice("reduction", "sun", ("sum", "mean"))
    Traceback (most recent call last):
        ...
    cgprimer.errors.UsageError: unknown reduction 'sun'
      hint: did you mean 'sum'?
    """
    names = list(choices)
    if not isinstance(value, Hashable) or value not in names:
        hint = name_hint(str(value)[:_LONGEST_NAME], names)
        raise UsageError(f"unknown {name} {_shorten(value)}", hint=hint)
    return value


def check_named_values(
    argument: str,
    values: Any,
    kind: str,
    names: Iterable[str],
    *,
    above: float = -math.inf,
    shapes: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
    parts: bool = False,
) -> dict[str, Any]:
    """Convert a mapping from names to numbers or arrays to a dict; None gives an empty dict.

    Args:
        argument: the name of the argument in messages.
        values: the argument.
        kind: the noun for a name in messages, such as ``parameter``.
        names: the accepted names.
        above: exclusive lower bound of scalar values.
        shapes: the shapes of array-valued names.
        parts: accept names of elements and rows of arrays, such as ``W[0]``, without a check
            that the indices are in range.

    Raises:
        UsageError: the argument is not a mapping, a name is unknown or a value is not a number.
        ShapeError: the shape of an array is wrong.

    >>> check_named_values("start", {"k": 1}, "parameter", ["k", "b"])
    {'k': 1.0}
    """
    if values is not None and not isinstance(values, Mapping):
        raise UsageError(
            f"{argument} must be a dict from names to numbers, got {reprlib.repr(values)}"
        )
    accepted = dict.fromkeys(names)  # fast to search, in order
    for name in values or {}:
        if name not in accepted and not (parts and extract_array_name(name) in shapes):
            hint = element_hint(str(name)[:_LONGEST_NAME], accepted)
            raise UsageError(f"unknown {kind} {_shorten(name)} in {argument}", hint=hint)
    return {
        n: _check_array(f"{n!r} in {argument}", n, v, shapes.get(n, ()))
        if n in shapes or n not in accepted
        else check_real_number(f"{n!r} in {argument}", v, above=above)
        for n, v in (values or {}).items()
    }


def _check_array(description: str, name: str, value: Any, shape: tuple[int, ...]) -> Any:
    """Convert a value to an array of finite numbers with the given shape; a scalar fills it."""
    array = convert_value(name, value, shape)
    if shape and array.shape != shape:
        raise ShapeError(f"{description} must have shape {list(shape)}, got {list(array.shape)}")
    if not all_finite(array):
        raise UsageError(f"{description} must be finite")
    return array
