"""Read what comes out of a submission's process: limited, strictly validated, never evaluated.

Every byte of the answers may come from the submission itself, as code of the submission runs in
the process that answers. So the answers are read only after that process has ended; they must be
exactly one answer for each request, in order; and their size, the number of their entries and
their depth are limited before they are parsed. One line that breaks a rule, and no answer of the
submission is believed.
"""

from __future__ import annotations

import json
import re
import signal
from dataclasses import dataclass
from typing import Any

from cgprimer.course.checks.answering import LONGEST_MESSAGE
from cgprimer.course.checks.check_results import KINDS, Failure, place, readable
from cgprimer.errors import Source

LARGEST_ANSWERS = 20_000_000  # bytes; a million numbers
LARGEST_CONTROL = LARGEST_LIBRARIES = 10_000  # bytes
_MOST_ENTRIES = 1_000_000  # of lists and dictionaries, in all answers together
_DEEPEST = 25
_LONGEST_INTEGER = 310  # digits
_LONGEST_TEXT = 10_000  # characters; longer ones are cut
_LIBRARY = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,60}")
INTERFERED = Failure("answers", "the submission interfered with the result channel")


class Invalid(ValueError):
    """A line that the sandbox does not write."""


class TooLarge(ValueError):
    """More answers than are read."""


@dataclass(frozen=True)
class Transcript:
    """What came out of a sandboxed process.

    Attributes:
        control: written by the supervising process, which the submission cannot reach.
        answers: written by the submission's process.
        libraries: the same, the names of libraries before they are opened.
        printed: standard output and standard error.
        late: the process had not ended in time.
        full: the pipes that had more than they may.
    """

    control: bytes
    answers: bytes
    libraries: bytes
    printed: bytes
    late: bool = False
    full: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Outcome:
    """The answers in a transcript: values for the first requests, and why there are no more."""

    values: tuple[Any, ...]
    failure: Failure | None
    loaded: bool
    libraries: tuple[str, ...]
    protections: tuple[str, ...]


def read_outcome(
    transcript: Transcript, source: Source, requested: int, time: float, output: int
) -> Outcome:
    """Return the answers of a submission, or a failure in their place.

    Args:
        transcript: what came out of its process.
        source: the text of the submission.
        requested: the number of requests.
        time: the limit of computing time, in seconds.
        output: the limit of printed text, in kilobytes.
    """
    control = _read_control(transcript.control)
    protections = tuple(f"{k}: {v}" for k, v in control.get("protections", {}).items())
    try:
        if "answers" in transcript.full:
            raise TooLarge(f"its answers have more than {LARGEST_ANSWERS:,} bytes")
        libraries = _read_libraries(transcript)
        loading, values = _read_answers(transcript.answers, source, requested)
    except TooLarge as error:
        return Outcome((), Failure("answers", str(error)), False, (), protections)
    except (ValueError, RecursionError):
        return Outcome((), INTERFERED, False, (), protections)
    loaded = loading is True
    failure = loading if isinstance(loading, Failure) else None
    if failure is None and len(values) < requested:
        failure = _ending(transcript, control.get("ended"), time, output)
    return Outcome(tuple(values), failure, loaded, libraries, protections)


def _read_control(data: bytes) -> dict[str, Any]:
    """Return what the supervising process wrote; its last line may be cut off."""
    entries: dict[str, Any] = {}
    for line in data.split(b"\n")[:-1]:
        entries |= json.loads(line)
    return entries


def _read_libraries(transcript: Transcript) -> tuple[str, ...]:
    if "libraries" in transcript.full:
        raise Invalid("too many libraries")
    names = transcript.libraries.decode("ascii").split("\n")[:-1]
    if not all(_LIBRARY.fullmatch(name) for name in names):
        raise Invalid("not the name of a library")
    return tuple(sorted(set(names)))


