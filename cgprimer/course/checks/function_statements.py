"""Statements about any f and g: tried with functions that have nothing in common."""

from __future__ import annotations

import re

from cgprimer.analysis.rules import ABSTRACT, rules, with_any
from cgprimer.core.language import parser
from cgprimer.core.language.syntax_tree import Operator, Symbol
from cgprimer.expressions import (
    Apply,
    Expression,
    Name,
    fold,
    parse_expression,
    substitute,
    unparse,
)

_FORMULAS = {  # positive where powers and logarithms of them may be stated
    "f": "exp(x/2) + 1", "g": "sin(x) + 2", "h": "x^2/4 + x + 2",
    "u": "cosh(x)", "v": "log(3 + x^2)",
}  # fmt: skip
_DASHED = re.compile(rf"(?<![^\W\d])[{''.join(ABSTRACT)}]+'")
_FACTORS = re.compile(rf"(?<![^\W\d])(?<!')(?:[{''.join(ABSTRACT)}]'*)+(?![\w'])")
_FACTOR = re.compile(r"(\w)('*)")
_PRIME = "\u02b9"  # a letter that looks like the sign of a derivative


def is_about_any(left: str, right: str) -> bool:
    """Whether a statement is about functions without a formula: ``f'``, ``g(x)``."""
    return bool(_DASHED.search(right) or re.search(rf"\b[{''.join(ABSTRACT)}]\(", left + right))


def with_formulas(left: str, right: str) -> tuple[str, str, str]:
    """Both sides with formulas in `x` for `f`, `g`, `h`, `u` and `v`, and which these are.

    Raises:
        SourceError: a side cannot be read.

    >>> with_formulas("f*2", "f'*2")
    ('(exp(x/2) + 1)*2', 'exp(x/2)/2*2', 'f = exp(x/2) + 1')
    """
    known: dict[str, Expression] = {}
    trees = []
    for text, side in ((left, "<left side>"), (right, "<right side>")):
        plain = _with_signs(text)
        for name in {*re.findall(r"\w+", plain)}:
            letter = name.rstrip(_PRIME)
            order = len(name) - len(letter)
            if letter in ABSTRACT:
                formula = _FORMULAS[letter]
                known[name] = (
                    rules(formula, "x", order=order).derivative
                    if order
                    else parse_expression(formula)
                )
        trees.append(parser.parse_expression(plain, with_any((*ABSTRACT, *known)), side))
    used = sorted({name.rstrip(_PRIME) for name in known})
    sides = [unparse(_put(tree, known)) for tree in trees]
    return sides[0], sides[1], ", ".join(f"{name} = {_FORMULAS[name]}" for name in used)


def _with_signs(text: str) -> str:
    """Return a side in which derivatives are names, and products have their signs.

    >>> _with_signs("f'g + 2 f g''"), _with_signs("f'(g(x))g'(x)")
    ('fʹ*g + 2*f*gʹʹ', 'fʹ(g(x))*gʹ(x)')
    """

    def product(run: re.Match[str]) -> str:
        factors = _FACTOR.findall(run[0])
        return "*".join(letter + _PRIME * len(primes) for letter, primes in factors)

    plain = _FACTORS.sub(product, text)
    plain = re.sub(r"(?<=[\w)])\s+(?=\w)|(?<=\))\s*(?=[\w(])", "*", plain)
    return re.sub(rf"(?<![\w.])(\d+)(?=[{''.join(ABSTRACT)}](?:{_PRIME}|\W|$))", r"\1*", plain)


def _put(tree: Expression, known: dict[str, Expression]) -> Expression:
    def apply(name: str | Operator, arguments: list[Expression]) -> Expression:
        if isinstance(name, Symbol) and name.name in known:
            return substitute(known[name.name], {"x": arguments[0]})
        return Apply(name, tuple(arguments))

    return fold(
        tree, lambda leaf: known.get(leaf.name, leaf) if isinstance(leaf, Name) else leaf, apply
    )
