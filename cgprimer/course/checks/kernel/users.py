"""Give up the grader's user and its capabilities, with capabilities(7).

Source: https://man7.org/linux/man-pages/man7/capabilities.7.html
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys
from contextlib import suppress

_KEEP_CAPABILITIES = 8  # of prctl(2)
_READ_ALL = 1 << 2  # CAP_DAC_READ_SEARCH
_VERSION_3 = 0x20080522


def choose_user(uid: int, folder: str) -> tuple[int | None, int]:
    """Choose the user that root runs a submission as, and the capabilities that this takes.

    The user owns nothing but the folder. Where Python itself lies in a folder that is closed to
    others, the capability to read any file stays, and Landlock restricts it.

    Returns:
        The user, or None in a container that has no other users; and a set of capabilities.
    """
    needed = (folder, sys.prefix, sys.base_prefix, os.path.dirname(json.__file__))
    try:
        os.chown(folder, uid, uid)
        os.seteuid(uid)
        open_to_all = all(os.access(p, os.R_OK | os.X_OK, effective_ids=True) for p in needed)
        os.seteuid(0)
        if open_to_all:
            return uid, 0
        if _effective_capabilities() & _READ_ALL:
            return uid, _READ_ALL
        os.chown(folder, 0, 0)
    except OSError:
        pass
    return None, 0


def _effective_capabilities() -> int:
    with open("/proc/self/status") as file:
        return int(file.read().partition("CapEff:")[2].split()[0], 16)


def become_user(uid: int, capabilities: int) -> None:
    """Become another user, and keep only some capabilities."""
    with suppress(OSError):
        os.setgroups([])
    os.setresgid(uid, uid, uid)
    if capabilities:
        ctypes.CDLL(None).prctl(_KEEP_CAPABILITIES, 1, 0, 0, 0)
    os.setresuid(uid, uid, uid)
    if capabilities:
        keep_capabilities(capabilities)


def keep_capabilities(capabilities: int = 0) -> None:
    """Drop all capabilities but these: those of root, and those in a user namespace.

    Raises:
        PermissionError: the kernel refuses.
    """
    header = struct.pack("Ii", _VERSION_3, 0)
    sets = struct.pack("6I", capabilities, capabilities, 0, 0, 0, 0)
    if ctypes.CDLL(None).capset(header, sets) != 0:
        raise PermissionError("the capabilities of the grader cannot be dropped")
