"""Confine this process, then run a submission in it.

:mod:`cgprimer.course.checks.sandbox` starts this file in a new process, which imports nothing of
cgprimer. The setup is read as JSON from standard input. Results are written to three pipes, as
lines of JSON or text:

- control, the original standard output: ``{"protections": {...}}`` before the submission runs,
  ``{"ended": [code, signal, seconds]}`` afterwards. The submission's process cannot write to it.
- answers: ``{"loaded": ...}``, then ``{"request": 0, ...}`` with a value or a failure for each
  request. Code of the submission can write to this pipe; the grader accepts only valid answers.
- libraries: the name of each library before its first file is opened.

The output of the submission goes to standard error. If the kernel permits it, there are three
processes: this one; the first process of a process namespace, which supervises the submission and
whose end ends all others; and the submission's process. The protections of the kernel are in
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

IS_LINUX = sys.platform == "linux"
Send = Callable[[dict[str, Any]], None]  # writes a line of JSON


def load_neighbor(name: str) -> Any:
    """Import a module or package from the folder of this file without importing cgprimer."""
    path = os.path.join(os.path.dirname(__file__), name)
    is_package = os.path.isdir(path)
    file = os.path.join(path, "__init__.py") if is_package else f"{path}.py"
    spec = util.spec_from_file_location(
        f"cgprimer_{name}", file, submodule_search_locations=[path] if is_package else None
    )
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module  # a package imports its modules by this name
    spec.loader.exec_module(module)
    return module


audit = load_neighbor("audit")


def find_readable_paths() -> list[str]:
    """Return the paths that a submission may read: Python, its libraries and system files."""
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


def set_limits(setup: dict[str, Any], counts_separately: bool) -> None:
    """Limit the time, memory, files and processes of this process and its descendants.

    Args:
        setup: the setup of the sandbox.
        counts_separately: True if the kernel counts only processes of this submission.
    """
    seconds = ceil(setup["time"])
    set_limit("RLIMIT_CPU", seconds, seconds + 1)
    set_limit("RLIMIT_AS", setup["memory"] * 2**20)
    set_limit("RLIMIT_FSIZE", setup["file_size"] * 2**20)
    set_limit("RLIMIT_NOFILE", 128)
    set_limit("RLIMIT_CORE", 0)
    existing = 0 if counts_separately else count_tasks(os.getuid())
    set_limit("RLIMIT_NPROC", existing + setup["processes"])


def set_limit(name: str, soft: int, hard: int | None = None) -> None:
    """Lower the resource limit with the given name, such as ``RLIMIT_CPU``."""
    import resource

    number = getattr(resource, name, None)
    if number is None:
        return
    maximum = resource.getrlimit(number)[1]
    limits = [soft, soft if hard is None else hard]
    if maximum != resource.RLIM_INFINITY:
        limits = [min(limit, maximum) for limit in limits]
    with suppress(ValueError, OSError):  # macOS has no limit of memory
        resource.setrlimit(number, (limits[0], limits[1]))


def count_tasks(uid: int) -> int:
    """Return the number of processes and threads of a user; 1000 if it cannot be determined."""
    tasks = 0
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        with suppress(OSError, ValueError, IndexError):
            if name.isdecimal():
                with open(f"/proc/{name}/status") as file:
                    fields = dict(line.split(":", 1) for line in file)
                if int(fields["Uid"].split()[0]) == uid:
                    tasks += int(fields["Threads"])
    return tasks or 1000


def find_descendants() -> set[int]:
    """Return the IDs of all descendants of this process, in any process group or session."""
    parents = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{name}/stat") as file:
            parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
    family = {os.getpid()}
    while children := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= children
    return family - {os.getpid()}


def end_descendants() -> None:
    """Kill all descendants of this process; suspend them first so that they cannot start others."""
    stopped: set[int] = set()
    while running := find_descendants() - stopped:
        for pid in running:
            with suppress(OSError):
                os.kill(pid, signal.SIGSTOP)
        stopped |= running
    for pid in stopped:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def supervise(submission: int, send: Send, in_namespace: bool, seconds: float) -> None:
    """Wait for the process of the submission, report how it ended, and kill its descendants.

    Args:
        submission: the ID of the submission's process.
        send: writes a line to the control pipe.
        in_namespace: True if this is the first process of a namespace: the kernel ends the other
            processes of the namespace when this process ends.
        seconds: the limit of computing time.
    """

    def end_all(*_: object) -> None:
        """Kill the submission and its descendants, and exit this process."""
        if IS_LINUX and not in_namespace:
            end_descendants()
        elif not IS_LINUX:
            with suppress(OSError):
                os.killpg(submission, signal.SIGKILL)
        os._exit(0)

    signal.signal(signal.SIGTERM, end_all)
    signal.signal(signal.SIGALRM, end_all)
    signal.alarm(ceil(3 * seconds) + 10)  # if the grader no longer waits
    while True:
        pid, status, usage = os.wait4(-1, 0)
        if pid == submission:
            break
    code = os.waitstatus_to_exitcode(status)
    computed = round(usage.ru_utime + usage.ru_stime, 2)
    send({"ended": [max(code, 0), max(-code, 0), computed]})
    end_all()


def create_sender(descriptor: int) -> Send:
    """Return a function that writes JSON lines to a descriptor, even if ``json`` is patched."""
    encode, write = json.JSONEncoder().encode, os.write

    def send(line: dict[str, Any]) -> None:
        """Write a dictionary to the file descriptor as one line of JSON."""
        data = (encode(line) + "\n").encode()
        while data:
            data = data[write(descriptor, data) :]

    return send


def main() -> None:
    """Read the setup, confine this process, and run the submission."""
    setup = read_setup()
    control = os.dup(1)
    answers, libraries = setup["pipes"] or (control, control)  # Windows has only one pipe
    for descriptor in (control, answers, libraries):
        os.set_inheritable(descriptor, False)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    answering = load_neighbor("answering")
    folder, readable, send_control = os.getcwd(), find_readable_paths(), create_sender(control)
    if hasattr(os, "fork"):
        protections = confine(setup, send_control, folder, readable)
    else:
        write_files(setup["files"])
        protections = {}
    by_python = {name: "python" for name in ("files", "network") if name not in protections}
    audit.refuse_events(folder, readable, "files" in by_python, "network" in by_python)
    send_control({"protections": protections | by_python})
    if control != answers:
        os.close(control)
    write, leave = os.write, os._exit

    def report_library(name: str) -> None:
        """Write the name of a library that the submission imported to the libraries pipe."""
        write(libraries, f"{name}\n".encode())

    audit.watch_libraries(setup["forbidden"], report_library)
    try:
        answering.answer_requests(setup, create_sender(answers))
    except BaseException:  # the submission has replaced functions that answering needs
        leave(3)
    leave(0)  # without waiting for threads of the submission


def read_setup() -> dict[str, Any]:
    """Read the setup of the sandbox, a JSON object, from standard input."""
    data = b""
    while chunk := os.read(0, 1 << 20):
        data += chunk
    setup: dict[str, Any] = json.loads(data)
    return setup


def confine(
    setup: dict[str, Any], send_control: Send, folder: str, readable: list[str]
) -> dict[str, str]:
    """Fork this process, supervise the child in the parent, and return only in the confined child.

    The parent process supervises the child and never returns.

    Args:
        setup: the setup of the sandbox.
        send_control: writes a line to the control pipe.
        folder: the working folder of the submission.
        readable: files and folders that the submission can read.

    Returns:
        The protections of the kernel that are in force, as ``{"files": "kernel"}``.
    """
    if IS_LINUX:
        return confine_on_linux(setup, send_control, folder, readable)
    write_files(setup["files"])
    if pid := os.fork():
        supervise(pid, send_control, False, setup["time"])
    os.setpgid(0, 0)
    set_limits(setup, counts_separately=False)
    return {}


def confine_on_linux(
    setup: dict[str, Any], send_control: Send, folder: str, readable: list[str]
) -> dict[str, str]:
    """Fork, and confine the child with namespaces, another user, limits, Landlock and seccomp.

    Arguments and returned value are those of :func:`confine`.
    """
    kernel = load_neighbor("kernel")  # now: another user may not be able to read its files
    is_root = os.geteuid() == 0
    uid, capabilities = kernel.users.choose_user(setup["uid"], folder) if is_root else (None, 0)
    in_namespace = setup["kernel"] and kernel.namespaces.enter_namespaces(folder, uid)
    write_files(setup["files"])
    if in_namespace and (pid := os.fork()):  # the child is the first process of the namespace
        kernel.processes.end_with_parent()
        os.waitpid(pid, 0)
        os._exit(0)
    # Outside a namespace, this process ends its descendants before it ends itself.
    kernel.processes.end_with_parent(signal.SIGKILL if in_namespace else signal.SIGTERM)
    kernel.processes.adopt_orphans()
    kernel.processes.hide_memory()
    if pid := os.fork():
        supervise(pid, send_control, in_namespace, setup["time"])
    os.setpgid(0, 0)
    if uid is not None:
        kernel.users.become_user(uid, capabilities)
    elif is_root or in_namespace:  # the owner of a user namespace has capabilities as well
        kernel.users.drop_capabilities()
    kernel.processes.end_with_parent()
    kernel.processes.hide_memory()
    set_limits(setup, counts_separately=in_namespace or uid is not None)
    protections = {"processes": "kernel"} if in_namespace else {}
    if uid is not None:
        protections["user"] = "kernel"
    if setup["kernel"]:
        if kernel.landlock.restrict_files(folder, readable):
            protections["files"] = "kernel"
        # The kernel does not limit the number of root's processes, so root gets only this one.
        refuses_calls = kernel.seccomp.refuse_calls(
            no_processes=is_root and uid is None, same_user=uid is None
        )
        if refuses_calls or in_namespace:
            protections["network"] = "kernel"
    return protections


def write_files(files: dict[str, str]) -> None:
    """Write the submission and the driver into the working folder."""
    for name, text in files.items():
        with open(name, "w", encoding="utf-8", newline="") as file:
            file.write(text)


if __name__ == "__main__":
    main()
