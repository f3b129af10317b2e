"""Tie the life of processes together, with prctl(2).

Source: https://man7.org/linux/man-pages/man2/prctl.2.html
"""

from __future__ import annotations

import ctypes
import signal

_SET_DEATH_SIGNAL, _SET_DUMPABLE, _SET_SUBREAPER = 1, 4, 36


def die_with_parent(by: int = signal.SIGKILL) -> None:
    """Be sent a signal when the parent process ends."""
    _prctl(_SET_DEATH_SIGNAL, by)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent has ended."""
    _prctl(_SET_SUBREAPER, 1)


def hide_memory() -> None:
    """Let no other process of the same user open this one's memory or file descriptors."""
    _prctl(_SET_DUMPABLE, 0)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
