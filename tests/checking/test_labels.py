"""Inputs that are labels: kept, declared, given as an option, or recognized in a loss."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.course.checks.gradient_check import build_gradient_check, format_gradient_skeleton
from cgprimer.course.checks.gradient_questions import build_question
from cgprimer.course.checks.label_domains import infer_domains
from cgprimer.course.checks.question_points import choose_points
from tests.approval import approved, refused
from tests.cli.cli_tools import run

SCORE = "input x = 0.7, y = 1; parameter w = 0.4, b = 0.1; p = sigmoid(w*x + b)\n"
BCE = SCORE + "l = -(y*log(p) + (1 - y)*log(1 - p))"
CLASSES = (
    "input y[3] = [0, 1, 0], x[2] = [0.5, -1]\n"
    "parameter W[3,2] = [[0.1, 0.2], [0.3, -0.4], [0.5, 0.6]], b[3] = [0.1, -0.2, 0.3]\n"
)
SOFTMAX = CLASSES + "p = softmax(W @ x + b); l = -sum(y*log(p))"
HINGE = "input x = 0.7, t = 1; parameter w = 0.4, b = 0.1; l = relu(1 - t*(w*x + b))"


def sigmoid(z: float) -> float:
    return 1 / (1 + math.exp(-z))


def written_bce(x: float, y: float, w: float, b: float) -> dict[str, float]:
    """Binary cross-entropy, differentiated by cases as students write it."""
    p = sigmoid(w * x + b)
    dp = -1 / p if y == 1 else 1 / (1 - p)
    return {"w": dp * p * (1 - p) * x, "b": dp * p * (1 - p)}


def softmax_gradient(**point: Any) -> dict[str, Any]:
    """The textbook's p - y; y may be the number of a class."""
    label = np.asarray(point.get("target", point["y"]))
    label = np.eye(3)[int(label)] if label.ndim == 0 else label
    z = np.asarray(point["W"]) @ np.asarray(point["x"]) + np.asarray(point["b"])
    p = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
    return {"W": np.outer(p - label, point["x"]).tolist(), "b": (p - label).tolist()}


def hinge_gradient(x: float, t: float, w: float, b: float) -> dict[str, float]:
    """The hinge loss, differentiated by the sign of the label."""
    active = (w * x + b < 1) if t == 1 else (w * x + b > -1)
    sign = -1.0 if t == 1 else 1.0
    return {"w": sign * x * active, "b": sign * active}


def asked_values(text: str, name: str, **asked: Any) -> set[Any]:
    """The values of an input at the points that a check asks for."""
    question = build_question(cgprimer.parse(text), **asked)
    given = choose_points(question, 30).arguments
    rows = zip(*(np.ravel(given[e]).tolist() for e in question.list_elements(name)), strict=True)
    return {row[0] if len(row) == 1 else row for row in rows}


# --- right answers of the lecture's losses -------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "gradient", "limits"),
    [
        (BCE, written_bce, {}),
        (BCE, written_bce, {"keep": "y"}),
        (BCE, written_bce, {"domain": {"y": (0, 1)}}),
        (BCE.replace("y = 1", "y = 1 in {0, 1}"), written_bce, {}),
        (BCE.replace("y = 1", "y in {0, 1}"), written_bce, {}),
        (SCORE + "l = where(equal(y, 1), -log(p), -log(1 - p))", written_bce,
         {"domain": {"y": [0, 1]}}),
        (SOFTMAX, softmax_gradient, {}),
        (HINGE, hinge_gradient, {}),
    ],
)  # fmt: skip
def test_gradients_by_cases_are_right(text: str, gradient: Any, limits: dict[str, Any]) -> None:
    for seed in range(2):
        result = cgprimer.check_gradient(cgprimer.parse(text), gradient, seed=seed, **limits)
        assert result.points == result.possible, str(result)


def test_a_mistake_at_one_label_is_seen() -> None:
    graph = cgprimer.parse(BCE)

    def only_positive(x: float, y: float, w: float, b: float) -> dict[str, float]:
        p = sigmoid(w * x + b)
        return {"w": (p - 1) * x, "b": p - 1}

    assert cgprimer.check_gradient(graph, only_positive).points == 0
    assert cgprimer.check_gradient(graph, only_positive, keep=["y"]).points == 2


@pytest.mark.parametrize(
    ("loss", "gradient"),
    [
        ("cross-entropy", lambda p, d: -1 / p if d == 1 else 1 / (1 - p)),
        ("hinge", lambda p, d: -1.0 * (p < 1) if d == 1 else 1.0 * (p > -1)),
    ],
)
def test_targets_of_named_losses_are_labels(loss: str, gradient: Any) -> None:
    graph = cgprimer.parse("input x = 0.7; parameter w = 0.4, b = 0.1; p = sigmoid(w*x + b)")

    def student(x: float, target: float, w: float, b: float) -> dict[str, float]:
        p = sigmoid(w * x + b)
        dz = gradient(p, target) * p * (1 - p)
        return {"w": dz * x, "b": dz}

    result = cgprimer.check_gradient(graph, student, loss=loss)
    assert result.points == 2, str(result)


