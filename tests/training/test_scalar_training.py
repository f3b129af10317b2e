"""Training in pure Python computes what `train` computes.

`tests/playground/test_playground_archives.py` runs it without numpy.
"""

from __future__ import annotations

import math

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


AGREEING = [
    *(
        (NETWORK, {"optimizer": name, "batch_size": size, "epochs": 5})
        for name in SCALAR_OPTIMIZERS
        for size in (1, 7, None)
    ),
    *((NETWORK, {"schedule": name, "learning_rate": 0.03, "epochs": 25}) for name in SCHEDULES),
    (TWO, {"loss": "squared-error"}),
    (TWO, {"loss": "huber(0.5)"}),
    (TWO, {"loss": "softmax-cross-entropy"}),
    (NETWORK, {"loss": "abs(out - target)^3"}),
    (CLASSES, {"loss": "cross-entropy"}),
]


@pytest.mark.parametrize(("graph", "settings"), AGREEING)
def test_runs_agree_with_train(graph: cgprimer.ExpressionGraph, settings: dict) -> None:
    data = columns(graph)
    if settings.get("loss") == "softmax-cross-entropy":
        data |= {"xs": [float(k % 2) for k in range(23)], "xt": [1.0 - k % 2 for k in range(23)]}
    settings = {"start": START if graph is NETWORK else {"k": 0.25, "c": 0.25}, **settings}
    settings = {"batch_size": 10, "epochs": 4, **settings}
    run = ScalarTraining(graph, data, shuffle=False, **settings)
    while not run.finished:
        run.train_for(0.01)
    dataset = cgprimer.Dataset.from_arrays(
        {name: data[name] for name in graph.inputs}, {name: data[name] for name in graph.outputs}
    )
    for engine in ("plain", "numpy"):
        other = cgprimer.train(graph, dataset, shuffle=False, engine=engine, **settings)
        assert list(run.parameters) == list(other.parameters)
        np.testing.assert_allclose(
            [*run.parameters.values(), *run.losses],
            [*other.parameters.values(), *other.epoch_losses],
            rtol=1e-12,
        )


def test_random_orders_and_starts_depend_on_the_seed() -> None:
    def learn(**settings: object) -> list[float]:
        run = ScalarTraining(NETWORK, columns(NETWORK), epochs=3, batch_size=4, **settings)
        run.train_for(math.inf)
        return [*run.parameters.values(), *run.losses]

    assert learn(seed=1) == learn(seed=1)
    assert learn(seed=1) != learn(seed=2)
    assert learn(start=START) != learn(start=START, shuffle=False)


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


BAD_RUNS: list[tuple[str, dict]] = [
    ("xw = log(k*xa)", {"start": {"k": 2.0}}),
    ("xw = k*xa", {"optimizer": "sgd", "learning_rate": 1e200, "batch_size": 1}),
    ("input x[2]; xw = sum(k*x)", {}),
    ("xw = xa^2", {}),
    ("xw = k*xa + xb", {}),
    ("xw = k*xa", {"loss": "cross-entropy"}),
    ("xw = k*xa", {"optimizer": "l-bfgs"}),
    ("xw = k*xa", {"schedule": "cosin"}),
    ("xw = k*xa", {"batch_size": 0}),
    ("xw = k*xa", {"start": {"q": 1}}),
]


def test_messages_about_runs() -> None:
    messages = []
    for text, settings in BAD_RUNS:
        data = {"xa": [1.0, -1.0], "xw": [0.5, 2.0]}
        with pytest.raises(cgprimer.CgprimerError) as raised:
            ScalarTraining(cgprimer.parse(text), data, **settings).train_for(math.inf)
        messages.append(str(raised.value))
    approved("\n".join(messages))
    for text in ("parameter k = 2; xw = sqrt(k*xa)", "xw = k*xa"):
        with pytest.raises(cgprimer.CgprimerError, match=r"target|missing"):
            generate_samples(cgprimer.parse(text), 10)
