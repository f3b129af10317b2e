"""The one place where tapes are made: equal instructions once, constants folded.

Differentiators, lowering and passes all emit through a :class:`Builder`. It hands out values as
integers in the order of their making and, at the end, puts the leaves first.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from cgprimer.core.language.syntax import Shape, Structural
from cgprimer.core.primitives import floats
from cgprimer.core.tape.tape import Instruction, Kind, Leaf, Share, Tape

_LOOK_THROUGH = ("add", "neg")  # simplified by what their operands are, constants or not
_new = tuple.__new__  # a third of the time of Instruction(...), in loops of a million


class Builder:
    """Collects leaves and instructions.

    Args:
        share: give an instruction that exists already instead of making it again.
        simplify: use ``x*1 = x``, ``x - 0 = x`` and the like. Rules that would hide a nan or an
            infinity (``x*0 = 0``), or change the sign of a zero (``x + 0 = x``), are not among
            them.

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

    mode = vertex = ""  # how layers are written out, and where: layers.py

    def __init__(self, *, share: bool = True, simplify: bool = True) -> None:
        self.share = share
        self.simplify = simplify
        self.entries: list[Leaf | Instruction] = []
        self.names: dict[str, int] = {}
        self.shapes: dict[int, Shape] = {}  # of values that are no single numbers
        self.pinned: set[int] = set()
        self.shares: list[tuple[Share, int | None]] = []  # each with the total before it
        self.moved: list[int] = []  # once finished: where each value is on the tape, or -1
        self._known: dict[tuple[str, tuple[int, ...]], int] = {}
        self._constants: dict[str | float, int] = {}
        self.rules: dict[tuple[str, int], Any] = {}  # partials, ready to be emitted
        self._value_of: dict[int, float] = {}
        self.value_of = self._value_of.get  # the number of a constant; None of anything else

    # --- leaves --------------------------------------------------------------------------------

    def leaf(self, kind: Kind, name: str, value: float = 0.0, shape: Shape = ()) -> int:
        """A column or a scalar, the same one for the same name; or a constant of a value."""
        if kind == "constant":
            return self.constant(value)
        found = self.names.get(name)
        if found is None:
            found = self.names[name] = len(self.entries)
            self.entries.append(Leaf(kind, name, value, shape))
            if shape:
                self.shapes[found] = shape
        return found

    def shape(self, index: int) -> Shape:
        """The shape of a value, per sample."""
        return self.shapes.get(index, ())

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
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = len(self.entries)
            self.entries.append(Leaf("constant", value.hex(), value))
            self._value_of[found] = value
        return found

    # --- instructions --------------------------------------------------------------------------

    def emit(self, name: str, *operands: int, pinned: bool = False) -> int:
        """The value of a primitive applied to values."""
        if self.shapes or type(name) is not str:
            return self._emit_shaped(name, operands, pinned=pinned)
        entries = self.entries
        if pinned:
            self.pinned.add(len(entries))
            entries.append(_new(Instruction, (name, operands)))
            return len(entries) - 1
        value_of = self._value_of
        first, last = operands[0], operands[-1]
        if (
            first in value_of
            or last in value_of
            or (name in _LOOK_THROUGH and "neg" in (entries[first][0], entries[last][0]))
        ):
            simple = self._simpler(name, operands)
            if simple is not None:
                return simple
        instruction = _new(Instruction, (name, operands))
        # A program of a million instructions comes through here: nothing is called twice.
        here = len(entries)
        found = self._known.setdefault(instruction, here) if self.share else here
        if found == here:
            entries.append(instruction)
        return found

    def _emit_shaped(self, name: str, operands: tuple[int, ...], *, pinned: bool) -> int:
        """The same where values have shapes: elementwise ones broadcast operands to one shape."""
        from cgprimer.core.primitives.structural import common_shape_of, result_shape

        ours = [self.shape(o) for o in operands]
        if isinstance(name, Structural):
            shape = result_shape(name, *ours)
        else:
            shape = common_shape_of(name, *ours)
            if self.simplify:
                operands = self._without_repeated(operands, shape)
            known = None if pinned else self._simpler(name, operands)
            if known is not None:
                return self.broadcast(known, shape)
            operands = tuple(
                [o if o in self._value_of else self.broadcast(o, shape) for o in operands]
            )  # a constant fits every shape
        instruction, here = _new(Instruction, (name, operands)), len(self.entries)
        shared = self.share and not pinned
        made = self._known.setdefault(instruction, here) if shared else here
        if made == here:
            self.entries.append(instruction)
            self.pinned.update([here] if pinned else [])
            if shape:
                self.shapes[here] = shape
        return made

    def _without_repeated(self, operands: tuple[int, ...], shape: Shape) -> tuple[int, ...]:
        """Constants in the place of those that were repeated to the shape that others have."""
        bare: list[int] = []
        for o in operands:
            name, used, *_ = self.entries[o]
            repeated = getattr(name, "kind", "") == "broadcast" and used[0] in self._value_of
            bare.append(int(used[0]) if repeated else o)
        return tuple(bare) if shape in map(self.shape, bare) else operands

    def broadcast(self, index: int, shape: Shape) -> int:
        """A value repeated to a shape, as numpy does it; itself where it has the shape."""
        own = self.shape(index)
        if own == shape:
            return index
        return self.emit(Structural("broadcast", len(own), shape), index)

    def pin(self, index: int) -> None:
        """Keep an instruction that was just emitted from being given to anybody else."""
        entry = self.entries[index]
        if isinstance(entry, Instruction) and self._known.get(entry) == index:
            del self._known[entry]
        self.pinned.add(index)

    def product(self, bar: int, partial: int) -> int:
        """An adjoint times a partial; nothing is emitted where the partial is 1."""
        return bar if self.value_of(partial) == 1.0 else self.emit("mul", bar, partial)

    def hand(
        self, totals: dict[int, int], to: int, product: int, tail: int, head: int, partial: int
    ) -> None:
        """Add a product to the adjoint or tangent of a value, and note the share: paths meet."""
        known = totals.get(to)
        total = totals[to] = product if known is None else self.emit("add", known, product)
        self.shares.append((_new(Share, (tail, head, partial, product, total)), known))

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
        entries, known, value_of = self.entries, self._known, self._value_of
        shaped = bool(tape.shapes)
        for index, leaf in enumerate(tape.leaves):
            if keep is None or keep[index] or leaf.kind != "constant":
                new[index] = self.leaf(*leaf)
        for index in range(first, tape.size):
            if keep is not None and not keep[index]:
                continue
            name, operands = instructions[index - first]
            if len(operands) == 2:
                left, right = operands
                moved: tuple[int, ...] = (new[left], new[right])
            else:
                moved = tuple([new[o] for o in operands])
            own, here = names.get(index), len(entries)
            if own is not None:  # named at once: what ``then`` emits must not name it first
                new[index] = self.emit(name, *moved, pinned=True)
                self.names.update(dict.fromkeys(own, here))
            elif name in _LOOK_THROUGH or shaped or moved[0] in value_of or moved[-1] in value_of:
                new[index] = self.emit(name, *moved)
            else:  # as emit does it, without the call: a million instructions come through here
                instruction = _new(Instruction, (name, moved))
                found = new[index] = known.setdefault(instruction, here) if self.share else here
                if found == here:
                    entries.append(instruction)
            if then is not None:
                new[index] = then(index, new)
                if own is not None:
                    self.names.update(dict.fromkeys(own, new[index]))
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
            needed = self._needed(outputs.values())
            shares = self._needed_shares(needed)
            missing = [i for share in shares for i in share if not needed[i]]
            if missing:
                needed = self._needed([*outputs.values(), *missing])
        named = set(self.names.values())  # a constant that has a name, such as bar_xw = 1, is shown
        leaves: dict[str, list[int]] = {"column": [], "scalar": [], "constant": []}
        kept: list[int] = []
        for index, (entry, wanted) in enumerate(zip(entries, needed, strict=True)):
            if type(entry) is Instruction:
                if wanted:
                    kept.append(index)
            elif wanted or entry[0] != "constant" or index in named:
                leaves[entry[0]].append(index)
        new = self.moved = [-1] * len(entries)
        first = list(chain.from_iterable(leaves.values()))
        for position, index in enumerate(chain(first, kept)):
            new[index] = position
        instructions = []
        for index in kept:
            name, operands = entries[index]  # type: ignore[misc]
            if len(operands) == 2:
                moved: tuple[int, ...] = (new[operands[0]], new[operands[1]])
            else:
                moved = tuple([new[o] for o in operands])
            instructions.append(_new(Instruction, (name, moved)))
        return Tape(
            leaves=tuple([entries[i] for i in first]),  # type: ignore[misc]
            instructions=tuple(instructions),
            outputs={name: new[i] for name, i in outputs.items()},
            names={name: new[i] for name, i in self.names.items() if new[i] >= 0},
            shares=tuple([_new(Share, [new[i] for i in share]) for share in shares]),
        )

    def _needed_shares(self, needed: list[bool]) -> list[Share]:
        """Shares of sums that are needed: a sum may be a constant although its parts are two."""
        # A constant that has a name, such as bar_xw = -1, is shown, and so is where it comes from.
        wanted: set[int | None] = {i for i in self.names.values() if i in self._value_of}
        kept = []
        for share, before in reversed(self.shares):
            if needed[share[4]] or share[4] in wanted:
                kept.append(share)
                wanted.add(before)
        return kept[::-1]

    def _needed(self, roots: Iterable[int]) -> list[bool]:
        needed = [False] * len(self.entries)
        for root in roots:
            needed[root] = True
        for index in range(len(needed) - 1, -1, -1):
            if needed[index] and type(entry := self.entries[index]) is Instruction:
                for operand in entry[1]:
                    needed[operand] = True
        return needed

    # --- simplification ------------------------------------------------------------------------

    def _simpler(self, name: str, operands: tuple[int, ...]) -> int | None:
        """A value that equals the instruction and costs nothing, if there is one."""
        value_of = self.value_of
        left, right = value_of(operands[0]), value_of(operands[-1])
        if left is not None and right is not None:
            values = [value_of(o) for o in operands]
            if None not in values:
                return self.constant(floats.function(name)(*values))
        if not self.simplify:
            return None
        match name:
            case "add":
                for number, other in ((left, operands[1]), (right, operands[0])):
                    if _is_zero(number, negative=True):  # only -0 adds nothing to every number
                        return other
                for second, first in (operands, operands[::-1]):
                    negated = self._negated(first)
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
                return self._negated(operands[0])
            case "where" if left is not None and not math.isnan(left):
                return operands[1] if left != 0.0 else operands[2]
        return None

    def _negated(self, index: int) -> int | None:
        """What a negation negates; None also where the negation is a vertex's own value."""
        entry = self.entries[index]  # the first field of a leaf is its kind, never "neg"
        if entry[0] == "neg" and index not in self.pinned:
            return entry[1][0]  # type: ignore[return-value]
        return None


def _is_zero(value: float | None, *, negative: bool) -> bool:
    return value == 0.0 and (math.copysign(1.0, value) < 0) == negative
