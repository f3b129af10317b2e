"""Values of answers: numbers, arrays, shapes and names that students write as text."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from cgprimer.course.checks.notation_reader import read_formula
from cgprimer.course.checks.sheets.sheet_tables import evaluate_formula
from cgprimer.errors import CgprimerError, DataError

_MAX_LENGTH = 300  # characters of a number
_MAX_ANSWER = 20 * _MAX_LENGTH  # characters of an answer
_MAX_NUMBERS = 500  # of an array
_CONSTANTS = {"e": math.e, "pi": math.pi}
_EMPTY = ("", "-", "_", "?", "...", "…")


def truncate_answer(text: str) -> str:
    """Truncate a long answer to one character more than is allowed, so that it remains invalid.

    >>> len(truncate_answer("1" * 100_000))
    6001
    """
    return text[: _MAX_ANSWER + 1]


def is_empty_answer(text: str) -> bool:
    """Return whether an answer is empty or a placeholder such as ``...``."""
    return text.strip(" _\t`*") in _EMPTY


def parse_number(text: str) -> float:
    r"""Parse a number, which may be an expression such as ``3/4`` or ``e^2``.

    Of a chain ``3*9 = 27`` the last part counts. Markup of Markdown and LaTeX is ignored.

    Raises:
        DataError: the answer is not a number.

    >>> parse_number("3/4"), parse_number("−2"), parse_number("sqrt(16) + 1"), parse_number("≈ 0,5")
    (0.75, -2.0, 5.0, 0.5)
    >>> parse_number("**27**"), parse_number("2·3² = 18"), parse_number(r"$-\frac{3}{4}$")
    (27.0, 18.0, -0.75)
    """
    if len(text) > _MAX_LENGTH:
        raise DataError(f"a number must have at most {_MAX_LENGTH} characters")
    *before, text = [p for p in re.split("[=≈~]", text) if p.strip(" `$*")] or [""]
    for part in before:
        parse_number(part)
    text = re.sub(r"^\s*([-+−]?\s*\d+),(\d+)\s*$", r"\1.\2", text.strip(" `$*"))
    try:
        formula = read_formula(text, _CONSTANTS, "<answer>")
        value = float(evaluate_formula(formula, _CONSTANTS))
    except CgprimerError as error:
        raise DataError(error.message, hint=error.hint) from None
    except KeyError as error:
        raise DataError(f"{error} is not a number") from None
    if not math.isfinite(value):
        raise DataError("the number must be finite")
    return value


def parse_array(text: str) -> Any:
    """Parse an array in nested brackets, or a number.

    Raises:
        DataError: the answer is not an array.

    >>> parse_array("**[[1, 1/2], [0, -2]]**")
    array([[ 1. ,  0.5],
           [ 0. , -2. ]])
    """
    import numpy as np

    text = text.strip(" `$*")
    if len(text) > _MAX_ANSWER or "[" not in text:
        return np.array(parse_number(text))
    if text.count(",") > _MAX_NUMBERS:
        raise DataError(f"an array must have at most {_MAX_NUMBERS} numbers")
    numbers: list[float] = []

    def replace_by_index(match: re.Match[str]) -> str:
        """Parse a number, append it to ``numbers``, and return its index as a string."""
        numbers.append(parse_number(match[0]))
        return str(len(numbers) - 1)

    try:
        nested = json.loads(re.sub(r"[^\[\],\s][^\[\],]*", replace_by_index, text))
        return np.array(numbers)[np.array(nested, dtype=int)]
    except (ValueError, TypeError, IndexError, RecursionError):
        message = "a matrix must have rows of equal length, such as [[1, 2], [3, 4]]"
        raise DataError(message) from None


def parse_shape(text: str) -> str:
    """Parse a shape and return it in the notation of sheets, such as ``2x3``.

    >>> parse_shape("(2, 3)"), parse_shape("2 × 3"), parse_shape("scalar"), parse_shape("1x1")
    ('2x3', '2x3', 'number', '1x1')
    """
    sizes = re.findall(r"\d+", text[:_MAX_LENGTH])
    return "x".join(sizes) or "number"


def parse_names(text: str) -> list[str]:
    """Parse names separated by commas, spaces or semicolons.

    >>> parse_names("xa, xb"), parse_names("none")
    (['xa', 'xb'], [])
    """
    names = [name for name in re.split(r"[,;\s{}]+", text.strip(" `[]()")) if name]
    if names in (["none"], ["nothing"], ["∅"]):
        return []
    return [name.strip("`'\"") for name in names]
