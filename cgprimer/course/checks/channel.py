"""Read and validate the output of a submission's process: limited in size, never evaluated.

Code of the submission runs in the process that writes the answers, so every byte of them may be
forged. Therefore the answers are read after that process has ended. They must be exactly one
answer for each request, in order. Their size, their number of entries and their depth are limited
before they are parsed. If one line breaks a rule, all answers of the submission are rejected.
"""

from __future__ import annotations

import json
import math
import re
import signal
from dataclasses import dataclass
from typing import Any

from cgprimer.course.checks.answering import MAX_MESSAGE_LENGTH
from cgprimer.course.checks.check_results import KINDS, Failure, sanitize, show_position
from cgprimer.errors import Source

MAX_ANSWERS_SIZE = 20_000_000  # bytes; a million numbers
MAX_CONTROL_SIZE = MAX_LIBRARIES_SIZE = 10_000  # bytes
_MAX_ENTRIES = 1_000_000  # of lists and dictionaries, in all answers together
_MAX_DEPTH = 25
_MAX_DIGITS = 310  # of an integer
_MAX_STRING_LENGTH = 10_000  # characters; longer strings are cut off
_LIBRARY = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,60}")
INTERFERED = Failure("answers", "the submission interfered with the result channel")


class InvalidLineError(ValueError):
    """Raised for an output line that only a manipulating submission can have written."""


class AnswersTooLargeError(ValueError):
    """Raised if the answers of a submission exceed the maximum size or number of entries."""


@dataclass(frozen=True)
class Transcript:
    """The raw output of a sandboxed process: the bytes from each pipe.

    Attributes:
        control: bytes from the supervising process, to which the submission has no access.
        answers: bytes from the submission's process.
        libraries: names of the libraries that the submission's process opened.
        printed: standard output and standard error of the submission.
        late: True if the process did not end in time.
        full: names of the pipes that exceeded their size limits.
    """

    control: bytes
    answers: bytes
    libraries: bytes
    printed: bytes
    late: bool = False
    full: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Outcome:
    """The answers of a submission, parsed from a transcript.

    Attributes:
        values: values or failures of the answered requests.
        failure: why further requests have no answers, if any are left.
        loaded: True if the submission was imported.
        libraries: names of the libraries that the submission opened.
        protections: protections that were in force, as ``files: kernel``.
    """

    values: tuple[Any, ...]
    failure: Failure | None
    loaded: bool
    libraries: tuple[str, ...]
    protections: tuple[str, ...]


def read_outcome(
    transcript: Transcript, source: Source, requested: int, time: float, output: int
) -> Outcome:
    """Parse a transcript into the answers of a submission, or into a failure that invalidates them.

    Args:
        transcript: the output of the submission's process.
        source: the source code of the submission.
        requested: the number of requests.
        time: the limit of computing time, in seconds.
        output: the limit of printed output, in kilobytes.
    """
    control = _read_control(transcript.control)
    protections = tuple(f"{k}: {v}" for k, v in control.get("protections", {}).items())
    try:
        if "answers" in transcript.full:
            raise AnswersTooLargeError(f"the answers exceed {MAX_ANSWERS_SIZE:,} bytes")
        libraries = _read_libraries(transcript)
        loading, values = _read_answers(transcript.answers, source, requested)
    except AnswersTooLargeError as error:
        return Outcome((), Failure("answers", str(error)), False, (), protections)
    except (ValueError, RecursionError):
        return Outcome((), INTERFERED, False, (), protections)
    loaded = loading is True
    failure = loading if isinstance(loading, Failure) else None
    if failure is None and len(values) < requested:
        failure = _explain_end(transcript, control.get("ended"), time, output)
    return Outcome(tuple(values), failure, loaded, libraries, protections)


def _read_control(data: bytes) -> dict[str, Any]:
    """Parse the output of the control pipe into one dictionary; ignore an incomplete last line."""
    entries: dict[str, Any] = {}
    for line in data.split(b"\n")[:-1]:
        entries |= json.loads(line)
    return entries


def _read_libraries(transcript: Transcript) -> tuple[str, ...]:
    """Return the sorted names of the libraries that the submission opened.

    Raises:
        InvalidLineError: the pipe contains other data.
    """
    if "libraries" in transcript.full:
        raise InvalidLineError("too many libraries")
    names = transcript.libraries.decode("ascii").split("\n")[:-1]
    if not all(_LIBRARY.fullmatch(name) for name in names):
        raise InvalidLineError("expected a library, such as 'numpy'")
    return tuple(sorted(set(names)))


def _read_answers(
    data: bytes, source: Source, requested: int
) -> tuple[bool | Failure | None, list[Any]]:
    """Parse the output of the answers pipe: one answer per request.

    Returns:
        Whether the submission was imported (True, its failure, or None if the process ended
        before), and the values of the answers.

    Raises:
        InvalidLineError: at least one line was not written by the sandbox.
        AnswersTooLargeError: the answers have too many entries.
        ValueError, RecursionError: a line is not valid JSON.
    """
    lines = data.split(b"\n", requested + 2)
    if len(lines) > requested + 2:
        raise InvalidLineError("the answers pipe has more lines than there were requests")
    del lines[-1]  # empty, or incomplete because the process ended
    if not lines:
        return None, []
    budget = _MAX_ENTRIES
    loading: bool | Failure | None = None
    values: list[Any] = []
    for index, line in enumerate(lines, -1):
        budget -= line.count(b",") + line.count(b"[") + line.count(b"{")
        if budget < 0:
            raise AnswersTooLargeError(f"the answers contain more than {_MAX_ENTRIES:,} entries")
        entry = json.loads(line.decode("ascii"), parse_int=_parse_integer)
        if not isinstance(entry, dict):
            raise InvalidLineError("expected a JSON object")
        if index < 0:
            loading = _parse_import_result(entry, source)
        elif loading is not True or type(entry.get("request")) is not int:
            raise InvalidLineError("expected an answer to a request")
        elif entry["request"] != index:
            raise InvalidLineError("the answers are not in the order of the requests")
        else:
            values.append(read_value(entry, source))
    return loading, values


