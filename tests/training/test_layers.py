"""Dropout and batch normalization: known values, training as in PyTorch, use after training."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import cgprimer
from cgprimer.analysis.latex import latex
from cgprimer.core.evaluation.evaluator import values_of
from cgprimer.core.tape.tape_entries import Leaf
from cgprimer.training.checkpoint import load_run
from cgprimer.training.layer_states import Masks
from cgprimer.training.predictions import compute_outputs
from cgprimer.training.runs import save_run
from tests.approval import approved, refused
from tests.cli.cli_tools import bad, good, read_json

F10 = cgprimer.load("batch_normalization")
BATCH = {"x": [1.0, 2.0, 4.0, 5.0], "t": [0.0, 0.0, 0.0, 1.0]}
F9 = cgprimer.load("dropout")

NORMALIZED = cgprimer.parse(
    "input x[3]; parameter W[4,3], g[4], b[4], v[4], c\n"
    "xz = batchnorm(W @ x, g, b); xo = v @ tanh(xz) + c"
)
DROPPED = cgprimer.parse(
    "input x[3]; parameter W[4,3], b[4], v[4], c\n"
    "xh = dropout(tanh(W @ x + b), 0.6); xo = v @ xh + c"
)


@pytest.fixture(scope="module")
def small():
    """Twelve samples, and start values for both networks."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(12, 3))
    data = cgprimer.Dataset.from_arrays({"x": x}, {"xo": np.sin(x).sum(axis=1)})
    weights, last = rng.normal(size=(4, 3)), rng.normal(size=4)
    shift = np.linspace(-0.2, 0.2, 4)
    return data, {"W": weights, "b": shift, "v": last, "c": 0.0}


# --- F10: batch normalization --------------------------------------------------------------------


def test_batch_normalization_has_the_known_values():
    assert F10.evaluate(BATCH)["xl"].sum() == pytest.approx(5.970177871865296, rel=1e-14)
    found = cgprimer.gradient(F10, BATCH, wrt=("x", "gamma", "beta"))
    known = [-0.1897366596101029, 0.06324555320335676, 0.569209978830308, -0.4427188724235731]
    np.testing.assert_allclose(found["x"], known, rtol=1e-12)
    assert found["gamma"].sum() == pytest.approx(6.735088935932649, rel=1e-14)
    assert found["beta"].sum() == pytest.approx(1.0, rel=1e-14)
    for method, options in (("forward", {}), ("finite-difference", {"scheme": "complex-step"})):
        other = cgprimer.gradient(F10, BATCH, method=method, **options)
        assert other["gamma"].sum() == pytest.approx(6.735088935932649, rel=1e-12), method


def test_a_trace_of_the_batch_shows_the_backward_formulas():
    found = cgprimer.trace(F10, BATCH, method="reverse")
    assert found.row("variance_xy").value == 2.5
    assert found.row("variance_xy").derivative == pytest.approx(-2.6940355743730593, rel=1e-13)
    assert found.row("mean_xy").derivative == pytest.approx(-1.264911064067352, rel=1e-13)
    assert found.row("gamma").derivative == pytest.approx(6.735088935932649, rel=1e-13)
    assert found.row("x").derivative[3] == pytest.approx(-0.4427188724235731, rel=1e-12)
    assert "adjoint d(sum xl)/d(name)" in str(found)
    steps = {row.name: row for row in found.backward}
    assert steps["bar_variance_xy"].value.sum() == pytest.approx(-2.6940355743730593, rel=1e-13)
    forward = cgprimer.trace(F10, BATCH, wrt="gamma", level="variables")
    assert forward.row("xl").derivative.sum() == pytest.approx(6.735088935932649, rel=1e-13)
    assert [row.name for row in forward.rows] == ["x", "t", "gamma", "beta", "xy", "xl"]
    with refused(cgprimer.UsageError):
        cgprimer.trace(F10, BATCH, wrt="x")
    with refused(cgprimer.UsageError):
        cgprimer.trace(cgprimer.parse("xw = k*x"), {"x": [1.0, 2.0], "k": 1.0})


