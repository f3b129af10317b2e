"""The page of steps in a browser: numbers, keys, sliders, addresses; ``-m browser``."""

from __future__ import annotations

import ast
import itertools
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import cgprimer
from cgprimer.core.methods.step_rule import StepRule
from cgprimer.core.operations import find_primitive, numpy_arithmetic, primitives
from cgprimer.support.number_format import SHORT, format_number, mark_rounding
from cgprimer.visualization.pages.comparison.comparison_slides import save_comparison
from cgprimer.visualization.pages.stepping.method_walks import METHODS
from cgprimer.visualization.pages.stepping.slide_tables import format_shifted_value
from cgprimer.visualization.pages.stepping.step_frames import Frame, Stepping, stepping
from cgprimer.visualization.pages.stepping.step_page import render_step_page
from tests.methods.graph_strategies import Case, cases
from tests.pages.conftest import (
    GRAPHS,
    SCRIPTS,
    TABLES,
    move,
    open_steps,
    opened,
    press,
    texts,
    wait,
)

pytestmark = pytest.mark.browser
LECTURE = cgprimer.load("lecture")
UNKNOWN = "not computed"


def choose(page: Any, method: str, index: float = math.inf) -> None:
    """Show a step of a method."""
    page.execute_script(
        "chooseWalk(data.walks.findIndex(w => w.method === arguments[0])); goTo(+arguments[1])",
        method,
        str(index).replace("inf", "Infinity"),
    )


def results(page: Any) -> list[str]:
    return texts(page, "#results .chip > span")


def last_results(shown: Stepping, method: str) -> list[str]:
    return [mark_rounding(value) for value in shown.frames(method)[-1].results]


def read(page: Any) -> dict[str, Any]:
    """What a reader sees in the table, the picture and the program."""
    found: dict[str, Any] = page.execute_script(SCRIPTS["read table, picture and program"])
    return found


def expected(frame: Frame, shown: Stepping, method: str) -> dict[str, Any]:
    """The texts of a frame, as Python writes its numbers."""

    def text(value: Any, unknown: str = UNKNOWN) -> str:
        return unknown if value is None else mark_rounding(value, SHORT)

    def partly(derivative: Any, total: Any) -> str:
        return f"{text(total)} + …" if derivative is None and total is not None else ""

    scene, step, walk = shown.scene, frame.step, shown.walk(method)
    rows = list(zip(frame.values, frame.derivatives, frame.sums, frame.unmoved, strict=True))
    vertices = []
    for vertex in scene.vertices:
        value, derivative, total, unmoved = rows[vertex.row]
        written = UNKNOWN if value is None else format_shifted_value(value, unmoved)
        second = f"{walk.mark} {text(derivative)}" if derivative is not None else ""
        vertices.append([vertex.name, written, second or partly(derivative, total)])
    return {
        "columns": [[text(v), partly(d, s) or text(d)] for v, d, s, _ in rows],
        "vertices": vertices,
        "edges": [text(v, "") for v in frame.partials],
        "results": [UNKNOWN if v is None else mark_rounding(v) for v in frame.results],
        "lines": [text(v, "") for v in frame.lines],
        "count": f"step {frame.number + 1} of {len(walk.steps)}",
        "litRow": [scene.rows[step.row].name] if step.row >= 0 else [],
        "litVertices": sorted(v.name for v in scene.vertices if v.name in step.vertices),
        "litEdges": sorted(">".join(scene.edges[e]) for e in step.edges),
    }


