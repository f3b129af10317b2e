"""The engine ladder: right engines of several kinds pass, planted mistakes are named."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

import cgprimer
from cgprimer.course.checks.check_results import Result
from cgprimer.course.checks.engine_check import build_engine_graph
from cgprimer.course.checks.engine_ladder import (
    STAGES,
    build_engine_skeleton,
    list_possible_points,
    read_stage_page,
)
from cgprimer.course.checks.stages.optimizer_stage import descend
from cgprimer.course.checks.stages.stage import Case, Stage
from cgprimer.course.checks.stages.student_graphs import build_student_graph
from tests.approval import approved, refused
from tests.checking.ladder_mistakes import (
    _MICROGRAD,
    _ORDER,
    _SWEEP,
    MISTAKES,
    SOLUTION,
    _deep,
    planted,
)
from tests.checking.student_optimizers import names_of
from tests.cli.cli_tools import here

FILE = Path(__file__).with_name("ladder_solution.py")
WARNINGS = {"parents in a set", "recursion too deep"}
MICROGRAD = """
import math
class Value:
    def __init__(self, data, _children=(), _op=""):
        self.data, self.grad, self._backward = data, 0, lambda: None
        self._prev, self._op = CHILDREN, _op
    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other), "+")
        def _backward():
            self.grad += out.grad
            other.grad += out.grad
        out._backward = _backward
        return out
    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other), "*")
        def _backward():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad
        out._backward = _backward
        return out
    def __pow__(self, other):
        return self._unary(self.data**other, lambda _: other * self.data**(other - 1), f"**{other}")
    def _unary(self, data, local, op):
        out = Value(data, (self,), op)
        def _backward():
            self.grad += local(data) * out.grad
        out._backward = _backward
        return out
    def exp(self): return self._unary(math.exp(self.data), lambda y: y, "exp")
    def log(self): return self._unary(math.log(self.data), lambda y: 1/self.data, "log")
    def sin(self): return self._unary(math.sin(self.data), lambda y: math.cos(self.data), "sin")
    def tanh(self): return self._unary(math.tanh(self.data), lambda y: 1 - y**2, "tanh")
    def relu(self): return self._unary(max(0, self.data), lambda y: float(y > 0), "ReLU")
    def backward(self):
        self.grad = 1
        for v in reversed(topological_order(self)):
            v._backward()
    def __neg__(self): return self * -1
    def __radd__(self, other): return self + other
    def __sub__(self, other): return self + (-other)
    def __rsub__(self, other): return other + (-self)
    def __rmul__(self, other): return self * other
    def __truediv__(self, other): return self * other**-1
    def __rtruediv__(self, other): return other * self**-1
def topological_order(root):
    topo, visited = [], set()
    def build(v):
        if v not in visited:
            visited.add(v)
            for child in v._prev: build(child)
            topo.append(v)
    build(root)
    return topo
def zero_grad(values):
    for v in values: v.grad = 0.0
"""
BY_PATH = SOLUTION.replace(
    SOLUTION[SOLUTION.index("        order = topological_order(self)") : SOLUTION.index("FORWARD")],
    """        self.send(1.0)

    def send(self, bar):
        self.grad += bar
        data = [parent.data for parent in self.parents]
        for k, parent in enumerate(self.parents):
            parent.send(bar * LOCAL[self.op][k](*data))


