"""What typical slips would give: a formula with a sign, an addend or a factor gone wrong.

They are read off the formula of a blank, with the numbers that a student had before it.
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
_OTHERS = {"add": ("sub", "mul"), "sub": ("add",), "mul": ("add", "div"), "div": ("mul",)}
_MOST_OTHERS = 12  # values that a partial may have been taken at
_DERIVATIVES = ("bar", "dot")


def predict_wrong_answers(blank: Blank, known: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Names of slips with what they give, the likeliest first; some may give the right value.

    >>> tree = Apply("add", (Apply("mul", (Name("bar.xz"), Name("xy"))), Name("bar.xw")))
    >>> blank = Blank("xx", "adjoint", "bar.xx", 7.0, tree)
    >>> list(slips(blank, {"bar.xz": 2.0, "xy": 3.0, "bar.xw": 1.0, "xx": 5.0}))[:3]
    [('sign', -7.0), ('= instead of +=', 6.0), ('= instead of +=', 1.0)]
    """
    tree = blank.tree
    if tree is None:
        return
    right = evaluate_formula(tree, known)
    yield SIGN, -right
    flows = _get_kind(blank) in (*_DERIVATIVES, "gradient") or blank.name == "sum"
    for name, changed in _change_formula(tree, blank, flows):
        try:
            yield name, evaluate_formula(changed, known)
        except (KeyError, ValueError):  # nothing of that name here, or matrices that do not fit
            continue
    yield TWICE, 2 * right
    yield TWICE, right / 2
    if flows:
        yield from _evaluate_partials_elsewhere(tree, known)


def _evaluate_partials_elsewhere(
    tree: Expression, known: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    """Yield partials at any other value of the table: the least likely of all."""
    for name in sorted(n for n in names_in(tree) if not is_internal(n)):
        for other in [n for n in known if not is_internal(n) and n != name][:_MOST_OTHERS]:
            try:
                yield POINT, evaluate_formula(substitute(tree, {name: Name(other)}), known)
            except (KeyError, ValueError):
                continue


def _change_formula(
    tree: Expression, blank: Blank, flows: bool
) -> Iterator[tuple[str, Expression]]:
    addends = _flatten(tree, "add")
    if flows and len(addends) > 1:
        several = _name_missing_term(blank)
        yield from ((several, one) for one in addends)
        for k in range(len(addends) if len(addends) > 2 else 0):
            yield several, add_terms(addends[:k] + addends[k + 1 :])
        if len(addends) == 2:
            yield from _multiply_derivatives(tree, blank)
    for k, addend in enumerate(addends):
        for name, other in _change_term(addend, blank, flows):
            yield name, add_terms([*addends[:k], other, *addends[k + 1 :]])
    if not flows and isinstance(tree, Apply):
        for operation in _OTHERS.get(operator_name(tree.primitive), ()):
            yield OPERATION, Apply(operation, tree.arguments)
        if len(tree.arguments) == 2 and tree.primitive in ("sub", "div"):
            yield OPERATION, Apply(tree.primitive, tree.arguments[::-1])
        if tree.primitive == "pow":
            yield OPERATION, Apply("mul", tree.arguments)


def _name_missing_term(blank: Blank) -> str:
    """Return the name of a mistake that keeps only a part of a sum.

    A tangent adds up the operands of one operation, an adjoint the uses of one value.
    """
    if _get_kind(blank) == "dot":
        return {"mul": PRODUCT, "div": QUOTIENT}.get(blank.operation, TERM)
    return OVERWRITTEN if _get_kind(blank) == "bar" else ONE_PATH


def _multiply_derivatives(tree: Expression, blank: Blank) -> Iterator[tuple[str, Expression]]:
    """Yield ``f'*g'`` for the tangent of ``f*g``, ``f'/g'`` for that of ``f/g``."""
    tangents = [Name(n) for n in names_in(tree) if parse_internal(n).kind == "dot"]
    if blank.operation in ("mul", "div") and _get_kind(blank) == "dot":
        pairs = {1: [(tangents * 2)[:2]], 2: [tangents, tangents[::-1]]}
        for pair in pairs.get(len(tangents), []):
            yield _name_missing_term(blank), Apply(blank.operation, tuple(pair))


def _change_term(addend: Expression, blank: Blank, flows: bool) -> Iterator[tuple[str, Expression]]:
    factors = _flatten(addend, "mul")
    for k, factor in enumerate(factors if flows else []):  # of a + a, and of a*a
        parts = _flatten(factor, "add")
        for one in parts if len(parts) > 1 else []:
            yield _name_missing_term(blank), multiply_all([*factors[:k], one, *factors[k + 1 :]])
    if len(factors) > 1 and (flows or _get_kind(blank) == "path"):
        upstream = [f for f in factors if _is_derivative(f)]
        if len(upstream) == 1:
            rest = [f for f in factors if f is not upstream[0]]
            yield NO_UPSTREAM, multiply_all(rest)
            yield NO_LOCAL, upstream[0]
        if _get_kind(blank) == "path":
            yield ADDED, add_terms(factors)
        for k in range(len(factors)):
            yield NO_FACTOR, multiply_all(factors[:k] + factors[k + 1 :])
    if flows or _get_kind(blank) == "edge":
        here = {
            blank.row,
            *(
                parse_internal(f.name).variable
                for f in factors
                if _is_derivative(f) and isinstance(f, Name)
            ),
        }
        here |= set(parse_internal(blank.name).variables) if _get_kind(blank) == "edge" else set()
        for name in sorted(n for n in names_in(addend) if not is_internal(n)):
            for other in sorted(here - {name}):
                yield POINT, substitute(addend, {name: Name(other)})
        for node in postorder(addend):
            if isinstance(node, Apply) and node.primitive == "pow":
                yield EXPONENT, _raise_exponent(addend, node)
        if len(factors) == 2 and any(map(_is_value, factors)):
            # d(x^2)/dx is written with no exponent: 2*x that became 2*x^2
            squared = [Apply("pow", (f, Number(2.0))) if _is_value(f) else f for f in factors]
            yield EXPONENT, multiply_all(squared)


def _get_kind(blank: Blank) -> str:
    """Return the kind of quantity that a blank asks for: ``bar``, ``dot``, ``path``, ``edge``."""
    return parse_internal(blank.name).kind


def _is_derivative(node: Expression) -> bool:
    return isinstance(node, Name) and parse_internal(node.name).kind in _DERIVATIVES


def _is_value(node: Expression) -> bool:
    return isinstance(node, Name) and not is_internal(node.name)


def _flatten(tree: Expression, operation: str) -> list[Expression]:
    """The addends of a sum, or the factors of a product; a sign is a factor."""
    stack, found = [tree], list[Expression]()
    while stack:
        node = stack.pop()
        if isinstance(node, Apply) and node.primitive == operation:
            stack += reversed(node.arguments)
        elif isinstance(node, Apply) and (operation, node.primitive) == ("mul", "neg"):
            found.append(Number(-1.0))
            stack += node.arguments
        else:
            found.append(node)
    return found


def _raise_exponent(tree: Expression, power: Apply) -> Expression:
    """The formula in which one power has an exponent larger by one."""
    if not isinstance(tree, Apply):
        return tree
    if tree is not power:
        return Apply(tree.primitive, tuple(_raise_exponent(a, power) for a in tree.arguments))
    base, exponent = power.arguments
    return Apply("pow", (base, Apply("add", (exponent, Number(1.0)))))
