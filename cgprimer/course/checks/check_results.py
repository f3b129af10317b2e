"""What a check finds: data only. No field holds a value that a student should find.

Every check returns a :class:`Result`; reports, pages and files for courses read it, and nothing
else counts points.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from math import fsum
from typing import Any, Literal

from cgprimer.errors import Source, Span, UsageError, name_hint, pluralize

Verdict = Literal["right", "wrong", "suspicious", "not run"]
_LONGEST = 5_000  # characters of one text in a result
_MOST_LINES = 200  # of evidence
LEVELS = ("points", "part", "mistake")  # of feedback
KINDS = {  # of failures: what a person reads of each
    "time": "out of time",
    "memory": "out of memory",
    "output": "too much output",
    "exit": "ends the program",
    "crash": "crash",
    "exception": "exception",
    "syntax": "syntax error",
    "encoding": "unreadable text",
    "missing": "missing name",
    "signature": "wrong signature",
    "shape": "wrong shape",
    "value": "not numbers",
    "answers": "broken answers",
    "grader": "a defect of the grader",
}


@dataclass(frozen=True)
class Failure:
    """Why there is no answer: of one request, or of a whole submission.

    ``kind`` is a key of :data:`KINDS`, ``message`` one line; ``where`` a place in the submission,
    ``line:column``, the line and a caret, where there is one.

    >>> print(Failure("exception", "ZeroDivisionError: division by zero", "line 2"))
    exception: ZeroDivisionError: division by zero
    line 2
    """

    kind: str
    message: str
    where: str = ""

    def __str__(self) -> str:
        heading = f"{KINDS[self.kind]}: {self.message}"
        return f"{heading}\n{self.where}" if self.where else heading


def readable(text: str) -> str:
    """Without what moves a terminal's cursor or the order of letters, or what XML cannot hold.

    >>> readable("a\\x1b[2Jb\\n")
    'a\ufffd[2Jb\\n'
    """
    known = r"\t\n -~\xa0-\u2029\u202f-\u2065\u206a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff"
    return re.sub(f"[^{known}]", "\ufffd", text)


def _clean(text: str) -> str:
    """Return a text of limited length that can be shown."""
    return readable(text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ...")


def place(source: Source, line: int | None, column: int = 0, end: int = 0) -> str:
    """A line of a submission with carets; columns count from 1, ``end`` is behind the last.

    Without columns it is the whole line.

    >>> print(place(Source("ann.py", "x = 1 / 0"), 1, 5, 10))
    ann.py:1:5
      x = 1 / 0
          ^^^^^
    """
    lines = source.text.split("\n")
    if line is None or not 1 <= line <= len(lines):
        return ""
    own, start = lines[line - 1], sum(len(text) + 1 for text in lines[: line - 1])
    if not column:
        column, end = len(own) - len(own.lstrip()) + 1, len(own.rstrip()) + 1
    column = max(1, min(column, len(own) + 1))
    span = Span(source, start + column - 1, start + max(column, end - 1))
    return f"{span.location()}\n{span.caret_lines()}"


@dataclass(frozen=True)
class Part:
    """One part of what was asked: a parameter, a stage, an optimizer, an entry of a table.

    ``mistake`` is the short name of a named mistake, or ""; ``message`` says it in a sentence;
    ``evidence`` are lines that show it. None of them holds a right value. ``note`` labels a
    message about a right part that is not a mistake, and is not counted as one.
    """

    name: str
    possible: float
    points: float
    verdict: Verdict
    mistake: str = ""
    message: str = ""
    evidence: tuple[str, ...] = ()
    note: str = ""
    problem: str = ""  # that the part belongs to; empty where parts are not grouped

    def __str__(self) -> str:
        """What is wrong with it, in lines; its verdict at least.

        >>> str(Part("ab", 1, 0, "wrong", "sign", "the sign is wrong"))
        'wrong: the sign is wrong (sign)'
        """
        if not self.message:
            return self.verdict
        named = f" ({self.mistake})" if self.mistake else ""
        named = f" (note: {self.note})" if self.note else named
        return "\n".join([f"{self.verdict}: {self.message}{named}", *self.evidence])


@dataclass(frozen=True, repr=False)
class Result:
    """What a check says of one submission. ``print`` shows all of it, and so does a notebook.

    >>> parts = (Part("ab", 1, 1, "right"), Part("bc", 1, 0, "wrong", "sign", "its sign is wrong"))
    >>> print(Result("gradient", "ann.py", parts))
    ann.py: 1 of 2 points
      ab  right
      bc  wrong: its sign is wrong (sign)
    """

    check: str
    submission: str
    parts: tuple[Part, ...]
    output: str = ""  # what the submission printed, cut off
    seconds: float = 0.0  # of the submission's own run, wall time
    failure: Failure | None = None  # of the submission as a whole
    notes: tuple[str, ...] = ()  # for the instructor: protections, modules that were loaded

    @property
    def points(self) -> float:
        """The points that were reached."""
        return _total(part.points for part in self.parts)

    @property
    def possible(self) -> float:
        """The points that could be reached."""
        return _total(part.possible for part in self.parts)

    @property
    def percent(self) -> float:
        """The points that were reached in percent; of no points 100, or 0 after a failure."""
        nothing = 0.0 if self.failure else 100.0
        return 100 * self.points / self.possible if self.possible else nothing

    @property
    def subtotals(self) -> dict[str, tuple[float, float]]:
        """For each problem the points that were reached and that could be."""
        problems = dict.fromkeys(part.problem for part in self.parts if part.problem)
        own = {name: [p for p in self.parts if p.problem == name] for name in problems}
        return {
            name: (_total(p.points for p in parts), _total(p.possible for p in parts))
            for name, parts in own.items()
        }

    def only_wrong(self) -> str:
        """Return the result as text, without the parts that have all their points."""
        return self._text([p for p in self.parts if p.points < p.possible or p.verdict != "right"])

    @property
    def mistakes(self) -> tuple[str, ...]:
        """The named mistakes, each once, and the kind of a failure."""
        named = [part.mistake for part in self.parts if part.mistake]
        if self.failure:
            named.append(KINDS[self.failure.kind])
        return tuple(dict.fromkeys(named))

    @property
    def summary(self) -> str:
        """The points in a line."""
        return f"{self.submission}: {self.points:g} of {self.possible:g} points"

    def __repr__(self) -> str:
        return f"<Result {self.summary}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def __str__(self) -> str:
        return self._text(self.parts)

    def _text(self, shown: Sequence[Part]) -> str:
        lines = [self.summary]
        if self.failure:
            lines += [f"  {line}" for line in str(self.failure).splitlines()]
        subtotals = self.subtotals.items() if len(self.subtotals) > 1 else ()
        for name, (points, possible) in subtotals:
            lines.append(f"  {name}: {points:g} of {possible:g} points")
        if self.failure and all(str(part) == "not run" for part in shown):  # said once
            lines += [f"  {pluralize(len(shown), 'part')} not run"] if shown else []
            shown = ()
        width = max((len(part.name) for part in shown), default=0)
        for part in shown:
            first, *more = str(part).splitlines()
            lines.append(f"  {part.name:{width}}  {first}")
            lines += [f"  {'':{width}}    {line}" for line in more]
        if self.output:
            lines += ["  it printed:", *(f"    {line}" for line in self.output.splitlines())]
        return readable("\n".join(lines))

    def require(self, name: str, level: str = "mistake") -> float:
        """The points of a part, in a test cell of a course.

        Raises:
            AssertionError: none were reached; the message is the feedback of that level.
            UsageError: there is no such part.

        >>> Result("gradient", "ann.py", (Part("ab", 2, 1, "wrong"),)).require("ab")
        1
        """
        known = {part.name: part for part in self.parts}
        if name not in known:
            raise UsageError(f"{self.check} has no part {name!r}", hint=name_hint(name, known))
        part = known[name]
        if part.points > 0 or not part.possible:
            return part.points
        failure = self.failure if part.verdict == "not run" and level != "points" else None
        raise AssertionError(str(failure or (part if level == "mistake" else part.verdict)))

    def at(self, level: str) -> Result:
        """As much of it as a level of feedback says.

        ``points``: the sum; ``part``: which parts are right, and what ended the program;
        ``mistake``: all.
        """
        if level == "mistake":
            return self
        if level == "part":
            parts = tuple(replace(p, mistake="", message="", evidence=()) for p in self.parts)
            return replace(self, parts=parts)
        verdict: Verdict = "right" if self.points >= self.possible else "wrong"
        whole = Part(self.check, self.possible, self.points, verdict)
        return replace(self, parts=(whole,), failure=None, output="", notes=())

    def cleaned(self) -> Result:
        """Return the result with texts that can be shown, written and stored: none is very long.

        >>> Result("gradient", "ann.py", (), "\\ud800" + "x"*10**6).cleaned().output[:3]
        '\ufffdxx'
        """
        parts = tuple(
            replace(
                part,
                message=_clean(part.message),
                mistake=_clean(part.mistake),
                evidence=tuple(map(_clean, part.evidence[:_MOST_LINES])),
            )
            for part in self.parts
        )
        failure = self.failure and replace(
            self.failure, message=_clean(self.failure.message), where=_clean(self.failure.where)
        )
        notes = tuple(map(_clean, self.notes))
        return replace(self, parts=parts, output=_clean(self.output), failure=failure, notes=notes)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; :meth:`from_dict` reads it back."""
        return asdict(self) | {"points": self.points, "possible": self.possible}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Result:
        """What :meth:`to_dict` wrote.

        Raises:
            KeyError, TypeError: it did not.
        """
        fields = {name: data[name] for name in cls.__dataclass_fields__}
        parts = tuple(
            Part(**part | {"evidence": tuple(part["evidence"])}) for part in data["parts"]
        )
        failure = Failure(**data["failure"]) if data["failure"] else None
        read = {"parts": parts, "failure": failure, "notes": tuple(data["notes"])}
        return cls(**fields | read).cleaned()


def _total(points: Iterable[float]) -> float:
    """Return a sum of points; hundredths add up exactly, and integers stay integers."""
    values = list(points)
    return round(fsum(values), 9) if any(type(v) is float for v in values) else sum(values)


def not_run(check: str, submission: str, possible: dict[str, float], failure: Failure) -> Result:
    """The result of a submission that gave no answers: no points, and why.

    >>> not_run("gradient", "ann.py", {"ab": 1}, Failure("time", "over 10 s")).parts[0].verdict
    'not run'
    """
    parts = tuple(Part(name, points, 0, "not run") for name, points in possible.items())
    return Result(check, submission, parts, failure=failure)
