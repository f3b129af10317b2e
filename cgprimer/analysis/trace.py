"""Evaluation traces as in a textbook: one row per operation, with value and tangent or adjoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from cgprimer.analysis.latex import latex, latex_name
from cgprimer.analysis.method_steps import MethodSteps, tabulate_method_steps
from cgprimer.analysis.scalar_points import check_scalar, complete_point
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
from cgprimer.tapes import Tape, differentiate, labels, reachable, values_of

LEVELS = ("operations", "variables")


@dataclass(frozen=True, slots=True)
class TraceRow:
    """One value of an evaluation trace, with its derivative.

    Attributes:
        name: the name of the value; ``v1``, ``v2``, ... for values without a name.
        expression: the expression of the value; ``input`` or ``parameter`` for given values.
        value: the value.
        derivative: the tangent (derivative of this value along the seed) or the adjoint
            (derivative of the output with respect to this value), in the shape of the value. None
            in the backward sweep, whose values are adjoints.
        tree: the syntax tree of the expression; None for given values.
    """

    name: str
    expression: str
    value: Value
    derivative: Value | None
    tree: Expression | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """An evaluation trace: every intermediate value with its tangent or adjoint.

    Attributes:
        method: the differentiation method.
        kind: ``tangent`` or ``adjoint``.
        of: the differentiated variable, in the last row.
        wrt: the variable with respect to which tangents are computed; empty for adjoints.
        rows: the rows in the order of evaluation; adjoints are computed from last to first.
        backward: the backward sweep of reverse mode in its order, if values are arrays.
        samples: the number of samples of a batch, or 0 for a single point. Values that differ
            between samples have a leading axis of samples. Adjoints are derivatives of the sum of
            ``of`` over the samples.
        steps: the table of finite differences, symbolic differentiation or path-sum; None for
            methods that propagate tangents or adjoints.
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
        """Return the row for the value with the given name.

        Raises:
            UsageError: the trace has no such row.
        """
        rows = {row.name: row for row in self.rows}
        if str(name) not in rows:
            raise UsageError(f"unknown row {name!r} in the trace", hint=element_hint(name, rows))
        return rows[name]

    def __repr__(self) -> str:
        return (
            f"<Trace {self.method}: {self.of}, {pluralize(len(self.rows), 'row')} of {self.kind}s>"
        )

    @property
    def heading(self) -> str:
        """The heading of the derivative column."""
        if self.kind == "tangent":
            return f"tangent d/d{self.wrt}"
        return f"adjoint d{f'(sum {self.of})' if self.samples else self.of}/d(name)"

    def to_table(self, style: str = "text") -> str:
        """Format the trace as ``text``, ``markdown``, ``latex`` or ``csv`` (with all digits).

        Small arrays are shown as matrices, large ones by their shape and first elements.

        Raises:
            UsageError: the style is unknown.
        """
        if self.steps is not None:
            return self.steps.to_table(style)
        header = ["name", "expression", "value", self.kind if style == "csv" else self.heading]
        if style == "latex":
            over, under = ("", self.wrt) if self.kind == "tangent" else (self.of, "v")
            over = rf" {chr(92) + 'sum ' if self.samples else ''}{latex_name(over)}" if over else ""
            header[3] = rf"$\partial{over} / \partial {latex_name(under)}$"
        arrays = {r.name for r in (*self.rows, *self.backward) if not isinstance(r.value, float)}
        rows = [_format_cells(r, style, arrays) for r in self.rows]
        forward = table(header, rows, style=style, left=(0, 1))
        if not self.backward or style == "csv":
            return forward
        header = ["backward", *header[1:3]]
        rows = [_format_cells(r, style, arrays)[:3] for r in self.backward]
        return f"{forward}\n\n{table(header, rows, style=style, left=(0, 1))}"

    def to_dict(self) -> dict[str, Any]:
        """Return the trace as a dictionary for JSON; ``backward`` is present only for arrays."""
        names = ("name", "expression", "value", self.kind)
        values = ((r.name, r.expression, r.value, r.derivative) for r in self.rows)
        rows = [dict(zip(names, row, strict=True)) for row in values]
        fields = {"method": self.method, "kind": self.kind, "of": self.of, "wrt": self.wrt}
        backward = [{n: getattr(r, n) for n in names[:3]} for r in self.backward]
        data = {**fields, "rows": rows, **({"backward": backward} if backward else {})}
        return data if self.steps is None else {**data, "steps": self.steps.to_dict()}

    def __str__(self) -> str:
        return self.to_table()


