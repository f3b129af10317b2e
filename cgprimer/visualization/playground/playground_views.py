"""The views of the playground: each computes the answer to one kind of request.

A view is a function of the request's arguments (a dict without ``view``) and returns built-in
types, or arrays that `encode_value` encodes. The arguments of most views are those of a graph
request: ``text``, and optionally ``at`` (numbers by name), ``of`` (a name, or an element of an
array; by default the first output, or its first element) and ``wrt`` (a list of names). Unknown
arguments are errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from cgprimer.analysis.comparison import MethodResult, compare
from cgprimer.analysis.scalar_points import complete_point
from cgprimer.analysis.trace import Trace, trace
from cgprimer.core.derivatives import compute_derivatives, resolve_wrt
from cgprimer.core.evaluation.graph_cache import compute_once
from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.language.syntax_tree import Apply, operator_name, postorder
from cgprimer.core.methods import methods
from cgprimer.core.operations.primitive_registry import FUNCTIONS
from cgprimer.errors import UsageError, join_names
from cgprimer.support.example_files import load_examples
from cgprimer.support.type_checks import check_type
from cgprimer.support.validation import check_choice, check_integer, check_real_number
from cgprimer.support.value_names import format_name
from cgprimer.tapes import differentiate, values_of
from cgprimer.tapes import tape as tape_of
from cgprimer.visualization.diagrams.vertex_sweeps import (
    compute_sweep_numbers,
    compute_tangents,
    run_backward_sweep,
)
from cgprimer.visualization.pages.stepping.method_walks import DEFAULT_METHOD, METHODS
from cgprimer.visualization.pages.stepping.scene import Scene, build_scene
from cgprimer.visualization.pages.stepping.step_values import encode_value
from cgprimer.visualization.playground.playground_requests import (
    CACHED_TEXTS,
    MAX_ELEMENTS,
    GraphRequest,
    Request,
    check_argument_names,
    check_size,
    read_graph,
    read_graph_request,
)

MAX_NESTING = 50  #: operations on a path for symbolic; Pyodide crashes in sympy for about 150
MAX_COMPARED = 10_000  #: derivatives times operations of the methods, one of which is symbolic
_MAX_SAMPLES = 1_000  # of a curve
_CONSTANTS = ("pi", "π", "e")  # names that readers may expect to be constants


def summarize(request: Request) -> dict[str, Any]:
    """Summarize a graph: its names, declared values and functions.

    Returns:
        ``inputs`` and ``parameters``: lists of objects with ``name``, ``value`` (the declared
        value or null) and ``shape`` (empty for a scalar); ``outputs``: names; ``variables``: the
        names of all variables, in topological order; ``vertices``: the number of variables and
        parameters; ``has_arrays``; ``functions``: the names of functions that are called;
        ``missing``: the names without a value; ``notes``: sentences.

    >>> summarize({"text": "input xa = 2; xw = tanh(ab*xa)"})["inputs"]
    [{'name': 'xa', 'value': 2.0, 'shape': []}]
    """
    check_argument_names(request, "text")
    graph = read_graph(request)
    check_size(graph)
    return compute_once(graph, "playground summary", lambda: _summarize_graph(graph))


def _summarize_graph(graph: ExpressionGraph) -> dict[str, Any]:
    """Return the summary of a graph."""
    values = graph.values

    def describe(name: str) -> dict[str, Any]:
        """Describe an input or a parameter."""
        return {"name": name, "value": values.get(name), "shape": list(graph.shapes.get(name, ()))}

    missing = [n for n in (*graph.inputs, *graph.parameters) if n not in values]
    return {
        "inputs": [describe(name) for name in graph.inputs],
        "parameters": [describe(name) for name in graph.parameters],
        "outputs": graph.outputs,
        "variables": graph.variables,
        "vertices": len(graph.variables) + len(graph.parameters),
        "has_arrays": tape_of(graph).has_arrays,
        "functions": _list_functions(graph),
        "missing": missing,
        "notes": _list_notes(graph, missing),
    }


def _list_functions(graph: ExpressionGraph) -> list[str]:
    """Return the names of the functions that the expressions call, in alphabetical order."""
    calls = (n for tree in graph.definitions.values() for n in postorder(tree))
    names = {operator_name(node.primitive) for node in calls if isinstance(node, Apply)}
    return sorted(names & FUNCTIONS.keys())


def _list_notes(graph: ExpressionGraph, missing: list[str]) -> list[str]:
    """Return sentences about a graph that a reader may not expect."""
    notes = []
    if missing:
        notes.append(f"These names have no value: {join_names(missing)}.")
    if len(graph.outputs) > 1:
        notes.append(f"The graph has several outputs: {join_names(graph.outputs)}.")
    notes += [
        f"The language has no named constants: {name} is a parameter."
        for name in _CONSTANTS
        if name in graph.parameters and name not in graph.declared_values
    ]
    return notes


def show_graph(request: Request) -> dict[str, Any]:
    """Compute the picture of a graph, with values, derivatives and partials.

    Arguments are those of a graph request, and ``method``: ``reverse`` (default) for adjoints of
    all vertices, or ``forward`` for tangents with respect to the first name of ``wrt``.

    Returns:
        ``drawing``: positions as `encode_layout` returns them, in the order of ``vertices`` and
        ``edges``; ``vertices``: objects with ``name``, ``role``, ``expression`` and ``shape``;
        ``edges``: pairs of names, tail and head; ``target``; ``wrt``; ``kind``: ``adjoint`` or
        ``tangent``; ``seed``: the name with respect to which tangents are computed, or null;
        ``missing``: names without a value. If no value is missing: ``values`` and ``derivatives``
        in the order of ``vertices``; ``partials`` and ``products`` (the contribution of an edge to
        a derivative) in the order of ``edges``, null for edges between arrays; ``gradient``: the
        derivatives of the target by name. Otherwise these fields are null.

    >>> from cgprimer.visualization.playground.playground_views import compute_vertex_numbers
    >>> request = read_graph_request({"text": "xw = ab*xa", "at": {"ab": 2, "xa": 3}})
    >>> compute_vertex_numbers(request, build_graph_scene(request), "reverse")["derivatives"]
    [2.0, 3.0, 1.0]
    """
    arguments = read_graph_request(request, "method")
    method = check_choice("method", request.get("method") or "reverse", ("reverse", "forward"))
    scene = build_graph_scene(arguments)
    primal = scene.tape
    rows, numbers = scene.rows, dict.fromkeys(_NUMBERS)
    if not arguments.missing:
        numbers = compute_vertex_numbers(arguments, scene, method)
    return {
        "drawing": _draw_scene(scene),
        "vertices": [
            {
                "name": vertex.name,
                "role": vertex.role,
                "expression": _describe_vertex(arguments.graph, vertex.name, rows[vertex.row][1]),
                "shape": list(primal.shapes[primal.index(vertex.name)]),
            }
            for vertex in scene.vertices
        ],
        "edges": scene.edges,
        "target": scene.target,
        "wrt": scene.wrt,
        "kind": "adjoint" if method == "reverse" else "tangent",
        "seed": None if method == "reverse" else scene.wrt[0],
        "missing": arguments.missing,
        **numbers,
    }


_DRAWINGS: dict[Any, dict[str, Any]] = {}  # by vertices and edges
_GAPS = (58.0, 84.0)  # between layers; the larger gap has room for more numbers on edges
_MAX_CAREFUL_EDGES = 15  # pictures with more edges are laid out only once
_NUMBERS = ("values", "derivatives", "partials", "products", "gradient")


def _describe_vertex(graph: ExpressionGraph, name: str, role: str) -> str:
    """Return the expression of a vertex as in the text, or its role."""
    return graph.expression(name) if name in graph.definitions else role


def build_graph_scene(arguments: GraphRequest) -> Scene:
    """Select the vertices and edges that determine the requested derivatives."""
    graph, target = arguments.graph, arguments.target
    wrt = resolve_wrt(graph, arguments.wrt)
    key = ("playground scene", target, wrt)
    return compute_once(graph, key, lambda: build_scene(tape_of(graph), target, wrt))


def _draw_scene(scene: Scene) -> dict[str, Any]:
    """Lay out the vertices and edges, or return the layout of an earlier graph with the same ones.

    Large graphs are laid out quickly, because the picture changes while the text is edited.
    """
    from cgprimer.visualization.pages.stepping.vertex_positions import (
        WIDE,
        encode_layout,
        lay_out_scene,
    )

    key = (scene.vertices, scene.edges)
    if key not in _DRAWINGS:
        quick = len(scene.edges) > _MAX_CAREFUL_EDGES
        gaps = _GAPS[1:] if quick else _GAPS
        _DRAWINGS[key] = encode_layout(lay_out_scene(scene, gaps=gaps, label=WIDE, quick=quick))
        if len(_DRAWINGS) > CACHED_TEXTS:
            del _DRAWINGS[next(iter(_DRAWINGS))]
    return _DRAWINGS[key]


def compute_vertex_numbers(arguments: GraphRequest, scene: Scene, method: str) -> dict[str, Any]:
    """Compute the numbers at all vertices and edges of a picture, see `show_graph`."""
    graph, target = arguments.graph, scene.target
    point = complete_point(graph, arguments.at)
    primal = tape_of(graph)
    originals = {format_name(name): name for name in primal.names}  # of running statistics
    names = [originals[vertex.name] for vertex in scene.vertices]
    edges = [(originals[tail], originals[head]) for tail, head in scene.edges]
    indices = [primal.index(name) for name in names]
    values = values_of(primal, point, roots=indices)
    partials: Mapping[Any, Any]
    products: Mapping[Any, Any]
    totals: Mapping[Any, Any]
    if primal.has_arrays:
        partials, products, totals = _compute_array_numbers(graph, point, scene, method)
    else:
        reverse = method == "reverse"
        sweep = compute_sweep_numbers(
            graph, point, of=target if reverse else None, wrt=None if reverse else scene.wrt[0]
        )
        partials, products, totals = sweep.partials, sweep.products, sweep.totals
    requested = scene.wrt if method == "reverse" else scene.wrt[:1]
    results = compute_derivatives(graph, point, (target,), requested, method).derivatives
    empty = None if primal.has_arrays else 0.0
    return {
        "values": [_encode(values[index]) for index in indices],
        "derivatives": [_encode(totals.get(name, empty)) for name in names],
        "partials": [_encode(partials.get(edge, empty)) for edge in edges],
        "products": [_encode(products.get(edge, empty)) for edge in edges],
        "gradient": {name: _encode(results[target, name]) for name in requested},
    }


def _compute_array_numbers(
    graph: ExpressionGraph, point: Mapping[str, Any], scene: Scene, method: str
) -> tuple[Mapping[Any, Any], Mapping[Any, Any], Mapping[Any, Any]]:
    """Compute the contributions and adjoints, or the tangents, of a graph with arrays."""
    if method == "forward":
        return {}, {}, compute_tangents(graph, point, scene.wrt[0])
    sweep = run_backward_sweep(graph, point, scene.target)
    ends = {
        (sweep.names[tail], sweep.names[head]): value
        for (tail, head), (_, value) in sweep.products.items()
    }
    return {}, ends, {sweep.names[index]: total for index, total in sweep.totals.items()}


def _encode(value: Any) -> Any:
    """Encode a number or an array; None stays None."""
    if value is None:
        return None
    if isinstance(value, int) or getattr(value, "shape", None) == ():
        return float(value)
    return encode_value(value)


def show_methods(request: Request) -> dict[str, Any]:
    """Compare the methods of differentiation, and list their programs.

    Arguments are those of a graph request, and ``symbolic``: true to answer ``needs`` instead if
    sympy is not loaded. Without sympy, symbolic differentiation is refused; without mpmath, which
    is loaded with sympy, errors are unknown.

    Returns:
        ``target``, ``value``, ``wrt`` and ``methods``: objects with ``method``, ``derivatives`` by
        name, ``error`` (the largest relative error, or null if it is unknown), ``passes``,
        ``operations``, ``refusal`` (empty, or a sentence), ``needs`` (a library that the method
        requires, or null) and ``lines`` (the program).

    >>> rows = show_methods({"text": "xw = ab*xa", "at": {"ab": 2, "xa": 3}})["methods"]
    >>> [(row["method"], row["derivatives"]) for row in rows if row["method"] == "reverse"]
    [('reverse', {'ab': 3.0})]
    """
    arguments = read_graph_request(request, "symbolic")
    graph, target = arguments.graph, arguments.target
    if request.get("symbolic"):
        import_module("sympy")  # an ImportError becomes the answer "needs"
    _check_split_arrays(graph)
    _check_comparison(graph, resolve_wrt(graph, arguments.wrt))
    nesting = _count_nested_operations(graph, target)
    accepted = [name for name in methods() if name != "symbolic" or nesting <= MAX_NESTING]
    comparison = compare(graph, arguments.at, of=target, wrt=arguments.wrt, methods=accepted)
    names = tuple(dict.fromkeys(name.partition("[")[0] for name in comparison.wrt))
    rows = {result.method: result for result in comparison.results}
    refused = MethodResult(
        "symbolic",
        refused=f"{target} has {nesting:,} nested operations, but the playground differentiates at"
        f" most {MAX_NESTING} symbolically",
    )
    return {
        "target": target,
        "value": comparison.value,
        "wrt": comparison.wrt,
        "methods": [
            _encode_method_result(graph, target, names, rows.get(name, refused))
            for name in methods()
        ],
    }


def _encode_method_result(
    graph: ExpressionGraph, target: str, wrt: tuple[str, ...], result: MethodResult
) -> dict[str, Any]:
    """Encode the derivatives, costs and program of a method."""
    needs_sympy = "sympy" in result.refused and find_spec("sympy") is None
    lines = [] if result.refused else list_program_lines(graph, target, wrt, result.method)
    return {
        "method": result.method,
        "derivatives": result.derivatives,
        "error": result.worst_error,
        "passes": result.passes,
        "operations": result.operations,
        "refusal": result.refused,
        "needs": "sympy" if needs_sympy else None,
        "lines": lines,
    }


def _count_nested_operations(graph: ExpressionGraph, target: str) -> int:
    """Return the number of operations on the longest path to a variable."""
    primal = tape_of(graph)
    counts = [0] * len(primal.leaves)
    for _, operands in primal.instructions:
        counts.append(1 + max((counts[operand] for operand in operands), default=0))
    return counts[primal.index(target)]


def _check_comparison(graph: ExpressionGraph, wrt: tuple[str, ...]) -> None:
    """Raise UsageError if the comparison of methods would take seconds in a browser."""
    primal = tape_of(graph)
    arrays = [name.partition("[")[0] for name in wrt]
    derivatives = sum(math.prod(primal.shapes[primal.index(name)]) for name in arrays)
    operations = sum(math.prod(shape) for shape in primal.shapes[len(primal.leaves) :])
    if derivatives * operations > MAX_COMPARED:
        raise UsageError(
            f"the methods cannot be compared here: {derivatives:,} derivatives of a graph of"
            f" {operations:,} operations take too long in a browser",
            hint="choose one name with `wrt`, or use the installed package: cgprimer compare",
        )


def _check_split_arrays(graph: ExpressionGraph) -> None:
    """Raise UsageError if splitting the arrays of a graph into scalars would take seconds."""
    shapes = [shape for shape in tape_of(graph).shapes if shape]
    longest = max((max(shape, default=0) for shape in shapes), default=0)
    products = longest * sum(map(math.prod, shapes))  # at least those of a product of matrices
    if products > MAX_ELEMENTS:
        raise UsageError(
            "the arrays are too large to be split into scalars in a browser",
            hint="use smaller arrays, or the installed package",
        )


def list_program_lines(
    graph: ExpressionGraph, target: str, wrt: tuple[str, ...], method: str
) -> list[str]:
    """Return the derivative program of a method as lines of text."""
    program = differentiate(tape_of(graph), target, wrt, method=method)
    return str(program).split("\n")


def show_trace(request: Request) -> dict[str, Any]:
    """Trace the evaluation of a variable.

    Arguments are those of a graph request, and ``method``: ``reverse`` (default) for adjoints or
    ``forward`` for tangents with respect to the first name of ``wrt``.

    Returns:
        ``target``, ``heading`` (of the column of derivatives), ``kind``, ``wrt`` (empty for
        adjoints), and ``rows``: objects with ``name``, ``expression``, ``value`` and
        ``derivative``; ``backward``: the same objects without derivatives, for arrays.

    >>> request = {"text": "xw = ab*xa", "at": {"ab": 2, "xa": 3}, "method": "forward"}
    >>> show_trace(request)["rows"][-1]
    {'name': 'xw', 'expression': 'ab*xa', 'value': 6.0, 'derivative': 3.0}
    """
    arguments = read_graph_request(request, "method")
    method = check_choice("method", request.get("method") or "reverse", ("reverse", "forward"))
    graph = arguments.graph
    wrt = resolve_wrt(graph, arguments.wrt)[0] if method == "forward" else None
    return _encode_trace(trace(graph, arguments.at, of=arguments.target, wrt=wrt, method=method))


def _encode_trace(result: Trace) -> dict[str, Any]:
    """Encode the rows of a trace."""
    rows = [
        {
            "name": row.name,
            "expression": row.expression,
            "value": _encode(row.value),
            "derivative": _encode(row.derivative),
        }
        for row in (*result.rows, *result.backward)
    ]
    return {
        "target": result.of,
        "heading": result.heading,
        "kind": result.kind,
        "wrt": result.wrt,
        "rows": rows[: len(result.rows)],
        "backward": rows[len(result.rows) :],
    }


def show_steps(request: Request) -> dict[str, Any]:
    """Compute the data of the step page.

    Arguments are those of a graph request, and ``method``: the tab that is open at first, by
    default ``reverse``.

    Returns:
        The data that `build_step_data` returns.

    >>> data = show_steps({"text": "xw = ab*xa", "at": {"ab": 2, "xa": 3}})
    >>> [walk["method"] for walk in data["walks"]]
    ['forward', 'reverse', 'path-sum', 'finite-difference']
    """
    from cgprimer.visualization.pages.stepping.step_frames import stepping
    from cgprimer.visualization.pages.stepping.step_page import build_step_data

    arguments = read_graph_request(request, "method")
    method = check_choice("method", request.get("method") or DEFAULT_METHOD, METHODS)
    shown = stepping(arguments.graph, arguments.at, of=arguments.target, wrt=arguments.wrt)
    return build_step_data(shown, method=method)


def show_curve(request: Request) -> dict[str, Any]:
    """Sample a variable as a function of one scalar, with its derivative.

    Arguments are those of a graph request (``wrt`` has no effect), and ``x``: the name of an input
    or a parameter, or an element of an array; ``from`` and ``to``: its range; ``samples``: the
    number of points, by default 201.

    Returns:
        ``target``, ``name`` (the argument ``x``), and lists of numbers: ``x``, ``values`` and
        ``derivatives``.

    >>> curve = show_curve({"text": "xw = xa^2", "x": "xa", "from": -1, "to": 1, "samples": 3})
    >>> curve["x"], curve["values"], curve["derivatives"]
    ([-1.0, 0.0, 1.0], [1.0, 0.0, 1.0], [-2.0, 0.0, 2.0])
    """
    arguments = read_graph_request(request, "x", "from", "to", "samples")
    graph, target = arguments.graph, arguments.target
    check_type("x", request.get("x"), str, "the name of an input or a parameter")
    name = resolve_wrt(graph, request["x"])[0]
    if name in graph.definitions:
        hint = "choose an input or a parameter"
        raise UsageError(f"{name!r} is computed by the graph", hint=hint)
    low = check_real_number("the start of the range", request.get("from"))
    high = check_real_number("the end of the range", request.get("to"))
    if not low < high or not math.isfinite(high - low):
        message = f"the range must go from a smaller to a larger number, got {low:g} to {high:g}"
        raise UsageError(message)
    count = check_integer("the number of samples", request.get("samples") or 201, minimum=2)
    if count > _MAX_SAMPLES:
        raise UsageError(f"a curve can have at most {_MAX_SAMPLES:,} samples, got {count:,}")
    points = [low + (high - low) * (k / (count - 1)) for k in range(count)]
    values, derivatives = [], []
    for x in points:
        point = complete_point(graph, {**arguments.at, name: x}, of=target)
        results = compute_derivatives(graph, point, (target,), (name,), "forward")
        values.append(results.values[target])
        derivatives.append(results.derivatives[target, name])
    check_type("of", values[0], float, "the name of a scalar")
    return {
        "target": target, "name": name, "x": points, "values": values, "derivatives": derivatives,
    }  # fmt: skip


def export_graph(request: Request) -> dict[str, Any]:
    """Export a graph as a file in another language.

    Arguments are those of a graph request, and ``format``: ``latex`` (the derivation as a
    document), ``tikz`` (the picture as a document) or ``python`` (a program that checks itself).

    Returns:
        ``text``: the content of the file.

    >>> text = export_graph({"text": "xw = ab*xa", "format": "python"})["text"]
    >>> [line for line in text.splitlines() if line.startswith("def gradient")]
    ['def gradient(xa, ab):']
    """
    from cgprimer.analysis.export.exporter import export

    arguments = read_graph_request(request, "format")
    kind = check_choice("format", request.get("format"), ("latex", "tikz", "python"))
    graph, of, at = arguments.graph, arguments.target, arguments.at
    if kind == "tikz":
        from cgprimer.visualization.diagrams.diagram_formats import format_diagram
        from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram

        derivatives = {} if arguments.missing else {"at": at, "adjoints": True, "of": of}
        diagram = graph_diagram(graph, **derivatives)
        return {"text": format_diagram(diagram, "tex")}
    _check_split_arrays(graph)
    return {"text": export(graph, kind, at, of=of, wrt=arguments.wrt)}


def list_examples(request: Request) -> dict[str, Any]:
    """List the example graphs of the package by topic, in the order of a course.

    Returns:
        ``topics``: objects with ``topic`` and ``examples``, which have ``name``, ``title``,
        ``level``, ``teaches``, ``source`` and ``text``.

    >>> [topic["topic"] for topic in list_examples({})["topics"]][:2]
    ['Graphs and the chain rule', 'Methods of differentiation']
    """
    check_argument_names(request)
    topics: dict[str, list[dict[str, str]]] = {}
    for example in load_examples().values():
        if example.path.suffix == ".cg":
            fields = ("name", "title", "level", "teaches", "source")
            data = {field: getattr(example, field) for field in fields}
            text = example.path.read_text(encoding="utf-8")
            topics.setdefault(example.topic, []).append({**data, "text": text})
    return {"topics": [{"topic": name, "examples": rows} for name, rows in topics.items()]}


def start_training(request: Request) -> dict[str, Any]:
    """Start a training run; the arguments are ``text`` and those of `start_run`."""
    from cgprimer.visualization.playground.playground_training import SETTINGS, start_run

    check_argument_names(request, "text", "data", "samples", *SETTINGS)
    graph = read_graph(request)
    check_size(graph)
    return start_run(graph, request)


def continue_training(request: Request) -> dict[str, Any]:
    """Continue the run ``run`` for about ``milliseconds`` (by default 100), see `continue_run`."""
    from cgprimer.visualization.playground.playground_training import continue_run

    check_argument_names(request, "run", "milliseconds")
    return continue_run(request.get("run"), request.get("milliseconds", 100))


def stop_training(request: Request) -> dict[str, Any]:
    """Forget the run ``run``, see `forget_run`."""
    from cgprimer.visualization.playground.playground_training import forget_run

    check_argument_names(request, "run")
    return forget_run(request.get("run"))


VIEWS: dict[str, Callable[[Request], dict[str, Any]]] = {
    "summary": summarize,
    "graph": show_graph,
    "methods": show_methods,
    "trace": show_trace,
    "step": show_steps,
    "curve": show_curve,
    "export": export_graph,
    "examples": list_examples,
    "train": start_training,
    "train-more": continue_training,
    "train-stop": stop_training,
}
