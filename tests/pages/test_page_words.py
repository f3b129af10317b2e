"""Words and numbers of the page: moves that are seen, marks, headings, columns, crowded pages."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.visualization.pages.stepping.slide_tables import format_shifted_value
from cgprimer.visualization.pages.stepping.step_frames import stepping
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


def test_every_step_of_differences_shows_the_move(browser: Any, tmp_path: Path) -> None:
    step(LECTURE, wrt=["xa", "bc"], output=tmp_path / "page.html", method="finite-difference")
    opened(browser, tmp_path / "page.html")
    shown = stepping(LECTURE, wrt=["xa", "bc"])
    frames = shown.frames("finite-difference")
    assert "≈2.7500038" in texts_at(browser, frames, shown)
    ways = [len(frames) - 1, 20, 5, 40, 12, 39, 13, 0]  # there and back, over the ends of passes
    for place in ways:
        browser.execute_script("chooseWalk(3); goTo(arguments[0])", place)
        assert vertices(browser) == expected(shown, frames[place])
    move = 'const b = document.querySelector("[data-number=h]"); b.value = "1e-11";'
    browser.execute_script(f'{move} b.dispatchEvent(new Event("input", {{bubbles: true}}))')
    small = stepping(LECTURE, wrt=["xa", "bc"], h=1e-11)
    for place in (3, 20, 30, 15):
        browser.execute_script("goTo(arguments[0])", place)
        assert vertices(browser) == expected(small, small.frames("finite-difference")[place])
    assert any(" + 1e-11" in text for text in vertices(browser))
    assert browser.get_log("browser") == []


def vertices(browser: Any) -> list[str]:
    return texts(browser, "#graph .vertex text:nth-of-type(2)")


def expected(shown: Any, frame: Any) -> list[str]:
    found = []
    for vertex in shown.scene.vertices:
        value = frame.values[vertex.row]
        known = value is not None
        found.append(
            format_shifted_value(value, frame.unmoved[vertex.row]) if known else "not computed"
        )
    return found


def texts_at(browser: Any, frames: Any, shown: Any) -> set[str]:
    """All texts of the vertices, each step compared with Python's."""
    seen = set[str]()
    for frame in frames:
        browser.execute_script("chooseWalk(3); goTo(arguments[0])", frame.number)
        here = vertices(browser)
        assert here == expected(shown, frame)
        seen.update(here)
    return seen


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


@pytest.mark.parametrize(
    ("name", "pieces"),
    [
        ("xw", ["adjoint", "dxw/d(name)"]),
        ("xout", ["adjoint", "dxout/d(name)"]),
        ("xoutput", ["adjoint", "dxoutput/", "d(name)"]),
        ("the_temperature_out", ["adjoint", "dthe_temp…/", "d(name)"]),
    ],
)
def test_words_of_the_heading_stay_whole(
    browser: Any, tmp_path: Path, name: str, pieces: list[str]
) -> None:
    step(cgprimer.parse(f"{name} = p*xa"), {"p": 1, "xa": 2}, output=tmp_path / "page.html",
         method="reverse")  # fmt: skip
    opened(browser, tmp_path / "page.html", 1280, 720)
    found = browser.execute_script(
        """const cell = $("derivative").getBoundingClientRect();
        return [...$("derivative").children].filter(n => n.tagName === "SPAN").map(node => {
          const box = node.getBoundingClientRect();
          return [node.textContent, node.getClientRects().length,
            box.left >= cell.left - 1 && box.right <= cell.right + 1]; });"""
    )
    assert found == [[piece, 1, True] for piece in pieces]
    assert browser.execute_script("return $('derivative').title") == f"adjoint d{name}/d(name)"


def test_numbers_of_the_program_have_a_column(browser: Any, tmp_path: Path) -> None:
    graph = cgprimer.load(EXAMPLES / "mazur.cg")
    step(graph, of=graph.outputs[0], output=tmp_path / "page.html", method="path-sum")
    opened(browser, tmp_path / "page.html", 1280, 720)
    browser.execute_script("goTo(Infinity)")
    lines = browser.execute_script(
        """const box = node => node.getBoundingClientRect();
        return parts.lines.map(({ item, value }) => {
          const code = item.querySelector(".code"), words = document.createRange();
          words.selectNodeContents(code);
          return [code.textContent, box(words).right, box(value).left, box(value).right,
            box(item).bottom - box(value).bottom, value.scrollWidth - value.clientWidth]; });"""
    )
    assert len({round(left) for _, _, left, _, _, _ in lines}) == 1
    assert len({round(right) for _, _, _, right, _, _ in lines}) == 1
    for text, end, left, _, below, cut in lines:
        assert end <= left, text
        assert below <= 3, text  # the number stands at the end of the line
        assert cut <= 0, text
        assert "->" not in text
    assert any("b1 → h1 → o2 → xe" in text for text, *_ in lines)


def test_a_refusal_reads_as_sentences(browser: Any, tmp_path: Path) -> None:
    graph = cgprimer.load(EXAMPLES / "network.cg")
    step(graph, output=tmp_path / "page.html", method="forward")
    opened(browser, tmp_path / "page.html")
    refused = stepping(graph).walk("forward").refusal
    assert refused.endswith(".")
    assert texts(browser, "#lines .refused") == [refused]
    assert texts(browser, "#what") == [f"forward: {refused}"]
    assert texts(browser, "#derivative") == ["derivative"]
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