def _format_cells(row: TraceRow, style: str, arrays: set[str]) -> list[str]:
    """Format the cells of one trace row in the given table style."""
    values = (row.value, row.derivative)
    if style == "latex":
        cells = [f"${format_latex_array(v)}$" for v in values if v is not None]
        formula = f"${latex(row.tree, arrays)}$" if row.tree else row.expression
        return [f"${latex_name(row.name)}$", formula, *cells]
    if style == "csv":
        plain = [v if isinstance(v, float) else v.tolist() for v in values if v is not None]
        return [row.name, row.expression, *map(repr, plain)]
    # A star between spaces would turn into emphasis in Markdown.
    text = f"`{row.expression}`" if style == "markdown" and row.tree else row.expression
    return [row.name, text, *map(format_array, values)]


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
    """Trace the evaluation of a variable, with tangents or adjoints of all values.

    Several samples are traced only if they depend on each other (``batchnorm``, ``batch_mean``), in
    reverse mode, or in forward mode with respect to a parameter.

    Args:
        graph: the graph.
        at: values of inputs and parameters; declared values are the defaults.
        of: the variable to evaluate, by default the only output. Reverse mode requires a scalar,
            such as the element ``s[0]`` of an array.
        wrt: the variable or element with respect to which tangents are computed, by default the
            only input. It selects forward mode unless a method is given; reverse mode does not
            accept it.
        loss: a loss to add after the outputs, as in :func:`cgprimer.graph_with_loss`.
        method: ``reverse`` for adjoints (the default without ``wrt``), or another method for
            tangents, such as ``forward`` (the default with ``wrt``).
        level: ``operations`` for one row per operation, ``variables`` for one row per variable.
        options: options of the method.

    Raises:
        UsageError: a name, method or level is unknown; ``wrt`` with reverse mode; an array
            instead of an element; several samples that do not depend on each other.
        MissingValueError: a value is missing.

    >>> from cgprimer.core.graph import parse
    >>> print(trace(parse("input xa = 0.5; xx = xa^2; xw = 3*xx + xa"), wrt="xa"))
    name  expression  value  tangent d/dxa
    ----  ----------  -----  -------------
    xa    input         0.5              1
    xx    xa^2         0.25              1
    v1    3*xx         0.75              3
    xw    v1 + xa      1.25              4
    """
    graph = graph_with_loss(graph, loss, check_point(at))
    if level not in LEVELS:
        raise UsageError(f"unknown level {level!r}", hint=f"choose one of {', '.join(LEVELS)}")
    method = method or ("reverse" if wrt is None else "forward")
    target, seed = resolve_output(graph, of), _resolve_seed(graph, wrt, method)
    primal = tape_with_elements(
        graph, (target, seed) if seed else (target,), layer_mode_at(graph, at)
    )
    name, argument = (seed, "wrt") if seed else (target, "of")
    check_scalar(primal, name, f"`{argument}` must be a scalar", argument=argument)
    indices = _select_rows(primal, target, level)
    point, samples = _create_point(graph, primal, at, target, seed, method)
    values = values_of(primal, point, roots=indices)
    derivatives = _compute_derivatives(primal, indices, target, seed, point, method, options)
    names, trees = labels(primal), build_expression_trees(primal)
    if level == "variables":
        trees |= {primal.index(name): tree for name, tree in graph.definitions.items()}
    varies = _find_varying_values(primal) if samples else []
    rows = []
    for index in indices:
        tree, shape = trees.get(index), primal.shapes[index]
        text = _describe_leaf(graph, primal, index, names[index]) if tree is None else unparse(tree)
        pair = (values[index], derivatives[index])
        if samples:
            value, derivative = (_broadcast_value(v, (samples, *shape)) for v in pair)
            if not varies[index]:
                total = derivative[0] if seed else derivative.sum(axis=0)
                pair = (value[0], total)
        if not samples or not varies[index]:
            value, derivative = (_broadcast_value(v, shape) for v in pair)
        rows.append(TraceRow(names[index], text, value, derivative, tree))
    backward: tuple[TraceRow, ...] = ()
    if primal.has_arrays and not seed:
        backward = _list_backward_rows(primal, target, rows, point, samples)
    steps = None
    if seed and method != "forward":
        steps = tabulate_method_steps(method, graph, primal, point, rows, target, seed, options)
    kind = "tangent" if seed else "adjoint"
    return Trace(method, kind, target, seed, tuple(rows), backward, samples, steps)


