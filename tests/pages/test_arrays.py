"""Stepping through graphs with arrays: matrices by reverse mode, numbers by every method."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.core.graph import parse
from cgprimer.errors import DifferentiationError, UsageError
from cgprimer.visualization.pages.stepping.slide_tables import format_value, measure_columns
from cgprimer.visualization.pages.stepping.step_frames import stepping
from cgprimer.visualization.pages.stepping.step_page import render_step_page, write_steps
from cgprimer.visualization.pages.stepping.step_slides import format_headline
from cgprimer.visualization.pages.stepping.step_values import encode_value
from tests.approval import refused
from tests.pages.conftest import opened

F1 = """input x[2] = [1, 2]; parameter w1[2,2] = [[1, -1], [.5, -2]], w2[2] = [1, 3], y = 1
xh = x @ w1; xr = relu(xh); xp = xr @ w2; xL = (xp - y)^2"""
OTHERS = ("forward", "path-sum", "finite-difference")


def data_of(text: str) -> Any:
    found = re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', text, re.DOTALL)
    assert found
    return json.loads(found[1])


def test_the_lecture_steps_back_in_matrices() -> None:
    """F1: the adjoints become known from the output on, as in the lecture's three steps."""
    shown = stepping(parse(F1), methods=("reverse",))
    frames, rows = shown.frames("reverse"), shown.scene.row_indices
    exact = {"xp": 2.0, "w2": [4, 0], "xr": [2, 6], "xh": [2, 0], "w1": [[2, 0], [4, 0]]}
    first = {}
    for name, adjoint in exact.items():
        there = [f.number for f in frames if f.derivatives[rows[name]] is not None]
        first[name] = there[0]
        np.testing.assert_array_equal(frames[-1].derivatives[rows[name]], adjoint)
    assert first["xp"] < first["xr"] < first["w2"] < first["xh"] < first["w1"]
    np.testing.assert_array_equal(frames[-1].values[rows["xh"]], [2, -5])
    edge = shown.scene.edges.index(("w1", "xh"))
    np.testing.assert_array_equal(frames[-1].partials[edge], [[2, 0], [4, 0]])


@pytest.mark.parametrize("method", ["reverse", *OTHERS])
def test_every_method_steps_through_the_numbers(method: str) -> None:
    shown = stepping(parse(F1), methods=(method,), wrt=["w1", "y"], scalars=True)
    assert shown.scene.wrt == ("w1[0,0]", "w1[0,1]", "w1[1,0]", "w1[1,1]", "y")
    results = shown.frames(method)[-1].results
    assert results == pytest.approx([2, 0, 4, 0, -2], abs=1e-6)


def test_slides_of_what_knows_numbers_alone_are_of_numbers() -> None:
    assert stepping(parse(F1), methods=("forward",)).scene.row_indices["w1[1,0]"] >= 0


def test_a_page_shows_matrices_and_says_how_to_see_numbers() -> None:
    shown = stepping(parse(F1))
    read = data_of(render_step_page(shown))
    assert read["first"] == "reverse"
    assert read["arrays"] is True
    assert read["point"]["w1"] == {"text": "[[1, -1], [0.5, -2]]", "shape": "[2,2]"}
    refused = {walk["method"]: walk["refusal"] for walk in read["walks"]}
    assert all("--scalars" in refused[method] for method in OTHERS)
    assert not refused["reverse"]
    assert data_of(render_step_page(stepping(parse(F1), scalars=True)))["arrays"] is False


def test_large_arrays_are_written_short() -> None:
    assert encode_value(np.full((8, 8), 0.5)) == {"text": "[8,8], norm 4", "shape": "[8,8]"}


def test_what_a_step_computes_is_a_matrix_where_it_stands_alone() -> None:
    shown = stepping(parse("input x[3] = [1, -2, 0.5]; parameter W[4,3] = 0.1; xl = sum(W @ x)"))
    whole = "[[1, -2, 0.5], [1, -2, 0.5], [1, -2, 0.5], [1, -2, 0.5]]"
    written = data_of(render_step_page(shown))["walks"]
    numbers = next(walk["numbers"] for walk in written if walk["method"] == "reverse")
    assert {"text": "[4,3], norm ≈4.58", "shape": "[4,3]", "whole": whole} in numbers
    frame = shown.frames("reverse")[-1]
    assert format_headline(frame).endswith(f" = {whole}")
    wide = measure_columns(shown, "reverse")  # names and expressions have room on a slide
    assert wide.value + wide.derivative < 220
    assert format_value(np.ones((4, 3)), wide.short) == "norm ≈3.46"
    assert format_value(np.ones((2, 1)), wide.short) == "[[1], [1]]"


def test_what_cannot_be_stepped_through_is_said() -> None:
    with refused(DifferentiationError, "'xh'"):
        stepping(parse(F1), of="xh")
    big = parse("input x[64] = .1; parameter W[64,64] = .01; xl = sum(tanh(W @ x))")
    with refused(DifferentiationError, "5,000"):
        stepping(big, methods=("reverse",), scalars=True)
    assert len(stepping(big).frames("reverse")) < 30


def test_slides_and_animations(tmp_path: Path) -> None:
    shown = stepping(parse("input x[2] = [1, 2]; xl = sum(x^2)"), wrt="x", methods=("reverse",))
    write_steps(shown, tmp_path / "svg", method="reverse", kind="svg")
    last = sorted((tmp_path / "svg").iterdir())[-1].read_text()
    assert "[2, 4]" in last
    write_steps(shown, tmp_path / "steps.gif", method="reverse", dark=True)
    assert (tmp_path / "steps.gif").stat().st_size > 1_000


@pytest.mark.browser
def test_in_a_browser(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "arrays.html"
    cgprimer.step(parse(F1), output=path)
    opened(browser, path)
    browser.execute_script("document.getElementById('end').click()")
    texts = browser.execute_script(
        "return [...document.querySelectorAll('#graph text')].map(t => t.textContent)"
    )
    assert {"[[1, -1], [0.5, -2]]", "bar [[2, 0], [4, 0]]", "[2,2]", "bar [2, 6]"} <= {*texts}
    body = browser.execute_script("return document.body.textContent")
    assert "create the page with --scalars" in body
    assert not browser.execute_script("return document.querySelectorAll('.odd').length")
    browser.execute_script("document.querySelectorAll('#tabs button')[0].click()")
    assert "can show the steps of scalars only" in browser.execute_script(
        "return document.body.textContent"
    )
    assert not browser.get_log("browser")


def test_one_number_of_an_array_is_stepped_through_among_numbers() -> None:
    with refused(UsageError, "'w1[0,1]' ... --scalars"):
        stepping(parse(F1), wrt="w1[0,1]")
    assert stepping(parse(F1), wrt="w1[0,1]", scalars=True).frames("forward")
