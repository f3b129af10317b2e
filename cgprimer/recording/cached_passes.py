"""Cached backward passes: graphs of equal structure are differentiated by one tape.

A training loop records the same operations in every iteration. Reverse mode of the core emits their
backward pass as a tape whose leaves are the recorded values, and the array evaluator of the core
runs the tape. This module contains no derivative rules.
"""

from __future__ import annotations

from operator import is_
from typing import Any

import numpy as np

from cgprimer.core.evaluation.array_evaluator import ArrayEvaluator
from cgprimer.core.evaluation.evaluator import run_instructions
from cgprimer.core.language.syntax_tree import operator_name
from cgprimer.core.methods.reverse import SweepInstruction, sweep
from cgprimer.core.operations.custom_operations import CustomCall
from cgprimer.core.operations.primitive_registry import FUNCTIONS, Applied
from cgprimer.core.tape.builder import Builder
from cgprimer.recording.eager_builder import EagerBuilder, find_array_function
from cgprimer.recording.recording_state import run_silently
from cgprimer.recording.value_base import ValueBase, get_data

# Caching does not pay off for longer passes or larger arrays, where the overhead per operation is
# negligible; the general sweep also frees each array after its last use.
_MAX_VALUES = 500
_MAX_BYTES = 2**24
_MAX_CACHED = 64
_passes_by_structure: dict[Any, Any] = {}  # None after the first occurrence of a structure
_recent: dict[tuple[Applied, bool], CachedPass] = {}  # latest pass per primitive of the result

_NEW_ARRAYS = ("add", "sub", "mul", "div", "neg", "matmul", "sum")  # never return an operand


class _PassBuilder(Builder):
    """A tape builder that sums gradient contributions over broadcast axes."""

    add_contribution = EagerBuilder.add_contribution  # type: ignore[assignment]  # recorded operands may have been broadcast


