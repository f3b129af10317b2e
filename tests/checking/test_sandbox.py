"""Submissions that go wrong, or mean harm: each gets a clear result, and the grader survives."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cgprimer.course.checks import sandbox, workspaces
from cgprimer.course.checks.check_results import KINDS, Failure
from cgprimer.course.checks.sandbox import Answers, Limits, Request, run_submission
from cgprimer.errors import CgprimerError, UsageError
from tests.approval import approved, refused
from tests.checking.grade_hostile_class import processes_in
from tests.checking.halves import check_half
from tests.checking.hostile_submissions import read_programs
from tests.checking.submissions import sample

linux = pytest.mark.skipif(sys.platform != "linux", reason="what Linux's kernel offers")
ASKED: list[Request] = [{"call": "g", "arguments": [2.0, 4.0]}, {"call": "g", "arguments": [1, 0]}]
G = "\ndef g(a, b):\n    return [a, b]\n"
RIGHT = ([2.0, 4.0], [1, 0])


PYTHON = pytest.param("python", id="without the kernel's help", marks=pytest.mark.slow)


@pytest.fixture(params=["kernel", PYTHON])
def protection(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sandbox, "KERNEL", request.param == "kernel")
    return str(request.param)


def answers(folder: Path, text: str | bytes, *, name: str = "ann.py", **limits: Any) -> Answers:
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return run_submission(file, ASKED, Limits(**limits))


def test_values_come_back_to_the_last_bit(tmp_path: Path) -> None:
    text = """
def g(a, b):
    import numpy as np
    print("a line of mine")
    return {"third": a / 3, "column": np.array([[a, b]]) / 7, "nan": float("nan")}
