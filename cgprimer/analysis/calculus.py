"""The rules of calculus, applied to syntax trees one by one.

``d/dx(...)`` is an ordinary node of the tree. A rule rewrites the first such node from the left
into a formula with smaller ones, until none are left; the last step simplifies the formula. No
function is recursive: the sum rule differentiates a sum of a hundred thousand terms in one step.
The rule of a function follows from its partials in the table of primitives, except for a few
partials that the table writes in a numerically stable form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import reduce
from typing import NamedTuple

from cgprimer.analysis.derivation import PENDING, Section, Step, count_nodes, replace_nodes
from cgprimer.analysis.simplification import simplify_formula
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

_MAX_SIZE = 200_000  # nodes of a formula
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
}  #: rules of sums, products and powers; the primitive table has the rules of functions
_TEXTBOOK_PARTIALS = {  # for functions whose partials in the table are numerically stable forms
    "tan": "sec(a)^2", "csc": "-csc(a)*cot(a)", "cot": "-csc(a)^2", "csch": "-csch(a)*coth(a)",
    "coth": "-csch(a)^2", "log2": "1/(a*log(2))", "log10": "1/(a*log(10))", "sqrt": "1/(2*sqrt(a))",
    "asin": "1/sqrt(1 - a^2)", "acos": "-1/sqrt(1 - a^2)", "atanh": "1/(1 - a^2)",
    "acoth": "1/(1 - a^2)", "asech": "-1/(a*sqrt(1 - a^2))", "softplus": "sigmoid(a)",
    "asec": "1/(abs(a)*sqrt(a^2 - 1))", "acsc": "-1/(abs(a)*sqrt(a^2 - 1))",
}  # fmt: skip


def check_size(nodes: int) -> None:
    """Raise ExpressionSwellError if a formula has more than 200,000 nodes.

    Raises:
        ExpressionSwellError: the formula is too large.
    """
    if nodes > _MAX_SIZE:
        raise ExpressionSwellError(
            f"the formula would have {format_count(nodes, 10**9)} names, numbers and operations:"
            f" the maximum is {_MAX_SIZE:,}",
            hint="use 'cgprimer grad', or inner='chain' (--inner chain) to differentiate several"
            " expressions separately",
        )


def differentiate_expression(name: str, tree: Expression, wrt: str, functions: set[str]) -> Section:
    """Differentiate one expression rule by rule.

    Args:
        name: the variable that the expression defines; empty for a formula.
        tree: the expression.
        wrt: the variable with respect to which it is differentiated.
        functions: the names that depend on this variable.
    """
    rules = _Rules(tree, wrt, functions)
    start = rules.mark_derivative(tree, trivial=False)
    assert isinstance(start, Apply)
    pending, steps = [start], []
    replacements: dict[Expression, Expression] = {}
    while pending:
        node = pending.pop()
        rules.pending.clear()
        rule, after, function, law = rules.apply_rule(node.arguments[0])
        law = law or LAWS[f"{rule}, {function}" if function else rule]
        steps.append(Step(rule, function, law, node, after))
        replacements[node] = after
        pending += reversed(rules.pending)
    check_size(count_nodes(start, replacements))
    result = replace_nodes(start, replacements)
    simplified = simplify_formula(result)
    if unparse(simplified) != unparse(result):
        steps.append(Step("simplify", "", "", result, simplified))
    return Section(name, tree, start, tuple(steps), simplified, tuple(rules.notes))


class _Rules:
    """The rules of differentiation, as methods that each rewrite one part of an expression.

    Attributes:
        wrt: the variable with respect to which the expression is differentiated.
        functions: the names that depend on this variable.
        pending: the derivatives that the last rule has introduced, from left to right.
        notes: remarks on functions that are not differentiable everywhere.
        dependent: the parts of the expression that depend on the variable.
    """

    def __init__(self, tree: Expression, wrt: str, functions: set[str]) -> None:
        self.wrt, self.functions = wrt, functions
        self.pending: list[Apply] = []
        self.notes: dict[str, None] = {}
        self.dependent: set[Expression] = set()
        for node in postorder(tree):
            arguments = node.arguments if isinstance(node, Apply) else ()
            is_dependent = self.is_variable(node) or self.is_function(node)
            if is_dependent or self.dependent.intersection(arguments):
                self.dependent.add(node)

    def is_variable(self, node: Expression) -> bool:
        """Return whether a node is the variable of differentiation."""
        return isinstance(node, Name) and node.name == self.wrt

    def is_function(self, node: Expression) -> bool:
        """Return whether a node is the name of an expression that depends on the variable."""
        return isinstance(node, Name) and node.name.rstrip("'") in self.functions

    def mark_derivative(self, part: Expression, *, trivial: bool = True) -> Expression:
        """Return the node ``d/dx(part)``, which a later rule replaces by its result.

        The derivative of a function that has only a name is its name with a prime.

        Args:
            part: the part of the expression to differentiate.
            trivial: use names with a prime.
        """
        if trivial and self.is_function(part):
            assert isinstance(part, Name)
            return Name(f"{part.name}'")
        if trivial and isinstance(part, Apply) and isinstance(part.primitive, Symbol):
            (argument,) = part.arguments
            derivative = Apply(Symbol(f"{part.primitive.name}'"), part.arguments)
            if self.is_variable(argument):
                return derivative
        node = Apply(Symbol(f"{PENDING}{self.wrt}"), (part,))
        self.pending.append(node)
        return node

    def apply_rule(self, part: Expression) -> _AppliedRule:
        """Choose the differentiation rule for a part of the expression, and apply it."""
        if part not in self.dependent:
            return _AppliedRule("constant", Number(0.0))
        if isinstance(part, Apply):
            return _OPERATOR_RULES.get(operator_name(part.primitive), _Rules.apply_function_rule)(
                self, part
            )
        if self.is_variable(part):
            return _AppliedRule("identity", Number(1.0))
        return _AppliedRule("function", Name(f"{unparse(part)}'"))

    def apply_sum_rule(self, part: Apply) -> _AppliedRule:
        """Differentiate all terms of a sum or difference in a single step."""
        sums: list[Apply] = []
        first: Expression = part
        while isinstance(first, Apply) and first.primitive in ("add", "sub"):
            sums.append(first)
            first = first.arguments[0]
        after = self.mark_derivative(first)
        for node in reversed(sums):
            after = Apply(node.primitive, (after, self.mark_derivative(node.arguments[1])))
        kinds = {node.primitive for node in sums}
        rule = "sum and difference" if len(kinds) > 1 else "sum" if "add" in kinds else "difference"
        return _AppliedRule(rule, after)

    def apply_negation_rule(self, part: Apply) -> _AppliedRule:
        """Differentiate a negation ``-u`` by the constant multiple rule."""
        return _AppliedRule("constant multiple", _negate(self.mark_derivative(part.arguments[0])))

    def apply_product_rule(self, part: Apply) -> _AppliedRule:
        """Differentiate a product: move constant factors to the front, or use the product rule."""
        factors: list[Expression] = []
        first: Expression = part
        while isinstance(first, Apply) and first.primitive == "mul":
            factors.append(first.arguments[1])
            first = first.arguments[0]
        factors = [first, *reversed(factors)]
        constant = [factor for factor in factors if factor not in self.dependent]
        if constant:
            rest = _multiply_all([factor for factor in factors if factor in self.dependent])
            self.dependent.add(rest)
            after = _multiply(_multiply_all(constant), self.mark_derivative(rest))
            return _AppliedRule("constant multiple", after)
        left, right = part.arguments
        first = _multiply(self.mark_derivative(left), right)
        return _AppliedRule("product", _add(first, _multiply(left, self.mark_derivative(right))))

    def apply_quotient_rule(self, part: Apply) -> _AppliedRule:
        """Differentiate a quotient, by a shorter rule if one of its operands is constant."""
        numerator, denominator = part.arguments
        if denominator not in self.dependent:
            return _AppliedRule(
                "constant multiple", Apply("div", (self.mark_derivative(numerator), denominator))
            )
        square = Apply("pow", (denominator, Number(2.0)))
        if numerator not in self.dependent:
            after = _negate(_multiply(numerator, self.mark_derivative(denominator)))
            return _AppliedRule("reciprocal", Apply("div", (after, square)))
        first = _multiply(self.mark_derivative(numerator), denominator)
        after = Apply("sub", (first, _multiply(numerator, self.mark_derivative(denominator))))
        return _AppliedRule("quotient", Apply("div", (after, square)))

    def apply_power_rule(self, part: Apply) -> _AppliedRule:
        """Differentiate a power whose base or exponent, or both, depend on the variable."""
        base, exponent = part.arguments
        logarithm = Apply("log", (base,))
        if exponent in self.dependent and base in self.dependent:
            first = _multiply(self.mark_derivative(exponent), logarithm)
            second = Apply("div", (_multiply(exponent, self.mark_derivative(base)), base))
            return _AppliedRule("general power", _multiply(part, _add(first, second)))
        if base in self.dependent:
            rule, outer, inner = "power", _differentiate_power(base, exponent), base
        else:
            rule, outer, inner = "exponential", _multiply(part, logarithm), exponent
            if isinstance(base, Name) and base.name == "e":
                self.notes["e is an ordinary name: write exp(x) for e^x"] = None
        if self.is_variable(inner):
            return _AppliedRule(rule, outer)
        return _AppliedRule("chain", _multiply(outer, self.mark_derivative(inner)), rule)

    def apply_function_rule(self, part: Apply) -> _AppliedRule:
        """Differentiate a function call by the chain rule and the primitive's partials."""
        inner = [a for a in part.arguments if a in self.dependent]
        if isinstance(part.primitive, Symbol):
            outer = Apply(Symbol(f"{part.primitive.name}'"), part.arguments)
            return _AppliedRule("chain", _multiply(outer, self.mark_derivative(inner[0])))
        row = find_primitive(operator_name(part.primitive))
        if not row.analytic and row.edges:
            self.notes[f"{row.spelling}: {row.edges}"] = None
        terms = []
        for partial, argument in _iterate_partials(row, part, self.dependent):
            is_variable = self.is_variable(argument)
            terms.append(
                partial if is_variable else _multiply(partial, self.mark_derivative(argument))
            )
        after = reduce(_add, terms) if terms else Number(0.0)
        law = _format_rule(row, part, self.dependent)
        if all(map(self.is_variable, inner)):
            return _AppliedRule(row.spelling, after, law=law)
        return _AppliedRule("chain", after, row.spelling, law)


