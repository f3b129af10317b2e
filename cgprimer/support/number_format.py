"""The number format: one rounding rule for all tables, pictures, plots and pages.

A double is rounded by its exact decimal value, with halves away from zero as taught in school.
``≈`` marks a string that differs from the double by more than the rounding of a few operations, so
0.4*0.8 is ``0.32``, although its double is 0.32000000000000006. The file
`visualization/pages/number_format.js` implements this rule for pages.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

DIGITS = 8  #: in printed tables
SHORT = 5  #: in pictures, on pages and slides, where space is short
_ROUNDING = 1e-14  # relative: about fifty units in the last place of a double
_MAX_NUMBERS, _MAX_LINES = 64, 6  # of an array that is shown in full

_WIDEST_ARRAY, _WIDEST_ROW = 24, 66  # characters


def format_number(value: float | None, digits: int = DIGITS) -> str:
    """Format a number rounded to significant digits; None gives an empty string.

    >>> format_number(71.0625, 5), format_number(0.1 + 0.2), format_number(-2.5e-5)
    ('71.063', '0.3', '-2.5e-5')
    >>> format_number(-0.0), format_number(None)
    ('0', '')
    """
    if value is None:
        return ""
    if value == 0 or not math.isfinite(value):
        return f"{value + 0.0:g}"
    rounded = Decimal(float(value)).normalize(Context(prec=digits, rounding=ROUND_HALF_UP))
    power = rounded.adjusted()
    near = -5 < power < digits
    return f"{rounded:f}" if near else f"{rounded.scaleb(-power):f}e{power}"


def is_exact(text: str, value: float) -> bool:
    """Return whether a decimal string equals a value up to the rounding error of a few operations.

    Decimals such as 0.4 are not doubles, so a product that is exact in decimals has wrong last
    bits. A number with few digits agrees with another value this closely only by chance.

    >>> is_exact("0.32", 0.4 * 0.8), is_exact("0.33333333", 1 / 3)
    (True, False)
    """
    shown = float(text)
    return shown == value or abs(shown - value) <= _ROUNDING * abs(value)


def choose_equality_sign(*values: float, digits: int = DIGITS) -> str:
    """Return ``≈`` if printing rounds at least one of the values, and ``=`` otherwise.

    >>> choose_equality_sign(0.25), choose_equality_sign(1 / 3)
    ('=', '≈')
    """
    exact = (math.isnan(v) or is_exact(format_number(v, digits), v) for v in values)
    return "=" if all(exact) else "≈"


def mark_rounding(value: Any, digits: int = DIGITS, widest: int = _WIDEST_ARRAY) -> str:
    """Format a number or an array with a leading ``≈`` if rounding changes it.

    One additional digit is printed if it makes the number exact. An array is formatted in one line,
    or as its shape and norm if the line would be too wide.

    >>> mark_rounding(71.0625, 5), mark_rounding(1 / 3, 5), mark_rounding(None)
    ('71.0625', '≈0.33333', '')
    >>> mark_rounding([[2.0, 0.0], [4.0, 0.0]]), mark_rounding([1 / 3] * 9)
    ('[[2, 0], [4, 0]]', '[9], norm 1')
    """
    if value is not None and not isinstance(value, float | int):
        lines = " ".join(format_array_lines(value))
        if "norm" not in lines and len(lines) <= widest:
            return lines.removeprefix("= ").replace("≈ ", "≈")
        import numpy as np

        array = np.asarray(value, dtype=float)
        norm = mark_rounding(float(np.sqrt((array * array).sum())), 3)
        return f"[{','.join(map(str, array.shape))}], norm {norm}"
    exact = value is None or choose_equality_sign(value, digits=digits + 1) == "="
    return format_number(value, digits + 1) if exact else f"≈{format_number(value, digits)}"


def format_array(value: Any, digits: int = DIGITS, *, width: int = 44) -> str:
    """Format an array in brackets, or a scalar.

    A wide array has one row per line; a large array is abbreviated to its first elements.

    >>> print(format_array(0.5), format_array([[1.0, -1.0], [0.5, -2.0]]))
    0.5 [[1, -1], [0.5, -2]]
    >>> print(format_array([[1 / 3] * 4, [-0.0125, 1.0, 2.0, 30.0]]))
    [[0.33333, 0.33333, 0.33333, 0.33333],
     [-0.0125,       1,       2,      30]]
    >>> print(format_array([[-1 / 12, 1.0, 1.0, 1.0], [-1 / 12] * 4]))
    [[-0.083333,         1,         1,         1],
     [-0.083333, -0.083333, -0.083333, -0.083333]]
    >>> format_array([[1.0] * 100] * 20)
    '[20,100]: 1, 1, 1, 1, ...'
    """
    if value is None or isinstance(value, float | int):
        return format_number(value, digits)
    import numpy as np

    array = np.asarray(value)
    if not array.ndim:
        return format_number(float(array), digits)
    few = min(digits, SHORT)

    def format_lines(padding: int, width: int) -> str:
        """Format all elements of the array in lines of at most ``width`` characters."""
        show: Any = {"all": lambda v: format_number(float(v), few).rjust(padding)}
        lines = np.array2string(
            array, separator=", ", formatter=show, max_line_width=width, threshold=_MAX_NUMBERS
        )
        return re.sub(r"\n+", "\n", lines)

    if array.size <= _MAX_NUMBERS:
        line = re.sub(r"\n\s*", " ", format_lines(0, width))
        if len(line) <= width:
            return line
        padded = max(len(format_number(v, few)) for v in array.flat)
        row = array.shape[-1] * (padded + 2) + array.ndim + 1  # not broken, unless too wide
        lines = format_lines(padded, row if array.ndim > 1 and row <= _WIDEST_ROW else width)
        if lines.count("\n") < _MAX_LINES:
            return lines
    first = ", ".join(format_number(v, few) for v in array.flat[:4])
    return f"[{','.join(map(str, array.shape))}]: {first}, ..."


def format_latex_number(value: float, digits: int = DIGITS) -> str:
    r"""Format a number for the math mode of LaTeX.

    >>> print(format_latex_number(1e-9), format_latex_number(float("-inf")))
    1 \cdot 10^{-9} -\infty
    """
    mantissa, mark, power = format_number(value, digits).partition("e")
    text = rf"{mantissa} \cdot 10^{{{power}}}" if mark else mantissa
    return text.replace("inf", r"\infty").replace("nan", r"\mathrm{nan}")


def format_latex_array(value: Any, digits: int = DIGITS) -> str:
    r"""Format a scalar, matrix or vector for LaTeX; vectors are written as transposed rows.

    >>> print(format_latex_array([[1.0, -1.0], [0.5, -2.0]]))
    \begin{bmatrix} 1 & -1 \\ 0.5 & -2 \end{bmatrix}
    >>> print(format_latex_array([1.0, 2.0]))
    \begin{bmatrix} 1 & 2 \end{bmatrix}^{\top}
    """
    if isinstance(value, float | int):
        return format_latex_number(value, digits)
    import numpy as np

    array, few = np.asarray(value), min(digits, SHORT)
    if not array.ndim:
        return format_latex_number(float(array), digits)
    if array.size > _MAX_NUMBERS:
        first = ", ".join(format_latex_number(v, few) for v in array.flat[:4])
        return r" \times ".join(map(str, array.shape)) + rf": {first}, \ldots"
    rows = array if array.ndim == 2 else [array]
    inner = r" \\ ".join(
        " & ".join(format_latex_array(entry, few) for entry in row) for row in rows
    )
    return rf"\begin{{bmatrix}} {inner} \end{{bmatrix}}" + (r"^{\top}" if array.ndim == 1 else "")


def format_array_lines(value: Any, digits: int = 4, max_size: int = 4) -> tuple[str, ...]:
    """Format a scalar or an array, after ``=`` or ``≈``, as a list of lines.

    A small array has one line per row; a large array has its first elements and its norm.

    Args:
        value: a float or an array.
        digits: number of significant digits.
        max_size: maximum number of rows and columns of a small array.

    >>> format_array_lines([[1, -1], [0.5, -2]]), format_array_lines(0.25)
    (('= [[1, -1],', '[0.5, -2]]'), ('= 0.25',))
    >>> format_array_lines([1 / 3] * 9)
    ('≈ [0.3333, 0.3333, …]', 'norm = 1')
    """
    if isinstance(value, float):
        return (f"{choose_equality_sign(value)} {format_number(value)}",)
    import numpy as np

    array = np.asarray(value, dtype=float)
    sign = choose_equality_sign(*array.flat, digits=digits)

    def format_row(numbers: Any, ending: str = "") -> str:
        """Format one row of the array in brackets."""
        return f"[{', '.join(format_number(n, digits) for n in numbers)}{ending}]"

    if not array.ndim:
        return format_array_lines(float(array))
    if array.ndim > 2 or max(array.shape, default=0) > max_size:
        norm = float(np.sqrt((array * array).sum()))
        first = format_row(array.flat[:2], ", …")
        return (
            f"{sign} {first}",
            f"norm {choose_equality_sign(norm, digits=digits)} {format_number(norm, digits)}",
        )
    if array.ndim == 1:
        return (f"{sign} {format_row(array)}",)
    rows = [format_row(numbers) for numbers in array]
    return tuple(f"{sign} [{','.join(rows)}]".replace(",[", ",\n[").split("\n"))