def _resolve_seed(graph: ExpressionGraph, wrt: str | None, method: str) -> str:
    """Return the variable with respect to which tangents are computed; empty for adjoints.

    Raises:
        UsageError: several names, an unknown name, or a name with reverse mode.
    """
    if method != "reverse":
        seed, *others = resolve_wrt(graph, wrt if wrt is not None else _find_only_input(graph))
        if others:
            raise UsageError("`wrt` must be a single name", hint="call trace once for each name")
        return seed
    if wrt is not None:
        raise UsageError(
            "reverse mode does not accept `wrt`: it differentiates with respect to all values",
            hint="choose the output with of=... (--of), or another method",
        )
    return ""


def _describe_leaf(graph: ExpressionGraph, primal: Tape, index: int, name: str) -> str:
    """Return the kind of a leaf: ``input``, ``parameter`` or ``running statistic``."""
    if is_statistic(primal.leaves[index].name):
        return "running statistic"
    return "parameter" if name in graph.parameters else "input"


def _create_point(
    graph: ExpressionGraph, primal: Tape, at: Point, target: str, seed: str, method: str
) -> tuple[dict[str, Value], int]:
    """Return the values of all leaves, and the number of samples (0 for a single point)."""
    partial_point = graph.point(at, needed=())
    shape = graph.samples(partial_point)
    if not shape or not primal.combines_samples:
        return complete_point(graph, at, of=target), 0
    if method not in ("forward", "reverse") or seed in graph.inputs:
        raise UsageError(
            "a batch can be traced only in reverse mode, or in forward mode with respect to a"
            " parameter",
            hint="use method='reverse' (--method reverse)",
        )
    import numpy as np

    point = graph.point(at, needed=[leaf.name for leaf in primal.leaves])
    point |= running_statistics(graph, partial_point)
    for name in graph.inputs:
        sample_shape = graph.shapes.get(name, ())
        column = np.broadcast_to(point[name], shape + sample_shape)
        point[name] = column.reshape(-1, *sample_shape)
    return point, prod(shape)


def _find_varying_values(primal: Tape) -> list[bool]:
    """Return for each tape value whether it can differ between samples of a batch."""
    varies = [leaf.kind == "column" for leaf in primal.leaves]
    for name, operands in primal.instructions:
        is_shared = not isinstance(name, str) and name.combines_samples
        varies.append(not is_shared and any(varies[o] for o in operands))
    return varies


def _broadcast_value(value: Value, shape: Shape) -> Value:
    """Broadcast a value to a shape; the empty shape gives a float."""
    if isinstance(value, float) and not shape:
        return float(value)  # without numpy's type, which tables would show
    import numpy as np

    if not shape:  # complex arithmetic returns an array of one sample
        return float(np.reshape(value, ()))

    return np.array(np.broadcast_to(value, shape), float)


