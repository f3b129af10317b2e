"""What a step is: numbers that are computed, and what of the picture they make known.

A walk computes in a memory of numbered slots, as a tape does; but its steps may write a slot
again (the second pass of forward mode runs the same instructions with another seed).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, NamedTuple

from cgprimer.core.methods.finite_difference import StepRule
from cgprimer.core.run import values_of
from cgprimer.core.tape.builder import Builder

CONSTANT, STEP = ".const", ".step"  #: operations that are no primitives
Column = Literal["value", "derivative", "sofar", "edge", "result", "line"]


class Write(NamedTuple):
    """``slot = operation(arguments)``.

    The operation is the name of a primitive, ``.const`` (the argument is a number, not a slot) or
    ``.step`` (how far a finite difference moves a value; the second argument is a number). No
    primitive's name has a dot.
    """

    slot: int
    operation: str
    arguments: tuple[float, ...]


class Show(NamedTuple):
    """From this step on, a place shows the number in a slot.

    ``number`` counts rows of the trace (columns ``value`` and ``derivative``), edges of the picture
    (their local partials, or the shares that flow along them) or the names with respect to which
    is differentiated (``result``), or lines of the program. ``sofar`` is a row's derivative to
    which shares are missing.
    """

    column: Column
    number: int
    slot: int


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a walk.

    Attributes:
        text: what happens, as a line of code.
        phase: in which phase of the walk.
        line: the line of the program that is lit; -1 for none.
        row: the row of the trace that is lit; -1 for none.
        column: the column of that row that is worked on.
        writes: what is computed.
        shows: what becomes known.
        operands: names and slots of what goes in.
        vertices: keys of the vertices that are lit.
        edges: numbers of the edges that are lit.
        result: the slot of the number that the step is about; -1 for none.
        note: what the step is good for, where its text does not tell.
    """

    text: str
    phase: int = 0
    line: int = -1
    row: int = -1
    column: Column = "value"
    writes: tuple[Write, ...] = ()
    shows: tuple[Show, ...] = ()
    operands: tuple[tuple[str, int], ...] = ()
    vertices: tuple[str, ...] = ()
    edges: tuple[int, ...] = ()
    result: int = -1
    note: str = ""


@dataclass(frozen=True, slots=True)
class Phase:
    """A sweep or a pass. ``keeps`` lists what is still known of the phases before it."""

    title: str
    keeps: tuple[Column, ...] = ("value", "derivative", "sofar", "edge", "result", "line")


@dataclass(frozen=True, slots=True)
class Walk:
    """A method, step by step.

    Attributes:
        method: its name.
        derivative: what the trace's last column holds, as a title.
        mark: what stands before a derivative in the picture: ``dot``, ``bar`` or ``d``.
        lines: the derivative program.
        phases: sweeps or passes, in order.
        steps: in order; every phase has at least one.
        size: number of slots.
        given: slots that hold a variable or a parameter at the beginning, by name.
        refused: why the method cannot do it; there are no steps then.
        flow: what the numbers on the edges are.
        scheme: of finite differences: ``central`` or ``forward``; empty for the other methods.
        rule: of finite differences: how far they move a variable.
    """

    method: str
    derivative: str
    mark: str
    lines: tuple[str, ...] = ()
    phases: tuple[Phase, ...] = ()
    steps: tuple[Step, ...] = ()
    size: int = 0
    given: Mapping[str, int] = field(default_factory=dict)
    refused: str = ""
    flow: str = ""
    scheme: str = ""
    rule: StepRule | None = None

    @property
    def h(self) -> float | None:
        """By how much finite differences move a variable; None: by its size."""
        return None if self.rule is None else self.rule.size

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as `page.js` reads it."""
        return {
            "method": self.method,
            "derivative": self.derivative,
            "mark": self.mark,
            "lines": list(self.lines),
            "phases": [asdict(phase) for phase in self.phases],
            "steps": [{f.name: getattr(step, f.name) for f in fields(step)} for step in self.steps],
            "size": self.size,
            "given": dict(self.given),
            "refused": self.refused,
            "flow": self.flow,
            "scheme": self.scheme,
        }


def listed(parts: Sequence[str], separator: str, most: int = 8) -> str:
    """Parts in one line; where there are many, the first ones and the last.

    >>> listed(["xa", "xb"], ", "), listed([f"path {k}" for k in range(1, 41)], " + ", 3)
    ('xa, xb', 'path 1 + path 2 + … + path 40')
    """
    few = parts if len(parts) <= most else [*parts[: most - 1], "…", parts[-1]]
    return separator.join(few)


def computed(walk: Walk, point: Mapping[str, float]) -> list[list[float]]:
    """For every step the numbers that it writes, computed by core's plain engine.

    A slot that is written again is another value of the tape that the engine runs.

    >>> from cgprimer.pages.stepping.steps import Step, Walk, Write
    >>> double = Step("y = x + x", writes=(Write(1, "add", (0, 0)),))
    >>> computed(Walk("none", "", "", steps=(double,), size=2, given={"x": 0}), {"x": 1.5})
    [[3.0]]
    """
    builder = Builder(simplify=False)
    memory = [builder.constant(math.nan)] * walk.size
    for name, slot in walk.given.items():
        memory[slot] = builder.scalar(name)
    given, moves, written = dict(point), dict[str, int](), list[list[int]]()
    for step in walk.steps:
        for slot, operation, arguments in step.writes:
            if operation == CONSTANT:
                memory[slot] = builder.constant(arguments[0])
            elif operation == STEP:
                moves[f"{STEP}{len(moves)}"] = memory[int(arguments[0])]
                memory[slot] = builder.scalar(f"{STEP}{len(moves) - 1}")
            else:
                memory[slot] = builder.emit(operation, *(memory[int(a)] for a in arguments))
        written.append([])
        for write in step.writes:
            written[-1].append(memory[write.slot])
    tape = builder.finish({})
    found = values_of(tape, given | dict.fromkeys(moves, math.nan))
    if walk.rule is not None:  # the steps are chosen from what was found at the point itself
        rule = walk.rule
        sizes = {name: rule.step(found[builder.moved[i]]) for name, i in moves.items()}
        found = values_of(tape, given | sizes)
    return [[float(found[builder.moved[i]]) for i in values] for values in written]
