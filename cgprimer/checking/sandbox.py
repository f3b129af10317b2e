"""A submission's code in a process of its own, with limits; what it answers, as data.

What that process may not do is in :mod:`cgprimer.checking.confined`, how it calls the submission's
functions in :mod:`cgprimer.checking.answering`. Requests and answers are JSON: nothing that comes
from a submission is evaluated here, and no answer that it should find is there.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tokenize
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from io import BytesIO
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import IO, Any, NamedTuple, TypedDict

from cgprimer.checking import answering, confined
from cgprimer.checking.results import KINDS, Failure, Result, place, readable
from cgprimer.errors import Source, UsageError

Submission = str | Path | Mapping[str, Any]  # a file, or the names of a notebook: globals()
KERNEL = True  # False for tests: without namespaces, Landlock and seccomp, as on other systems
_LARGEST_SUBMISSION = 1_000_000  # bytes
_LARGEST_ANSWERS = 50_000_000  # bytes
_KEPT_OUTPUT = 4_000  # characters
_FORGED = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError)
_RUNS = count()
_running: set[subprocess.Popen[bytes]] = set()


class Request(TypedDict):
    """A function of the submission, or of the driver, and its arguments, as JSON has them."""

    call: str
    arguments: list[Any]


@dataclass(frozen=True)
class Limits:
    """What a submission may use."""

    time: float = 5.0  # seconds of computing; of waiting, twice as many and two
    memory: int = 1024  # megabytes, of a process
    output: int = 1000  # kilobytes that it may print
    processes: int = 16  # and threads
    file_size: int = 16  # megabytes of a file that it writes
    forbidden: tuple[str, ...] = ()  # modules that it may not import


@dataclass(frozen=True)
class Answers:
    """A value or a :class:`Failure` for each request, and what the run was like.

    ``failure`` is that of the submission as a whole: it could not be imported, or it ended, and
    took the requests behind with it, which then have this failure, too.
    """

    values: tuple[Any, ...]
    failure: Failure | None = None
    output: str = ""  # what it printed, cut off
    seconds: float = 0.0
    modules: tuple[str, ...] = ()  # that it imported, beside Python's own
    protections: tuple[str, ...] = ()  # what keeps files, network, processes from it

    def noted_in(self, result: Result) -> Result:
        """The result with what the run was like: output, seconds, and notes for instructors."""
        notes = [f"imports {', '.join(self.modules)}"] if self.modules else []
        if self.protections:
            notes.append(f"sandbox: {', '.join(self.protections)}")
        seconds = round(self.seconds, 3)
        return replace(result, output=self.output, seconds=seconds, notes=tuple(notes))


def run_submission(
    submission: Submission,
    requests: Sequence[Request],
    limits: Limits | None = None,
    *,
    driver: str | Path | None = None,
    restarts: int = 0,
) -> Answers:
    """Answers to requests, from a submission that runs apart.

    With a driver, a file of ours that runs beside the submission, requests name functions of the
    driver; they are given the submission's module before their arguments. When a request ends the
    process, the requests behind it are asked of up to ``restarts`` further ones.

    A mapping of names, as ``globals()`` of a notebook, is called here instead, with no protection.

    Raises:
        UsageError: there is no such file, or the sandbox cannot start.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "ann.py")
    ...     _ = file.write_text("def half(x): return x / 2")
    ...     run_submission(file, [{"call": "half", "arguments": [3]}]).values
    (1.5,)
    """
    limits = limits or Limits()
    if isinstance(submission, Mapping):
        return _run_here(submission, requests, driver)
    source = source_of(Path(submission))
    if isinstance(source, Failure):
        return Answers((source,) * len(requests), source)
    answers, ended_at = _run(source, requests, limits, driver)
    while ended_at is not None and ended_at + 1 < len(requests) and restarts:
        restarts -= 1
        done = answers.values[: ended_at + 1]
        more, further = _run(source, requests[len(done) :], limits, driver)
        answers = replace(
            more,
            values=done + more.values,
            output=(answers.output + more.output)[:_KEPT_OUTPUT],
            seconds=answers.seconds + more.seconds,
            failure=more.failure or answers.failure,
        )
        ended_at = None if further is None else len(done) + further
    return answers


def stop_all() -> None:
    """End every submission that is running, as when a grader is interrupted."""
    for process in list(_running):
        process.terminate()


def _run_here(
    names: Mapping[str, Any], requests: Sequence[Request], driver: str | Path | None
) -> Answers:
    target: Any = ModuleType("__main__")  # where a notebook defines its functions
    vars(target).update(names)
    leading = []
    if driver is not None:
        leading, target = [target], answering.load(str(driver), "driver")
    started = time.perf_counter()
    calls = ((r["call"], [*leading, *r["arguments"]]) for r in requests)
    lines = [answering.answer(target, call, given, "<notebook>") for call, given in calls]
    values = tuple(_value(line, Source("<notebook>", "")) for line in lines)
    return Answers(values, seconds=time.perf_counter() - started)


def source_of(path: Path) -> Source | Failure:
    """The text of a submission."""
    try:
        if path.stat().st_size > _LARGEST_SUBMISSION:
            return Failure("encoding", f"the file is larger than {_LARGEST_SUBMISSION:,} bytes")
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    encoding, wrong = "utf-8", ""
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
    except SyntaxError as error:
        wrong = str(error)  # unless it is no UTF-8
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        wrong = f"line {line} is not {error.encoding}: save the file as UTF-8"
    else:
        if path.suffix == ".ipynb":
            return _notebook(path.name, text)
        if "\0" in text:
            wrong = f"line {text[: text.index(chr(0))].count(chr(10)) + 1} has a zero byte"
        elif not wrong:
            return Source(path.name, text.replace("\r\n", "\n").replace("\r", "\n"))
    return Failure("encoding", wrong)


def _notebook(name: str, text: str) -> Source | Failure:
    """The code of a notebook's cells; those of a grader, and what only notebooks know, left out."""
    lines: list[str] = []
    try:
        for number, cell in enumerate(json.loads(text)["cells"], 1):
            of_grader = cell["metadata"].get("nbgrader", {})
            if cell["cell_type"] != "code" or of_grader.get("locked") or of_grader.get("grade"):
                continue
            lines.append(f"# cell {number}")
            lines += [
                f"# {line}" if line.lstrip().startswith(("%", "!")) else line
                for line in "".join(cell["source"]).split("\n")
            ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Failure("encoding", "it is no notebook")
    return Source(name, "\n".join([*lines, ""]))


def _run(
    source: Source, requests: Sequence[Request], limits: Limits, driver: str | Path | None
) -> tuple[Answers, int | None]:
    """Answers of one process, and the request that ended it."""
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="cgprimer-")))
    files = {"submission.py": source.text}
    if driver is not None:
        files["driver.py"] = Path(driver).read_text(encoding="utf-8")
    setup = {
        **asdict(limits),
        "files": files,
        "requests": list(requests),
        "kernel": KERNEL,
        # A user who is nobody else, so that the processes of each submission are counted apart.
        "uid": 40_000 + (os.getpid() * 31 + next(_RUNS)) % 20_000,
    }
    started = time.perf_counter()
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-B", "-u", "-X", "utf8", confined.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=_environment(folder),
            start_new_session=True,
        )
        said = _attend(process, json.dumps(setup).encode(), limits)
    finally:
        with suppress(RecursionError):  # folders in folders in folders
            shutil.rmtree(folder, ignore_errors=True)
    if not (said.late or b'"protections"' in said.lines):
        last = said.printed.decode(errors="replace").strip().rpartition("\n")[2]
        why = "perhaps it needs more memory than the limit, or a folder for temporary files"
        raise UsageError(f"the sandbox cannot start: {last or 'it was ended'}", hint=why)
    return _read(source, len(requests), limits, said, time.perf_counter() - started)


