"""Confine this process, then run a submission in it.

Started as a file by :mod:`cgprimer.course.checks.sandbox`; nothing of cgprimer is imported. The
setup comes as JSON on standard input. Results leave through three pipes, as lines:

- control, on what was standard output: ``{"protections": {...}}`` before a line of the submission
  has run, and ``{"ended": [code, signal, seconds]}``. The submission's process does not hold it.
- answers: ``{"loaded": ...}``, then ``{"request": 0, ...}`` with a value or a failure for each
  request. Code of the submission can write here as well; nothing but its own answers is read.
- libraries: the name of each library before its first file is opened.

What the submission prints goes to standard error. Three processes, where the kernel permits it:
this one, the first process of a process namespace, which supervises and takes everything with it
when it ends, and the submission's. The kernel's protections are in
:mod:`cgprimer.course.checks.kernel`. Source: https://man7.org/linux/man-pages/man2/getrlimit.2.html
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
Send = Callable[[dict[str, Any]], None]


def load_neighbor(name: str) -> Any:
    """Load a module that is next to this file, without its package."""
    path = os.path.join(os.path.dirname(__file__), *f"{name}.py".split("/"))
    spec = util.spec_from_file_location(name.replace("/", "_"), path)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


audit = load_neighbor("audit")


def readable_paths() -> list[str]:
    """Return the paths of Python and its libraries, which a submission may read."""
    prefixes = {os.path.realpath(p) for p in (sys.prefix, sys.base_prefix, sys.exec_prefix)}
    if "/usr" in prefixes:
        prefixes = (prefixes - {"/usr"}) | {"/usr/lib", "/usr/local/lib"}
    paths = [*prefixes, sys.prefix, sys.executable, os.path.realpath(sys.executable)]
    paths += ["/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/share/zoneinfo", "/etc/localtime"]
    paths += ["/etc/ld.so.cache", "/proc/cpuinfo"]
    paths += [f"/dev/{name}" for name in ("null", "zero", "urandom", "random")]
    for entry in sys.path:  # of an editable installation: its packages, not what is next to them
        real = os.path.realpath(entry)
        if os.path.basename(real) in ("site-packages", "dist-packages"):
            paths.append(real)
        elif os.path.isdir(real) and not any(audit.is_inside(real, p) for p in prefixes):
            with os.scandir(real) as entries:
                paths += [e.path for e in entries if os.path.exists(f"{e.path}/__init__.py")]
    return [path for path in dict.fromkeys(paths) if os.path.exists(path)]


# --- limits --------------------------------------------------------------------------------------


def set_limits(setup: dict[str, Any], counted_apart: bool) -> None:
    """Limit time, memory, files and processes.

    Args:
        setup: the setup of the sandbox.
        counted_apart: the processes of this submission are the only ones that the limit counts.
    """
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
    others = 0 if counted_apart else count_tasks(os.getuid())
    at_most("RLIMIT_NPROC", others + setup["processes"])


def count_tasks(uid: int) -> int:
    """Return how many processes and threads a user has: the limit counts them as well."""
    tasks = 0
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        with suppress(OSError, ValueError, IndexError):
            if name.isdecimal():
                with open(f"/proc/{name}/status") as file:
                    fields = dict(line.split(":", 1) for line in file)
                if int(fields["Uid"].split()[0]) == uid:
                    tasks += int(fields["Threads"])
    return tasks or 1000


# --- the processes -------------------------------------------------------------------------------


def descendants() -> set[int]:
    """Return the processes that come from this one, in any process group or session."""
    parents = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{name}/stat") as file:
            parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
    family = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return family - {os.getpid()}


def end_descendants() -> None:
    """End all descendants; they are stopped first, or they would fork meanwhile."""
    known: set[int] = set()
    while more := descendants() - known:
        for pid in more:
            with suppress(OSError):
                os.kill(pid, signal.SIGSTOP)
        known |= more
    for pid in known:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def supervise(worker: int, send: Send, in_namespace: bool, seconds: float) -> None:
    """Wait for the submission's process, say how it ended, and leave nothing of it behind.

    The first process of a namespace has nothing to end: the kernel does it.
    """

    def leave(*_: object) -> None:
        if LINUX and not in_namespace:
            end_descendants()
        elif not LINUX:
            with suppress(OSError):
                os.killpg(worker, signal.SIGKILL)
        os._exit(0)

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGALRM, leave)
    signal.alarm(ceil(3 * seconds) + 10)  # if the grader no longer waits
    while True:
        pid, status, used = os.wait4(-1, 0)
        if pid == worker:
            break
    code = os.waitstatus_to_exitcode(status)
    send({"ended": [max(code, 0), max(-code, 0), round(used.ru_utime + used.ru_stime, 2)]})
    leave()


def sender(descriptor: int) -> Send:
    """Return a function that writes lines of JSON, whatever becomes of ``json`` and ``os``."""
    encode, write = json.JSONEncoder().encode, os.write

    def send(line: dict[str, Any]) -> None:
        text = (encode(line) + "\n").encode()
        while text:
            text = text[write(descriptor, text) :]

    return send


def main() -> None:
    """Read the setup, confine this process, and run the submission."""
    data = b""
    while chunk := os.read(0, 1 << 20):
        data += chunk
    setup = json.loads(data)
    control = os.dup(1)
    answers, libraries = setup["pipes"] or (control, control)  # Windows has the one pipe
    for descriptor in (control, answers, libraries):
        os.set_inheritable(descriptor, False)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    answering = load_neighbor("answering")
    folder, readable, tell = os.getcwd(), readable_paths(), sender(control)
    protections: dict[str, str] = {}
    if hasattr(os, "fork"):
        protections = confine(setup, tell, folder, readable)
    else:
        write_files(setup["files"])
    audit.refuse_events(folder, readable, "files" not in protections, "network" not in protections)
    by = {what: protections.get(what, "python") for what in ("files", "network")}
    tell({"protections": {**protections, **by}})
    if control != answers:
        os.close(control)
    write, leave = os.write, os._exit

    def report_library(name: str) -> None:
        write(libraries, f"{name}\n".encode())

    audit.watch_libraries(setup["forbidden"], report_library)
    try:
        answering.work(setup, sender(answers))
    except BaseException:  # the submission has replaced what is needed to answer
        leave(3)
    leave(0)  # threads that live on do not matter


def confine(setup: dict[str, Any], tell: Send, folder: str, readable: list[str]) -> dict[str, str]:
    """Fork, and return in the submission's process, with what the kernel protects."""
    if not LINUX:
        write_files(setup["files"])
        if pid := os.fork():
            supervise(pid, tell, False, setup["time"])
        os.setpgid(0, 0)
        set_limits(setup, counted_apart=False)
        return {}
    # Loaded first: another user may not be able to read them.
    processes, users, namespaces, landlock, seccomp = (
        load_neighbor(f"kernel/{name}")
        for name in ("processes", "users", "namespaces", "landlock", "seccomp")
    )
    root = os.geteuid() == 0
    uid, capabilities = users.choose_user(setup["uid"], folder) if root else (None, 0)
    separate = setup["kernel"] and namespaces.enter_namespaces(folder, uid)
    write_files(setup["files"])
    if separate and (pid := os.fork()):
        processes.die_with_parent()
        os.waitpid(pid, 0)
        os._exit(0)
    # Without a namespace this process ends the others before it ends itself.
    processes.die_with_parent(signal.SIGKILL if separate else signal.SIGTERM)
    processes.adopt_orphans()
    processes.hide_memory()
    if pid := os.fork():
        supervise(pid, tell, separate, setup["time"])
    os.setpgid(0, 0)
    if uid is not None:
        users.become_user(uid, capabilities)
    elif root or separate:  # of root, or of the owner of a user namespace
        users.keep_capabilities()
    processes.die_with_parent()
    processes.hide_memory()
    set_limits(setup, separate or uid is not None)
    protections = {"processes": "kernel"} if separate else {}
    if uid is not None:
        protections["user"] = "kernel"
    if setup["kernel"]:
        if landlock.restrict_files(folder, readable):
            protections["files"] = "kernel"
        # Nobody counts the processes of root: then there are none but this.
        refused = seccomp.refuse_calls(alone=root and uid is None, same_user=uid is None)
        if refused or separate:
            protections["network"] = "kernel"
    return protections


def write_files(files: dict[str, str]) -> None:
    """Write the submission, and the driver, into the folder of this process."""
    for name, text in files.items():
        with open(name, "w", encoding="utf-8", newline="") as file:
            file.write(text)


if __name__ == "__main__":
    main()
