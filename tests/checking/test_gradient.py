"""Checks of gradients: verdicts, no accusations of right answers, contracts, cases E10, D2, F18."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.course.checks.gradient_check import GradientCheck, build_gradient_check
from tests.approval import approved, refused
from tests.checking.planted_mistakes import answers, graphs, right, samples, steep
from tests.checking.students import Habits, Student

Program = Callable[[Mapping[str, Any]], dict[str, Any]]


# --- right answers are not accused ---------------------------------------------------------------


def _shuffled(check: GradientCheck, seed: int) -> Program:
    """Shares added up in another order: those of all paths, in any."""
    student, draw = Student(check.question.graph), Random(seed)

    def gradient(point: Mapping[str, Any]) -> dict[str, Any]:
        found = {}
        for name in check.question.wrt:
            paths = student.paths(point, name)
            draw.shuffle(paths)
            found[name] = sum(paths) if seed % 2 else math.fsum(paths)
        return found

    return gradient


def _noisy(check: GradientCheck, seed: int) -> Program:
    """Every operation off by half a unit in the last place."""
    draw = Random(seed)
    student = Student(
        check.question.graph, Habits(rounded=lambda v: v * (1 + draw.uniform(-1, 1) * 2.0**-52))
    )
    return lambda point: {n: student.gradient(point)[n] for n in check.question.wrt}


def _in_numpy(check: GradientCheck, seed: int) -> Program:
    """The package's own answer, in another mode: forward or symbolic, on arrays."""
    method = ("forward", "reverse", "path-sum")[seed % 3]
    graph, wrt = check.question.graph, check.question.wrt

    def gradient(point: Mapping[str, Any]) -> dict[str, Any]:
        whole = {n: np.array([v]) for n, v in point.items()}
        found = cgprimer.gradient(graph, whole, of=check.question.of, wrt=wrt, method=method)
        return {n: found[n].tolist() for n in wrt}

    return gradient


def _batch(check: GradientCheck, seed: int) -> Program:
    """The mean, or the sum, over a batch, sample by sample from either end."""
    student, mean = Student(check.question.graph), check.question.reduction == "mean"

    def gradient(point: Mapping[str, Any]) -> dict[str, Any]:
        each = [student.gradient(one) for one in samples(check, point)][:: (-1) ** seed]
        scale = len(each) if mean else 1
        return {n: sum(one[n] / scale for one in each) for n in check.question.wrt}

    return gradient


def _accused(many: int) -> list[str]:
    """What is said against so many right programs."""
    found, count = [], 0
    ways = (lambda check, seed: right(check), _shuffled, _noisy, _in_numpy)
    for seed, graph in enumerate(graphs()):
        single = len(graph.outputs) == 1
        checks = [
            (build_gradient_check(graph, count=8, seed=seed), way) for way in ways[seed % 2 :]
        ]
        if single and graph.inputs and graph.parameters:
            loss = ("squared-error", "half-squared-error")[seed % 2]
            reduction = ("mean", "sum")[seed % 2]
            check = build_gradient_check(
                graph, loss=loss, batch=3, reduction=reduction, count=8, seed=seed
            )
            checks.append((check, _batch))
        for check, way in checks:
            count += 1
            result = check.grade(answers(check, way(check, seed)))
            found += [f"{graph.source.name} {way.__name__} {part}" for part in result.parts
                      if part.verdict != "right"]  # fmt: skip
        if count >= many:
            return found
    raise AssertionError


def test_right_answers_are_not_accused() -> None:
    assert _accused(60) == []


@pytest.mark.slow
def test_a_thousand_right_answers_are_not_accused() -> None:
    assert _accused(1000) == []


@pytest.mark.slow
def test_right_answers_on_steep_graphs_are_not_accused() -> None:
    """Quotients, kinks, saturation, cancellation: the bound of honest noise has to hold."""
    asked, accused = 0, []
    for seed in range(300):
        graph = steep(seed)
        if not graph.parameters:
            continue
        check = build_gradient_check(graph, seed=seed)
        for way in (lambda check, seed: right(check), _noisy):
            try:
                returned = answers(check, way(check, seed))
            except ArithmeticError:  # Python's own: an overflow, where IEEE has an infinity
                continue
            asked += 1
            found = check.grade(returned)
            accused += [(seed, part) for part in found.parts if part.verdict != "right"]
    assert asked > 500
    assert accused == []


