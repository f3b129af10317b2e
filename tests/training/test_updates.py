"""Update rules and batches against formulas written out here."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cgprimer
from cgprimer.errors import UsageError
from cgprimer.training.data import Dataset
from cgprimer.training.loop import train
from cgprimer.training.objective import Objective, loss_and_gradient
from cgprimer.training.optimizers import optimizer
from tests.approval import refused
from tests.training.training_graphs import lecture, lecture_data, line, line_data

START = {"k": 0.25, "b": 0.5}


def by_hand(rule: str, steps: int, rate: float) -> tuple[list[float], list[float]]:
    """Parameters after full-batch steps on line_data(), and the losses before each."""
    xa = [0.5, -1.0, 2.0, 0.25, 1.5]
    target = [3 * x - 1 for x in xa]
    values = [START["k"], START["b"]]
    velocity = [0.0, 0.0]
    first = [0.0, 0.0]
    second = [0.0, 0.0]
    losses = []
    for step in range(1, steps + 1):
        errors = [values[0] * x + values[1] - t for x, t in zip(xa, target, strict=True)]
        losses.append(sum(e * e for e in errors) / len(xa))
        gradient = [
            sum(2 * e * x for e, x in zip(errors, xa, strict=True)) / len(xa),
            sum(2 * e for e in errors) / len(xa),
        ]
        for i, g in enumerate(gradient):
            if rule == "sgd":
                values[i] -= rate * g
            elif rule == "momentum":
                velocity[i] = 0.9 * velocity[i] + g
                values[i] -= rate * velocity[i]
            else:
                first[i] = 0.9 * first[i] + 0.1 * g
                second[i] = 0.999 * second[i] + 0.001 * g * g
                corrected = first[i] / (1 - 0.9**step)
                size = math.sqrt(second[i] / (1 - 0.999**step))
                values[i] -= rate * corrected / (size + 1e-8)
    return values, losses


@pytest.mark.parametrize("rule", ["sgd", "momentum", "adam"])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_first_steps(rule: str, steps: int) -> None:
    run = train(
        line(), line_data(), optimizer=rule, learning_rate=0.05, schedule="constant",
        epochs=steps, batch_size=None, start=START,
    )  # fmt: skip
    values, losses = by_hand(rule, steps, 0.05)
    assert run.parameters == pytest.approx(dict(zip("kb", values, strict=True)), rel=1e-13)
    assert run.step_losses == pytest.approx(losses, rel=1e-13)
    assert run.epoch_losses == run.step_losses
    assert run.start == START


def test_cosine_goes_down_to_zero_at_the_last_step() -> None:
    steps = 4
    value, expected = START["k"], []
    for step in range(steps):
        rate = 0.1 * (1 + math.cos(math.pi * step / steps)) / 2
        value -= rate * 2 * (value * 2.0 - 4.0) * 2.0
        expected.append(value)
    graph = cgprimer.parse("xw = k*xa")
    data = Dataset.from_arrays({"xa": [2.0]}, {"xw": [4.0]})
    run = train(
        graph, data, optimizer="sgd", learning_rate=0.1, epochs=steps, start={"k": START["k"]}
    )
    assert run.parameters["k"] == pytest.approx(expected[-1], rel=1e-13)


def test_adams_first_step_is_the_rate_times_the_sign() -> None:
    """E9: with g = 1e-5 and epsilon = 1e-8 outside the root, .999000999 of the rate."""
    zero, adam = np.zeros(2), optimizer("adam").update
    moved, state = adam(zero, np.array([1e-5, -1e-5]), (zero, zero, np.array(0.0)), rate=0.5)
    assert moved == pytest.approx([-0.5 * 0.999000999, 0.5 * 0.999000999], rel=1e-9)
    assert float(state[2]) == 1
    moved, _ = adam(zero, np.array([100.0, 0.0]), (zero, zero, np.array(0.0)), rate=0.5)
    assert moved == pytest.approx([-0.5, 0.0], rel=1e-9)


def test_update_rules_are_pure() -> None:
    values, gradient = np.array([1.0, 2.0]), np.array([0.5, -0.5])
    for name in ("sgd", "momentum", "adam"):
        rule = optimizer(name)
        state = rule.start(values)
        kept = [part.copy() for part in state]
        once = rule.update(values, gradient, state, 0.1)
        again = rule.update(values, gradient, state, 0.1)
        assert (values == [1.0, 2.0]).all()
        assert all((a == b).all() for a, b in zip(state, kept, strict=True))
        assert (once[0] == again[0]).all()


def test_unknown_optimizer() -> None:
    with refused(UsageError, "'adan' ... 'adam'"):
        optimizer("adan")


def test_one_sample_at_a_time_is_the_engine_on_one_sample() -> None:
    """Samples one at a time run on Python's floats; the numbers are the engine's."""
    graph, data = lecture(), lecture_data(40)
    run = train(
        graph, data, optimizer="sgd", learning_rate=1e-4, schedule="constant", epochs=2,
        batch_size=1, shuffle=False,
    )  # fmt: skip
    objective = Objective(graph)
    columns = objective.columns(data)
    values = np.array([run.start[n] for n in graph.parameters])
    losses = []
    for _ in range(2):
        for i in range(40):
            one = {n: c[i : i + 1] for n, c in columns.items()}
            loss, gradient = objective.sums(one, values, 1)
            losses.append(loss)
            values = values - 1e-4 * gradient
    assert [run.parameters[n] for n in graph.parameters] == pytest.approx(values, rel=1e-12)
    assert run.step_losses == pytest.approx(losses, rel=1e-12)


def test_one_sample_at_a_time_by_every_exact_method() -> None:
    runs = [
        train(lecture(), lecture_data(60), batch_size=1, epochs=2, method=method)
        for method in ("reverse", "forward", "symbolic", "path-sum")
    ]
    for run in runs[1:]:
        assert run.parameters == pytest.approx(runs[0].parameters, rel=1e-10)


def test_mini_batches_are_means_over_their_samples() -> None:
    """Five samples in batches of two: the last batch holds one."""
    xa = np.array([0.5, -1.0, 2.0, 0.25, 1.5])
    k, b, losses = START["k"], START["b"], []
    for part in (xa[:2], xa[2:4], xa[4:]):
        error = k * part + b - (3 * part - 1)
        losses.append(float((error**2).mean()))
        k, b = k - 0.1 * (2 * error * part).mean(), b - 0.1 * (2 * error).mean()
    run = train(
        line(), line_data(), optimizer="sgd", learning_rate=0.1, schedule="constant", epochs=1,
        batch_size=2, shuffle=False, start=START,
    )  # fmt: skip
    assert run.parameters == pytest.approx({"k": k, "b": b}, rel=1e-13)
    assert run.step_losses == pytest.approx(losses, rel=1e-13)
    assert run.epoch_losses == pytest.approx([(2 * losses[0] + 2 * losses[1] + losses[2]) / 5])
    assert (run.steps, run.settings["batch_size"]) == (3, 2)


def test_the_order_of_an_epoch_comes_from_seed_and_epoch() -> None:
    graph, data = line(), line_data()
    settings = {
        "optimizer": "sgd", "learning_rate": 0.05, "schedule": "constant", "epochs": 2,
        "start": START,
    }  # fmt: skip
    run = train(graph, data, batch_size=2, seed=7, **settings)
    xa = data.inputs["xa"]
    k, b = START["k"], START["b"]
    for epoch in range(2):
        order = np.random.default_rng([7, epoch]).permutation(5)
        for part in (xa[order[:2]], xa[order[2:4]], xa[order[4:]]):
            error = k * part + b - (3 * part - 1)
            k, b = k - 0.05 * (2 * error * part).mean(), b - 0.05 * (2 * error).mean()
    assert run.parameters == pytest.approx({"k": k, "b": b}, rel=1e-12)
    assert run.parameters != train(graph, data, batch_size=2, seed=8, **settings).parameters


@pytest.mark.parametrize("size", [None, 200])
def test_the_full_batch_is_loss_and_gradient(size: int | None) -> None:
    graph, data = lecture(), lecture_data()
    run = train(
        graph, data, optimizer="sgd", learning_rate=1e-5, schedule="constant", epochs=3,
        batch_size=size,
    )  # fmt: skip
    call = loss_and_gradient(graph, data, reduction="mean")
    values, losses = dict(run.start), []
    for _ in range(3):
        loss, gradient = call(values)
        losses.append(loss)
        values = {n: v - 1e-5 * gradient[n] for n, v in values.items()}
    assert run.steps == 3
    assert run.parameters == pytest.approx(values, rel=1e-13)
    assert run.step_losses == pytest.approx(losses, rel=1e-13)
    assert run.start_loss == pytest.approx(losses[0], rel=1e-13)
    assert run.loss == pytest.approx(call(values)[0], rel=1e-12)


def test_shuffling_does_not_touch_the_dataset() -> None:
    data = line_data()
    before = {**data.inputs, **data.targets}
    kept = {n: c.copy() for n, c in before.items()}
    train(line(), data, epochs=2, batch_size=2)
    assert all((kept[n] == c).all() for n, c in {**data.inputs, **data.targets}.items())


@pytest.mark.parametrize("start", [((0.6, 0.9), 0.81757, 0.09396), ((2, 2), 0.98201, 0.20284)])
@pytest.mark.parametrize("batch_size", [1, None])
def test_nielsens_neuron(
    start: tuple[tuple[float, float], float, float], batch_size: int | None
) -> None:
    """E8: one sigmoid neuron learns to turn 1 into 0."""
    (w, b), before, after = start
    graph = cgprimer.parse("xw = sigmoid(w*xa + b)")
    run = train(
        graph, Dataset.from_arrays({"xa": [1.0]}, {"xw": [0.0]}), optimizer="sgd",
        learning_rate=0.15, schedule="constant", epochs=300, batch_size=batch_size,
        loss="half-squared-error", start={"w": w, "b": b},
    )  # fmt: skip

    def output(values: dict[str, float]) -> float:
        return float(graph.evaluate({"xa": 1.0, **values})["xw"])

    # Five digits are known, the last of them cut off rather than rounded.
    assert output(run.start) == pytest.approx(before, abs=1e-5)
    assert output(run.parameters) == pytest.approx(after, abs=1e-5)
    assert run.loss == pytest.approx(output(run.parameters) ** 2 / 2)
    assert run.steps == 300
