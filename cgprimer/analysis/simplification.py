"""Formulas made shorter as a teacher would at the end of a line, and not a step further.

Numbers are collected, equal factors become powers, equal terms one term; what is multiplied by 0 or
1, or added as 0, goes. Nothing is expanded but ``(a - b)*(a + b)``, and a power is cancelled where
it stays under the line: ``x/x^4`` is ``1/x^3``, and ``x/x`` stays. As on paper, ``0*f`` is 0 even
where ``f`` has no value.

A formula is folded from its leaves up. What arises is a product (a number, powers above and below
the line) or a sum of products, and a tree again where it is the argument of something else. Equal
trees are one object, so that comparing them costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from typing import Any

from cgprimer.errors import DifferentiationError
from cgprimer.expressions import Apply, Expression, Name, Number, fold

_MOST_BITS = 512  # of a numerator or denominator: a longer number is rounded to a double
_MOST_POWER = 1_000  # that a number is raised to
_LARGEST_BELOW = 64  # as a fraction; 1/2 and 2/3 are written so, 0.1 and 0.0009765625 are not


@dataclass(eq=False)
class _Product:
    """A number times powers with whole exponents; those ``below`` stand under the line."""

    number: Fraction
    above: dict[Expression, int] = field(default_factory=dict)
    below: dict[Expression, int] = field(default_factory=dict)


_Sum = dict[Any, _Product]  # of two terms or more, by what terms share that are collected
_Value = _Product | _Sum


def simplified(expression: Expression) -> Expression:
    """A formula, shorter.

    >>> from cgprimer.core.operations.notation import parse_expression, unparse
    >>> unparse(simplified(parse_expression("2*(3*x^2) - 6*(2*x) + 1 + 0")))
    '6*x^2 - 12*x + 1'
    >>> unparse(simplified(parse_expression("-sin(x^2)*(2*x)/4 + 0*k")))
    '-x*sin(x^2)/2'
    """
    forms = _Forms()
    return forms.tree(fold(expression, forms.leaf, forms.apply))


class _Forms:
    """Products and sums, and the trees that they are written as."""

    def __init__(self) -> None:
        self.known: dict[Any, Expression] = {}

    def leaf(self, node: Name | Number) -> _Value:
        if isinstance(node, Number):
            return _Product(Fraction(repr(node.value)))
        return _Product(Fraction(1), {self.known.setdefault(node.name, node): 1})

    def apply(self, name: str, values: list[_Value]) -> _Value:
        if name in ("add", "sub"):
            return self.sum(values[0], values[1], 1 if name == "add" else -1)
        if name == "neg":
            return _times(_Product(Fraction(-1)), self.product(values[0]))
        if name == "mul":
            return self.squares(*values) or _times(*map(self.product, values))
        if name == "div":
            over, under = map(self.product, values)
            if under.number:
                inverse = _Product(1 / under.number, under.below, under.above)
                return _times(over, inverse)
        if name == "pow" and (found := self.power(*values)):
            return found
        return _Product(Fraction(1), {self.node(name, *map(self.tree, values)): 1})

    def node(self, name: str, *arguments: Expression) -> Expression:
        """A tree; an equal one that was made before is the same object."""
        key = (name, *map(id, arguments))
        return self.known.setdefault(key, Apply(name, arguments))

    def sum(self, left: _Value, right: _Value, sign: int) -> _Value:
        """Terms side by side; equal ones, and numbers, are collected."""
        terms = left if isinstance(left, dict) else {_key(left): left} if left.number else {}
        if sign < 0:
            right = _times(_Product(Fraction(-1)), self.product(right))
        for term in right.values() if isinstance(right, dict) else (right,):
            key = _key(term)
            met = terms.setdefault(key, term)
            if met is not term:
                met.number = _rounded(met.number + term.number)
            if not met.number:
                del terms[key]
        if len(terms) > 1:
            return terms
        return next(iter(terms.values()), _Product(Fraction(0)))

    def product(self, value: _Value) -> _Product:
        """A value as a product; a sum is a factor."""
        return (
            value if isinstance(value, _Product) else _Product(Fraction(1), {self.tree(value): 1})
        )

    def squares(self, left: _Value, right: _Value) -> _Value | None:
        """``(a - b)*(a + b)`` as a difference of squares."""
        if not (isinstance(left, dict) and isinstance(right, dict)):
            return None
        if len(left) > 2 or left.keys() != right.keys():
            return None
        pairs = [(term, right[key]) for key, term in left.items()]
        same = [pair for pair in pairs if pair[0].number == pair[1].number]
        opposite = [pair for pair in pairs if pair[0].number == -pair[1].number]
        if len(same) != 1 or len(opposite) != 1:
            return None
        return self.sum(_times(*same[0]), _times(*opposite[0]), 1)

    def power(self, base: _Value, exponent: _Value) -> _Value | None:
        """A power with a number as its exponent, if it is more than that."""
        if not isinstance(exponent, _Product) or exponent.above or exponent.below:
            return None
        if exponent.number in (0, 1):
            return base if exponent.number else _Product(Fraction(1))
        if exponent.number.denominator > 1 or abs(exponent.number) > _MOST_POWER:
            return None
        times = int(exponent.number)
        if isinstance(base, _Product):
            if not base.above and not base.below and (base.number or times > 0):
                return _Product(_rounded(base.number**times))
            if len(base.above) == 1 and not base.below and (base.number == 1 or times > 0):
                number = _rounded(base.number**times)
                return _Product(number, {b: e * times for b, e in base.above.items()})
        return _Product(Fraction(1), {self.tree(base): times})

    def tree(self, value: _Value) -> Expression:
        """A value as it is written."""
        if isinstance(value, _Product):
            return self.term(value)
        written: Expression | None = None
        for term in value.values():
            if written is None:
                written = self.term(term)
            elif term.number > 0:
                written = self.node("add", written, self.term(term))
            else:
                positive = _Product(-term.number, term.above, term.below)
                written = self.node("sub", written, self.term(positive))
        assert written is not None
        return written

    def term(self, value: _Product) -> Expression:
        """A product: its number, names, calls of functions; its sign is the first factor's.

        Beside derivatives of functions without a formula everything keeps its order.
        """
        over, under = _as_written(abs(value.number))
        above = list(value.above.items())
        if not any(isinstance(base, Name) and base.name.endswith("'") for base in value.above):
            above.sort(key=_is_a_call)
        factors = [self.powered(*pair) for pair in above]
        if over != 1 or not factors:
            factors.insert(0, self.number(over))
        if value.number < 0:
            factors[0] = self.node("neg", factors[0])
        below = [self.number(under)] if under != 1 else []
        below += [self.powered(*pair) for pair in sorted(value.below.items(), key=_is_a_call)]
        written = self.multiplied(factors)
        return self.node("div", written, self.multiplied(below)) if below else written

    def multiplied(self, factors: list[Expression]) -> Expression:
        return reduce(lambda left, right: self.node("mul", left, right), factors)

    def powered(self, base: Expression, exponent: int) -> Expression:
        if exponent % 2 == 0 and isinstance(base, Apply) and base.primitive == "abs":
            base = base.arguments[0]
        if exponent == 1:
            return base
        return self.node("pow", base, self.number(Fraction(exponent)))

    def number(self, value: Fraction) -> Expression:
        try:
            near = float(abs(value))
        except OverflowError:
            raise DifferentiationError("a number here is too large for a double") from None
        written = self.known.setdefault(near, Number(near))
        return self.node("neg", written) if value < 0 else written


def _is_a_call(factor: tuple[Expression, int]) -> bool:
    """Whether a factor stands behind names and sums: ``2*x*cos(x^2)``."""
    while isinstance(base := factor[0], Apply) and base.primitive == "pow":
        factor = (base.arguments[0], 1)
    return not isinstance(base, Name) and getattr(base, "primitive", "") not in ("add", "sub")


def _key(term: _Product) -> Any:
    """What terms share that are collected."""
    return frozenset(term.above.items()), frozenset(term.below.items())


def _times(left: _Product, right: _Product) -> _Product:
    """The product; the left one becomes it."""
    left.number = _rounded(left.number * right.number)
    if not left.number:
        return _Product(Fraction(0))
    for mine, others in ((left.above, right.above), (left.below, right.below)):
        for base, exponent in others.items():
            mine[base] = mine.get(base, 0) + exponent
            if not mine[base]:
                del mine[base]
    if left.below:
        for base in [b for b, e in left.above.items() if 0 < e < left.below.get(b, 0)]:
            left.below[base] -= left.above.pop(base)
    return left


def _rounded(number: Fraction) -> Fraction:
    """A number; one with very many digits as the nearest double, if there is one."""
    if max(number.numerator.bit_length(), number.denominator.bit_length()) <= _MOST_BITS:
        return number
    try:
        return Fraction(float(number))
    except OverflowError:
        raise DifferentiationError("a number here is too large for a double") from None


def _as_written(number: Fraction) -> tuple[Fraction, Fraction]:
    """Numerator and denominator: 1/2 and 2/3 are fractions, 0.2 and 0.125e-3 are not."""
    under = number.denominator
    rest = under
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    decimal = rest == 1 and (under % 5 == 0 or under > _LARGEST_BELOW)
    if decimal or number.numerator.bit_length() > 53 or under.bit_length() > 53:
        return Fraction(repr(float(number))), Fraction(1)
    return Fraction(number.numerator), Fraction(under)
