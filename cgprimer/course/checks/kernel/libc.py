"""System calls that Python does not offer, through functions of the C library.

Sources: https://man7.org/linux/man-pages/man2/syscall.2.html and
https://man7.org/linux/man-pages/man2/prctl.2.html
"""

from __future__ import annotations

import ctypes
from functools import cache


@cache
def load_libc() -> ctypes.CDLL:
    """Return the C library of this process."""
    return ctypes.CDLL(None, use_errno=True)


def prctl(option: int, argument: int, address: object = 0) -> bool:
    """Change an attribute of this process and return whether the kernel accepted the change."""
    return bool(load_libc().prctl(option, argument, address, 0, 0) == 0)
