"""Attributes of a process: its end, its orphans, its memory, its privileges; see prctl(2).

Source: https://man7.org/linux/man-pages/man2/prctl.2.html
"""

from __future__ import annotations

import signal

from .libc import prctl

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38


def end_with_parent(signal_number: int = signal.SIGKILL) -> None:
    """Ask the kernel to send a signal to this process when the parent process ends."""
    prctl(_PR_SET_PDEATHSIG, signal_number)


def adopt_orphans() -> None:
    """Make this process the parent of all descendants whose own parent process has ended."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def hide_memory() -> None:
    """Prevent processes of this user from opening this process's memory and file descriptors."""
    prctl(_PR_SET_DUMPABLE, 0)


def forbid_new_privileges() -> None:
    """Set no_new_privs, so that execve(2) grants no privileges; Landlock and seccomp need it.

    Source: https://docs.kernel.org/userspace-api/no_new_privs.html
    """
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
