"""The widget of a page of steps: the attributes that Python and the page share."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest

import cgprimer
from cgprimer.errors import UsageError
from tests.approval import refused
from tests.checking.submissions import compute
from tests.pages.conftest import TABLES

pytest.importorskip("anywidget", reason="anywidget is missing: pip install -e .[widget]")
LECTURE = cgprimer.load("lecture")
STATE = ("method", "step", "point", "h", "scheme")


def read_state(widget: Any) -> dict[str, Any]:
    return {name: getattr(widget, name) for name in STATE}


@pytest.fixture
def widget(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A widget that keeps the states that it sends to its page in ``sent``."""
    created = cgprimer.step(LECTURE, {"xa": 0.5}, method="forward").widget()
    sent: list[dict[str, Any]] = []

    def keep(message: dict[str, Any], buffers: Any = None) -> None:
        if message["method"] == "update":
            sent.append(message["state"])

    monkeypatch.setattr(created, "_send", keep)
    created.sent = sent
    return created


@pytest.mark.parametrize("method", ["forward", "reverse", "path-sum", "finite-difference"])
def test_gradient_and_result_follow_the_state(widget: Any, method: str) -> None:
    widget.method = method
    assert widget.gradient == pytest.approx(cgprimer.gradient(LECTURE, {"xa": 0.5}, method=method))
    widget.point = {"xa": 0.75, "cd": 2}
    at = {**LECTURE.values, "xa": 0.75, "cd": 2.0}
    assert widget.gradient == pytest.approx(cgprimer.gradient(LECTURE, at, method=method))
    assert widget.point == at
    widget.step = len(widget._shown.walk(method).steps) - 1
    assert widget.result in widget.gradient.values()
    assert widget.sent[-1] == {"step": widget.step}
    assert {"point": at} in widget.sent
    assert not any("_frame" in state for state in widget.sent)


def test_differences_have_the_chosen_step_and_scheme() -> None:
    widget = cgprimer.step(cgprimer.parse("xw = a*xa^2"), {"a": 3, "xa": 2}, wrt="xa").widget()
    widget.method, widget.h, widget.scheme = "finite-difference", 0.5, "forward"
    assert widget.gradient == {"xa": (3 * 2.5**2 - 3 * 2**2) / 0.5}
    widget.h = None
    assert widget.gradient["xa"] == pytest.approx(12, rel=1e-6)


def test_the_page_changes_the_state_without_echo(widget: Any) -> None:
    seen = []
    widget.observe(seen.append, STATE)
    point = {**LECTURE.values, "ab": 1.5, "xa": 2.0}
    state = {"step": 20, "method": "reverse", "point": point, "h": 0.25, "scheme": "forward"}
    widget.set_state(state)  # in any order: forward and reverse have different steps
    assert {change.name for change in seen} == set(STATE)
    assert read_state(widget) == state
    assert widget.sent == []
    widget.method, widget.step = "forward", 70
    widget.method = "reverse"
    assert widget.step == len(widget._shown.walk("reverse").steps) - 1


@pytest.mark.parametrize(("name", "value", "words"), TABLES["invalid states of the widget"])
def test_invalid_states_are_refused_before_anything_is_sent(
    widget: Any, name: str, value: str, words: str
) -> None:
    invalid, before = compute(value), read_state(widget)
    with refused(UsageError, words):
        setattr(widget, name, invalid)
    with pytest.raises(UsageError):
        widget.set_state({"method": "reverse", name: invalid})
    assert read_state(widget) == before
    assert widget.sent == []
    with pytest.raises(TypeError):
        widget.point["xa"] = 3.0


def test_pages_without_sliders_have_a_fixed_point() -> None:
    widget = cgprimer.step(cgprimer.load("matrix_backpropagation")).widget()
    name = next(iter(widget.point))
    with refused(UsageError, "arrays"):
        widget.point = {name: 1.0}
    widget.set_state({"point": {}, "step": 3, "h": None, "scheme": None})
    assert (widget.step, widget.gradient.keys()) == (3, set(widget._shown.scene.wrt))
    with refused(UsageError, "finite-difference"):
        widget.h = 0.1
    cgprimer.register_primitive("triple", lambda a: 3 * a, partials="3")
    try:
        widget = cgprimer.step(cgprimer.parse("xw = triple(xa)"), {"xa": 2}).widget()
        with refused(UsageError, "triple"):
            widget.point = {"xa": 1.0}
    finally:
        cgprimer.unregister_primitive("triple")


def test_values_that_are_not_finite_reach_the_page_as_strings() -> None:
    graph = cgprimer.parse("xw = a*xa")
    widget = cgprimer.step(graph, {"a": math.nan, "xa": -math.inf}).widget()
    encoded = widget.get_state(["point"])["point"]
    assert encoded == {"a": "nan", "xa": "-inf"}
    widget.set_state({"point": {**encoded, "a": 2}})
    assert widget.point == {"a": 2.0, "xa": -math.inf}
    assert widget.gradient == {"a": -math.inf}


def test_the_widget_needs_a_step_page_and_anywidget(monkeypatch: pytest.MonkeyPatch) -> None:
    page = cgprimer.step(LECTURE)
    with refused(UsageError, "step"):
        type(page)("<html>").widget()
    monkeypatch.delitem(sys.modules, "cgprimer.visualization.pages.stepping.step_widget", False)
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with refused(UsageError, "pip install"):
        page.widget()
