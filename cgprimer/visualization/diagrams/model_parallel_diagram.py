"""Diagrams of model parallelism: the parts of a graph, and the values sent between them.

Source: Huang et al. 2019, "GPipe: efficient training of giant neural networks".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from cgprimer.core.methods.derivative_program import Names, normalize_names
from cgprimer.core.operations.array_shapes import format_shape
from cgprimer.errors import UsageError, pluralize
from cgprimer.expressions import ExpressionGraph, parse_element
from cgprimer.support.value_names import format_name, parse_internal
from cgprimer.tapes import tape
from cgprimer.training.distributed.layer_cuts import Stage, cut, cut_name
from cgprimer.training.worker_options import parse_stage_count
from cgprimer.visualization.diagrams.diagram import Diagram, Edge, Part

_MAX_MARKED = 8  # labeled edges between parts; if there are more, only notes show the values


def frame_parts(
    diagram: Diagram, graph: ExpressionGraph, place: str, workers: Names | None = None
) -> Diagram:
    """Add a frame around each part of a partitioned graph, and label the values sent between parts.

    Args:
        diagram: the diagram of the graph, or of the elements of its arrays.
        graph: the graph.
        place: the partition, such as ``layers:2`` for two parts.
        workers: names of the workers of the parts; parts are numbered unless given.

    Raises:
        UsageError: the graph does not have this partition, or the number of workers is wrong.

    >>> from cgprimer.core.graph import parse
    >>> from cgprimer.visualization.diagrams.level_diagrams import build_variable_diagram
    >>> graph = parse("xb = k*xa; xc = exp(xb); xd = m*xc")
    >>> diagram = frame_parts(build_variable_diagram(graph), graph, "layers:2", ["GPU 0", "GPU 1"])
    >>> diagram.parts[1].label, diagram.edges[1].label, diagram.notes[0]
    ('GPU 1: 67 % of the work', 'xb →\\n← adjoint', 'GPU 0 → GPU 1: xb; back: its adjoint')
    """
    count = parse_stage_count(place)
    if len(graph.outputs) != 1:
        raise UsageError(
            f"`place` requires a graph with one output, got {len(graph.outputs)}",
            hint="add a loss: loss='squared-error' (--loss squared-error)",
        )
    names = _name_parts(workers, count)
    stages = cut(tape(graph), count, graph.definitions, graph.parameters)
    owner = _assign_parts(diagram, graph, stages)
    crossing = [_label_crossing_edge(edge, owner, stages) for edge in diagram.edges]
    marked = sum(after is not edge for after, edge in zip(crossing, diagram.edges, strict=True))
    edges = tuple(crossing) if marked <= _MAX_MARKED else diagram.edges
    parts = tuple(
        Part(
            f"{name}: {stage.work:.0%} of the work".replace("%", " %"),
            frozenset(key for key, part in owner.items() if part == number),
        )
        for number, (name, stage) in enumerate(zip(names, stages, strict=True))
    )
    notes = (*_format_transfer_notes(names, stages), *diagram.notes)
    return replace(diagram, edges=edges, parts=parts, notes=notes)


def _name_parts(workers: Names | None, count: int) -> Sequence[str]:
    """Return a name for each part of the graph: the name of its worker, or the part's number."""
    if workers is None:
        return [f"part {number}" for number in range(1, count + 1)]
    names = normalize_names(workers, "workers")
    if len(names) != count or len({*names}) != count:
        raise UsageError(
            f"`workers` must have a different name for each of {pluralize(count, 'part')}, got"
            f" {len(names)}",
            hint="pass one name for each part, such as workers='gpu0,gpu1' for layers:2",
        )
    return names


def _assign_parts(
    diagram: Diagram, graph: ExpressionGraph, stages: Sequence[Stage]
) -> dict[str, int]:
    """Map each vertex of a diagram to the index of the part that contains it."""
    computed: dict[str, int] = {}
    primal = tape(graph)
    for number, stage in enumerate(stages):
        first = len(stage.tape.leaves)
        for index in range(first, stage.tape.size):
            if label := stage.tape.labels.get(index):
                computed.setdefault(label, number)
        for name, index in stage.tape.outputs.items():
            computed.setdefault(parse_internal(name).variable if index >= first else name, number)
    same = {name: primal.labels.get(index, name) for name, index in primal.names.items()}
    owner: dict[str, int] = {}
    tails: dict[str, list[str]] = {}
    for edge in diagram.edges:
        tails.setdefault(edge.head, []).append(edge.tail)
    for node in diagram.nodes:
        name = parse_element(node.key)[0]
        name = same.get(name, name)
        if name in computed:
            owner[node.key] = computed[name]
        elif node.key in tails:  # a part of several elements, such as the sum of a softmax
            owner[node.key] = max(owner.get(tail, 0) for tail in tails[node.key])
    for node in reversed(diagram.nodes):
        if node.key not in owner:
            heads = [edge.head for edge in diagram.edges if edge.tail == node.key]
            owner[node.key] = min((owner[head] for head in heads if head in owner), default=0)
    return owner


def _label_crossing_edge(edge: Edge, owner: Mapping[str, int], stages: Sequence[Stage]) -> Edge:
    """Label an edge that connects two parts with the transferred value; keep all other edges."""
    head = owner[edge.head]
    name = parse_element(edge.tail)[0]
    if owner[edge.tail] == head or cut_name(name) not in stages[head].inputs:
        return edge
    lines = [*filter(None, [edge.label]), f"{edge.tail} →", "← adjoint"]
    return replace(edge, label="\n".join(lines))


def _format_transfer_notes(names: Sequence[str], stages: Sequence[Stage]) -> Iterator[str]:
    """Yield a note for each pair of communicating parts that lists the values and adjoints sent."""
    for head, stage in enumerate(stages):
        for tail, earlier in enumerate(stages[:head]):
            sent = [name for name in stage.inputs if name in earlier.outputs]
            if sent:
                values = ", ".join(
                    format_name(parse_internal(name).variable)
                    + (f" {format_shape(stage.inputs[name])}" if stage.inputs[name] else "")
                    for name in sent
                )
                back = "its adjoint" if len(sent) == 1 else "their adjoints"
                yield f"{names[tail]} → {names[head]}: {values}; back: {back}"
