"""The engine ladder: right engines pass, mistakes are named, and hostile engines get a result."""

from __future__ import annotations

import ast
import contextlib
import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import cgprimer
from cgprimer.course.checks import engine_check, sandbox
from cgprimer.course.checks.check_results import Failure, Result
from cgprimer.course.checks.engine_check import build_engine_graph
from cgprimer.course.checks.engine_ladder import (
    STAGES,
    build_engine_skeleton,
    list_possible_points,
    read_stage_page,
)
from cgprimer.course.checks.sandbox import Limits
from cgprimer.course.checks.stages.optimizer_stage import descend
from cgprimer.course.checks.stages.stage import Case, Stage
from cgprimer.course.checks.stages.stage_diagnosis import attribute_to_causes
from cgprimer.course.checks.stages.student_graphs import build_student_graph
from tests.approval import approved, refused
from tests.checking.submissions import Submission, change, define_names, read_submissions, sample
from tests.cli.cli_tools import here

(SOLUTION, CLOSURES), CHANGED = read_submissions("engines.txt")
WARNINGS = {"parents in a set", "recursion too deep"}
WITHOUT_LOSS = WARNINGS | {"backward zeroes"}


def select(pattern: str) -> list[Submission]:
    """Return the changed engines whose mistake and note match a pattern."""
    return [one for one in CHANGED if re.fullmatch(pattern, f"{one.mistake}: {one.note}")]


def changed(changes: str) -> dict[str, Any]:
    """Return the names of the solution with changes."""
    return define_names(change(SOLUTION.source, changes))


@pytest.fixture
def solution(tmp_path: Path) -> Path:
    """The right engine as a file."""
    file = tmp_path / "ann.py"
    file.write_text(SOLUTION.source)
    return file


# --- right engines --------------------------------------------------------------------------------


def test_the_solution_is_right_in_the_sandbox(solution: Path) -> None:
    result = cgprimer.check_engine(solution)
    assert [part.verdict for part in result.parts] == ["right"] * 10
    assert result.points == result.possible == sum(list_possible_points().values())
    approved("\n".join(f"{name}: {points:g}" for number in range(1, 11)
                       for name, points in list_possible_points(number).items()))  # fmt: skip


@pytest.mark.parametrize("number", sample(range(1, 11), 5))
def test_each_stage_of_the_solution_is_right(number: int) -> None:
    result = cgprimer.check_engine(SOLUTION.define(), number)
    assert {part.verdict for part in result.parts} == {"right"}
    assert {part.name: part.possible for part in result.parts} == list_possible_points(number)


@pytest.mark.parametrize("engine", sample([CLOSURES, *select("right: .*")], 3), ids=str)
def test_other_right_engines_are_not_accused(engine: Submission) -> None:
    for number in (10,) if engine.note == "losses" else (2, 4, 5, 6):
        result = cgprimer.check_engine(engine.define(), number)
        assert result.points == result.possible, [str(part) for part in result.parts]
        assert set(result.mistakes) <= WARNINGS


# --- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", sample(select(r"(?!right).*: \d+"), 16), ids=str)
def test_a_mistake_is_named_and_no_right_number_is_shown(engine: Submission) -> None:
    result = cgprimer.check_engine(engine.define(), int(engine.note))
    assert result.mistakes[0] == engine.mistake
    assert (result.points == result.possible) == (engine.mistake in WITHOUT_LOSS)
    assert not re.search(r"should be \d|instead of \d\.\d", str(result.parts))


@pytest.mark.slow
@pytest.mark.parametrize("engine", select(r".*: \d+ causes .*"), ids=str)
def test_only_the_earliest_cause_is_accused(engine: Submission) -> None:
    first, wrong = (ast.literal_eval(one) for one in engine.note.split(" causes "))
    result = cgprimer.check_engine(engine.define())
    assert [name for name in result.mistakes if name not in WARNINGS] == [engine.mistake]
    assert result.parts[first - 1].mistake == engine.mistake
    assert {k for k, part in enumerate(result.parts, 1) if part.verdict != "right"} <= {*wrong}
    for part in result.parts[first:]:
        if part.verdict == "wrong":
            assert f"(stage {first}, " in part.message
    for number in wrong:  # a single stage names the cause as well
        alone = cgprimer.check_engine(engine.define(), number)
        assert set(alone.mistakes) - WARNINGS <= {engine.mistake}, number