def test_targets_of_softmax_are_all_classes_or_one_hot() -> None:
    graph = cgprimer.parse(CLASSES.replace("y[3] = [0, 1, 0], ", "") + "z = W @ x + b")
    text = graph.text
    assert asked_values(text, "target", loss="softmax-cross-entropy") == {0.0, 1.0, 2.0}
    one_hot = {"target": "one-hot"}
    rows = asked_values(text, "target", loss="softmax-cross-entropy", domain=one_hot)
    assert rows == {(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)}

    def student(**point: Any) -> dict[str, Any]:
        return softmax_gradient(y=None, **point)

    for domain in (None, one_hot):
        result = cgprimer.check_gradient(
            graph, student, loss="softmax-cross-entropy", domain=domain
        )
        assert result.points == 2, str(result)


def test_batches_have_labels_of_both_classes() -> None:
    def student(**point: Any) -> dict[str, float]:
        pairs = zip(point["x"], point["y"], strict=True)
        samples = [written_bce(x, y, point["w"], point["b"]) for x, y in pairs]
        return {name: sum(s[name] for s in samples) / len(samples) for name in ("w", "b")}

    graph = cgprimer.parse(BCE)
    assert cgprimer.check_gradient(graph, student, batch=4).points == 2
    given = choose_points(build_question(graph, batch=4, keep=["y"]), 5).arguments
    assert set(np.ravel(given["y"])) == {1.0}


def test_derivatives_with_respect_to_a_label() -> None:
    by_cases = SCORE + "l = where(equal(y, 1), -log(p), -log(1 - p))"

    def student(x: float, y: float, w: float, b: float) -> dict[str, float]:
        return {**written_bce(x, y, w, b), "y": 0.0}

    asked: dict[str, Any] = {"wrt": ["w", "b", "y"], "domain": {"y": (0, 1)}}
    assert cgprimer.check_gradient(cgprimer.parse(by_cases), student, **asked).points == 3

    def wrong_at_1(**point: float) -> dict[str, float]:
        return {**student(**point), **({"w": 9.0} if point["y"] == 1 else {})}

    assert cgprimer.check_gradient(cgprimer.parse(by_cases), wrong_at_1, **asked).points == 2
    # at a kink of the label itself there is no derivative to ask for
    assert asked_values(SCORE + "l = p*abs(y)", "y", wrt="y", domain={"y": (0, 1)}) == {1.0}


# --- which points are asked ----------------------------------------------------------------------


def test_an_option_overrides_a_declaration() -> None:
    text = BCE.replace("y = 1", "y = 1 in {0, 1}")
    assert asked_values(text, "y") == {0.0, 1.0}
    assert asked_values(text, "y", domain={"y": (-2, 3)}) == {-2.0, 3.0}  # 1 is not among them
    assert asked_values(text, "y", keep="y") == {1.0}


def test_one_hot_rows_of_a_matrix() -> None:
    text = "input c[2,2] in one-hot; parameter k[2,2] = [[1, 2], [3, 4]]; l = sum(c*k^2)"
    rows = {(1.0, 0.0), (0.0, 1.0)}
    assert asked_values(text, "c") == {(*a, *b) for a in rows for b in rows}


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        (BCE, (0.0, 1.0)),
        (BCE.replace("y = 1", "y"), (0.0, 1.0)),
        (SCORE + "q = log(p); nll = -y*q - (1 - y)*log(1 - p); l = nll/2 + 0.1*w^2", (0.0, 1.0)),
        (SCORE + "l = -xlogy(y, p) - xlogy(1 - y, 1 - p)", (0.0, 1.0)),
        (SCORE + "z = w*x; l = y*softplus(-z) + (1 - y)*softplus(z)", (0.0, 1.0)),
        (SOFTMAX, "one-hot"),
        (CLASSES + "l = -y @ log_softmax(W @ x + b)", "one-hot"),
        (CLASSES.replace(" = [0, 1, 0]", "") + "l = -sum(y*log_softmax(W @ x + b))", "one-hot"),
        (CLASSES + "z = W @ x + b; l = -sum(y*(z - log(sum(exp(z)))))", "one-hot"),
    ],
)
def test_labels_that_are_recognised(text: str, domain: object) -> None:
    found = infer_domains(cgprimer.parse(text), ())
    assert {name: one.domain for name, one in found.items()} == {"y": domain}


