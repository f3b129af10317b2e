"""The engine to read: numpy, a block of samples at a time.

An instruction is one call of the primitive's numpy function on arrays. Samples are taken in
blocks, so that all live values of a block fit into the processor's cache and memory does not
grow with the number of samples; rows of the block's buffer are reused as soon as a value is not
needed any more. What does not vary with the sample is computed once, before the first block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from cgprimer.collector import collector_paused
from cgprimer.execution.contract import Array, Executable, Reduction
from cgprimer.primitives import primitive
from cgprimer.tapes.passes import last_uses, optimize, variance
from cgprimer.tapes.tape import Tape

_CACHE_BYTES = 2**18  # live values of a block: half of a typical second-level cache
_BLOCK_LIMITS = (512, 2**15)


class _Step(NamedTuple):
    """An instruction ready to run: ``values[target] = function(*values[operands])``."""

    function: Callable[..., Array]
    operands: tuple[int, ...]
    target: int
    row: int  # where in the block's buffer the result goes; -1: nowhere, it is a single number


class NumpyExecutable:
    """A tape compiled for numpy.

    Args:
        tape: what to run.
        reduction: ``none`` for a value per sample, ``sum`` for the sum over the samples.
        dtype: ``float64``, ``float32``, or ``complex128`` for complex steps.
    """

    def __init__(self, tape: Tape, *, reduction: Reduction, dtype: str) -> None:
        self.tape = optimize(tape)
        self.reduction = reduction
        self.dtype = np.dtype(dtype)
        varies = [kind == "column" for kind in variance(self.tape)]
        self.varies = varies
        # A sum of products over the samples is a dot product: the product itself is never stored.
        self.dots = self._dot_products() if reduction == "sum" else {}
        first = len(self.tape.leaves)
        self.uniform: list[_Step] = []
        self.varying: list[_Step] = []
        last = last_uses(self.tape)
        for factors in self.dots.values():  # read at the end of the block, not in their turn
            for factor in factors:
                last[factor] = self.tape.size
        rows = _Rows(last)
        for position, (name, operands) in enumerate(self.tape.instructions):
            index = first + position
            function = primitive(name).numpy
            if not varies[index]:
                self.uniform.append(_Step(function, operands, index, -1))
                continue
            if index not in self.dots:
                rows.release(operands, index)
                self.varying.append(_Step(function, operands, index, rows.take(index)))
        self.row_count = rows.count
        live = max(1, rows.count + len(self.tape.of_kind("column")))
        block = _CACHE_BYTES // (live * self.dtype.itemsize)
        self.block = min(
            max(1 << block.bit_length() - 1 if block else 1, _BLOCK_LIMITS[0]), _BLOCK_LIMITS[1]
        )

    def _dot_products(self) -> dict[int, tuple[int, int]]:
        """Outputs that are products of two varying values, used for nothing else."""
        used = {o for _, operands in self.tape.instructions for o in operands}
        found = {}
        for index in self.tape.outputs.values():
            step = self.tape.instruction(index)
            if (
                step
                and step.primitive == "mul"
                and index not in used
                and all(self.varies[o] for o in step.operands)
            ):
                found[index] = (step.operands[0], step.operands[1])
        return found

    def __call__(
        self, columns: Mapping[str, Array], scalars: Mapping[str, Any], samples: int
    ) -> dict[str, Array]:
        """Run the tape; see :class:`cgprimer.execution.contract.Executable`."""
        # Domain policy is IEEE 754's: nan and infinity are values, not exceptions.
        with np.errstate(all="ignore"):
            values = self._uniform_values(scalars)
            collect = self._sums if self.reduction == "sum" else self._per_sample
            return collect(values, columns, samples)

    def _uniform_values(self, scalars: Mapping[str, Any]) -> list[Any]:
        """All values, with those filled in that do not vary with the sample."""
        values: list[Any] = [None] * self.tape.size
        real = self.dtype.type if self.dtype.kind == "f" else np.float64
        for index, leaf in enumerate(self.tape.leaves):
            if leaf.kind == "constant":
                values[index] = real(leaf.value)
            elif leaf.kind == "scalar":
                given = scalars[leaf.name]
                values[index] = given if isinstance(given, complex) else real(given)
        scalar = (lambda v: v) if self.dtype.kind == "c" else real
        for function, operands, target, _ in self.uniform:
            values[target] = scalar(function(*[values[o] for o in operands]))
        return values

    def _blocks(self, values: list[Any], columns: Mapping[str, Array], samples: int) -> Any:
        """Fill in the varying values block by block; yields each block's first and last sample."""
        in_place = self.dtype.kind == "f"  # numpy's complex forms are not all ufuncs
        leaves = [
            (i, _read_only(columns[leaf.name]))
            for i, leaf in enumerate(self.tape.leaves)
            if leaf.kind == "column"
        ]
        block = max(1, min(self.block, samples))
        buffer = np.empty((self.row_count, block), self.dtype)
        for start in range(0, samples, block):
            stop = min(start + block, samples)
            for index, column in leaves:
                values[index] = column[start:stop]
            rows = [row[: stop - start] for row in buffer]
            for function, operands, target, row in self.varying:
                arguments = [values[o] for o in operands]
                if in_place and isinstance(function, np.ufunc):
                    values[target] = function(*arguments, out=rows[row])
                else:
                    # Copied even if the function made an array of its own: it may as well have
                    # returned its argument, or an array of another type.
                    rows[row][...] = function(*arguments)
                    values[target] = rows[row]
            yield start, stop

    def _per_sample(
        self, values: list[Any], columns: Mapping[str, Array], samples: int
    ) -> dict[str, Array]:
        dtype = self.dtype
        found = {name: np.empty(samples, dtype) for name in self.tape.outputs}
        for start, stop in self._blocks(values, columns, samples):
            for name, index in self.tape.outputs.items():
                found[name][start:stop] = values[index]
        return found

    def _sums(
        self, values: list[Any], columns: Mapping[str, Array], samples: int
    ) -> dict[str, Array]:
        indices = set(self.tape.outputs.values())
        parts: dict[int, list[Any]] = {i: [] for i in indices}
        for _ in self._blocks(values, columns, samples):
            for index, sums in parts.items():
                if index in self.dots:
                    left, right = self.dots[index]
                    sums.append(np.dot(values[left], values[right]))
                elif self.varies[index]:
                    sums.append(np.add.reduce(values[index]))
        # The sums of the blocks are added in double precision and in their order: the same
        # result from run to run.
        wide = np.complex128 if self.dtype.kind == "c" else np.float64
        totals = {
            i: np.sum(np.array(sums, wide)) if self.varies[i] else wide(values[i]) * samples
            for i, sums in parts.items()
        }
        return {name: totals[i] for name, i in self.tape.outputs.items()}


