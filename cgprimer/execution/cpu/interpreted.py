"""Running a plan on the interpreter: any tape, from one operation to a million."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np

from cgprimer.cache import kept, key_of, package_state
from cgprimer.collector import collector_paused
from cgprimer.execution.contract import Array, Reduction
from cgprimer.execution.cpu import threads
from cgprimer.execution.cpu.code import Code, encoded
from cgprimer.execution.cpu.fused import addresses, padded
from cgprimer.execution.cpu.handlers import CONTEXT, module_text, tile_width
from cgprimer.execution.cpu.library import Library, processor
from cgprimer.execution.given import as_columns, as_scalars
from cgprimer.primitives import primitive
from cgprimer.tapes.identity import identity, shareable
from cgprimer.tapes.planning import plan
from cgprimer.tapes.tape import Tape

_POINTER, _INT = ctypes.c_void_p, ctypes.c_int64
_RUN = ctypes.CFUNCTYPE(None, *[_POINTER] * 4, *[_INT] * 3)
_CALLBACK = ctypes.CFUNCTYPE(None, _INT, _INT, *[_POINTER] * 4)
_ALIGNMENT = 64
_WORTH_KEEPING = 1000  # instructions; smaller tapes are encoded faster than a file is found


class Machine:
    """The handlers for one type of numbers, loaded."""

    def __init__(self, dtype: str) -> None:
        chosen = processor()
        self.lanes = chosen.lanes(dtype)
        self.tile = tile_width(chosen.registers)
        text = partial(module_text, dtype=dtype, lanes=self.lanes, registers=chosen.registers)
        key = f"{dtype} {self.lanes} {chosen.registers}"
        self.library = Library("interpreter", key, text)
        self.run = _RUN(self.library.address("run"))
        self.table = self.library.address_of_data("table")
        self.masked = self.library.address_of_data("table_masked")


machine = cache(Machine)


class Interpreted:
    """A tape as code for the interpreter.

    Args:
        tape: what to run.
        reduction: ``none`` or ``sum``.
        dtype: ``float64`` or ``float32``.
    """

    def __init__(self, tape: Tape, *, reduction: Reduction, dtype: str) -> None:
        self.dtype = np.dtype(dtype)
        self.outputs = tuple(tape.outputs)
        self.machine = machine(dtype)
        self.operations = max(1, len(tape))
        with collector_paused():
            self.code = self._kept_code(tape, reduction)
        self.sums = reduction == "sum"
        self.failures: list[BaseException] = []
        self.callback = _callback(self.code.functions, self.dtype, self.failures)

    def _kept_code(self, tape: Tape, reduction: Reduction) -> Code:
        def made() -> Code:
            return encoded(
                plan(tape, sums=reduction == "sum"),
                itemsize=self.dtype.itemsize,
                lanes=self.machine.lanes,
                tile=self.machine.tile,
            )

        if len(tape) < _WORTH_KEEPING or not shareable(tape):
            return made()
        layout = f"{reduction} {self.dtype} {self.machine.lanes} {self.machine.tile}"
        key = key_of(package_state(), identity(tape), layout)
        return Code.from_bytes(kept("code", key, lambda: made().to_bytes()))

    def __call__(
        self, columns: Mapping[str, Array], scalars: Mapping[str, Any], samples: int
    ) -> dict[str, Array]:
        """Run the tape; see :class:`cgprimer.execution.contract.Executable`."""
        code, lanes = self.code, self.code.unit // self.dtype.itemsize
        given = as_columns(columns, code.columns, self.dtype, samples)
        table = self._table(scalars)
        weights = table[code.weights]
        whole = samples - samples % lanes
        pieces = threads.parts(whole, lanes, self.operations)
        totals = np.zeros((len(pieces) + 1, max(1, code.sums), self.machine.lanes))
        results = [np.empty(samples, self.dtype) for _ in code.results]
        threads.run(
            [
                partial(self._run, given, results, total, table, weights, *piece)
                for total, piece in zip(totals, pieces, strict=False)
            ]
        )
        if whole < samples:
            last = [padded(column[whole:], lanes) for column in given]
            ends = [np.empty(lanes, self.dtype) for _ in results]
            mask = (np.arange(lanes) < samples - whole).astype(self.dtype)
            self._run(last, ends, totals[-1], table, weights, 0, lanes, mask)
            for result, end in zip(results, ends, strict=True):
                result[whole:] = end[: samples - whole]
        self.check()
        return self._read(totals, results, table, samples)

    def check(self) -> None:
        """Raise what a primitive in Python raised meanwhile."""
        if self.failures:
            failure = self.failures[0]
            self.failures.clear()
            raise failure

    @property
    def callback_address(self) -> int:
        """Where compiled code calls Python; 0 if it never does."""
        return (ctypes.cast(self.callback, _POINTER).value or 0) if self.callback else 0

    def _read(
        self, totals: Array, results: list[Array], table: Array, samples: int
    ) -> dict[str, Array]:
        code = self.code
        found: dict[str, Any] = dict(zip(code.results, results, strict=True))
        with np.errstate(all="ignore"):
            if code.summed:
                sums = totals.sum(axis=(0, 2))[code.places]
                found.update({name: sums[number] for name, number in code.summed.items()})
            for name, place in code.fixed.items():
                value = table[place]
                found[name] = (
                    np.float64(value) * samples
                    if self.sums
                    else np.full(samples, value, self.dtype)
                )
        return {name: found[name] for name in self.outputs}

    def _table(self, scalars: Mapping[str, Any]) -> Array:
        """The uniform table: given numbers, constants, and what is computed from them."""
        code = self.code
        table = np.empty(code.table, self.dtype)
        first = len(code.scalars)
        table[:first] = as_scalars(scalars, code.scalars, self.dtype)
        computed = code.table - len(code.computed)
        table[first:computed] = code.constants
        if len(code.computed):
            rows = aligned((len(code.given) + len(code.computed)) * code.unit)
            numbers = rows.view(self.dtype).reshape(-1, code.unit // self.dtype.itemsize)
            numbers[: len(code.given)] = table[code.given, None]
            shared = [table] * len(CONTEXT[:-2])  # nothing of the context is read but the side
            shared[CONTEXT.index("side")] = code.side
            self._start(code.uniform, rows, shared, 0, code.unit, code.unit)
            table[computed:] = numbers[code.computed, 0]
        return table

    def _run(
        self,
        columns: list[Array],
        results: list[Array],
        total: Array,
        table: Array,
        weights: Array,
        begin: int,
        end: int,
        mask: Array | None = None,
    ) -> None:
        """A range of samples, in one thread."""
        code, size = self.code, self.dtype.itemsize
        rows = aligned(code.buffer)
        shared = [
            addresses(columns), addresses(results), total, table, weights, code.side,
            total if mask is None else mask,
        ]  # fmt: skip
        if len(code.preamble) > 2:
            self._start(code.preamble, rows, shared, 0, code.stride, code.stride)
        self._start(
            code.main, rows, shared, begin * size, end * size, code.stride, masked=mask is not None
        )

    def _start(
        self,
        operations: Array,
        rows: Array,
        shared: list[Array],
        begin: int,
        end: int,
        block: int,
        *,
        masked: bool = False,
    ) -> None:
        """Enter the interpreter; ``shared`` is the context as :data:`handlers.CONTEXT` has it."""
        places = [array.ctypes.data for array in shared]
        context = np.array([*places, 0, self.callback_address], np.int64)
        machine = self.machine
        machine.run(
            operations.ctypes.data, rows.ctypes.data, machine.masked if masked else machine.table,
            context.ctypes.data, begin, end, block,
        )  # fmt: skip


def aligned(size: int) -> Array:
    """Bytes that begin where a vector register likes them to."""
    space = np.empty(size + _ALIGNMENT, np.uint8)
    begin = -space.ctypes.data % _ALIGNMENT
    return space[begin : begin + size]


def _callback(names: tuple[str, ...], dtype: Any, failures: list[BaseException]) -> Any:
    """A function that compiled code calls for primitives that only Python knows.

    What the primitive raises cannot pass through compiled code: it is put into ``failures``.
    """
    if not names:
        return None
    functions: list[Callable[..., Array]] = [primitive(name).numpy for name in names]
    arities = [primitive(name).arity for name in names]
    real = ctypes.c_double if dtype.itemsize == 8 else ctypes.c_float

    def call(number: int, count: int, result: int, *operands: int) -> None:
        arrays = [
            np.ctypeslib.as_array(ctypes.cast(place, ctypes.POINTER(real)), (count,))
            for place in (result, *operands[: arities[number]])
        ]
        given = [array.copy() for array in arrays[1:]]  # the function may keep or change them
        try:
            with np.errstate(all="ignore"):
                arrays[0][...] = functions[number](*given)
        except BaseException as error:
            failures.append(error)

    return _CALLBACK(call)
