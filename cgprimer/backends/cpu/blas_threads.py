"""Limit on the threads of the BLAS library that multiplies matrices for numpy.

The engine divides samples among its own threads, and each of them multiplies matrices. Products
must then use a single thread; otherwise all of them would wait for the threads of the library.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

_lock = Lock()
_users = 0  # threads inside `limit_to_one_thread`
_limit: Any = None  # the limit that is in force while there are users


@cache
def _find_libraries() -> Any:
    """Return threadpoolctl's controller of the loaded BLAS libraries."""
    from threadpoolctl import ThreadpoolController  # 15 ms, for large arrays only

    return ThreadpoolController().select(user_api="blas")


def can_limit_threads() -> bool:
    """Return whether threadpoolctl can limit the threads of the BLAS library.

    >>> can_limit_threads() in (True, False)
    True
    """
    return bool(_find_libraries().lib_controllers)


@contextmanager
def limit_to_one_thread() -> Iterator[None]:
    """Limit BLAS to one thread within a ``with`` block.

    Blocks of several threads may overlap: the last block to end restores the number of threads.
    """
    global _users, _limit  # noqa: PLW0603
    with _lock:
        if not _users:
            _limit = _find_libraries().limit(limits=1)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                _limit.restore_original_limits()
