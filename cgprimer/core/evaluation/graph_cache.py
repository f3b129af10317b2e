"""A cache for results of graphs: tapes, prepared instructions, derivative programs, runners.

A result lives as long as its graph. Registering or removing a function of the language makes all
earlier results invalid.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from cgprimer.core.operations.primitive_registry import FUNCTIONS
from cgprimer.core.tape.lowering import LowerableGraph, lower
from cgprimer.core.tape.tape import Tape

Result = TypeVar("Result")
_MAX_RESULTS = 64  # of one graph
_RESULTS: WeakKeyDictionary[Any, dict[Hashable, Any]] = WeakKeyDictionary()


def compute_once(graph: LowerableGraph, key: Hashable, compute: Callable[[], Result]) -> Result:
    """Return the cached result for a graph and a key; compute it on the first request."""
    results, key = _RESULTS.setdefault(graph, {}), (FUNCTIONS.generation, key)
    if key not in results:
        results[key] = compute()
        if len(results) > _MAX_RESULTS:
            del results[next(iter(results))]  # the oldest
    result: Result = results[key]
    return result


def lower_once(graph: LowerableGraph, mode: str = "") -> Tape:
    """Return the cached tape of a graph; lower the graph on the first request.

    Args:
        graph: the graph.
        mode: how layers are expanded: see :mod:`cgprimer.core.operations.layer_expansions`.
    """
    return compute_once(graph, ("tape", mode), lambda: lower(graph, mode))
