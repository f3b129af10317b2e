"""The tape: a straight-line program as plain data, and its text.

A tape is a Wengert list: leaves first, then instructions in execution order, then names for
some of the values and the list of outputs. A value is an index: leaf ``i`` is value ``i``,
instruction ``j`` is value ``len(leaves) + j``. Every operand precedes its use.

Internal names (``bar.xz``, ``dot.xa``, ``target.xw``) contain a dot, which names of users cannot.

Source: Wengert 1964, "A simple automatic derivative evaluation program".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from cgprimer.core.language.syntax_tree import (
    Apply,
    Expression,
    Name,
    Number,
    Operator,
    Shape,
    operator_name,
)
from cgprimer.core.language.value_names import is_internal, parse_element, parse_internal
from cgprimer.core.operations.primitive_registry import Applied
from cgprimer.errors import ShapeError, TapeError, UsageError, join_names, name_hint

if TYPE_CHECKING:
    from cgprimer.core.operations.array_operation import ArrayOperation

Kind = Literal["column", "scalar", "constant"]

_MAX_WIDTH = 48  # of a line before the comment with its shape
_INTERNAL_LEAVES = {  # roles of leaves that the package names, by the first part of the name
    "seed": "seed",
    "dot": "seed",
    "bar": "seed",
    "shift": "shift",
    "target": "target",
    "mask": "mask",
    "mean": "statistic",
    "variance": "statistic",
}


class Leaf(NamedTuple):
    """An input of the tape: a column (one value per sample), a scalar (one for all) or a constant.

    Values are numbers; if the leaf has a shape, each value is an array of this shape.
    """

    kind: Kind
    name: str
    value: float = 0.0  # of a constant; a mask's probability of 1; a statistic's initial value
    shape: Shape = ()  # per sample


class Instruction(NamedTuple):
    """An operation applied to earlier values.

    Attributes:
        primitive: the name of an elementwise primitive, such as ``mul``, or an
            :class:`~cgprimer.core.operations.array_operation.ArrayOperation`.
        operands: the indices of the values that it is applied to.
    """

    primitive: Applied
    operands: tuple[int, ...]


class Contribution(NamedTuple):
    """A product that a derivative program adds along one edge; each field is an index of a value.

    ``total`` is a sum of products: the adjoint of ``tail`` in reverse mode, the tangent of ``head``
    in forward mode. Traces, diagrams and explanations of derivatives read contributions.

    Attributes:
        tail: an operand.
        head: the value that is computed from it.
        partial: the derivative of ``head`` with respect to ``tail``.
        product: the adjoint of ``head`` times the partial, or the partial times the tangent of
            ``tail``.
        total: the sum so far, including this product.
    """

    tail: int
    head: int
    partial: int
    product: int
    total: int


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
        return listing(self)


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


# --- text -----------------------------------------------------------------------------------------


def shown_name(name: str) -> str:
    """Return a name as it is printed: ``bar_xz`` for ``bar.xz``."""
    return name.replace(".", "_")


def labels(tape: Tape) -> list[str]:
    """Return the printed name of each value: its name or ``v1``, ``v2``, ...; "" for constants."""
    shown, printed = shown_names(tape), []
    used = set(shown.values())
    unused = (name for name in map("v{}".format, count(1)) if name not in used)
    for index in range(tape.size):
        if index < len(tape.leaves) and tape.leaves[index].kind == "constant":
            printed.append("")  # printed by value, even if it has a name
        elif index in tape.labels:
            printed.append(shown[tape.labels[index]])
        else:
            printed.append(next(unused))
    return printed


def shown_names(tape: Tape) -> dict[str, str]:
    """Return a unique printed name for every name; names of users are printed unchanged.

    >>> import cgprimer
    >>> tape = cgprimer.tape(cgprimer.parse("bar_xw = k*xa; xw = bar_xw^2; output xw"))
    >>> shown = shown_names(cgprimer.differentiate(tape).tape)
    >>> shown["bar_xw"], shown["bar.xw"]
    ('bar_xw', 'bar_xw_')
    """
    names = (*tape.names, *tape.outputs)
    shown = {name: name for name in names if not is_internal(name)}
    used = {*shown}
    for name in names:
        if name not in shown:
            text = shown_name(name)
            while text in used:
                text += "_"
            used.add(text)
            shown[name] = text
    return shown


def expressions(tape: Tape, *, inline: bool = False) -> dict[int, Expression]:
    """Return the right-hand side of every instruction as a syntax tree, by index.

    With ``inline``, unnamed values that are used once are nested in the expression that uses them,
    and have no entry.
    """
    names = labels(tape)
    uses = Counter(operand for _, operands in tape.instructions for operand in operands)
    uses.update(dict.fromkeys(tape.outputs.values(), 2))
    first = len(tape.leaves)
    trees: dict[int, Expression] = {}
    folded: set[int] = set()

    def operand_tree(index: int) -> Expression:
        if index < first and tape.leaves[index].kind == "constant":
            return Number(tape.leaves[index].value)
        if index in folded:
            return trees.pop(index)
        return Name(names[index])

    for position, (primitive, operands) in enumerate(tape.instructions):
        index, operand_shapes = first + position, [tape.shapes[o] for o in operands]
        function = shown_function(primitive, *operand_shapes)
        trees[index] = Apply(function, tuple(operand_tree(o) for o in operands))
        if inline and uses[index] == 1 and index not in tape.labels:
            folded.add(index)
    return trees


def shown_function(applied: Applied, *operands: Shape) -> str | Operator:
    """Return what an instruction applies as it is printed: a sum over all axes without them."""
    if operator_name(applied) not in ("sum", "largest"):
        return applied
    reduction: Any = applied
    return operator_name(applied) if len(reduction.axes) == len(operands[0]) else applied


def leaf_role(leaf: Leaf) -> str:
    """Return the role of a leaf for a reader: input, parameter, seed, shift, mask, statistic.

    >>> leaf_role(Leaf("column", "xa")), leaf_role(Leaf("scalar", "W1"))
    ('input', 'parameter')
    >>> leaf_role(Leaf("scalar", "dot.xa"))
    'seed'
    """
    if role := _INTERNAL_LEAVES.get(parse_internal(leaf.name).kind.rstrip("0123456789")):
        return role
    return "input" if leaf.kind == "column" else "parameter"


def listing(tape: Tape) -> str:
    """Return the tape as text, one line per leaf, instruction and output, with array shapes."""
    from cgprimer.core.operations.notation import unparse  # not needed to run a tape

    names, shown = labels(tape), shown_names(tape)
    texts = [f"{leaf_role(leaf):<10}{shown.get(leaf.name)}" for leaf in tape.leaves]
    texts += [f"{names[index]} = {unparse(tree)}" for index, tree in expressions(tape).items()]
    if tape.has_arrays:
        width = min(max(map(len, texts)), _MAX_WIDTH)
        texts = [
            f"{text:<{width}}  # [{','.join(map(str, shape))}]" if shape else text
            for text, shape in zip(texts, tape.shapes, strict=True)
        ]
    by_kind = sorted(range(len(tape.leaves)), key=lambda k: tape.leaves[k].kind)
    lines = [texts[k] for k in by_kind if tape.leaves[k].kind != "constant"]
    lines += texts[len(tape.leaves) :]
    for name, index in tape.outputs.items():
        value = value_text(tape, names, index)
        lines.append(f"output    {shown[name]}" + (f" = {value}" if value != shown[name] else ""))
    return "\n".join(lines)


def value_text(tape: Tape, names: Sequence[str], index: int) -> str:
    """Return a value by its printed name, or as a number if it is a constant."""
    from cgprimer.core.operations.notation import unparse

    return names[index] or unparse(Number(tape.leaves[index].value))
