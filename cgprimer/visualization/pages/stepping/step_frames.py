"""The frames of all methods for one graph at one point, with Python's numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

from cgprimer.analysis.element_graph import element_names, expand_with_point, find_shape
from cgprimer.analysis.scalar_points import complete_point
from cgprimer.core.derivatives import parse_element_of, resolve_output, resolve_wrt
from cgprimer.core.loss_attachment import check_point, graph_with_loss
from cgprimer.core.methods.derivative_program import Names
from cgprimer.core.second_derivatives import add_element_output
from cgprimer.errors import DifferentiationError, UsageError, name_hint
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import SHORT, mark_rounding
from cgprimer.support.value_names import format_name
from cgprimer.tapes import tape as tape_of
from cgprimer.visualization.pages.stepping.method_walks import (
    METHODS,
    NUMBERS,
    SCHEMES,
    check_steps,
    walk_of,
)
from cgprimer.visualization.pages.stepping.scene import Scene, scene
from cgprimer.visualization.pages.stepping.step_values import COLUMNS, Step, Walk, computed, plain

# Control characters, ends of lines and halves of characters, which no SVG file may hold.
_UNWRITABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")


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
        unmoved: for each row its value at the point itself, while a finite difference moves a
            variable; else None.
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
    unmoved: tuple[float | None, ...]


@dataclass(frozen=True)
class Stepping:
    """A graph with all its walks.

    Attributes:
        scene: rows, vertices and edges.
        point: a value for every input and parameter.
        walks: one per method.
        title: a line above everything.
        others: finite differences by the other schemes.
    """

    scene: Scene
    point: dict[str, Any]
    walks: tuple[Walk, ...]
    title: str = ""
    others: tuple[Walk, ...] = ()

    def walk(self, method: str) -> Walk:
        """The walk of one of its methods."""
        return {walk.method: walk for walk in self.walks}[method]

    def frames(self, method: str) -> tuple[Frame, ...]:
        """What is known after each step of a method."""
        walk, found, rows, phase = self.walk(method), [], len(self.scene.rows), -1
        counts = (rows, rows, len(self.scene.edges), len(self.scene.wrt), len(walk.lines), rows)
        sizes = list(zip(COLUMNS, counts, strict=True))
        known: dict[tuple[str, int], float] = {}
        unmoved: tuple[float | None, ...] = (None,) * rows
        for number, step in enumerate(walk.steps):
            if step.phase != phase:
                if walk.scheme and phase == 0:
                    unmoved = tuple(known.get(("value", k)) for k in range(rows))
                phase = step.phase
                keeps = walk.phases[phase].keeps
                known = {key: v for key, v in known.items() if key[0] in keeps}
            known |= {show[:2]: walk.numbers[show.value] for show in step.shows}
            result = walk.numbers[step.result] if step.result >= 0 else None
            if step.line >= 0 and result is not None:
                known["line", step.line] = result
            columns = [tuple(known.get((c, k)) for k in range(n)) for c, n in sizes]
            told = (*columns, unmoved)
            found.append(Frame(number, step, walk.phases[phase].title, result, *told))
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: everything that the page needs, Python's numbers among it."""
        shown = ("target", "wrt", "rows", "vertices", "edges")
        return {
            "title": self.title,
            "point": {name: plain(value) for name, value in self.point.items()},
            "arrays": self.scene.tape.has_arrays,
            **{name: getattr(self.scene, name) for name in shown},
            "walks": [walk.to_dict() for walk in self.walks],
            "others": [walk.to_dict() for walk in self.others],
            "h": next((walk.h for walk in self.walks if walk.scheme), None),
        }


