"""The tape: a straight-line program as plain data.

A tape is a Wengert list: leaves first, then instructions in execution order, then names for
some of the values and the list of outputs. A value is an index: leaf ``i`` is value ``i``,
instruction ``j`` is value ``len(leaves) + j``. Every operand precedes its use.

Internal names (``bar.xz``, ``dot.xa``, ``target.xw``) contain a dot, which names of users cannot.

Source: Wengert 1964, "A simple automatic derivative evaluation program".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cgprimer.core.language.syntax_tree import Shape
from cgprimer.core.language.value_names import parse_element
from cgprimer.core.tape.tape_entries import Contribution, Instruction, Kind, Leaf
from cgprimer.errors import ShapeError, TapeError, UsageError, join_names, name_hint

if TYPE_CHECKING:
    from cgprimer.core.operations.array_operation import ArrayOperation

Share = Contribution  #: the name of earlier versions


@dataclass(frozen=True, eq=False, repr=False)
class Tape:
    """A straight-line program.

    Attributes:
        leaves: columns, scalars and constants.
        instructions: in execution order.
        outputs: the names of the outputs, and the index of each value.
        names: every named value: columns, scalars, vertices of the graph, adjoints, tangents.
        shapes: the shape of every value, per sample; ``()`` for a scalar. A builder infers
            them; they are inferred here if a tape is created without a builder.
        shares: the contributions of a derivative program, in the order of its sweep.

    >>> import cgprimer
    >>> print(cgprimer.tape(cgprimer.parse("xx = xa^2; xw = cd*xx + 1")))
    input     xa
    parameter cd
    xx = xa^2
    v1 = cd*xx
    xw = v1 + 1
    output    xw
    """

    leaves: tuple[Leaf, ...]
    instructions: tuple[Instruction, ...]
    outputs: Mapping[str, int]
    names: Mapping[str, int] = field(default_factory=dict)
    shares: tuple[Contribution, ...] = ()
    shapes: tuple[Shape, ...] = ()

    def __post_init__(self) -> None:
        if len(self.shapes) != self.size:
            object.__setattr__(self, "shapes", infer_shapes(self))

    def __len__(self) -> int:
        """Number of instructions."""
        return len(self.instructions)

    @property
    def size(self) -> int:
        """Number of values: leaves and instructions."""
        return len(self.leaves) + len(self.instructions)

    def index(self, name: str) -> int:
        """Return the index of a named value.

        Raises:
            UsageError: no value of the tape has that name.
        """
        index = self.names.get(name, self.outputs.get(name))
        if index is None:
            array = parse_element(name)[0]
            hint = f"pass the whole array {array!r}, or define the element: NAME = {name}"
            hint = hint if array in self.names else name_hint(name, self.names)
            raise UsageError(f"the tape has no value named {name!r}", hint=hint)
        return index

    def instruction(self, index: int) -> Instruction | None:
        """Return the instruction that computes a value; None for a leaf."""
        return self.instructions[index - len(self.leaves)] if index >= len(self.leaves) else None

    @cached_property
    def labels(self) -> dict[int, str]:
        """The first name of each named value, by index."""
        labels: dict[int, str] = {}
        for name, index in self.names.items():
            labels.setdefault(index, name)
        return labels

    @cached_property
    def has_arrays(self) -> bool:
        """True if any value is an array, or comes from an operation on arrays."""
        return any(self.shapes) or bool(self.array_operations)

    @cached_property
    def array_operations(self) -> frozenset[ArrayOperation]:
        """The operations on arrays that the instructions apply."""
        return frozenset([a for a in {a for a, _ in self.instructions} if not isinstance(a, str)])

    @property
    def combines_samples(self) -> bool:
        """True if an operation combines all samples, as ``batch_mean`` does."""
        return any(operation.combines_samples for operation in self.array_operations)

    @cached_property
    def custom(self) -> tuple[str, ...]:
        """The names of the functions with a custom backward pass."""
        custom: Iterable[Any] = (o for o in self.array_operations if o.runs_python)
        return tuple(sorted({operation.function.name for operation in custom}))

    def of_kind(self, kind: Kind) -> tuple[str, ...]:
        """Return the names of the leaves of a kind, in their order."""
        return tuple(leaf.name for leaf in self.leaves if leaf.kind == kind)

    def __repr__(self) -> str:
        outputs = join_names(self.outputs)
        return f"<Tape: {len(self.leaves)} leaves, {len(self)} instructions, outputs {outputs}>"

    def __str__(self) -> str:
        from cgprimer.core.tape.tape_printing import format_tape

        return format_tape(self)


def infer_shapes(tape: Tape) -> tuple[Shape, ...]:
    """Return the shapes of all values, inferred from the leaves and the instructions.

    Raises:
        TapeError: an operation does not accept its operands; the message names the instruction.
    """
    shapes = [leaf.shape for leaf in tape.leaves]
    if not any(shapes) and not tape.array_operations:
        return ((),) * tape.size
    constants = {i for i, leaf in enumerate(tape.leaves) if leaf.kind == "constant"}
    for position, (applied, operands) in enumerate(tape.instructions):
        try:
            operand_shapes = [shapes[o] for o in operands]
            if not isinstance(applied, str):
                shapes.append(applied.shape(*operand_shapes))
                continue
        except (ShapeError, IndexError, TypeError, ValueError) as error:
            raise TapeError(f"instruction {position}: {applied}: {error}") from None
        arrays = {s for s, o in zip(operand_shapes, operands, strict=True) if o not in constants}
        if len(arrays) > 1:  # constants have every shape
            texts = " and ".join([str(list(shape)) for shape in sorted(arrays)])
            problem = f"the operands of {applied!r} must have the same shape, got {texts}"
            raise TapeError(f"instruction {position}: {problem}")
        shapes.append(max(operand_shapes, key=len, default=()))
    return tuple(shapes)


def shape_of(tape: Tape, index: int) -> Shape:
    """Return the shape of a value of a tape, per sample."""
    return tape.shapes[index]
