"""Give up the grader's user and its capabilities, with capabilities(7).

Source: https://man7.org/linux/man-pages/man7/capabilities.7.html
"""

from __future__ import annotations

import json
import os
import struct
import sys
from contextlib import suppress

from .libc import load_libc, prctl

_PR_SET_KEEPCAPS = 8
_CAP_DAC_READ_SEARCH = 1 << 2
_LINUX_CAPABILITY_VERSION_3 = 0x20080522


def choose_user(uid: int, folder: str) -> tuple[int | None, int]:
    """Choose the user ID and the capabilities with which root runs a submission.

    The user owns only the working folder. If other users cannot read Python's own files, the
    submission keeps the capability to read any file, and Landlock restricts it.

    Args:
        uid: the preferred user.
        folder: the working folder of the submission.

    Returns:
        The user, or None in a container without other users; and the capabilities to keep.
    """
    required = (folder, sys.prefix, sys.base_prefix, os.path.dirname(json.__file__))
    try:
        os.chown(folder, uid, uid)
        os.seteuid(uid)
        try:
            is_readable = all(
                os.access(path, os.R_OK | os.X_OK, effective_ids=True) for path in required
            )
        finally:
            os.seteuid(0)
        if is_readable:
            return uid, 0
        if _read_effective_capabilities() & _CAP_DAC_READ_SEARCH:
            return uid, _CAP_DAC_READ_SEARCH
        os.chown(folder, 0, 0)
    except OSError:
        pass
    return None, 0


def _read_effective_capabilities() -> int:
    """Return the effective capabilities of this process as a bit mask."""
    with open("/proc/self/status") as file:
        return int(file.read().partition("CapEff:")[2].split()[0], 16)


def become_user(uid: int, capabilities: int) -> None:
    """Switch to another user and group, and keep only the given capabilities."""
    with suppress(OSError):
        os.setgroups([])
    os.setresgid(uid, uid, uid)
    if capabilities:
        prctl(_PR_SET_KEEPCAPS, 1)
    os.setresuid(uid, uid, uid)
    if capabilities:
        drop_capabilities(keep=capabilities)


def drop_capabilities(keep: int = 0) -> None:
    """Drop all capabilities except those in the bit mask ``keep``.

    Raises:
        PermissionError: the kernel refuses.
    """
    header = struct.pack("Ii", _LINUX_CAPABILITY_VERSION_3, 0)
    sets = struct.pack("6I", keep, keep, 0, 0, 0, 0)  # effective, permitted, inheritable; twice
    if load_libc().capset(header, sets) != 0:
        raise PermissionError("cannot drop the Linux capabilities of the grader process")
