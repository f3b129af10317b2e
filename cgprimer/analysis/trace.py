"""Evaluation traces as in a textbook: a line per step, its value, and its tangent or adjoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from cgprimer.analysis.latex import latex, latex_name
from cgprimer.analysis.method_steps import MethodSteps, method_steps
from cgprimer.analysis.scalar_points import point_values
from cgprimer.analysis.text_tables import table
from cgprimer.core.derivatives import (
    Point,
    layer_mode_at,
    resolve_output,
    resolve_wrt,
    running_statistics,
    tape_with_elements,
)
from cgprimer.core.evaluation.runner import Runner
from cgprimer.core.loss_attachment import check_point, graph_with_loss
from cgprimer.core.operations.array_shapes import format_shape
from cgprimer.core.operations.layer_expansions import is_statistic
from cgprimer.core.tape.tape_printing import build_expression_trees
from cgprimer.errors import UsageError, pluralize
from cgprimer.expressions import (
    Expression,
    ExpressionGraph,
    Name,
    Number,
    Shape,
    parse_element,
    unparse,
)
from cgprimer.support.array_values import Value
from cgprimer.support.number_format import format_array, format_latex_array
from cgprimer.support.value_names import element_hint, format_name, internal_name, is_internal
from cgprimer.tapes import Tape, differentiate, elements, labels, reachable, values_of

LEVELS = ("operations", "variables")


@dataclass(frozen=True, slots=True)
class TraceRow:
    """One step.

    Attributes:
        name: of the value; ``v1``, ``v2``, ... where the text gives none.
        expression: how it is computed; ``input`` or ``parameter`` for what is given.
        value: the primal.
        derivative: the tangent (derivative of this value along the seed) or the adjoint
            (derivative of the output with respect to this value); both are arrays of the value's
            shape. None in the backward part, where the value is an adjoint.
        tree: the expression's syntax tree; None for what is given.
    """

    name: str
    expression: str
    value: Value
    derivative: Value | None
    tree: Expression | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """A whole evaluation.

    Attributes:
        method: the differentiator.
        kind: ``tangent`` or ``adjoint``.
        of: the variable whose derivative the adjoints are; the last row's, for tangents.
        wrt: the variable with respect to which the tangents are; empty for adjoints.
        rows: the steps in execution order. Adjoints are computed from the last row to the first.
        backward: where values are arrays, the steps of reverse mode's backward sweep in its order.
        samples: of a batch how many there are, else 0. The values of a batch have an axis of
            samples, where samples differ; adjoints are those of the sum of ``of`` over them, and
            what all of them share has one adjoint.
        steps: what the method does instead of propagating tangents or adjoints, for finite
            differences, symbolic differentiation and path-sum; None for the other methods.
    """

    method: str
    kind: str
    of: str
    wrt: str
    rows: tuple[TraceRow, ...]
    backward: tuple[TraceRow, ...] = ()
    samples: int = 0
    steps: MethodSteps | None = None

    def row(self, name: str) -> TraceRow:
        """The row of a name.

        Raises:
            UsageError: there is none.
        """
        rows = {row.name: row for row in self.rows}
        if str(name) not in rows:
            raise UsageError(f"the trace has no row {name!r}", hint=element_hint(name, rows))
        return rows[name]

    def __repr__(self) -> str:
        return (
            f"<Trace {self.method}: {self.of}, {pluralize(len(self.rows), 'row')} of {self.kind}s>"
        )

    @property
    def heading(self) -> str:
        """What the derivative column holds, as a title."""
        if self.kind == "tangent":
            return f"tangent d/d{self.wrt}"
        return f"adjoint d{f'(sum {self.of})' if self.samples else self.of}/d(name)"

    def to_table(self, style: str = "text") -> str:
        """As ``text``, ``markdown``, ``latex`` or ``csv`` (which has all digits).

        Arrays are written as small matrices; of large ones come their shape and first numbers.

        Raises:
            UsageError: another style.
        """
        if self.steps is not None:
            return self.steps.to_table(style)
        header = ["name", "expression", "value", self.kind if style == "csv" else self.heading]
        if style == "latex":
            over, under = ("", self.wrt) if self.kind == "tangent" else (self.of, "v")
            over = rf" {chr(92) + 'sum ' if self.samples else ''}{latex_name(over)}" if over else ""
            header[3] = rf"$\partial{over} / \partial {latex_name(under)}$"
        arrays = {r.name for r in (*self.rows, *self.backward) if not isinstance(r.value, float)}
        rows = [_cells(r, style, arrays) for r in self.rows]
        made = table(header, rows, style=style, left=(0, 1))
        if not self.backward or style == "csv":
            return made
        header = ["backward", *header[1:3]]
        steps = [_cells(r, style, arrays)[:3] for r in self.backward]
        return f"{made}\n\n{table(header, steps, style=style, left=(0, 1))}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data with stable keys: method, kind, of, wrt, rows, and backward of arrays."""
        names = ("name", "expression", "value", self.kind)
        values = ((r.name, r.expression, r.value, r.derivative) for r in self.rows)
        rows = [dict(zip(names, row, strict=True)) for row in values]
        own = {"method": self.method, "kind": self.kind, "of": self.of, "wrt": self.wrt}
        steps = [{n: getattr(r, n) for n in names[:3]} for r in self.backward]
        data = {**own, "rows": rows, **({"backward": steps} if steps else {})}
        return data if self.steps is None else {**data, "steps": self.steps.to_dict()}

    def __str__(self) -> str:
        return self.to_table()


