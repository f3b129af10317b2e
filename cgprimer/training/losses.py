"""Losses: text in cgprimer's own language, put onto the tape as one more vertex.

The loss of a sample is the sum, over the outputs and all their elements, of an expression in
``out`` (the output's value) and ``target``. So it is differentiated, compiled and printed like
everything else. ``out`` and ``target`` have the output's shape: functions of arrays can be used.
"""

from __future__ import annotations

from cgprimer.core.language.syntax import Expression, Name, Number, fold, postorder
from cgprimer.core.primitives.array_functions import apply
from cgprimer.core.primitives.notation import parse_expression
from cgprimer.core.primitives.shaped import total as total_of
from cgprimer.core.tape.builder import Builder
from cgprimer.core.tape.tape import Tape, shape_of
from cgprimer.core.tape.verifier import checked
from cgprimer.errors import UsageError, did_you_mean
from cgprimer.garbage_collection import collector_paused
from cgprimer.plugins import Registry

SQUARED_ERROR = "(out - target)^2"
HALF_SQUARED_ERROR = "(out - target)^2/2"
ABSOLUTE_ERROR = "abs(out - target)"
CROSS_ENTROPY = (  # the factor keeps 0*log(0) out, which would be nan for a perfect prediction
    "-where(target, target*log(out), 0) - where(1 - target, (1 - target)*log(1 - out), 0)"
)
LOSSES: Registry[str] = Registry(
    "loss",
    "cgprimer.losses",
    {
        name: f"{__name__}:{name.upper().replace('-', '_')}"
        for name in ("squared-error", "half-squared-error", "absolute-error", "cross-entropy")
    },
)
TARGET = "target."  #: before the name of an output, the name of the column with its target
LOSS = "loss.sample"  #: name of the loss on the tape; no variable of a user can have a dot


def register_loss(name: str, text: str) -> None:
    """Add a loss of one's own; ``train(..., loss=name)`` finds it at once.

    A package adds one by an entry point of the group ``cgprimer.losses`` that names the text.

    Args:
        name: what it shall be called.
        text: the loss of a sample, in ``out`` (the output's value) and ``target``.

    Raises:
        UsageError: the name is taken, or the text names something else.
        SourceError: it is no expression.

    >>> register_loss("hinge", "max(0, 1 - out*target)")
    >>> import cgprimer
    >>> data = cgprimer.Dataset.from_arrays({"xa": [1.0]}, {"xw": [1.0]})
    >>> cgprimer.loss_and_gradient(cgprimer.parse("xw = k*xa"), data, loss="hinge")({"k": 0.25})
    (0.75, {'k': -1.0})
    >>> unregister_loss("hinge")
    """
    loss_expression(text)
    LOSSES.register(name, text)


unregister_loss = LOSSES.unregister


def loss_text(loss: str) -> str:
    """The text of a loss: of one of ``LOSSES``, or the text itself."""
    if not isinstance(loss, str):
        raise UsageError(f"a loss is a name or an expression, not {type(loss).__name__}")
    if loss in LOSSES:
        return LOSSES[loss]
    close = did_you_mean(loss, LOSSES)
    if close or "out" not in loss:
        hint = close or f"one of: {', '.join(LOSSES)}, or an expression in out and target"
        raise UsageError(f"there is no loss {loss!r}", hint=hint)
    return loss


def loss_expression(loss: str) -> Expression:
    """The syntax tree of a loss: one of ``LOSSES``, or text in ``out`` and ``target``.

    Raises:
        UsageError: neither a known loss nor an expression that uses ``out``.

    >>> from cgprimer.core.primitives.notation import unparse
    >>> unparse(loss_expression("absolute-error"))
    'abs(out - target)'
    """
    text = loss_text(loss)
    tree = parse_expression(text, source_name="<loss>")
    names = {node.name for node in postorder(tree) if isinstance(node, Name)}
    stray = sorted(names - {"out", "target"})
    if stray or "out" not in names:
        wrong = f"{text!r} also names {stray[0]!r}" if stray else f"{text!r} is not"
        hint = did_you_mean(stray[0], ("out", "target")) if stray else ""
        raise UsageError(f"a loss is an expression in 'out' and 'target'; {wrong}", hint=hint)
    return tree


@collector_paused()
def with_loss(tape: Tape, loss: str) -> Tape:
    """The tape with a target column for each output, and the loss of a sample as its output.

    >>> import cgprimer
    >>> print(with_loss(cgprimer.tape(cgprimer.parse("xw = k*xa")), "squared-error"))
    column  xa
    column  target_xw
    scalar  k
    xw = k*xa
    v1 = xw - target_xw
    loss_sample = v1^2
    output  loss_sample

    Raises:
        ShapeError: the loss does not fit an output's shape.
    """
    tree = loss_expression(loss)
    builder = Builder(simplify=False)
    value = builder.extend(tape)
    total: int | None = None
    for output, index in tape.outputs.items():
        target = builder.leaf("column", TARGET + output, shape=shape_of(tape, index))
        known = {"out": value[index], "target": target}

        def leaf(node: Name | Number, known: dict[str, int] = known) -> int:
            return known[node.name] if isinstance(node, Name) else builder.constant(node.value)

        share = fold(tree, leaf, lambda row, operands: apply(builder, row, operands))
        share = total_of(builder, share)  # itself, of a number
        total = share if total is None else builder.emit("add", total, share)
    assert total is not None
    return checked(builder.finish({LOSS: builder.name(total, LOSS)}))
