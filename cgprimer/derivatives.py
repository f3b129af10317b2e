"""Derivatives of a graph at a point or at many: gradient, Jacobian, Hessian, partials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from cgprimer.differentiators import differentiate, methods
from cgprimer.differentiators.contract import DerivativeProgram, Names, Pass, Read, as_names
from cgprimer.differentiators.forward import seed_name
from cgprimer.differentiators.path_sum import edge_partials
from cgprimer.errors import UsageError, did_you_mean
from cgprimer.execution.contract import select
from cgprimer.execution.run import Derivatives, Runner
from cgprimer.graph import ExpressionGraph
from cgprimer.tapes.builder import Builder
from cgprimer.tapes.check import checked
from cgprimer.tapes.lower import lower
from cgprimer.tapes.passes import as_columns, reachable
from cgprimer.tapes.tape import Tape

Value = Any  # a float or an ndarray of samples


@lru_cache(maxsize=64)
def tape(graph: ExpressionGraph) -> Tape:
    """The tape of a graph; ``print`` shows it line by line.

    >>> from cgprimer.graph import parse
    >>> len(tape(parse("xw = ab*xa + 1")))
    2
    """
    return lower(graph)


def gradient(
    graph: ExpressionGraph,
    at: Mapping[str, Value] | None = None,
    *,
    of: str | None = None,
    wrt: Names | None = None,
    method: str = "reverse",
    engine: str = "numpy",
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

    >>> from cgprimer.graph import parse
    >>> graph = parse("xx=xa^2; xy=ab*xx+ac*xa; xz=bc*xx+xy; xw=cd*xx+xz^3")
    >>> at = {"xa": 0.5, "ab": 1, "bc": 2, "cd": 3, "ac": 4}
    >>> gradient(graph, at)
    {'ab': 5.671875, 'ac': 11.34375, 'bc': 5.671875, 'cd': 0.25}
    >>> gradient(graph, at, wrt="xa", method="forward")
    {'xa': 161.8125}
    """
    target = _of(graph, of)
    found = evaluate_derivatives(
        graph, at, of=target, wrt=wrt, method=method, engine=engine, **options
    )
    return {name: value for (_, name), value in found.derivatives.items()}


