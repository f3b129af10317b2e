"""Primitives as sympy expressions, and on mpmath numbers of any precision.

One form serves both libraries: they have most names in common.
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

Form = Callable[..., Any]  # takes the module (sympy) and the operands

# Functions that sympy calls like the row, and those that it calls by another name.
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


def form(row: Primitive) -> Form | None:
    """Return the sympy form of a row; None where there is none (``stop_gradient``)."""
    return FORMS.get(row.name) if row.built_in else row.sympy


def exact_number(value: float) -> Any:
    """Return a float as the sympy rational of its shortest decimal form: 1/10 for 0.1."""
    import sympy

    return sympy.Rational(repr(value))


def symbolic(expression: Expression) -> Any:
    """Return the sympy expression of a tree, in real symbols."""
    import sympy

    def leaf(node: Name | Number) -> Any:
        if isinstance(node, Name):
            return sympy.Symbol(node.name, real=True)
        return exact_number(node.value)

    return fold(expression, leaf, symbolic_call)


def symbolic_call(name: str, arguments: list[Any]) -> Any:
    """Return the sympy expression of a primitive applied to sympy expressions.

    A row without a sympy form becomes an opaque function whose derivatives are the row's own
    texts: what sympy cannot know stays right.
    """
    import sympy

    row = find_primitive(name)
    sympy_form = form(row)
    if sympy_form is None:
        return opaque_function(row, symbolic_call)(*arguments)
    return sympy_form(sympy, *arguments)


def sympy_function(applied: Applied) -> Callable[..., Any]:
    """Return the function that computes an operation on arrays of sympy expressions.

    Raises:
        UsageError: the operation calls a Python function, which has no formula.
    """
    import numpy as np

    if isinstance(applied, str):
        name = applied
        apply = np.frompyfunc(
            lambda *operands: symbolic_call(name, list(operands)), find_primitive(name).arity, 1
        )
        return lambda *operands: np.asarray(apply(*operands))
    if applied.runs_python:
        raise UsageError(f"{applied.spelling!r} is a Python function and has no formula")
    from cgprimer.core.operations.shape_operations import Maximum

    if isinstance(applied, Maximum):
        return partial(_symbolic_maximum, axes=applied.axes)
    return lambda *operands: np.asarray(applied.run(*operands))


def _symbolic_maximum(values: Any, axes: Sequence[int]) -> Any:
    """Return the maximum of an array of sympy expressions over negative axes, first to last."""
    import numpy as np
    import sympy

    for axis in axes:  # removing an axis does not change the negative numbers of later ones
        values = np.frompyfunc(sympy.Max, 2, 1).reduce(values, axis=axis)
    return np.asarray(values)


@lru_cache(maxsize=256)
def opaque_function(row: Primitive, call: Callable[[str, list[Any]], Any]) -> Any:
    """Return a sympy function defined by its derivatives alone, the texts of the row.

    ``call`` makes sympy expressions of the primitives in those texts.
    """
    import sympy

    def fdiff(self: Any, argindex: int = 1) -> Any:
        values = dict(zip(OPERANDS, self.args, strict=False)) | {RESULT: self}

        def leaf(node: Name | Number) -> Any:
            return values[node.name] if isinstance(node, Name) else exact_number(node.value)

        return fold(parse_partial(row.partials[argindex - 1]), leaf, call)

    attributes = {"fdiff": fdiff, "nargs": row.arity, "_eval_is_real": lambda self: True}
    return type(row.name, (sympy.Function,), attributes)


@cache
def _mpmath() -> SimpleNamespace:
    """Return mpmath under the names that sympy's forms use."""
    import mpmath

    return SimpleNamespace(
        **vars(mpmath), Abs=abs, Max=max, Min=min, Pow=mpmath.power, Eq=operator.eq, Ne=operator.ne,
        Heaviside=lambda a: 0.5 if a == 0 else float(a > 0),
        Piecewise=lambda *pairs: next(value for value, condition in pairs if condition),
    )  # fmt: skip


@cache
def mpmath_function(name: str) -> Callable[..., Any]:
    """Return a primitive on mpmath's numbers: nan outside of its real domain, and at poles.

    Raises:
        UsageError: it has no form in mpmath, as ``stop_gradient`` and most rows from outside.

    >>> import mpmath
    >>> with mpmath.workdps(20):
    ...     print(mpmath_function("exp")(mpmath.mpf(1)), mpmath_function("log")(mpmath.mpf(-1)))
    2.7182818284590452354 nan
    """
    sympy_form = form(find_primitive(name))
    if sympy_form is None:
        raise UsageError(f"{name!r} cannot be computed with more digits than a double")
    library = _mpmath()

    def evaluate(*operands: Any) -> Any:
        try:
            value = sympy_form(library, *operands)
        except (ZeroDivisionError, ValueError, OverflowError):
            return library.nan
        return library.nan if isinstance(value, library.mpc) else value

    return evaluate
