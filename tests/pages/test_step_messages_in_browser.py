"""Messages between a page of steps and the window around it, in a browser; ``-m browser``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cgprimer
from cgprimer.support.files import format_json
from cgprimer.visualization.pages.page_rendering import encode_script_data
from cgprimer.visualization.pages.stepping.step_frames import stepping
from cgprimer.visualization.pages.stepping.step_page import build_step_data
from cgprimer.visualization.pages.stepping.step_shell import render_step_shell
from tests.pages.conftest import (
    SCRIPTS,
    TABLES,
    find_violations,
    move,
    press,
    resize,
    serve,
    texts,
    wait,
)

pytestmark = pytest.mark.browser
LECTURE = cgprimer.load("lecture")
STATE = ("method", "step", "point", "h", "scheme")
Site = tuple[str, Path]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The address and the folder of a server with the step page without data."""
    folder = tmp_path_factory.mktemp("site")
    for name, text in render_step_shell().items():
        (folder / name).write_text(text, "utf-8")
    with serve(folder) as server:
        yield server.address, folder


def embed(browser: Any, site: Site, frame: str, page: str = "") -> Any:
    """The browser with a window that keeps the messages of the page in its frame."""
    address, folder = site
    (folder / "page.html").write_text(page, "utf-8")
    script = SCRIPTS["keep messages of a frame"].replace("</", "<\\/")
    window = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>window</title>'
        '<link rel="icon" href="data:,">'
        f'<header><h1>window</h1></header><main><iframe title="steps" src="{frame}" width="100%"'
        f' height="700"></iframe></main><footer>window</footer><script>{script}</script>'
    )
    (folder / "index.html").write_text(window, "utf-8")
    browser.get(f"{address}index.html")
    wait(browser, "window.ready")
    return browser


def encode(graph: cgprimer.ExpressionGraph, **options: Any) -> Any:
    return json.loads(format_json(build_step_data(stepping(graph, **options))))


def send(page: Any, message: Any) -> None:
    """Post a message to the frame, and wait until it is handled."""
    page.execute_async_script(SCRIPTS["send to the frame"], message)


def read_shown(page: Any) -> dict[str, Any]:
    """What the page in the frame shows, without the help of its scripts."""
    found: dict[str, Any] = page.execute_script(SCRIPTS["read the frame"])
    return found


def sent(page: Any) -> list[dict[str, Any]]:
    """The messages of the frame since the last call."""
    page.execute_async_script(SCRIPTS["wait for two pictures"])
    found: list[dict[str, Any]] = page.execute_script("return messages.splice(0)")
    return found


@pytest.mark.parametrize("kind", ["shell", "page"])
def test_a_page_moves_with_its_window_and_without_echo(browser: Any, site: Site, kind: str) -> None:
    page = embed(
        browser, site, "step.html" if kind == "shell" else "page.html", cgprimer.step(LECTURE)
    )
    if kind == "shell":
        send(page, {"type": "cgprimer-data", "data": encode(LECTURE)})
    assert sent(page) == []  # both windows know where a page begins
    state = {"method": "forward", "step": 3, "point": {"ab": 0.25, "cd": "nan"}, "h": 0.5}
    send(page, {"type": "cgprimer-state", **state})
    shown = read_shown(page)
    assert (shown["tab"], shown["count"][:6]) == ("forward", "step 4")
    assert (shown["inputs"]["ab"], shown["inputs"]["cd"], shown["inputs"]["h"]) == (
        "0.25", "", "0.5",
    )  # fmt: skip
    assert sent(page) == []
    page.switch_to.frame(0)
    move(page, '[data-slider="ab"]', 0.5)
    page.find_element("id", "forward").click()
    page.switch_to.default_content()
    *_, message = sent(page)
    assert message["point"] == {**encode(LECTURE)["point"], "ab": 0.5, "cd": "nan"}
    assert {**message, "point": None} == {
        "type": "cgprimer-state", "method": "forward", "step": 4, "point": None, "h": 0.5,
        "scheme": "central",
    }  # fmt: skip


def test_new_data_are_shown_at_the_same_step(browser: Any, site: Site) -> None:
    page = embed(browser, site, "step.html")
    send(page, {"type": "cgprimer-data", "data": encode(LECTURE)})
    send(page, {"type": "cgprimer-state", "method": "forward", "step": 5, "point": {"ab": 0.25}})
    before = read_shown(page)
    text = LECTURE.text + "\nxnew = 2*xw\n"
    edited = encode(cgprimer.parse(text), at=LECTURE.values, of="xnew", title="edited <b>")
    send(page, {"type": "cgprimer-data", "data": edited})
    shown = read_shown(page)
    assert (shown["title"], "xnew" in shown["rows"]) == ("edited <b>", True)
    assert (shown["tab"], shown["what"], shown["inputs"]["ab"]) == (
        before["tab"], before["what"], "0.25",
    )  # fmt: skip
    sent(page)
    page.switch_to.frame(0)
    page.find_element("id", "picture").click()
    press(page, "2", "END", "ARROW_LEFT")  # each listener is registered only once
    assert texts(page, "[aria-selected=true]") == ["reverse"]
    (count,) = texts(page, "#count")
    page.switch_to.default_content()
    n_steps = len(edited["walks"][1]["steps"])
    assert count == f"step {n_steps - 1} of {n_steps}"
    assert sent(page)[-1]["step"] == n_steps - 2


