"""The offline playground, built once, its server, and browsers whose network is cut."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cgprimer.visualization.playground.playground_builder import write_playground
from tests.pages.conftest import Server, serve, start_chromium

CUT = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost"


@pytest.fixture(scope="session")
def playground(pyodide_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the offline form."""
    return write_playground(tmp_path_factory.mktemp("playground"), pyodide=pyodide_folder)


@pytest.fixture(scope="session")
def server(playground: Path) -> Iterator[Server]:
    with serve(playground) as running:
        yield running


@pytest.fixture(scope="session", params=["chromium", "firefox"])
def browser(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    if request.param == "chromium":
        started = start_chromium(tmp_path_factory.mktemp("chromium"), CUT)
    else:
        started = start_firefox()
    yield started
    started.quit()


def start_firefox() -> Any:
    """Firefox through its driver; without them the tests are skipped."""
    pytest.importorskip("selenium", reason="selenium is missing: pip install -e .[browser]")
    program, driver = (
        shutil.which("firefox") or shutil.which("firefox-esr"),
        shutil.which("geckodriver"),
    )
    if not program or not driver:
        pytest.skip("firefox or geckodriver is not installed")
    from selenium import webdriver

    options = webdriver.FirefoxOptions()
    options.add_argument("-headless")
    options.binary_location = program
    started = webdriver.Firefox(options=options, service=webdriver.FirefoxService(driver))
    started.set_page_load_timeout(30)
    started.set_script_timeout(60)
    return started
