"""The steps of a method: each computes a value and reveals numbers in the picture and the tables.

All values of a walk are on one tape. Instructions that a method executes several times (the passes
of forward mode, the evaluations of finite differences) are on the tape several times, so that each
number has its own index.
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

_NOT_ENCODED = ("tape", "shifted_values", "step_rule")
_LONGEST_MATRIX = 140  # characters of a matrix in a line without other text
Column = Literal["value", "derivative", "edge", "result", "line", "sofar"]
COLUMNS: tuple[Column, ...] = get_args(Column)


class Reveal(NamedTuple):
    """A number that a step makes visible in the picture or in a table.

    Attributes:
        column: the kind of place. ``value`` and ``derivative`` are columns of the trace; ``edge``
            is a local partial or the flow along an edge; ``result`` a finished derivative;
            ``line`` a line of the program; ``sofar`` the incomplete derivative of a row.
        position: the index of the row, the edge, the name or the line.
        value: the index of the value on the tape of the walk.
    """

    column: Column
    position: int
    value: int


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a method: the instruction, the highlighted parts, and the revealed numbers.

    Attributes:
        text: the instruction, as a line of code.
        phase: the index of the phase of the walk.
        line: the index of the highlighted line of the program; -1 for none.
        row: the index of the highlighted row of the trace; -1 for none.
        column: the column of this row that the step computes.
        reveals: the values that become visible.
        operands: names and values of the operands.
        vertices: names of the highlighted vertices.
        edges: indices of the highlighted edges.
        result: the value that the step computes; -1 for none.
        note: the purpose of the step, unless the text states it.
    """

    text: str
    phase: int = 0
    line: int = -1
    row: int = -1
    column: Column = "value"
    reveals: tuple[Reveal, ...] = ()
    operands: tuple[tuple[str, int], ...] = ()
    vertices: tuple[str, ...] = ()
    edges: tuple[int, ...] = ()
    result: int = -1
    note: str = ""

    def add_reveals(self, *reveals: Reveal) -> Step:
        """Return a copy of the step that also reveals other values."""
        return replace(self, reveals=(*self.reveals, *reveals))

    def renumber(self, indices: Sequence[int]) -> Step:
        """Return a copy of the step for a tape on which value ``i`` has index ``indices[i]``."""
        return replace(
            self,
            reveals=tuple(r._replace(value=indices[r.value]) for r in self.reveals),
            operands=tuple((name, indices[value]) for name, value in self.operands),
            result=indices[self.result] if self.result >= 0 else -1,
        )


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase of a differentiation method: a sweep or a pass.

    ``keeps`` lists the columns of earlier phases that stay visible.
    """

    title: str
    keeps: tuple[Column, ...] = COLUMNS


@dataclass(frozen=True, slots=True)
class Walk:
    """All steps of one differentiation method, with the tape that computes their values.

    Attributes:
        method: the name of the method.
        derivative: the title of the trace's last column.
        mark: the prefix of derivatives in the picture: ``dot``, ``bar`` or ``d``.
        lines: the lines of the derivative program.
        phases: sweeps or passes, in order.
        steps: the steps in order; every phase has at least one.
        tape: the tape with all values of the steps.
        shifted_values: the value that finite differences shift, keyed by the name of the step size
            on the tape.
        refusal: the reason why the method has no steps; empty if it has steps.
        edge_numbers: a description of the numbers on the edges.
        scheme: the scheme of finite differences: ``central`` or ``forward``; empty for other
            methods.
        step_rule: the rule that chooses the step size of finite differences.
        numbers: every value of the tape at the point.
    """

    method: str
    derivative: str
    mark: str
    lines: tuple[str, ...] = ()
    phases: tuple[Phase, ...] = ()
    steps: tuple[Step, ...] = ()
    tape: Tape = field(default_factory=lambda: Builder().finish({}))
    shifted_values: Mapping[str, int] = field(default_factory=dict)
    refusal: str = ""
    edge_numbers: str = ""
    scheme: str = ""
    step_rule: StepRule | None = None
    numbers: Sequence[Any] = ()

    @property
    def h(self) -> float | None:
        """The step size of finite differences; None if it depends on the variable's magnitude."""
        return None if self.step_rule is None else self.step_rule.size

    def to_dict(self) -> dict[str, Any]:
        """Return the walk as built-in types that can be encoded as JSON for the page."""
        step_fields = [f.name for f in fields(Step)]
        rule = self.step_rule
        return {
            **{f.name: getattr(self, f.name) for f in fields(self) if f.name not in _NOT_ENCODED},
            "numbers": list(map(encode_value, self.numbers)),
            "phases": [asdict(phase) for phase in self.phases],
            "steps": [{name: getattr(step, name) for name in step_fields} for step in self.steps],
            "leaves": [self._encode_leaf(leaf) for leaf in self.tape.leaves],
            "instructions": [(str(name), operands) for name, operands in self.tape.instructions],
            "relative": 0.0 if rule is None else rule.relative_step(52),
        }

    def _encode_leaf(self, leaf: Leaf) -> tuple[str, Any]:
        """Encode a leaf as a pair: its kind, and its value, name or shifted value's index."""
        if leaf.kind == "constant":
            return ("constant", leaf.value)
        shifted = self.shifted_values.get(leaf.name)
        return ("given", leaf.name) if shifted is None else ("step", shifted)