@pytest.mark.parametrize(("text", "values"), TABLES["moved values"])
def test_every_frame_shows_the_numbers_of_python_also_after_a_change(
    browser: Any, tmp_path: Path, text: str, values: str
) -> None:
    graph = cgprimer.parse(GRAPHS.get(text, text))
    wrt = (*graph.inputs, *graph.parameters)
    page = open_steps(browser, tmp_path, graph, wrt=wrt)
    for point in ({}, ast.literal_eval(values)):  # the page computes from the change on
        for name, value in point.items():
            move(page, f'[data-number="{name}"]', value)
        shown = stepping(graph, point, wrt=wrt)
        for method in METHODS:
            frames = shown.frames(method)
            third = max(1, len(frames) // 3)
            for frame in (*frames[::third], frames[-1], frames[third]):
                choose(page, method, frame.number)
                assert read(page) == expected(frame, shown, method)
    assert set(texts(page, "#sliders > label")) == {*wrt}


# --- the page's arithmetic ------------------------------------------------------------------------


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases(most=4))
def test_the_page_computes_random_graphs(browser: Any, tmp_path: Path, case: Case) -> None:
    path, of = tmp_path / "page.html", case.graph.variables[-1]
    shown = stepping(case.graph, case.at, of=of, wrt=case.graph.inputs)
    path.write_text(render_step_page(shown), encoding="utf-8")
    found = opened(browser, path).execute_script(SCRIPTS["compute results"])
    for walk, computed in zip(shown.walks, found, strict=True):
        expected = [v for v in shown.frames(walk.method)[-1].results if v is not None]
        tolerance = 1e-4 if walk.scheme else 1e-9  # a last digit that differs is divided by h
        assert computed == pytest.approx(expected, rel=tolerance, abs=tolerance), walk.method


def call(page: Any, primitive: str, points: list[tuple[float, ...]]) -> list[tuple[float, bool]]:
    """The results of a primitive on the page, and whether each is -0."""
    found: list[tuple[str, bool]] = page.execute_script(
        SCRIPTS["call a primitive"],
        primitive,
        [[str(v).replace("inf", "Infinity").replace("nan", "NaN") for v in p] for p in points],
    )
    return [(float(text), minus) for text, minus in found]


def test_the_arithmetic_of_every_primitive(browser: Any, tmp_path: Path) -> None:
    page = open_steps(browser, tmp_path, LECTURE)
    rng = np.random.default_rng(1)
    edges = [0.0, -0.0, 1.0, -1.0, 2.0, -0.5, 0.5, 30.0, -30.0, 1000.0, 1e308, 5e-324]
    edges += [math.inf, -math.inf, math.nan]
    values = [*edges, *rng.uniform(-3, 3, 30), *rng.uniform(-1, 1, 20), *rng.uniform(1, 9, 20)]
    wrong = []
    for name in (row.name for row in primitives() if row.built_in):
        arity, function = find_primitive(name).arity, numpy_arithmetic.numpy_function(name)
        columns = rng.permuted(np.tile(values, (arity, 3)), axis=1).tolist()
        points = [*zip(*columns, strict=True), *((float(value),) * arity for value in values)]
        # Every edge with every other, ties among them; every number with itself.
        points += itertools.product(edges, repeat=arity) if arity < 3 else []
        for point, (value, minus) in zip(points, call(page, name, points), strict=True):
            with np.errstate(all="ignore"):
                wanted = float(function(*map(np.float64, point)))
            same = value == pytest.approx(wanted, rel=1e-12, abs=1e-14, nan_ok=True)
            # Which of two zeros numpy takes in max, min and clamp depends on the processor.
            sign = value or wanted or name in ("max", "min", "clamp")
            if not (same and (sign or minus == (math.copysign(1.0, wanted) < 0))):
                wrong.append((name, point, value, wanted))
    assert not wrong, "\n".join(map(str, wrong))


def test_step_sizes_are_those_of_python(browser: Any, tmp_path: Path) -> None:
    page = open_steps(browser, tmp_path, cgprimer.parse(GRAPHS["LATE"]))
    values = [0.0, 1.0, 1e308, 5e-324, 3.0]
    for power in (2.0**exponent for exponent in range(1, 1024, 11)):
        values += [power, math.nextafter(power, 0.0), math.nextafter(power, math.inf), -power]
    found = page.execute_script("return arguments[0].map(v => chooseStep(v, 2 ** -17))", values)
    assert found == [StepRule(None, 3).choose_step(v) for v in values]


