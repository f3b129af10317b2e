"""Dropout and batch normalization: known values, training as in PyTorch, use after training."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.analysis.latex import latex
from cgprimer.core.evaluation.evaluator import values_of
from cgprimer.core.tape.tape_entries import Leaf
from cgprimer.training.layer_states import Masks
from cgprimer.training.predictions import compute_outputs
from tests.approval import approved, refused
from tests.training.training_graphs import PLAIN

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
Network = tuple[cgprimer.Dataset, dict[str, Any]]


@pytest.fixture(scope="module")
def small() -> Network:
    """Return twelve samples, and start values for both networks."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(12, 3))
    data = cgprimer.Dataset.from_arrays({"x": x}, {"xo": np.sin(x).sum(axis=1)})
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
    curve = cgprimer.Dataset.from_arrays({"xa": xa}, {"xw": np.sin(2 * xa)})
    rules: dict[str, Any] = {"batch_size": batch, "epochs": 3}
    first, *others = (
        cgprimer.train(unit, curve, engine=engine, on_step=callback, seed=2, **rules)
        for engine, callback in
        [("plain", None), ("numpy", None), ("cpu", None), ("cpu", lambda *_: None)]
    )  # fmt: skip
    for other in others:
        np.testing.assert_allclose(other.step_losses, first.step_losses, rtol=1e-9)
        assert other.loss == pytest.approx(first.loss, rel=1e-9)
    second = cgprimer.train(unit, curve, engine="cpu", seed=9, **rules)
    assert second.step_losses != first.step_losses


def test_patience_returns_the_statistics_of_the_best_epoch(small: Network) -> None:
    data, start = small
    rules: dict[str, Any] = {"batch_size": 5, "optimizer": "sgd", "learning_rate": 2.0}
    run = cgprimer.train(NORMALIZED, data, start=start, validation=data, patience=3, **rules)
    assert run.stopped == "patience"
    assert run.loss == pytest.approx(min(run.validation_losses), rel=1e-12)
    assert (run.last_statistics["mean.xz"] != run.statistics["mean.xz"]).any()


def test_wrong_layers() -> None:
    for text in ("xh = 2*dropout(xa, 1.5)", "xh = dropout(xa, p)", "xh = batchnorm(xa, g, b, -1)",
                 "xh = batchnorm(xa, g)"):  # fmt: skip
        with refused(cgprimer.SourceError):
            cgprimer.tape(cgprimer.parse(text))


def test_layers_that_cannot_be_trained_or_evaluated(small: Network, tmp_path: Path) -> None:
    data = small[0]
    for settings in ({"batch_size": 1}, {"batch_size": 11}, {"engine": "cpu"},
                     {"method": "path-sum"}):  # fmt: skip
        with refused(cgprimer.CgprimerError):
            cgprimer.train(NORMALIZED, data, **settings)
    with refused(cgprimer.UsageError):
        F10.evaluate({"x": [1.0], "t": 0.0})
    for name in ("mean.xq", "variance.xy.2"):
        with refused(cgprimer.UsageError):
            cgprimer.gradient(F10, {"x": 1.0, "t": 0.0, name: 0.5})
    run = cgprimer.train(NORMALIZED, data, epochs=1, batch_size=6)
    run.statistics = {"mean.xz": 0.0}
    run.save(tmp_path / "run.json")
    with refused(cgprimer.DataError, "'variance.xz'"):
        cgprimer.load_run(tmp_path / "run.json")


def test_a_small_p_is_questioned_and_dropped_values_can_fail() -> None:
    graph = cgprimer.parse("xh = dropout(k*xa, 0.1); xw = log(xh)")
    data = cgprimer.Dataset.from_arrays({"xa": [1.0, 2.0]}, {"xw": [1.0, 2.0]})
    with (
        pytest.warns(UserWarning, match="0.1 only.*PyTorch"),
        refused(cgprimer.TrainingError, "xw = log(xh) ... -inf"),
    ):
        cgprimer.train(graph, data)


def test_texts_and_formulas_of_layers() -> None:
    graph = cgprimer.parse("xy = batchnorm(w*xa, gamma, beta); xh = dropout(xy, 0.5)")
    assert cgprimer.parse(graph.text).text == graph.text
    approved("\n".join(latex(graph.definitions[name]) for name in ("xy", "xh")))
    with refused(cgprimer.UsageError):
        cgprimer.tape(graph, "train")
    two = cgprimer.parse("xy = batchnorm(xa, 1, 0) + batchnorm(xa^2, 1, 0)")
    names = ("mean.xy", "variance.xy", "mean.xy.2", "variance.xy.2")
    assert cgprimer.tape(two).of_kind("scalar") == names
