"""Derivatives of a graph at a point or at many: gradient, Jacobian, partials."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from cgprimer.core.graph import ExpressionGraph
from cgprimer.core.language.syntax import Shape, element_place
from cgprimer.core.methods import differentiate
from cgprimer.core.methods.contract import DerivativeProgram, Derivatives, Names, as_names
from cgprimer.core.primitives.registry import FUNCTIONS
from cgprimer.core.run import Runner, engine_for
from cgprimer.core.tape.lowering import lower
from cgprimer.core.tape.passes import as_columns
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import UsageError, name_hint
from cgprimer.numbers_and_arrays import Value, as_value, axes, common_shape

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


def tape(graph: ExpressionGraph, mode: str = "") -> Tape:
    """The tape of a graph; ``print`` shows it line by line.

    Args:
        graph: the graph.
        mode: how ``dropout`` and ``batchnorm`` are written out: ``training`` with masks that are
            columns and the statistics of the batch, ``batch`` with the latter alone, ``masks`` with
            the former alone, else as they are used after training.

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
    if mode not in ("", "batch", "masks", "training"):
        raise UsageError(f"there is no mode {mode!r}", hint="training, batch, masks, or none")
    mode = mode if graph.layered else ""
    return kept(graph, ("tape", mode), lambda: lower(graph, mode))


def statistics(graph: ExpressionGraph, point: Mapping[str, Value]) -> dict[str, Value]:
    """The running mean and variance of each ``batchnorm``; without training 0 and 1."""
    if not graph.layered:
        return {}
    from cgprimer.core.primitives.layers import statistics_of

    return statistics_of(tape(graph).leaves, point)


def element_in(graph: ExpressionGraph, name: str) -> tuple[str, tuple[int, ...]]:
    """The array and the place in it that a name is about; no place of names that the graph has."""
    whole = not isinstance(name, str) or "[" not in name or name in tape(graph).names
    return (name, ()) if whole else element_place(name)


def tape_with(graph: ExpressionGraph, names: Iterable[str], mode: str = "") -> Tape:
    """The tape of a graph, on which those of the names that are elements are values, too."""
    wanted = [name for name in names if "[" in name and element_in(graph, name)[1]]
    if not wanted:
        return tape(graph, mode)
    from cgprimer.core.tape.scalars import with_elements

    return with_elements(tape(graph, mode), wanted)


def mode_at(graph: ExpressionGraph, at: Point) -> str:
    """How layers are written out at a point."""
    return graph.mode(graph.point(at, needed=())) if graph.layered else ""


