"""Numbers and names that a user gave as arguments."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Hashable, Iterable, Mapping
from operator import index
from types import MappingProxyType
from typing import Any

from cgprimer.errors import ShapeError, UsageError, name_hint
from cgprimer.numbers_and_arrays import all_finite, as_value


def real_number(
    what: str, value: Any, *, above: float = -math.inf, least: float = -math.inf
) -> float:
    """A finite number that a user gave, as a float.

    Args:
        what: what it is called in the message.
        value: what was given.
        above: it must be greater.
        least: it must be as great, or greater.

    Raises:
        UsageError: it is no number, infinite, nan or too small.

    >>> real_number("the rate", 1), real_number("the rate", "a")
    Traceback (most recent call last):
        ...
    cgprimer.errors.UsageError: the rate must be a number, not 'a'
    """
    try:
        if isinstance(value, str | bytes | bool):
            raise TypeError
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"{what} must be a number, not {reprlib.repr(value)}") from None
    if not math.isfinite(found) or found <= above:
        must = "positive" if above == 0 else "finite"
        raise UsageError(f"{what} must be {must}, not {found:g}")
    if found < least:
        raise UsageError(f"{what} must be a number from {least:g} on, not {found:g}")
    return found


def share_of_one(what: str, value: Any) -> float:
    """A number between 0 and 1 that a user gave, neither of the two.

    Raises:
        UsageError: it is none.

    >>> share_of_one("the level", 0.95)
    0.95
    """
    found = real_number(what, value)
    if not 0 < found < 1:
        raise UsageError(f"{what} is a share between 0 and 1, not {found:g}")
    return found


def whole_number(what: str, value: Any, *, least: int = 0) -> int:
    """A whole number that a user gave, one of numpy's too, as an int.

    Raises:
        UsageError: it is none, or less than ``least``.

    >>> whole_number("epochs", -1)
    Traceback (most recent call last):
        ...
    cgprimer.errors.UsageError: epochs must be a whole number from 0 on, not -1
    """
    try:
        found = least - 1 if isinstance(value, bool) else index(value)
    except TypeError:
        found = least - 1
    if found < least:
        given = reprlib.repr(value)
        raise UsageError(f"{what} must be a whole number from {least} on, not {given}")
    if found > 2**53 and what != "the seed":  # nor does anything count so far
        raise UsageError(f"{what} must be at most 2^53, not {reprlib.repr(found)}")
    return found


def one_of(what: str, given: Any, known: Iterable[str]) -> Any:
    """What a user gave, if it is one of the known names.

    Raises:
        UsageError: it is none.

    >>> one_of("reduction", "sun", ("sum", "mean"))
    Traceback (most recent call last):
        ...
    cgprimer.errors.UsageError: there is no reduction 'sun'
      hint: did you mean 'sum'?
    """
    names = list(known)
    if not isinstance(given, Hashable) or given not in names:
        raise UsageError(f"there is no {what} {given!r}", hint=name_hint(str(given), names))
    return given


def numbers_by_name(
    what: str,
    given: Any,
    kind: str,
    known: Iterable[str],
    *,
    above: float = -math.inf,
    shapes: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
    parts: bool = False,
) -> dict[str, Any]:
    """Numbers that a user gave by name, and arrays of those that have shapes; none for None.

    With ``parts`` an array's element or row may be named; whether there is one is not looked at.

    Raises:
        UsageError: they are no mapping, a name is not a known one, or a value no number.
        ShapeError: an array has another shape.

    >>> numbers_by_name("start", {"k": 1}, "parameter", ["k", "b"])
    {'k': 1.0}
    """
    if given is not None and not isinstance(given, Mapping):
        raise UsageError(f"{what} maps names to numbers; {type(given).__name__} does not")
    names = dict.fromkeys(known)  # found at once, in their order
    for name in given or {}:
        if name not in names and not (parts and str(name).partition("[")[0] in shapes):
            raise UsageError(f"{what}: there is no {kind} {name!r}", hint=name_hint(name, names))
    return {
        n: _array(f"{what} of {n}", n, v, shapes.get(n, ()))
        if n in shapes or n not in names
        else real_number(f"{what} of {n}", v, above=above)
        for n, v in (given or {}).items()
    }


def _array(what: str, name: str, value: Any, shape: tuple[int, ...]) -> Any:
    """Finite numbers of a shape, or one number for all."""
    found = as_value(name, value, shape)
    if shape and found.shape != shape:
        raise ShapeError(f"{what} has the shape {list(found.shape)}, not {list(shape)}")
    if not all_finite(found):
        raise UsageError(f"{what} must be finite")
    return found
