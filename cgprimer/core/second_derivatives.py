"""Second derivatives of a graph: the tape of the gradient is differentiated again."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cgprimer.core.derivatives import (
    layer_mode_at,
    parse_element_of,
    resolve_output,
    resolve_wrt,
    run_at_point,
    tape,
)
from cgprimer.core.evaluation.graph_cache import compute_once
from cgprimer.core.graph import ExpressionGraph, parse
from cgprimer.core.loss_attachment import check_point, graph_with_loss
from cgprimer.core.methods import differentiate, methods
from cgprimer.core.methods.derivative_program import (
    DerivativeProgram,
    Names,
    Pass,
    Read,
    derivative_name,
    select_array_shapes,
)
from cgprimer.core.methods.forward import choose_seed_name
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_dependencies import reachable
from cgprimer.errors import DifferentiationError, ShapeError, UsageError
from cgprimer.support.array_values import Value, convert_value, count_axes


def add_element_output(
    graph: ExpressionGraph, of: str | None
) -> tuple[ExpressionGraph, str | None]:
    """Add an element such as ``y[0]`` to a graph as an output; return the graph and the name.

    >>> from cgprimer.core.graph import parse
    >>> extended, name = add_element_output(parse("input x[2]; y = 2*x"), "y[1]")
    >>> name, extended.text.splitlines()[-2:]
    ('y_1', ['y_1 = y[1]', 'output y_1'])
    """
    if of is None or not parse_element_of(graph, of)[1]:
        return graph, of
    resolve_output(graph, of)
    name = re.sub(r"\W+", "_", of).strip("_")
    while name in graph.variables or name in graph.parameters:
        name += "_"
    text = f"{graph.text}\n{name} = {of}\noutput {name}"
    return compute_once(graph, ("element", of), lambda: parse(text, name=graph.source.name)), name


def hessian(
    graph: ExpressionGraph,
    at: Mapping[str, Value] | None = None,
    *,
    of: str | None = None,
    wrt: Names | None = None,
    loss: str | None = None,
    method: str = "forward-over-reverse",
    engine: str = "auto",
    **options: Any,
) -> dict[str, dict[str, Value]]:
    """Return the Hessian, all second derivatives: ``hessian(graph, at)["ab"]["cd"]``.

    The tape of the gradient is differentiated again; methods have no rules for second derivatives.

    Args:
        graph, at, of, loss, engine: as in :func:`gradient`.
        wrt: parameters, inputs or inner variables; by default all parameters (all inputs of a graph
            without parameters).
        method: ``OUTER-over-INNER`` with two methods, or one method for both. The inner method must
            compute the gradient in a single run, so it cannot be finite differences.
        options: options of the outer method.

    Raises:
        UsageError: as for :func:`gradient`, or the inner method needs several runs.

    >>> from cgprimer.core.graph import parse
    >>> hessian(parse("xw = xa^3*k"), {"xa": 2, "k": 5}, wrt=["xa", "k"])
    {'xa': {'xa': 60.0, 'k': 12.0}, 'k': {'xa': 12.0, 'k': 0.0}}
    """
    graph = graph_with_loss(graph, loss, check_point(at))
    graph, of = add_element_output(graph, of)
    names, target = resolve_wrt(graph, wrt), resolve_output(graph, of)
    outer, _, inner = str(method).partition("-over-")
    mode = layer_mode_at(graph, at)

    def differentiate_twice() -> tuple[DerivativeProgram, dict[str, str]]:
        """Return the program of the Hessian, and the output for each component of the gradient."""
        first, outputs = _build_gradient_tape(graph, target, names, inner or outer, mode)
        of_all = tuple(outputs.values())
        if not tape(graph).has_arrays or first.has_arrays:
            return differentiate(first, of_all, names, method=outer, **options), outputs
        from cgprimer.core.methods.elementwise import convert_to_array_program, list_element_names

        shapes = select_array_shapes(tape(graph), names)
        shapes |= {outputs[name]: shape for name, shape in shapes.items()}
        flat = list_element_names(of_all, shapes), list_element_names(names, shapes)
        second = differentiate(first, *flat, method=outer, **options)
        return convert_to_array_program(second, tape(graph), of_all, names, shapes), outputs

    key = ("second", target, names, method, mode, repr(sorted(options.items())))
    program, outputs = compute_once(graph, key, differentiate_twice)
    derivatives = run_at_point(graph, at, program, engine).derivatives
    return {a: {b: derivatives[outputs[a], b] for b in names} for a in names}


def hessian_vector_product(
    graph: ExpressionGraph,
    at: Mapping[str, Value] | None = None,
    vector: Mapping[str, Value] | None = None,
    *,
    of: str | None = None,
    loss: str | None = None,
    engine: str = "auto",
) -> dict[str, Value]:
    """Return the product of the Hessian and a vector in a single pass, without the Hessian.

    Args:
        graph, at, of, loss, engine: as in :func:`gradient`.
        vector: the components of the vector, keyed by name: scalars, or arrays in the shapes of
            the variables.

    Returns:
        The components of the product, keyed by name.

    Source: Pearlmutter 1994, "Fast exact multiplication by the Hessian".

    >>> from cgprimer.core.graph import parse
    >>> hessian_vector_product(parse("xw = xa^3*k"), {"xa": 2, "k": 5}, {"xa": 1, "k": 10})
    {'xa': 180.0, 'k': 12.0}
    """
    if not isinstance(vector, Mapping) or not vector:
        raise UsageError(
            "`vector` must be a nonempty dict from names to numbers or arrays, got"
            f" {reprlib.repr(vector)}",
            hint="pass a dict, as in vector={'ab': 1.0}",
        )
    graph = graph_with_loss(graph, loss, check_point(at))
    graph, of = add_element_output(graph, of)
    names, target = resolve_wrt(graph, tuple(vector)), resolve_output(graph, of)
    mode = layer_mode_at(graph, at)

    def build_program() -> tuple[DerivativeProgram, dict[str, str]]:
        """Return the program of the product, and the seed for each component of the vector."""
        return build_product_program(
            _copy_inner_variables(tape(graph, mode), names, target), target, names
        )

    program, seeds = compute_once(graph, ("product", target, names, mode), build_program)
    sizes = {n: program.shapes.get(n, ()) for n in names}
    direction = {seeds[n]: convert_value(n, vector[n], shape) for n, shape in sizes.items()}
    for n, shape in sizes.items():
        if count_axes(value := direction[seeds[n]]) > len(shape):
            message = f"`vector[{n!r}]` must have shape {list(shape)}, got {list(value.shape)}"
            raise ShapeError(
                message, hint="the vector applies to all samples; call the function once per vector"
            )
    derivatives = run_at_point(graph, at, program, engine, direction).derivatives
    return {name: value for (_, name), value in derivatives.items()}


def build_product_program(
    primal: Tape, of: str, wrt: tuple[str, ...]
) -> tuple[DerivativeProgram, dict[str, str]]:
    """Build the program that computes the product of the Hessian and a vector.

    Returns:
        The program, whose derivatives are the components of the product; and the name of the seed
        for each component of the vector.
    """
    program = differentiate(primal, of, wrt, method="reverse")
    reads = program.passes[0].reads
    names = {derivative_name(of, read.wrt): program.tape.outputs[read.output] for read in reads}
    first = replace(program.tape, outputs=names)
    program = differentiate(first, of=tuple(names), wrt=wrt, method="forward")
    # Each pass would set a single seed; the product sets all seeds at run time, in a single pass.
    tangents = {read.of: read.output for read in program.passes[0].reads}
    components = tuple(Read(of, name, tangents[derivative_name(of, name)]) for name in wrt)
    product = replace(program, passes=(Pass(components),))
    return product, {name: choose_seed_name(first, name) for name in wrt}


def _copy_inner_variables(primal: Tape, names: tuple[str, ...], of: str) -> Tape:
    """Insert copies of inner variables, so that derivatives treat them as independent variables."""
    needed, builder = reachable(primal, [primal.index(of)]), Builder(simplify=False)
    copied = {i: name for name in names if (i := primal.index(name)) >= len(primal.leaves)}
    if unused := [name for i, name in copied.items() if not needed[i]]:
        raise UsageError(
            f"cannot compute second derivatives with respect to {unused[0]!r}: {of!r} does not"
            f" depend on {unused[0]!r}"
        )
    value = builder.extend(
        primal,
        then=lambda i, new: builder.emit("copy", new[i], pinned=True) if i in copied else new[i],
    )
    return builder.finish({name: value[index] for name, index in primal.outputs.items()})


def _build_gradient_tape(
    graph: ExpressionGraph, of: str, wrt: tuple[str, ...], method: str, mode: str
) -> tuple[Tape, dict[str, str]]:
    """Return a tape that computes the gradient, and the name of the output for each variable.

    Unless the method is ``reverse``, the tape of a graph with arrays is scalarized: it has an
    output for each element.
    """
    primal = _copy_inner_variables(tape(graph, mode), wrt, of)
    if shape := primal.shapes[primal.index(of)]:
        raise DifferentiationError(
            f"second derivatives require a scalar, but {of!r} has shape {list(shape)}",
            hint=f"define a scalar, such as xs = sum({of}), and pass of='xs'",
        )
    choices = [name for name in methods() if name != "finite-difference"]
    if method not in choices:
        raise UsageError(
            f"the inner method must compute the gradient in a single pass, got {method!r}",
            hint=f"choose one of {', '.join(choices)} as the inner method, as in"
            " forward-over-reverse",
        )
    inner = [name for name in wrt if name in graph.definitions]
    if inner and method == "symbolic":
        raise UsageError(
            f"cannot differentiate a symbolic formula with respect to {inner[0]!r}: formulas"
            " contain only inputs and parameters",
            hint="use a numeric inner method, as in forward-over-reverse",
        )
    options = {"carry": True} if method == "forward" else {}
    if primal.has_arrays and method != "reverse":
        from cgprimer.core.methods.elementwise import list_element_names
        from cgprimer.core.tape.scalarization import scalarize

        flat = list_element_names(wrt, select_array_shapes(primal, wrt))
        program = differentiate(scalarize(primal), of, flat, method=method, **options)
        names = {name: derivative_name(of, name) for name in wrt}
        where = {derivative_name(of, r.wrt): r.output for r in program.passes[0].reads}
    else:
        program = differentiate(primal, of, wrt, method=method, **options)
        names = {read.wrt: read.output for read in program.passes[0].reads}
        where = {name: name for name in names.values()}
    outputs = {name: program.tape.outputs[output] for name, output in where.items()}
    return replace(program.tape, outputs=outputs), names
