"""The steps of all methods for one graph at one point, and the numbers known after each step."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from numbers import Real
from typing import Any

from cgprimer.analysis.element_graph import expand_array_names, expand_with_point, find_shape
from cgprimer.analysis.scalar_points import complete_point
from cgprimer.core.derivatives import parse_element_of, resolve_output, resolve_wrt
from cgprimer.core.loss_attachment import check_point, graph_with_loss
from cgprimer.core.methods.derivative_program import Names
from cgprimer.core.second_derivatives import add_element_output
from cgprimer.errors import DifferentiationError, UsageError
from cgprimer.expressions import ExpressionGraph
from cgprimer.support.number_format import SHORT, mark_rounding
from cgprimer.support.validation import check_choice
from cgprimer.support.value_names import format_name
from cgprimer.tapes import tape as tape_of
from cgprimer.visualization.pages.stepping.method_walks import (
    METHODS,
    SCALARS_HINT,
    SCHEMES,
    build_walk,
    check_step_count,
)
from cgprimer.visualization.pages.stepping.scene import Scene, build_scene
from cgprimer.visualization.pages.stepping.step_values import (
    COLUMNS,
    Step,
    Walk,
    compute_numbers,
    encode_value,
)

# Control characters, ends of lines and halves of characters, which SVG files must not contain.
_FORBIDDEN_IN_SVG = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True)
class Frame:
    """The numbers that are visible after one step; None stands for a number not yet computed.

    Attributes:
        number: the index of the step.
        step: the step.
        phase: the title of the sweep or pass.
        result: the number that the step computed.
        values: the value of each row of the trace.
        derivatives: the tangent or adjoint of each row.
        partials: the number on each edge.
        results: the finished derivative with respect to each name of ``wrt``.
        lines: the number that each line of the program computed in this pass.
        sums: the incomplete sum of each row whose derivative lacks contributions.
        unmoved: the value of each row at the point, while a finite difference shifts a variable;
            else None.
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
    """The steps of all differentiation methods for one graph at one point.

    Attributes:
        scene: rows, vertices and edges.
        point: the value of every input and parameter.
        walks: one walk per method.
        title: the title of page and slides.
        others: the walks of finite differences with the other schemes.
    """

    scene: Scene
    point: dict[str, Any]
    walks: tuple[Walk, ...]
    title: str = ""
    others: tuple[Walk, ...] = ()

    def walk(self, method: str) -> Walk:
        """Return the steps of the given method."""
        return {walk.method: walk for walk in self.walks}[method]

    def frames(self, method: str) -> tuple[Frame, ...]:
        """Return which numbers are visible after each step of the given method."""
        walk, frames, n_rows, phase = self.walk(method), [], len(self.scene.rows), -1
        counts = (
            n_rows, n_rows, len(self.scene.edges), len(self.scene.wrt), len(walk.lines), n_rows,
        )  # fmt: skip
        sizes = list(zip(COLUMNS, counts, strict=True))
        numbers: dict[tuple[str, int], float] = {}
        unshifted: tuple[float | None, ...] = (None,) * n_rows
        for index, step in enumerate(walk.steps):
            if step.phase != phase:
                if walk.scheme and phase == 0:
                    unshifted = tuple(numbers.get(("value", row)) for row in range(n_rows))
                phase = step.phase
                keeps = walk.phases[phase].keeps
                numbers = {key: number for key, number in numbers.items() if key[0] in keeps}
            numbers |= {reveal[:2]: walk.numbers[reveal.value] for reveal in step.reveals}
            result = walk.numbers[step.result] if step.result >= 0 else None
            if step.line >= 0 and result is not None:
                numbers["line", step.line] = result
            columns = [tuple(numbers.get((name, k)) for k in range(n)) for name, n in sizes]
            title = walk.phases[phase].title
            frames.append(Frame(index, step, title, result, *(*columns, unshifted)))
        return tuple(frames)

    def to_dict(self) -> dict[str, Any]:
        """Return the data of the stepping page as built-in Python types, including all numbers."""
        scene_data = ("target", "wrt", "rows", "vertices", "edges")
        return {
            "title": self.title,
            "point": {name: encode_value(value) for name, value in self.point.items()},
            "arrays": self.scene.tape.has_arrays,
            **{name: getattr(self.scene, name) for name in scene_data},
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
    """Compute the steps of all requested differentiation methods for a graph at a point.

    Arguments and errors are those of :func:`cgprimer.step`; ``methods`` are the tabs in order. A
    method that cannot differentiate the graph has a walk with the reason.

    Raises:
        DifferentiationError: too many steps, or no method can differentiate the graph.

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
    if scalars or "reverse" not in methods:  # other methods step through scalars only
        wrt = expand_array_names(graph, wrt)
        graph, at = expand_with_point(graph, at, (of,))
    graph, of = add_element_output(graph, of)
    target = resolve_output(graph, of)
    names = resolve_wrt(graph, graph.inputs if wrt is None and not graph.parameters else wrt)
    if element := next((name for name in names if parse_element_of(graph, name)[1]), ""):
        raise UsageError(
            f"cannot step through {element!r}, an element of an array", hint=SCALARS_HINT
        )
    _check_methods(methods)
    scheme, h = _resolve_difference_options(scheme, h, methods)
    scene = build_scene(tape_of(graph), target, names, level)
    if find_shape(graph, target):
        message = f"steps require a scalar output, but {target!r} is an array"
        raise DifferentiationError(message, hint=SCALARS_HINT)
    point = {format_name(n): v for n, v in complete_point(graph, at, of=target).items()}
    walks, others = _build_walks(scene, methods, scheme, h)
    walks = [replace(walk, numbers=compute_numbers(walk, point)) for walk in walks]
    others = [replace(walk, numbers=compute_numbers(walk, point)) for walk in others]
    if scene.tape.has_arrays:
        scene = measure_vertex_text(scene, walks)
    default_title = f"{target} step by step"
    title = default_title if title is None else _FORBIDDEN_IN_SVG.sub(" ", title).strip()
    return Stepping(scene, point, tuple(walks), title, tuple(others))


def _check_methods(methods: Sequence[str]) -> None:
    """Raise UsageError if a method is unknown or if no method is given."""
    if not methods:
        hint = f"choose from {', '.join(METHODS)}"
        raise UsageError("`methods` must name at least one method", hint=hint)
    for method in methods:
        check_choice("method of steps", method, METHODS)


def _build_walks(
    scene: Scene, methods: Sequence[str], scheme: str, h: float | None
) -> tuple[list[Walk], list[Walk]]:
    """Build the steps of each method, and the steps of finite differences for all other schemes.

    Raises:
        DifferentiationError: no method can differentiate the graph.
    """
    walks: list[Walk] = []
    others: list[Walk] = []
    refusals = []
    for method in methods:
        try:
            check_step_count(len(scene.rows))  # before the work, if there are too many values
            walk = build_walk(scene, method, scheme, h)
            check_step_count(len(walk.steps))
            if method == "finite-difference":
                rest = [name for name in SCHEMES if name != scheme]
                others = [build_walk(scene, method, name, h) for name in rest]
            walks.append(walk)
        except DifferentiationError as error:
            refusals.append(error)
            walks.append(Walk(method, "", "", refusal=_format_refusal(error)))
    if len(refusals) == len(walks):
        raise refusals[0]
    return walks, others


def _format_refusal(error: DifferentiationError) -> str:
    """Format the message and the hint of an error as complete sentences."""
    parts = (" ".join(text.split()) for text in (error.message, error.hint) if text)
    return " ".join(f"{part[0].upper()}{part[1:].rstrip('.')}." for part in parts)


def measure_vertex_text(scene: Scene, walks: Sequence[Walk]) -> Scene:
    """Return a scene in which each vertex stores the length of the longest text it will show."""
    longest: dict[int, int] = {}
    for walk in walks:
        for reveal in (reveal for step in walk.steps for reveal in step.reveals):
            if reveal.column in ("value", "derivative"):
                mark = f"{walk.mark} " if reveal.column == "derivative" else ""
                length = len(mark + mark_rounding(walk.numbers[reveal.value], SHORT))
                longest[reveal.position] = max(length, longest.get(reveal.position, 0))
    vertices = (v._replace(n_characters=longest.get(v.row, 0)) for v in scene.vertices)
    return replace(scene, vertices=tuple(vertices))


def _resolve_difference_options(
    scheme: str | None, h: float | None, methods: Sequence[str]
) -> tuple[str, float | None]:
    """Check the options of finite differences, and return the scheme and the step size.

    Raises:
        UsageError: an invalid option, or an option without the method finite-difference.
    """
    for name, value in (("scheme", scheme), ("h", h)):
        if value is not None and "finite-difference" not in methods:
            raise UsageError(
                f"{name}={value!r} is an option of the method finite-difference, which is not among"
                f" the methods {', '.join(methods)}",
                hint=f"omit `{name}`, or add the method: methods=[..., 'finite-difference']",
            )
    if scheme is not None:
        check_choice("scheme of steps", scheme, SCHEMES)
    if h is None:
        return scheme or SCHEMES[0], None
    if isinstance(h, bool) or not isinstance(h, Real):
        hint = "pass a number such as h=1e-3, in the unit of the variable"
        raise UsageError(f"the step size `h` must be a number, got {h!r}", hint=hint)
    try:
        size = float(h)
    except OverflowError:
        size = inf
    if not 0 < size < inf:
        raise UsageError(f"the step size must be positive and finite, got {h!r}")
    return scheme or SCHEMES[0], size
