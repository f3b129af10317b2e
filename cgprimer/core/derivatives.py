"""Gradient and Jacobian of a graph at one or several points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from cgprimer.core.evaluation.graph_cache import compute_once, lower_once
from cgprimer.core.evaluation.plain_engine import PLAIN
from cgprimer.core.evaluation.runner import Runner
from cgprimer.core.graph import ExpressionGraph, check_graph
from cgprimer.core.language.syntax_tree import Shape
from cgprimer.core.methods import differentiate
from cgprimer.core.methods.derivative_program import (
    DerivativeProgram,
    Derivatives,
    Names,
    normalize_names,
)
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import UsageError
from cgprimer.support.array_values import Value, convert_value
from cgprimer.support.type_checks import check_type
from cgprimer.support.value_names import Element, element_hint, parse_element

if TYPE_CHECKING:
    from cgprimer.core.evaluation.engines import Engine

Point = Mapping[str, Value] | None


def tape(graph: ExpressionGraph, mode: str = "") -> Tape:
    """Return the tape of a graph, its straight-line program; ``print`` lists it line by line.

    Args:
        graph: the graph.
        mode: expansion of ``dropout`` and ``batchnorm``. ``training`` uses masks, which are
            columns, and the statistics of the batch; ``masks`` uses only the masks, ``batch`` only
            the statistics of the batch. The default is the form after training.

    >>> from cgprimer.core.graph import parse
    >>> len(tape(parse("xw = ab*xa + 1")))
    2
    >>> print(tape(parse("xh = dropout(k*xa, 0.5)"), "training"))
    input     xa
    mask      mask_xh
    parameter k
    v1 = k*xa
    xh = v1*mask_xh
    output    xh
    """
    check_graph(graph)
    if mode not in ("", "batch", "masks", "training"):
        raise UsageError(f"unknown mode {mode!r}", hint="choose one of training, batch, masks")
    return lower_once(graph, mode if graph.layered else "")


def running_statistics(graph: ExpressionGraph, point: Mapping[str, Value]) -> dict[str, Value]:
    """Return the running mean and variance of each ``batchnorm``; by default 0 and 1."""
    if not graph.layered:
        return {}
    from cgprimer.core.operations.layer_expansions import collect_statistics

    return collect_statistics(tape(graph).leaves, point)


def parse_element_of(graph: ExpressionGraph, name: str) -> Element:
    """Split the name of an array element, such as ``W[0,1]``, into the array and the indices.

    The name of a variable or parameter has no indices.
    """
    if not isinstance(name, str) or name in graph.roles:
        return Element(name, ())
    return parse_element(name)


def tape_with_elements(graph: ExpressionGraph, names: Iterable[str], mode: str = "") -> Tape:
    """Return the tape of a graph, extended by values for array elements such as ``W[0,1]``."""
    elements = [name for name in names if name not in graph.roles and parse_element(name).indices]
    if not elements:
        return tape(graph, mode)
    from cgprimer.core.tape.scalarization import add_element_outputs

    return add_element_outputs(tape(graph, mode), elements)


def layer_mode_at(graph: ExpressionGraph, at: Point) -> str:
    """Return the mode of :func:`tape` at a point, which expands ``dropout`` and ``batchnorm``."""
    return graph.mode(graph.point(at, needed=())) if graph.layered else ""


# --- first derivatives ---------------------------------------------------------------------------


def gradient(
    graph: ExpressionGraph,
    at: Mapping[str, Value] | None = None,
    *,
    of: str | None = None,
    wrt: Names | None = None,
    loss: str | None = None,
    method: str = "reverse",
    engine: str = "auto",
    **options: Any,
) -> dict[str, Value]:
    """Return the gradient of a scalar variable, by default of the only output.

    Args:
        graph: the graph.
        at: values of inputs and parameters, scalars or arrays; the default is the declared value.
        of: the variable to differentiate; by default the only output.
        wrt: parameters, inputs or inner variables; by default all parameters, or all inputs of a
            graph without parameters. The derivative with respect to an inner variable treats the
            variable as independent.
        loss: a loss to differentiate instead, as in :func:`cgprimer.graph_with_loss`; the point
            must then contain the targets.
        method: one of :func:`cgprimer.methods`.
        engine: one of :func:`cgprimer.engines`, or ``auto``.
        options: options of the method, see :func:`cgprimer.differentiate`.

    Returns:
        A float for each name, or an array in the shape of the samples. The unit is the unit of
        ``of`` divided by the unit of the name. With ``batch_mean``, samples depend on each other:
        reverse mode returns the contribution of each sample to the derivative of the sum, other
        methods the derivative of each sample; the sums over the samples are equal.

    Raises:
        UsageError: an unknown name, method, engine or option.
        MissingValueError: a name that the output needs has no value.
        DifferentiationError: the method cannot differentiate the graph.

    >>> from cgprimer.core.graph import parse
    >>> graph = parse("xx=xa^2; xy=ab*xx+ac*xa; xz=bc*xx+xy; xw=cd*xx+xz^3")
    >>> at = {"xa": 0.5, "ab": 1, "bc": 2, "cd": 3, "ac": 4}
    >>> gradient(graph, at)
    {'ab': 5.671875, 'ac': 11.34375, 'bc': 5.671875, 'cd': 0.25}
    >>> gradient(graph, at, wrt="xa", method="forward")
    {'xa': 161.8125}
    """
    check_graph(graph)
    if loss is not None:
        from cgprimer.core.loss_attachment import check_point, graph_with_loss

        graph = graph_with_loss(graph, loss, check_point(at))
    target = graph.only_output() if of is None else of
    check_type("of", target, str, "a name")
    results = compute_derivatives(graph, at, (target,), wrt, method, engine, **options)
    return {name: value for (_, name), value in results.derivatives.items()}


def jacobian(
    graph: ExpressionGraph,
    at: Mapping[str, Value] | None = None,
    *,
    of: Names | None = None,
    wrt: Names | None = None,
    loss: str | None = None,
    method: str = "reverse",
    engine: str = "auto",
    **options: Any,
) -> dict[str, dict[str, Value]]:
    """Return all first derivatives: ``jacobian(graph, at)["xw"]["ab"]`` is dxw/dab.

    By default ``of`` is all outputs; the other arguments are those of :func:`gradient`.

    >>> from cgprimer.core.graph import parse
    >>> jacobian(parse("xb = p*xa; xc = p^2"), {"p": 3, "xa": 2})
    {'xb': {'p': 2.0}, 'xc': {'p': 6.0}}
    """
    check_graph(graph)
    if loss is not None:
        from cgprimer.core.loss_attachment import check_point, graph_with_loss

        graph = graph_with_loss(graph, loss, check_point(at))
    results = compute_derivatives(graph, at, of, wrt, method, engine, **options)
    rows: dict[str, dict[str, Value]] = {name: {} for name in results.values}
    for (target, name), value in results.derivatives.items():
        rows[target][name] = value
    return rows


def compute_derivatives(
    graph: ExpressionGraph,
    at: Point = None,
    of: Names | None = None,
    wrt: Names | None = None,
    method: str = "reverse",
    engine: str = "auto",
    **options: Any,
) -> Derivatives:
    """Compute values and derivatives; arguments and errors are those of :func:`jacobian`.

    The type of `graph` is not checked.
    """
    check_type("method", method, str, "a name")
    of = normalize_names(of, "of") if of else None
    wrt = None if wrt is None else normalize_names(wrt, "wrt")
    mode = layer_mode_at(graph, at) if graph.layered else ""
    key = ("request", of, wrt, method, mode, repr(sorted(options.items())))
    # The arguments are the key, so that a repeated call does not check its names again.
    prepare = partial(_prepare_request, graph, of, wrt, method, mode, options)
    request = compute_once(graph, key, prepare)
    program, arrays = request.program, request.arrays
    results = run_at_point(graph, at, program, engine)
    pairs = {(t, n): results.derivatives[t, arrays[n]] for t in program.of for n in arrays}
    for name, indices in request.elements.items():
        rest = [slice(None)] * (len(program.shapes[arrays[name]]) - len(indices))
        for target in program.of:
            part = pairs[target, name][(..., *indices, *rest)]
            pairs[target, name] = part if part.ndim else float(part)
    return Derivatives(results.values, pairs)


class _Request(NamedTuple):
    """A checked request for derivatives, with the program that computes them.

    Attributes:
        program: the program; its derivatives are with respect to whole arrays.
        arrays: the array of each requested element; other names are mapped to themselves.
        elements: the indices of each requested element.
    """

    program: DerivativeProgram
    arrays: dict[str, str]
    elements: dict[str, tuple[int, ...]]


def _prepare_request(
    graph: ExpressionGraph,
    of: tuple[str, ...] | None,
    wrt: tuple[str, ...] | None,
    method: str,
    mode: str,
    options: Mapping[str, Any],
) -> _Request:
    """Check the requested names, then differentiate the tape of the graph."""
    names = resolve_wrt(graph, wrt)
    if of is None and not graph.outputs:
        raise UsageError("the graph has no output to differentiate")
    targets = tuple(resolve_output(graph, name) for name in of or graph.outputs)
    parts = {name: parse_element_of(graph, name) for name in names}
    arrays = {name: part.array for name, part in parts.items()}

    def derive() -> DerivativeProgram:
        """Differentiate the tape of the graph."""
        primal = tape_with_elements(graph, (*targets, *names), mode)
        return differentiate(primal, targets, tuple(arrays.values()), method=method, **options)

    key = ("first", targets, names, method, mode, repr(sorted(options.items())))
    elements = {name: part.indices for name, part in parts.items() if part.indices}
    return _Request(compute_once(graph, key, derive), arrays, elements)


def resolve_output(graph: ExpressionGraph, of: str | None) -> str:
    """Return the name of the output to differentiate: a variable, an element or the only output.

    Raises:
        UsageError: the graph has no such variable, or `of` is None and it has several outputs.
    """
    if of is None:
        return graph.only_output()
    check_type("of", of, str, "a name")
    if parse_element_of(graph, of)[0] not in graph.variables:
        raise UsageError(f"unknown variable {of!r}", hint=element_hint(of, graph.variables))
    return of


def resolve_wrt(graph: ExpressionGraph, wrt: Names | None) -> tuple[str, ...]:
    """Return the names of the variables to differentiate with respect to.

    Names may be elements such as ``W[0,1]``. If `wrt` is None, return all parameters, or all inputs
    of a graph without parameters.

    Raises:
        UsageError: an unknown name, or a graph without parameters and inputs.
    """
    if wrt is None and not (graph.parameters or graph.inputs):
        raise UsageError("cannot differentiate: the graph has no parameters and no inputs")
    if wrt is None:
        return graph.parameters or graph.inputs
    names = normalize_names(wrt, "wrt")
    choices = dict.fromkeys((*graph.variables, *graph.parameters))
    for name in names:
        if parse_element_of(graph, name)[0] not in choices:
            hint = element_hint(name, choices)
            raise UsageError(f"unknown variable or parameter {name!r}", hint=hint)
    return names


def run_at_point(
    graph: ExpressionGraph,
    at: Point,
    program: DerivativeProgram,
    engine: str,
    direction: Mapping[str, Value] | None = None,
) -> Derivatives:
    """Run a derivative program at a point of a graph.

    Args:
        graph: the graph of the program.
        at: values of inputs and parameters.
        program: the derivative program.
        engine: name of the engine.
        direction: values of seeds that the passes of the program do not set.
    """
    point, shapes = graph.point(at, needed=program.needed), graph.shapes
    for name in (*graph.inputs, *graph.parameters):
        if name not in point:  # no requested value depends on it
            point[name] = convert_value(name, 0.0, shapes.get(name, ()))
    shape = graph.samples(point)
    arrays = [n for n in graph.parameters if type(point[n]) is not float]
    varying = tuple(n for n in arrays if point[n].ndim > len(shapes.get(n, ())))
    columns = {name: point[name] for name in (*graph.inputs, *varying)}
    scalars = {name: point[name] for name in graph.parameters if name not in columns}
    samples = math.prod(shape)
    if shape:
        columns = {n: _build_column(v, shape, shapes.get(n, ())) for n, v in columns.items()}
    if engine == "auto" and not shape:
        chosen: Engine = PLAIN
    else:
        from cgprimer.core.evaluation.engine_choice import choose_engine

        chosen = choose_engine(engine, program, samples, shape)

    def build_runner() -> Runner:
        """Compile the program for the chosen engine."""
        tape = program.tape
        if varying:
            from cgprimer.core.tape.tape_passes import convert_scalars_to_columns

            tape = convert_scalars_to_columns(tape, varying)
        return Runner(replace(program, tape=tape), engine=chosen)

    runner = compute_once(graph, ("runner", program, varying, chosen.name), build_runner)
    if graph.layered:
        scalars |= running_statistics(graph, point)
    scalars |= direction or {}
    results, sizes = runner(columns, scalars, samples), program.shapes
    return Derivatives(
        {n: reshape_to_samples(v, shape, sizes.get(n, ())) for n, v in results.values.items()},
        {
            (o, w): reshape_to_samples(v, shape, sizes.get(o, ()) + sizes.get(w, ()))
            for (o, w), v in results.derivatives.items()
        },
    )


def _build_column(value: Value, samples: Shape, value_shape: Shape) -> Value:
    """Broadcast a value to all samples; return an array with the samples on its first axis."""
    import numpy as np

    broadcast = np.broadcast_to(value, samples + value_shape)
    return np.ascontiguousarray(broadcast, float).reshape(-1, *value_shape)


def reshape_to_samples(value: Any, samples: Shape, value_shape: Shape = ()) -> Value:
    """Reshape a column of results to the samples' shape followed by the value's shape.

    Return a float if both shapes are empty.
    """
    if not samples and not value_shape:
        return float(value if isinstance(value, float | int) else value.reshape(()))
    return value.reshape(samples + value_shape)
