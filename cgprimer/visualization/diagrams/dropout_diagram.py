"""The thinned network of dropout: the graph with one mask, and the vertices that it removes.

Source: Srivastava et al. 2014, "Dropout: a simple way to prevent neural networks from overfitting",
figure 1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from cgprimer.analysis.element_graph import build_element_graph, build_element_tape
from cgprimer.core.operations.array_shapes import format_shape
from cgprimer.core.operations.layer_expansions import MASK
from cgprimer.core.tape.scalarization import split_arrays
from cgprimer.core.tape.tape_printing import assign_printed_names, build_expression_trees
from cgprimer.errors import UsageError, name_hint, pluralize
from cgprimer.expressions import (
    Expression,
    ExpressionGraph,
    Name,
    Number,
    fold,
    names_in,
    substitute,
)
from cgprimer.support.array_values import convert_value
from cgprimer.support.value_names import internal_name, parse_internal
from cgprimer.tapes import Leaf, labels, tape
from cgprimer.training.layer_states import Masks
from cgprimer.visualization.diagrams.diagram import Diagram

Mask: TypeAlias = "int | float | Mapping[str, Any]"
_MAX_LISTED = 16  # elements of a mask that the note below a picture lists


@dataclass(frozen=True)
class ThinnedGraph:
    """A graph in which fixed dropout masks have been applied.

    Attributes:
        graph: the graph of the elements of all arrays.
        masks: masks of zeros and ones, keyed by the vertex that applies dropout.
        vertices: names that do not influence the outputs because of the mask.
        edges: pairs of tail and head that the mask removes.
    """

    graph: ExpressionGraph
    masks: Mapping[str, Any]
    vertices: frozenset[str]
    edges: frozenset[tuple[str, str]]


def thin_graph(graph: ExpressionGraph, mask: Mask) -> ThinnedGraph:
    """Apply dropout masks to a graph, and find the vertices and edges that the masks remove.

    Args:
        graph: a graph that applies dropout.
        mask: an array of zeros (dropped) and ones (kept) for each vertex that applies dropout; or
            the seed of a training run, whose mask for the first sample is used.

    Raises:
        UsageError: the graph has no dropout, or the mask does not match it.

    >>> from cgprimer.core.graph import parse
    >>> graph = parse("input x[2]; parameter w[2]; xh = dropout(x, 0.5); xo = w @ xh; output xo")
    >>> thin = thin_graph(graph, {"xh": [1, 0]})
    >>> sorted(thin.vertices), thin.graph.expression("xh[1]")
    (['x[1]', 'xh[1]'], 'x[1]*0')
    """
    primal = tape(graph, "masks")
    leaves = [leaf for leaf in primal.leaves if parse_internal(leaf.name).kind == MASK]
    if not leaves:
        raise UsageError(
            "`mask` requires a graph with dropout", hint="add dropout: xh = dropout(tanh(xz), 0.5)"
        )
    masks = _resolve_masks(leaves, mask)
    flat = build_element_tape(primal)
    shown = assign_printed_names(primal)
    arrays = {shown[internal_name(MASK, vertex)]: value for vertex, value in masks.items()}
    numbers = split_arrays(arrays, {name: np.shape(value) for name, value in arrays.items()})
    trees, names = build_expression_trees(flat, inline=True), labels(flat)
    constants = {name: Number(float(value)) for name, value in numbers.items()}
    substituted = {index: substitute(tree, constants) for index, tree in trees.items()}
    thin = build_element_graph(graph, flat, substituted, without=numbers)
    influences_of = {names[index]: _find_influences(tree, numbers) for index, tree in trees.items()}
    names_of = {names[index]: {*names_in(tree)} - {*numbers} for index, tree in trees.items()}
    return ThinnedGraph(thin, masks, *_find_removed(names_of, influences_of, thin.outputs))


def _resolve_masks(leaves: Sequence[Leaf], mask: Mask) -> dict[str, Any]:
    """Return the dropout mask of each vertex; ``mask`` has the masks or a random seed."""
    shapes = {parse_internal(leaf.name).variable: leaf.shape for leaf in leaves}
    if not isinstance(mask, Mapping):
        is_seed = isinstance(mask, int | float) and float(mask).is_integer() and mask >= 0
        if isinstance(mask, bool) or not is_seed:
            raise UsageError(
                "`mask` must map vertices to arrays of zeros and ones, or be a seed (a"
                f" non-negative integer), got {mask!r}",
                hint=f"pass mask={{{next(iter(shapes))!r}: ...}} or mask=0 (--mask 0)",
            )
        sampled = Masks(leaves, int(mask), "float64").create_stream(0, 0)(1)
        return {name: sampled[internal_name(MASK, name)][0] for name in shapes}
    for name in mask:
        if name not in shapes:
            hint = name_hint(name, shapes) or f"choose one of {', '.join(shapes)}"
            raise UsageError(f"the vertex {name!r} does not apply dropout", hint=hint)
    masks = {}
    for name, shape in shapes.items():
        if name not in mask:
            hint = "pass a mask for each vertex that applies dropout"
            raise UsageError(f"missing mask for vertex {name!r}", hint=hint)
        masks[name] = value = convert_value(name, mask[name], shape)
        if not np.isin(value, (0, 1)).all() or np.shape(value) != shape:
            size = f"have shape {format_shape(shape)} and " if shape else ""
            raise UsageError(f"the mask of {name!r} must {size}contain only 0 and 1")
    return masks


def _find_influences(tree: Expression, masks: Mapping[str, float]) -> set[str] | None:
    """Return the names that affect an expression; return None if a mask multiplies it by 0."""

    def find_leaf_influences(node: Number | Name) -> set[str] | None:
        """Return a set that contains the name of a leaf; return None for a mask element of 0."""
        if isinstance(node, Number):
            return set()
        return {node.name} if node.name not in masks else set() if masks[node.name] else None

    def merge_influences(name: str, operands: list[set[str] | None]) -> set[str] | None:
        """Return the union of the operands' names; return None if a factor is dropped."""
        if (name == "mul" and None in operands) or (name in ("neg", "div") and operands[0] is None):
            return None
        return set().union(*(names for names in operands if names))

    return fold(tree, find_leaf_influences, merge_influences)