def _cells(row: TraceRow, style: str, arrays: set[str]) -> list[str]:
    """The cells of a row in a table of that style."""
    numbers_of = (row.value, row.derivative)
    if style == "latex":
        shown = [f"${format_latex_array(n)}$" for n in numbers_of if n is not None]
        formula = f"${latex(row.tree, arrays)}$" if row.tree else row.expression
        return [f"${latex_name(row.name)}$", formula, *shown]
    if style == "csv":
        plain = [n if isinstance(n, float) else n.tolist() for n in numbers_of if n is not None]
        return [row.name, row.expression, *map(repr, plain)]
    # A star between spaces would turn into emphasis in Markdown.
    text = f"`{row.expression}`" if style == "markdown" and row.tree else row.expression
    return [row.name, text, *map(format_array, numbers_of)]


def trace(
    graph: ExpressionGraph,
    at: Mapping[str, Value] | None = None,
    *,
    of: str | None = None,
    wrt: str | None = None,
    loss: str | None = None,
    method: str | None = None,
    level: str = "operations",
    **options: Any,
) -> Trace:
    """Return the evaluation of a variable, step by step.

    Args:
        graph: the graph.
        at: a value for each input and parameter; declared values fill the rest.
        of: the variable that is evaluated; the only output unless given. Reverse mode needs a
            number: an element such as ``s[0]`` where the variable is an array.
        wrt: the variable that is seeded, or the element of an array: tangents are derivatives with
            respect to it. Without a method it selects forward mode; other methods than reverse
            seed the only input unless given. Reverse mode seeds ``of`` and accepts no ``wrt``.
        loss: a loss to put behind the outputs, as in :func:`cgprimer.graph_with_loss`.
        method: ``reverse`` gives adjoints, every other method tangents. ``reverse`` unless given,
            or ``forward`` with ``wrt``.
        level: ``operations`` for a row per operation, ``variables`` for a row per variable.
        options: of the method.

    Several samples are a batch: they are traced where they need each other (``batchnorm``,
    ``batch_mean``), in reverse mode, or in forward mode with a parameter as seed.

    Raises:
        UsageError: an unknown name, method or level; ``wrt`` with reverse mode; an array
            where an element is to be named; several samples that do not need each other.
        MissingValueError: a value is missing.

    >>> from cgprimer.core.graph import parse
    >>> print(trace(parse("input xa = 0.5; xx = xa^2; xw = 3*xx + xa"), wrt="xa"))
    name    expression      value    tangent d/dxa
    ------  ------------  -------  ---------------
    xa      input             0.5                1
    xx      xa^2             0.25                1
    v1      3*xx             0.75                3
    xw      v1 + xa          1.25                4
    """
    graph = graph_with_loss(graph, loss, check_point(at))
    if level not in LEVELS:
        raise UsageError(f"there is no level {level!r}", hint=f"choose one of {', '.join(LEVELS)}")
    method = method or ("reverse" if wrt is None else "forward")
    target, seeded = resolve_output(graph, of), ""
    if method != "reverse":
        seeded, *others = resolve_wrt(graph, wrt if wrt is not None else _only_input(graph))
        if others:
            raise UsageError("a trace is seeded by one name; the others get a trace of their own")
    elif wrt is not None:
        what = "reverse mode seeds the output: its adjoints are with respect to every value"
        raise UsageError(what, hint="choose the output with of=... (--of), or another method")
    primal = tape_with_elements(
        graph, (target, seeded) if seeded else (target,), layer_mode_at(graph, at)
    )
    asked = seeded or target
    if shape := primal.shapes[primal.index(asked)]:
        what, option = ("seeded", "wrt") if seeded else ("differentiated", "of")
        first = next(elements(asked, shape)).replace("][", ",")
        raise UsageError(
            f"{asked!r} is an array of shape {format_shape(shape)}: one of its elements is {what}",
            hint=f"such as {option}={first!r} (--{option} {first!r})",
        )
    shown = _shown(primal, target, level)
    point, samples = _point(graph, primal, at, target, seeded, method)
    values = values_of(primal, point, roots=shown)
    sums = _derivatives(primal, shown, target, seeded, point, method, options)
    names, trees = labels(primal), build_expression_trees(primal)
    if level == "variables":
        trees |= {primal.index(name): tree for name, tree in graph.definitions.items()}
    rows, differ = [], _differing(primal) if samples else []
    for index in shown:
        name, tree, shape = names[index], trees.get(index), primal.shapes[index]
        given = "parameter" if name in graph.parameters else "input"
        if tree is None and is_statistic(primal.leaves[index].name):
            given = "running statistic"
        text = given if tree is None else unparse(tree)
        if not samples:
            value, derivative = (_whole(n, shape) for n in (values[index], sums[index]))
        else:
            both = (_whole(n, (samples, *shape)) for n in (values[index], sums[index]))
            value, derivative = both
            if not differ[index]:
                over = derivative[0] if seeded else derivative.sum(axis=0)
                value, derivative = (_whole(n, shape) for n in (value[0], over))
        rows.append(TraceRow(name, text, value, derivative, tree))
    kind = "tangent" if seeded else "adjoint"
    show = primal.has_arrays and not seeded
    backward = _backward(primal, target, rows, point, samples) if show else ()
    steps = None
    if seeded and method != "forward":
        steps = method_steps(method, graph, primal, point, rows, target, seeded, options)
    return Trace(method, kind, target, seeded, tuple(rows), backward, samples, steps)


