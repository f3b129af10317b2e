"""Checks of gradients: verdicts, no accusations of right answers, contracts, lecture cases."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer import networks
from cgprimer.course.checks.check_results import Part
from cgprimer.course.checks.gradient_check import GradientCheck, build_gradient_check
from tests.approval import approved, refused
from tests.checking.planted_mistakes import (
    STEEP,
    answers,
    differences,
    graphs,
    random_graph,
    right,
    samples,
    with_habits,
)
from tests.checking.students import Habits, Student, compile_formula
from tests.checking.submissions import Submission, compute, read_submissions, read_tables, sample
from tests.cli.cli_tools import bad, good, read_json

EXAMPLES, WRONG_EXAMPLES = read_submissions("gradient_examples.txt")
TABLES = read_tables("tables.txt")
Program = Callable[[Mapping[str, Any]], dict[str, Any]]
LINE = "input x = 2; parameter k = 3, b = 1; y = k*x + b; output y"


def check(graph: str, function: Any, **settings: Any) -> dict[str, Part]:
    """Return the parts of a check of an example, or of a graph as text, by name."""
    is_text = any(mark in graph for mark in "=;")
    model = cgprimer.parse(graph) if is_text else cgprimer.load(graph)
    return {p.name: p for p in cgprimer.check_gradient(model, function, **settings).parts}


def check_program(program: Submission, **settings: Any) -> list[Part]:
    """Return the parts of a check of a program."""
    settings = {**program.settings, **settings}
    return [*check(settings.pop("graph"), program.define()["gradient"], **settings).values()]


def verdicts(graph: str, function: Any, **settings: Any) -> set[str]:
    return {part.verdict for part in check(graph, function, **settings).values()}


def add_paths_in_any_order(check: GradientCheck, seed: int) -> Program:
    student, draw = Student(check.question.graph), Random(seed)

    def gradient(point: Mapping[str, Any]) -> dict[str, Any]:
        sums = {}
        for name in check.question.wrt:
            paths = student.paths(point, name)
            draw.shuffle(paths)
            sums[name] = sum(paths) if seed % 2 else math.fsum(paths)
        return sums

    return gradient


def round_every_operation(check: GradientCheck, seed: int) -> Program:
    """Change the result of each operation by up to half a unit in the last place."""
    draw = Random(seed)
    habits = Habits(rounded=lambda v: v * (1 + draw.uniform(-1, 1) * 2.0**-52))
    student = Student(check.question.graph, habits)
    return lambda point: {n: student.gradient(point)[n] for n in check.question.wrt}


def add_samples_from_either_end(check: GradientCheck, seed: int) -> Program:
    student, is_mean = Student(check.question.graph), check.question.reduction == "mean"

    def gradient(point: Mapping[str, Any]) -> dict[str, Any]:
        slopes = [student.gradient(one) for one in samples(check, point)][:: (-1) ** seed]
        scale = len(slopes) if is_mean else 1
        return {n: sum(one[n] / scale for one in slopes) for n in check.question.wrt}

    return gradient


WAYS = (lambda check, seed: right(check), add_paths_in_any_order, round_every_operation)


@pytest.mark.parametrize("count", [4, pytest.param(150, marks=pytest.mark.slow)])
def test_right_answers_are_not_accused(count: int) -> None:
    for seed, graph in zip(range(count), graphs(), strict=False):
        checks = [(build_gradient_check(graph, count=8, seed=seed), WAYS[seed % 3])]
        if len(graph.outputs) == 1 and graph.inputs and graph.parameters:
            settings = {"loss": ("squared-error", "half-squared-error")[seed % 2], "batch": 3}
            settings["reduction"] = ("mean", "sum")[seed % 2]
            batch = build_gradient_check(graph, count=8, seed=seed, **settings)
            checks.append((batch, add_samples_from_either_end))
        for one, way in checks:
            result = one.grade(answers(one, way(one, seed)))
            assert {part.verdict for part in result.parts} == {"right"}, (graph.source.name, way)


@pytest.mark.slow
def test_right_answers_on_steep_graphs_are_not_accused() -> None:
    """Quotients, kinks, saturation, cancellation: the bound of honest noise has to hold."""
    asked = 0
    for seed in range(80):
        graph = random_graph(seed, STEEP, 13)
        if not graph.parameters:
            continue
        one = build_gradient_check(graph, seed=seed)
        for way in (WAYS[0], round_every_operation):
            try:
                returned = answers(one, way(one, seed))
            except ArithmeticError:  # Python's own: an overflow, where IEEE has an infinity
                continue
            asked += 1
            assert {part.verdict for part in one.grade(returned).parts} == {"right"}, seed
    assert asked > 120


@pytest.mark.parametrize("program", EXAMPLES, ids=str)
def test_honest_noise_is_no_mistake(program: Submission) -> None:
    for seed in range(2):
        assert {part.verdict for part in check_program(program, points=40, seed=seed)} == {"right"}


@pytest.mark.parametrize("at_the_kink", [-1.0, 0.0, 1.0])
def test_any_slope_between_those_of_a_kink_is_right(at_the_kink: float) -> None:
    graph = "parameter a = 0; y = abs(a) + a; output y"

    def gradient(a: float) -> float:
        return (at_the_kink if a == 0 else math.copysign(1, a)) + 1

    part = check(graph, gradient)["a"]
    assert part.verdict == "right"
    assert ("kink" in part.message) == (at_the_kink != 0)
    assert verdicts(graph, lambda a: 1.0) == {"wrong"}


@pytest.mark.parametrize(
    ("error", "verdict"),
    [(0.0, "right"), (5e-8, "right"), (5e-6, "suspicious"), (5e-3, "suspicious"), (0.05, "wrong")],
)
def test_bands_of_relative_errors(error: float, verdict: str) -> None:  # E10
    part = check("lecture", lambda xa, ab, bc, cd, ac: [0, 0, xa**2 * (1 + error), 0])["cd"]
    assert part.verdict == verdict
    assert part.points == {"right": 1, "suspicious": 0.5, "wrong": 0}[verdict]
    at_a_kink = check("parameter k = 2; y = abs(k); output y",
                      lambda k: math.copysign(1 + error, k))["k"]  # fmt: skip
    assert at_a_kink.verdict == ("right" if error < 1e-5 else verdict)


@pytest.mark.parametrize(
    ("tolerance", "error", "verdict"),
    [(1e-6, 1e-5, "suspicious"), (1e-4, 1e-5, "right"), (0.05, 0.02, "right"),
     (1e-4, 0.02, "wrong"), (None, 0.02, "wrong")],
)  # fmt: skip
def test_a_tolerance_replaces_the_band_of_right_answers(
    tolerance: float | None, error: float, verdict: str
) -> None:
    graph = "input x = 1.2; parameter k = 0.7; y = k*x^2"
    part = check(graph, lambda x, k: x**2 * (1 + error), tolerance=tolerance)["k"]
    assert part.verdict == verdict
    if tolerance == 1e-6:
        assert "between 1e-6 and 1e-2" in str(part)


@pytest.mark.parametrize("tolerance", [0, 1, -1e-3, 2, math.nan, math.inf, "a", True])
def test_a_tolerance_is_between_0_and_1(tolerance: Any) -> None:
    with pytest.raises(cgprimer.UsageError, match="tolerance"):
        check(LINE, lambda x, k, b: [x, 1], tolerance=tolerance)


@pytest.mark.parametrize("offset", ["1e6", "1e10", "1e13"])
def test_the_tolerance_stays_below_the_derivative(offset: str) -> None:
    graph = f"input xa = 2; parameter k = 3; xw = {offset} + k*xa"
    for factor, verdict in ((0, "wrong"), (1.02, "wrong"), (1, "right")):
        assert verdicts(graph, lambda xa, k, factor=factor: factor * xa) == {verdict}


@pytest.mark.parametrize(("graph", "wrong", "right"), TABLES["branches of gradients"])
def test_all_branches_are_asked(graph: str, wrong: str, right: str) -> None:
    model = cgprimer.parse(graph)
    names = ", ".join([*model.inputs, *model.parameters])
    for points in (5, 20):
        assert verdicts(graph, compile_formula(names, wrong), points=points) == {"wrong"}
        if right != "None":
            assert verdicts(graph, compile_formula(names, right), points=points) == {"right"}


@pytest.mark.parametrize("wrong", WRONG_EXAMPLES, ids=str)
def test_mistakes_in_the_examples_of_the_lecture(wrong: Submission) -> None:
    parts = check_program(wrong)
    assert {part.mistake for part in parts} - {""} == {wrong.mistake}
    for part in parts:
        if part.mistake:
            approved(part.message, wrong.note)


def test_a_sigmoid_left_out_of_a_network() -> None:  # E3
    one = build_gradient_check(cgprimer.load("mazur"))
    forgotten = {("h1", "sigmoid"), ("h2", "sigmoid")}
    habits = Habits(partials=lambda n: [1.0] if (n.line, n.function) in forgotten else None)
    parts = {p.name: p for p in one.grade(answers(one, with_habits(one, habits))).parts}
    assert parts["w5"].verdict == "right"
    assert parts["w1"].mistake == parts["b1"].mistake == "activation derivative missing"
    assert "sigmoid" in parts["w1"].message


@pytest.mark.parametrize(("operands", "result"), TABLES["ways to write a gradient"])
def test_ways_to_write_a_function(operands: str, result: str) -> None:
    assert verdicts(LINE, compile_formula(operands, result)) == {"right"}


@pytest.mark.parametrize(
    ("operands", "returned", "contains"), TABLES["gradients without an answer"]
)
def test_functions_without_an_answer(operands: str, returned: str, contains: str) -> None:
    function = compile_formula(operands, returned)
    result = cgprimer.check_gradient(cgprimer.parse(LINE), function)
    approved(str(result.failure), contains)
    assert [part.verdict for part in result.parts] == ["not run", "not run"]


def test_a_missing_derivative_is_reported_and_the_rest_is_graded() -> None:
    parts = check(LINE, lambda x, k, b: {"k": x, "B": 1})
    assert parts["k"].verdict == "right"
    approved(parts["b"].message, "'b' ... 'B'")
    parts = check(LINE, lambda x, k, b: {"k": x if x > 0 else math.nan, "b": [1, 2]})
    approved(parts["k"].message)
    approved(parts["b"].message, "[2]")


def test_arrays_in_any_form() -> None:
    def gradient(x: Any, y: float, W1: Any, w2: Any) -> dict[str, Any]:
        x, W1, w2 = map(np.asarray, (x, W1, w2))
        h = W1 @ x
        error = -2 * (y - w2 @ np.maximum(h, 0))
        return {"W1": np.outer(error * w2 * (h > 0), x), "w2": error * np.maximum(h, 0)}

    def change(convert: Callable[[Any], Any]) -> Any:
        return lambda **point: {n: convert(v) for n, v in gradient(**point).items()}

    def flatten(**point: Any) -> Any:
        return np.concatenate([part.ravel() for part in gradient(**point).values()])

    for function in (gradient, flatten, change(np.ndarray.tolist)):
        assert verdicts("hidden_layer", function) == {"right"}
    parts = check("hidden_layer", change(np.transpose))
    approved(parts["W1"].message, "[2,3] ... [3,2]")
    parts = check("hidden_layer", change(np.negative))
    assert parts["W1"].mistake == parts["w2"].mistake == "sign"


def test_the_value_is_checked_too() -> None:
    slopes = {"k": 2.0, "b": 1.0}
    for value, expected in ((lambda k, b: 2 * k + b, "right"), (lambda k, b: 2 * k, "wrong")):
        graph = "parameter k = 3, b = 1; y = 2*k + b"
        parts = check(graph, lambda k, b, f=value: (f(k, b), slopes), value=True)
        assert [p.verdict for p in parts.values()] == [expected, "right", "right"]
    result = cgprimer.check_gradient(cgprimer.parse(LINE), lambda x, k, b: [x, 1], value=True)
    approved(str(result.failure))
    with refused(cgprimer.UsageError):
        build_gradient_check(cgprimer.parse("xw = value*xa"), value=True)


def test_no_right_value_is_shown() -> None:
    """Neither the numbers nor a ratio to them; the wrong ones are the student's own."""
    one = build_gradient_check(cgprimer.load("lecture"))
    wrong = [dict.fromkeys(("ab", "bc", "cd", "ac"), 1.2345 * k) for k in range(1, 21)]
    text = str(one.grade(wrong).to_dict()).replace(",", "").split()
    for values in one.points.gradient.values():
        assert not {f"{value:.4g}" for value in values} & {*text}


