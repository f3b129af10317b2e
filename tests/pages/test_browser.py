"""The page in a real browser: steps, numbers, sliders, keys, speed, and how large its text is.

``python -m pytest -m browser tests/pages``; screenshots are kept in ``$CGPRIMER_SCREENSHOTS``.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.core.operations import find_primitive, numpy_arithmetic, primitives
from cgprimer.support.number_format import SHORT, mark_rounding
from cgprimer.visualization.pages.stepping.method_walks import METHODS
from cgprimer.visualization.pages.stepping.slide_tables import format_shifted_value
from cgprimer.visualization.pages.stepping.step_frames import Frame, stepping
from cgprimer.visualization.pages.stepping.step_page import step
from tests.pages.conftest import measured, opened, press, resize, wait

pytestmark = pytest.mark.browser
EXAMPLES = Path(__file__).parents[2] / "examples"
LECTURE = cgprimer.load(EXAMPLES / "lecture.cg")
UNKNOWN = "not computed"


@pytest.fixture(scope="module")
def lecture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "lecture.html"
    step(LECTURE, wrt=["xa", *LECTURE.parameters], title="lecture.cg", output=path)
    return path


@pytest.fixture
def page(browser: Any, lecture: Path) -> Iterator[Any]:
    yield opened(browser, lecture)
    assert browser.get_log("browser") == [], "the console has errors"


def tab(page: Any, method: str) -> None:
    page.find_element("xpath", f"//button[@role='tab'][text()='{method}']").click()


def read(page: Any) -> dict[str, Any]:
    """What a reader sees in the table, the picture and the program."""
    found: dict[str, Any] = page.execute_script(
        """
        const text = node => node.textContent;
        const all = (query, f) => [...document.querySelectorAll(query)].map(f);
        return {
          rows: all("#rows tr", r => [...r.cells].map(text)),
          vertices: all("#graph .vertex", v => [...v.querySelectorAll("text")].map(text)),
          edges: all("#graph .partial", text),
          results: all("#results .chip > span", text),
          errors: all("#results .error", text),
          lines: all("#lines li", l => text(l.lastChild)),
          count: text(document.getElementById("count")),
          litRow: all("#rows tr.lit", r => text(r.cells[1])),
          litLine: all("#lines li.lit .code", text),
          litVertices: all("#graph .vertex.lit .name", text),
          litEdges: all("#graph .edge.lit", e => e.dataset.edge),
        };"""
    )
    return found


def expected(frame: Frame, shown: Any, method: str) -> dict[str, Any]:
    def text(value: float | None, unknown: str = UNKNOWN) -> str:
        return unknown if value is None else mark_rounding(value, SHORT)

    def partly(derivative: float | None, total: float | None) -> str:
        return (
            f"{mark_rounding(total, SHORT)} + …" if derivative is None and total is not None else ""
        )

    pairs = list(zip(frame.values, frame.derivatives, frame.sums, frame.unmoved, strict=True))
    mark = shown.walk(method).mark
    return {
        "columns": [[text(v), partly(d, s) or text(d)] for v, d, s, _ in pairs],
        "vertices": [
            [
                vertex.name,
                UNKNOWN if v is None else format_shifted_value(v, u),
                partly(d, s) if d is None else f"{mark} {mark_rounding(d, SHORT)}",
            ]
            for vertex in shown.scene.vertices
            for v, d, s, u in [pairs[vertex.row]]
        ],
        "edges": ["" if v is None else mark_rounding(v, SHORT) for v in frame.partials],
        "results": [UNKNOWN if v is None else mark_rounding(v) for v in frame.results],
        "lines": [text(v, "") for v in frame.lines],
        "litVertices": [v.name for v in shown.scene.vertices if v.name in frame.step.vertices],
        "litEdges": [">".join(shown.scene.edges[e]) for e in frame.step.edges],
    }


def compare(page: Any, frame: Frame, shown: Any, method: str) -> None:
    seen, wanted = read(page), expected(frame, shown, method)
    assert [row[3:] for row in seen["rows"]] == wanted["columns"]
    for key in ("results", "lines", "vertices", "edges", "litVertices", "litEdges"):
        assert sorted(seen[key]) == sorted(wanted[key]) if key.startswith("lit") else (
            seen[key] == wanted[key]
        ), key  # fmt: skip
    lit = [shown.scene.rows[frame.step.row].name] if frame.step.row >= 0 else []
    assert seen["litRow"] == lit


@pytest.mark.parametrize("method", METHODS)
def test_every_step_shows_what_python_says(page: Any, method: str) -> None:
    shown = stepping(LECTURE, wrt=["xa", *LECTURE.parameters])
    frames = shown.frames(method)
    tab(page, method)
    press(page, "\ue011")  # Home
    button = page.find_element("id", "forward")
    counted = 1
    while button.is_enabled():
        button.click()
        counted += 1
    assert counted == len(frames) == len(shown.walk(method).steps)
    third = len(frames) // 3  # the last of them is a step back
    for number_of_step in (0, third, 2 * third, len(frames) - 1, 2 * third + 1):
        page.execute_script("goTo(arguments[0])", number_of_step)
        compare(page, frames[number_of_step], shown, method)
        assert read(page)["count"] == f"step {number_of_step + 1} of {len(frames)}"


def test_sliders_compute_what_python_computes(page: Any) -> None:
    names = ["xa", *LECTURE.parameters]
    page.execute_script(
        """for (const [name, value] of [["xa", "-0.75"], ["cd", "2.5"]]) {
             const box = document.querySelector(`[data-slider=${name}]`);
             box.value = value;
             box.dispatchEvent(new Event("input", {bubbles: true})); }"""
    )
    typed = page.find_element("css selector", "[data-number=ab]")
    typed.clear()
    typed.send_keys("1.25")
    at = {
        name: float(
            page.find_element("css selector", f"[data-number={name}]").get_property("value")
        )
        for name in names
    }
    assert at["xa"] == pytest.approx(-0.75, abs=0.01)
    assert at["xa"] < 0
    assert at["ab"] == 1.25
    shown = stepping(LECTURE, at, wrt=names)
    for method in METHODS:
        tab(page, method)
        frames = shown.frames(method)
        for k in (0, len(frames) // 3, len(frames) // 2, len(frames) - 1):
            page.execute_script("goTo(arguments[0])", k)
            compare(page, frames[k], shown, method)
    page.find_element("id", "reset").click()
    shown = stepping(LECTURE, wrt=names)
    compare(page, shown.frames(METHODS[-1])[-1], shown, METHODS[-1])


def test_the_keyboard_does_it_all(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    place = "return [state.frames[state.walk], data.walks[state.walk].method]"
    press(page, "2")
    assert page.execute_script(place) == [0, "reverse"]
    press(page, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
    assert page.execute_script(place) == [2, "reverse"]
    press(page, Keys.PAGE_DOWN)
    assert read(page)["litLine"] == ["bar_xw = 1"]
    press(page, Keys.END)
    last = len(stepping(LECTURE, wrt=["xa", *LECTURE.parameters]).walk("reverse").steps) - 1
    assert page.execute_script(place) == [last, "reverse"]
    press(page, Keys.HOME, "3")
    assert page.execute_script(place) == [0, "path-sum"]
    press(page, "d")
    dark = page.execute_script("return getComputedStyle(document.body).backgroundColor")
    press(page, "d")
    assert dark != page.execute_script("return getComputedStyle(document.body).backgroundColor")
    press(page, "+", "+", "+", " ")
    wait(page, "getIndex() >= 2")
    press(page, " ")
    stopped = page.execute_script(place)[0]
    assert 2 <= stopped <= 8
    page.execute_async_script("setTimeout(arguments[0], 250)")
    assert page.execute_script(place)[0] == stopped
    seen = set()
    for _ in range(26):  # Tab goes round; whatever has the focus is framed
        press(page, Keys.TAB)
        outline, what = page.execute_script(
            "const a = document.activeElement; "
            "return [getComputedStyle(a).outlineStyle, a.id || a.getAttribute('aria-label')]"
        )
        assert outline == "solid", what
        seen.add(what)
    assert {"forward", "play", "speed", "picture", "xa"} <= seen


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (1920, 1080)])
def test_it_is_readable(page: Any, width: int, height: int) -> None:
    resize(page, width, height)
    folder = os.environ.get("CGPRIMER_SCREENSHOTS")
    for method in METHODS:
        tab(page, method)
        press(page, "\ue010")  # End
        if method == "reverse":
            page.execute_script("goTo(16)")
        found = measured(
            page,
            """
            const sizes = [], cut = [];
            for (const node of document.querySelectorAll("body *")) {
              const own = [...node.childNodes].some(n => n.nodeType === 3 && n.data.trim());
              const box = node.getBoundingClientRect();
              if (!own || !box.width || node.closest("script")) continue;
              const scale = node.closest("svg") ? node.getCTM().a : 1;
              sizes.push([parseFloat(getComputedStyle(node).fontSize) * scale, node.textContent]);
              if (box.left < -1 || box.right > innerWidth + 1) cut.push(node.textContent);
            }
            const svg = document.getElementById("graph").getBoundingClientRect();
            const pane = document.getElementById("picture").getBoundingClientRect();
            return {smallest: sizes.sort((a, b) => a[0] - b[0])[0], cut,
              page: document.documentElement.scrollHeight <= innerHeight + 1,
              whole: svg.height <= pane.height && svg.width <= pane.width};""",
        )
        if folder:
            page.save_screenshot(str(Path(folder, f"{method}-{width}.png")))
        # 14 pt are 18.67 pixels; a projector shows 1280 pixels as wide as 1920.
        assert found["smallest"][0] >= 14 / 72 * 96 * width / 1920, found["smallest"]
        assert found["cut"] == []
        assert found["page"]
        assert found["whole"]


def test_the_arithmetic_of_every_primitive(page: Any) -> None:
    rng = np.random.default_rng(1)
    edges = [0.0, -0.0, 1.0, -1.0, 2.0, -0.5, 0.5, 30.0, -30.0, 1000.0, 1e308, 5e-324]
    edges += [math.inf, -math.inf, math.nan]
    values = [*edges, *rng.uniform(-3, 3, 30), *rng.uniform(-1, 1, 20), *rng.uniform(1, 9, 20)]
    known = page.execute_script("return Object.keys(PRIMITIVES)")
    built_in = [row.name for row in primitives() if row.built_in]
    assert set(known) >= set(built_in)
    wrong = []
    for name in built_in:
        row = find_primitive(name)
        columns = rng.permuted(np.tile(values, (row.arity, 3)), axis=1).tolist()
        points = [tuple(map(float, point)) for point in zip(*columns, strict=True)]
        # Every edge with every other, ties among them; every number with itself.
        points += itertools.product(edges, repeat=row.arity) if row.arity < 3 else []
        points += [(value,) * row.arity for value in values]
        with np.errstate(all="ignore"):
            wanted = [
                float(numpy_arithmetic.numpy_function(row.name)(*(np.float64(v) for v in point)))
                for point in points
            ]
        got = page.execute_script(
            """const [name, points] = arguments;
            return points.map(point => { const found = PRIMITIVES[name](...point.map(Number));
              return [String(found), Object.is(found, -0)]; });""",
            name,
            [[str(v).replace("inf", "Infinity").replace("nan", "NaN") for v in p] for p in points],
        )
        for point, (text, minus), value in zip(points, got, wanted, strict=True):
            found = float(text.replace("Infinity", "inf"))
            if found != pytest.approx(value, rel=1e-12, abs=1e-14, nan_ok=True):
                wrong.append((name, point, found, value))
            elif name in ("max", "min", "clamp"):
                pass  # which of two zeros numpy takes depends on the processor
            elif value == 0 and found == 0 and minus != (math.copysign(1.0, value) < 0):
                wrong.append((name, point, "minus" if minus else "plus", value))
    assert not wrong, "\n".join(map(str, wrong))


def test_a_primitive_of_ones_own_is_stepped_through_without_sliders(
    browser: Any, tmp_path: Path
) -> None:
    cgprimer.register_primitive("triple", lambda a: 3 * a, partials="3")
    try:
        graph = cgprimer.parse("xw = triple(xa)*p")
        step(graph, {"xa": 2.0, "p": 5.0}, output=tmp_path / "own.html", methods=["reverse"])
    finally:
        cgprimer.unregister_primitive("triple")
    opened(browser, tmp_path / "own.html")
    press(browser, "\ue010")
    assert read(browser)["results"] == ["6"]
    assert "cannot compute triple" in browser.find_element("id", "sliders").text
    assert browser.get_log("browser") == []


def test_text_of_a_user_is_never_markup(browser: Any, tmp_path: Path) -> None:
    title = "</script><script>document.title = 'broken'</script> @DATA@ <b>bold</b>"
    step(LECTURE, title=title, output=tmp_path / "title.html")
    opened(browser, tmp_path / "title.html")
    assert browser.title == title
    assert browser.find_element("tag name", "h1").text == title
    assert browser.get_log("browser") == []