class CachedPass:
    """A compiled backward pass, reused for all graphs with equal structure.

    Args:
        order: the values that require grad, latest first.
        others: all other operands that are not floats; values come first.
        seeded: whether an upstream gradient is passed; it is 1 otherwise.

    Attributes:
        inner: positions of the computed values, in the order of the pass.
        n_ordered: number of values that require grad; they have the first positions.
        n_values: number of positions that hold values; the remaining positions hold plain arrays.
    """

    def __init__(self, order: list[ValueBase], others: list[Any], *, seeded: bool) -> None:
        self._generation = FUNCTIONS.generation  # of the derivative rules
        operands = [*order, *others]
        positions = {id(operand): i for i, operand in enumerate(operands)}
        self._compile(order, operands, positions, seeded=seeded)
        self._store_structure(order, operands, positions)

    def _compile(
        self,
        order: list[ValueBase],
        operands: list[Any],
        positions: dict[int, int],
        *,
        seeded: bool,
    ) -> None:
        """Emit the backward pass as a tape, and compile the tape for the array evaluator."""
        builder = _PassBuilder()
        data = [get_data(operand) for operand in operands]
        leaves = [builder.leaf("column", f"v{i}", shape=np.shape(d)) for i, d in enumerate(data)]

        def find_leaf(operand: Any) -> int:
            """Return the index of the tape leaf that holds an operand."""
            if operand.__class__ is float:
                return builder.constant(operand)
            return leaves[positions[id(operand)]]

        seed = builder.constant(1.0)
        if seeded:
            seed = builder.leaf("column", "seed", shape=np.shape(data[0]))
        adjoints = {leaves[0]: seed}
        sweep(builder, [
            SweepInstruction(
                leaves[i], v.primitive,
                tuple(find_leaf(o) if getattr(o, "requires_grad", False) else None
                      for o in v.operands),
                tuple(find_leaf(o) for o in v.operands), leaves[i],
            )
            for i, v in enumerate(order) if v.operands
        ], adjoints)  # fmt: skip
        outputs = {}
        for i, value in enumerate(order):
            bar = adjoints.get(leaves[i])
            if bar is not None and (not value.primitive or type(value._data) is float):
                outputs[str(i)] = builder.broadcast(bar, np.shape(value._data))
        tape = builder.finish(outputs, prune=True)
        dtype = getattr(data[0], "dtype", np.dtype(float))
        steps = ArrayEvaluator(tape, sums=False, dtype=dtype.name, lookup=find_array_function)
        self._steps = steps.sample_instructions
        self._start: list[Any] = [None] * tape.size
        for i, leaf in enumerate(tape.leaves):
            if leaf.kind == "constant":
                self._start[i] = dtype.type(leaf.value)
        run_instructions(steps.common_instructions, self._start)
        self._leaves = [
            (i, len(operands) if leaf.name == "seed" else int(leaf.name[1:]))
            for i, leaf in enumerate(tape.leaves) if leaf.kind == "column"
        ]  # fmt: skip
        new = {
            index for index, (name, _) in enumerate(tape.instructions, len(tape.leaves))
            if operator_name(name) in _NEW_ARRAYS
        } & {step[0] for step in steps.sample_instructions}  # fmt: skip
        self._outputs = [(int(name), index, index in new) for name, index in tape.outputs.items()]

    def _store_structure(
        self, order: list[ValueBase], operands: list[Any], positions: dict[int, int]
    ) -> None:
        """Store the properties that a matching graph must have, and the paths to its operands."""
        self.n_ordered, self._n_operands = len(order), len(operands)
        self.inner = [i for i, v in enumerate(order) if v.operands]
        self._ends = [i for i in range(len(operands)) if i not in self.inner]
        paths: dict[int, tuple[int, int]] = {}  # by position: a value and the index of its operand
        self._used: list[int] = []  # positions of the operands of all values
        self._constants: list[float] = []
        for i in self.inner:
            for index, operand in enumerate(order[i].operands):
                position = positions.get(id(operand))
                if position is None:
                    position = self._n_operands + len(self._constants)
                    self._constants.append(operand)
                self._used.append(position)
                paths.setdefault(position, (i, index))
        self._paths = [paths[i] for i in range(1, self._n_operands + len(self._constants))]
        self._names = [v.primitive for v in order]
        self._types = list(map(type, [*operands[self.n_ordered :], *self._constants]))
        self.n_values = sum(isinstance(operand, ValueBase) for operand in operands)
        self._requires_grad = [v.requires_grad for v in operands[: self.n_values]]
        self._formats = self._list_formats(self._get_data(operands))

    def _get_data(self, operands: list[Any]) -> list[Any]:
        """Return the data of all operands."""
        return [v._data for v in operands[: self.n_values]] + operands[
            self.n_values : self._n_operands
        ]

    def _list_formats(self, data: list[Any]) -> list[Any]:
        """Return the shape and dtype of each leaf and plain array; None for a float."""
        ends = [data[i] for i in self._ends]
        return [None if d.__class__ is float else (d.shape, d.dtype) for d in ends]

    def match(self, root: ValueBase) -> list[Any] | None:
        """Return the operands of the graph of ``root``, or None if its structure differs."""
        operands: list[Any] = [root]
        add = operands.append
        try:
            for user, index in self._paths:
                add(operands[user].operands[index])
            if [v.primitive for v in operands[: self.n_ordered]] != self._names:
                return None
        except (AttributeError, IndexError):
            return None
        if list(map(type, operands[self.n_ordered :])) != self._types:
            return None
        order, inner = operands[: self.n_ordered], [operands[i] for i in self.inner]
        used, serials = [o for v in inner for o in v.operands], [v.serial for v in inner]
        is_same = (
            len(used) == len(self._used)
            and all(map(is_, used, [operands[i] for i in self._used]))
            and len(set(order)) == self.n_ordered
            and FUNCTIONS.generation == self._generation
            and serials == sorted(serials, reverse=True)
            and [v.requires_grad for v in operands[: self.n_values]] == self._requires_grad
            and operands[self._n_operands :] == self._constants
            and self._list_formats(self._get_data(operands)) == self._formats
        )
        return operands[: self._n_operands] if is_same else None

    @property
    def has_zero_constant(self) -> bool:
        """True if the graph has a constant zero, whose sign ``match`` does not compare."""
        return 0.0 in self._constants

    def __call__(self, operands: list[Any], seed: Any) -> dict[ValueBase, Any]:
        """Return the adjoints of leaves and of scalars, given the operands by position.

        No returned array is an operand of the graph.
        """
        values, data = self._start.copy(), self._get_data(operands)
        data.append(seed)
        for index, position in self._leaves:
            operand = data[position]
            values[index] = np.float64(operand) if operand.__class__ is float else operand
        run_silently(run_instructions, self._steps, values)
        return {
            operands[position]: values[index] if is_new else np.array(values[index])
            for position, index, is_new in self._outputs
        }


