"""The page of a boundary in a real browser: moments, keys, what is drawn; ``-m browser``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import cgprimer
from cgprimer.visualization.pages.learning.learning_page import learning_page
from tests.pages.conftest import opened

pytestmark = pytest.mark.browser


def test_moments_are_played_by_keys(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    graph = cgprimer.parse("xo = sigmoid(a*x1 + b*x2 + c)")
    data = cgprimer.make_classes("gaussians", graph, samples=40)
    run = cgprimer.train(graph, data, epochs=6, batch_size=20)
    path = tmp_path / "page.html"
    path.write_text(learning_page(run, data), encoding="utf-8")
    found = opened(browser, path)

    def seen(name: str) -> str:
        text: str = found.find_element("id", name).text
        return text

    def press(key: str) -> None:
        ActionChains(found).send_keys(key).perform()

    assert seen("count") == "snapshot 1 of 7"
    assert seen("what").startswith("step 0, loss ")
    first = found.find_element("css selector", "path.boundary").get_attribute("d")
    press(Keys.END)
    assert seen("count") == "snapshot 7 of 7"
    assert seen("what").startswith("step 12, loss ")
    assert found.find_element("css selector", "path.boundary").get_attribute("d") != first
    assert len(found.find_elements("css selector", ".sample")) == 42  # two in the legend
    shown = [w.text for w in found.find_elements("css selector", ".weight")]
    assert [text.split()[0] for text in shown] == ["a", "b", "c"]
    assert float(shown[0].split()[1]) == pytest.approx(run.parameters["a"], rel=1e-3)
    press(Keys.HOME)
    press("d")
    assert found.find_element("tag name", "html").get_attribute("data-look") == "dark"
    press(" ")
    assert seen("play") == "pause"
    assert browser.get_log("browser") == [], "the console has errors"
