"""What a lecturer does with the page in a browser: differences, addresses, fingers, paper."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import cgprimer
from cgprimer.support.number_format import format_number, mark_rounding
from cgprimer.visualization.pages.stepping.step_frames import Stepping, stepping
from cgprimer.visualization.pages.stepping.step_page import step
from tests.pages.conftest import measured, opened

pytestmark = pytest.mark.browser
LECTURE = cgprimer.load(Path(__file__).parents[2] / "examples" / "lecture.cg")


@pytest.fixture(scope="module")
def lecture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "lecture.html"
    step(LECTURE, title="lecture.cg", output=path)
    return path


@pytest.fixture
def page(browser: Any, lecture: Path) -> Iterator[Any]:
    browser.get("about:blank")  # so that the same address is loaded again
    yield opened(browser, lecture)
    assert browser.get_log("browser") == [], "the console has errors"


def texts(page: Any, query: str) -> list[str]:
    found: list[str] = page.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)", query
    )
    return found


def move(page: Any, what: str, value: object, event: str = "input") -> None:
    page.execute_script(
        """const node = document.querySelector(arguments[0]);
        node.value = arguments[1];
        node.dispatchEvent(new Event(arguments[2], {bubbles: true}));""",
        what,
        str(value),
        event,
    )


def last(shown: Stepping, method: str) -> list[str]:
    return [mark_rounding(value) for value in shown.frames(method)[-1].results]


def results(page: Any) -> list[str]:
    return texts(page, "#results .chip > span")


def choose(page: Any, method: str) -> None:
    page.execute_script(
        "chooseWalk(data.walks.findIndex(w => w.method === arguments[0])); goTo(Infinity);", method
    )


def test_scheme_and_step_of_differences_show_their_errors(page: Any) -> None:
    assert not page.find_element("id", "differences").is_displayed()
    choose(page, "finite-difference")
    assert page.find_element("id", "differences").is_displayed()
    assert results(page) == last(stepping(LECTURE), "finite-difference")
    exact = stepping(LECTURE).frames("forward")[-1].results
    found: dict[tuple[str, float], list[str]] = {}
    for scheme in ("central", "forward"):
        move(page, "#scheme", scheme, "change")
        assert texts(page, "#lines li .code")[-1].endswith(
            {"central": "(f+ - f-) / (2*h)", "forward": "(f+ - f) / h"}[scheme]
        )
        for h in (0.5, 1e-3, 1e-12):
            move(page, "[data-number=h]", h)
            shown = stepping(LECTURE, scheme=scheme, h=h)
            wanted = shown.frames("finite-difference")[-1].results
            assert results(page) == last(shown, "finite-difference")
            found[scheme, h] = texts(page, "#results .error")
            assert found[scheme, h] == [
                f"error {format_number(abs(w - e), 3)}"
                for w, e in zip(wanted, exact, strict=True)
                if w is not None and e is not None
            ]
    size = {key: float(errors[-1].split()[1]) for key, errors in found.items()}
    assert size["central", 1e-3] < size["forward", 1e-3] < size["forward", 0.5]
    assert size["central", 1e-12] > size["central", 1e-3]  # rounding
    move(page, "[data-slider=h]", -2)
    assert results(page) == last(stepping(LECTURE, scheme="forward", h=0.01), "finite-difference")
    page.find_element("id", "by-size").click()
    assert results(page) == last(stepping(LECTURE, scheme="forward"), "finite-difference")
    move(page, "[data-number=h]", 0)  # no step: refused, and marked
    box = page.find_element("css selector", "[data-number=h]")
    assert box.get_attribute("aria-invalid") == "true"
    assert results(page) == last(stepping(LECTURE, scheme="forward"), "finite-difference")


def test_a_swipe_is_a_step(page: Any) -> None:
    box = page.execute_script(
        "const r = $('trace').getBoundingClientRect(); return [r.left + r.width / 2, r.top + 200]"
    )
    for across, wanted in ((-120, 1), (-120, 2), (120, 1), (-20, 1)):
        for kind, points in (
            ("touchStart", [{"x": box[0], "y": box[1]}]),
            ("touchMove", [{"x": box[0] + across, "y": box[1]}]),
            ("touchEnd", []),
        ):
            page.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        assert page.execute_script("return getIndex()") == wanted


def test_a_number_that_is_typed_may_lie_beyond_the_slider(page: Any) -> None:
    choose(page, "reverse")
    move(page, "[data-number=xa]", 50)
    assert results(page) == last(stepping(LECTURE, {"xa": 50}), "reverse")
    assert page.find_element("css selector", "[data-slider=xa]").get_property("value") == "50"
    box = page.find_element("css selector", "[data-number=xa]")
    move(page, "[data-number=xa]", "")
    assert box.get_attribute("aria-invalid") == "true"
    assert results(page) == last(stepping(LECTURE, {"xa": 50}), "reverse")
    page.find_element("id", "reset").click()
    assert box.get_attribute("aria-invalid") is None
    assert results(page) == last(stepping(LECTURE), "reverse")
    assert not page.find_element("id", "reset").is_enabled()


def deep(count: int) -> tuple[cgprimer.ExpressionGraph, dict[str, float]]:
    lines = [f"x{k} = sin(x{k - 1})*p{k % 3} + x{k - 1}" for k in range(1, count + 1)]
    graph = cgprimer.parse("\n".join(lines).replace("x0", "xa"))
    return graph, {"xa": 0.5, "p0": 0.1, "p1": -0.2, "p2": 0.3}


def test_three_hundred_vertices(browser: Any, tmp_path: Path) -> None:
    graph, point = deep(100)
    path = tmp_path / "large.html"
    text = step(graph, point, output=path, method="reverse", level="operations")
    assert len(text) < 4_000_000
    opened(browser, path, 1280, 720)
    assert len(texts(browser, "#graph .vertex")) == 304
    assert texts(browser, "#whole") == ["whole graph"]
    browser.find_element("id", "whole").click()
    inside = """const a = $('graph').getBoundingClientRect();
      const b = $('picture').getBoundingClientRect();
      return a.width <= b.width && a.height <= b.height"""
    assert measured(browser, inside)
    browser.find_element("id", "whole").click()
    steps = browser.execute_script("return data.walks[1].steps.length")
    for place in (0, steps // 3, steps - 1, 5):
        browser.execute_script("goTo(arguments[0])", place)
        assert browser.execute_script(
            """const inside = (pane, node) => { const a = $(pane).getBoundingClientRect(),
                 b = node.getBoundingClientRect();
                 return b.top >= a.top - 1 && b.bottom <= a.bottom + 1; };
            const row = document.querySelector("#rows tr.lit");
            const line = document.querySelector("li.lit");
            return (!row || inside("trace", row)) && (!line || inside("program", line));"""
        )
    shown = stepping(graph, point, methods=["reverse"], level="operations")
    browser.execute_script("goTo(Infinity)")
    assert results(browser) == last(shown, "reverse")
    assert "paths" in browser.execute_script("chooseWalk(2); return $('what').textContent")
    assert browser.get_log("browser") == []


KINKS: Sequence[tuple[str, list[dict[str, float]]]] = (
    ("xw = abs(p)*xa + abs(xa)", [{"p": 0.0, "xa": -0.0}, {"p": -2.0, "xa": 0.0}]),
    ("xw = max(p, xa) + min(p, xa^2)", [{"p": 1.0, "xa": 1.0}, {"p": 0.0, "xa": -0.0}]),
    ("xw = where(less(p, xa), p^2, 3*xa*p)", [{"p": 1.0, "xa": 1.0}, {"p": 0.5, "xa": 1.0}]),
    ("xw = relu(p - xa) + sign(p*xa)*p", [{"p": 1.0, "xa": 1.0}, {"p": 0.0, "xa": 2.0}]),
    ("xw = sqrt(p)*xa + p^xa", [{"p": 0.0, "xa": 1.0}, {"p": -1.0, "xa": 0.5}]),
    ("xw = equal(p, xa)*p + clamp(p, 0, xa)", [{"p": 1.0, "xa": 1.0}, {"p": 0.0, "xa": 1.0}]),
    ("xw = asin(p) + log(xa) + 1/p", [{"p": 1.0, "xa": 0.0}, {"p": 0.0, "xa": 1e308}]),
)


@pytest.mark.parametrize(("text", "points"), KINKS, ids=[k[0] for k in KINKS])
def test_kinks_and_the_edges_of_domains(
    browser: Any, tmp_path: Path, text: str, points: list[dict[str, float]]
) -> None:
    graph, path = cgprimer.parse(text), tmp_path / "kink.html"
    step(graph, {"p": 0.3, "xa": 0.7}, wrt=["p", "xa"], output=path)
    opened(browser, path)
    for point in points:
        for name, value in point.items():
            move(browser, f"[data-number={name}]", value)
        shown = stepping(graph, point, wrt=["p", "xa"])
        for walk in shown.walks:
            choose(browser, walk.method)
            seen = [float(v.removeprefix("≈")) for v in results(browser)]
            exact = shown.frames(walk.method)[-1].results
            assert seen == pytest.approx([e for e in exact if e is not None], rel=1e-6, nan_ok=True)
            assert [math.isinf(v) for v in seen] == [math.isinf(e or 0.0) for e in exact]
    assert browser.get_log("browser") == []
