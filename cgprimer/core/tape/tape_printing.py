"""Format a tape as text: one line per leaf, instruction and output, with unique names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Protocol

from cgprimer.core.language.syntax_tree import (
    Apply,
    Expression,
    Name,
    Number,
    Operator,
    Shape,
    operator_name,
)
from cgprimer.core.operations.notation import unparse
from cgprimer.core.operations.primitive_registry import Applied
from cgprimer.core.tape.tape_entries import Instruction, Leaf
from cgprimer.support.value_names import format_name, is_internal, parse_internal

_MAX_WIDTH = 48  # of a line without the comment that shows the shape
_INTERNAL_LEAVES = {  # roles of leaves with internal names, keyed by the first part of the name
    "seed": "seed",
    "dot": "seed",
    "bar": "seed",
    "shift": "shift",
    "target": "target",
    "mask": "mask",
    "mean": "statistic",
    "variance": "statistic",
}


class _PrintableTape(Protocol):
    """The attributes of a tape that this module reads.

    :class:`~cgprimer.core.tape.tape.Tape` uses this module to print itself, so this module does
    not import the class.
    """

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The leaves of the tape."""

    @property
    def instructions(self) -> tuple[Instruction, ...]: ...

    @property
    def outputs(self) -> Mapping[str, int]: ...

    @property
    def names(self) -> Mapping[str, int]:
        """Indices of the values that have a name, keyed by name."""

    @property
    def labels(self) -> Mapping[int, str]:
        """Names of the values, keyed by index."""

    @property
    def shapes(self) -> tuple[Shape, ...]: ...

    @property
    def size(self) -> int: ...

    @property
    def has_arrays(self) -> bool: ...


def labels(tape: _PrintableTape) -> list[str]:
    """Return the printed name of each value of a tape, in tape order.

    Unnamed values are called ``v1``, ``v2`` and so on. Constants have the empty string, because
    they are printed as numbers.
    """
    shown, printed = assign_printed_names(tape), []
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


def assign_printed_names(tape: _PrintableTape) -> dict[str, str]:
    """Return a unique printed name for each name of a tape, keyed by the name.

    Names from the graph are printed unchanged; internal names are changed if they are taken.

    >>> import cgprimer
    >>> tape = cgprimer.tape(cgprimer.parse("bar_xw = k*xa; xw = bar_xw^2; output xw"))
    >>> shown = assign_printed_names(cgprimer.differentiate(tape).tape)
    >>> shown["bar_xw"], shown["bar.xw"]
    ('bar_xw', 'bar_xw_')
    """
    names = (*tape.names, *tape.outputs)
    shown = {name: name for name in names if not is_internal(name)}
    used = {*shown}
    for name in names:
        if name not in shown:
            text = format_name(name)
            while text in used:
                text += "_"
            used.add(text)
            shown[name] = text
    return shown


def build_expression_trees(tape: _PrintableTape, *, inline: bool = False) -> dict[int, Expression]:
    """Convert each instruction of a tape to a syntax tree, keyed by the index of its result.

    Args:
        tape: the tape.
        inline: nest unnamed values that are used once in the expression that uses them, instead
            of returning separate trees.
    """
    names = labels(tape)
    uses = Counter(operand for _, operands in tape.instructions for operand in operands)
    uses.update(dict.fromkeys(tape.outputs.values(), 2))
    first = len(tape.leaves)
    trees: dict[int, Expression] = {}
    folded: set[int] = set()

    def build_operand_tree(index: int) -> Expression:
        """Return an operand as a number, a name or a nested expression."""
        if index < first and tape.leaves[index].kind == "constant":
            return Number(tape.leaves[index].value)
        if index in folded:
            return trees.pop(index)
        return Name(names[index])

    for position, (primitive, operands) in enumerate(tape.instructions):
        index, operand_shapes = first + position, [tape.shapes[o] for o in operands]
        function = select_printed_function(primitive, *operand_shapes)
        trees[index] = Apply(function, tuple(build_operand_tree(o) for o in operands))
        if inline and uses[index] == 1 and index not in tape.labels:
            folded.add(index)
    return trees


def select_printed_function(applied: Applied, *operands: Shape) -> str | Operator:
    """Return the function to print for an operation, without axes if it reduces all axes.

    Args:
        applied: a primitive or an array operation.
        operands: the shapes of the operands.
    """
    if operator_name(applied) not in ("sum", "largest"):
        return applied
    reduction: Any = applied
    return operator_name(applied) if len(reduction.axes) == len(operands[0]) else applied


def determine_leaf_role(leaf: Leaf) -> str:
    """Return the role of a leaf, such as input, parameter, seed or mask.

    >>> determine_leaf_role(Leaf("column", "xa")), determine_leaf_role(Leaf("scalar", "W1"))
    ('input', 'parameter')
    >>> determine_leaf_role(Leaf("scalar", "dot.xa"))
    'seed'
    """
    if role := _INTERNAL_LEAVES.get(parse_internal(leaf.name).kind):
        return role
    return "input" if leaf.kind == "column" else "parameter"


def format_tape(tape: _PrintableTape) -> str:
    """Format a tape as text: one line per leaf, instruction and output, with array shapes."""
    names, shown = labels(tape), assign_printed_names(tape)
    texts = [f"{determine_leaf_role(leaf):<10}{shown.get(leaf.name)}" for leaf in tape.leaves]
    texts += [
        f"{names[index]} = {unparse(tree)}" for index, tree in build_expression_trees(tape).items()
    ]
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
        value = format_value(tape, names, index)
        lines.append(f"output    {shown[name]}" + (f" = {value}" if value != shown[name] else ""))
    return "\n".join(lines)


def format_value(tape: _PrintableTape, names: Sequence[str], index: int) -> str:
    """Return the printed name of a value of a tape, or its number if it is a constant.

    Args:
        tape: the tape.
        names: the printed names of all values of the tape, from :func:`labels`.
        index: the index of the value.
    """
    return names[index] or unparse(Number(tape.leaves[index].value))
