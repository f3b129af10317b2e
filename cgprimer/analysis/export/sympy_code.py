"""Primitives as texts of sympy, and what a file needs to compare itself with sympy's slopes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from cgprimer.analysis.export.target_languages import Language, python_function
from cgprimer.core.operations.primitive_registry import OPERANDS, Applied, find_primitive
from cgprimer.core.operations.symbolic_arithmetic import get_sympy_form

_SAME = '''
def same(found, expected, within):
    """Whether a number is right."""
    difference = abs(sympy.N(found) - expected)
    return bool(difference.is_finite and difference <= within)'''


class _Sympy(Language):
    """Texts of primitives are those of the table's sympy forms."""

    def has(self, name: Applied) -> bool:
        known = isinstance(name, str) and get_sympy_form(find_primitive(name)) is not None
        return known or name == "stop_gradient"

    def applied(self, name: str, operands: Sequence[str]) -> str:
        given = dict(zip(OPERANDS, operands, strict=False))
        return re.sub(r"\b[abc]\b", lambda found: given[found[0]], _text(name))


@cache
def _text(name: str) -> str:
    """A primitive's sympy form as text.

    >>> _text("sigmoid"), _text("less")
    ('1/(1 + sympy.exp(-a))', 'sympy.Piecewise((1, a < b), (0, True))')
    """
    import sympy

    row = find_primitive(name)
    known = get_sympy_form(row)
    if known is None:
        return "a"
    symbols = [sympy.Symbol(o, real=True) for o in OPERANDS[: row.arity]]
    return re.sub(r"\b([^\W\d]\w*)\(", r"sympy.\1(", str(known(sympy, *symbols)))


def _exact(value: float) -> str:
    whole = value == int(value) and abs(value) < 2**53
    return str(int(value)) if whole else f'sympy.Rational("{value!r}")'


SYMPY = _Sympy({}, python_function, {"same": _SAME}, ("sympy.oo", "sympy.nan"), finite=_exact)