class _AppliedRule(NamedTuple):
    """The result of applying one differentiation rule to one part of an expression.

    Attributes:
        rule: the name of the rule.
        after: the derivative of the part.
        function: the outer function of the chain rule.
        law: the rule as an equation, unless :data:`LAWS` has it.
    """

    rule: str
    after: Expression
    function: str = ""
    law: str = ""


_OPERATOR_RULES: dict[str, Callable[[_Rules, Apply], _AppliedRule]] = {
    "add": _Rules.apply_sum_rule,
    "sub": _Rules.apply_sum_rule,
    "neg": _Rules.apply_negation_rule,
    "mul": _Rules.apply_product_rule,
    "div": _Rules.apply_quotient_rule,
    "pow": _Rules.apply_power_rule,
}


def _iterate_partials(
    row: Primitive, call: Apply, dependent: set[Expression]
) -> Iterator[tuple[Expression, Expression]]:
    """Yield each nonzero partial derivative of a function call, with its operand.

    Args:
        row: the row of the primitive table.
        call: the call of the function.
        dependent: the operands that depend on the variable.
    """
    values = dict(zip(OPERANDS, call.arguments, strict=False)) | {RESULT: call}
    is_textbook = row.name in _TEXTBOOK_PARTIALS
    partials = [_TEXTBOOK_PARTIALS[row.name]] if is_textbook else row.partials
    for text, argument in zip(partials, call.arguments, strict=True):
        if argument in dependent and text != "0":
            yield substitute(parse_partial(text), values), argument


