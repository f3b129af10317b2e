"""A loss put behind a graph: one more vertex, on its tape or in its text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any, NamedTuple

from cgprimer.core.graph import ExpressionGraph, graph_of
from cgprimer.core.language.names import names_in, replaced
from cgprimer.core.language.syntax import (
    Apply,
    Declaration,
    Definition,
    Expression,
    Name,
    Number,
    Program,
    Shape,
    Structural,
    fold,
)
from cgprimer.core.language.tokens import spans, tokenize
from cgprimer.core.losses import (
    LOSS,
    LOSSES,
    OUTPUT,
    SOFTMAX,
    TARGET,
    base_name,
    check_classes,
    check_target,
    loss_tree,
)
from cgprimer.core.primitives.array_functions import apply
from cgprimer.core.primitives.notation import unparse
from cgprimer.core.primitives.shaped import total as total_of
from cgprimer.core.primitives.structural import shape_text
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape, shape_of
from cgprimer.core.tape.verifier import checked
from cgprimer.errors import DefinitionError, ShapeError, Source, UsageError, did_you_mean, listed
from cgprimer.garbage_collection import collector_paused
from cgprimer.numbers_and_arrays import as_value

Shapes = Mapping[str, Shape]


class Column(NamedTuple):
    """A column that a loss needs beside the graph's inputs.

    Attributes:
        name: of the output that it is the target of, or its own.
        shape: of a sample.
        is_target: whether it is the target of an output.
    """

    name: str
    shape: Shape
    is_target: bool


class Terms(NamedTuple):
    """A loss about a graph: the sum of some trees.

    Attributes:
        trees: in the names of the graph and of the columns.
        columns: the columns that the loss needs besides, by their names there.
    """

    trees: list[Expression]
    columns: dict[str, Column]


def loss_terms(
    tape: Tape,
    loss: str,
    *,
    given: Shapes | None = None,
    role: str = "a column of the data",
    naming: Callable[[Column], str] = lambda column: TARGET + column.name,
    labels: bool = False,
) -> Terms:
    """What a loss says about the outputs of a tape.

    Args:
        tape: of a graph.
        loss: a name or a text.
        given: the names beside those of the graph that the loss may use, and their shapes; any
            unless given.
        role: what messages call these.
        naming: what a column is called on the tape.
        labels: softmax cross-entropy: the target is the number of a class, not a probability for
            each.

    Raises:
        UsageError: no such loss; the graph has not the outputs that it is about.
        SourceError: the text is no expression, or has a name that nobody knows.
    """
    columns: dict[str, Column] = {}

    def column(name: str, shape: Shape, *, is_target: bool) -> Name:
        made = Column(name, shape, is_target)
        columns[naming(made)] = made
        return Name(naming(made))

    outputs = {name: shape_of(tape, index) for name, index in tape.outputs.items()}
    if loss == OUTPUT:
        return Terms([Name(_only(outputs))], columns)
    known = [name for name in tape.names if "." not in name]
    tree = loss_tree(loss, (*known, *(given or ())))
    if callable(tree):
        raise UsageError(
            f"the loss {loss!r} is a function of Python that no expression says:"
            " a graph cannot have it as a vertex",
            hint="train and loss_and_gradient can use it",
        )
    if base_name(loss) == SOFTMAX and (labels or not any(outputs.values())):
        return Terms([_softmax(outputs, column, labels=labels)], columns)
    names = names_in(tree)
    # A vertex of the graph may be called out: with a target it is the output all the same.
    usual = "out" in names and ("out" not in known or "target" in names)
    about = {"out", "target"} if usual or base_name(loss) in LOSSES else set[str]()
    others = [n for n in names if n not in known and n not in about]
    if given is not None and (strange := [n for n in others if n not in given]):
        raise _unknown(base_name(loss), strange[0], known, given, role)
    shapes = {n: (given or {}).get(n, ()) for n in others}
    own: dict[str, Expression] = {n: column(n, s, is_target=False) for n, s in shapes.items()}
    if not about:
        if not set(names) & set(known):
            hint = f"the graph has {listed(known)}; or say it in 'out' and 'target'"
            raise UsageError(f"the loss {loss!r} names nothing of the graph", hint=hint)
        return Terms([replaced(tree, own)], columns)
    more = [name for name in names if name not in about]
    if more and len(outputs) > 1:
        what = f"{loss!r} would count {more[0]} once for each of {len(outputs)} outputs"
        raise UsageError(what, hint=f"name the outputs: {listed(outputs)}")
    trees = []
    for name, shape in outputs.items():
        here = {**own, "out": Name(name)}
        if "target" in names:
            here["target"] = column(name, shape, is_target=True)
        trees.append(replaced(tree, here))
    return Terms(trees, columns)


@collector_paused()
def put(tape: Tape, terms: Terms) -> tuple[Tape, Expression]:
    """The tape with the loss of a sample as its only output, and the tree of the whole loss.

    Raises:
        ShapeError: the loss does not fit an output's shape.
    """
    builder = Builder(simplify=False)
    builder.extend(tape)
    for leaf, column in terms.columns.items():
        builder.leaf("column", leaf, shape=column.shape)

    def value(node: Name | Number) -> int:
        return builder.names[node.name] if isinstance(node, Name) else builder.constant(node.value)

    totals, trees = [], list(terms.trees)
    for k, tree in enumerate(trees):
        try:
            share = int(fold(tree, value, lambda row, operands: apply(builder, row, operands)))
        except ShapeError as error:
            what = f"the loss {unparse(tree)}: {error.message}"
            raise ShapeError(what, hint=error.hint) from None
        totals.append(total_of(builder, share))  # itself, of a number
        trees[k] = Apply("sum", (tree,)) if builder.shape(share) else tree
    total = reduce(lambda a, b: builder.emit("add", a, b), totals)
    whole: Expression = reduce(lambda a, b: Apply("add", (a, b)), trees)
    return checked(builder.finish({LOSS: builder.name(total, LOSS)})), whole


def with_loss(tape: Tape, loss: str) -> Tape:
    """The tape with a column for each target, and the loss of a sample as its output.

    Arguments and errors are those of :func:`loss_terms` and :func:`put`.

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
    return put(tape, loss_terms(tape, loss))[0]


