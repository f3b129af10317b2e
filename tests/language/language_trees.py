"""Strategies for expression trees, and a comparable form of trees."""

from __future__ import annotations

import ast

from hypothesis import strategies as st

from cgprimer.core.language.syntax_tree import Apply, Expression, Name, Number, postorder
from cgprimer.core.operations import primitives

# Names with common prefixes, keywords of the language, and names that are not ASCII.
_NAMES = "x xx xa xab xabc a ab e pi e1 _ out sin input output parameter θ größe x_1 X"
NAMES = tuple(_NAMES.split())
CALLABLE = [row for row in primitives() if row.spelling]
INFIX = ("add", "sub", "mul", "div", "pow")
_PYTHON = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow"}

Shape = list[tuple[str, object]]


def shape(tree: Expression) -> Shape:
    """Return a tree as a list in postorder with arities, which is equal only for equal trees."""
    result: Shape = []
    for node in postorder(tree):
        if isinstance(node, Apply):
            result.append((node.primitive, len(node.arguments)))
        elif isinstance(node, Number):
            result.append(("number", float(node.value).hex()))
        else:
            result.append(("name", node.name))
    return result


def python_shape(text: str) -> Shape:
    """Return the shape of a small arithmetic expression as Python parses it."""

    def visit(node: ast.expr) -> Shape:
        match node:
            case ast.BinOp():
                return [*visit(node.left), *visit(node.right), (_PYTHON[type(node.op)], 2)]
            case ast.UnaryOp():
                return visit(node.operand) + [("neg", 1)] * isinstance(node.op, ast.USub)
            case ast.Constant(value=int() | float() as value):
                return [("number", float(value).hex())]
            case ast.Name():
                return [("name", node.id)]
        raise TypeError(node)

    return visit(ast.parse(text, mode="eval").body)


def _extend(children: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    def applications(name: str, arity: int) -> st.SearchStrategy[Expression]:
        return st.tuples(*[children] * arity).map(lambda arguments: Apply(name, arguments))

    calls = st.sampled_from(CALLABLE).flatmap(lambda row: applications(row.name, row.arity))
    operators = st.sampled_from(INFIX).flatmap(lambda name: applications(name, 2))
    return operators | applications("neg", 1) | calls


def trees() -> st.SearchStrategy[Expression]:
    """Generate trees as the parser builds them: a sign is a ``neg``, never part of a number."""
    numbers = st.floats(min_value=0.0, allow_nan=False, allow_infinity=False).map(Number)
    names = st.sampled_from(NAMES).map(Name)
    return st.recursive(numbers | names, _extend, max_leaves=20)
