"""Steps of the methods: each ends at the derivative, and contributions on edges add up."""

from __future__ import annotations

import itertools
import json
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer import errors
from cgprimer.analysis.element_graph import expand_elements
from cgprimer.core.methods.step_rule import StepRule
from cgprimer.errors import DifferentiationError, UsageError
from cgprimer.support.files import format_json
from cgprimer.visualization.diagrams.text_layout import measure_text
from cgprimer.visualization.pages.stepping.method_walks import METHODS
from cgprimer.visualization.pages.stepping.slide_tables import (
    format_shifted_value,
    format_value,
    measure_columns,
)
from cgprimer.visualization.pages.stepping.step_frames import Stepping, stepping
from cgprimer.visualization.pages.stepping.step_slides import format_headline
from cgprimer.visualization.pages.stepping.step_values import encode_value
from cgprimer.visualization.pages.stepping.vertex_positions import LETTER, lay_out_scene
from tests.approval import approved, refused
from tests.checking.submissions import compute
from tests.methods.graph_strategies import Case, cases
from tests.pages.conftest import GRAPHS, TABLES

LECTURE = cgprimer.load("lecture")
FILES = sorted((Path(__file__).parents[2] / "examples").glob("*.cg"))

# --- derivatives and contributions ----------------------------------------------------------------


def check_derivatives(graph: cgprimer.ExpressionGraph, at: Any = None, **options: Any) -> Stepping:
    """Compare last frames with the gradient, and sums of contributions with the adjoints."""
    shown = stepping(graph, at, **options)
    scene, last = shown.scene, shown.frames("reverse")[-1]
    output = last.values[scene.row_indices[scene.target]] or 0.0
    for method in METHODS:
        expected = cgprimer.gradient(graph, at, of=scene.target, wrt=scene.wrt, method=method)
        size = 1.0
        if method == "finite-difference" and math.isfinite(output):  # its rounding is divided by h
            size = 1e4 * max(1.0, abs(output))
        for name, result in zip(scene.wrt, shown.frames(method)[-1].results, strict=True):
            assert result is not None, name
            close = pytest.approx(expected[name], rel=1e-9 * size, abs=1e-12 * size)
            finite = math.isfinite(expected[name])
            assert result == close if finite else not math.isfinite(result), (method, name)
    for vertex in scene.vertices:
        ends = [k for k, (tail, _) in enumerate(scene.edges) if tail == vertex.name]
        parts = [part for k in ends if (part := last.partials[k]) is not None]
        adjoint = last.derivatives[vertex.row]
        if adjoint is None:
            assert not parts, vertex
        elif vertex.name != scene.target and all(map(math.isfinite, [adjoint, *parts])):
            size = max([1.0, *map(abs, parts)])
            assert sum(parts) == pytest.approx(adjoint, rel=1e-9, abs=1e-9 * size), vertex
    return shown


@pytest.mark.parametrize("level", ["variables", "operations"])
@settings(max_examples=10)
@given(case=cases(most=6), data=st.data())
def test_random_graphs_have_the_gradient_and_its_contributions(
    level: str, case: Case, data: st.DataObject
) -> None:
    graph = case.graph
    every = (*graph.inputs, *graph.parameters, *graph.variables)
    wrt = data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=3, unique=True))
    of = data.draw(st.sampled_from(graph.variables))
    scene = check_derivatives(graph, case.at, of=of, wrt=wrt, level=level).scene
    if level == "variables":
        names = {vertex.name for vertex in scene.vertices}
        lines = [line.split(" = ") for line in graph.text.splitlines() if " = " in line]
        token = r"\b(?:x[abc]|[pqrs]|v\d)\b"
        edges = {(tail, head) for head, text in lines for tail in re.findall(token, text)}
        assert set(scene.edges) == {edge for edge in edges if edge[1] in names}


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=[pytest.mark.slow] * (p.stem == "mlp")) for p in FILES],
    ids=lambda p: p.stem,
)
def test_examples_have_the_gradient(path: Path) -> None:
    graph = expand_elements(cgprimer.load(path))
    check_derivatives(graph, of=graph.outputs[0], wrt=(graph.parameters or graph.inputs)[:2])


@pytest.mark.parametrize("level", ["variables", "operations"])
@pytest.mark.parametrize(("text", "wrt"), TABLES["unusual graphs"])
def test_unusual_graphs_have_the_gradient_and_its_contributions(
    text: str, wrt: str, level: str
) -> None:
    graph = cgprimer.parse(GRAPHS.get(text, text))
    check_derivatives(graph, of="xw", wrt=wrt.split(), level=level)


def test_the_last_frame_is_the_trace() -> None:
    for method, wrt in (("reverse", None), ("forward", "xa")):
        shown = stepping(LECTURE, wrt=wrt or ["xa", *LECTURE.parameters], methods=[method])
        last, rows = shown.frames(method)[-1], cgprimer.trace(LECTURE, wrt=wrt, method=method).rows
        assert [(r.name, r.expression) for r in shown.scene.rows] == [
            (r.name, r.expression) for r in rows
        ]
        assert tuple(r.value for r in rows) == last.values
        for row, derivative in zip(rows, last.derivatives, strict=True):
            assert derivative == row.derivative or (derivative is None and row.derivative == 0)


