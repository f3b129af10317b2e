"""Single calls of the Python interface on the lecture graph, in a process that is warmed up."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt

import cgprimer

from ..measuring import Entry, Row, contest
from ..settings import Settings, quietly


def calls(settings: Settings) -> list[Row]:
    """Calls that students and lecturers make one at a time."""
    graph = cgprimer.load("lecture")
    text = str(graph)
    data = cgprimer.make_dataset(graph, samples=10_000)
    run = cgprimer.train(graph, data, epochs=2)

    def gradient(method: str) -> Callable[[], object]:
        return lambda: cgprimer.gradient(graph, wrt="xa", method=method)

    with tempfile.TemporaryDirectory() as folder:
        picture, page = Path(folder) / "lecture.svg", Path(folder) / "lecture.html"

        def plot_loss() -> None:
            figure = cgprimer.plot.loss(run)
            figure.savefig(Path(folder) / "loss.png")
            plt.close(figure)

        functions: dict[str, Callable[[], object]] = {
            "`parse`": lambda: cgprimer.parse(text),
            **{f"`gradient`, {method}": gradient(method) for method in cgprimer.methods()},
            "`parse` and `gradient`": lambda: cgprimer.gradient(cgprimer.parse(text), wrt="xa"),
            "`trace` as text": lambda: str(cgprimer.trace(graph)),
            "`compare`": lambda: str(cgprimer.compare(graph)),
            "`export` to C": lambda: cgprimer.export(graph, "c"),
            "`draw` to SVG": lambda: cgprimer.draw(graph, picture),
            "`step` page": lambda: cgprimer.step(graph, output=page),
            "`train`, 1 epoch of 10,000 samples": lambda: cgprimer.train(graph, data, epochs=1),
            "`plot.loss` to PNG": plot_loss,
        }

        def prepare(function: Callable[[], object]) -> Callable[[], Entry]:
            return lambda: Entry(function)

        return contest(
            "calls",
            "one call, lecture graph",
            {name: prepare(function) for name, function in functions.items()},
            None,
            budget=settings.budget,
            progress=quietly,
        )
