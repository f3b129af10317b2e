"""Primitives as sympy expressions, and on mpmath numbers of any precision.

Each primitive has one form for both libraries, because most of their functions have equal names.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from types import SimpleNamespace
from typing import Any

from cgprimer.core.language.syntax_tree import Expression, Name, Number, fold
from cgprimer.core.operations.primitive_registry import (
    OPERANDS,
    RESULT,
    Applied,
    Primitive,
    find_primitive,
    parse_partial,
)
from cgprimer.errors import UsageError

Form = Callable[..., Any]  # arguments: the module sympy (or a substitute), and the operands

# Functions with the same name in sympy, and functions with another name.
_SAME = """
    exp log sqrt sin cos tan sec csc cot asin acos atan asec acsc acot sinh cosh tanh sech csch coth
    asinh acosh atanh asech acsch acoth erf erfc sign
"""
_OTHER = {"heaviside": "Heaviside", "step": "Heaviside", "max": "Max", "min": "Min", "abs": "Abs"}
_NAMES = {name: name for name in _SAME.split()} | _OTHER
FORMS: dict[str, Form] = {
    row: lambda s, *operands, name=name: getattr(s, name)(*operands) for row, name in _NAMES.items()
} | {
    "add": lambda s, a, b: a + b, "sub": lambda s, a, b: a - b,
    "mul": lambda s, a, b: a * b, "div": lambda s, a, b: a / b,
    "neg": lambda s, a: -a, "copy": lambda s, a: a, "pow": lambda s, a, b: s.Pow(a, b),
    "expm1": lambda s, a: s.exp(a) - 1, "log1p": lambda s, a: s.log(1 + a),
    "log_base": lambda s, a, b: s.log(a) / s.log(b),
    "log2": lambda s, a: s.log(a) / s.log(2), "log10": lambda s, a: s.log(a) / s.log(10),
    "logaddexp": lambda s, a, b: s.log(s.exp(a) + s.exp(b)),
    "xlogy": lambda s, a, b: s.Piecewise((0, s.Eq(a, 0) & s.Eq(b, 0)), (a * s.log(b), True)),
    "sigmoid": lambda s, a: 1 / (1 + s.exp(-a)), "softplus": lambda s, a: s.log(1 + s.exp(a)),
    "relu": lambda s, a: s.Piecewise((a, a > 0), (0, True)),
    "leaky_relu": lambda s, a, b: s.Piecewise((a * b, a < 0), (a, True)),
    "gelu": lambda s, a: a * s.erfc(-a / s.sqrt(2)) / 2,
    "clamp": lambda s, a, b, c: s.Piecewise((c, (a > c) | (b > c)), (b, a < b), (a, True)),
    "where": lambda s, a, b, c: s.Piecewise((b, s.Ne(a, 0)), (c, True)),
    "less": lambda s, a, b: s.Piecewise((1, a < b), (0, True)),
    "equal": lambda s, a, b: s.Piecewise((1, s.Eq(a, b)), (0, True)),
}  # fmt: skip


def get_sympy_form(row: Primitive) -> Form | None:
    """Return the sympy form of a primitive; None if it has no form (``stop_gradient``)."""
    return FORMS.get(row.name) if row.built_in else row.sympy


def convert_to_rational(value: float) -> Any:
    """Convert a float to the sympy rational of its shortest decimal form: 0.1 to 1/10."""
    import sympy

    return sympy.Rational(repr(value))


def build_sympy_expression(expression: Expression) -> Any:
    """Convert a syntax tree to a sympy expression with a real symbol for each name."""
    import sympy

    def convert_leaf(node: Name | Number) -> Any:
        """Convert a name to a real symbol, and a literal to a rational."""
        if isinstance(node, Name):
            return sympy.Symbol(node.name, real=True)
        return convert_to_rational(node.value)

    return fold(expression, convert_leaf, apply_to_sympy)


def apply_to_sympy(name: str, arguments: list[Any]) -> Any:
    """Apply a primitive to sympy expressions.

    A primitive without a sympy form becomes an opaque function, whose derivatives are the partials
    in the primitive's row.
    """
    import sympy

    row = find_primitive(name)
    sympy_form = get_sympy_form(row)
    if sympy_form is None:
        return create_opaque_function(row, apply_to_sympy)(*arguments)
    return sympy_form(sympy, *arguments)


def sympy_function(operation: Applied) -> Callable[..., Any]:
    """Return the function that computes an operation on arrays of sympy expressions.

    Raises:
        UsageError: the operation calls a Python function.
    """
    import numpy as np

    if isinstance(operation, str):
        name = operation
        apply = np.frompyfunc(
            lambda *operands: apply_to_sympy(name, list(operands)), find_primitive(name).arity, 1
        )
        return lambda *operands: np.asarray(apply(*operands))
    if operation.runs_python:
        raise UsageError(
            f"{operation.spelling!r} is a Python function and cannot be converted to sympy"
        )
    from cgprimer.core.operations.shape_operations import Maximum

    if isinstance(operation, Maximum):
        return partial(_reduce_to_maximum, axes=operation.axes)
    return lambda *operands: np.asarray(operation.run(*operands))


def _reduce_to_maximum(values: Any, axes: Sequence[int]) -> Any:
    """Return the maximum of sympy expressions along axes (negative, in ascending order)."""
    import numpy as np
    import sympy

    for axis in axes:  # negative axes after a removed axis keep their meaning
        values = np.frompyfunc(sympy.Max, 2, 1).reduce(values, axis=axis)
    return np.asarray(values)


@lru_cache(maxsize=256)
def create_opaque_function(row: Primitive, call: Callable[[str, list[Any]], Any]) -> Any:
    """Create a sympy function that is defined only by its derivatives.

    Args:
        row: the primitive, with the text of its partial derivatives.
        call: applies a primitive in these texts to sympy expressions.
    """
    import sympy

    def fdiff(self: Any, argindex: int = 1) -> Any:
        """Return the partial derivative with respect to one argument, counted from 1."""
        values = dict(zip(OPERANDS, self.args, strict=False)) | {RESULT: self}

        def substitute_leaf(node: Name | Number) -> Any:
            """Return the argument for a name, or the rational for a literal."""
            return values[node.name] if isinstance(node, Name) else convert_to_rational(node.value)

        return fold(parse_partial(row.partials[argindex - 1]), substitute_leaf, call)

    attributes = {"fdiff": fdiff, "nargs": row.arity, "_eval_is_real": lambda self: True}
    return type(row.name, (sympy.Function,), attributes)


@cache
def _adapt_mpmath() -> SimpleNamespace:
    """Return mpmath's functions under the names that sympy uses."""
    import mpmath

    return SimpleNamespace(
        **vars(mpmath), Abs=abs, Max=max, Min=min, Pow=mpmath.power, Eq=operator.eq, Ne=operator.ne,
        Heaviside=lambda a: 0.5 if a == 0 else float(a > 0),
        Piecewise=lambda *pairs: next(value for value, condition in pairs if condition),
    )  # fmt: skip


@cache
def mpmath_function(name: str) -> Callable[..., Any]:
    """Return the function that computes a primitive on mpmath numbers.

    The function returns nan outside the real domain of the primitive, and at poles.

    Raises:
        UsageError: the primitive has no sympy form, such as ``stop_gradient``.

    >>> import mpmath
    >>> with mpmath.workdps(20):
    ...     print(mpmath_function("exp")(mpmath.mpf(1)), mpmath_function("log")(mpmath.mpf(-1)))
    2.7182818284590452354 nan
    """
    sympy_form = get_sympy_form(find_primitive(name))
    if sympy_form is None:
        raise UsageError(
            f"{name!r} has no sympy form, so it cannot be computed beyond double precision"
        )
    library = _adapt_mpmath()

    def evaluate(*operands: Any) -> Any:
        """Evaluate the primitive; return nan for errors and complex results."""
        try:
            value = sympy_form(library, *operands)
        except (ZeroDivisionError, ValueError, OverflowError):
            return library.nan
        return library.nan if isinstance(value, library.mpc) else value

    return evaluate
