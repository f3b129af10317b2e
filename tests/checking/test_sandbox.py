"""Submissions that go wrong, or mean harm: each gets a clear result, and the grader survives."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cgprimer.course.checks import sandbox, workspaces
from cgprimer.course.checks.channel import Outcome, Transcript, read_outcome
from cgprimer.course.checks.check_results import KINDS, Failure
from cgprimer.course.checks.sandbox import Answers, Limits, Request, run_submission
from cgprimer.errors import CgprimerError, Source, UsageError
from tests.approval import approved, refused
from tests.checking.grade_hostile_class import processes_in
from tests.checking.halves import check_half
from tests.checking.hostile_submissions import read_programs
from tests.checking.submissions import compute, read_sections, read_tables, sample

linux = pytest.mark.skipif(sys.platform != "linux", reason="what Linux's kernel offers")
Done = subprocess.CompletedProcess[str]
ASKED: list[Request] = [{"call": "g", "arguments": [2.0, 4.0]}, {"call": "g", "arguments": [1, 0]}]
G = "\ndef g(a, b):\n    return [a, b]\n"
RIGHT = ([2.0, 4.0], [1, 0])
TABLES = read_tables("tables.txt")


@pytest.fixture(params=["kernel", pytest.param("python", marks=pytest.mark.slow)])
def protection(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sandbox, "KERNEL", request.param == "kernel")
    return str(request.param)


TEXTS = {title.rstrip(":"): text for title, text in read_sections("sandbox_programs.txt")}


def select(group: str) -> list[tuple[str, str, str]]:
    """Return the name, the details and the text of the programs of a group."""
    titles = [title.partition(": ") for title in TEXTS if title.startswith(f"{group} ")]
    return [
        (name.removeprefix(f"{group} "), details, TEXTS[name + colon + details])
        for name, colon, details in titles
    ]


def answers(folder: Path, text: str | bytes, *, name: str = "ann.py", **limits: Any) -> Answers:
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return run_submission(file, ASKED, Limits(**limits))


def run_python(text: str, *command: str, cwd: Path | None = None) -> Done:
    """Run a program as the grader's user, or as another command starts it."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    return subprocess.run(
        [*command, sys.executable, "-c", text],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_values_come_back_to_the_last_bit(tmp_path: Path) -> None:
    found = answers(tmp_path, TEXTS["values"])
    assert found.failure is None
    value = found.values[0]
    assert value["third"] == 2 / 3
    assert value["column"] == [[2 / 7, 4 / 7]]
    assert value["nan"] != value["nan"]
    assert found.output == "a line of mine\n" * 2
    assert found.modules == ("numpy",)


BROKEN: dict[str, tuple[str | bytes, str]] = {
    "latin-1": (b"# caf\xe9\n", "encoding: line 1 is not valid utf-8"),
    "a zero byte": (b"a = 1\nb = \0", "encoding: line 2 contains a null byte"),
    "an unknown encoding": (b"# coding: klingon\n", "encoding: klingon"),
} | {name: (text, details) for name, details, text in select("broken")}


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_imported(name: str, tmp_path: Path) -> None:
    text, details = BROKEN[name]
    kind, words = details.split(": ", 1)
    found = answers(tmp_path, text, memory=400)
    assert found.failure is not None
    assert found.failure.kind == kind
    assert words.replace("\\n", "\n") in str(found.failure)
    assert found.values == (found.failure,) * 2
    assert kind in KINDS
    assert "Traceback" not in str(found.failure)


def test_what_fails_in_one_call_and_not_in_another(tmp_path: Path) -> None:
    file, calls = tmp_path / "ann.py", select("call")
    file.write_text("".join(text for *_, text in calls))
    asked: list[Request] = [{"call": name, "arguments": [1, 0]} for name, *_ in calls]
    asked.append({"call": "divides", "arguments": [1, 2]})
    found = run_submission(file, asked)
    assert found.failure is None
    assert found.values[-1] == 0.5
    for (name, details, text), value in zip(calls, found.values, strict=False):
        kind, words = details.split(": ", 1)
        assert isinstance(value, Failure), name
        assert (value.kind, words in str(value)) == (kind, True), (name, value)
        inside = kind in ("exception", "exit")
        assert ("ann.py:" in value.where) is inside, (name, value)
        assert not inside or text.split("\n")[-2].strip() in value.where, (name, value)


