"""Pages of unusual graphs, names, addresses and titles, in a real browser."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import cgprimer
from cgprimer.core.methods.step_rule import StepRule
from cgprimer.errors import CgprimerError
from cgprimer.support.number_format import SHORT, mark_rounding
from cgprimer.visualization.pages.stepping.step_frames import Stepping, stepping
from cgprimer.visualization.pages.stepping.step_page import render_step_page, step
from tests.pages.conftest import measured, opened, texts
from tests.pages.random_graphs import LATE, LATER, SHARED, problem

pytestmark = pytest.mark.browser


def shows(browser: Any, shown: Stepping, method: str, place: int) -> None:
    """The page shows the numbers of a frame on edges, rows and chips."""
    frame = shown.frames(method)[place]
    browser.execute_script("goTo(arguments[0])", place)
    assert texts(browser, "#graph .partial") == [
        "" if v is None else mark_rounding(v, SHORT) for v in frame.partials
    ]
    assert texts(browser, "#results .chip > span") == [
        "not computed" if v is None else mark_rounding(v) for v in frame.results
    ]


def move(browser: Any, name: str, value: float) -> None:
    browser.execute_script(
        """const box = document.querySelector(`[data-number="${arguments[0]}"]`);
        box.value = arguments[1];
        box.dispatchEvent(new Event("input", { bubbles: true }));""",
        name,
        str(value),
    )


@pytest.mark.parametrize("text", [LATE, LATER, SHARED])
def test_edges_show_sums_that_python_shows(browser: Any, tmp_path: Path, text: str) -> None:
    graph = cgprimer.parse(text)
    names = (*graph.inputs, *graph.parameters)
    step(graph, wrt=names, methods=["reverse"], method="reverse", output=tmp_path / "edges.html")
    opened(browser, tmp_path / "edges.html")
    shown = stepping(graph, wrt=names, methods=["reverse"])
    for place in range(len(shown.walks[0].steps)):
        shows(browser, shown, "reverse", place)
    move(browser, names[0], 1.5)  # from here on the page computes
    moved = stepping(graph, {names[0]: 1.5}, wrt=names, methods=["reverse"])
    for place in range(len(shown.walks[0].steps)):
        shows(browser, moved, "reverse", place)
    assert not any("nan" in label for label in texts(browser, "#graph .partial"))
    assert browser.get_log("browser") == []


def test_the_page_computes_random_graphs(browser: Any, tmp_path: Path) -> None:
    compared = 0
    for seed in range(30):
        made = problem(seed)
        try:
            graph = cgprimer.parse(made.text)
        except CgprimerError:
            continue
        shown = stepping(graph, of=made.of, wrt=made.wrt, level=made.level)
        (tmp_path / f"{seed}.html").write_text(render_step_page(shown), encoding="utf-8")
        opened(browser, tmp_path / f"{seed}.html")
        found = browser.execute_script(
            """return data.walks.map(walk =>
              collectResults(walk, computeValues(walk, state.point, state.h))
              .map(value => String(value).replace("Infinity", "inf")))"""
        )
        for walk, seen in zip(shown.walks, found, strict=True):
            wanted = [v for v in shown.frames(walk.method)[-1].results if v is not None]
            # A last digit that differs is divided by h.
            tolerance = 1e-4 if walk.scheme else 1e-9
            for a, b in zip(map(float, seen), wanted, strict=True):
                if math.isfinite(b):
                    size = max(1.0, abs(b))
                    assert a == pytest.approx(b, abs=tolerance * size), (walk.method, made)
                    compared += 1
        assert browser.get_log("browser") == [], made
    assert compared > 100


def test_names_that_look_like_numbers(browser: Any, tmp_path: Path) -> None:
    graph = cgprimer.parse(
        "x0 = xa^inf; xw = nan*x0 + inf*__proto__\ninput xa=2"
        "; parameter nan=3, inf=4, __proto__=0.5"
    )
    step(graph, output=tmp_path / "names.html", method="reverse")
    opened(browser, tmp_path / "names.html")
    browser.execute_script("goTo(Infinity)")
    shown = stepping(graph)
    assert texts(browser, "#results .chip") == [
        f"dxw/d{name} = {mark_rounding(value or 0.0)}"
        for name, value in zip(shown.scene.wrt, shown.frames("reverse")[-1].results, strict=True)
    ]
    assert {"nan", "inf", "xa", "__proto__"} == set(texts(browser, "#sliders > label"))
    assert {"nan", "inf"} <= set(texts(browser, "#graph .name"))
    names = browser.execute_script(
        "return data.rows.map(r => r[0]).concat(Object.keys(data.point))"
    )
    assert all(isinstance(name, str) for name in names)
    move(browser, "nan", 5.0)
    move(browser, "__proto__", 1.5)
    moved = stepping(graph, {"nan": 5.0, "__proto__": 1.5})
    shows(browser, moved, "reverse", len(moved.walk("reverse").steps) - 1)
    assert browser.get_log("browser") == []


@pytest.mark.parametrize(
    ("address", "method", "place"),
    [
        ("#%", None, 0),
        ("#__proto__/3", None, 0),
        ("#reverse", "reverse", 0),
        ("#reverse/5", "reverse", 4),
        ("#reverse%2F5", "reverse", 4),
        ("#reverse/2.5", "reverse", 0),
        ("#reverse/-3", "reverse", 0),
        ("#reverse/1e2", "reverse", 0),
        (f"#reverse/{'9' * 400}", "reverse", -1),
        ("#path-sum/2/3", "path-sum", 1),
    ],
)
def test_any_address_opens_a_step(
    browser: Any, tmp_path: Path, address: str, method: str | None, place: int
) -> None:
    path = tmp_path / "page.html"
    step(cgprimer.parse(LATE), method="forward", output=path)
    lengths = {w.method: len(w.steps) for w in stepping(cgprimer.parse(LATE)).walks}
    opened(browser, path)
    browser.get("about:blank")
    browser.get(path.as_uri() + address)
    where = "return [data.walks[state.walk].method, getIndex(), $('count').textContent]"
    wanted = method or "forward"
    number_of_step = place if place >= 0 else lengths[wanted] - 1
    count = f"step {number_of_step + 1} of {lengths[wanted]}"
    assert browser.execute_script(where) == [wanted, number_of_step, count]
    # The same while the page is open; an address that says nothing changes nothing.
    browser.execute_script("chooseWalk(3); goTo(2)")
    browser.execute_async_script(
        """const done = arguments[1];
        addEventListener("hashchange", () => setTimeout(done), { once: true });
        history.replaceState(null, "", "#elsewhere");
        location.hash = arguments[0];""",
        address,
    )
    found = [wanted, number_of_step] if method else ["finite-difference", 2]
    assert browser.execute_script(where)[:2] == found
    assert browser.get_log("browser") == []


def test_the_size_of_a_step_is_python_s(browser: Any, tmp_path: Path) -> None:
    step(cgprimer.parse(LATE), output=tmp_path / "page.html")
    opened(browser, tmp_path / "page.html")
    values = [0.0, 1.0, 1e308, 5e-324, 3.0]
    for exponent in range(1, 1024, 11):
        power = 2.0**exponent
        values += [power, math.nextafter(power, 0.0), math.nextafter(power, math.inf), -power]
    found = browser.execute_script("return arguments[0].map(v => chooseStep(v, 2 ** -17))", values)
    assert found == [StepRule(None, 3).choose_step(v) for v in values]


def test_long_numbers_stay_in_their_vertices(browser: Any, tmp_path: Path) -> None:
    text = "input xa = -1.23456789e-12; parameter k = -1.5e-300; xb = k*xa; xw = xb*xa/3"
    step(cgprimer.parse(text), wrt=["k", "xa"], method="reverse", output=tmp_path / "tiny.html")
    opened(browser, tmp_path / "tiny.html", 1280, 720)
    browser.execute_script("goTo(1e6)")
    over = """return [...document.querySelectorAll("#graph .vertex")].flatMap(vertex => {
        const body = vertex.querySelector(".body").getBBox();
        return [...vertex.querySelectorAll("text")].map(t => t.getBBox().width - body.width + 10);
    })"""
    found = measured(browser, over)
    assert len(found) == 12
    assert max(found) < 0
