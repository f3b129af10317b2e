"""Run a submission's code in a separate process with limits, and return its answers as data.

The process confines itself (:mod:`cgprimer.course.checks.confined`), calls the submission's
functions (:mod:`cgprimer.course.checks.answering`), and answers through pipes, which
:mod:`cgprimer.course.checks.channel` reads. Requests and answers are JSON: the grader's process
evaluates nothing that comes from a submission, and the submission's process receives no expected
values.
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
from typing import IO, Any, TypedDict, cast

from cgprimer.course.checks import answering, channel, confined
from cgprimer.course.checks.answer_validation import Forms, validate_answer
from cgprimer.course.checks.channel import Transcript
from cgprimer.course.checks.check_results import Failure, Result, sanitize
from cgprimer.course.checks.submission_files import read_source
from cgprimer.course.checks.workspaces import workspace
from cgprimer.errors import CgprimerError, Source, UsageError
from cgprimer.support.type_checks import check_type

__all__ = [
    "Answers",
    "Limits",
    "MachineError",
    "Request",
    "Submission",
    "convert_submission",
    "read_source",
    "run_submission",
    "stop_submissions",
]

Submission = str | Path | Mapping[str, Any]  # a file, or globals() of a notebook
KERNEL = True  # tests set False: no namespaces, Landlock or seccomp, as on other systems
RANGES = {  # minimum and maximum of each limit
    "time": (0.1, 3600),
    "memory": (64, 1_000_000),
    "output": (1, 100_000),
    "processes": (1, 10_000),
    "file_size": (1, 100_000),
}
_MAX_OUTPUT_LENGTH = 4_000  # characters
_MAX_STARTS = 3  # of a sandbox that does not start
_RUN_NUMBERS = count()
_running: set[subprocess.Popen[bytes]] = set()
_stops: list[None] = []  # one entry per call of stop_submissions; what it ends is not started again


class MachineError(CgprimerError):
    """Raised if the machine cannot run submissions, for example because its disk is full."""


class Request(TypedDict):
    """A call to a function of the submission or its driver; the arguments are JSON values."""

    call: str
    arguments: list[Any]


@dataclass(frozen=True)
class Limits:
    """The resource limits of a submission.

    Attributes:
        time: computing time in seconds; the grader waits twice as long and two seconds more.
        memory: memory of a process in megabytes.
        output: printed output in kilobytes.
        processes: number of processes and threads.
        file_size: size of a written file in megabytes.
        forbidden: modules that the submission cannot import.

    Raises:
        UsageError: a limit is outside its range.

    >>> Limits(time=float("inf"))
    Traceback (most recent call last):
    ...
    cgprimer.errors.UsageError: time must be a number from 0.1 to 3,600, got inf
    """

    time: float = 5.0
    memory: int = 1024
    output: int = 1000
    processes: int = 16
    file_size: int = 16
    forbidden: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, (minimum, maximum) in RANGES.items():
            value = getattr(self, name)
            kind, noun = (int | float, "a number") if name == "time" else (int, "an integer")
            is_valid = isinstance(value, kind) and not isinstance(value, bool)
            if not is_valid or math.isnan(value) or not minimum <= value <= maximum:
                limits = f"from {minimum:,} to {maximum:,}"
                raise UsageError(f"{name} must be {noun} {limits}, got {value!r}")


@dataclass(frozen=True)
class Answers:
    """The answers of a submission to the requests, with the output and duration of its run.

    Attributes:
        values: a value or a :class:`Failure` for each request.
        failure: the failure of the submission as a whole: its import failed, or its process ended
            early. The requests that it left unanswered have the same failure in ``values``.
        output: the beginning of its printed output.
        seconds: wall time of the run.
        modules: the imported libraries, without Python's standard library.
        protections: the protections that were in force, as ``files: kernel``.
    """

    values: tuple[Any, ...]
    failure: Failure | None = None
    output: str = ""
    seconds: float = 0.0
    modules: tuple[str, ...] = ()
    protections: tuple[str, ...] = ()

    def add_run_to(self, result: Result) -> Result:
        """Add the output and duration of this run, and notes for the instructor, to a result."""
        notes = [f"imports {', '.join(self.modules)}"] if self.modules else []
        if self.protections:
            notes.append(f"sandbox: {', '.join(self.protections)}")
        seconds = round(self.seconds, 3)
        return replace(result, output=self.output, seconds=seconds, notes=tuple(notes))


def convert_submission(submission: object, argument: str = "submission") -> Submission:
    """Return a file or the names of a notebook; a class or function becomes the only name.

    Args:
        submission: a file, the ``globals()`` of a notebook, a class or a function.
        argument: the name of the argument in messages.

    Raises:
        UsageError: the submission is of another type.

    >>> convert_submission("ann.py"), [*convert_submission(Limits)]
    ('ann.py', ['Limits', '__name__'])
    """
    if callable(submission) and not isinstance(submission, Mapping):
        name = getattr(submission, "__name__", type(submission).__name__)
        # Names with a leading underscore are not part of a submission.
        names = {name.lstrip("_"): submission}
        return names | {"__name__": getattr(submission, "__module__", "__main__")}
    expected = "a file, a class, a function or a dictionary of names"
    hint = "pass the path of a .py or .ipynb file, or the globals() of a notebook"
    check_type(argument, submission, (str, os.PathLike, Mapping), expected, hint=hint)
    return cast(Submission, submission)


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

    The functions of a notebook (``globals()``) are called in this process, without protection.

    Args:
        submission: a file, or the names of a notebook.
        requests: calls to functions of the submission, or of the driver if there is one.
        limits: the resources that the submission can use.
        driver: a file of the grader that runs next to the submission. Its functions receive the
            submission's module before their arguments.
        forms: the expected structure of answers, keyed by function. An answer with another
            structure becomes a failure.
        restarts: the maximum number of further processes. If a request ends the process, the next
            process continues with the request that follows.

    Raises:
        UsageError: the file does not exist.
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
        return _check_forms(_run_notebook(submission, requests, driver), requests, forms)
    source = read_source(Path(submission))
    if isinstance(source, Failure):
        return Answers((source,) * len(requests), source)
    answers, ended_at = _run_requests(source, requests, limits, driver)
    while ended_at is not None and ended_at + 1 < len(requests) and restarts:
        restarts -= 1
        answered = answers.values[: ended_at + 1]
        further, index = _run_requests(source, requests[len(answered) :], limits, driver)
        answers = replace(
            further,
            values=answered + further.values,
            output=(answers.output + further.output)[:_MAX_OUTPUT_LENGTH],
            seconds=answers.seconds + further.seconds,
            failure=further.failure or answers.failure,
        )
        ended_at = None if index is None else len(answered) + index
    return _check_forms(answers, requests, forms)


def _check_forms(answers: Answers, requests: Sequence[Request], forms: Forms | None) -> Answers:
    """Replace answers that do not have the expected structure by failures."""
    if forms is None:
        return answers
    values = (
        validate_answer(value, forms[request["call"]](request["arguments"]))
        for value, request in zip(answers.values, requests, strict=True)
    )
    return replace(answers, values=tuple(values))


def stop_submissions() -> None:
    """End all running submissions, for example when the grader is interrupted."""
    _stops.append(None)
    for process in list(_running):
        process.terminate()


def _run_notebook(
    names: Mapping[str, Any], requests: Sequence[Request], driver: str | Path | None
) -> Answers:
    """Call functions of a notebook in the grader's process, without protection."""
    target: Any = ModuleType("__main__")  # the module in which a notebook defines functions
    vars(target).update(names)
    leading = []
    if driver is not None:
        leading, target = [target], answering.load_module(str(driver), "driver")
    started = time.perf_counter()
    lines = [
        answering.call_function(
            target, request["call"], [*leading, *request["arguments"]], "<notebook>"
        )
        for request in requests
    ]
    values = tuple(channel.read_value(line, Source("<notebook>", "")) for line in lines)
    return Answers(values, seconds=time.perf_counter() - started)