""",
)  # fmt: skip


def test_the_solution_is_right_in_the_sandbox() -> None:
    result = cgprimer.check_engine(FILE)
    assert [part.verdict for part in result.parts] == ["right"] * 10
    assert result.points == result.possible == sum(list_possible_points().values())


@pytest.mark.parametrize("number", range(1, 11))
def test_each_stage_of_the_solution_is_right(number: int) -> None:
    result = cgprimer.check_engine(names_of(SOLUTION), number)
    assert {part.verdict for part in result.parts} == {"right"}
    assert {part.name: part.possible for part in result.parts} == list_possible_points(number)


@pytest.mark.parametrize(
    "text", [MICROGRAD.replace("CHILDREN", c) for c in ("set(_children)", "_children")] + [BY_PATH]
)
def test_other_right_engines_are_not_accused(text: str) -> None:
    for number in range(2, 7):
        result = cgprimer.check_engine(names_of(text), number)
        assert result.points == result.possible, [str(part) for part in result.parts]
        assert set(result.mistakes) <= WARNINGS


@pytest.mark.parametrize(
    ("number", "mistake", "swaps"), MISTAKES, ids=[f"{n}-{m}" for n, m, _ in MISTAKES]
)
def test_planted_mistakes_are_named(number: int, mistake: str, swaps: Any) -> None:
    result = cgprimer.check_engine(names_of(planted(swaps)), number)
    assert result.mistakes[0] == mistake
    full = mistake in WARNINGS | {"backward zeroes"}
    assert (result.points == result.possible) == full


_ADD = (
    ("self.grad += out.grad", "self.grad = out.grad"),
    ("other.grad += out.grad", "other.grad = out.grad"),
)
_MUL = (("+= other.data * out", "= other.data * out"), ("+= self.data * out", "= self.data * out"))
IN_CLOSURES: list[tuple[int, str, tuple[tuple[str, str], ...]]] = [
    (5, "= instead of +=", (*_ADD, *_MUL, ("self.grad += local", "self.grad = local"))),
    (5, "= instead of +=", _ADD),
    (5, "= instead of +=", _MUL),
    (5, "child before parent", (("reversed(topological_order(self))", "topological_order(self)"),)),
    (4, "seed missing", (("        self.grad = 1\n", ""),)),
    (4, "upstream gradient left out", (("local(data) * out.grad", "local(data)"),
     (".data * out.grad", ".data"), ("+= out.grad", "+= 1"))),
    (4, "wrong derivative of tanh", (("1 - y**2", "1 - y"),)),
    (4, "wrong derivative of pow", (("other * self.data**(", "self.data**("),)),
    (3, "order reversed", (("    return topo\n", "    return topo[::-1]\n"),)),
    (2, "reflected operator missing", (("__rmul__", "rmul"),)),
]  # fmt: skip


@pytest.mark.parametrize(("number", "mistake", "swaps"), IN_CLOSURES)
def test_mistakes_in_closures_are_named(number: int, mistake: str, swaps: Any) -> None:
    """In another engine, whose quotients are products with powers."""
    text = MICROGRAD.replace("CHILDREN", "_children")
    for old, new in swaps:
        assert old in text
        text = text.replace(old, new)
    assert cgprimer.check_engine(names_of(text), number).mistakes[0] == mistake


def test_inner_gradients_kept_is_a_note_and_not_a_mistake() -> None:
    for number, single in ((6, True), (None, False)):
        result = cgprimer.check_engine(names_of(planted(((_SWEEP, _MICROGRAD),))), number)
        assert "inner gradients kept" not in result.mistakes
        (part,) = (part for part in result.parts if part.note)
        assert (part.verdict, part.note, part.mistake) == ("right", "inner gradients kept", "")
        assert part.points == part.possible
        assert "note: inner gradients kept" in str(part)
        assert Result.from_dict(result.to_dict()) == result
        assert single or set(result.mistakes) <= WARNINGS


_SEEDS = {
    "wrong seed": (("        self.grad = 1.0\n", "        self.grad = self.data\n"),),
    "seed missing": (("        self.grad = 1.0\n", ""),),
}
_LISTED_TWICE = _deep("", behind="order.append(one)").replace("        \n", "")
#: The mistake, its swaps, the first stage that shows it, and the stages that may not be right.
CAUSES: list[tuple[str, Any, int, set[int]]] = [
    ("wrong seed", _SEEDS["wrong seed"], 4, {4, 5, 6, 10}),
    ("wrong seed", (("        self.grad = 1.0\n", "        self.grad = 2.0\n"),), 4, {4, 5, 6, 10}),
    ("seed missing", _SEEDS["seed missing"], 4, {4, 5, 6, 7, 10}),
    ("values listed twice", ((_ORDER, _LISTED_TWICE),), 3, {3, 5, 6, 8, 9, 10}),
    ("order reversed",
     (("    return order\n\n\ndef zero", "    return order[::-1]\n\n\ndef zero"),),
     3, {3, 4, 5, 6, 7, 8, 9, 10}),
    ("values missing", ((_ORDER, _deep(behind="order.append(one) if one.parents else None")),),
     3, {3, 5, 8}),
    ("= instead of +=", (("parent.grad += value", "parent.grad = value"),), 5, {5, 6, 10}),
    ("upstream gradient left out", (("value.grad * local", "local"),), 4, {4, 5, 6, 10}),
    ("child before parent", (("for value in reversed(order):\n            data",
                              "for value in order:\n            data"),), 4, {4, 5, 6, 7, 10}),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "swaps", "first", "wrong"), CAUSES)
def test_only_the_earliest_cause_is_accused(
    mistake: str, swaps: Any, first: int, wrong: set[int]
) -> None:
    names = names_of(planted(swaps))
    result = cgprimer.check_engine(names)
    assert [name for name in result.mistakes if name not in WARNINGS] == [mistake]
    assert result.parts[first - 1].mistake == mistake
    assert {k for k, part in enumerate(result.parts, 1) if part.verdict != "right"} <= wrong
    for part in result.parts[first:]:
        if part.verdict == "wrong":
            assert f"(stage {first}, " in part.message
    for number in wrong:  # a single stage names the cause as well
        alone = cgprimer.check_engine(names, number)
        assert set(alone.mistakes) - WARNINGS <= {mistake}, number


def test_independent_mistakes_are_both_named() -> None:
    uphill = ("p.data -= self.rate * p.grad", "p.data += self.rate * p.grad")
    text = planted((*_SEEDS["wrong seed"], uphill))
    assert cgprimer.check_engine(names_of(text)).mistakes == ("wrong seed", "sign")
    swaps = (
        ("1.0 - tanh(a) ** 2", "1.0 - tanh(a)"),
        ("parent.grad += value", "parent.grad = value"),
    )
    found = cgprimer.check_engine(names_of(planted(swaps))).mistakes
    assert found[:2] == ("wrong derivative of tanh", "= instead of +=")


LOSSES = {
    "loss of the last sample": ("total += loss.data", "total = loss.data"),
    "loss of the first sample": ("total += loss.data", "total = total or loss.data"),
    "losses add up": ("        total = 0.0\n", ""),
    "loss of each step": ("            total += loss.data\n        losses.append(total)",
                          "            losses.append(loss.data)"),
    "last sample left out": ("for xs, targets in data:", "for xs, targets in data[:-1] or data:"),
    "first sample left out": ("for xs, targets in data:", "for xs, targets in data[1:] or data:"),
    "only the last sample": ("for xs, targets in data:", "for xs, targets in data[-1:]:"),
    "only the first sample": ("for xs, targets in data:", "for xs, targets in data[:1]:"),
    "gradients not zeroed": ("        for xs, targets in data:\n            zero_grad(parameters)",
                             "        zero_grad(parameters)\n        for xs, targets in data:"),
    "wrong losses": ("total += loss.data", "total += abs(loss.data)**0.5"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", LOSSES)
def test_epochs_of_several_samples(mistake: str) -> None:
    old, new = LOSSES[mistake]
    text = planted(((old, new),))
    if mistake == "losses add up":
        text = text.replace("    losses = []\n", "    losses = []\n    total = 0.0\n")
    part = cgprimer.check_engine(names_of(text), 10).parts[2]
    assert (part.mistake, part.points) == (mistake, 0)


_AFTER = """
        outputs = [(o.data, t) for x, y in data for o, t in zip(network(x), y)]
        losses.append(sum((o - t) ** 2 for o, t in outputs) / 2)
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        losses.append(total)", "        losses.append(total / len(data))"),
        ("        losses.append(total)", "        losses.append(2 * total / len(data))"),
        ("        losses.append(total)", _AFTER),
    ],
)
def test_usual_conventions_of_an_epochs_loss_are_right(old: str, new: str) -> None:
    result = cgprimer.check_engine(names_of(planted(((old, new),))), 10)
    assert [part.verdict for part in result.parts] == ["right"] * 3