def _read_only(column: Array) -> Array:
    """A view that no primitive can write to: the samples belong to the caller."""
    view = np.asarray(column).view()
    view.flags.writeable = False
    return view


class _Rows:
    """Which row of the buffer holds which value: a row is free after its value's last use."""

    def __init__(self, last: list[int]) -> None:
        self.last = last
        self.row_of: dict[int, int] = {}
        self.free: list[int] = []
        self.count = 0

    def release(self, operands: tuple[int, ...], user: int) -> None:
        """Operands that ``user`` is the last to read give their rows back, to it first of all."""
        for operand in set(operands):
            if self.last[operand] == user and operand in self.row_of:
                self.free.append(self.row_of.pop(operand))

    def take(self, index: int) -> int:
        """A row for a value."""
        if self.free:
            row = self.free.pop()
        else:
            row, self.count = self.count, self.count + 1
        self.row_of[index] = row
        return row


class NumpyEngine:
    """The reference engine; always available."""

    name = "numpy"

    def unavailable(self) -> str:
        """Never: numpy is a dependency."""
        return ""

    def compile(
        self, tape: Tape, *, reduction: Reduction = "none", dtype: str = "float64"
    ) -> Executable:
        """Prepare a tape for being run many times."""
        with collector_paused():
            return NumpyExecutable(tape, reduction=reduction, dtype=dtype)


ENGINE = NumpyEngine()
