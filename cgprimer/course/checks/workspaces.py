"""Temporary folders, one for each run of a submission.

A grader locks its folders while it runs. The locks of a killed grader are gone, so the next grader
of the same user removes its folders.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: folders are not locked, and stale ones not removed
    fcntl = None  # type: ignore[assignment]

_PREFIX = "cgprimer-sandbox-"


@contextmanager
def workspace() -> Iterator[Path]:
    """Yield an empty temporary folder that is removed afterwards.

    Raises:
        OSError: the folder for temporary files is missing or full.
    """
    _remove_stale_folders(tempfile.gettempdir())
    while True:
        outer = Path(os.path.realpath(tempfile.mkdtemp(prefix=_PREFIX)))
        lock = _lock_folder(outer)
        if fcntl is None or lock is not None:
            break
    try:
        outer.chmod(0o711)  # the grader owns the outer folder; another user may own the inner one
        inner = outer / "home"
        inner.mkdir(0o700)
        yield inner
    finally:
        remove_folder(outer)
        if lock is not None:
            os.close(lock)


def _lock_folder(folder: Path) -> int | None:
    """Lock a folder and return its file descriptor, or None if it is locked or missing."""
    if fcntl is None:
        return None
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), os.stat(folder)):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


@cache
def _remove_stale_folders(parent: str) -> None:
    """Remove temporary folders that were left behind by killed graders of this user."""
    if fcntl is None:
        return
    with suppress(OSError):
        for folder in Path(parent).glob(f"{_PREFIX}*"):
            if folder.lstat().st_uid != os.geteuid():
                continue
            lock = _lock_folder(folder)
            if lock is not None:
                remove_folder(folder)
                os.close(lock)


def remove_folder(folder: Path) -> None:
    """Remove a folder of any depth, without the recursion limit of ``shutil.rmtree``.

    Subfolders are moved up and emptied one by one, so that no path becomes too long.
    """
    numbers = count()
    with suppress(OSError):
        for path in _list_subfolders(folder):
            _grant_to_owner(path)
        while subfolders := _list_subfolders(folder):
            for path in subfolders:
                for entry in list(os.scandir(path)):
                    if entry.is_dir(follow_symlinks=False):
                        _grant_to_owner(entry.path)  # moving a folder requires permission to write
                        os.rename(entry.path, folder / f".{os.getpid()}-{next(numbers)}")
                    else:
                        os.unlink(entry.path)
                os.rmdir(path)
    shutil.rmtree(folder, ignore_errors=True)


def _list_subfolders(folder: Path) -> list[str]:
    """Return the paths of the direct subfolders of a folder."""
    return [entry.path for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]


def _grant_to_owner(folder: str) -> None:
    """Grant the owner of a folder full permissions."""
    if os.name == "posix" and os.geteuid() != 0:  # root needs no permission
        os.chmod(folder, 0o700)
