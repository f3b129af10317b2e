"""Checks of the types of arguments; a failed check raises UsageError."""

from __future__ import annotations

import reprlib
from typing import Any

from cgprimer.errors import UsageError


def check_type(
    argument: str,
    value: object,
    types: type | tuple[type, ...],
    expected: str,
    *,
    hint: str = "",
) -> None:
    """Raise UsageError if the value of an argument has none of the given types.

    Raises:
        UsageError: the value has another type; ``expected`` describes the accepted types.

    >>> check_type("title", 3, str, "a string")
    Traceback (most recent call last):
        ...
    cgprimer.errors.UsageError: `title` must be a string, got 3
    """
    if not isinstance(value, types):
        message = f"`{argument}` must be {expected}, got {reprlib.repr(value)}"
        raise UsageError(message, hint=hint)


def check_boolean(argument: str, value: Any) -> bool:
    """Convert an argument, such as a bool of Python or numpy, to a bool.

    Raises:
        UsageError: the argument has no truth value.

    >>> check_boolean("bias", 1)
    True
    """
    if getattr(value, "shape", ()) or not hasattr(value, "__bool__"):
        raise UsageError(f"`{argument}` must be True or False, got {reprlib.repr(value)}")
    return bool(value)


def check_functions(**functions: object) -> None:
    """Raise UsageError if an argument is neither None nor callable.

    Raises:
        UsageError: an argument is not callable.

    >>> check_functions(on_step=print, on_epoch=None)
    """
    for argument, value in functions.items():
        if value is not None and not callable(value):
            raise UsageError(f"`{argument}` must be a function, got {reprlib.repr(value)}")
