"""Large graphs that took minutes, or the memory of the machine, when an algorithm was quadratic.

Nothing is timed: a test of a quadratic algorithm takes minutes.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

import cgprimer
from cgprimer.errors import PathLimitError, UsageError
from cgprimer.visualization.diagrams.layout import lay_out
from tests.approval import refused

pytestmark = pytest.mark.slow


def chain(length: int, more: str = "") -> cgprimer.ExpressionGraph:
    lines = [f"xa{i} = sin(xa{i - 1}){more}" for i in range(1, length)]
    return cgprimer.parse(["input xin=0.3; parameter p=0.2", "xa0 = p*xin", *lines])


@pytest.mark.parametrize(("method", "count"), [("reverse", 40_000), ("path-sum", 9_000)])
def test_graph_with_many_parameters(method: str, count: int) -> None:
    names = [f"p{i}" for i in range(count)]
    graph, ones = cgprimer.parse(f"xw = {'*xa + '.join(names)}*xa"), dict.fromkeys(names, 1.0)
    gradient = cgprimer.gradient(graph, ones | {"xa": 2.0}, wrt=names, method=method)
    assert gradient == dict.fromkeys(names, 2.0)
    data = cgprimer.make_dataset(graph, truth=ones, samples=2)
    assert data.targets["xw"] == pytest.approx(count * data.inputs["xa"])


def test_path_sum_of_one_long_path() -> None:
    graph = chain(40_000)
    slope = cgprimer.gradient(graph, wrt="p", method="path-sum")["p"]
    assert slope == pytest.approx(cgprimer.gradient(graph, wrt="p")["p"], rel=1e-9)


def test_many_long_paths_are_rejected_or_skipped() -> None:
    graph = chain(2_000, " + p*xin")
    with refused(PathLimitError, "2,000 ... 2,001,000"):
        cgprimer.gradient(graph, method="path-sum")
    comparison = str(cgprimer.compare(graph))
    assert "path-sum: the 2,000 paths have 2,001,000 edges" in comparison
    assert "symbolic: the expanded expression" in comparison
    assert str(cgprimer.trace(chain(8_000, " + p*xin"))).count("\n") >= 8_000


def test_slow_picture_is_rejected() -> None:
    names = [f"x{i}" for i in range(400)]
    edges = [*pairwise(names), *(("x0", name) for name in names[2:])]
    with refused(UsageError, "400 ... 79,401"):
        lay_out(dict.fromkeys(names, (40.0, 20.0)), edges, [None] * len(edges))
