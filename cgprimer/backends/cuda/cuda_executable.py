"""Execution of a tape on the GPU, in chunks of samples that fit in its memory."""

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
    compute_max_blocks,
    compute_memory_limit,
    import_numba_cuda,
    is_out_of_memory,
    silence_warnings,
)
from cgprimer.backends.cuda.device_columns import SampleChunk, are_on_device, iterate_chunks
from cgprimer.backends.cuda.generated_functions import compile_functions
from cgprimer.backends.cuda.kernel_source import encode_for_device, generate_reduction_kernel
from cgprimer.backends.interfaces import Array
from cgprimer.backends.plans.planning import build_plan
from cgprimer.core.evaluation.engines import Reduction
from cgprimer.core.methods.derivative_program import Inputs
from cgprimer.core.tape.tape import Tape
from cgprimer.errors import EngineError


def build_kernel_signature(dtype: str, *, sums: bool, straight_line: bool) -> tuple[Any, ...]:
    """Return the numba argument types of the kernel that runs a tape."""
    from numba import types

    real, int32_array = getattr(types, dtype)[::1], types.int32[::1]
    out = types.float64[::1] if sums else real
    arguments = (real, types.int64[::1], real, types.int64, out)
    return arguments if straight_line else (*arguments, types.int32[:, ::1], int32_array, real)


def build_reduction_signature() -> tuple[Any, ...]:
    """Return the numba argument types of the kernel that adds partial sums."""
    from numba import types

    doubles, integer = types.float64[::1], types.int64
    return (doubles, integer, integer, integer, doubles)


class CudaExecutable:
    """A tape compiled to CUDA kernels, callable with columns and scalars.

    It implements the protocol :class:`cgprimer.core.methods.derivative_program.Execute`.

    Raises:
        EngineError: a primitive is not implemented on the GPU.
    """

    def __init__(
        self, tape: Tape, *, reduction: Reduction, dtype: str, settings: LaunchSettings
    ) -> None:
        if dtype not in ("float64", "float32"):
            raise EngineError(f"the engine 'cuda' supports only float64 and float32, got {dtype}")
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
            types = build_kernel_signature(dtype, sums=self.sums, straight_line=code.straight_line)
            functions = compile_functions(code.generate_source(), dtype)
            self.kernel = compile_kernel(functions["kernel"], types)
            if not code.straight_line:
                self.interpreted_code = [
                    import_numba_cuda().to_device(part) for part in (code.code, code.table)
                ]
            if self.sums:
                source = generate_reduction_kernel(settings.threads)
                functions = compile_functions(source, "float64")
                self.reduce = compile_kernel(functions["reduce"], build_reduction_signature())

    def __call__(self, columns: Inputs, scalars: Inputs, samples: int) -> dict[str, Array]:
        """Run the tape on host arrays or on columns returned by ``CudaEngine.resident``."""
        with self.lock:
            values = self.uniform(scalars)
            try:
                varying_results = (
                    list(self._run_in_chunks(columns, values, samples)) if self.code.outputs else []
                )
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                raise EngineError(
                    "out of GPU memory",
                    hint=f"set {MEMORY_VARIABLE} to the maximum number of bytes per call",
                ) from error
        fixed: list[Any]
        if self.sums:
            fixed = [
                np.float64(sum_uniform_value(values[v], samples))
                for v in self.fixed_outputs.values()
            ]
        else:
            fixed = [np.full(samples, values[v], self.dtype) for v in self.fixed_outputs.values()]
        slots = {
            **self.code.outputs,
            **{n: len(varying_results) + k for k, n in enumerate(self.fixed_outputs)},
        }
        return copy_shared_outputs(
            [*varying_results, *fixed], {name: slots[name] for name in self.output_names}
        )

    def _run_in_chunks(self, columns: Inputs, values: list[Any], samples: int) -> Array:
        """Run the kernel on all samples, chunk by chunk.

        Returns:
            Sums of shape (results,) in float64, or values of shape (results, samples).
        """
        names, size = self.code.columns, self.dtype.itemsize
        arrays: Sequence[Any] = [columns.get(name) for name in names]
        on_device = are_on_device(arrays, self.dtype) and len(arrays[0]) == samples
        if not on_device:
            arrays = convert_columns(columns, names, self.dtype, samples)
        reserved = sum(len(buffer) * buffer.dtype.itemsize for buffer in self.buffers.values())
        limit = compute_memory_limit(self.settings, reserved)
        # A sample needs memory for its columns, unless they are on the device, and for its results.
        bytes_per_sample = size * (
            (0 if on_device else len(names)) + (0 if self.sums else self.count)
        )
        max_samples = max(1, min(samples, limit // max(1, bytes_per_sample)))
        results = np.zeros(self.count) if self.sums else np.empty((self.count, samples), self.dtype)
        with silence_warnings(), np.errstate(all="ignore"):
            uniforms = import_numba_cuda().to_device(self.code.collect_uniforms(values, self.dtype))
            for chunk in iterate_chunks(arrays, samples, max_samples, self.dtype):
                result = self._launch_kernel(chunk, uniforms, limit)
                if self.sums:
                    results += result
                else:
                    results[:, chunk.start : chunk.stop] = result.reshape(self.count, -1)
        return results

    def _launch_kernel(self, chunk: SampleChunk, uniforms: Any, limit: int) -> Array:
        """Launch the kernel on a chunk of samples and copy its results to the host.

        Returns:
            Sums of shape (results,), or values of shape (results * samples,).
        """
        samples, threads, code = chunk.stop - chunk.start, self.settings.threads, self.code
        rows = 0 if code.straight_line else code.program.rows * threads
        partial_sums = code.thread_sums * threads + code.program.sums - code.thread_sums
        fitting_blocks = limit // (8 * partial_sums + self.dtype.itemsize * rows + 1)
        blocks = max(
            1, min(-(-samples // threads), compute_max_blocks(self.settings), fitting_blocks)
        )
        if self.sums:
            out = self._get_device_buffer("partial", blocks * partial_sums, np.float64)
        else:
            out = self._get_device_buffer("values", self.count * samples, self.dtype)
        arguments = [chunk.data, import_numba_cuda().to_device(np.array(chunk.offsets)), uniforms]
        arguments += [samples, out]
        if not code.straight_line:
            arguments += [
                *self.interpreted_code,
                self._get_device_buffer("rows", blocks * rows, self.dtype),
            ]
        self.kernel[blocks, threads](*arguments)
        if self.sums:
            total = self._get_device_buffer("sums", self.count, np.float64)
            self.reduce[self.count, threads](out, code.thread_sums, blocks, threads, total)
            out = total
        result: Array = out.copy_to_host()
        return result

    def _get_device_buffer(self, name: str, size: int, dtype: Any) -> Any:
        """Return a device array that later calls reuse; allocate it if its size has changed."""
        if name not in self.buffers or len(self.buffers[name]) != size:
            self.buffers.pop(name, None)
            self.buffers[name] = import_numba_cuda().device_array(size, dtype)
        return self.buffers[name]