BADLY_CONDITIONED = (
    # Text, and a program that is right in exact arithmetic but computes in another way.
    ("input x = 2; parameter a = 3, c = 100000000; y = (a*x + c)^2 - c^2; output y",
     lambda x, a, c: {"a": 2 * x * (a * x + c), "c": (2 * (a * x + c)) - 2 * c}),
    ("input x = 0.5; parameter a = 1; y = (1 - cos(a*x*0.0001))*1000000; output y",
     lambda x, a: {"a": 2e6 * math.sin(a * x * 5e-5) * math.cos(a * x * 5e-5) * x * 1e-4}),
    ("input x = 1; parameter a = 1; u = exp(a*x); v = exp(0 - a*x); y = u*v + a; output y",
     lambda x, a: {"a": x * math.exp(a * x) * math.exp(-a * x) - x * math.exp(a * x - a * x) + 1}),
    ("input x = 1; parameter a = 1, b = 1; y = (a - b)^3*1000 + x*a; output y",
     lambda x, a, b: {"a": 3000 * (a * a - 2 * a * b + b * b) + x,
                      "b": -3000 * (a * a - 2 * a * b + b * b)}),
    ("parameter a = 30; y = tanh(a)*1000000; output y",
     lambda a: {"a": 1e6 * 4 / (math.exp(a) + math.exp(-a)) ** 2}),
)  # fmt: skip


@pytest.mark.parametrize(("text", "program"), BADLY_CONDITIONED)
def test_honest_noise_is_no_mistake(text: str, program: Any) -> None:
    result = cgprimer.check_gradient(cgprimer.parse(text), program, points=40)
    assert [part.verdict for part in result.parts] == ["right"] * len(result.parts), result.parts


WITH_KINKS_AND_EDGES = (
    ("input x = 1; parameter a = 2, b = -1; h = relu(a*x + b); y = h^2 + abs(b - x); output y",
     lambda x, a, b: {"a": 2 * max(a * x + b, 0) * x,
                      "b": 2 * max(a * x + b, 0) + (1 if b > x else -1)}),
    ("parameter a = 3, b = 2; y = max(a, b)*min(a, 2*b); output y",
     lambda a, b: {"a": (min(a, 2 * b) if a > b else 0) + (max(a, b) if a < 2 * b else 0),
                   "b": (min(a, 2 * b) if b > a else 0) + (2 * max(a, b) if 2 * b < a else 0)}),
    ("parameter a = 0.5, b = 0.75; y = log(a*b)*sqrt(1 - a^2)/b; output y",
     lambda a, b: {"a": ((1 - a * a) / a - math.log(a * b) * a) / math.sqrt(1 - a * a) / b,
                   "b": math.sqrt(1 - a * a) * (1 - math.log(a * b)) / b**2}),
    ("parameter a = 0.5; y = asin(a) + acosh(1 + a) + atanh(a); output y",
     lambda a: [1 / math.sqrt(1 - a * a) + 1 / math.sqrt((1 + a) ** 2 - 1) + 1 / (1 - a * a)]),
    ("parameter a = 0.7; y = coth(a) + acsch(a); output y",  # F18: as it should stand on the slide
     lambda a: {"a": -1 / math.sinh(a) ** 2 - 1 / (abs(a) * math.sqrt(1 + a * a))}),
)  # fmt: skip


@pytest.mark.parametrize(("text", "program"), WITH_KINKS_AND_EDGES)
def test_points_keep_away_from_kinks_and_edges(text: str, program: Any) -> None:
    result = cgprimer.check_gradient(cgprimer.parse(text), program, points=60)
    assert [part.verdict for part in result.parts] == ["right"] * len(result.parts), result.parts


def test_a_kink_in_the_file_is_nobodys_mistake() -> None:
    """Any slope between those on both sides is right; elsewhere there is one."""
    graph = cgprimer.parse("parameter a = 0; y = abs(a) + a; output y")
    for at_the_kink in (-1.0, 0.0, 1.0):

        def gradient(a: float, at_the_kink: float = at_the_kink) -> float:
            return (at_the_kink if a == 0 else math.copysign(1, a)) + 1

        (part,) = cgprimer.check_gradient(graph, gradient).parts
        assert part.verdict == "right"
        assert ("kink" in part.message) == (at_the_kink != 0)
    (part,) = cgprimer.check_gradient(graph, lambda a: 1.0).parts
    assert part.verdict == "wrong"


# --- the lecture's cases -------------------------------------------------------------------------


def parts(graph: Any, function: Any, **settings: Any) -> dict[str, Any]:
    graph = cgprimer.load(graph) if isinstance(graph, str) else graph
    return {p.name: p for p in cgprimer.check_gradient(graph, function, **settings).parts}


