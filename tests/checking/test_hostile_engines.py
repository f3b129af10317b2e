"""Engines that answer anything at all: it is that submission's result, and never an error."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cgprimer
from cgprimer.course.checks import engine_check
from cgprimer.course.checks.engine_check import build_engine_graph
from cgprimer.course.checks.engine_ladder import STAGES
from cgprimer.course.checks.sandbox import Limits
from cgprimer.course.checks.stages.stage_diagnosis import attribute_to_causes
from tests.checking.ladder_mistakes import SOLUTION
from tests.checking.student_optimizers import names_of

_MADE = "_old = made\ndef made(op, *o):\n    v = _old(op, *o)\n    {}\n    return v\n"
_PASS = (
    "_b = Value.backward\ndef backward(self):\n    _b(self)\n    order = topological_order(self)\n"
    "    for v in order: v.grad = {}\nValue.backward = backward\n"
)
_TRAIN = "_t = train\ndef train(n, d, r, e):\n    _t(n, d, r, e)\n    return {}\n"
_SGD = "class SGD:\n    def __init__(s, p, *a): s.p = p\n    def step(s):\n"
#: What is appended to a right engine; the mistake that is named first, or "".
HOSTILE: dict[str, tuple[str, str]] = {
    "overflows": (_MADE.format("v.data = float('inf') if op == 'exp' else v.data"), "wrong value"),
    "not a number": (_MADE.format("v.data = float('nan')"), "wrong value"),
    "nearly infinite": (_MADE.format("v.data = 1e308"), "wrong value"),
    "infinite, parents in a set": (
        _MADE.format("v.parents, v.data = set(v.parents), float('inf')"), "wrong value"),
    "parents are a large set": (
        _MADE.format("v.parents = {Value(k) for k in range(900)} | {*v.parents}"),
        "parents in a set"),
    "its own parent": (_MADE.format("v.parents = (v,)"), "cyclic graph"),
    "a cycle of two": (_MADE.format("[setattr(p, 'parents', (v,)) for p in v.parents]"),
                       "cyclic graph"),
    "parents of any type": (_MADE.format("v.parents = (1, 'a', None, [1], {}, float('nan'))"),
                            "parents missing"),
    "huge integers": (_MADE.format("v.data = 10**400"), ""),
    "complex": (_MADE.format("v.data = 1j"), "data is not a number"),
    "operation is a number": (_MADE.format("v.op = 5"), "unusual operation"),
    "exponent is no number": (_MADE.format("v.op = '**1.2.3'"), "unusual operation"),
    "exponent is huge": (_MADE.format("v.op = '**9999999999999'"), "unusual operation"),
    "operation is a surrogate": (_MADE.format("v.op = chr(0xd800)"), "unusual operation"),
    "infinite gradients": (_PASS.format("float('inf')"), "gradient is not a number"),
    "gradients are lists": (_PASS.format("[1, 2]"), "gradient is not a number"),
    "gradients are values": (_PASS.format("v"), ""),
    "order of anything": ("def topological_order(v): return [None, 1, 'x', v, v, [v]]\n",
                          "foreign entries"),
    "rows of infinities": (
        "def record(f, i): return [('input', (), 0.0), ('log', (0,), 1.0)]\n"
        "def adjoints(t): return [float('inf')]*2\n", "result not last"),
    "rows of large powers": (
        "def record(f, i): return [('input', (), 1e6), ('**400', (0,), 1.0)]\n", ""),
    "derivatives are nan": ("def derivatives(f, x, n): return [float('nan')]*n\n"
                            "def hessian(f, x): return [[float('nan')]*3]*3\n", ""),
    "derivatives are ragged": ("def derivatives(f, x, n): return [[1], [2]]\n"
                               "def hessian(f, x): return [[1], [], [3, 4]]\n", "wrong length"),
    "losses are zeros": (_TRAIN.format("[0]*e"), "wrong losses"),
    "losses are texts": (_TRAIN.format("'x'*e"), "losses are not numbers"),
    "an empty network": ("class Network:\n    def __init__(s, *a): pass\n    def __call__(s, x):"
                         " return []\n    def parameters(s): return []\n", ""),
    "steps to infinity": (_SGD + "        for v in s.p: v.data = float('inf')\n", ""),
    "no class": ("Value = 5\n", ""),
    "a function for a class": ("def Value(*a): return 3.0\n", "operand changed"),
}  # fmt: skip
ENDLESS = {
    "huge graph": (_MADE.format("v.parents = tuple(Value(1.0) for _ in range(100_000))"),
                   "graph too large"),
    "deep graph": (_MADE.format("for _ in range(30_000): v = Value(v.data, (v,), 'add')"),
                   "graph too large"),
    "an order without an end": ("def topological_order(v):\n    while True: yield v\n",
                                "out of time"),
}  # fmt: skip


def _file(folder: Path, text: str) -> Path:
    path = folder / "submission.py"
    path.write_text(f"{SOLUTION}\n{text}", encoding="utf-8")
    return path


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_engine_is_a_result(name: str, tmp_path: Path) -> None:
    text, mistake = HOSTILE[name]
    path = _file(tmp_path, text)
    result = cgprimer.check_engine(path)
    assert result.failure is None
    assert len(result.parts) == 10
    assert 0 <= result.points < result.possible or mistake == "unusual operation"
    assert not mistake or result.mistakes[0] == mistake
    with contextlib.suppress(cgprimer.UsageError):
        build_engine_graph(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ENDLESS)
def test_an_endless_engine_is_a_result(name: str, tmp_path: Path) -> None:
    text, mistake = ENDLESS[name]
    result = cgprimer.check_engine(_file(tmp_path, text), limits=Limits(time=1))
    assert result.mistakes[0] == mistake
    assert result.points < result.possible


def test_a_submission_that_ends_again_and_again_is_not_started_for_every_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = []
    original = engine_check.run_submission

    def counted(*args: Any, **more: Any) -> Any:
        starts.append(1)
        return original(*args, **more)

    monkeypatch.setattr(engine_check, "run_submission", counted)
    result = cgprimer.check_engine(_file(tmp_path, "import os\nValue = lambda *a: os._exit(3)\n"))
    assert len(starts) == 4
    assert len(result.parts) == 10
    assert result.points <= 7


JUNK = (None, True, 0, -1, 1e400, -1e400, 1e308, float("nan"), "x", "\ud800", [], {}, [[]], 10**400)


def _broken(answer: Any, random_: random.Random) -> Any:
    """An answer with one entry replaced, removed or repeated, at any depth."""
    if isinstance(answer, dict) and answer and random_.random() < 0.9:
        key = random_.choice([*answer])
        return {**answer, key: _broken(answer[key], random_)}
    if isinstance(answer, list) and answer and random_.random() < 0.9:
        index = random_.randrange(len(answer))
        changed = [[_broken(answer[index], random_)], [], [answer[index]] * 3]
        return answer[:index] + random_.choice(changed) + answer[index + 1 :]
    return random_.choice(JUNK)


def _answers_of_the_solution() -> Iterator[tuple[Any, list[Any]]]:
    asked = engine_check._run_stages(names_of(SOLUTION), STAGES, None)
    for stage in STAGES:
        yield stage, list(asked.by_stage[stage.number])


@pytest.mark.parametrize("rounds", [60, pytest.param(1500, marks=pytest.mark.slow)])
def test_forged_answers_are_judged(rounds: int) -> None:
    random_ = random.Random(0)
    for stage, answers in _answers_of_the_solution():
        for _ in range(rounds):
            broken = list(answers)
            index = random_.randrange(len(broken))
            broken[index] = _broken(broken[index], random_)
            parts = attribute_to_causes(stage.assess(broken))
            assert len(parts) == len(stage.tasks)
            assert all(str(part) for part in parts)
