"""Diagrams of recorded values: the graph of an execution, and the chain of a backward pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

from cgprimer.errors import UsageError
from cgprimer.recording.grad_functions import GradFn
from cgprimer.recording.graph_writer import GraphWriter
from cgprimer.recording.recorder import Recording
from cgprimer.recording.traced_nodes import Node
from cgprimer.recording.value import Value
from cgprimer.support.number_format import format_array_lines
from cgprimer.visualization.diagrams.diagram import Diagram, Edge
from cgprimer.visualization.diagrams.diagram import Node as Vertex
from cgprimer.visualization.diagrams.diagram_options import DiagramOptions
from cgprimer.visualization.diagrams.graph_diagrams import build_diagram


def build_recorded_diagram(
    recorded: Any,
    frame: FrameType,
    options: DiagramOptions | None = None,
    passed_options: Sequence[str] = (),
) -> Diagram:
    """Build the diagram of a recorded value, a graph node, a ``grad_fn`` or a recording.

    Args:
        recorded: object to draw.
        frame: frame of the caller; its variables name the values that have no names.
        options: options of :func:`cgprimer.draw`; a ``grad_fn`` accepts no options.
        passed_options: names of the options in the call, including those with default values.

    Raises:
        UsageError: an object of another type, or an option for a ``grad_fn``.

    >>> import sys
    >>> w = Value(2.0)
    >>> loss = w*w
    >>> for _ in range(2):
    ...     loss.backward(retain_graph=True)
    >>> build_recorded_diagram(loss, sys._getframe()).nodes[0].detail
    ('= 2', 'grad = 8', 'sum of 2 passes')
    """
    options = options or DiagramOptions()
    recorded = recorded._value if isinstance(recorded, Node) else recorded
    if not isinstance(recorded, Value | GradFn):
        graph = recorded.graph if isinstance(recorded, Recording) else recorded
        return build_diagram(graph, options)
    names = _find_variable_names(frame)
    if isinstance(recorded, GradFn):
        _check_no_options(passed_options)
        return _build_backward_chain(recorded, names)
    writer = GraphWriter(every_operation=True)
    for value, name in names.items():
        writer.suggest_name(name, value)
    graph = writer.build_graph({names.get(recorded, "y"): recorded}, "value")
    diagram = build_diagram(graph, replace(options, parameters=options.parameters or "vertices"))
    shows_data = not {"at", "values"} & set(passed_options)
    nodes = []
    for node in diagram.nodes:
        value = writer.values_by_name.get(node.key)
        lines: tuple[str, ...] = ()
        if value is not None and shows_data:
            lines = (*format_array_lines(value._data), *_format_gradient_lines(value))
        nodes.append(replace(node, detail=(*node.detail, *lines)))
    notes = (*diagram.notes, *_format_accumulation_notes(writer.values_by_name))
    return replace(diagram, nodes=tuple(nodes), notes=notes)


def _find_variable_names(frame: FrameType) -> dict[Any, str]:
    """Return the variable names of the recorded values in a stack frame, keyed by value."""
    names: dict[Any, str] = {}
    for name, variable in {**frame.f_globals, **frame.f_locals}.items():
        value = variable._value if isinstance(variable, Node) else variable
        if isinstance(value, Value) and name[0] != "_":
            names.setdefault(value, value.name or name)
    return names


def _check_no_options(passed_options: Sequence[str]) -> None:
    """Raise UsageError if options are passed when drawing a ``grad_fn``."""
    if passed_options:
        raise UsageError(
            f"draw() of a grad_fn does not accept {passed_options[0]!r}",
            hint="draw the value: draw(loss) instead of draw(loss.grad_fn)",
        )


def _build_backward_chain(first: GradFn, names: Mapping[Any, str]) -> Diagram:
    """Build a diagram with a vertex for each ``grad_fn``, linked as in PyTorch."""
    functions, stack = {first.variable: first}, [first]
    edges, none_vertices = [], []
    while stack:
        function = stack.pop()
        for position, (successor, _) in enumerate(function.next_functions):
            key = f"{id(function.variable)}.{position}"
            if successor is None:
                none_vertices.append(Vertex(key, "None", "constant"))
            else:
                key = str(id(successor.variable))
                if successor.variable not in functions:
                    functions[successor.variable] = successor
                    stack.append(successor)
            edges.append(Edge(str(id(function.variable)), key))
    nodes = []
    for value, function in functions.items():
        name = names.get(value, value.name)
        is_leaf = function.name == "AccumulateGrad"
        detail = ((name,) if name else ()) + (_format_gradient_lines(value) if is_leaf else ())
        role: Any = "gradient" if is_leaf else "seed" if function is first else "adjoint"
        nodes.append(Vertex(str(id(value)), function.name, role, detail))
    values_by_name = {names.get(v, v.name): v for v in functions}
    notes = _format_accumulation_notes(values_by_name)
    return Diagram((*nodes, *none_vertices), tuple(dict.fromkeys(edges)), notes=notes)


def _format_gradient_lines(value: Any) -> tuple[str, ...]:
    """Format a value's accumulated gradient, with the number of backward passes if several."""
    if not value.requires_grad:
        return ("no gradient",)
    if value._grad is None:
        return ()
    passes = value._repeats + 1
    array = format_array_lines(value._grad)
    lines = ("grad", *array) if len(array) > 1 else (f"grad {array[0]}",)
    return (*lines, *([f"sum of {passes} passes"] if passes > 1 else []))


def _format_accumulation_notes(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a note naming the leaves whose gradients are sums over several backward passes."""
    summed = [
        name for name, v in values.items() if v is not None and not v.operands and v._repeats > 0
    ]
    if not summed:
        return ()
    return (f"gradients of several passes add up ({', '.join(summed)}); zero_grad() resets them",)
