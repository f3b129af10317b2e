"""Restrict the files that a process can open, with landlock(7).

Sources: https://man7.org/linux/man-pages/man7/landlock.7.html and
https://docs.kernel.org/userspace-api/landlock.html
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable

from .libc import load_libc
from .processes import forbid_new_privileges

# Numbers of the system calls, equal on all architectures.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CREATE_RULESET_VERSION = 1 << 0
_RULE_PATH_BENEATH = 1

# Access rights, as LANDLOCK_ACCESS_FS_... of linux/landlock.h.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_READING = _EXECUTE | _READ_FILE | _READ_DIR
_RIGHTS_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_NUMBER_OF_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # keyed by version of Landlock
_TCP = 0b11  # bind and connect
_SCOPES = 0b11  # abstract Unix sockets and signals outside the sandbox
_WRITABLE_DEVICES = ("/dev/null", "/dev/zero")


def restrict_files(folder: str, readable: Iterable[str]) -> bool:
    """Restrict this process to full access to one folder and read access to the given paths.

    Newer kernels also block TCP connections, and signals to processes outside the sandbox.

    Args:
        folder: the working folder of the submission.
        readable: files and folders that the submission can read.

    Returns:
        True if the kernel enforces these rules, False if it does not support Landlock.
    """
    forbid_new_privileges()
    version = load_libc().syscall(_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)
    if version < 1:
        return False
    all_rights = (1 << _NUMBER_OF_RIGHTS[min(version, max(_NUMBER_OF_RIGHTS))]) - 1
    attributes = _pack_ruleset_attributes(version, all_rights)
    ruleset = load_libc().syscall(_CREATE_RULESET, attributes, len(attributes), 0)
    if ruleset < 0:
        return False
    for path in readable:
        _allow_access(ruleset, path, _READING | (_WRITE_FILE if path in _WRITABLE_DEVICES else 0))
    _allow_access(ruleset, folder, all_rights)
    enforced = bool(load_libc().syscall(_RESTRICT_SELF, ruleset, 0) == 0)
    os.close(ruleset)
    return enforced


def _pack_ruleset_attributes(version: int, rights: int) -> bytes:
    """Pack ``struct landlock_ruleset_attr`` with the fields that a Landlock version supports."""
    if version < 4:
        return struct.pack("Q", rights)
    if version < 6:
        return struct.pack("QQ", rights, _TCP)
    return struct.pack("QQQ", rights, _TCP, _SCOPES)


def _allow_access(ruleset: int, path: str, rights: int) -> None:
    """Add a Landlock rule that grants rights on a file, or on a folder and everything in it."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not os.path.isdir(path):
        rights &= _RIGHTS_ON_FILES
    rule = struct.pack("=Qi", rights, descriptor)
    load_libc().syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0)
    os.close(descriptor)
