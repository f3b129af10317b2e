"""The process that a submission runs in, and what is taken from it before it does.

Started as a file of its own, by :mod:`cgprimer.checking.sandbox`; nothing of cgprimer is imported.
The setup comes as JSON on standard input, answers leave as lines of JSON on what was standard
output, and what the submission prints goes where errors go:

    {"protections": {...}}   before a line of the submission has run
    {"loaded": ...}          it was imported, or why not
    {"request": 0, ...}      a value or a failure, for each request
    {"modules": [...]}       what it imported, when all is done
    {"ended": [0, 9, 5]}     its exit code, the signal that ended it, seconds of computing

Three processes, where the kernel lets us: this one, the first process of a namespace of its own,
which takes everything with it when it ends, and the submission's. What it is
kept from is in :mod:`cgprimer.checking.linux`. Source: the manual page getrlimit(2).
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import util
from math import ceil
from typing import Any

LINUX = sys.platform == "linux"
Say = Callable[[dict[str, Any]], None]


def beside(name: str) -> Any:
    """A module that lies beside this file; the package is not imported."""
    spec = util.spec_from_file_location(name, os.path.join(os.path.dirname(__file__), f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def readable() -> list[str]:
    """Python and its libraries: what a submission may read beside its own folder."""
    prefixes = {os.path.realpath(p) for p in (sys.prefix, sys.base_prefix, sys.exec_prefix)}
    if "/usr" in prefixes:
        prefixes = (prefixes - {"/usr"}) | {"/usr/lib", "/usr/local/lib"}
    found = [*prefixes, sys.prefix, sys.executable, os.path.realpath(sys.executable)]
    found += ["/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/share/zoneinfo", "/etc/localtime"]
    found += ["/etc/ld.so.cache", "/proc/cpuinfo"]
    found += [f"/dev/{name}" for name in ("null", "zero", "urandom", "random")]
    for place in sys.path:  # of a project that is worked on: its packages, not what lies beside
        real = os.path.realpath(place)
        if os.path.isdir(real) and not any(inside(real, p) for p in prefixes):
            with os.scandir(real) as entries:
                found += [e.path for e in entries if os.path.exists(f"{e.path}/__init__.py")]
    return [path for path in dict.fromkeys(found) if os.path.exists(path)]


def inside(path: str, folder: str) -> bool:
    """Whether a path is a folder, or in it."""
    return path == folder or path.startswith(folder.rstrip("/\\") + os.sep)


# --- where the kernel has none of it: Python's own events ---------------------------------------


def refuse_events(folder: str, readable: list[str], files: bool, network: bool) -> None:
    """An audit hook, which stops what is written in Python, but not who works around it."""
    allowed = [*readable, folder]
    real, decode, under = os.path.realpath, os.fsdecode, inside
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    changed = ("remove", "mkdir", "rmdir", "chmod", "chown", "truncate", "utime")
    changes = {f"os.{name}": 1 for name in changed}  # of so many paths
    changes |= {f"os.{name}": 2 for name in ("rename", "link", "symlink")}
    starts = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.startfile")
    own = (0, os.getpid())

    def refuse(event: str, given: Any) -> None:
        if network and event.startswith("socket."):
            raise PermissionError(f"a submission has no network ({event})")
        if not files:
            return
        if event in ("os.listdir", "os.scandir") and isinstance(given[0], str | bytes):
            if not any(under(real(decode(given[0])), a) for a in allowed):
                raise PermissionError(f"a submission may not look into {given[0]!r}")
        elif event == "open" and isinstance(given[0], str | bytes | os.PathLike):
            path = real(decode(given[0]))
            writes = isinstance(given[2], int) and given[2] & writing and path != os.devnull
            if not any(under(path, a) for a in ([folder] if writes else allowed)):
                raise PermissionError(f"a submission may not open {path}")
        elif event in changes:
            for name in given[: changes[event]]:
                if isinstance(name, int) or not under(real(decode(name)), folder):
                    raise PermissionError(f"a submission may not change {name}")
        elif event in ("os.kill", "os.killpg") and given[0] not in own:
            raise PermissionError(f"a submission may not end others ({event})")
        elif event in starts:
            raise PermissionError(f"a submission may not start programs ({event})")

    sys.addaudithook(refuse)


# --- limits --------------------------------------------------------------------------------------


def limit(setup: dict[str, Any], counted_apart: bool) -> None:
    """Time, memory, files and processes."""
    import resource

    def at_most(what: str, soft: int, hard: int | None = None) -> None:
        number = getattr(resource, what, None)
        if number is None:
            return
        top = resource.getrlimit(number)[1]
        bounds = [n if top == resource.RLIM_INFINITY else min(n, top) for n in (soft, hard or soft)]
        with suppress(ValueError, OSError):  # macOS has no limit of memory
            resource.setrlimit(number, (bounds[0], bounds[1]))

    seconds = ceil(setup["time"])
    at_most("RLIMIT_CPU", seconds, seconds + 1)
    at_most("RLIMIT_AS", setup["memory"] * 2**20)
    at_most("RLIMIT_FSIZE", setup["file_size"] * 2**20)
    at_most("RLIMIT_NOFILE", 128)
    at_most("RLIMIT_CORE", 0)
    others = 0 if counted_apart else tasks_of(os.getuid())
    at_most("RLIMIT_NPROC", others + setup["processes"])


def tasks_of(uid: int) -> int:
    """How many processes and threads a user has: they count in the limit, too."""
    found = 0
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        try:
            if name.isdecimal() and os.stat(f"/proc/{name}").st_uid == uid:
                found += len(os.listdir(f"/proc/{name}/task"))
        except OSError:
            continue
    return found or 1000


# --- the processes -------------------------------------------------------------------------------


def descendants() -> set[int]:
    """Processes that come from this one, in whatever group or session they are now."""
    parents = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{name}/stat") as file:
            parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {os.getpid()}


def end_descendants() -> None:
    """End them all; they are stopped first, as others would be born meanwhile."""
    known: set[int] = set()
    while more := descendants() - known:
        for pid in more:
            with suppress(OSError):
                os.kill(pid, signal.SIGSTOP)
        known |= more
    for pid in known:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def supervise(worker: int, say: Say, last: bool, seconds: float) -> None:
    """Wait for the submission's process, and leave nothing of it behind.

    As the first process of a namespace there is nothing to do: the kernel ends the others.
    """

    def leave(*_: object) -> None:
        if LINUX and not last:
            end_descendants()
        elif not LINUX:
            with suppress(OSError):
                os.killpg(worker, signal.SIGKILL)
        os._exit(0)

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGALRM, leave)
    signal.alarm(ceil(3 * seconds) + 10)  # if nobody waits any more
    while True:
        pid, status, used = os.wait4(-1, 0)
        if pid == worker:
            break
    code = os.waitstatus_to_exitcode(status)
    say({"ended": [max(code, 0), max(-code, 0), round(used.ru_utime + used.ru_stime, 2)]})
    leave()


def main() -> None:
    """The sandboxed process."""
    data = b""
    while chunk := os.read(0, 1 << 20):
        data += chunk
    setup = json.loads(data)
    answers = os.dup(1)
    os.set_inheritable(answers, False)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    encode, write = json.JSONEncoder().encode, os.write

    def say(line: dict[str, Any]) -> None:
        text = (encode(line) + "\n").encode()
        while text:
            text = text[write(answers, text) :]

    answering = beside("answering")
    folder, libraries = os.getcwd(), readable()
    held: dict[str, str] = {}
    if hasattr(os, "fork"):
        held = confine(setup, say, folder, libraries)
    else:
        put(setup["files"])
    refuse_events(folder, libraries, "files" not in held, "network" not in held)
    by = {what: held.get(what, "python") for what in ("files", "network")}
    say({"protections": {**held, **by}})
    leave = os._exit
    try:
        answering.work(setup, say)
    except BaseException:  # nothing is what it was: the submission has replaced it
        leave(3)
    leave(0)  # threads that live on do not matter


def confine(setup: dict[str, Any], say: Say, folder: str, readable: list[str]) -> dict[str, str]:
    """Fork, and return in the submission's process, with what the kernel keeps from it."""
    if not LINUX:
        put(setup["files"])
        if pid := os.fork():
            supervise(pid, say, False, setup["time"])
        os.setpgid(0, 0)
        limit(setup, counted_apart=False)
        return {}
    linux = beside("linux")
    root = os.geteuid() == 0
    uid, capabilities = linux.another_user(setup["uid"], folder) if root else (None, 0)
    apart = setup["kernel"] and linux.own_namespaces(folder, uid)
    put(setup["files"])
    if apart and (pid := os.fork()):
        linux.die_with_parent()
        os.waitpid(pid, 0)
        os._exit(0)
    linux.die_with_parent()
    linux.adopt_orphans()
    if pid := os.fork():
        supervise(pid, say, apart, setup["time"])
    os.setpgid(0, 0)
    held = {"processes": "kernel"} if apart else {}
    if root:
        linux.become(uid, capabilities)
    if uid is not None:
        held["user"] = "kernel"
    linux.die_with_parent()
    limit(setup, apart or uid is not None)
    if setup["kernel"]:
        if linux.lock_files(folder, readable):
            held["files"] = "kernel"
        # Nobody counts the processes of root: then there are none but this.
        if linux.refuse_calls(alone=root and uid is None, same_user=uid is None) or apart:
            held["network"] = "kernel"
    return held


def put(files: dict[str, str]) -> None:
    """Write the submission, and the driver, into the folder of this process."""
    for name, text in files.items():
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
