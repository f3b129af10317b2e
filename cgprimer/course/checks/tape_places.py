"""Places on a tape as people say them: instructions, their variables and their text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cgprimer.core.tape.tape_dependencies import find_dependents
from cgprimer.expressions import Apply, Expression, Name, Number, unparse
from cgprimer.tapes import Instruction, Tape, reachable

Place = tuple[int, int]  # an instruction, and which of its operands
_LONGEST = 15  # nodes of a formula in a message
_FEW = 12  # values beneath another


class Places:
    """What a sweep over a tape comes along.

    Attributes:
        root: the value that is differentiated.
        sources: the values by which, by their names.
        needed: for each value whether the root needs it.
        active: for each value whether it depends on a source.
        region: the instructions that the sweep comes along, in the order of the text.
        deep: the same in the order of a search in depth.
        owner: for each value the variable in whose expression it is computed.
        shares: what is handed on: instruction, operand, and the operand's value.
    """

    def __init__(self, tape: Tape, of: str, wrt: Sequence[str]) -> None:
        self.tape, self.root = tape, tape.index(of)
        self.sources = {name: tape.index(name) for name in wrt}
        self.needed = reachable(tape, [self.root])
        self.active = find_dependents(tape, self.sources.values())
        first = len(tape.leaves)
        self.region = [i for i in range(first, tape.size) if self.needed[i] and self.active[i]]
        self.deep = _in_depth(tape, self.root, {*self.region})
        self.owner = _owners(tape)
        self.shares = [
            (head, which, tail)
            for head in self.region
            for which, tail in enumerate(self.step(head).operands)
            if self.active[tail]
        ]
        self._trees: dict[int, tuple[Expression, int]] = {}

    def step(self, index: int) -> Instruction:
        """The instruction that computes a value."""
        return self.tape.instructions[index - len(self.tape.leaves)]

    def vertices(self) -> list[int]:
        """The variables of the region."""
        return [i for i in self.region if i in self.tape.labels]

    def merging(self) -> dict[int, list[Place]]:
        """Values that are used more than once, and by what."""
        uses: dict[int, list[Place]] = {}
        for head, which, tail in self.shares:
            uses.setdefault(tail, []).append((head, which))
        return {tail: places for tail, places in uses.items() if len(places) > 1}

    def beneath(self, index: int) -> list[int]:
        """What a value is computed from, level by level down to the leaves; no constants."""
        found: dict[int, None] = {}
        level, first = [index], len(self.tape.leaves)
        while level and len(found) < _FEW:
            below = [o for i in level if i >= first for o in self.step(i).operands]
            level = [o for o in dict.fromkeys(below)
                     if o >= first or self.tape.leaves[o].kind != "constant"]  # fmt: skip
            found |= dict.fromkeys(level)
        return [*found]

    def line(self, index: int) -> str:
        """The variable in whose expression an instruction stands."""
        return self.tape.labels.get(self.owner[index], "")

    def text(self, index: int) -> str:
        """A value by its name, or as it stands in the graph's text."""
        return unparse(self._tree(index)[0])

    def _tree(self, index: int) -> tuple[Expression, int]:
        """The tree of a value, down to names, and how many nodes it has; dots for a long part."""
        if index not in self._trees:
            made: tuple[Expression, int]
            if index in self.tape.labels:
                made = Name(self.tape.labels[index]), 1
            elif index < len(self.tape.leaves):
                made = Number(self.tape.leaves[index].value), 1
            else:
                name, operands = self.step(index)
                parts = [self._tree(o) for o in operands]
                size = 1 + sum(size for _, size in parts)
                long = size > _LONGEST
                made = (
                    (Name("(...)"), 1) if long else (Apply(name, tuple(t for t, _ in parts)), size)
                )
            self._trees[index] = made
        return self._trees[index]

    def expression(self, index: int) -> str:
        """The operation of an instruction on its operands, and the line in which it stands."""
        name, operands = self.step(index)
        text = unparse(Apply(name, tuple(self._tree(o)[0] for o in operands)))
        return f"{text} in {self.line(index)}"

    def said(self, index: int) -> str:
        """An instruction, and where it stands."""
        name = self.step(index).primitive
        if index in self.tape.labels:
            return f"{name} in {self.tape.labels[index]}"
        return f"{self.text(index)} in {self.line(index)}"


def _owners(tape: Tape) -> list[int]:
    """For each value the variable in whose expression it is computed."""
    found, owner = [0] * tape.size, tape.size - 1
    for index in reversed(range(tape.size)):
        if index in tape.labels:
            owner = index
        found[index] = owner
    return found


def _in_depth(tape: Tape, root: int, region: set[int]) -> list[int]:
    """The instructions in the order in which a search in depth leaves them, as micrograd does."""
    found: dict[int, None] = {}
    stack = [root]
    while stack:
        index = stack[-1]
        operands = tape.instructions[index - len(tape.leaves)].operands
        waiting = [o for o in operands if o in region and o not in found]
        if waiting and index not in found:
            stack.append(waiting[0])
        else:
            found[stack.pop()] = None
    return [*found]


def grouped(values: list[int], key: Callable[[int], str]) -> list[tuple[str, frozenset[int]]]:
    """Values with the same key."""
    found: dict[str, list[int]] = {}
    for value in values:
        found.setdefault(key(value), []).append(value)
    return [(name, frozenset(group)) for name, group in found.items()]
