"""Execution plan of a tape with arrays: fused kernels and standalone instructions.

Matrix products and operations that move elements are standalone. All elementwise operations between
two standalone instructions form one fused kernel: it iterates over the samples once and stores only
the values that are used elsewhere. A kernel also computes reductions: over the elements of a
sample, as in softmax, and over all samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import prod

from cgprimer.core.language.syntax_tree import operator_name
from cgprimer.core.operations import find_primitive
from cgprimer.core.operations.batch_operations import BatchSum
from cgprimer.core.operations.matrix_operations import Matmul
from cgprimer.core.operations.primitive_registry import Applied
from cgprimer.core.tape.tape import Tape
from cgprimer.core.tape.tape_dependencies import find_dependents, find_varying_values

SAMPLE_REDUCTIONS = ("sum", "largest")  # over the elements of a sample


@dataclass
class FusedKernel:
    """Instructions that are fused into one loop over the samples.

    Attributes:
        levels: instruction -> level, in execution order. The result of a reduction over the
            elements is available to instructions of the next level, which run in a separate loop.
        reads: values loaded from memory.
        writes: values stored to memory, including sums over the samples.
        flat: elements per sample, if the kernel is one loop over the elements of all samples;
            otherwise 0.
    """

    levels: dict[int, int] = field(default_factory=dict)
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    flat: int = 0


class ArrayPlan:
    """Execution plan of a tape with arrays: fused kernels and standalone instructions.

    Args:
        tape: the tape to plan.
        is_supported: returns whether a kernel can compute the primitive with a given name.

    Attributes:
        varies: for each value, whether it varies with the sample.
        batch_dependent: for each value, whether it is, or depends on, a sum over the samples.
        sizes: for each value, its number of elements per sample.
        storage: for each value, the value that stores its elements: a reshaped or repeated value
            has no separate copy.
        uniform: instructions that do not vary with the sample.
        steps: fused kernels and standalone instructions, in execution order.
    """

    def __init__(self, tape: Tape, is_supported: Callable[[str], bool]) -> None:
        self.tape, self.first = tape, len(tape.leaves)
        self.varies, self.sizes = find_varying_values(tape), [prod(shape) for shape in tape.shapes]
        indices = range(self.first, tape.size)
        batch = [i for i in indices if self._combines_samples(i)]
        self.batch_dependent = batch_dependent = find_dependents(tape, batch)
        self.storage = list(range(tape.size))
        for i in indices:
            if self.varies[i] and not batch_dependent[i] and self._is_view(i):
                self.storage[i] = self.storage[self.operands(i)[0]]
        varying_indices = [i for i in indices if self.varies[i]]
        self.uniform = [i for i in indices if not self.varies[i]]
        self.in_kernels = {
            i for i in varying_indices
            if self.storage[i] == i and (not batch_dependent[i] or i in batch)
            and self._is_fusible(i, is_supported)
        }  # fmt: skip
        self.steps = list(self._schedule(varying_indices))

    def operation(self, index: int) -> Applied:
        """Return the operation of an instruction."""
        return self.tape.instructions[index - self.first][0]

    def operands(self, index: int) -> tuple[int, ...]:
        """Return the operands of an instruction."""
        return self.tape.instructions[index - self.first][1]

    def operand_storage(self, index: int) -> list[int]:
        """Return, for each operand of an instruction, the value that stores its elements."""
        return [self.storage[o] for o in self.operands(index)]

    def is_sample_reduction(self, index: int) -> bool:
        """Return whether a value is the sum or maximum over the elements of each sample."""
        return index >= self.first and operator_name(self.operation(index)) in SAMPLE_REDUCTIONS

    def _is_view(self, index: int) -> bool:
        """Return whether a value is a view of its operand: the same elements in the same order."""
        operation, (operand, *_) = self.operation(index), self.operands(index)
        if operation in ("copy", "stop_gradient"):
            return True
        kind = operator_name(operation)
        if kind == "reshape":
            return True
        if self.sizes[operand] != 1:
            return False
        one_element = kind in (*SAMPLE_REDUCTIONS, "transpose") and self.sizes[index] == 1
        return kind == "broadcast" or one_element

    def _is_fusible(self, index: int, is_supported: Callable[[str], bool]) -> bool:
        """Return whether a fused kernel can compute an instruction."""
        operation, size = self.operation(index), self.sizes[index]
        if isinstance(operation, str):
            return size > 0 and is_supported(operation) and find_primitive(operation).built_in
        if operation.name in SAMPLE_REDUCTIONS:
            return size == 1 and self.sizes[self.operands(index)[0]] > 0
        if isinstance(operation, Matmul):  # a column times a row of one element each: elementwise
            a, b = self.operands(index)
            return operation.ranks in ((2, 1), (1, 2)) and 0 < size == self.sizes[a] * self.sizes[b]
        return isinstance(operation, BatchSum) and size > 0

    def _schedule(self, indices: list[int]) -> Iterator[FusedKernel | int]:
        """Yield fused kernels and standalone instructions in execution order.

        The schedule has as few kernels as possible; each instruction runs in the latest possible
        kernel.
        """
        earliest = self._compute_earliest_phases(indices)
        last = max((earliest[i] for i in indices), default=0)
        latest, stored = self._compute_latest_phases(indices, earliest, last)
        inside, storage = self.in_kernels, self.storage
        for phase in range(last + 1):
            kernel = FusedKernel({i: 0 for i in indices if latest.get(i) == phase})
            if kernel.levels:
                self._set_kernel_attributes(kernel, stored)
                yield kernel
            for i in indices:
                if i not in inside and earliest[i] == phase and (storage[i] == i or i in stored):
                    yield i

    def _compute_earliest_phases(self, indices: list[int]) -> dict[int, int]:
        """Compute the earliest phase in which each instruction can run.

        A phase is a fused kernel followed by standalone instructions.
        """
        inside = self.in_kernels
        earliest: dict[int, int] = {}
        for i in indices:
            operands = self.operand_storage(i) if i in inside else self.operands(i)
            phases = (
                earliest[o] + (i in inside and o not in inside) for o in operands if o in earliest
            )
            earliest[i] = max(phases, default=0)
        return earliest

    def _compute_latest_phases(
        self, indices: list[int], earliest: dict[int, int], last: int
    ) -> tuple[dict[int, int], set[int]]:
        """Return the latest phase in which each instruction can run, and the values to store."""
        inside = self.in_kernels
        latest = dict.fromkeys(inside, last)
        stored = set(self.tape.outputs.values())  # values used outside of kernels
        for i in reversed(indices):
            if i in inside:
                if self._is_batch_sum(i) and self.operand_storage(i)[0] in inside:
                    latest[i] = earliest[i]
                for o in self.operand_storage(i):
                    if o in latest:
                        latest[o] = min(latest[o], latest[i])
            elif i in stored or self.storage[i] == i:
                for o in self.operands(i):
                    stored.add(o)
                    if self.storage[o] in latest:
                        latest[self.storage[o]] = min(latest[self.storage[o]], earliest[i])
        return latest, stored

    def _set_kernel_attributes(self, kernel: FusedKernel, stored: set[int]) -> None:
        """Set the loop levels, the loads and the stores of a fused kernel."""
        levels, sizes = kernel.levels, self.sizes
        for i in levels:
            inner = [
                levels[o] + self.is_sample_reduction(o)
                for o in self.operand_storage(i)
                if o in levels
            ]
            levels[i] = max(inner, default=0)
        read = dict.fromkeys(o for i in levels for o in self.operand_storage(i) if o not in levels)
        kernel.reads = tuple(
            o for o in read if o >= self.first or self.tape.leaves[o].kind != "constant"
        )
        written = {i for i in levels if i in stored}
        written |= {self.storage[i] for i in stored} & set(levels)
        for i in self.in_kernels:
            for o in self.operand_storage(i):
                crosses_loops = levels.get(i) != levels.get(o)
                crossing = sizes[o] > 1 and not self.is_sample_reduction(o) and crosses_loops
                if o in levels and (i not in levels or crossing):
                    written.add(o)
        kernel.writes = tuple(i for i in levels if i in written)
        kernel.flat = self._compute_flat_size(kernel)

    def _compute_flat_size(self, kernel: FusedKernel) -> int:
        """Return the elements per sample if one flat loop computes the kernel, otherwise 0."""
        levels, sizes = kernel.levels, self.sizes
        used = {*levels, *(o for o in kernel.reads if self.varies[o])}
        distinct_sizes = {sizes[i] for i in used}
        if len(distinct_sizes) != 1 or any(map(self.is_sample_reduction, levels)):
            return 0
        if any(sizes[o] != 1 for o in kernel.reads if not self.varies[o]):
            return 0
        if any(map(self._is_batch_sum, levels)) and distinct_sizes != {1}:
            return 0
        return distinct_sizes.pop()

    def _is_batch_sum(self, index: int) -> bool:
        """Return whether an instruction sums its operand over all samples."""
        return isinstance(self.operation(index), BatchSum)

    def _combines_samples(self, index: int) -> bool:
        """Return whether an instruction combines values of different samples."""
        operation = self.operation(index)
        return not isinstance(operation, str) and operation.combines_samples
