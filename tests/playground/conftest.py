"""The offline playground, built once, its server, and browsers whose network is cut."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cgprimer.visualization.playground.playground_builder import write_playground
from tests.pages.conftest import FLAGS

CUT = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost"


class Server(ThreadingHTTPServer):
    """Serves a folder on localhost, and records the requests, with their bodies."""

    requests: list[str]
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

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture(scope="session")
def playground(pyodide_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the offline form."""
    return write_playground(tmp_path_factory.mktemp("playground"), pyodide=pyodide_folder)


@pytest.fixture(scope="session")
def server(playground: Path) -> Iterator[Server]:
    with Server(("localhost", 0), partial(Handler, directory=str(playground))) as running:
        running.requests = []
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


@pytest.fixture(scope="session", params=["chromium", "firefox"])
def browser(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    pytest.importorskip("selenium", reason="selenium is missing: pip install -e .[browser]")
    from selenium import webdriver

    name, driver = request.param, {"chromium": "chromedriver", "firefox": "geckodriver"}
    program = shutil.which(name) or shutil.which(f"{name}-esr")
    if not program or not (path := shutil.which(driver[name])):
        pytest.skip(f"{name} or {driver[name]} is not installed")
    started: Any
    if name == "chromium":
        chrome = webdriver.ChromeOptions()
        for flag in (*FLAGS, CUT, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
            chrome.add_argument(flag)
        chrome.binary_location = program
        chrome.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        started = webdriver.Chrome(options=chrome, service=webdriver.ChromeService(path))
    else:
        firefox = webdriver.FirefoxOptions()
        firefox.add_argument("-headless")
        firefox.binary_location = program
        started = webdriver.Firefox(options=firefox, service=webdriver.FirefoxService(path))
    started.set_page_load_timeout(30)
    started.set_script_timeout(60)
    yield started
    started.quit()
