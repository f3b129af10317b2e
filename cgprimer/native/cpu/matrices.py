"""Tapes with arrays: products of matrices by numpy's library, all between them in kernels.

Samples are taken in blocks, so that what is computed of a block stays in the caches. Every block
has the same places in memory: nothing is allocated for it. Where there is much to do, several
threads have blocks of their own; which samples they take depends on the number of samples and of
threads alone.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from cgprimer.core.language.syntax import Structural
from cgprimer.core.methods.contract import Given
from cgprimer.core.primitives import arrays, primitive
from cgprimer.core.tape.scalars import cost_of_numbers
from cgprimer.core.tape.sums import summed
from cgprimer.core.tape.tape import Tape
from cgprimer.garbage_collection import collector_paused
from cgprimer.native.cpu import blas, threads
from cgprimer.native.cpu.array_text import kernels_text
from cgprimer.native.cpu.library import Library
from cgprimer.native.cpu.operations import SUPPORTED
from cgprimer.native.plans.array_kernels import ArrayPlan, Kernel

Array = Any
Values = list[Any]
_WORTH = 20_000_000  # operations of a thread: with fewer, the products' own threads do better
_BLOCK = 2**19  # bytes of the largest value in a block of samples
_FEWEST = 256  # samples of a block: products of fewer take longer
_SPACES = 4  # numbers of samples for which places in memory are kept


class Space:
    """Places in memory for the values of a block of samples."""

    def __init__(self, program: Matrices, samples: int) -> None:
        plan, shapes = program.plan, program.tape.shapes
        self.values: dict[int, Array] = {}
        sums = [i for i in program.placed if plan.name(i).startswith("batch_sum")]
        self.sums = np.zeros(sum(plan.sizes[i] for i in sums))
        start = 0
        for i in sums:
            end = start + plan.sizes[i]
            self.values[i] = self.sums[start:end].reshape(shapes[i])
            start = end
        for i in program.placed:
            if i not in self.values:
                shape = shapes[i] if program.after[i] else (samples, *shapes[i])
                self.values[i] = np.empty(shape, program.dtype)
        self.tables = []
        for kernel in program.kernels:
            places = [self.values.get(i) for i in (*kernel.reads, *kernel.writes)]
            known = [0 if place is None else place.ctypes.data for place in places]
            self.tables.append(np.array(known, np.int64))
        self.places = [table.ctypes.data for table in self.tables]


class Matrices:
    """A tape with arrays, compiled; call it with the values of its leaves.

    Args:
        tape: what is computed.
        sums: over the samples, in the place of a value for each.
        dtype: ``float64`` or ``float32``.
    """

    def __init__(self, tape: Tape, *, sums: bool, dtype: str) -> None:
        self.sums, self.dtype = sums, np.dtype(dtype)
        self.operations = cost_of_numbers(tape)[0]
        own = any(not isinstance(n, Structural) and not primitive(n).built_in
                  for n, _ in tape.instructions)  # fmt: skip
        self.divisible = not own and blas.divisible()  # Python's functions run one at a time
        if sums:
            tape, _, _ = summed(tape, terms=False)
        self.tape, self.plan = tape, ArrayPlan(tape, SUPPORTED.__contains__)
        plan = self.plan
        self.varying = {n: i for n, i in tape.outputs.items() if plan.varies[i]}
        self.kernels = [step for step in plan.steps if isinstance(step, Kernel)]
        key = repr((tape.leaves, tape.instructions, tape.outputs, dtype, sums))
        if self.kernels:
            with collector_paused():
                self.library = Library("arrays", key, lambda: kernels_text(plan, dtype))
        self.after = plan.after
        leaves = list(enumerate(tape.leaves))
        self.columns = [(i, leaf.name) for i, leaf in leaves if leaf.kind == "column"]
        self.scalars = [(i, leaf.name) for i, leaf in leaves if leaf.kind == "scalar"]
        constants = (
            self.dtype.type(f.value) if f.kind == "constant" else None for f in tape.leaves
        )
        with np.errstate(all="ignore"):  # too large for float32: infinite
            self.start: Values = [*constants, *[None] * len(tape)]
        self.once = [(i, arrays.function(plan.name(i)), plan.operands(i)) for i in plan.once]
        self.read = {i for kernel in self.kernels for i in kernel.reads}
        self.fixed = sorted(i for i in self.read if not plan.varies[i])
        self.placed = [i for kernel in self.kernels for i in kernel.writes]
        products = {i for i in plan.steps if isinstance(i, int) and _product(plan, i)}
        ends = products & set(tape.outputs.values())
        self.fresh = {i for i in ends if plan.after[i]}  # in memory of their own, not copied
        self.placed += sorted(products - self.fresh)
        self.steps: list[Callable[[Values, Space, int], None]] = []
        made, number = set(self.placed), 0
        needed = set(tape.outputs.values()) | self.read
        needed |= {o for i in plan.steps if isinstance(i, int) for o in _factors(plan, i)}
        for step in plan.steps:
            if isinstance(step, int) and step not in needed:
                continue  # a column that a product takes as the vector that it was
            if isinstance(step, Kernel):
                self.steps.append(self._kernel(number, step, made))
                number += 1
            else:
                self.steps.append(self._alone(step, made))
        widest = max((plan.sizes[i] for i in self.placed if not plan.after[i]), default=1)
        self.block = max(_FEWEST, _BLOCK // (widest * self.dtype.itemsize))
        self.spaces: dict[int, list[Space]] = {}

    # --- steps -----------------------------------------------------------------------------------

    def _kernel(self, number: int, kernel: Kernel, made: set[int]) -> Any:
        """A call of machine code; arrays that are not in their own places are looked for."""
        function = _callable(self.library.address(f"kernel{number}"))
        found = [(k, i) for k, i in enumerate(kernel.reads) if i not in made]

        def step(values: Values, space: Space, samples: int) -> None:
            if found:
                table = space.tables[number]
                for place, index in found:
                    table[place] = values[index].__array_interface__["data"][0]
            function(space.places[number], 0, samples)

        return step

    def _alone(self, index: int, made: set[int]) -> Any:
        """A product into its own place, or whatever numpy's functions give."""
        plan, operands, shape = self.plan, self.plan.operands(index), self.tape.shapes[index]
        product = _product(plan, index)
        if product is None:
            function, dtype = arrays.function(plan.name(index)), self.dtype
            contiguous = index in self.read

            def step(values: Values, space: Space, samples: int) -> None:
                value = function(*[values[o] for o in operands])
                values[index] = np.asarray(value, dtype, order="C") if contiguous else value

            return step
        one, other = _factors(plan, index)
        matmul, empty, dtype = np.matmul, np.empty, self.dtype  # dot fills with zeros at first

        def multiply(values: Values, space: Space, samples: int) -> None:
            left, right = product(values[one], values[other])
            out = values[index]
            values[index] = matmul(left, right, empty(shape, dtype) if out is None else out)

        return multiply

    # --- runs ------------------------------------------------------------------------------------

    def __call__(self, columns: Given, scalars: Given, samples: int) -> dict[str, Array]:
        """For each output a value for every sample, or the sum."""
        return self.place(columns, scalars, samples, {})

    def place(self, columns: Given, scalars: Given, samples: int, into: Given) -> dict[str, Array]:
        """See :class:`cgprimer.native.contract.Placing`."""
        tape, dtype = self.tape, self.dtype
        start = self.start.copy()
        with np.errstate(all="ignore"):
            for i, name in self.scalars:
                if name in scalars:
                    start[i] = np.asarray(scalars[name], dtype)
            for i, function, operands in self.once:
                start[i] = function(*[start[o] for o in operands])
            for i in self.fixed:
                start[i] = np.asarray(start[i], dtype, order="C")
            for i, name in self.columns:
                column = np.asarray(columns[name], dtype, order="C")
                alone = column.ndim == len(tape.leaves[i].shape)  # one sample, without an axis
                start[i] = column[None] if alone else column
        outputs: dict[str, Array] = {}
        if not self.sums:
            for name, i in tape.outputs.items():
                whole = (samples, *tape.shapes[i])
                outputs[name] = np.empty(whole, dtype)
                if not self.plan.varies[i]:
                    outputs[name][...] = start[i]
        elif samples == 0:
            for array in into.values():
                array[...] = 0.0
            return {n: np.zeros(tape.shapes[i]) for n, i in tape.outputs.items()}
        places = {tape.outputs[n]: array for n, array in into.items()}
        places = {i: array for i, array in places.items() if i in self.fresh}
        parts = 1
        if self.divisible and samples * self.operations >= 2 * _WORTH:
            worth = min(samples * self.operations // _WORTH, samples // _FEWEST)
            parts = max(1, min(threads.count(), worth))
        pieces = list(pairwise(samples * part // parts for part in range(parts + 1)))
        if parts == 1:
            totals = [self._range(start, 0, samples, outputs, places)]
        else:
            with blas.one_thread():
                more = [_pool().submit(self._range, start, *p, outputs, {}) for p in pieces[1:]]
                totals = [
                    self._range(start, *pieces[0], outputs, places),
                    *[f.result() for f in more],
                ]
        for i, value in totals[0].items():
            for part in totals[1:]:
                value += part[i]  # noqa: PLW2901
        for name, i in tape.outputs.items():
            if self.sums:
                varies = self.plan.varies[i]
                outputs[name] = totals[0][i] if varies else start[i] * float(samples)
                if name in into and into[name] is not outputs[name]:
                    into[name][...] = outputs[name]
        return outputs

    def _range(
        self, start: Values, begin: int, end: int, outputs: dict[str, Array], places: dict[int, Any]
    ) -> dict[int, Array]:
        """A range of samples: writes a value for each, or returns the sums."""
        count = max(1, -(-(end - begin) // self.block))
        totals: dict[int, Array] = {}
        with np.errstate(all="ignore"):
            for block in range(count):
                first, last = (begin + (end - begin) * k // count for k in (block, block + 1))
                space = self._space(last - first)
                values = start.copy()
                for i, array in (*space.values.items(), *(() if block else places.items())):
                    values[i] = array
                for i, _ in self.columns:
                    values[i] = start[i][first:last]
                space.sums[...] = 0.0
                for step in self.steps:
                    step(values, space, last - first)
                for name, i in self.varying.items():
                    if not self.sums:
                        outputs[name][first:last] = values[i]
                    elif block == 0:
                        totals[i] = values[i] if i in self.fresh else np.array(values[i])
                for i in totals if block else ():
                    totals[i] += values[i]
                self.spaces.setdefault(last - first, []).append(space)
        return totals

    def _space(self, samples: int) -> Space:
        """Memory for a block, that of an earlier one if nobody uses it."""
        known = self.spaces.get(samples)
        if known is None and len(self.spaces) >= _SPACES:
            self.spaces.clear()
        try:
            return known.pop() if known else Space(self, samples)
        except IndexError:  # another thread was faster
            return Space(self, samples)


def _product(plan: ArrayPlan, index: int) -> Callable[[Array, Array], tuple[Array, Array]] | None:
    """How an instruction is one product of two matrices; None where it is not."""
    name, shapes = plan.name(index), plan.tape.shapes
    kind = getattr(name, "kind", "")
    if kind not in ("matmul", "batch_matmul") or not prod(shapes[index]):
        return None
    one, other = plan.operands(index)
    varies = plan.varies[one], plan.varies[other]
    ranks = len(shapes[one]), len(shapes[other])
    if kind == "matmul" and ranks == (2, 1) and varies == (False, True):
        return lambda a, b: (b, a.T)
    if kind == "matmul" and ranks == (1, 2) and varies == (True, False):
        return lambda a, b: (a, b)
    if kind == "batch_matmul" and ranks == (2, 2) and shapes[one][1] == 1:
        if _factors(plan, index) != (one, other):
            return lambda a, b: (a.T, b)
        return lambda a, b: (a[..., 0].T, b[:, 0])  # a column times a row, of each sample
    return None


def _factors(plan: ArrayPlan, index: int) -> tuple[int, ...]:
    """The operands of a step; of a column times a row the two vectors that were reshaped."""
    found, shapes = plan.operands(index), plan.tape.shapes
    if getattr(plan.name(index), "kind", "") != "batch_matmul" or shapes[found[0]][1:] != (1,):
        return found
    made = (i for i in found if i >= plan.first and getattr(plan.name(i), "kind", "") == "reshape")
    vectors = tuple(o for i in made for o in plan.operands(i) if len(shapes[o]) == 1)
    return vectors if len(vectors) == 2 else found


@cache
def _callable(function: int) -> Callable[[int, int, int], None]:
    return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(function)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, threads.count() - 1), thread_name_prefix="cgprimer")


if hasattr(os, "register_at_fork"):  # a child process has none of its parent's threads
    os.register_at_fork(after_in_child=_pool.cache_clear)