@pytest.mark.parametrize(
    "text",
    [
        "input x = 1, y = 2; f = x*log(y)",
        SCORE + "l = (p - y)^2",
        SCORE + "l = -(y*log(p) + (1 - y)*log(1 - p)); m = y^2",
        SCORE + "l = w*(y*log(p) + (1 - y)*log(1 - p))",
        "input x[3]; parameter w[3]; f = sum(x*log(w))",
        "input x = 1; parameter w = 0.3, b = 0.1, v = 2; h = relu(1 - x*(w + b)); o = v*h",
        "input t, x; l = relu(1 - t*(w*x + b))",
        CLASSES + "l = -sum(y*log(softmax(W @ x + b))) + sum(y)",
    ],
)
def test_other_inputs_are_not_taken_for_labels(text: str) -> None:
    assert not infer_domains(cgprimer.parse(text), ())


def test_a_declared_value_that_is_no_label_is_reported() -> None:
    graph = cgprimer.parse(BCE.replace("y = 1", "y = 0.3"))
    question = build_question(graph)
    assert not question.domains
    assert "y is sampled as real numbers" in question.notes[0]


def test_a_one_hot_label_in_several_numbers_is_reported() -> None:
    graph = cgprimer.parse(
        "input y1 = 0, y2 = 1; parameter a = 0.3, b = -0.5; s = exp(a) + exp(b)\n"
        "l = -(y1*log(exp(a)/s) + y2*log(exp(b)/s))"
    )

    def student(y1: float, y2: float, a: float, b: float) -> dict[str, float]:
        p = sigmoid(a - b)
        return {"a": p - y1, "b": 1 - p - y2}

    result = cgprimer.check_gradient(graph, student)
    assert any("--keep y1,y2" in note for note in result.notes)
    assert cgprimer.check_gradient(graph, student, keep=["y1", "y2"]).points == 2


def test_kept_values_may_come_from_the_point() -> None:
    graph = cgprimer.parse(BCE)
    assert cgprimer.check_formula(graph, "p*x, p", at={"y": 0}, keep="y").points == 2


def test_an_inferred_domain_is_in_the_result() -> None:
    result = cgprimer.check_gradient(cgprimer.parse(BCE), written_bce)
    assert any("y is sampled from {0, 1}" in note for note in result.notes)
    kept = cgprimer.check_gradient(cgprimer.parse(BCE), written_bce, keep="y")
    assert not any("inferred" in note for note in kept.notes)
    formula = cgprimer.check_formula(cgprimer.parse(BCE), "(p - y)*x, p - y")
    assert any("inferred" in note for note in formula.notes)


def test_students_are_told_the_domain() -> None:
    text = format_gradient_skeleton(build_gradient_check(cgprimer.parse(BCE)))
    assert "# y: a number in {0, 1}" in text
    batch = format_gradient_skeleton(build_gradient_check(cgprimer.parse(SOFTMAX), batch=2))
    assert "# y: a list of arrays of shape [3], one-hot, one per sample" in batch


# --- formulas ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "answer", "limits"),
    [
        (BCE, "where(equal(y, 1), p - 1, p)*x, p - y", {}),
        (BCE, "(p - 1)*x, p - 1", {"keep": "y"}),
        (
            "input y[2] = [0, 1]; parameter z[2] = [0.3, -1]; l = -sum(y*log(softmax(z)))",
            "1/(1 + exp(z[1] - z[0])) - y[0], 1/(1 + exp(z[0] - z[1])) - y[1]",
            {},
        ),
        (BCE, "(p - y)*x, p - y", {"domain": {"y": (0, 1)}}),
    ],
)
def test_formulas_at_labels(text: str, answer: str, limits: dict[str, Any]) -> None:
    result = cgprimer.check_formula(cgprimer.parse(text), answer, **limits)
    assert result.points == result.possible, str(result)


def test_a_statement_about_integers() -> None:
    statement = "d/dx(sin(n*3.141592653589793 + x)) = cos(n*3.141592653589793)*cos(x)"
    assert cgprimer.check_formula(statement, domain={"n": (0, 1, 2, 3)}).points == 1


# --- exercises -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["gradient", "adjoint", "tangent", "trace"])
def test_sheets_have_labels(kind: str) -> None:
    graph = cgprimer.parse(BCE)
    sheet = cgprimer.exercise(graph, kinds=kind, count=6, seed=1)
    asked = [cgprimer.parse(problem.graph) for problem in sheet.problems]
    assert {one.values["y"] for one in asked} <= {0.0, 1.0}
    assert all(one.domains == {"y": (0.0, 1.0)} for one in asked)
    assert len({one.values["w"] for one in asked}) > 1
    kept = cgprimer.exercise(graph, kinds=kind, count=4, seed=1, keep=["x", "y"])
    points_asked = [cgprimer.parse(problem.graph).values for problem in kept.problems]
    assert {(one["x"], one["y"]) for one in points_asked} == {(0.7, 1.0)}


