"""What a lecturer does with the page in a browser: differences, addresses, fingers, paper."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import cgprimer
from cgprimer.support.number_format import SHORT, format_number, mark_rounding
from cgprimer.visualization.pages.stepping.step_frames import Stepping, stepping
from cgprimer.visualization.pages.stepping.step_page import step
from tests.pages.conftest import measured, opened, resize, wait

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


def test_the_step_that_a_page_came_with(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    step(LECTURE, output=path, method="finite-difference", scheme="forward", h=0.25)
    opened(browser, path)
    choose(browser, "finite-difference")
    shown = stepping(LECTURE, scheme="forward", h=0.25)
    assert results(browser) == last(shown, "finite-difference")
    box = browser.find_element("css selector", "[data-number=h]")
    assert box.get_property("value") == "0.25"
    move(browser, "[data-number=h]", 0.5)
    browser.find_element("id", "reset").click()
    assert results(browser) == last(shown, "finite-difference")
    assert browser.get_log("browser") == []


def test_an_address_opens_at_a_tab_and_a_step(page: Any, lecture: Path) -> None:
    page.get("about:blank")
    page.get(f"{lecture.as_uri()}#reverse/17")
    assert texts(page, "#count") == ["step 17 of 23"]
    assert texts(page, "[role=tab][aria-selected=true]") == ["reverse"]
    page.execute_script("goTo(3)")
    wait(page, "location.hash === '#reverse/4'")
    page.execute_script("location.hash = '#path-sum/99999'")
    wait(page, "data.walks[state.walk].method === 'path-sum'")
    assert texts(page, "[role=tab][aria-selected=true]") == ["path-sum"]
    assert texts(page, "#count") == ["step 30 of 30"]
    page.get("about:blank")
    page.get(f"{lecture.as_uri()}#nonsense/x")
    assert texts(page, "#count") == [f"step 1 of {len(stepping(LECTURE).frames('reverse'))}"]


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


def test_numbers_that_are_not_finite_say_where_they_came_from(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    graph = cgprimer.parse("xb = log(xa); xc = p/xb; xd = xc + 1")
    step(graph, {"xa": 2.0, "p": 3.0}, output=path, method="reverse")
    opened(browser, path)
    move(browser, "[data-number=xa]", -1)
    browser.execute_script("goTo(3)")
    assert texts(browser, "#rows tr:nth-child(4) .number") == ["nan", "not computed"]
    assert "odd" in browser.execute_script("return parts.rows[3].value.className")
    assert "not finite since step 2: xb = log(xa)" in texts(browser, "#with")[0]
    move(browser, "[data-number=xa]", 1)
    assert texts(browser, "#rows tr:nth-child(4) .number") == ["inf", "not computed"]
    move(browser, "[data-number=xa]", 2)
    assert "odd" not in browser.execute_script("return parts.rows[3].value.className")
    assert browser.get_log("browser") == []


def test_shares_that_arrive_are_summed_in_view(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    step(LECTURE, wrt=["xx"], output=path, method="reverse", methods=["reverse"])
    opened(browser, path)
    shown = stepping(LECTURE, wrt=["xx"], methods=["reverse"])
    frames = shown.frames("reverse")
    row = shown.scene.row_indices["xx"]
    seen = []
    for frame in frames:
        browser.execute_script("goTo(arguments[0])", frame.number)
        assert frame.step.note in texts(browser, "#with")[0]
        total = frame.sums[row] if frame.derivatives[row] is None else None
        text = browser.execute_script("return parts.rows[arguments[0]].derivative.textContent", row)
        assert ("…" in text) == (total is not None)
        if total is not None:
            assert text == f"{mark_rounding(total, SHORT)} + …"
        seen.append(text)
    assert seen[0] == "not computed"
    assert any("…" in text for text in seen)
    assert seen[-1] == mark_rounding(frames[-1].derivatives[row], SHORT)
    assert browser.get_log("browser") == []


def test_paper_has_all_three_and_no_controls(page: Any) -> None:
    choose(page, "reverse")
    page.execute_script("goTo(15)")
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        seen = page.execute_script(
            """const shown = id => $(id).getClientRects().length > 0;
            return [["picture", "trace", "program", "results", "count"].map(shown),
              ["sliders", "play", "place", "keys", "full"].map(shown),
              [...document.querySelectorAll("main section")].every(s =>
                getComputedStyle(s).overflow === "visible"),
              getComputedStyle(document.body).backgroundColor];"""
        )
        assert seen == [[True] * 5, [False] * 5, True, "rgb(255, 255, 255)"]
        paper = page.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
        assert base64.b64decode(paper["data"]).startswith(b"%PDF-")
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_help_lists_the_keys(page: Any) -> None:
    page.find_element("id", "keys").click()
    assert page.execute_script("return $('help').open")
    assert "swipe" in texts(page, "#help")[0]
    page.execute_script("$('help').close()")


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


def test_one_of_several_outputs_and_inner_variables(browser: Any, tmp_path: Path) -> None:
    graph = cgprimer.parse("xb = xa*p; xc = sin(xb) + p; xd = xb^2")
    path, point = tmp_path / "several.html", {"xa": 0.5, "p": 2.0}
    for of in ("xc", "xb"):
        step(graph, point, of=of, wrt=["p", "xa"], output=path)
        browser.get("about:blank")
        opened(browser, path)
        for walk in stepping(graph, point, of=of, wrt=["p", "xa"]).walks:
            choose(browser, walk.method)
            wanted = stepping(graph, point, of=of, wrt=["p", "xa"])
            assert results(browser) == last(wanted, walk.method)
    step(graph, point, of="xc", wrt=["xb"], output=path)
    browser.get("about:blank")
    resize(browser, 1280, 720)
    browser.get(path.as_uri())
    choose(browser, "finite-difference")
    assert float(results(browser)[0].removeprefix("≈")) == pytest.approx(math.cos(1.0), abs=1e-7)
    assert browser.get_log("browser") == []
