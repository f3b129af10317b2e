"""Restrict the Python code of a submission by Python's audit events.

Python code cannot remove an audit hook. However, audit hooks do not see machine code, and code
that changes the interpreter itself (through ``ctypes``, for example) can circumvent them. The
kernel's protections are stronger. This module imports nothing of cgprimer.
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
_CHANGES = {  # event -> the number of its leading arguments that are paths
    **dict.fromkeys(("os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.utime"), 1),
    **dict.fromkeys(("os.chmod", "os.chown", "os.chflags", "os.setxattr", "os.removexattr"), 1),
    **dict.fromkeys(("os.rename", "os.link", "os.symlink"), 2),
}
_PROCESS_CONTROLS = ("os.kill", "os.killpg", "resource.prlimit")  # first argument: a process
_PROGRAM_STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.startfile")


def is_inside(path: str, folder: str) -> bool:
    """Return whether a path is the given folder or lies inside it."""
    return path == folder or path.startswith(folder.rstrip("/\\") + os.sep)


def refuse_events(folder: str, readable: Iterable[str], files: bool, network: bool) -> None:
    """Install an audit hook that denies file, process and network operations outside the sandbox.

    Args:
        folder: the only folder in which files can be written.
        readable: further files and folders that can be read.
        files: refuse access to other files, other processes and other programs.
        network: refuse sockets.
    """
    allowed = (*readable, folder)
    # Local names, as the submission can replace functions of modules.
    resolve, decode, is_in = os.path.realpath, os.fsdecode, is_inside
    own_ids = (0, os.getpid())

    def is_allowed(path: Any, folders: Iterable[str]) -> bool:
        """Return whether a path, with links resolved, lies inside one of the folders."""
        resolved = resolve(decode(path))
        return any(is_in(resolved, folder) for folder in folders)

    def refuse(event: str, arguments: Any) -> None:
        """Raise PermissionError if an audit event is not allowed."""
        if network and event.startswith("socket."):
            raise PermissionError(f"a submission may not access the network ({event})")
        if not files:
            return
        first = arguments[0] if arguments else None
        if event in ("os.listdir", "os.scandir") and isinstance(first, str | bytes):
            if not is_allowed(first, allowed):
                raise PermissionError(f"a submission cannot list {first!r}")
        elif event == "open" and isinstance(first, str | bytes | os.PathLike):
            writes = isinstance(arguments[2], int) and arguments[2] & _WRITING
            writes = writes and resolve(decode(first)) != os.devnull
            if not is_allowed(first, (folder,) if writes else allowed):
                raise PermissionError(f"a submission cannot open {first!r}")
        elif event in _CHANGES:
            for path in arguments[: _CHANGES[event]]:
                if isinstance(path, int) or not is_allowed(path, (folder,)):
                    raise PermissionError(f"a submission cannot change {path!r}")
        elif event in _PROCESS_CONTROLS and first not in own_ids:
            raise PermissionError(f"a submission cannot control other processes ({event})")
        elif event in _PROGRAM_STARTS:
            raise PermissionError(f"a submission cannot start programs ({event})")

    sys.addaudithook(refuse)


def watch_libraries(forbidden: Iterable[str], report: Callable[[str], None]) -> None:
    """Install an audit hook that reports each imported library and refuses forbidden libraries.

    The hook watches files, not only import statements, to detect ``importlib`` and copies of a
    library's code.

    Args:
        forbidden: names of libraries that cannot be imported.
        report: called once with the name of each library.
    """
    refused, reported = frozenset(forbidden), set[str]()
    find_library = _create_library_finder()

    def watch(event: str, arguments: Any) -> None:
        """Report or refuse the library that an ``import`` or ``open`` event is about to load."""
        if event == "import":
            name, file = arguments[0].partition(".")[0], arguments[1]
            if name in refused:
                raise ImportError(f"{name} is not allowed in this assignment")
        elif event == "open":
            file = arguments[0]
        else:
            return
        if not isinstance(file, str | bytes | os.PathLike):
            return
        library = find_library(os.fsdecode(file))
        if library in refused:
            raise ImportError(f"{library} is not allowed in this assignment")
        if library and library not in reported:
            reported.add(library)
            report(library)

    sys.addaudithook(watch)


def _create_library_finder() -> Callable[[str], str]:
    """Return a function that finds the name of the library to which a file belongs.

    The name is the first below a folder of ``sys.path``. For Python's own modules, and for files
    outside the folders of ``sys.path``, the function returns ``""``.
    """
    resolve, is_in = os.path.realpath, is_inside
    paths = sysconfig.get_paths()
    standard = {resolve(paths[name]) for name in ("stdlib", "platstdlib")}
    standard |= {os.path.join(folder, "lib-dynload") for folder in standard}
    folders = {resolve(path) for path in sys.path if os.path.isdir(path)} | standard
    innermost_first = sorted(folders, key=len, reverse=True)
    identifier = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,60}")

    def find_library(file: str) -> str:
        """Return the name of the library to which a file belongs, or an empty string."""
        path = resolve(file)
        folder = next((folder for folder in innermost_first if is_in(path, folder)), "")
        if not folder or folder in standard:
            return ""
        names = path[len(folder) :].strip(os.sep).split(os.sep)
        name = names[1 if names[0] == "__pycache__" and len(names) > 1 else 0].partition(".")[0]
        return name if identifier.fullmatch(name) else ""

    return find_library
