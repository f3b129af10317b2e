"""The disk cache: compiled code and large derivative programs in the user's cache folder.

Files are written atomically, carry a checksum of their name and content, and are named after
everything that their content depends on. If anything is wrong with the folder or a file (corrupt,
foreign, unreadable, disk full, read-only home), the content is computed again: the cache never
makes a program fail.

Cached code is executed, so nobody else may be able to write it: as in ssh, a folder or file is
used only if the user owns it and nobody else can write to it or to a folder above it. (On systems
without such owners, as Windows, this is left to the protection of the folder.)

``CGPRIMER_CACHE`` sets another folder; ``CGPRIMER_CACHE=off`` switches the cache off.
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
from cgprimer.support.files import write_atomically

_MAGIC = b"cgprimer cache 2\n"
_LIMIT_BYTES, _LIMIT_FILES = 512 * 2**20, 4096  # every store lists all files
_SUFFIX = ".cgc"
_OFF = ("", "off", "0", "none")
_ABANDONED = 86_400.0  # seconds
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def find_cache_folder() -> Path | None:
    """Return the cache folder, with symbolic links resolved; None if the cache is off.

    Warns once if other users can write to the folder.
    """
    path, problem = _find_usable_folder()
    if problem:
        _warn_once(problem)
    return path


def memory_caching_enabled() -> bool:
    """Return whether this process may cache compiled code in memory."""
    return os.environ.get("CGPRIMER_CACHE", "on").strip().lower() not in _OFF


def describe_cache() -> str:
    """Return the path of the cache folder, or the reason why nothing is cached."""
    path, problem = _find_usable_folder()
    reason = f"disabled: {problem}" if problem else "disabled"
    return reason if path is None else str(path)


def _find_usable_folder() -> tuple[Path | None, str]:
    """Return the cache folder and an empty string, or None and the reason not to use it."""
    path = _find_configured_folder()
    problem = "" if path is None else _explain_unsafe_folder(path)
    return (None if problem else path), problem


def _find_configured_folder() -> Path | None:
    """Return the folder of ``CGPRIMER_CACHE`` or the default folder; None if the cache is off."""
    chosen = os.environ.get("CGPRIMER_CACHE")
    try:
        if chosen is not None:
            off = chosen.strip().lower() in _OFF
            return None if off else Path(os.path.realpath(chosen))
        home = Path.home()
    except (RuntimeError, OSError, ValueError):  # no home folder; an impossible name
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


def _explain_unsafe_folder(folder: Path) -> str:
    """Return why a folder is unsafe (other users can modify it); empty if it is safe."""
    if not hasattr(os, "geteuid"):
        return ""
    for path in (folder, *folder.parents):
        try:
            status = path.lstat()
        except OSError:  # missing: it will be created for the user only
            continue
        # In a folder like /tmp only the owner of a file can replace it.
        shared = stat.S_IMODE(status.st_mode) & 0o022
        if shared and (path == folder or not status.st_mode & stat.S_ISVTX):
            return f"other users can write to {path}"
        if status.st_uid not in ((os.geteuid(),) if path == folder else (0, os.geteuid())):
            return f"{path} belongs to another user"
    return ""


@lru_cache
def _warn_once(problem: str) -> None:
    """Warn that the disk cache is disabled, once for each reason."""
    warnings.warn(f"the cache of compiled code is disabled: {problem}", stacklevel=2)


@lru_cache(maxsize=1)
def fingerprint_package() -> str:
    """Return a hash of the version and the source files of the package.

    All cached content depends on it.
    """
    root = Path(__file__).parent.parent
    states = []
    with suppress(OSError):  # a package in an archive has no files, only a version
        for file in sorted(root.rglob("*.py")):
            status = file.stat()
            states.append(f"{file.relative_to(root)} {status.st_size} {status.st_mtime_ns}")
    return compute_cache_key(__version__, *states)


def compute_cache_key(*parts: str | bytes) -> str:
    """Return a hash of the given strings, used as the key of cached content.

    >>> compute_cache_key("a", "bc") == compute_cache_key("ab", "c")
    False
    """
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def load_or_compute(kind: str, key: str, compute: Callable[[], bytes]) -> bytes:
    """Return cached content; compute and store the content if it is missing.

    Args:
        kind: the first part of the file name, such as ``code``.
        key: from :func:`compute_cache_key`.
        compute: computes the content.
    """
    content = load_content(kind, key)
    if content is None:
        content = compute()
        store_content(kind, key, content)
    return content


def load_content(kind: str, key: str) -> bytes | None:
    """Return the cached content with the given key; None if it is missing or not trusted."""
    directory = find_cache_folder()
    if directory is None:
        return None
    name = f"{kind}-{key}{_SUFFIX}"
    try:
        with open(os.open(directory / name, os.O_RDONLY | _NO_LINK), "rb") as file:
            status = os.fstat(file.fileno())
            if hasattr(os, "geteuid") and (
                status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o022
            ):
                return None
            data = file.read()
    except (OSError, ValueError):
        return None
    with suppress(OSError):
        os.utime(directory / name)  # the least recently used files are deleted first
    start = len(_MAGIC) + hashlib.sha256().digest_size
    content = data[start:]
    return content if data[:start] == _create_header(name, content) else None


def store_content(kind: str, key: str, content: bytes) -> bool:
    """Store content in the cache under the given key, and return whether this succeeded."""
    directory = find_cache_folder()
    if directory is None:
        return False
    target = directory / f"{kind}-{key}{_SUFFIX}"
    try:
        parents = (directory, *directory.parents)
        for missing in reversed([path for path in parents if not path.exists()]):
            missing.mkdir(mode=0o700, exist_ok=True)
        write_atomically(target, _create_header(target.name, content) + content, private=True)
        _delete_oldest_files(directory, target.name)
    except (OSError, ValueError, UsageError):
        return False
    return True


def _create_header(name: str, content: bytes) -> bytes:
    """Return the first bytes of a cache file: a checksum of its name and content."""
    return _MAGIC + hashlib.sha256(name.encode() + b"\n" + content).digest()


def _delete_oldest_files(directory: Path, newest: str) -> None:
    """Delete the least recently used cache files until their number and size are within limits."""
    files = []
    for file in os.scandir(directory):
        with suppress(OSError):
            status = file.stat()
            if file.name.endswith(_SUFFIX):
                files.append((status.st_mtime, status.st_size, file.name))
            elif file.name.endswith(".part") and status.st_mtime < time.time() - _ABANDONED:
                os.unlink(file)  # of a process that was killed while it wrote
    total, count = sum(size for _, size, _ in files), len(files)
    for _, size, name in sorted(files):
        if total <= _LIMIT_BYTES and count <= _LIMIT_FILES:
            break
        if name != newest:
            with suppress(OSError):  # a file that cannot be deleted does not protect the others
                (directory / name).unlink(missing_ok=True)
                total, count = total - size, count - 1
