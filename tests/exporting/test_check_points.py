"""The points at which an exported file checks itself, and their tolerances."""

from __future__ import annotations

import ast
from typing import Any

import pytest

import cgprimer
from cgprimer.core.operations import primitives


def check_points(text: str, at: dict[str, float], **options: Any) -> list[dict[str, Any]]:
    """Return the check points of an exported Python file."""
    code = cgprimer.export(cgprimer.parse(text), "python", at, **options)
    names: dict[str, Any] = {"__name__": "exported"}
    exec(compile(code, "exported", "exec"), names)  # noqa: S102 - exported by the test
    return list(names["POINTS"])


def test_first_point_has_the_declared_values_and_expected_derivatives() -> None:
    first, *sampled = check_points("xw = k*xa^2", {"k": 2.0, "xa": 3.0}, wrt=["k", "xa"])
    assert first["at"] == {"xa": 3.0, "k": 2.0}
    assert first["right"] == {"xw": 18.0, "d xw / d k": 9.0, "d xw / d xa": 12.0}
    assert len(sampled) == 3
    for point in sampled:
        k, xa = point["at"]["k"], point["at"]["xa"]
        assert (round(k, 3), round(xa, 3)) == (k, xa)
        expected = {"xw": k * xa**2, "d xw / d k": xa**2, "d xw / d xa": 2 * k * xa}
        assert point["right"] == pytest.approx(expected, rel=1e-14)


def test_points_are_near_the_declared_values_and_near_zero() -> None:
    points = check_points("xw = k*sin(xa)", {"k": 2.0, "xa": 100.0})[1:]
    near = [abs(point["at"]["xa"] - 100) <= 1.5 for point in points]
    assert near == [True, False, True]
    assert all(
        abs(p["at"]["xa"]) <= 1.5 for p, is_near in zip(points, near, strict=True) if not is_near
    )
    points = check_points("xw = k*log(xa - 98)", {"k": 2.0, "xa": 100.0})
    assert len(points) == 4  # no point near 0 is in the domain
    assert all(abs(point["at"]["xa"] - 100) <= 1.5 for point in points)


@pytest.mark.parametrize(
    ("text", "at", "least", "most"),
    [
        ("xw = k*xa^2", {"k": 1.25, "xa": 0.75}, 1e-14, 3e-14),
        ("xw = (k + 1e10) - 1e10", {"k": 1.25}, 1e-6, 1e-4),  # cancellation
        ("xw = k*step(xa*3 - 0.3)", {"k": 1.25, "xa": 0.1}, 5e-14, 2e-13),  # a tie
    ],
)
def test_tolerances_cover_rounding_and_nothing_else(
    text: str, at: dict[str, float], least: float, most: float
) -> None:
    first = check_points(text, at)[0]
    assert least <= first["within"]["xw"] / abs(first["right"]["xw"]) <= most


@pytest.mark.parametrize(
    ("text", "at", "smooth"),
    [
        ("xw = relu(k)", 0.0, False), ("xw = relu(k)", 0.5, True), ("xw = abs(k)", 0.0, False),
        ("xw = k^2", 0.0, True), ("xw = sqrt(k)", 0.0, False),
    ],
)  # fmt: skip
def test_kinks_are_not_smooth(text: str, at: float, smooth: bool) -> None:
    assert check_points(text, {"k": at})[0]["smooth"] is smooth


def test_derivatives_that_are_zero_have_further_points() -> None:
    """A derivative is 0 at the declared values and at the three sampled points."""
    points = check_points("xw = k*relu(xa - 1)", {"k": 2.0, "xa": 0.0})
    assert [bool(point["right"]["d xw / d k"]) for point in points] == [False] * 4 + [True]
    assert len(check_points("xw = k*relu(xa - 3)", {"k": 2.0, "xa": 0.0})) == 4  # none is found


def test_exported_functions_have_no_annotations() -> None:
    rows = [row for row in primitives() if row.built_in and row.name not in ("neg", "copy")]
    calls = [
        f"{row.spelling}({', '.join('abc'[: row.arity])})" for row in rows if row.spelling.isalnum()
    ]
    graph = cgprimer.parse(f"parameter a = 0.4, b = 0.7, c = 1.5; w = {' + '.join(calls)}")
    tree = ast.parse(cgprimer.export(graph, "python"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert len(functions) > 20
    assert all(node.returns is None for node in functions)
    assert all(not isinstance(n, ast.arg) or n.annotation is None for n in ast.walk(tree))
