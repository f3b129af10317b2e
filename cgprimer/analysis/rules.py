"""Symbolic differentiation as it is taught: rule by rule, each with its name.

``f`` may also be the name of a function that nothing defines: its derivative is ``f'``. Of several
expressions each is differentiated by itself, with the others as such functions (the chain rule of
a graph), or they are put into each other before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cgprimer.analysis.calculus import check_size, section_of
from cgprimer.analysis.derivation import Derivation, Section, size
from cgprimer.analysis.simplification import simplified
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

ABSTRACT = ("f", "g", "h", "u", "v")  #: in a text, functions of the variable that nothing defines
INNER = ("chain", "substitute")
_READABLE = 300  # nodes of a formula with the derivatives of the others in their places


def rules(
    formula: str | ExpressionGraph,
    wrt: str | None = None,
    *,
    of: str | None = None,
    inner: str = "chain",
    functions: Iterable[str] | None = None,
    order: int = 1,
) -> Derivation:
    """Differentiate a formula by the rules of calculus, one by one.

    Args:
        formula: a formula, ``x^2*sin(x)``; expressions, ``y = f*g; f = u*v``; or a graph.
        wrt: the variable; `x`, or the only name that it can be, unless given.
        of: of several expressions, the one to differentiate; the only output unless given.
        inner: what the other expressions are: ``chain``, functions of the variable with
            derivatives of their own, or ``substitute``, put into each other before.
        functions: names that stand for functions of the variable; in a text those of ``f``, ``g``,
            ``h``, ``u``, ``v`` that nothing defines, in a graph none unless given.
        order: how often to differentiate; from 2 on, inner expressions are substituted.

    Returns:
        The steps, each with the rule's name, the part that it rewrites and what that becomes.

    Raises:
        SourceError: the formula cannot be read.
        UsageError: an unknown name, or arrays.
        DifferentiationError: a function without a derivative.
        ExpressionSwellError: the formula would be too large to be written.

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
    given = [functions] if isinstance(functions, str) else list(functions or ())
    named = given if given or isinstance(formula, ExpressionGraph) else ABSTRACT
    definitions, free, name = _read(formula, of, named)
    for unknown in {*given} - _names(definitions.values()):
        raise UsageError(
            f"{unknown!r} does not stand in the formula", hint=name_hint(unknown, free)
        )
    wrt = _variable(wrt, free, definitions, free & {*named})
    abstract = free & {*named} - {wrt}
    definitions = {n: e for n, e in definitions.items() if n != wrt}
    needed = _needed(definitions, name)
    if order > 1 or inner == "substitute":
        whole = substituted(Name(name), needed)
        sections = []
        for _ in range(order):
            sections.append(section_of("" if name in ("", wrt) else name, whole, wrt, abstract))
            whole = sections[-1].derivative
        return Derivation(wrt, tuple(sections), tuple(sorted(abstract)), whole)
    moving = set(abstract)
    for inner_name, expression in needed.items():  # in topological order
        if names_in(expression).keys() & {wrt, *moving}:
            moving.add(inner_name)
    sections = [
        section_of(n, needed[n], wrt, moving) for n in reversed(needed) if n == name or n in moving
    ]
    return Derivation(wrt, tuple(sections), tuple(sorted(abstract)), _together(sections))


def _read(
    formula: str | ExpressionGraph, of: str | None, functions: Iterable[str]
) -> tuple[dict[str, Expression], set[str], str]:
    """Expressions by name, the names that nothing defines, and what to differentiate."""
    if isinstance(formula, str):
        table = with_any((*ABSTRACT, *functions))
        if "=" not in formula:
            if of is not None:
                raise UsageError("a single formula has no name: 'of' is for several expressions")
            tree = parser.parse_expression(formula, table, "<formula>")
            _check([tree])
            return {"": tree}, {*names_in(tree)}, ""
        formula = build_graph(parser.parse_program(formula, table, "<expressions>"))
    if formula.shapes:
        raise _of_arrays(", ".join(formula.shapes))
    _check(formula.definitions.values())
    if of is not None and of not in formula.definitions:
        raise UsageError(f"nothing defines {of!r}", hint=name_hint(of, formula.definitions))
    return formula.definitions, {*formula.inputs, *formula.parameters}, of or formula.only_output()