def test_the_trace_of_the_example_is_that_of_its_comment():
    text = good("trace", "batch_normalization", "--method", "reverse",
               "--at", "x=[1,2,4,5], t=[0,0,0,1]")  # fmt: skip
    for number in ("-2.6940356", "-1.2649111", "6.7350889"):
        assert number in text


@pytest.mark.parametrize("method", cgprimer.methods())
def test_at_a_point_running_statistics_count(method):
    at = {"x": 1.5, "t": 1.0, "mean.xy": 0.5, "variance.xy": 4.0}
    found = cgprimer.gradient(F10, at, wrt=("x", "gamma", "beta"), method=method)
    # y = 2*(1.5 - 0.5)/2 + 0.5 = 1.5, and d loss/dy = 0.5
    assert found == pytest.approx({"x": 0.5, "gamma": 0.25, "beta": 0.5}, rel=1e-8)
    fresh = cgprimer.gradient(F10, {"x": 1.5, "t": 1.0}, wrt="x", method=method)["x"]
    assert fresh == pytest.approx(2 * (2 * 1.5 + 0.5 - 1.0), rel=1e-8)  # mean 0, variance 1


def test_samples_with_running_statistics_are_no_batch():
    at = {**BATCH, "mean.xy": 0.5, "variance.xy": 4.0}
    expected = 2 * (np.array(BATCH["x"]) - 0.5) / 2 + 0.5
    np.testing.assert_allclose(F10.evaluate(at)["xy"], expected, rtol=1e-15)
    found = cgprimer.gradient(F10, at, wrt="x")["x"]
    np.testing.assert_allclose(found, expected - BATCH["t"], rtol=1e-15)


def test_second_derivatives_of_a_batch():
    found = cgprimer.hessian(F10, BATCH)
    spread = (F10.evaluate(BATCH)["xy"] - 0.5) / 2  # normalized x
    assert found["gamma"]["gamma"].sum() == pytest.approx((spread**2).sum(), rel=1e-12)
    product_ = cgprimer.hessian_vector_product(F10, BATCH, {"gamma": 1.0, "beta": 0.0})
    assert product_["gamma"].sum() == pytest.approx((spread**2).sum(), rel=1e-12)


def test_a_mean_over_samples_is_none_over_units():
    graph = cgprimer.parse("input x[3]; parameter k[3]; xm = batch_mean(x) + batch_mean(k)")
    at = {"x": [1.0, 2.0, 6.0], "k": [0.0, 1.0, 2.0]}
    np.testing.assert_array_equal(graph.evaluate(at)["xm"], [1.0, 3.0, 8.0])
    rows = {"x": [[1.0, 2.0, 6.0], [3.0, 2.0, 0.0]], "k": at["k"]}
    np.testing.assert_array_equal(graph.evaluate(rows)["xm"], [[2.0, 3.0, 5.0]] * 2)


# --- F9: dropout ---------------------------------------------------------------------------------


def test_the_mean_over_all_masks_is_the_value_afterwards():
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


@pytest.mark.parametrize("method", cgprimer.methods())
def test_dropout_in_use_is_a_factor_in_every_method(method):
    graph = cgprimer.parse("xh = dropout(tanh(w*xa), 0.25); xo = xh^2")
    found = cgprimer.gradient(graph, {"xa": 2.0, "w": 0.3}, method=method)["w"]
    slope = 2 * 0.25**2 * np.tanh(0.6) * (1 - np.tanh(0.6) ** 2) * 2.0
    assert found == pytest.approx(slope, rel=1e-8)


