"""Wrong answers that typical mistakes in the formula of a blank lead to.

A mistake changes the formula of one blank: a sign, a term, a factor, a position. The changed
formula is evaluated at the numbers that the student wrote in earlier blanks. Mistakes of whole
reverse passes (:mod:`cgprimer.course.checks.mistakes`) cannot be used, because values, tangents and
paths have formulas too, and because later blanks depend on the student's numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cgprimer.core.language.syntax_tree import operator_name
from cgprimer.course.checks.sheets.sheet_problems import Blank
from cgprimer.course.checks.sheets.sheet_tables import add_terms, evaluate_formula, multiply_all
from cgprimer.expressions import Apply, Expression, Name, Number, names_in, postorder, substitute
from cgprimer.support.value_names import is_internal, parse_internal

SIGN = "sign"
OVERWRITTEN = "= instead of +="
ONE_PATH = "one path of several"
PRODUCT = "product rule"
QUOTIENT = "quotient rule"
TERM = "term missing"
NO_UPSTREAM = "upstream factor missing"
NO_LOCAL = "local partial missing"
NO_FACTOR = "a factor missing"
POINT = "partial at the wrong point"
EXPONENT = "exponent not lowered"
ADDED = "partials added instead of multiplied"
OPERATION = "another operation"
TWICE = "factor 2"
SWAPPED = "swapped rows"
SHAPE = "transposed"
ROUNDED = "rounded too much"
ZERO = "zero after an earlier mistake"
_CONFUSED_OPERATIONS = {
    "add": ("sub", "mul"),
    "sub": ("add",),
    "mul": ("add", "div"),
    "div": ("mul",),
}
_MAX_POINTS = 12  # other values at which a partial may have been evaluated
_DERIVATIVES = ("bar", "dot")


def predict_wrong_answers(blank: Blank, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield (mistake, wrong answer) pairs for a blank, the most likely mistake first.

    Some predictions may be equal to the correct value.

    Args:
        blank: the blank.
        values: the values of the names in its formula.

    >>> tree = Apply("add", (Apply("mul", (Name("bar.xz"), Name("xy"))), Name("bar.xw")))
    >>> blank = Blank("xx", "adjoint", "bar.xx", 7.0, tree)
    >>> list(predict_wrong_answers(blank, {"bar.xz": 2.0, "xy": 3.0, "bar.xw": 1.0, "xx": 5.0}))[:3]
    [('sign', -7.0), ('= instead of +=', 6.0), ('= instead of +=', 1.0)]
    """
    tree = blank.tree
    if tree is None:
        return
    correct = evaluate_formula(tree, values)
    yield SIGN, -correct
    is_derivative = _get_kind(blank) in (*_DERIVATIVES, "gradient") or blank.name == "sum"
    for name, changed in _change_formula(tree, blank, is_derivative):
        try:
            yield name, evaluate_formula(changed, values)
        except (KeyError, ValueError):  # an unknown name, or incompatible shapes
            continue
    yield TWICE, 2 * correct
    yield TWICE, correct / 2
    if is_derivative:
        yield from _evaluate_partials_elsewhere(tree, values)


