"""Derivatives of a graph at a point or at many: gradient, Jacobian, Hessian, partials."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from cgprimer.core.graph import ExpressionGraph, checked_graph
from cgprimer.core.language.syntax import Shape
from cgprimer.core.methods import differentiate, methods
from cgprimer.core.methods.contract import (
    DerivativeProgram,
    Derivatives,
    Names,
    Pass,
    Read,
    as_names,
    shapes_of,
)
from cgprimer.core.methods.forward import seed_name
from cgprimer.core.methods.one_pass import derivative_name
from cgprimer.core.primitives.registry import FUNCTIONS
from cgprimer.core.run import Runner, engine_for
from cgprimer.core.tape.lowering import lower
from cgprimer.core.tape.passes import as_columns
from cgprimer.core.tape.tape import Tape, shape_of
from cgprimer.errors import DifferentiationError, UsageError, name_hint
from cgprimer.numbers_and_arrays import Value, as_value, common_shape

Made = TypeVar("Made")
Point = Mapping[str, Value] | None
_MOST_KEPT = 64  # programs and runners that are kept for one graph
_KEPT: WeakKeyDictionary[ExpressionGraph, dict[Hashable, Any]] = WeakKeyDictionary()


def kept(graph: ExpressionGraph, key: Hashable, make: Callable[[], Made]) -> Made:
    """What was made for a graph before, or made now: it goes when the graph goes."""
    entries, key = _KEPT.setdefault(graph, {}), (FUNCTIONS.generation, key)
    if key not in entries:
        entries[key] = make()
        if len(entries) > _MOST_KEPT:
            del entries[next(iter(entries))]  # the oldest
    found: Made = entries[key]
    return found


def tape(graph: ExpressionGraph) -> Tape:
    """The tape of a graph; ``print`` shows it line by line.

    >>> from cgprimer.core.graph import parse
    >>> len(tape(parse("xw = ab*xa + 1")))
    2
    """
    return kept(checked_graph(graph), "tape", lambda: lower(graph))


# --- first derivatives ---------------------------------------------------------------------------


def gradient(
    graph: ExpressionGraph,
    at: Mapping[str, Value] | None = None,
    *,
    of: str | None = None,
    wrt: Names | None = None,
    method: str = "reverse",
    engine: str = "auto",
    **options: Any,
) -> dict[str, Value]:
    """The gradient of a variable.

    Args:
        graph: the graph.
        at: values of inputs and parameters, numbers or arrays; declared values fill the rest.
        of: the variable to differentiate; the only output unless given.
        wrt: parameters, inputs or inner variables; all parameters unless given. The derivative
            with respect to an inner variable treats it as if it could be moved by itself.
        method: one of :func:`cgprimer.methods`.
        engine: one of :func:`cgprimer.engines`, or ``auto``.
        options: of the method, see :func:`cgprimer.differentiate`.

    Returns:
        For each name a float, or an array of the samples' shape. Unit: that of ``of`` divided by
        that of the name.

    Raises:
        UsageError: an unknown name, method, engine or option.
        MissingValueError: a name that the output needs has no value.
        DifferentiationError: the method cannot do it.

    >>> from cgprimer.core.graph import parse
    >>> graph = parse("xx=xa^2; xy=ab*xx+ac*xa; xz=bc*xx+xy; xw=cd*xx+xz^3")
    >>> at = {"xa": 0.5, "ab": 1, "bc": 2, "cd": 3, "ac": 4}
    >>> gradient(graph, at)
    {'ab': 5.671875, 'ac': 11.34375, 'bc': 5.671875, 'cd': 0.25}
    >>> gradient(graph, at, wrt="xa", method="forward")
    {'xa': 161.8125}
    """
    found = derivatives_at(graph, at, chosen_output(graph, of), wrt, method, engine, **options)
    return {name: value for (_, name), value in found.derivatives.items()}


def jacobian(
    graph: ExpressionGraph,
    at: Mapping[str, Value] | None = None,
    *,
    of: Names | None = None,
    wrt: Names | None = None,
    method: str = "reverse",
    engine: str = "auto",
    **options: Any,
) -> dict[str, dict[str, Value]]:
    """The derivatives of several variables: ``jacobian(graph, at)["xw"]["ab"]``.

    ``of`` is all outputs unless given; everything else is as in :func:`gradient`.

    >>> from cgprimer.core.graph import parse
    >>> jacobian(parse("xb = p*xa; xc = p^2"), {"p": 3, "xa": 2})
    {'xb': {'p': 2.0}, 'xc': {'p': 6.0}}
    """
    found = derivatives_at(graph, at, of, wrt, method, engine, **options)
    rows: dict[str, dict[str, Value]] = {name: {} for name in found.values}
    for (target, name), value in found.derivatives.items():
        rows[target][name] = value
    return rows


def derivatives_at(
    graph: ExpressionGraph,
    at: Point = None,
    of: Names | None = None,
    wrt: Names | None = None,
    method: str = "reverse",
    engine: str = "auto",
    **options: Any,
) -> Derivatives:
    """Values and derivatives together; arguments and errors are those of :func:`jacobian`."""
    checked_graph(graph)
    names = chosen_names(graph, wrt)
    if of is None and not graph.outputs:
        raise UsageError("the graph has no output to differentiate")
    targets = tuple(chosen_output(graph, name) for name in as_names(of or graph.outputs, "of"))
    key = ("first", targets, names, method, repr(sorted(options.items())))
    program = kept(
        graph, key, lambda: differentiate(tape(graph), targets, names, method=method, **options)
    )
    found = _run(graph, at, program, engine)
    pairs = {(t, n): found.derivatives[t, n] for t in targets for n in names}
    return Derivatives(found.values, pairs)


def chosen_output(graph: ExpressionGraph, of: str | None) -> str:
    """The variable asked for, or the only output."""
    checked_graph(graph)
    if of is None:
        return graph.only_output()
    if of not in graph.variables:
        raise UsageError(f"the graph has no variable {of!r}", hint=name_hint(of, graph.variables))
    return of


def chosen_names(graph: ExpressionGraph, wrt: Names | None) -> tuple[str, ...]:
    """The names asked for, or all parameters."""
    if wrt is None:
        if not graph.parameters:
            raise UsageError(
                "the graph has no parameters", hint="name inputs or variables: wrt=... (--wrt NAME)"
            )
        return graph.parameters
    if not wrt and not (graph.parameters or graph.inputs):
        raise UsageError("there is nothing to differentiate by: no parameter and no input")
    names, known = as_names(wrt, "wrt"), (*graph.variables, *graph.parameters)
    for name in names:
        if name not in known:
            raise UsageError(
                f"the graph has no variable or parameter {name!r}", hint=name_hint(name, known)
            )
    return names


def _run(
    graph: ExpressionGraph,
    at: Point,
    program: DerivativeProgram,
    engine: str,
    direction: Mapping[str, Value] | None = None,
) -> Derivatives:
    """A program at a point of a graph: from names and values to columns and scalars, and back.

    ``direction`` gives values to seeds that the program's passes leave open.
    """
    point, own = graph.point(at, needed=program.needed), graph.shapes
    for name in (*graph.inputs, *graph.parameters):
        if name not in point:  # nothing that is asked for depends on it
            point[name] = as_value(name, 0.0, own.get(name, ()))
    shape = common_shape(point, own)
    given = [n for n in graph.parameters if type(point[n]) is not float]
    varying = tuple(n for n in given if point[n].ndim > len(own.get(n, ())))
    columns = {name: point[name] for name in (*graph.inputs, *varying)}
    scalars = {name: point[name] for name in graph.parameters if name not in columns}
    samples = math.prod(shape)
    if shape:
        import numpy as np

        for name, value in columns.items():
            whole = np.broadcast_to(value, shape + own.get(name, ()))
            columns[name] = np.ascontiguousarray(whole, float).reshape(-1, *own.get(name, ()))
    chosen = engine_for(engine, program, samples, shape)

    def make() -> Runner:
        moved = as_columns(program.tape, varying) if varying else program.tape
        return Runner(replace(program, tape=moved), engine=chosen)

    runner = kept(graph, ("runner", program, varying, chosen.name), make)

    found, sizes = runner(columns, {**scalars, **(direction or {})}, samples), program.shapes
    return Derivatives(
        {n: shaped(v, shape, sizes.get(n, ())) for n, v in found.values.items()},
        {
            (o, w): shaped(v, shape, sizes.get(o, ()) + sizes.get(w, ()))
            for (o, w), v in found.derivatives.items()
        },
    )


def shaped(value: Any, samples: Shape, own: Shape = ()) -> Value:
    """A column in the samples' shape, its own axes behind; a float where there are none."""
    if not samples and not own:
        return float(value if isinstance(value, float | int) else value.reshape(()))
    return value.reshape(samples + own)


