"""Verdicts on a part of a submission; :func:`assign_points` adds the name and the points."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import islice

from cgprimer.course.checks.check_results import Failure, Part

_MISTAKE_OF_ERROR = {  # the stage driver raises the last two
    "RecursionError": "recursion too deep",
    "CyclicGraph": "cyclic graph",
    "GraphTooLarge": "graph too large",
}
_MISSING_METHOD = re.compile(  # of a class that the exercise requires
    r"'(Value|SGD|Network)' object (?:has no attribute '(\w+)'|is not callable)"
)
_MIN_SIMILARITY = 0.65  # of a name that is suggested: above that of `sigmoid` and `SGD`
_MISTAKE_OF_FAILURE = {"time": "out of time", "exit": "ends the program"}


def rename_hint(expected: str, defined: Iterable[str], write: str = "`{}`") -> str:
    """Return a hint to rename a definition with a name similar to `expected`, or ``""``.

    Args:
        expected: the name that the check requires.
        defined: the names that the submission defines; the first hundred are compared.
        write: the format of a name in the message.

    >>> rename_hint("gradient", ["helper", "grad"]), rename_hint("gradient", ["helper"])
    ('rename `grad` to `gradient`', '')
    """
    names = {name.casefold(): name for name in islice(defined, 100) if len(name) <= 60}
    close = get_close_matches(expected.casefold(), names, 1, _MIN_SIMILARITY)
    return f"rename {write.format(names[close[0]])} to {write.format(expected)}" if close else ""


def assign_points(part: Part, name: str, possible: float) -> Part:
    """Return a part with the given name, and with full or no points depending on its verdict."""
    points = possible if part.verdict in ("right", "suspicious") else 0
    return replace(part, name=name, possible=possible, points=points)


def accept(message: str = "") -> Part:
    """Return a part with the verdict ``right``."""
    return Part("", 0, 0, "right", "", message)


def accept_with_note(label: str, message: str) -> Part:
    """Return a part with the verdict ``right`` and a note that does not affect the points."""
    return Part("", 0, 0, "right", "", message, note=label)


def suspect(mistake: str, message: str) -> Part:
    """Return a part with the verdict ``suspicious``, for a solution that is only partly correct."""
    return Part("", 0, 0, "suspicious", mistake, message)


def reject(mistake: str, message: str, *evidence: str) -> Part:
    """Return a part with the verdict ``wrong``, the mistake and the evidence."""
    return Part("", 0, 0, "wrong", mistake, message, evidence)


def postpone(message: str, *evidence: str) -> Part:
    """Return a part with the verdict ``not run``, such as for an unfinished function."""
    return Part("", 0, 0, "not run", "", message, evidence)


def judge_failure(failure: Failure, cases: Sequence[str]) -> Part:
    """Return the verdict on a call that failed with an error.

    Args:
        failure: the error, with its position in the submission.
        cases: the cases that failed; the first one is named in the message.
    """
    message = failure.message
    lines = failure.where.split("\n") if failure.where else []
    if message.startswith("NotImplementedError"):
        return postpone("not written yet", *lines)
    if not lines:  # the error was raised by the driver
        if re.search("unsupported operand.*: '(int|float)' and", message):
            operations = ", ".join(text.removeprefix("c = ") for text in cases)
            return reject(
                "reflected operator missing",
                f"no operator for a number on the left: {operations}",
            )
        if method := _MISSING_METHOD.search(message):
            return postpone(f"`{method[1]}.{method[2] or '__call__'}` is missing")
        if re.match("AttributeError: Value|TypeError: (unsupported|bad) operand", message):
            return postpone(f"not written yet: {message.partition(': ')[2]}, in {cases[0]}")
    error, _, description = message.partition(": ")
    mistake = _MISTAKE_OF_ERROR.get(error, _MISTAKE_OF_FAILURE.get(failure.kind, ""))
    if mistake in ("cyclic graph", "graph too large"):
        message = description
    case = f" in {cases[0]}" if cases[0] else ""
    return reject(mistake, f"{message}{case}", *lines)