@pytest.mark.parametrize(
    ("graph", "settings", "contains"), TABLES["gradients that cannot be asked"]
)
def test_questions_that_cannot_be_asked(graph: str, settings: str, contains: str) -> None:
    with refused((cgprimer.UsageError, cgprimer.DifferentiationError), contains):
        check(graph, lambda **point: 0, **compute(settings))


def test_the_seed_decides_the_points() -> None:
    graph = cgprimer.load("lecture")
    one, same, other = (
        build_gradient_check(graph, seed=seed).points.arguments for seed in (1, 1, 2)
    )
    assert all(np.array_equal(one[n], same[n]) for n in one)
    assert not all(np.array_equal(one[n], other[n]) for n in one)
    assert [float(values[0]) for values in one.values()] == [0.5, 1, 2, 3, 4]  # the file's own
    assert all(len(repr(float(v))) <= 6 for values in one.values() for v in values)  # neat


def test_a_table_with_a_wrong_slope_is_not_believed() -> None:
    """Difference quotients know nothing of the table: where it is wrong, nothing is asked."""
    cgprimer.register_primitive("slanted", lambda a: a**2, partials="3*a")
    try:
        with refused(cgprimer.DifferentiationError):
            check("y = slanted(a); output y", lambda a: 2 * a)
    finally:
        cgprimer.unregister_primitive("slanted")


