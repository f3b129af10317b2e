"""A submission's code in a process of its own, with limits; what it answers, as data.

What the process may and may not do is in :mod:`cgprimer.checking.inside`, which runs there. Its
requests and answers are JSON: nothing that a submission says is evaluated here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, TypedDict

from cgprimer.checking import inside
from cgprimer.checking.results import Failure, place
from cgprimer.errors import Source, UsageError

Submission = str | Path | Mapping[str, Any]  # a file, or the names of a notebook: globals()
_LARGEST_SUBMISSION = 1_000_000  # bytes
_LARGEST_ANSWERS = 50_000_000  # bytes
_KEPT_OUTPUT = 4_000  # characters


class Request(TypedDict):
    """A function of the submission, or of the driver, and its arguments, as JSON has them."""

    call: str
    arguments: list[Any]


@dataclass(frozen=True)
class Limits:
    """What a submission may use."""

    time: float = 10.0  # seconds of computing; of waiting, twice as many
    memory: int = 1024  # megabytes
    output: int = 1000  # kilobytes that it may print
    processes: int = 16  # and threads
    file_size: int = 16  # megabytes of a file that it writes
    forbidden: tuple[str, ...] = ()  # modules that it may not import


@dataclass(frozen=True)
class Answers:
    """A value or a failure for each request, and what the run was like.

    ``failure`` is that of the submission as a whole: it could not be imported, or it ended, and
    took the requests behind with it; then they have this failure, too.
    """

    values: tuple[Any, ...]
    failure: Failure | None = None
    output: str = ""
    seconds: float = 0.0
    modules: tuple[str, ...] = ()  # that it imported
    protections: tuple[str, ...] = ()


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

    A mapping of names, as ``globals()`` of a notebook, runs here instead, without any protection.

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
    source = _source(Path(submission))
    if isinstance(source, Failure):
        return Answers((source,) * len(requests), source)
    answers = _run(source, requests, limits, driver)
    for _ in range(restarts):
        done = _answered(answers)
        if answers.failure is None or done is None or done >= len(requests) - 1:
            break
        more = _run(source, requests[done + 1 :], limits, driver)
        values = (*answers.values[: done + 1], *more.values)
        output = answers.output + more.output
        seconds = answers.seconds + more.seconds
        answers = Answers(values, more.failure, output, seconds, more.modules, more.protections)
    return answers


def _answered(answers: Answers) -> int | None:
    """The index of the request that ended the process; None where it was none of them."""
    ended = [i for i, value in enumerate(answers.values) if value is answers.failure]
    return ended[0] if ended else None


def _run_here(
    names: Mapping[str, Any], requests: Sequence[Request], driver: str | Path | None
) -> Answers:
    target: Any = SimpleNamespace(**names)
    leading = []
    if driver is not None:
        leading, target = [target], inside.load(str(driver), f"cgprimer_driver_{Path(driver).stem}")
    started = time.perf_counter()
    values = [
        inside.answer(target, r["call"], [*leading, *r["arguments"]], "<notebook>")
        for r in requests
    ]
    read = tuple(_value(line, Source("<notebook>", "")) for line in values)
    return Answers(read, seconds=time.perf_counter() - started)


def _source(path: Path) -> Source | Failure:
    """The text of a submission.

    Raises:
        UsageError: there is no such file.
    """
    try:
        data = path.read_bytes() if path.stat().st_size <= _LARGEST_SUBMISSION else None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    if data is None:
        return Failure("encoding", f"{path.name} is larger than {_LARGEST_SUBMISSION:,} bytes")
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return Failure(
            "encoding",
            f"byte {data[error.start]:#04x} on line {line} is not {error.encoding}: save the file"
            " as UTF-8",
        )
    except (SyntaxError, LookupError) as error:
        return Failure("encoding", str(error))
    return Source(path.name, text.replace("\r\n", "\n").replace("\r", "\n"))


def _run(
    source: Source, requests: Sequence[Request], limits: Limits, driver: str | Path | None
) -> Answers:
    folder = tempfile.mkdtemp(prefix="cgprimer-")
    try:
        return _run_in(Path(os.path.realpath(folder)), source, requests, limits, driver)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run_in(
    folder: Path,
    source: Source,
    requests: Sequence[Request],
    limits: Limits,
    driver: str | Path | None,
) -> Answers:
    path = folder / "submission.py"
    path.write_text(source.text, encoding="utf-8")
    setup: dict[str, Any] = {"submission": str(path), "driver": None, "requests": list(requests)}
    if driver is not None:
        setup["driver"] = str(folder / "cgprimer_driver.py")
        shutil.copyfile(driver, folder / "cgprimer_driver.py")
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-I", "-B", "-X", "utf8", inside.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=_environment(folder),
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    heard = _Reader(process, process.stdout, _LARGEST_ANSWERS)
    printed = _Reader(process, process.stderr, limits.output * 1000)
    late = False
    try:
        try:
            process.stdin.write(json.dumps(setup).encode())
            process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            process.wait(2 * limits.time + 2)
        except subprocess.TimeoutExpired:
            late = True
    finally:
        process.kill()
        process.wait()
        for reader in (heard, printed):
            reader.join(2)
            reader.pipe.close()
    return _read(source, requests, limits, heard, printed, late, process.returncode, started)


def _read(
    source: Source,
    requests: Sequence[Request],
    limits: Limits,
    heard: _Reader,
    printed: _Reader,
    late: bool,
    code: int,
    started: float,
) -> Answers:
    """What the process said, and how it ended."""
    values: list[Any] = []
    end: dict[str, Any] = {}
    loaded = False
    failure: Failure | None = None
    protections: tuple[str, ...] = ()
    for text in bytes(heard.data).split(b"\n")[:-1]:
        try:
            line = json.loads(text)
            if "protections" in line:
                protections = tuple(map(str, line["protections"]))
            elif "end" in line:
                end = line["end"]
            elif "loaded" in line:
                loaded = True
            elif loaded:
                values.append(_value(line, source))
            else:
                failure = _value(line, source)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            failure = failure or Failure("answers", "it meddles with how answers are given")
    values = values[: len(requests)]
    if failure is None and len(values) < len(requests):
        failure = _ended(limits, heard, printed, late, code)
    rest = (failure,) * (len(requests) - len(values))
    output = bytes(printed.data).decode(errors="replace")
    if len(output) > _KEPT_OUTPUT:
        output = f"{output[:_KEPT_OUTPUT]}\n... {len(output) - _KEPT_OUTPUT:,} more characters"
    modules = end.get("modules", ()) if isinstance(end, dict) else ()
    seconds = time.perf_counter() - started
    return Answers((*values, *rest), failure, output, seconds, tuple(modules), protections)


def _value(line: dict[str, Any], source: Source) -> Any:
    """The value of an answer, or its failure with the place in the submission."""
    if "failure" not in line:
        return line["value"]
    said = line["failure"]
    number = said.get("line")
    where = ""
    if isinstance(number, int):
        column, end = said.get("column") or 1, said.get("end") or 0
        if isinstance(said.get("from"), int):  # bytes, from 0
            lines = source.text.split("\n")
            text = lines[number - 1].encode() if 1 <= number <= len(lines) else b""
            column = len(text[: said["from"]].decode(errors="replace")) + 1
            end = len(text[: said.get("to") or 0].decode(errors="replace")) + 1
        where = place(source, number, int(column), int(end))
    return Failure(str(said["kind"]), str(said["message"]), where)


def _ended(limits: Limits, heard: _Reader, printed: _Reader, late: bool, code: int) -> Failure:
    """Why a process ended before it had answered everything."""
    if printed.full or heard.full:
        return Failure("output", f"it prints more than {limits.output:,} kB")
    if late:
        return Failure("time", f"it is not done after {limits.time:g} s: does a loop end?")
    if code < 0:
        return Failure("crash", f"signal {-code} ended it")
    return Failure("exit", f"the process ended itself, with code {code}")


class _Reader(threading.Thread):
    """Reads a pipe to its end; when there is too much, ends the process."""

    def __init__(self, process: subprocess.Popen[bytes], pipe: IO[bytes], most: int) -> None:
        super().__init__(daemon=True)
        self.process, self.pipe, self.most = process, pipe, most
        self.data = bytearray()
        self.full = False
        self.start()

    def run(self) -> None:
        while chunk := os.read(self.pipe.fileno(), 1 << 16):
            if len(self.data) + len(chunk) > self.most:
                self.full = True
                self.process.kill()
                return
            self.data += chunk


def _environment(folder: Path) -> dict[str, str]:
    """Nothing of the grader's; one thread for libraries that would take all cores."""
    threads = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM")
    kept = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
    places = dict.fromkeys(("HOME", "TMPDIR", "TEMP", "TMP"), str(folder))
    return {
        **kept,
        **places,
        **{f"{name}_NUM_THREADS": "1" for name in threads},
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        "MPLBACKEND": "agg",
    }
