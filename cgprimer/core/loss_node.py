"""Loss nodes: a loss as an additional vertex, the sum of the losses of all outputs of a sample.

:func:`build_loss` converts a loss to a single expression in the names of the graph.
:func:`attach_to_graph` adds this expression to a graph as a definition. :func:`attach_to_tape`
emits the expression after the instructions of the graph's tape;
``docs/internals/decisions.md`` explains why training uses the tape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any, NamedTuple

from cgprimer.core.graph import ExpressionGraph, build_graph
from cgprimer.core.language.syntax_tree import (
    Apply,
    Declaration,
    Definition,
    Expression,
    Index,
    Name,
    Number,
    Program,
    Shape,
    fold,
    names_in,
    substitute,
)
from cgprimer.core.language.tokens import locate_tokens, tokenize
from cgprimer.core.loss_expressions import (
    LOSS,
    LOSSES,
    OUTPUT,
    SOFTMAX,
    check_class_indices,
    check_target,
    parse_loss,
    parse_loss_name,
    target_column_name,
)
from cgprimer.core.operations.array_shapes import format_shape
from cgprimer.core.operations.notation import unparse
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.lowering import emit_function, emit_vertex
from cgprimer.core.tape.tape import Tape, shape_of
from cgprimer.core.tape.verifier import verify
from cgprimer.errors import (
    DefinitionError,
    ShapeError,
    Source,
    UsageError,
    did_you_mean,
    join_names,
)
from cgprimer.support.array_values import convert_value
from cgprimer.support.garbage_collection import pause_garbage_collection
from cgprimer.support.value_names import is_internal

Shapes = Mapping[str, Shape]
DATA_COLUMN = "a column of the data"
POINT_VALUE = "a name with a value (`at={NAME: VALUE}`)"


class Column(NamedTuple):
    """A data column that a loss needs in addition to the inputs of the graph.

    Attributes:
        name: for a target the name of its output, otherwise the name of the column.
        shape: shape of a single sample.
        is_target: whether the column is the target of an output.
    """

    name: str
    shape: Shape
    is_target: bool


class Loss(NamedTuple):
    """The loss of a single sample as an expression.

    Attributes:
        expression: syntax tree in the names of the graph and of the columns.
        columns: columns that the loss needs in addition to the inputs, keyed by their names in the
            expression.
    """

    expression: Expression
    columns: dict[str, Column]


class _ColumnCollection(dict[str, Column]):
    """The columns that a loss uses, keyed by the names that the function `naming` returns."""

    def __init__(self, naming: Callable[[Column], str]) -> None:
        super().__init__()
        self.naming = naming

    def add(self, name: str, shape: Shape, *, is_target: bool) -> Name:
        """Add a column; return the leaf that represents it in the expression of the loss."""
        column = Column(name, shape, is_target)
        self[self.naming(column)] = column
        return Name(self.naming(column))


def column_name(column: Column) -> str:
    """Return the name of a loss column on a tape; it cannot clash with names in expressions."""
    return target_column_name(column.name)


def build_loss(
    tape: Tape,
    loss: str,
    *,
    extra: Shapes | None = None,
    role: str = DATA_COLUMN,
    naming: Callable[[Column], str] = column_name,
    class_labels: bool = False,
) -> Loss:
    """Build the expression of the loss per sample from the outputs of a tape.

    Args:
        tape: the tape of a graph.
        loss: the name of a loss or an expression.
        extra: shapes of the names outside the graph that the loss may use; by default any name.
        role: description of the `extra` names in error messages.
        naming: function that returns the name of a column in the expression.
        class_labels: whether the target of softmax cross-entropy is a class index instead of a
            probability for each class.

    Raises:
        UsageError: an unknown loss, or a graph without the outputs that the loss requires.
        SourceError: the loss is not a valid expression, or uses an unknown name.
        ShapeError: the loss cannot be applied to the shape of an output.
    """
    columns = _ColumnCollection(naming)
    outputs = {name: shape_of(tape, index) for name, index in tape.outputs.items()}
    if loss == OUTPUT:
        return Loss(Name(_only_scalar_output(outputs)), columns)
    variables = [name for name in tape.names if not is_internal(name)]
    tree = parse_loss(loss, (*variables, *(extra or ())))
    if callable(tree):
        raise UsageError(
            f"the loss {loss!r} is a Python function and has no expression,"
            " so it cannot be added to a graph",
            hint="pass the loss to train or loss_and_gradient",
        )
    if parse_loss_name(loss) == SOFTMAX and (class_labels or not any(outputs.values())):
        terms = [_softmax_cross_entropy(outputs, columns, class_labels=class_labels)]
    else:
        terms = _build_terms(tree, loss, outputs, variables, columns, extra, role)
    shapes = {name: shape_of(tape, index) for name, index in tape.names.items()}
    shapes |= {name: column.shape for name, column in columns.items()}
    totals = [Apply("sum", (term,)) if _infer_shape(term, shapes) else term for term in terms]
    return Loss(reduce(lambda a, b: Apply("add", (a, b)), totals), columns)


def _build_terms(
    tree: Expression,
    loss: str,
    outputs: Shapes,
    variables: list[str],
    columns: _ColumnCollection,
    extra: Shapes | None,
    role: str,
) -> list[Expression]:
    """Return the terms of a loss: one for each output, or a single one in names of the graph."""
    names = names_in(tree)
    # Even if a vertex is named out, a loss with a target means the output by this name.
    uses_outputs = "out" in names and ("out" not in variables or "target" in names)
    reserved = {"out", "target"} if uses_outputs or parse_loss_name(loss) in LOSSES else set[str]()
    others = [name for name in names if name not in variables and name not in reserved]
    if extra is not None and (unknown := [name for name in others if name not in extra]):
        raise _unknown_name_error(parse_loss_name(loss), unknown[0], variables, extra, role)
    replaced: dict[str, Expression] = {
        name: columns.add(name, (extra or {}).get(name, ()), is_target=False) for name in others
    }
    if not reserved:
        if not set(names) & set(variables):
            hint = f"use 'out' and 'target', or one of {join_names(variables)}"
            message = f"the loss {loss!r} does not refer to any name in the graph"
            raise UsageError(message, hint=hint)
        return [substitute(tree, replaced)]
    more = [name for name in names if name not in reserved]
    if more and len(outputs) > 1:
        message = (
            f"the loss {loss!r} would add {more[0]} once for each of the {len(outputs)} outputs"
        )
        raise UsageError(
            message, hint=f"write the loss in terms of the outputs: {join_names(outputs)}"
        )
    terms = []
    for name, shape in outputs.items():
        trees = {**replaced, "out": Name(name)}
        if "target" in names:
            trees["target"] = columns.add(name, shape, is_target=True)
        terms.append(substitute(tree, trees))
    return terms


def _infer_shape(tree: Expression, shapes: Shapes) -> Shape:
    """Infer the shape of a loss before the sum over its elements."""
    builder = Builder(simplify=False)

    def emit_leaf(node: Name | Number) -> int:
        """Emit a constant or a column; return the index of the value."""
        if isinstance(node, Number):
            return builder.constant(node.value)
        return builder.leaf("column", node.name, shape=shapes[node.name])

    try:
        return builder.shape(fold(tree, emit_leaf, partial(emit_function, builder)))
    except ShapeError as error:
        raise ShapeError(f"in the loss {unparse(tree)}: {error.message}", hint=error.hint) from None


def _only_scalar_output(outputs: Shapes) -> str:
    """Return the output of a graph that has a single scalar output; raise UsageError otherwise."""
    name, *others = outputs or ("",)
    if not name or others or outputs[name]:
        actual = f"{len(outputs)} outputs: {join_names(outputs)}" if others else "no output"
        if name and not others:
            actual = f"the output {name}{format_shape(outputs[name])}"
        hint = f"pass a variable or an expression: `loss={name or 'l'!r}`"
        message = "the loss 'output' requires a graph with a single scalar output"
        raise UsageError(f"{message}, got {actual}", hint=hint)
    return name


def _unknown_name_error(
    loss: str, name: str, variables: list[str], extra: Shapes, role: str
) -> DefinitionError:
    """Return the error for an unknown name in the expression of a loss."""
    span = locate_tokens(Source("<loss>", loss))[tokenize(loss).index(name)]
    hint = did_you_mean(name, (*variables, *extra)) or f"the graph has {join_names(variables)}"
    if name == "target":
        hint = "use 'target' together with 'out': (out - target)^2"
    message = f"unknown name {name!r}: it must be a name of the graph or {role}"
    return DefinitionError(message, span, hint=hint)


def _softmax_cross_entropy(
    outputs: Shapes, columns: _ColumnCollection, *, class_labels: bool
) -> Expression:
    """Build softmax cross-entropy; the logits are the scalar outputs, or one vector output."""
    logits: list[Expression] = [Name(name) for name in outputs]
    vectors = [shape for shape in outputs.values() if shape]
    classes = len(logits)
    if vectors:
        if len(outputs) > 1 or len(vectors[0]) != 1:
            shapes = ", ".join(name + format_shape(shape) for name, shape in outputs.items())
            message = f"class labels require one vector output or scalar outputs, got {shapes}"
            hint = "use probabilities in the shape of the output as targets"
            raise UsageError(message, hint=hint)
        classes, logarithms = vectors[0][0], Apply("log_softmax", (logits[0],))
        logits = [Apply(Index((k,)), (logarithms,)) for k in range(classes)]
    if classes < 2:
        hint = "for a single logit, use cross-entropy-logit"
        raise UsageError(f"{SOFTMAX} requires two or more outputs, got 1", hint=hint)
    if class_labels:
        label = columns.add("", (), is_target=True)
        selected = logits[-1]
        for k in reversed(range(classes - 1)):
            is_class = Apply("equal", (label, Number(float(k))))
            selected = Apply("where", (is_class, logits[k], selected))
    else:
        products: list[Expression] = [
            Apply("mul", (columns.add(name, (), is_target=True), logit))
            for name, logit in zip(outputs, logits, strict=True)
        ]
        selected = reduce(lambda a, b: Apply("add", (a, b)), products)
    if vectors:
        return Apply("neg", (selected,))
    normalization = reduce(lambda a, b: Apply("logaddexp", (a, b)), logits)
    return Apply("sub", (normalization, selected))


# --- attaching -----------------------------------------------------------------------------------


@pause_garbage_collection()
def attach_to_tape(tape: Tape, loss: Loss) -> Tape:
    """Emit a loss after the instructions of a tape; the loss becomes the only output."""
    builder = Builder(simplify=False)
    builder.extend(tape)
    for name, column in loss.columns.items():
        builder.leaf("column", name, shape=column.shape)
    if isinstance(loss.expression, Name):  # the loss `output` needs no instruction
        total = builder.name(builder.names[loss.expression.name], LOSS)
    else:
        total = emit_vertex(builder, LOSS, loss.expression)
    return verify(builder.finish({LOSS: total}))


def with_loss(tape: Tape, loss: str) -> Tape:
    """Return a tape with a column for each target and the loss of a sample as its only output.

    Arguments and errors are those of :func:`build_loss`.

    >>> import cgprimer
    >>> print(with_loss(cgprimer.tape(cgprimer.parse("xw = k*xa")), "squared-error"))
    input     xa
    target    target_xw
    parameter k
    xw = k*xa
    v1 = xw - target_xw
    loss_sample = v1^2
    output    loss_sample
    """
    return attach_to_tape(tape, build_loss(tape, loss))


def _make_unique(graph: ExpressionGraph, name: str) -> str:
    """Append underscores to a name until the graph does not use it."""
    while name in graph.variables or name in graph.parameters:
        name += "_"
    return name


def input_name(graph: ExpressionGraph, column: Column) -> str:
    """Return the name of the graph input that represents a column of an attached loss."""
    if not column.is_target:
        return column.name
    several = len(graph.outputs) > 1 and column.name
    return _make_unique(graph, f"target_{column.name}" if several else "target")


def attach_to_graph(
    graph: ExpressionGraph, primal: Tape, loss: str, extra: Shapes | None
) -> tuple[ExpressionGraph, dict[str, Column]]:
    """Add a loss to a graph as its only output.

    Args:
        graph: the graph.
        primal: the tape of the graph.
        loss: the name of a loss or an expression.
        extra: shapes of the names outside the graph that the loss may use; by default any name.

    Returns:
        The graph with the loss, and the columns that became new inputs, keyed by their names.
    """
    naming = partial(input_name, graph)
    single = naming(Column("", (), True))
    targets = {naming(Column(output, (), True)) for output in graph.outputs}
    class_labels = not (extra and (extra.get(single) or (targets - {single}) & {*extra}))
    if extra is not None and parse_loss_name(loss) in LOSSES:
        extra = {name: shape for name, shape in extra.items() if name not in {single, *targets}}
    expression, columns = build_loss(
        primal, loss, extra=extra, role=POINT_VALUE, naming=naming, class_labels=class_labels
    )
    name = _make_unique(graph, "loss")
    inputs = [n + (format_shape(c.shape) if c.shape else "") for n, c in columns.items()]
    lines = [f"input {', '.join(inputs)}"] if inputs else []
    text = "\n".join([*lines, f"{name} = {unparse(expression)}", f"output {name}"])
    first, tokens = len(tokenize(graph.source.text)), tokenize(text)
    statements: list[Definition | Declaration] = [
        s for s in graph.program.statements if getattr(s, "role", "") != "output"
    ]
    for leaf, column in columns.items():
        at = first + tokens.index(leaf)
        statements.append(Declaration("input", leaf, None, at, column.shape))
    at = first + tokens.index(name)
    statements.append(Definition(name, expression, tuple(names_in(expression)), at))
    statements.append(Declaration("output", name, None, first + len(tokens) - 2))
    source = Source(graph.source.name, f"{graph.source.text}\n{text}")
    return build_graph(Program(source, tuple(statements))), columns


def check_targets(
    loss: str, primal: Tape, columns: Mapping[str, Column], at: Mapping[str, Any]
) -> None:
    """Raise DataError if a target at a point is not valid for the loss."""
    for name, column in columns.items():
        if name in at and column.is_target:
            value = convert_value(name, at[name])
            sample = not isinstance(value, float)
            if column.name:
                check_target(loss, value, f"the target {name!r}", sample=sample)
                continue
            shapes = [primal.shapes[index] for index in primal.outputs.values()]
            classes = shapes[0][0] if shapes[0] else len(shapes)
            check_class_indices(value, classes, f"the target {name!r}", sample=sample)