@pytest.mark.parametrize("step", sample([1e-2, 1e-4, 1e-5, 1e-6], 2))
def test_good_differences_of_many_parameters_are_right(step: float) -> None:
    """Some slopes are small wherever one looks: differences are as good as they can be."""
    one, gradient = differences((step,))(networks.mlp([3, 4, 1], scalars=True), 3)
    expected = {"right", "suspicious"} if step == 1e-2 else {"right"}
    assert {part.verdict for part in one.grade(answers(one, gradient)).parts} == expected


@pytest.mark.parametrize(
    ("activation", "settings"),
    sample([("relu", {}), ("tanh", {}), ("tanh", {"loss": "squared-error", "batch": 4})], 3),
)
def test_single_precision_is_right(activation: str, settings: dict[str, Any]) -> None:
    graph = networks.mlp([2, 3, 1], activation=activation, scalars=True)
    one = build_gradient_check(graph, **settings)
    gradient = with_habits(one, Habits(rounded=lambda value: float(np.float32(value))))
    for factor, expected in ((1, "right"), (2, "wrong")):
        wrong = lambda point, k=factor: {n: k * v for n, v in gradient(point).items()}  # noqa: E731
        parts = one.grade(answers(one, wrong)).parts
        assert {part.verdict for part in parts} == {expected}


