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
from cgprimer.core.tape.tape_entries import Contribution, Instruction, Kind, Leaf
from cgprimer.errors import ShapeError, TapeError, UsageError, join_names, name_hint
from cgprimer.support.value_names import parse_element

if TYPE_CHECKING:
    from cgprimer.core.operations.array_operation import ArrayOperation

Share = Contribution  #: the name of earlier versions


@dataclass(frozen=True, eq=False, repr=False)
class Tape:
    """A straight-line program: leaves, and instructions that compute values from earlier values.

    Attributes:
        leaves: the columns, scalars and constants.
        instructions: the operations, in execution order.
        outputs: the index of the value of each output, keyed by name.
        names: the index of each named value (columns, scalars, vertices of the graph, adjoints
            and tangents), keyed by name.
        shares: the contributions of a derivative program, in the order of its sweep.
        shapes: the shape of every value for one sample; ``()`` for a scalar. If no shapes are
            passed, they are inferred.

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
        """Return the number of instructions."""
        return len(self.instructions)

    @property
    def size(self) -> int:
        """The number of values: leaves plus instructions."""
        return len(self.leaves) + len(self.instructions)

    def index(self, name: str) -> int:
        """Return the index of the value with the given name.

        Raises:
            UsageError: no value of the tape has the name.
        """
        index = self.names.get(name, self.outputs.get(name))
        if index is None:
            array = parse_element(name)[0]
            hint = f"pass the whole array {array!r}, or define the element: NAME = {name}"
            hint = hint if array in self.names else name_hint(name, self.names)
            raise UsageError(f"the tape has no value named {name!r}", hint=hint)
        return index

    def instruction(self, index: int) -> Instruction | None:
        """Return the instruction that computes the value at an index; None for a leaf."""
        return self.instructions[index - len(self.leaves)] if index >= len(self.leaves) else None

    @cached_property
    def labels(self) -> dict[int, str]:
        """The first name of each named value, keyed by the index of the value."""
        labels: dict[int, str] = {}
        for name, index in self.names.items():
            labels.setdefault(index, name)
        return labels

    @cached_property
    def has_arrays(self) -> bool:
        """True if the tape has arrays or array operations; False if all values are scalars."""
        return any(self.shapes) or bool(self.array_operations)

    @cached_property
    def array_operations(self) -> frozenset[ArrayOperation]:
        """The array operations, such as matrix products, that the instructions apply."""
        return frozenset([a for a in {a for a, _ in self.instructions} if not isinstance(a, str)])

    @property
    def combines_samples(self) -> bool:
        """True if an operation combines the samples of a batch, as ``batch_mean`` does."""
        return any(operation.combines_samples for operation in self.array_operations)

    @cached_property
    def custom(self) -> tuple[str, ...]:
        """The names of the user-defined functions with a custom backward pass."""
        custom: Iterable[Any] = (o for o in self.array_operations if o.runs_python)
        return tuple(sorted({operation.function.name for operation in custom}))

    def of_kind(self, kind: Kind) -> tuple[str, ...]:
        """Return the names of all leaves of a kind (column, scalar or constant), in tape order."""
        return tuple(leaf.name for leaf in self.leaves if leaf.kind == kind)

    def __repr__(self) -> str:
        outputs = join_names(self.outputs)
        return f"<Tape: {len(self.leaves)} leaves, {len(self)} instructions, outputs {outputs}>"

    def __str__(self) -> str:
        from cgprimer.core.tape.tape_printing import format_tape

        return format_tape(self)


def infer_shapes(tape: Tape) -> tuple[Shape, ...]:
    """Infer the shapes of all values of a tape from its leaves and instructions.

    Raises:
        TapeError: an operation does not accept the shapes of its operands.
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
    """Return the shape of a value of a tape for one sample; ``()`` for a scalar."""
    return tape.shapes[index]
