"""Tables worked out: the lectures' numbers, the house's traces and optimizers, torch's steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.course.checks.sheets.optimizer_worksheet import RULES
from cgprimer.course.checks.sheets.sheet_problems import Problem, Worksheet
from cgprimer.course.checks.sheets.sheet_questions import build_worksheet
from cgprimer.course.checks.sheets.sheet_tables import evaluate_formula
from cgprimer.support.files import find_examples
from cgprimer.training.optimizers import optimizer
from tests.approval import refused
from tests.exercises.neatness import ROWS


def made(kind: str, text: str, **asked: object) -> Worksheet:
    if text in find_examples():
        text = Path(find_examples()[text]).read_text(encoding="utf-8")
    return build_worksheet(Problem(kind, text, {"digits": 0, **asked}))


def column(table: Worksheet, heading: str) -> dict[str, Any]:
    return {blank.row: blank.value for blank in table.blanks if blank.column == heading}


def test_of_a_softmax_no_row_is_asked_that_no_student_writes() -> None:
    text = "input x[3] = [1, 2, 3], t[3] = [0, 0, 1]\nxp = softmax(x); xL = -sum(t*log(xp))"
    (problem,) = cgprimer.exercise(cgprimer.parse(text), kinds="shapes", seed=1).problems
    table = build_worksheet(problem)
    values = column(table, "value")
    assert [*values] == ["xp", "xL", "bar_xL", "bar_t", "bar_xp", "bar_x"]
    known = {**table.known_values, **values}
    for blank in table.blanks:  # it follows from what is asked before: so mistakes are followed
        if blank.tree is not None:
            np.testing.assert_allclose(evaluate_formula(blank.tree, known), blank.value, rtol=1e-12)
    t = known["t"]
    np.testing.assert_allclose(values["bar_x"], values["xp"] * t.sum() - t, rtol=1e-12)
    told_before = replace(problem, asked={"digits": 4, "of": "xL"})  # sheets that are handed out
    assert "v4" in column(build_worksheet(told_before), "value")


def test_the_lecture_example() -> None:
    """Case A1."""
    adjoints = column(made("adjoint", "lecture"), "adjoint")
    asked = {name: adjoints[name] for name in ("ab", "bc", "cd", "ac", "xa")}
    assert asked == {"ab": 5.671875, "bc": 5.671875, "cd": 0.25, "ac": 11.34375, "xa": 161.8125}
    values = column(made("trace", "lecture"), "value")
    assert [values[n] for n in ("xx", "xy", "xz", "xw")] == [0.25, 2.25, 2.75, 21.546875]
    assert column(made("tangent", "lecture", wrt="xa"), "tangent")["xw"] == 161.8125
    along = column(made("paths", "lecture", of="xw", wrt="xa"), "derivative")
    paths = [value for row, value in along.items() if row.startswith("path")]
    assert paths == [3.0, 45.375, 90.75, 22.6875]
    assert along["dxw/dxa"] == sum(paths) == 161.8125
    found = made("gradient", "lecture", of="xw", wrt=["ab", "xa"])
    assert column(found, "number") == {"xw": 21.546875, "dxw/dab": 5.671875, "dxw/dxa": 161.8125}


LECTURES = {  # graphs of scalars
    name: Path(path).read_text(encoding="utf-8")
    for name, path in find_examples().items()
    if name != "batch_normalization" and not any(cgprimer.load(name).shapes.values())
} | {
    "powers of two": "parameter a = 3; b = a + a; c = b + b",
    "cube": "input x = 3; y = x*x*x",
}


@pytest.mark.parametrize("name", LECTURES)
@pytest.mark.parametrize("level", ["operations", "variables"])
def test_formulas_of_rows_have_the_values_of_traces(name: str, level: str) -> None:
    """Traces are compared with the numbers of the lectures in tests/cases."""
    text, graph = LECTURES[name], cgprimer.parse(LECTURES[name])
    of, seed = graph.outputs[0], (graph.parameters or graph.inputs)[0]
    rows = cgprimer.trace(graph, of=of, method="reverse", level=level).rows
    table = made("adjoint", text, of=of, level=level)
    expected = pytest.approx({row.name: row.derivative for row in rows}, rel=1e-12)
    assert column(table, "adjoint") == expected
    computed = {**table.known_values, **column(table, "value")}
    values = {row.name: row.value for row in rows}
    assert {name: computed[name] for name in values} == pytest.approx(values, rel=1e-12)
    tangents = cgprimer.trace(graph, of=of, wrt=seed, level=level).rows
    if any(row.name == seed for row in tangents):
        table = made("tangent", text, of=of, wrt=seed, level=level)
        expected = pytest.approx({row.name: row.derivative for row in tangents}, rel=1e-12)
        assert column(table, "tangent") == expected


def test_matrices_go_back_as_in_the_lecture() -> None:
    """Case F1."""
    found = column(made("shapes", "matrix_backpropagation"), "value")
    shapes = column(made("shapes", "matrix_backpropagation"), "shape")
    assert np.array_equal(found["bar_w2"], [[4], [0]])
    assert np.array_equal(found["bar_w1"], [[2, 0], [4, 0]])
    assert np.array_equal(found["h_relu"], [[2, 0]])
    assert (shapes["bar_w1"], shapes["bar_h"], shapes["L"]) == ("2x2", "1x2", "number")


STATES = {
    "sgd": (), "momentum": ("v",), "nesterov": ("v",), "adagrad": ("s",), "rmsprop": ("s",),
    "adam": ("m", "v"),
}  # fmt: skip


@pytest.mark.parametrize("rule", STATES)
def test_rules_on_sheets_are_those_of_the_optimizers(rule: str) -> None:
    settings = {"rate": 0.25, "beta": 0.5, "alpha": 0.75, "beta1": 0.5, "beta2": 0.75, "t": 3.0}
    used = {name: v for name, v in settings.items() if name in RULES[rule]}
    state = {part: {"a": 1.0 + k, "b": 2.0} for k, part in enumerate(STATES[rule])}
    table = made("optimizer", "parameter a = 4, b = -5; L = 2*a^2 + 3*b^2", rule=rule, of="L",
                 wrt=["a", "b"], state=state, settings=used)  # fmt: skip
    house = optimizer(rule)
    hyper = {n: v for n, v in used.items() if n in house.hyper}
    house = house.but({**hyper, **({"epsilon": 0.0} if "epsilon" in house.hyper else {})})
    before = tuple(np.array([state[part]["a"], state[part]["b"]]) for part in STATES[rule])
    before += (np.array(2.0),) if rule == "adam" else ()
    expected, _ = house.update(np.array([4.0, -5.0]), np.array([16.0, -30.0]), before, 0.25)
    last = [blank.value for blank in table.blanks if blank.row == "p'"]
    assert last == pytest.approx(expected.tolist(), rel=1e-14)


def step(rule: str, text: str, **settings: float) -> list[float]:
    names = list(cgprimer.parse(text).parameters)
    table = made("optimizer", text, rule=rule, of="L", wrt=names, state={}, settings=settings)
    return [blank.value for blank in table.blanks if blank.row == "p'"]


def test_steps_of_the_lectures() -> None:
    """Cases F8 and F12."""
    assert step(
        "proximal l1", "parameter a = 0.5, b = -0.03; L = a - 0.2*b", rate=0.1, **{"lambda": 0.1}
    ) == pytest.approx([0.38, 0.0])
    decay = step("weight decay", "parameter a = 1; L = 0.2*a", rate=0.1, **{"lambda": 0.5})
    assert decay == pytest.approx([0.88])
    norm = step("max-norm", "parameter a = 3, b = 4; L = 0*a + 0*b", rate=0.1, c=1.0)
    assert norm == pytest.approx([0.6, 0.8])
    for t, rate in enumerate((0.1, 0.09, 0.081, 0.0729)):
        moved = step("decaying rate", "parameter a = 1; L = a", rate=0.1, gamma=0.9, t=float(t))
        assert moved == pytest.approx([1 - rate])


def test_questions_about_a_picture() -> None:
    questions = [
        ["inputs"], ["depends_on", "xw"], ["leads_to", "xx"], ["count", "xa", "xw"],
        ["path", "xa", "xw", ["xa", "xx", "xz", "xw"]], ["sum", "xa", "xw"],
    ]  # fmt: skip
    table = made("picture", "lecture", questions=questions)
    found = [blank.value for blank in table.blanks]
    assert found == ["xa", "xx, xz", "xy, xz, xw", 4.0, 45.375, 161.8125]
    assert table.picture == {"partials": True}
    assert made("picture", "lecture", questions=questions[:4]).picture == {}


def test_the_first_wrong_row_is_found() -> None:
    """Adjoints of e = (a + b)*(b + 1) at (2, 1), of which that of b overwrites."""
    shown = [3.0, 2.0, 6.0, 1.0, 3.0, 2.0, 2.0, 2.0]  # c, d, e, then e, d, c, b, a
    table = made("mistake", "olah", table="adjoint", shown=shown)
    assert [blank.value for blank in table.blanks] == ["b", 5.0]
    shown[5] = -2.0  # c: b and a follow
    shown[6], shown[7] = 1.0, -2.0
    table = made("mistake", "olah", table="adjoint", shown=shown)
    assert [blank.value for blank in table.blanks] == ["c", 2.0]


@pytest.mark.parametrize(("kind", "text", "asked"), ROWS["damaged questions"])
def test_damaged_questions_are_rejected(kind: str, text: str, asked: dict[str, Any]) -> None:
    with refused(cgprimer.CgprimerError):
        build_worksheet(Problem(kind, text, {"digits": 0, **asked}))