def _run_requests(
    source: Source, requests: Sequence[Request], limits: Limits, driver: str | Path | None
) -> tuple[Answers, int | None]:
    """Return the answers to requests, and the index of the request that ended the process."""
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
    transcript = _run_sandbox(setup, limits)
    seconds = time.perf_counter() - started
    outcome = channel.read_outcome(transcript, source, len(requests), limits.time, limits.output)
    values = outcome.values + (outcome.failure,) * (len(requests) - len(outcome.values))
    ended_at = len(outcome.values) if outcome.loaded and outcome.failure else None
    return Answers(
        values,
        outcome.failure,
        _format_output(transcript.printed),
        seconds,
        outcome.libraries,
        outcome.protections,
    ), ended_at


def _format_output(printed: bytes) -> str:
    """Decode the printed output of a submission, truncated and without control characters."""
    output = sanitize(printed.decode(errors="replace").replace("\r\n", "\n"))
    excess = len(output) - _MAX_OUTPUT_LENGTH
    if excess <= 0:
        return output
    return f"{output[:_MAX_OUTPUT_LENGTH]}\n... and {excess:,} more characters"


def _run_sandbox(setup: dict[str, Any], limits: Limits) -> Transcript:
    """Run a submission in a sandbox; retry if the sandbox does not start.

    A sandbox reports its protections before it runs the submission. If the report is missing, the
    submission is not the cause.

    Raises:
        MachineError: the sandbox cannot start.
    """
    n_stops = len(_stops)
    for attempt in range(_MAX_STARTS):
        time.sleep(attempt)  # other processes may end in the meantime
        try:
            with workspace() as folder:
                transcript = _run_process(setup, folder, limits)
        except OSError as error:
            reason = f"{error.strerror or error}"
            if error.errno not in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE):
                break
        else:
            if b'"protections"' in transcript.control:
                return transcript
            last = transcript.printed.decode(errors="replace").strip().rpartition("\n")[2]
            ending = "it does not start in time" if transcript.late else "its process ended"
            reason = sanitize(last)[:300] or ending
        if len(_stops) > n_stops:
            break
    hint = "make sure that there is space for temporary files, and free processes and memory"
    raise MachineError(f"the sandbox cannot start: {reason}", hint=hint)


