"""Primitives as sympy sees them."""

from __future__ import annotations

from typing import Any

from cgprimer.primitives.registry import primitive
from cgprimer.primitives.row import OPERANDS, RESULT, Primitive


def symbolic_call(row: Primitive, sympy: Any, arguments: list[Any]) -> Any:
    """The sympy expression of a primitive applied to sympy expressions.

    A row without a sympy form becomes an opaque function whose derivatives are the row's own
    texts: what sympy cannot know (``stop_gradient``, a registered primitive) stays right.
    """
    if row.sympy is not None:
        return row.sympy(sympy, *arguments)
    return _opaque_function(row)(*arguments)


def _opaque_function(row: Primitive) -> Any:
    import sympy

    from cgprimer.language.parser import parse_expression
    from cgprimer.language.syntax import Name, Number, fold

    def fdiff(self: Any, argindex: int = 1) -> Any:
        known = dict(zip(OPERANDS, self.args, strict=False)) | {RESULT: self}

        def leaf(node: Name | Number) -> Any:
            return known[node.name] if isinstance(node, Name) else sympy.Rational(repr(node.value))

        tree = parse_expression(row.partials[argindex - 1])
        return fold(tree, leaf, lambda name, args: symbolic_call(primitive(name), sympy, args))

    def is_real(self: Any) -> bool:
        return True

    return type(row.name, (sympy.Function,),
                {"fdiff": fdiff, "nargs": row.arity, "_eval_is_real": is_real})  # fmt: skip
