"""Hostile submissions by kind: what is handed in, and what its result may be.

In the file of programs SECRET stands for a file of the grader, GRADER for the number of its
process, and PORT for a port of this machine that listens. A result is a kind of failure (``KINDS``
of :mod:`cgprimer.course.checks.check_results`), or ``graded`` if the submission was run to its end
and judged by its answers. Audit events see nothing of machine code, which needs the kernel's help.
"""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

from tests.checking.halves import RIGHT
from tests.checking.submissions import read_sections, read_values

DEEP = ("syntax", "memory", "exception", "crash")


def read_programs() -> dict[str, tuple[str | bytes, tuple[str, ...]]]:
    """Return the source of each file, and what its result may be."""
    programs: dict[str, tuple[str | bytes, tuple[str, ...]]] = {
        "recursion syntax.py": ("x = " + "(" * 5000 + ")" * 5000, DEEP),
        "recursion minus signs.py": ("x = " + "-" * 90_000 + "1", DEEP),
    }
    for title, source in read_sections("hostile_submissions.txt"):
        name, ends = title.split(": ")
        programs[f"{name}.py"] = (source, tuple(ends.split(", ")))
    for name, data in read_values("hostile encodings").items():
        programs[f"encoding {name}.py"] = (data, ("encoding",))
    for name, source in read_values("hostile notebooks").items():
        end = "graded" if name == "declared encoding" else "encoding"
        programs[f"notebook {name}.ipynb"] = (source, (end,))
    return programs


def write_solutions(path: Path) -> Path:
    """Write a folder of solutions next to the class's folder; return it."""
    solutions = path.parent.parent / "solutions"
    solutions.mkdir(exist_ok=True)
    (solutions / "half.py").write_text(RIGHT)
    return solutions


def link_in_folder(path: Path) -> None:
    path.mkdir()
    (path / "half.py").symlink_to(write_solutions(path) / "half.py")


def closed_folder(path: Path) -> None:
    path.mkdir()
    (path / "half.py").write_text(RIGHT)
    path.chmod(0)


def sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 2**40)


def unix_socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)
    os.chdir(here)


# What lies in the class's folder and is not a program; the name is a student's.
ENTRIES: dict[str, Callable[[Path], None]] = {
    "linkedfolder": lambda path: path.symlink_to(write_solutions(path)),
    "linkinside": link_in_folder,
    "linked.py": lambda path: path.symlink_to("right0.py"),
    "loop.py": lambda path: path.symlink_to("loop.py"),
    "dangling.py": lambda path: path.symlink_to("nosuch.py"),
    "device.py": lambda path: path.symlink_to("/dev/zero"),
    "pipe.py": os.mkfifo,
    "socket.py": unix_socket,
    "sparse.py": sparse,
    "closed": closed_folder,
    "emptyfolder": lambda path: path.mkdir(),
    "folder.py": lambda path: path.mkdir(),
    "empty.py": lambda path: path.touch(),
    "unreadable.py": lambda path: (path.write_text("x ="), path.chmod(0))[0] and None,
}


def hostile_class(
    folder: Path, secret: Path, port: int, kernel: bool
) -> dict[str, tuple[str, ...]]:
    """Write all of them into a class's folder; return what the result of each may be."""
    expected: dict[str, tuple[str, ...]] = {}

    def add(name: str, text: str | bytes, ends: tuple[str, ...]) -> None:
        if isinstance(text, str):
            text = text.replace("SECRET", str(secret)).replace("GRADER", str(os.getpid()))
            text = text.replace("PORT", str(port)).encode()
        (folder / name).write_bytes(text)
        expected[name] = ends

    for name, (text, ends) in read_programs().items():
        if kernel or not name.startswith("machine code"):
            add(name, text, ends)
    for name, make in ENTRIES.items():
        make(folder / name)
        expected[name] = ("missing", "encoding", "syntax", "graded")
    return expected


def state_of(path: Path) -> tuple[object, ...]:
    """Return what a submission may not change of a file."""
    about = path.lstat()
    attributes = {name: os.getxattr(path, name) for name in os.listxattr(path)}
    kept = (stat.S_IMODE(about.st_mode), about.st_uid, about.st_gid, about.st_mtime, about.st_size)
    return (*kept, path.read_bytes(), attributes)
