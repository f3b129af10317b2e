"""Frames: every method ends at Python's derivatives, and nothing is known before its time."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import cgprimer
from cgprimer.errors import CgprimerError, UsageError
from cgprimer.files import json_text
from cgprimer.stepping.frames import Frame, stepping
from cgprimer.stepping.walks import METHODS

EXAMPLES = Path(__file__).parents[2] / "examples"
LECTURE = cgprimer.load(EXAMPLES / "lecture.cg")
FILES = sorted(EXAMPLES.glob("*.cg"))


def names_of(graph: cgprimer.ExpressionGraph) -> tuple[str, ...]:
    return graph.parameters or graph.inputs


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_the_last_frame_has_the_gradient(path: Path, method: str) -> None:
    graph = cgprimer.load(path)
    of = graph.outputs[0]
    shown = stepping(graph, of=of, methods=[method])
    expected = cgprimer.gradient(graph, of=of, wrt=names_of(graph), method=method)
    results = dict(zip(shown.scene.wrt, shown.frames(method)[-1].results, strict=True))
    if method == "path-sum":  # products in another order
        assert results == pytest.approx(expected, rel=1e-14)
    else:
        assert results == expected


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
    text = json_text(shown.to_dict())
    assert json.loads(text)["walks"][0]["numbers"][1] == ["nan"]
    last = shown.frames("reverse")[-1].results[0]
    assert last is not None
    assert math.isnan(last)


def test_bad_input_is_one_clear_error() -> None:
    with pytest.raises(UsageError, match="no stepping through the method 'symbolic'"):
        stepping(LECTURE, methods=["symbolic"])
    with pytest.raises(UsageError, match="no level"):
        stepping(LECTURE, level="layers")
    with pytest.raises(CgprimerError, match="xq"):
        stepping(LECTURE, wrt="xq")
    with pytest.raises(CgprimerError, match="ab"):
        stepping(cgprimer.parse("xw = ab*xa"), {"xa": 1.0})


def test_a_method_that_cannot_says_why_and_the_others_go_on() -> None:
    chain = "; ".join(f"x{k} = x{k - 1}*p + x{k - 1}^2*sin(x{k - 1}*p)" for k in range(1, 14))
    graph = cgprimer.parse(chain.replace("x0", "xa"))
    shown = stepping(graph, {"xa": 0.1, "p": 0.5}, level="operations")
    assert "paths" in shown.walk("path-sum").refused
    assert shown.walk("path-sum").steps == ()
    assert shown.walk("reverse").steps
    with pytest.raises(CgprimerError, match="paths"):
        stepping(graph, {"xa": 0.1, "p": 0.5}, level="operations", methods=["path-sum"])
