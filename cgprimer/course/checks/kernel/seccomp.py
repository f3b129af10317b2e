"""Refuse system calls that no calculation needs, with seccomp(2).

System calls are identified by number. The numbers are those of the kernel's headers
(``asm/unistd_64.h`` and ``asm-generic/unistd.h``).
Source: https://man7.org/linux/man-pages/man2/seccomp.2.html
"""

from __future__ import annotations

import ctypes
import os
import struct
from itertools import chain

from .libc import prctl
from .packet_filter import FilterProgram
from .processes import forbid_new_privileges

# name -> its number on x86_64 and on aarch64, or None where the architecture lacks it
SystemCalls = dict[str, tuple[int | None, int | None]]

_ALWAYS: SystemCalls = {
    # sockets, and ways into other processes and namespaces
    "socket": (41, 198),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "unshare": (272, 97),
    "setns": (308, 268),
    # a second way to make system calls, and programs in the kernel
    "io_uring_setup": (425, 425),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    # keys and queues that outlive the process
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "semget": (64, 190),
    # memory that the limit of a process does not count
    "shmget": (29, 194),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    # owners and extended attributes of files: Landlock does not restrict them
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
    # files by handle, and other trees of files
    "open_by_handle_at": (304, 265),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "mount_setattr": (442, 442),
}
_ON_SAME_USER: SystemCalls = {  # modes and times of the grader's files, signals to its processes
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
}
_ON_OTHER_PROCESSES: SystemCalls = {  # allowed if the first argument is 0 or this process
    "kill": (62, 129),
    "tgkill": (234, 131),
    "prlimit64": (302, 261),
    "sched_setaffinity": (203, 122),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
}
_FORKING: SystemCalls = {
    "clone3": (435, 435),
    "clone": (56, 220),
    "fork": (57, None),
    "vfork": (58, None),
}
_IOCTL = (16, 29)
_REFUSED_IOCTLS = (  # second arguments of ioctl
    0x40086602,  # FS_IOC_SETFLAGS: attributes of a file
    0x401C5820,  # FS_IOC_FSSETXATTR: attributes of a file, on some file systems
    0x00005412,  # TIOCSTI: characters typed into a terminal
)
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column, AUDIT_ARCH

# Offsets of struct seccomp_data.
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
_X32_NUMBERS = 1 << 30  # first number of the x32 system calls of x86_64
_ALLOW = 0x7FFF0000
_DENY = 0x00050000 | 13  # fail with EACCES
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2


def refuse_calls(no_processes: bool, same_user: bool) -> bool:
    """Install a seccomp filter that refuses system calls that no submission needs.

    Args:
        no_processes: also refuse to start processes and threads.
        same_user: the submission runs as the grader's own user: also refuse to change modes and
            times of files, and to signal other processes.

    Returns:
        True if the kernel enforces the filter.
    """
    machine = os.uname().machine
    if machine not in _ARCHITECTURES:
        return False
    program = _build_filter(*_ARCHITECTURES[machine], no_processes, same_user)
    return _install_filter(program.assemble())


def _build_filter(
    column: int, architecture: int, no_processes: bool, same_user: bool
) -> FilterProgram:
    """Build the seccomp filter program for one processor architecture.

    Args:
        column: the column of this architecture in the tables of system calls.
        architecture: the number of the architecture, ``AUDIT_ARCH_...`` in ``linux/audit.h``.
        no_processes: as for :func:`refuse_calls`.
        same_user: as for :func:`refuse_calls`.
    """
    refused = [_ALWAYS]
    if no_processes:
        refused.append(_FORKING)
    if same_user:
        refused.append(_ON_SAME_USER)
    program = FilterProgram()
    program.load(_ARCHITECTURE)
    program.jump_if_equal(architecture, "same architecture")
    program.return_action(_DENY)
    program.label("same architecture")
    program.load(_NUMBER)
    program.jump_if_at_least(_X32_NUMBERS, "deny")
    for number in chain.from_iterable(_list_call_numbers(calls, column) for calls in refused):
        program.jump_if_equal(number, "deny")
    program.jump_if_equal(_IOCTL[column], "check ioctl")
    if same_user:
        for number in _list_call_numbers(_ON_OTHER_PROCESSES, column):
            program.jump_if_equal(number, "check process")
    program.jump("allow")
    program.label("check ioctl")
    program.load(_SECOND_ARGUMENT)
    for request in _REFUSED_IOCTLS:
        program.jump_if_equal(request, "deny")
    program.jump("allow")
    program.label("check process")
    program.load(_FIRST_ARGUMENT)
    program.jump_if_equal(0, "allow")
    program.jump_if_equal(os.getpid(), "allow")
    program.label("deny")
    program.return_action(_DENY)
    program.label("allow")
    program.return_action(_ALLOW)
    return program


def _list_call_numbers(calls: SystemCalls, column: int) -> list[int]:
    """Return the numbers of system calls on one architecture, omitting calls it lacks."""
    numbers = (call_numbers[column] for call_numbers in calls.values())
    return [number for number in numbers if number is not None]


def _install_filter(instructions: list[bytes]) -> bool:
    """Install a seccomp filter for this process; return True if the kernel accepts it."""
    forbid_new_privileges()
    code = ctypes.create_string_buffer(b"".join(instructions))
    program = struct.pack("HxxxxxxP", len(instructions), ctypes.addressof(code))
    return prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, program)