@pytest.mark.parametrize(
    ("error", "verdict"),
    [(0.0, "right"), (5e-8, "right"), (5e-6, "suspicious"), (5e-3, "suspicious"), (0.05, "wrong")],
)
def test_bands_of_relative_errors(error: float, verdict: str) -> None:  # E10
    found = parts("lecture", lambda xa, ab, bc, cd, ac: [0, 0, xa**2 * (1 + error), 0])
    assert found["cd"].verdict == verdict
    assert found["cd"].points == {"right": 1, "suspicious": 0.5, "wrong": 0}[verdict]


def test_small_errors_are_fine_at_kinks_only() -> None:  # E10
    text = "input x = 1; parameter k = 2; y = {}(k*x); output y"
    for function, verdict in (("abs", "right"), ("", "suspicious")):
        graph = cgprimer.parse(text.format(function))
        slope = lambda x, k: x * (math.copysign(1, k * x) if function else 1) * (1 + 1e-5)  # noqa: B023, E731
        assert parts(graph, slope)["k"].verdict == verdict


def test_the_misprint_of_a_slide() -> None:  # D2: 15 where 16 is right
    found = parts("paraboloid", lambda x, y: {"x": 15 / 4 * x, "y": 6 * y}, wrt=["x", "y"])
    assert found["x"].mistake == "constant factor"
    assert found["y"].verdict == "right"


def test_the_lectures_gradient() -> None:  # A1
    def gradient(xa: float, ab: float, bc: float, cd: float, ac: float) -> dict[str, float]:
        xx = xa**2
        xz = bc * xx + ab * xx + ac * xa
        return {"ab": 3 * xz**2 * xx, "bc": 3 * xz**2 * xx, "cd": xx, "ac": 3 * xz**2 * xa}

    assert all(p.verdict == "right" for p in parts("lecture", gradient).values())


def test_one_path_only_as_the_original_module_follows() -> None:  # A1
    found = parts(
        "lecture",
        lambda xa, ab, bc, cd, ac: 3 * (bc * xa**2 + ab * xa**2 + ac * xa) ** 2 * ac,
        wrt="xa",
    )
    assert found["xa"].mistake == "one path of several"
    approved(found["xa"].message, "xa -> xy -> xz -> xw")


def test_the_error_left_out_of_a_logistic_loss() -> None:  # B2
    def slopes(x: float, y: float, w: float, b: float) -> tuple[float, float]:
        yhat = 1 / (1 + math.exp(-w * x - b))
        return yhat * (1 - yhat) * x, yhat * (1 - yhat)

    for part in parts("logistic_loss", slopes).values():
        assert part.mistake == "loss factor missing"
        assert "yhat" in part.message


def test_a_sigmoid_left_out_of_a_network() -> None:  # E3
    from tests.checking.planted_mistakes import with_habits
    from tests.checking.students import Node

    def forgets(node: Node) -> bool:
        return node.line in ("h1", "h2") and node.function == "sigmoid"

    check = build_gradient_check(cgprimer.load("mazur"))
    student = with_habits(check, Habits(forgets=forgets))
    found = {p.name: p for p in check.grade(answers(check, student)).parts}
    assert found["w5"].verdict == "right"
    assert found["w1"].mistake == found["b1"].mistake == "activation derivative missing"
    assert "sigmoid" in found["w1"].message


@pytest.mark.parametrize(
    ("slope", "said"),
    [
        (lambda x: 3 * x**3 - 1 / x**2, ("x^3 in y", "the exponent is not decreased by 1")),
        (lambda x: x**2 - 1 / x**2, ("x^3 in y", "the exponent is missing as a factor")),
        (lambda x: 3 * x**2 - 1 / x, ("1/x in y", "the divisor is not squared")),
        (lambda x: 3 * x - 1 / x**2, ("x^3 in y", "differentiated as n*u")),
    ],
)
def test_the_rule_of_powers(slope: Any, said: tuple[str, str]) -> None:
    part = parts(cgprimer.parse("parameter x = 2; y = x^3 + 1/x; output y"), slope)["x"]
    assert part.mistake == "power rule"
    assert all(text in part.message for text in said)


def test_accumulation() -> None:  # E5
    doubling = cgprimer.parse("parameter a = 3; b = a + a; c = b + b")
    assert parts(doubling, lambda a: 4)["a"].verdict == "right"
    half = parts(doubling, lambda a: 1)["a"]
    assert "= instead of +=" in (
        half.mistake,
        *half.message.split(": ")[-1].rstrip(")").split(", "),
    )


# --- what a function may look like ---------------------------------------------------------------


def line(x: float, k: float, b: float) -> dict[str, float]:
    return {"k": x, "b": 1}


