"""Code for primitives in sympy, and for the comparison with sympy's own derivatives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from cgprimer.analysis.export.target_languages import Language, define_python_function
from cgprimer.core.operations.primitive_registry import OPERANDS, Applied, find_primitive
from cgprimer.core.operations.symbolic_arithmetic import get_sympy_form

_IS_CLOSE = '''
def is_close(result, expected, tolerance):
    """Return whether a number is finite and within the tolerance."""
    difference = abs(sympy.N(result) - expected)
    return bool(difference.is_finite and difference <= tolerance)'''


class _Sympy(Language):
    """The target language SymPy, which uses the SymPy forms of the primitive table."""

    def supports(self, name: Applied) -> bool:
        """Return whether an operation is a primitive with a SymPy form."""
        has_form = isinstance(name, str) and get_sympy_form(find_primitive(name)) is not None
        return has_form or name == "stop_gradient"

    def apply(self, name: str, operands: Sequence[str]) -> str:
        """Return the SymPy code that applies a primitive to operands."""
        values = dict(zip(OPERANDS, operands, strict=False))
        return re.sub(r"\b[abc]\b", lambda match: values[match[0]], _format_sympy_form(name))


@cache
def _format_sympy_form(name: str) -> str:
    """Return the SymPy code of a primitive, with operands a, b and c.

    >>> _format_sympy_form("sigmoid"), _format_sympy_form("less")
    ('1/(1 + sympy.exp(-a))', 'sympy.Piecewise((1, a < b), (0, True))')
    """
    import sympy

    row = find_primitive(name)
    form = get_sympy_form(row)
    if form is None:
        return "a"
    symbols = [sympy.Symbol(o, real=True) for o in OPERANDS[: row.arity]]
    return re.sub(r"\b([^\W\d]\w*)\(", r"sympy.\1(", str(form(sympy, *symbols)))


def _format_exactly(value: float) -> str:
    """Format a finite float as an exact integer or rational number of SymPy."""
    is_integer = value == int(value) and abs(value) < 2**53
    return str(int(value)) if is_integer else f'sympy.Rational("{value!r}")'


SYMPY = _Sympy(
    {},
    define_python_function,
    {"is_close": _IS_CLOSE},
    ("sympy.oo", "sympy.nan"),
    finite=_format_exactly,
)