def _parse_import_result(entry: dict[str, Any], source: Source) -> bool | Failure:
    """Return True if an entry reports that the import succeeded, otherwise the reported failure.

    Raises:
        InvalidLineError: the entry reports neither.
    """
    if entry == {"loaded": True}:
        return True
    if entry.keys() == {"loaded", "failure"} and entry["loaded"] is False:
        return _parse_failure(entry["failure"], source)
    raise InvalidLineError("expected the result of the import: success or an error")


def read_value(entry: dict[str, Any], source: Source) -> Any:
    """Return the value of an answer, or its failure with the position in the submission.

    Raises:
        InvalidLineError: the answer has neither, or both.
    """
    if entry.keys() - {"request"} == {"value"}:
        return _sanitize_value(entry["value"])
    if entry.keys() - {"request"} == {"failure"}:
        return _parse_failure(entry["failure"], source)
    raise InvalidLineError("expected a value or a failure")


def _parse_integer(text: str) -> int:
    """Convert a string of digits to int; raise an error if the integer exceeds the largest float.

    Raises:
        InvalidLineError: the integer is too large.
    """
    if len(text) > _MAX_DIGITS or math.isinf(float(text)):
        raise InvalidLineError("an integer exceeds the largest float")
    return int(text)


def _sanitize_value(value: Any, depth: int = 0) -> Any:
    """Return a copy of a value in which all strings are printable and of limited length.

    Raises:
        InvalidLineError: the value is nested too deeply.
    """
    if isinstance(value, str):
        return sanitize(value[:_MAX_STRING_LENGTH])
    if depth > _MAX_DEPTH:
        raise InvalidLineError("the answer is nested too deeply")
    if isinstance(value, list):
        return [
            _sanitize_value(v, depth + 1) if isinstance(v, str | list | dict) else v for v in value
        ]
    if isinstance(value, dict):
        return {
            sanitize(k[:_MAX_STRING_LENGTH]): _sanitize_value(v, depth + 1)
            for k, v in value.items()
        }
    return value


def _parse_failure(entry: Any, source: Source) -> Failure:
    """Parse a failure that the submission process reported, and add its position in the source.

    Raises:
        InvalidLineError: the entry is not a failure.
    """
    if not isinstance(entry, dict):
        raise InvalidLineError("a failure must be a JSON object")
    kind, message = entry.get("kind"), entry.get("message")
    if not isinstance(kind, str) or kind not in KINDS or not isinstance(message, str):
        raise InvalidLineError("unknown kind of failure")
    line, column, end, first, last = (
        _parse_position(entry.get(name)) for name in ("line", "column", "end", "from", "to")
    )
    if first is not None:  # byte offsets from the start of the line
        lines = source.text.split("\n")
        text = lines[line - 1].encode() if line and line <= len(lines) else b""
        column = len(text[:first].decode(errors="replace")) + 1
        end = len(text[: last or 0].decode(errors="replace")) + 1
    where = show_position(source, line, column or 0, end or 0)
    message = " ".join(message[: 2 * MAX_MESSAGE_LENGTH].split())
    return Failure(kind, sanitize(message), sanitize(where))


def _parse_position(value: Any) -> int | None:
    """Return a line number, column or offset after validation; None if it is unknown.

    Raises:
        InvalidLineError: the value is not an integer in the valid range.
    """
    if value is None:
        return None
    if type(value) is not int or abs(value) > MAX_ANSWERS_SIZE:
        raise InvalidLineError("invalid line, column or offset")
    return max(value, 0)


def _explain_end(transcript: Transcript, ended: Any, time: float, output: int) -> Failure:
    """Return the failure that explains why a process ended before answering all requests.

    Args:
        transcript: the output of the process.
        ended: exit code, signal and computing time, as the supervising process reported them.
        time: the limit of computing time, in seconds.
        output: the limit of printed output, in kilobytes.
    """
    timeout = Failure("time", f"not finished after {time:g} s: check that every loop ends")
    if "printed" in transcript.full:
        return Failure("output", f"the submission prints more than {output:,} kB")
    if transcript.late:
        return timeout
    if ended is None:
        return Failure("crash", "the submission ended the process that supervises it")
    code, signal_number, computed = ended
    if signal_number == getattr(signal, "SIGXCPU", 24):
        return timeout
    if signal_number == 9 and computed >= time:
        return timeout
    if signal_number:
        return Failure("crash", _explain_signal(signal_number))
    return Failure("exit", f"the submission ends its process with exit code {code}")


def _explain_signal(number: int) -> str:
    """Return a sentence that explains which signal ended the process of a submission."""
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    causes = {
        "SIGSEGV": "invalid memory access or too deep recursion",
        "SIGKILL": "the process was killed",
        "SIGABRT": "the process aborted, often because it ran out of memory",
    }
    return f"{causes.get(name, 'the process was ended by a signal')} ({name})"