"""
    found = answers(tmp_path, text)
    assert found.failure is None
    value = found.values[0]
    assert value["third"] == 2 / 3
    assert value["column"] == [[2 / 7, 4 / 7]]
    assert value["nan"] != value["nan"]
    assert found.output == "a line of mine\n" * 2
    assert found.modules == ("numpy",)


BROKEN: dict[str, tuple[str | bytes, str, str]] = {
    "memory": ("x = []\nwhile True:\n    x.append(bytearray(10**8))", "memory", ":3:14"),
    "sys.exit": ("import sys\nsys.exit(3)", "exit", ":2:1"),
    "os._exit": ("import os\nos._exit(0)", "exit", "exit code 0"),
    "a signal": ("import os\nos.kill(os.getpid(), 9)", "crash", "SIGKILL"),
    "an exception": ("x = 1\ny = x / (x - 1)", "exception",
                     ":2:5\n  y = x / (x - 1)\n      ^^^^^^^^^^^"),
    "input": ("input()", "exception", "EOFError"),
    "no colon": ("def g(a, b)\n    return a", "syntax", ":1:12\n  def g(a, b)\n             ^"),
    "latin-1": (b"# caf\xe9\n", "encoding", "line 1 is not valid utf-8"),
    "a zero byte": (b"a = 1\nb = \0", "encoding", "line 2 contains a null byte"),
    "an unknown encoding": (b"# coding: klingon\n", "encoding", "klingon"),
    "letters before the caret": ("x = 'äöü' + 1", "exception",
                                 ":1:5\n  x = 'äöü' + 1\n      ^^^^^^^^^"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_imported(name: str, tmp_path: Path) -> None:
    text, kind, words = BROKEN[name]
    found = answers(tmp_path, text, memory=400)
    assert found.failure is not None
    assert found.failure.kind == kind
    assert words in str(found.failure)
    assert found.values == (found.failure,) * 2
    assert kind in KINDS
    assert "Traceback" not in str(found.failure)


# Functions of one file: what is wrong with each, and the words of its report.
CALLS: dict[str, tuple[str, str, str]] = {
    "divides": ("(a, b):\n    return a / b", "exception", "ZeroDivisionError"),
    "too_few": ("(a):\n    return a", "signature", "takes 1 positional argument"),
    "too_many": ("(a, b, c):\n    return a", "signature", "missing 1 required"),
    "type_error": ("(a, b):\n    return too_few(a, b)", "exception", "TypeError: too_few()"),
    "no_value": ("(a, b):\n    return object()", "value", "object"),
    "complex_number": ("(a, b):\n    return 1j", "value", "complex"),
    "recursion": ("(a, b):\n    return recursion(a, b) + 1", "exception", "RecursionError"),
    "list_in_itself": ("(a, b):\n    a = []\n    a += [a]\n    return a", "value", "lists"),
    "exits": ("(a, b):\n    import sys\n    sys.exit()", "exit", "sys.exit()"),
    "interrupts": ("(a, b):\n    raise KeyboardInterrupt", "exception", "KeyboardInterrupt"),
    "bad_exception": (
        "(a, b):\n    class E(Exception):\n        def __str__(self): raise E\n    raise E",
        "exception",
        "cannot be printed",
    ),
    "missing": ("s = 0\n", "missing", "missing is not defined; the submission defines divides"),
    "Divides": ("_ = 0\n", "missing", "rename `divides` to `Divides`"),
    "number": ("_ = 0\nnumber = 3", "missing", "number is not a function"),
}


def test_what_fails_in_one_call_and_not_in_another(tmp_path: Path) -> None:
    texts = [
        f"{'def ' if text.startswith('(') else ''}{name}{text}\n"
        for name, (text, _, _) in CALLS.items()
    ]
    file = tmp_path / "ann.py"
    file.write_text("".join(texts))
    asked: list[Request] = [{"call": name, "arguments": [1, 0]} for name in CALLS]
    asked.append({"call": "divides", "arguments": [1, 2]})
    found = run_submission(file, asked)
    assert found.failure is None
    assert found.values[-1] == 0.5
    for (name, (text, kind, words)), value in zip(CALLS.items(), found.values, strict=False):
        assert isinstance(value, Failure), name
        assert (value.kind, words in str(value)) == (kind, True), (name, value)
        inside = kind in ("exception", "exit")
        assert ("ann.py:" in value.where) is inside, (name, value)
        assert not inside or text.split("\n")[-1].strip() in value.where, (name, value)


REACHES: dict[str, str] = {
    "a file of the grader": "open({file!r}).read()",
    "a new file elsewhere": "open({folder!r} + '/mine', 'w')",
    "the network": "import socket\nsocket.create_connection(('127.0.0.1', {port}), 1)",
    "the parent": "import os\nos.kill(os.getppid(), 9)",
    "processes": "import os\nfor _ in range(100): os.fork()",
}


@linux
@pytest.mark.parametrize("name", sample([*REACHES], 2))
def test_files_network_and_processes_are_out_of_reach(
    name: str, tmp_path: Path, protection: str
) -> None:
    secret = tmp_path / "answers" / "solution.py"
    secret.parent.mkdir()
    secret.write_text("0.123456")
    text = REACHES[name].format(file=str(secret), folder=str(secret.parent), port=9)
    found = answers(tmp_path, text + G)
    assert found.failure is not None
    assert found.failure.kind == "exception"
    errors = ("PermissionError", "BlockingIOError", "OSError")
    assert any(error in found.failure.message for error in errors)
    assert secret.read_text() == "0.123456"
    assert [p.name for p in secret.parent.iterdir()] == ["solution.py"]
    assert "0.123456" not in found.output


# Of a submission that runs as the grader's own user: where nobody is root, and on other systems.
SAME_USER = {
    title: lines.splitlines()
    for title, lines in re.findall(
        r"(?m)^=== (.*)\n((?:(?!===).*\n)*)",
        Path(__file__).with_name("calls_of_the_same_user.txt").read_text(encoding="utf-8"),
    )
}


@linux
@pytest.mark.parametrize("held", SAME_USER)
def test_files_and_processes_of_the_same_user_are_out_of_reach(held: str, tmp_path: Path) -> None:
    secret, own = tmp_path / "solution.py", tmp_path / "own"
    secret.write_text("0.123456")
    own.mkdir()
    (own / "m").write_text("mine")
    lines = [line.format(file=str(secret), pid=os.getpid()) for line in SAME_USER[held]]
    text = f"""
