"""What a page shows where there is little room: whole numbers, names that stay, whole lines.

``python -m pytest -m browser tests/pages``
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import cgprimer
from cgprimer.visualization.pages.stepping.step_page import step
from tests.pages.conftest import opened

pytestmark = pytest.mark.browser
EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = (
    "the_temperature_of_oven_a = sin(the_temperature_of_input1)*k_heat_transfer_coefficient\n"
    "xw = exp(the_temperature_of_oven_a)*the_temperature_of_input1"
)


def page(browser: Any, folder: Path, graph: Any, at: Any = None, **more: Any) -> Any:
    width, height = more.pop("size", (1280, 720))
    step(graph, at or {}, output=folder / "page.html", **more)
    return opened(browser, folder / "page.html", width, height)


def test_number_boxes_hold_their_numbers(browser: Any, tmp_path: Path) -> None:
    at = {"m": -2.5e12, "xb": -123456.789, "k": 1e-7, "xa": 3}
    page(browser, tmp_path, cgprimer.parse("xw = m*xa + k*xb"), at, wrt=["k"])
    found = browser.execute_script(
        """const seen = {};
        for (const box of document.querySelectorAll("#sliders [data-number]")) {
          const look = getComputedStyle(box);
          const pen = document.createElement("canvas").getContext("2d");
          pen.font = `${look.fontSize} ${look.fontFamily}`;
          const padding = parseFloat(look.paddingLeft) + parseFloat(look.paddingRight);
          const room = box.clientWidth - padding;
          seen[box.dataset.number] = [box.value, pen.measureText(box.value).width, room];
        }
        return seen;"""
    )
    assert [found[name][0] for name in at] == ["-2500000000000", "-123456.789", "1e-7", "3"]
    for name, (text, width, room) in found.items():
        assert width + 16 <= room, (name, text)  # 16: the arrows that a browser puts beside it
    assert found["m"][2] > found["xa"][2]


@pytest.mark.parametrize(
    ("name", "size"), [("lecture", (1024, 768)), ("", (1600, 900)), ("network", (800, 600))]
)
def test_the_trace_starts_at_its_left_and_names_stay(
    browser: Any, tmp_path: Path, name: str, size: tuple[int, int]
) -> None:
    graph = cgprimer.load(EXAMPLES / f"{name}.cg") if name else cgprimer.parse(NAMES)
    at = {} if name else {"the_temperature_of_input1": 0.5, "k_heat_transfer_coefficient": 2}
    page(browser, tmp_path, graph, at, size=size)
    seen = """const pane = $("trace"), box = pane.getBoundingClientRect();
        const names = [...pane.querySelectorAll("tr")].map(row => row.cells[1]);
        const heads = [...pane.querySelectorAll("th")].map(c => c.getBoundingClientRect().right);
        return [pane.scrollLeft,
          Math.max(...names.map(c => box.left - c.getBoundingClientRect().left)),
          Math.max(...names.map(c => c.scrollWidth - c.clientWidth)),
          Math.max(...heads) - box.right];"""
    for place in (0, 5, 8):
        browser.execute_script("goTo(arguments[0])", place)
        scrolled, beyond, cut, right = browser.execute_script(seen)
        assert scrolled == 0
        assert beyond <= 0
        assert cut <= 1
        if size[0] >= 1024:
            assert right <= 0, "the last column does not fit"
    browser.execute_script('$("trace").scrollLeft = 1000')
    scrolled, beyond, cut, _ = browser.execute_script(seen)
    assert beyond <= 0
    assert (scrolled > 1) == (size[0] < 1024)


@pytest.mark.parametrize("size", [(1920, 1080), (1280, 720), (1024, 768)])
def test_many_sliders_stay_small_and_no_line_is_cut(
    browser: Any, tmp_path: Path, size: tuple[int, int]
) -> None:
    page(browser, tmp_path, cgprimer.load(EXAMPLES / "network.cg"), size=size)
    share, lists = browser.execute_script(
        """const lists = [...document.querySelectorAll("#sliders, #results")].map(pane => {
          const box = pane.getBoundingClientRect();
          pane.scrollTop = 0;
          const cut = [...pane.children].filter(child => {
            const own = child.getBoundingClientRect();
            return own.top < box.bottom - 1 && own.bottom > box.bottom + 1; });
          return [pane.scrollHeight > pane.clientHeight, cut.length]; });
        const footer = document.querySelector("footer").getBoundingClientRect();
        return [footer.height / innerHeight, lists];"""
    )
    assert share < 0.36
    assert lists == [[True, 0], [True, 0]]


def test_no_row_is_cut_under_the_heading_of_the_trace(browser: Any, tmp_path: Path) -> None:
    page(browser, tmp_path, cgprimer.load(EXAMPLES / "network.cg"), method="reverse")
    for place in (30, 55, 60, 62):
        browser.execute_script("goTo(arguments[0])", place)
        cut = browser.execute_script(
            """const edge = $("head").getBoundingClientRect().bottom;
            return [...$("rows").children].filter(row => {
              const box = row.getBoundingClientRect();
              return box.top < edge - 2 && box.bottom > edge + 2; }).map(r => r.textContent);"""
        )
        assert cut == []


def test_arrow_heads_come_after_the_rings_and_flags_keep_clear(
    browser: Any, tmp_path: Path
) -> None:
    for name, across in (("lecture", False), ("mazur", True)):
        graph = cgprimer.load(EXAMPLES / f"{name}.cg")
        page(browser, tmp_path, graph)
        order, at_flag = browser.execute_script(
            """const order = [...$("graph").children].map(node => node.classList[0]);
            const flags = [...document.querySelectorAll("#graph .flag")].map(f => f.getBBox());
            const near = data.drawing.tips.filter(([x, y]) => flags.some(f => x > f.x - 2
              && x < f.x + f.width + 2 && y > f.y - 2 && y < f.y + f.height + 2));
            return [order, near];"""
        )
        assert order.index("tip") > len(order) - order[::-1].index("vertex") - 1
        assert order.count("tip") == order.count("edge") > 0
        assert at_flag == []
        assert browser.execute_script("return data.drawing.is_horizontal") is across


def test_a_path_is_followed_by_a_colon(browser: Any, tmp_path: Path) -> None:
    graph = cgprimer.load(EXAMPLES / "olah.cg")
    page(browser, tmp_path, graph, method="path-sum")
    browser.execute_script("goTo(11)")
    assert browser.find_element("id", "what").text == "path 1: b → c → e: 2"
