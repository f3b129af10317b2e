"""Numbers in the picture and in the tables of steps, in every place the same, as in frames.js."""

from __future__ import annotations

import math

from cgprimer.number_format import SHORT, marked, number

_WIDEST = 12  # characters of a value that is moved: as many as "not computed" has
_SUM = 15  # of a sum, whose signs and spaces are narrow
_OFF = 0.05  # of the move may be lost to rounding


def known(value: float | None) -> str:
    """A number, or that there is none yet.

    >>> known(0.25), known(1 / 3), known(None)
    ('0.25', '≈0.33333', 'not computed')
    """
    return "not computed" if value is None else marked(value, SHORT)


def so_far(value: float) -> str:
    """A sum to which shares are still missing.

    >>> so_far(0.123456789)
    '≈0.12346 + …'
    """
    return f"{marked(value, SHORT)} + …"


def moved(value: float, unmoved: float | None) -> str:
    """A value in a vertex, with enough digits to see how far it is from the value at the point.

    Where eight digits do not tell, the text is a sum: the value at the point, and the move.

    Args:
        value: what is known now.
        unmoved: the value at the point itself; None where nothing is moved.

    >>> moved(2.75, 2.75), moved(2.75 + 2**-18, 2.75), moved(0.5 - 1e-12, 0.5)
    ('2.75', '≈2.7500038', '0.5 - 1e-12')
    """
    if unmoved is None or value == unmoved or not math.isfinite(value - unmoved):
        return marked(value, SHORT)
    move = value - unmoved
    for digits in (8, 7, 6):
        text = number(value, digits)
        if len(text) <= _WIDEST and abs(float(text) - value) <= _OFF * abs(move):
            return text if float(text) == value else f"≈{text}"
    added = f" {'+' if move > 0 else '-'} {number(abs(move), 2)}"
    rest = number(unmoved, SHORT)
    return (rest if len(rest) + len(added) <= _SUM else "…") + added
