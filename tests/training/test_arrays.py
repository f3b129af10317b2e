"""Graphs with arrays are trained: as torch does it, as the same in numbers, on all engines."""

from __future__ import annotations

import json
import tracemalloc
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.core.graph import ExpressionGraph
from cgprimer.errors import DataError, MissingValueError, NonFiniteError, ShapeError, UsageError
from cgprimer.training import python_updates
from cgprimer.training.checkpoint import load_run
from cgprimer.training.data import Dataset
from cgprimer.training.epoch_strategy import update_parameters
from cgprimer.training.identifiability import identifiability
from cgprimer.training.objective import Objective
from cgprimer.training.optimizers import OPTIMIZERS
from cgprimer.training.runs import save_run
from cgprimer.visualization.plots.loss_landscape import landscape
from tests.approval import refused

Array = Any
METHODS = ("finite-difference", "symbolic", "forward", "reverse", "path-sum")
NETWORK = """
    input x[4]
    parameter W1[8,4], b1[8], W2[8,8], b2[8], w3[8], b3
    xh = tanh(W1 @ x + b1)
    xg = tanh(W2 @ xh + b2)
    xo = w3 @ xg + b3
"""


@cache
def network() -> ExpressionGraph:
    return cgprimer.parse(NETWORK)


@cache
def in_scalars() -> ExpressionGraph:
    """The same network, each number of it written by hand."""

    def layer(out: str, w: str, b: str, of: str, m: int, n: int) -> list[str]:
        sums = (" + ".join(f"{w}{i}_{j}*{of}{j}" for j in range(n)) for i in range(m))
        return [f"{out}{i} = tanh({total} + {b}{i})" for i, total in enumerate(sums)]

    lines = layer("xh", "W1_", "b1_", "x_", 8, 4) + layer("xg", "W2_", "b2_", "xh", 8, 8)
    last = " + ".join(f"w3_{i}*xg{i}" for i in range(8))
    return cgprimer.parse([*lines, f"xo = {last} + b3"])


def scalar_names(name: str, value: Array) -> dict[str, float]:
    if not np.ndim(value):
        return {name: float(value)}
    return {f"{name}_{'_'.join(map(str, i))}": float(v) for i, v in np.ndenumerate(value)}


@cache
def point(seed: int = 0) -> dict[str, Array]:
    random, graph = np.random.default_rng(seed), network()
    return {n: random.normal(size=graph.shapes.get(n, ())) for n in graph.parameters}


@cache
def network_data(samples: int = 300) -> Dataset:
    return cgprimer.make_dataset(network(), truth=point(5), samples=samples, seed=3)


def same(found: dict[str, Array], expected: dict[str, Array], tolerance: float = 1e-12) -> None:
    assert list(found) == list(expected)
    for name, value in expected.items():
        assert np.shape(found[name]) == np.shape(value), name
        np.testing.assert_allclose(found[name], value, rtol=tolerance, atol=tolerance)


# --- loss and gradient ---------------------------------------------------------------------------


def test_loss_and_gradient_are_those_of_the_network_in_scalars() -> None:
    data, at = network_data(), point()
    columns = {f"x_{j}": data.inputs["x"][:, j] for j in range(4)}
    other = Dataset.from_arrays(columns, {"xo": data.targets["xo"]})
    flat = {k: v for n, value in at.items() for k, v in scalar_names(n, value).items()}
    loss, gradient = cgprimer.loss_and_gradient(in_scalars(), other, engine="numpy")(flat)
    for engine in ("plain", "numpy", "cpu", "auto"):
        found, slopes = cgprimer.loss_and_gradient(network(), data, engine=engine)(at)
        assert found == pytest.approx(loss, rel=1e-12), engine
        assert {n: np.shape(v) for n, v in slopes.items()} == {
            n: np.shape(v) for n, v in at.items()
        }
        named = {k: v for n, value in slopes.items() for k, v in scalar_names(n, value).items()}
        assert named == pytest.approx({k: gradient[k] for k in named}, rel=1e-9, abs=1e-9), engine


