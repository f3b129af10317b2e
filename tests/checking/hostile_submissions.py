"""Hostile submissions by kind: what is handed in, and what its result may be.

SECRET stands for a file of the grader, GRADER for the number of its process, PORT for a port of
this machine that listens. A result is a kind of failure (``KINDS`` of
:mod:`cgprimer.course.checks.check_results`), or ``graded`` if the submission was run to its end and
judged by its answers.
"""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

RIGHT = "def half(x):\n    return x / 2\n"
RETURNS = "def half(x):\n    return {}\n"
EVERY_PIPE = (
    "import os\nfor n in range(3, 60):\n    try: os.write(n, {})\n    except OSError: pass\n"
)
REFUSED = ("exception", "crash")
ANSWERS = ("answers", "output", "time", "crash")
C = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
CALL = C + "assert libc.syscall({}) == 0, os.strerror(ctypes.get_errno())\n"

# kind -> name -> (program, what its result may be)
PROGRAMS: dict[str, dict[str, tuple[str | bytes, tuple[str, ...]]]] = {
    "crash": {
        "null pointer": ("import ctypes\nctypes.string_at(0)", ("crash",)),
        "abort": ("import os\nos.abort()", ("crash",)),
        "wild write": ("import ctypes\nctypes.memset(1, 0, 1 << 20)", ("crash",)),
        "freed objects": (
            "import ctypes\nctypes.pythonapi.Py_DecRef.argtypes = [ctypes.py_object]\n"
            "for _ in range(10**6): ctypes.pythonapi.Py_DecRef(object)\n" + RIGHT,
            ("crash", "graded", "exit", "exception"),
        ),
        "kills itself": ("import os\nos.kill(os.getpid(), 9)", ("crash",)),
        "stops itself": ("import os\nos.kill(os.getpid(), 19)", ("time",)),
    },
    "hang": {
        "endless loop": ("while True: pass", ("time",)),
        "endless sleep": ("import time\ntime.sleep(10**6)", ("time",)),
        "lock": ("import threading\nx = threading.Lock()\nx.acquire()\nx.acquire()", ("time",)),
        "long power": ("x = 9**9**9", ("time", "memory")),
        "slow pattern": ("import re\nre.match('(a+)+b', 'a'*40)", ("time",)),
        "ignores signals": (
            "import signal\nfor n in (2, 14, 15, 24): signal.signal(n, signal.SIG_IGN)\n"
            "while True: pass",
            ("time",),
        ),
        "endless finally": (
            "def half(x):\n  while True:\n    try:\n      while True: pass\n"
            "    finally: continue\n",
            ("time",),
        ),
    },
    "processes": {
        "fork bomb": (
            "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass",
            ("time", "crash"),
        ),
        "many threads": (
            "import threading, time\n"
            "while True: threading.Thread(target=time.sleep, args=(99,)).start()",
            ("exception",),
        ),
        "orphan": (
            "import os, time\nif os.fork() == 0:\n  os.setsid()\n"
            "  if os.fork() == 0: time.sleep(99)\n  os._exit(0)\n" + RIGHT,
            ("graded", "exception"),
        ),
        "child answers": ("import os\nos.fork()\n" + RIGHT, ("graded", "exception")),
        "threads live on": (
            "import threading, time\n"
            "for _ in range(4): threading.Thread(target=time.sleep, args=(99,)).start()\n" + RIGHT,
            ("graded", "exception"),
        ),
        "other program": ("import subprocess\nsubprocess.run(['/bin/cat', 'SECRET'])", REFUSED),
        "shell": ("import os\nassert os.system('cat SECRET') == 0", REFUSED),
    },
    "memory": {
        "list": ("x = []\nwhile True: x.append(bytearray(10**7))", ("memory",)),
        "one text": ("x = 'x' * 10**11", ("memory",)),
        "mapping": ("import mmap\nmmap.mmap(-1, 10**11)", ("exception",)),
        "answer": (RETURNS.format("[0.0] * 10**9"), ("graded",)),
    },
    "output": {
        "endless print": ("while True: print('x' * 1000)", ("output",)),
        "errors": ("import sys\nwhile True: sys.stderr.write('x' * 1000)", ("output",)),
        "descriptor": ("import os\nwhile True: os.write(1, b'\\xff' * 9999)", ("output",)),
        "control characters": ("print('\\x1b]0;x\\x07\\x9b2J\\u202e' * 9)\n" + RIGHT, ("graded",)),
        "long message": ("raise ValueError('x' * 10**7)", ("exception",)),
        "long name": ("raise type('E' * 10**6, (Exception,), {})", ("exception",)),
    },
    "forging": {
        "an answer": (EVERY_PIPE.format("""b'{"request": 0, "value": 1.5}\\n'""") + RIGHT, ANSWERS),
        "all answers": (
            EVERY_PIPE.format(
                """b'{"loaded": true}\\n{"request": 0, "value": 1.5}\\n"""
                """{"request": 1, "value": 2000.0}\\n'"""
            )
            + "import os\nos._exit(0)",
            (*ANSWERS, "graded"),
        ),
        "surrogates": (EVERY_PIPE.format("""b'{"modules": ["\\\\ud800"]}\\n'""") + RIGHT, ANSWERS),
        "library names": (EVERY_PIPE.format("b'\\xed\\xa0\\x80\\n' * 9") + RIGHT, ANSWERS),
        "no libraries": (
            "import numpy\n" + EVERY_PIPE.format("""b'{"modules": []}\\n'""") + RIGHT,
            ANSWERS,
        ),
        "many libraries": (EVERY_PIPE.format("b'numpy\\n' * 10**7") + RIGHT, ANSWERS),
        "deep answer": (EVERY_PIPE.format("b'[' * 10**6 + b'\\n'") + RIGHT, ANSWERS),
        "wide answer": (EVERY_PIPE.format("b'[' + b'[],' * 6 * 10**6 + b'[]]\\n'"), ANSWERS),
        "huge answer": (EVERY_PIPE.format("b'[' + b'0,' * 3 * 10**7 + b'0]\\n'"), ANSWERS),
        "binary": (EVERY_PIPE.format("os.urandom(9999)") + RIGHT, ANSWERS),
        "protections": (
            EVERY_PIPE.format("""b'{"protections": {"files": "none"}}\\n'""") + RIGHT,
            ANSWERS,
        ),
        "its end": (
            EVERY_PIPE.format("""b'{"ended": [0, 0, 0]}\\n'""") + "while True: pass",
            ANSWERS,
        ),
        "closes pipes": ("import os\nos.closerange(3, 100)\n" + RIGHT, ("exit", *ANSWERS)),
        "prints answers": ("""print('{"request": 0, "value": 9}')\n""" + RIGHT, ("graded",)),
    },
    "files": {
        "reads": ("open('SECRET').read()", REFUSED),
        "lists": ("import os\nos.listdir(os.path.dirname('SECRET'))", REFUSED),
        "writes": ("open('SECRET', 'a')", REFUSED),
        "deletes": ("import os\nos.remove('SECRET')", REFUSED),
        "renames": ("import os\nopen('m', 'w')\nos.rename('m', 'SECRET')", REFUSED),
        "link": ("import os\nos.symlink('SECRET', 'm')\nopen('m').read()", REFUSED),
        "mode": ("import os\nos.chmod('SECRET', 0o666)", REFUSED),
        "times": ("import os\nos.utime('SECRET', (0, 0))", REFUSED),
        "owner": ("import os\nos.chown('SECRET', -1, os.getgid())", REFUSED),
        "attribute": ("import os\nos.setxattr('SECRET', 'user.x', b'1')", REFUSED),
        "access list": (
            "import os, struct\nentries = [(1, 6, -1), (4, 6, -1), (32, 6, -1)]\n"
            "data = struct.pack('<I', 2) + b''.join(struct.pack('<HHi', *e) for e in entries)\n"
            "os.setxattr('SECRET', 'system.posix_acl_access', data)",
            REFUSED,
        ),
        "environment": ("open('/proc/GRADER/environ').read()", REFUSED),
        "memory of the grader": ("open('/proc/GRADER/mem', 'rb')", REFUSED),
        "home of root": ("import os\nos.listdir('/root')", REFUSED),
        "large file": ("open('m', 'wb').write(b'x' * 2**26)", REFUSED),
        "many files": (
            "for n in range(20_000): open(f'm{n}', 'w')\n" + RIGHT,
            ("exception", "graded", "time"),
        ),
        "deep folders": (
            "import os\nfor n in range(3000):\n  os.mkdir('d'); os.chdir('d')\n" + RIGHT,
            ("exception", "graded", "time"),
        ),
        "closed folder": (
            "import os\nos.mkdir('d')\nos.mkdir('d/e')\nos.chmod('d', 0)\n" + RIGHT,
            ("exception", "graded", "time"),
        ),
        "deletes its own files": (
            "import os\nfor n in os.listdir('.'): os.remove(n)\nos.rmdir(os.getcwd())\n" + RIGHT,
            ("exception", "graded"),
        ),
    },
    "network": {
        "connects": ("import socket\nsocket.create_connection(('127.0.0.1', PORT), 1)", REFUSED),
        "names": ("import socket\nsocket.getaddrinfo('localhost', 80)", REFUSED),
        "listens": ("import socket\nsocket.socket().bind(('', 0))", REFUSED),
        "local socket": ("import socket\nsocket.socket(socket.AF_UNIX)", REFUSED),
        "downloads": (
            "from urllib.request import urlopen\nurlopen('http://127.0.0.1:PORT')",
            REFUSED,
        ),
    },
    "signals and limits": {
        "kills the grader": ("import os\nos.kill(GRADER, 9)", REFUSED),
        "kills its parent": ("import os\nos.kill(os.getppid(), 9)", REFUSED),
        "kills all": ("import os\nos.kill(-1, 9)", (*REFUSED, "time")),
        "kills its group": ("import os\nos.kill(0, 9)", ("crash",)),
        "limits of the grader": (
            "import resource\nresource.prlimit(GRADER, resource.RLIMIT_NOFILE, (3, 3))",
            REFUSED,
        ),
        "its own limits": (
            "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (-1, -1))",
            REFUSED,
        ),
    },
    "exit": {
        "on import": ("import sys\nsys.exit(0)", ("exit",)),
        "at once": ("import os\nos._exit(0)", ("exit",)),
        "in a call": ("def half(x): raise SystemExit", ("graded",)),
        "exit functions": (
            "import atexit, time\natexit.register(time.sleep, 99)\n" + RIGHT,
            ("graded",),
        ),
        "interrupts": ("raise KeyboardInterrupt", ("exception",)),
        "generator exit": ("raise GeneratorExit", ("exception",)),
    },
    "monkeypatching": {
        "json": (
            "import json\njson.dumps = json.JSONEncoder.encode = lambda *a: '7'\n" + RIGHT,
            ("graded",),
        ),
        "os": ("import os\nos.write = os._exit = lambda *a: 1 / 0\n" + RIGHT, ("graded", "exit")),
        "builtins": (
            "import builtins\nbuiltins.isinstance = builtins.type = None\n" + RIGHT,
            ("exit", "graded"),
        ),
        "modules": ("import sys\nsys.modules.clear()\n" + RIGHT, ("graded", "exit", "exception")),
        "trace": (
            "import sys\ndef t(*a): raise MemoryError\nsys.settrace(t)\n" + RIGHT,
            ("exit", "graded", "memory", "time"),
        ),
        "itself": (
            "import sys\nfor f in sys._current_frames().values():\n  while f:\n"
            "    f.f_globals.clear(); f = f.f_back\n" + RIGHT,
            ("graded", "exit", "exception"),
        ),
    },
    "recursion": {
        "function": ("def half(x): return half(x) + 1", ("graded",)),
        "without limit": (
            "import sys\nsys.setrecursionlimit(10**9)\ndef half(x): return half(x) + 1",
            ("crash", "memory", "graded", "exception", "time"),
        ),
        "syntax": ("x = " + "(" * 5000 + ")" * 5000, ("syntax", "memory", "exception", "crash")),
        "minus signs": ("x = " + "-" * 90_000 + "1", ("syntax", "memory", "exception", "crash")),
        "error": (
            "class E(Exception):\n  def __str__(self): return str(self)\nraise E",
            ("exception",),
        ),
    },
    "values": {
        "generator": (RETURNS.format("(n for n in iter(int, 1))"), ("graded",)),
        "endless list": (
            "class L(list):\n  def __iter__(self):\n    while True: yield 0.0\n"
            + RETURNS.format("L()"),
            ("graded", "memory", "time"),
        ),
        "itself inside": ("def half(x):\n  a = []\n  a.append(a)\n  return a\n", ("graded",)),
        "not a number": (
            "import struct\n" + RETURNS.format("struct.unpack('d', b'\\1' * 6 + b'\\xf8\\x7f')[0]"),
            ("graded",),
        ),
        "infinity": (RETURNS.format("float('inf')"), ("graded",)),
        "huge integer": (RETURNS.format("10**400"), ("graded",)),
        "huge digits": (RETURNS.format("1 << 10**6"), ("graded",)),
        "surrogates": (RETURNS.format("{'\\ud800': '\\udfff' * 9}"), ("graded",)),
        "long text": (RETURNS.format("'x' * 10**7"), ("answers",)),
        "long list": (RETURNS.format("[[]] * (3 * 10**6)"), (*ANSWERS, "memory")),
        "odd conversion": (
            "class V:\n  def tolist(self): return self\n" + RETURNS.format("V()"),
            ("graded",),
        ),
        "complex": (RETURNS.format("1j"), ("graded",)),
        "nothing": (RETURNS.format("None"), ("graded",)),
    },
    "encoding": {
        "utf-7": (b"# coding: utf-7\nx = '+2AA-'\n", ("encoding",)),
        "unicode_escape": (b"# coding: unicode_escape\nx = '\\ud800'\n", ("encoding",)),
        **{
            name: (f"# coding: {name}\nx = 1\n".encode(), ("encoding",))
            for name in ("hex", "rot13", "zlib", "undefined", "punycode", "idna", "klingon")
        },
        "zero bytes": (b"x = 1\n\0\0\n", ("encoding",)),
        "UTF-16": (b"\xff\xfe" + "x = 1".encode("utf-16-le"), ("encoding",)),
        "latin-1": (b"# caf\xe9\n", ("encoding",)),
        "surrogate in UTF-8": (b"x = '\xed\xa0\x80'\n", ("encoding",)),
        "large": (b"#" * 3_000_000, ("encoding",)),
        "declared twice": (b"\xef\xbb\xbf# coding: latin-1\nx = 1\n", ("encoding",)),
    },
}