# --- what each frame shows ------------------------------------------------------------------------


def test_phases_and_lines_of_the_methods() -> None:
    shown = stepping(LECTURE)
    for walk, n_phases in zip(shown.walks, (4, 2, 3, 9), strict=True):
        assert len(walk.phases) == n_phases, walk.method
        assert {step.phase for step in walk.steps} == set(range(n_phases))
        assert {step.line for step in walk.steps} - {-1} == set(range(len(walk.lines)))
        for before, frame in itertools.pairwise(shown.frames(walk.method)):
            if before.step.phase == frame.step.phase:  # what is computed stays within its phase
                for earlier, later in zip(before.values, frame.values, strict=True):
                    assert earlier is None or later is not None
    first = shown.frames("reverse")[0]
    assert first.values[-1] is None
    assert set(first.derivatives) == {None}


def describe_steps(shown: Stepping, method: str) -> str:
    """Return headlines of a method, with highlighted vertices and edges, partial sums, notes."""
    names, lines = [row.name for row in shown.scene.rows], list[str]()
    for frame in shown.frames(method):
        step, rows = frame.step, zip(names, frame.derivatives, frame.sums, strict=True)
        sums = [f"{name}: {s:g} + ..." for name, d, s in rows if d is None and s is not None]
        edges = [">".join(shown.scene.edges[e]) for e in step.edges]
        parts = (" ".join(step.vertices), " ".join(edges), ", ".join(sums), step.note)
        lines.append(" | ".join((format_headline(frame), *filter(None, parts))))
    return "\n".join([" / ".join(phase.title for phase in shown.walk(method).phases), *lines])


@pytest.mark.parametrize("row", TABLES["highlights"], ids=lambda row: row[0])
def test_steps_highlight_vertices_and_edges_and_collect_sums(row: tuple[str, str, str]) -> None:
    _, text, wrt = row
    shown = stepping(
        cgprimer.parse(GRAPHS.get(text, text)), wrt=wrt, methods=["reverse", "path-sum"]
    )
    for walk in shown.walks:
        approved(walk.refusal or describe_steps(shown, walk.method))


def test_long_lists_are_shortened_and_their_numbers_are_not() -> None:
    names = [f"p{k}" for k in range(12)]
    graph = cgprimer.parse(f"xw = {' + '.join(f'{name}*xa' for name in names)}")
    point = {"xa": 2.0} | dict.fromkeys(names, 0.1)
    shown = stepping(graph, point, wrt=["xa", *names[:11]], level="operations")
    approved(
        "\n".join(s.text for w in shown.walks for s in w.steps if re.search("…|other", s.text))
    )
    assert len(shown.walk("reverse").steps[0].operands) == 13


def test_numbers_that_are_not_finite_are_plain_data() -> None:
    shown = stepping(cgprimer.parse("xb = log(xa); xc = p/xb"), {"xa": -1.0, "p": 2.0})
    numbers = json.loads(format_json(shown.to_dict()))["walks"][0]["numbers"]
    assert [n for n in numbers if not isinstance(n, float)] == ["nan"] * numbers.count("nan") != []
    last = shown.frames("reverse")[-1].results[0]
    assert last is not None
    assert math.isnan(last)


# --- finite differences ---------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["central", "forward"])
@pytest.mark.parametrize("h", [None, 0.125, 1e-6, 1, np.float32(1.0), Fraction(1)])
def test_schemes_and_steps_are_those_of_the_method(scheme: str, h: float | None) -> None:
    shown = stepping(LECTURE, scheme=scheme, h=h, methods=["finite-difference"])
    assert isinstance(shown.walks[0].h, float | None)
    step = None if h is None else float(h)
    gradient = cgprimer.gradient(LECTURE, method="finite-difference", scheme=scheme, step=step)
    results = shown.frames("finite-difference")[-1].results
    assert dict(zip(shown.scene.wrt, results, strict=True)) == pytest.approx(gradient, rel=1e-7)


@pytest.mark.parametrize("h", [None, 1e-3, 1e-9, 1e-13])
def test_a_shift_of_a_finite_difference_is_visible_in_the_text(h: float | None) -> None:
    shown = stepping(LECTURE, wrt=["xa", "bc"], methods=["finite-difference"], h=h)
    frames, n_shifted = shown.frames("finite-difference"), 0
    (*_, base) = (f.values for f in frames if f.step.phase == 0)
    for frame in frames:
        unmoved_values = [None] * len(base) if frame.step.phase == 0 else base
        assert [*frame.unmoved] == [*unmoved_values]
        for value, unmoved in zip(frame.values, frame.unmoved, strict=True):
            if value is None or unmoved is None:
                continue
            text = format_shifted_value(value, unmoved)
            assert (text != format_shifted_value(unmoved, unmoved)) == (value != unmoved)
            assert measure_text(text, LETTER) < 12 * 0.62 * LETTER + 18
            n_shifted += value != unmoved
    assert n_shifted > 4