def find_recent_pass(root: ValueBase, *, seeded: bool) -> tuple[CachedPass | None, list[Any]]:
    """Return the most recently used pass for the primitive of ``root``, if its structure matches.

    Returns:
        The pass and the operands by position; None and an empty list if no pass matches.
    """
    program = _recent.get((root.primitive, seeded))
    operands = program and program.match(root)
    return (program, operands) if operands else (None, [])


def find_or_compile_pass(
    order: list[ValueBase], seeded: bool
) -> tuple[CachedPass | None, list[Any]]:
    """Return the cached pass of a graph; compile it when its structure occurs a second time.

    Returns None and an empty list for a graph that is new, long, large, of mixed precision, or has
    a :class:`cgprimer.Function`.

    Args:
        order: the values that require grad, latest first.
        seeded: whether an upstream gradient is passed.
    """
    if len(order) > _MAX_VALUES or not order[0].operands:
        return None, []
    structure_parts = _describe_structure(order)
    if structure_parts is None:
        return None, []
    structure, others, dtypes = structure_parts
    key = (FUNCTIONS.generation, seeded, *structure, *sorted(dtypes))
    program = _passes_by_structure.get(key, False)
    if program is False:
        if len(_passes_by_structure) >= _MAX_CACHED:
            _passes_by_structure.clear()
            _recent.clear()
        _passes_by_structure[key] = None
        return None, []
    others.sort(key=lambda operand: not isinstance(operand, ValueBase))  # values first
    if program is None:
        size = sum(getattr(v._data, "nbytes", 8) for v in order)
        has_arrays = any(np.ndim(v._data) for v in order)
        is_worth_it = has_arrays and len(dtypes) == 1 and size <= _MAX_BYTES
        program = CachedPass(order, others, seeded=seeded) if is_worth_it else ()
        _passes_by_structure[key] = program
    if not program:
        return None, []
    if not program.has_zero_constant:
        _recent[order[0].primitive, seeded] = program
    return program, [*order, *others]


def _describe_structure(order: list[ValueBase]) -> tuple[list[Any], list[Any], set[str]] | None:
    """Return the structure of a graph, the operands that do not require grad, and all dtypes.

    Returns None for a graph with a :class:`cgprimer.Function`: its backward pass runs Python code
    and holds arrays that must not be cached.
    """
    positions = {id(v): i for i, v in enumerate(order)}
    structure: list[Any] = []
    others: list[Any] = []
    dtypes: set[str] = set()
    add = structure.append
    for value in order:
        name = value.primitive
        if isinstance(name, CustomCall) and not name.function.is_rule:
            return None
        add(name)
        for operand in value.operands or (value,):
            if operand.__class__ is float:
                add(operand.hex())
                continue
            position = positions.get(id(operand))
            if position is None:
                position = positions[id(operand)] = len(positions)
                others.append(operand)
            elif operand is not value:
                add(position)
                continue
            data = get_data(operand)
            add(isinstance(operand, ValueBase))
            if data.__class__ is float:
                add("")
                dtypes.add("d")
            else:
                add(data.shape)
                dtypes.add(data.dtype.char)
    return structure, others, dtypes