# --- controls -------------------------------------------------------------------------------------


def test_schemes_and_step_sizes_of_differences_show_their_errors(
    browser: Any, tmp_path: Path
) -> None:
    page, method = open_steps(browser, tmp_path, LECTURE), "finite-difference"
    assert not page.find_element("id", "differences").is_displayed()
    choose(page, method)
    assert page.find_element("id", "differences").is_displayed()
    exact = stepping(LECTURE).frames("forward")[-1].results
    for scheme, h in (("central", 0.5), ("forward", 1e-3)):
        move(page, "#scheme", scheme, "change")
        move(page, "[data-number=h]", h)
        shown = stepping(LECTURE, scheme=scheme, h=h)
        assert texts(page, "#lines li .code") == [*shown.walk(method).lines]
        assert results(page) == last_results(shown, method)
        assert texts(page, "#results .error") == [
            f"error {format_number(abs(float(w or 0) - float(e or 0)), 3)}"
            for w, e in zip(shown.frames(method)[-1].results, exact, strict=True)
        ]
    move(page, "[data-slider=h]", -2)
    assert results(page) == last_results(stepping(LECTURE, scheme="forward", h=0.01), method)
    page.find_element("id", "by-size").click()
    move(page, "[data-number=h]", 0)  # refused, and marked
    box = page.find_element("css selector", "[data-number=h]")
    assert box.get_attribute("aria-invalid") == "true"
    assert results(page) == last_results(stepping(LECTURE, scheme="forward"), method)


def test_sliders_and_boxes_follow_each_other_and_can_be_reset(browser: Any, tmp_path: Path) -> None:
    page = open_steps(browser, tmp_path, LECTURE)
    slider, box = (
        page.find_element("css selector", f"[data-{k}=xa]") for k in ("slider", "number")
    )
    move(page, "[data-slider=xa]", "-0.75")
    assert float(box.get_property("value")) == pytest.approx(-0.75, abs=0.01)
    move(page, "[data-number=xa]", 50)  # beyond the slider
    assert slider.get_property("value") == "50"
    move(page, "[data-number=xa]", "")
    assert box.get_attribute("aria-invalid") == "true"
    choose(page, "reverse")
    assert results(page) == last_results(stepping(LECTURE, {"xa": 50}), "reverse")
    page.find_element("id", "reset").click()
    assert box.get_attribute("aria-invalid") is None
    assert results(page) == last_results(stepping(LECTURE), "reverse")
    assert not page.find_element("id", "reset").is_enabled()


def test_the_keyboard_does_it_all(browser: Any, tmp_path: Path) -> None:
    page = open_steps(browser, tmp_path, LECTURE)
    place = "return [state.frames[state.walk], data.walks[state.walk].method]"
    last = len(stepping(LECTURE).walk("reverse").steps) - 1
    for keys, expected_place in (
        (["2"], [0, "reverse"]),
        (["ARROW_RIGHT"] * 3 + ["ARROW_LEFT"], [2, "reverse"]),
        (["END"], [last, "reverse"]),
        (["HOME", "3"], [0, "path-sum"]),
    ):
        press(page, *keys)
        assert page.execute_script(place) == expected_place
    press(page, "2", "PAGE_DOWN")
    assert texts(page, "#lines li.lit .code") == ["bar_xw = 1"]
    color = "return getComputedStyle(document.body).backgroundColor"
    light = page.execute_script(color)
    press(page, "d")
    assert page.execute_script(color) != light
    press(page, "HOME", "+", "+", "+", " ")
    wait(page, "getIndex() >= 2")
    press(page, " ")
    stopped = page.execute_script("return getIndex()")
    page.execute_async_script("setTimeout(arguments[0], 250)")
    assert page.execute_script("return getIndex()") == stopped
    focused = set()
    for _ in range(26):  # Tab goes round; whatever has the focus is framed
        press(page, "TAB")
        outline, what = page.execute_script(
            "const a = document.activeElement; "
            "return [getComputedStyle(a).outlineStyle, a.id || a.getAttribute('aria-label')]"
        )
        assert outline == "solid", what
        focused.add(what)
    assert {"forward", "play", "speed", "picture", "xa"} <= focused


