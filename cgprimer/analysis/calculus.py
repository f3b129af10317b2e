"""The rules of calculus on syntax trees: one part, one rule, what it becomes.

``d/dx(...)`` is a node of the tree like any other. A rule rewrites one such node, the first from
the left, into a formula in which smaller ones stand, until there are none; the last step makes the
formula shorter. Nothing recurses: a sum of a hundred thousand terms is one step of the rule for
sums. A function's own rule is its partials in the table of primitives, but for the few that are
written there to lose no digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import reduce
from typing import NamedTuple

from cgprimer.analysis.derivation import PENDING, Section, Step, filled, size
from cgprimer.analysis.simplification import simplified
from cgprimer.core.language.syntax_tree import Symbol, operator_name
from cgprimer.core.operations.primitive_registry import (
    OPERANDS,
    RESULT,
    Primitive,
    find_primitive,
    parse_partial,
)
from cgprimer.errors import ExpressionSwellError, format_count
from cgprimer.expressions import Apply, Expression, Name, Number, postorder, substitute, unparse

_LARGEST = 200_000  # nodes of a formula that is written out
LAWS = {
    "constant": "c' = 0",
    "identity": "x' = 1",
    "constant multiple": "(c*u)' = c*u'",
    "sum": "(u + v)' = u' + v'",
    "difference": "(u - v)' = u' - v'",
    "sum and difference": "(u + v - w)' = u' + v' - w'",
    "product": "(u*v)' = u'*v + u*v'",
    "quotient": "(u/v)' = (u'*v - u*v')/v^2",
    "reciprocal": "(c/u)' = -c*u'/u^2",
    "power": "(x^n)' = n*x^(n - 1)",
    "exponential": "(a^x)' = a^x*log(a)",
    "general power": "(u^v)' = u^v*(v'*log(u) + v*u'/u)",
    "chain": "(f(u))' = f'(u)*u'",
    "chain, power": "(u^n)' = n*u^(n - 1)*u'",
    "chain, exponential": "(a^u)' = a^u*log(a)*u'",
    "function": "",
}  #: the rules of sums, products and powers; those of functions are made of the table
_TAUGHT = {  # where the table has what rounds well, the same as books have it
    "tan": "sec(a)^2", "csc": "-csc(a)*cot(a)", "cot": "-csc(a)^2", "csch": "-csch(a)*coth(a)",
    "coth": "-csch(a)^2", "log2": "1/(a*log(2))", "log10": "1/(a*log(10))", "sqrt": "1/(2*sqrt(a))",
    "asin": "1/sqrt(1 - a^2)", "acos": "-1/sqrt(1 - a^2)", "atanh": "1/(1 - a^2)",
    "acoth": "1/(1 - a^2)", "asech": "-1/(a*sqrt(1 - a^2))", "softplus": "sigmoid(a)",
    "asec": "1/(abs(a)*sqrt(a^2 - 1))", "acsc": "-1/(abs(a)*sqrt(a^2 - 1))",
}  # fmt: skip


def check_size(nodes: int) -> None:
    """Refuse what nobody could read.

    Raises:
        ExpressionSwellError: the formula is too large to be written.
    """
    if nodes > _LARGEST:
        raise ExpressionSwellError(
            f"written out, the formula has {format_count(nodes, 10**9)}"
            " names, numbers and operations",
            hint="'cgprimer grad' does without it; of several expressions, inner='chain'"
            " (--inner chain) differentiates each by itself",
        )


def section_of(name: str, tree: Expression, wrt: str, functions: set[str]) -> Section:
    """Differentiate one expression; ``functions`` are the names that depend on the variable."""
    work = _Work(tree, wrt, functions)
    start = work.derivative(tree, trivial=False)
    assert isinstance(start, Apply)
    waiting, steps = [start], []
    new: dict[Expression, Expression] = {}
    while waiting:
        node = waiting.pop()
        work.pending.clear()
        rule, after, function, law = work.rewritten(node.arguments[0])
        law = law or LAWS[f"{rule}, {function}" if function else rule]
        steps.append(Step(rule, function, law, node, after))
        new[node] = after
        waiting += reversed(work.pending)
    check_size(size(start, new))
    whole = filled(start, new)
    short = simplified(whole)
    if unparse(short) != unparse(whole):
        steps.append(Step("simplify", "", "", whole, short))
    return Section(name, tree, start, tuple(steps), short, tuple(work.notes))


class _Work:
    """The rules, on the parts of one expression."""

    def __init__(self, tree: Expression, wrt: str, functions: set[str]) -> None:
        self.wrt, self.functions = wrt, functions
        self.pending: list[Apply] = []  # made by a rule, from left to right
        self.notes: dict[str, None] = {}
        self.moving: set[Expression] = set()  # parts that depend on the variable
        for node in postorder(tree):
            inside = node.arguments if isinstance(node, Apply) else ()
            if self.is_variable(node) or self.is_function(node) or self.moving.intersection(inside):
                self.moving.add(node)

    def is_variable(self, node: Expression) -> bool:
        return isinstance(node, Name) and node.name == self.wrt

    def is_function(self, node: Expression) -> bool:
        return isinstance(node, Name) and node.name.rstrip("'") in self.functions

    def derivative(self, part: Expression, *, trivial: bool = True) -> Expression:
        """What is to be differentiated; of a function without a formula its name with a dash."""
        if trivial and self.is_function(part):
            assert isinstance(part, Name)
            return Name(f"{part.name}'")
        if isinstance(part, Apply) and trivial and isinstance(part.primitive, Symbol):
            inside = part.arguments
            if self.is_variable(*inside):
                return Apply(Symbol(f"{part.primitive.name}'"), inside)
        node = Apply(Symbol(f"{PENDING}{self.wrt}"), (part,))
        self.pending.append(node)
        return node

    def rewritten(self, part: Expression) -> _Rewritten:
        """The rule for a part, and its derivative."""
        if part not in self.moving:
            return _Rewritten("constant", Number(0.0))
        if isinstance(part, Apply):
            return _OPERATORS.get(operator_name(part.primitive), _Work.named)(self, part)
        if self.is_variable(part):
            return _Rewritten("identity", Number(1.0))
        return _Rewritten("function", Name(f"{unparse(part)}'"))

    def sum(self, part: Apply) -> _Rewritten:
        """All terms at once."""
        spine: list[Apply] = []
        first: Expression = part
        while isinstance(first, Apply) and first.primitive in ("add", "sub"):
            spine.append(first)
            first = first.arguments[0]
        after = self.derivative(first)
        for node in reversed(spine):
            after = Apply(node.primitive, (after, self.derivative(node.arguments[1])))
        kinds = {node.primitive for node in spine}
        rule = "sum and difference" if len(kinds) > 1 else "sum" if "add" in kinds else "difference"
        return _Rewritten(rule, after)

    def negative(self, part: Apply) -> _Rewritten:
        return _Rewritten("constant multiple", _neg(self.derivative(part.arguments[0])))

    def product(self, part: Apply) -> _Rewritten:
        """Constant factors in front of the rest; of two that depend, the product rule."""
        factors: list[Expression] = []
        first: Expression = part
        while isinstance(first, Apply) and first.primitive == "mul":
            factors.append(first.arguments[1])
            first = first.arguments[0]
        factors = [first, *reversed(factors)]
        constant = [factor for factor in factors if factor not in self.moving]
        if constant:
            rest = _multiplied([factor for factor in factors if factor in self.moving])
            self.moving.add(rest)
            after = _mul(_multiplied(constant), self.derivative(rest))
            return _Rewritten("constant multiple", after)
        left, right = part.arguments
        first = _mul(self.derivative(left), right)
        return _Rewritten("product", _add(first, _mul(left, self.derivative(right))))

    def quotient(self, part: Apply) -> _Rewritten:
        over, under = part.arguments
        if under not in self.moving:
            return _Rewritten("constant multiple", Apply("div", (self.derivative(over), under)))
        square = Apply("pow", (under, Number(2.0)))
        if over not in self.moving:
            after = _neg(_mul(over, self.derivative(under)))
            return _Rewritten("reciprocal", Apply("div", (after, square)))
        first = _mul(self.derivative(over), under)
        after = Apply("sub", (first, _mul(over, self.derivative(under))))
        return _Rewritten("quotient", Apply("div", (after, square)))

    def power(self, part: Apply) -> _Rewritten:
        base, exponent = part.arguments
        logarithm = Apply("log", (base,))
        if exponent in self.moving and base in self.moving:
            first = _mul(self.derivative(exponent), logarithm)
            second = Apply("div", (_mul(exponent, self.derivative(base)), base))
            return _Rewritten("general power", _mul(part, _add(first, second)))
        if base in self.moving:
            rule, outside, inside = "power", _power_rule(base, exponent), base
        else:
            rule, outside, inside = "exponential", _mul(part, logarithm), exponent
            if isinstance(base, Name) and base.name == "e":
                self.notes["e is a name like any other here: write exp(x) for e^x"] = None
        if self.is_variable(inside):
            return _Rewritten(rule, outside)
        return _Rewritten("chain", _mul(outside, self.derivative(inside)), rule)

    def named(self, part: Apply) -> _Rewritten:
        """A function by its partials in the table, or one that has only a name."""
        inside = [a for a in part.arguments if a in self.moving]
        if isinstance(part.primitive, Symbol):
            outside = Apply(Symbol(f"{part.primitive.name}'"), part.arguments)
            return _Rewritten("chain", _mul(outside, self.derivative(inside[0])))
        row = find_primitive(operator_name(part.primitive))
        if not row.analytic and row.edges:
            self.notes[f"{row.spelling}: {row.edges}"] = None
        terms = []
        for partial, argument in _partials(row, part, self.moving):
            chained = not self.is_variable(argument)
            terms.append(_mul(partial, self.derivative(argument)) if chained else partial)
        after = reduce(_add, terms) if terms else Number(0.0)
        law = _law(row, part, self.moving)
        if all(map(self.is_variable, inside)):
            return _Rewritten(row.spelling, after, law=law)
        return _Rewritten("chain", after, row.spelling, law)


class _Rewritten(NamedTuple):
    """What a rule makes of a part; its law unless it is one of :data:`LAWS`."""

    rule: str
    after: Expression
    function: str = ""
    law: str = ""


_OPERATORS: dict[str, Callable[[_Work, Apply], _Rewritten]] = {
    "add": _Work.sum, "sub": _Work.sum, "neg": _Work.negative, "mul": _Work.product,
    "div": _Work.quotient, "pow": _Work.power,
}  # fmt: skip


def _partials(
    row: Primitive, call: Apply, moving: set[Expression]
) -> Iterator[tuple[Expression, Expression]]:
    """The partials of the table that are not 0, by operands that move, and these operands."""
    known = dict(zip(OPERANDS, call.arguments, strict=False)) | {RESULT: call}
    partials = [_TAUGHT[row.name]] if row.name in _TAUGHT else row.partials
    for text, argument in zip(partials, call.arguments, strict=True):
        if argument in moving and text != "0":
            yield substitute(parse_partial(text), known), argument


def _law(row: Primitive, part: Apply, moving: set[Expression]) -> str:
    """What the table says of a function: of operands u, v, w that move and a, b, c that do not."""
    known = ["uvw" if argument in moving else "abc" for argument in part.arguments]
    letters = tuple(Name(alphabet[i]) for i, alphabet in enumerate(known))
    call = Apply(row.name, letters)
    terms = [
        _mul(simplified(partial), Name(f"{unparse(letter)}'"))
        for partial, letter in _partials(row, call, {n for n in letters if n.name in "uvw"})
    ]
    law = reduce(_add, terms) if terms else Number(0.0)
    return f"{unparse(call)}' = {unparse(law)}".replace("1*", "")


def _power_rule(base: Expression, exponent: Expression) -> Expression:
    """``n*x^(n - 1)``; of whole numbers the difference is taken at once."""
    inside: Expression = exponent
    if isinstance(exponent, Apply) and exponent.primitive == "neg":
        inside = exponent.arguments[0]
    lower: Expression = Apply("sub", (exponent, Number(1.0)))
    if isinstance(inside, Number):
        value = Fraction(repr(inside.value)) * (1 if inside is exponent else -1) - 1
        if value == 0:
            return exponent
        if value == 1:
            return _mul(exponent, base)
        lower = Number(float(abs(value)))
        lower = lower if value > 0 else _neg(lower)
    return _mul(exponent, Apply("pow", (base, lower)))


def _neg(tree: Expression) -> Apply:
    return Apply("neg", (tree,))


def _add(left: Expression, right: Expression) -> Expression:
    return Apply("add", (left, right))


def _mul(left: Expression, right: Expression) -> Expression:
    return Apply("mul", (left, right))


def _multiplied(factors: list[Expression]) -> Expression:
    return reduce(_mul, factors)
