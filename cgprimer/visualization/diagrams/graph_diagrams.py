"""Graphs and tapes as diagrams: plain data that is laid out and drawn by other modules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from cgprimer.analysis.element_graph import element_values, numbers_of, shape_in
from cgprimer.analysis.nonfinite_origin import Why
from cgprimer.analysis.nonfinite_origin import why as why_at
from cgprimer.analysis.scalar_points import point_values
from cgprimer.core.language.syntax_tree import operator_name
from cgprimer.core.loss_attachment import check_point, graph_with_loss
from cgprimer.core.methods.derivative_program import Names
from cgprimer.core.operations import find_primitive
from cgprimer.core.operations.layer_expansions import is_statistic
from cgprimer.core.second_derivatives import add_element_output
from cgprimer.core.tape.tape_printing import build_expression_trees
from cgprimer.errors import UsageError
from cgprimer.expressions import ExpressionGraph, Name, Number, fold, number_text, unparse
from cgprimer.support.number_format import SHORT, format_array_lines, format_number, mark_rounding
from cgprimer.support.type_checks import check_type
from cgprimer.tapes import labels, values_of
from cgprimer.tapes import tape as tape_of
from cgprimer.visualization.diagrams.array_overlays import array_overlaid, shape_text
from cgprimer.visualization.diagrams.backward_graph import backward_diagram
from cgprimer.visualization.diagrams.diagram import Diagram, Edge, Node, Role
from cgprimer.visualization.diagrams.dropout_diagram import thinned, with_dropped
from cgprimer.visualization.diagrams.element_diagrams import opened
from cgprimer.visualization.diagrams.layer_summary import summarised
from cgprimer.visualization.diagrams.model_parallel_diagram import placed
from cgprimer.visualization.diagrams.overlays import Overlay, overlaid, path_names

LEVELS = ("variables", "operations", "backward")
PARAMETERS = ("edges", "vertices")
ALL = "all"  #: of `scalars`: every array
_TIMES = {2: "twice", 3: "three times"}  # an operand in several places, as in a + a
_SYMBOLS = {
    "add": "+",
    "sub": "−",
    "mul": "×",
    "div": "÷",
    "neg": "−",
    "pow": "^",
    "copy": "=",
    "matmul": "@",
}


def graph_diagram(
    graph: ExpressionGraph,
    *,
    at: Mapping[str, float] | None = None,
    values: bool = False,
    level: str = "variables",
    parameters: str | None = None,
    partials: bool = False,
    tangents: str | None = None,
    adjoints: bool = False,
    of: str | None = None,
    loss: str | None = None,
    path: str | Sequence[str] | None = None,
    scalars: bool | str | Sequence[str] = False,
    everything: bool = False,
    why: bool = False,
    backward_arrows: bool = False,
    mask: float | Mapping[str, Any] | None = None,
    place: str | None = None,
    workers: Names | None = None,
    title: str = "",
) -> Diagram:
    """What :func:`draw` draws, as data; arguments and errors are the same.

    ``save_diagram`` of ``cgprimer.visualization.diagrams.diagram_formats`` writes it to a file.

    >>> from cgprimer.core.graph import parse
    >>> graph = parse("input xa = 2; xb = 3*xa; xw = xb*xa")
    >>> graph_diagram(graph, path="xa xb xw").notes[-1]
    'dxw/dxa = 6 + 6 = 12'
    """
    graph = graph_with_loss(graph, loss, check_point(at) or None)
    for name in {"of": of, "tangents": tangents, "level": level, "title": title}.items():
        check_type(*name, (str, type(None)), "a string")
    if path is not None:
        check_type("path", path, (str, Sequence), "a text of names or a list of names")
    options: dict[str, Any] = {
        "values": values,
        "level": level,
        "parameters": parameters,
        "partials": partials,
        "tangents": tangents,
        "adjoints": adjoints,
        "of": of,
        "path": path,
        "why": why,
        "backward_arrows": backward_arrows,
        "title": title,
    }
    _check_marks(level, scalars, mask, place, workers)
    if mask is None and place is None:
        return _diagram(graph, at, scalars=scalars, everything=everything, **options)
    if mask is None:
        diagram = _diagram(graph, at, scalars=scalars, everything=True, **options)
    else:
        thin = thinned(graph, mask)
        point = element_values(graph, at)
        diagram = _diagram(thin.graph, point, scalars=False, everything=True, **options)
        diagram = with_dropped(diagram, thin)
    if place is not None:
        diagram = placed(diagram, graph, place, workers)
    short = diagram if everything else _readable(diagram)
    if not short.summary:
        return diagram
    left_out = "single vertices, and what is marked at them, are left out of the summary"
    return replace(short, notes=(*short.notes, left_out))


def _check_marks(
    level: str, scalars: Any, mask: Any, place: str | None, workers: Names | None
) -> None:
    """Raise UsageError for options that do not go with a mask or with a place."""
    if workers is not None and place is None:
        hint = "place='layers:2' (--place layers:2)"
        raise UsageError("workers (--workers) have parts of a graph that is cut", hint=hint)
    given = "a mask (--mask)" if mask is not None else "a place (--place)"
    if level != "variables" and (mask is not None or place is not None):
        raise UsageError(f"{given} is drawn at level 'variables'")
    if mask is not None and scalars not in (False, True, ALL, (), ""):
        raise UsageError(f"{given} is drawn with all arrays as numbers", hint="leave scalars out")


def _diagram(
    graph: ExpressionGraph,
    at: Mapping[str, Any] | None,
    *,
    scalars: bool | str | Sequence[str],
    everything: bool,
    **options: Any,
) -> Diagram:
    """Return the diagram of a graph with all options but a mask and a place."""
    _check_options(
        graph,
        options["level"],
        options["parameters"],
        backward=options["adjoints"],
        arrows=options["backward_arrows"],
    )
    if scalars == ALL and ALL not in (*graph.variables, *graph.parameters):
        scalars = True
    if not scalars or not tape_of(graph).has_arrays:
        return _with_overlays(graph, at, everything=everything, **options)
    numbers, point = numbers_of(graph, at, (options["of"], options["tangents"]))
    shown = {name: value for name, value in options.items() if name != "why"}
    if scalars is True:
        return graph_diagram(numbers, at=point, everything=everything, **shown)
    if options["level"] != "variables" or options["path"] is not None:
        raise UsageError(
            "single vertices are opened at level 'variables', without a path",
            hint="open all of them: scalars=True (--scalars all)",
        )
    shown |= {"parameters": "vertices", "everything": True}
    both = graph_diagram(graph, at=at, **shown), graph_diagram(numbers, at=point, **shown)
    diagram = opened(graph, *both, path_names(scalars))
    return diagram if everything else _readable(diagram)


def _with_overlays(
    graph: ExpressionGraph,
    at: Mapping[str, Any] | None,
    *,
    values: bool,
    level: str,
    parameters: str | None,
    partials: bool,
    tangents: str | None,
    adjoints: bool,
    of: str | None,
    path: str | Sequence[str] | None,
    everything: bool,
    why: bool,
    backward_arrows: bool,
    title: str,
) -> Diagram:
    """Return the diagram of a graph at one level, with overlays, or its summary."""
    graph, of = add_element_output(graph, of)
    names = path_names(path)
    if path is not None and not names:
        raise UsageError("the path is empty", hint='names along it: path="xa xx xw"')
    if names and level != "variables":
        raise UsageError("a path leads along variables: it is drawn at level 'variables'")
    if of is not None and not adjoints and level != "backward":
        raise UsageError(
            "'of' (--of) says where a backward sweep begins: it goes with the adjoints (--adjoints)"
        )
    shown = at if at is not None or not values else {}
    sweeps: Any = {"partials": partials, "tangents": tangents, "adjoints": adjoints}
    wanted = bool(names) or any(sweeps.values())
    if level == "backward":
        if wanted:
            raise UsageError("the backward graph has no overlays", hint="values=True (--values)")
        diagram = backward_diagram(graph, at=shown, of=of)
    elif level == "operations":
        diagram = operation_diagram(graph, at=shown)
    else:
        at_vertices = adjoints or {tangents, *names} & {*graph.parameters}
        where = parameters or ("vertices" if at_vertices else "edges")
        diagram = variable_diagram(graph, at=shown, parameters=where)
    diagram = replace(diagram, title=title)
    if backward_arrows:
        diagram = _pointing_back(diagram, level)
    if wanted:
        overlay = array_overlaid if tape_of(graph).has_arrays else overlaid
        diagram = overlay(diagram, graph, Overlay(at, level, of=of, path=names, **sweeps))
    if why:
        diagram = _marked(diagram, why_at(graph, at, of=of), level)
    short = diagram if everything else _readable(diagram)
    if not short.summary:
        return diagram
    if names:  # what is written out does not need the vertices
        return replace(short, notes=(*short.notes, *diagram.notes))
    if not wanted and shown is None:
        return short
    left_out = "values and derivatives at single vertices are left out of the summary"
    return replace(short, notes=(*short.notes, left_out))


def _check_options(
    graph: ExpressionGraph, level: str, parameters: str | None, *, backward: bool, arrows: bool
) -> None:
    """Raise UsageError for an unknown option, and where there is nothing that it applies to."""
    if arrows and not backward and level != "backward":
        raise UsageError(
            "backward_arrows (--backward-arrows) needs a backward pass",
            hint="adjoints=True (--adjoints) or level='backward' (--level backward)",
        )
    if level not in LEVELS:
        raise UsageError(f"there is no level {level!r}", hint=f"choose one of {', '.join(LEVELS)}")
    if parameters not in (None, *PARAMETERS):
        one_of = f"choose one of {', '.join(PARAMETERS)}"
        raise UsageError(f"parameters cannot be drawn as {parameters!r}", hint=one_of)
    if not graph.definitions:
        raise UsageError("there is nothing to draw: the graph has no expressions")


def _readable(diagram: Diagram) -> Diagram:
    """Return the diagram, or its layers as stacks where a slide is too small for all of it."""
    from cgprimer.visualization.diagrams.slide_layout import fits_slide

    short = summarised(diagram)
    try:
        return short if short.summary or fits_slide(diagram) else summarised(diagram, readable=0)
    except UsageError:  # it cannot be laid out here, but written for another program
        return short


def _pointing_back(diagram: Diagram, level: str) -> Diagram:
    """Return the diagram with its output at the right and arrows from there to the left."""
    if level != "backward":
        return replace(diagram, backward_arrows=True)
    edges = tuple(replace(edge, tail=edge.head, head=edge.tail) for edge in diagram.edges)
    return replace(diagram, nodes=diagram.nodes[::-1], edges=edges, backward_arrows=True)


def _marked(diagram: Diagram, found: Why | None, level: str) -> Diagram:
    """With the vertex that something not finite comes from told from the others."""
    if found is None:
        return replace(diagram, notes=(*diagram.notes, "every value and every slope is finite"))
    bad = found.value if found.slope is None else found.slope
    words = f"first {'value' if found.slope is None else 'slope'} not finite"
    if isinstance(bad, float):  # an array stands above, and the note says its place
        words += f": {format_number(bad, SHORT)}"
    key = str(found.index) if level == "operations" else found.vertex
    nodes = tuple(
        replace(node, detail=(*node.detail, words), emphasis=True) if node.key == key else node
        for node in diagram.nodes
    )
    return replace(diagram, nodes=nodes, notes=(*diagram.notes, found.sentence))


def variable_diagram(
    graph: ExpressionGraph, *, at: Mapping[str, float] | None = None, parameters: str = "edges"
) -> Diagram:
    """A vertex per variable, with its expression and, given ``at``, its value.

    >>> from cgprimer.core.graph import parse
    >>> [(e.tail, e.head, e.label) for e in variable_diagram(parse("xw = ab*xa + b")).edges]
    [('xa', 'xw', 'ab'), ('b', 'xw', '')]
    """
    values = _values(graph, at)
    on_edges = {} if parameters == "vertices" else _parameters_on_edges(graph)
    placed = {name for names in on_edges.values() for name in names}
    # What multiplies no variable has no edge to stand on: it is drawn as a vertex.
    vertices = [name for name in graph.parameters if name not in placed]

    def node(name: str, role: Role, *said: str) -> Node:
        label = name + shape_text(shape_in(graph, name))
        return Node(name, label, role, (*said, *_shown(values, name)))

    nodes = [node(name, "parameter") for name in vertices]
    for name in graph.variables:
        detail = (graph.expression(name),) if name in graph.definitions else ()
        role: Role = "output" if name in graph.outputs else "inner" if detail else "input"
        nodes.append(node(name, role, *detail))
    edges = [
        Edge(tail, head, ", ".join(_named(n, values) for n in on_edges.get((tail, head), ())))
        for tail, heads in graph.leads_to.items()
        for head in heads
    ]
    for head, used in graph.parameters_of.items():
        edges += [Edge(name, head) for name in used if name in vertices]
    return Diagram(tuple(nodes), tuple(edges))


def operation_diagram(graph: ExpressionGraph, *, at: Mapping[str, float] | None = None) -> Diagram:
    """A vertex per operation of the tape, each with its name and what it computes.

    >>> from cgprimer.core.graph import parse
    >>> [node.label for node in operation_diagram(parse("xw = ab*xa + 1")).nodes]
    ['xa', 'ab', '×', '1', '+']
    """
    tape = tape_of(graph)
    names, trees = labels(tape), build_expression_trees(tape)
    values = _values(graph, at)
    outputs = set(tape.outputs.values())
    constants = {index for index, leaf in enumerate(tape.leaves) if leaf.kind == "constant"}
    nodes = []
    for index, leaf in enumerate(tape.leaves):
        if index not in constants:
            role: Role = "input" if leaf.kind == "column" else "parameter"
            role = "constant" if is_statistic(leaf.name) else role
            label = names[index] + shape_text(leaf.shape)
            nodes.append(Node(str(index), label, role, _shown(values, index)))
    edges: list[Edge] = []
    for (index, tree), (name, operands) in zip(trees.items(), tape.instructions, strict=True):
        kind = operator_name(name)
        spelling = find_primitive(name).spelling if isinstance(name, str) else kind
        symbol = _SYMBOLS.get(kind) or spelling
        symbol += shape_text(tape.shapes[index])
        text = f"{names[index]} = {unparse(tree)}"
        role = "output" if index in outputs else "operation"
        nodes.append(Node(str(index), symbol, role, (text, *_shown(values, index))))
        for operand, times in Counter(operands).items():
            tail = str(operand)
            if operand in constants:  # a vertex for each use, so that no edge leads far
                tail = f"{operand}.{index}"
                written = number_text(tape.leaves[operand].value)
                nodes.insert(-1, Node(tail, written, "constant"))
            edges.append(Edge(tail, str(index), _TIMES.get(times, "")))
    return Diagram(tuple(nodes), tuple(edges))


def _values(graph: ExpressionGraph, at: Mapping[str, float] | None) -> dict[str | int, float]:
    """Every value of the tape, by index and by name."""
    if at is None:
        return {}
    tape = tape_of(graph)
    found = values_of(tape, point_values(graph, at))
    names = (*graph.variables, *graph.parameters)
    return {**dict(enumerate(found)), **{name: found[tape.index(name)] for name in names}}


def _named(name: str, values: Mapping[Any, float]) -> str:
    """A parameter on an edge, with its value where values are shown."""
    return (
        f"{name}={mark_rounding(values[name], SHORT)}".replace("=≈", "≈")
        if name in values
        else name
    )


def _shown(values: Mapping[Any, float], key: Any) -> tuple[str, ...]:
    return format_array_lines(values[key]) if key in values else ()


# Of a part of an expression: the parameters that multiply it as a whole (all of its parameters, if
# it has no variable), and for each variable in it those that multiply that variable.
_Factors: TypeAlias = tuple[frozenset[str], dict[str, frozenset[str]]]


def _parameters_on_edges(graph: ExpressionGraph) -> dict[tuple[str, str], list[str]]:
    """For each edge the parameters that multiply its variable in the head's expression.

    In ``k*tanh(w*xa + b)`` the parameters ``k`` and ``w`` stand on the edge from ``xa``; ``b`` is
    added, and stands on none.
    """
    nothing: frozenset[str] = frozenset()

    def leaf(node: Name | Number) -> _Factors:
        name = {node.name} if isinstance(node, Name) else nothing
        own = nothing | (name & {*graph.parameters})
        return own, dict.fromkeys(name - own, nothing)

    def apply(name: str, arguments: list[_Factors]) -> _Factors:
        product = name in ("mul", "div", "pow")
        merged: dict[str, frozenset[str]] = {}
        for which, (_, variables) in enumerate(arguments):
            others = [own for k, (own, _) in enumerate(arguments) if product and k != which]
            for variable, factors in variables.items():
                merged[variable] = merged.get(variable, nothing).union(factors, *others)
        passed_on = product or name == "neg" or not merged
        return nothing.union(*(own for own, _ in arguments if passed_on)), merged

    return {
        (tail, head): [n for n in graph.parameters if n in factors and n not in graph.shapes]
        for head, expression in graph.definitions.items()
        for tail, factors in fold(expression, leaf, apply)[1].items()
    }
