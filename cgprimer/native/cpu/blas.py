"""The threads of the library that multiplies matrices for numpy: OpenBLAS, where it is that.

Whoever multiplies in several threads of his own asks for one thread of the library's meanwhile;
else each of them would wait for all of the library's.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from threading import Lock
from typing import Any

_SET = ("scipy_openblas_set_num_threads64_", "openblas_set_num_threads64_",
        "scipy_openblas_set_num_threads", "openblas_set_num_threads")  # fmt: skip
_lock, _users, _before = Lock(), 0, 1


@cache
def _functions() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """How many threads there are, and how to change it; None where that is not known."""
    try:
        compiled: Any = import_module("numpy._core._multiarray_umath")
        library = ctypes.CDLL(compiled.__file__)  # and what it is linked with
    except (ImportError, OSError):
        return None
    for name in _SET:
        if hasattr(library, name):
            return getattr(library, name.replace("_set_", "_get_")), getattr(library, name)
    return None


def divisible() -> bool:
    """Whether the library can be asked for one thread.

    >>> divisible() in (True, False)
    True
    """
    return _functions() is not None


@contextmanager
def one_thread() -> Iterator[None]:
    """The library uses one thread for each product, until nobody is in here any more."""
    global _users, _before  # noqa: PLW0603
    found = _functions()
    if found is None:
        yield
        return
    get, put = found
    with _lock:
        if not _users:
            _before = get()
            put(1)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                put(_before)
