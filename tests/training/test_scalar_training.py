"""Training in pure Python computes what `train` computes, and runs without numpy."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cgprimer
from cgprimer.training.rule_tables import SCHEDULES
from cgprimer.training.scalar_samples import MAX_ROWS, generate_samples, parse_samples
from cgprimer.training.scalar_training import SCALAR_OPTIMIZERS, ScalarTraining
from tests.approval import approved

NETWORK = cgprimer.parse("""
parameter w1 = 1.5, w2 = -0.8, b = 0.3, v = 2
h = tanh(w1*xa + w2*xb + b)
y = v*h
output y
""")
START = {"w1": 0.2, "w2": 0.1, "b": -0.1, "v": 0.5}
TWO = cgprimer.parse("parameter k = 2, c = 1; xs = k*xa + c; xt = k*xa^2 - c")
CLASSES = cgprimer.parse("parameter k = 2, c = 1; p = sigmoid(k*xa + c); output p")


def columns(graph: cgprimer.ExpressionGraph, samples: int = 23) -> dict[str, list[float]]:
    return generate_samples(graph, samples, seed=3)


def trained(graph: cgprimer.ExpressionGraph, data: dict[str, list[float]], **settings: object):
    """Train with the engines of `train`, in the order of the data."""
    inputs = {name: data[name] for name in graph.inputs}
    targets = {name: data[name] for name in graph.outputs}
    dataset = cgprimer.Dataset.from_arrays(inputs, targets)
    return cgprimer.train(graph, dataset, shuffle=False, **settings)


def check_agreement(graph: cgprimer.ExpressionGraph, data: dict, **settings: object) -> None:
    run = ScalarTraining(graph, data, shuffle=False, **settings)
    while not run.finished:
        run.train_for(0.01)
    for engine in ("plain", "numpy"):
        other = trained(graph, data, engine=engine, **settings)
        assert list(run.parameters) == list(other.parameters)
        np.testing.assert_allclose(
            [*run.parameters.values(), *run.losses],
            [*other.parameters.values(), *other.epoch_losses],
            rtol=1e-12,
        )


@pytest.mark.parametrize("batch_size", [1, 7, None])
@pytest.mark.parametrize("optimizer", SCALAR_OPTIMIZERS)
def test_optimizers_agree_with_train(optimizer: str, batch_size: int | None) -> None:
    settings = {"optimizer": optimizer, "batch_size": batch_size, "start": START, "epochs": 5}
    check_agreement(NETWORK, columns(NETWORK), **settings)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedules_agree_with_train(schedule: str) -> None:
    settings = {"schedule": schedule, "learning_rate": 0.03, "start": START, "epochs": 25}
    check_agreement(NETWORK, columns(NETWORK), batch_size=10, **settings)


@pytest.mark.parametrize(
    ("graph", "loss"),
    [
        *((TWO, loss) for loss in ("squared-error", "huber(0.5)")),
        (TWO, "softmax-cross-entropy"),
        (NETWORK, "abs(out - target)^3"),
        (CLASSES, "cross-entropy"),
    ],
)
def test_losses_agree_with_train(graph: cgprimer.ExpressionGraph, loss: str) -> None:
    data = columns(graph)
    if loss == "softmax-cross-entropy":
        data |= {"xs": [float(k % 2) for k in range(23)], "xt": [1.0 - k % 2 for k in range(23)]}
    start = dict.fromkeys(graph.parameters, 0.25)
    check_agreement(graph, data, loss=loss, start=start, epochs=4, batch_size=5)


def test_random_orders_and_starts_depend_on_the_seed() -> None:
    def learn(**settings: int) -> list[float]:
        run = ScalarTraining(NETWORK, columns(NETWORK), epochs=3, batch_size=4, **settings)
        run.train_for(math.inf)
        return [*run.parameters.values(), *run.losses]

    assert learn(seed=1) == learn(seed=1)
    assert learn(seed=1) != learn(seed=2)
    shuffled, ordered = (
        ScalarTraining(NETWORK, columns(NETWORK), epochs=3, start=START, batch_size=4, shuffle=b)
        for b in (True, False)
    )
    for run in (shuffled, ordered):
        run.train_for(math.inf)
    assert shuffled.losses != ordered.losses


def test_generated_samples_follow_the_scheme_of_make_dataset() -> None:
    graph = cgprimer.parse("input y in {0, 1}, xa; parameter k = 2; xw = k*xa + y; output xw")
    data = generate_samples(graph, 4000, seed=5)
    expected = cgprimer.make_dataset(graph, samples=4000, seed=5)
    assert set(data) == set(expected.columns)
    assert set(data["y"]) == {0.0, 1.0}
    assert data["xw"] == [2 * xa + y for xa, y in zip(data["xa"], data["y"], strict=True)]
    for name, column in expected.columns.items():
        assert np.mean(data[name]) == pytest.approx(np.mean(column), abs=0.06)
        assert np.std(data[name]) == pytest.approx(np.std(column), abs=0.06)


BAD_DATA = {
    "empty": "",
    "blank lines": "\n\n",
    "only a header": "xa,xw",
    "missing column": "xa,xv\n1,2",
    "double column": "xa,xw,xw\n1,2,3",
    "too few fields": "xa,xw\n1,2\n3",
    "a word": "xa,xw\n1,2\n\n3,four",
    "a decimal comma": "xa;xw\n1;2,5",
    "an underscore": "xa,xw\n1_000,2",
    "not finite": "xa,xw\n1,inf",
    "long field": f"xa,xw\n1,{'9x' * 100}",
    "many rows": "xa,xw\n" + "1,2\n" * (MAX_ROWS + 1),
    "large": "xa,xw\n" + "1" * 1_000_000,
    "NUL": "xa,xw\n1,\0",
    "quotes": 'xa,xw\n1,"2',
}


def test_messages_about_pasted_data() -> None:
    messages = []
    for title, text in BAD_DATA.items():
        with pytest.raises(cgprimer.DataError) as raised:
            parse_samples(text, ["xa", "xw"])
        messages.append(f"{title}: {raised.value}")
    approved("\n".join(messages))
    good = '\ufeffxw; "xa";note\r\n1;+2e0;a\r\n\r\n 3 ;-.5;b\r\n'
    assert parse_samples(good, ["xa", "xw"]) == {"xa": [2.0, -0.5], "xw": [1.0, 3.0]}


def test_messages_about_runs() -> None:
    def message(text: str, data: dict[str, list[float]], **settings: object) -> str:
        with pytest.raises(cgprimer.CgprimerError) as raised:
            ScalarTraining(cgprimer.parse(text), data, **settings).train_for(math.inf)
        return str(raised.value)

    data = {"xa": [1.0, -1.0], "xw": [0.5, 2.0]}
    line = "xw = k*xa"
    approved(
        "\n".join(
            [
                message("xw = log(k*xa)", data, start={"k": 2.0}),
                message("xw = k*xa", data, optimizer="sgd", learning_rate=1e200, batch_size=1),
                message("input x[2]; xw = sum(k*x)", data),
                message("xw = xa^2", data),
                message(line, {"xa": [1.0]}),
                message(line, data, loss="cross-entropy"),
                message(line, data, optimizer="l-bfgs"),
                message(line, data, schedule="cosin"),
                message(line, data, batch_size=0),
                message(line, data, start={"q": 1}),
            ]
        )
    )
    for text in ("parameter k = 2; xw = sqrt(k*xa)", "xw = k*xa"):
        with pytest.raises(cgprimer.CgprimerError, match=r"target|missing"):
            generate_samples(cgprimer.parse(text), 10)


def test_training_needs_no_numpy() -> None:
    program = """
import sys
sys.modules["numpy"] = None
from cgprimer import parse
from cgprimer.training.scalar_samples import generate_samples
from cgprimer.training.scalar_training import ScalarTraining
graph = parse("parameter k = 3, b = -1; xw = k*xa + b")
run = ScalarTraining(graph, generate_samples(graph, 50), epochs=60, batch_size=10)
run.train_for(60_000)
print({name: round(value, 2) for name, value in run.parameters.items()})
try:
    graph = parse("xw = sqrt(k*xa)")
    ScalarTraining(graph, {"xa": [1.0], "xw": [2.0]}, start={"k": -1}).train_for(1_000)
except Exception as error:
    print(type(error).__name__)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True,
        cwd=Path(cgprimer.__file__).parents[1],
    )  # fmt: skip
    assert done.stdout.split("\n")[:2] == ["{'k': 3.0, 'b': -1.0}", "NonFiniteError"]