def cell(source: object, kind: object = "code") -> dict[str, object]:
    return {"cell_type": kind, "source": source, "metadata": {}}


NOTEBOOKS: dict[str, tuple[str, tuple[str, ...]]] = {
    "surrogate": (json.dumps({"cells": [cell(["x = '\ud800'"])]}), ("encoding",)),
    "zero byte": (json.dumps({"cells": [cell("x = '\0'")]}), ("encoding",)),
    "declared encoding": (
        json.dumps({"cells": [cell("# coding: utf-7\nx = '+2AA-'\n" + RIGHT)]}),
        ("graded",),
    ),
    "deep": ('{"cells": ' + "[" * 200_000, ("encoding",)),
    "deep and closed": ('{"cells": ' + "[" * 9000 + "]" * 9000 + "}", ("encoding",)),
    "huge integer": ('{"cells": ' + "9" * 100_000 + "}", ("encoding",)),
    "odd cells": (json.dumps({"cells": [cell([1, 2])]}), ("encoding",)),
    "odd metadata": ('{"cells": [{"cell_type": "code", "metadata": 3}]}', ("encoding",)),
    "not a notebook": ("[]", ("encoding",)),
}
KERNEL_ONLY: dict[str, tuple[str, tuple[str, ...]]] = {  # machine code: audit events see none of it
    "opens": (C + "assert libc.open(b'SECRET', 0) >= 0", REFUSED),
    "mode": (C + "assert libc.chmod(b'SECRET', 0o666) == 0", REFUSED),
    "access list": (C + "assert libc.setxattr(b'SECRET', b'user.x', b'1', 1, 0) == 0", REFUSED),
    "removes an attribute": (C + "assert libc.removexattr(b'SECRET', b'user.keep') == 0", REFUSED),
    "owner": (C + "assert libc.chown(b'SECRET', -1, os.getgid()) == 0", REFUSED),
    "signal": (C + "assert libc.kill(GRADER, 9) == 0", REFUSED),
    "ptrace": (C + "assert libc.ptrace(16, GRADER, 0, 0) == 0", REFUSED),
    "prlimit": (
        C + "assert libc.prlimit(GRADER, 7, ctypes.byref(ctypes.c_uint64()), 0) == 0",
        REFUSED,
    ),
    "memory file": (C + "assert libc.memfd_create(b'x', 0) >= 0", REFUSED),
    "shared memory": (C + "assert libc.shmget(0, 1 << 30, 0o1600) >= 0", REFUSED),
    "mount": (C + "assert libc.mount(b'none', b'/tmp', b'tmpfs', 0, None) == 0", REFUSED),
    "namespace": (C + "assert libc.unshare(0x10000000) == 0", REFUSED),
    "host name": (C + "assert libc.sethostname(b'x', 1) == 0", REFUSED),
}


def link_to_folder(path: Path) -> None:
    solutions = path.parent.parent / "solutions"
    solutions.mkdir(exist_ok=True)
    (solutions / "half.py").write_text(RIGHT)
    path.symlink_to(solutions)


def link_in_folder(path: Path) -> None:
    solution = path.parent.parent / "half.py"
    solution.write_text(RIGHT)
    path.mkdir()
    (path / "half.py").symlink_to(solution)


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
    "linkedfolder": link_to_folder,
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

    for kind, programs in PROGRAMS.items():
        for name, (text, ends) in programs.items():
            add(f"{kind} {name}.py", text, ends)
    for name, (text, ends) in NOTEBOOKS.items():
        add(f"notebook {name}.ipynb", text, ends)
    for name, (text, ends) in KERNEL_ONLY.items() if kernel else ():
        add(f"machine code {name}.py", text, ends)
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
