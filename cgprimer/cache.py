"""What is worth keeping between two processes: compiled code, on disk, in the user's cache folder.

Files are written whole or not at all, carry a checksum, and are named after everything that their
content depends on. Whatever is wrong with the folder or a file (corrupt, foreign, unreadable, no
room, a home that cannot be written to), the content is made again: a cache is never a reason to
fail.

``CGPRIMER_CACHE`` names another folder; ``CGPRIMER_CACHE=off`` keeps nothing.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from cgprimer import __version__

_MAGIC = b"cgprimer cache 1\n"
_LIMIT_BYTES = 512 * 2**20
_SUFFIX = ".cgc"
_ABANDONED = 86_400.0  # seconds


def folder() -> Path | None:
    """Where things are kept; None for nowhere."""
    chosen = os.environ.get("CGPRIMER_CACHE")
    if chosen is not None:
        return None if chosen.strip().lower() in ("", "off", "0", "none") else Path(chosen)
    try:
        home = Path.home()
    except RuntimeError:  # no home at all
        return None
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "cgprimer"


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
    file = place / f"{kind}-{key}{_SUFFIX}"
    try:
        data = file.read_bytes()
    except (OSError, ValueError):
        return None
    with suppress(OSError):
        os.utime(file)  # used today: others are thrown away first
    start = len(_MAGIC) + hashlib.sha256().digest_size
    content = data[start:]
    if not data.startswith(_MAGIC) or hashlib.sha256(content).digest() != data[len(_MAGIC) : start]:
        return None
    return content


def store(kind: str, key: str, content: bytes) -> bool:
    """Keep content under a key; whether that worked."""
    place = folder()
    if place is None:
        return False
    target = place / f"{kind}-{key}{_SUFFIX}"
    # A name of our own while it is written: two processes may make the same thing at once.
    partial = place / f".{target.name}.{os.getpid()}.part"
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial.write_bytes(_MAGIC + hashlib.sha256(content).digest() + content)
        partial.replace(target)
        _make_room(place.iterdir(), target)
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            partial.unlink(missing_ok=True)
        return False
    return True


def _make_room(files: Iterable[Path], newest: Path) -> None:
    """Throw the oldest files away once all together are too large."""
    known = []
    for file in files:
        with suppress(OSError):
            status = file.stat()
            if file.suffix == _SUFFIX:
                known.append((status.st_mtime, status.st_size, file))
            elif file.suffix == ".part" and status.st_mtime < time.time() - _ABANDONED:
                file.unlink()  # of a process that was killed while it wrote
    total = sum(size for _, size, _ in known)
    for _, size, file in sorted(known):
        if total <= _LIMIT_BYTES:
            break
        if file != newest:
            with suppress(OSError):  # what cannot be thrown away does not keep the others
                file.unlink(missing_ok=True)
                total -= size