def test_single_precision_is_noted() -> None:
    graph = "input x = 0.7; parameter a = 1.3; y = exp(3*a*x)*sin(a/3)"
    single = np.float32

    def slope(x: Any, a: Any) -> float:
        third = single(1) / single(3) if isinstance(a, single) else 1 / 3
        return float(np.exp(3 * a * x) * (3 * x * np.sin(a * third) + np.cos(a * third) * third))

    for function, verdict in (
        (lambda x, a: slope(single(x), single(a)), "right"),
        (lambda x, a: slope(float(single(x)), float(single(a))), "right"),
        (lambda x, a: 2 * slope(single(x), single(a)), "wrong"),
        (lambda x, a: 1.001 * slope(x, a), "suspicious"),
    ):
        part = check(graph, function)["a"]
        assert part.verdict == verdict
        assert ("float32" in part.message) is (verdict == "right")


@pytest.fixture
def submission(tmp_path: Path) -> Path:
    return tmp_path / "ann.py"


def test_the_command_names_mistakes_and_keeps_prints_apart(submission: Path) -> None:
    source = EXAMPLES[0].source.replace("xx = xa**2", "xx = xa**2; print('{\"value\": 1}')")
    wrong = source.replace('"cd": xx', '"cd": -xx').replace("3*xz**2*xa}", "3*xa**3}")
    submission.write_text(wrong)
    result = read_json("check", "gradient", "lecture", submission)
    mistakes = [part["mistake"] for part in result["parts"]]
    assert mistakes == ["", "", "sign", "inner function not evaluated"]
    assert '{"value": 1}' in result["output"]
    assert "x>=1" in bad("check", "gradient", "lecture", submission, "--points", "0")
    submission.write_text("def grad(): pass")
    shown = good("check", "gradient", "lecture", submission)
    assert "define gradient(xa, ab, bc, cd, ac); rename `grad` to `gradient`" in shown
    assert "0 of 4 points" in shown


def test_the_skeleton_is_a_submission_that_is_not_right_yet(submission: Path) -> None:
    options = ("lecture", "--loss", "squared-error", "--batch", 3, "--value")
    text = good("check", "gradient", *options, "--skeleton")
    assert "def gradient(xa, target, ab, bc, cd, ac):" in text
    submission.write_text(text)
    assert "0 of 5 points" in good("check", "gradient", *options, submission)


def test_a_batch_has_lists_in_the_sandbox(submission: Path) -> None:
    cwd = submission.parent
    (cwd / "line.cg").write_text("input x = 1; parameter w = 2, b = 1; y = w*x + b; output y")
    submission.write_text(
        "def slopes(x, target, w, b):\n"
        "    errors = [2*(w*u + b - t) for u, t in zip(x, target)]\n"
        "    return sum(e*u for e, u in zip(errors, x))/len(x)*(1 + 1e-5), sum(errors)/len(x)\n"
    )
    options = ("--loss", "squared-error", "--batch", 4, "--function", "slopes", "--tolerance")
    what = ("check", "gradient", "line.cg", "ann.py", *options)
    assert "2 of 2 points" in good(*what, "1e-4", cwd=cwd)
    assert "tolerance" in bad(*what, "2", cwd=cwd)