def _point(
    graph: ExpressionGraph, primal: Tape, at: Point, target: str, seeded: str, method: str
) -> tuple[dict[str, Value], int]:
    """What leaves are, and the number of samples where they are a batch, else 0."""
    given = graph.point(at, needed=())
    shape = graph.samples(given)
    if not shape or not primal.combines_samples:
        return point_values(graph, at, of=target), 0
    if method not in ("forward", "reverse") or seeded in graph.inputs:
        raise UsageError(
            "the samples of a batch depend on each other: they are traced in reverse mode, or in"
            " forward mode with a parameter as seed",
            hint="method='reverse' (--method reverse)",
        )
    import numpy as np

    whole = graph.point(at, needed=[leaf.name for leaf in primal.leaves]) | running_statistics(
        graph, given
    )
    for name in graph.inputs:
        own = graph.shapes.get(name, ())
        whole[name] = np.broadcast_to(whole[name], shape + own).reshape(-1, *own)
    return whole, prod(shape)


def _differing(primal: Tape) -> list[bool]:
    """Of each value whether it differs from sample to sample of a batch."""
    found = [leaf.kind == "column" for leaf in primal.leaves]
    for name, operands in primal.instructions:
        shared = not isinstance(name, str) and name.combines_samples
        found.append(not shared and any(found[o] for o in operands))
    return found


