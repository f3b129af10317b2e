"""Files with sympy: the same lines on symbols, compared with what sympy derives."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

from cgprimer.core.primitives.formulas import form
from cgprimer.core.primitives.registry import OPERANDS, primitive
from cgprimer.exporting import python_files
from cgprimer.exporting.languages import Language
from cgprimer.exporting.points import Checked
from cgprimer.exporting.program import Exported

_LARGEST = 200  # lines of a value that are expanded to one formula


class _Sympy(Language):
    """Texts of primitives are those of the table's sympy forms."""

    def has(self, name: str) -> bool:
        return name == "stop_gradient" or (type(name) is str and form(primitive(name)) is not None)

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

    row = primitive(name)
    known = form(row)
    if known is None:
        return "a"
    symbols = [sympy.Symbol(o, real=True) for o in OPERANDS[: row.arity]]
    return re.sub(r"\b([^\W\d]\w*)\(", r"sympy.\1(", str(known(sympy, *symbols)))


def _exact(value: float) -> str:
    whole = value == int(value) and abs(value) < 2**53
    return str(int(value)) if whole else f'sympy.Rational("{value!r}")'


SYMPY = _Sympy({}, python_files.define, {}, ("sympy.oo", "sympy.nan"), finite=_exact)
_CHECKS = '''
def number(double):
    """A number with forty digits: exactly what the double is."""
    return sympy.Float(double, 40)


def found(**at):
    """The value and the slopes at a point, by name."""
    at = {name: number(value) for name, value in at.items()}
    slopes = {f"d OF / d {name}": slope for name, slope in gradient(**at).items()}
    return {"OF": value(**at), **slopes}


def by_sympy(**at):
    """The slopes that sympy derives from the formula of the value."""
    symbols = {name: sympy.Symbol(name, real=True) for name in at}
    formula, point = value(**symbols), {symbols[name]: number(value) for name, value in at.items()}
    slopes = {f"d OF / d {name}": sympy.diff(formula, symbols[here]) for name, here in ARGUMENTS}
    return {name: slope.subs(point) for name, slope in slopes.items()}


def wrong(place, numbers, point):
    """How many of some numbers are wrong; each is printed."""
    count = 0
    for name, number in numbers.items():
        right = point["right"][name]
        number = float(sympy.re(sympy.sympify(number).evalf(20)))
        good = abs(number - right) <= point["within"][name]
        count += not good
        said = "" if good else f"not {right}"
        print("ok   " if good else "WRONG", place, name, "=", number, said)
    return count


def main():
    """Check all that the file says; the exit code is 1 if something is wrong."""
    count = 0
    for k, point in enumerate(POINTS):
        count += wrong(f"point {k}:", found(**point["at"]), point)
BY_SYMPY    print(f"{count} wrong" if count else "all right")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
'''
_BY_SYMPY = """\
        if point["smooth"]:  # at a kink sympy has its own conventions
            count += wrong(f"point {k}, by sympy:", by_sympy(**point["at"]), point)
"""


def taken() -> Callable[[str], bool]:
    """Which identifiers a file keeps for itself."""
    return python_files.reserved({"sympy", "number", "by_sympy"})


def sympy_file(made: Exported, points: Sequence[Checked], header: str) -> str:
    """The whole file; only points at which all is finite are of use to it."""
    from cgprimer.numbers_and_arrays import all_finite

    finite = [p for p in points if all(map(all_finite, (p.value, *p.gradient.values())))]
    stops = any(name == "stop_gradient" for name, _ in made.program.tape.instructions)
    compared = len(made.value.lines) <= _LARGEST and not stops
    checks = _CHECKS.replace("BY_SYMPY", _BY_SYMPY if compared else "").replace("OF", made.of)
    checks = checks.replace("ARGUMENTS", repr(python_files.arguments(made)))
    head = f'"""{header}\n"""\n\nimport sys\n\nimport sympy'
    functions = python_files.functions(made, SYMPY, "")
    parts = [head, *functions, *python_files.tables(made, finite, python_files.PYTHON), checks]
    return "\n\n\n".join(part.strip("\n") for part in parts) + "\n"
