"""Pages for large graphs: writing them, and the times in a headless chromium."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from cgprimer import networks
from cgprimer.visualization.diagrams.diagram_formats import save_diagram
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram

from ..harness import Cell, Contestant, Figure, Settings, measure, report_progress
from ..report import PROGRAMS, Table, fixed, milliseconds

TABLES = (
    Table(
        ("graph",),
        {
            "vertices": fixed(0),
            "edges": fixed(0),
            "write": milliseconds,
            "size, kB": fixed(0),
            "first drawing": milliseconds,
            "expand all": milliseconds,
            "one frame": milliseconds,
        },
    ),
)
SCRIPT = (PROGRAMS / "explore_a_page.js").read_text()


@contextmanager
def start_browser() -> Iterator[Any]:
    """Start a headless chromium; yield None if it is not installed."""
    try:
        from selenium import webdriver
    except ImportError:
        yield None
        return
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not program or not driver:
        yield None
        return
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in ("--headless=new", "--no-sandbox", "--window-size=1280,800"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    browser.set_script_timeout(120)
    yield browser
    browser.quit()


def measure_in_browser(browser: Any, path: Path, runs: int) -> dict[str, Figure]:
    """Return the least times of opening a page, of drawing all vertices, and of one frame."""
    times: list[list[float]] = []
    for _ in range(runs):
        browser.get(path.as_uri())
        times.append(browser.execute_async_script(SCRIPT))
    columns = ("first drawing", "expand all", "one frame")
    return {
        name: Figure(min(column) / 1e3, median(column) / 1e3, runs)
        for name, column in zip(columns, zip(*times, strict=True), strict=True)
    }


def measure_cells(settings: Settings) -> Iterator[Cell]:
    n = 100 if settings.quick else 10_000
    sizes = "6-12-4-1" if settings.quick else "60-120-40-1"
    graphs = {
        f"network {sizes}": lambda: networks.mlp(sizes, scalars=True),
        "chain": lambda: networks.chain(n),
        "random graph": lambda: networks.random(n),
        "recurrent network": lambda: networks.recurrent(n // 2),
        "long chain": lambda: networks.chain(10 * n),
    }
    with start_browser() as browser, tempfile.TemporaryDirectory() as folder:
        for name, build in graphs.items():
            graph, path = build(), Path(folder, "graph.html")
            parameters = "vertices" if name.startswith("network") else "edges"

            def write(graph: Any = graph, path: Path = path, parameters: str = parameters) -> Any:
                diagram = graph_diagram(graph, parameters=parameters, everything=True)
                save_diagram(diagram, path)
                return diagram

            figures = measure({"write": lambda write=write: Contestant(write)}, settings.budget)
            diagram = write()
            figures |= {
                "vertices": Figure(len(diagram.nodes)),
                "edges": Figure(len(diagram.edges)),
                "size, kB": Figure(path.stat().st_size / 1e3),
            }
            report_progress(name)
            if browser:
                figures |= measure_in_browser(browser, path, 1 if settings.quick else 5)
            yield from (Cell((name,), column, figure) for column, figure in figures.items())