LINE = "input x = 2; parameter k = 3, b = 1; y = k*x + b; output y"
ACCEPTED: list[Any] = [
    line,
    lambda k, b, x: line(x, k, b),
    lambda x, **others: {"k": x, "b": 1},
    lambda point: line(**point),
    lambda x: {"b": 1, "k": x, "more": 0},  # takes what it needs
    lambda x, k, b, h=1e-5: [x, 1],
    lambda x, k, b: (np.float64(x), np.array([1.0])),
    lambda x, k, b: np.array([x, 1.0]),
]


@pytest.mark.parametrize("function", ACCEPTED)
def test_ways_to_write_a_function(function: Any) -> None:
    found = cgprimer.check_gradient(cgprimer.parse(LINE), function)
    assert found.points == 2, found


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda u, v: [u, v], "wrong signature ... gradient(x, k, b)"),
        (lambda: [1, 2], "wrong signature"),
        (lambda x, k, b: [1, 2, 3], "wrong shape ... 3 ... 2"),
        (lambda x, k, b: None, "not numbers ... None"),
        (lambda x, k, b: "1, 2", "not numbers"),
        (lambda x, k, b: 1 / 0, "exception: ZeroDivisionError"),
        (lambda x, k, b: [1j, 2], "complex"),
    ],
)
def test_functions_that_give_no_answer(function: Any, said: str) -> None:
    found = cgprimer.check_gradient(cgprimer.parse(LINE), function)
    approved(str(found.failure), said)
    assert [part.verdict for part in found.parts] == ["not run", "not run"]


def test_what_is_missing_is_said_and_the_rest_is_graded() -> None:
    found = parts(cgprimer.parse(LINE), lambda x, k, b: {"k": x, "B": 1})
    assert found["k"].verdict == "right"
    approved(found["b"].message, "'b' ... 'B'")
    found = parts(
        cgprimer.parse(LINE), lambda x, k, b: {"k": x if x > 0 else math.nan, "b": [1, 2]}
    )
    approved(found["k"].message)
    approved(found["b"].message, "[2]")


def test_arrays_in_any_form() -> None:
    graph = cgprimer.load("hidden_layer")

    def gradient(x: Any, y: float, W1: Any, w2: Any) -> dict[str, Any]:
        x, W1, w2 = map(np.asarray, (x, W1, w2))
        h = W1 @ x
        error = -2 * (y - w2 @ np.maximum(h, 0))
        return {"W1": np.outer(error * w2 * (h > 0), x), "w2": error * np.maximum(h, 0)}

    def flat(**given: Any) -> Any:
        return np.concatenate([part.ravel() for part in gradient(**given).values()])

    def lists(**given: Any) -> Any:
        return [part.tolist() for part in gradient(**given).values()]

    for function in (gradient, flat, lists):
        assert cgprimer.check_gradient(graph, function).points == 2
    found = parts(graph, lambda **given: {n: v.T for n, v in gradient(**given).items()})
    approved(found["W1"].message, "[2,3] ... [3,2]")
    found = parts(graph, lambda **given: {n: -v for n, v in gradient(**given).items()})
    assert found["W1"].mistake == found["w2"].mistake == "sign"


def test_the_error_left_out_behind_a_layer() -> None:
    text = "input x[2] = [1, 2]; parameter W[3,2] = 1; xo = tanh(W @ x); output xo"

    def without(x: Any, target: Any, W: Any) -> Any:
        return np.outer(1 - np.tanh(np.asarray(W) @ x) ** 2, x)

    part = parts(cgprimer.parse(text), without, loss="squared-error")["W"]
    assert part.mistake == "loss factor missing"
    assert "xo[0], xo[1], xo[2]" in part.message


def test_a_transposed_matrix() -> None:
    graph = cgprimer.parse(
        "input x[2] = [1, 2]; parameter W[2,2] = 1; y = sum(tanh(W @ x)); output y"
    )

    def turned(x: Any, W: Any) -> Any:
        return np.outer(x, 1 - np.tanh(np.asarray(W) @ x) ** 2)

    part = parts(graph, turned)["W"]
    assert (part.mistake, "W is transposed" in part.message) == ("order of the values", True)


def test_the_value_is_checked_too() -> None:
    graph = cgprimer.parse(LINE)
    found = parts(graph, lambda x, k, b: (k * x + b, line(x, k, b)), value=True)
    assert [p.verdict for p in found.values()] == ["right"] * 3
    found = parts(graph, lambda x, k, b: (k * x, line(x, k, b)), value=True)
    assert found["value"].verdict == "wrong"
    assert found["k"].verdict == "right"
    found = cgprimer.check_gradient(graph, line, value=True)
    approved(str(found.failure))