import fcntl, io, os, pathlib, resource, sys
from cgprimer.course.checks import audit
from cgprimer.course.checks.kernel import seccomp
{held}
for line in {lines!r}:
    try:
        exec(line)
        print(line)
    except PermissionError:
        pass
os.kill(os.getpid(), 0)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
os.rename("m", "n")
"""
    done = subprocess.run([sys.executable, "-c", text], cwd=own, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
                          check=False)  # fmt: skip
    assert (done.stdout, done.returncode) == ("", 0), done.stderr
    assert secret.read_text() == "0.123456"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["own", "solution.py"]


@pytest.mark.parametrize("name", sample([*read_programs()][::5], 15))
def test_a_hostile_program_has_the_result_of_its_own_end(name: str, tmp_path: Path) -> None:
    """In the trial, a class with all of them is graded by several users; here each is alone."""
    source, ends = read_programs()[name]
    secret = tmp_path / "solution.py"
    secret.write_text("0.123456")
    if isinstance(source, str):
        words = {"SECRET": str(secret), "GRADER": str(os.getpid()), "PORT": "9"}
        source = re.sub("|".join(words), lambda word: words[word[0]], source).encode()
    (tmp_path / name).write_bytes(source)
    result = check_half(tmp_path / name, Limits(time=1, memory=300, output=100))
    assert (result.failure.kind if result.failure else "graded") in ends, str(result)
    assert secret.read_text() == "0.123456"
    assert "0.123456" not in str(result)


@pytest.mark.parametrize(
    "text", ["open('mine', 'w').write('x')\nprint(open('mine').read())",
             "if __name__ == '__main__':\n    raise SystemExit"],
)  # fmt: skip
def test_own_files_and_scripts_change_no_answer(text: str, tmp_path: Path) -> None:
    assert answers(tmp_path, text + G).values == RIGHT


FORGED = """
import os
for number in range(3, 30):
    try: os.write(number, {line!r})
    except OSError: pass
"""


def test_a_submission_that_forges_answers_has_none(tmp_path: Path) -> None:
    """No verdict can be forged: verdicts are not made there. And nonsense breaks nothing here."""
    line = b'{"request": 0, "value": [1, 1]}\n'
    forged = answers(tmp_path, FORGED.format(line=line) + G).failure
    assert forged is not None
    assert forged.kind == "answers"
    nonsense = (
        b"{{{\n" + b"[" * 100_000 + b"\n",
        b'{"request": "x"}\n{"request": 0}\n[]\n3\n{"ended": 7}\n',
        b'{"loaded": false, "failure": 3}\n{"protections": 3, "modules": 4}\n',
        b'{"request": 0, "failure": {"kind": [], "message": {}, "line": 1e999, "from": []}}\n',
        b"\xff\xfe\n" + b'{"request": 1' + b"0" * 5000 + b"}\n",
        b'{"request": Infinity}\n{"ended": []}\n{"request": 0, "failure": {"line": 1, "from": 0,'
        b' "to": Infinity, "column": Infinity, "kind": "exception", "message": ""}}\n',
    )
    found = answers(tmp_path, FORGED.format(line=b"".join(nonsense)) + G)
    assert found.failure is not None
    assert found.failure.kind == "answers"
    assert len(found.values) == 2
    long = b'{"request": 0, "failure": {"kind": "exception", "message": "%s"}}\n' % (b"x " * 10**5)
    value = answers(tmp_path, FORGED.format(line=long) + G).values[0]
    assert len(value.message) <= 1000
    flood = FORGED.replace("{line!r}", "b'numpy\\n' * 10**6")
    assert answers(tmp_path, flood + G).failure == found.failure


@linux
def test_nothing_outlives_the_run(tmp_path: Path, protection: str) -> None:
    text = """