def test_sheets_with_a_domain() -> None:
    graph = cgprimer.parse("input s, t; parameter a, b; o = (a*s + b)*t + s")
    sheet = cgprimer.exercise(graph, kinds="gradient", count=8, domain={"t": (-1, 1), "s": (-1, 1)})
    values = [cgprimer.parse(problem.graph).values for problem in sheet.problems]
    assert {one["t"] for one in values} == {one["s"] for one in values} == {-1.0, 1.0}
    assert "in {-1, 1}" in sheet.problems[0].graph


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"keep": "z"}, "'z'"),
        ({"keep": "w"}, "'w'"),
        ({"keep": "p"}, ""),
        ({"keep": "xs"}, "'x'"),
        ({"keep": 1}, "keep"),
        ({"keep": "n"}, ""),
        ({"domain": 3}, "map"),
        ({"domain": {"Y": (0, 1)}}, "'y'"),
        ({"domain": {"y": ()}}, ""),
        ({"domain": {"y": (0, 1, 0)}}, "0"),
        ({"domain": {"y": "two-hot"}}, "'two-hot'"),
        ({"domain": {"y": "one-hot"}}, ""),
        ({"domain": {"y": ["a"]}}, ""),
        ({"domain": {"y": (0, math.nan)}}, "finite"),
        ({"domain": {"y": (0, 1)}, "keep": "y"}, ""),
        ({"loss": "hinge", "domain": {"target": (0, 1)}}, "-1"),
    ],
)
def test_refused_arguments(limits: dict[str, Any], said: str) -> None:
    graph = cgprimer.parse(SCORE + "input n; l = p*y + n")
    with refused(cgprimer.CgprimerError, said):
        cgprimer.check_gradient(graph, written_bce, **limits)
    if "loss" not in limits:
        with pytest.raises(cgprimer.CgprimerError):
            cgprimer.exercise(graph, **limits)


# --- the command line ----------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bce.cg").write_text(BCE)
    (tmp_path / "real.cg").write_text(SCORE + "l = (p - y)^2 + where(equal(y, 1), w, -w)")
    (tmp_path / "ann.py").write_text(
        "import math\n"
        "def gradient(x, y, w, b):\n"
        "    p = 1/(1 + math.exp(-(w*x + b)))\n"
        "    d = p - 1 if y == 1 else p\n"
        "    return d*x, d\n"
    )
    return tmp_path


@pytest.mark.parametrize(
    ("options", "points"),
    [([], 2), (["--domain", "y=0,1", "--keep", "x"], 2), (["--domain", "y=0.25,1"], 0)],
)
def test_options_of_check_gradient(folder: Path, options: list[str], points: int) -> None:
    result = run("check", "gradient", "bce.cg", "ann.py", *options)
    assert result.returncode == 0, result.stderr
    assert f"{points} of 2 points" in result.stdout
    assert ("inferred" in result.stderr) is (not options)


@pytest.mark.parametrize(
    ("command", "options", "contains"),
    [
        ("check gradient", ["--keep", "z"], "x ... y"),
        ("check formula", ["--domain", "y"], "expected NAME=VALUES"),
        ("exercise", ["--domain", "=1"], "expected NAME=VALUES"),
        ("check gradient", ["--domain", "y=0,a"], "one-hot"),
        ("check formula", ["--domain", "y=0,1,y=2"], ""),
        ("exercise", ["--domain", "y=one-hot"], ""),
        ("check gradient", ["--domain", "w=0,1"], "'w'"),
        ("exercise", ["--domain", "y={}"], ""),
    ],
)
def test_wrong_options(folder: Path, command: str, options: list[str], contains: str) -> None:
    answer = {"check gradient": ["ann.py"], "check formula": ["x, 1"]}.get(command, [])
    result = run(*command.split(), "bce.cg", *answer, *options)
    assert result.returncode != 0
    approved(result.stderr, contains)
    assert "defect" not in result.stderr


def test_options_of_check_formula_and_exercise(folder: Path) -> None:
    result = run("check", "formula", "bce.cg", "(p - y)*x, p - y", "--domain", "y=0,1")
    assert "2 of 2 points" in result.stdout
    result = run("exercise", "bce.cg", "--kind", "gradient", "--keep", "x", "--domain", "y=0,1")
    assert result.returncode == 0, result.stderr
    sheet = (folder / "exercises" / "students" / "sheet.md").read_text()
    assert "x = 0.7" in sheet