def test_independent_mistakes_are_both_named() -> None:
    changes = "-1.0 - tanh(a) ** 2\n+1.0 - tanh(a)\n-parent.grad += value\n+parent.grad = value\n"
    mistakes = ("wrong derivative of tanh", "= instead of +=")
    assert cgprimer.check_engine(changed(changes)).mistakes[:2] == mistakes


def test_inner_gradients_kept_is_a_note_and_not_a_mistake() -> None:
    (engine,) = select("recursion too deep: 5")
    result = cgprimer.check_engine(engine.define(), 6)
    assert "inner gradients kept" not in result.mistakes
    (part,) = (part for part in result.parts if part.note)
    assert (part.verdict, part.note, part.mistake) == ("right", "inner gradients kept", "")
    assert part.points == part.possible
    assert "note: inner gradients kept" in str(part)
    assert Result.from_dict(result.to_dict()) == result


def test_a_tiny_step_does_not_pass_for_any_number() -> None:
    stencil = "(8*(f(x + h) - f(x - h)) - f(x + 2*h) + f(x - 2*h))/(12*h)"
    for text in ("f(x)", stencil):
        names = changed(f"+def difference_quotient(f, x, h=1e-5): return {text}\n")
        part = cgprimer.check_engine(names, 1).parts[0]
        assert (part.verdict, part.mistake) == ("wrong", "")


def test_a_failure_of_one_part_leaves_the_others() -> None:
    """Where a stage asks several things, and parts look at the answers of others."""
    names = SOLUTION.define()
    good = names["Value"].backward

    def fails(self: Any) -> None:
        order = names["topological_order"](self)
        if len(order) > 1000 or any(one.data == 4.0 for one in order if not one.parents):
            raise ValueError("several paths, or a long chain")
        good(self)

    names["Value"].backward = fails
    parts = cgprimer.check_engine(names, 5).parts
    assert [part.verdict for part in parts] == ["right", "right", "wrong", "wrong"]


def test_a_class_or_a_function_is_a_submission() -> None:
    names = SOLUTION.define()
    for name, stage in (("Value", 2), ("topological_order", 3)):
        result = cgprimer.check_engine(names[name], stage)
        assert {part.verdict for part in result.parts} <= {"right", "not run"}
    assert cgprimer.check_engine(names["Value"], 4).points > 0


def test_stages_up_to_a_missing_function_are_checked(solution: Path) -> None:
    source = SOLUTION.source
    solution.write_text(source[: source.index("def zero_grad")] + "print('so far')\n")
    result = cgprimer.check_engine(solution)
    assert [part.verdict for part in result.parts] == ["right"] * 5 + ["not run"] * 5
    assert result.parts[5].message == "the submission does not define zero_grad"
    assert "so far" in result.output


def test_only_similar_names_are_to_be_renamed() -> None:
    result = cgprimer.check_engine(changed("-zero_grad\n+zero_grads\n"), 6)
    approved(result.parts[0].message, "`zero_grads` ... `zero_grad`")
    result = cgprimer.check_engine(define_names("def sigmoid(x): return x\n"), 7)
    assert "sigmoid" not in result.parts[0].message


@pytest.mark.parametrize(
    ("method", "stage"),
    [("Value.backward", 4), ("SGD.step", 7), ("Network.__call__", 10), ("Network.parameters", 10)],
)
def test_a_missing_method_is_named(method: str, stage: int) -> None:
    owner, name = method.split(".")
    names = SOLUTION.define()
    delattr(names[owner], name)
    result = cgprimer.check_engine(names, stage)
    assert {part.verdict for part in result.parts} <= {"right", "not run"}
    assert f"`{method}` is missing" in {part.message for part in result.parts}


def test_each_stage_has_a_page() -> None:
    for stage in STAGES:
        assert read_stage_page(stage.number).startswith(f"# {stage.number}. ")
    for call in (build_engine_skeleton, read_stage_page):
        with refused(cgprimer.UsageError, "11"):
            call(11)


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
@pytest.mark.parametrize("whole", sample([True, False], 2))
def test_a_skeleton_has_all_names_and_no_solution(stage: Stage, whole: bool) -> None:
    code = build_engine_skeleton(None if whole else stage.number)
    names = define_names(code)
    assert set(stage.required_names) <= names.keys()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.FunctionDef) and "parents" not in ast.unparse(node.args):
            assert ast.unparse(node.body[-1]) == "raise NotImplementedError"
    result = cgprimer.check_engine(names, stage.number)
    assert {(part.verdict, part.message) for part in result.parts} == {
        ("not run", "not written yet")
    }
    assert not result.mistakes


