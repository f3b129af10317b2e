"""Read statements about derivatives, such as ``d(coth(x)) = -csch(x)^2`` or ``sin' = cos``.

A statement about any functions, such as ``(f*g)' = f'*g + f*g'``, is tried with example functions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cgprimer.analysis.rules import ABSTRACT, add_function_names, rules
from cgprimer.core.language import parser
from cgprimer.core.language.syntax_tree import Operator, Symbol
from cgprimer.course.checks.notation_reader import read_formula
from cgprimer.course.checks.notation_tokens import find_single_letters
from cgprimer.errors import UsageError
from cgprimer.expressions import (
    Apply,
    Expression,
    Name,
    fold,
    names_in,
    parse_expression,
    substitute,
    unparse,
)

_STATEMENT = re.compile(
    r"\s*(?:d/d(?P<wrt_before>\w+)\s*(?P<of>.+)"
    r"|d\s*(?P<inside>\(.+\))(?:\s*/\s*d(?P<wrt_after>\w+))?"
    r"|(?P<primed>.+)'(?P<argument>\(\s*\w+\s*\))?)\s*"
)
_CONSTANTS = {"e": parse_expression("exp(1)"), "pi": parse_expression("acos(-1)")}
_EXAMPLES = {  # positive, because a statement may contain their powers and logarithms
    "f": "exp(x/2) + 1", "g": "sin(x) + 2", "h": "x^2/4 + x + 2",
    "u": "cosh(x)", "v": "log(3 + x^2)",
}  # fmt: skip
_LETTERS = "".join(ABSTRACT)
_PRIMED = re.compile(rf"(?<![^\W\d])[{_LETTERS}]+'")
_FACTORS = re.compile(rf"(?<![^\W\d])(?<!')(?:[{_LETTERS}]'*)+(?![\w'])")
_FACTOR = re.compile(r"(\w)('*)")
_PRIME = "\u02b9"  # a letter that looks like the sign of a derivative


@dataclass(frozen=True)
class DerivativeStatement:
    """A statement about a derivative, such as ``sin' = cos``.

    Attributes:
        name: the left-hand side as it was written.
        function: the function that is differentiated.
        wrt: the name with respect to which it is differentiated.
        answer: the right-hand side; with formulas for abstract functions.
        function_argument: the argument of functions without one, as in ``sin' = cos``; else empty.
        examples: the formulas that replace abstract functions; else empty.
    """

    name: str
    function: Expression
    wrt: str
    answer: str
    function_argument: str = ""
    examples: str = ""

    @property
    def names(self) -> list[str]:
        """The names of the variables in the differentiated function."""
        return [*names_in(self.function)]


def read_statement(text: str) -> DerivativeStatement:
    """Parse a statement about a derivative, such as ``sin' = cos``.

    Raises:
        SourceError: a side cannot be read.
        UsageError: the text is not a statement, or the variable is missing.

    >>> statement = read_statement("sin' = cos")
    >>> statement.wrt, statement.answer, statement.function_argument
    ('x', 'cos', 'x')
    """
    left, equals, right = text.partition("=")
    match = _STATEMENT.fullmatch(left)
    if not equals or not right.strip() or not match:
        raise UsageError(
            f"{text!r} is not a statement about a derivative",
            hint="write d(coth(x)) = -csch(x)^2, or d/dx(x*y) = y, or sin' = cos",
        )
    body = match["of"] or match["inside"] or match["primed"] + (match["argument"] or "")
    wrt = match["wrt_before"] or match["wrt_after"]
    examples, argument = "", ""
    if has_abstract_functions(body, right):
        body, right, examples = insert_examples(body, right)
        wrt = wrt or "x"
    elif match["primed"] and (wrt or "x") not in find_single_letters(body):
        argument = wrt or "x"
    tree = _read_left_side(body, right, wrt, argument)
    tree = substitute(tree, {n: v for n, v in _CONSTANTS.items() if n != wrt})
    names = [*names_in(tree)]
    if wrt is None:
        wrt = "x" if "x" in names else names[0] if len(names) == 1 else None
    if wrt is None or wrt not in names:
        variables = " or ".join(f"d/d{name}(...)" for name in names)
        raise UsageError(
            f"cannot determine the differentiation variable of {unparse(tree)}",
            hint=f"write {variables}" if names else "write a function of at least one variable",
        )
    return DerivativeStatement(left.strip(), tree, wrt, right.strip(), argument, examples)


def _read_left_side(body: str, right: str, wrt: str | None, argument: str) -> Expression:
    """Parse the left-hand side of a statement into the tree of the differentiated function.

    A name of several letters is a product if each of its letters occurs as a name in the statement,
    as in ``d(xy)/dx = y``. If no other name is ``wrt``, all names of several letters are products.
    """
    letters = find_single_letters(body) | find_single_letters(right) | {wrt or "x", "e", "pi"}
    tree = read_formula(body, letters, "<left side>", variable=argument)
    if wrt and wrt not in names_in(tree):
        all_letters = letters | {*re.findall(r"[^\W\d_]", body)}
        products = read_formula(body, all_letters, "<left side>", variable=argument)
        tree = products if wrt in names_in(products) else tree
    return tree


# --- abstract functions --------------------------------------------------------------------------


def has_abstract_functions(left: str, right: str) -> bool:
    """Return whether a statement contains abstract functions, such as ``f'`` or ``g(x)``."""
    return bool(_PRIMED.search(right) or re.search(rf"\b[{_LETTERS}]\(", left + right))