def jacobian(
    graph: ExpressionGraph,
    at: Mapping[str, Value] | None = None,
    *,
    of: Names | None = None,
    wrt: Names | None = None,
    method: str = "reverse",
    engine: str = "numpy",
    **options: Any,
) -> dict[str, dict[str, Value]]:
    """The derivatives of several variables: ``jacobian(graph, at)["xw"]["ab"]``.

    ``of`` is all outputs unless given; everything else is as in :func:`gradient`.

    >>> from cgprimer.graph import parse
    >>> jacobian(parse("xb = p*xa; xc = p^2"), {"p": 3, "xa": 2})
    {'xb': {'p': 2.0}, 'xc': {'p': 6.0}}
    """
    found = evaluate_derivatives(graph, at, of=of, wrt=wrt, method=method, engine=engine, **options)
    rows: dict[str, dict[str, Value]] = {name: {} for name in found.values}
    for (target, name), value in found.derivatives.items():
        rows[target][name] = value
    return rows


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Values and derivatives at a point, or at many.

    Attributes:
        values: of each differentiated variable.
        derivatives: ``(of, wrt)`` to the derivative, in the order asked for.
        complaint: where the first infinity or nan came from; empty if all is finite.
    """

    values: dict[str, Value]
    derivatives: dict[tuple[str, str], Value]
    complaint: str = ""


def evaluate_derivatives(
    graph: ExpressionGraph,
    at: Mapping[str, Value] | None = None,
    *,
    of: Names | None = None,
    wrt: Names | None = None,
    method: str = "reverse",
    engine: str = "numpy",
    **options: Any,
) -> Evaluation:
    """Values and derivatives together, and where a non-finite one came from.

    Arguments and errors are those of :func:`jacobian`.

    >>> from cgprimer.graph import parse
    >>> evaluate_derivatives(parse("xb = log(xa); xc = p*xb"), {"xa": -1.0, "p": 2.0}).complaint
    'xb = log(xa) is nan'
    """
    names = _wrt(graph, wrt)
    targets = tuple(_of(graph, name) for name in as_names(of or graph.outputs, "of"))
    program = _program(graph, targets, names, method, tuple(sorted(options.items())))
    found = _run(graph, at, program, engine)
    ordered = {(t, n): found.derivatives[t, n] for t in targets for n in names}
    complaint = ""
    if not all(np.isfinite(v).all() for v in (*found.values.values(), *ordered.values())):
        complaint = _complaint(graph, at, ordered)
    return Evaluation(found.values, ordered, complaint)


def _complaint(
    graph: ExpressionGraph, at: Mapping[str, Value] | None, found: Mapping[tuple[str, str], Value]
) -> str:
    """The first vertex in topological order that is not finite, else the first derivative."""
    point = graph.point(at, needed=())
    for name in (*graph.inputs, *graph.parameters):
        point.setdefault(name, 0.0)
    values = graph.evaluate(point)
    for name, value in (*point.items(), *((n, values[n]) for n in graph.definitions)):
        bad = np.flatnonzero(~np.isfinite(value))
        if bad.size:
            first = np.reshape(value, -1)[bad[0]]
            text = f" = {graph.expression(name)}" if name in graph.definitions else ""
            return f"{name}{text} is {first}" + (f" at sample {bad[0]}" if np.ndim(value) else "")
    for (target, name), value in found.items():
        bad = np.flatnonzero(~np.isfinite(value))
        if bad.size:
            first = np.reshape(value, -1)[bad[0]]
            return f"d {target} / d {name} is {first}, though every value is finite"
    return ""


def hessian(
    graph: ExpressionGraph,
    at: Mapping[str, Value] | None = None,
    *,
    of: str | None = None,
    wrt: Names | None = None,
    method: str = "forward-over-reverse",
    engine: str = "numpy",
) -> dict[str, dict[str, Value]]:
    """All second derivatives: ``hessian(graph, at)["ab"]["cd"]``.

    The gradient's tape is differentiated once more; no method has a rule for second derivatives.

    Args:
        graph, at, of, engine: as in :func:`gradient`.
        wrt: parameters or inputs; all parameters unless given.
        method: ``OUTER-over-INNER`` with two of the methods, or one name for both. The inner one
            must give the gradient in one run, so finite differences can only be the outer one.

    Raises:
        UsageError: besides those of :func:`gradient`, an inner variable in ``wrt``.

    >>> from cgprimer.graph import parse
    >>> hessian(parse("xw = xa^3*k"), {"xa": 2, "k": 5}, wrt=["xa", "k"])
    {'xa': {'xa': 60.0, 'k': 12.0}, 'k': {'xa': 12.0, 'k': 0.0}}
    """
    names = _wrt(graph, wrt)
    target = _of(graph, of)
    outer, _, inner = method.partition("-over-")
    first, outputs = _gradient_tape(graph, target, names, inner or outer)
    program = differentiate(first, of=tuple(outputs.values()), wrt=names, method=outer)
    found = _run(graph, at, program, engine)
    return {a: {b: found.derivatives[outputs[a], b] for b in names} for a in names}


def hessian_vector_product(
    graph: ExpressionGraph,
    at: Mapping[str, Value] | None = None,
    vector: Mapping[str, float] | None = None,
    *,
    of: str | None = None,
    engine: str = "numpy",
) -> dict[str, Value]:
    """The Hessian times a vector, in one pass and without the Hessian (forward over reverse).

    Args:
        graph, at, of, engine: as in :func:`gradient`.
        vector: a number for each parameter or input that belongs to the vector.

    Returns:
        The product's component for each name of the vector.

    Source: Pearlmutter 1994, "Fast exact multiplication by the Hessian".

    >>> from cgprimer.graph import parse
    >>> hessian_vector_product(parse("xw = xa^3*k"), {"xa": 2, "k": 5}, {"xa": 1, "k": 10})
    {'xa': 180.0, 'k': 12.0}
    """
    if not vector:
        raise UsageError("a vector is needed: a number for each name", hint="vector={'ab': 1.0}")
    names = _wrt(graph, tuple(vector))
    target = _of(graph, of)
    first, outputs = _gradient_tape(graph, target, names, "reverse")
    program = differentiate(first, of=tuple(outputs.values()), wrt=names, method="forward")
    direction = {seed_name(first, name): float(vector[name]) for name in names}
    reads = tuple(Read(outputs[name], name, f"dot.{outputs[name]}") for name in names)
    one_pass = DerivativeProgram(
        "forward", program.tape, program.of, program.wrt, (Pass(reads, seeds=direction),)
    )
    found = _run(graph, at, one_pass, engine)
    return {name: found.derivatives[outputs[name], name] for name in names}


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


def partials(
    graph: ExpressionGraph, at: Mapping[str, Value] | None = None, *, engine: str = "numpy"
) -> Partials:
    """The partial derivative on every edge.

    >>> from cgprimer.graph import parse
    >>> graph = parse("xx=xa^2; xz=bc*xx+xa")
    >>> edges = partials(graph, {"xa": 0.5, "bc": 2})
    >>> edges.variable_to_variable[("xz", "xx")], edges.variable_to_parameter[("xz", "bc")]
    (2.0, 0.25)
    """
    primal = tape(graph)
    builder = Builder()
    value = builder.extend(primal)
    edges = edge_partials(builder, primal, value, [True] * primal.size)
    label = primal.labels
    pairs = {f"{label[h]}/{label[t]}": (label[h], label[t]) for t, h in edges}
    outputs = {f"{label[h]}/{label[t]}": index for (t, h), index in edges.items()}
    program = checked(builder.finish(outputs))
    point = graph.point(at)
    shape, columns, scalars, samples, program = _arguments(graph, point, program)
    execute = select(engine).compile(program, reduction="none", dtype="float64")
    found = execute(columns, scalars, samples)
    parameters = set(graph.parameters)
    both: tuple[dict[tuple[str, str], Value], dict[tuple[str, str], Value]] = ({}, {})
    order = {name: i for i, name in enumerate((*graph.variables, *graph.parameters))}
    for key, pair in sorted(pairs.items(), key=lambda item: (order[item[1][0]], order[item[1][1]])):
        both[pair[1] in parameters][pair] = _shaped(found[key], shape)
    return Partials(*both)


# --- from names and values to arrays -----------------------------------------------------------


@lru_cache(maxsize=256)
def _program(
    graph: ExpressionGraph, of: tuple[str, ...], wrt: tuple[str, ...], method: str, options: Any
) -> DerivativeProgram:
    return differentiate(tape(graph), of, wrt, method=method, **dict(options))


@lru_cache(maxsize=256)
def _runner(program: DerivativeProgram, engine: str) -> Runner:
    return Runner(program, engine=engine)


def _run(
    graph: ExpressionGraph, at: Mapping[str, Value] | None, program: DerivativeProgram, engine: str
) -> Derivatives:
    leaves = program.tape.leaves
    needed = reachable(program.tape, program.tape.outputs.values())
    names = [
        leaf.name for leaf, n in zip(leaves, needed, strict=False) if n and leaf.kind != "constant"
    ]
    point = graph.point(at, needed=names)
    for name in (*graph.inputs, *graph.parameters):
        point.setdefault(name, 0.0)  # nothing that is asked for depends on these
    shape, columns, scalars, samples, moved = _arguments(graph, point, program.tape)
    if moved is program.tape:
        runner = _runner(program, engine)
    else:
        runner = Runner(replace(program, tape=moved), engine=engine)
    found = runner(columns, scalars, samples)
    return Derivatives(
        {name: _shaped(value, shape) for name, value in found.values.items()},
        {pair: _shaped(value, shape) for pair, value in found.derivatives.items()},
    )


def point_values(
    graph: ExpressionGraph, at: Mapping[str, float] | None = None, *, of: str | None = None
) -> dict[str, float]:
    """A number for every input and parameter; zero for those that nothing asked for needs.

    Args:
        graph: the graph.
        at: values, as in :func:`gradient`, but numbers only.
        of: the variable that is asked for; all variables unless given.

    Raises:
        MissingValueError: a needed value is missing.
        UsageError: a value is an array.
    """
    primal = tape(graph)
    needed = reachable(primal, [primal.index(of)] if of else range(primal.size))
    point = graph.point(
        at, needed=[leaf.name for leaf, n in zip(primal.leaves, needed, strict=False) if n]
    )
    arrays = [name for name, value in point.items() if np.ndim(value)]
    if arrays:
        raise UsageError(f"this needs numbers, and {arrays[0]!r} has an array")
    return {name: float(point.get(name, 0.0)) for name in (*graph.inputs, *graph.parameters)}


def _arguments(
    graph: ExpressionGraph, point: Mapping[str, Value], program: Tape
) -> tuple[tuple[int, ...], dict[str, Any], dict[str, float], int, Tape]:
    """Columns of one length, scalars, and the tape with parameters that vary as columns."""
    shape = np.broadcast_shapes(*(np.shape(v) for v in point.values()))
    samples = int(np.prod(shape, dtype=int))
    varying = [name for name in graph.parameters if np.ndim(point[name])]
    columns = {
        name: np.ascontiguousarray(np.broadcast_to(np.asarray(point[name], float), shape)).reshape(
            -1
        )
        for name in (*graph.inputs, *varying)
    }
    scalars = {name: float(point[name]) for name in graph.parameters if name not in columns}
    return shape, columns, scalars, samples, as_columns(program, varying) if varying else program


def _shaped(value: Any, shape: tuple[int, ...]) -> Value:
    array = np.asarray(value).reshape(shape)
    return array if shape else float(array)


def _gradient_tape(
    graph: ExpressionGraph, of: str, wrt: tuple[str, ...], method: str
) -> tuple[Tape, dict[str, str]]:
    """A tape whose outputs are the gradient, and what they are called."""
    if method not in methods() or method == "finite-difference":
        choices = [m for m in methods() if m != "finite-difference"]
        raise UsageError(
            f"{method!r} cannot be the inner method: it does not give the gradient in one run",
            hint=f"OUTER-over-INNER, the inner one of: {', '.join(choices)}",
        )
    inner = [name for name in wrt if name in graph.definitions]
    if inner:
        raise UsageError(
            f"second derivatives are with respect to inputs and parameters, not {inner[0]!r}"
        )
    options = {"carry": True} if method == "forward" else {}
    program = differentiate(tape(graph), of, wrt, method=method, **options)
    outputs = {read.wrt: read.output for read in program.passes[0].reads}
    return replace(
        program.tape, outputs={o: program.tape.outputs[o] for o in outputs.values()}
    ), outputs


def _of(graph: ExpressionGraph, of: str | None) -> str:
    if of is None:
        return graph.only_output()
    if of not in graph.variables:
        raise UsageError(
            f"the graph has no variable {of!r}", hint=did_you_mean(of, graph.variables)
        )
    return of


def _wrt(graph: ExpressionGraph, wrt: Names | None) -> tuple[str, ...]:
    known: Sequence[str] = (*graph.variables, *graph.parameters)
    if wrt is None:
        if not graph.parameters:
            raise UsageError(
                "the graph has no parameters", hint="name inputs or variables: wrt=... (--wrt NAME)"
            )
        return graph.parameters
    names = as_names(wrt, "wrt")
    for name in names:
        if name not in known:
            raise UsageError(
                f"the graph has no variable or parameter {name!r}", hint=did_you_mean(name, known)
            )
    return names