@pytest.mark.parametrize("method", METHODS)
def test_all_methods_agree(method: str) -> None:
    graph = cgprimer.parse("input x[2]; parameter W[3,2], b[3]; xh = tanh(W @ x + b); xo = xh[1:]")
    random = np.random.default_rng(1)
    at = {"W": random.normal(size=(3, 2)), "b": random.normal(size=3)}
    data = cgprimer.make_dataset(graph, truth={"W": 0.5, "b": [1, 0, -1]}, samples=20)
    loss, gradient = cgprimer.loss_and_gradient(graph, data, engine="plain")(at)
    found, slopes = cgprimer.loss_and_gradient(graph, data, method=method)(at)
    assert found == pytest.approx(loss, rel=1e-12)
    same(slopes, gradient, 1e-6 if method == "finite-difference" else 1e-11)
    assert not slopes["W"][0].any()  # what no output needs


LOSSES = {
    "squared-error": lambda out, target: (out - target) ** 2,
    "half-squared-error": lambda out, target: (out - target) ** 2 / 2,
    "absolute-error": lambda out, target: abs(out - target),
    "cross-entropy": lambda out, t: -t * np.log(out) - (1 - t) * np.log(1 - out),
    "-sum(target*log_softmax(out))": lambda out, t: (
        -t * (out - np.log(np.exp(out).sum(axis=-1, keepdims=True)))
    ),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_of_arrays_is_the_sum_over_their_elements(loss: str) -> None:
    graph = cgprimer.parse("input x[2]; parameter W[2,3,2]; xo = sigmoid(W @ x)")
    random = np.random.default_rng(2)
    x, targets = random.normal(size=(7, 2)), random.uniform(size=(7, 2, 3))
    at = random.normal(size=(2, 3, 2))
    out = 1 / (1 + np.exp(-np.einsum("ijk,nk->nij", at, x)))
    expected = LOSSES[loss](out, targets).sum()
    data = Dataset.from_arrays({"x": x}, {"xo": targets})
    for engine in ("plain", "cpu"):
        made = cgprimer.loss_and_gradient(graph, data, loss=loss, engine=engine)
        assert made({"W": at})[0] == pytest.approx(expected, rel=1e-12)
        mean = cgprimer.loss_and_gradient(graph, data, loss=loss, engine=engine, reduction="mean")(
            {"W": at}
        )
        assert mean[0] == pytest.approx(expected / 7, rel=1e-12)
        np.testing.assert_allclose(mean[1]["W"] * 7, made({"W": at})[1]["W"], rtol=1e-12)


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_random_networks_have_one_gradient_on_all_engines(data: st.DataObject) -> None:
    """And it is that of the slopes: a central quotient along a direction."""
    n, m, k = (data.draw(st.integers(1, 4)) for _ in range(3))
    function = data.draw(st.sampled_from(["tanh", "sigmoid", "sin", "softmax", "exp"]))
    graph = cgprimer.parse(
        f"input x[{n}]; parameter W[{m},{n}], b[{m}], V[{m},{k}], c\n"
        f"xh = {function}(W @ x + b); xo = c*(xh @ V) - x[0]; xp = mean(xo) + c"
    )
    random = np.random.default_rng(data.draw(st.integers(0, 10)))
    at = {p: random.normal(size=graph.shapes.get(p, ())) for p in graph.parameters}
    way = {p: random.normal(size=graph.shapes.get(p, ())) for p in graph.parameters}
    samples = data.draw(st.integers(1, 5))
    made = cgprimer.make_dataset(graph, truth=way, samples=samples, noise=0.1)
    loss, gradient = cgprimer.loss_and_gradient(graph, made, engine="plain")(at)
    other, slopes = cgprimer.loss_and_gradient(graph, made, engine="cpu")(at)
    assert other == pytest.approx(loss, rel=1e-10)
    same(slopes, gradient, 1e-9)
    h = 1e-6
    moved = [
        cgprimer.loss_and_gradient(graph, made)({p: at[p] + s * h * way[p] for p in at})[0]
        for s in (1, -1)
    ]
    along = sum(float(np.sum(gradient[p] * way[p])) for p in at)
    assert along == pytest.approx((moved[0] - moved[1]) / (2 * h), rel=1e-4, abs=1e-5 * (1 + loss))


def test_float32_stays_float32() -> None:
    at, found = point(), {}
    for engine in ("plain", "cpu"):
        made = Objective(network(), dtype="float32", engine=engine)
        columns = made.columns(network_data())
        assert {c.dtype for c in columns.values()} == {np.dtype("float32")}
        found[engine] = made.sums(columns, made.vectors.vector(at), 300)[0]
    exact = cgprimer.loss_and_gradient(network(), network_data())(at)[0]
    for loss in found.values():
        assert loss != exact
        assert loss == pytest.approx(exact, rel=1e-5)


def test_auto_writes_small_networks_out_and_multiplies_large_matrices() -> None:
    large = cgprimer.parse("input x[64]; parameter W[128,64], v[128]; xo = v @ tanh(W @ x)")
    assert Objective(network(), samples=100_000).in_numbers
    assert not Objective(network(), samples=1).in_numbers  # done before anything is compiled
    assert not Objective(large, samples=100_000).in_numbers
    first = Objective(large, samples=100_000)  # a curve over numbers of samples compiles once
    assert Objective(large, samples=100_001).runner is first.runner is not None


# --- training ------------------------------------------------------------------------------------


def two_classes(samples: int = 2000) -> tuple[ExpressionGraph, Dataset, dict[str, Array]]:
    graph = cgprimer.parse("input x[2]; parameter w1[2,10], w2[10,2]; xo = relu(x @ w1) @ w2")
    random = np.random.default_rng(0)
    half = samples // 2
    x = np.concatenate([random.normal(3, 1, (half, 2)), random.normal(5, 1, (half, 2))])
    labels = np.repeat([1.0, 2.0], half)
    order = random.permutation(samples)
    targets = np.stack([labels, labels], axis=1)
    start = {"w1": random.normal(size=(2, 10)), "w2": random.normal(size=(10, 2))}
    return graph, Dataset.from_arrays({"x": x[order]}, {"xo": targets[order]}), start


SINGLE: dict[str, Any] = {
    "optimizer": "sgd", "learning_rate": 1e-6, "schedule": "constant", "epochs": 1,
    "batch_size": 1, "shuffle": False,
}  # fmt: skip


def by_hand(data: Dataset, start: dict[str, Array], rate: float) -> dict[str, Array]:
    """The three steps of the lecture, in numpy."""
    w1, w2 = start["w1"].copy(), start["w2"].copy()
    for x, label in zip(data.inputs["x"], data.targets["xo"], strict=True):
        h = x @ w1
        relu = np.maximum(h, 0)
        grad_y = 2 * (relu @ w2 - label)
        grad_h = np.where(h > 0, w2 @ grad_y, 0)
        w1, w2 = w1 - rate * np.outer(x, grad_h), w2 - rate * np.outer(relu, grad_y)
    return {"w1": w1, "w2": w2}


@pytest.mark.parametrize("engine", ["plain", "numpy", "cpu", "auto"])
def test_two_gaussian_classes_by_hand(engine: str) -> None:
    """Cases A5, A6 and F16; at a rate at which an error in a step would be seen, too."""
    graph, data, start = two_classes(2000 if engine == "auto" else 400)
    for rate in (1e-6, 1e-3):
        settings = {**SINGLE, "learning_rate": rate}
        run = cgprimer.train(graph, data, start=start, engine=engine, **settings)
        same(run.parameters, by_hand(data, start, rate))
        assert run.loss < run.start_loss
    assert np.abs(run.parameters["w1"] - start["w1"]).max() > 1e-2


def test_two_gaussian_classes_as_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch is in the extras")
    graph, data, start = two_classes()
    run = cgprimer.train(graph, data, start=start, **SINGLE)
    w1, w2 = (torch.tensor(start[n], dtype=torch.float64, requires_grad=True) for n in start)
    optimizer = torch.optim.SGD([w1, w2], lr=1e-6)
    for x, label in zip(data.inputs["x"], data.targets["xo"], strict=True):
        y_pred = torch.from_numpy(x)[None].mm(w1).clamp(min=0).mm(w2)
        loss = (y_pred - torch.from_numpy(label)).pow(2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    same(run.parameters, {"w1": w1.detach().numpy(), "w2": w2.detach().numpy()})


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
def test_a_network_in_six_lines_trains_as_the_one_in_scalars(optimizer: str) -> None:
    data, start = network_data(), point()
    assert len(NETWORK.strip().splitlines()) <= 6
    columns = {f"x_{j}": data.inputs["x"][:, j] for j in range(4)}
    other = Dataset.from_arrays(columns, {"xo": data.targets["xo"]})
    flat = {k: v for n, value in start.items() for k, v in scalar_names(n, value).items()}
    rules: dict[str, Any] = {"optimizer": optimizer, "learning_rate": 0.01, "epochs": 4}
    expected = cgprimer.train(in_scalars(), other, start=flat, **rules)
    for engine in ("plain", "auto"):
        run = cgprimer.train(network(), data, start=start, engine=engine, **rules)
        assert run.loss < 0.5 * run.start_loss
        assert run.step_losses == pytest.approx(expected.step_losses, rel=1e-9)
        named = {k: v for n, p in run.parameters.items() for k, v in scalar_names(n, p).items()}
        assert named == pytest.approx({k: expected.parameters[k] for k in named}, rel=1e-7)
        assert run.parameters["W1"].shape == (8, 4)
        assert type(run.parameters["b3"]) is float


def test_starts_are_drawn_from_the_seed_and_given_ones_are_kept() -> None:
    given = np.arange(8.0)
    one, other = (
        cgprimer.train(network(), network_data(), epochs=0, seed=4, start={"b1": given, "w3": 0.5})
        for _ in range(2)
    )
    same(one.start, other.start, 0)
    np.testing.assert_array_equal(one.start["b1"], given)
    np.testing.assert_array_equal(one.start["w3"], np.full(8, 0.5))
    assert 0 <= one.start["W1"].min() < one.start["W1"].max() < 1
    given[0] = 7.0
    assert one.start["b1"][0] == 0.0


@pytest.mark.parametrize(
    ("start", "error"),
    [
        ({"b1": [1.0, 2.0]}, ShapeError),
        ({"b1": np.ones((3, 8))}, ShapeError),
        ({"b3": [1.0, 2.0]}, UsageError),
        ({"b1": [[1.0], [2.0, 3.0]]}, UsageError),
        ({"b1": np.full(8, np.nan)}, UsageError),
        ({"b1": np.full(8, "a")}, UsageError),
        ({"b1": np.ones(8, complex)}, UsageError),
        ({"b9": 1.0}, UsageError),
    ],
)
def test_starts_of_other_shapes_are_refused(start: Any, error: type) -> None:
    with pytest.raises(error, match=r"b1|b3|b9"):
        cgprimer.train(network(), network_data(), start=start)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"b1": [1.0, 2.0]}, ShapeError, "b1"),
        ({"b1": np.ones((3, 8))}, ShapeError, "'b1' ... [8] ... [3, 8]"),
        ({"b3": [1.0, 2.0]}, ShapeError, "'b3'"),
        ({"b1": "a"}, UsageError, "b1"),
        ({"b1": None}, UsageError, "b1"),
    ],
)
def test_parameters_of_other_shapes_are_refused(change: Any, error: type, said: str) -> None:
    made = cgprimer.loss_and_gradient(network(), network_data())
    with refused(error, said):
        made(point() | change)
    with refused(MissingValueError, "'b1'"):
        made({n: v for n, v in point().items() if n != "b1"})