def stepping(
    graph: ExpressionGraph,
    at: Mapping[str, float] | None = None,
    *,
    of: str | None = None,
    wrt: Names | None = None,
    loss: str | None = None,
    methods: Sequence[str] = METHODS,
    level: str = "variables",
    title: str | None = None,
    scheme: str | None = None,
    h: float | None = None,
    scalars: bool = False,
) -> Stepping:
    """All frames of a graph at a point.

    Arguments are those of :func:`cgprimer.step`, and so are the errors; ``methods`` are the tabs,
    in their order: one that cannot do it says why.

    Raises:
        DifferentiationError: too many steps, or no method can do it.

    >>> from cgprimer.core.graph import parse
    >>> shown = stepping(parse("xx = xa^2; xw = cd*xx"), {"xa": 2, "cd": 3})
    >>> for frame in shown.frames("reverse"):
    ...     print(frame.step.text, frame.values, frame.derivatives)
    given: xa, cd (2.0, 3.0, None, None) (None, None, None, None)
    xx = xa^2 (2.0, 3.0, 4.0, None) (None, None, None, None)
    xw = cd*xx (2.0, 3.0, 4.0, 12.0) (None, None, None, None)
    bar_xw = 1 (2.0, 3.0, 4.0, 12.0) (None, None, None, 1.0)
    bar_cd = xx (2.0, 3.0, 4.0, 12.0) (None, 4.0, None, 1.0)
    """
    graph = graph_with_loss(graph, loss, check_point(at))
    if scalars or "reverse" not in methods:  # of arrays, what knows numbers alone
        wrt = element_names(graph, wrt)
        graph, at = expand_with_point(graph, at, (of,))
    graph, of = add_element_output(graph, of)
    target = resolve_output(graph, of)
    names = resolve_wrt(graph, graph.inputs if wrt is None and not graph.parameters else wrt)
    if single := next((name for name in names if parse_element_of(graph, name)[1]), ""):
        raise UsageError(f"{single!r} is one number of an array", hint=NUMBERS)
    if not methods:
        raise UsageError(
            "there is no method to step through", hint=f"some of: {', '.join(METHODS)}"
        )
    for method in methods:
        if method not in METHODS:
            near = name_hint(method, METHODS)
            raise UsageError(f"there is no stepping through the method {method!r}", hint=near)
    chosen, moved_by = _differences(scheme, h, methods)
    stage = scene(tape_of(graph), target, names, level)
    if find_shape(graph, target):
        said = f"a derivative is stepped through from one number, and {target!r} is an array"
        raise DifferentiationError(said, hint=NUMBERS)
    point = {format_name(n): v for n, v in complete_point(graph, at, of=target).items()}
    walks, refusals, others = [], [], []
    for method in methods:
        try:
            check_steps(len(stage.rows))  # of the values alone: at once, where there are too many
            walk = walk_of(stage, method, chosen, moved_by)
            check_steps(len(walk.steps))
            walks.append(walk)
            if method == "finite-difference":
                rest = [s for s in SCHEMES if s != chosen]
                others = [walk_of(stage, method, s, moved_by) for s in rest]
        except DifferentiationError as error:
            refusals.append(error)
            sentences = (" ".join(text.split()) for text in (error.message, error.hint) if text)
            said = " ".join(f"{s[0].upper()}{s[1:].rstrip('.')}." for s in sentences)
            walks.append(Walk(method, "", "", refused=said))
    if len(refusals) == len(walks):
        raise refusals[0]
    walks, others = ([replace(w, numbers=computed(w, point)) for w in ws] for ws in (walks, others))
    if stage.tape.has_arrays:
        stage = with_room(stage, walks)
    heading = f"{target} step by step" if title is None else _UNWRITABLE.sub(" ", title).strip()
    return Stepping(stage, point, tuple(walks), heading, tuple(others))


def with_room(stage: Scene, walks: Sequence[Walk]) -> Scene:
    """A scene whose vertices have room for the longest text of an array."""
    longest: dict[int, int] = {}
    for walk in walks:
        for show in (show for step in walk.steps for show in step.shows):
            if show.column in ("value", "derivative"):
                mark = f"{walk.mark} " if show.column == "derivative" else ""
                wide = len(mark + mark_rounding(walk.numbers[show.value], SHORT))
                longest[show.number] = max(wide, longest.get(show.number, 0))
    return replace(
        stage, vertices=tuple(v._replace(room=longest.get(v.row, 0)) for v in stage.vertices)
    )


def _differences(
    scheme: str | None, h: float | None, methods: Sequence[str]
) -> tuple[str, float | None]:
    """The scheme and the step of finite differences, if one of the methods has any use for them."""
    for name, value in (("scheme", scheme), ("h", h)):
        if value is not None and "finite-difference" not in methods:
            raise UsageError(
                f"{name}={value!r} belongs to the method finite-difference, "
                f"not to {', '.join(methods)}",
                hint="leave it out, or add the method: methods=[..., 'finite-difference']",
            )
    if scheme is not None and scheme not in SCHEMES:
        near = f"choose one of {', '.join(SCHEMES)}"
        raise UsageError(f"there is no stepping through the scheme {scheme!r}", hint=near)
    if h is not None and (isinstance(h, bool) or not isinstance(h, Real)):
        hint = "for instance h=1e-3, in the unit of the variable"
        raise UsageError(f"the step h must be a number, not {h!r}", hint=hint)
    try:
        return scheme or SCHEMES[0], None if h is None else float(h)
    except OverflowError:
        raise UsageError(f"the step must be positive and finite, not {h!r}") from None
