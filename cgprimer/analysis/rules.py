"""Symbolic differentiation as it is taught: rule by rule, with the name of each rule.

``f`` can be the name of a function without a definition: its derivative is ``f'``. If there are
several expressions, each is differentiated separately, with the others as such functions (the
chain rule of a graph), or they are substituted into each other first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cgprimer.analysis.calculus import check_size, differentiate_expression
from cgprimer.analysis.derivation import Derivation, Section, count_nodes
from cgprimer.analysis.simplification import simplify_formula
from cgprimer.core.graph.construction import build_graph
from cgprimer.core.language import parser
from cgprimer.core.language.syntax_tree import Index, Symbol, operator_name
from cgprimer.core.operations.primitive_registry import ARRAY_FUNCTIONS, FUNCTIONS, Primitive
from cgprimer.errors import DifferentiationError, UsageError, name_hint
from cgprimer.expressions import (
    Apply,
    Expression,
    ExpressionGraph,
    Name,
    Number,
    names_in,
    postorder,
    substitute,
    unparse,
)
from cgprimer.support.type_checks import check_type
from cgprimer.support.validation import check_choice, check_integer

ABSTRACT = ("f", "g", "h", "u", "v")  #: names of functions without a definition, in a string
INNER = ("chain", "substitute")
_MAX_COMBINED_SIZE = 300  # nodes of a formula with substituted inner derivatives


def rules(
    formula: str | ExpressionGraph,
    wrt: str | None = None,
    *,
    of: str | None = None,
    inner: str = "chain",
    functions: Iterable[str] | None = None,
    order: int = 1,
) -> Derivation:
    """Differentiate a formula by the rules of calculus, one rule at a time.

    Args:
        formula: a formula, ``x^2*sin(x)``; expressions, ``y = f*g; f = u*v``; or a graph.
        wrt: the variable; by default `x` or the only possible name.
        of: the expression to differentiate if there are several; by default the only output.
        inner: the treatment of the other expressions: ``chain`` differentiates each separately,
            ``substitute`` substitutes them into each other first.
        functions: names of functions of the variable without a definition; by default ``f``,
            ``g``, ``h``, ``u`` and ``v`` in a string, and none in a graph.
        order: the order of the derivative; from 2 on, inner expressions are substituted.

    Returns:
        The steps, each with the name of the rule, the part that it rewrites and the result.

    Raises:
        SourceError: the formula is invalid.
        UsageError: a name is unknown, or the formula has arrays.
        DifferentiationError: a function has no derivative.
        ExpressionSwellError: the result would be too large.

    >>> print(rules("cos(x^2)"))
    d/dx(cos(x^2))
      = -sin(x^2)*d/dx(x^2)    chain rule, cos
                  ---------
      = -sin(x^2)*(2*x)        power rule
      = -2*x*sin(x^2)          simplify
    <BLANKLINE>
    chain rule, cos: cos(u)' = -sin(u)*u'
    power rule: (x^n)' = n*x^(n - 1)
    >>> rules("f*g").result, rules("y = f*g; f = u*v").result
    ("f'*g + f*g'", "(u'*v + u*v')*g + f*g'")

    Source: any calculus text, for instance Stewart, "Calculus", chapter 3.
    """
    check_type("formula", formula, (str, ExpressionGraph), "a formula or a graph")
    check_type("wrt", wrt, (str, type(None)), "a name")
    if functions is not None:
        check_type("functions", functions, Iterable, "names of functions")
    check_choice("inner", inner, INNER)
    order = check_integer("order", order, minimum=1)
    requested = [functions] if isinstance(functions, str) else list(functions or ())
    candidates = requested if requested or isinstance(formula, ExpressionGraph) else ABSTRACT
    definitions, free, name = _parse_formula(formula, of, candidates)
    for unknown in {*requested} - _collect_names(definitions.values()):
        raise UsageError(
            f"{unknown!r} does not occur in the formula", hint=name_hint(unknown, free)
        )
    wrt = _choose_variable(wrt, free, definitions, free & {*candidates})
    abstract = free & {*candidates} - {wrt}
    definitions = {n: e for n, e in definitions.items() if n != wrt}
    needed = _select_needed_definitions(definitions, name)
    if order > 1 or inner == "substitute":
        sections = _differentiate_substituted(name, needed, wrt, abstract, order)
        derivative = sections[-1].derivative
    else:
        sections = _differentiate_each(name, needed, wrt, abstract)
        derivative = _combine_derivatives(sections)
    return Derivation(wrt, tuple(sections), tuple(sorted(abstract)), derivative)


def _differentiate_substituted(
    name: str, definitions: dict[str, Expression], wrt: str, functions: set[str], order: int
) -> list[Section]:
    """Substitute all expressions into one, and differentiate it ``order`` times."""
    expression = substitute_all(Name(name), definitions)
    sections: list[Section] = []
    for _ in range(order):
        label = "" if name in ("", wrt) else name
        sections.append(differentiate_expression(label, expression, wrt, functions))
        expression = sections[-1].derivative
    return sections


def _differentiate_each(
    name: str, definitions: dict[str, Expression], wrt: str, functions: set[str]
) -> list[Section]:
    """Differentiate each expression that depends on the variable, outermost first."""
    dependent = set(functions)
    for inner_name, expression in definitions.items():  # in topological order
        if names_in(expression).keys() & {wrt, *dependent}:
            dependent.add(inner_name)
    return [
        differentiate_expression(n, definitions[n], wrt, dependent)
        for n in reversed(definitions)
        if n == name or n in dependent
    ]


def _parse_formula(
    formula: str | ExpressionGraph, of: str | None, functions: Iterable[str]
) -> tuple[dict[str, Expression], set[str], str]:
    """Parse a formula or expressions, and find the expression to differentiate.

    Returns:
        The expressions keyed by name, the names without a definition, and the name of the
        expression to differentiate (empty for a single formula).
    """
    if isinstance(formula, str):
        table = add_function_names((*ABSTRACT, *functions))
        if "=" not in formula:
            if of is not None:
                raise UsageError("`of` requires multiple expressions, got a single formula")
            tree = parser.parse_expression(formula, table, "<formula>")
            _check_operations([tree])
            return {"": tree}, {*names_in(tree)}, ""
        formula = build_graph(parser.parse_program(formula, table, "<expressions>"))
    if formula.shapes:
        raise _create_array_error(", ".join(formula.shapes))
    _check_operations(formula.definitions.values())
    if of is not None and of not in formula.definitions:
        raise UsageError(f"{of!r} is not defined", hint=name_hint(of, formula.definitions))
    return formula.definitions, {*formula.inputs, *formula.parameters}, of or formula.only_output()


class _ExtendedFunctionTable(dict[str, Any]):
    """The functions of the language, plus undefined functions such as ``f`` and ``g``."""

    def __missing__(self, name: str) -> Any:
        return FUNCTIONS[name]


def add_function_names(functions: Iterable[str]) -> dict[str, Any]:
    """Return the parser's function table, extended by the names of undefined functions."""
    rows = {n: [Primitive(Symbol(n), ("",), spelling=n)] for n in functions}  # type: ignore[arg-type]
    return _ExtendedFunctionTable(FUNCTIONS | rows)


