"""Tapes with arrays as kernels and the steps between them.

Products of matrices and whatever moves elements are steps by themselves. All that is done element
by element from one to the next is one kernel: it goes through the samples once, and only what is
used elsewhere is written to memory. A kernel also adds up: the numbers of one sample, as softmax
does, or those of all samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import prod

from cgprimer.core.language.syntax import Structural
from cgprimer.core.primitives import primitive
from cgprimer.core.tape.passes import depends, varying
from cgprimer.core.tape.tape import Tape

FOLDS = ("sum", "largest")  # over the numbers of a sample


@dataclass
class Kernel:
    """Instructions that are done together, sample after sample.

    Attributes:
        values: the instructions, in order, with their levels: what one loop over the elements adds
            up is known to those of the next level.
        reads: values from memory.
        writes: values to memory, sums over the samples among them.
        flat: numbers of a sample, where the kernel is one loop over the elements of all samples;
            else 0.
    """

    values: dict[int, int] = field(default_factory=dict)
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    flat: int = 0


class ArrayPlan:
    """How a tape with arrays is run.

    Attributes:
        varies: for each value, whether it varies with the sample.
        after: whether it is a sum over the samples, or made of some.
        sizes: of each value: its numbers per sample.
        source: of each value the one that has its numbers; a repeated number is that number.
        once: instructions that no sample changes.
        steps: kernels, and instructions that are steps by themselves.
    """

    def __init__(self, tape: Tape, known: Callable[[str], bool]) -> None:
        self.tape, self.first = tape, len(tape.leaves)
        self.varies, self.sizes = varying(tape), [prod(shape) for shape in tape.shapes]
        indices = range(self.first, tape.size)
        batch = [i for i in indices if getattr(self.name(i), "kind", "").startswith("batch_")]
        self.after = after = depends(tape, batch)
        self.source = list(range(tape.size))
        for i in indices:
            if self.varies[i] and not after[i] and self._same(i):
                self.source[i] = self.source[self.operands(i)[0]]
        each = [i for i in indices if self.varies[i]]
        self.once = [i for i in indices if not self.varies[i]]
        self.inside = {
            i for i in each
            if self.source[i] == i and (not after[i] or i in batch) and self._in_kernel(i, known)
        }  # fmt: skip
        self.steps = list(self._steps(each))

    def name(self, index: int) -> str:
        """The primitive of an instruction."""
        return self.tape.instructions[index - self.first][0]

    def operands(self, index: int) -> tuple[int, ...]:
        """Its operands."""
        return self.tape.instructions[index - self.first][1]

    def used(self, index: int) -> list[int]:
        """Where a kernel finds its operands."""
        return [self.source[o] for o in self.operands(index)]

    def folds(self, index: int) -> bool:
        """Whether it adds up the numbers of a sample, or finds the largest."""
        return index >= self.first and getattr(self.name(index), "kind", "") in FOLDS

    def _same(self, index: int) -> bool:
        """Whether its numbers are those of its operand."""
        name, (one, *_) = self.name(index), self.operands(index)
        if name in ("copy", "stop_gradient"):
            return True
        kind = getattr(name, "kind", "")
        number = kind in (*FOLDS, "broadcast", "transpose") and self.sizes[one] == 1
        return kind == "reshape" or (number and (kind == "broadcast" or self.sizes[index] == 1))

    def _in_kernel(self, index: int, known: Callable[[str], bool]) -> bool:
        name, size = self.name(index), self.sizes[index]
        if not isinstance(name, Structural):
            return size > 0 and known(name) and primitive(name).built_in
        if name.kind in FOLDS:
            return size == 1 and self.sizes[self.operands(index)[0]] > 0
        if name.kind == "matmul":  # of one column, or one row: each number times the other
            a, b = self.operands(index)
            return name.setting in ((2, 1), (1, 2)) and 0 < size == self.sizes[a] * self.sizes[b]
        return name.kind == "batch_sum" and size > 0

    def _steps(self, each: list[int]) -> Iterator[Kernel | int]:
        """Kernels as few as can be; what they compute as late as it can be."""
        inside, source = self.inside, self.source
        soonest: dict[int, int] = {}
        for i in each:
            before = self.used(i) if i in inside else self.operands(i)
            known = [o for o in before if o in soonest]
            steps = (soonest[o] + (i in inside and o not in inside) for o in known)
            soonest[i] = max(steps, default=0)
        last = max((soonest[i] for i in each), default=0)
        latest = dict.fromkeys(inside, last)
        wanted = set(self.tape.outputs.values())  # outside of kernels
        for i in reversed(each):
            if i in inside:
                if self._summing(i) and self.used(i)[0] in inside:
                    latest[i] = soonest[i]
                for o in self.used(i):
                    if o in latest:
                        latest[o] = min(latest[o], latest[i])
            elif i in wanted or source[i] == i:
                for o in self.operands(i):
                    wanted.add(o)
                    if source[o] in latest:
                        latest[source[o]] = min(latest[source[o]], soonest[i])
        for phase in range(last + 1):
            kernel = Kernel({i: 0 for i in each if latest.get(i) == phase})
            if kernel.values:
                self._complete(kernel, latest, wanted)
                yield kernel
            for i in each:
                if i not in inside and soonest[i] == phase and (source[i] == i or i in wanted):
                    yield i

    def _complete(self, kernel: Kernel, phases: dict[int, int], wanted: set[int]) -> None:
        """Levels, and what is read and written."""
        levels, sizes = kernel.values, self.sizes
        for i in levels:
            inner = [levels[o] + self.folds(o) for o in self.used(i) if o in levels]
            levels[i] = max(inner, default=0)
        read = dict.fromkeys(o for i in levels for o in self.used(i) if o not in levels)
        kernel.reads = tuple(
            o for o in read if o >= self.first or self.tape.leaves[o].kind != "constant"
        )
        written = {i for i in levels if i in wanted}
        written |= {self.source[i] for i in wanted} & set(levels)
        for i in self.inside:
            for o in self.used(i):
                crossing = sizes[o] > 1 and not self.folds(o) and levels.get(i) != levels.get(o)
                if o in levels and (i not in levels or crossing):
                    written.add(o)
        kernel.writes = tuple(i for i in levels if i in written)
        used = {*levels, *(o for o in kernel.reads if self.varies[o])}
        alike = {sizes[i] for i in used}
        sums = any(map(self._summing, levels))
        fixed = all(sizes[o] == 1 for o in kernel.reads if not self.varies[o])
        folds = any(map(self.folds, levels))
        if len(alike) == 1 and fixed and not folds and not (sums and alike != {1}):
            kernel.flat = alike.pop()

    def _summing(self, index: int) -> bool:
        return getattr(self.name(index), "kind", "") == "batch_sum"
