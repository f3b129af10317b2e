"""The number of threads of the BLAS library that multiplies matrices for numpy.

The engine divides samples among threads of its own. Each of them then asks for products in one
thread; otherwise all of them would wait for the threads of the library.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

_lock = Lock()
_users = 0  # threads inside `one_thread`
_limit: Any = None  # the limit that is in force while there are users


@cache
def _libraries() -> Any:
    """Return threadpoolctl's controller of the BLAS libraries that are loaded."""
    from threadpoolctl import ThreadpoolController  # 15 ms, for large arrays only

    return ThreadpoolController().select(user_api="blas")


def can_limit_threads() -> bool:
    """Return whether the BLAS library can be limited to one thread.

    >>> can_limit_threads() in (True, False)
    True
    """
    return bool(_libraries().lib_controllers)


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit the BLAS library to one thread for each product.

    Several threads may overlap: the last one to leave restores the number of threads.
    """
    global _users, _limit  # noqa: PLW0603
    with _lock:
        if not _users:
            _limit = _libraries().limit(limits=1)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                _limit.restore_original_limits()