def _only(outputs: Shapes) -> str:
    """The output that is the loss."""
    name, *others = outputs or ("",)
    if not name or others or outputs[name]:
        has = f"{len(outputs)} outputs: {listed(outputs)}" if others else "no output"
        has = f"the output {name}{shape_text(outputs[name])}" if name and not others else has
        hint = f"say which, or what of them: loss={name or 'l'!r} (--loss {name or 'l'})"
        raise UsageError(
            f"a loss 'output' is the graph's only output, a number; the graph has {has}", hint=hint
        )
    return name


def _unknown(loss: str, name: str, known: list[str], given: Shapes, role: str) -> DefinitionError:
    """A name is neither the graph's nor a column."""
    place = spans(Source("<loss>", loss))[tokenize(loss).index(name)]
    hint = did_you_mean(name, (*known, *given))
    if name == "target":
        hint = "the target is that of 'out', the output: (out - target)^2"
    said = f"{name!r} is neither a name of the graph nor {role}"
    return DefinitionError(said, place, hint=hint or f"the graph has {listed(known)}")


def _softmax(outputs: Shapes, column: Callable[..., Name], *, labels: bool) -> Expression:
    """Cross-entropy of classes whose logits are the outputs, or the numbers of one output."""
    logits: list[Expression] = [Name(name) for name in outputs]
    rows = [shape for shape in outputs.values() if shape]
    classes = len(logits)
    if rows:
        if len(outputs) > 1 or len(rows[0]) != 1:
            own = ", ".join(name + shape_text(shape) for name, shape in outputs.items())
            hint = f"targets as probabilities have the output's shape: {own}"
            raise UsageError("a class is named of one output with an axis, or of numbers",
                             hint=hint)  # fmt: skip
        classes, shares = rows[0][0], Apply("log_softmax", (logits[0],))
        logits = [Apply(Structural("index", k), (shares,)) for k in range(classes)]
    if classes < 2:
        hint = "for one logit: cross-entropy-logit"
        raise UsageError(f"{SOFTMAX} chooses between outputs, and the graph has one", hint=hint)
    if labels:
        label = column("", (), is_target=True)
        chosen = logits[-1]
        for k in reversed(range(classes - 1)):
            chosen = Apply("where", (Apply("equal", (label, Number(float(k)))), logits[k], chosen))
    else:
        both = zip(outputs, logits, strict=True)
        each = [Apply("mul", (column(n, (), is_target=True), logit)) for n, logit in both]
        chosen = reduce(lambda a, b: Apply("add", (a, b)), each)
    if rows:
        return Apply("neg", (chosen,))
    total = reduce(lambda a, b: Apply("logaddexp", (a, b)), logits)
    return Apply("sub", (total, chosen))