def test_a_parameter_may_be_called_value() -> None:
    graph = cgprimer.parse("xw = value*xa^2 + b")
    made = cgprimer.check_gradient(graph, lambda xa, value, b: {"value": xa**2, "b": 1})
    assert [part.verdict for part in made.parts] == ["right", "right"]
    with refused(cgprimer.UsageError):
        build_gradient_check(graph, value=True)


def test_a_parameter_may_be_called_problem() -> None:
    graph = cgprimer.parse("xw = problem*xa")
    assert cgprimer.check_gradient(graph, lambda xa, problem: {"problem": xa}).points == 1


def test_no_right_value_is_told() -> None:
    """Neither the numbers nor a ratio to them; the wrong ones are the student's own."""
    check = build_gradient_check(cgprimer.load("lecture"))
    wrong = [dict.fromkeys(("ab", "bc", "cd", "ac"), 1.2345 * k) for k in range(1, 21)]
    text = str(check.grade(wrong).to_dict())
    for values in check.points.gradient.values():
        for value in values:
            assert f"{value:.4g}" not in text.replace(",", "").split()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"loss": "squared-error", "of": "xw"}, ""),
        ({"wrt": "zz"}, "'zz'"),
        ({"of": "zz"}, "'zz'"),
        ({"reduction": "max"}, "'max'"),
        ({"batch": 3, "wrt": "xa"}, ""),
        ({"name": "my gradient"}, ""),
        ({"of": "xx"}, "xx ... ab ... bc ... cd ... ac"),
        ({"loss": "sqared-error"}, "'squared-error'"),
    ],
)
def test_questions_that_cannot_be_asked(settings: dict[str, Any], said: str) -> None:
    with refused(cgprimer.UsageError, said):
        cgprimer.check_gradient(cgprimer.load("lecture"), line, **settings)


def test_a_batch_needs_inputs() -> None:
    with refused(cgprimer.UsageError):
        cgprimer.check_gradient(cgprimer.load("olah"), lambda a, b: 0, batch=2)


def test_without_a_point_there_is_no_question() -> None:
    with refused(cgprimer.DifferentiationError):
        cgprimer.check_gradient(cgprimer.parse("y = log(0 - a^2); output y"), lambda a: 0)


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
            cgprimer.check_gradient(cgprimer.parse("y = slanted(a); output y"), lambda a: 2 * a)
    finally:
        cgprimer.unregister_primitive("slanted")


# --- what a trial found --------------------------------------------------------------------------


def test_a_sigmoid_that_is_written_out_may_be_differentiated_by_its_value():
    """``f*(1 - f)`` loses all digits where f is near 1: there is nothing to ask."""

    def gradient(x0, x1, w0, w1, w2, up=1.0):
        f = 1 / (1 + math.exp(-(w0 * x0 + w1 * x1 + w2)))
        return {"w0": up * f * (1 - f) * x0, "w1": up * f * (1 - f) * x1, "w2": up * f * (1 - f)}

    graph = cgprimer.load("cs231n_neuron")
    for seed in range(5):
        found = cgprimer.check_gradient(graph, gradient, points=40, seed=seed)
        assert [p.verdict for p in found.parts] == ["right"] * 3, seed
    minus = cgprimer.check_gradient(graph, lambda **p: gradient(**p, up=-1.0))
    assert minus.mistakes == ("sign",)


def _logistic(x, y, w, b):
    p = 1 / (1 + math.exp(-(w * x + b)))
    return (p - y) * x, p - y


def _opposite(xa, ab, bc, cd, ac, target):
    xz = (ab + bc) * xa**2 + ac * xa
    up = target - cd * xa**2 - xz**3
    return [up * 3 * xz**2 * xa**2] * 2 + [up * xa**2, up * 3 * xz**2 * xa]


def _values_twice(i1, i2, t1, t2, w1, w2, w3, w4, w5, w6, w7, w8, b1, b2):
    def s(z):
        return 1 / (1 + math.exp(-z))

    h1, h2 = s(w1 * i1 + w2 * i2 + b1), s(w3 * i1 + w4 * i2 + b1)
    o1, o2 = s(w5 * h1 + w6 * h2 + b2), s(w7 * h1 + w8 * h2 + b2)
    d1, d2 = (o1 - t1) * s(o1) * (1 - s(o1)), (o2 - t2) * s(o2) * (1 - s(o2))
    e1 = (w5 * d1 + w7 * d2) * s(h1) * (1 - s(h1))
    e2 = (w6 * d1 + w8 * d2) * s(h2) * (1 - s(h2))
    return [
        e1 * i1,
        e1 * i2,
        e2 * i1,
        e2 * i2,
        d1 * h1,
        d1 * h2,
        d2 * h1,
        d2 * h2,
        e1 + e2,
        d1 + d2,
    ]


