"""The frames of all methods for one graph at one point, with Python's numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cgprimer.derivatives import chosen_names, chosen_output, point_values
from cgprimer.derivatives import tape as tape_of
from cgprimer.differentiators.contract import Names
from cgprimer.errors import DifferentiationError, UsageError, name_hint
from cgprimer.graph import ExpressionGraph, checked_graph
from cgprimer.stepping.differences import SCHEMES
from cgprimer.stepping.scene import Scene, scene
from cgprimer.stepping.steps import Step, Walk, computed
from cgprimer.stepping.walks import METHODS, walk_of

MOST_STEPS = 5000  #: beyond which nobody steps and the page grows too large


@dataclass(frozen=True)
class Frame:
    """What is known and lit after one step; None stands for "not computed".

    Attributes:
        number: of the step, from 0.
        step: what happened.
        phase: the title of the sweep or pass.
        result: the last number that the step computed.
        values: for each row of the trace.
        derivatives: for each row: tangent or adjoint.
        partials: for each edge.
        results: for each name of ``wrt``: the finished derivative.
        lines: for each line of the program what it computed in this pass.
        sums: for each row: the sum of the shares so far, while its derivative lacks some.
    """

    number: int
    step: Step
    phase: str
    result: float | None
    values: tuple[float | None, ...]
    derivatives: tuple[float | None, ...]
    partials: tuple[float | None, ...]
    results: tuple[float | None, ...]
    lines: tuple[float | None, ...]
    sums: tuple[float | None, ...]


@dataclass(frozen=True)
class Stepping:
    """A graph with all its walks.

    Attributes:
        scene: rows, vertices and edges.
        point: a number for every input and parameter.
        walks: one per method.
        title: a line above everything.
        others: finite differences by the other schemes.
    """

    scene: Scene
    point: dict[str, float]
    walks: tuple[Walk, ...]
    title: str = ""
    others: tuple[Walk, ...] = ()

    def walk(self, method: str) -> Walk:
        """The walk of a method.

        Raises:
            UsageError: there is none.
        """
        for walk in self.walks:
            if walk.method == method:
                return walk
        raise unknown_method(method)

    @cached_property
    def numbers(self) -> dict[str, list[list[float]]]:
        """For each method and step the numbers written, computed in Python."""
        return {walk.method: computed(walk, self.point) for walk in self.walks}

    def frames(self, method: str) -> tuple[Frame, ...]:
        """What is known after each step of a method."""
        walk, found = self.walk(method), []
        written = self.numbers[method]
        memory: dict[int, float] = {slot: self.point[name] for name, slot in walk.given.items()}
        known: dict[tuple[str, int], float] = {}
        phase = -1
        for number, step in enumerate(walk.steps):
            if step.phase != phase:
                phase = step.phase
                keeps = walk.phases[phase].keeps
                known = {key: v for key, v in known.items() if key[0] in keeps}
            for write, value in zip(step.writes, written[number], strict=True):
                memory[write.slot] = value
            for show in step.shows:
                known[show.column, show.number] = memory[show.slot]
            result = memory[step.result] if step.result >= 0 else None
            if step.line >= 0 and result is not None:
                known["line", step.line] = result
            sizes = {
                "value": len(self.scene.rows),
                "derivative": len(self.scene.rows),
                "edge": len(self.scene.edges),
                "result": len(self.scene.wrt),
                "line": len(walk.lines),
                "sofar": len(self.scene.rows),
            }
            columns = (tuple(known.get((c, k)) for k in range(n)) for c, n in sizes.items())
            title = walk.phases[phase].title
            found.append(Frame(number, step, title, result, *columns))
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: everything that the page needs, Python's numbers among it."""
        return {
            "title": self.title,
            "target": self.scene.target,
            "wrt": list(self.scene.wrt),
            "point": dict(self.point),
            "rows": [[r.name, r.expression, r.vertex] for r in self.scene.rows],
            "vertices": [[v.name, v.role, v.row] for v in self.scene.vertices],
            "edges": [list(edge) for edge in self.scene.edges],
            "walks": [
                {**walk.to_dict(), "numbers": self.numbers[walk.method]} for walk in self.walks
            ],
            "others": [
                {**walk.to_dict(), "numbers": computed(walk, self.point)} for walk in self.others
            ],
            "h": next((walk.h for walk in self.walks if walk.scheme), None),
        }


