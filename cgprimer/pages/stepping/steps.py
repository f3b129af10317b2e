"""What a step is: numbers that are computed, and what of the picture they make known.

A walk computes in a memory of numbered slots, as a tape does; but its steps may write a slot
again (the second pass of forward mode runs the same instructions with another seed).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from cgprimer.core.primitives import arrays

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
        h: by how much finite differences move a variable; None: by its size.
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
    h: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as `page.js` reads it."""
        return {
            "method": self.method,
            "derivative": self.derivative,
            "mark": self.mark,
            "lines": list(self.lines),
            "phases": [{"title": p.title, "keeps": list(p.keeps)} for p in self.phases],
            "steps": [
                {
                    "text": s.text,
                    "phase": s.phase,
                    "line": s.line,
                    "row": s.row,
                    "column": s.column,
                    "writes": [[w.slot, w.operation, list(w.arguments)] for w in s.writes],
                    "shows": [list(show) for show in s.shows],
                    "operands": [list(o) for o in s.operands],
                    "vertices": list(s.vertices),
                    "edges": list(s.edges),
                    "result": s.result,
                    "note": s.note,
                }
                for s in self.steps
            ],
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


def shift(value: float, relative: float) -> float:
    """The step of a finite difference for a value, in the value's unit.

    >>> shift(5.0, 0.5), shift(-0.25, 0.5)
    (2.0, 0.5)
    """
    size = abs(value) if math.isfinite(value) else 1.0
    # Not by a logarithm, which is rounded: that of 15.999999999999998 is 4.
    return math.ldexp(relative, math.frexp(max(1.0, size))[1] - 1)


def computed(walk: Walk, point: Mapping[str, float]) -> list[list[float]]:
    """For every step the numbers that it writes, computed by the primitives' own functions.

    >>> from cgprimer.pages.stepping.steps import Step, Walk, Write
    >>> double = Step("y = x + x", writes=(Write(1, "add", (0, 0)),))
    >>> computed(Walk("none", "", "", steps=(double,), size=2, given={"x": 0}), {"x": 1.5})
    [[3.0]]
    """
    memory = [math.nan] * walk.size
    for name, slot in walk.given.items():
        memory[slot] = point[name]
    found = []
    with np.errstate(all="ignore"):
        for step in walk.steps:
            written = []
            for slot, operation, arguments in step.writes:
                memory[slot] = _apply(operation, arguments, memory, walk.h)
                written.append(memory[slot])
            found.append(written)
    return found


def _apply(
    operation: str, arguments: Sequence[float], memory: Sequence[float], h: float | None
) -> float:
    if operation == CONSTANT:
        return float(arguments[0])
    if operation == STEP:
        return shift(memory[int(arguments[0])], arguments[1]) if h is None else h
    operands = (np.float64(memory[int(a)]) for a in arguments)
    return float(arrays.function(operation)(*operands))