# --- second derivatives: the gradient's tape, differentiated once more ---------------------------


def hessian(
    graph: ExpressionGraph,
    at: Mapping[str, Value] | None = None,
    *,
    of: str | None = None,
    wrt: Names | None = None,
    method: str = "forward-over-reverse",
    engine: str = "auto",
    **options: Any,
) -> dict[str, dict[str, Value]]:
    """All second derivatives: ``hessian(graph, at)["ab"]["cd"]``.

    The gradient's tape is differentiated once more; no method has a rule for second derivatives.

    Args:
        graph, at, of, engine: as in :func:`gradient`.
        wrt: parameters, inputs or inner variables; all parameters unless given.
        method: ``OUTER-over-INNER`` with two of the methods, or one name for both. The inner one
            must give the gradient in one run, so finite differences can only be the outer one.
        options: of the outer method.

    Raises:
        UsageError: as for :func:`gradient`, and an inner method that needs several runs.

    >>> from cgprimer.core.graph import parse
    >>> hessian(parse("xw = xa^3*k"), {"xa": 2, "k": 5}, wrt=["xa", "k"])
    {'xa': {'xa': 60.0, 'k': 12.0}, 'k': {'xa': 12.0, 'k': 0.0}}
    """
    names, target = chosen_names(graph, wrt), chosen_output(graph, of)
    outer, _, inner = str(method).partition("-over-")

    def make() -> tuple[DerivativeProgram, dict[str, str]]:
        first, outputs = _gradient_tape(graph, target, names, inner or outer)
        of_all = tuple(outputs.values())
        if not tape(graph).shapes or first.shapes:
            return differentiate(first, of_all, names, method=outer, **options), outputs
        from cgprimer.core.methods.elementwise import each, put_together

        shapes = shapes_of(tape(graph), names)
        shapes |= {outputs[name]: shape for name, shape in shapes.items()}
        flat = each(of_all, shapes), each(names, shapes)
        made = differentiate(first, *flat, method=outer, **options)
        return put_together(made, tape(graph), of_all, names, shapes), outputs

    key = ("second", target, names, method, repr(sorted(options.items())))
    program, outputs = kept(graph, key, make)
    found = _run(graph, at, program, engine).derivatives
    return {a: {b: found[outputs[a], b] for b in names} for a in names}


