"""What a stage is: a page, what it asks of a submission, and verdicts on what came back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from cgprimer.core.derivatives import gradient
from cgprimer.course.checks.check_results import Failure, Part
from cgprimer.course.checks.stages.stage_diagnosis import Finding, attribute, finding
from cgprimer.course.checks.verdicts import failed, scored, wrong
from cgprimer.errors import CgprimerError
from cgprimer.expressions import ExpressionGraph, parse
from cgprimer.tapes import Tape, values_of
from cgprimer.tapes import tape as tape_of

CLOSE = 1e-9  # relative: rounding in another order is less
Verdict = Part | Finding
UNREADABLE = "the submission returned something that is not an answer to this question"
_UNEXPECTED = (
    CgprimerError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError,
    ValueError,
)  # fmt: skip


class Ask(NamedTuple):
    """What is asked of the driver: one of its functions, arguments, and what they are about."""

    call: str
    arguments: tuple[Any, ...]
    about: str = ""


@dataclass(frozen=True)
class Task:
    """A part of a stage: its points, what is asked, and the verdict on answers without failures.

    Of what is asked ``beside`` answers come behind the others, and may be failures.
    """

    name: str
    points: float
    asks: tuple[Ask, ...]
    judge: Callable[[Sequence[Any]], Verdict]
    beside: tuple[Ask, ...] = ()

    def finding(self, answers: Sequence[Any]) -> Finding:
        """Return the verdict, with name and points.

        Answers come from the submission: those of an unexpected form are wrong, not an error.
        """
        pairs = zip(self.asks, answers, strict=False)
        bad = [(one, ask.about) for ask, one in pairs if isinstance(one, Failure)]
        verdict: Verdict
        if bad:
            verdict = failed(bad[0][0], [about for _, about in bad])
        else:
            try:
                verdict = self.judge(answers)
            except _UNEXPECTED:
                verdict = wrong("", UNREADABLE)
        result = verdict if isinstance(verdict, Finding) else finding(verdict)
        return replace(result, part=scored(result.part, self.name, self.points))


@dataclass(frozen=True)
class Stage:
    """A stage of the ladder.

    Attributes:
        number: from 1 to 10.
        name: what is learned.
        needs: the names that a submission must define.
        tasks: its parts.
        builds_on: numbers of the stages whose functions are used, in the order of the ladder; its
            own number if later parts use what earlier ones check.
    """

    number: int
    name: str
    needs: tuple[str, ...]
    tasks: tuple[Task, ...]
    builds_on: tuple[int, ...] = ()

    @cached_property
    def asks(self) -> list[Ask]:
        """What is asked of the driver; parts that ask the same share an answer."""
        found: list[Ask] = []
        for task in self.tasks:
            found += [ask for ask in (*task.asks, *task.beside) if ask not in found]
        return found

    @property
    def possible(self) -> dict[str, float]:
        """The points that each part can bring."""
        return {task.name: task.points for task in self.tasks}

    def findings(self, answers: Sequence[Any], *, reported: bool = True) -> list[Finding]:
        """Return the verdict on each part, from the answers to what was asked."""
        found = []
        for task in self.tasks:
            own = [answers[self.asks.index(ask)] for ask in (*task.asks, *task.beside)]
            found.append(
                replace(
                    task.finding(own),
                    stage=self.number,
                    builds_on=self.builds_on,
                    reported=reported,
                )
            )
        return found

    def judge(self, answers: Sequence[Any]) -> list[Part]:
        """Return the parts of this stage alone."""
        return attribute(self.findings(answers))


@dataclass(frozen=True, eq=False)
class Case:
    """An expression at a point, as a program for the driver, and what is right.

    >>> case = Case("e = (a + b)*(b + 1)", {"a": 2, "b": 1})
    >>> case.program["steps"], case.values[-1], case.gradient
    ([['add', [0, 1]], ['add', [1, 2]], ['mul', [3, 4]]], 6.0, [2.0, 5.0])
    """

    text: str
    at: Mapping[str, float]

    @cached_property
    def graph(self) -> ExpressionGraph:
        """The expression."""
        return parse(self.text)

    @cached_property
    def tape(self) -> Tape:
        """Its operations, one after the other."""
        return tape_of(self.graph)

    @property
    def names(self) -> list[str]:
        """Of the inputs, in the order in which the driver gives them."""
        return [leaf.name for leaf in self.tape.leaves if leaf.kind != "constant"]

    @property
    def program(self) -> dict[str, Any]:
        """The operations as JSON has them."""
        leaves = [
            ["constant", leaf.value]
            if leaf.kind == "constant"
            else ["input", float(self.at[leaf.name])]
            for leaf in self.tape.leaves
        ]
        return {"leaves": leaves, "steps": [[n, list(o)] for n, o in self.tape.instructions]}

    @cached_property
    def values(self) -> list[float]:
        """What every value of the program is."""
        return values_of(self.tape, {name: float(value) for name, value in self.at.items()})

    @cached_property
    def gradient(self) -> list[float]:
        """The derivatives of the last value by the inputs."""
        found = gradient(self.graph, dict(self.at), wrt=self.names)
        return [float(found[name]) for name in self.names]

    def asked(self, call: str, *more: Any) -> Ask:
        """A question to the driver about this case."""
        return Ask(call, (self.program, *more), self.text)

    def __str__(self) -> str:
        point = ", ".join(f"{name} = {value:g}" for name, value in self.at.items())
        return f"{self.text} at {point}"


def close(found: Any, expected: Any, within: float = CLOSE) -> bool:
    """Whether numbers, or lists of them, are the same but for rounding."""
    if isinstance(expected, list | tuple):
        same = isinstance(found, list) and len(found) == len(expected)
        return same and all(close(a, b, within) for a, b in zip(found, expected, strict=True))
    if not isinstance(found, int | float) or isinstance(found, bool):
        return False
    return bool(abs(found - expected) <= within * max(1.0, abs(expected)))


def of_cases(
    name: str, points: float, cases: Sequence[Case], judge: Callable[[Case, Any], Verdict],
    call: str, *more: Any,
) -> Task:  # fmt: skip
    """A part that asks the same about several cases; the first that is not right is told."""

    def judged(answers: Sequence[Any]) -> Verdict:
        parts = list(map(judge, cases, answers))
        return next((part for part in parts if part.verdict != "right"), parts[0])

    return Task(name, points, tuple(case.asked(call, *more) for case in cases), judged)
