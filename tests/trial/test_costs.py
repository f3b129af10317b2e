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


def wide(count: int) -> cgprimer.ExpressionGraph:
    return cgprimer.parse("xw = " + " + ".join(f"p{i}*xa" for i in range(count)))


def test_gradient_with_respect_to_many_names():
    names = [f"p{i}" for i in range(40_000)]
    at = dict.fromkeys(names, 1.0) | {"xa": 2.0}
    assert cgprimer.gradient(wide(40_000), at, wrt=names) == dict.fromkeys(names, 2.0)


def test_data_from_many_true_parameters():
    truth = {f"p{i}": 1.0 for i in range(40_000)}
    made = cgprimer.make_dataset(wide(40_000), truth=truth, samples=2)
    assert made.targets["xw"] == pytest.approx(40_000 * made.inputs["xa"])


def test_path_sum_of_one_long_path():
    graph = chain(40_000)
    found = cgprimer.gradient(graph, wrt="p", method="path-sum")["p"]
    assert found == pytest.approx(cgprimer.gradient(graph, wrt="p")["p"], rel=1e-9)


def test_path_sum_of_many_short_paths():
    names = [f"p{i}" for i in range(9_000)]
    at = dict.fromkeys(names, 1.0) | {"xa": 2.0}
    found = cgprimer.gradient(wide(9_000), at, wrt=names, method="path-sum")
    assert found == dict.fromkeys(names, 2.0)


def test_many_long_paths_are_rejected():
    with refused(PathLimitError, "2,000 ... 2,001,000"):
        cgprimer.gradient(chain(2_000, " + p*xin"), method="path-sum")


def test_trace_of_many_lines():
    shown = str(cgprimer.trace(chain(8_000, " + p*xin")))
    assert shown.count("\n") >= 8_000


def test_comparison_of_a_long_graph_skips_slow_methods():
    shown = str(cgprimer.compare(chain(2_000, " + p*xin")))
    assert "path-sum: the 2,000 paths have 2,001,000 edges" in shown
    assert "symbolic: the expanded expression" in shown


def test_slow_picture_is_rejected():
    names = [f"x{i}" for i in range(400)]
    edges = [*pairwise(names), *(("x0", name) for name in names[2:])]
    with refused(UsageError, "400 ... 79,401"):
        lay_out(dict.fromkeys(names, (40.0, 20.0)), edges, [None] * len(edges))
