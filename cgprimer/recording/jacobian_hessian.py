"""``jacobian`` and ``hessian`` of graphs and of Python functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cgprimer.core import derivatives
from cgprimer.core.graph import ExpressionGraph
from cgprimer.errors import UsageError


def jacobian(graph: ExpressionGraph | Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Compute all first derivatives of the outputs of a graph, or of a function's result.

    Args:
        graph: a graph, with arguments as for :func:`cgprimer.core.derivatives.jacobian`; or a
            function of numbers and arrays, with the index of the argument to differentiate with
            respect to (0 by default), or a tuple of several.

    Returns:
        For a graph, a dictionary such as ``{"xw": {"ab": ...}}``. For a function, a function that
        computes an array with the shape of the result followed by the shape of the argument.

    Raises:
        UsageError: ``graph`` is neither a graph nor a function.

    >>> import cgprimer
    >>> cgprimer.jacobian(cgprimer.parse("xb = p*xa; xc = p^2"), {"p": 3, "xa": 2})
    {'xb': {'p': 2.0}, 'xc': {'p': 6.0}}
    >>> import numpy as np
    >>> cgprimer.jacobian(lambda x: x*x)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    if isinstance(graph, ExpressionGraph) or not callable(graph):
        return derivatives.jacobian(graph, *args, **options)
    from cgprimer.recording.transforms import create_jacobian  # loads numpy

    return _call_transform(create_jacobian, graph, args, options)


def hessian(graph: ExpressionGraph | Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Compute all second derivatives of an output of a graph, or of a scalar-valued function.

    Args:
        graph: as for :func:`jacobian`; for a graph, the arguments are those of
            :func:`cgprimer.core.second_derivatives.hessian`.

    >>> import cgprimer
    >>> cgprimer.hessian(cgprimer.parse("xw = xa^3*k"), {"xa": 2, "k": 5}, wrt="xa")
    {'xa': {'xa': 60.0}}
    >>> cgprimer.hessian(lambda x: x**3)(2.0)
    12.0
    """
    if isinstance(graph, ExpressionGraph) or not callable(graph):
        from cgprimer.core import second_derivatives

        return second_derivatives.hessian(graph, *args, **options)
    from cgprimer.recording.transforms import create_hessian

    return _call_transform(create_hessian, graph, args, options)


def _call_transform(transform: Any, function: Any, args: Any, options: Any) -> Any:
    """Call a transform of a function; raise UsageError for arguments that apply to graphs only."""
    try:
        return transform(function, *args, **options)
    except TypeError:
        arguments = ", ".join(map(repr, [*args, *options]))
        raise UsageError(
            f"jacobian(f) and hessian(f) accept only the option `argument`, got {arguments}",
            hint="call the returned function with the point: jacobian(f, argument=0)(x)",
        ) from None