def _create_array_error(names: str) -> UsageError:
    """Create the error for a formula that contains arrays."""
    return UsageError(
        f"the rules of calculus apply only to scalars, but the formula has arrays: {names}",
        hint="use 'cgprimer trace' or 'cgprimer grad --show' to differentiate arrays",
    )


def _check_operations(trees: Iterable[Expression]) -> None:
    """Raise an error if the rules of calculus do not cover an operation."""
    for tree in trees:
        for node in postorder(tree):
            name = node.primitive if isinstance(node, Apply) else ""
            if isinstance(name, Index):
                raise _create_array_error(unparse(node))
            elif name in ARRAY_FUNCTIONS:
                raise _create_array_error(f"argument of {ARRAY_FUNCTIONS[name].spelling or '@'!r}")
            elif name == "stop_gradient":
                raise DifferentiationError(
                    "the rules of calculus do not apply to 'stop_gradient'",
                    hint="remove it, or print the derivative program with"
                    " 'cgprimer tape --method reverse'",
                )


def _choose_variable(
    wrt: str | None, free: set[str], definitions: dict[str, Expression], functions: set[str]
) -> str:
    """Choose the variable with respect to which to differentiate a formula.

    Args:
        wrt: the requested name, if any.
        free: the names without a definition.
        definitions: the expressions.
        functions: the names without a definition that are functions.
    """
    names = sorted(free) + list(filter(None, definitions))
    if not names and (wrt is None or wrt.isidentifier()):  # a constant: 5
        return wrt or "x"
    if wrt is not None:
        if wrt not in names and (not functions - {wrt} or not wrt.isidentifier()):
            hint = name_hint(wrt, names)
            raise UsageError(f"{wrt!r} does not occur in the formula", hint=hint)
        return wrt
    candidates = [n for n in names if n[0] == "x" and n in free]
    if "x" in free or (functions and not candidates):
        return "x"
    if len(candidates) != 1:
        candidates = candidates or sorted(free - functions)
    if not candidates:
        raise UsageError("the formula has no variable")
    if len(candidates) > 1:
        hint = f"choose wrt=... (--wrt NAME) from {', '.join(candidates)}"
        raise UsageError("`wrt` is required", hint=hint)
    return candidates[0]


def _select_needed_definitions(
    definitions: dict[str, Expression], name: str
) -> dict[str, Expression]:
    """Return the named expression and its dependencies, in topological order."""
    needed = {name}
    for inner in reversed(definitions):
        if inner in needed:
            needed |= names_in(definitions[inner]).keys()
    return {n: tree for n, tree in definitions.items() if n in needed}


def _collect_names(trees: Iterable[Expression]) -> set[str]:
    """Return the names of all variables and functions in expressions."""
    nodes = [node for tree in trees for node in postorder(tree) if not isinstance(node, Number)]
    return {operator_name(n.primitive) if isinstance(n, Apply) else n.name for n in nodes}


def substitute_all(tree: Expression, definitions: Mapping[str, Expression]) -> Expression:
    """Replace the names in an expression by their definitions, recursively.

    Raises:
        ExpressionSwellError: the result is too large.
    """
    expanded: dict[str, Expression] = {}
    for name, definition in definitions.items():
        expanded[name] = substitute(definition, expanded)
    result = substitute(tree, expanded)
    check_size(count_nodes(result))
    return result


def _combine_derivatives(sections: list[Section]) -> Expression:
    """Substitute the inner derivatives, unless they are long, into the outermost derivative."""
    derivatives: dict[str, Expression] = {}
    for section in reversed(sections):
        tree = substitute(section.derivative, derivatives)
        if count_nodes(tree) > _MAX_COMBINED_SIZE:
            tree = section.derivative
        elif tree is not section.derivative:
            tree = simplify_formula(tree)
        if count_nodes(tree) <= _MAX_COMBINED_SIZE:
            derivatives[f"{section.name}'"] = tree
    return tree if len(sections) > 1 else section.derivative