def _format_rule(row: Primitive, part: Apply, dependent: set[Expression]) -> str:
    """Return the derivative rule of a function as an equation, such as ``sin(u)' = cos(u)*u'``."""
    alphabets = ["uvw" if argument in dependent else "abc" for argument in part.arguments]
    letters = tuple(Name(alphabet[i]) for i, alphabet in enumerate(alphabets))
    call = Apply(row.name, letters)
    terms = [
        _multiply(simplify_formula(partial), Name(f"{unparse(letter)}'"))
        for partial, letter in _iterate_partials(row, call, {n for n in letters if n.name in "uvw"})
    ]
    law = reduce(_add, terms) if terms else Number(0.0)
    return f"{unparse(call)}' = {unparse(law)}".replace("1*", "")


def _differentiate_power(base: Expression, exponent: Expression) -> Expression:
    """Return the derivative ``n*x^(n - 1)`` of a power; a numeric ``n - 1`` is evaluated."""
    magnitude: Expression = exponent
    if isinstance(exponent, Apply) and exponent.primitive == "neg":
        magnitude = exponent.arguments[0]
    lower: Expression = Apply("sub", (exponent, Number(1.0)))
    if isinstance(magnitude, Number):
        value = Fraction(repr(magnitude.value)) * (1 if magnitude is exponent else -1) - 1
        if value == 0:
            return exponent
        if value == 1:
            return _multiply(exponent, base)
        lower = Number(float(abs(value)))
        lower = lower if value > 0 else _negate(lower)
    return _multiply(exponent, Apply("pow", (base, lower)))


def _negate(tree: Expression) -> Apply:
    """Build the expression tree ``-tree``."""
    return Apply("neg", (tree,))


def _add(left: Expression, right: Expression) -> Expression:
    """Build the expression tree ``left + right``."""
    return Apply("add", (left, right))


def _multiply(left: Expression, right: Expression) -> Expression:
    """Build the expression tree ``left * right``."""
    return Apply("mul", (left, right))


def _multiply_all(factors: list[Expression]) -> Expression:
    """Build the expression tree for the product of all factors."""
    return reduce(_multiply, factors)