def _read_answers(
    data: bytes, source: Source, requested: int
) -> tuple[bool | Failure | None, list[Any]]:
    """Return whether the submission was loaded, or why not, and the values of its answers.

    Raises:
        Invalid: the lines are not those of the sandbox, or there are others as well.
        TooLarge: the answers have too many entries.
        ValueError, RecursionError: a line is not valid JSON.
    """
    lines = data.split(b"\n", requested + 2)
    if len(lines) > requested + 2:
        raise Invalid("more lines than requests")
    del lines[-1]  # nothing, or a line that was cut off when the process ended
    if not lines:
        return None, []
    budget = _MOST_ENTRIES
    loading: bool | Failure | None = None
    values: list[Any] = []
    for number, line in enumerate(lines, -1):
        budget -= line.count(b",") + line.count(b"[") + line.count(b"{")
        if budget < 0:
            raise TooLarge(f"its answers have more than {_MOST_ENTRIES:,} numbers")
        entry = json.loads(line.decode("ascii"), parse_int=_parse_integer)
        if not isinstance(entry, dict):
            raise Invalid("not an answer")
        if number < 0:
            loading = _loading(entry, source)
        elif loading is not True or type(entry.get("request")) is not int:
            raise Invalid("not an answer to a request")
        elif entry["request"] != number:
            raise Invalid("not the next answer")
        else:
            values.append(read_value(entry, source))
    return loading, values


def _loading(entry: dict[str, Any], source: Source) -> bool | Failure:
    if entry == {"loaded": True}:
        return True
    if entry.keys() == {"loaded", "failure"} and entry["loaded"] is False:
        return _failure(entry["failure"], source)
    raise Invalid("does not say whether the submission was loaded")


def read_value(entry: dict[str, Any], source: Source) -> Any:
    """Return the value of an answer, or its failure with the position in the submission.

    Raises:
        Invalid: it has neither, or both.
    """
    if entry.keys() - {"request"} == {"value"}:
        return _clean(entry["value"])
    if entry.keys() - {"request"} == {"failure"}:
        return _failure(entry["failure"], source)
    raise Invalid("neither a value nor a failure")


def _parse_integer(text: str) -> int:
    if len(text) > _LONGEST_INTEGER:
        raise Invalid("an integer that no float can hold")
    number = int(text)
    float(number)
    return number


def _clean(value: Any, depth: int = 0) -> Any:
    """Return an answer whose texts can be shown and are not long.

    Raises:
        Invalid: it is nested too deeply.
    """
    if isinstance(value, str):
        return readable(value[:_LONGEST_TEXT])
    if depth > _DEEPEST:
        raise Invalid("nested too deeply")
    if isinstance(value, list):
        return [_clean(v, depth + 1) if isinstance(v, str | list | dict) else v for v in value]
    if isinstance(value, dict):
        return {readable(k[:_LONGEST_TEXT]): _clean(v, depth + 1) for k, v in value.items()}
    return value


def _failure(entry: Any, source: Source) -> Failure:
    """Return a failure that was reported, with its position in the submission.

    Raises:
        Invalid: it is not one.
    """
    if not isinstance(entry, dict):
        raise Invalid("not a failure")
    kind, message = entry.get("kind"), entry.get("message")
    if not isinstance(kind, str) or kind not in KINDS or not isinstance(message, str):
        raise Invalid("not a kind of failure")
    line, column, end, first, last = (
        _position(entry.get(name)) for name in ("line", "column", "end", "from", "to")
    )
    if first is not None:  # offsets in bytes, from 0
        lines = source.text.split("\n")
        text = lines[line - 1].encode() if line and line <= len(lines) else b""
        column = len(text[:first].decode(errors="replace")) + 1
        end = len(text[: last or 0].decode(errors="replace")) + 1
    where = place(source, line, column or 0, end or 0)
    message = " ".join(message[: 2 * LONGEST_MESSAGE].split())
    return Failure(kind, readable(message), readable(where))


def _position(value: Any) -> int | None:
    if value is None:
        return None
    if type(value) is not int or abs(value) > LARGEST_ANSWERS:
        raise Invalid("not a position")
    return max(value, 0)


def _ending(transcript: Transcript, ended: Any, time: float, output: int) -> Failure:
    """Return why a process ended before it had answered everything."""
    late = Failure("time", f"it is not done after {time:g} s: does every loop end?")
    if "printed" in transcript.full:
        return Failure("output", f"it prints more than {output:,} kB")
    if transcript.late:
        return late
    if ended is None:
        return Failure("crash", "it ended the process that supervises it")
    code, number, computed = ended
    if number == getattr(signal, "SIGXCPU", 24) or (number == 9 and computed >= time):
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
