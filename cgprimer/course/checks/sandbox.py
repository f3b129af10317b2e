"""Run a submission's code in a separate process with limits, and return its answers as data.

The process confines itself (:mod:`cgprimer.course.checks.confined`), calls the submission's
functions (:mod:`cgprimer.course.checks.answering`), and answers through pipes that are read by
:mod:`cgprimer.course.checks.channel`. Requests and answers are JSON: nothing that comes from a
submission is evaluated here, and no expected value is given to its process.
"""

from __future__ import annotations

import errno
import json
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import IO, Any, TypedDict

from cgprimer.course.checks import answering, channel, confined
from cgprimer.course.checks.answer_validation import Forms, checked
from cgprimer.course.checks.channel import Transcript
from cgprimer.course.checks.check_results import Failure, Result, readable
from cgprimer.course.checks.submission_files import source_of
from cgprimer.course.checks.workspaces import workspace
from cgprimer.errors import CgprimerError, Source, UsageError

__all__ = [
    "Answers",
    "Limits",
    "MachineError",
    "Request",
    "Submission",
    "run_submission",
    "source_of",
    "stop_all",
]

Submission = str | Path | Mapping[str, Any]  # a file, or the names of a notebook: globals()
KERNEL = True  # False for tests: without namespaces, Landlock and seccomp, as on other systems
RANGES = {  # the least and the most of each limit
    "time": (0.1, 3600),
    "memory": (64, 1_000_000),
    "output": (1, 100_000),
    "processes": (1, 10_000),
    "file_size": (1, 100_000),
}
_KEPT_OUTPUT = 4_000  # characters
_ATTEMPTS = 3  # to start a sandbox
_RUNS = count()
_running: set[subprocess.Popen[bytes]] = set()


class MachineError(CgprimerError):
    """The machine cannot run submissions: no disk space, no memory, no processes."""


class Request(TypedDict):
    """A function of the submission, or of the driver, and its arguments, as JSON has them."""

    call: str
    arguments: list[Any]


@dataclass(frozen=True)
class Limits:
    """The resources that a submission may use.

    Raises:
        UsageError: a limit is not in its range.

    >>> Limits(time=float("inf"))
    Traceback (most recent call last):
    ...
    cgprimer.errors.UsageError: time must be a number from 0.1 to 3,600, got inf
    """

    time: float = 5.0  # seconds of computing; of waiting, twice as many and two
    memory: int = 1024  # megabytes, of a process
    output: int = 1000  # kilobytes that it may print
    processes: int = 16  # and threads
    file_size: int = 16  # megabytes of a file that it writes
    forbidden: tuple[str, ...] = ()  # modules that it may not import

    def __post_init__(self) -> None:
        for name, (least, most) in RANGES.items():
            value = getattr(self, name)
            kind, what = (int, "an integer") if name != "time" else (int | float, "a number")
            valid = isinstance(value, kind) and not isinstance(value, bool)
            if not valid or math.isnan(value) or not least <= value <= most:
                raise UsageError(f"{name} must be {what} from {least:,} to {most:,}, got {value!r}")


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
    forms: Forms | None = None,
    restarts: int = 0,
) -> Answers:
    """Run a submission in a separate process, and return its answers to requests.

    With a driver, a file of ours that runs beside the submission, requests name functions of the
    driver; they are given the submission's module before their arguments. When a request ends the
    process, the requests behind it are asked of up to ``restarts`` further ones. An answer that
    lacks the structure in ``forms``, by the names of functions, becomes a failure.

    A mapping of names, as ``globals()`` of a notebook, is called here instead, with no protection.

    Raises:
        UsageError: there is no such file.
        MachineError: the sandbox cannot start.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "ann.py")
    ...     _ = file.write_text("def half(x): return x / 2")
    ...     run_submission(file, [{"call": "half", "arguments": [3]}]).values
    (1.5,)
    """
    limits = limits or Limits()
    if isinstance(submission, Mapping):
        return _with_forms(_run_here(submission, requests, driver), requests, forms)
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
    return _with_forms(answers, requests, forms)


def _with_forms(answers: Answers, requests: Sequence[Request], forms: Forms | None) -> Answers:
    """Return answers in which those with a wrong structure are failures."""
    if forms is None:
        return answers
    values = (
        checked(value, forms[request["call"]](request["arguments"]))
        for value, request in zip(answers.values, requests, strict=True)
    )
    return replace(answers, values=tuple(values))


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
    values = tuple(channel.read_value(line, Source("<notebook>", "")) for line in lines)
    return Answers(values, seconds=time.perf_counter() - started)