def stepping(
    graph: ExpressionGraph,
    at: Mapping[str, float] | None = None,
    *,
    of: str | None = None,
    wrt: Names | None = None,
    methods: Sequence[str] = METHODS,
    level: str = "variables",
    title: str = "",
    scheme: str = SCHEMES[0],
    h: float | None = None,
) -> Stepping:
    """All frames of a graph at a point.

    Args:
        graph: the graph.
        at: a number for each input and parameter; declared values fill the rest.
        of: the variable that is differentiated; the only output unless given.
        wrt: with respect to which names; all parameters unless given (all inputs of a graph
            that has no parameters).
        methods: which, in the order of the tabs; one that cannot do it says why.
        level: the picture's vertices: ``variables`` or ``operations``.
        title: a line above everything.
        scheme: of finite differences: ``central`` or ``forward``.
        h: by how much finite differences move a variable; chosen from its size if None.

    Raises:
        UsageError: an unknown name, method, scheme or level; arrays; a step that is not positive.
        MissingValueError: a value is missing.
        DifferentiationError: too many steps, or no method can do it.

    >>> from cgprimer.graph import parse
    >>> shown = stepping(parse("xx = xa^2; xw = cd*xx"), {"xa": 2, "cd": 3})
    >>> for frame in shown.frames("reverse"):
    ...     print(frame.step.text, frame.values, frame.derivatives)
    given: xa, cd (2.0, 3.0, None, None) (None, None, None, None)
    xx = xa^2 (2.0, 3.0, 4.0, None) (None, None, None, None)
    xw = cd*xx (2.0, 3.0, 4.0, 12.0) (None, None, None, None)
    bar_xw = 1 (2.0, 3.0, 4.0, 12.0) (None, None, None, 1.0)
    bar_cd = xx (2.0, 3.0, 4.0, 12.0) (None, 4.0, None, 1.0)
    """
    checked_graph(graph)
    target = chosen_output(graph, of)
    names = chosen_names(graph, graph.inputs if wrt is None and not graph.parameters else wrt)
    for method in methods:
        if method not in METHODS:
            raise unknown_method(method)
    stage = scene(tape_of(graph), target, names, level)
    point = point_values(graph, at, of=target)
    if scheme not in SCHEMES:
        raise UsageError(
            f"there is no stepping through the scheme {scheme!r}",
            hint=f"one of: {', '.join(SCHEMES)}",
        )
    walks, refusals, others = [], [], []
    for method in methods:
        try:
            walks.append(_short_enough(walk_of(stage, method, scheme, h)))
            if method == "finite-difference":
                others = [walk_of(stage, method, s, h) for s in SCHEMES if s != scheme]
        except DifferentiationError as error:
            refusals.append(error)
            walks.append(Walk(method, "", "", refused=str(error)))
    if len(refusals) == len(walks):
        raise refusals[0]
    return Stepping(stage, point, tuple(walks), title, tuple(others))


def _short_enough(walk: Walk) -> Walk:
    steps = len(walk.steps)
    if steps > MOST_STEPS:
        raise DifferentiationError(
            f"there are {steps:,} steps, more than the {MOST_STEPS:,} that one would look at",
            hint="fewer names in wrt=... (--wrt NAME), or a part of the graph: of=... (--of NAME)",
        )
    return walk


def unknown_method(method: str) -> UsageError:
    """The error for a method that is not stepped through."""
    near = name_hint(method, METHODS)
    return UsageError(f"there is no stepping through the method {method!r}", hint=near)
