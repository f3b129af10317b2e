"""Watch what Python code of a submission does, by Python's audit events.

An audit hook cannot be removed by Python code. It does not see what machine code does, and code
that changes the interpreter itself (through ``ctypes``, for example) can work around it: the
kernel's protections are the stronger ones. Nothing of cgprimer is imported.
Source: https://docs.python.org/3/library/audit_events.html
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections.abc import Callable, Iterable
from typing import Any

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = {  # event -> how many of its first arguments are paths
    **dict.fromkeys(("os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.utime"), 1),
    **dict.fromkeys(("os.chmod", "os.chown", "os.chflags", "os.setxattr", "os.removexattr"), 1),
    **dict.fromkeys(("os.rename", "os.link", "os.symlink"), 2),
}
_PROCESSES = ("os.kill", "os.killpg", "resource.prlimit")  # the first argument is a process
_STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.startfile")


def is_inside(path: str, folder: str) -> bool:
    """Return whether a path is a folder, or in it."""
    return path == folder or path.startswith(folder.rstrip("/\\") + os.sep)


def refuse_events(folder: str, readable: Iterable[str], files: bool, network: bool) -> None:
    """Refuse what the kernel does not refuse here.

    Args:
        folder: the only place where files may be written.
        readable: other places where files may be read.
        files: refuse other files, other processes and other programs.
        network: refuse sockets.
    """
    allowed = (*readable, folder)
    real, decode, inside = os.path.realpath, os.fsdecode, is_inside
    itself = (0, os.getpid())

    def is_allowed(path: Any, places: Iterable[str]) -> bool:
        found = real(decode(path))
        return any(inside(found, place) for place in places)

    def refuse(event: str, arguments: Any) -> None:
        if network and event.startswith("socket."):
            raise PermissionError(f"a submission has no network ({event})")
        if not files:
            return
        first = arguments[0] if arguments else None
        if event in ("os.listdir", "os.scandir") and isinstance(first, str | bytes):
            if not is_allowed(first, allowed):
                raise PermissionError(f"a submission may not look into {first!r}")
        elif event == "open" and isinstance(first, str | bytes | os.PathLike):
            writes = isinstance(arguments[2], int) and arguments[2] & _WRITING
            writes = writes and real(decode(first)) != os.devnull
            if not is_allowed(first, (folder,) if writes else allowed):
                raise PermissionError(f"a submission may not open {first!r}")
        elif event in _CHANGES:
            for path in arguments[: _CHANGES[event]]:
                if isinstance(path, int) or not is_allowed(path, (folder,)):
                    raise PermissionError(f"a submission may not change {path!r}")
        elif event in _PROCESSES and first not in itself:
            raise PermissionError(f"a submission may not control other processes ({event})")
        elif event in _STARTS:
            raise PermissionError(f"a submission may not start programs ({event})")

    sys.addaudithook(refuse)


def watch_libraries(forbidden: Iterable[str], report: Callable[[str], None]) -> None:
    """Report each library before its first file is opened, and refuse forbidden ones.

    Files are watched rather than import statements, so that ``importlib`` and copies of a
    library's text are seen as well.
    """
    refused, seen = frozenset(forbidden), set[str]()
    library_of = _library_finder()

    def watch(event: str, arguments: Any) -> None:
        if event == "import":
            name, file = arguments[0].partition(".")[0], arguments[1]
            if name in refused:
                raise ImportError(f"{name} may not be imported in this homework")
        elif event == "open":
            file = arguments[0]
        else:
            return
        if not isinstance(file, str | bytes | os.PathLike):
            return
        library = library_of(os.fsdecode(file))
        if library in refused:
            raise ImportError(f"{library} may not be imported in this homework")
        if library and library not in seen:
            seen.add(library)
            report(library)

    sys.addaudithook(watch)


def _library_finder() -> Callable[[str], str]:
    """Return a function from a file to its library: the name below an entry of ``sys.path``.

    Python's own modules and what is not below such an entry belong to no library: ``""``.
    """
    real, inside = os.path.realpath, is_inside
    paths = sysconfig.get_paths()
    standard = {real(paths[name]) for name in ("stdlib", "platstdlib")}
    standard |= {os.path.join(folder, "lib-dynload") for folder in standard}
    places = {real(path) for path in sys.path if os.path.isdir(path)} | standard
    ordered = sorted(places, key=len, reverse=True)  # the innermost one counts
    identifier = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,60}")

    def library_of(file: str) -> str:
        path = real(file)
        place = next((folder for folder in ordered if inside(path, folder)), "")
        if not place or place in standard:
            return ""
        names = path[len(place) :].strip(os.sep).split(os.sep)
        name = names[1 if names[0] == "__pycache__" and len(names) > 1 else 0].partition(".")[0]
        return name if identifier.fullmatch(name) else ""

    return library_of