def test_an_engine_is_drawn_as_a_graph() -> None:
    graph, grads = build_engine_graph(SOLUTION.define(), "e = (a + b)*(b + 1)", {"a": 2, "b": 1})
    assert graph.outputs == ("e",)
    assert (grads["a"], grads["b"]) == (2, 5)
    assert cgprimer.gradient(graph, wrt=["a", "b"]) == {"a": 2.0, "b": 5.0}
    assert cgprimer.trace(graph, of="e", method="reverse").rows
    other, _ = build_engine_graph(CLOSURES.define(), "e = x*x - x/y")
    assert float(other.evaluate()["e"]) == 4 - 2 / 3


def test_operations_without_a_name_are_recognized() -> None:
    values = [(2.0, "", []), (3.0, "", []), (-1.0, "MinusBackward", [0, 1]), (9.0, "**2", [1]),
              (77.0, "mystery", [2, 3])]  # fmt: skip
    rows = [{"data": v, "op": op, "parents": parents, "set": False} for v, op, parents in values]
    assert build_student_graph(rows).expression("v2") == "v0 - v1"
    assert build_student_graph(rows).expression("v3") == "v1^2"
    assert "v4" in build_student_graph(rows).inputs


def test_nielsens_neuron() -> None:
    """Case E8: the same neuron from two starts, 300 epochs."""
    for start, before, after in ((0.6, 0.81757, 0.09396), (2.0, 0.98201, 0.20284)):
        at = {"w": start, "c": 0.9 if start == 0.6 else 2.0, "x": 1.0}
        case = Case("y = sigmoid(w*x + c); l = y^2/2", at)
        rows = descend(case, 0.15, 300, fixed=["x"])
        assert case.graph.evaluate(at)["y"] == pytest.approx(before, abs=6e-6)
        assert case.graph.evaluate({**rows[-1]})["y"] == pytest.approx(after, abs=1e-5)


def test_the_command(solution: Path) -> None:
    folder, file = solution.parent, solution
    done = here("check", "engine", "--stage", 3, "--about", cwd=folder)
    assert done.stdout.startswith("# 3. Topological order")
    done = here("check", "engine", "--stage", 3, "--skeleton", cwd=folder)
    assert {"class Value:", "def topological_order(value):"} <= set(done.stdout.splitlines())
    draw = ("check", "engine", file, "--trace", "-e", "y = x*x + x", "--draw", "graph.svg")
    assert re.search(r"x +2 +5", here(*draw, cwd=folder).stdout)
    assert (folder / "graph.svg").stat().st_size > 1000
    for wrong in (("check", "engine", "--about"), ("check", "engine", file, "--stage", 12)):
        assert here(*wrong, cwd=folder).returncode == 2


# --- hostile engines and answers ------------------------------------------------------------------


@pytest.mark.parametrize("engine", sample(select(".*: hostile .*"), 18), ids=str)
def test_a_hostile_engine_is_a_result(engine: Submission) -> None:
    result = cgprimer.check_engine(engine.define())
    assert result.failure is None
    assert len(result.parts) == 10
    assert 0 <= result.points < result.possible or engine.mistake == "unusual operation"
    assert engine.mistake == "any" or result.mistakes[0] == engine.mistake
    with contextlib.suppress(cgprimer.UsageError):
        build_engine_graph(engine.define())


@pytest.mark.slow
@pytest.mark.parametrize("engine", select(".*: endless .*"), ids=str)
def test_an_endless_engine_leaves_the_other_stages(engine: Submission, tmp_path: Path) -> None:
    file = tmp_path / "bob.py"
    file.write_text(engine.source)
    result = cgprimer.check_engine(file, limits=Limits(time=1))
    assert result.mistakes[0] == engine.mistake
    assert 0 < result.points < result.possible


def test_a_submission_that_ends_again_and_again_is_not_started_for_every_stage(
    tmp_path: Path,
) -> None:
    file = tmp_path / "cyd.py"
    file.write_text("import os\nValue = lambda *a: os._exit(3)\n")
    run = engine_check.run_submission
    with mock.patch.object(engine_check, "run_submission", wraps=run) as runs:
        result = cgprimer.check_engine(file)
    assert runs.call_count == 4
    assert (len(result.parts), result.points) == (10, 0)