def _evaluate_partials_elsewhere(
    tree: Expression, values: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    """Predict answers in which a partial derivative is evaluated at a wrong value of the table."""
    for name in sorted(n for n in names_in(tree) if not is_internal(n)):
        for other in [n for n in values if not is_internal(n) and n != name][:_MAX_POINTS]:
            try:
                yield POINT, evaluate_formula(substitute(tree, {name: Name(other)}), values)
            except (KeyError, ValueError):
                continue


def _change_formula(
    tree: Expression, blank: Blank, is_derivative: bool
) -> Iterator[tuple[str, Expression]]:
    """Yield (mistake, changed formula) pairs for the formula of a blank.

    Args:
        tree: the formula.
        blank: the blank.
        is_derivative: whether the blank asks for a derivative.
    """
    terms = _flatten(tree, "add")
    if is_derivative and len(terms) > 1:
        several = _name_missing_term(blank)
        yield from ((several, one) for one in terms)
        for k in range(len(terms) if len(terms) > 2 else 0):
            yield several, add_terms(terms[:k] + terms[k + 1 :])
        if len(terms) == 2:
            yield from _multiply_derivatives(tree, blank)
    for k, term in enumerate(terms):
        for name, other in _change_term(term, blank, is_derivative):
            yield name, add_terms([*terms[:k], other, *terms[k + 1 :]])
    if not is_derivative and isinstance(tree, Apply):
        for operation in _CONFUSED_OPERATIONS.get(operator_name(tree.primitive), ()):
            yield OPERATION, Apply(operation, tree.arguments)
        if len(tree.arguments) == 2 and tree.primitive in ("sub", "div"):
            yield OPERATION, Apply(tree.primitive, tree.arguments[::-1])
        if tree.primitive == "pow":
            yield OPERATION, Apply("mul", tree.arguments)


def _name_missing_term(blank: Blank) -> str:
    """Return the name of the mistake in which terms of a derivative are missing.

    A tangent is a sum over the operands of an operation, an adjoint a sum over the uses of a value.
    """
    if _get_kind(blank) == "dot":
        return {"mul": PRODUCT, "div": QUOTIENT}.get(blank.operation, TERM)
    return OVERWRITTEN if _get_kind(blank) == "bar" else ONE_PATH


def _multiply_derivatives(tree: Expression, blank: Blank) -> Iterator[tuple[str, Expression]]:
    """Yield the wrong formula ``f'*g'`` for the tangent of ``f*g``, or ``f'/g'`` for ``f/g``."""
    tangents = [Name(n) for n in names_in(tree) if parse_internal(n).kind == "dot"]
    is_product = blank.operation in ("mul", "div") and _get_kind(blank) == "dot"
    if is_product and len(tangents) == 2:  # for u*u, the tangent contains only one
        for pair in (tangents, tangents[::-1]):
            yield _name_missing_term(blank), Apply(blank.operation, tuple(pair))


def _change_term(
    term: Expression, blank: Blank, is_derivative: bool
) -> Iterator[tuple[str, Expression]]:
    """Yield (mistake, changed term) pairs for one term of the formula of a blank."""
    factors = _flatten(term, "mul")
    for k, factor in enumerate(
        factors if is_derivative else []
    ):  # the partial of a + a or of a*a is a sum
        parts = _flatten(factor, "add")
        for one in parts if len(parts) > 1 else []:
            yield _name_missing_term(blank), multiply_all([*factors[:k], one, *factors[k + 1 :]])
    if len(factors) > 1 and (is_derivative or _get_kind(blank) == "path"):
        upstream = [f for f in factors if _is_derivative(f)]
        if len(upstream) == 1:
            rest = [f for f in factors if f is not upstream[0]]
            yield NO_UPSTREAM, multiply_all(rest)
            yield NO_LOCAL, upstream[0]
        if _get_kind(blank) == "path":
            yield ADDED, add_terms(factors)
        for k in range(len(factors)):
            yield NO_FACTOR, multiply_all(factors[:k] + factors[k + 1 :])
    if is_derivative or _get_kind(blank) == "edge":
        near = {
            blank.row,
            *(
                parse_internal(f.name).variable
                for f in factors
                if _is_derivative(f) and isinstance(f, Name)
            ),
        }
        near |= set(parse_internal(blank.name).variables) if _get_kind(blank) == "edge" else set()
        for name in sorted(n for n in names_in(term) if not is_internal(n)):
            for other in sorted(near - {name}):
                yield POINT, substitute(term, {name: Name(other)})
        for node in postorder(term):
            if isinstance(node, Apply) and node.primitive == "pow":
                yield EXPONENT, _raise_exponent(term, node)
        if len(factors) == 2 and any(map(_is_value, factors)):
            # 2*x, the derivative of x^2, became 2*x^2
            squared = [Apply("pow", (f, Number(2.0))) if _is_value(f) else f for f in factors]
            yield EXPONENT, multiply_all(squared)


def _get_kind(blank: Blank) -> str:
    """Return the kind of quantity that a blank asks for, such as ``bar`` for an adjoint."""
    return parse_internal(blank.name).kind


def _is_derivative(node: Expression) -> bool:
    """Return whether a node is the name of an adjoint or a tangent."""
    return isinstance(node, Name) and parse_internal(node.name).kind in _DERIVATIVES


def _is_value(node: Expression) -> bool:
    """Return whether a node is the name of a value of the graph."""
    return isinstance(node, Name) and not is_internal(node.name)


def _flatten(tree: Expression, operation: str) -> list[Expression]:
    """Return the terms of a sum, or the factors of a product; a minus sign is the factor -1."""
    stack, parts = [tree], list[Expression]()
    while stack:
        node = stack.pop()
        if isinstance(node, Apply) and node.primitive == operation:
            stack += reversed(node.arguments)
        elif isinstance(node, Apply) and (operation, node.primitive) == ("mul", "neg"):
            parts.append(Number(-1.0))
            stack += node.arguments
        else:
            parts.append(node)
    return parts


def _raise_exponent(tree: Expression, power: Apply) -> Expression:
    """Return a formula with the exponent of the given power increased by 1."""
    if not isinstance(tree, Apply):
        return tree
    if tree is not power:
        return Apply(tree.primitive, tuple(_raise_exponent(a, power) for a in tree.arguments))
    base, exponent = power.arguments
    return Apply("pow", (base, Apply("add", (exponent, Number(1.0)))))
