"""What GPUs there are, asked of the driver itself: numba would take half a second."""

from __future__ import annotations

import ctypes
from typing import Any

from cgprimer.native.cuda.device import MEMORY_VARIABLE, driver, simulated


def describe() -> str:
    """The GPUs with their memory, a line each, and how to give less of it away."""
    if simulated():
        return "device: numba's simulator (NUMBA_ENABLE_CUDASIM)"
    found = driver()
    if found is None or found.cuInit(0):
        return ""
    count = ctypes.c_int(0)
    if found.cuDeviceGetCount(ctypes.byref(count)):
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
