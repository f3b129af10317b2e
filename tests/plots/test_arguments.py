"""What is wrong with an argument is said as such: a UsageError, and never one of Python's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer import plot
from cgprimer.errors import UsageError
from tests.plots.plot_tools import moved, run_of

SINE = cgprimer.parse("xw = sin(xa)")
LINE = cgprimer.parse("xw = k*xa + b; parameter k = 3, b = -1")


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("error", {"at": 1}), ("error", {"at": {"xa": "1"}}), ("error", {"of": 1}),
        ("error", {"wrt": 3}), ("error", {"schemes": 3}), ("error", {"steps": "1"}),
        ("error", {"steps": [0.1, "b"]}), ("error", {"steps": []}), ("error", {"steps": -1.0}),
        ("function", {"low": "a"}), ("function", {"high": "b"}), ("function", {"at": [1]}),
        ("function", {"order": 1.5}), ("function", {"order": 7}), ("function", {"order": -1}),
        ("function", {"tangent": "b"}), ("function", {"tangent": np.nan}),
        ("cost", {"family": ["sum"]}), ("cost", {"sizes": "8"}), ("cost", {"methods": 1}),
        ("cost", {"bound": "b"}), ("cost", {"bound": np.inf}), ("swell", {"depths": 2.5}),
        ("swell", {"family": None}), ("surface", {"over": 3}), ("surface", {"data": [1.0]}),
        ("surface", {"ranges": 5}), ("surface", {"ranges": [(0, 1), 2]}),
        ("surface", {"ranges": [("a", 1), (0, 1)]}), ("surface", {"at": [1.0]}),
        ("surface", {"start": {"k": "b"}}), ("surface", {"rates": {"sgd": "fast"}}),
        ("surface", {"rates": 0.1}), ("surface", {"steps": 1.5}), ("surface", {"steps": 0}),
        ("surface", {"seed": "b"}), ("surface", {"loss": 3}), ("surface", {"optimizers": 3}),
        ("loss", {"smooth": 2.5}), ("loss", {"smooth": "all"}), ("loss", {"by": None}),
        ("loss", {"log": 3}), ("parameters", {"names": 3}), ("parameters", {"by": 3}),
    ],
)  # fmt: skip
def test_wrong_arguments(kind: str, arguments: dict[str, Any]) -> None:
    first: dict[str, list[Any]] = {
        "error": [SINE], "function": [SINE], "surface": [LINE], "loss": [run_of([1.0, 0.5])],
        "parameters": [moved({"k": [0.0, 1.0]})],
    }  # fmt: skip
    given = {"at": {"xa": 1}} | arguments if kind == "error" else arguments
    with pytest.raises(UsageError):
        getattr(plot, kind)(*first.get(kind, []), **given)


def test_functions_points_and_errors_of_a_loss() -> None:
    """(2a + b - 3)^2 at b = 0: 9, 1 and 1 for a = 0, 1, 2, its slopes -12, -4 and 4."""
    graph = cgprimer.parse("xw = a*xa + b")
    at = {"xa": 2.0, "b": 0.0, "target": 3.0}
    whole = {"loss": "squared-error", "wrt": "a"}
    figures = [
        plot.function(graph, 0, 2, at=at, **whole),
        plot.points(graph, {**at, "a": [0.0, 1.0, 2.0]}, **whole),
    ]
    for figure in figures:
        value, slope = (line for line in figure.axes[0].lines if "loss" in str(line.get_label()))
        for line, expected in ((value, [9, 1, 1]), (slope, [-12, -4, 4])):
            found = np.interp([0, 1, 2], line.get_xdata(), line.get_ydata())
            assert found == pytest.approx(expected)
    titled = plot.error(graph, {**at, "a": 1.0}, **whole)
    assert "d loss / d a" in titled.axes[0].get_title()