@pytest.mark.parametrize(
    ("name", "gradient", "options", "mistake", "said"),
    [
        ("logistic_loss", _logistic, {}, "activation derivative missing", "yhat ... z"),
        ("cs231n_max", lambda x, y, z, w: (2 * y, 2 * x, 2, 2), {},
         "activation derivative missing", "max"),
        ("lecture", _opposite, {"loss": "squared-error"}, "sign", "2"),
        ("exponential", lambda x, k: math.exp(k * x), {},
         "inner derivative missing", "k*x"),
        ("mazur", _values_twice, {}, "derivative at the wrong point", ""),
    ],
)  # fmt: skip
def test_mistakes_that_students_make_on_the_examples(name, gradient, options, mistake, said):
    found = cgprimer.check_gradient(cgprimer.load(name), gradient, **options)
    assert found.mistakes == (mistake,)
    wrong = [part for part in found.parts if part.verdict == "wrong"]
    assert wrong
    for part in wrong:
        approved(part.message, said)


def test_a_polynomial_with_1_too_much_is_no_difference_quotient_of_step_1():
    found = cgprimer.check_gradient(cgprimer.load("polynomial"), lambda x: 3 * x**2 + 4 * x - 2)
    assert (found.points, found.mistakes) == (0, ("constant not differentiated",))


@pytest.mark.parametrize(("step", "verdict"), [(1e-5, "right"), (1e-2, "suspicious")])
def test_good_differences_are_right_however_many_parameters_there_are(
    step: float, verdict: str
) -> None:
    """Of 129 slopes some are small wherever one looks: differences are as good as they can be."""
    graph = cgprimer.parse(
        "input x[6]; parameter W1[16,6], b1[16], W2[1,16], b2\n"
        "xw = sum(W2 @ tanh(W1 @ x + b1)) + b2"
    )

    def gradient(x: Any, W1: Any, b1: Any, W2: Any, b2: Any) -> Any:
        given = [np.array(part, float) for part in (W1, b1, W2, b2)]
        flat = np.concatenate([part.ravel() for part in given])
        ends = np.cumsum([part.size for part in given])[:-1]

        def value(vector: Any) -> Any:  # of vectors in rows
            w1, c1, w2, c2 = (
                p.reshape(len(vector), *g.shape)
                for p, g in zip(np.split(vector, ends, axis=1), given, strict=True)
            )
            hidden = np.tanh(w1 @ np.array(x) + c1)
            return (w2[:, 0] * hidden).sum(axis=1) + c2

        moves = np.eye(len(flat)) * step
        slopes = (value(flat + moves) - value(flat - moves)) / (2 * step)
        parts = [p.reshape(g.shape) for p, g in zip(np.split(slopes, ends), given, strict=True)]
        return dict(zip(["W1", "b1", "W2", "b2"], parts, strict=True))

    found = cgprimer.check_gradient(graph, gradient)
    assert {part.verdict for part in found.parts if part.name in ("W1", "b1")} == {verdict}


@pytest.mark.parametrize(
    ("tolerance", "verdict"),
    [(None, "suspicious"), (1e-6, "suspicious"), (1e-4, "right"), (0.05, "right")],
)
def test_a_tolerance_replaces_the_band_of_right_answers(
    tolerance: float | None, verdict: str
) -> None:
    graph = cgprimer.parse("input x = 1.2; parameter k = 0.7; y = k*x^2")

    def gradient(x: float, k: float) -> float:
        return x**2 * (1 + 1e-5)

    found = cgprimer.check_gradient(graph, gradient, tolerance=tolerance)
    assert found.parts[0].verdict == verdict
    strict = cgprimer.check_gradient(graph, lambda x, k: x**2 * 1.02, tolerance=tolerance)
    assert (strict.parts[0].verdict == "right") is (tolerance == 0.05)
    if tolerance == 1e-6:
        assert "between 1e-6 and 1e-2" in str(found)


@pytest.mark.parametrize("tolerance", [0, 1, -1e-3, 2, math.nan, math.inf, "a", True])
def test_a_tolerance_is_between_0_and_1(tolerance: Any) -> None:
    graph = cgprimer.parse("input x = 1.2; parameter k = 0.7; y = k*x^2")
    with pytest.raises(cgprimer.UsageError, match="tolerance"):
        cgprimer.check_gradient(graph, lambda x, k: x**2, tolerance=tolerance)


