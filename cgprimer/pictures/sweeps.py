"""The numbers of a picture: values, local partials, one forward and one backward sweep.

The sweeps walk the edges of the picture itself, with the local partials that stand on them, so
that what a class sees is what was computed: upstream times local is downstream.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cgprimer.core.derivatives.evaluation import point_values
from cgprimer.core.derivatives.evaluation import tape as tape_of
from cgprimer.core.engines import select
from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.methods.edges import edge_partials
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.verifier import checked


@dataclass(frozen=True, slots=True)
class LocalNumbers:
    """What can be said at each vertex without looking further.

    Attributes:
        order: the vertices' keys, operands before what is computed from them.
        values: of every vertex.
        partials: ``(tail, head)`` to the local partial derivative of head with respect to tail.
            An edge on which the partial is zero everywhere (as under ``sign``) has none.
    """

    order: tuple[str, ...]
    values: Mapping[str, float]
    partials: Mapping[tuple[str, str], float]

    def heads(self) -> dict[str, list[str]]:
        """For each vertex those that it leads to with a partial, in order."""
        found: dict[str, list[str]] = {}
        rank = {key: number for number, key in enumerate(self.order)}
        for tail, head in sorted(self.partials, key=lambda e: (rank[e[0]], rank[e[1]])):
            found.setdefault(tail, []).append(head)
        return found


def local_numbers(
    graph: ExpressionGraph, at: Mapping[str, float] | None = None, *, level: str = "variables"
) -> LocalNumbers:
    """Values and partials at a point; keys are names, or the tape's numbers for ``operations``.

    Raises `MissingValueError` where a value is missing.

    >>> from cgprimer.core.graph import parse
    >>> found = local_numbers(parse("input xa = 3; xb = 2*xa; xw = xb^2"))
    >>> found.partials
    {('xa', 'xb'): 2.0, ('xb', 'xw'): 12.0}
    """
    point = point_values(graph, at)
    primal = tape_of(graph)
    builder = Builder()
    value = builder.extend(primal)
    every = set(range(primal.size)) if level == "operations" else None
    edges = edge_partials(builder, primal, value, [True] * primal.size, extra=every)
    vertices = sorted(every if every is not None else primal.labels)
    key = {i: str(i) if every is not None else primal.labels[i] for i in vertices}
    outputs = {f"value.{i}": value[i] for i in vertices}
    outputs |= {f"{tail}/{head}": index for (tail, head), index in edges.items()}
    execute = select("numpy").compile(
        checked(builder.finish(outputs)), reduction="none", dtype="float64"
    )
    columns = {name: np.array([point[name]]) for name in graph.inputs}
    found = execute(columns, {name: point[name] for name in graph.parameters}, 1)
    return LocalNumbers(
        tuple(key[i] for i in vertices),
        {key[i]: float(found[f"value.{i}"][0]) for i in vertices},
        {(key[t], key[h]): float(found[f"{t}/{h}"][0]) for t, h in edges},
    )


def tangents(numbers: LocalNumbers, seed: str) -> dict[str, float]:
    """The forward sweep: derivatives with respect to the seed, where the sweep comes.

    >>> tangents(LocalNumbers(("a", "b", "c"), {}, {("a", "b"): 2.0}), "a")
    {'a': 1.0, 'b': 2.0}
    """
    heads = numbers.heads()
    found = {seed: 1.0}
    for tail in numbers.order:
        if tail in found:
            for head in heads.get(tail, ()):
                if head != seed:
                    share = found[tail] * numbers.partials[tail, head]
                    found[head] = found[head] + share if head in found else share
    return found


def adjoints(numbers: LocalNumbers, of: str) -> dict[str, float]:
    """The backward sweep: derivatives of a vertex, where the sweep comes.

    >>> adjoints(LocalNumbers(("a", "b", "c"), {}, {("a", "b"): 2.0}), "b")
    {'b': 1.0, 'a': 2.0}
    """
    found = {of: 1.0}
    tails: dict[str, list[str]] = {}
    for tail, head in numbers.partials:
        tails.setdefault(head, []).append(tail)
    for head in reversed(numbers.order):
        if head in found:
            for tail in tails.get(head, ()):
                share = found[head] * numbers.partials[tail, head]
                found[tail] = found[tail] + share if tail in found else share
    return found
