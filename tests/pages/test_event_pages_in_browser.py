"""Pages of comparisons, boundaries and rounds in a browser: numbers, keys; ``-m browser``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import cgprimer
from cgprimer.support.number_format import mark_rounding
from cgprimer.training.distributed.worker_record import record_of
from cgprimer.visualization.pages.comparison import comparison_text
from cgprimer.visualization.pages.comparison.comparison_slides import save_comparison
from cgprimer.visualization.pages.learning.learning_page import learning_page
from cgprimer.visualization.pages.rounds.rounds_page import list_events, rounds_page
from tests.pages.conftest import SCRIPTS, opened, press, texts

pytestmark = pytest.mark.browser


def test_a_comparison_shows_the_numbers_of_python(browser: Any, tmp_path: Path) -> None:
    comparison = cgprimer.compare(cgprimer.load("mazur"))
    save_comparison(comparison, tmp_path / "page.html")
    page = opened(browser, tmp_path / "page.html")
    pairs = [(r, name) for name in comparison.wrt for r in comparison.results]
    assert texts(page, ".derivatives .value") == [
        mark_rounding(r.derivatives[name]) for r, name in pairs
    ]
    assert texts(page, ".derivatives .more") == [
        comparison_text.format_error(r.errors[name]) for r, name in pairs
    ]
    bars = page.execute_script(SCRIPTS["measure bars"])
    most = max(r.operations for r in comparison.results)
    assert bars == pytest.approx([r.operations / most for r in comparison.results], abs=0.02)


def test_a_comparison_is_light_or_dark(browser: Any, tmp_path: Path) -> None:
    comparison = cgprimer.compare(cgprimer.load("lecture"))
    save_comparison(comparison, tmp_path / "page.html")
    save_comparison(comparison, tmp_path / "dark.html", dark=True)
    colors = {"rgb(255, 255, 255)": "light", "rgb(22, 25, 29)": "dark"}

    def look() -> str:
        script = "return getComputedStyle(document.body).backgroundColor"
        return colors[browser.execute_script(script)]

    def prefer(value: str) -> str:
        media = {"features": [{"name": "prefers-color-scheme", "value": value}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        return look()

    opened(browser, tmp_path / "page.html")
    try:
        assert (prefer("light"), prefer("dark")) == ("light", "dark")
        browser.find_element("id", "look").click()
        assert look() == "light"
        press(browser, "d")
        assert look() == "dark"
        opened(browser, tmp_path / "dark.html")
        assert prefer("light") == "dark"
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_snapshots_of_a_boundary_are_played_by_keys(browser: Any, tmp_path: Path) -> None:
    graph = cgprimer.parse("xo = sigmoid(a*x1 + b*x2 + c)")
    data = cgprimer.make_classes("gaussians", graph, samples=40)
    run = cgprimer.train(graph, data, epochs=6, batch_size=20)
    path = tmp_path / "page.html"
    path.write_text(learning_page(run, data), encoding="utf-8")
    page = opened(browser, path)
    boundaries = []
    for key, number, step in (("HOME", 1, 0), ("END", 7, 12)):
        press(page, key)
        assert texts(page, "#count") == [f"snapshot {number} of 7"]
        assert texts(page, "#what")[0].startswith(f"step {step}, loss ")
        boundaries.append(page.find_element("css selector", "path.boundary").get_attribute("d"))
    assert boundaries[0] != boundaries[1]
    assert len(page.find_elements("css selector", ".sample")) == 42  # two in the legend
    weights = [w.text.split() for w in page.find_elements("css selector", ".weight")]
    assert [name for name, *_ in weights] == ["a", "b", "c"]
    assert float(weights[0][1]) == pytest.approx(run.parameters["a"], rel=1e-3)
    press(page, "HOME", "d", " ")
    assert page.find_element("tag name", "html").get_attribute("data-look") == "dark"
    assert texts(page, "#play") == ["pause"]


@pytest.mark.parametrize("size", [(390, 844), (844, 390), (1280, 720)])
def test_the_curtain_over_the_picture_of_rounds_lifts_with_the_events(
    browser: Any, tmp_path: Path, size: tuple[int, int]
) -> None:
    graph = cgprimer.parse("xw = k*x")
    data = cgprimer.make_dataset(graph, truth={"k": 3.0}, samples=60)
    options = {"optimizer": "sgd", "start": {"k": 0.0}, "batch_size": 1, "epochs": 1}
    backup = {"workers": 3, "protocol": "backup", "delays": "1,2,5", "simulate": True}
    run = cgprimer.train(graph, data, **options, **backup)
    path = tmp_path / "page.html"
    path.write_text(rounds_page(run, until=6), encoding="utf-8")
    page = opened(browser, path, *size)
    events = [e for e in list_events(run, record_of(run)) if e.time <= 6]
    widths = []
    for number, event in enumerate(events, start=1):
        assert texts(page, "#count, #what, #server") == [
            f"event {number} of {len(events)}", event.words, event.server,
        ]  # fmt: skip
        picture, curtain, room, edges, across = page.execute_script(SCRIPTS["measure rounds"])
        widths.append(curtain["width"])
        assert across <= 0
        assert room["left"] <= curtain["left"] <= room["right"], "the event is out of sight"
        for side, share in zip(("top", "bottom"), edges, strict=True):
            expected = picture["top"] + share * picture["height"]
            assert curtain[side] == pytest.approx(expected, abs=0.01 * picture["height"])
        press(page, "RIGHT")
    assert picture["width"] >= 600
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 10 < widths[0]
    press(page, "d")
    visible = [image.is_displayed() for image in page.find_elements("tag name", "img")]
    assert visible == [False, True]
