"""System calls that Python does not offer, through functions of the C library.

Sources: https://man7.org/linux/man-pages/man2/syscall.2.html and
https://man7.org/linux/man-pages/man2/prctl.2.html
"""

from __future__ import annotations

import ctypes
from functools import cache


@cache
def load_libc() -> ctypes.CDLL:
    """Load the C library of this process for calls with ctypes."""
    return ctypes.CDLL(None, use_errno=True)


def prctl(option: int, argument: int, address: object = 0) -> bool:
    """Change an attribute of this process with prctl(2); return True if the kernel accepts it."""
    return bool(load_libc().prctl(option, argument, address, 0, 0) == 0)
