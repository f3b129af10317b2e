"""Verdicts on a part of a submission; its name and its points are added by :func:`scored`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import islice

from cgprimer.course.checks.check_results import Failure, Part

_RAISED = {  # by the name of the exception; the driver raises those about graphs
    "RecursionError": "recursion too deep",
    "CyclicGraph": "cyclic graph",
    "GraphTooLarge": "graph too large",
}


def rename_hint(expected: str, defined: Iterable[str], write: str = "`{}`") -> str:
    """Return the advice to rename what a submission calls nearly as it should, or an empty text.

    Args:
        expected: the name that the check asks for.
        defined: names that the submission has; only the first hundred are compared.
        write: how a name is written in the message.

    >>> rename_hint("gradient", ["helper", "grad"]), rename_hint("gradient", ["helper"])
    ('rename `grad` to `gradient`', '')
    """
    names = {name.casefold(): name for name in islice(defined, 100) if len(name) <= 60}
    close = get_close_matches(expected.casefold(), names, 1)
    return f"rename {write.format(names[close[0]])} to {write.format(expected)}" if close else ""


def assign_points(part: Part, name: str, possible: float) -> Part:
    """A verdict as a part with a name, and all points or none."""
    points = possible if part.verdict in ("right", "suspicious") else 0
    return replace(part, name=name, possible=possible, points=points)


def accept(message: str = "") -> Part:
    """All is right."""
    return Part("", 0, 0, "right", "", message)


def accept_with_note(label: str, message: str) -> Part:
    """Return a right answer with a note: worth knowing, but not a mistake."""
    return Part("", 0, 0, "right", "", message, note=label)


def suspect(mistake: str, message: str) -> Part:
    """Right here, and will not be elsewhere."""
    return Part("", 0, 0, "suspicious", mistake, message)


def reject(mistake: str, message: str, *evidence: str) -> Part:
    """No points."""
    return Part("", 0, 0, "wrong", mistake, message, evidence)


def postpone(message: str, *evidence: str) -> Part:
    """Nothing to judge yet."""
    return Part("", 0, 0, "not run", "", message, evidence)


def judge_failure(failure: Failure, about: Sequence[str]) -> Part:
    """It ended with an error, with its place in the submission; others of ``about`` failed, too."""
    said, lines = failure.message, failure.where.split("\n") if failure.where else []
    if said.startswith("NotImplementedError"):
        return postpone("not written yet", *lines)
    if not lines:  # what the driver did itself has no line
        if re.search("unsupported operand.*: '(int|float)' and", said):
            which = ", ".join(text.removeprefix("c = ") for text in about)
            says = f"no operator for a number on the left: {which}"
            return reject("reflected operator missing", says)
        if re.match("AttributeError: .?Value|TypeError: (unsupported|bad) operand", said):
            return postpone(f"not written yet: {said.partition(': ')[2]}, in {about[0]}")
    mistake = {"time": "out of time", "exit": "ends the program"}.get(failure.kind, "")
    name, _, text = said.partition(": ")
    mistake = _RAISED.get(name, mistake)
    if mistake in ("cyclic graph", "graph too large"):
        said = text
    return reject(mistake, f"{said}{f' in {about[0]}' if about[0] else ''}", *lines)