@pytest.mark.parametrize("engine", ["plain", "cpu"])
def test_what_is_not_finite_is_named_with_its_element(engine: str) -> None:
    graph = cgprimer.parse("input x[3]; parameter w[3]; xh = log(w*x); xo = sum(xh)")
    x = np.ones((5, 3))
    x[2, 1] = -1.0
    data = Dataset.from_arrays({"x": x}, {"xo": np.zeros(5)})
    with pytest.raises(NonFiniteError) as caught:
        cgprimer.train(graph, data, start={"w": 1.0}, engine=engine, shuffle=False)
    text = str(caught.value)
    assert "xh[1] = log(w*x) is nan for sample 2 (x=[1, -1, 1])" in text
    assert caught.value.run.parameters["w"].shape == (3,)


def test_data_of_other_shapes_are_refused() -> None:
    given = {"x": np.ones((5, 3))}
    with refused(DataError, "'x' ... [4] ... x[3]"):
        cgprimer.train(network(), Dataset.from_arrays(given, {"xo": np.ones(5)}))
    data = Dataset.from_arrays({"x": np.ones((5, 4))}, {"xo": np.ones((5, 1))})
    with refused(DataError, "'xo' ... [1]"):
        cgprimer.loss_and_gradient(network(), data)


# --- runs as files -------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["plain", "auto"])
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
def test_a_run_from_a_file_goes_on_exactly(optimizer: str, engine: str, tmp_path: Path) -> None:
    rules: dict[str, Any] = {
        "optimizer": optimizer, "learning_rate": 0.01, "schedule": "constant", "engine": engine,
        "validation": 0.2,
    }  # fmt: skip
    path = tmp_path / "run.json"
    save_run(cgprimer.train(network(), network_data(), epochs=2, **rules), path, network())
    earlier = load_run(path, network())
    found = cgprimer.train(network(), network_data(), epochs=4, resume=earlier, **rules)
    whole = cgprimer.train(network(), network_data(), epochs=4, **rules)
    same(found.parameters, whole.parameters, 0)
    assert found.step_losses == whole.step_losses
    assert found.validation_losses == whole.validation_losses
    for name, values in whole.recorded_parameters.items():
        np.testing.assert_array_equal(found.recorded_parameters[name], values)
    for one, other in zip(found.state, whole.state, strict=True):
        np.testing.assert_array_equal(one, other)


