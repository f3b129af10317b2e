"""Pictures of recorded values: the graph of what was run, and the chain of a backward pass."""

from __future__ import annotations

from collections.abc import Mapping
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
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram


def recorded_diagram(shown: Any, frame: FrameType, **options: Any) -> Diagram:
    """Return what :func:`cgprimer.draw` draws of a value, a node, a ``grad_fn`` or a recording.

    Args:
        shown: what is drawn.
        frame: frame of the caller, whose variables give names to values that have none.
        options: options of a graph; a ``grad_fn`` has none.

    Raises:
        UsageError: an object of another kind, or an option of a ``grad_fn``.

    >>> import sys
    >>> w = Value(2.0)
    >>> loss = w*w
    >>> for _ in range(2):
    ...     loss.backward(retain_graph=True)
    >>> recorded_diagram(loss, sys._getframe()).nodes[0].detail
    ('= 2', 'grad = 8', 'sum of 2 passes')
    """
    shown = shown._value if isinstance(shown, Node) else shown
    if not isinstance(shown, Value | GradFn):
        return graph_diagram(shown.graph if isinstance(shown, Recording) else shown, **options)
    variables = {**frame.f_globals, **frame.f_locals}
    names: dict[Any, str] = {}
    for name, variable in variables.items():
        value = variable._value if isinstance(variable, Node) else variable
        if isinstance(value, Value) and name[0] != "_":
            names.setdefault(value, value.name or name)
    if isinstance(shown, GradFn):
        if options:
            raise UsageError(
                f"draw: a grad_fn has no option {next(iter(options))!r}",
                hint="draw the value itself: draw(loss) instead of draw(loss.grad_fn)",
            )
        return _chain(shown, names)
    writer = GraphWriter(every_operation=True)
    for value, name in names.items():
        writer.suggest_name(name, value)
    graph = writer.build_graph({names.get(shown, "y"): shown}, "value")
    diagram = graph_diagram(graph, **{"parameters": "vertices", **options})
    numbers = not ({"at", "values"} & options.keys())
    nodes = []
    for node in diagram.nodes:
        made = writer.values_by_name.get(node.key)
        said = (
            (*format_array_lines(made._data), *_gradient(made))
            if made is not None and numbers
            else ()
        )
        nodes.append(replace(node, detail=(*node.detail, *said)))
    return replace(
        diagram, nodes=tuple(nodes), notes=(*diagram.notes, *_notes(writer.values_by_name))
    )


def _chain(first: GradFn, names: Mapping[Any, str]) -> Diagram:
    """A vertex per function of the backward pass, as PyTorch links them."""
    found, stack = {first.variable: first}, [first]
    edges, nothing = [], []
    while stack:
        function = stack.pop()
        for place, (following, _) in enumerate(function.next_functions):
            key = f"{id(function.variable)}.{place}"
            if following is None:
                nothing.append(Vertex(key, "None", "constant"))
            else:
                key = str(id(following.variable))
                if following.variable not in found:
                    found[following.variable] = following
                    stack.append(following)
            edges.append(Edge(str(id(function.variable)), key))
    nodes = []
    for value, function in found.items():
        called = names.get(value, value.name)
        leaf = function.name == "AccumulateGrad"
        detail = ((called,) if called else ()) + (_gradient(value) if leaf else ())
        role: Any = "gradient" if leaf else "seed" if function is first else "adjoint"
        nodes.append(Vertex(str(id(value)), function.name, role, detail))
    called_values = {names.get(v, v.name): v for v in found}
    return Diagram((*nodes, *nothing), tuple(dict.fromkeys(edges)), notes=_notes(called_values))


def _gradient(value: Any) -> tuple[str, ...]:
    """What a backward pass has left, and whether it was several."""
    if not value.requires_grad:
        return ("no gradient",)
    if value._grad is None:
        return ()
    again = value._repeats + 1
    lines = format_array_lines(value._grad)
    said = ("grad", *lines) if len(lines) > 1 else (f"grad {lines[0]}",)
    return (*said, *([f"sum of {again} passes"] if again > 1 else []))


def _notes(named: Mapping[str, Any]) -> tuple[str, ...]:
    """Under the picture: whose gradients are of several passes."""
    added = [
        name for name, v in named.items() if v is not None and not v.operands and v._repeats > 0
    ]
    if not added:
        return ()
    return (f"gradients of several passes add up ({', '.join(added)}); zero_grad() resets them",)
