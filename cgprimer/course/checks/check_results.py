"""Results of checks, as plain data. No field contains a value that a student should find.

Every check returns a :class:`Result`. Reports, pages and files for courses read it, and only this
module counts points.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from math import fsum
from typing import Any, Literal

from cgprimer.errors import Source, Span, UsageError, name_hint, pluralize

Verdict = Literal["right", "wrong", "suspicious", "not run"]
_MAX_STRING_LENGTH = 5_000  # characters of one string in a result
_MAX_EVIDENCE = 200  # lines
LEVELS = ("points", "part", "mistake")  # of feedback
KINDS = {  # headings of failures, keyed by kind
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
    "sheet": "another student's sheet",
    "grader": "error in the grader",
}


@dataclass(frozen=True)
class Failure:
    """The reason why a request, or a whole submission, has no answer.

    Attributes:
        kind: a key of :data:`KINDS`.
        message: the reason in one line.
        where: the position in the submission as ``file:line:column``, with the line and a caret
            below; empty if it is unknown.

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


def sanitize(text: str) -> str:
    """Replace characters that control terminals, reverse the text direction or are invalid in XML.

    >>> sanitize("a\\x1b[2Jb\\n")
    'a\ufffd[2Jb\\n'
    """
    allowed = r"\t\n -~\xa0-\u2029\u202f-\u2065\u206a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff"
    return re.sub(f"[^{allowed}]", "\ufffd", text)


def _sanitize_string(text: str) -> str:
    """Replace non-printable characters in a string, and limit its length."""
    is_short = len(text) <= _MAX_STRING_LENGTH
    return sanitize(text if is_short else f"{text[:_MAX_STRING_LENGTH]} ...")


def show_position(source: Source, line: int | None, column: int = 0, end: int = 0) -> str:
    """Return a line of a submission, with carets under the columns of an error.

    Args:
        source: the submission.
        line: the line, counted from 1.
        column: the first column, counted from 1; 0 to mark the whole line.
        end: the column after the last.

    >>> print(show_position(Source("ann.py", "x = 1 / 0"), 1, 5, 10))
    ann.py:1:5
      x = 1 / 0
          ^^^^^
    """
    lines = source.text.split("\n")
    if line is None or not 1 <= line <= len(lines):
        return ""
    content = lines[line - 1]
    start = sum(len(text) + 1 for text in lines[: line - 1])
    if not column:
        column, end = len(content) - len(content.lstrip()) + 1, len(content.rstrip()) + 1
    column = max(1, min(column, len(content) + 1))
    span = Span(source, start + column - 1, start + max(column, end - 1))
    return f"{span.location()}\n{span.caret_lines()}"


@dataclass(frozen=True)
class Part:
    """The verdict on one part of a task: a parameter, a stage, an optimizer, or a blank of a table.

    No attribute contains a correct value.

    Attributes:
        name: the name of the part.
        possible: the maximum number of points.
        points: the number of points reached.
        verdict: the verdict.
        mistake: the short name of a recognized mistake, or an empty string.
        message: a sentence about the mistake.
        evidence: lines that show the mistake.
        note: a label for a message about a correct part; it does not count as a mistake.
        problem: the problem that the part belongs to; empty if parts are not grouped.
    """

    name: str
    possible: float
    points: float
    verdict: Verdict
    mistake: str = ""
    message: str = ""
    evidence: tuple[str, ...] = ()
    note: str = ""
    problem: str = ""

    def __str__(self) -> str:
        """Return the verdict, followed by the mistake and the evidence if there are any.

        >>> str(Part("ab", 1, 0, "wrong", "sign", "the sign is wrong"))
        'wrong: the sign is wrong (sign)'
        >>> str(Part("ab", 1, 0, "wrong", "sign", "wrong sign"))
        'wrong sign'
        """
        if not self.message:
            return self.verdict
        label = f" ({self.mistake})" if self.mistake else ""
        label = f" (note: {self.note})" if self.note else label
        message = f"{self.verdict}: {self.message}"
        if self.message.startswith(f"{self.verdict} "):
            message = self.message
        if self.message in (self.mistake, f"{self.verdict} {self.mistake}"):
            label = ""
        return "\n".join([f"{message}{label}", *self.evidence])