def _find_removed(
    names_of: Mapping[str, set[str]],
    influences_of: Mapping[str, set[str] | None],
    outputs: Collection[str],
) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
    """Return the vertices and the edges that dropout masks remove from a graph.

    `names_of` has the names in each expression, operands first; `influences_of` has the names that
    influence it, or None if a mask drops it.
    """
    vertices = {name for name, names in influences_of.items() if names is None}
    users: dict[str, list[str]] = {}
    for head, names in names_of.items():
        for tail in names:
            users.setdefault(tail, []).append(head)

    def is_removed(tail: str, head: str) -> bool:
        """Return whether the masks remove the edge from `tail` to `head`."""
        return head in vertices or tail in vertices or tail not in (influences_of[head] or ())

    for name in reversed([*(users.keys() - names_of.keys()), *names_of]):
        heads = users.get(name, ())
        if heads and name not in outputs and all(is_removed(name, head) for head in heads):
            vertices.add(name)
    edges = {
        (tail, head) for tail, heads in users.items() for head in heads if is_removed(tail, head)
    }
    return frozenset(vertices), frozenset(edges)


def mark_dropped(diagram: Diagram, thin: ThinnedGraph) -> Diagram:
    """Mark the vertices and edges that dropout masks remove, and describe the masks in notes."""
    nodes = (replace(node, dropped=node.key in thin.vertices) for node in diagram.nodes)
    edges = (replace(edge, dropped=(edge.tail, edge.head) in thin.edges) for edge in diagram.edges)
    notes = (*_format_mask_notes(thin.masks), *diagram.notes)
    return replace(diagram, nodes=tuple(nodes), edges=tuple(edges), notes=notes)


def _format_mask_notes(masks: Mapping[str, Any]) -> Iterable[str]:
    """Yield a note for each dropout mask: its elements, and the number of dropped units."""
    for name, mask in masks.items():
        numbers = [f"{value:g}" for value in np.ravel(mask)]
        listed = " " + " ".join(numbers) if len(numbers) <= _MAX_LISTED else ""
        units = pluralize(len(numbers), "unit")
        yield f"mask of {name}:{listed} ({numbers.count('0')} of {units} dropped)"