def _compute_derivatives(
    primal: Tape,
    indices: list[int],
    target: str,
    seed: str,
    point: Mapping[str, Value],
    method: str,
    options: Mapping[str, Any],
) -> dict[int, Value]:
    """Compute the derivative for each row: a tangent if there is a seed, otherwise an adjoint.

    Forward and reverse mode run once, and the totals of their contributions are the derivatives.
    Other methods differentiate each row.
    """
    rows = {internal_name("row", str(index)): index for index in indices}
    tape = replace(primal, outputs={**rows, target: primal.index(target)})
    if method in ("forward", "reverse"):
        tape = replace(tape, names={**primal.names, **rows})
    array, position = parse_element(seed) if primal.has_arrays else (seed, ())
    of, wrt = (tuple(rows), (array,)) if seed else ((target,), tuple(rows))
    program = differentiate(tape, of, wrt, method=method, **options)
    if method not in ("forward", "reverse"):
        results = Runner(program)(point, {}, 1).derivatives
        return {
            index: results[row, array][(..., *position)] if position else results[row, array]
            for row, index in rows.items()
        }
    shape = primal.shapes[primal.index(array)] if position else ()
    pass_index = 0  # one pass per element, in row-major order
    for size, k in zip(shape, position, strict=True):
        pass_index = pass_index * size + k % size
    seeds = program.passes[pass_index].seeds
    values = values_of(program.tape, {**point, **seeds})
    # Later contributions replace earlier totals.
    totals = {s.head if seed else s.tail: values[s.total] for s in program.shares}
    seed_index = primal.index(array or target)
    seed_value = next(iter(seeds.values()), 1.0)
    return {
        index: totals.get(program.tape.index(row), seed_value if index == seed_index else 0.0)
        for row, index in rows.items()
    }


def _list_backward_rows(
    primal: Tape, target: str, rows: list[TraceRow], point: Mapping[str, Value], samples: int
) -> tuple[TraceRow, ...]:
    """Return one row for each instruction in the backward sweep, with its value."""
    leaves = [row.name for row in rows if row.expression in ("input", "parameter")]
    tape = differentiate(primal, target, leaves).executed
    names, values = labels(tape), values_of(tape, point)
    trees = build_expression_trees(tape, inline=True)
    forward_values, last = {row.name: row.value for row in rows}, tape.outputs[target]

    def create_row(name: str, index: int, tree: Expression) -> TraceRow:
        """Create the row that shows one tape value."""
        shape = tape.shapes[index]
        value = _broadcast_value(values[index], (samples, *shape) if samples else shape)
        return TraceRow(format_name(name), unparse(tree), value, None, tree)

    aliases: dict[int, list[TraceRow]] = {}  # adjoints that equal another value or a constant
    for name, index in tape.names.items():
        if name not in primal.names and format_name(name) != names[index]:
            leaf = tape.leaves[index] if index < len(tape.leaves) else None
            is_constant = leaf is not None and leaf.kind == "constant"
            value = Number(leaf.value) if leaf and is_constant else Name(names[index])
            aliases.setdefault(max(index, last), []).append(create_row(name, index, value))
    backward_rows = aliases.get(last, [])
    for index, tree in trees.items():
        row = create_row(names[index], index, tree)
        is_known = format_array(forward_values.get(names[index])) == format_array(row.value)
        if index > last or not (is_known or index in tape.labels):
            backward_rows += [row, *aliases.get(index, ())]
    return tuple(backward_rows)


def _select_rows(primal: Tape, target: str, level: str) -> list[int]:
    """Return the indices of the tape values that the target depends on, except constants."""
    needed = reachable(primal, [primal.index(target)])
    constants = {index for index, leaf in enumerate(primal.leaves) if leaf.kind == "constant"}
    variables = sorted(index for index, name in primal.labels.items() if not is_internal(name))
    candidates = range(primal.size) if level == "operations" else variables
    return [index for index in candidates if needed[index] and index not in constants]


def _find_only_input(graph: ExpressionGraph) -> str:
    """Return the name of the only input of a graph.

    Raises:
        UsageError: the graph has several inputs, or none.
    """
    if len(graph.inputs) == 1:
        return graph.inputs[0]
    names = ", ".join((*graph.inputs, *graph.parameters))
    raise UsageError("`wrt` is required", hint=f"choose wrt=... (--wrt) from {names}")
