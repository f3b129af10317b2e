"""The page for large graphs in a browser: groups, search, details and keys; ``-m browser``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import cgprimer
from cgprimer import networks
from cgprimer.support.number_format import SHORT, format_number
from tests.pages.conftest import SCRIPTS, find_violations, opened, press, resize, texts, wait

pytestmark = pytest.mark.browser
pytest.importorskip("selenium", reason="selenium is missing: pip install -e .[browser]")
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402

GRAPH = networks.mlp("8-70-20-1", scalars=True, values=True)
CORNER = SCRIPTS["find a box"].replace("DX", "0").replace("DY", "0")
KINDS = ("chain", "random", "recurrent")


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Any:
    """The page of a network with 2,151 parameters; its vertices show values and adjoints."""
    cgprimer.draw(GRAPH, tmp_path / "net.html", values=True, adjoints=True)
    return open_page(browser, tmp_path / "net.html")


def open_page(browser: Any, path: Path, width: int = 1280, height: int = 720) -> Any:
    opened(browser, path, width, height)
    wait(browser, "performance.getEntriesByName('first drawing').length === 1")
    return browser


def settle(page: Any) -> None:
    wait(page, "!moving && !requested")


def click(page: Any, label: str, x: str = "W[box] / 2", y: str = "H[box] / 2") -> list[float]:
    """Click at a point of a box; return the position of its corner."""
    at = page.execute_script(SCRIPTS["find a box"].replace("DX", x).replace("DY", y), label)
    canvas = page.find_element("id", "picture")
    move = ActionChains(page).move_to_element_with_offset
    move(canvas, int(at[0]), int(at[1])).click().perform()
    settle(page)
    corner: list[float] = at[2:]
    return corner


def test_a_click_opens_and_closes_a_group_in_its_place(page: Any) -> None:
    labels = "visible.boxes.map(getLabel)"
    before = page.execute_script(f"return {labels}")
    corner = click(page, "learnable parameters")
    assert {"w*", "b*"} <= {*page.execute_script(f"return {labels}")}
    corner_after = page.execute_script(CORNER, "learnable parameters")[2:]
    assert corner_after == pytest.approx(corner, abs=0.5)
    click(page, "learnable parameters", "20", "12")
    assert page.execute_script(f"return {labels}") == before


def test_merged_arrows_and_boxes_add_up_whatever_is_open(page: Any) -> None:
    edges = {
        (tail, head)
        for head in GRAPH.definitions
        for tail in (*GRAPH.depends_on[head], *GRAPH.parameters_of[head])
    }
    n = len(GRAPH.variables) + len(GRAPH.parameters)
    for choice in (0, 3, 7, 2, 5, 11, 6):
        page.execute_async_script(SCRIPTS["toggle a group"], choice)
        settle(page)
        vertices, inner, merged, overlaps, wrong = page.execute_script(
            SCRIPTS["count what is drawn"]
        )
        assert (vertices, inner + merged, overlaps, wrong) == (n, len(edges), [], [])
    page.find_element("id", "expand").click()
    wait(page, "visible.boxes.length === arguments[0] && !moving", n)
    assert page.execute_script("return visible.tails.length") == len(edges)
    page.find_element("id", "collapse").click()
    wait(page, "visible.boxes.length < 10")


def test_search_and_links_lead_to_vertices(page: Any) -> None:
    values = GRAPH.evaluate({})
    press(page, "/", *"xh2_1")
    assert texts(page, "#results b")[:2] == ["xh2_1", "xh2_10"]
    assert page.switch_to.active_element.get_attribute("aria-activedescendant") == "hit0"
    press(page, "ARROW_DOWN", "ENTER")
    wait(page, "$('name').textContent === 'xh2_10'")
    settle(page)
    assert texts(page, "#facts pre")[0].split("\n")[:2] == [
        GRAPH.expression("xh2_10"),
        f"≈ {format_number(values['xh2_10'], SHORT + 3)}",
    ]
    center = SCRIPTS["find a box"].replace("DX", "W[box] / 2").replace("DY", "H[box] / 2")
    assert page.execute_script(center, "xh2_10")[:2] == pytest.approx([0, 0], abs=2)
    assert texts(page, "#facts h3") == ["depends on (141)", "leads to (1)"]
    page.execute_script("[...document.querySelectorAll('#facts li button')].at(-1).click()")
    wait(page, "$('name').textContent === 'xo'")
    assert page.switch_to.active_element.get_attribute("id") == "name"
    page.find_element("id", "ancestors").click()
    everything = len(GRAPH.variables) + len(GRAPH.parameters) - 1
    assert texts(page, "#status") == [f"{everything:,} ancestors of xo"]
    page.find_element("id", "descendants").click()
    assert texts(page, "#status") == ["0 descendants of xo"]
    page.execute_script("location.hash = 'b1_3'")
    wait(page, "$('name').textContent === 'b1_3'")
    press(page, "/", *"no such name")
    assert texts(page, "#status") == ["0 vertices found"]
    assert not page.find_element("id", "results").is_displayed()


def test_the_list_reaches_every_vertex_by_keyboard(page: Any) -> None:
    page.execute_script("$('tree').focus()")
    press(page, "HOME")

    def current() -> list[str]:
        row = page.find_element("css selector", f"#{page.execute_script(ACTIVE)}")
        names = ("aria-level", "aria-expanded", "aria-posinset", "aria-setsize")
        return [page.execute_script("return arguments[0].children[1].textContent", row)] + [
            row.get_attribute(name) for name in names
        ]

    names = texts(page, "#tree .label")
    assert current() == ["learnable parameters", "1", "false", "1", "4"]
    press(page, "ARROW_RIGHT")
    settle(page)
    assert current()[2] == "true"
    press(page, "ARROW_RIGHT", "ENTER")
    settle(page)
    assert current() == ["w*", "2", "true", "1", "2"]
    press(page, "ARROW_DOWN", *["ARROW_LEFT"] * 4)
    settle(page)
    assert texts(page, "#tree .label") == names
    press(page, "END", " ")
    assert texts(page, "#name") == ["xo"]
    page.execute_script("setAllOpen(1)")
    wait(page, "visible.boxes.length === N")
    press(page, "HOME", *["PAGE_DOWN"] * 5)
    assert page.execute_script("return active") == 50
    assert len(texts(page, "#tree .label")) < 60  # of more than two thousand rows


def test_keys_move_and_zoom_the_picture(page: Any) -> None:
    view = "return [view.x, view.y, view.scale]"
    start = page.execute_script(view)
    press(page, "+", "-", "-")
    assert page.execute_script(view)[2] == pytest.approx(start[2] * 0.8)
    page.execute_script("$('picture').focus()")
    x, y, _ = page.execute_script(view)
    press(page, "ARROW_LEFT", "ARROW_UP")
    assert page.execute_script(view)[:2] == [x + 80, y + 80]
    press(page, "0")
    assert page.execute_script(view) == start
    canvas = page.find_element("id", "picture")
    ActionChains(page).drag_and_drop_by_offset(canvas, 50, -30).perform()
    assert page.execute_script(view)[:2] == pytest.approx([start[0] + 50, start[1] - 30])
    assert page.execute_script("return highlight.box") == -1


ACTIVE = "return $('tree').getAttribute('aria-activedescendant')"


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_axe_reports_no_violations(
    browser: Any, tmp_path: Path, axe_script: str, width: int, dark: bool
) -> None:
    cgprimer.draw(GRAPH, tmp_path / "net.html", values=True, dark=dark)
    page = open_page(browser, tmp_path / "net.html", width, 844)
    assert find_violations(page, axe_script) == []
    page.execute_async_script("reveal(N - 1).then(arguments[0])")
    page.execute_script("search.value = 'x'; showResults()")
    assert find_violations(page, axe_script) == []
    assert page.execute_script("return document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("example", ["lecture", "matrix_backpropagation", *KINDS])
def test_graphs_of_every_kind_are_drawn(browser: Any, tmp_path: Path, example: str) -> None:
    graph = getattr(networks, example)(2000) if example in KINDS else cgprimer.load(example)
    cgprimer.draw(graph, tmp_path / "graph.html")
    page = open_page(browser, tmp_path / "graph.html")
    assert page.execute_script(SCRIPTS["count what is drawn"])[3:] == [[], []]
    assert page.execute_script(SCRIPTS["count colored pixels"]) > 500
    page.execute_async_script("setAllOpen(1).then(arguments[0])")
    assert page.execute_script("return visible.boxes.length === N")
    assert page.execute_script(SCRIPTS["count colored pixels"]) > 500
    resize(browser, 390, 844)
    wait(page, "view.width === 390")
