"""The page of `cgprimer compare` in a real browser: numbers, both looks, and how it fits.

``python -m pytest -m browser tests/pages``; screenshots are kept in ``$CGPRIMER_SCREENSHOTS``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cgprimer
from cgprimer.analysis.comparison import Comparison, compare
from cgprimer.support.number_format import mark_rounding
from cgprimer.visualization.pages.comparison import comparison_text
from cgprimer.visualization.pages.comparison.comparison_slides import save_comparison
from tests.pages.conftest import opened, resize

pytestmark = pytest.mark.browser
EXAMPLES = Path(__file__).parents[2] / "examples"


def weights(count: int) -> Comparison:
    terms = " + ".join(f"sin(weight_{k}*x{k % 4})" for k in range(count))
    at = {f"weight_{k}": 0.1 * k for k in range(count)} | {f"x{k}": k + 0.5 for k in range(4)}
    return compare(cgprimer.parse(f"xw = {terms}"), at)


def squares(count: int) -> Comparison:
    steps = [f"v{n} = sin(v{n - 1})*v{n - 1}" for n in range(1, count)]
    return compare(cgprimer.parse("; ".join(["v0 = k*xa", *steps])), {"k": 0.7, "xa": 0.4})


GRAPHS: dict[str, Callable[[], Comparison]] = {
    "lecture": lambda: compare(cgprimer.load(EXAMPLES / "lecture.cg")),
    "mazur": lambda: compare(cgprimer.load(EXAMPLES / "mazur.cg")),
    "kink": lambda: compare(cgprimer.parse("xw = abs(xa)"), {"xa": 0}),
    "forty": lambda: weights(40),
    "hundred": lambda: squares(100),
}


@pytest.mark.parametrize("size", [(1280, 720)], ids=["1280"])
@pytest.mark.parametrize("name", GRAPHS)
def test_it_fits_the_screen(browser: Any, name: str, size: tuple[int, int], tmp_path: Path) -> None:
    save_comparison(GRAPHS[name](), tmp_path / "page.html")
    page = opened(browser, tmp_path / "page.html", *size)
    wide, small, cut = page.execute_script(
        """const shown = [...document.querySelectorAll("h1,h2,h3,p,th,td,dt,dd,caption")];
        return [document.documentElement.scrollWidth,
          Math.min(...shown.map(e => parseFloat(getComputedStyle(e).fontSize))),
          shown.filter(e => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display
            !== "inline").map(e => e.textContent)];"""
    )
    assert wide <= size[0]
    assert small >= 13.9
    assert cut == []
    boxes = page.execute_script(
        "return [...document.querySelectorAll('.box')].filter(b => b.scrollWidth > b.clientWidth)"
        ".map(b => b.textContent.slice(0, 80))"
    )
    assert boxes == []
    folder = os.environ.get("CGPRIMER_SCREENSHOTS")
    if folder:
        height = page.execute_script("return document.documentElement.scrollHeight")
        resize(page, size[0], min(height, 4000))
        page.save_screenshot(str(Path(folder) / f"compare-{name}-{size[0]}.png"))
    assert page.get_log("browser") == []


def test_the_numbers_are_pythons(browser: Any, tmp_path: Path) -> None:
    found = GRAPHS["mazur"]()
    save_comparison(found, tmp_path / "page.html")
    page = opened(browser, tmp_path / "page.html")
    values, errors, bars = page.execute_script(
        """const texts = q => [...document.querySelectorAll(q)].map(e => e.textContent);
        const share = e => e.getBoundingClientRect().width /
          e.parentNode.getBoundingClientRect().width;
        return [texts(".derivatives .value"), texts(".derivatives .more"),
          [...document.querySelectorAll(".costs td:nth-child(4) .bar > span")].map(share)];"""
    )
    pairs = [(r, name) for name in found.wrt for r in found.results]
    assert values == [mark_rounding(r.derivatives[name]) for r, name in pairs]
    assert errors == [comparison_text.format_error(r.errors[name]) for r, name in pairs]
    most = max(r.operations for r in found.results)
    assert bars == pytest.approx([r.operations / most for r in found.results], abs=0.02)


def test_light_and_dark(browser: Any, tmp_path: Path) -> None:
    found = GRAPHS["lecture"]()
    title = "</title><script>document.title = 'broken'</script> <b>&amp;</b>"
    save_comparison(found, tmp_path / "page.html", title=title)
    save_comparison(found, tmp_path / "dark.html", dark=True)
    ground = "return getComputedStyle(document.body).backgroundColor"
    ink = "return getComputedStyle(document.querySelector('figure svg use')).fill"
    white, night = "rgb(255, 255, 255)", "rgb(22, 25, 29)"

    def prefer(look: str) -> None:
        media = {"features": [{"name": "prefers-color-scheme", "value": look}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)

    try:
        prefer("light")
        page = opened(browser, tmp_path / "page.html")
        assert page.title == page.find_element("tag name", "h1").text == title
        seen = [page.execute_script(ground)]
        prefer("dark")
        seen.append(page.execute_script(ground))
        page.find_element("id", "look").click()
        seen.append(page.execute_script(ground))
        page.find_element("tag name", "body").send_keys("d")
        seen.append(page.execute_script(ground))
        assert seen == [white, night, white, night]
        pressed = page.find_element("id", "look").get_attribute("aria-pressed")
        assert pressed == "true"
        prefer("light")
        opened(browser, tmp_path / "dark.html")
        assert page.execute_script(ground) == night
        assert page.execute_script(ink) == "rgb(242, 242, 242)"
        assert page.get_log("browser") == []
    finally:
        prefer("")