JUNK: tuple[Any, ...] = (
    None, True, 0, -1, 10**400, 1e308, float("nan"), float("inf"), "", "\ud800", [], {}, [[]],
    {"no call": "missing"}, {"value": []}, [1.0, "a", None], [[1.0], [2.0, 3.0]],
    [("add", (5, 7), 2.0)] * 3, 1j,
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_any_result_of_a_function_is_judged(stage: Stage) -> None:
    for name in stage.required_names:
        for junk in JUNK[stage.number % 4 :: 4]:
            names = SOLUTION.define() | {name: lambda *_, junk=junk: junk}
            result = cgprimer.check_engine(names, stage.number)
            assert result.points < result.possible or name in ("Value", "zero_grad")


def corrupt(answer: Any, draw: random.Random) -> Any:
    """Return an answer with one entry replaced, removed or repeated, at any depth."""
    if isinstance(answer, dict) and answer and draw.random() < 0.9:
        key = draw.choice([*answer])
        return {**answer, key: corrupt(answer[key], draw)}
    if isinstance(answer, list | tuple) and answer and draw.random() < 0.9:
        index = draw.randrange(len(answer))
        entries = [[corrupt(answer[index], draw)], [], [answer[index]] * 3]
        return [*answer[:index], *draw.choice(entries), *answer[index + 1 :]]
    return draw.choice(JUNK[:-2])


def list_answers() -> Iterator[tuple[Stage, list[Any]]]:
    """Yield the answers of the solution to each stage."""
    asked = engine_check._run_stages(SOLUTION.define(), STAGES, None)
    for stage in STAGES:
        yield stage, list(asked.by_stage[stage.number])


@pytest.mark.parametrize("rounds", [1, pytest.param(150, marks=pytest.mark.slow)])
def test_forged_answers_are_judged(rounds: int) -> None:
    draw = random.Random(0)
    for stage, answers in list_answers():
        for _ in range(rounds):
            index = draw.randrange(len(answers))
            broken = [*answers[:index], corrupt(answers[index], draw), *answers[index + 1 :]]
            parts = attribute_to_causes(stage.assess(broken))
            assert len(parts) == len(stage.tasks)
            assert all(str(part) for part in parts)


GRADIENT = "def gradient(x, w, b):\n    return {'w': [x*w[1], x*w[0]], 'b': x}\n"
GRAPH = "input x = 2; parameter w[2] = [1, 3], b = 1; y = w[0]*w[1]*x + b*x"
CHECKS: dict[str, tuple[str, Callable[[Any], Result]]] = {
    "gradient": (GRADIENT, partial(cgprimer.check_gradient, cgprimer.parse(GRAPH))),
    "optimizer": (
        "def sgd(p, g, rate=0.1): return [a - rate*b for a, b in zip(p, g)]",
        lambda names: cgprimer.check_optimizer(names, "sgd"),
    ),
}


@pytest.mark.parametrize("kind", sample([*CHECKS], 2))
def test_answers_of_any_structure_get_a_result(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source, check = CHECKS[kind]
    run, draw = sandbox._run_notebook, random.Random(kind)
    names = define_names(source)
    assert check(names).points == check(names).possible

    def forge(*given: Any) -> sandbox.Answers:
        answers = run(*given)
        values = list(answers.values)
        index = draw.randrange(len(values))
        values[index] = corrupt(values[index], draw)
        return replace(answers, values=tuple(values))

    monkeypatch.setattr(sandbox, "_run_notebook", forge)
    for _ in range(8):
        json.dumps(check(names).to_dict())

    def lose(names: Any, requests: Any, driver: Any) -> sandbox.Answers:
        return sandbox.Answers(({"no call": 1},) * len(requests))

    monkeypatch.setattr(sandbox, "_run_notebook", lose)
    result = check(names)
    assert result.points == 0
    assert any("broken answers" in part.message for part in result.parts) or (
        isinstance(result.failure, Failure) and result.failure.kind == "answers"
    )


def test_a_graph_of_a_wrong_structure_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    forged = sandbox.Answers(({"nodes": [], "at": [5]},) * 2)
    monkeypatch.setattr(sandbox, "_run_notebook", lambda *_: forged)
    with refused(cgprimer.UsageError):
        build_engine_graph(SOLUTION.define())
