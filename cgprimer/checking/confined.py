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
which takes everything with it when it ends, and the submission's. Sources: the manual pages
namespaces(7), landlock(7), seccomp(2), getrlimit(2), prctl(2).
"""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import util
from math import ceil
from typing import Any

LINUX = sys.platform == "linux"
Say = Callable[[dict[str, Any]], None]
_NEW_USER, _NEW_NET, _NEW_PID, _NEW_IPC, _NEW_MOUNTS = (
    0x10000000, 0x40000000, 0x20000000, 0x08000000, 0x00020000,
)  # fmt: skip
_DEATH_SIGNAL, _KEEP_CAPABILITIES, _SECCOMP, _SUBREAPER, _NO_NEW_PRIVILEGES = 1, 8, 22, 36, 38
_READ_ALL = 1 << 2  # CAP_DAC_READ_SEARCH
_DISK = 64  # megabytes, of all files together
# What a calculation needs none of: sockets, and ways into other processes.
_REFUSED = {  # machine -> its number in seccomp, numbers of system calls: socket, ptrace,
    # process_vm_readv, process_vm_writev, unshare, setns, io_uring_setup, pidfd_getfd, keyctl;
    # clone3, clone, fork, vfork
    "x86_64": (0xC000003E, (41, 101, 310, 311, 272, 308, 425, 438, 250), (435, 56, 57, 58)),
    "aarch64": (0xC00000B7, (198, 117, 270, 271, 97, 268, 425, 438, 219), (435, 220)),
}


def kernel() -> Any:
    """The C library."""
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


# --- namespaces: processes, network, files that are gone afterwards ------------------------------


def own_namespaces(folder: str, uid: int | None) -> set[str]:
    """Leave the machine's network and processes; which of it the kernel has permitted."""
    libc = kernel()
    flags = _NEW_NET | _NEW_PID | _NEW_IPC | _NEW_MOUNTS
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(flags) != 0:  # root may; others as root of a namespace of users
        if uid is not None or libc.unshare(flags | _NEW_USER) != 0:
            return set()
        try:  # the folder's files belong to somebody
            for name, text in (
                ("setgroups", "deny"),
                ("uid_map", f"{user} {user} 1"),
                ("gid_map", f"{group} {group} 1"),
            ):
                with open(f"/proc/self/{name}", "w") as file:
                    file.write(text)
        except OSError:
            return {"network", "processes"}
    private, harmless = 1 << 18 | 1 << 14, 1 << 1 | 1 << 2  # and recursive; no suid, no devices
    options = f"size={_DISK}m,mode=700,uid={user if uid is None else uid},gid={group}".encode()
    if libc.mount(b"none", b"/", None, private, None) == 0:
        libc.mount(b"none", os.fsencode(folder), b"tmpfs", harmless, options)
        os.chdir(folder)
    return {"network", "processes"}


# --- Landlock: which files ----------------------------------------------------------------------


def readable() -> list[str]:
    """Python and its libraries: what a submission may read beside its own folder."""
    prefixes = {os.path.realpath(p) for p in (sys.prefix, sys.base_prefix, sys.exec_prefix)}
    if "/usr" in prefixes:
        prefixes = (prefixes - {"/usr"}) | {"/usr/lib", "/usr/local/lib"}
    found = [*prefixes, sys.prefix, sys.executable, os.path.realpath(sys.executable)]
    found += ["/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/share/zoneinfo", "/etc/localtime"]
    found += [
        "/etc/ld.so.cache",
        "/dev/null",
        "/dev/zero",
        "/dev/urandom",
        "/dev/random",
        "/proc/cpuinfo",
    ]
    for place in sys.path:  # of a project that is worked on: its packages, not what lies beside
        real = os.path.realpath(place)
        if os.path.isdir(real) and not any(inside(real, p) for p in prefixes):
            with os.scandir(real) as entries:
                found += [e.path for e in entries if os.path.exists(f"{e.path}/__init__.py")]
    return [path for path in dict.fromkeys(found) if os.path.exists(path)]


def inside(path: str, folder: str) -> bool:
    """Whether a path is a folder, or in it."""
    return path == folder or path.startswith(folder.rstrip("/\\") + os.sep)


def lock_files(folder: str, readable: list[str]) -> bool:
    """No file but Python's, to be read, and the folder's; no signals to processes outside."""
    libc = kernel()
    create, add, restrict = 444, 445, 446
    version = libc.syscall(create, None, 0, 1)
    if version < 1:
        return False
    # Execute, read files, read folders; all that there is to be done with files.
    reading, everything = 0b1101, (1 << (13, 14, 15, 15, 16)[min(version, 5) - 1]) - 1
    of_files = 0b0111 | everything & (1 << 14 | 1 << 15)
    network, scopes = (0b11 if version >= 4 else 0), (0b11 if version >= 6 else 0)
    rules = struct.pack("QQQ", everything, network, scopes)
    rules = rules[: 8 if version < 4 else 16 if version < 6 else 24]
    ruleset = libc.syscall(create, rules, len(rules), 0)
    if ruleset < 0:
        return False
    devices = ("/dev/null", "/dev/zero")
    for path in (*readable, folder):
        try:
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        rights = everything if path == folder else reading | (0b10 if path in devices else 0)
        if not os.path.isdir(path):
            rights &= of_files
        libc.syscall(add, ruleset, 1, struct.pack("=Qi", rights, opened), 0)
        os.close(opened)
    done = libc.syscall(restrict, ruleset, 0)
    os.close(ruleset)
    return bool(done == 0)


# --- seccomp: which system calls ----------------------------------------------------------------


