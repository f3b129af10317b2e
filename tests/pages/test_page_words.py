"""Words and numbers of the page: moves that are seen, marks, headings, columns, crowded pages."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.visualization.pages.stepping.slide_tables import format_shifted_value
from cgprimer.visualization.pages.stepping.step_page import step
from tests.pages.conftest import opened, texts

pytestmark = pytest.mark.browser
EXAMPLES = Path(__file__).parents[2] / "examples"
LECTURE = cgprimer.load(EXAMPLES / "lecture.cg")


def test_moves_are_written_as_python_writes_them(browser: Any, tmp_path: Path) -> None:
    step(LECTURE, output=tmp_path / "page.html")
    opened(browser, tmp_path / "page.html")
    rng = np.random.default_rng(5)
    pairs = [(math.nan, 1.0), (math.inf, 1.0), (1.0, math.inf), (0.0, -0.0), (1.5, 1.5)]
    for _ in range(400):
        value = float(rng.normal() * 10.0 ** rng.integers(-7, 9))
        pairs.append((value + abs(value) * float(10.0 ** rng.uniform(-16, 0)), value))
    written = [[str(v).replace("inf", "Infinity") for v in pair] for pair in pairs]
    found = browser.execute_script(
        """return arguments[0].map(pair => {
          const [value, unmoved] = pair.map(text => text === "nan" ? NaN : Number(text));
          return formatShifted(value, unmoved); });""",
        written,
    )
    assert found == [format_shifted_value(value, unmoved) for value, unmoved in pairs]
    assert browser.execute_script("return formatShifted(1 / 3, undefined)") == format_shifted_value(
        1 / 3, None
    )


def test_what_is_not_finite_is_marked_everywhere(browser: Any, tmp_path: Path) -> None:
    graph = cgprimer.parse("xb = log(xa); xc = p*xb; xd = xc + p")
    step(graph, {"xa": -1.0, "p": 2.0}, output=tmp_path / "page.html", method="reverse")
    opened(browser, tmp_path / "page.html")
    for tab in range(4):
        browser.execute_script("chooseWalk(arguments[0]); goTo(Infinity)", tab)
        odd, plain = browser.execute_script(
            """const look = node => getComputedStyle(node).textDecorationLine === "underline";
            const odd = [], plain = [];
            const queries = "#rows .number, #lines .number, #graph text, .chip > span";
            for (const node of document.querySelectorAll(queries)) {
              const bad = /(^| )-?(nan|inf)( |$)/.test(node.textContent);
              const at = node.closest("#rows, #lines, #graph, #results").id;
              if (bad !== look(node)) plain.push([at, node.textContent]);
              else if (bad) odd.push(at); }
            return [odd, plain];"""
        )
        assert plain == []
        assert set(odd) == {"rows", "lines", "graph", "results"}
    browser.execute_script(
        """const box = document.querySelector("[data-number=xa]");
        box.value = "2"; box.dispatchEvent(new Event("input", {bubbles: true}));"""
    )
    assert texts(browser, ".odd") == []
    assert browser.get_log("browser") == []


def test_forty_parameters_leave_room_for_the_graph(browser: Any, tmp_path: Path) -> None:
    names = [f"p{k}" for k in range(40)]
    text = "xout = " + " + ".join(f"{name}*xa^{k % 3 + 1}" for k, name in enumerate(names))
    point = {"xa": 0.5} | dict.fromkeys(names, 0.1)
    step(cgprimer.parse(text), point, output=tmp_path / "page.html", method="reverse")
    opened(browser, tmp_path / "page.html", 1280, 720)
    for place in (0, 60, 120):
        browser.execute_script("goTo(arguments[0])", place)
        heights = browser.execute_script(
            "return ['picture', 'trace', 'program'].map(id => $(id).clientHeight)"
        )
        assert min(heights) > 340, (place, heights)
    browser.execute_script("chooseWalk(3); goTo(50)")
    assert browser.execute_script("return $('picture').clientHeight") > 340
    assert browser.get_log("browser") == []
