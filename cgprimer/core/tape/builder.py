"""Build tapes: equal instructions are stored once, and constants are folded.

Lowering, methods and passes emit all instructions through a :class:`Builder`. It returns each value
as an integer, in the order of emission; :meth:`Builder.finish` puts the leaves first.
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

_LOOK_THROUGH = ("add", "neg")  # simplified if an operand is a negation
_new = tuple.__new__  # a third of the time of Instruction(...), in loops of a million


class Builder:
    """Builder of a tape: collects leaves and instructions, and returns the finished tape.

    Values are integers: indices of :attr:`entries`.

    Args:
        share: return the existing value if an equal instruction was emitted before.
        simplify: use identities such as ``x*1 = x`` and ``x - 0 = x``, except those that would
            hide a nan or an infinity (``x*0 = 0``) or change the sign of a zero (``x + 0 = x``).
        fold_constants: replace operations on constants by their results.

    A *pinned* instruction is never shared. Vertices of the graph are pinned, so they stay separate
    values even if their definitions are equal. Otherwise the derivative with respect to one vertex
    would also include the paths through the other.

    >>> b = Builder()
    >>> x = b.column("xa")
    >>> b.emit("mul", x, x) == b.emit("mul", x, x)
    True
    >>> b.emit("mul", x, b.constant(1.0)) == x
    True
    """

    mode = vertex = ""  # form and name of layers such as dropout: see layer_expansions.py

    def __init__(
        self, *, share: bool = True, simplify: bool = True, fold_constants: bool = True
    ) -> None:
        self.share = share
        self.fold_constants = fold_constants
        self.simplify = simplify
        self.entries: list[Leaf | Instruction] = []
        self.names: dict[str, int] = {}
        self.shapes: list[Shape] = []  # of every value, for one sample
        self.has_arrays = False
        self.pinned: set[int] = set()
        # Contributions with the key of the value that they are added to, and the previous total.
        self.shares: list[tuple[Contribution, int, int | None]] = []
        self.moved: list[int] = []  # filled by finish: index of each value on the tape, or -1
        self._instructions: dict[tuple[Applied, tuple[int, ...]], int] = {}
        self._constants: dict[str | float, int] = {}
        self._value_of: dict[int, float] = {}
        self.value_of = self._value_of.get  # the number of a constant; None for other values

    # --- leaves --------------------------------------------------------------------------------

    def leaf(self, kind: Kind, name: str, value: float = 0.0, shape: Shape = ()) -> int:
        """Add a leaf, or return the existing leaf with the same name or constant value.

        Args:
            kind: ``"column"``, ``"scalar"`` or ``"constant"``.
            name: the name of a column or scalar.
            value: the number of a constant.
            shape: the shape of the value for one sample.
        """
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
        """Return the shape of a value for one sample; ``()`` for a scalar."""
        return self.shapes[index]

    def column(self, name: str) -> int:
        """Add a column, an input with one value per sample; return its index."""
        return self.leaf("column", name)

    def scalar(self, name: str) -> int:
        """Add a scalar, an input with one value for all samples; return its index."""
        return self.leaf("scalar", name)

    def constant(self, value: float) -> int:
        """Add a constant, or return the existing leaf; 0.0 and -0.0 are different constants."""
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
        """Emit an operation; return an existing or simpler value instead if it is equal.

        Args:
            applied: a primitive or an array operation.
            operands: the values to apply it to.
            pinned: emit a separate instruction even if an equal one exists.
        """
        # Programs have up to a million instructions, so this method calls few functions.
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
        if shape and elementwise:  # constants are compatible with every shape
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
        """Replace operands that are broadcast constants with the constants themselves.

        The operands are returned unchanged if no other operand has the shape of the result.
        """
        bare: list[int] = []
        for o in operands:
            applied, used, *_ = self.entries[o]
            is_constant = operator_name(applied) == "broadcast" and used[0] in self._value_of
            bare.append(int(used[0]) if is_constant else o)
        return tuple(bare) if shape in [self.shapes[o] for o in bare] else operands

    def broadcast(self, index: int, shape: Shape) -> int:
        """Broadcast a value to a shape as numpy does; return it unchanged if it has the shape."""
        current = self.shapes[index]
        if current == shape:
            return index
        from cgprimer.core.operations.shape_operations import Broadcast

        return self.emit(Broadcast.create(len(current), shape), index)

    def pin(self, index: int) -> None:
        """Pin an instruction: later equal instructions do not share its value."""
        entry = self.entries[index]
        if isinstance(entry, Instruction) and self._instructions.get(entry) == index:
            del self._instructions[entry]
        self.pinned.add(index)

    def product(self, bar: int, partial: int) -> int:
        """Emit the product of an adjoint and a partial; return the adjoint if the partial is 1."""
        return bar if self.value_of(partial) == 1.0 else self.emit("mul", bar, partial)

    def add_contribution(
        self, totals: dict[int, int], to: int, product: int, tail: int, head: int, partial: int
    ) -> None:
        """Add a product to the adjoint or tangent of a value, and record the contribution.

        Args:
            totals: the adjoints (reverse mode) or tangents (forward mode) so far; updated.
            to: the value whose adjoint or tangent the product is added to.
            product: the adjoint or tangent times the partial.
            tail: the operand of the edge.
            head: the result of the edge.
            partial: the derivative of ``head`` with respect to ``tail``.
        """
        earlier = totals.get(to)
        total = totals[to] = product if earlier is None else self.emit("add", earlier, product)
        self.shares.append((_new(Contribution, (tail, head, partial, product, total)), to, earlier))

    def name(self, index: int, name: str) -> int:
        """Assign a name to a value, and return the index of the value."""
        self.names[name] = index
        return index

    def extend(
        self,
        tape: Tape,
        *,
        keep: Sequence[bool] | None = None,
        then: Callable[[int, dict[int, int]], int] | None = None,
    ) -> dict[int, int]:
        """Copy the values of a tape; return the new index of each value, keyed by the old index.

        Names are copied too, and named instructions are pinned.

        Args:
            tape: the tape to copy.
            keep: a boolean for each value: whether to copy it; by default all are copied. Columns
                and scalars are always copied, since they are the arguments of the program.
            then: a function called after each instruction with its old index and the new indices
                so far. It may emit more instructions, and returns the value that replaces the
                result of the instruction.
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
            value_names = names.get(index, ())
            new[index] = self.emit(applied, *moved, pinned=bool(value_names))
            if value_names:  # before ``then``, which must not assign these names to other values
                self.names.update(dict.fromkeys(value_names, new[index]))
            if then is not None:
                new[index] = then(index, new)
                self.names.update(dict.fromkeys(value_names, new[index]))
        for name, index in tape.names.items():
            if index in new:  # further names of leaves
                self.names.setdefault(name, new[index])
        return new

    def finish(self, outputs: Mapping[str, int], *, prune: bool = False) -> Tape:
        """Return the tape, with leaves before instructions and columns before scalars.

        Args:
            outputs: the value of each output, keyed by name.
            prune: omit values that no output depends on, except columns and scalars (the
                arguments of the program) and the operands of contributions to needed totals.
        """
        entries, contributions = self.entries, [contribution for contribution, *_ in self.shares]
        needed = [True] * len(entries)
        if prune:
            needed = self._mark_needed_entries(outputs.values())
            contributions = self._select_needed_contributions(needed)
            missing = [i for indices in contributions for i in indices if not needed[i]]
            if missing:
                needed = self._mark_needed_entries([*outputs.values(), *missing])
        # A constant that has a name, such as bar_xw = 1, is printed.
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
            shares=tuple([_new(Contribution, [new[i] for i in c]) for c in contributions]),
            shapes=tuple([self.shapes[i] for i in chain(first, computed)])
            if self.has_arrays
            else ((),) * (len(first) + len(computed)),
        )

    def _select_needed_contributions(self, needed: list[bool]) -> list[Contribution]:
        """Return the contributions whose final total is needed or is a named constant."""
        # A constant that has a name, such as bar_xw = -1, is printed with its contributions.
        named_constants = {i for i in self.names.values() if i in self._value_of}
        selected = []
        earlier_totals: dict[tuple[int, int], bool] = {}  # True if the final total is selected
        for contribution, to, previous_total in reversed(self.shares):
            total = contribution[4]
            chosen = earlier_totals.pop((to, total), None)
            if chosen is None:
                chosen = needed[total] or total in named_constants
            if chosen:
                selected.append(contribution)
            if previous_total is not None:
                earlier_totals[to, previous_total] = chosen
        return selected[::-1]

    def _mark_needed_entries(self, roots: Iterable[int]) -> list[bool]:
        """Return for each entry whether at least one of the root values depends on it."""
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
        """Return an existing or cheaper value equal to an instruction; None if there is none."""
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
        """Return the operand of a negation; None if the value is pinned or not a negation."""
        entry = self.entries[index]  # the first field of a leaf is its kind, never "neg"
        if entry[0] == "neg" and index not in self.pinned:
            return entry[1][0]  # type: ignore[return-value]
        return None


def _is_zero(value: float | None, *, negative: bool) -> bool:
    """Return whether a constant is 0.0 or, with ``negative``, -0.0."""
    return value == 0.0 and (math.copysign(1.0, value) < 0) == negative
