"""Execution of a plan by the interpreter, for tapes of any length."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from cgprimer.backends.call_arguments import call_custom_primitive
from cgprimer.backends.cpu.cpu_executable import Call, CpuExecutable
from cgprimer.backends.cpu.handler_emitter import CONTEXT_FIELDS
from cgprimer.backends.cpu.interpreter_code import InterpreterCode, assemble
from cgprimer.backends.cpu.interpreter_handlers import HandlerModule, choose_tile_columns
from cgprimer.backends.cpu.llvm_library import CompiledLibrary, get_target_processor
from cgprimer.backends.interfaces import Array
from cgprimer.backends.plans.planning import build_plan
from cgprimer.backends.program_cache import fingerprint_tape, is_cacheable
from cgprimer.core.evaluation.engines import Reduction
from cgprimer.core.operations import find_primitive
from cgprimer.core.operations import numpy_arithmetic as arrays
from cgprimer.core.tape.tape import Tape
from cgprimer.support.disk_cache import compute_cache_key, fingerprint_package, load_or_compute
from cgprimer.support.garbage_collection import pause_garbage_collection

_POINTER, _INT = ctypes.c_void_p, ctypes.c_int64
_CALLBACK = ctypes.CFUNCTYPE(None, _INT, _INT, *[_POINTER] * 5)
_ALIGNMENT = 64
_FAILED = CONTEXT_FIELDS.index("failed")
_WORTH_KEEPING = 1000  # instructions; encoding smaller tapes is faster than a cache lookup


class LoadedInterpreter:
    """The loaded handlers of the interpreter for one type of numbers."""

    def __init__(self, dtype: str) -> None:
        processor = get_target_processor()
        self.lanes = processor.count_lanes(dtype)
        self.tile = choose_tile_columns(processor.registers)
        parameters = dtype, self.lanes, processor.registers
        key = " ".join(map(str, parameters))
        self.library = CompiledLibrary(
            "interpreter", key, lambda: str(HandlerModule(*parameters).module)
        )
        self.run = self.library.get_address("run")


load_interpreter = cache(LoadedInterpreter)


class InterpretedExecutable(CpuExecutable):
    """A tape as interpreter code; the arguments are those of an engine's ``compile``."""

    def __init__(self, tape: Tape, *, reduction: Reduction, dtype: str) -> None:
        self.dtype, self.sums = np.dtype(dtype), reduction == "sum"
        self.outputs, self.operations = tuple(tape.outputs), max(1, len(tape))
        self.machine = load_interpreter(dtype)
        self.function, self.lanes = self.machine.run, self.machine.lanes
        with pause_garbage_collection():
            self.code = code = self._cached_code(tape, reduction)
        self.columns, self.scalars, self.count = code.columns, code.scalars, code.count
        self.size, self.constants, self.fixed = code.table, code.constants, code.fixed
        self.reads, self.factors = code.reads, np.ones(len(code.reads))
        self.unit = code.unit // self.dtype.itemsize
        self.failures: list[BaseException] = []
        self.contexts: list[
            Array
        ] = []  # contexts of the current call, with a flag for failed functions
        self.callback = _callback(code.functions, self.dtype, self.failures)
        if code.functions:  # failures are reported through one list: calls must not overlap
            self.lock = Lock()

    def _cached_code(self, tape: Tape, reduction: Reduction) -> InterpreterCode:
        def build() -> InterpreterCode:
            plan, size = build_plan(tape, sums=reduction == "sum"), self.dtype.itemsize
            return assemble(plan, itemsize=size, lanes=self.lanes, tile=self.machine.tile)

        if len(tape) < _WORTH_KEEPING or not is_cacheable(tape):
            return build()
        layout = f"{reduction} {self.dtype} {self.lanes} {self.machine.tile}"
        key = compute_cache_key(fingerprint_package(), fingerprint_tape(tape), layout)
        return InterpreterCode.from_bytes(load_or_compute("code", key, lambda: build().to_bytes()))

    def table(self, values: Array) -> Array:
        """Return the table of uniform values; computed values and weights follow the constants."""
        self.failures.clear()  # may remain after an interrupted call
        self.contexts.clear()
        return super().table(values)

    def prepare_calls(
        self, columns: Array, written: Array, table: Array, begin: int, end: int
    ) -> tuple[list[Call], Any]:
        """Return the calls for uniform values, for filled rows, and for the samples."""
        code = self.code
        stride = code.stride // self.dtype.itemsize
        rows = aligned(code.buffer)
        callback = (ctypes.cast(self.callback, _POINTER).value or 0) if self.callback else 0
        fields = {
            "columns": columns.ctypes.data, "results": written.ctypes.data,
            "stride": written.strides[0], "uniform": table.ctypes.data,
            "side": code.side.ctypes.data, "callback": callback,
        }  # fmt: skip
        context = np.array([fields.get(name, 0) for name in CONTEXT_FIELDS], np.int64)
        if self.callback:
            self.contexts.append(context)
        shared = rows.ctypes.data, context.ctypes.data
        return [
            (code.uniform.ctypes.data, *shared, 0, self.unit, code.unit),
            (code.preamble.ctypes.data, *shared, 0, stride, code.stride),
            (code.main.ctypes.data, *shared, begin, end, code.stride),
        ], (rows, context)

    def check(self) -> None:
        """Raise the exception of a Python primitive, or KeyboardInterrupt, from during the call."""
        failures, contexts = self.failures[:], self.contexts[:]
        self.failures.clear()
        self.contexts.clear()
        if failures:
            raise failures[0]
        if any(context[_FAILED] for context in contexts):
            raise KeyboardInterrupt


def aligned(size: int) -> Array:
    """Return bytes that are aligned for vector registers."""
    space = np.empty(size + _ALIGNMENT, np.uint8)
    begin = -space.ctypes.data % _ALIGNMENT
    return space[begin : begin + size]


def _callback(names: tuple[str, ...], dtype: Any, failures: list[BaseException]) -> Any:
    """Return a C function through which compiled code calls Python primitives.

    Exceptions cannot propagate through compiled code: they are appended to ``failures``.
    """
    if not names:
        return None
    functions: list[Callable[..., Array]] = [arrays.numpy_function(name) for name in names]
    arities = [find_primitive(name).arity for name in names]
    real = ctypes.c_double if dtype.itemsize == 8 else ctypes.c_float

    def call(number: int, count: int, reply: int, result: int, *operands: int) -> None:
        try:
            arrays = [
                np.ctypeslib.as_array(ctypes.cast(place, ctypes.POINTER(real)), (count,))
                for place in (result, *operands[: arities[number]])
            ]
            with np.errstate(all="ignore"):
                arrays[0][...] = call_custom_primitive(
                    names[number], functions[number], arrays[1:], (count,)
                )
        except BaseException as error:
            failures.append(error)
        ctypes.c_int64.from_address(reply).value = 1

    return _CALLBACK(call)