def test_masks_depend_on_seed_epoch_and_place_alone():
    leaves = [Leaf("column", "mask.a", 0.3, (5,)), Leaf("column", "mask.b", 0.8)]
    masks = Masks(leaves, seed=4, dtype="float32")
    whole = masks.create_stream(2, 0)(1000)
    assert whole["mask.a"].shape == (1000, 5)
    assert whole["mask.b"].dtype == np.float32
    draw = masks.create_stream(2, 333)
    parts = [draw(count)["mask.a"] for count in (1, 3, 100)]
    np.testing.assert_array_equal(np.concatenate(parts), whole["mask.a"][333:437])
    assert whole["mask.a"].mean() == pytest.approx(0.3, abs=0.02)
    assert whole["mask.b"].mean() == pytest.approx(0.8, abs=0.04)
    for other in (
        masks.create_stream(3, 0),
        Masks(leaves, seed=5, dtype="float32").create_stream(2, 0),
    ):
        assert (other(1000)["mask.a"] != whole["mask.a"]).any()
    wide = Masks([Leaf("column", "mask.a", 0.5, (4096,))], seed=0, dtype="float64")
    assert wide.max_samples * wide.width <= 2**21  # numbers that are in memory at a time


# --- training ------------------------------------------------------------------------------------

# torch 2.x, float64: nn.Linear, nn.BatchNorm1d (its own eps and momentum), SGD of rate 0.05,
# five epochs over twelve samples in batches of 5, 5 and 2.
TORCH_LOSSES = [
    0.714931225894067, 1.5034343062906652, 2.8596292192405963, 0.366935772353656,
    1.0763502699351246, 1.6561797271894612, 0.6442457000079173, 0.6881943245558572,
    1.1005113097419243, 0.6253689919445377, 0.6484489136767927, 0.8386526963139834,
    0.5759468561937175, 0.568886310705565, 0.6566884570844652,
]  # fmt: skip
TORCH_MEAN = [0.2371809872212734, -0.12322640828602868, -0.15911914288173712, 0.6532575784402934]
TORCH_VARIANCE = [0.8617617952127302, 0.4705474250734992, 1.2559767763597334, 1.037027018193539]
TORCH_LOSS_IN_USE = 0.24523007582816123
# The same with masks that are given instead, and Adam of rate 0.05.
DROPPED_LOSSES = [
    1.1023689013390379, 2.2982066563353496, 3.3866159864675756, 1.0760732096238201,
    0.44379268256878196, 0.36095510757438753, 1.1559345718573002, 0.6114912524011208,
    0.039969185969286516, 1.1487014948221712, 1.1599239057728141, 0.1376868766157569,
    0.6633104626493541, 1.5241518571127723, 0.6236000187697517,
]  # fmt: skip
STEPS = {"batch_size": 5, "epochs": 5, "shuffle": False, "schedule": "constant"}


@pytest.mark.parametrize("method", ["reverse", "forward"])
def test_batch_normalization_trains_as_in_torch(small, method):
    data, start = small
    start = {**start, "g": 1.1}
    made = cgprimer.train(
        NORMALIZED, data, start=start, optimizer="sgd", learning_rate=0.05, method=method, **STEPS
    )
    np.testing.assert_allclose(made.step_losses, TORCH_LOSSES, rtol=1e-10)
    np.testing.assert_allclose(made.statistics["mean.xz"], TORCH_MEAN, rtol=1e-10)
    np.testing.assert_allclose(made.statistics["variance.xz"], TORCH_VARIANCE, rtol=1e-10)
    assert made.loss == pytest.approx(TORCH_LOSS_IN_USE, rel=1e-10)
    found = NORMALIZED.evaluate({"x": data.inputs["x"], **made.point})["xo"]
    error = ((found - data.targets["xo"]) ** 2).mean()
    assert error == pytest.approx(TORCH_LOSS_IN_USE, rel=1e-10)
    predicted = compute_outputs(NORMALIZED, data.inputs, 12, made.point)["xo"]
    np.testing.assert_allclose(predicted, found, rtol=1e-14)


@pytest.mark.parametrize("engine", ["plain", "cpu"])
def test_dropout_trains_as_in_torch(small, engine):
    data, start = small
    made = cgprimer.train(
        DROPPED, data, start=start, learning_rate=0.05, engine=engine, seed=3, **STEPS
    )
    np.testing.assert_allclose(made.step_losses, DROPPED_LOSSES, rtol=1e-10)
    assert made.loss == pytest.approx(0.2614055442716054, rel=1e-10)
    assert made.parameters["c"] == pytest.approx(-0.24300334375827345, rel=1e-10)