def test_a_tiny_step_does_not_pass_for_any_number() -> None:
    stencil = "(8*(f(x + h) - f(x - h)) - f(x + 2*h) + f(x - 2*h))/(12*h)"
    for own in ("f(x)", stencil):
        names = names_of(f"{SOLUTION}\ndef difference_quotient(f, x, h=1e-5): return {own}\n")
        part = cgprimer.check_engine(names, 1).parts[0]
        assert (part.verdict, part.mistake) == ("wrong", "")


def test_a_failure_of_one_part_leaves_the_others() -> None:
    """Where a stage asks several things, and parts look at the answers of others."""
    names = names_of(SOLUTION)
    good = names["Value"].backward

    def fails(self: Any) -> None:
        order = names["topological_order"](self)
        if len(order) > 1000 or any(one.data == 4.0 for one in order if not one.parents):
            raise ValueError("several paths, or a long chain")
        good(self)

    names["Value"].backward = fails
    parts = cgprimer.check_engine(names, 5).parts
    assert [part.verdict for part in parts] == ["right", "right", "wrong", "wrong"]


@pytest.mark.parametrize("every", [20, pytest.param(4, marks=pytest.mark.slow)])
def test_no_message_shows_a_right_number(every: int) -> None:
    for number, _, swaps in MISTAKES[::every]:
        for part in cgprimer.check_engine(names_of(planted(swaps)), number).parts:
            assert not re.search(r"expected|should be \d|instead of \d\.\d", str(part))


