"""Recording state per thread, serial numbers of values, and suppressed floating-point errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context
from itertools import count
from threading import RLock, get_ident, local
from typing import Any

import numpy as np

from cgprimer.errors import CgprimerError

next_serial = count(1).__next__  #: a value has a greater serial number than its operands


class _ThreadState(local):
    """Recording state of one thread, so that ``no_grad`` affects only the calling thread.

    Attributes:
        recording: whether operations are recorded.
        with_lines: whether constants and source lines are recorded, as :func:`record` requires.
        depth: nesting depth of transforms; inside a transform, backward passes are recorded.
    """

    recording = True
    with_lines = False
    depth = 0


class State:
    """Recording state of the process.

    Attributes:
        thread: the state of the current thread.
        fast_path: True while all threads record without lines, so that operators need not read
            ``thread``.
        last_change: serial number of the latest in-place change to any value.
    """

    thread = _ThreadState()
    fast_path = True
    last_change = 0
    _lock = RLock()
    _special_threads: set[int] = set()  # noqa: RUF012  # threads that make ``fast_path`` False

    @classmethod
    def update_fast_path(cls) -> None:
        """Recompute ``fast_path`` after a change to the recording state of the current thread."""
        thread = cls.thread
        is_default = thread.recording and not thread.with_lines
        if is_default and cls.fast_path:
            return
        update = cls._special_threads.discard if is_default else cls._special_threads.add
        with cls._lock:
            update(get_ident())
            cls.fast_path = not cls._special_threads


@contextmanager
def set_recording(
    enabled: bool, *, with_lines: bool | None = None, extra_depth: int = 0
) -> Iterator[None]:
    """Enable or disable recording inside a ``with`` block.

    Args:
        enabled: whether operations are recorded.
        with_lines: whether source lines are recorded; by default as before if recording is
            disabled, and False if recording is enabled.
        extra_depth: levels added to the nesting depth of transforms.
    """
    thread = State.thread
    previous = thread.recording, thread.with_lines
    lines = thread.with_lines and not enabled if with_lines is None else with_lines
    try:  # Ctrl-C may arrive between any two statements
        thread.recording, thread.with_lines = enabled, lines
        thread.depth += extra_depth
        State.update_fast_path()
        yield
    except ValueError as error:  # numpy wraps the error of ``array[0] = value``
        if isinstance(error.__cause__, CgprimerError):
            raise error.__cause__ from None
        raise
    finally:
        thread.recording, thread.with_lines = previous
        thread.depth -= extra_depth
        State.update_fast_path()


# A context in which numpy's floating-point warnings are disabled. Running a function in a copy of
# the context costs a tenth of entering ``np.errstate``, which matters for small arrays, and Ctrl-C
# cannot leave the warnings disabled.
_silent_context = Context()
_silent_context.run(np.seterr, all="ignore")
silent_context = _silent_context.copy


def run_silently(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function with numpy's floating-point warnings disabled.

    >>> run_silently(np.log, np.array([0.0]))
    array([-inf])
    """
    return silent_context().run(function, *arguments)
