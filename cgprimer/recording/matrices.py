"""Jacobians and Hessians, of graphs and of Python functions: one name for both."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from cgprimer.core import derivatives
from cgprimer.core.graph import ExpressionGraph
from cgprimer.errors import UsageError
from cgprimer.wrong_kinds import explained

_explained = cache(explained)


def jacobian(graph: ExpressionGraph | Callable[..., Any], *args: Any, **options: Any) -> Any:
    """All first derivatives, of the outputs of a graph or of what a function returns.

    Args:
        graph: a graph, with arguments as for :func:`cgprimer.core.derivatives.jacobian`; or a
            function of numbers and arrays, with the number of the argument to differentiate by
            (0 unless given), or several numbers.

    Returns:
        Of a graph ``{"xw": {"ab": ...}}``. Of a function another one, whose result has the shape
        of the function's result followed by that of the argument.

    Raises:
        UsageError: it is neither a graph nor a function.

    >>> import cgprimer
    >>> cgprimer.jacobian(cgprimer.parse("xb = p*xa; xc = p^2"), {"p": 3, "xa": 2})
    {'xb': {'p': 2.0}, 'xc': {'p': 6.0}}
    >>> import numpy as np
    >>> cgprimer.jacobian(lambda x: x*x)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    if isinstance(graph, ExpressionGraph) or not callable(graph):
        return _explained(derivatives.jacobian)(graph, *args, **options)
    from cgprimer.recording.transforms import jacobian_of  # loads numpy

    return _transformed(jacobian_of, graph, args, options)


def hessian(graph: ExpressionGraph | Callable[..., Any], *args: Any, **options: Any) -> Any:
    """All second derivatives, of an output of a graph or of a function that returns a number.

    Args:
        graph: as for :func:`jacobian`; of a graph, see
            :func:`cgprimer.core.second_derivatives.hessian`.

    >>> import cgprimer
    >>> cgprimer.hessian(cgprimer.parse("xw = xa^3*k"), {"xa": 2, "k": 5}, wrt="xa")
    {'xa': {'xa': 60.0}}
    >>> cgprimer.hessian(lambda x: x**3)(2.0)
    12.0
    """
    if isinstance(graph, ExpressionGraph) or not callable(graph):
        from cgprimer.core import second_derivatives

        return _explained(second_derivatives.hessian)(graph, *args, **options)
    from cgprimer.recording.transforms import hessian_of

    return _transformed(hessian_of, graph, args, options)


def _transformed(transform: Any, function: Any, args: Any, options: Any) -> Any:
    try:
        return transform(function, *args, **options)
    except TypeError:
        given = ", ".join(map(repr, [*args, *options]))
        what = f"of a function, the one option is the number of the argument, not {given}"
        hint = "jacobian(f, argument=0)(x) is the derivative at x"
        raise UsageError(what, hint=hint) from None
