"""The part of a tape that a reverse pass visits, with descriptions of its values for messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from cgprimer.core.tape.tape_dependencies import find_dependents
from cgprimer.expressions import Apply, Expression, Name, Number, parse_element, unparse
from cgprimer.tapes import Instruction, Tape, reachable

_MAX_NODES = 15  # of a formula in a message
_MAX_OPERANDS = 12  # direct and indirect operands of one value


class Edge(NamedTuple):
    """An edge from an operand to the result of an instruction.

    Attributes:
        head: the index of the result.
        position: the position of the operand in the instruction, from 0.
        tail: the index of the operand.
    """

    head: int
    position: int
    tail: int


class DifferentiatedTape:
    """A tape of scalars, the output to differentiate, and the variables of the gradient.

    Args:
        tape: the tape.
        of: the name of the output.
        wrt: the names with respect to which the output is differentiated.

    Attributes:
        root: the index of the output.
        sources: the indices of the values in ``wrt``, keyed by name.
        needed: for each value, whether the output depends on it.
        active: for each value, whether it depends on a source.
        region: the results that have an adjoint, in the order of the tape.
        edges: the edges along which adjoints are propagated, in the order of the tape.
        owner: for each value, the index of the variable whose formula computes it.
    """

    def __init__(self, tape: Tape, of: str, wrt: Sequence[str]) -> None:
        self.tape, self.root = tape, tape.index(of)
        self.sources = {name: tape.index(name) for name in wrt}
        self.needed = reachable(tape, [self.root])
        self.active = find_dependents(tape, self.sources.values())
        first = len(tape.leaves)
        self.region = [i for i in range(first, tape.size) if self.needed[i] and self.active[i]]
        self.owner = _find_owners(tape)
        self.edges = [edge for head in self.region for edge in self.edges_to(head)]
        self._formulas: dict[int, tuple[Expression, int]] = {}

    def instruction(self, index: int) -> Instruction:
        """Return the instruction that computes the value with the given index."""
        return self.tape.instructions[index - len(self.tape.leaves)]

    def edges_to(self, head: int) -> list[Edge]:
        """Return the edges to a result from those of its operands that depend on a source."""
        operands = enumerate(self.instruction(head).operands)
        return [Edge(head, position, tail) for position, tail in operands if self.active[tail]]

    @cached_property
    def backward_edges(self) -> list[Edge]:
        """The edges in reverse-pass order: from the last instruction to the first."""
        return self.order_edges(self.region)

    @cached_property
    def depth_first_edges(self) -> list[Edge]:
        """The edges in reverse-pass order, for instructions sorted by depth-first search."""
        return self.order_edges(_sort_depth_first(self.tape, self.root, {*self.region}))

    def order_edges(self, heads: Sequence[int]) -> list[Edge]:
        """Return the edges that lead to the given results, from the last result to the first."""
        return [edge for head in reversed(heads) for edge in self.edges_to(head)]

    def list_variables(self) -> list[int]:
        """Return the indices of the variables that have an adjoint."""
        return [index for index in self.region if index in self.tape.labels]

    def find_shared_values(self) -> dict[int, list[Edge]]:
        """Return the edges from each value that is used more than once, keyed by value."""
        uses: dict[int, list[Edge]] = {}
        for edge in self.edges:
            uses.setdefault(edge.tail, []).append(edge)
        return {tail: edges for tail, edges in uses.items() if len(edges) > 1}

    @cached_property
    def source_masks(self) -> list[int]:
        """For each value, a bit mask of the sources that the value depends on."""
        masks = [0] * self.tape.size
        for bit, index in enumerate(self.sources.values()):
            masks[index] = 1 << bit
        for index in range(len(self.tape.leaves), self.tape.size):
            for operand in self.instruction(index).operands:
                masks[index] |= masks[operand]
        return masks

    def find_common_sources(self, values: Iterable[int]) -> list[str]:
        """Return the names of the sources that all given values depend on."""
        shared = -1
        for index in values:
            shared &= self.source_masks[index]
        return [name for bit, name in enumerate(self.sources) if shared >> bit & 1]

    def list_operands_below(self, index: int) -> list[int]:
        """Return the direct and indirect non-constant operands of a value, the nearest first."""
        operands: dict[int, None] = {}
        level, first = [index], len(self.tape.leaves)
        while level and len(operands) < _MAX_OPERANDS:
            below = [o for i in level if i >= first for o in self.instruction(i).operands]
            level = [
                o
                for o in dict.fromkeys(below)
                if o >= first or self.tape.leaves[o].kind != "constant"
            ]
            operands |= dict.fromkeys(level)
        return [*operands]

    def group_by_variable(self, heads: Iterable[int]) -> list[tuple[str, frozenset[int]]]:
        """Group instructions by the variable or array whose formula they belong to."""
        return group_values(heads, lambda head: parse_element(self.find_owner_name(head))[0])

    # --- descriptions ------------------------------------------------------------------------

    def find_owner_name(self, index: int) -> str:
        """Return the name of the variable whose formula computes a value."""
        return self.tape.labels.get(self.owner[index], "")

    def format_value(self, index: int) -> str:
        """Return the name of a value, or its formula if it has no name."""
        return unparse(self._get_formula(index)[0])

    def format_operation(self, index: int) -> str:
        """Format the operation that computes a value, and the variable: ``tanh(u) in xh``."""
        primitive, operands = self.instruction(index)
        formula = Apply(primitive, tuple(self._get_formula(o)[0] for o in operands))
        return f"{unparse(formula)} in {self.find_owner_name(index)}"

    def format_instruction(self, index: int) -> str:
        """Format an instruction for messages, such as ``tanh in xh`` or ``sin(xa) in xb``.

        A named value is described by its primitive, any other value by its formula.
        """
        if index in self.tape.labels:
            return f"{self.instruction(index).primitive} in {self.tape.labels[index]}"
        return f"{self.format_value(index)} in {self.find_owner_name(index)}"

    def _get_formula(self, index: int) -> tuple[Expression, int]:
        """Return the formula of a value and the number of its nodes, building each formula once."""
        if index not in self._formulas:
            self._formulas[index] = self._build_formula(index)
        return self._formulas[index]

    def _build_formula(self, index: int) -> tuple[Expression, int]:
        """Build the formula of a value in terms of named values, abbreviating long formulas."""
        if index in self.tape.labels:
            return Name(self.tape.labels[index]), 1
        if index < len(self.tape.leaves):
            return Number(self.tape.leaves[index].value), 1
        primitive, operands = self.instruction(index)
        parts = [self._get_formula(operand) for operand in operands]
        size = 1 + sum(size for _, size in parts)
        if size > _MAX_NODES:
            return Name("(...)"), 1
        return Apply(primitive, tuple(formula for formula, _ in parts)), size


def _find_owners(tape: Tape) -> list[int]:
    """Return, for each value, the index of the variable whose formula computes it."""
    owners, owner = [0] * tape.size, tape.size - 1
    for index in reversed(range(tape.size)):
        if index in tape.labels:
            owner = index
        owners[index] = owner
    return owners


def _sort_depth_first(tape: Tape, root: int, region: set[int]) -> list[int]:
    """Sort results topologically by a depth-first search, as micrograd does."""
    order: dict[int, None] = {}
    stack = [root]
    while stack:
        index = stack[-1]
        operands = tape.instructions[index - len(tape.leaves)].operands
        waiting = [o for o in operands if o in region and o not in order]
        if waiting and index not in order:
            stack.append(waiting[0])
        else:
            order[stack.pop()] = None
    return [*order]


def group_values(
    values: Iterable[int], key: Callable[[int], str]
) -> list[tuple[str, frozenset[int]]]:
    """Group values by a key function; return pairs of a key and a set of values."""
    groups: dict[str, list[int]] = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return [(name, frozenset(group)) for name, group in groups.items()]