UNIT = "input x = 1.2; parameter w = 0.8, b = 0.3, v = 1.5; h = relu(w*x + b); o = v*h"


def _unit(x: float, w: float, b: float, v: float, active: Any, inactive: float = 0.0) -> Any:
    z = w * x + b
    mask = 1.0 if active(z) else inactive
    return {"w": v * x * mask, "b": v * mask, "v": z * mask}


@pytest.mark.parametrize("points", [5, 20, 200])
@pytest.mark.parametrize("loss", [None, "squared-error"])
def test_a_unit_without_its_mask_is_wrong(points: int, loss: str | None) -> None:
    def gradient(active: Any) -> Any:
        def asked(x: float, w: float, b: float, v: float, target: float = 0.0) -> Any:
            found = _unit(x, w, b, v, active)
            error = 2 * (v * max(w * x + b, 0.0) - target) if loss else 1.0
            return {n: error * g for n, g in found.items()}

        return asked

    graph = cgprimer.parse(UNIT)
    wrong = parts(graph, gradient(lambda z: True), points=points, loss=loss)
    assert {part.verdict for part in wrong.values()} == {"wrong"}
    right = parts(graph, gradient(lambda z: z > 0), points=points, loss=loss)
    assert {part.verdict for part in right.values()} == {"right"}


def test_any_value_where_a_unit_is_inactive_is_wrong() -> None:
    def gradient(x: float, w: float, b: float, v: float) -> Any:
        found = _unit(x, w, b, v, lambda z: z > 0)
        return found if w * x + b > 0 else {**found, "w": 99}

    found = parts(cgprimer.parse(UNIT), gradient)
    assert {n: part.verdict for n, part in found.items()} == {
        "w": "wrong",
        "b": "right",
        "v": "right",
    }


def test_a_hinge_without_its_margin_is_wrong() -> None:
    graph = cgprimer.parse("input x = 1, t = 1; parameter w = 0.5, b; L = relu(1 - t*(w*x + b))")
    for inside, verdict in (
        (lambda m: True, "wrong"),
        (lambda m: m < 0, "wrong"),
        (lambda m: m < 1, "right"),
    ):

        def gradient(x: float, t: float, w: float, b: float, inside: Any = inside) -> Any:
            mask = inside(t * (w * x + b))
            return {"w": -t * x * mask, "b": -t * mask}

        assert {part.verdict for part in parts(graph, gradient).values()} == {verdict}


def test_both_branches_of_where_are_asked() -> None:
    graph = cgprimer.parse("input x; parameter w, b; y = where(less(x, 0), w*x, b*x); output y")
    found = parts(graph, lambda x, w, b: {"w": x, "b": x})
    assert {part.verdict for part in found.values()} == {"wrong"}
    found = parts(graph, lambda x, w, b: {"w": min(x, 0), "b": max(x, 0)})
    assert {part.verdict for part in found.values()} == {"right"}


def test_branches_far_from_the_values_in_the_file_are_asked() -> None:
    graph = cgprimer.parse(
        "input x = 1; parameter w = 2, b = 1; y = w*relu(x - 40) + b*max(x, -30)"
    )
    found = parts(graph, lambda x, w, b: {"w": 0, "b": x})
    assert {part.verdict for part in found.values()} == {"wrong"}
    found = parts(graph, lambda x, w, b: {"w": max(x - 40, 0), "b": max(x, -30)})
    assert {part.verdict for part in found.values()} == {"right"}


@pytest.mark.parametrize("offset", ["1e6", "1e10", "1e13"])
def test_the_tolerance_stays_below_the_derivative(offset: str) -> None:
    graph = cgprimer.parse(f"input xa = 2; parameter k = 3; xw = {offset} + k*xa")
    assert parts(graph, lambda xa, k: 0)["k"].verdict == "wrong"
    assert parts(graph, lambda xa, k: 1.02 * xa)["k"].verdict == "wrong"
    assert parts(graph, lambda xa, k: xa)["k"].verdict == "right"


# --- other precisions and difference quotients ---------------------------------------------------


