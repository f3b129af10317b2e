"""Numbers that a user gave as arguments."""

from __future__ import annotations

import math
import reprlib
from typing import Any

from cgprimer.errors import UsageError


def real_number(what: str, value: Any, *, above: float = -math.inf) -> float:
    """A finite number that a user gave, as a float.

    Args:
        what: what it is called in the message.
        value: what was given.
        above: it must be greater.

    Raises:
        UsageError: it is no number, infinite, nan or not above the bound.

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
    whole = hasattr(value, "__index__") and not isinstance(value, bool)
    if not whole or value < least:
        raise UsageError(
            f"{what} must be a whole number from {least} on, not {reprlib.repr(value)}"
        )
    return int(value)