@dataclass(frozen=True, repr=False)
class Result:
    """The result of checking one submission. ``print`` and notebooks show the whole result.

    Attributes:
        check: the name of the check.
        submission: the name of the submission.
        parts: the verdicts on all parts.
        output: the beginning of the submission's printed output.
        seconds: wall time of the submission's run.
        failure: the failure of the submission as a whole, if any.
        notes: notes for the instructor: protections in force, imported libraries.

    >>> parts = (Part("ab", 1, 1, "right"), Part("bc", 1, 0, "wrong", "sign", "its sign is wrong"))
    >>> print(Result("gradient", "ann.py", parts))
    ann.py: 1 of 2 points
      ab  right
      bc  wrong: its sign is wrong (sign)
    """

    check: str
    submission: str
    parts: tuple[Part, ...]
    output: str = ""
    seconds: float = 0.0
    failure: Failure | None = None
    notes: tuple[str, ...] = ()

    @property
    def points(self) -> float:
        """The total number of points that the submission earned."""
        return _sum_points(part.points for part in self.parts)

    @property
    def possible(self) -> float:
        """The maximum number of points."""
        return _sum_points(part.possible for part in self.parts)

    @property
    def percent(self) -> float:
        """The percentage of points earned; without possible points, 100, or 0 after a failure."""
        default = 0.0 if self.failure else 100.0
        return 100 * self.points / self.possible if self.possible else default

    @property
    def subtotals(self) -> dict[str, tuple[float, float]]:
        """The earned points and the maximum points of each problem, keyed by problem."""
        problems = dict.fromkeys(part.problem for part in self.parts if part.problem)
        parts_of = {name: [p for p in self.parts if p.problem == name] for name in problems}
        return {
            name: (_sum_points(p.points for p in parts), _sum_points(p.possible for p in parts))
            for name, parts in parts_of.items()
        }

    def only_wrong(self) -> str:
        """Format the result without the parts that earned all their points."""
        return self._format_parts(
            [p for p in self.parts if p.points < p.possible or p.verdict != "right"]
        )

    @property
    def mistakes(self) -> tuple[str, ...]:
        """The distinct names of the recognized mistakes, followed by the heading of a failure."""
        mistakes = [part.mistake for part in self.parts if part.mistake]
        if self.failure:
            mistakes.append(KINDS[self.failure.kind])
        return tuple(dict.fromkeys(mistakes))

    @property
    def summary(self) -> str:
        """One line with the name of the submission and its points."""
        return f"{self.submission}: {self.points:g} of {self.possible:g} points"

    def __repr__(self) -> str:
        return f"<Result {self.summary}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the result in IPython."""
        printer.text(str(self))

    def __str__(self) -> str:
        return self._format_parts(self.parts)

    def _format_parts(self, shown: Sequence[Part]) -> str:
        """Format the result with only the given parts."""
        lines = [self.summary]
        if self.failure:
            lines += [f"  {line}" for line in str(self.failure).splitlines()]
        subtotals = self.subtotals.items() if len(self.subtotals) > 1 else ()
        for name, (points, possible) in subtotals:
            lines.append(f"  {name}: {points:g} of {possible:g} points")
        if self.failure and all(str(part) == "not run" for part in shown):
            lines += [f"  {pluralize(len(shown), 'part')} not run"] if shown else []
            shown = ()
        if [(part.name, part.message) for part in self.parts] == [(self.check, "")]:
            shown = ()  # the total of `at("points")`, which the summary contains
        width = max((len(part.name) for part in shown), default=0)
        for part in shown:
            first, *more = str(part).splitlines()
            lines.append(f"  {part.name:{width}}  {first}")
            lines += [f"  {'':{width}}    {line}" for line in more]
        if self.output:
            lines += ["  printed output:", *(f"    {line}" for line in self.output.splitlines())]
        return sanitize("\n".join(lines))

    def require(self, name: str, level: str = "mistake") -> float:
        """Return the points earned for a part; raise AssertionError if the part earned no points.

        Args:
            name: the name of the part.
            level: how much of the feedback the error shows: ``points``, ``part`` or ``mistake``.

        Raises:
            AssertionError: no points were reached; the message is the feedback.
            UsageError: the part is unknown.

        >>> Result("gradient", "ann.py", (Part("ab", 2, 1, "wrong"),)).require("ab")
        1
        """
        parts = {part.name: part for part in self.parts}
        if name not in parts:
            raise UsageError(
                f"unknown part {name!r} of the {self.check} check", hint=name_hint(name, parts)
            )
        part = parts[name]
        if part.points > 0 or not part.possible:
            return part.points
        failure = self.failure if part.verdict == "not run" and level != "points" else None
        raise AssertionError(str(failure or (part if level == "mistake" else part.verdict)))

    def reject(self, failure: Failure) -> Result:
        """Return the result without its points and verdicts, and with a failure."""
        parts = tuple(
            Part(part.name, part.possible, 0, "not run", problem=part.problem)
            for part in self.parts
        )
        return replace(self, parts=parts, failure=failure)

    def at(self, level: str) -> Result:
        """Return the result reduced to the details that a feedback level shows.

        Args:
            level: ``points`` for the sum of points only; ``part`` for the verdict on each part and
                the failure; ``mistake`` for everything.
        """
        if level == "mistake":
            return self
        if level == "part":
            parts = tuple(replace(p, mistake="", message="", evidence=()) for p in self.parts)
            return replace(self, parts=parts)
        verdict: Verdict = "right" if self.points >= self.possible else "wrong"
        total = Part(self.check, self.possible, self.points, verdict)
        return replace(self, parts=(total,), failure=None, output="", notes=())

    def cleaned(self) -> Result:
        """Return the result with control characters replaced and long strings truncated.

        >>> Result("gradient", "ann.py", (), "\\ud800" + "x"*10**6).cleaned().output[:3]
        '\ufffdxx'
        """
        parts = tuple(
            replace(
                part,
                message=_sanitize_string(part.message),
                mistake=_sanitize_string(part.mistake),
                evidence=tuple(map(_sanitize_string, part.evidence[:_MAX_EVIDENCE])),
            )
            for part in self.parts
        )
        failure = self.failure and replace(
            self.failure,
            message=_sanitize_string(self.failure.message),
            where=_sanitize_string(self.failure.where),
        )
        notes = tuple(map(_sanitize_string, self.notes))
        return replace(
            self, parts=parts, output=_sanitize_string(self.output), failure=failure, notes=notes
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dictionary for JSON, which :meth:`from_dict` converts back."""
        return asdict(self) | {"points": self.points, "possible": self.possible}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Result:
        """Create a result from a dictionary that :meth:`to_dict` returned.

        Raises:
            KeyError, TypeError: the dictionary has another structure.
        """
        fields = {name: data[name] for name in cls.__dataclass_fields__}
        parts = tuple(
            Part(**part | {"evidence": tuple(part["evidence"])}) for part in data["parts"]
        )
        failure = Failure(**data["failure"]) if data["failure"] else None
        converted = {"parts": parts, "failure": failure, "notes": tuple(data["notes"])}
        return cls(**fields | converted).cleaned()


def _sum_points(points: Iterable[float]) -> float:
    """Return the sum of points, rounded to 9 decimals; the sum of integers is an integer."""
    values = list(points)
    return round(fsum(values), 9) if any(type(v) is float for v in values) else sum(values)


def create_failed_result(
    check: str, submission: str, possible: dict[str, float], failure: Failure
) -> Result:
    """Return the result of a submission that failed as a whole, with all parts not run.

    Args:
        check: the name of the check.
        submission: the name of the submission.
        possible: the maximum points, keyed by part.
        failure: the reason.

    >>> failure = Failure("time", "over 10 s")
    >>> create_failed_result("gradient", "ann.py", {"ab": 1}, failure).parts[0].verdict
    'not run'
    """
    parts = tuple(Part(name, points, 0, "not run") for name, points in possible.items())
    return Result(check, submission, parts, failure=failure)
