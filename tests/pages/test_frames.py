"""Frames: every method ends at Python's derivatives, and nothing is known before its time."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.analysis.element_graph import expand_elements
from cgprimer.core.methods.step_rule import StepRule
from cgprimer.errors import CgprimerError, DifferentiationError, UsageError
from cgprimer.support.files import format_json
from cgprimer.visualization.diagrams.text_layout import measure_text
from cgprimer.visualization.pages.stepping.method_walks import METHODS
from cgprimer.visualization.pages.stepping.slide_tables import format_shifted_value
from cgprimer.visualization.pages.stepping.step_frames import Frame, stepping
from cgprimer.visualization.pages.stepping.vertex_positions import LETTER, lay_out_scene
from tests.approval import refused

EXAMPLES = Path(__file__).parents[2] / "examples"
LECTURE = cgprimer.load(EXAMPLES / "lecture.cg")
FILES = sorted(EXAMPLES.glob("*.cg"))


def loaded(path: Path) -> cgprimer.ExpressionGraph:
    """An example; one with arrays in numbers, as every method steps through it."""
    return expand_elements(cgprimer.load(path))


def names_of(graph: cgprimer.ExpressionGraph) -> tuple[str, ...]:
    return graph.parameters or graph.inputs


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_the_last_frame_has_the_gradient(path: Path, method: str) -> None:
    graph = loaded(path)
    of = graph.outputs[0]
    names = names_of(graph)[: 2 if path.stem == "mlp" else 12]  # no more steps than are taken
    shown = stepping(graph, of=of, wrt=names, methods=[method])
    expected = cgprimer.gradient(graph, of=of, wrt=names, method=method)
    results = dict(zip(shown.scene.wrt, shown.frames(method)[-1].results, strict=True))
    # Engines turn powers into products and reorder sums; differences divide what is left by h.
    assert results == pytest.approx(expected, rel=1e-7 if method == "finite-difference" else 1e-14)


@pytest.mark.parametrize("level", ["variables", "operations"])
@pytest.mark.parametrize("method", METHODS)
def test_inputs_and_inner_variables_too(method: str, level: str) -> None:
    names = ["xa", "xy", "ab"]
    shown = stepping(LECTURE, wrt=names, methods=[method], level=level)
    found = shown.frames(method)[-1].results
    expected = cgprimer.gradient(LECTURE, wrt=names, method=method)
    assert dict(zip(names, found, strict=True)) == pytest.approx(expected, rel=1e-14)


def test_the_trace_of_the_last_frame_is_the_trace() -> None:
    for method, wrt in (("reverse", None), ("forward", "xa")):
        shown = stepping(LECTURE, wrt=wrt or ["xa", *LECTURE.parameters], methods=[method])
        last = shown.frames(method)[-1]
        rows = cgprimer.trace(LECTURE, wrt=wrt, method=method).rows
        assert [r.name for r in rows] == [r.name for r in shown.scene.rows]
        assert [r.expression for r in rows] == [r.expression for r in shown.scene.rows]
        assert tuple(r.value for r in rows) == last.values
        for row, found in zip(rows, last.derivatives, strict=True):
            assert found == row.derivative or (found is None and row.derivative == 0)


def test_what_is_known_grows_within_a_phase() -> None:
    shown = stepping(LECTURE)
    for method in METHODS:
        before: Frame | None = None
        for frame in shown.frames(method):
            if before and before.step.phase == frame.step.phase:
                for earlier, later in zip(before.values, frame.values, strict=True):
                    assert earlier is None or later is not None
            before = frame
    assert shown.frames("reverse")[0].values[-1] is None
    assert set(shown.frames("reverse")[0].derivatives) == {None}


def test_reverse_mode_has_two_sweeps_and_forward_mode_a_pass_for_each_name() -> None:
    shown = stepping(LECTURE)
    assert [p.title for p in shown.walk("reverse").phases] == [
        "forward sweep: values",
        "backward sweep: adjoints",
    ]
    assert len(shown.walk("forward").phases) == 4
    assert len(shown.walk("finite-difference").phases) == 9
    for walk in shown.walks:
        assert {step.phase for step in walk.steps} == set(range(len(walk.phases)))
        assert {step.line for step in walk.steps} - {-1} == set(range(len(walk.lines)))


def test_edges_of_a_path_are_lit_together() -> None:
    shown = stepping(LECTURE, wrt=["xa"])
    paths = [s for s in shown.walk("path-sum").steps if s.text.startswith("path ")]
    assert len(paths) == 4
    lit = [[shown.scene.edges[e] for e in step.edges] for step in paths]
    assert [("xa", "xx"), ("xx", "xw")] in lit


def test_it_is_plain_data_with_numbers_that_are_not_finite() -> None:
    shown = stepping(cgprimer.parse("xb = log(xa); xc = p/xb"), {"xa": -1.0, "p": 2.0})
    text = format_json(shown.to_dict())
    numbers = json.loads(text)["walks"][0]["numbers"]
    assert [n for n in numbers if not isinstance(n, float)] == ["nan"] * numbers.count("nan") != []
    last = shown.frames("reverse")[-1].results[0]
    assert last is not None
    assert math.isnan(last)


def test_bad_input_is_one_clear_error() -> None:
    with refused(UsageError, "'symbolic'"):
        stepping(LECTURE, methods=["symbolic"])
    with refused(UsageError):
        stepping(LECTURE, level="layers")
    with pytest.raises(CgprimerError, match="xq"):
        stepping(LECTURE, wrt="xq")
    with pytest.raises(CgprimerError, match="ab"):
        stepping(cgprimer.parse("xw = ab*xa"), {"xa": 1.0})


def test_a_method_that_cannot_says_why_and_the_others_go_on() -> None:
    chain = "; ".join(f"x{k} = x{k - 1}*p + x{k - 1}^2*sin(x{k - 1}*p)" for k in range(1, 14))
    graph = cgprimer.parse(chain.replace("x0", "xa"))
    shown = stepping(graph, {"xa": 0.1, "p": 0.5}, level="operations")
    assert "paths" in shown.walk("path-sum").refusal
    assert shown.walk("path-sum").steps == ()
    assert shown.walk("reverse").steps
    with pytest.raises(CgprimerError, match="paths"):
        stepping(graph, {"xa": 0.1, "p": 0.5}, level="operations", methods=["path-sum"])


def test_edges_are_those_that_an_instruction_works_on() -> None:
    # All adjoints up to xd are the same number 1, and xb takes part in three of them.
    graph = cgprimer.parse("xb = xa + 1; xc = xa + xb*2; xd = xa*xb + xc; xw = xd - xb")
    shown = stepping(graph, {"xa": 0.5}, wrt=["xa"], methods=["reverse"])
    lit = {s.text: [shown.scene.edges[e] for e in s.edges] for s in shown.walk("reverse").steps}
    assert lit["bar_xd = 1"] == [("xd", "xw")]
    assert lit["bar_xc = 1"] == [("xc", "xd")]
    assert lit["bar_v2 = 1"] == []  # inside of xd
    assert lit["v3 = -1 + xa"] == [("xb", "xd"), ("xb", "xw")]  # the first two shares of xb
    assert lit["bar_xb = v3 + 2"] == [("xb", "xc")]  # adds the third
    assert lit["bar_xa = v4 + bar_xb"] == [("xa", "xb")]
    forward = stepping(graph, {"xa": 0.5}, wrt=["xa"], methods=["forward"])
    lit = {s.text: [forward.scene.edges[e] for e in s.edges] for s in forward.walk("forward").steps}
    assert ("xa", "xd") not in [e for t, edges in lit.items() if "dot_xc" in t for e in edges]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_shares_on_the_edges_add_up_to_the_adjoint(path: Path) -> None:
    graph = loaded(path)
    shown = stepping(graph, of=graph.outputs[0], methods=["reverse"], level="operations")
    last = shown.frames("reverse")[-1]
    names = [v.name for v in shown.scene.vertices]
    stops = set()  # where a gradient is stopped, nothing comes to what is before
    if any(row.expression.startswith("stop_gradient") for row in shown.scene.rows):
        stops = {v.name for v in shown.scene.vertices if last.derivatives[v.row] is None}
    for vertex in shown.scene.vertices:
        leaving = [
            last.partials[k]
            for k, (tail, head) in enumerate(shown.scene.edges)
            if tail == vertex.name and head not in stops
        ]
        adjoint = last.derivatives[vertex.row]
        if adjoint is not None and vertex.name != shown.scene.target:
            assert None not in leaving
            assert sum(v for v in leaving if v is not None) == pytest.approx(adjoint, rel=1e-12)
    assert names


def test_a_sum_is_shown_while_shares_are_missing() -> None:
    shown = stepping(LECTURE, wrt=["xx"], methods=["reverse"])
    row = shown.scene.row_indices["xx"]
    frames = shown.frames("reverse")
    sums = [f.sums[row] for f in frames]
    before = [k for k, f in enumerate(frames) if f.derivatives[row] is None]
    assert any(sums[k] is not None for k in before)
    notes = [f.step.note for f in frames if f.step.row == row and f.step.note]
    assert notes[0].startswith("bar_xx += ")
    assert notes[-1] == "the sum of 3 of 3 contributions"


def test_a_line_that_is_two_shares_says_so() -> None:
    shown = stepping(cgprimer.parse("xw = (xa*xa)*k\ninput xa=3; parameter k=2"), wrt=["xa"])
    last = shown.walk("reverse").steps[-2:]
    assert [step.note for step in last] == [
        "bar_xa += v2, contributions 1 and 2 of 2",
        "the sum of both contributions",
    ]
    assert [frame.partials for frame in shown.frames("reverse")][-1] == (12.0, None)


@pytest.mark.parametrize("scheme", ["central", "forward"])
@pytest.mark.parametrize("h", [None, 0.125, 1e-6])
def test_differences_are_those_of_the_method(scheme: str, h: float | None) -> None:
    names = ["xa", "xy", "ab"]
    shown = stepping(LECTURE, wrt=names, methods=["finite-difference"], scheme=scheme, h=h)
    expected = cgprimer.gradient(
        LECTURE, wrt=names, method="finite-difference", scheme=scheme, step=h
    )
    found = shown.frames("finite-difference")[-1].results
    # Rounding of the output, at most a few units of 2^-53 of its value 21.5, divided by h.
    rounding = 1e-13 / (h or 1e-6)
    assert dict(zip(names, found, strict=True)) == pytest.approx(expected, rel=0, abs=rounding)
    exact = cgprimer.gradient(LECTURE, wrt=names)
    if h == 0.125:
        assert found[0] != pytest.approx(exact["xa"], rel=1e-4)
    other = next(walk for walk in shown.others)
    assert other.scheme != scheme
    assert other.h == h


def test_a_method_with_too_many_steps_is_refused_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cgprimer.visualization.pages.stepping.method_walks.MAX_STEPS", 60)
    shown = stepping(LECTURE)
    assert [bool(walk.refusal) for walk in shown.walks] == [True, False, False, True]
    assert "at most 60" in shown.walk("forward").refusal
    with pytest.raises(DifferentiationError, match="steps"):
        stepping(LECTURE, methods=["finite-difference"])


def test_what_would_take_minutes_is_refused_before_the_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    count = 310
    sums = " + ".join(f"x{k}" for k in range(count))
    text = "\n".join([*(f"x{k} = p{k}*xa" for k in range(count)), f"xw = {sums}"])
    point = {f"p{k}": float(k) for k in range(count)} | {"xa": 0.5}
    monkeypatch.setattr("cgprimer.visualization.pages.stepping.method_walks.substitute_seeds", None)
    shown = stepping(cgprimer.parse(text), point, methods=["forward", "reverse"])
    assert [bool(walk.refusal) for walk in shown.walks] == [True, False]
    with refused(UsageError, "311"):
        lay_out_scene(shown.scene)


def test_a_refusal_is_made_of_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cgprimer.visualization.pages.stepping.method_walks.MAX_PATHS", 3)
    monkeypatch.setattr("cgprimer.visualization.pages.stepping.method_walks.MAX_STEPS", 60)
    shown = stepping(LECTURE)
    paths, steps = shown.walk("path-sum").refusal, shown.walk("forward").refusal
    assert paths == (
        "The graph has 4 paths, but a page can show at most 3. "
        "Select fewer names with --wrt NAME (in Python, wrt=...)."
    )
    for text in (paths, steps):
        assert "hint" not in text
        assert "\n" not in text


def test_long_lists_are_cut_and_their_numbers_are_not() -> None:
    names = [f"p{k}" for k in range(12)]
    graph = cgprimer.parse("xw = " + " + ".join(f"{name}*xa" for name in names))
    point = {"xa": 2.0} | dict.fromkeys(names, 0.1)
    shown = stepping(graph, point)
    first = shown.walk("reverse").steps[0]
    assert first.text == "given: xa, p0, p1, p2, p3, p4, p5, …, p11"
    assert len(first.operands) == 13
    seeds = [s.text for s in shown.walk("forward").steps if s.line == 0]
    assert seeds[:2] == [f"dot_p{k} = 1; the other 11 seeds = 0" for k in (0, 1)]
    total = stepping(graph, point, wrt=["xa"]).frames("path-sum")[-1]
    assert total.step.text == "dxw/dxa = path 1"  # variables: one edge
    apart = stepping(graph, point, wrt=["xa"], level="operations").frames("path-sum")[-1]
    assert apart.step.text.endswith("path 6 + path 7 + … + path 12")
    assert apart.results == pytest.approx((1.2,))


def test_a_move_of_a_finite_difference_can_be_seen() -> None:
    for h in (None, 1e-3, 1e-9, 1e-13):
        shown = stepping(LECTURE, wrt=["xa", "bc"], methods=["finite-difference"], h=h)
        frames = shown.frames("finite-difference")
        base = max((f for f in frames if f.step.phase == 0), key=lambda f: f.number).values
        told = 0
        for frame in frames:
            if frame.step.phase == 0:
                assert set(frame.unmoved) == {None}
                continue
            assert frame.unmoved == base
            for value, unmoved in zip(frame.values, frame.unmoved, strict=True):
                if value is None or unmoved is None:
                    continue
                text = format_shifted_value(value, unmoved)
                assert (text != format_shifted_value(unmoved, unmoved)) == (value != unmoved)
                assert measure_text(text, LETTER) < 12 * 0.62 * LETTER + 18
                parts = text.replace("… ", "0 ").split(" ")
                if len(parts) == 3:
                    move = float(parts[1] + parts[2])
                    assert move == pytest.approx(value - unmoved, rel=0.1)
                elif value != unmoved:
                    assert float(text.removeprefix("≈")) - unmoved == pytest.approx(
                        value - unmoved, rel=0.06
                    )
                told += value != unmoved
        assert told > 20
    assert {f.unmoved for f in stepping(LECTURE).frames("reverse")} == {(None,) * len(base)}


@pytest.mark.parametrize(
    ("value", "unmoved", "text"),
    [
        (2.75 + 2**-18, 2.75, "≈2.7500038"),
        (2 + 2**-16, 2.0, "≈2.0000153"),
        (-0.0009015747 + 1e-13, -0.0009015747, "… + 1e-13"),
        (-1.234e-05 - 1.5e-14, -1.234e-05, "… - 1.5e-14"),
        (0.5 - 1e-12, 0.5, "0.5 - 1e-12"),
        (math.nan, 0.5, "nan"),
        (math.inf, math.inf, "inf"),
        (1 / 3, None, "≈0.33333"),
        (1 / 3, 1 / 3, "≈0.33333"),
    ],
)
def test_the_text_of_a_value_that_is_moved(value: float, unmoved: float | None, text: str) -> None:
    assert format_shifted_value(value, unmoved) == text


def test_schemes_and_steps_that_cannot_be() -> None:
    with refused(UsageError, "'complex-step'"):
        stepping(LECTURE, scheme="complex-step")
    for h in (0.0, -1.0, math.inf, math.nan):
        with refused(UsageError):
            stepping(LECTURE, h=h)


@pytest.mark.parametrize(
    ("name", "value"), [("scheme", "forward"), ("scheme", "central"), ("h", 1)]
)
def test_options_of_differences_are_not_ignored(name: str, value: object) -> None:
    options: dict[str, Any] = {name: value}
    for call in (
        lambda: stepping(LECTURE, methods=["reverse"], **options),
        lambda: cgprimer.step(LECTURE, method="reverse", methods=["reverse"], **options),
    ):
        with refused(UsageError, f"{name}={value!r}"):
            call()
    page = cgprimer.step(LECTURE, method="finite-difference", methods=["reverse"], **options)
    assert "finite-difference" in page


def test_a_step_is_a_number() -> None:
    for wrong in (True, "x", "1e-3", [1.0], 1j):
        with refused(UsageError, "h"):
            stepping(LECTURE, h=wrong)  # type: ignore[arg-type]
    with refused(UsageError):
        stepping(LECTURE, h=10**400)
    for h in (1, np.float32(1.0), Fraction(1)):
        found = stepping(LECTURE, h=h).walk("finite-difference").h  # type: ignore[arg-type]
        assert found == 1.0
        assert type(found) is float


def test_no_method_at_all() -> None:
    with refused(UsageError):
        stepping(LECTURE, methods=[])


def test_a_primitive_is_not_taken_for_an_operation_of_the_walk() -> None:
    graph = cgprimer.parse("xw = step(xa)*k", name="steps")
    for method in METHODS:
        last = stepping(graph, {"xa": 1.0, "k": 2.0}, methods=[method]).frames(method)[-1]
        assert last.results == pytest.approx((1.0,))


def test_the_size_of_a_step_is_exact() -> None:
    rule = StepRule(None, 2)
    small = rule.relative_step(52)
    for exponent in (1, 4, 31, 1000):
        power = 2.0**exponent
        assert rule.choose_step(power) == small * power
        assert rule.choose_step(-math.nextafter(power, 0.0)) == small * power / 2
    assert (
        rule.choose_step(math.inf) == rule.choose_step(math.nan) == rule.choose_step(0.0) == small
    )


def test_a_graph_without_anything_to_step_through() -> None:
    with pytest.raises(CgprimerError):
        stepping(cgprimer.parse(""))
    constant = stepping(cgprimer.parse("xb = 2 + 3; xw = p*xb"), {"p": 1.0})
    assert constant.frames("reverse")[-1].results == (5.0,)
