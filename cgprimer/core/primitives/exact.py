"""Primitives in mpmath's arithmetic, with as many digits as its context has.

The forms are those of ``formulas.py``, with mpmath in the place of sympy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import mpmath

from cgprimer.core.primitives.formulas import form
from cgprimer.core.primitives.registry import primitive
from cgprimer.errors import UsageError


class _Mpmath:
    """mpmath under the names that sympy's forms use."""

    Abs, Max, Min = staticmethod(abs), staticmethod(max), staticmethod(min)
    Pow = staticmethod(mpmath.power)

    def __getattr__(self, name: str) -> Any:
        return getattr(mpmath, name)

    @staticmethod
    def Heaviside(value: Any) -> float:
        return 0.5 if value == 0 else float(value > 0)

    @staticmethod
    def Piecewise(*pairs: tuple[Any, bool]) -> Any:
        return next(value for value, condition in pairs if condition)

    @staticmethod
    def Eq(left: Any, right: Any) -> bool:
        return bool(left == right)

    @staticmethod
    def Ne(left: Any, right: Any) -> bool:
        return bool(left != right)


@cache
def function(name: str) -> Callable[..., Any]:
    """A primitive on mpmath's numbers: nan outside of its real domain, and at poles.

    Raises:
        UsageError: it has no form in mpmath, as ``stop_gradient`` and most rows from outside.

    >>> with mpmath.workdps(20):
    ...     print(function("exp")(mpmath.mpf(1)), function("log")(mpmath.mpf(-1)))
    2.7182818284590452354 nan
    """
    known = form(primitive(name))
    if known is None:
        raise UsageError(f"{name!r} has no form with more digits than a double")
    module = _Mpmath()

    def called(*operands: Any) -> Any:
        try:
            value = known(module, *operands)
        except (ZeroDivisionError, ValueError, OverflowError):
            return mpmath.nan
        return mpmath.nan if isinstance(value, mpmath.mpc) else value

    return called
