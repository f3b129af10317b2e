"""Checks of the types of arguments. Each raises UsageError."""

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
    """Check the type of an argument.

    Raises:
        UsageError: the value is an instance of none of the types.

    >>> check_type("title", 3, str, "a text")
    Traceback (most recent call last):
        ...
    cgprimer.errors.UsageError: `title` must be a text, got 3
    """
    if not isinstance(value, types):
        message = f"`{argument}` must be {expected}, got {reprlib.repr(value)}"
        raise UsageError(message, hint=hint)


def check_boolean(argument: str, value: Any) -> bool:
    """Return the value of a switch, also of one of numpy's.

    Raises:
        UsageError: it is neither true nor false.

    >>> check_boolean("bias", 1)
    True
    """
    if getattr(value, "shape", ()) or not hasattr(value, "__bool__"):
        raise UsageError(f"`{argument}` must be True or False, got {reprlib.repr(value)}")
    return bool(value)


def check_functions(**functions: object) -> None:
    """Check that each argument, unless it is None, is a function.

    Raises:
        UsageError: an argument cannot be called.

    >>> check_functions(on_step=print, on_epoch=None)
    """
    for argument, value in functions.items():
        if value is not None and not callable(value):
            raise UsageError(f"`{argument}` must be a function, got {reprlib.repr(value)}")
