"""Separate a process from the machine's processes, network and mounts, with namespaces(7).

Sources: https://man7.org/linux/man-pages/man7/namespaces.7.html,
https://man7.org/linux/man-pages/man7/user_namespaces.7.html and
https://man7.org/linux/man-pages/man5/tmpfs.5.html
"""

from __future__ import annotations

import os

from .libc import load_libc

# Flags of unshare(2).
_CLONE_NEWNS, _CLONE_NEWIPC, _CLONE_NEWUSER = 0x00020000, 0x08000000, 0x10000000
_CLONE_NEWPID, _CLONE_NEWNET = 0x20000000, 0x40000000
# Flags of mount(2).
_MS_REC, _MS_PRIVATE, _MS_NOSUID, _MS_NODEV = 1 << 14, 1 << 18, 1 << 1, 1 << 2
_DISK_SIZE = 64  # megabytes of all files in the working folder
_MAX_FILES = 10_000  # files and folders in the working folder


def enter_namespaces(folder: str, uid: int | None) -> bool:
    """Enter new network, process and mount namespaces, and mount an empty tmpfs on a folder.

    Root needs no user namespace. Any other user creates one first.

    Args:
        folder: the working folder of the submission.
        uid: the user that the submission will run as; None for the grader's own user.

    Returns:
        True if the kernel permits the namespaces.
    """
    user, group = os.geteuid(), os.getegid()
    flags = _CLONE_NEWNET | _CLONE_NEWPID | _CLONE_NEWIPC | _CLONE_NEWNS
    if load_libc().unshare(flags) != 0:
        if uid is not None or load_libc().unshare(flags | _CLONE_NEWUSER) != 0:
            return False
        try:
            _map_user(user, group)
        except OSError:
            return True  # without the mapping, nothing can be mounted
    _mount_tmpfs(folder, user if uid is None else uid, group)
    return True


def _map_user(user: int, group: int) -> None:
    """Map the user ID and the group ID to themselves in the new user namespace of this process."""
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _mount_tmpfs(folder: str, user: int, group: int) -> None:
    """Mount an empty tmpfs of limited size on a folder, visible only in this mount namespace."""
    mount = load_libc().mount
    if mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None) == 0:
        options = f"size={_DISK_SIZE}m,nr_inodes={_MAX_FILES},mode=700,uid={user},gid={group}"
        flags = _MS_NOSUID | _MS_NODEV
        mount(b"none", os.fsencode(folder), b"tmpfs", flags, options.encode())
        os.chdir(folder)