def test_hostile_messages_change_nothing(browser: Any, site: Site) -> None:
    page = embed(browser, site, "step.html")
    send(page, {"type": "cgprimer-data", "data": encode(LECTURE)})
    before = read_shown(page)
    for (message,) in TABLES["hostile messages"]:
        page.execute_async_script(SCRIPTS["evaluate and send to the frame"], message)
        assert read_shown(page) == before, message
    page.switch_to.frame(0)  # a message that is not from the window around the page
    page.execute_script("window.postMessage({ type: 'cgprimer-state', step: 3 }, '*')")
    page.switch_to.default_content()
    assert sent(page) == []
    assert read_shown(page) == before
    for data in (None, [], {"walks": 3}, {**encode(LECTURE), "drawing": None}):
        send(page, {"type": "cgprimer-data", "data": data})
        (answer,) = sent(page)
        assert answer["type"] == "cgprimer-error"
    send(page, {"type": "cgprimer-data", "data": encode(LECTURE)})
    assert read_shown(page) == before


def test_a_widget_keeps_its_model_and_its_page_equal(browser: Any, site: Site) -> None:
    pytest.importorskip("anywidget", reason="anywidget is missing: pip install -e .[widget]")
    widget = cgprimer.step(LECTURE).widget()
    widget.method, widget.step = "forward", 2
    initial = encode_script_data(widget.get_state(["_frame", *STATE]))
    address, folder = site
    (folder / "step_widget.js").write_text(widget._esm, "utf-8")
    window = (
        '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">'
        f"<script>window.initial = {initial}</script>"
        f'<script type="module">{SCRIPTS["show a widget with a model"]}</script>'
    )
    (folder / "index.html").write_text(window, "utf-8")
    browser.get(f"{address}index.html")
    wait(browser, "window.ready")
    frame = browser.find_element("css selector", "iframe")

    def read() -> list[str]:
        browser.switch_to.frame(frame)
        found = texts(browser, "[aria-selected=true], #count")
        found.append(browser.find_element("css selector", "[data-number=xa]").get_property("value"))
        browser.switch_to.default_content()
        return found

    n_steps = len(widget._shown.walk("forward").steps)
    assert read() == ["forward", f"step 3 of {n_steps}", "0.5"]  # set before the page was shown
    browser.execute_script("model.set('step', 4); model.set('point', {xa: 0.75})")
    assert browser.execute_script("return model.saves") == 0
    browser.switch_to.frame(frame)
    wait(browser, "document.querySelector('#count').textContent.startsWith('step 5')")
    move(browser, '[data-slider="xa"]', 1)
    browser.find_element("id", "forward").click()
    browser.switch_to.default_content()
    wait(browser, "model.state.step === 5 && model.state.point.xa === 1 && model.saves > 0")
    assert read() == ["forward", f"step 6 of {n_steps}", "1"]
    widget.set_state(browser.execute_script("return {...model.state, _frame: ''}"))
    assert (widget.step, widget.point["xa"]) == (5, 1.0)
    assert widget.gradient == pytest.approx(
        cgprimer.gradient(LECTURE, {**LECTURE.values, "xa": 1}, method="forward")
    )
    browser.execute_script("window.before = model.saves; remove()")
    assert browser.execute_script("return count()") == 0
    browser.switch_to.frame(frame)
    browser.find_element("id", "forward").click()
    browser.switch_to.default_content()
    assert read()[1] == f"step 7 of {n_steps}"
    assert browser.execute_script("return model.saves === before && model.state.step") == 5


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1280])
def test_a_page_in_a_frame_is_accessible(
    browser: Any, site: Site, axe_script: str, width: int, dark: bool
) -> None:
    resize(browser, width, 800)
    page = embed(browser, site, "step.html")
    send(page, {"type": "cgprimer-data", "data": encode(LECTURE, title="")})
    send(page, {"type": "cgprimer-theme", "dark": dark})
    for method, step, button in (("reverse", 12, "ask"), ("finite-difference", 9, "keys")):
        send(page, {"type": "cgprimer-state", "method": method, "step": step})
        page.switch_to.frame(0)
        page.find_element("id", button).click()
        page.switch_to.default_content()
        assert find_violations(page, axe_script) == []