JUNK = (None, "x", [], [[]], {}, 3, [float("nan")] * 4, [("a", (), 1)],
        [("add", (5, 7), 2.0)] * 3, 1j)  # fmt: skip
RESULTS = ("difference_quotient", "numerical_gradient", "record", "adjoints", "derivatives",
           "hessian", "train", "Network", "SGD")  # fmt: skip


@pytest.mark.parametrize("name", [*RESULTS, "topological_order", "zero_grad", "Value"])
def test_whatever_a_function_returns_the_check_goes_on(name: str) -> None:
    for junk in JUNK[::4]:
        names = names_of(SOLUTION) | {name: lambda *_, junk=junk: junk}
        for stage in STAGES:
            if name in stage.required_names:
                result = cgprimer.check_engine(names, stage.number)
                assert result.points < result.possible or name not in RESULTS


@pytest.mark.slow
@pytest.mark.parametrize("attribute", ["data", "grad", "parents", "op"])
def test_whatever_a_value_holds_the_check_goes_on(attribute: str) -> None:
    held = f"class Value(Value):\n    {attribute} = property(lambda s: J, lambda s, v: None)\n"
    for junk in JUNK[:3]:
        names = names_of(f"{SOLUTION}\n{held}")
        names["J"] = junk
        for number in (2, 3, 8):
            result = cgprimer.check_engine(names, number)
            assert result.points < result.possible or (attribute, number) != ("parents", 3)


def test_a_class_or_a_function_is_a_submission() -> None:
    names = names_of(SOLUTION)
    for name, stage in (("Value", 2), ("topological_order", 3)):
        result = cgprimer.check_engine(names[name], stage)
        assert {part.verdict for part in result.parts} <= {"right", "not run"}
    assert cgprimer.check_engine(names["Value"], 4).points > 0


def test_how_far_a_submission_gets(tmp_path: Path) -> None:
    file = tmp_path / "ann.py"
    file.write_text(SOLUTION[: SOLUTION.index("def zero_grad")] + "print('so far')\n")
    result = cgprimer.check_engine(file)
    assert [part.verdict for part in result.parts] == ["right"] * 5 + ["not run"] * 5
    assert result.parts[5].message == "the submission does not define zero_grad"
    assert "so far" in result.output


def test_a_name_that_is_nearly_right_is_to_be_renamed() -> None:
    result = cgprimer.check_engine(names_of(SOLUTION.replace("zero_grad", "zero_grads")), 6)
    approved(result.parts[0].message, "`zero_grads` ... `zero_grad`")


def test_only_similar_names_are_to_be_renamed() -> None:
    result = cgprimer.check_engine(names_of("def sigmoid(x): return x\n"), 7)
    assert result.parts[0].verdict == "not run"
    assert "sigmoid" not in result.parts[0].message


@pytest.mark.parametrize(
    ("method", "stage"),
    [("Value.backward", 4), ("SGD.step", 7), ("Network.__call__", 10), ("Network.parameters", 10)],
)
def test_a_missing_method_is_named(method: str, stage: int) -> None:
    owner, name = method.split(".")
    names = names_of(SOLUTION)
    delattr(names[owner], name)
    result = cgprimer.check_engine(names, stage)
    assert {part.verdict for part in result.parts} <= {"right", "not run"}
    assert f"`{method}` is missing" in {part.message for part in result.parts}


@pytest.mark.slow
def test_a_stage_that_never_ends_leaves_the_others(tmp_path: Path) -> None:
    file = tmp_path / "bob.py"
    endless = "def record(f, inputs):\n    while True: pass\n"
    leaving = "def derivatives(f, x, order):\n    raise SystemExit\n"
    file.write_text(f"{SOLUTION}\n{endless}{leaving}")
    limits = cgprimer.course.checks.sandbox.Limits(time=1)
    result = cgprimer.check_engine(file, limits=limits)
    assert [p.name for p in result.parts if p.verdict != "right"] == [
        "stage 8: tape", "stage 9: second order",
    ]  # fmt: skip
    assert {"out of time", "ends the program"} <= set(result.mistakes)


