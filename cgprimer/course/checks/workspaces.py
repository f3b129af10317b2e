"""Temporary folders, one for each run of a submission, that do not outlive the grader for long.

A folder is locked while the grader that made it lives. A killed grader's locks are gone, so the
next grader of the same user removes its folders.
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
except ImportError:  # Windows: nothing is locked, and nothing of others removed
    fcntl = None  # type: ignore[assignment]

_PREFIX = "cgprimer-sandbox-"


@contextmanager
def workspace() -> Iterator[Path]:
    """Yield an empty folder of this user's, and remove it afterwards.

    Raises:
        OSError: there is no place for temporary files.
    """
    _remove_stale(tempfile.gettempdir())
    while True:
        outer = Path(os.path.realpath(tempfile.mkdtemp(prefix=_PREFIX)))
        lock = _lock(outer)
        if fcntl is None or lock is not None:
            break
    try:
        outer.chmod(0o711)  # the outer folder stays the grader's, the inner one may be given away
        inner = outer / "home"
        inner.mkdir(0o700)
        yield inner
    finally:
        remove_folder(outer)
        if lock is not None:
            os.close(lock)


def _lock(folder: Path) -> int | None:
    """Return an open descriptor that locks a folder; None if it is locked, or gone."""
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
def _remove_stale(parent: str) -> None:
    """Remove what graders of this user have left behind that were killed."""
    if fcntl is None:
        return
    with suppress(OSError):
        for folder in Path(parent).glob(f"{_PREFIX}*"):
            if folder.lstat().st_uid != os.geteuid():
                continue
            lock = _lock(folder)
            if lock is not None:
                remove_folder(folder)
                os.close(lock)


def remove_folder(folder: Path) -> None:
    """Remove a folder, however deep it is: ``shutil.rmtree`` recurses, and gives up.

    Folders inside are moved up and emptied one by one, so no path becomes long.
    """
    numbers = count()
    with suppress(OSError):
        for path in _folders_in(folder):
            _open_to_owner(path)
        while inner := _folders_in(folder):
            for path in inner:
                for entry in list(os.scandir(path)):
                    if entry.is_dir(follow_symlinks=False):
                        _open_to_owner(entry.path)  # to move a folder is to write it
                        os.rename(entry.path, folder / f".{os.getpid()}-{next(numbers)}")
                    else:
                        os.unlink(entry.path)
                os.rmdir(path)
    shutil.rmtree(folder, ignore_errors=True)


def _folders_in(folder: Path) -> list[str]:
    return [entry.path for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]


def _open_to_owner(folder: str) -> None:
    if os.name == "posix" and os.geteuid() != 0:  # root needs no permission
        os.chmod(folder, 0o700)
