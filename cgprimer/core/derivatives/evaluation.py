"""From names and values to arrays, through a derivative program, and back."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from cgprimer.core.graph import ExpressionGraph, checked_graph
from cgprimer.core.methods import differentiate
from cgprimer.core.methods.contract import DerivativeProgram, Derivatives, Names, as_names
from cgprimer.core.primitives import generation
from cgprimer.core.run import Runner, engine_for
from cgprimer.core.tape.lowering import lower
from cgprimer.core.tape.passes import as_columns, reachable
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import UsageError, name_hint
from cgprimer.numbers_and_arrays import Value, common_shape

Made = TypeVar("Made")
_MOST_KEPT = 64  # programs and runners that are kept for one graph
_KEPT: WeakKeyDictionary[ExpressionGraph, dict[Hashable, Any]] = WeakKeyDictionary()


def kept(graph: ExpressionGraph, key: Hashable, make: Callable[[], Made]) -> Made:
    """What was made for a graph before, or made now: it goes when the graph goes."""
    entries = _KEPT.setdefault(graph, {})
    key = (generation(), key)
    if key not in entries:
        made = make()
        while len(entries) >= _MOST_KEPT:
            del entries[next(iter(entries))]  # the oldest
        entries[key] = made
    found: Made = entries[key]
    return found


def tape(graph: ExpressionGraph) -> Tape:
    """The tape of a graph; ``print`` shows it line by line.

    >>> from cgprimer.core.graph import parse
    >>> len(tape(parse("xw = ab*xa + 1")))
    2
    """
    return kept(checked_graph(graph), "tape", lambda: lower(graph))


def derivatives_at(
    graph: ExpressionGraph,
    at: Mapping[str, Value] | None = None,
    *,
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
    found = run(graph, at, program, engine)
    return Derivatives(
        found.values, {(t, n): found.derivatives[t, n] for t in targets for n in names}
    )


def run(
    graph: ExpressionGraph,
    at: Mapping[str, Value] | None,
    program: DerivativeProgram,
    engine: str,
    *,
    direction: Mapping[str, float] | None = None,
) -> Derivatives:
    """A program at a point of a graph; results in the samples' shape.

    ``direction`` gives values to seeds that the program's passes leave open.
    """
    leaves = program.tape.leaves
    needed = reachable(program.tape, program.tape.outputs.values())
    names = [
        leaf.name for leaf, n in zip(leaves, needed, strict=False) if n and leaf.kind != "constant"
    ]
    point = graph.point(at, needed=names)
    for name in (*graph.inputs, *graph.parameters):
        point.setdefault(name, 0.0)  # nothing that is asked for depends on these
    shape, columns, scalars, samples, moved = arguments(graph, point, program.tape)
    varying = tuple(name for name in graph.parameters if name in columns)
    chosen = engine_for(engine, program.work, samples, is_complex=program.is_complex, shape=shape)
    runner = kept(
        graph,
        ("runner", program, varying, chosen.name),
        lambda: Runner(replace(program, tape=moved), engine=chosen),
    )
    found = runner(columns, {**scalars, **(direction or {})}, samples)
    return Derivatives(
        {name: shaped(value, shape) for name, value in found.values.items()},
        {pair: shaped(value, shape) for pair, value in found.derivatives.items()},
    )


def arguments(
    graph: ExpressionGraph, point: Mapping[str, Value], program: Tape
) -> tuple[tuple[int, ...], dict[str, Any], dict[str, float], int, Tape]:
    """Columns of one length, scalars, and the tape with parameters that vary as columns."""
    shape = common_shape(point.values())
    varying = [name for name in graph.parameters if not isinstance(point[name], float)]
    columns = {name: point[name] for name in (*graph.inputs, *varying)}
    scalars = {name: point[name] for name in graph.parameters if name not in columns}
    samples = math.prod(shape)
    if shape:
        import numpy as np

        columns = {
            name: np.ascontiguousarray(np.broadcast_to(value, shape), float).reshape(-1)
            for name, value in columns.items()
        }
    return shape, columns, scalars, samples, as_columns(program, varying) if varying else program


def shaped(value: Any, shape: tuple[int, ...]) -> Value:
    """A column in the samples' shape; a float where the shape is ()."""
    if not shape:
        return float(value if isinstance(value, float | int) else value.reshape(()))
    return value.reshape(shape)


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
    known: Sequence[str] = (*graph.variables, *graph.parameters)
    if wrt is None:
        if not graph.parameters:
            raise UsageError(
                "the graph has no parameters", hint="name inputs or variables: wrt=... (--wrt NAME)"
            )
        return graph.parameters
    if not wrt and not (graph.parameters or graph.inputs):
        raise UsageError("there is nothing to differentiate by: no parameter and no input")
    names = as_names(wrt, "wrt")
    for name in names:
        if name not in known:
            raise UsageError(
                f"the graph has no variable or parameter {name!r}", hint=name_hint(name, known)
            )
    return names
