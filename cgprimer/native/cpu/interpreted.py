"""Running a plan on the interpreter: any tape, from one operation to a million."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from cgprimer.cache import kept, key_of, package_state
from cgprimer.core.engines import Array, Reduction
from cgprimer.core.primitives import arrays, primitive
from cgprimer.core.tape.tape import Tape
from cgprimer.garbage_collection import collector_paused
from cgprimer.native.arguments import result_of
from cgprimer.native.cpu.code import Code, assembled
from cgprimer.native.cpu.executable import Call, Executable
from cgprimer.native.cpu.handlers import CONTEXT, Handlers, tile_width
from cgprimer.native.cpu.library import Library, processor
from cgprimer.native.plans.making import plan
from cgprimer.native.programs import fingerprint, shareable

_POINTER, _INT = ctypes.c_void_p, ctypes.c_int64
_CALLBACK = ctypes.CFUNCTYPE(None, _INT, _INT, *[_POINTER] * 5)
_ALIGNMENT = 64
_FAILED = CONTEXT.index("failed")
_WORTH_KEEPING = 1000  # instructions; smaller tapes are encoded faster than a file is found


class Machine:
    """The handlers for one type of numbers, loaded."""

    def __init__(self, dtype: str) -> None:
        chosen = processor()
        self.lanes = chosen.lanes(dtype)
        self.tile = tile_width(chosen.registers)
        asked = dtype, self.lanes, chosen.registers
        key = " ".join(map(str, asked))
        self.library = Library("interpreter", key, lambda: str(Handlers(*asked).module))
        self.run = self.library.address("run")


machine = cache(Machine)


class Interpreted(Executable):
    """A tape as code for the interpreter; arguments are those of an engine's ``compile``."""

    def __init__(self, tape: Tape, *, reduction: Reduction, dtype: str) -> None:
        self.dtype, self.sums = np.dtype(dtype), reduction == "sum"
        self.outputs, self.operations = tuple(tape.outputs), max(1, len(tape))
        self.machine = machine(dtype)
        self.function, self.lanes = self.machine.run, self.machine.lanes
        with collector_paused():
            self.code = code = self._kept_code(tape, reduction)
        self.columns, self.scalars, self.count = code.columns, code.scalars, code.count
        self.size, self.constants, self.fixed = code.table, code.constants, code.fixed
        self.reads, self.factors = code.reads, np.ones(len(code.reads))
        self.unit = code.unit // self.dtype.itemsize
        self.failures: list[BaseException] = []
        self.contexts: list[Array] = []  # of this call: each tells whether a function failed
        self.callback = _callback(code.functions, self.dtype, self.failures)
        if code.functions:  # which report their failures through the list: one call at a time
            self.alone = Lock()

    def _kept_code(self, tape: Tape, reduction: Reduction) -> Code:
        def made() -> Code:
            found, size = plan(tape, sums=reduction == "sum"), self.dtype.itemsize
            return assembled(found, itemsize=size, lanes=self.lanes, tile=self.machine.tile)

        if len(tape) < _WORTH_KEEPING or not shareable(tape):
            return made()
        layout = f"{reduction} {self.dtype} {self.lanes} {self.machine.tile}"
        key = key_of(package_state(), fingerprint(tape), layout)
        return Code.from_bytes(kept("code", key, lambda: made().to_bytes()))

    def table(self, values: Array) -> Array:
        """The numbers that no sample changes; what is computed from them follows."""
        self.failures.clear()  # Ctrl-C may have come before an earlier call looked
        self.contexts.clear()
        return super().table(values)

    def calls(
        self, columns: Array, written: Array, table: Array, begin: int, end: int
    ) -> tuple[list[Call], Any]:
        """What is computed once, the rows that are filled beforehand, then the samples."""
        code = self.code
        stride = code.stride // self.dtype.itemsize
        rows = aligned(code.buffer)
        callback = (ctypes.cast(self.callback, _POINTER).value or 0) if self.callback else 0
        fields = {
            "columns": columns.ctypes.data, "results": written.ctypes.data,
            "stride": written.strides[0], "uniform": table.ctypes.data,
            "side": code.side.ctypes.data, "callback": callback,
        }  # fmt: skip
        context = np.array([fields.get(name, 0) for name in CONTEXT], np.int64)
        if self.callback:
            self.contexts.append(context)
        shared = rows.ctypes.data, context.ctypes.data
        return [
            (code.uniform.ctypes.data, *shared, 0, self.unit, code.unit),
            (code.preamble.ctypes.data, *shared, 0, stride, code.stride),
            (code.main.ctypes.data, *shared, begin, end, code.stride),
        ], (rows, context)

    def check(self) -> None:
        """Raise what a primitive in Python raised meanwhile, or Ctrl-C that came in its midst."""
        failures, contexts = self.failures[:], self.contexts[:]
        self.failures.clear()
        self.contexts.clear()
        if failures:
            raise failures[0]
        if any(context[_FAILED] for context in contexts):
            raise KeyboardInterrupt


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
    functions: list[Callable[..., Array]] = [arrays.function(name) for name in names]
    arities = [primitive(name).arity for name in names]
    real = ctypes.c_double if dtype.itemsize == 8 else ctypes.c_float

    def call(number: int, count: int, reply: int, result: int, *operands: int) -> None:
        try:
            arrays = [
                np.ctypeslib.as_array(ctypes.cast(place, ctypes.POINTER(real)), (count,))
                for place in (result, *operands[: arities[number]])
            ]
            with np.errstate(all="ignore"):
                arrays[0][...] = result_of(names[number], functions[number], arrays[1:], (count,))
        except BaseException as error:
            failures.append(error)
        ctypes.c_int64.from_address(reply).value = 1

    return _CALLBACK(call)