class _Table(dict[str, Any]):
    """The functions of the language, and names that stand for any function."""

    def __missing__(self, name: str) -> Any:
        return FUNCTIONS[name]


def with_any(functions: Iterable[str]) -> dict[str, Any]:
    """The functions of the language for its parser, and names that stand for any function."""
    rows = {n: [Primitive(Symbol(n), ("",), spelling=n)] for n in functions}  # type: ignore[arg-type]
    return _Table(FUNCTIONS | rows)


def _of_arrays(what: str) -> UsageError:
    return UsageError(
        f"the rules here are those of numbers, and there are arrays: {what}",
        hint="'cgprimer trace' and 'cgprimer grad --show' differentiate arrays step by step",
    )


def _check(trees: Iterable[Expression]) -> None:
    """Refuse what has no rule, before any work starts."""
    for tree in trees:
        for node in postorder(tree):
            name = node.primitive if isinstance(node, Apply) else ""
            if isinstance(name, Index):
                raise _of_arrays(unparse(node))
            elif name in ARRAY_FUNCTIONS:
                raise _of_arrays(f"{ARRAY_FUNCTIONS[name].spelling or '@'!r} is about them")
            elif name == "stop_gradient":
                raise DifferentiationError(
                    "'stop_gradient' hides a derivative on purpose: no rule of calculus does that",
                    hint="leave it out, or see what methods make of it: cgprimer tape --method",
                )


def _variable(
    wrt: str | None, free: set[str], definitions: dict[str, Expression], functions: set[str]
) -> str:
    """The variable to differentiate with respect to."""
    known = sorted(free) + list(filter(None, definitions))
    if not known and (wrt is None or wrt.isidentifier()):  # a constant: 5
        return wrt or "x"
    if wrt is not None:
        if wrt not in known and (not functions - {wrt} or not wrt.isidentifier()):
            hint = name_hint(wrt, known)
            raise UsageError(f"{wrt!r} does not stand in the formula", hint=hint)
        return wrt
    candidates = [n for n in known if n[0] == "x" and n in free]
    if "x" in free or (functions and not candidates):
        return "x"
    if len(candidates) != 1:
        candidates = candidates or sorted(free - functions)
    if len(candidates) != 1:
        said = "differentiate with respect to what?" if candidates else "there is no variable in it"
        hint = f"wrt=... (--wrt NAME), one of: {', '.join(candidates)}" if candidates else ""
        raise UsageError(said, hint=hint)
    return candidates[0]


def _needed(definitions: dict[str, Expression], name: str) -> dict[str, Expression]:
    """What an expression is made of, itself last."""
    wanted = {name}
    for inner in reversed(definitions):
        if inner in wanted:
            wanted |= names_in(definitions[inner]).keys()
    return {n: tree for n, tree in definitions.items() if n in wanted}


def _names(trees: Iterable[Expression]) -> set[str]:
    """Names of variables and of functions without a formula."""
    nodes = [node for tree in trees for node in postorder(tree) if not isinstance(node, Number)]
    return {operator_name(n.primitive) if isinstance(n, Apply) else n.name for n in nodes}


def substituted(tree: Expression, definitions: Mapping[str, Expression]) -> Expression:
    """A formula with what names in it stand for, all the way down.

    Raises:
        ExpressionSwellError: it is too large to be written.
    """
    whole: dict[str, Expression] = {}
    for name, definition in definitions.items():
        whole[name] = substitute(definition, whole)
    found = substitute(tree, whole)
    check_size(size(found))
    return found


def _together(sections: list[Section]) -> Expression:
    """The first derivative with those of inner expressions in their places, if they are short."""
    found: dict[str, Expression] = {}
    for section in reversed(sections):
        tree = substitute(section.derivative, found)
        if size(tree) > _READABLE:
            tree = section.derivative
        elif tree is not section.derivative:
            tree = simplified(tree)
        if size(tree) <= _READABLE:
            found[f"{section.name}'"] = tree
    return tree if len(sections) > 1 else section.derivative