def _whole(value: Value, shape: Shape) -> Value:
    """A float, or an array of all of a shape: 0, for one, stands for zeros."""
    if isinstance(value, float) and not shape:
        return value
    import numpy as np

    if not shape:  # complex arithmetic gives an array of one sample
        return float(np.reshape(value, ()))

    return np.array(np.broadcast_to(value, shape), float)


def _derivatives(
    primal: Tape,
    shown: list[int],
    target: str,
    seeded: str,
    point: Mapping[str, Value],
    method: str,
    options: Mapping[str, Any],
) -> dict[int, Value]:
    """The tangent of each row, or its adjoint where nothing is seeded.

    Forward and reverse mode sweep once, and what their shares add up to is read off. Other methods
    are asked for the derivative of each row.
    """
    rows = {internal_name("row", str(index)): index for index in shown}
    whole = replace(primal, outputs={**rows, target: primal.index(target)})
    if method in ("forward", "reverse"):
        whole = replace(whole, names={**primal.names, **rows})
    base, place = parse_element(seeded) if primal.has_arrays else (seeded, ())
    of, wrt = (tuple(rows), (base,)) if seeded else ((target,), tuple(rows))
    program = differentiate(whole, of, wrt, method=method, **options)
    if method not in ("forward", "reverse"):
        found = Runner(program)(point, {}, 1).derivatives
        return {index: found[row, base][(..., *place)] if place else found[row, base]
                for row, index in rows.items()}  # fmt: skip
    number = 0
    for size, k in zip(primal.shapes[primal.index(base)] if place else (), place, strict=True):
        number = number * size + k % size
    seeds = program.passes[number].seeds
    values = values_of(program.tape, {**point, **seeds})
    sums = {s.head if seeded else s.tail: values[s.total] for s in program.shares}  # the last stays
    seed = primal.index(base or target)
    start = next(iter(seeds.values()), 1.0)
    return {
        i: sums.get(program.tape.index(row), start if i == seed else 0.0) for row, i in rows.items()
    }


def _backward(
    primal: Tape, target: str, rows: list[TraceRow], point: Mapping[str, Value], samples: int
) -> tuple[TraceRow, ...]:
    """The instructions of the sweep for everything that is given, and what they compute."""
    given = [row.name for row in rows if row.expression in ("input", "parameter")]
    made = differentiate(primal, target, given).executed
    names, values = labels(made), values_of(made, point)
    trees = build_expression_trees(made, inline=True)
    known, last = {row.name: row.value for row in rows}, made.outputs[target]

    def step(name: str, index: int, tree: Expression) -> TraceRow:
        shape = made.shapes[index]
        value = _whole(values[index], (samples, *shape) if samples else shape)
        return TraceRow(format_name(name), unparse(tree), value, None, tree)

    more: dict[int, list[TraceRow]] = {}  # adjoints that are another value, or a number
    for name, index in made.names.items():
        if name not in primal.names and format_name(name) != names[index]:
            leaf = made.leaves[index] if index < len(made.leaves) else None
            constant = leaf is not None and leaf.kind == "constant"
            other = Number(leaf.value) if leaf and constant else Name(names[index])
            more.setdefault(max(index, last), []).append(step(name, index, other))
    steps = more.get(last, [])
    for index, tree in trees.items():
        made_here = step(names[index], index, tree)
        shown = format_array(known.get(names[index])) == format_array(made_here.value)
        if index > last or not (shown or index in made.labels):
            steps += [made_here, *more.get(index, ())]
    return tuple(steps)


def _shown(primal: Tape, target: str, level: str) -> list[int]:
    """Values that the target needs, leaves first; constants are not rows of their own."""
    needed = reachable(primal, [primal.index(target)])
    constants = {index for index, leaf in enumerate(primal.leaves) if leaf.kind == "constant"}
    named = sorted(index for index, name in primal.labels.items() if not is_internal(name))
    candidates = range(primal.size) if level == "operations" else named
    return [index for index in candidates if needed[index] and index not in constants]


def _only_input(graph: ExpressionGraph) -> str:
    if len(graph.inputs) == 1:
        return graph.inputs[0]
    known = ", ".join((*graph.inputs, *graph.parameters))
    raise UsageError("say which variable is seeded", hint=f"wrt=... (--wrt), one of: {known}")
