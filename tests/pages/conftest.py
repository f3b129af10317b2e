"""A headless chromium, started once for all tests of a process that need one; data of a page."""

from __future__ import annotations

import json
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import cgprimer
from tests.checking.submissions import read_sections, read_tables

SCRIPTS = dict(read_sections(Path(__file__).with_name("scripts.txt")))
TABLES = read_tables(Path(__file__).with_name("tables.txt"))
# Sums in an unusual order; a shared operation; the lecture's arrays with known derivatives.
GRAPHS = {"LECTURE": cgprimer.load("lecture").text, **dict(TABLES["graphs"])}
FLAGS = (  # in addition to those of chromedriver
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--disable-component-update",
    "--hide-scrollbars",
)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    started = start_chromium(tmp_path_factory.mktemp("chromium"))
    yield started
    started.quit()


def start_chromium(folder: Path, *flags: str) -> Any:
    """Debian's chromium through its driver; without them the tests are skipped."""
    pytest.importorskip("selenium", reason="selenium is missing: pip install -e .[browser]")
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not program or not driver:
        pytest.skip("chromium is not installed: apt-get install chromium chromium-driver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, *flags, f"--user-data-dir={folder}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    started.set_page_load_timeout(30)
    started.set_script_timeout(60)
    return started


class Server(ThreadingHTTPServer):
    """A server of a folder on this machine, which records the requests with their headers."""

    requests: list[str]
    address = ""
    is_down = False


class Handler(SimpleHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requests.append(f"{self.command} {self.path} {self.headers}")
        if self.server.is_down:
            self.send_error(503)
        else:
            super().do_GET()

    do_POST = do_PUT = do_GET

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")  # tests rewrite files within a second
        super().end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Keep the output of the tests clean."""


@contextmanager
def serve(folder: Path) -> Iterator[Server]:
    """Serve a folder."""
    with Server(("localhost", 0), partial(Handler, directory=str(folder))) as running:
        running.requests, running.address = [], f"http://localhost:{running.server_port}/"
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


@pytest.fixture(autouse=True)
def console(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check that no page of a test leaves an error in the console."""
    if "browser" not in request.fixturenames:
        yield
        return
    browser = request.getfixturevalue("browser")
    browser.get("about:blank")  # so that the same address is loaded again
    browser.get_log("browser")
    yield
    assert browser.get_log("browser") == []


def resize(browser: Any, width: int, height: int) -> None:
    """Make the visible page exactly so large."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def measured(browser: Any, script: str) -> Any:
    """What a script finds once a frame is drawn: only then have pictures followed their panes."""
    browser.execute_async_script(
        "const [done] = arguments; requestAnimationFrame(() => requestAnimationFrame(() => done()))"
    )
    return browser.execute_script(script)


def wait(browser: Any, condition: str, *given: Any) -> None:
    """Until a condition holds, however busy the machine is."""
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 30, 0.05).until(
        lambda b: b.execute_script(f"return {condition}", *given), condition
    )


def opened(browser: Any, path: Path, width: int = 1280, height: int = 720) -> Any:
    """The browser with a page of this folder open."""
    resize(browser, width, height)
    browser.get(path.as_uri())
    return browser


def open_steps(browser: Any, folder: Path, graph: Any, at: Any = None, **options: Any) -> Any:
    """The browser with a new page of steps open; ``size`` is that of its window."""
    size = options.pop("size", (1280, 720))
    cgprimer.step(graph, at, output=folder / "page.html", **options)
    return opened(browser, folder / "page.html", *size)


def texts(browser: Any, query: str) -> list[str]:
    found: list[str] = browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map(n => n.textContent)", query
    )
    return found


def press(browser: Any, *keys: str) -> None:
    """Press keys: characters, and names such as HOME."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    for key in keys:
        ActionChains(browser).send_keys(getattr(Keys, key, key)).perform()


def move(browser: Any, query: str, value: object, event: str = "input") -> None:
    """Give a control a value, as a user does."""
    browser.execute_script(SCRIPTS["give a control a value"], query, str(value), event)


def read_data(page: str) -> dict[str, Any]:
    """Return the data that a page of steps contains."""
    found = re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


def find_violations(browser: Any, axe: str) -> list[str]:
    """The violations of accessibility rules in a page and in its frames from the same server."""
    browser.execute_script(axe)
    for frame in browser.find_elements("css selector", "iframe"):
        browser.switch_to.frame(frame)
        browser.execute_script(axe)
        browser.switch_to.default_content()
    found: list[str] = browser.execute_async_script(SCRIPTS["find violations"])
    return found
