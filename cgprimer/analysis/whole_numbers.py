"""How many, or how deep: one whole number or several."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral

from cgprimer.errors import UsageError


def as_counts(given: int | Iterable[int], what: str) -> tuple[int, ...]:
    """One positive whole number or several as a tuple; numbers of numpy are whole numbers, too.

    Raises:
        UsageError: there is none, or something else; it is called ``what``.

    >>> as_counts(3, "sizes"), as_counts([1, 2, 4], "sizes")
    ((3,), (1, 2, 4))
    """
    found = tuple(given) if isinstance(given, Iterable) else (given,)
    if not found or any(not isinstance(one, Integral) or one < 1 for one in found):
        raise UsageError(f"{what} must be positive whole numbers")
    return tuple(int(one) for one in found)