UNIT = cgprimer.parse("xh = dropout(tanh(w*xa + b), 0.5); xw = v*dropout(xh, 0.9) + c")
INPUTS = np.linspace(-1, 1, 101)
CURVE = cgprimer.Dataset.from_arrays({"xa": INPUTS}, {"xw": np.sin(2 * INPUTS)})


@pytest.mark.parametrize("batch", [1, 8, None])
def test_engines_and_python_draw_the_same_masks(batch):
    settings = {"batch_size": batch, "epochs": 3, "seed": 2}
    ways = [("plain", None), ("numpy", None), ("cpu", None), ("cpu", lambda *step: None)]
    first, *others = (
        cgprimer.train(UNIT, CURVE, engine=engine, on_step=seen, **settings)
        for engine, seen in ways
    )
    for other in others:
        np.testing.assert_allclose(other.step_losses, first.step_losses, rtol=1e-9)
        assert other.loss == pytest.approx(first.loss, rel=1e-9)
    second = cgprimer.train(UNIT, CURVE, engine="cpu", batch_size=batch, epochs=3, seed=9)
    assert second.step_losses != first.step_losses


@pytest.mark.parametrize(("graph", "data"), [(UNIT, CURVE), (NORMALIZED, None)])
def test_a_run_that_is_taken_up_goes_on_bit_by_bit(graph, data, small, tmp_path):
    data = data or small[0]
    settings = {"schedule": "constant", "batch_size": 5, "validation": 0.2, "patience": 50}
    whole = cgprimer.train(graph, data, epochs=6, **settings)
    half = cgprimer.train(graph, data, epochs=3, **settings)
    save_run(half, tmp_path / "half.json", graph)
    again = load_run(tmp_path / "half.json", graph)
    both = cgprimer.train(graph, data, epochs=6, resume=again, **settings)
    assert both.step_losses == whole.step_losses
    assert both.validation_losses == whole.validation_losses
    for one, other in zip(both.point.items(), whole.point.items(), strict=True):
        np.testing.assert_array_equal(one[1], other[1])


def test_patience_returns_the_statistics_of_the_best_epoch(small):
    data, start = small
    made = cgprimer.train(
        NORMALIZED, data, start=start, batch_size=5, epochs=60, validation=data, patience=3,
        learning_rate=2.0, optimizer="sgd",
    )  # fmt: skip
    assert made.stopped == "patience"
    assert made.loss == pytest.approx(min(made.validation_losses), rel=1e-12)
    assert (made.last_statistics["mean.xz"] != made.statistics["mean.xz"]).any()


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("xh = 2*dropout(xa, 1.5)", "1:8 ... PyTorch's p"),
        ("xh = dropout(xa, p)", "0 ... 1"),
        ("xh = batchnorm(xa, g, b, -1)", "0"),
        ("xh = batchnorm(xa, g)", ""),
    ],
)
def test_settings_that_are_none(text, said):
    with refused(cgprimer.SourceError, said):
        cgprimer.tape(cgprimer.parse(text))


def test_a_batch_of_one_sample(small):
    data = small[0]
    for batch, said in ((1, "batch_size"), (11, "11 ... 12")):
        with refused(cgprimer.UsageError, said):
            cgprimer.train(NORMALIZED, data, batch_size=batch)
    with refused(cgprimer.UsageError):
        F10.evaluate({"x": [1.0], "t": 0.0})


def test_what_cannot_carry_a_batch_says_so(small):
    data = small[0]
    with refused(cgprimer.UsageError, "'cpu' ... batchnorm"):
        cgprimer.train(NORMALIZED, data, engine="cpu")
    with refused(cgprimer.DifferentiationError):
        cgprimer.train(NORMALIZED, data, method="path-sum")


def test_statistics_that_are_none(small, tmp_path):
    for name in ("mean.xq", "variance.xy.2"):
        with refused(cgprimer.UsageError):
            cgprimer.gradient(F10, {"x": 1.0, "t": 0.0, name: 0.5})
    with refused(cgprimer.UsageError):
        F10.evaluate({"x": 1.0, "t": 0.0, "mean.xq": 0.5})
    made = cgprimer.train(NORMALIZED, small[0], epochs=1, batch_size=6)
    made.statistics = {"mean.xz": 0.0}
    save_run(made, tmp_path / "run.json", NORMALIZED)
    with refused(cgprimer.DataError, "'variance.xz'"):
        load_run(tmp_path / "run.json")