def graph_with_loss(graph: ExpressionGraph, loss: str | None, at: Point = None) -> ExpressionGraph:
    """A graph with a loss as one more vertex, called ``loss``: its only output.

    Args:
        graph: the graph.
        loss: a name, or an expression in ``out`` and ``target`` or in names of the graph and of
            inputs that the loss brings along; ``output`` and None leave the graph as it is.
        at: the point that is asked about; any new inputs unless given. It says what new inputs
            there are, and whether ``softmax-cross-entropy`` is given classes or probabilities.

    Returns:
        The graph. The target of its only output is the input ``target``; of several outputs each
        has its own, ``target_xw``. Of ``softmax-cross-entropy`` the target is the number of a
        class, from 0, unless the point has a probability for each. What the graph has a name for
        already gets a ``_``.

    Raises:
        UsageError, SourceError, ShapeError: the loss is none, or does not fit the graph.
        DataError: a target is none that the loss knows.

    >>> from cgprimer.core.graph import parse
    >>> graph = graph_with_loss(parse("xw = k*xa"), "squared-error")
    >>> print(graph)
    xw = k*xa
    input target
    loss = (xw - target)^2
    output loss
    >>> gradient(graph, {"k": 2, "xa": 3, "target": 5})
    {'k': 6.0}
    """
    if loss is None:
        return graph
    from cgprimer.core.loss_vertex import appended, check_point
    from cgprimer.core.losses import LOSSES, OUTPUT, base_name

    given, samples = None, 0
    if at is not None:
        own = {n: as_value(n, v) for n, v in at.items()}
        known = {n: own[n] for n in own.keys() & {*graph.inputs, *graph.parameters}}
        samples = len(common_shape(known, graph.shapes))
        new = {n: v for n, v in own.items() if n not in known}
        whole = {n: bool(graph.shapes) and axes(v) for n, v in new.items()}
        given = {n: tuple(v.shape[samples:]) if whole[n] else () for n, v in new.items()}
    said = LOSSES[name] if (name := base_name(loss)) in LOSSES else ""
    key = ("loss", loss, said, repr(given))  # a name may mean another text tomorrow
    primal = tape(graph)
    made, targets = kept(graph, key, lambda: appended(graph, primal, loss, given))
    check_point(loss, primal, targets, at or {})
    return graph if loss == OUTPUT else made


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
    """The gradient of a variable.

    Args:
        graph: the graph.
        at: values of inputs and parameters, numbers or arrays; declared values fill the rest.
        of: the variable to differentiate; the only output unless given.
        wrt: parameters, inputs or inner variables; by default all parameters, or all inputs of a
            graph without parameters. The derivative with respect to an inner variable treats it as
            if it could be moved by itself.
        loss: a loss to differentiate instead, as in :func:`graph_with_loss`; the point then has
            its targets, too.
        method: one of :func:`cgprimer.methods`.
        engine: one of :func:`cgprimer.engines`, or ``auto``.
        options: of the method, see :func:`cgprimer.differentiate`.

    Returns:
        For each name a float, or an array of the samples' shape. Unit: that of ``of`` divided by
        that of the name. Where a graph has ``batch_mean``, samples depend on each other: reverse
        mode gives what each adds to the derivative of the sum over them, forward mode and
        differences how each moves; the sums over the samples are the same.

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
    graph = graph_with_loss(graph, loss, at or {})
    found = derivatives_at(graph, at, chosen_output(graph, of), wrt, method, engine, **options)
    return {name: value for (_, name), value in found.derivatives.items()}


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
    """The derivatives of several variables: ``jacobian(graph, at)["xw"]["ab"]``.

    ``of`` is all outputs unless given; everything else is as in :func:`gradient`.

    >>> from cgprimer.core.graph import parse
    >>> jacobian(parse("xb = p*xa; xc = p^2"), {"p": 3, "xa": 2})
    {'xb': {'p': 2.0}, 'xc': {'p': 6.0}}
    """
    graph = graph_with_loss(graph, loss, at or {})
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
    names = chosen_names(graph, wrt)
    if of is None and not graph.outputs:
        raise UsageError("the graph has no output to differentiate")
    targets = tuple(chosen_output(graph, name) for name in as_names(of or graph.outputs, "of"))
    mode = mode_at(graph, at)
    key = ("first", targets, names, method, mode, repr(sorted(options.items())))
    whole = {name: element_in(graph, name)[0] if "[" in name else name for name in names}

    def made() -> DerivativeProgram:
        primal = tape_with(graph, (*targets, *names), mode)
        return differentiate(primal, targets, tuple(whole.values()), method=method, **options)

    program = kept(graph, key, made)
    found = at_point(graph, at, program, engine)
    pairs = {(t, n): found.derivatives[t, base] for t in targets for n, base in whole.items()}
    for target, name in [pair for pair in pairs if "[" in pair[1]]:
        if place := element_in(graph, name)[1]:
            rest = [slice(None)] * (len(program.shapes[whole[name]]) - len(place))
            part = pairs[target, name][(..., *place, *rest)]
            pairs[target, name] = part if part.ndim else float(part)
    return Derivatives(found.values, pairs)


def chosen_output(graph: ExpressionGraph, of: str | None) -> str:
    """The variable asked for, or an element of one such as ``h[0]``, or the only output."""
    if of is None:
        return graph.only_output()
    if element_in(graph, of)[0] not in graph.variables:
        raise UsageError(f"the graph has no variable {of!r}", hint=name_hint(of, graph.variables))
    return of


def chosen_names(graph: ExpressionGraph, wrt: Names | None) -> tuple[str, ...]:
    """Return the names in `wrt`, which may be elements such as ``W[0,1]``.

    By default they are all parameters, or all inputs of a graph without parameters.
    """
    if not wrt and not (graph.parameters or graph.inputs):
        raise UsageError("there is nothing to differentiate by: no parameter and no input")
    if wrt is None:
        return graph.parameters or graph.inputs
    names, known = as_names(wrt, "wrt"), dict.fromkeys((*graph.variables, *graph.parameters))
    for name in names:
        if element_in(graph, name)[0] not in known:
            hint = name_hint(name, known)
            raise UsageError(f"the graph has no variable or parameter {name!r}", hint=hint)
    return names


def at_point(
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
    shape = graph.samples(point)
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
    scalars |= statistics(graph, point) | dict(direction or {})
    found, sizes = runner(columns, scalars, samples), program.shapes
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