@pytest.mark.parametrize(
    "asked", [{}, {"loss": "squared-error"}, {"loss": "squared-error", "batch": 4}]
)
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_single_precision_is_right(activation: str, asked: dict[str, Any]) -> None:
    single = np.float32
    graph = cgprimer.parse(
        "input x[3]; parameter W[8,3], b[8], v[8], c\n"
        f"h = {activation}(W @ x + b); y = v @ h + c; output y"
    )

    def one(x: Any, target: Any, W: Any, b: Any, v: Any, c: Any) -> list[Any]:
        z = W @ np.array(x, single) + b
        h = np.tanh(z) if activation == "tanh" else np.maximum(z, single(0))
        slope = single(1) - h * h if activation == "tanh" else (z > 0).astype(single)
        bar = single(2) * (v @ h + c - single(target)) if asked else single(1)
        delta = bar * v * slope
        return [np.outer(delta, np.array(x, single)), delta, bar * h, bar]

    def gradient(x: Any, W: Any, b: Any, v: Any, c: Any, target: Any = 0) -> Any:
        weights = [np.array(p, single) for p in (W, b, v, c)]
        batch = zip(x, target, strict=True) if "batch" in asked else [(x, target)]
        each = [one(*sample, *weights) for sample in batch]
        means = [sum(parts) / single(len(each)) for parts in zip(*each, strict=True)]
        return {n: np.asarray(m).tolist() for n, m in zip(("W", "b", "v", "c"), means, strict=True)}

    found = parts(graph, gradient, **asked)
    assert {part.verdict for part in found.values()} == {"right"}
    assert not any(part.mistake for part in found.values())

    def doubled(**point: Any) -> Any:
        return {n: (2 * np.array(g)).tolist() for n, g in gradient(**point).items()}

    wrong = parts(graph, doubled, **asked)
    assert {part.verdict for part in wrong.values()} == {"wrong"}


def test_single_precision_is_noted() -> None:
    graph = cgprimer.parse("input x = 0.7; parameter a = 1.3; y = exp(3*a*x)*sin(a/3)")
    single = np.float32

    def slope(x: Any, a: Any) -> float:
        third = single(1) / single(3) if isinstance(a, single) else 1 / 3
        return float(np.exp(3 * a * x) * (3 * x * np.sin(a * third) + np.cos(a * third) * third))

    for whole in (
        lambda x, a: slope(single(x), single(a)),
        lambda x, a: slope(float(single(x)), float(single(a))),
    ):
        part = parts(graph, whole)["a"]
        assert (part.verdict, part.points, part.mistake) == ("right", 1, "")
        assert "float32" in part.message
    assert parts(graph, lambda x, a: 2 * slope(single(x), single(a)))["a"].verdict == "wrong"
    assert parts(graph, lambda x, a: 1.001 * slope(x, a))["a"].verdict == "suspicious"


@pytest.mark.parametrize("step", [1e-4, 1e-5, 1e-6])
def test_central_differences_of_a_deep_network_are_right(step: float) -> None:
    graph = cgprimer.parse(
        "input x[3]; parameter W1[6,3], b1[6], W2[6,6], b2[6], v[6]\n"
        "y = v @ tanh(W2 @ tanh(W1 @ x + b1) + b2)"
    )

    def gradient(x: Any, **given: Any) -> dict[str, Any]:
        numbers = {n: np.array(p, float) for n, p in given.items()}

        def value() -> float:
            hidden = np.tanh(numbers["W1"] @ np.array(x) + numbers["b1"])
            return float(numbers["v"] @ np.tanh(numbers["W2"] @ hidden + numbers["b2"]))

        slopes = {n: np.zeros_like(p) for n, p in numbers.items()}
        for name, array in numbers.items():
            for index in np.ndindex(array.shape):
                kept = array[index]
                array[index] = kept + step
                after = value()
                array[index] = kept - step
                slopes[name][index] = (after - value()) / (2 * step)
                array[index] = kept
        return {n: s.tolist() for n, s in slopes.items()}

    result = cgprimer.check_gradient(graph, gradient, points=10)
    assert {part.verdict for part in result.parts} == {"right"}, result


def test_a_gradient_at_truncated_values_is_named() -> None:
    graph = cgprimer.parse("xw = a*xa^2 + b*xa")
    result = cgprimer.check_gradient(graph, lambda xa, a, b: {"a": int(xa) ** 2, "b": int(xa)})
    assert result.mistakes == ("derivative at the wrong point",)


@pytest.mark.parametrize("which", [0, -1])
@pytest.mark.parametrize("divisor", [1, 3])
def test_one_sample_in_the_place_of_a_batch_is_named(which: int, divisor: int) -> None:
    def gradient(xa: Any, a: float, b: float, target: Any) -> dict[str, float]:
        error = 2 * (a * xa[which] + b - target[which]) / divisor
        return {"a": error * xa[which], "b": error}

    graph = cgprimer.parse("xw = a*xa + b")
    result = cgprimer.check_gradient(graph, gradient, loss="squared-error", batch=3)
    assert result.mistakes == ("= instead of +=",)
