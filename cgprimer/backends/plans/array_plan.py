"""Execution plan of a tape with arrays: fused kernels and separate steps.

Matrix products and operations that move elements are separate steps. All elementwise operations
between two such steps form one fused kernel: it iterates over the samples once and stores only the
values that are used elsewhere. A kernel also computes reductions: over the elements of a sample,
as in softmax, and over all samples.
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
    """Instructions that run together, sample by sample.

    Attributes:
        levels: instruction -> level, in execution order. The result of a reduction over the
            elements is available to instructions of the next level, which run in a new loop.
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
    """Execution plan of a tape with arrays.

    Args:
        tape: the tape to plan.
        supported: returns whether a kernel can compute the primitive of this name.

    Attributes:
        varies: for each value, whether it varies with the sample.
        after: for each value, whether it is, or depends on, a sum over the samples.
        sizes: for each value, its number of elements per sample.
        source: for each value, the value that holds its elements: a reshaped or repeated value
            has no separate copy.
        once: instructions that do not vary with the sample.
        steps: fused kernels, and instructions that are separate steps.
    """

    def __init__(self, tape: Tape, supported: Callable[[str], bool]) -> None:
        self.tape, self.first = tape, len(tape.leaves)
        self.varies, self.sizes = find_varying_values(tape), [prod(shape) for shape in tape.shapes]
        indices = range(self.first, tape.size)
        batch = [i for i in indices if self._is_over_samples(i)]
        self.after = after = find_dependents(tape, batch)
        self.source = list(range(tape.size))
        for i in indices:
            if self.varies[i] and not after[i] and self._has_elements_of_operand(i):
                self.source[i] = self.source[self.operands(i)[0]]
        varying_indices = [i for i in indices if self.varies[i]]
        self.once = [i for i in indices if not self.varies[i]]
        self.in_kernels = {
            i for i in varying_indices
            if self.source[i] == i and (not after[i] or i in batch)
            and self._fits_kernel(i, supported)
        }  # fmt: skip
        self.steps = list(self._arrange(varying_indices))

    def name(self, index: int) -> Applied:
        """Return the operation of an instruction."""
        return self.tape.instructions[index - self.first][0]

    def operands(self, index: int) -> tuple[int, ...]:
        """Return the operands of an instruction."""
        return self.tape.instructions[index - self.first][1]

    def sources(self, index: int) -> list[int]:
        """Return the values that hold the elements of an instruction's operands."""
        return [self.source[o] for o in self.operands(index)]

    def reduces_sample(self, index: int) -> bool:
        """Return whether a value is a sum or maximum over the elements of a sample."""
        return index >= self.first and operator_name(self.name(index)) in SAMPLE_REDUCTIONS

    def _has_elements_of_operand(self, index: int) -> bool:
        """Return whether the elements of a value are those of its operand, in the same order."""
        name, (operand, *_) = self.name(index), self.operands(index)
        if name in ("copy", "stop_gradient"):
            return True
        kind = operator_name(name)
        if kind == "reshape":
            return True
        if self.sizes[operand] != 1:
            return False
        one_element = kind in (*SAMPLE_REDUCTIONS, "transpose") and self.sizes[index] == 1
        return kind == "broadcast" or one_element

    def _fits_kernel(self, index: int, supported: Callable[[str], bool]) -> bool:
        name, size = self.name(index), self.sizes[index]
        if isinstance(name, str):
            return size > 0 and supported(name) and find_primitive(name).built_in
        if name.name in SAMPLE_REDUCTIONS:
            return size == 1 and self.sizes[self.operands(index)[0]] > 0
        if isinstance(name, Matmul):  # a column times a row of one element each: elementwise
            a, b = self.operands(index)
            return name.ranks in ((2, 1), (1, 2)) and 0 < size == self.sizes[a] * self.sizes[b]
        return isinstance(name, BatchSum) and size > 0

    def _arrange(self, indices: list[int]) -> Iterator[FusedKernel | int]:
        """Yield as few kernels as possible; instructions run in the latest possible kernel."""
        earliest = self._earliest_phases(indices)
        last = max((earliest[i] for i in indices), default=0)
        latest, stored = self._latest_phases(indices, earliest, last)
        inside, source = self.in_kernels, self.source
        for phase in range(last + 1):
            kernel = FusedKernel({i: 0 for i in indices if latest.get(i) == phase})
            if kernel.levels:
                self._complete(kernel, stored)
                yield kernel
            for i in indices:
                if i not in inside and earliest[i] == phase and (source[i] == i or i in stored):
                    yield i

    def _earliest_phases(self, indices: list[int]) -> dict[int, int]:
        """Return the first phase in which each instruction can run.

        A phase is a kernel followed by separate steps.
        """
        inside = self.in_kernels
        earliest: dict[int, int] = {}
        for i in indices:
            operands = self.sources(i) if i in inside else self.operands(i)
            phases = (
                earliest[o] + (i in inside and o not in inside) for o in operands if o in earliest
            )
            earliest[i] = max(phases, default=0)
        return earliest

    def _latest_phases(
        self, indices: list[int], earliest: dict[int, int], last: int
    ) -> tuple[dict[int, int], set[int]]:
        """Return the latest phase of each instruction in a kernel, and the values to be stored."""
        inside = self.in_kernels
        latest = dict.fromkeys(inside, last)
        stored = set(self.tape.outputs.values())  # values used outside of kernels
        for i in reversed(indices):
            if i in inside:
                if self._sums_samples(i) and self.sources(i)[0] in inside:
                    latest[i] = earliest[i]
                for o in self.sources(i):
                    if o in latest:
                        latest[o] = min(latest[o], latest[i])
            elif i in stored or self.source[i] == i:
                for o in self.operands(i):
                    stored.add(o)
                    if self.source[o] in latest:
                        latest[self.source[o]] = min(latest[self.source[o]], earliest[i])
        return latest, stored

    def _complete(self, kernel: FusedKernel, stored: set[int]) -> None:
        """Set the levels, reads and writes of a kernel."""
        levels, sizes = kernel.levels, self.sizes
        for i in levels:
            inner = [levels[o] + self.reduces_sample(o) for o in self.sources(i) if o in levels]
            levels[i] = max(inner, default=0)
        read = dict.fromkeys(o for i in levels for o in self.sources(i) if o not in levels)
        kernel.reads = tuple(
            o for o in read if o >= self.first or self.tape.leaves[o].kind != "constant"
        )
        written = {i for i in levels if i in stored}
        written |= {self.source[i] for i in stored} & set(levels)
        for i in self.in_kernels:
            for o in self.sources(i):
                crosses_loops = levels.get(i) != levels.get(o)
                crossing = sizes[o] > 1 and not self.reduces_sample(o) and crosses_loops
                if o in levels and (i not in levels or crossing):
                    written.add(o)
        kernel.writes = tuple(i for i in levels if i in written)
        kernel.flat = self._flat_size(kernel)

    def _flat_size(self, kernel: FusedKernel) -> int:
        """Return the elements per sample if one loop over all samples is enough, otherwise 0."""
        levels, sizes = kernel.levels, self.sizes
        used = {*levels, *(o for o in kernel.reads if self.varies[o])}
        distinct_sizes = {sizes[i] for i in used}
        if len(distinct_sizes) != 1 or any(map(self.reduces_sample, levels)):
            return 0
        if any(sizes[o] != 1 for o in kernel.reads if not self.varies[o]):
            return 0
        if any(map(self._sums_samples, levels)) and distinct_sizes != {1}:
            return 0
        return distinct_sizes.pop()

    def _sums_samples(self, index: int) -> bool:
        return isinstance(self.name(index), BatchSum)

    def _is_over_samples(self, index: int) -> bool:
        name = self.name(index)
        return not isinstance(name, str) and name.combines_samples