# --- a graph with its loss -----------------------------------------------------------------------


def _free(graph: ExpressionGraph, name: str) -> str:
    """A name that the graph does not have."""
    while name in graph.variables or name in graph.parameters:
        name += "_"
    return name


def input_name(graph: ExpressionGraph, column: Column) -> str:
    """What the input of a graph with its loss is called that a column of the data is for."""
    if not column.is_target:
        return column.name
    several = len(graph.outputs) > 1 and column.name
    return _free(graph, f"target_{column.name}" if several else "target")


def appended(
    graph: ExpressionGraph, primal: Tape, loss: str, given: Shapes | None
) -> tuple[ExpressionGraph, dict[str, Column]]:
    """The graph with the loss as its only output, and the inputs that come with it.

    Arguments and errors are those of :func:`cgprimer.core.derivatives.graph_with_loss`; `primal` is
    the graph's tape.
    """
    naming = partial(input_name, graph)
    single = naming(Column("", (), True))
    each = {naming(Column(output, (), True)) for output in graph.outputs}
    labels = not (given and (given.get(single) or (each - {single}) & {*given}))
    if given is not None and base_name(loss) in LOSSES:
        given = {name: shape for name, shape in given.items() if name not in {single, *each}}
    role = "given a value (--at NAME=VALUE)"
    terms = loss_terms(primal, loss, given=given, role=role, naming=naming, labels=labels)
    tree, columns = put(primal, terms)[1], terms.columns
    name = _free(graph, "loss")
    inputs = [n + (shape_text(c.shape) if c.shape else "") for n, c in columns.items()]
    lines = [*([f"input {', '.join(inputs)}"] if inputs else []), f"{name} = {unparse(tree)}"]
    text = "\n".join([*lines, f"output {name}"])
    place, words = len(tokenize(graph.source.text)), tokenize(text)
    statements: list[Definition | Declaration] = [
        s for s in graph.program.statements if getattr(s, "role", "") != "output"
    ]
    for leaf, column in columns.items():
        statements.append(Declaration("input", leaf, None, place + words.index(leaf), column.shape))
    statements.append(Definition(name, tree, tuple(names_in(tree)), place + words.index(name)))
    statements.append(Declaration("output", name, None, place + len(words) - 2))
    source = Source(graph.source.name, f"{graph.source.text}\n{text}")
    return graph_of(Program(source, tuple(statements))), columns


def check_point(
    loss: str, primal: Tape, columns: Mapping[str, Column], at: Mapping[str, Any]
) -> None:
    """Raise DataError if the target of a point is none that the loss knows."""
    for name, column in columns.items():
        if name in at and column.is_target:
            value = as_value(name, at[name])
            sample = not isinstance(value, float)
            if column.name:
                check_target(loss, value, f"the target {name!r}", sample=sample)
                continue
            shapes = [shape_of(primal, index) for index in primal.outputs.values()]
            classes = shapes[0][0] if shapes[0] else len(shapes)
            check_classes(value, classes, f"the target {name!r}", sample=sample)
