"""Execution of interpreter code, for tapes of any length."""

from __future__ import annotations

import ctypes
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
from cgprimer.core.operations import find_primitive, numpy_arithmetic
from cgprimer.core.tape.tape import Tape
from cgprimer.support.disk_cache import compute_cache_key, fingerprint_package, load_or_compute
from cgprimer.support.garbage_collection import pause_garbage_collection

_POINTER, _INT = ctypes.c_void_p, ctypes.c_int64
_CALLBACK = ctypes.CFUNCTYPE(None, _INT, _INT, *[_POINTER] * 5)
_ALIGNMENT = 64
_FAILED = CONTEXT_FIELDS.index("failed")
_MIN_CACHED_INSTRUCTIONS = 1000  # encoding smaller tapes is faster than a cache lookup


class LoadedInterpreter:
    """The compiled and loaded code of the interpreter for one dtype."""

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
    """A tape that is translated to code for the interpreter.

    Args:
        tape: the tape.
        reduction: ``none``, or ``sum`` over the samples.
        dtype: ``float64`` or ``float32``.
    """

    def __init__(self, tape: Tape, *, reduction: Reduction, dtype: str) -> None:
        self.dtype, self.sums = np.dtype(dtype), reduction == "sum"
        self.outputs, self.operations = tuple(tape.outputs), max(1, len(tape))
        self.interpreter = load_interpreter(dtype)
        self.function, self.lanes = self.interpreter.run, self.interpreter.lanes
        with pause_garbage_collection():
            self.code = code = self._load_or_assemble_code(tape, reduction)
        self.columns, self.scalars, self.constants = code.columns, code.scalars, code.constants
        self.result_count, self.table_size = code.result_count, code.table_size
        self.output_slots, self.uniform_slots = code.output_slots, code.uniform_slots
        self.factors = np.ones(len(code.output_slots))
        self.unit = code.unit // self.dtype.itemsize
        self.failures: list[BaseException] = []
        self.contexts: list[Array] = []  # of the current call; each flags failed functions
        self.callback = _create_callback(code.functions, self.dtype, self.failures)
        if code.functions:  # failures are reported through one list: calls must not overlap
            self.lock = Lock()

    def _load_or_assemble_code(self, tape: Tape, reduction: Reduction) -> InterpreterCode:
        """Return the interpreter code of a tape, from the disk cache if possible."""

        def assemble_code() -> InterpreterCode:
            """Plan the tape and translate the plan to interpreter code."""
            plan, size = build_plan(tape, sums=reduction == "sum"), self.dtype.itemsize
            return assemble(plan, itemsize=size, lanes=self.lanes, tile=self.interpreter.tile)

        if len(tape) < _MIN_CACHED_INSTRUCTIONS or not is_cacheable(tape):
            return assemble_code()
        layout = f"{reduction} {self.dtype} {self.lanes} {self.interpreter.tile}"
        key = compute_cache_key(fingerprint_package(), fingerprint_tape(tape), layout)
        data = load_or_compute("code", key, lambda: assemble_code().to_bytes())
        return InterpreterCode.from_bytes(data)

    def build_uniform_table(self, values: Array) -> Array:
        """Build the table of sample-independent values, and discard previous failures."""
        self.failures.clear()  # may remain after an interrupted call
        self.contexts.clear()
        return super().build_uniform_table(values)

    def prepare_calls(
        self, columns: Array, results: Array, table: Array, begin: int, end: int
    ) -> tuple[list[Call], Any]:
        """Prepare the calls that compute uniform values, fill constant rows, process samples."""
        code = self.code
        row_length = code.stride // self.dtype.itemsize
        rows = allocate_aligned(code.buffer)
        callback = (ctypes.cast(self.callback, _POINTER).value or 0) if self.callback else 0
        fields = {
            "columns": columns.ctypes.data, "results": results.ctypes.data,
            "stride": results.strides[0], "uniform": table.ctypes.data,
            "side": code.side.ctypes.data, "callback": callback,
        }  # fmt: skip
        context = np.array([fields.get(name, 0) for name in CONTEXT_FIELDS], np.int64)
        if self.callback:
            self.contexts.append(context)
        shared = rows.ctypes.data, context.ctypes.data
        return [
            (code.uniform.ctypes.data, *shared, 0, self.unit, code.unit),
            (code.preamble.ctypes.data, *shared, 0, row_length, code.stride),
            (code.main.ctypes.data, *shared, begin, end, code.stride),
        ], (rows, context)

    def raise_failure(self) -> None:
        """Raise the exception of a Python primitive that failed, or KeyboardInterrupt."""
        failures, contexts = self.failures[:], self.contexts[:]
        self.failures.clear()
        self.contexts.clear()
        if failures:
            raise failures[0]
        if any(context[_FAILED] for context in contexts):
            raise KeyboardInterrupt


def allocate_aligned(size: int) -> Array:
    """Allocate bytes whose address is a multiple of 64, for vector registers and cache lines."""
    space = np.empty(size + _ALIGNMENT, np.uint8)
    begin = -space.ctypes.data % _ALIGNMENT
    return space[begin : begin + size]


def _create_callback(names: tuple[str, ...], dtype: Any, failures: list[BaseException]) -> Any:
    """Create the C function through which compiled code calls Python primitives.

    Exceptions cannot propagate through compiled code: they are appended to ``failures``.
    """
    if not names:
        return None
    functions = [numpy_arithmetic.numpy_function(name) for name in names]
    arities = [find_primitive(name).arity for name in names]
    scalar_type = ctypes.c_double if dtype.itemsize == 8 else ctypes.c_float

    def call_primitive(number: int, count: int, reply: int, result: int, *operands: int) -> None:
        """Call a Python primitive on arrays that are given by their addresses."""
        try:
            result_array, *operand_arrays = (
                np.ctypeslib.as_array(ctypes.cast(place, ctypes.POINTER(scalar_type)), (count,))
                for place in (result, *operands[: arities[number]])
            )
            with np.errstate(all="ignore"):
                result_array[...] = call_custom_primitive(
                    names[number], functions[number], operand_arrays, (count,)
                )
        except BaseException as error:
            failures.append(error)
        ctypes.c_int64.from_address(reply).value = 1

    return _CALLBACK(call_primitive)