def _run_process(setup: dict[str, Any], folder: Path, limits: Limits) -> Transcript:
    """Run one sandboxed process, and collect its output until it ends or exceeds its time."""
    pipes = [os.pipe(), os.pipe()] if os.name == "posix" else []
    process = _start_process(folder, pipes)
    assert process.stdin is not None
    readers = _start_readers(process, pipes, limits)
    # A separate user for each run, so that the kernel counts the processes of each separately.
    user = 40_000 + (os.getpid() * 31 + next(_RUN_NUMBERS)) % 20_000
    writing_ends = [writing for _, writing in pipes]
    data = json.dumps({**setup, "pipes": writing_ends, "uid": user}).encode()
    _running.add(process)
    late = False
    try:
        with suppress(BrokenPipeError), process.stdin:
            process.stdin.write(data)
        readers["control"].join(2 * limits.time + 2)  # Popen.wait with a timeout would poll
        late = readers["control"].is_alive()
    finally:
        _end_process(process, readers.values())
    contents = {name: bytes(reader.data) for name, reader in readers.items()}
    if not pipes:
        contents |= _split_single_pipe(contents["control"])
    full = frozenset(name for name, reader in readers.items() if reader.full)
    return Transcript(**contents, late=late, full=full)


def _start_process(folder: Path, pipes: Sequence[tuple[int, int]]) -> subprocess.Popen[bytes]:
    """Start a sandboxed process that inherits pipes; close their write ends in this process."""
    writing_ends = [writing for _, writing in pipes]
    try:
        return subprocess.Popen(
            [sys.executable, "-I", "-B", "-u", "-X", "utf8", confined.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=_create_environment(folder),
            start_new_session=True,
            pass_fds=writing_ends,
        )
    except BaseException:
        for reading, _ in pipes:
            os.close(reading)
        raise
    finally:
        for writing in writing_ends:
            os.close(writing)


def _start_readers(
    process: subprocess.Popen[bytes], pipes: Sequence[tuple[int, int]], limits: Limits
) -> dict[str, _PipeReader]:
    """Start a reader thread for each pipe of a sandboxed process, keyed by pipe name."""
    assert process.stdout is not None
    assert process.stderr is not None
    control_size = channel.MAX_CONTROL_SIZE + (0 if pipes else channel.MAX_ANSWERS_SIZE)
    readers = {
        "control": _PipeReader(process, process.stdout, control_size),
        "printed": _PipeReader(process, process.stderr, limits.output * 1000),
    }
    sizes = {"answers": channel.MAX_ANSWERS_SIZE, "libraries": channel.MAX_LIBRARIES_SIZE}
    for (name, size), (reading, _) in zip(sizes.items(), pipes, strict=False):
        readers[name] = _PipeReader(process, os.fdopen(reading, "rb", 0), size)
    return readers


def _end_process(process: subprocess.Popen[bytes], readers: Iterable[_PipeReader]) -> None:
    """End a sandboxed process and its descendants, and read the rest of its output."""
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


def _split_single_pipe(data: bytes) -> dict[str, bytes]:
    """Split the data of the single pipe on Windows into the data of three separate pipes."""
    parts: dict[str, list[bytes]] = {"control": [], "libraries": [], "answers": []}
    for line in data.splitlines(keepends=True):
        name = "control" if not parts["control"] else "answers"
        parts["libraries" if line[:1] != b"{" else name].append(line)
    return {name: b"".join(lines) for name, lines in parts.items()}


class _PipeReader(threading.Thread):
    """A thread that reads a pipe to its end, and terminates the process if it writes too much."""

    def __init__(self, process: subprocess.Popen[bytes], pipe: IO[bytes], max_size: int) -> None:
        super().__init__(daemon=True)
        self.process, self.pipe, self.max_size = process, pipe, max_size
        self.data = bytearray()
        self.full = False
        self.start()

    def run(self) -> None:
        """Read the pipe until it is closed; discard data beyond the maximum size."""
        while chunk := os.read(self.pipe.fileno(), 1 << 16):
            self.full = self.full or len(self.data) + len(chunk) > self.max_size
            if self.full:
                self.process.terminate()
            else:
                self.data += chunk


def _create_environment(folder: Path) -> dict[str, str]:
    """Return the environment variables of a sandboxed process, without those of the grader.

    Libraries for linear algebra get one thread; they would otherwise use all cores.
    """
    threads = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM")
    return {
        **{name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ},
        **dict.fromkeys(("HOME", "TMPDIR", "TEMP", "TMP"), str(folder)),
        **{f"{name}_NUM_THREADS": "1" for name in threads},
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        "MPLBACKEND": "agg",
    }
