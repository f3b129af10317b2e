"""What a step is: a value that is computed, and what of the picture it makes known.

A walk computes on one tape: what a method runs several times (the passes of forward mode, the runs
of finite differences) stands on it several times, so every number has a place of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple, get_args

from cgprimer.core.methods.step_rule import StepRule
from cgprimer.core.operations.array_shapes import format_shape
from cgprimer.support.number_format import SHORT, mark_rounding
from cgprimer.tapes import Builder, Leaf, Tape, values_of

_ON_TAPE = ("tape", "moved", "rule")
_WHOLE = 140  # characters of a matrix that stands alone in a line
Column = Literal["value", "derivative", "edge", "result", "line", "sofar"]
COLUMNS: tuple[Column, ...] = get_args(Column)


class Show(NamedTuple):
    """From this step on, a place shows a value of the walk's tape.

    ``number`` counts rows of the trace (columns ``value`` and ``derivative``), edges of the picture
    (their local partials, or the shares that flow along them) or the names with respect to which
    is differentiated (``result``), or lines of the program. ``sofar`` is a row's derivative to
    which shares are missing.
    """

    column: Column
    number: int
    value: int


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a walk.

    Attributes:
        text: what happens, as a line of code.
        phase: in which phase of the walk.
        line: the line of the program that is lit; -1 for none.
        row: the row of the trace that is lit; -1 for none.
        column: the column of that row that is worked on.
        shows: what becomes known.
        operands: names and values of what goes in.
        vertices: keys of the vertices that are lit.
        edges: numbers of the edges that are lit.
        result: the value that the step is about; -1 for none.
        note: what the step is good for, where its text does not tell.
    """

    text: str
    phase: int = 0
    line: int = -1
    row: int = -1
    column: Column = "value"
    shows: tuple[Show, ...] = ()
    operands: tuple[tuple[str, int], ...] = ()
    vertices: tuple[str, ...] = ()
    edges: tuple[int, ...] = ()
    result: int = -1
    note: str = ""

    def showing(self, *shows: Show) -> Step:
        """The same step; it makes more known."""
        return replace(self, shows=(*self.shows, *shows))

    def at(self, place: Sequence[int]) -> Step:
        """The same step where value ``i`` is ``place[i]``."""
        return replace(
            self,
            shows=tuple(show._replace(value=place[show.value]) for show in self.shows),
            operands=tuple((name, place[value]) for name, value in self.operands),
            result=place[self.result] if self.result >= 0 else -1,
        )


@dataclass(frozen=True, slots=True)
class Phase:
    """A sweep or a pass. ``keeps`` lists what is still known of the phases before it."""

    title: str
    keeps: tuple[Column, ...] = COLUMNS


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
        tape: what is computed.
        moved: of finite differences: by the name of each step on the tape, the value that is moved.
        refused: why the method cannot do it; there are no steps then.
        flow: what the numbers on the edges are.
        scheme: of finite differences: ``central`` or ``forward``; empty for the other methods.
        rule: of finite differences: how far they move a variable.
        numbers: every value of the tape at the point.
    """

    method: str
    derivative: str
    mark: str
    lines: tuple[str, ...] = ()
    phases: tuple[Phase, ...] = ()
    steps: tuple[Step, ...] = ()
    tape: Tape = field(default_factory=lambda: Builder().finish({}))
    moved: Mapping[str, int] = field(default_factory=dict)
    refused: str = ""
    flow: str = ""
    scheme: str = ""
    rule: StepRule | None = None
    numbers: Sequence[Any] = ()

    @property
    def h(self) -> float | None:
        """By how much finite differences move a variable; None: by its size."""
        return None if self.rule is None else self.rule.size

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as `page.js` reads it."""
        return {
            **{f.name: getattr(self, f.name) for f in fields(self) if f.name not in _ON_TAPE},
            "numbers": list(map(plain, self.numbers)),
            "phases": [asdict(phase) for phase in self.phases],
            "steps": [{f.name: getattr(step, f.name) for f in fields(step)} for step in self.steps],
            "leaves": [self._leaf(leaf) for leaf in self.tape.leaves],
            "instructions": [(str(name), operands) for name, operands in self.tape.instructions],
            "relative": 0.0 if self.rule is None else self.rule.relative_step(52),
        }

    def _leaf(self, leaf: Leaf) -> tuple[str, Any]:
        if leaf.kind == "constant":
            return ("constant", leaf.value)
        moved = self.moved.get(leaf.name)
        return ("given", leaf.name) if moved is None else ("step", moved)


def plain(value: Any) -> Any:
    """A number, or of an array what the page writes of it."""
    if isinstance(value, float):
        return value
    text, whole = mark_rounding(value, SHORT), mark_rounding(value, SHORT, _WHOLE)
    return {"text": text, "shape": format_shape(value.shape)} | (
        {"whole": whole} if whole != text else {}
    )


def listed(parts: Sequence[str], separator: str, most: int = 8) -> str:
    """Parts in one line; where there are many, the first ones and the last.

    >>> listed(["xa", "xb"], ", "), listed([f"path {k}" for k in range(1, 41)], " + ", 3)
    ('xa, xb', 'path 1 + path 2 + … + path 40')
    """
    few = parts if len(parts) <= most else [*parts[: most - 1], "…", parts[-1]]
    return separator.join(few)


def copied(builder: Builder, tape: Tape, leaves: Mapping[int, int] | None = None) -> list[int]:
    """Compute a tape once more, some leaves replaced by known values; where each value is."""
    place: list[int] = []
    for index, leaf in enumerate(tape.leaves):
        if leaves and index in leaves:
            place.append(leaves[index])
        elif leaf.kind == "constant":
            place.append(builder.constant(leaf.value))
        else:
            place.append(builder.leaf("scalar", leaf.name, shape=leaf.shape))
    for name, operands in tape.instructions:
        place.append(builder.emit(name, *[place[o] for o in operands]))
    return place


def finished(builder: Builder, walk: Walk) -> Walk:
    """A walk whose steps are about a builder's values, with the tape that the builder makes."""
    tape, place = builder.finish({}), builder.moved
    moved = {name: place[value] for name, value in walk.moved.items()}
    return replace(walk, steps=tuple(s.at(place) for s in walk.steps), tape=tape, moved=moved)


def computed(walk: Walk, point: Mapping[str, Any]) -> list[Any]:
    """Every value of a walk's tape, computed by core's plain engine."""
    given = dict.fromkeys((leaf.name for leaf in walk.tape.leaves), math.nan) | dict(point)
    found = values_of(walk.tape, given)
    if walk.rule is not None:  # the steps are chosen from what was found at the point itself
        given |= {name: walk.rule.choose_step(float(found[i])) for name, i in walk.moved.items()}
        found = values_of(walk.tape, given)
    if not walk.tape.has_arrays:
        return [float(value) for value in found]
    import numpy as np

    shaped = zip(found, walk.tape.shapes, strict=True)
    return [np.broadcast_to(v, shape) if shape else float(v) for v, shape in shaped]