def test_a_swipe_is_a_step(browser: Any, tmp_path: Path) -> None:
    page = open_steps(browser, tmp_path, LECTURE)
    x, y = page.execute_script(
        "const r = $('trace').getBoundingClientRect(); return [r.left + r.width / 2, r.top + 200]"
    )
    for across, index in ((-120, 1), (-120, 2), (120, 1), (-20, 1)):
        for kind, points in (
            ("touchStart", [{"x": x, "y": y}]),
            ("touchMove", [{"x": x + across, "y": y}]),
            ("touchEnd", []),
        ):
            page.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        assert page.execute_script("return getIndex()") == index


def test_any_address_opens_a_step(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    cgprimer.step(cgprimer.parse(GRAPHS["LATE"]), method="forward", output=path)
    n_steps = len(stepping(cgprimer.parse(GRAPHS["LATE"])).walk("reverse").steps)
    where = "return [data.walks[state.walk].method, getIndex()]"
    rows = [(row[0], ast.literal_eval(row[1])) for row in TABLES["addresses"]]
    for address, place in (*rows, (f"#reverse/{'9' * 400}", ["reverse", n_steps - 1])):
        browser.get("about:blank")
        browser.get(path.as_uri() + address)
        assert browser.execute_script(where) == (place or ["forward", 0])
        # The same while the page is open; an address that says nothing changes nothing.
        browser.execute_script("chooseWalk(3); goTo(2)")
        browser.execute_async_script(SCRIPTS["change the address"], address)
        assert browser.execute_script(where) == (place or ["finite-difference", 2])


# --- unusual graphs and titles --------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_values_that_are_not_finite_are_marked_everywhere(
    browser: Any, tmp_path: Path, method: str
) -> None:
    graph = cgprimer.parse("xb = log(xa); xc = p*xb; xd = xc + p")
    page = open_steps(
        browser, tmp_path, graph, {"xa": -1.0, "p": 2.0}, methods=[method], method=method
    )
    choose(page, method)
    for query in ("#rows .number", "#lines .number", "#graph text", "#results .chip > span"):
        odd = [t for t in texts(page, query) if re.search(r"(^| )-?(nan|inf)( |$)", t)]
        assert texts(page, f"{query}.odd".replace("text.odd", ".odd")) == odd != []
    color = "getComputedStyle(document.querySelector('.odd')).textDecorationLine"
    assert page.execute_script(f"return {color}") == "underline"
    move(page, "[data-number=xa]", 2)
    assert texts(page, ".odd") == []


def test_a_registered_primitive_is_stepped_through_without_sliders(
    browser: Any, tmp_path: Path
) -> None:
    cgprimer.register_primitive("triple", lambda a: 3 * a, partials="3")
    try:
        graph = cgprimer.parse("xw = triple(xa)*p")
        open_steps(browser, tmp_path, graph, {"xa": 2.0, "p": 5.0}, methods=["reverse"])
    finally:
        cgprimer.unregister_primitive("triple")
    choose(browser, "reverse")
    assert results(browser) == ["6"]
    assert "cannot compute triple" in browser.find_element("id", "sliders").text


def test_a_title_is_never_markup(browser: Any, tmp_path: Path) -> None:
    title = "</script><script>document.title = 'broken'</script> @DATA@ <b>&amp;</b>"
    open_steps(browser, tmp_path, LECTURE, title=title)
    assert browser.title == browser.find_element("tag name", "h1").text == title
    save_comparison(cgprimer.compare(LECTURE), tmp_path / "comparison.html", title=title)
    opened(browser, tmp_path / "comparison.html")
    assert browser.title == browser.find_element("tag name", "h1").text == title