def _run(
    source: Source, requests: Sequence[Request], limits: Limits, driver: str | Path | None
) -> tuple[Answers, int | None]:
    """Return the answers of one process, and the number of the request that ended it."""
    files = {"submission.py": source.text}
    if driver is not None:
        files["driver.py"] = Path(driver).read_text(encoding="utf-8")
    setup = {
        **asdict(limits),
        "files": files,
        "requests": list(requests),
        "kernel": KERNEL,
    }
    started = time.perf_counter()
    transcript = _start(setup, limits)
    seconds = time.perf_counter() - started
    outcome = channel.read_outcome(transcript, source, len(requests), limits.time, limits.output)
    values = outcome.values + (outcome.failure,) * (len(requests) - len(outcome.values))
    ended_at = len(outcome.values) if outcome.loaded and outcome.failure else None
    return Answers(
        values,
        outcome.failure,
        _shown_output(transcript.printed),
        seconds,
        outcome.libraries,
        outcome.protections,
    ), ended_at


def _shown_output(printed: bytes) -> str:
    """Return the beginning of what a submission printed."""
    output = readable(printed.decode(errors="replace").replace("\r\n", "\n"))
    if len(output) <= _KEPT_OUTPUT:
        return output
    return f"{output[:_KEPT_OUTPUT]}\n... and {len(output) - _KEPT_OUTPUT:,} characters more"


def _start(setup: dict[str, Any], limits: Limits) -> Transcript:
    """Return what came out of a sandbox, which is started again if it does not start.

    A sandbox says how it is protected before a line of the submission has run, so one that says
    nothing is no fault of the submission.

    Raises:
        MachineError: the sandbox cannot start, whatever the submission is.
    """
    for attempt in range(_ATTEMPTS):
        time.sleep(attempt)  # other processes may end meanwhile
        try:
            with workspace() as folder:
                transcript = _attend(setup, folder, limits)
        except OSError as error:
            reason = f"{error.strerror or error}"
            if error.errno not in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE):
                break
        else:
            if b'"protections"' in transcript.control:
                return transcript
            last = transcript.printed.decode(errors="replace").strip().rpartition("\n")[2]
            late = "it takes too long" if transcript.late else "it was ended"
            reason = readable(last)[:300] or late
    hint = "it needs a folder for temporary files, free processes, and memory within the limit"
    raise MachineError(f"the sandbox cannot start: {reason}", hint=hint)


def _attend(setup: dict[str, Any], folder: Path, limits: Limits) -> Transcript:
    """Run the sandboxed process to its end, but no longer than it may take."""
    pipes = [os.pipe(), os.pipe()] if os.name == "posix" else []
    ends = [writing for _, writing in pipes]
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-B", "-u", "-X", "utf8", confined.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=_environment(folder),
            start_new_session=True,
            pass_fds=ends,
        )
    except BaseException:
        for reading, _ in pipes:
            os.close(reading)
        raise
    finally:
        for writing in ends:
            os.close(writing)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    control_limit = channel.LARGEST_CONTROL + (0 if pipes else channel.LARGEST_ANSWERS)
    readers = {
        "control": _Reader(process, process.stdout, control_limit),
        "printed": _Reader(process, process.stderr, limits.output * 1000),
    }
    limited = (channel.LARGEST_ANSWERS, channel.LARGEST_LIBRARIES)
    for name, (reading, _), most in zip(("answers", "libraries"), pipes, limited, strict=False):
        readers[name] = _Reader(process, os.fdopen(reading, "rb", 0), most)
    # A user who is nobody else, so that the processes of each submission are counted apart.
    user = 40_000 + (os.getpid() * 31 + next(_RUNS)) % 20_000
    data = json.dumps({**setup, "pipes": ends, "uid": user}).encode()
    _running.add(process)
    late = False
    try:
        with suppress(BrokenPipeError), process.stdin:
            process.stdin.write(data)
        readers["control"].join(2 * limits.time + 2)  # to the end of it: waiting would poll
        late = readers["control"].is_alive()
    finally:
        _end(process, readers.values())
    read = {name: bytes(reader.data) for name, reader in readers.items()}
    if not pipes:
        read |= _separate(read["control"])
    full = frozenset(name for name, reader in readers.items() if reader.full)
    return Transcript(**read, late=late, full=full)


def _end(process: subprocess.Popen[bytes], readers: Iterable[_Reader]) -> None:
    """End a sandboxed process with all that it has started, and read what is left."""
    process.terminate()
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


def _separate(data: bytes) -> dict[str, bytes]:
    """Return by their names the pipes that are one pipe on Windows."""
    parts: dict[str, list[bytes]] = {"control": [], "libraries": [], "answers": []}
    for line in data.splitlines(keepends=True):
        name = "control" if not parts["control"] else "answers"
        parts["libraries" if line[:1] != b"{" else name].append(line)
    return {name: b"".join(lines) for name, lines in parts.items()}


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