def hessian_vector_product(
    graph: ExpressionGraph,
    at: Mapping[str, Value] | None = None,
    vector: Mapping[str, Value] | None = None,
    *,
    of: str | None = None,
    engine: str = "auto",
) -> dict[str, Value]:
    """The Hessian times a vector, in one pass and without the Hessian (forward over reverse).

    Args:
        graph, at, of, engine: as in :func:`gradient`.
        vector: for each name that belongs to the vector a number, or an array of its shape.

    Returns:
        The product's component for each name of the vector.

    Source: Pearlmutter 1994, "Fast exact multiplication by the Hessian".

    >>> from cgprimer.core.graph import parse
    >>> hessian_vector_product(parse("xw = xa^3*k"), {"xa": 2, "k": 5}, {"xa": 1, "k": 10})
    {'xa': 180.0, 'k': 12.0}
    """
    if not isinstance(vector, Mapping) or not vector:
        raise UsageError("a vector is needed: a number for each name", hint="vector={'ab': 1.0}")
    names, target = chosen_names(graph, tuple(vector)), chosen_output(graph, of)

    def make() -> tuple[DerivativeProgram, dict[str, str]]:
        first, outputs = _gradient_tape(graph, target, names, "reverse")
        program = differentiate(first, of=tuple(outputs.values()), wrt=names, method="forward")
        # The passes seed one number each; the product leaves all seeds open and takes one pass.
        tangents = {read.of: read.output for read in program.passes[0].reads}
        reads = tuple(Read(target, name, tangents[outputs[name]]) for name in names)
        made = replace(program, passes=(Pass(reads),), by_column=False)
        return made, {name: seed_name(first, name) for name in names}

    program, seeds = kept(graph, ("product", target, names), make)
    direction = {seeds[n]: as_value(n, vector[n], graph.shapes.get(n, ())) for n in names}
    found = _run(graph, at, program, engine, direction).derivatives
    return {name: value for (_, name), value in found.items()}


