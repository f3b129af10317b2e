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
