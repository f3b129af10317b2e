"""Inputs that are labels: kept, declared, given as an option, or recognized in a loss."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import cgprimer
from cgprimer.course.checks.gradient_check import build_gradient_check, format_gradient_skeleton
from cgprimer.course.checks.gradient_questions import build_question
from cgprimer.course.checks.label_domains import infer_domains
from cgprimer.course.checks.question_points import choose_points
from tests.approval import approved, refused
from tests.checking.submissions import Submission, read_submissions, read_tables, sample
from tests.cli.cli_tools import run

SCORE = "input x = 0.7, y = 1; parameter w = 0.4, b = 0.1; p = sigmoid(w*x + b);"
BCE = f"{SCORE} l = -(y*log(p) + (1 - y)*log(1 - p))"
#: The graphs that rows of tables name by a word.
GRAPHS = {
    "SCORE": SCORE,
    "BCE": BCE,
    "DECLARED": BCE.replace("y = 1", "y = 1 in {0, 1}"),
    "CLASSES": "input y[3] = [0, 1, 0], x[2] = [0.5, -1]; parameter W[3,2], b[3];",
}
TABLES = read_tables("labels.txt")
RIGHT, WRONG = read_submissions("label_programs.txt")
SOURCE = "import math\n" + WRONG[0].source.replace("exp(", "math.exp(")


def parse(text: str) -> cgprimer.ExpressionGraph:
    """Return a graph of the tables."""
    return cgprimer.parse(re.sub("[A-Z]{3,}", lambda word: GRAPHS[word[0]], text))


@pytest.mark.parametrize("program", [*RIGHT, *WRONG], ids=str)
def test_programs_are_called_with_labels(program: Submission) -> None:
    """A right program has all points; the note of a wrong one states its points."""
    graph, gradient = cgprimer.parse(program.settings["graph"]), program.define()["gradient"]
    for k, asked in enumerate(program.settings["asked"]):
        result = cgprimer.check_gradient(graph, gradient, **asked)
        expected = ast.literal_eval(program.note)[k] if program.note else result.possible
        assert result.points == expected, str(result)


@pytest.mark.parametrize(("text", "settings", "values"), TABLES["asked"])
def test_values_that_are_asked(text: str, settings: str, values: str) -> None:
    question = build_question(parse(text), **ast.literal_eval(settings))
    arguments = choose_points(question, 30).arguments
    columns = [np.atleast_2d(arguments[element]) for element in question.list_elements("y")]
    rows = {tuple(row) for row in np.concatenate(columns).T}
    assert {row[0] if len(row) == 1 else row for row in rows} == ast.literal_eval(values)


@pytest.mark.parametrize(("text", "domain"), TABLES["domains"])
def test_labels_are_recognized_and_no_other_inputs(text: str, domain: str) -> None:
    found = {name: label.domain for name, label in infer_domains(parse(text), ()).items()}
    assert found == ({} if domain == "None" else {"y": ast.literal_eval(domain)})


def test_notes_about_labels() -> None:
    declared = build_question(cgprimer.parse(BCE.replace("y = 1", "y = 0.3")))
    assert not declared.domains
    assert "y is sampled as real numbers" in declared.notes[0]
    (inferred,) = build_question(parse("BCE")).notes
    assert "inferred" in inferred
    assert "y is sampled from {0, 1}" in inferred
    assert not build_question(parse("BCE"), keep="y").notes
    several = cgprimer.parse(RIGHT[-1].settings["graph"])
    assert any("--keep y1,y2" in note for note in build_question(several).notes)
    formula = cgprimer.check_formula(parse("BCE"), "(p - y)*x, p - y")
    assert inferred in formula.notes


def test_students_are_told_the_domain() -> None:
    text = format_gradient_skeleton(build_gradient_check(parse("BCE")))
    assert "# y: a number in {0, 1}" in text
    graph = parse("CLASSES l = -y @ log_softmax(W @ x + b)")
    batch = format_gradient_skeleton(build_gradient_check(graph, batch=2))
    assert "# y: a list of arrays of shape [3], one-hot, one per sample" in batch


@pytest.mark.parametrize(("text", "answer", "settings"), TABLES["formulas"])
def test_formulas_at_labels(text: str, answer: str, settings: str) -> None:
    asked = [text] if answer == "None" else [parse(text), answer]
    result = cgprimer.check_formula(*asked, **ast.literal_eval(settings))
    assert result.points == result.possible, str(result)


@pytest.mark.parametrize("kind", sample(["gradient", "adjoint", "tangent", "trace"], 2))
def test_sheets_have_labels(kind: str) -> None:
    sheet = cgprimer.exercise(parse("BCE"), kinds=kind, count=6, seed=1)
    asked = [cgprimer.parse(problem.graph) for problem in sheet.problems]
    assert {one.values["y"] for one in asked} <= {0.0, 1.0}
    assert all(one.domains == {"y": (0.0, 1.0)} for one in asked)
    assert len({one.values["w"] for one in asked}) > 1
    kept = cgprimer.exercise(parse("BCE"), kinds=kind, count=4, seed=1, keep=["x", "y"])
    points_asked = [cgprimer.parse(problem.graph).values for problem in kept.problems]
    assert {(one["x"], one["y"]) for one in points_asked} == {(0.7, 1.0)}


def test_sheets_with_a_domain() -> None:
    graph = cgprimer.parse("input s, t; parameter a, b; o = (a*s + b)*t + s")
    sheet = cgprimer.exercise(graph, kinds="gradient", count=8, domain={"t": (-1, 1), "s": (-1, 1)})
    values = [cgprimer.parse(problem.graph).values for problem in sheet.problems]
    assert {one["t"] for one in values} == {one["s"] for one in values} == {-1.0, 1.0}
    assert "in {-1, 1}" in sheet.problems[0].graph


@pytest.mark.parametrize(("text", "contains"), TABLES["refused"])
def test_refused_arguments(text: str, contains: str) -> None:
    graph, settings = cgprimer.parse(f"{SCORE} input n; l = p*y + n"), ast.literal_eval(text)
    with refused(cgprimer.CgprimerError, contains):
        cgprimer.check_gradient(graph, lambda **point: 0, **settings)
    if "loss" not in settings:
        with pytest.raises(cgprimer.CgprimerError):
            cgprimer.exercise(graph, **settings)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bce.cg").write_text(BCE)
    (tmp_path / "ann.py").write_text(SOURCE)
    return tmp_path


def test_options_of_checks_and_exercises(folder: Path) -> None:
    for options, points in (([], 0), (["--keep", "y"], 2)):
        result = run("check", "gradient", "bce.cg", "ann.py", *options)
        assert result.returncode == 0, result.stderr
        assert f"{points} of 2 points" in result.stdout
        assert ("inferred" in result.stderr) is (not options)
    result = run("check", "formula", "bce.cg", "(p - y)*x, p - y", "--domain", "y=0,1")
    assert "2 of 2 points" in result.stdout
    result = run("exercise", "bce.cg", "--kind", "gradient", "--keep", "x", "--domain", "y=0,1")
    assert result.returncode == 0, result.stderr
    assert "x = 0.7" in (folder / "exercises" / "students" / "sheet.md").read_text()


@pytest.mark.parametrize(("command", "options", "contains"), TABLES["wrong options"])
def test_wrong_options(folder: Path, command: str, options: str, contains: str) -> None:
    answer = {"check gradient": ["ann.py"], "check formula": ["x, 1"]}.get(command, [])
    result = run(*command.split(), "bce.cg", *answer, *options.split())
    assert result.returncode != 0
    approved(result.stderr, contains)
    assert "defect" not in result.stderr
