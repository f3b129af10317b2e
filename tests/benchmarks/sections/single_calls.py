"""Single calls of the Python interface on the lecture graph, in a process that is warmed up."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt

import cgprimer

from ..harness import Cell, Contestant, Settings, measure, one_row_each
from ..report import Table, milliseconds

TABLES = (Table(("call",), {"time": milliseconds}),)


def measure_cells(settings: Settings) -> Iterator[Cell]:
    graph = cgprimer.load("lecture")
    text = str(graph)
    data = cgprimer.make_dataset(graph, samples=10_000)
    run = cgprimer.train(graph, data, epochs=2)
    with tempfile.TemporaryDirectory() as folder:

        def plot_loss() -> None:
            figure = cgprimer.plot.loss(run)
            figure.savefig(Path(folder, "loss.png"))
            plt.close(figure)

        def gradient(method: str) -> object:
            return cgprimer.gradient(graph, wrt="xa", method=method)

        functions: dict[str, Callable[[], object]] = {
            "`parse`": lambda: cgprimer.parse(text),
            **{f"`gradient`, {m}": partial(gradient, m) for m in cgprimer.methods()},
            "`parse` and `gradient`": lambda: cgprimer.gradient(cgprimer.parse(text), wrt="xa"),
            "`trace` as text": lambda: str(cgprimer.trace(graph)),
            "`compare`": lambda: str(cgprimer.compare(graph)),
            "`export` to C": lambda: cgprimer.export(graph, "c"),
            "`draw` to SVG": lambda: cgprimer.draw(graph, Path(folder, "lecture.svg")),
            "`step` page": lambda: cgprimer.step(graph, output=Path(folder, "lecture.html")),
            "`train`, 1 epoch of 10,000 samples": lambda: cgprimer.train(graph, data, epochs=1),
            "`plot.loss` to PNG": plot_loss,
        }
        makers = {name: partial(Contestant, function) for name, function in functions.items()}
        yield from one_row_each(measure(makers, settings.budget))
