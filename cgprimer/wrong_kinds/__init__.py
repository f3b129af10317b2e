"""Public functions that say which argument is of a kind that they do not take."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def explained(function: F) -> F:
    """The function; where it fails with an error of Python's, its arguments are looked at."""

    def asked(*args: Any, **given: Any) -> Any:
        try:
            return function(*args, **given)
        except Exception as error:
            from cgprimer.wrong_kinds.kinds import check_kinds

            check_kinds(error, function, args, given)
            raise

    # With the globals of the function, by which doctest knows where it was written.
    made: Any = FunctionType(asked.__code__, function.__globals__, closure=asked.__closure__)
    return cast(F, wraps(function)(made))
