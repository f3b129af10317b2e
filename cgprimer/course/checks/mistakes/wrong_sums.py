"""Mistakes in the sums of the chain rule: contributions, paths and samples that do not add up."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any

from cgprimer.core.methods.path_sum import count_paths, list_paths
from cgprimer.course.checks.mistakes.differentiated_tape import Edge
from cgprimer.course.checks.mistakes.gradient_passes import GradientPasses, PassPrediction
from cgprimer.course.checks.mistakes.reverse_rules import (
    AverageUpstream,
    NegateProducts,
    OmitEdges,
    Overwrite,
)

_MAX_PATHS = 40  # from one name


def negate_contributions(passes: GradientPasses) -> Iterator[PassPrediction]:
    """Predict the gradients if one contribution has the wrong sign."""
    for edge in passes.edges:
        head, tail = passes.format_operation(edge.head), passes.format_value(edge.tail)
        yield (
            f"the derivative of {head} with respect to {tail} has the wrong sign",
            passes.gradient(NegateProducts({edge})),
        )


def overwrite_adjoints(passes: GradientPasses) -> Iterator[PassPrediction]:
    """Predict the gradients if adjoints are overwritten (``=`` instead of ``+=``)."""
    sources = frozenset(passes.sources.values())
    variants: list[tuple[str, dict[str, Any]]] = [
        ("a vertex", {}),
        ("a vertex", {"order": passes.depth_first_edges}),
    ]
    for tail in passes.find_shared_values():
        variants.append((passes.format_value(tail), {"tails": frozenset({tail})}))
    variants.append(("each parameter", {"tails": sources}))
    inner = frozenset(edge.tail for edge in passes.edges) - sources
    if inner:
        variants.append(("each variable", {"tails": inner}))
    overwriting: list[dict[str, Any]] = [
        {"keep": "last", "adds_in_formula": True},
        {"keep": "last"},
        {"keep": "first"},
    ]
    for (name, affected), settings in product(variants, overwriting):
        message = f"{name} keeps only its {settings['keep']} contribution instead of the sum"
        yield message, passes.gradient(Overwrite(**settings, **affected))


def omit_paths(passes: GradientPasses) -> Iterator[PassPrediction]:
    """Predict the gradients if some paths, or all paths except one, are ignored."""
    yield from _omit_uses(passes)
    yield from _omit_paths_of_sources(passes, between_variables=True)
    yield from _omit_paths_of_sources(passes, between_variables=False)


def _omit_uses(passes: GradientPasses) -> Iterator[PassPrediction]:
    """Predict the gradients if one use of a value, or all uses except one, are ignored."""
    for tail, edges in passes.find_shared_values().items():
        if tail in passes.sources.values():
            continue
        uses: dict[int, set[Edge]] = {}
        for edge in edges:
            uses.setdefault(passes.owner[edge.head], set()).add(edge)
        if len(uses) < 2:
            continue
        for variable, used in uses.items():
            route = f"from {passes.format_value(tail)} through {passes.format_value(variable)}"
            yield f"the paths {route} are missing", passes.gradient(OmitEdges(used))
            if len(uses) > 2:
                others = {*edges} - used
                yield f"only the paths {route} are kept", passes.gradient(OmitEdges(others))


def _omit_paths_of_sources(
    passes: GradientPasses, *, between_variables: bool
) -> Iterator[PassPrediction]:
    """Predict each derivative if one of its paths, or all paths except one, are ignored."""
    correct = passes.correct_gradient
    edges = [
        (passes.owner[edge.head] if between_variables else edge.head, edge)
        for edge in passes.edges
        if not between_variables or edge.tail in passes.tape.labels
    ]
    heads: dict[int, list[int]] = {}
    for head, edge in edges:
        if head not in heads.setdefault(edge.tail, []):
            heads[edge.tail].append(head)
    counts = count_paths(heads, passes.root)
    for name, source in passes.sources.items():
        count = counts.get(source, 0)
        if not 1 < count <= _MAX_PATHS:
            continue
        for path in list_paths(heads, source, passes.root, counts):
            operands = {head: tail for tail, head in pairwise(path)}
            omitted = {edge for head, edge in edges if operands.get(head) != edge.tail}
            remaining = passes.gradient(OmitEdges(omitted))[name]
            difference = passes.builder.emit("sub", correct[name], remaining)
            route = " -> ".join(map(passes.format_value, path))
            number = f"of the {count} paths from {name},"
            yield f"{number} only {route} is kept", {name: remaining}
            yield f"{number} {route} is missing", {name: difference}


def average_before_multiplying(passes: GradientPasses) -> Iterator[PassPrediction]:
    """Predict the gradients if factors are averaged over the batch before they are multiplied."""
    if not passes.question.batch:
        return
    message = "the adjoint and the {} are averaged over the batch before they are multiplied"
    sources = {*passes.sources.values()}
    last = {edge for edge in passes.edges if edge.tail in sources}
    yield message.format("last factor"), passes.gradient(AverageUpstream(last))
    for variable in passes.list_variables():
        name = passes.tape.labels[variable]
        edges = {*passes.edges_to(variable)}
        yield message.format(f"derivative of {name}"), passes.gradient(AverageUpstream(edges))
