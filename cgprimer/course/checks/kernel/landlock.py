"""Restrict which files a process may reach, with landlock(7).

Source: https://man7.org/linux/man-pages/man7/landlock.7.html
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable

_NO_NEW_PRIVILEGES = 38
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # on every architecture
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEVICE = 1 << 14, 1 << 15
_READING = _EXECUTE | _READ_FILE | _READ_FOLDER
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
_RIGHTS = (13, 14, 15, 15, 16)  # how many access rights each version of Landlock knows
_PATH_BENEATH = 1
_WRITABLE_DEVICES = ("/dev/null", "/dev/zero")


def restrict_files(folder: str, readable: Iterable[str]) -> bool:
    """Allow only ``folder``, and to read what is in ``readable``; no signals to the outside.

    Returns:
        Whether the kernel has Landlock and it is in force.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    version = libc.syscall(_CREATE_RULESET, None, 0, 1)
    if version < 1:
        return False
    everything = (1 << _RIGHTS[min(version, len(_RIGHTS)) - 1]) - 1
    rules = _ruleset(version, everything)
    ruleset = libc.syscall(_CREATE_RULESET, rules, len(rules), 0)
    if ruleset < 0:
        return False
    for path in (*readable, folder):
        try:
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        rights = everything if path == folder else _READING
        if path in _WRITABLE_DEVICES:
            rights |= _WRITE_FILE
        if not os.path.isdir(path):
            rights &= everything & _OF_FILES
        libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, opened), 0)
        os.close(opened)
    in_force = bool(libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0)
    os.close(ruleset)
    return in_force


def _ruleset(version: int, files: int) -> bytes:
    """Return ``struct landlock_ruleset_attr`` with the fields that a version knows."""
    if version < 4:
        return struct.pack("Q", files)
    tcp = 0b11  # bind, connect
    if version < 6:
        return struct.pack("QQ", files, tcp)
    scopes = 0b11  # abstract sockets, signals
    return struct.pack("QQQ", files, tcp, scopes)
