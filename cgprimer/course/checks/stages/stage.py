"""Stages of the ladder: pages with tasks, calls of a submission, and verdicts on its answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from cgprimer.core.derivatives import gradient
from cgprimer.course.checks.check_results import Failure, Part
from cgprimer.course.checks.stages.stage_diagnosis import (
    Finding,
    attribute_to_causes,
    create_finding,
)
from cgprimer.course.checks.verdicts import assign_points, judge_failure, reject
from cgprimer.errors import CgprimerError
from cgprimer.expressions import ExpressionGraph, parse
from cgprimer.tapes import Tape, values_of
from cgprimer.tapes import tape as tape_of

TOLERANCE = 1e-9  # relative: more than a different order of additions changes
Verdict = Part | Finding
UNREADABLE = "the submission returned a value that is not an answer to this question"
_UNEXPECTED = (
    CgprimerError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError,
    ValueError,
)  # fmt: skip


class DriverCall(NamedTuple):
    """A call to a function of the driver, which runs the submission.

    Attributes:
        function: the name of the driver's function.
        arguments: its arguments after the submission's module.
        subject: the expression that the call is about, for messages.
    """

    function: str
    arguments: tuple[Any, ...]
    subject: str = ""


@dataclass(frozen=True)
class Task:
    """A graded part of a stage: driver calls and the function that judges their answers.

    Attributes:
        name: the name of the part.
        points: the points for a correct answer.
        calls: the calls whose answers are judged; none of them may fail.
        judge: a function that returns the verdict on the answers.
        further_calls: calls whose answers are passed to ``judge`` after the others, and may be
            failures.
    """

    name: str
    points: float
    calls: tuple[DriverCall, ...]
    judge: Callable[[Sequence[Any]], Verdict]
    further_calls: tuple[DriverCall, ...] = ()

    def assess(self, answers: Sequence[Any]) -> Finding:
        """Grade the answers to the driver calls; return a finding with the task's name and points.

        The submission determines the answers: an answer with an unexpected form is wrong, not an
        error.
        """
        pairs = zip(self.calls, answers, strict=False)
        failures = [(answer, call.subject) for call, answer in pairs if isinstance(answer, Failure)]
        verdict: Verdict
        if failures:
            verdict = judge_failure(failures[0][0], [subject for _, subject in failures])
        else:
            try:
                verdict = self.judge(answers)
            except _UNEXPECTED:
                verdict = reject("", UNREADABLE)
        result = verdict if isinstance(verdict, Finding) else create_finding(verdict)
        return replace(result, part=assign_points(result.part, self.name, self.points))


@dataclass(frozen=True)
class Stage:
    """A stage of the engine ladder: a topic with its tasks and required names.

    Attributes:
        number: the number, from 1 to 10.
        name: the topic.
        required_names: the names that a submission must define.
        tasks: the parts of the stage.
        builds_on: the numbers of the stages whose functions this stage uses, in ascending order;
            includes the stage itself if later parts use functions that earlier parts check.
    """

    number: int
    name: str
    required_names: tuple[str, ...]
    tasks: tuple[Task, ...]
    builds_on: tuple[int, ...] = ()

    @cached_property
    def calls(self) -> list[DriverCall]:
        """The driver calls of all tasks; equal calls are listed once."""
        calls: list[DriverCall] = []
        for task in self.tasks:
            calls += [call for call in (*task.calls, *task.further_calls) if call not in calls]
        return calls

    @property
    def possible(self) -> dict[str, float]:
        """The maximum points of each part, keyed by name."""
        return {task.name: task.points for task in self.tasks}

    def assess(self, answers: Sequence[Any], *, reported: bool = True) -> list[Finding]:
        """Return the verdict on each part of the stage.

        Args:
            answers: the answers to :attr:`calls`.
            reported: whether the parts are shown; other parts only establish causes.
        """
        findings = []
        for task in self.tasks:
            calls = (*task.calls, *task.further_calls)
            finding = task.assess([answers[self.calls.index(call)] for call in calls])
            findings.append(
                replace(finding, stage=self.number, builds_on=self.builds_on, reported=reported)
            )
        return findings

    def judge(self, answers: Sequence[Any]) -> list[Part]:
        """Return the graded parts of this stage, judged independently of other stages."""
        return attribute_to_causes(self.assess(answers))


@dataclass(frozen=True, eq=False)
class Case:
    """An expression at a point, as a program for the driver, with the expected values.

    >>> case = Case("e = (a + b)*(b + 1)", {"a": 2, "b": 1})
    >>> case.program["steps"], case.values[-1], case.gradient
    ([['add', [0, 1]], ['add', [1, 2]], ['mul', [3, 4]]], 6.0, [2.0, 5.0])
    """

    text: str
    at: Mapping[str, float]

    @cached_property
    def graph(self) -> ExpressionGraph:
        """The graph of the expression."""
        return parse(self.text)

    @cached_property
    def tape(self) -> Tape:
        """The tape of the expression."""
        return tape_of(self.graph)

    @property
    def names(self) -> list[str]:
        """The names of the inputs, in the order of the program."""
        return [leaf.name for leaf in self.tape.leaves if leaf.kind != "constant"]

    @property
    def program(self) -> dict[str, Any]:
        """The expression as a program in the form that the driver reads."""
        leaves = [
            ["constant", leaf.value]
            if leaf.kind == "constant"
            else ["input", float(self.at[leaf.name])]
            for leaf in self.tape.leaves
        ]
        return {"leaves": leaves, "steps": [[n, list(o)] for n, o in self.tape.instructions]}

    @cached_property
    def values(self) -> list[float]:
        """The expected values of all leaves and operations."""
        return values_of(self.tape, {name: float(value) for name, value in self.at.items()})

    @cached_property
    def gradient(self) -> list[float]:
        """The derivatives of the last value with respect to the inputs."""
        derivatives = gradient(self.graph, dict(self.at), wrt=self.names)
        return [float(derivatives[name]) for name in self.names]

    def call(self, function: str, *arguments: Any) -> DriverCall:
        """Create a driver call with the program of this case as the first argument."""
        return DriverCall(function, (self.program, *arguments), self.text)

    def __str__(self) -> str:
        point = ", ".join(f"{name} = {value:g}" for name, value in self.at.items())
        return f"{self.text} at {point}"


def is_close(actual: Any, expected: Any, tolerance: float = TOLERANCE) -> bool:
    """Return whether numbers, or nested lists of numbers, agree up to rounding."""
    if isinstance(expected, list | tuple):
        comparable = isinstance(actual, list) and len(actual) == len(expected)
        return comparable and all(
            is_close(a, b, tolerance) for a, b in zip(actual, expected, strict=True)
        )
    if not isinstance(actual, int | float) or isinstance(actual, bool):
        return False
    return bool(abs(actual - expected) <= tolerance * max(1.0, abs(expected)))


def build_task(
    name: str, points: float, cases: Sequence[Case], judge: Callable[[Case, Any], Verdict],
    function: str, *arguments: Any,
) -> Task:  # fmt: skip
    """Build a task that makes the same driver call for several cases.

    The verdict is the first verdict that is not right.

    Args:
        name: the name of the task.
        points: the points for a correct answer.
        cases: the cases.
        judge: a function that returns the verdict on the answer to one case.
        function: the name of the driver function.
        arguments: its arguments after the program.
    """

    def judge_all(answers: Sequence[Any]) -> Verdict:
        """Return the first verdict other than right; if all are right, return the first."""
        parts = list(map(judge, cases, answers))
        return next((part for part in parts if part.verdict != "right"), parts[0])

    return Task(name, points, tuple(case.call(function, *arguments) for case in cases), judge_all)
