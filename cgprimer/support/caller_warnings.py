"""Warnings that point at the code of the user, however deep in the package they are raised."""

from __future__ import annotations

import sys
import warnings

_PACKAGE = __name__.partition(".")[0]


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line of code outside of the package that led to this call.

    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_user("the data have no targets")
    >>> str(caught[0].message)
    'the data have no targets'
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None:
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] != _PACKAGE:
            break
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
