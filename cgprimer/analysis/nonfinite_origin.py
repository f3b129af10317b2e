"""The origin of infinities and nans: the first value that is not finite, with a remedy.

The instructions are searched in forward order, then the contributions of reverse mode in backward
order. The first result that is not finite is the origin, because its operands are finite.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cgprimer.analysis.remedies import (
    PRODUCT,
    SUM,
    Operation,
    suggest_for_branch,
    suggest_for_partial,
    suggest_for_value,
)
from cgprimer.core.derivatives import (
    Point,
    layer_mode_at,
    resolve_output,
    resolve_wrt,
    running_statistics,
    tape_with_elements,
)
from cgprimer.core.loss_attachment import check_point, graph_with_loss
from cgprimer.core.methods.derivative_program import Names, normalize_names
from cgprimer.core.tape.tape_printing import select_printed_function
from cgprimer.errors import Span
from cgprimer.expressions import (
    Apply,
    Definition,
    Expression,
    ExpressionGraph,
    Name,
    Number,
    parse_element,
    unparse,
)
from cgprimer.support.array_values import (
    Value,
    all_finite,
    convert_value,
    count_axes,
    find_nonfinite,
)
from cgprimer.support.number_format import format_array
from cgprimer.tapes import DerivativeProgram, Tape, differentiate, reachable, values_of

_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Why:
    """The first value or partial derivative that is not finite, with an explanation.

    Attributes:
        vertex: the vertex whose expression contains the operation, or the input or parameter.
        operation: the expression of the operation; empty for inputs and parameters.
        value: the value of the operation.
        operands: the values of the operands, keyed by expression.
        remedy: a suggestion.
        slope: in the backward pass, the partial derivative of the operation with respect to ``by``;
            None in the forward pass.
        by: the operand with respect to which the partial derivative is taken.
        adjoint: in the backward pass, the adjoint of the operation.
        span: the position of the operation in the source.
        sample: the index of the sample; None for a single point.
        index: the index of the operation's value on the graph's tape.
    """

    vertex: str
    operation: str
    value: Value
    operands: dict[str, Value]
    remedy: str
    slope: Value | None = None
    by: str = ""
    adjoint: Value | None = None
    span: Span | None = None
    sample: int | None = None
    index: int = -1

    @property
    def sentence(self) -> str:
        """The explanation in one line."""
        place = "" if self.sample is None else f" at sample {self.sample}"
        if not self.operation:
            return f"the given value of {self.vertex} is {_format_nonfinite(self.value)}{place}"
        if self.slope is None:
            within = "" if self.operation == self.vertex else f", in {self.vertex},"
            return f"forward: {self.operation}{within} is {_format_nonfinite(self.value)}{place}"
        return (
            f"backward: the slope of {self.operation} with respect to {self.by} is"
            f" {_format_value(self.slope)}{place}, and the adjoint of"
            f" {self.operation} is {_format_value(self.adjoint)}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as a dictionary for JSON."""
        fields = ("vertex", "operation", "value", "operands", "slope", "by", "adjoint", "sample")
        data = {name: getattr(self, name) for name in fields}
        where = self.span.location() if self.span else None
        return {**data, "place": where, "sentence": self.sentence, "remedy": self.remedy}

    def __str__(self) -> str:
        lines = [self.sentence]
        if self.span is not None:
            lines += [f"  {self.span.location()}:", *self.span.caret_lines().split("\n")]
        if self.operands:
            operands = ", ".join(
                f"{text} = {_format_value(v)}" for text, v in self.operands.items()
            )
            lines.append(f"  operands: {operands}")
        return "\n".join([*lines, f"  remedy: {self.remedy}"])


def _format_value(value: Any) -> str:
    """Format a scalar or an array with six digits."""
    return format_array(value, _DIGITS)


def _format_nonfinite(value: Any) -> str:
    """Format a non-finite value; for an array, its first non-finite element with the index."""
    element = find_nonfinite(value, count_axes(value))
    return f"{element[0]} at {element[2]}" if element and element[2] else _format_value(value)


