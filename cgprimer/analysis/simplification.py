"""Simplification of formulas to the extent that is usual in a derivation on paper.

Numbers are combined, equal factors become powers and equal terms are collected. Factors 0 and 1 and
terms 0 disappear. Only ``(a - b)*(a + b)`` is expanded. Powers cancel if a power remains in the
denominator: ``x/x^4`` becomes ``1/x^3``, but ``x/x`` stays. As on paper, ``0*f`` is 0 even if ``f``
has no value.

A formula is folded from its leaves to its root. Intermediate results are products (a number and
powers in numerator and denominator) or sums of products; arguments of functions are trees. Equal
trees are one object, so comparing them is cheap.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from typing import Any

from cgprimer.errors import DifferentiationError
from cgprimer.expressions import Apply, Expression, Name, Number, fold

_MAX_BITS = 512  # of a numerator or denominator: longer numbers are rounded to a double
_MAX_EXPONENT = 1_000  # to which a number is raised
_MAX_DENOMINATOR = 64  # of a fraction such as 2/3; 0.0009765625 is written as a decimal


@dataclass(eq=False)
class _Product:
    """A product: a rational number times powers of expressions with integer exponents.

    Attributes:
        number: the number.
        above: exponents of the numerator, keyed by base.
        below: exponents of the denominator, keyed by base.
    """

    number: Fraction
    above: dict[Expression, int] = field(default_factory=dict)
    below: dict[Expression, int] = field(default_factory=dict)


_Sum = dict[Any, _Product]  # two or more terms, keyed by their powers
_Value = _Product | _Sum


def simplify_formula(expression: Expression) -> Expression:
    """Simplify a formula: collect equal terms, cancel factors, evaluate constants.

    >>> from cgprimer.core.operations.notation import parse_expression, unparse
    >>> unparse(simplify_formula(parse_expression("2*(3*x^2) - 6*(2*x) + 1 + 0")))
    '6*x^2 - 12*x + 1'
    >>> unparse(simplify_formula(parse_expression("-sin(x^2)*(2*x)/4 + 0*k")))
    '-x*sin(x^2)/2'
    """
    simplifier = _Simplifier()
    return simplifier.build_tree(fold(expression, simplifier.convert_leaf, simplifier.apply))


class _Simplifier:
    """Simplifier that represents subexpressions as products and as sums of products."""

    def __init__(self) -> None:
        self.trees: dict[Any, Expression] = {}

    def convert_leaf(self, node: Name | Number) -> _Value:
        """Convert a name or a number to a product with a single factor."""
        if isinstance(node, Number):
            return _Product(Fraction(repr(node.value)))
        return _Product(Fraction(1), {self.trees.setdefault(node.name, node): 1})

    def apply(self, name: str, values: list[_Value]) -> _Value:
        """Apply an operation to simplified operands."""
        if name in ("add", "sub"):
            return self.add(values[0], values[1], 1 if name == "add" else -1)
        if name == "neg":
            return _multiply(_Product(Fraction(-1)), self.convert_to_product(values[0]))
        if name == "mul":
            return self.expand_squares(*values) or _multiply(*map(self.convert_to_product, values))
        if name == "div":
            numerator, denominator = map(self.convert_to_product, values)
            if denominator.number:
                number = 1 / denominator.number
                inverse = _Product(number, denominator.below, denominator.above)
                return _multiply(numerator, inverse)
        if name == "pow" and (power := self.raise_power(*values)):
            return power
        return _Product(Fraction(1), {self.build_node(name, *map(self.build_tree, values)): 1})

    def build_node(self, name: str, *arguments: Expression) -> Expression:
        """Return the expression tree of an operation; equal trees are the same object."""
        key = (name, *map(id, arguments))
        return self.trees.setdefault(key, Apply(name, arguments))

    def add(self, left: _Value, right: _Value, sign: int) -> _Value:
        """Add or subtract two simplified values, and collect equal terms."""
        terms = left
        if isinstance(terms, _Product):
            terms = {_build_term_key(terms): terms} if terms.number else {}
        if sign < 0:
            right = _multiply(_Product(Fraction(-1)), self.convert_to_product(right))
        for term in right.values() if isinstance(right, dict) else (right,):
            key = _build_term_key(term)
            collected = terms.setdefault(key, term)
            if collected is not term:
                collected.number = _round_long_number(collected.number + term.number)
            if not collected.number:
                del terms[key]
        if len(terms) > 1:
            return terms
        return next(iter(terms.values()), _Product(Fraction(0)))

    def convert_to_product(self, value: _Value) -> _Product:
        """Convert a simplified value to a product; a sum becomes a single factor."""
        if isinstance(value, _Product):
            return value
        return _Product(Fraction(1), {self.build_tree(value): 1})

    def expand_squares(self, left: _Value, right: _Value) -> _Value | None:
        """Expand ``(a - b)*(a + b)`` to a difference of squares; None for other factors."""
        if not (isinstance(left, dict) and isinstance(right, dict)):
            return None
        if len(left) > 2 or left.keys() != right.keys():
            return None
        pairs = [(term, right[key]) for key, term in left.items()]
        equal = [pair for pair in pairs if pair[0].number == pair[1].number]
        opposite = [pair for pair in pairs if pair[0].number == -pair[1].number]
        if len(equal) != 1 or len(opposite) != 1:
            return None
        return self.add(_multiply(*equal[0]), _multiply(*opposite[0]), 1)

    def raise_power(self, base: _Value, exponent: _Value) -> _Value | None:
        """Simplify a power with a constant integer exponent; None for other powers."""
        if not isinstance(exponent, _Product) or exponent.above or exponent.below:
            return None
        if exponent.number in (0, 1):
            return base if exponent.number else _Product(Fraction(1))
        if exponent.number.denominator > 1 or abs(exponent.number) > _MAX_EXPONENT:
            return None
        power = int(exponent.number)
        if isinstance(base, _Product):
            if not base.above and not base.below and (base.number or power > 0):
                return _Product(_round_long_number(base.number**power))
            if len(base.above) == 1 and not base.below and (base.number == 1 or power > 0):
                number = _round_long_number(base.number**power)
                return _Product(number, {b: e * power for b, e in base.above.items()})
        return _Product(Fraction(1), {self.build_tree(base): power})

    def build_tree(self, value: _Value) -> Expression:
        """Convert a simplified value to an expression tree."""
        if isinstance(value, _Product):
            return self.build_term(value)
        result: Expression | None = None
        for term in value.values():
            if result is None:
                result = self.build_term(term)
            elif term.number > 0:
                result = self.build_node("add", result, self.build_term(term))
            else:
                positive = _Product(-term.number, term.above, term.below)
                result = self.build_node("sub", result, self.build_term(positive))
        assert result is not None
        return result

    def build_term(self, value: _Product) -> Expression:
        """Convert a product to an expression tree: number first, then names, then calls.

        If a factor is the derivative of a function without a definition, the order is unchanged.
        """
        numerator, denominator = _split_fraction(abs(value.number))
        above = list(value.above.items())
        if not any(isinstance(base, Name) and base.name.endswith("'") for base in value.above):
            above.sort(key=_is_call)
        factors = [self.build_power(*pair) for pair in above]
        if numerator != 1 or not factors:
            factors.insert(0, self.build_number(numerator))
        if value.number < 0:
            factors[0] = self.build_node("neg", factors[0])
        below = [self.build_number(denominator)] if denominator != 1 else []
        below += [self.build_power(*pair) for pair in sorted(value.below.items(), key=_is_call)]
        result = self.build_product(factors)
        return self.build_node("div", result, self.build_product(below)) if below else result

    def build_product(self, factors: list[Expression]) -> Expression:
        """Build the expression tree of a product of factors."""
        return reduce(lambda left, right: self.build_node("mul", left, right), factors)

    def build_power(self, base: Expression, exponent: int) -> Expression:
        """Build the expression tree of a power; even powers of ``abs(u)`` become powers of u."""
        if exponent % 2 == 0 and isinstance(base, Apply) and base.primitive == "abs":
            base = base.arguments[0]
        if exponent == 1:
            return base
        return self.build_node("pow", base, self.build_number(Fraction(exponent)))

    def build_number(self, value: Fraction) -> Expression:
        """Build the expression tree of a number, rounded to a double.

        Raises:
            DifferentiationError: the number is too large.
        """
        try:
            magnitude = float(abs(value))
        except OverflowError:
            raise DifferentiationError("a number exceeds the range of doubles") from None
        tree = self.trees.setdefault(magnitude, Number(magnitude))
        return self.build_node("neg", tree) if value < 0 else tree


def _is_call(factor: tuple[Expression, int]) -> bool:
    """Return whether a factor is a function call; calls are printed after names and sums."""
    while isinstance(base := factor[0], Apply) and base.primitive == "pow":
        factor = (base.arguments[0], 1)
    return not isinstance(base, Name) and getattr(base, "primitive", "") not in ("add", "sub")


def _build_term_key(term: _Product) -> Any:
    """Return a hashable key for the powers in a term; like terms have equal keys."""
    return frozenset(term.above.items()), frozenset(term.below.items())


def _multiply(left: _Product, right: _Product) -> _Product:
    """Multiply the left product in place by the right product, and return it."""
    left.number = _round_long_number(left.number * right.number)
    if not left.number:
        return _Product(Fraction(0))
    for powers, others in ((left.above, right.above), (left.below, right.below)):
        for base, exponent in others.items():
            powers[base] = powers.get(base, 0) + exponent
            if not powers[base]:
                del powers[base]
    if left.below:
        for base in [b for b, e in left.above.items() if 0 < e < left.below.get(b, 0)]:
            left.below[base] -= left.above.pop(base)
    return left


def _round_long_number(number: Fraction) -> Fraction:
    """Round a fraction to the nearest double if it exceeds 512 bits.

    Raises:
        DifferentiationError: the number is too large.
    """
    if max(number.numerator.bit_length(), number.denominator.bit_length()) <= _MAX_BITS:
        return number
    try:
        return Fraction(float(number))
    except OverflowError:
        raise DifferentiationError("a number exceeds the range of doubles") from None


def _split_fraction(number: Fraction) -> tuple[Fraction, Fraction]:
    """Return numerator and denominator; a decimal such as 0.2 has denominator 1."""
    denominator = number.denominator
    rest = denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    is_decimal = rest == 1 and (denominator % 5 == 0 or denominator > _MAX_DENOMINATOR)
    is_long = number.numerator.bit_length() > 53 or denominator.bit_length() > 53
    if is_decimal or is_long:
        return Fraction(repr(float(number))), Fraction(1)
    return Fraction(number.numerator), Fraction(denominator)