def test_pages_and_skeletons() -> None:
    for stage in STAGES:
        text = read_stage_page(stage.number)
        assert text.startswith(f"# {stage.number}. ")
        for heading in ("The idea.", "The formula.", "What to write.", "How it is checked.",
                        "What to look at next."):  # fmt: skip
            assert heading in text
    with refused(cgprimer.UsageError, "11"):
        build_engine_skeleton(11)
    with refused(cgprimer.UsageError, "11"):
        read_stage_page(11)


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
@pytest.mark.parametrize("whole", [False, True])
def test_a_skeleton_can_be_checked_at_once(stage: Stage, whole: bool) -> None:
    code = build_engine_skeleton(None if whole else stage.number)
    tree = ast.parse(code)
    names = names_of(code)
    assert set(stage.required_names) <= names.keys()
    methods = {
        id(inner) for one in tree.body if isinstance(one, ast.ClassDef) for inner in one.body
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            assert (id(node) in methods) == (node.args.args[0].arg == "self")
    result = cgprimer.check_engine(names, stage.number)
    assert {part.verdict for part in result.parts} == {"not run"}
    assert {part.message for part in result.parts} == {"not written yet"}
    assert not result.mistakes


def test_the_solution_is_not_packaged() -> None:
    for node in ast.walk(ast.parse(build_engine_skeleton())):
        if isinstance(node, ast.FunctionDef) and "parents" not in ast.unparse(node.args):
            assert ast.unparse(node.body[-1]) == "raise NotImplementedError"


def test_what_a_student_wrote_becomes_a_graph() -> None:
    graph, grads = build_engine_graph(names_of(SOLUTION), "e = (a + b)*(b + 1)", {"a": 2, "b": 1})
    assert graph.outputs == ("e",)
    assert grads["a"] == 2
    assert grads["b"] == 5
    assert cgprimer.gradient(graph, wrt=["a", "b"]) == {"a": 2.0, "b": 5.0}
    assert cgprimer.trace(graph, of="e", method="reverse").rows
    other, _ = build_engine_graph(
        names_of(MICROGRAD.replace("CHILDREN", "set(_children)")), "e = x*x - x/y"
    )
    assert float(other.evaluate()["e"]) == 4 - 2 / 3


def test_operations_without_a_name_are_recognised() -> None:
    rows: list[dict[str, Any]] = [
        {"data": 2.0, "op": "", "parents": [], "set": False},
        {"data": 3.0, "op": "", "parents": [], "set": False},
        {"data": -1.0, "op": "MinusBackward", "parents": [0, 1], "set": False},
        {"data": 9.0, "op": "**2", "parents": [1], "set": False},
        {"data": 77.0, "op": "mystery", "parents": [2, 3], "set": False},
    ]
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


def test_the_command(tmp_path: Path) -> None:
    file = tmp_path / "ann.py"
    file.write_text(SOLUTION)
    done = here("check", "engine", file, "--stage", 5, cwd=tmp_path)
    assert "7 of 7 points" in done.stdout
    done = here("check", "engine", "--stage", 3, "--about", cwd=tmp_path)
    assert done.stdout.startswith("# 3. Topological order")
    done = here("check", "engine", "--stage", 3, "--skeleton", cwd=tmp_path)
    assert {"class Value:", "def topological_order(value):"} <= set(done.stdout.splitlines())
    done = here("check", "engine", file, "--trace", "-e", "y = x*x + x", cwd=tmp_path)
    assert re.search(r"x +2 +5", done.stdout), done.stdout
    done = here("check", "engine", file, "--draw", "graph.svg", cwd=tmp_path)
    assert "grad = 5" in (tmp_path / "graph.svg").read_text() or done.returncode == 0
    assert (tmp_path / "graph.svg").stat().st_size > 1000
    assert here("check", "engine", file, "--draw", "graph.svg", cwd=tmp_path).returncode == 2
    assert here("check", "engine", "--about", cwd=tmp_path).returncode == 2
    assert here("check", "engine", file, "--stage", 12, cwd=tmp_path).returncode == 2
