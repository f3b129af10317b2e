"""Access to numba-cuda, the NVIDIA driver, the GPUs and their memory.

Only :func:`import_numba_cuda` imports numba, and only when a tape is compiled.
"""

from __future__ import annotations

import ctypes
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from cgprimer.errors import EngineError

MEMORY_VARIABLE = "CGPRIMER_CUDA_MEMORY"
_MEMORY_FRACTION = 0.8  # of the free memory, for one call
_THREADS_PER_MULTIPROCESSOR = 2048  # resident threads
_SUPPORT_ERRORS = ("CudaSupportError", "NvvmSupportError", "NvvmError", "LinkerError")
_OUT_OF_MEMORY_NAME = "CUDA_ERROR_OUT_OF_MEMORY"
_OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY


@dataclass(frozen=True, slots=True)
class LaunchSettings:
    """Launch configuration of kernels, and limits on memory and code size.

    Attributes:
        threads: threads per block; a power of two.
        block_limit: maximum number of blocks per launch; 0 for as many as the GPU can run at the
            same time.
        memory: maximum GPU memory per call, in bytes; None for most of the free memory.
        straight_line: maximum number of instructions of a tape that is compiled to straight-line
            code.
    """

    threads: int = 256
    block_limit: int = 0
    memory: int | None = None
    straight_line: int = 320


# The simulator runs a Python thread for each CUDA thread.
SIMULATED = LaunchSettings(threads=8, block_limit=3)


def is_simulated() -> bool:
    """Return whether numba's CUDA simulator replaces the GPU."""
    return os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")


@cache
def unavailable() -> str:
    """Return the reason why CUDA cannot be used on this machine; empty if it can.

    The check does not import numba, which would take half a second.
    """
    if find_spec("numba_cuda") is None:
        return 'numba-cuda is not installed (pip install "numba-cuda[cu13]")'
    if is_simulated():
        return ""
    return _explain_driver_error()


def load_driver() -> Any:
    """Load the library of the NVIDIA driver; return None if it is not installed."""
    names = ["nvcuda.dll"] if sys.platform == "win32" else ["libcuda.so.1", "libcuda.so"]
    names.append("/usr/lib/wsl/lib/libcuda.so.1")
    for name in [os.environ.get("NUMBA_CUDA_DRIVER", ""), *names]:
        if name:
            with suppress(OSError):
                return ctypes.CDLL(name)
    return None


def _explain_driver_error() -> str:
    """Return the reason why the NVIDIA driver cannot be used; empty if it can."""
    library = load_driver()
    if library is None:
        return "no NVIDIA driver was found on this machine"
    count = ctypes.c_int(0)
    code = library.cuInit(0) or library.cuDeviceGetCount(ctypes.byref(count))
    if code == 100:  # CUDA_ERROR_NO_DEVICE
        return "no GPU was found (the NVIDIA driver is installed)"
    if code:
        return f"the NVIDIA driver cannot be initialized (error {code})"
    return "" if count.value else "no GPU was found (the NVIDIA driver is installed)"


@cache
def import_numba_cuda() -> Any:
    """Import the module ``numba.cuda`` and disable its warnings about low occupancy."""
    cuda = import_module("numba.cuda")
    # Launches of few threads are intended: a gradient may have only ten samples. numba-cuda may
    # have a separate configuration.
    for name in ("numba.core.config", "numba.cuda.core.config"):
        if find_spec(name) is not None:
            config: Any = import_module(name)
            config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
    return cuda


def compile_kernel(function: Any, signature: tuple[Any, ...]) -> Any:
    """Compile a Python function to a CUDA kernel with numba.

    Raises:
        EngineError: a part of CUDA is missing or does not match the driver.
    """
    try:
        return import_numba_cuda().jit(signature)(function)
    except Exception as error:
        if type(error).__name__ not in _SUPPORT_ERRORS:
            raise
        raise EngineError(
            f"numba-cuda cannot compile for this GPU: {str(error).strip().splitlines()[0]}",
            hint='install CUDA 13 with pip install "numba-cuda[cu13]", or "numba-cuda[cu12]" for an'
            " older driver",
        ) from error


@contextmanager
def silence_warnings() -> Iterator[None]:
    """Silence numpy's floating-point warnings in the CUDA simulator."""
    if not is_simulated():
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def compute_memory_limit(settings: LaunchSettings, reserved: int = 0) -> int:
    """Return the maximum number of bytes of GPU memory that one call may use.

    Args:
        settings: launch settings.
        reserved: size in bytes of the buffers that are reused from previous calls.
    """
    if settings.memory is not None:
        return settings.memory
    limit = os.environ.get(MEMORY_VARIABLE, "")
    if limit.isdecimal():
        return int(limit)
    if limit:
        raise EngineError(f"{MEMORY_VARIABLE} must be a number of bytes, got {limit!r}")
    if is_simulated():
        return 2**30
    return int(
        (import_numba_cuda().current_context().get_memory_info().free + reserved) * _MEMORY_FRACTION
    )


def compute_max_blocks(settings: LaunchSettings) -> int:
    """Return the maximum number of thread blocks that the GPU can run at the same time."""
    if settings.block_limit:
        return settings.block_limit
    gpu = import_numba_cuda().get_current_device()
    blocks_per_multiprocessor = max(1, _THREADS_PER_MULTIPROCESSOR // settings.threads)
    return blocks_per_multiprocessor * int(gpu.MULTIPROCESSOR_COUNT)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an exception reports that the GPU is out of memory."""
    code = getattr(error, "code", None)
    return (
        isinstance(error, MemoryError)
        or code == _OUT_OF_MEMORY
        or _OUT_OF_MEMORY_NAME in str(error)
    )


def describe_devices() -> str:
    """Describe each GPU in one line, and name the variable that limits memory use."""
    if is_simulated():
        return "device: numba's simulator (NUMBA_ENABLE_CUDASIM)"
    library, count = load_driver(), ctypes.c_int(0)
    if library is None or library.cuInit(0) or library.cuDeviceGetCount(ctypes.byref(count)):
        return ""
    lines = [f"device {index}: {_describe_device(library, index)}" for index in range(count.value)]
    lines.append(f"memory: all free memory (set {MEMORY_VARIABLE} to limit the bytes per call)")
    return "\n".join(lines)


def _describe_device(library: Any, index: int) -> str:
    """Return the name and the memory size of one GPU."""
    handle, size = ctypes.c_int(0), ctypes.c_size_t(0)
    name = ctypes.create_string_buffer(256)
    code = (
        library.cuDeviceGet(ctypes.byref(handle), index)
        or library.cuDeviceGetName(name, len(name), handle)
        or library.cuDeviceTotalMem_v2(ctypes.byref(size), handle)
    )
    if code:
        return f"unknown GPU (driver error {code})"
    return f"{name.value.decode(errors='replace')}, {size.value / 2**30:.1f} GiB"
