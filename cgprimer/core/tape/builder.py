"""The one place where tapes are made: equal instructions once, constants folded.

Differentiators, lowering and passes all emit through a :class:`Builder`. It hands out values as
integers in the order of their making and, at the end, puts the leaves first.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

from cgprimer.core.language.syntax_tree import Shape, operator_name
from cgprimer.core.operations.float_arithmetic import float_function
from cgprimer.core.operations.primitive_registry import Applied, find_operation
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_entries import Contribution, Instruction, Kind, Leaf

_LOOK_THROUGH = ("add", "neg")  # simplified by what their operands are, constants or not
_new = tuple.__new__  # a third of the time of Instruction(...), in loops of a million


class Builder:
    """Collects leaves and instructions.

    Args:
        share: give an instruction that exists already instead of making it again.
        simplify: use ``x*1 = x``, ``x - 0 = x`` and the like. Rules that would hide a nan or an
            infinity (``x*0 = 0``), or change the sign of a zero (``x + 0 = x``), are not among
            them.
        fold_constants: compute an operation on constants at once.

    A *pinned* instruction is never given to anybody else: a vertex of the graph stays a value of
    its own even if two vertices are computed alike, so that a derivative with respect to one of
    them does not flow through the other.

    >>> b = Builder()
    >>> x = b.column("xa")
    >>> b.emit("mul", x, x) == b.emit("mul", x, x)
    True
    >>> b.emit("mul", x, b.constant(1.0)) == x
    True
    """

    mode = vertex = ""  # how layers are written out, and where: layer_expansions.py

    def __init__(
        self, *, share: bool = True, simplify: bool = True, fold_constants: bool = True
    ) -> None:
        self.share = share
        self.fold_constants = fold_constants
        self.simplify = simplify
        self.entries: list[Leaf | Instruction] = []
        self.names: dict[str, int] = {}
        self.shapes: list[Shape] = []  # of every value, per sample
        self.has_arrays = False
        self.pinned: set[int] = set()
        self.shares: list[tuple[Contribution, int | None]] = []  # each with the total before it
        self.moved: list[int] = []  # once finished: where each value is on the tape, or -1
        self._instructions: dict[tuple[Applied, tuple[int, ...]], int] = {}
        self._constants: dict[str | float, int] = {}
        self._value_of: dict[int, float] = {}
        self.value_of = self._value_of.get  # the number of a constant; None of anything else

    # --- leaves --------------------------------------------------------------------------------

    def leaf(self, kind: Kind, name: str, value: float = 0.0, shape: Shape = ()) -> int:
        """A column or a scalar, the same one for the same name; or a constant of a value."""
        if kind == "constant":
            return self.constant(value)
        index = self.names.get(name)
        if index is None:
            index = self.names[name] = len(self.entries)
            self.entries.append(Leaf(kind, name, value, shape))
            self.shapes.append(shape)
            self.has_arrays = self.has_arrays or bool(shape)
        return index

    def shape(self, index: int) -> Shape:
        """Return the shape of a value, per sample."""
        return self.shapes[index]

    def column(self, name: str) -> int:
        """A leaf with one value per sample."""
        return self.leaf("column", name)

    def scalar(self, name: str) -> int:
        """A leaf that all samples share."""
        return self.leaf("scalar", name)

    def constant(self, value: float) -> int:
        """A number. Zero and minus zero are two constants, and every nan is the same."""
        value = float(value)
        key = value if value and value == value else value.hex()  # noqa: PLR0124 - nan
        index = self._constants.get(key)
        if index is None:
            index = self._constants[key] = len(self.entries)
            self.entries.append(Leaf("constant", value.hex(), value))
            self.shapes.append(())
            self._value_of[index] = value
        return index

    # --- instructions --------------------------------------------------------------------------

    def emit(self, applied: Applied, *operands: int, pinned: bool = False) -> int:
        """Return the value of an operation applied to values; equal instructions are one."""
        # A program of a million instructions comes through here: few functions are called.
        shape: Shape = ()
        elementwise = isinstance(applied, str)
        if self.has_arrays or not elementwise:
            shape = find_operation(applied).shape(*[self.shapes[o] for o in operands])
            self.has_arrays = True
            if elementwise and self.simplify:
                operands = self._remove_constant_broadcasts(operands, shape)
        entries, value_of = self.entries, self._value_of
        first, last = operands[0], operands[-1]
        if (
            elementwise
            and not pinned
            and (
                first in value_of
                or last in value_of
                or (applied in _LOOK_THROUGH and "neg" in (entries[first][0], entries[last][0]))
            )
        ):
            simple = self._find_simpler_value(applied, operands)
            if simple is not None:
                return self.broadcast(simple, shape)
        if shape and elementwise:  # a constant fits every shape
            operands = tuple([o if o in value_of else self.broadcast(o, shape) for o in operands])
        instruction, index = _new(Instruction, (applied, operands)), len(entries)
        if pinned:
            self.pinned.add(index)
        elif self.share:
            existing = self._instructions.setdefault(instruction, index)
            if existing != index:
                return existing
        entries.append(instruction)
        self.shapes.append(shape)
        return index

    def _remove_constant_broadcasts(
        self, operands: tuple[int, ...], shape: Shape
    ) -> tuple[int, ...]:
        """Return operands with constants instead of constants that were repeated to a shape.

        Those that were repeated stay if no other operand has the shape.
        """
        bare: list[int] = []
        for o in operands:
            applied, used, *_ = self.entries[o]
            repeated = operator_name(applied) == "broadcast" and used[0] in self._value_of
            bare.append(int(used[0]) if repeated else o)
        return tuple(bare) if shape in [self.shapes[o] for o in bare] else operands

    def broadcast(self, index: int, shape: Shape) -> int:
        """A value repeated to a shape, as numpy does it; itself where it has the shape."""
        current = self.shapes[index]
        if current == shape:
            return index
        from cgprimer.core.operations.shape_operations import Broadcast

        return self.emit(Broadcast.create(len(current), shape), index)

    def pin(self, index: int) -> None:
        """Keep an instruction that was just emitted from being given to anybody else."""
        entry = self.entries[index]
        if isinstance(entry, Instruction) and self._instructions.get(entry) == index:
            del self._instructions[entry]
        self.pinned.add(index)

    def product(self, bar: int, partial: int) -> int:
        """An adjoint times a partial; nothing is emitted where the partial is 1."""
        return bar if self.value_of(partial) == 1.0 else self.emit("mul", bar, partial)

    def add_contribution(
        self, totals: dict[int, int], to: int, product: int, tail: int, head: int, partial: int
    ) -> None:
        """Add a product to the adjoint or tangent of a value, and note the share: paths meet."""
        earlier = totals.get(to)
        total = totals[to] = product if earlier is None else self.emit("add", earlier, product)
        self.shares.append((_new(Contribution, (tail, head, partial, product, total)), earlier))

    def name(self, index: int, name: str) -> int:
        """Give a value a name; returns the value."""
        self.names[name] = index
        return index

    def extend(
        self,
        tape: Tape,
        *,
        keep: Sequence[bool] | None = None,
        then: Callable[[int, dict[int, int]], int] | None = None,
    ) -> dict[int, int]:
        """Copy a tape's values in; returns old index to new.

        Named instructions stay pinned, and names stay with their values.

        Args:
            tape: what is copied.
            keep: for each value whether to copy it; all unless given. Columns and scalars are
                always copied: they are the program's signature.
            then: called after each instruction with its index and what is copied so far; it may
                emit more, and returns the value that stands for the instruction from then on.
        """
        new: dict[int, int] = {}
        names: defaultdict[int, list[str]] = defaultdict(list)
        for name, index in tape.names.items():
            names[index].append(name)
        first, instructions = len(tape.leaves), tape.instructions
        for index, leaf in enumerate(tape.leaves):
            if keep is None or keep[index] or leaf.kind != "constant":
                new[index] = self.leaf(*leaf)
        for index in range(first, tape.size):
            if keep is not None and not keep[index]:
                continue
            applied, operands = instructions[index - first]
            if len(operands) == 2:
                left, right = operands
                moved: tuple[int, ...] = (new[left], new[right])
            else:
                moved = tuple([new[o] for o in operands])
            own_names = names.get(index, ())
            new[index] = self.emit(applied, *moved, pinned=bool(own_names))
            if own_names:  # named at once: what ``then`` emits must not name it first
                self.names.update(dict.fromkeys(own_names, new[index]))
            if then is not None:
                new[index] = then(index, new)
                self.names.update(dict.fromkeys(own_names, new[index]))
        for name, index in tape.names.items():
            if index in new:  # other names of leaves
                self.names.setdefault(name, new[index])
        return new

    def finish(self, outputs: Mapping[str, int], *, prune: bool = False) -> Tape:
        """The tape, with leaves before instructions and columns before scalars.

        ``prune`` leaves out what no output needs. Columns and scalars always stay: they are the
        program's signature. So do the parts of shares whose total is needed.
        """
        entries, shares = self.entries, [share for share, _ in self.shares]
        needed = [True] * len(entries)
        if prune:
            needed = self._mark_needed_entries(outputs.values())
            shares = self._select_needed_contributions(needed)
            missing = [i for share in shares for i in share if not needed[i]]
            if missing:
                needed = self._mark_needed_entries([*outputs.values(), *missing])
        # A constant that has a name, such as bar_xw = 1, is shown.
        named_values = set(self.names.values())
        leaves: dict[str, list[int]] = {"column": [], "scalar": [], "constant": []}
        computed: list[int] = []
        for index, (entry, wanted) in enumerate(zip(entries, needed, strict=True)):
            if type(entry) is Instruction:
                if wanted:
                    computed.append(index)
            elif wanted or entry[0] != "constant" or index in named_values:
                leaves[str(entry[0])].append(index)
        new = self.moved = [-1] * len(entries)
        first = list(chain.from_iterable(leaves.values()))
        for position, index in enumerate(chain(first, computed)):
            new[index] = position
        instructions = []
        for index in computed:
            applied, operands = entries[index]  # type: ignore[misc]
            if len(operands) == 2:
                moved: tuple[int, ...] = (new[operands[0]], new[operands[1]])
            else:
                moved = tuple([new[o] for o in operands])
            instructions.append(_new(Instruction, (applied, moved)))
        return Tape(
            leaves=tuple([entries[i] for i in first]),  # type: ignore[misc]
            instructions=tuple(instructions),
            outputs={name: new[i] for name, i in outputs.items()},
            names={name: new[i] for name, i in self.names.items() if new[i] >= 0},
            shares=tuple([_new(Contribution, [new[i] for i in share]) for share in shares]),
            shapes=tuple([self.shapes[i] for i in chain(first, computed)])
            if self.has_arrays
            else ((),) * (len(first) + len(computed)),
        )

    def _select_needed_contributions(self, needed: list[bool]) -> list[Contribution]:
        """Shares of sums that are needed: a sum may be a constant although its parts are two."""
        # A constant that has a name, such as bar_xw = -1, is shown, and so is where it comes from.
        wanted: set[int | None] = {i for i in self.names.values() if i in self._value_of}
        needed_shares = []
        for share, before in reversed(self.shares):
            if needed[share[4]] or share[4] in wanted:
                needed_shares.append(share)
                wanted.add(before)
        return needed_shares[::-1]

    def _mark_needed_entries(self, roots: Iterable[int]) -> list[bool]:
        needed = [False] * len(self.entries)
        for root in roots:
            needed[root] = True
        for index in range(len(needed) - 1, -1, -1):
            if needed[index] and type(entry := self.entries[index]) is Instruction:
                for operand in entry[1]:
                    needed[operand] = True
        return needed

    # --- simplification ------------------------------------------------------------------------

    def _find_simpler_value(self, name: Applied, operands: tuple[int, ...]) -> int | None:
        """A value that equals the instruction and costs nothing, if there is one."""
        value_of = self.value_of
        left, right = value_of(operands[0]), value_of(operands[-1])
        if left is not None and right is not None and self.fold_constants:
            values = [value_of(o) for o in operands]
            if None not in values:
                return self.constant(float_function(name)(*values))
        if not self.simplify:
            return None
        match name:
            case "add":
                for number, other in ((left, operands[1]), (right, operands[0])):
                    if _is_zero(number, negative=True):  # only -0 adds nothing to every number
                        return other
                for second, first in (operands, operands[::-1]):
                    negated = self._find_negated_operand(first)
                    if negated is not None:
                        return self.emit("sub", second, negated)
            case "sub":
                if _is_zero(right, negative=False):
                    return operands[0]
                if _is_zero(left, negative=True):
                    return self.emit("neg", operands[1])
            case "mul":
                for one, other in ((left, operands[1]), (right, operands[0])):
                    if one == 1.0:
                        return other
                    if one == -1.0:
                        return self.emit("neg", other)
            case "div" | "pow" if right == 1.0:
                return operands[0]
            case "pow" if right == 0.0:
                return self.constant(1.0)  # IEEE 754: pow(x, 0) is 1, even for nan
            case "neg":
                return self._find_negated_operand(operands[0])
            case "where" if left is not None and not math.isnan(left):
                return operands[1] if left != 0.0 else operands[2]
        return None

    def _find_negated_operand(self, index: int) -> int | None:
        """Return the operand of a negation; None for others and for a vertex's own value."""
        entry = self.entries[index]  # the first field of a leaf is its kind, never "neg"
        if entry[0] == "neg" and index not in self.pinned:
            return entry[1][0]  # type: ignore[return-value]
        return None


def _is_zero(value: float | None, *, negative: bool) -> bool:
    return value == 0.0 and (math.copysign(1.0, value) < 0) == negative