def encode_value(value: Any) -> Any:
    """Encode a value for the page: a scalar unchanged, an array as a dict of its text and shape."""
    if isinstance(value, float):
        return value
    text, long_text = mark_rounding(value, SHORT), mark_rounding(value, SHORT, _LONGEST_MATRIX)
    data = {"text": text, "shape": format_shape(value.shape)}
    return data if long_text == text else {**data, "whole": long_text}


def join_parts(parts: Sequence[str], separator: str, max_parts: int = 8) -> str:
    """Join strings with a separator; if there are too many, keep the first ones and the last one.

    >>> join_parts(["xa", "xb"], ", "), join_parts([f"path {k}" for k in range(1, 41)], " + ", 3)
    ('xa, xb', 'path 1 + path 2 + … + path 40')
    """
    few = parts if len(parts) <= max_parts else [*parts[: max_parts - 1], "…", parts[-1]]
    return separator.join(few)


def copy_tape(builder: Builder, tape: Tape, leaves: Mapping[int, int] | None = None) -> list[int]:
    """Copy the instructions of a tape to a builder, and return the new index of each value.

    Args:
        builder: the builder to which the instructions are added.
        tape: the tape to copy.
        leaves: values of the builder that replace leaves of the tape.
    """
    indices: list[int] = []
    for index, leaf in enumerate(tape.leaves):
        if leaves and index in leaves:
            indices.append(leaves[index])
        elif leaf.kind == "constant":
            indices.append(builder.constant(leaf.value))
        else:
            indices.append(builder.leaf("scalar", leaf.name, shape=leaf.shape))
    for name, operands in tape.instructions:
        indices.append(builder.emit(name, *[indices[o] for o in operands]))
    return indices


def finish_walk(builder: Builder, walk: Walk) -> Walk:
    """Finish a builder's tape, and return the walk with its indices adapted to this tape."""
    tape, indices = builder.finish({}), builder.moved
    shifted_values = {name: indices[value] for name, value in walk.shifted_values.items()}
    steps = tuple(step.renumber(indices) for step in walk.steps)
    return replace(walk, steps=steps, tape=tape, shifted_values=shifted_values)


def compute_numbers(walk: Walk, point: Mapping[str, Any]) -> list[Any]:
    """Compute all values on the tape of a walk at a point, with the plain engine."""
    values = dict.fromkeys((leaf.name for leaf in walk.tape.leaves), math.nan) | dict(point)
    numbers = values_of(walk.tape, values)
    if walk.step_rule is not None:  # step sizes depend on the values at the point
        values |= {
            name: walk.step_rule.choose_step(float(numbers[index]))
            for name, index in walk.shifted_values.items()
        }
        numbers = values_of(walk.tape, values)
    if not walk.tape.has_arrays:
        return [float(number) for number in numbers]
    import numpy as np

    return [
        np.broadcast_to(number, shape) if shape else float(number)
        for number, shape in zip(numbers, walk.tape.shapes, strict=True)
    ]