def test_another_order_of_arrays_takes_the_state_along(tmp_path: Path) -> None:
    text = ["xh = tanh(W @ x)", "xo = v @ xh + c"]
    one = cgprimer.parse(["input x[2]", "parameter W[3,2], v[3], c", *text])
    other = cgprimer.parse(["input x[2]", "parameter c, v[3], W[3,2]", *text])
    assert one.parameters != other.parameters
    data = cgprimer.make_dataset(one, truth={"W": 1, "v": 2, "c": 3}, samples=50)
    rules: dict[str, Any] = {"optimizer": "momentum", "schedule": "constant", "engine": "plain"}
    path = tmp_path / "run.json"
    save_run(cgprimer.train(one, data, epochs=2, **rules), path, one)
    found = cgprimer.train(other, data, epochs=4, resume=load_run(path, other), **rules)
    whole = cgprimer.train(one, data, epochs=4, **rules)
    same({n: found.parameters[n] for n in whole.parameters}, whole.parameters, 1e-10)


@pytest.mark.parametrize(
    "change",
    [
        {"W1": [[1.0, 2.0], [3.0]]},
        {"W1": [["a"]]},
        {"W1": "text"},
        {"W1": {"0": 1}},
        {"b1": [1.0, 2.0]},
        {"b1": 1.0},
        {"b3": [1.0]},
        {"b1": [None] * 8},
    ],
)
def test_wrong_arrays_in_a_file_are_refused(change: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    save_run(cgprimer.train(network(), network_data(), epochs=1), path, network())
    fields = json.loads(path.read_text())
    for field in ("parameters", "start"):
        path.write_text(json.dumps({**fields, field: fields[field] | change}))
        with refused(DataError):
            load_run(path, network())


def test_deep_nesting_and_other_shapes_in_a_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("[" * 100_000)
    with refused(DataError):
        load_run(path)
    save_run(cgprimer.train(network(), network_data(), epochs=1), path, network())
    wider = cgprimer.parse(NETWORK.replace("b1[8]", "b1[1]"))
    with refused(DataError, "b1 ... [8] ... [1]"):
        load_run(path, wider)
    fields = json.loads(path.read_text())
    fields["state"][0] = fields["state"][0][:-1]
    path.write_text(json.dumps(fields))
    with refused(DataError):
        load_run(path)


def test_a_run_of_other_shapes_is_not_resumed() -> None:
    run = cgprimer.train(network(), network_data(), epochs=1)
    wider = cgprimer.parse(NETWORK.replace("b1[8]", "b1[1]"))
    with refused(UsageError, "b1 ... [8] ... [1]"):
        cgprimer.train(wider, network_data(), epochs=2, resume=run)


# --- what is said and drawn ----------------------------------------------------------------------


def test_a_run_in_numbers() -> None:
    run = cgprimer.train(network(), network_data(), epochs=6)
    assert repr(run).endswith(
        "W1[8,4], b1[8], W2[8,8], b2[8], w3[8], b3=" + f"{run.parameters['b3']:.6g}>"
    )
    numbers = run.in_numbers()
    assert len(numbers.parameters) == 8 * 4 + 8 + 64 + 8 + 8 + 1
    assert numbers.parameters["W2[3,5]"] == run.parameters["W2"][3, 5]
    assert numbers.truth["b1[7]"] == run.truth["b1"][7]
    assert numbers.recorded_parameters["W1[0,1]"] == [
        v[0, 1] for v in run.recorded_parameters["W1"]
    ]
    figure = cgprimer.plot.parameters(run, names=["W1[0,1]", "b3"])
    assert [axes.get_title() for axes in figure.axes] == ["W1[0,1]", "b3"]
    figure = cgprimer.plot.parameters(run, names="b1")
    assert [axes.get_title() for axes in figure.axes] == [f"b1[{k}]" for k in range(8)]
    with refused(UsageError, "'b1"):
        cgprimer.plot.parameters(run, names="b1[9]")


def test_what_the_data_cannot_tell_of_arrays() -> None:
    graph = cgprimer.parse("input x[2]; parameter a[2], b[2]; xo = sum((a + b)*x)")
    data = cgprimer.make_dataset(graph, truth={"a": [1, 2], "b": [3, 4]}, samples=50)
    found = identifiability(graph, data, {"a": np.array([1.0, 2.0]), "b": np.array([3.0, 4.0])})
    assert found is not None
    assert found.rank == 2
    assert found.null_directions == ({"a[0]": 1.0, "b[0]": -1.0}, {"a[1]": 1.0, "b[1]": -1.0})
    assert found.determined == ({"a[0]": 1.0, "b[0]": 1.0}, {"a[1]": 1.0, "b[1]": 1.0})


def test_a_graph_with_arrays_and_no_inputs() -> None:
    graph = cgprimer.parse("parameter w[3]; xo = w^2; input xa; xp = xa + 0*sum(w)")
    data = Dataset.from_arrays({"xa": [1.0, 2.0]}, {"xo": np.ones((2, 3)), "xp": [1.0, 2.0]})
    loss, gradient = cgprimer.loss_and_gradient(graph, data)({"w": [1.0, 2.0, 3.0]})
    assert loss == 2 * (9 + 64)
    np.testing.assert_array_equal(gradient["w"], 2 * 4 * np.array([0.0, 6.0, 24.0]))


def test_a_surface_over_two_numbers_of_arrays() -> None:
    graph = cgprimer.parse("input x[2]; parameter w[2] = [3, -1], b = 1; xo = w @ x + b")
    found = landscape(graph, ["w[1]", "b"], optimizers=["sgd"], steps=50, grid=13)
    assert found.lowest == (-1.0, 1.0)
    assert found.reference == (-1.0, 1.0)
    assert found.paths[0].losses[-1] < found.paths[0].losses[0]
    with refused(UsageError, "'w'"):
        landscape(graph, ["w", "b"])


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
def test_single_precision_stays_single(optimizer: str) -> None:
    graph = cgprimer.parse("input x[60]; parameter W[90,60], v[90]; xo = v @ tanh(W @ x)")
    random = np.random.default_rng(0)
    data = Dataset.from_arrays({"x": random.normal(size=(50, 60))}, {"xo": random.normal(size=50)})
    start = {"W": random.normal(size=(90, 60)) / 8, "v": random.normal(size=90) / 9}
    rules: dict[str, Any] = {"optimizer": optimizer, "batch_size": 10, "epochs": 3}
    rules |= {"learning_rate": 1e-3, "start": start, "seed": 1}
    exact = cgprimer.train(graph, data, **rules)
    single = cgprimer.train(graph, data, dtype="float32", **rules)
    assert single.step_losses == pytest.approx(exact.step_losses, rel=1e-4)
    rule = OPTIMIZERS[optimizer]
    given = np.ones(4, np.float32)
    moved, state = update_parameters(rule, given, given, rule.start(given), 0.1)
    assert {part.dtype.name for part in (moved, *state) if part.ndim} == {"float32"}


def test_an_epoch_copies_a_part_of_the_samples_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    line, x = cgprimer.parse("input x[64]; parameter w[64]; y = w @ x"), np.ones((20_003, 64))
    held: dict[str, Any] = {"batch_size": 1000, "epochs": 2, "engine": "plain"}
    data = cgprimer.Dataset.from_arrays({"x": x}, {"y": np.sin(np.arange(20_003.0))})
    whole = cgprimer.train(line, data, **held)
    monkeypatch.setattr(python_updates, "_CHUNK_BYTES", 2**20)
    tracemalloc.start()
    try:
        found = cgprimer.train(line, data, **held)
        assert tracemalloc.get_traced_memory()[1] < x.nbytes / 2
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(found.parameters["w"], whole.parameters["w"])
    assert found.step_losses == whole.step_losses
