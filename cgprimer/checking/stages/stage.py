"""What a stage is: a page, what it asks of a submission, and verdicts on what came back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cgprimer.checking.results import Failure, Part
from cgprimer.checking.sandbox import Request
from cgprimer.core.derivatives import gradient
from cgprimer.core.derivatives import tape as tape_of
from cgprimer.core.graph import ExpressionGraph, parse
from cgprimer.core.run import values_of
from cgprimer.core.tape.tape import Tape

Judge = Callable[[Sequence[Any]], list[Part]]
CLOSE = 1e-9  # relative: rounding in another order is less


@dataclass(frozen=True)
class Stage:
    """A stage of the ladder.

    Attributes:
        number: from 1 to 10.
        name: what is learned.
        needs: the names that a submission must define.
        asks: requests of the driver.
        judge: parts from the answers to the requests.
        possible: the points that each part can bring.
    """

    number: int
    name: str
    needs: tuple[str, ...]
    asks: tuple[Request, ...]
    judge: Judge
    possible: Mapping[str, float]


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

    def asked(self, call: str, *more: Any) -> Request:
        """A request of the driver about this case."""
        return {"call": call, "arguments": [self.program, *more]}

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


def right(name: str, points: float, message: str = "") -> Part:
    """A part in which all is right."""
    return Part(name, points, points, "right", "", message)


def doubtful(name: str, points: float, mistake: str, message: str) -> Part:
    """A part that is right here, and will not be elsewhere."""
    return Part(name, points, points, "suspicious", mistake, message)


def wrong(name: str, points: float, mistake: str, message: str, *evidence: str) -> Part:
    """A part without points."""
    return Part(name, points, 0, "wrong", mistake, message, evidence)


def failed(name: str, points: float, failure: Failure, about: str = "") -> Part:
    """A part that ended with an error, with its place in the submission."""
    said = f"{failure.message}{f' in {about}' if about else ''}"
    lines = failure.where.split("\n") if failure.where else []
    mistake = {"time": "out of time", "exit": "ends the program"}.get(failure.kind, "")
    if "RecursionError" in failure.message:
        mistake = "recursion too deep"
    if failure.message.startswith("NotImplementedError"):
        return Part(name, points, 0, "not run", "", "not written yet", tuple(lines))
    return Part(name, points, 0, "wrong", mistake, said, tuple(lines))
