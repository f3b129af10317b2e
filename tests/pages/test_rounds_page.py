"""The page of many workers in a real browser: keys, the curtain, both looks; ``-m browser``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cgprimer.training.distributed.worker_record import record_of
from cgprimer.visualization.pages.rounds.rounds_page import list_events, rounds_page
from tests.pages.conftest import opened
from tests.workers.test_rounds_page import trained

pytestmark = pytest.mark.browser


def test_the_curtain_lifts_with_the_moments(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    run = trained(protocol="backup", delays="1,2,5")
    path = tmp_path / "page.html"
    path.write_text(rounds_page(run, until=6), encoding="utf-8")
    found = opened(browser, path, 1280, 720)

    def hidden() -> float:
        width: float = found.find_element("id", "curtain").rect["width"]
        return width

    def press(key: str) -> None:
        ActionChains(found).send_keys(key).perform()

    known = [one for one in list_events(run, record_of(run)) if one.time <= 6]
    widths = [hidden()]
    for number, one in enumerate(known[1:], start=2):
        press(Keys.RIGHT)
        assert found.find_element("id", "count").text == f"event {number} of {len(known)}"
        assert found.find_element("id", "what").text == one.words
        assert found.find_element("id", "server").text == one.server
        widths.append(hidden())
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 10 < widths[0]
    press("d")
    seen = [image.is_displayed() for image in found.find_elements("tag name", "img")]
    assert seen == [False, True]
    room = found.find_element("tag name", "html")
    assert room.get_property("scrollHeight") <= room.get_property("clientHeight")
    assert browser.get_log("browser") == [], "the console has errors"


@pytest.mark.parametrize(("width", "height"), [(390, 844), (844, 390), (1280, 720), (1080, 1080)])
def test_the_curtain_is_over_the_picture_on_every_screen(
    browser: Any, tmp_path: Path, width: int, height: int
) -> None:
    path = tmp_path / "page.html"
    path.write_text(
        rounds_page(trained(protocol="backup", delays="1,2,5"), until=6), encoding="utf-8"
    )
    found = opened(browser, path, width, height)
    picture, curtain, top, bottom, seen, across = found.execute_script(
        "const at = id => document.querySelector(id).getBoundingClientRect().toJSON();"
        "const whole = document.documentElement; goTo(getLastIndex() - 1);"
        "const room = at('#room');"
        "return [at('#picture img.light'), at('#curtain'), data.box[2], data.box[3],"
        " [room.left, at('#curtain').left, room.right], whole.scrollWidth - whole.clientWidth]"
    )
    for side, share in (("top", top), ("bottom", bottom)):
        expected = picture["top"] + share * picture["height"]
        assert curtain[side] == pytest.approx(expected, abs=0.01 * picture["height"])
    assert seen == sorted(seen), "what happens now is out of sight"
    assert picture["width"] >= 600
    assert across <= 0
    small = [b.rect for b in found.find_elements("css selector", "button, select, input")]
    assert width > 700 or min(min(b["width"], b["height"]) for b in small if b["width"]) >= 44
