"""How pages fit screens and paper, in a browser: sizes of text, nothing cut; ``-m browser``."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest

import cgprimer
from cgprimer.visualization.pages.comparison.comparison_slides import save_comparison
from cgprimer.visualization.pages.stepping.method_walks import METHODS
from cgprimer.visualization.pages.stepping.step_frames import stepping
from tests.pages.conftest import SCRIPTS, measured, open_steps, opened

pytestmark = pytest.mark.browser
LECTURE, MAZUR = cgprimer.load("lecture"), cgprimer.load("mazur")
FORTY = " + ".join(f"sin(weight_{k}*x{k % 4})" for k in range(40))
FORTY_AT = {f"weight_{k}": 0.1 * k for k in range(40)} | {f"x{k}": k + 0.5 for k in range(4)}


def check_texts(page: Any, smallest: float) -> None:
    """Check the size of all texts, in pixels, and that none is cut off."""
    width, size, cut = measured(page, SCRIPTS["measure texts"])
    assert cut == []
    assert width <= 0
    assert size >= smallest


@pytest.mark.parametrize("size", [(1280, 720), (1920, 1080)])
def test_steps_of_the_lecture_are_readable(
    browser: Any, tmp_path: Path, size: tuple[int, int]
) -> None:
    page = open_steps(browser, tmp_path, LECTURE, wrt=["xa", *LECTURE.parameters], size=size)
    for walk in range(len(METHODS)):
        page.execute_script("chooseWalk(arguments[0]); goTo(16)", walk)
        # 14 pt are 18.67 pixels; a projector shows 1280 pixels as wide as 1920.
        check_texts(page, smallest=14 / 72 * 96 * size[0] / 1920)
        assert page.execute_script(SCRIPTS["graph fits"])


@pytest.mark.parametrize(
    ("graph", "at"),
    [(LECTURE, {}), (MAZUR, {}), (cgprimer.parse(f"xw = {FORTY}"), FORTY_AT)],
    ids=["lecture", "mazur", "forty"],
)
def test_a_comparison_fits_the_screen(
    browser: Any, tmp_path: Path, graph: cgprimer.ExpressionGraph, at: dict[str, float]
) -> None:
    save_comparison(cgprimer.compare(graph, at), tmp_path / "page.html")
    page = opened(browser, tmp_path / "page.html")
    check_texts(page, smallest=13.9)
    boxes = "[...document.querySelectorAll('.box')].filter(b => b.scrollWidth > b.clientWidth)"
    assert page.execute_script(f"return {boxes}.length") == 0


def test_long_numbers_stay_in_their_boxes_and_vertices(browser: Any, tmp_path: Path) -> None:
    text = """input xa = -1.23456789e-12, xb = -123456.789; parameter k = -1.5e-300, m = -2.5e12
    xc = k*xa; xd = m*xb; xw = xc*xd/3"""
    open_steps(browser, tmp_path, cgprimer.parse(text), wrt=["k", "xa"], methods=["reverse"])
    numbers, wide_boxes, over = measured(browser, SCRIPTS["compare widths of numbers"])
    assert {*numbers} == {"-1.23456789e-12", "-123456.789", "-1.5e-300", "-2500000000000"}
    assert wide_boxes == 0
    assert over < -10


def test_the_current_row_and_line_are_in_sight_and_no_row_is_cut(
    browser: Any, tmp_path: Path
) -> None:
    lines = [f"x{k} = sin(x{k - 1})*p{k % 3} + x{k - 1}" for k in range(1, 31)]
    graph = cgprimer.parse("\n".join(lines).replace("x0", "xa"))
    at = {"xa": 0.5, "p0": 0.1, "p1": -0.2, "p2": 0.3}
    open_steps(browser, tmp_path, graph, at, level="operations", methods=["reverse"])
    steps = browser.execute_script("return data.walks[0].steps.length")
    for index in (0, steps // 3, steps - 1, 60, 5):
        assert browser.execute_script(SCRIPTS["current row and line"], index) == [True, True, 0]


@pytest.mark.parametrize("graph", [LECTURE, MAZUR], ids=["lecture", "mazur"])
def test_a_telephone(browser: Any, tmp_path: Path, graph: cgprimer.ExpressionGraph) -> None:
    open_steps(browser, tmp_path, graph, dark=True, size=(390, 844))
    tops = "['picture', 'trace', 'program'].map(id => $(id).getBoundingClientRect().top)"
    picture, trace, program = browser.execute_script(f"return {tops}")
    assert picture < trace < program
    assert 844 - picture > 300  # most of the graph is on the first screen
    for script in ("goTo(5)", "chooseWalk(3); setQuiz(true)", "showWholeGraph(true)"):
        found = browser.execute_script(f"{script}; {SCRIPTS['measure controls']}")
        assert found == [390, [], 0], script
    browser.execute_script("window.scrollTo(0, 900)")
    box = browser.execute_script("return $('forward').getBoundingClientRect().top")
    assert 0 <= box < 100  # steps stay in reach


@pytest.mark.parametrize(
    ("graph", "method", "smallest"), [(LECTURE, "path-sum", 8), (MAZUR, "reverse", 5)]
)
def test_one_sheet_of_paper_has_it_all(
    browser: Any, tmp_path: Path, graph: cgprimer.ExpressionGraph, method: str, smallest: float
) -> None:
    options = {"method": method, "methods": [method], "dark": True, "quiz": True}
    open_steps(browser, tmp_path, graph, size=(390, 844), **options)
    browser.execute_script("goTo(Infinity); foldPanes(true, true)")
    sheet = {"preferCSSPageSize": True, "paperWidth": 8.27, "paperHeight": 11.69}
    paper = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", sheet)["data"])
    assert len(re.findall(rb"/Type /Page\b", paper)) == 1
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", paper)
    assert box is not None
    assert float(box[1]) > float(box[2])  # across
    points = browser.execute_script("return root.style.getPropertyValue('--paper')")
    assert float(points.removesuffix("pt")) >= smallest
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        seen = browser.execute_script(SCRIPTS["list what is printed"])
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    shown = stepping(graph, methods=[method])
    n_rows, n_lines = len(shown.scene.rows), len(shown.walk(method).lines)
    assert seen == [1, n_rows, n_lines, 0, 0, 0, "rgb(255, 255, 255)"]
