"""The documentation site in a real browser: ``python -m pytest -m browser tests/site``."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.pages.conftest import press, resize, wait
from tests.site.conftest import ROOT

pytestmark = pytest.mark.browser
REDIRECTS = runpy.run_path(str(ROOT / "docs" / "site" / "build.py"))["CONFIGURATION"]["redirects"]
RESULTS = """[...document.querySelectorAll("*")].filter(e => e.shadowRoot)
        .flatMap(e => [...e.shadowRoot.querySelectorAll("a[role=option]")]).map(a => a.href)"""


def visit(browser: Any, address: str, width: int = 1280, height: int = 900) -> Any:
    """The browser with a page of the site open, and nothing remembered from other tests."""
    resize(browser, width, height)
    browser.get_log("browser")
    browser.get(address)
    return browser


def errors(browser: Any) -> list[str]:
    """The errors and warnings in the console since the page was opened."""
    return [e["message"] for e in browser.get_log("browser") if e["level"] != "INFO"]


def pages(site: Path) -> list[Path]:
    """All pages of the site except the redirects."""
    found = [
        path for path in site.rglob("*.html") if path.parent.name not in ("live", "playground")
    ]
    return sorted(p for p in found if p.relative_to(site).as_posix() not in REDIRECTS)


def search(browser: Any, words: str) -> list[str]:
    """The addresses that a search finds."""
    browser.find_element("css selector", ".md-search__button").click()
    press(browser, *words)
    wait(browser, f"({RESULTS}).length > 0")
    found: list[str] = browser.execute_script(f"return {RESULTS}")
    return found


def test_no_page_has_errors_or_is_wider_than_a_telephone_or_needs_another_server(
    browser: Any, site: Path, server: str
) -> None:
    found = []
    for path in pages(site):
        name = path.relative_to(site).as_posix()
        page = visit(browser, f"{server}{name}", 390, 844)
        wait(page, "document.readyState === 'complete'")
        width, requests = page.execute_script(
            "return [document.documentElement.scrollWidth,"
            " performance.getEntriesByType('resource').map(entry => entry.name)]"
        )
        found += [f"{name}: {message}" for message in errors(page)]
        found += [f"{name}: {width} px wide"] * (width > 390)
        found += [f"{name}: {r}" for r in requests if not r.startswith((server, "data:", "blob:"))]
    assert found == []


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_search_finds_a_term_with_and_without_a_server(
    browser: Any, site: Path, server: str, scheme: str
) -> None:
    base = server if scheme == "http" else f"{site.as_uri()}/"
    found = search(visit(browser, f"{base}index.html"), "adjoint")
    assert len(found) > 3
    assert all(address.startswith(base) for address in found)
    browser.get(found[0])
    wait(browser, "document.querySelector('article mark') !== null")  # the term is highlighted
    assert browser.find_elements("css selector", ".md-nav__link")
    assert errors(browser) == []


def test_copy_buttons_leave_out_prompts_and_output(browser: Any, server: str) -> None:
    page = visit(browser, f"{server}learn/train-a-model.html")
    wait(page, "document.querySelector('.md-code__button') !== null")
    copied, shown = page.execute_script(
        """
        const code = document.querySelector(".language-console code");
        const shown = code.innerText;
        code.setAttribute("data-md-copying", "");
        const copied = code.innerText;
        code.removeAttribute("data-md-copying");
        return [copied, shown];"""
    )
    assert shown.startswith("$ cgprimer")
    assert len(shown.strip().splitlines()) > 1
    assert copied.strip().startswith("cgprimer")
    assert len(copied.strip().splitlines()) == 1


def page_with(site: Path, text: str) -> str:
    """The first page whose HTML contains a text."""
    for path in pages(site):
        if text in path.read_text(encoding="utf-8"):
            return path.relative_to(site).as_posix()
    pytest.skip(f"no page contains {text}")


def test_a_live_page_reacts_to_keys(browser: Any, site: Path, server: str) -> None:
    from selenium.webdriver.common.keys import Keys

    page = visit(browser, server + page_with(site, 'src="../live/step-page.html"'))
    frame = page.find_element("css selector", ".live iframe")
    page.execute_script("arguments[0].scrollIntoView()", frame)
    page.switch_to.frame(frame)
    try:
        wait(page, "document.getElementById('count') !== null")
        before = page.find_element("id", "count").text
        page.find_element("tag name", "body").click()
        press(page, Keys.ARROW_RIGHT)
        wait(page, "document.getElementById('count').textContent !== arguments[0]", before)
    finally:
        page.switch_to.default_content()
    assert errors(page) == []


def test_formulas_and_diagrams_are_rendered(browser: Any, site: Path, server: str) -> None:
    page = visit(browser, server + page_with(site, 'class="arithmatex'))
    rendered = ".arithmatex > .katex, .arithmatex .katex-display"
    formulas = page.find_elements("css selector", ".arithmatex")
    assert len(formulas) == len(page.find_elements("css selector", rendered)) > 0
    assert not page.find_elements("css selector", ".katex-error")
    page = visit(browser, server + page_with(site, 'class="diagram"'))
    wait(page, "document.querySelector('.diagram > svg') !== null")
    assert len(page.find_elements("css selector", ".diagram .node")) > 3
    assert errors(page) == []


def test_old_addresses_lead_to_the_new_pages(browser: Any, site: Path, server: str) -> None:
    for old, new in REDIRECTS.items():
        assert f'location.replace("{new}" + location.hash)' in (site / old).read_text("utf-8")
    browser.get(f"{server}training.html#anchor")
    wait(browser, "location.href === arguments[0]", f"{server}{REDIRECTS['training.html']}#anchor")


def test_the_reference_shows_names_sections_and_examples(browser: Any, server: str) -> None:
    page = visit(browser, f"{server}reference/python/derivatives.html")
    text = page.execute_script("return document.querySelector('article').textContent")
    assert page.find_element("id", "cgprimer.gradient").text.startswith("cgprimer.gradient")
    for words in ("Parameters:", "Returns:", "Raises:", ">>> gradient(graph, at)"):
        assert words in text
    assert "``" not in text
    assert ":func:" not in text
    assert page.find_elements("css selector", "article a[href='errors.html#cgprimer.UsageError']")


def test_notebooks_are_rendered_without_solutions(site: Path) -> None:
    folder = site / "learn" / "notebooks"
    books = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
    for book in books:
        html = (folder / f"{book.stem}.html").read_text(encoding="utf-8")
        given = json.dumps(json.loads((folder / book.name).read_text(encoding="utf-8")))
        assert "BEGIN" not in html + given
        assert ("NotImplementedError" in given) is book.stem.startswith("homework")
    assert list((folder / "lecture_from_graph_to_training").glob("*.svg"))
