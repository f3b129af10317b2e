"""Graphs with arrays by numpy, initializers, dropout and batch normalization as in PyTorch."""

from __future__ import annotations

import json
import tracemalloc
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.analysis.latex import latex
from cgprimer.core.evaluation.evaluator import values_of
from cgprimer.core.tape.tape_entries import Leaf
from cgprimer.errors import CgprimerError, DataError, NonFiniteError, UsageError
from cgprimer.training import python_updates
from cgprimer.training.data import Dataset
from cgprimer.training.estimators import flat_objective
from cgprimer.training.identifiability import identifiability
from cgprimer.training.layer_states import Masks
from cgprimer.training.objective import Objective, loss_and_gradient
from cgprimer.training.predictions import compute_outputs
from tests.approval import approved, refused
from tests.training.training_graphs import PLAIN, line, table

NETWORK = cgprimer.parse(
    "input x[3]; parameter W1[4,3], b1[4], W2[4,4], b2[4], w3[4], b3\n"
    "xh = tanh(W1 @ x + b1); xg = tanh(W2 @ xh + b2); xo = w3 @ xg + b3"
)


def point(seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {n: random.normal(size=NETWORK.shapes.get(n, ())) for n in NETWORK.parameters}


START, SAMPLES = point(0), cgprimer.make_dataset(NETWORK, truth=point(5), samples=120, seed=3)


@pytest.mark.parametrize("engine", ["plain", "cpu"])
def test_losses_of_arrays_are_sums_over_elements(engine: str) -> None:
    graph = cgprimer.parse("input x[2]; parameter W[2,3,2]; xo = sigmoid(W @ x)")
    random = np.random.default_rng(2)
    x, t = random.normal(size=(7, 2)), random.uniform(size=(7, 2, 3))
    at = random.normal(size=(2, 3, 2))
    out = 1 / (1 + np.exp(-np.einsum("ijk,nk->nij", at, x)))
    log_softmax = out - np.log(np.exp(out).sum(axis=-1, keepdims=True))
    data = Dataset.from_arrays({"x": x}, {"xo": t})
    for loss, expected in (
        ("half-squared-error", (out - t) ** 2 / 2),
        ("absolute-error", abs(out - t)),
        ("cross-entropy", -t * np.log(out) - (1 - t) * np.log(1 - out)),
        ("-sum(target*log_softmax(out))", -t * log_softmax),
    ):
        total, mean = (
            loss_and_gradient(graph, data, loss=loss, engine=engine, reduction=how)({"W": at})
            for how in ("sum", "mean")
        )
        assert total[0] == pytest.approx(expected.sum(), rel=1e-12)
        assert 7 * mean[0] == pytest.approx(expected.sum(), rel=1e-12)
        np.testing.assert_allclose(mean[1]["W"] * 7, total[1]["W"], rtol=1e-12)
    graph = cgprimer.parse("parameter w[3]; xo = w^2; input xa; xp = xa + 0*sum(w)")
    data = Dataset.from_arrays({"xa": [1.0, 2.0]}, {"xo": np.ones((2, 3)), "xp": [1.0, 2.0]})
    loss, gradient = loss_and_gradient(graph, data)({"w": [1.0, 2.0, 3.0]})
    assert loss == 2 * (9 + 64)
    np.testing.assert_array_equal(gradient["w"], 2 * 4 * np.array([0.0, 6.0, 24.0]))


@settings(max_examples=6)
@given(st.data())
def test_gradients_of_random_networks_are_directional_derivatives(data: st.DataObject) -> None:
    n, m, k = (data.draw(st.integers(1, 4)) for _ in range(3))
    function = data.draw(st.sampled_from(["tanh", "sigmoid", "sin", "softmax", "exp"]))
    graph = cgprimer.parse(
        f"input x[{n}]; parameter W[{m},{n}], b[{m}], V[{m},{k}], c\n"
        f"xh = {function}(W @ x + b); xo = c*(xh @ V) - x[0]; xp = mean(xo) + c"
    )
    random = np.random.default_rng(data.draw(st.integers(0, 10)))
    at, way = (
        {p: random.normal(size=graph.shapes.get(p, ())) for p in graph.parameters} for _ in "ab"
    )
    samples = data.draw(st.integers(1, 5))
    made = cgprimer.make_dataset(graph, truth=way, samples=samples, noise=0.1)
    call = loss_and_gradient(graph, made, engine="plain")
    loss, gradient = call(at)
    other, slopes = loss_and_gradient(graph, made, engine="cpu")(at)
    assert other == pytest.approx(loss, rel=1e-10)
    for name, value in gradient.items():
        np.testing.assert_allclose(slopes[name], value, rtol=1e-9, atol=1e-9)
    high, low = (call({p: at[p] + h * way[p] for p in at})[0] for h in (1e-6, -1e-6))
    along = sum(float(np.sum(gradient[p] * way[p])) for p in at)
    assert along == pytest.approx((high - low) / 2e-6, rel=1e-4, abs=1e-5 * (1 + loss))


def test_auto_expands_small_networks_but_not_large_matrices() -> None:
    large = cgprimer.parse("input x[64]; parameter W[128,64], v[128]; xo = v @ tanh(W @ x)")
    assert Objective(NETWORK, samples=100_000).in_numbers
    assert not Objective(NETWORK, samples=1).in_numbers  # faster than compiling
    first, second = (Objective(large, samples=samples) for samples in (100_000, 100_001))
    assert not first.in_numbers
    assert second.runner is first.runner is not None


@pytest.mark.parametrize("engine", ["plain", "numpy", "cpu", "auto"])
def test_two_gaussian_classes_by_numpy(engine: str) -> None:
    """Cases A5, A6 and F16, with the three steps of the lecture."""
    graph = cgprimer.parse("input x[2]; parameter w1[2,10], w2[10,2]; xo = relu(x @ w1) @ w2")
    random = np.random.default_rng(0)
    labels = np.repeat([1.0, 2.0], 100)
    order = random.permutation(200)
    x = (random.normal(1 + 2 * labels[:, None], 1, (200, 2)))[order]
    targets = np.stack([labels, labels], axis=1)[order]
    start = {"w1": random.normal(size=(2, 10)), "w2": random.normal(size=(10, 2))}
    w1, w2 = start["w1"], start["w2"]
    for row, label in zip(x, targets, strict=True):
        h = row @ w1
        grad_y = 2 * (np.maximum(h, 0) @ w2 - label)
        grad_h = np.where(h > 0, w2 @ grad_y, 0)
        w1, w2 = w1 - 1e-3 * np.outer(row, grad_h), w2 - 1e-3 * np.outer(np.maximum(h, 0), grad_y)
    run = cgprimer.train(
        graph, Dataset.from_arrays({"x": x}, {"xo": targets}), start=start, engine=engine,
        learning_rate=1e-3, epochs=1, batch_size=1, shuffle=False, **PLAIN,
    )  # fmt: skip
    np.testing.assert_allclose(run.parameters["w1"], w1, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(run.parameters["w2"], w2, rtol=1e-12, atol=1e-12)
    assert np.abs(w1 - start["w1"]).max() > 1e-2


def test_only_matrices_are_updated_in_single_precision() -> None:
    arrays, scalars = (
        Objective(graph, dtype="float32", engine="plain") for graph in (NETWORK, line())
    )
    assert (arrays.precision, scalars.precision) == (np.float32, np.float64)
    columns = arrays.columns(SAMPLES)
    assert {column.dtype for column in columns.values()} == {np.dtype(np.float32)}
    exact, single = (
        cgprimer.train(NETWORK, SAMPLES, start=START, dtype=dtype, epochs=2)
        for dtype in ("float64", "float32")
    )
    assert single.step_losses == pytest.approx(exact.step_losses, rel=1e-4)
    assert single.step_losses != exact.step_losses
    assert type(single.parameters["b3"]) is float


def test_epochs_copy_samples_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, x = cgprimer.parse("input x[64]; parameter w[64]; y = w @ x"), np.ones((20_003, 64))
    rules: dict[str, Any] = {"batch_size": 1000, "epochs": 2, "engine": "plain"}
    data = Dataset.from_arrays({"x": x}, {"y": np.sin(np.arange(20_003.0))})
    whole = cgprimer.train(graph, data, **rules)
    monkeypatch.setattr(python_updates, "_CHUNK_BYTES", 2**20)
    tracemalloc.start()
    try:
        found = cgprimer.train(graph, data, **rules)
        assert tracemalloc.get_traced_memory()[1] < x.nbytes / 2
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(found.parameters["w"], whole.parameters["w"])
    assert found.step_losses == whole.step_losses


def test_parameters_and_data_of_other_shapes_are_refused() -> None:
    call = loss_and_gradient(NETWORK, SAMPLES)
    for name, value in (
        ("b1", [1.0, 2.0]), ("b1", np.ones((3, 4))), ("b3", [1.0, 2.0]), ("b1", [[1.0], [2, 3]]),
        ("b1", np.full(4, "a")), ("b1", np.ones(4, complex)), ("b1", None),
    ):  # fmt: skip
        with refused(CgprimerError, name):
            cgprimer.train(NETWORK, SAMPLES, start={name: value})
        with refused(CgprimerError, name):
            call({**START, name: value})
    with refused(UsageError, "b1"):  # a loss may be evaluated at nan
        cgprimer.train(NETWORK, SAMPLES, start={"b1": np.full(4, np.nan)})
    for width, targets in ((2, np.ones(5)), (3, np.ones((5, 1)))):
        data = Dataset.from_arrays({"x": np.ones((5, width))}, {"xo": targets})
        with refused(DataError):
            cgprimer.train(NETWORK, data)


@pytest.mark.parametrize("engine", ["plain", "cpu"])
def test_elements_that_are_not_finite_are_named(engine: str) -> None:
    graph = cgprimer.parse("input x[3]; parameter w[3]; xh = log(w*x); xo = sum(xh)")
    x = np.ones((5, 3))
    x[2, 1] = -1.0
    data = Dataset.from_arrays({"x": x}, {"xo": np.zeros(5)})
    with pytest.raises(NonFiniteError) as caught:
        cgprimer.train(graph, data, start={"w": 1.0}, engine=engine, shuffle=False)
    assert "xh[1] = log(w*x) is nan for sample 2 (x=[1, -1, 1])" in str(caught.value)
    assert caught.value.run.parameters["w"].shape == (3,)


def test_runs_are_converted_to_scalars() -> None:
    run = cgprimer.train(NETWORK, SAMPLES, epochs=2)
    last = f"{run.parameters['b3']:.6g}"
    assert repr(run).endswith(f"W1[4,3], b1[4], W2[4,4], b2[4], w3[4], b3={last}>")
    scalars = run.in_numbers()
    assert len(scalars.parameters) == 4 * 3 + 4 + 16 + 4 + 4 + 1
    assert scalars.parameters["W2[3,1]"] == run.parameters["W2"][3, 1]
    assert scalars.truth["b1[2]"] == run.truth["b1"][2]
    recorded = [value[0, 1] for value in run.recorded_parameters["W1"]]
    assert scalars.recorded_parameters["W1[0,1]"] == recorded


def test_identifiability_of_elements() -> None:
    graph = cgprimer.parse("input x[2]; parameter a[2], b[2]; xo = sum((a + b)*x)")
    data = cgprimer.make_dataset(graph, truth={"a": [1, 2], "b": [3, 4]}, samples=50)
    found = identifiability(graph, data, {"a": np.array([1.0, 2.0]), "b": np.array([3.0, 4.0])})
    assert found.rank == 2
    assert found.null_directions == ({"a[0]": 1.0, "b[0]": -1.0}, {"a[1]": 1.0, "b[1]": -1.0})
    assert found.determined == ({"a[0]": 1.0, "b[0]": 1.0}, {"a[1]": 1.0, "b[1]": 1.0})


INITIALIZED = "input x[3]; parameter W[2,3] = glorot, b[2] = zeros, k = 5; xo = k*(W @ x + b) + c"
GRAPH = cgprimer.parse(INITIALIZED)
DATA = cgprimer.make_dataset(GRAPH, truth={"c": 0.5}, samples=50)


def test_runs_start_at_samples_of_the_initializers() -> None:
    first, other, again = (cgprimer.train(GRAPH, DATA, epochs=1, seed=s) for s in (0, 1, 0))
    np.testing.assert_array_equal(first.start["W"], GRAPH.sampled_start(0)["W"])
    np.testing.assert_array_equal(first.start["b"], [0.0, 0.0])
    np.testing.assert_array_equal(first.truth["W"], np.array(GRAPH.values["W"]))
    np.testing.assert_array_equal(again.parameters["W"], first.parameters["W"])
    assert (other.start["W"] != first.start["W"]).all()
    limit = np.sqrt(6 / (2 + 3))  # of Glorot and Bengio 2010
    samples = np.array([GRAPH.sampled_start(seed)["W"] for seed in range(200)])
    assert abs(samples).max() < limit
    assert samples.std() == pytest.approx(limit / np.sqrt(3), rel=0.05)


def test_given_and_frozen_values_take_precedence() -> None:
    given = cgprimer.train(GRAPH, DATA, epochs=0, seed=7, start={"W": 0.25, "b[1]": 2.0}).start
    assert given["W"].tolist() == [[0.25] * 3] * 2
    assert given["b"].tolist() == [0.0, 2.0]
    frozen = cgprimer.train(GRAPH, DATA, epochs=1, freeze=["W"])
    assert frozen.parameters["W"].tolist() == np.array(GRAPH.values["W"]).tolist()
    plain = cgprimer.parse(INITIALIZED.replace(" = glorot", "").replace(" = zeros", ""))
    data = cgprimer.make_dataset(plain, truth={"W": 1.0, "b": 0.0, "c": 0.5}, samples=50)
    start = cgprimer.train(plain, data, epochs=0, seed=7).start
    assert (start["k"], start["c"]) == (given["k"], given["c"])  # as without initializers


def test_other_functions_start_at_equal_values() -> None:
    _, start, names = flat_objective(GRAPH, DATA, seed=4)
    by_name = dict(zip(names, start.tolist(), strict=True))
    assert by_name["W[1,2]"] == GRAPH.sampled_start(4)["W"][1, 2]
    assert by_name["k"] == 5.0  # declared
    normal = cgprimer.parse("parameter a = normal(2), b = ones; xo = a*xa + b")
    fitted = cgprimer.fit(normal, cgprimer.make_dataset(normal, samples=20), seed=4)
    assert fitted.start == {"a": normal.sampled_start(4)["a"], "b": 1.0}
    bag = cgprimer.ensemble(GRAPH, DATA, members=3, epochs=0, seed=2)
    for k, member in enumerate(bag.runs):
        np.testing.assert_array_equal(member.start["W"], GRAPH.sampled_start(2 + k)["W"])


F10 = cgprimer.load("batch_normalization")
BATCH = {"x": [1.0, 2.0, 4.0, 5.0], "t": [0.0, 0.0, 0.0, 1.0]}
SLOPES_OF_X = [-0.1897366596101029, 0.06324555320335676, 0.569209978830308, -0.4427188724235731]
SLOPE_OF_GAMMA = 6.735088935932649
F9 = cgprimer.load("dropout")
NORMALIZED = cgprimer.parse(
    "input x[3]; parameter W[4,3], g[4], b[4], v[4], c\n"
    "xz = batchnorm(W @ x, g, b); xo = v @ tanh(xz) + c"
)
DROPPED = cgprimer.parse(
    "input x[3]; parameter W[4,3], b[4], v[4], c\n"
    "xh = dropout(tanh(W @ x + b), 0.6); xo = v @ xh + c"
)
Network = tuple[Dataset, dict[str, Any]]


@pytest.fixture(scope="module")
def small() -> Network:
    """Return twelve samples, and start values for both networks."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(12, 3))
    data = Dataset.from_arrays({"x": x}, {"xo": np.sin(x).sum(axis=1)})
    weights, last = rng.normal(size=(4, 3)), rng.normal(size=4)
    return data, {"W": weights, "b": np.linspace(-0.2, 0.2, 4), "v": last, "c": 0.0}


def test_batch_normalization_has_the_values_of_the_lecture() -> None:
    """Case F10."""
    assert F10.evaluate(BATCH)["xl"].sum() == pytest.approx(5.970177871865296, rel=1e-14)
    methods: tuple[tuple[str, dict[str, Any]], ...] = (
        ("reverse", {}), ("forward", {}), ("finite-difference", {"scheme": "complex-step"})
    )  # fmt: skip
    for method, scheme in methods:
        found = cgprimer.gradient(F10, BATCH, wrt=("gamma", "beta"), method=method, **scheme)
        assert found["beta"].sum() == pytest.approx(1.0, rel=1e-14)
        assert found["gamma"].sum() == pytest.approx(SLOPE_OF_GAMMA, rel=1e-12)
    by_sample = cgprimer.gradient(F10, BATCH, wrt="x")["x"]
    np.testing.assert_allclose(by_sample, SLOPES_OF_X, rtol=1e-12)
    normalized = (F10.evaluate(BATCH)["xy"] - 0.5) / 2
    curvature = cgprimer.hessian(F10, BATCH)["gamma"]["gamma"].sum()
    assert curvature == pytest.approx((normalized**2).sum(), rel=1e-12)


def test_traces_of_batches_have_the_backward_formulas() -> None:
    found = cgprimer.trace(F10, BATCH, method="reverse")
    assert found.row("variance_xy").value == 2.5
    for name, slope in (("variance_xy", -2.6940355743730593), ("mean_xy", -1.264911064067352),
                        ("gamma", SLOPE_OF_GAMMA), ("x", SLOPES_OF_X)):  # fmt: skip
        np.testing.assert_allclose(found.row(name).derivative, slope, rtol=1e-12)
    steps = {row.name: row for row in found.backward}
    assert steps["bar_variance_xy"].value.sum() == pytest.approx(-2.6940355743730593, rel=1e-13)
    approved(str(found))
    forward = cgprimer.trace(F10, BATCH, wrt="gamma", level="variables")
    assert forward.row("xl").derivative.sum() == pytest.approx(SLOPE_OF_GAMMA, rel=1e-13)
    assert [row.name for row in forward.rows] == ["x", "t", "gamma", "beta", "xy", "xl"]
    line = cgprimer.parse("xw = k*x"), {"x": [1.0, 2.0], "k": 1.0}
    for graph, at, wrt in ((F10, BATCH, "x"), (*line, None), (F10, {"x": [1.0], "t": 0}, "gamma")):
        with refused(cgprimer.UsageError):
            cgprimer.trace(graph, at, wrt=wrt)


@pytest.mark.parametrize("method", cgprimer.methods())
def test_single_points_use_running_statistics_and_dropout_is_a_factor(method: str) -> None:
    at = {"x": 1.5, "t": 1.0, "mean.xy": 0.5, "variance.xy": 4.0}
    found = cgprimer.gradient(F10, at, wrt=("x", "gamma", "beta"), method=method)
    # y = 2*(1.5 - 0.5)/2 + 0.5 = 1.5, and d loss/dy = 0.5
    assert found == pytest.approx({"x": 0.5, "gamma": 0.25, "beta": 0.5}, rel=1e-8)
    initial = cgprimer.gradient(F10, {"x": 1.5, "t": 1.0}, wrt="x", method=method)["x"]
    assert initial == pytest.approx(2 * (2 * 1.5 + 0.5 - 1.0), rel=1e-8)  # mean 0, variance 1
    samples = {**BATCH, "mean.xy": 0.5, "variance.xy": 4.0}
    outputs = 2 * (np.array(BATCH["x"]) - 0.5) / 2 + 0.5
    np.testing.assert_allclose(F10.evaluate(samples)["xy"], outputs, rtol=1e-15)
    slopes = cgprimer.gradient(F10, samples, wrt="x", method=method)["x"]
    np.testing.assert_allclose(slopes, outputs - BATCH["t"], rtol=1e-7)
    dropped = cgprimer.parse("xh = dropout(tanh(w*xa), 0.25); xo = xh^2")
    found = cgprimer.gradient(dropped, {"xa": 2.0, "w": 0.3}, method=method)
    slope = 2 * 0.25**2 * np.tanh(0.6) * (1 - np.tanh(0.6) ** 2) * 2.0
    assert found["w"] == pytest.approx(slope, rel=1e-8)


def test_mean_over_all_masks_is_the_value_after_training() -> None:
    """Case F9."""
    training = cgprimer.tape(F9, "training")
    assert training.of_kind("column") == ("x", "mask.xh")
    known = {name: np.array(value) for name, value in F9.point().items()}
    found = [
        values_of(training, {**known, "mask.xh": np.array(mask)})[training.outputs["xo"]]
        for mask in product((0.0, 1.0), repeat=3)
    ]
    assert np.mean(found) == pytest.approx(0.8, rel=1e-15)
    assert max(found) == pytest.approx(1.5, rel=1e-15)
    assert F9.evaluate()["xo"] == pytest.approx(0.8, rel=1e-15)


def test_masks_depend_only_on_seed_epoch_and_position() -> None:
    leaves = [Leaf("column", "mask.a", 0.3, (5,)), Leaf("column", "mask.b", 0.8)]
    masks = Masks(leaves, seed=4, dtype="float32")
    whole = masks.create_stream(2, 0)(1000)
    assert whole["mask.a"].shape == (1000, 5)
    assert whole["mask.b"].dtype == np.float32
    sample = masks.create_stream(2, 333)
    parts = [sample(count)["mask.a"] for count in (1, 3, 100)]
    np.testing.assert_array_equal(np.concatenate(parts), whole["mask.a"][333:437])
    assert whole["mask.a"].mean() == pytest.approx(0.3, abs=0.02)
    assert whole["mask.b"].mean() == pytest.approx(0.8, abs=0.04)
    reseeded = Masks(leaves, seed=5, dtype="float32")
    for other in (masks.create_stream(3, 0), reseeded.create_stream(2, 0)):
        assert (other(1000)["mask.a"] != whole["mask.a"]).any()
    wide = Masks([Leaf("column", "mask.a", 0.5, (4096,))], seed=0, dtype="float64")
    assert wide.max_samples * wide.width <= 2**21  # numbers in memory at the same time


TORCH = json.loads(Path(__file__).with_name("torch_runs.json").read_text("utf-8"))
STEPS: dict[str, Any] = {"batch_size": 5, "epochs": 5, "shuffle": False, "learning_rate": 0.05}


def test_batch_normalization_trains_as_in_torch(small: Network) -> None:
    (data, start), known = small, TORCH["normalized"]
    for method in ("reverse", "forward"):
        rules = {"start": {**start, "g": 1.1}, "method": method, **PLAIN, **STEPS}
        run = cgprimer.train(NORMALIZED, data, **rules)
        np.testing.assert_allclose(run.step_losses, known["step_losses"], rtol=1e-10)
        for name, value in run.statistics.items():
            np.testing.assert_allclose(value, known[name.partition(".")[0]], rtol=1e-10)
        assert run.loss == pytest.approx(known["loss"], rel=1e-10)
    outputs = NORMALIZED.evaluate({"x": data.inputs["x"], **run.point})["xo"]
    mean = ((outputs - data.targets["xo"]) ** 2).mean()
    assert mean == pytest.approx(known["loss"], rel=1e-10)
    predicted = compute_outputs(NORMALIZED, data.inputs, 12, run.point)["xo"]
    np.testing.assert_allclose(predicted, outputs, rtol=1e-14)


@pytest.mark.parametrize("engine", ["plain", "cpu"])
def test_dropout_trains_as_in_torch(small: Network, engine: str) -> None:
    (data, start), known = small, TORCH["dropped"]
    rules = {"schedule": "constant", "engine": engine, "seed": 3, **STEPS}
    run = cgprimer.train(DROPPED, data, start=start, **rules)
    np.testing.assert_allclose(run.step_losses, known["step_losses"], rtol=1e-10)
    found = run.loss, run.parameters["c"]
    assert found == pytest.approx((known["loss"], known["c"]), rel=1e-10)


@pytest.mark.parametrize("batch", [1, 8, None])
def test_engines_and_python_use_equal_masks(batch: int | None) -> None:
    unit = cgprimer.parse("xh = dropout(tanh(w*xa + b), 0.5); xw = v*dropout(xh, 0.9) + c")
    xa = np.linspace(-1, 1, 21)
    curve = Dataset.from_arrays({"xa": xa}, {"xw": np.sin(2 * xa)})
    rules: dict[str, Any] = {"batch_size": batch, "epochs": 3}
    first = cgprimer.train(unit, curve, engine="plain", seed=2, **rules)
    for engine, callback in (("numpy", None), ("cpu", None), ("cpu", lambda *_: None)):
        found = cgprimer.train(unit, curve, engine=engine, on_step=callback, seed=2, **rules)
        np.testing.assert_allclose(found.step_losses, first.step_losses, rtol=1e-9)
        assert found.loss == pytest.approx(first.loss, rel=1e-9)
    second = cgprimer.train(unit, curve, engine="cpu", seed=9, **rules)
    assert second.step_losses != first.step_losses


def test_patience_returns_the_statistics_of_the_best_epoch(small: Network) -> None:
    data, start = small
    rules: dict[str, Any] = {"batch_size": 5, "optimizer": "sgd", "learning_rate": 2.0}
    run = cgprimer.train(NORMALIZED, data, start=start, validation=data, patience=3, **rules)
    assert run.stopped == "patience"
    assert run.loss == pytest.approx(min(run.validation_losses), rel=1e-12)
    assert (run.last_statistics["mean.xz"] != run.statistics["mean.xz"]).any()


def test_layers_that_are_wrong_or_cannot_be_trained(small: Network, tmp_path: Path) -> None:
    for text in table("layers, refused"):
        with refused(cgprimer.SourceError):
            cgprimer.tape(cgprimer.parse(text))
    for rules in table("layers that cannot be trained"):
        with refused(cgprimer.CgprimerError):
            cgprimer.train(NORMALIZED, small[0], **rules)
    with refused(cgprimer.UsageError):
        F10.evaluate({"x": [1.0], "t": 0.0})
    for name in ("mean.xq", "variance.xy.2"):
        with refused(cgprimer.UsageError):
            cgprimer.gradient(F10, {"x": 1.0, "t": 0.0, name: 0.5})
    run = cgprimer.train(NORMALIZED, small[0], epochs=1, batch_size=6)
    run.statistics = {"mean.xz": 0.0}
    run.save(tmp_path / "run.json")
    with refused(cgprimer.DataError, "'variance.xz'"):
        cgprimer.load_run(tmp_path / "run.json")
    logarithm = cgprimer.parse("xh = dropout(k*xa, 0.1); xw = log(xh)")
    data = Dataset.from_arrays({"xa": [1.0, 2.0]}, {"xw": [1.0, 2.0]})
    with (
        pytest.warns(UserWarning, match="0.1 only.*PyTorch"),
        refused(cgprimer.TrainingError, "xw = log(xh) ... -inf"),
    ):
        cgprimer.train(logarithm, data)


def test_texts_and_formulas_of_layers() -> None:
    graph = cgprimer.parse("xy = batchnorm(w*xa, gamma, beta); xh = dropout(xy, 0.5)")
    assert cgprimer.parse(graph.text).text == graph.text
    approved("\n".join(latex(graph.definitions[name]) for name in ("xy", "xh")))
    with refused(cgprimer.UsageError):
        cgprimer.tape(graph, "train")
    two = cgprimer.parse("xy = batchnorm(xa, 1, 0) + batchnorm(xa^2, 1, 0)")
    names = ("mean.xy", "variance.xy", "mean.xy.2", "variance.xy.2")
    assert cgprimer.tape(two).of_kind("scalar") == names