def refuse_calls(alone: bool) -> bool:
    """No sockets, of any family, no way into other processes; and alone no further ones."""
    import ctypes

    if os.uname().machine not in _REFUSED:
        return False
    machine, always, starting = _REFUSED[os.uname().machine]
    numbers = (*always, *starting) if alone else always
    load, equal, at_least, give = 0x20, 0x15, 0x35, 0x06
    allow, deny = 0x7FFF0000, 0x00050000 | 13  # EACCES
    rest = len(numbers)
    lines = [(load, 0, 0, 4), (equal, 0, rest + 3, machine), (load, 0, 0, 0)]
    lines += [(at_least, rest + 1, 0, 1 << 30)]  # the other numbering of x86_64
    lines += [(equal, rest - i, 0, number) for i, number in enumerate(numbers)]
    lines += [(give, 0, 0, allow), (give, 0, 0, deny)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    program = struct.pack("HxxxxxxP", len(lines), ctypes.addressof(code))
    return bool(kernel().prctl(_SECCOMP, 2, program, 0, 0) == 0)


# --- where the kernel has none of it: Python's own events ---------------------------------------


def refuse_events(folder: str, readable: list[str], files: bool, network: bool) -> None:
    """An audit hook, which stops what is written in Python, but not who works around it."""
    allowed = [*readable, folder]
    real, decode, under = os.path.realpath, os.fsdecode, inside
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    changes = (
        "os.remove",
        "os.rename",
        "os.mkdir",
        "os.rmdir",
        "os.chmod",
        "os.link",
        "os.symlink",
    )
    starts = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.startfile")

    def refuse(event: str, given: Any) -> None:
        if network and event.startswith("socket."):
            raise PermissionError(f"a submission has no network ({event})")
        if not files:
            return
        if event in ("os.listdir", "os.scandir") and isinstance(given[0], str | bytes):
            if not any(under(real(decode(given[0])), a) for a in allowed):
                raise PermissionError(f"a submission may not look into {given[0]!r}")
        elif event == "open" and isinstance(given[0], str | bytes):
            path = real(decode(given[0]))
            writes = isinstance(given[2], int) and given[2] & writing and path != os.devnull
            if not any(under(path, a) for a in ([folder] if writes else allowed)):
                raise PermissionError(f"a submission may not open {path}")
        elif event in changes and not under(real(decode(given[0])), folder):
            raise PermissionError(f"a submission may not change {given[0]}")
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


def another_user(uid: int, folder: str) -> tuple[int | None, int]:
    """Whom root can run a submission as, and the capabilities that this takes.

    A user who owns nothing but the folder. Where Python itself lies in a folder that is closed to
    others, the right to read what is not one's own stays; Landlock then says what. Nobody, in a
    container that has no other users, or where that right is not there.
    """
    places = (sys.prefix, sys.base_prefix, os.path.dirname(json.__file__))
    try:
        os.chown(folder, uid, uid)
        os.seteuid(uid)
        open_to_all = all(os.access(p, os.R_OK | os.X_OK, effective_ids=True) for p in places)
        os.seteuid(0)
        if open_to_all:
            return uid, 0
        with open("/proc/self/status") as file:
            capabilities = int(file.read().partition("CapEff:")[2].split()[0], 16)
        if capabilities & _READ_ALL and LINUX:
            return uid, _READ_ALL
        os.chown(folder, 0, 0)
    except OSError:
        pass
    return None, 0


def become(uid: int | None, capabilities: int) -> None:
    """Root no more: another user, or at least without its powers."""
    if uid is not None:
        with suppress(OSError):
            os.setgroups([])
        os.setresgid(uid, uid, uid)
        if capabilities:
            kernel().prctl(_KEEP_CAPABILITIES, 1, 0, 0, 0)
        os.setresuid(uid, uid, uid)
    if LINUX and (uid is None or capabilities):
        head = struct.pack("Ii", 0x20080522, 0)
        sets = struct.pack("6I", capabilities, capabilities, 0, 0, 0, 0)
        if kernel().capset(head, sets) != 0:
            raise PermissionError("the capabilities of root cannot be dropped")


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


def supervise(worker: int, say: Say, last: bool) -> None:
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

    spec = util.spec_from_file_location("answering", setup["answering"])
    assert spec is not None
    assert spec.loader is not None
    answering = util.module_from_spec(spec)
    spec.loader.exec_module(answering)
    folder, libraries = os.getcwd(), readable()
    held = confine(setup, say, folder, libraries) if hasattr(os, "fork") else {}
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
    use_kernel = LINUX and setup["kernel"]
    control = kernel().prctl if LINUX else lambda *_: 0
    root = os.geteuid() == 0
    uid, capabilities = another_user(setup["uid"], folder) if root else (None, 0)
    apart = own_namespaces(folder, uid) if use_kernel else set()
    for name, text in setup["files"].items():
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
    if apart and (pid := os.fork()):
        control(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        os.waitpid(pid, 0)
        os._exit(0)
    control(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    control(_SUBREAPER, 1, 0, 0, 0)
    signal.alarm(ceil(3 * setup["time"]) + 10)  # if nobody waits any more
    if pid := os.fork():
        supervise(pid, say, bool(apart))
    signal.alarm(0)
    os.setpgid(0, 0)
    held = {"processes": "kernel"} if apart else {}
    if root:
        become(uid, capabilities)
    if uid is not None:
        held["user"] = "kernel"
    control(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    control(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    limit(setup, bool(apart) or uid is not None)
    if use_kernel:
        if lock_files(folder, readable):
            held["files"] = "kernel"
        # Nobody counts the processes of root: then there are none but this.
        if refuse_calls(alone=root and uid is None) or apart:
            held["network"] = "kernel"
    return held


if __name__ == "__main__":
    main()
