"""The tables that a trace shows for methods which propagate neither tangents nor adjoints."""

from __future__ import annotations

import csv
import io
import math

import pytest

import cgprimer
from tests.cli.cli_tools import good, read_json

LECTURE = cgprimer.load("lecture")


def table(method: str, **options: object) -> list[list[str]]:
    text = cgprimer.trace(LECTURE, wrt="xa", method=method, **options).to_table("csv")
    return list(csv.reader(io.StringIO(text)))


@pytest.mark.parametrize("method", ["finite-difference", "symbolic", "path-sum"])
def test_the_last_number_is_the_derivative(method: str) -> None:
    assert float(table(method)[-1][-1]) == pytest.approx(161.8125, rel=1e-9)


def test_path_sum_lists_paths_and_products() -> None:
    _, *rows, total = table("path-sum")
    assert [path for path, _, _ in rows] == [
        "xa -> xx -> xw",
        "xa -> xx -> xz -> xw",
        "xa -> xy -> xz -> xw",
        "xa -> xx -> xy -> xz -> xw",
    ]
    for _, partials, product in rows:
        factors = [float(f.strip("()")) for f in partials.split(" * ")]
        assert math.prod(factors) == pytest.approx(float(product), rel=1e-5)
    assert sum(float(product) for *_, product in rows) == float(total[-1]) == 161.8125


def test_a_negative_partial_stands_in_parentheses() -> None:
    """The two paths of the hand-written notes: -w3*w1 = -1.5 and -w4*w2 = 4."""
    notes = cgprimer.load("two_paths")
    trace = cgprimer.trace(notes, wrt="a", method="path-sum")
    assert trace.steps is not None
    products = {row[0]: row[2] for row in trace.steps.rows}
    assert products == {
        "a -> b -> d -> L": -1.5,
        "a -> c -> d -> L": 4.0,
        "sum over all paths": 2.5,
    }
    assert "(-1)" in trace.to_table()


def test_symbolic_lists_the_formula_of_each_variable() -> None:
    _, *rows = table("symbolic")
    assert [(name, derivative) for name, _, derivative, _ in rows] == [
        ("xx'", "2*xa"),
        ("xy'", "ab*xx' + ac"),
        ("xz'", "bc*xx' + xy'"),
        ("xw'", "cd*xx' + 3*xz^2*xz'"),
    ]
    assert [float(value) for *_, value in rows] == [1, 5, 7, 161.8125]


@pytest.mark.parametrize(
    ("scheme", "step", "columns"),
    [("central", 1e-3, 2), ("forward", 1e-3, 2), ("complex-step", 1e-20, 1)],
)
def test_finite_differences_list_evaluations_and_quotients(
    scheme: str, step: float, columns: int
) -> None:
    header, *rows = table("finite-difference", scheme=scheme, step=step)
    assert len(header) == 3 + columns
    for _, _, *evaluations, quotient in rows:
        numbers = [float(evaluation) for evaluation in evaluations]
        low, high = numbers[0], numbers[-1]
        expected = {
            "central": (high - low) / (2 * step),
            "forward": (high - low) / step,
            "complex-step": low / step,
        }[scheme]
        assert float(quotient) == pytest.approx(expected, rel=1e-9)
    assert [row[0] for row in rows] == ["xa", "xx", "v1", "v2", "xy", "v3", "xz", "v4", "v5", "xw"]


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("y = x^2 + stop_gradient(x)", {"method": "symbolic"}),
        ("input x[2] = [1, 2]; y = sum(x^2)", {"method": "path-sum", "wrt": "x[0]"}),
        ("xb = xa^2; y = xb^2", {"method": "finite-difference", "wrt": "xb"}),
    ],
)
def test_without_such_steps_the_trace_is_a_forward_table(text: str, settings: dict) -> None:
    at = {n: 2.0 for n in ("x", "xa") if n in text and "[" not in text}
    graph = cgprimer.parse(text)
    trace = cgprimer.trace(graph, at and {n: at[n] for n in graph.inputs}, **settings)
    assert trace.steps is None
    assert "tangent" in trace.to_table()


def test_the_command() -> None:
    text = good("trace", "lecture", "--method", "path-sum")
    assert "sum over all paths" in text
    data = read_json("trace", "lecture", "--method", "path-sum", "--json")
    assert data["steps"]["rows"][-1] == ["sum over all paths", "", 161.8125]
    assert data["rows"][-1]["tangent"] == 161.8125
    latex = good("trace", "lecture", "--method", "symbolic", "--format", "latex")
    assert r"\mathit{xx}'" in latex
    assert "^" not in latex.replace("^{", "")
