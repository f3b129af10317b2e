"""Where the first number that is not finite comes from, with its operands, its place, a remedy.

A sweep goes through the instructions forward, then through the shares of reverse mode backward:
what is not finite first is the cause, because everything that it was made of still is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cgprimer.analysis.remedies import PRODUCT, SUM, Operation, of_branch, of_slope, of_value
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
    """The first number that is not finite.

    Attributes:
        vertex: the vertex of the graph in whose expression it is; an input or a parameter itself.
        operation: what computes it, as it is written; empty for what is given.
        value: of the operation.
        operands: the operation's, text to value.
        slope: in the backward pass: the derivative of the operation with respect to ``by``; None
            where a value is not finite.
        by: the operand that the slope is with respect to.
        adjoint: in the backward pass: what came to the operation.
        span: where the operation stands in the text.
        remedy: what is done about it.
        sample: which of several samples; None where there is one.
        index: of the operation's value on the graph's tape.
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
        """What is not finite, in one line."""
        place = "" if self.sample is None else f" at sample {self.sample}"
        if not self.operation:
            return f"{self.vertex} is given as {_bad(self.value)}{place}"
        if self.slope is None:
            within = "" if self.operation == self.vertex else f", in {self.vertex},"
            return f"forward: {self.operation}{within} is {_bad(self.value)}{place}"
        return (
            f"backward: the slope of {self.operation} with respect to {self.by} is"
            f" {_shown(self.slope)}{place}, and the adjoint that meets it {_shown(self.adjoint)}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data: place and numbers, sentence and remedy."""
        own = ("vertex", "operation", "value", "operands", "slope", "by", "adjoint", "sample")
        found = {name: getattr(self, name) for name in own}
        where = self.span.location() if self.span else None
        return {**found, "place": where, "sentence": self.sentence, "remedy": self.remedy}

    def __str__(self) -> str:
        lines = [self.sentence]
        if self.span is not None:
            lines += [f"  {self.span.location()}:", *self.span.caret_lines().split("\n")]
        if self.operands:
            known = ", ".join(f"{text} = {_shown(v)}" for text, v in self.operands.items())
            lines.append(f"  operands: {known}")
        return "\n".join([*lines, f"  remedy: {self.remedy}"])


def _shown(value: Any) -> str:
    return format_array(value, _DIGITS)


def _bad(value: Any) -> str:
    """A number that is not finite; of an array the first, and where it stands."""
    bad = find_nonfinite(value, count_axes(value))
    return f"{bad[0]} at {bad[2]}" if bad and bad[2] else _shown(value)


def why(
    graph: ExpressionGraph,
    at: Point = None,
    *,
    of: Names | None = None,
    wrt: Names | None = None,
    loss: str | None = None,
) -> Why | None:
    """The first value, or slope of the backward pass, that is not finite; None if all are finite.

    Args:
        graph: the graph.
        at: values of inputs and parameters; declared values fill the rest. Of several samples the
            first one is explained where something is not finite.
        of: what is evaluated; all outputs unless given.
        wrt: with respect to which names; all parameters unless given, or all inputs.
        loss: a loss to put behind the outputs, as in :func:`cgprimer.graph_with_loss`.

    Raises:
        UsageError, MissingValueError: as :func:`cgprimer.gradient`.

    >>> import cgprimer
    >>> graph = cgprimer.parse("xw = where(less(x, 0), 0, sqrt(x))")
    >>> print(why(graph, {"x": 0.0}, wrt="x"))
    backward: the slope of sqrt(x) with respect to x is inf, and the adjoint that meets it 1
      <expressions>:1:27:
      xw = where(less(x, 0), 0, sqrt(x))
                                ^^^^^^^
      operands: x = 0
      remedy: at 0 the slope of sqrt(x) is inf: that is so, and no mistake. Start away from 0, or \
round the corner off: sqrt(x + 1e-12)
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
    whole = dict.fromkeys(parse_element(name).array for name in names)
    for target in targets:
        program = differentiate(primal, target, tuple(whole), method="reverse")
        for sample, here in _samples(graph, point, shape):
            found = _first(graph, primal, program, target, here)
            if found is not None:
                return replace(found, sample=sample)
    return None


def _samples(graph: ExpressionGraph, point: Mapping[str, Value], shape: tuple[int, ...]) -> Any:
    """Each sample's point, with its number; None for the only one."""
    free = (*graph.inputs, *graph.parameters)
    missing = {n: convert_value(n, 0.0, graph.shapes.get(n, ())) for n in free if n not in point}
    if not shape:
        yield None, {**point, **missing, **running_statistics(graph, point)}
        return
    import numpy as np

    own = {n: graph.shapes.get(n, ()) for n in point}
    arrays = {n: v for n, v in point.items() if not isinstance(v, float)}
    flat = {n: np.broadcast_to(v, shape + own[n]).reshape(-1, *own[n]) for n, v in arrays.items()}
    flat = {**point, **flat}
    for sample in range(int(np.prod(shape))):
        here = {n: v if isinstance(v, float) else v[sample] for n, v in flat.items()}
        here = {n: float(v) if np.ndim(v) == 0 else v for n, v in here.items()}
        yield sample, {**here, **missing, **running_statistics(graph, here)}


def _first(
    graph: ExpressionGraph,
    primal: Tape,
    program: DerivativeProgram,
    target: str,
    point: Mapping[str, Value],
) -> Why | None:
    """The first at a point of one sample."""
    needed = reachable(primal, [primal.index(target)])
    values = values_of(primal, dict(point))
    for index, leaf in enumerate(primal.leaves):
        if needed[index] and leaf.kind != "constant" and not all_finite(values[index]):
            said = "a value that is given must be finite"
            return Why(leaf.name, "", values[index], {}, said, index=index)
    seeds, tape = program.passes[0].seeds, program.tape
    swept = values_of(tape, {**point, **seeds})
    if all(all_finite(swept[k]) for k in tape.outputs.values()):
        return None  # whatever was infinite on the way, as in 1/inf, did no harm
    trees = _trees(primal)
    for index in range(len(primal.leaves), primal.size):
        if needed[index] and not all_finite(values[index]):
            made = _operation(primal, trees, values, index, values[index])
            branch = _branch(primal, trees, values, index)
            remedy = (
                branch(made) if branch else of_value(made, _where_bad(values[index], values[index]))
            )
            return _placed(graph, primal, made, values, index, remedy)
    adjoint = {tape.index(target): next(iter(seeds.values()), 1.0)}
    trees = _trees(tape)
    for share in program.shares:
        came = adjoint.get(share.head, 1.0)
        slope, product, total = (swept[k] for k in (share.partial, share.product, share.total))
        adjoint[share.tail] = total
        if all(map(all_finite, (slope, product, total))):
            continue
        worst = next(v for v in (slope, product, total) if not all_finite(v))
        made = _operation(tape, trees, swept, share.head, worst)
        branch = _branch(tape, trees, swept, share.head)
        if not all_finite(slope) or (not all_finite(product) and not all_finite(came)):
            remedy = branch(made) if branch else of_slope(made, _number(slope))
        else:
            remedy = branch(made) if branch else PRODUCT if not all_finite(product) else SUM
        same = (k for k, tree in _trees(primal).items() if unparse(tree) == made.text)
        here = next(same, -1)
        found = _placed(graph, tape, made, swept, share.head, remedy)
        by = tape.labels.get(share.tail) or unparse(trees[share.tail])
        return replace(found, slope=slope, by=by, adjoint=came, index=here)
    return None


def _trees(tape: Tape) -> dict[int, Expression]:
    """What each value is computed by, written out down to the names of the text."""
    trees: dict[int, Expression] = {}
    for index, leaf in enumerate(tape.leaves):
        trees[index] = Number(leaf.value) if leaf.kind == "constant" else Name(leaf.name)
    for index, (row, operands) in enumerate(tape.instructions, len(tape.leaves)):
        inside = [
            Name(tape.labels[o]) if o in tape.labels and o >= len(tape.leaves) else trees[o]
            for o in operands
        ]
        function = select_printed_function(row, *[tape.shapes[o] for o in operands])
        trees[index] = Apply(function, tuple(inside))
    return trees


def _operation(
    tape: Tape, trees: Mapping[int, Expression], values: list[Any], index: int, bad: Value
) -> Operation:
    """What computes a value; its operands where something, of its shape, is not finite."""
    step = tape.instruction(index)
    assert step is not None
    tree = trees[index]
    assert isinstance(tree, Apply)
    texts = tuple(unparse(argument) for argument in tree.arguments)
    known = tuple(values[o] for o in step.operands)
    single: tuple[float, ...] = ()
    if isinstance(step.primitive, str):
        single = tuple(_where_bad(v, bad) for v in known)
    return Operation(str(step.primitive), unparse(tree), texts, single)


def _where_bad(value: Value, bad: Value) -> float:
    """A value at the first place where another one, of the same shape, is not finite."""
    if isinstance(value, float) or isinstance(bad, float):
        return float(value) if isinstance(value, float) else float(value.reshape(-1)[0])
    import numpy as np

    return float(np.broadcast_to(value, bad.shape)[tuple(np.argwhere(~np.isfinite(bad))[0])])


def _placed(
    graph: ExpressionGraph, tape: Tape, made: Operation, values: list[Any], index: int, remedy: str
) -> Why:
    """With the vertex in whose expression it stands, and its place in the text."""
    step = tape.instruction(index)
    assert step is not None
    owners = (k for k in sorted(tape.labels) if k >= index and tape.labels[k] in graph.definitions)
    vertex = tape.labels[next(owners)]
    statement = next(
        s for s in graph.program.statements if isinstance(s, Definition) and s.name == vertex
    )
    operands = {
        text: values[o]
        for text, o in zip(made.operands, step.operands, strict=True)
        if o >= len(tape.leaves) or tape.leaves[o].kind != "constant"
    }
    span = graph.program.expression_span(statement, made.text)
    return Why(vertex, made.text, values[index], operands, remedy, span=span, index=index)


def _branch(tape: Tape, trees: Mapping[int, Expression], values: list[Any], index: int) -> Any:
    """The remedy for a value in a branch that ``where`` does not take; None of any other value."""
    for k, (row, operands) in enumerate(tape.instructions, len(tape.leaves)):
        if row != "where" or k <= index:
            continue
        taken = _where_bad(values[operands[0]], values[index]) != 0.0
        kept, left_out = operands[1:] if taken else operands[:0:-1]
        if reachable(tape, [left_out])[index] and not reachable(tape, [kept])[index]:
            condition = unparse(trees[operands[0]])
            return lambda op: of_branch(op, condition, where_true=not taken)
    return None


def _number(value: Value) -> float:
    bad = find_nonfinite(value)
    return bad[0] if bad else float(value)