def why(
    graph: ExpressionGraph,
    at: Point = None,
    *,
    of: Names | None = None,
    wrt: Names | None = None,
    loss: str | None = None,
) -> Why | None:
    """Find the first value or partial derivative that is inf or nan; None if all are finite.

    Args:
        graph: the graph.
        at: values of inputs and parameters; declared values are the defaults. If there are several
            samples, the first sample with a value that is not finite is explained.
        of: the variables to evaluate; by default all outputs.
        wrt: names with respect to which they are differentiated; by default all parameters, or all
            inputs of a graph without parameters.
        loss: a loss to add after the outputs, as in :func:`cgprimer.graph_with_loss`.

    Raises:
        UsageError, MissingValueError: as in :func:`cgprimer.gradient`.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = where(less(x, 0), 0, sqrt(x))")
    >>> print(why(graph, {"x": 0.0}, wrt="x"))
    backward: the slope of sqrt(x) with respect to x is inf, and the adjoint of sqrt(x) is 1
      <expressions>:1:27:
      xw = where(less(x, 0), 0, sqrt(x))
                                ^^^^^^^
      operands: x = 0
      remedy: the derivative of sqrt(x) is inf at 0, which is correct: start away from 0, or \
smooth the function: sqrt(x + 1e-12)
    >>> print(why(graph, {"x": -1.0}, wrt="x").sentence)
    forward: sqrt(x), in xw, is nan
    >>> why(graph, {"x": -1.0}, wrt="x").remedy.partition("harmless operand, ")[2]
    'sqrt(where(less(x, 0), 1, x))'
    """
    graph = graph_with_loss(graph, loss, check_point(at))
    targets = tuple(resolve_output(graph, n) for n in normalize_names(of or graph.outputs, "of"))
    names = resolve_wrt(graph, wrt or graph.parameters or graph.inputs)
    mode = layer_mode_at(graph, at)
    primal = tape_with_elements(graph, (*targets, *names), mode)
    point = graph.point(at, needed=())
    shape = graph.samples(point)
    arrays = dict.fromkeys(parse_element(name).array for name in names)
    for target in targets:
        program = differentiate(primal, target, tuple(arrays), method="reverse")
        for sample, sample_point in _iterate_samples(graph, point, shape):
            origin = _find_origin(graph, primal, program, target, sample_point)
            if origin is not None:
                return replace(origin, sample=sample)
    return None


def _iterate_samples(
    graph: ExpressionGraph, point: Mapping[str, Value], shape: tuple[int, ...]
) -> Any:
    """Yield the index and the values of each sample; the index is None for a single point."""
    free = (*graph.inputs, *graph.parameters)
    missing = {n: convert_value(n, 0.0, graph.shapes.get(n, ())) for n in free if n not in point}
    if not shape:
        yield None, {**point, **missing, **running_statistics(graph, point)}
        return
    import numpy as np

    shapes = {n: graph.shapes.get(n, ()) for n in point}
    arrays = {n: v for n, v in point.items() if not isinstance(v, float)}
    flat = {
        n: np.broadcast_to(v, shape + shapes[n]).reshape(-1, *shapes[n]) for n, v in arrays.items()
    }
    flat = {**point, **flat}
    for sample in range(int(np.prod(shape))):
        values = {n: v if isinstance(v, float) else v[sample] for n, v in flat.items()}
        values = {n: float(v) if np.ndim(v) == 0 else v for n, v in values.items()}
        yield sample, {**values, **missing, **running_statistics(graph, values)}


def _find_origin(
    graph: ExpressionGraph,
    primal: Tape,
    program: DerivativeProgram,
    target: str,
    point: Mapping[str, Value],
) -> Why | None:
    """Find the first value or partial derivative that is not finite, for one sample."""
    needed = reachable(primal, [primal.index(target)])
    values = values_of(primal, dict(point))
    for index, leaf in enumerate(primal.leaves):
        if needed[index] and leaf.kind != "constant" and not all_finite(values[index]):
            remedy = "inputs and parameters must be finite"
            return Why(leaf.name, "", values[index], {}, remedy, index=index)
    seeds, tape = program.passes[0].seeds, program.tape
    swept = values_of(tape, {**point, **seeds})
    if all(all_finite(swept[k]) for k in tape.outputs.values()):
        return None  # infinite intermediate values, as in 1/inf, are harmless
    trees = _build_trees(primal)
    for index in range(len(primal.leaves), primal.size):
        value = values[index]
        if needed[index] and not all_finite(value):
            operation = _describe_operation(primal, trees, values, index, value)
            remedy = _suggest_for_branch(primal, trees, values, index, operation)
            remedy = remedy or suggest_for_value(operation, _select_element(value, value))
            return _create_result(graph, primal, operation, values, index, remedy)
    seed = next(iter(seeds.values()), 1.0)
    return _find_backward_origin(graph, trees, program, target, swept, seed)


