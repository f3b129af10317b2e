"""The playground in a headless chromium: the first gradient, and the time after an edit."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Any

from cgprimer.visualization.playground.playground_builder import write_playground
from tests.conftest import PYODIDE, download_package
from tests.pages.conftest import start_chromium

from ..harness import Cell, Figure, Settings, report_progress
from ..report import PROGRAMS, Table, fixed

SCRIPT = (PROGRAMS / "edit_the_playground.js").read_text()
COLUMNS = ("least", "median", "most")
TABLES = (
    Table(("seconds",), dict.fromkeys(COLUMNS, fixed(3))),
    Table(("folder",), {"megabytes": fixed(1)}),
)
FIRST_GRADIENT = """
const marks = performance.getEntriesByName("graph-answered");
return marks.length ? marks[0].startTime / 1e3 : null;
"""
IS_CACHED = """
const done = arguments[0];
caches.keys().then(async names => {
  const cache = names.length ? await caches.open(names[0]) : null;
  done(Boolean(cache && navigator.serviceWorker.controller && await cache.match("snapshot.bin")));
});
"""


class Handler(SimpleHTTPRequestHandler):
    """Serves files that browsers may cache, without a log."""

    def log_message(self, format: str, *arguments: object) -> None:
        pass


def wait_for(browser: Any, script: str, *, asynchronous: bool = False, limit: float = 60) -> Any:
    """Return the first true result of a script, which is run again and again."""
    run = browser.execute_async_script if asynchronous else browser.execute_script
    end = time.monotonic() + limit
    while not (result := run(script)):
        if time.monotonic() > end:
            raise TimeoutError(script)
        time.sleep(0.05)
    return result


def measure_visits(folder: Path, address: str, later: int) -> tuple[float, list[float]]:
    """Return the seconds to the first gradient in a new browser, and those of later visits."""
    browser = start_chromium(folder)
    try:
        browser.get(address)
        first = wait_for(browser, FIRST_GRADIENT)
        wait_for(browser, IS_CACHED, asynchronous=True)
        again = []
        for _ in range(later):
            browser.get("about:blank")
            browser.get(address)
            again.append(wait_for(browser, FIRST_GRADIENT))
        return first, again
    finally:
        browser.quit()


def measure_edits(folder: Path, address: str, edits: int) -> dict[str, list[float]]:
    """Return the seconds after edits of a text with 50 vertices, and after a slider moves.

    An edit of an edge changes the layout; an edit of a number does not.
    """
    lines = ["input x0 = 0.5", "x1 = a*x0"]
    lines += [f"x{k} = sin(x{k - 1})*x{max(k - 3, 0)}" for k in range(2, 49)]
    by_edge = [
        "\n".join([*lines, "parameter a = 1"]).replace("*x30\n", f"*x{k}\n") for k in range(edits)
    ]
    by_number = ["\n".join([*lines, f"parameter a = {k}"]) for k in range(edits)]
    browser = start_chromium(folder)
    try:
        browser.get(address)
        wait_for(browser, FIRST_GRADIENT)
        columns = browser.execute_async_script(SCRIPT, by_edge, by_number)
    finally:
        browser.quit()
    rows = ("an edge changes", "a number changes", "a slider moves")
    return {
        f"picture of 50 vertices after {row}": [t / 1e3 for t in times]
        for row, times in zip(rows, columns, strict=True)
    }


def describe(row: str, times: Sequence[float]) -> Iterator[Cell]:
    """Yield the least, the median and the greatest time of a row."""
    for column, value in zip(COLUMNS, (min(times), median(times), max(times)), strict=True):
        yield Cell((row,), column, Figure(value, value, len(times)))


def measure_cells(settings: Settings) -> Iterator[Cell]:
    visits = 1 if settings.quick else 5
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "playground")
        write_playground(folder, pyodide=download_package("pyodide", PYODIDE))
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        symbolic = (folder / "sympy.zip").stat().st_size
        handler = partial(Handler, directory=str(folder))
        with ThreadingHTTPServer(("localhost", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            address = f"http://localhost:{server.server_port}/"
            first, later = [], []
            for visit in range(visits):
                report_progress(f"visit {visit + 1}")
                new, again = measure_visits(Path(scratch, f"browser-{visit}"), address, 2)
                first.append(new)
                later += again
            edits = measure_edits(Path(scratch, "editor"), address, 5 * visits + 1)
            server.shutdown()
    yield from describe("gradient, first visit", first)
    yield from describe("gradient, later visits", later)
    for row, times in edits.items():
        yield from describe(row, times)
    yield Cell(("offline form without SymPy",), "megabytes", Figure((size - symbolic) / 1e6), 1)
    yield Cell(("SymPy, loaded when needed",), "megabytes", Figure(symbolic / 1e6), 1)
