"""What is worth keeping between two processes: compiled code, on disk, in the user's cache folder.

Files are written whole or not at all, carry a checksum of their name and content, and are named
after everything that their content depends on. Whatever is wrong with the folder or a file
(corrupt, foreign, unreadable, no room, a home that cannot be written to), the content is made
again: a cache is never a reason to fail.

What is kept is run, so nobody else may be able to put it there: as ssh does, a folder or file is
used only if the user owns it and nobody else can write to it, or to a folder above it. (Where the
system knows no owners in this sense, as Windows, that is left to the folder's own protection.)

``CGPRIMER_CACHE`` names another folder; ``CGPRIMER_CACHE=off`` keeps nothing.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from cgprimer import __version__
from cgprimer.errors import UsageError
from cgprimer.files import write_whole

_MAGIC = b"cgprimer cache 2\n"
_LIMIT_BYTES, _LIMIT_FILES = 512 * 2**20, 4096  # all are looked at whenever one is kept
_SUFFIX = ".cgc"
_OFF = ("", "off", "0", "none")
_ABANDONED = 86_400.0  # seconds
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def folder() -> Path | None:
    """Where things are kept, without symbolic links; None for nowhere.

    Warns, once, of a folder that others can write to.
    """
    place, trouble = _place()
    if trouble:
        _warn(trouble)
    return place


def in_memory() -> bool:
    """Whether what was made may be kept by this process: unless nothing is to be kept at all."""
    return os.environ.get("CGPRIMER_CACHE", "on").strip().lower() not in _OFF


def description() -> str:
    """The folder, or why nothing is kept."""
    place, trouble = _place()
    why = f"nothing is kept: {trouble}" if trouble else "nothing is kept"
    return why if place is None else str(place)


def _place() -> tuple[Path | None, str]:
    """Where things are kept, or what is wrong with that place."""
    place = _wanted()
    trouble = "" if place is None else _trouble(place)
    return (None if trouble else place), trouble


def _wanted() -> Path | None:
    chosen = os.environ.get("CGPRIMER_CACHE")
    try:
        if chosen is not None:
            off = chosen.strip().lower() in _OFF
            return None if off else Path(os.path.realpath(chosen))
        home = Path.home()
    except (RuntimeError, OSError, ValueError):  # no home at all; no name that a folder can have
        return None
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
        if not base.is_absolute():  # to be ignored, says the XDG Base Directory Specification
            base = home / ".cache"
    return Path(os.path.realpath(base / "cgprimer"))


def _trouble(place: Path) -> str:
    """Who else could write into a folder, or replace it; empty if nobody can."""
    if not hasattr(os, "geteuid"):
        return ""
    for path in (place, *place.parents):
        try:
            status = path.lstat()
        except OSError:  # not there yet, then nobody's: it is made for the user alone
            continue
        # What stands in a folder like /tmp only its owner can replace.
        shared = stat.S_IMODE(status.st_mode) & 0o022
        if shared and (path == place or not status.st_mode & stat.S_ISVTX):
            return f"others can write to {path}"
        if status.st_uid not in ((os.geteuid(),) if path == place else (0, os.geteuid())):
            return f"{path} belongs to another user"
    return ""


@lru_cache
def _warn(trouble: str) -> None:
    warnings.warn(f"compiled code is not kept: {trouble}", stacklevel=2)


@lru_cache(maxsize=1)
def package_state() -> str:
    """Changes whenever the package's own files do: what older code made is not taken for new."""
    root = Path(__file__).parent
    states = []
    with suppress(OSError):  # a package in an archive has no files: its version must do
        for file in sorted(root.rglob("*.py")):
            status = file.stat()
            states.append(f"{file.relative_to(root)} {status.st_size} {status.st_mtime_ns}")
    return key_of(__version__, *states)


def key_of(*parts: str | bytes) -> str:
    """A name for content that depends on these parts and on nothing else.

    >>> key_of("a", "bc") == key_of("ab", "c")
    False
    """
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def kept(kind: str, key: str, make: Callable[[], bytes]) -> bytes:
    """Content from the cache, or made and kept.

    Args:
        kind: a word for people who look into the folder.
        key: from :func:`key_of`.
        make: makes the content.
    """
    found = load(kind, key)
    if found is None:
        found = make()
        store(kind, key, found)
    return found


def load(kind: str, key: str) -> bytes | None:
    """What was kept under a key; None if there is nothing, or nothing that can be trusted."""
    place = folder()
    if place is None:
        return None
    name = f"{kind}-{key}{_SUFFIX}"
    try:
        with open(os.open(place / name, os.O_RDONLY | _NO_LINK), "rb") as file:
            status = os.fstat(file.fileno())
            if hasattr(os, "geteuid") and (
                status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o022
            ):
                return None
            data = file.read()
    except (OSError, ValueError):
        return None
    with suppress(OSError):
        os.utime(place / name)  # used today: others are thrown away first
    start = len(_MAGIC) + hashlib.sha256().digest_size
    content = data[start:]
    return content if data[:start] == _head(name, content) else None


def store(kind: str, key: str, content: bytes) -> bool:
    """Keep content under a key; whether that worked."""
    place = folder()
    if place is None:
        return False
    target = place / f"{kind}-{key}{_SUFFIX}"
    try:
        for missing in reversed([path for path in (place, *place.parents) if not path.exists()]):
            missing.mkdir(mode=0o700, exist_ok=True)
        write_whole(target, _head(target.name, content) + content, private=True)
        _make_room(place, target.name)
    except (OSError, ValueError, UsageError):
        return False
    return True


def _head(name: str, content: bytes) -> bytes:
    """What a file begins with: a checksum of its content under its name."""
    return _MAGIC + hashlib.sha256(name.encode() + b"\n" + content).digest()


def _make_room(place: Path, newest: str) -> None:
    """Throw the oldest files away once they are too many, or all together too large."""
    known = []
    for file in os.scandir(place):
        with suppress(OSError):
            status = file.stat()
            if file.name.endswith(_SUFFIX):
                known.append((status.st_mtime, status.st_size, file.name))
            elif file.name.endswith(".part") and status.st_mtime < time.time() - _ABANDONED:
                os.unlink(file)  # of a process that was killed while it wrote
    total, count = sum(size for _, size, _ in known), len(known)
    for _, size, name in sorted(known):
        if total <= _LIMIT_BYTES and count <= _LIMIT_FILES:
            break
        if name != newest:
            with suppress(OSError):  # what cannot be thrown away does not keep the others
                (place / name).unlink(missing_ok=True)
                total, count = total - size, count - 1
