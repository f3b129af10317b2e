"""What Linux keeps from a process: namespaces, Landlock, seccomp, other users, no capabilities.

Loaded by :mod:`cgprimer.checking.confined`, in the process that a submission will run in; nothing
of cgprimer is imported. Numbers are those of the kernel's headers. Sources: the manual pages
namespaces(7), landlock(7), seccomp(2), capabilities(7), prctl(2).
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import struct
import sys
from contextlib import suppress
from typing import Any

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
# What reaches the files and processes of the same user past Landlock: chmod, fchmod, fchmodat,
# fchmodat2, utimensat, utime, utimes, futimesat, setpriority, tkill, rt_sigqueueinfo,
# rt_tgsigqueueinfo, pidfd_send_signal; with another process: kill, tgkill, prlimit64,
# sched_setaffinity
_SAME_USER = {
    "x86_64": ((90, 91, 268, 452, 280, 132, 235, 261, 141, 200, 129, 297, 424),
               (62, 234, 302, 203)),
    "aarch64": ((52, 53, 452, 88, 140, 130, 138, 240, 424), (129, 131, 261, 122)),
}  # fmt: skip


def kernel() -> Any:
    """The C library."""
    return ctypes.CDLL(None, use_errno=True)


# --- namespaces: processes, network, files that are gone afterwards ------------------------------


def die_with_parent() -> None:
    """Be ended when the parent ends."""
    kernel().prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


def adopt_orphans() -> None:
    """Become the parent of processes whose own parent has ended."""
    kernel().prctl(_SUBREAPER, 1, 0, 0, 0)


def own_namespaces(folder: str, uid: int | None) -> bool:
    """Leave the machine's network and processes, if the kernel permits it."""
    libc = kernel()
    flags = _NEW_NET | _NEW_PID | _NEW_IPC | _NEW_MOUNTS
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(flags) != 0:  # root may; others as root of a namespace of users
        if uid is not None or libc.unshare(flags | _NEW_USER) != 0:
            return False
        try:  # the folder's files belong to somebody
            for name, text in {"setgroups": "deny", "uid_map": f"{user} {user} 1",
                               "gid_map": f"{group} {group} 1"}.items():  # fmt: skip
                with open(f"/proc/self/{name}", "w") as file:
                    file.write(text)
        except OSError:
            return True
    private, harmless = 1 << 18 | 1 << 14, 1 << 1 | 1 << 2  # and recursive; no suid, no devices
    options = f"size={_DISK}m,mode=700,uid={user if uid is None else uid},gid={group}".encode()
    if libc.mount(b"none", b"/", None, private, None) == 0:
        libc.mount(b"none", os.fsencode(folder), b"tmpfs", harmless, options)
        os.chdir(folder)
    return True


# --- Landlock: which files ----------------------------------------------------------------------


def lock_files(folder: str, readable: list[str]) -> bool:
    """No file but Python's, to be read, and the folder's; no signals to processes outside."""
    libc = kernel()
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
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


def refuse_calls(alone: bool, same_user: bool) -> bool:
    """No sockets, of any family, no way into other processes; and alone no further ones.

    Of the grader's own user nothing else either: no modes of files, no signals to others.
    """
    libc = kernel()
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if os.uname().machine not in _REFUSED:
        return False
    machine, always, starting = _REFUSED[os.uname().machine]
    more, others = _SAME_USER[os.uname().machine] if same_user else ((), ())
    numbers = (*always, *(starting if alone else ()), *more)
    load, equal, at_least, give = 0x20, 0x15, 0x35, 0x06
    allow, deny = 0x7FFF0000, 0x00050000 | 13  # EACCES
    end = 4 + len(numbers) + len(others)
    lines = [(load, 0, 0, 4), (equal, 0, end + 2, machine), (load, 0, 0, 0)]
    lines += [(at_least, end, 0, 1 << 30)]  # the other numbering of x86_64
    lines += [(equal, end + 3 - at, 0, number) for at, number in enumerate(numbers, 4)]
    lines += [(equal, end - at, 0, n) for at, n in enumerate(others, 4 + len(numbers))]
    # Of others the first argument is a process: itself, as 0 or by its number.
    lines += [(give, 0, 0, allow), (load, 0, 0, 16), (equal, 2, 0, 0), (equal, 1, 0, os.getpid())]
    lines += [(give, 0, 0, deny), (give, 0, 0, allow)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    program = struct.pack("HxxxxxxP", len(lines), ctypes.addressof(code))
    return bool(libc.prctl(_SECCOMP, 2, program, 0, 0) == 0)


# --- users ---------------------------------------------------------------------------------------


def another_user(uid: int, folder: str) -> tuple[int | None, int]:
    """Whom root can run a submission as, and the capabilities that this takes.

    A user who owns nothing but the folder. Where Python itself lies in a folder that is closed to
    others, the right to read what is not one's own stays; Landlock then says what. Nobody, in a
    container that has no other users, or where that right is not there.
    """
    places = (folder, sys.prefix, sys.base_prefix, os.path.dirname(json.__file__))
    try:
        os.chown(folder, uid, uid)
        os.seteuid(uid)
        open_to_all = all(os.access(p, os.R_OK | os.X_OK, effective_ids=True) for p in places)
        os.seteuid(0)
        if open_to_all:
            return uid, 0
        with open("/proc/self/status") as file:
            capabilities = int(file.read().partition("CapEff:")[2].split()[0], 16)
        if capabilities & _READ_ALL:
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
    if uid is None or capabilities:
        head = struct.pack("Ii", 0x20080522, 0)
        sets = struct.pack("6I", capabilities, capabilities, 0, 0, 0, 0)
        if kernel().capset(head, sets) != 0:
            raise PermissionError("the capabilities of root cannot be dropped")
