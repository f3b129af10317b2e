"""First derivatives: gradient and Jacobian."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cgprimer.core.derivatives.evaluation import chosen_output, derivatives_at
from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.methods.contract import Names
from cgprimer.numbers_and_arrays import Value


def gradient(
    graph: ExpressionGraph,
    at: Mapping[str, Value] | None = None,
    *,
    of: str | None = None,
    wrt: Names | None = None,
    method: str = "reverse",
    engine: str = "auto",
    **options: Any,
) -> dict[str, Value]:
    """The gradient of a variable.

    Args:
        graph: the graph.
        at: values of inputs and parameters, numbers or arrays; declared values fill the rest.
        of: the variable to differentiate; the only output unless given.
        wrt: parameters, inputs or inner variables; all parameters unless given. The derivative
            with respect to an inner variable treats it as if it could be moved by itself.
        method: one of :func:`cgprimer.methods`.
        engine: one of :func:`cgprimer.engines`, or ``auto``.
        options: of the method, see :func:`cgprimer.differentiate`.

    Returns:
        For each name a float, or an array of the samples' shape. Unit: that of ``of`` divided by
        that of the name.

    Raises:
        UsageError: an unknown name, method, engine or option.
        MissingValueError: a name that the output needs has no value.
        DifferentiationError: the method cannot do it.

    >>> from cgprimer.core.graph import parse
    >>> graph = parse("xx=xa^2; xy=ab*xx+ac*xa; xz=bc*xx+xy; xw=cd*xx+xz^3")
    >>> at = {"xa": 0.5, "ab": 1, "bc": 2, "cd": 3, "ac": 4}
    >>> gradient(graph, at)
    {'ab': 5.671875, 'ac': 11.34375, 'bc': 5.671875, 'cd': 0.25}
    >>> gradient(graph, at, wrt="xa", method="forward")
    {'xa': 161.8125}
    """
    target = chosen_output(graph, of)
    found = derivatives_at(graph, at, of=target, wrt=wrt, method=method, engine=engine, **options)
    return {name: value for (_, name), value in found.derivatives.items()}


def jacobian(
    graph: ExpressionGraph,
    at: Mapping[str, Value] | None = None,
    *,
    of: Names | None = None,
    wrt: Names | None = None,
    method: str = "reverse",
    engine: str = "auto",
    **options: Any,
) -> dict[str, dict[str, Value]]:
    """The derivatives of several variables: ``jacobian(graph, at)["xw"]["ab"]``.

    ``of`` is all outputs unless given; everything else is as in :func:`gradient`.

    >>> from cgprimer.core.graph import parse
    >>> jacobian(parse("xb = p*xa; xc = p^2"), {"p": 3, "xa": 2})
    {'xb': {'p': 2.0}, 'xc': {'p': 6.0}}
    """
    found = derivatives_at(graph, at, of=of, wrt=wrt, method=method, engine=engine, **options)
    rows: dict[str, dict[str, Value]] = {name: {} for name in found.values}
    for (target, name), value in found.derivatives.items():
        rows[target][name] = value
    return rows