def test_a_small_p_is_asked_about_and_what_is_not_finite_is_found():
    graph = cgprimer.parse("xh = dropout(k*xa, 0.1); xw = log(xh)")
    data = cgprimer.Dataset.from_arrays({"xa": [1.0, 2.0]}, {"xw": [1.0, 2.0]})
    with (
        pytest.warns(UserWarning, match="0.1 only.*PyTorch"),
        refused(cgprimer.TrainingError, "xw = log(xh) ... -inf"),
    ):
        cgprimer.train(graph, data)


# --- shown ---------------------------------------------------------------------------------------


def test_texts_formulas_and_pictures():
    graph = cgprimer.parse("xy = batchnorm(w*xa, gamma, beta); xh = dropout(xy, 0.5)")
    assert cgprimer.parse(graph.text).text == graph.text
    assert graph.expression("xy") == "batchnorm(w*xa, gamma, beta)"
    assert latex(graph.definitions["xy"]).startswith(r"\operatorname{BN}_{\gamma, \beta}\left(")
    assert latex(graph.definitions["xh"]).startswith(r"\operatorname{dropout}_{0.5}\left(")
    formulas = {name: str(formula) for name, formula in graph.to_sympy().items()}
    assert formulas["xh"] == "xy/2"
    assert "sqrt(variance_xy + 1/100000)" in formulas["xy"]
    assert str(cgprimer.tape(graph, "training")).count("batch_mean(") == 2
    with refused(cgprimer.UsageError):
        cgprimer.tape(graph, "train")


def test_two_layers_in_one_expression_have_statistics_of_their_own():
    graph = cgprimer.parse("xy = batchnorm(xa, 1, 0) + batchnorm(xa^2, 1, 0)")
    names = cgprimer.tape(graph).of_kind("scalar")
    assert names == ("mean.xy", "variance.xy", "mean.xy.2", "variance.xy.2")


def test_commands(tmp_path):
    at = ("--at", "x=1.5,t=1")
    assert "running statistic" in good("trace", "batch_normalization", "--wrt", "x", *at)
    assert "path-sum" in good("compare", "batch_normalization", "--wrt", "x", *at)
    page = tmp_path / "page.html"
    good("step", "batch_normalization", *at, "-o", str(page))
    assert "running statistic" in page.read_text(encoding="utf-8")
    good("draw", "batch_normalization", "--level", "operations", "--values", *at,
        "-o", str(tmp_path / "tape.svg"))  # fmt: skip
    assert "mean_xy" in (tmp_path / "tape.svg").read_text(encoding="utf-8")
    good("draw", "dropout", "--scalars", "all", "--values", "-o", str(tmp_path / "numbers.svg"))
    assert "mask_xh" in good("tape", "dropout", "--training")
    assert "dropout(a, 0.5)" in good("primitives", "dropout")
    learnt, text = tmp_path / "run.json", tmp_path / "net.cg"
    text.write_text(
        "input x[3] = 1; parameter W[2,3] = 0.5, g[2] = 1, b[2] = [0, 1], v[2] = [1, -1]\n"
        "xz = batchnorm(W @ x, g, b); xo = v @ tanh(xz)",
        encoding="utf-8",
    )
    good("train", text, "--samples", "40", "--epochs", "2", "--save", learnt)
    values = load_run(learnt).point
    expected = cgprimer.gradient(cgprimer.load(text), values, wrt="g")["g"]
    found = read_json("grad", text, "--at", learnt, "--wrt", "g", "--json")
    np.testing.assert_allclose(found["gradient"]["xo"]["g"], expected, rtol=1e-12)
    assert "d xo / d g = [" in good("grad", text, "--at", learnt, "--wrt", "g")
    approved(bad("trace", "batch_normalization", "--method", "reverse", "--at", "x=[1],t=0"))