import os, time
print(os.getcwd(), flush=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(300)
    os._exit(0)
time.sleep(0.1)
"""
    found = answers(tmp_path, text + G)
    assert found.values == RIGHT
    folder = found.output.strip()
    assert "cgprimer-" in folder
    assert not Path(folder).exists()
    assert processes_in(Path(folder)) == []


GRADERS = {
    "root of one without other users": "unshare --user --map-root-user",
    "root without any of its powers": "setpriv --bounding-set -all --inh-caps -all",
    "root of a container": "setpriv --bounding-set -all,+chown,+dac_override,+setuid,+setgid",
}


@linux
@pytest.mark.slow
@pytest.mark.parametrize("grader", GRADERS)
def test_whoever_grades(grader: str, tmp_path: Path) -> None:
    """What matters holds for graders who cannot drop their user, or make no namespaces."""
    program, *how = GRADERS[grader].split()
    if os.geteuid() or not shutil.which(program):
        pytest.skip(f"needs root, and {program}")
    names = (
        "a file of the grader",
        "a new file elsewhere",
        "the network",
        "the parent",
        "processes",
    )
    text = f"""
from pathlib import Path
from tests.checking.test_sandbox import G, REACHES, RIGHT, answers
folder = Path({str(tmp_path)!r})
assert answers(folder, G).values == RIGHT
for name in {names}:
    file = str(folder / "secret")
    text = REACHES[name].format(file=file, folder=str(folder), port=9, pid=1)
    found = answers(folder, text + G)
    assert "PermissionError" in str(found.failure) or name == "processes", (name, found)
    assert "BlockingIOError" in str(found.failure) or "Permission" in str(found.failure), found
"""
    (tmp_path / "secret").write_text("0.123456")
    root = str(Path(__file__).resolve().parents[2])
    command = [program, *how, sys.executable, "-c", text]
    environment = {**os.environ, "PYTHONPATH": root}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if "unshare:" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "secret").read_text() == "0.123456"


@pytest.mark.slow
def test_who_waits_is_not_waited_for(tmp_path: Path) -> None:
    started = time.perf_counter()
    found = answers(tmp_path, "import time\ntime.sleep(100)", time=0.2)
    assert found.failure is not None
    assert found.failure.kind == "time"
    assert time.perf_counter() - started < 10


def test_the_rest_is_asked_of_another_process(tmp_path: Path) -> None:
    file = tmp_path / "ann.py"
    file.write_text("import os\ndef g(a):\n    return os._exit(0) if a == 1 else a\n")
    asked: list[Request] = [{"call": "g", "arguments": [a]} for a in (0, 1, 2, 3)]
    one = run_submission(file, asked)
    assert one.values == (0, one.failure, one.failure, one.failure)
    more = run_submission(file, asked, restarts=1)
    assert more.values == (0, more.failure, 2, 3)
    assert more.failure is not None


def test_a_driver_calls_the_submission_and_says_its_line(tmp_path: Path) -> None:
    driver, file = tmp_path / "steps.py", tmp_path / "ann.py"
    driver.write_text(
        "def run(submission, times):\n"
        "    made = submission.Value(2.0)\n"
        "    for _ in range(times): made.double()\n"
        "    return {'data': made.data}\n"
        "def lacking(submission): submission.Value(1.0).backward()\n"
    )
    file.write_text(
        "class Value:\n"
        "    def __init__(self, data): self.data = data\n"
        "    def double(self): self.data = 2 * self.data if self.data < 9 else 1 / 0\n"
    )
    asked: list[Request] = [
        {"call": "run", "arguments": [2]},
        {"call": "run", "arguments": [9]},
        {"call": "lacking", "arguments": []},
    ]
    found = run_submission(file, asked, driver=driver).values
    assert found[0] == {"data": 8.0}
    assert "ann.py:3:" in str(found[1])
    assert "'Value' object has no attribute 'backward'" in str(found[2])
    with_names = run_submission({"Value": type("Value", (), {})}, asked[2:], driver=driver)
    assert "backward" in str(with_names.values[0]) or "Value" in str(with_names.values[0])


def test_a_notebook_is_its_cells_of_code(tmp_path: Path) -> None:
    def cell(kind: str, *lines: str, **about: Any) -> dict[str, Any]:
        source = [f"{line}\n" for line in lines]
        return {"cell_type": kind, "source": source, "metadata": {"nbgrader": about}}

    cells = [
        cell("markdown", "# Homework"),
        cell("code", "%matplotlib inline", "import math"),
        cell("code", "def g(a, b):", "    return math.sqrt(a) / b", solution=True),
        cell("code", "1 / 0", grade=True, locked=True),
    ]
    text = json.dumps({"cells": cells, "nbformat": 4})
    found = answers(tmp_path, text, name="ann.ipynb")
    assert found.values[0] == 2**0.5 / 4
    assert "# cell" not in str(found.values[1])
    assert "return math.sqrt(a) / b" in str(found.values[1])
    for broken in ("{", "[]", '{"cells": [3]}'):
        assert "the file is not a valid notebook" in str(
            answers(tmp_path, broken, name="ann.ipynb").failure
        )


def test_what_is_printed_cannot_move_the_cursor(tmp_path: Path) -> None:
    text = "print('\\x1b[2Jgone')\nraise ValueError('two\\nlines\\x1b[1m\\u202e')"
    found = answers(tmp_path, text)
    assert found.output == "\ufffd[2Jgone\n"
    assert found.failure is not None
    assert found.failure.message == "ValueError: two lines\ufffd[1m\ufffd"


def test_names_of_a_notebook_are_called_here() -> None:
    def g(a: float, b: float) -> float:
        return a / b

    found = run_submission({"g": g}, ASKED)
    assert found.values[0] == 0.5
    assert "ZeroDivisionError" in str(found.values[1])
    assert "g is not defined" in str(run_submission({}, ASKED).values[0])


@pytest.mark.slow
def test_what_is_the_graders_own_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with refused(CgprimerError, "nosuch.py"):
        run_submission(tmp_path / "nosuch.py", ASKED)
    file = tmp_path / "ann.py"
    file.write_text(G)
    monkeypatch.setattr(sandbox.confined, "__file__", str(tmp_path / "gone.py"))
    with refused(CgprimerError, "gone.py"):
        run_submission(file, ASKED)


# --- limits, encodings, libraries, folders -------------------------------------------------------


@pytest.mark.parametrize("name", sandbox.RANGES)
def test_limits_are_in_their_ranges(name: str) -> None:
    least, most = sandbox.RANGES[name]
    for value in (least, most):
        assert getattr(Limits(**{name: value}), name) == value  # type: ignore[arg-type]
    for value in (least / 2, most + 1, float("inf"), float("nan"), "5", True, None):
        with pytest.raises(UsageError, match=name):
            Limits(**{name: value})


@pytest.mark.slow
def test_other_encodings_of_honest_students_are_read(tmp_path: Path) -> None:
    text = "# coding: {}\nword = 'caf\u00e9'\ndef g(a, b): return [len(word), word]\n"
    for encoding in ("utf-8", "latin-1", "cp1252", "iso-8859-15", "utf-8-sig", "mac-roman"):
        data = text.format(encoding.removesuffix("-sig")).encode(encoding)
        assert answers(tmp_path, data).values[0] == [4, "caf\u00e9"], encoding


@pytest.mark.skipif(os.name != "posix", reason="named pipes")
def test_a_source_that_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ann.py")
    with refused(UsageError):
        run_submission(tmp_path / "ann.py", ASKED)


HIDDEN_IMPORTS = {
    "a statement": "import click",
    "importlib": "import importlib\nimportlib.import_module('click')",
    "a copy of its text": "import sysconfig\n"
    "open(sysconfig.get_path('purelib') + '/click/core.py').read()",
    "a name that is taken away": "import sys, click\n"
    "for n in list(sys.modules):\n  if n.startswith('click'): del sys.modules[n]",
    "another way to find modules": "import sys\nsys.meta_path.reverse()\nimport click",
}


@pytest.mark.parametrize("name", sample([*HIDDEN_IMPORTS], 3))
def test_libraries_are_recorded_and_refused_however_they_are_read(
    name: str, tmp_path: Path
) -> None:
    text = HIDDEN_IMPORTS[name] + G
    assert "click" in answers(tmp_path, text).modules
    refused = answers(tmp_path, text, forbidden=("click",)).failure
    assert "click is not allowed in this assignment" in str(refused)


def test_callbacks_and_threads_of_honest_students_work(tmp_path: Path) -> None:
    text = """
import ctypes
from concurrent.futures import ThreadPoolExecutor
import tempfile
double = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(lambda x: 2 * x)
def g(a, b):
    with tempfile.TemporaryFile() as file, ThreadPoolExecutor(2) as pool:
        file.write(b"x")
        return list(pool.map(double, [a, b]))
"""
    assert answers(tmp_path, text).values == ([4.0, 8.0], [2.0, 0.0])


@pytest.mark.slow
def test_answers_that_are_too_large_say_so(tmp_path: Path) -> None:
    found = answers(tmp_path, "def g(a, b):\n    return [[0]] * 600_000\n").failure
    assert found is not None
    assert found.kind == "answers"
    approved(found.message, "1,000,000")


@linux
def test_a_user_namespace_leaves_no_capabilities(tmp_path: Path) -> None:
    text = """
def g(a, b):
    import ctypes, struct
    header, sets = struct.pack("Ii", 0x20080522, 0), ctypes.create_string_buffer(24)
    ctypes.CDLL(None).capget(header, sets)
    effective, permitted = struct.unpack("6I", sets.raw)[:2]
    return [effective & ~4, permitted & ~4]  # of root a capability to read Python may stay
"""
    assert answers(tmp_path, text).values[0] == [0, 0]


@linux
@pytest.mark.slow
def test_deep_and_closed_folders_are_removed(tmp_path: Path) -> None:
    here = os.getcwd()
    top = tmp_path / "top"
    top.mkdir()
    os.chdir(top)
    for _ in range(2000):
        os.mkdir("d")
        os.chdir("d")
    Path("file").touch()
    os.chdir(here)
    (top / "closed" / "inner" / "d").mkdir(parents=True)
    (top / "closed" / "inner").chmod(0)
    (top / "closed").chmod(0)
    workspaces.remove_folder(top)
    assert not top.exists()


KILLED = """
import sys, tempfile
from cgprimer.course.checks.sandbox import run_submission
tempfile.tempdir = sys.argv[1]
print("started", flush=True)
run_submission(sys.argv[2], [{"call": "g", "arguments": [1, 2]}])
"""


@linux
def test_the_folders_of_a_killed_grader_are_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protection: str
) -> None:
    file, temporary = tmp_path / "ann.py", tmp_path / "temporary"
    file.write_text("import os, time\nif os.fork():\n    os.mkdir('d')\ntime.sleep(60)\n")
    temporary.mkdir()
    text = KILLED
    if protection == "python":
        text = text.replace("print(", "run_submission.__globals__['KERNEL'] = False\nprint(")
    command = [sys.executable, "-c", text, str(temporary), str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        deadline = time.monotonic() + 20
        while not list(temporary.glob("*/home")) and time.monotonic() < deadline:
            time.sleep(0.05)
        (left,) = temporary.iterdir()
        other = next(iter(processes_in(temporary)), None)
        while not other and time.monotonic() < deadline:
            other = next(iter(processes_in(temporary)), None)
        time.sleep(0.5)
        process.kill()
    while processes_in(temporary) and time.monotonic() < deadline + 10:
        time.sleep(0.05)
    assert processes_in(temporary) == []
    assert left.exists()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    with workspaces.workspace() as own:
        assert not left.exists()
        workspaces._remove_stale_folders.cache_clear()
        with workspaces.workspace():  # a grader that lives keeps its folders
            assert own.exists()
    assert list(temporary.iterdir()) == []


def test_a_sandbox_that_starts_at_the_second_try_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = sandbox._run_process, []

    def attend(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return real(*arguments)

    monkeypatch.setattr(sandbox, "_run_process", attend)
    assert answers(tmp_path, G).values == RIGHT
    assert len(calls) == 2
