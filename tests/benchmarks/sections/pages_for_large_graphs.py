"""Pages for large graphs: writing them, and the times in a headless chromium."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from cgprimer import networks
from cgprimer.visualization.diagrams.diagram_formats import save_diagram
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
from tests.pages.conftest import start_chromium

from ..harness import Cell, Contestant, Figure, Settings, measure, report_progress
from ..report import PROGRAMS, Table, fixed, milliseconds

TIMES = ("first drawing", "expand all", "one frame")  # in a browser
COLUMNS = {"vertices": fixed(0), "edges": fixed(0), "write": milliseconds, "size, kB": fixed(0)}
TABLES = (Table(("graph",), {**COLUMNS, **dict.fromkeys(TIMES, milliseconds)}),)
SCRIPT = (PROGRAMS / "explore_a_page.js").read_text()


def measure_in_browser(browser: Any, path: Path, runs: int) -> dict[str, Figure]:
    """Return the least times of opening a page, of drawing all vertices, and of one frame."""
    times = []
    for _ in range(runs):
        browser.get(path.as_uri())
        times.append(browser.execute_async_script(SCRIPT))
    columns = zip(TIMES, zip(*times, strict=True), strict=True)
    return {name: Figure(min(t) / 1e3, median(t) / 1e3, runs) for name, t in columns}


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
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        browser = start_chromium(Path(folder, "chromium"))
        stack.callback(browser.quit)
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
            figures |= measure_in_browser(browser, path, 1 if settings.quick else 5)
            yield from (Cell((name,), column, figure) for column, figure in figures.items())
