"""Execution of a tape on the GPU: samples in chunks that fit, results in order."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np

from cgprimer.backends.call_arguments import (
    UniformEvaluator,
    convert_columns,
    copy_shared_outputs,
    sum_uniform_value,
)
from cgprimer.backends.cuda.device import (
    MEMORY_VARIABLE,
    LaunchSettings,
    compile_kernel,
    is_out_of_memory,
    max_blocks,
    memory_limit,
    numba_cuda,
    silence_warnings,
)
from cgprimer.backends.cuda.device_columns import SampleChunk, iter_chunks, share_buffer
from cgprimer.backends.cuda.generated_functions import compile_functions
from cgprimer.backends.cuda.kernel_source import encode_for_device, reduction_source
from cgprimer.backends.interfaces import Array
from cgprimer.backends.plans.planning import build_plan
from cgprimer.core.evaluation.engines import Reduction
from cgprimer.core.methods.derivative_program import Inputs
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import EngineError


def kernel_signature(dtype: str, *, sums: bool, straight_line: bool) -> tuple[Any, ...]:
    """Return the argument types of a kernel."""
    from numba import types

    real, int32_array = getattr(types, dtype)[::1], types.int32[::1]
    out = types.float64[::1] if sums else real
    arguments = (real, types.int64[::1], real, types.int64, out)
    return arguments if straight_line else (*arguments, types.int32[:, ::1], int32_array, real)


def reduction_signature() -> tuple[Any, ...]:
    """Return the argument types of the second stage of a reduction."""
    from numba import types

    doubles, integer = types.float64[::1], types.int64
    return (doubles, integer, integer, integer, doubles)


class CudaExecutable:
    """A tape compiled for CUDA; see :class:`cgprimer.core.methods.derivative_program.Execute`.

    Raises:
        EngineError: a primitive is not implemented on the GPU.
    """

    def __init__(
        self, tape: Tape, *, reduction: Reduction, dtype: str, settings: LaunchSettings
    ) -> None:
        if dtype not in ("float64", "float32"):
            raise EngineError(f"the engine 'cuda' supports float64 and float32, got {dtype}")
        self.sums = reduction == "sum"
        self.dtype = np.dtype(dtype)
        self.settings = settings
        self.output_names = tuple(tape.outputs)
        plan = build_plan(tape, sums=self.sums)
        self.code = code = encode_for_device(plan, settings.straight_line)
        self.uniform = UniformEvaluator(plan.tape, plan.uniform, plan.size, dtype)
        self.fixed_outputs = {n: v for n, v in plan.outputs.items() if n not in code.outputs}
        self.count = code.program.sums if self.sums else len(code.program.stored)
        self.lock = Lock()  # device buffers are reused between calls
        self.buffers: dict[str, Any] = {}
        if code.outputs:
            types = kernel_signature(dtype, sums=self.sums, straight_line=code.straight_line)
            self.kernel = compile_kernel(compile_functions(code.text(), dtype)["kernel"], types)
            if not code.straight_line:
                self.interpreted_code = [
                    numba_cuda().to_device(part) for part in (code.code, code.table)
                ]
            if self.sums:
                reduction = compile_functions(reduction_source(settings.threads), "float64")[
                    "reduce"
                ]
                self.reduce = compile_kernel(reduction, reduction_signature())

    def __call__(self, columns: Inputs, scalars: Inputs, samples: int) -> dict[str, Array]:
        """Run the tape on host arrays or on columns returned by ``resident``."""
        with self.lock:
            values = self.uniform(scalars)
            try:
                varying_results = (
                    list(self._run_varying(columns, values, samples)) if self.code.outputs else []
                )
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                raise EngineError(
                    "out of GPU memory",
                    hint=f"set {MEMORY_VARIABLE} to limit the bytes that a call may use",
                ) from error
        fixed: list[Any]
        if self.sums:
            fixed = [
                np.float64(sum_uniform_value(values[v], samples))
                for v in self.fixed_outputs.values()
            ]
        else:
            fixed = [np.full(samples, values[v], self.dtype) for v in self.fixed_outputs.values()]
        number = {
            **self.code.outputs,
            **{n: len(varying_results) + k for k, n in enumerate(self.fixed_outputs)},
        }
        return copy_shared_outputs(
            [*varying_results, *fixed], {name: number[name] for name in self.output_names}
        )

    def _run_varying(self, columns: Inputs, values: list[Any], samples: int) -> Array:
        """Return sums, shape (results,) in float64, or values, shape (results, samples)."""
        names, size = self.code.columns, self.dtype.itemsize
        arrays: Sequence[Any] = [columns.get(name) for name in names]
        on_device = share_buffer(arrays, self.dtype) and len(arrays[0]) == samples
        if not on_device:
            arrays = convert_columns(columns, names, self.dtype, samples)
        reserved = sum(len(buffer) * buffer.dtype.itemsize for buffer in self.buffers.values())
        limit = memory_limit(self.settings, reserved)
        # A sample needs memory for its columns, unless they are on the device, and for its results.
        bytes_per_sample = size * (
            (0 if on_device else len(names)) + (0 if self.sums else self.count)
        )
        max_samples = max(1, min(samples, limit // max(1, bytes_per_sample)))
        results = np.zeros(self.count) if self.sums else np.empty((self.count, samples), self.dtype)
        with silence_warnings(), np.errstate(all="ignore"):
            uniforms = numba_cuda().to_device(self.code.uniforms(values, self.dtype))
            for piece in iter_chunks(arrays, samples, max_samples, self.dtype):
                result = self._launch(piece, uniforms, limit)
                if self.sums:
                    results += result
                else:
                    results[:, piece.start : piece.stop] = result.reshape(self.count, -1)
        return results

    def _launch(self, piece: SampleChunk, uniforms: Any, limit: int) -> Array:
        """Return the sums of a chunk, shape (results,), or its values, shape (results *
        samples,)."""
        samples, threads, code = piece.stop - piece.start, self.settings.threads, self.code
        rows = 0 if code.straight_line else code.program.rows * threads
        partial_sums = code.thread_sums * threads + code.program.sums - code.thread_sums
        fitting_blocks = limit // (8 * partial_sums + self.dtype.itemsize * rows + 1)
        blocks = max(1, min(-(-samples // threads), max_blocks(self.settings), fitting_blocks))
        if self.sums:
            out = self._reusable_buffer("partial", blocks * partial_sums, np.float64)
        else:
            out = self._reusable_buffer("values", self.count * samples, self.dtype)
        arguments = [piece.data, numba_cuda().to_device(np.array(piece.offsets)), uniforms]
        arguments += [samples, out]
        if not code.straight_line:
            arguments += [
                *self.interpreted_code,
                self._reusable_buffer("rows", blocks * rows, self.dtype),
            ]
        self.kernel[blocks, threads](*arguments)
        if self.sums:
            total = self._reusable_buffer("sums", self.count, np.float64)
            self.reduce[self.count, threads](out, code.thread_sums, blocks, threads, total)
            out = total
        result: Array = out.copy_to_host()
        return result

    def _reusable_buffer(self, use: str, size: int, dtype: Any) -> Any:
        """Return device memory that is reused in later calls."""
        if use not in self.buffers or len(self.buffers[use]) != size:
            self.buffers.pop(use, None)
            self.buffers[use] = numba_cuda().device_array(size, dtype)
        return self.buffers[use]
