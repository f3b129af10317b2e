"""Graphs with a loss: the loss of a sample is attached as a vertex, the only output."""

from __future__ import annotations

from collections.abc import Mapping

from cgprimer.core.evaluation.graph_cache import compute_once, lower_once
from cgprimer.core.graph import ExpressionGraph, check_graph
from cgprimer.support.array_values import Value, broadcast_sample_shapes, convert_value, count_axes
from cgprimer.support.type_checks import check_type

Point = Mapping[str, Value] | None


def check_point(at: Point) -> Mapping[str, Value]:
    """Check that a point is a mapping; convert None to an empty mapping.

    Raises:
        UsageError: the point is not a mapping.

    >>> check_point(None), check_point({"xa": 0.5})
    ({}, {'xa': 0.5})
    """
    if at is None:
        return {}
    check_type("at", at, Mapping, "a mapping of names to values", hint="write {'xa': 0.5}")
    return at


def graph_with_loss(graph: ExpressionGraph, loss: str | None, at: Point = None) -> ExpressionGraph:
    """Add a loss node to a graph: a vertex ``loss``, which becomes the only output.

    Args:
        graph: the graph.
        loss: the name of a loss, or an expression in ``out`` and ``target`` or in names of the
            graph and new inputs; ``output`` and None leave the graph unchanged.
        at: the point of evaluation. Its names and shapes determine the new inputs, and whether the
            targets of ``softmax-cross-entropy`` are classes or probabilities. Without a point,
            every unknown name in the expression is a new input.

    Returns:
        The graph. Its target is the input ``target``; if the graph has several outputs, each has a
        target, such as ``target_xw``. The target of ``softmax-cross-entropy`` is the index of a
        class, counted from 0, unless the point has a probability for each class. A new name that
        the graph already uses is followed by ``_``.

    Raises:
        UsageError, SourceError, ShapeError: the loss is invalid, or incompatible with the graph.
        DataError: a target is not valid for the loss.

    >>> from cgprimer.core.graph import parse
    >>> graph = graph_with_loss(parse("xw = k*xa"), "squared-error")
    >>> print(graph)
    xw = k*xa
    input target
    loss = (xw - target)^2
    output loss
    >>> import cgprimer
    >>> cgprimer.gradient(graph, {"k": 2, "xa": 3, "target": 5})
    {'k': 6.0}
    """
    check_graph(graph)
    if loss is None:
        return graph
    from cgprimer.core.loss_expressions import LOSSES, OUTPUT, parse_loss_name
    from cgprimer.core.loss_node import attach_to_graph, check_targets

    shapes_of_new, samples = None, 0
    if at is not None:
        values = {n: convert_value(n, v) for n, v in check_point(at).items()}
        known_values = {n: values[n] for n in values.keys() & {*graph.inputs, *graph.parameters}}
        samples = len(broadcast_sample_shapes(known_values, graph.shapes))
        new = {n: v for n, v in values.items() if n not in known_values}
        new_axes = {n: bool(graph.shapes) and count_axes(v) for n, v in new.items()}
        shapes_of_new = {n: tuple(v.shape[samples:]) if new_axes[n] else () for n, v in new.items()}
    text = LOSSES[name] if (name := parse_loss_name(loss)) in LOSSES else ""
    key = ("loss", loss, text, repr(shapes_of_new))  # a registered loss may change
    primal = lower_once(graph)
    with_loss, targets = compute_once(
        graph, key, lambda: attach_to_graph(graph, primal, loss, shapes_of_new)
    )
    check_targets(loss, primal, targets, at or {})
    return graph if loss == OUTPUT else with_loss
