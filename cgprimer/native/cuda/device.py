"""What there is to run on: the library, the driver, the GPU and its memory.

numba is imported by :func:`toolkit` and nowhere else, and only once a tape is compiled.
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
_SHARE = 0.8  # of the free memory that one call may take
_RESIDENT = 2048  # threads that a multiprocessor has at work at a time
_SUPPORT_ERRORS = ("CudaSupportError", "NvvmSupportError", "NvvmError", "LinkerError")
_OUT_NAME = "CUDA_ERROR_OUT_OF_MEMORY"
_OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY


@dataclass(frozen=True, slots=True)
class Settings:
    """How work is laid out. Units: threads, blocks, samples, bytes.

    Attributes:
        threads: per block; a power of two.
        block_limit: the most blocks of a launch; 0: as many as work on the GPU at a time.
        memory: the most bytes a call may take on the GPU; None: most of what is free.
        straight: the longest tape, in instructions, whose operations are written out.
    """

    threads: int = 256
    block_limit: int = 0
    memory: int | None = None
    straight: int = 320


SIMULATED = Settings(threads=8, block_limit=3)  # a thread is one of Python's there


def simulated() -> bool:
    """Whether numba's simulator stands in for a GPU."""
    return os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")


@cache
def unavailable() -> str:
    """Why there is nothing to run on; empty if there is. Imports nothing large."""
    if find_spec("numba_cuda") is None:
        return 'numba-cuda is not installed (pip install "numba-cuda[cu13]")'
    if simulated():
        return ""
    return _driver_trouble()


def driver() -> Any:
    """The NVIDIA driver's own library; None if there is none."""
    names = ["nvcuda.dll"] if sys.platform == "win32" else ["libcuda.so.1", "libcuda.so"]
    names.append("/usr/lib/wsl/lib/libcuda.so.1")
    for name in [os.environ.get("NUMBA_CUDA_DRIVER", ""), *names]:
        if name:
            with suppress(OSError):
                return ctypes.CDLL(name)
    return None


def _driver_trouble() -> str:
    """What is wrong with the driver, asked of the driver itself: numba would take half a second."""
    found = driver()
    if found is None:
        return "no NVIDIA driver was found on this machine"
    count = ctypes.c_int(0)
    code = found.cuInit(0) or found.cuDeviceGetCount(ctypes.byref(count))
    if code == 100:  # CUDA_ERROR_NO_DEVICE
        return "there is an NVIDIA driver, but no GPU"
    if code:
        return f"the NVIDIA driver does not start (error {code})"
    return "" if count.value else "there is an NVIDIA driver, but no GPU"


@cache
def toolkit() -> Any:
    """The module ``numba.cuda``."""
    cuda = import_module("numba.cuda")
    # A gradient of ten samples is no mistake that would need a warning.
    for name in ("numba.core.config", "numba.cuda.core.config"):  # numba-cuda's own, if it has one
        if find_spec(name) is not None:
            config: Any = import_module(name)
            config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
    return cuda


def kernel(function: Any, signature: tuple[Any, ...]) -> Any:
    """A function compiled to a kernel.

    Raises:
        EngineError: a part of CUDA that compiling needs is missing, or does not fit the driver.
    """
    try:
        return toolkit().jit(signature)(function)
    except Exception as error:
        if type(error).__name__ not in _SUPPORT_ERRORS:
            raise
        raise EngineError(
            f"numba-cuda cannot compile for this GPU: {str(error).strip().splitlines()[0]}",
            hint='pip install "numba-cuda[cu13]" brings CUDA 13; an older driver needs'
            ' "numba-cuda[cu12]"',
        ) from error


@contextmanager
def quiet() -> Iterator[None]:
    """Infinities are values: the simulator's numpy must not warn of them in its threads."""
    if not simulated():
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def memory(settings: Settings, kept: int = 0) -> int:
    """Bytes that a call may take on the GPU; ``kept`` are its own from the call before."""
    if settings.memory is not None:
        return settings.memory
    given = os.environ.get(MEMORY_VARIABLE, "")
    if given.isdecimal():
        return int(given)
    if given:
        raise EngineError(f"{MEMORY_VARIABLE} is a number of bytes, not {given!r}")
    if simulated():
        return 2**30
    return int((toolkit().current_context().get_memory_info().free + kept) * _SHARE)


def blocks_at_work(settings: Settings) -> int:
    """The most blocks of a launch: more of them than work at a time would wait for their turn."""
    if settings.block_limit:
        return settings.block_limit
    each = max(1, _RESIDENT // settings.threads)
    return each * int(toolkit().get_current_device().MULTIPROCESSOR_COUNT)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that the device's memory is used up."""
    code = getattr(error, "code", None)
    return isinstance(error, MemoryError) or code == _OUT_OF_MEMORY or _OUT_NAME in str(error)


def describe() -> str:
    """The GPUs with their memory, a line each, and how to give less of it away."""
    if simulated():
        return "device: numba's simulator (NUMBA_ENABLE_CUDASIM)"
    found, count = driver(), ctypes.c_int(0)
    if found is None or found.cuInit(0) or found.cuDeviceGetCount(ctypes.byref(count)):
        return ""
    lines = [f"device {number}: {_device(found, number)}" for number in range(count.value)]
    lines.append(f"memory: what is free ({MEMORY_VARIABLE} limits the bytes that a call may take)")
    return "\n".join(lines)


def _device(found: Any, number: int) -> str:
    """Name and memory of a GPU."""
    handle, size = ctypes.c_int(0), ctypes.c_size_t(0)
    name = ctypes.create_string_buffer(256)
    code = (
        found.cuDeviceGet(ctypes.byref(handle), number)
        or found.cuDeviceGetName(name, len(name), handle)
        or found.cuDeviceTotalMem_v2(ctypes.byref(size), handle)
    )
    if code:
        return f"the driver does not say what it is (error {code})"
    return f"{name.value.decode(errors='replace')}, {size.value / 2**30:.1f} GiB"