REACHES = {name: text for name, _, text in select("reach")}


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


SAME_USER = dict(read_sections("calls_of_the_same_user.txt"))


@linux
@pytest.mark.parametrize("held", SAME_USER)
def test_files_and_processes_of_the_same_user_are_out_of_reach(held: str, tmp_path: Path) -> None:
    """A submission may run as the grader's own user: where nobody is root, on other systems."""
    secret, own = tmp_path / "solution.py", tmp_path / "own"
    secret.write_text("0.123456")
    own.mkdir()
    (own / "m").write_text("mine")
    calls = SAME_USER[held].format(file=str(secret), pid=os.getpid())
    text = TEXTS["same user"].replace("HELD", held).replace("CALLS", repr(calls))
    done = run_python(text, cwd=own)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr
    assert secret.read_text() == "0.123456"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["own", "solution.py"]


@pytest.mark.parametrize("name", sample([*read_programs()][::5], 15))
def test_a_hostile_program_has_the_result_of_its_own_end(name: str, tmp_path: Path) -> None:
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


def test_a_submission_that_forges_answers_has_none(tmp_path: Path) -> None:
    line = b'{"request": 0, "value": [1, 1]}\n'
    forged = answers(tmp_path, TEXTS["forges"].format(line=line) + G).failure
    assert forged is not None
    assert forged.kind == "answers"
    long = b'{"request": 0, "failure": {"kind": "exception", "message": "%s"}}\n' % (b"x " * 10**5)
    value = answers(tmp_path, TEXTS["forges"].format(line=long) + G).values[0]
    assert len(value.message) <= 1000
    flood = TEXTS["forges"].replace("{line!r}", "b'numpy\\n' * 10**6")
    found = answers(tmp_path, flood + G)
    assert found.failure == forged
    assert len(found.values) == 2


@linux
def test_nothing_outlives_the_run(tmp_path: Path, protection: str) -> None:
    found = answers(tmp_path, TEXTS["outlives"] + G)
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
    text = TEXTS["any grader"].replace("FOLDER", repr(str(tmp_path)))
    (tmp_path / "secret").write_text("0.123456")
    done = run_python(text, program, *how)
    if "unshare:" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "secret").read_text() == "0.123456"


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
    driver.write_text(TEXTS["drives"])
    file.write_text(TEXTS["driven"])
    calls = {"run": [2]}, {"run": [9]}, {"lacking": []}
    asked: list[Request] = [{"call": n, "arguments": a} for c in calls for n, a in c.items()]
    found = run_submission(file, asked, driver=driver).values
    assert found[0] == {"data": 8.0}
    assert "ann.py:3:" in str(found[1])
    assert "'Value' object has no attribute 'backward'" in str(found[2])


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
        failure = answers(tmp_path, broken, name="ann.ipynb").failure
        assert "the file is not a valid notebook" in str(failure)


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


@pytest.mark.parametrize("text", sample([text for *_, text in select("import")], 3))
def test_libraries_are_recorded_and_refused_however_they_are_read(
    text: str, tmp_path: Path
) -> None:
    assert "click" in answers(tmp_path, text + G).modules
    refused = answers(tmp_path, text + G, forbidden=("click",)).failure
    assert "click is not allowed in this assignment" in str(refused)


def test_files_callbacks_and_threads_of_honest_students_work(tmp_path: Path) -> None:
    own_files = "open('mine', 'w').write('x')\nprint(open('mine').read())\n"
    script = "if __name__ == '__main__':\n    raise SystemExit\n"
    found = answers(tmp_path, own_files + script + TEXTS["threads"])
    assert found.values == ([4.0, 8.0], [2.0, 0.0])


@pytest.mark.slow
def test_answers_that_are_too_large_say_so(tmp_path: Path) -> None:
    found = answers(tmp_path, "def g(a, b):\n    return [[0]] * 600_000\n").failure
    assert found is not None
    assert found.kind == "answers"
    approved(found.message, "1,000,000")


@linux
def test_a_user_namespace_leaves_no_capabilities(tmp_path: Path) -> None:
    assert answers(tmp_path, TEXTS["capabilities"]).values[0] == [0, 0]


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