@pytest.mark.parametrize(("value", "unmoved", "text"), TABLES["shifted values"])
def test_the_text_of_a_shifted_value(value: str, unmoved: str, text: str) -> None:
    assert format_shifted_value(*compute(f"({value}, {unmoved})")) == text


def test_the_size_of_a_step_is_a_power_of_two() -> None:
    rule = StepRule(None, 2)
    small = rule.relative_step(52)
    for exponent in (1, 4, 31, 1000):
        power = 2.0**exponent
        assert rule.choose_step(power) == small * power
        assert rule.choose_step(-math.nextafter(power, 0.0)) == small * power / 2
    assert {rule.choose_step(v) for v in (math.inf, math.nan, 0.0)} == {small}


# --- arrays ---------------------------------------------------------------------------------------


def test_reverse_mode_steps_through_matrices() -> None:
    graph = cgprimer.parse(GRAPHS["F1"])
    shown = stepping(graph, methods=("reverse",))
    frames, rows = shown.frames("reverse"), shown.scene.row_indices
    exact = {"xp": 2.0, "w2": [4, 0], "xr": [2, 6], "xh": [2, 0], "w1": [[2, 0], [4, 0]]}
    for name, adjoint in exact.items():
        np.testing.assert_array_equal(frames[-1].derivatives[rows[name]], adjoint)
    edge = shown.scene.edges.index(("w1", "xh"))
    np.testing.assert_array_equal(frames[-1].partials[edge], [[2, 0], [4, 0]])
    for method in METHODS:
        shown = stepping(graph, methods=(method,), wrt=["w1", "y"], scalars=True)
        assert shown.scene.wrt == ("w1[0,0]", "w1[0,1]", "w1[1,0]", "w1[1,1]", "y")
        assert shown.frames(method)[-1].results == pytest.approx([2, 0, 4, 0, -2], abs=1e-6)


def test_large_arrays_are_abbreviated() -> None:
    assert encode_value(np.full((8, 8), 0.5)) == {"text": "[8,8], norm 4", "shape": "[8,8]"}
    graph = cgprimer.parse("input x[3] = [1, -2, 0.5]; parameter W[4,3] = 0.1; xl = sum(W @ x)")
    shown = stepping(graph)
    (numbers,) = (w["numbers"] for w in shown.to_dict()["walks"] if w["method"] == "reverse")
    whole = "[[1, -2, 0.5], [1, -2, 0.5], [1, -2, 0.5], [1, -2, 0.5]]"
    assert format_headline(shown.frames("reverse")[-1]).endswith(f" = {whole}")
    assert {"text": "[4,3], norm ≈4.58", "shape": "[4,3]", "whole": whole} in numbers
    wide = measure_columns(shown, "reverse")  # names and expressions have room on a slide
    assert wide.value + wide.derivative < 220
    assert format_value(np.ones((4, 3)), wide.short) == "norm ≈3.46"
    assert format_value(np.ones((2, 1)), wide.short) == "[[1], [1]]"


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "kind", "words"), TABLES["wrong arguments of stepping"]
)
def test_wrong_arguments_are_refused(text: str, options: str, kind: str, words: str) -> None:
    graph = cgprimer.parse(GRAPHS.get(text, text))
    with refused(getattr(errors, kind), words):
        stepping(graph, **compute(options))


def test_a_method_with_too_many_steps_or_paths_is_refused_and_the_others_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = "cgprimer.visualization.pages.stepping.method_walks"
    n_steps = len(stepping(LECTURE, methods=["reverse"]).walk("reverse").steps)
    monkeypatch.setattr(f"{module}.MAX_PATHS", 3)
    monkeypatch.setattr(f"{module}.MAX_STEPS", n_steps)
    shown = stepping(LECTURE)
    assert [bool(walk.refusal) for walk in shown.walks] == [True, False, True, True]
    assert shown.walk("path-sum").steps == ()
    for walk in shown.walks:
        approved(walk.refusal)
        assert "\n" not in walk.refusal
    for method, words in (("path-sum", "paths"), ("finite-difference", "steps")):
        with pytest.raises(DifferentiationError, match=words):
            stepping(LECTURE, methods=[method])
    monkeypatch.setattr(f"{module}.MAX_PATHS", 4)
    monkeypatch.setattr(f"{module}.MAX_STEPS", 1000)
    assert not any(walk.refusal for walk in stepping(LECTURE).walks)
    monkeypatch.undo()
    sums = " + ".join(f"x{k}" for k in range(310))
    text = "\n".join([*(f"x{k} = p{k}*xa" for k in range(310)), f"xw = {sums}"])
    point = {f"p{k}": float(k) for k in range(310)} | {"xa": 0.5}
    monkeypatch.setattr(f"{module}.substitute_seeds", None)  # refused before the work
    shown = stepping(cgprimer.parse(text), point, methods=["forward", "reverse"])
    assert not shown.walk("reverse").refusal
    approved(shown.walk("forward").refusal, "5,000")
    with refused(UsageError, "311"):
        lay_out_scene(shown.scene)