def _gradient_tape(
    graph: ExpressionGraph, of: str, wrt: tuple[str, ...], method: str
) -> tuple[Tape, dict[str, str]]:
    """A tape whose outputs are the gradient, and what they are called.

    Of arrays it is a tape in numbers, with outputs for their elements, unless the method is
    ``reverse``.
    """
    primal = tape(graph)
    if shape := shape_of(primal, primal.index(of)):
        raise DifferentiationError(
            f"second derivatives are those of a number, and {of!r} has the shape {list(shape)}",
            hint=f"define a number, such as xs = sum({of}), and ask for of='xs'",
        )
    choices = [name for name in methods() if name != "finite-difference"]
    if method not in choices:
        raise UsageError(
            f"{method!r} cannot be the inner method: it does not give the gradient in one run",
            hint=f"OUTER-over-INNER, the inner one of: {', '.join(choices)}",
        )
    inner = [name for name in wrt if name in graph.definitions]
    if inner and method == "symbolic":
        raise UsageError(
            f"symbolic formulas are written in inputs and parameters, so {inner[0]!r} cannot be"
            " moved in them a second time",
            hint="take another inner method: forward-over-reverse",
        )
    options = {"carry": True} if method == "forward" else {}
    if primal.shapes and method != "reverse":
        from cgprimer.core.methods.elementwise import each
        from cgprimer.core.tape.scalars import scalarize

        flat = each(wrt, shapes_of(primal, wrt))
        program = differentiate(scalarize(primal), of, flat, method=method, **options)
        names = {name: derivative_name(of, name) for name in wrt}
        where = {derivative_name(of, r.wrt): r.output for r in program.passes[0].reads}
    else:
        program = differentiate(primal, of, wrt, method=method, **options)
        names = {read.wrt: read.output for read in program.passes[0].reads}
        where = {name: name for name in names.values()}
    outputs = {name: program.tape.outputs[output] for name, output in where.items()}
    return replace(program.tape, outputs=outputs), names


# --- partial derivatives -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Partials:
    """The partial derivatives on the edges of the graph, operands independent of each other.

    Attributes:
        variable_to_variable: ``(head, tail)`` to the partial of one variable with respect to
            another that stands in its expression.
        variable_to_parameter: ``(variable, parameter)`` to the partial.
    """

    variable_to_variable: dict[tuple[str, str], Value]
    variable_to_parameter: dict[tuple[str, str], Value]


def partials(graph: ExpressionGraph, at: Point = None, *, engine: str = "auto") -> Partials:
    """The partial derivative on every edge.

    >>> from cgprimer.core.graph import parse
    >>> graph = parse("xx=xa^2; xz=bc*xx+xa")
    >>> edges = partials(graph, {"xa": 0.5, "bc": 2})
    >>> edges.variable_to_variable[("xz", "xx")], edges.variable_to_parameter[("xz", "bc")]
    (2.0, 0.25)
    """
    point = checked_graph(graph).point(at)
    program = kept(graph, "partials", lambda: _partials_program(graph))
    found = _run(graph, point, program, engine).derivatives
    shape = common_shape(point, graph.shapes)
    zero: Value = 0.0  # of an edge whose partial is zero everywhere, and has no instruction
    if shape:
        import numpy as np

        zero = np.zeros(shape)

    def on_edges(tails: Mapping[str, Sequence[str]]) -> dict[tuple[str, str], Value]:
        pairs = [(head, tail) for head in graph.definitions for tail in tails.get(head, ())]
        return {pair: found.get(pair, zero) for pair in pairs}

    return Partials(on_edges(graph.depends_on), on_edges(graph.parameters_of))


def _partials_program(graph: ExpressionGraph) -> DerivativeProgram:
    """A program of one pass that reads off all partials."""
    from cgprimer.core.methods.edges import edge_tape  # a gradient does without

    primal = tape(graph)
    made, label = edge_tape(primal), primal.labels
    outputs = {f"{label[h]}/{label[t]}": index for (t, h), index in made.partials.items()}
    reads = tuple(Read(label[h], label[t], f"{label[h]}/{label[t]}") for t, h in made.partials)
    return DerivativeProgram(
        "partials", replace(made.tape, outputs=outputs, shares=()), (), (), (Pass(reads),)
    )
