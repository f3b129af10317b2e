"""Update rules of the courses against PyTorch's, written out as text, and one coordinate a time."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.errors import CgprimerError, UsageError
from cgprimer.training.data import Dataset
from cgprimer.training.optimizers import OPTIMIZERS, optimizer
from cgprimer.training.update_rules import record_update
from cgprimer.training.written_rules import UpdateRuleError
from tests.approval import refused
from tests.training.training_graphs import lecture, lecture_data, line, line_data

START = {"k": 0.25, "b": 0.5}
ADAM = (
    "m = beta1*m + (1 - beta1)*g; s = beta2*s + (1 - beta2)*g*g;"
    "p = p - rate*(m/(1 - beta1^t))/(sqrt(s/(1 - beta2^t)) + epsilon)"
)
# Settings here; PyTorch's class and arguments; its k and b after 100 steps (torch 2.x, float64).
PYTORCH: dict[str, tuple[dict[str, Any], str, dict[str, Any], tuple[float, float]]] = {
    "sgd": ({}, "SGD", {}, (2.8352497318555185, -0.7586987040336979)),
    "momentum": (
        {"hyper": {"beta": 0.8}}, "SGD", {"momentum": 0.8},
        (3.0000242307458196, -1.0000171318886188),
    ),
    "nesterov": (
        {"hyper": {"beta": 0.8}}, "SGD", {"momentum": 0.8, "nesterov": True},
        (3.0000095111564407, -1.00001438403382),
    ),
    "adagrad": ({}, "Adagrad", {}, (0.6070533697156035, 0.597078602033693)),
    "rmsprop": ({}, "RMSprop", {}, (2.7930176097023636, -0.8597871174459242)),
    "adam": ({}, "Adam", {}, (1.9299048476773637, -0.2677904458663325)),
    "adamw": (
        {"hyper": {"weight_decay": 0.1}}, "AdamW", {"weight_decay": 0.1},
        (1.7542807416932917, -0.1633611555826618),
    ),
    "sgd with l2": ({"l2": 0.1}, "SGD", {"weight_decay": 0.2},
                    (2.6133279906231164, -0.598189424295372)),
}  # fmt: skip


def hundred_steps(name: str, engine: str, **settings: Any) -> dict[str, float]:
    run = cgprimer.train(
        line(), line_data(), optimizer=name.partition(" ")[0], engine=engine, start=START,
        epochs=100, learning_rate=0.02, schedule="constant", batch_size=None, **settings,
    )  # fmt: skip
    return run.parameters


@pytest.mark.parametrize("engine", ["plain", "numpy", "cpu"])
@pytest.mark.parametrize("name", PYTORCH)
def test_a_hundred_steps_are_pytorchs(name: str, engine: str) -> None:
    settings, _, _, expected = PYTORCH[name]
    found = hundred_steps(name, engine, **settings)
    assert (found["k"], found["b"]) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("name", PYTORCH)
def test_a_hundred_steps_beside_pytorch(name: str) -> None:
    torch: Any = pytest.importorskip("torch", reason="torch is in the extras")
    settings, kind, arguments, _ = PYTORCH[name]
    data = line_data()
    xa, target = (torch.tensor(c) for c in (data.inputs["xa"], data.targets["xw"]))
    k, b = (torch.tensor(START[n], dtype=torch.float64, requires_grad=True) for n in "kb")
    stepper = getattr(importlib.import_module("torch.optim"), kind)([k, b], lr=0.02, **arguments)
    for _ in range(100):
        stepper.zero_grad()
        ((k * xa + b - target) ** 2).mean().backward()
        stepper.step()
    found = hundred_steps(name, "numpy", **settings)
    assert (found["k"], found["b"]) == pytest.approx((k.item(), b.item()), rel=1e-10)


@pytest.mark.parametrize("engine", ["numpy", "cpu"])
def test_adam_written_out_is_adam(engine: str) -> None:
    settings: dict[str, Any] = {"epochs": 4, "learning_rate": 0.05, "engine": engine}
    known = cgprimer.train(lecture(), lecture_data(), **settings)
    hyper = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
    found = cgprimer.train(lecture(), lecture_data(), optimizer=ADAM, hyper=hyper, **settings)
    assert found.parameters == pytest.approx(known.parameters, rel=1e-13)
    assert found.step_losses == pytest.approx(known.step_losses, rel=1e-12)


def test_written_state_begins_at_zero_or_where_it_is_told() -> None:
    rule = optimizer("v = mu*v + g; p = p - rate*v", {"mu": 0.5, "v": 2.0})
    assert rule.hyper == {}
    p, state = rule.update(np.array([1.0]), np.array([3.0]), rule.start(np.array([1.0])), 0.1)
    assert (p, state) == (pytest.approx(0.6), (pytest.approx(4.0),))
    local = optimizer("d = rate*g; p = p - d")
    assert local.start(np.ones(3)) == ()
    assert len(record_update(optimizer("p = p - rate*g/t")).scalars) == 2


@pytest.mark.parametrize(
    ("text", "hyper", "said", "under"),
    [
        ("v = 0.9*v + g", {}, "p", "v"),
        ("p = p - rate*sqr(g)", {}, "'sqr' ... 'sqrt'", "sqr"),
        ("p = p - rate*g/0", {}, "", "rate*g/0"),
        ("p = p - rate*g/s; s = s + g^2", {}, "s ... 0", "rate*g/s"),
        ("p = p - rate*g/sqrt(s); s = s + g^2", {}, "", "rate*g/sqrt(s)"),
        ("p = p - rate*log(-abs(g))", {}, "nan", "log(-abs(g))"),
        ("v = mu*v + g; p = p - rate*v", {}, "'mu' ... --hyper mu=", "mu"),
        ("p = p - rat*g", {}, "'rat' ... 'rate'", "rat"),
        ("g = 2*g; p = p - rate*g", {}, "g", "g"),
        ("p = p*rate", {}, "g", "p"),
        ("p = p - rate*sum(g)", {}, "", "sum(g)"),
        ("p = p - rate*", {}, "", " "),
        ("parameter v = 2; p = p - g", {}, "", "v"),
    ],
)
def test_texts_that_are_no_update_rules(
    text: str, hyper: dict[str, float], said: str, under: str
) -> None:
    with refused(CgprimerError, said) as caught:
        optimizer(text, hyper)
    lines = str(caught.value).splitlines()
    carets = next(k for k, one in enumerate(lines) if set(one.strip()) == {"^"})
    begin = lines[carets].index("^")
    assert lines[carets - 1].ljust(99)[begin : begin + lines[carets].count("^")] == under


@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize(
    "text", ["p = p - v*g; v = rate", "v = 0.5*rate; p = p - v*g/t", "p = p - rate*g; n = n + 1"]
)
def test_state_of_one_number_for_all_is_state_of_each(text: str, batch: int) -> None:
    """Statements whose right side knows no parameter."""
    runs = [
        cgprimer.train(
            line(), line_data(), optimizer=text, learning_rate=0.1, epochs=3, batch_size=batch,
            engine=engine,
        )
        for engine in ("numpy", "cpu")
    ]  # fmt: skip
    assert runs[0].parameters == pytest.approx(runs[1].parameters, rel=1e-12)
    assert runs[0].loss < runs[0].start_loss


def test_a_rule_with_a_text_is_given_its_names_and_no_others() -> None:
    with refused(UsageError, "'nu' ... v ... mu"):
        optimizer("v = mu*v + g; p = p - rate*v", {"mu": 0.9, "nu": 1})
    with pytest.raises(UpdateRuleError):
        cgprimer.train(line(), line_data(), optimizer="v = mu*v + g; p = p - rate*v")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"optimizer": "momentum", "hyper": {"bta": 0.9}}, "'bta' ... 'beta'"),
        ({"optimizer": "momentum", "hyper": {"beta": 1.0}}, "0 ... 1"),
        ({"hyper": {"epsilon": -1.0}}, "0"),
        ({"hyper": {"beta1": "a"}}, ""),
        ({"hyper": [1]}, ""),
        ({"optimizer": "l-bfgs", "l1": 0.1}, "l1"),
        ({"optimizer": "l-bfgs", "max_norm": 1}, "max_norm"),
        ({"optimizer": "coordinates", "hyper": {"block": 0}}, "1"),
        ({"optimizer": "coordinates", "hyper": {"block": 1.5}}, ""),
        ({"optimizer": "coordinates", "carry": True}, ""),
    ],
)
def test_settings_that_do_not_fit(settings: dict[str, Any], said: str) -> None:
    with refused(UsageError, said):
        cgprimer.train(line(), line_data(), **settings)


def test_every_optimizer_learns() -> None:
    for name in OPTIMIZERS:
        run = cgprimer.train(line(), line_data(), optimizer=name, learning_rate=0.1, epochs=60)
        assert run.loss < 0.5 * run.start_loss, name


def test_l_bfgs_stops_where_nothing_is_left_to_do() -> None:
    run = cgprimer.train(lecture(), lecture_data(), optimizer="l-bfgs", epochs=200)
    assert run.loss < 1e-18
    assert run.stopped == "converged"
    assert run.steps == run.epochs == len(run.step_losses) < 200
    few = cgprimer.train(lecture(), lecture_data(), optimizer="l-bfgs", epochs=3)
    assert (few.stopped, few.steps) == ("finished", 3)
    assert few.step_losses == pytest.approx(run.step_losses[:3], rel=1e-9)


# --- random coordinate descent -------------------------------------------------------------------


def bowl() -> tuple[Any, Dataset]:
    """F12: 2x^2 + 3y^2, whose output is the loss."""
    return cgprimer.parse("xw = 2*x1^2 + 3*y^2; parameter x1"), Dataset.from_arrays(
        {}, {"xw": [0.0]}
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("engine", ["plain", "numpy", "cpu"])
def test_two_coordinates_two_steps_in_either_order(seed: int, engine: str) -> None:
    graph, data = bowl()
    run = cgprimer.train(
        graph, data, optimizer="coordinates", learning_rate=1.0, schedule="constant",
        scale={"x1": 1 / 4, "y": 1 / 6}, start={"x1": 4, "y": 5}, loss="out", epochs=2, seed=seed,
        engine=engine,
    )  # fmt: skip
    assert run.parameters == pytest.approx({"x1": 0.0, "y": 0.0}, abs=1e-14)
    assert run.step_losses == pytest.approx([107.0, run.step_losses[1]])
    assert run.step_losses[1] in (pytest.approx(75.0), pytest.approx(32.0))


def test_both_orders_come() -> None:
    graph, data = bowl()
    settings: dict[str, Any] = {"loss": "out", "start": {"x1": 4, "y": 5}, "epochs": 1}
    runs = [
        cgprimer.train(graph, data, optimizer="coordinates", seed=seed, **settings)
        for seed in range(8)
    ]
    moved = [{n for n, v in run.parameters.items() if v != run.start[n]} for run in runs]
    assert {frozenset(one) for one in moved} == {frozenset({"x1"}), frozenset({"y"})}


def test_only_the_chosen_are_differentiated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of one coordinate of four is one run of the tape of forward mode."""
    from cgprimer.training.objective import Objective

    passes: list[int] = []
    made = Objective.__init__

    def counting(self: Objective, *given: Any, **more: Any) -> None:
        made(self, *given, **more)
        execute = self.runner.execute

        def counted(columns: Any, scalars: Any, samples: int) -> Any:
            passes.append(samples)
            return execute(columns, scalars, samples)

        self.runner.execute = counted

    monkeypatch.setattr(Objective, "__init__", counting)
    cgprimer.train(
        lecture(), lecture_data(40), optimizer="coordinates", learning_rate=1e-5, epochs=2,
        batch_size=10, engine="numpy", hyper={"block": 2}, freeze=["ab"],
    )  # fmt: skip
    assert passes.count(10) == 8 * 2


def test_coordinates_of_arrays() -> None:
    graph = cgprimer.parse("input x[3]; parameter W[2,3], b[2]; xo = sum(tanh(W @ x + b))")
    truth = {"W": np.ones((2, 3)), "b": np.zeros(2)}
    data = cgprimer.make_dataset(graph, truth=truth, samples=50)
    for engine in ("plain", "cpu"):
        run = cgprimer.train(
            graph, data, optimizer="coordinates", epochs=200, batch_size=None, engine=engine
        )
        assert run.loss < 0.5 * run.start_loss
