"""Refuse system calls that no calculation needs, with seccomp(2).

A filter is a program for the kernel's packet filter: it loads the number of a system call and
compares it with each rule in turn. Numbers are those of the kernel's headers
(``asm/unistd_64.h`` and ``asm-generic/unistd.h``).
Source: https://man7.org/linux/man-pages/man2/seccomp.2.html
"""

from __future__ import annotations

import ctypes
import os
import struct

# name -> its number on x86_64 and on aarch64, or None where the architecture lacks it
Table = dict[str, tuple[int | None, int | None]]
Instruction = tuple[int, int, int, int]  # code, how many to skip if true, if false, constant

_ALWAYS: Table = {
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
_SAME_USER: Table = {  # modes and times of the grader's files, and signals to its processes
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
_ONLY_ITSELF: Table = {  # allowed if the first argument is 0 or the process itself
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
_FORKING: Table = {
    "clone3": (435, 435),
    "clone": (56, 220),
    "fork": (57, None),
    "vfork": (58, None),
}
_IOCTL = (16, 29)
_REFUSED_IOCTLS = (  # second arguments
    0x40086602,  # FS_IOC_SETFLAGS: attributes of a file
    0x401C5820,  # FS_IOC_FSSETXATTR: the same, of some file systems
    0x00005412,  # TIOCSTI: types into a terminal
)
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24  # offsets of data
_OTHER_NUMBERING = 1 << 30  # x32, on x86_64
_ALLOW: Instruction = (_RETURN, 0, 0, 0x7FFF0000)
_DENY: Instruction = (_RETURN, 0, 0, 0x00050000 | 13)  # EACCES
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2


def refuse_calls(alone: bool, same_user: bool) -> bool:
    """Refuse sockets of any family, ways into other processes and attributes of files.

    Args:
        alone: also refuse further processes and threads.
        same_user: the submission runs as the grader's own user: also refuse to change modes and
            times of files, and to signal other processes.

    Returns:
        Whether the kernel does so.
    """
    machine = os.uname().machine
    if machine not in _ARCHITECTURES:
        return False
    column, architecture = _ARCHITECTURES[machine]
    tables = [_ALWAYS, *([_FORKING] if alone else []), *([_SAME_USER] if same_user else [])]
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        *_unless_equal(architecture, [_DENY]),
        (_LOAD, 0, 0, _NUMBER),
        (_IF_AT_LEAST, 0, 1, _OTHER_NUMBERING),
        _DENY,
        *_if_equal(_IOCTL[column], _refuse_second_argument(_REFUSED_IOCTLS)),
    ]
    for number in (numbers[column] for table in tables for numbers in table.values()):
        if number is not None:
            program += _if_equal(number, [_DENY])
    for number in (numbers[column] for numbers in _ONLY_ITSELF.values()) if same_user else ():
        if number is not None:
            program += _if_equal(number, _refuse_other_process(os.getpid()))
    return _install([*program, _ALLOW])


def _if_equal(number: int, block: list[Instruction]) -> list[Instruction]:
    """Return instructions that run a block if the loaded number is this one."""
    return [(_IF_EQUAL, 0, len(block), number), *block]


def _unless_equal(number: int, block: list[Instruction]) -> list[Instruction]:
    """Return instructions that skip a block if the loaded number is this one."""
    return [(_IF_EQUAL, len(block), 0, number), *block]


def _refuse_second_argument(values: tuple[int, ...]) -> list[Instruction]:
    refusals = [instruction for value in values for instruction in _if_equal(value, [_DENY])]
    return [(_LOAD, 0, 0, _SECOND_ARGUMENT), *refusals, _ALLOW]


def _refuse_other_process(own: int) -> list[Instruction]:
    allowed = [*_if_equal(0, [_ALLOW]), *_if_equal(own, [_ALLOW])]
    return [(_LOAD, 0, 0, _FIRST_ARGUMENT), *allowed, _DENY]


def _install(program: list[Instruction]) -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    packed = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    code = ctypes.create_string_buffer(packed)
    header = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    return bool(libc.prctl(_SET_SECCOMP, _FILTER, header, 0, 0) == 0)
