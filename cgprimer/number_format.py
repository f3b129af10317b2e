"""Numbers for people: one rule of rounding for every table, picture, plot and page.

A double is rounded to so many significant digits by its exact decimal value, halves away from zero
as in class; ``≈`` marks a text that does not read back as the same double. `pages/number_format.js`
is its twin.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal

DIGITS = 8  #: in printed tables
SHORT = 5  #: where there is little room: in pictures, on pages and slides


def number(value: float | None, digits: int = DIGITS) -> str:
    """A number in at most so many digits; an empty text where there is none.

    >>> number(71.0625, 5), number(0.1 + 0.2), number(-0.0), number(None), number(-2.5e-5)
    ('71.063', '0.3', '0', '', '-2.5e-5')
    """
    if value is None:
        return ""
    if value == 0 or not math.isfinite(value):
        return f"{value + 0.0:g}"
    rounded = Decimal(float(value)).normalize(Context(prec=digits, rounding=ROUND_HALF_UP))
    power = rounded.adjusted()
    near = -5 < power < digits
    return f"{rounded:f}" if near else f"{rounded.scaleb(-power):f}e{power}"


def equals(*values: float, digits: int = DIGITS) -> str:
    """The sign before what values come to: ``≈`` where one of them is rounded, else ``=``.

    >>> f"xa {equals(0.25)} {number(0.25)}, xb {equals(1 / 3)} {number(1 / 3)}"
    'xa = 0.25, xb ≈ 0.33333333'
    """
    exact = (math.isnan(v) or float(number(v, digits)) == v for v in values)
    return "=" if all(exact) else "≈"


def marked(value: float | None, digits: int = DIGITS) -> str:
    """A number that stands alone, with ``≈`` in front if rounded by more digits than that takes.

    >>> marked(71.0625, 5), marked(1 / 3, 5), marked(None)
    ('71.0625', '≈0.33333', '')
    """
    whole = value is None or equals(value, digits=digits + 1) == "="
    return number(value, digits + 1) if whole else f"≈{number(value, digits)}"


def latex_number(value: float, digits: int = DIGITS) -> str:
    r"""The same in LaTeX's mathematics mode.

    >>> print(latex_number(1e-9), latex_number(float("-inf")))
    1 \cdot 10^{-9} -\infty
    """
    mantissa, mark, power = number(value, digits).partition("e")
    text = rf"{mantissa} \cdot 10^{{{power}}}" if mark else mantissa
    return text.replace("inf", r"\infty").replace("nan", r"\mathrm{nan}")