def insert_examples(left: str, right: str) -> tuple[str, str, str]:
    """Replace `f`, `g`, `h`, `u`, `v` on both sides by example formulas; also return the formulas.

    Raises:
        SourceError: a side cannot be read.

    >>> insert_examples("f*2", "f'*2")
    ('(exp(x/2) + 1)*2', 'exp(x/2)/2*2', 'f = exp(x/2) + 1')
    """
    formulas: dict[str, Expression] = {}
    trees = []
    for text, side in ((left, "<left side>"), (right, "<right side>")):
        explicit = _insert_product_signs(text)
        for name in {*re.findall(r"\w+", explicit)}:
            letter = name.rstrip(_PRIME)
            order = len(name) - len(letter)
            if letter in ABSTRACT:
                example = _EXAMPLES[letter]
                formulas[name] = (
                    rules(example, "x", order=order).derivative
                    if order
                    else parse_expression(example)
                )
        trees.append(
            parser.parse_expression(explicit, add_function_names((*ABSTRACT, *formulas)), side)
        )
    letters = sorted({name.rstrip(_PRIME) for name in formulas})
    sides = [unparse(_replace_functions(tree, formulas)) for tree in trees]
    return sides[0], sides[1], ", ".join(f"{name} = {_EXAMPLES[name]}" for name in letters)


def _insert_product_signs(text: str) -> str:
    """Rewrite one side of a statement with derivatives as names and with explicit product signs.

    >>> _insert_product_signs("f'g + 2 f g''"), _insert_product_signs("f'(g(x))g'(x)")
    ('fʹ*g + 2*f*gʹʹ', 'fʹ(g(x))*gʹ(x)')
    """

    def join_factors(match: re.Match[str]) -> str:
        """Join the factors of a product by explicit ``*`` signs."""
        factors = _FACTOR.findall(match[0])
        return "*".join(letter + _PRIME * len(primes) for letter, primes in factors)

    explicit = _FACTORS.sub(join_factors, text)
    explicit = re.sub(r"(?<=[\w)])\s+(?=\w)|(?<=\))\s*(?=[\w(])", "*", explicit)
    return re.sub(rf"(?<![\w.])(\d+)(?=[{_LETTERS}](?:{_PRIME}|\W|$))", r"\1*", explicit)


def _replace_functions(tree: Expression, formulas: dict[str, Expression]) -> Expression:
    """Replace the abstract functions in an expression tree by their example formulas."""

    def replace_leaf(leaf: Expression) -> Expression:
        """Replace the name of an abstract function, such as ``f``, by the formula for ``f(x)``."""
        return formulas.get(leaf.name, leaf) if isinstance(leaf, Name) else leaf

    def replace_call(name: str | Operator, arguments: list[Expression]) -> Expression:
        """Return the formula for an abstract function, evaluated at the argument of the call."""
        if isinstance(name, Symbol) and name.name in formulas:
            return substitute(formulas[name.name], {"x": arguments[0]})
        return Apply(name, tuple(arguments))

    return fold(tree, replace_leaf, replace_call)
