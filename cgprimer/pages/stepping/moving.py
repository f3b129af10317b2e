"""The text of a value that a finite difference moves: with it, the move must be seen."""

from __future__ import annotations

import math

from cgprimer.core.number_format import number
from cgprimer.pages.stepping.placing import compact

_MOST = 9  # characters of a value that is not moved
_WIDER = 12  # of one that is: as many as "not computed" has
_SUM = 15  # of a sum, whose signs and spaces are narrow
_OFF = 0.05  # of the move may be lost to rounding


def moved(value: float, unmoved: float | None) -> str:
    """A value in a vertex, with enough digits to see how far it is from the value at the point.

    Where eight digits do not tell, the text is a sum: the value at the point, and the move.

    Args:
        value: what is known now.
        unmoved: the value at the point itself; None where nothing is moved.

    >>> moved(2.75, 2.75), moved(2.75 + 2**-18, 2.75), moved(0.5 - 1e-12, 0.5)
    ('2.75', '2.7500038', '0.5 - 1e-12')
    """
    if unmoved is None or value == unmoved or not math.isfinite(value - unmoved):
        return compact(value, _MOST)
    move = value - unmoved
    for digits in (8, 7, 6):
        text = number(value, digits)
        if len(text) <= _WIDER and abs(float(text) - value) <= _OFF * abs(move):
            return text
    added = f" {'+' if move > 0 else '-'} {number(abs(move), 2)}"
    rest = compact(unmoved, _SUM - len(added))
    return (rest if len(rest) + len(added) <= _SUM else "…") + added