def _find_backward_origin(
    graph: ExpressionGraph,
    primal_trees: Mapping[int, Expression],
    program: DerivativeProgram,
    target: str,
    values: list[Any],
    seed: Value,
) -> Why | None:
    """Find the first contribution in the backward pass that is not finite."""
    tape = program.tape
    adjoints = {tape.index(target): seed}
    trees = _build_trees(tape)
    for contribution in program.shares:
        head, tail = contribution.head, contribution.tail
        adjoint = adjoints.get(head, 1.0)
        numbers = (contribution.partial, contribution.product, contribution.total)
        slope, product, total = (values[index] for index in numbers)
        adjoints[tail] = total
        if all(map(all_finite, (slope, product, total))):
            continue
        first = next(value for value in (slope, product, total) if not all_finite(value))
        operation = _describe_operation(tape, trees, values, head, first)
        remedy = _suggest_for_branch(tape, trees, values, head, operation)
        if not remedy:
            is_partial = not all_finite(slope)
            if is_partial or (not all_finite(product) and not all_finite(adjoint)):
                remedy = suggest_for_partial(operation, _select_nonfinite_element(slope))
            else:
                remedy = PRODUCT if not all_finite(product) else SUM
        result = _create_result(graph, tape, operation, values, head, remedy)
        by = tape.labels.get(tail) or unparse(trees[tail])
        matching = (k for k, tree in primal_trees.items() if unparse(tree) == operation.text)
        index = next(matching, -1)
        return replace(result, slope=slope, by=by, adjoint=adjoint, index=index)
    return None


def _build_trees(tape: Tape) -> dict[int, Expression]:
    """Build the expression tree of each tape value in terms of named values."""
    trees: dict[int, Expression] = {}
    for index, leaf in enumerate(tape.leaves):
        trees[index] = Number(leaf.value) if leaf.kind == "constant" else Name(leaf.name)
    for index, (row, operands) in enumerate(tape.instructions, len(tape.leaves)):
        arguments = [
            Name(tape.labels[o]) if o in tape.labels and o >= len(tape.leaves) else trees[o]
            for o in operands
        ]
        function = select_printed_function(row, *[tape.shapes[o] for o in operands])
        trees[index] = Apply(function, tuple(arguments))
    return trees


def _describe_operation(
    tape: Tape, trees: Mapping[int, Expression], values: list[Any], index: int, nonfinite: Value
) -> Operation:
    """Describe an operation whose result is not finite: its expression and operands."""
    instruction = tape.instruction(index)
    assert instruction is not None
    tree = trees[index]
    assert isinstance(tree, Apply)
    texts = tuple(unparse(argument) for argument in tree.arguments)
    operands: tuple[float, ...] = ()
    if isinstance(instruction.primitive, str):
        operands = tuple(_select_element(values[o], nonfinite) for o in instruction.operands)
    return Operation(str(instruction.primitive), unparse(tree), texts, operands)


def _select_element(value: Value, nonfinite: Value) -> float:
    """Return the element of ``value`` at the first index where ``nonfinite`` is inf or nan."""
    if isinstance(value, float) or isinstance(nonfinite, float):
        return float(value) if isinstance(value, float) else float(value.reshape(-1)[0])
    import numpy as np

    index = tuple(np.argwhere(~np.isfinite(nonfinite))[0])
    return float(np.broadcast_to(value, nonfinite.shape)[index])


def _create_result(
    graph: ExpressionGraph,
    tape: Tape,
    operation: Operation,
    values: list[Any],
    index: int,
    remedy: str,
) -> Why:
    """Create the explanation for an operation, with its vertex and its position in the source."""
    instruction = tape.instruction(index)
    assert instruction is not None
    owners = (k for k in sorted(tape.labels) if k >= index and tape.labels[k] in graph.definitions)
    vertex = tape.labels[next(owners)]
    statement = next(
        s for s in graph.program.statements if isinstance(s, Definition) and s.name == vertex
    )
    operands = {
        text: values[o]
        for text, o in zip(operation.operands, instruction.operands, strict=True)
        if o >= len(tape.leaves) or tape.leaves[o].kind != "constant"
    }
    span = graph.program.expression_span(statement, operation.text)
    return Why(vertex, operation.text, values[index], operands, remedy, span=span, index=index)


def _suggest_for_branch(
    tape: Tape, trees: Mapping[int, Expression], values: list[Any], index: int, operation: Operation
) -> str:
    """Suggest a remedy if ``where`` does not select the operation's branch; otherwise return ''."""
    for user, (row, operands) in enumerate(tape.instructions, len(tape.leaves)):
        if row != "where" or user <= index:
            continue
        is_true = _select_element(values[operands[0]], values[index]) != 0.0
        selected, other = operands[1:] if is_true else operands[:0:-1]
        if reachable(tape, [other])[index] and not reachable(tape, [selected])[index]:
            condition = unparse(trees[operands[0]])
            return suggest_for_branch(operation, condition, where_true=not is_true)
    return ""


def _select_nonfinite_element(value: Value) -> float:
    """Return the first element that is not finite, or the value itself if it is finite."""
    element = find_nonfinite(value)
    return element[0] if element else float(value)
