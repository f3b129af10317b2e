"""Primitives as sympy sees them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from cgprimer.core.primitives.registry import primitive
from cgprimer.core.primitives.row import OPERANDS, RESULT, Primitive


def symbolic_call(row: Primitive, sympy: Any, arguments: list[Any]) -> Any:
    """The sympy expression of a primitive applied to sympy expressions.

    A row without a sympy form becomes an opaque function whose derivatives are the row's own
    texts: what sympy cannot know (``stop_gradient``, a registered primitive) stays right.
    """
    if row.sympy is not None:
        return row.sympy(sympy, *arguments)
    return opaque_function(row, _call)(*arguments)


def _call(name: str, arguments: list[Any]) -> Any:
    import sympy

    return symbolic_call(primitive(name), sympy, arguments)


@lru_cache(maxsize=256)
def opaque_function(row: Primitive, call: Callable[[str, list[Any]], Any]) -> Any:
    """A sympy function that knows nothing but its derivatives, the row's own texts.

    Args:
        row: the primitive.
        call: makes sympy expressions of the primitives in those texts.
    """
    import sympy

    from cgprimer.core.language.parser import parse_expression
    from cgprimer.core.language.syntax import Name, Number, fold

    def fdiff(self: Any, argindex: int = 1) -> Any:
        known = dict(zip(OPERANDS, self.args, strict=False)) | {RESULT: self}

        def leaf(node: Name | Number) -> Any:
            return known[node.name] if isinstance(node, Name) else sympy.Rational(repr(node.value))

        tree = parse_expression(row.partials[argindex - 1])
        return fold(tree, leaf, call)

    def is_real(self: Any) -> bool:
        return True

    return type(row.name, (sympy.Function,),
                {"fdiff": fdiff, "nargs": row.arity, "_eval_is_real": is_real})  # fmt: skip
