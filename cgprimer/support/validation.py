"""Checks of arguments: numbers, names and arrays. Each raises UsageError."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Hashable, Iterable, Mapping
from operator import index
from types import MappingProxyType
from typing import Any

from cgprimer.errors import ShapeError, UsageError, name_hint
from cgprimer.support.array_values import all_finite, convert_value


def check_real_number(
    name: str, value: Any, *, above: float = -math.inf, minimum: float = -math.inf
) -> float:
    """Return an argument as a finite float.

    Args:
        what: the subject of the message.
        value: the argument.
        above: exclusive lower bound.
        least: inclusive lower bound.

    Raises:
        UsageError: the argument is not a number, not finite or below a bound.

    >>> check_real_number("the rate", 1), check_real_number("the rate", "a")
    Traceback (most recent call last):
        ...
    cgprimer.errors.UsageError: the rate must be a number, not 'a'
    """
    try:
        if isinstance(value, str | bytes | bool):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"{name} must be a number, not {reprlib.repr(value)}") from None
    if not math.isfinite(number) or number <= above:
        must = "positive" if above == 0 else "finite"
        raise UsageError(f"{name} must be {must}, not {number:g}")
    if number < minimum:
        raise UsageError(f"{name} must be a number from {minimum:g} on, not {number:g}")
    return number


def check_fraction(name: str, value: Any) -> float:
    """Return an argument that is a fraction: greater than 0 and less than 1.

    Raises:
        UsageError: the argument is not such a number.

    >>> check_fraction("the level", 0.95)
    0.95
    """
    fraction = check_real_number(name, value)
    if not 0 < fraction < 1:
        raise UsageError(f"{name} is a share between 0 and 1, not {fraction:g}")
    return fraction


def check_integer(name: str, value: Any, *, minimum: int = 0) -> int:
    """Return an argument, which may be one of numpy's integers, as an int.

    Raises:
        UsageError: the argument is not an integer, or less than ``least``.

    >>> check_integer("epochs", -1)
    Traceback (most recent call last):
        ...
    cgprimer.errors.UsageError: epochs must be a whole number from 0 on, not -1
    """
    try:
        integer = minimum - 1 if isinstance(value, bool) else index(value)
    except TypeError:
        integer = minimum - 1
    if integer < minimum:
        shown = reprlib.repr(value)
        raise UsageError(f"{name} must be a whole number from {minimum} on, not {shown}")
    if integer > 2**53 and name != "the seed":  # larger ones are not exact in floats
        raise UsageError(f"{name} must be at most 2^53, not {reprlib.repr(integer)}")
    return integer


def check_choice(name: str, value: Any, choices: Iterable[str]) -> Any:
    """Return an argument that must be one of several names.

    Raises:
        UsageError: the argument is not one of the names.

    >>> check_choice("reduction", "sun", ("sum", "mean"))
    Traceback (most recent call last):
        ...
    cgprimer.errors.UsageError: there is no reduction 'sun'
      hint: did you mean 'sum'?
    """
    names = list(choices)
    if not isinstance(value, Hashable) or value not in names:
        raise UsageError(f"there is no {name} {value!r}", hint=name_hint(str(value), names))
    return value


def check_named_values(
    what: str,
    values: Any,
    kind: str,
    names: Iterable[str],
    *,
    above: float = -math.inf,
    shapes: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
    parts: bool = False,
) -> dict[str, Any]:
    """Return an argument that maps names to numbers, or to arrays; an empty one for None.

    Args:
        what: the subject of the message.
        values: the argument.
        kind: the noun for a name in messages.
        names: the accepted names.
        above: exclusive lower bound of the numbers.
        shapes: the shapes of the names that stand for arrays.
        parts: accept names of elements and rows of arrays, such as ``W[0]``; an index out of
            range is not detected.

    Raises:
        UsageError: the argument is not a mapping, a name is unknown or a value is not a number.
        ShapeError: an array has another shape.

    >>> check_named_values("start", {"k": 1}, "parameter", ["k", "b"])
    {'k': 1.0}
    """
    if values is not None and not isinstance(values, Mapping):
        raise UsageError(f"{what} maps names to numbers; {type(values).__name__} does not")
    accepted = dict.fromkeys(names)  # fast to search, in order
    for name in values or {}:
        if name not in accepted and not (parts and str(name).partition("[")[0] in shapes):
            hint = name_hint(name, accepted)
            raise UsageError(f"{what}: there is no {kind} {name!r}", hint=hint)
    return {
        n: _check_array(f"{what} of {n}", n, v, shapes.get(n, ()))
        if n in shapes or n not in accepted
        else check_real_number(f"{what} of {n}", v, above=above)
        for n, v in (values or {}).items()
    }


def _check_array(what: str, name: str, value: Any, shape: tuple[int, ...]) -> Any:
    """Return finite numbers as an array of a shape; a single number fills it."""
    array = convert_value(name, value, shape)
    if shape and array.shape != shape:
        raise ShapeError(f"{what} has the shape {list(array.shape)}, not {list(shape)}")
    if not all_finite(array):
        raise UsageError(f"{what} must be finite")
    return array