@linux
def test_the_folders_of_a_killed_grader_are_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protection: str
) -> None:
    file, temporary = tmp_path / "ann.py", tmp_path / "temporary"
    file.write_text("import os, time\nif os.fork():\n    os.mkdir('d')\ntime.sleep(60)\n")
    temporary.mkdir()
    text = TEXTS["killed grader"]
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
        time.sleep(0.2)
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


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_a_sandbox_that_does_not_start_is_tried_again_unless_it_was_stopped(
    is_interrupted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = sandbox._run_process, []
    monkeypatch.setattr(time, "sleep", lambda seconds: None)

    def attend(*arguments: Any) -> Any:
        calls.append(1)
        if is_interrupted:
            sandbox.stop_submissions()
        if len(calls) == 1:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return real(*arguments)

    monkeypatch.setattr(sandbox, "_run_process", attend)
    if is_interrupted:
        with pytest.raises(sandbox.MachineError):
            answers(tmp_path, G)
    else:
        assert answers(tmp_path, G).values == RIGHT
    assert len(calls) == (1 if is_interrupted else 2)


SOURCE = Source("ann.py", "def g(a):\n    return 1 / a\n")
FAILURE = {"kind": "exception", "message": "ZeroDivisionError", "line": 2, "from": 11, "to": 16}
HONEST: list[Any] = [
    {"loaded": True},
    {"request": 0, "value": {"ab": [1.0, float("nan")], "bc": "word"}},
    {"request": 1, "failure": FAILURE},
    {"request": 2, "value": 3},
]
CONTROL = b'{"protections": {"files": "kernel"}}\n{"ended": [0, 0, 0.1]}\n'
ODD = [compute(*row) for row in TABLES["odd entries of answers"]]


def lines(entries: list[Any]) -> bytes:
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


def outcome(answers: bytes, libraries: bytes = b"numpy\n", control: bytes = CONTROL) -> Outcome:
    return read_outcome(Transcript(control, answers, libraries, b""), SOURCE, 3, 1.0, 100)


def test_honest_answers_are_read() -> None:
    read = outcome(lines(HONEST))
    assert read.failure is None
    assert read.values[0]["bc"] == "word"
    assert read.values[1].where.splitlines()[0] == "ann.py:2:12"
    assert read.values[2] == 3
    assert read.libraries == ("numpy",)
    assert read.protections == ("files: kernel",)


def test_answers_before_the_end_of_a_process_count() -> None:
    read = outcome(lines(HONEST[:2]), control=CONTROL.replace(b"[0, 0", b"[0, 9"))
    assert len(read.values) == 1
    assert read.failure is not None
    assert read.failure.kind == "crash"


@pytest.mark.parametrize(("name", "entries"), TABLES["forged answers"])
def test_one_forged_line_and_no_answer_is_believed(name: str, entries: str) -> None:
    read = outcome(lines(compute(entries, HONEST=HONEST, FAILURE=FAILURE, json=json)))
    assert read.values == (), name
    assert_refused(read)


def assert_refused(read: Outcome) -> None:
    assert read.failure is not None
    assert read.failure.kind == "answers"


@pytest.mark.parametrize("names", [b"\xed\xa0\x80\n", b"a b\n", b"-\n", b"x" * 100 + b"\n", b"\n"])
def test_names_of_libraries_are_names(names: bytes) -> None:
    assert_refused(outcome(lines(HONEST), names))


def changed(entry: Any, chance: random.Random) -> Any:
    if chance.random() < 0.1:
        return chance.choice(ODD)
    if isinstance(entry, dict):
        return {k: changed(v, chance) for k, v in entry.items() if chance.random() > 0.05}
    if isinstance(entry, list):
        return [changed(v, chance) for v in entry if chance.random() > 0.05]
    return entry


def test_no_change_of_the_answers_raises_or_leaves_text_that_cannot_be_written() -> None:
    chance = random.Random(5)
    for _ in range(500):
        data = bytearray(lines([changed(entry, chance) for entry in HONEST]))
        for _ in range(chance.randrange(3)):
            if data:
                data[chance.randrange(len(data))] = chance.randrange(256)
        read = outcome(bytes(data))
        failures = [v for v in (*read.values, read.failure) if isinstance(v, Failure)]
        assert all(failure.kind in KINDS and len(failure.message) <= 1000 for failure in failures)
        repr(read).encode()
        values = [v for v in read.values if not isinstance(v, Failure)]
        json.dumps(values, ensure_ascii=False).encode()