class _Said(NamedTuple):
    """What came out of a process, and how it ended."""

    lines: bytes
    printed: bytes
    late: bool
    full: bool


def _attend(process: subprocess.Popen[bytes], setup: bytes, limits: Limits) -> _Said:
    """Give a process its setup, and wait for its end, but no longer than it may take."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    readers = (
        _Reader(process, process.stdout, _LARGEST_ANSWERS),
        _Reader(process, process.stderr, limits.output * 1000),
    )
    _running.add(process)
    late = False
    try:
        with suppress(BrokenPipeError), process.stdin:
            process.stdin.write(setup)
        readers[0].join(2 * limits.time + 2)  # to the end of the answers: waiting would poll
        late = readers[0].is_alive()
    finally:
        process.terminate()  # what came of it goes with it
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        _running.discard(process)
        for reader in readers:
            reader.join(2)
            if not reader.is_alive():
                reader.pipe.close()
    heard, printed = (bytes(reader.data) for reader in readers)
    return _Said(heard, printed, late, any(reader.full for reader in readers))


class _Reader(threading.Thread):
    """Reads a pipe to its end; when there is too much, ends the process."""

    def __init__(self, process: subprocess.Popen[bytes], pipe: IO[bytes], most: int) -> None:
        super().__init__(daemon=True)
        self.process, self.pipe, self.most = process, pipe, most
        self.data = bytearray()
        self.full = False
        self.start()

    def run(self) -> None:
        """Read."""
        while chunk := os.read(self.pipe.fileno(), 1 << 16):
            self.full = self.full or len(self.data) + len(chunk) > self.most
            if self.full:
                self.process.terminate()
            else:
                self.data += chunk


def _read(
    source: Source, asked: int, limits: Limits, said: _Said, seconds: float
) -> tuple[Answers, int | None]:
    """The answers in the lines that a process said, and which request ended it."""
    values: dict[int, Any] = {}
    known: dict[str, Any] = {}
    failure: Failure | None = None
    for text in said.lines.split(b"\n", asked + 100)[:-1]:  # more lines are none of ours
        try:
            line = json.loads(text)
            if "request" in line:
                values.setdefault(int(line["request"]), _value(line, source))
            else:
                known = {**line, **known}  # what was said first, before the submission ran
        except _FORGED:
            failure = failure or Failure("answers", "it meddles with how answers are given")
    ended_at = None
    try:
        if "failure" in known:
            failure = _value(known, source)
        elif failure is None and not all(number in values for number in range(asked)):
            failure = _ended(limits, said, known.get("ended"))
            if known.get("loaded") is True:
                ended_at = next(number for number in range(asked) if number not in values)
        protections = tuple(f"{k}: {v}" for k, v in known.get("protections", {}).items())
        modules = tuple(map(str, known.get("modules", ())))
    except _FORGED:
        failure = Failure("answers", "it meddles with how answers are given")
        modules = protections = ()
    output = readable(said.printed.decode(errors="replace").replace("\r\n", "\n"))
    if len(output) > _KEPT_OUTPUT:
        output = f"{output[:_KEPT_OUTPUT]}\n... and {len(output) - _KEPT_OUTPUT:,} characters more"
    every = tuple(values.get(number, failure) for number in range(asked))
    return Answers(every, failure, output, seconds, modules, protections), ended_at


def _value(line: dict[str, Any], source: Source) -> Any:
    """The value of an answer, or its failure with the place in the submission."""
    if "failure" not in line:
        return line["value"]
    told = line["failure"]
    number = told.get("line")
    where = ""
    if isinstance(number, int):
        column, end = told.get("column") or 0, told.get("end") or 0
        if isinstance(told.get("from"), int):  # in bytes, from 0
            lines = source.text.split("\n")
            text = lines[number - 1].encode() if 1 <= number <= len(lines) else b""
            column, end = (
                len(text[: told.get(edge) or 0].decode(errors="replace")) + 1
                for edge in ("from", "to")
            )
        where = place(source, number, int(column), int(end))
    kind = told["kind"] if told["kind"] in KINDS else "answers"
    message = " ".join(str(told["message"])[: 2 * answering.LONGEST_MESSAGE].split())
    return Failure(kind, readable(message), readable(where))


def _ended(limits: Limits, said: _Said, ended: Any) -> Failure:
    """Why a process ended before it had answered everything."""
    late = Failure("time", f"it is not done after {limits.time:g} s: does every loop end?")
    if said.full:
        return Failure("output", f"it prints more than {limits.output:,} kB")
    if said.late or ended is None:
        return late
    code, number, computed = int(ended[0]), int(ended[1]), float(ended[2])
    if number == getattr(signal, "SIGXCPU", 24) or (number == 9 and computed >= limits.time):
        return late
    if number:
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        why = {"SIGSEGV": "it reaches memory that is not its own, or recurses too deeply"}
        why |= {"SIGKILL": "it was killed", "SIGABRT": "it aborts: often out of memory"}
        return Failure("crash", f"{why.get(name, 'it was ended')} ({name})")
    return Failure("exit", f"it ends its process, with exit code {code}")


def _environment(folder: Path) -> dict[str, str]:
    """Nothing of the grader's; one thread for libraries that would take all cores."""
    threads = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM")
    return {
        **{name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ},
        **dict.fromkeys(("HOME", "TMPDIR", "TEMP", "TMP"), str(folder)),
        **{f"{name}_NUM_THREADS": "1" for name in threads},
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        "MPLBACKEND": "agg",
    }
