"""Datasets: arrays put together, generated from graphs and classes, and normalized."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

import cgprimer
from cgprimer.errors import CgprimerError, DataError, UsageError
from cgprimer.training.data import (
    Blocks,
    Dataset,
    compute_scales,
    denormalize_outputs,
    make_dataset,
    normalize_data,
)
from cgprimer.training.data.class_samples import CLASSES, make_classes
from tests.approval import approved, refused

HERE = Path(__file__).parent
LINE = cgprimer.parse("xw = k*xa + xb; parameter k = 2")


# --- from arrays ---------------------------------------------------------------------------------


def test_arrays_become_contiguous_columns_of_doubles() -> None:
    data = Dataset.from_arrays({"xa": np.arange(6)[::2]}, {"xw": np.array([1, 0, 1], dtype=bool)})
    for column in data.columns.values():
        assert column.dtype == np.float64
        assert column.flags.c_contiguous
    assert (len(data), len(Dataset.from_arrays({"xa": []}))) == (3, 0)
    assert repr(data) == "<Dataset: 3 samples, inputs xa, targets xw>"
    elements = {"x[1,0]": [3], "x[0,1]": [2], "xa": [9.0], "x[0,0]": [1], "x[1,1]": [4]}
    data = Dataset.from_arrays(elements, {"xo[0]": [5], "xo[1]": [6]})
    assert list(data.inputs) == ["x", "xa"]
    np.testing.assert_array_equal(data.inputs["x"], [[[1.0, 2.0], [3.0, 4.0]]])
    np.testing.assert_array_equal(data.targets["xo"], [[5.0, 6.0]])
    assert repr(data) == "<Dataset: 1 samples, inputs x[2,2], xa, targets xo[2]>"


def test_frames_of_any_library_are_mappings() -> None:
    frame = pytest.importorskip("pandas").DataFrame(
        {"xa": [1.0], "xb": [2.0]}
    )  # which has no truth value
    data = Dataset.from_arrays(frame[["xa"]], frame[["xb"]])
    assert (data.inputs["xa"].tolist(), data.targets["xb"].tolist()) == ([1.0], [2.0])


@pytest.mark.parametrize(
    ("inputs", "values"),
    [
        ({}, ""),
        ({"xa": [1.0], "xw": [1.0, 2.0]}, "xa 1 ... xw 2"),
        ({"xa": 1.0}, "'xa' ... 0"),
        ({"xa": ["a", "b"]}, "'xa'"),
        ({"xa": np.ma.array([1.0, 2.0], mask=[0, 1])}, ""),
        ({"xa": [1j]}, ""),
        ({"xa": [None]}, ""),
        ({"xa": [[1.0], [2.0, 3.0]]}, ""),
        ({"x[0]": [1], "x[2]": [1]}, "'x[1]'"),
        ({"x[0,0]": [1], "x[1,1]": [1]}, "'x[0,1]'"),
        ({"x[999999999,999999999,999999999]": [1]}, "'x[0,0,0]'"),
        ({"x[0]": [1], "x[00]": [1]}, ""),
        ({"x[0]": [1], "x": [[1]]}, ""),
        ({"x[0]": [1], "x[0,1]": [1]}, ""),
        ({"x[0]": [[1, 2]]}, ""),
        *[(invalid, "") for invalid in ([1.0], np.eye(2), None, 5, {0: [1.0]}, {"x\x1b": [1.0]})],
    ],
)
def test_invalid_arrays_are_refused(inputs: Any, values: str) -> None:
    with refused((DataError, UsageError), values):
        Dataset.from_arrays(inputs)


def test_a_split_keeps_samples_together_and_infinite_samples_are_located() -> None:
    x = np.arange(24.0).reshape(4, 3, 2)
    data = Dataset.from_arrays({"x": x}, {"xw": np.arange(4.0)})
    train, others = data.split(0.25, seed=0)
    assert (train.inputs["x"].shape, others.inputs["x"].shape) == ((3, 3, 2), (1, 3, 2))
    for part in (train, others):
        np.testing.assert_array_equal(part.inputs["x"], x[part.targets["xw"].astype(int)])
    x[2, 1, 0] = np.inf
    with refused(DataError, "2 ... 'x[1,0]' ... inf"):
        Dataset.from_arrays({"x": x}).check_finite()


# --- from graphs ---------------------------------------------------------------------------------


def test_inputs_are_numpys_uniform_numbers() -> None:
    data = make_dataset(LINE)
    random = np.random.default_rng(0)
    for column in data.inputs.values():
        np.testing.assert_array_equal(column, random.uniform(-1, 1, 10_000))
    np.testing.assert_array_equal(data.targets["xw"], 2 * data.inputs["xa"] + data.inputs["xb"])
    assert data.inputs["xa"][0] == 0.2739233746429086  # on every machine
    bounds = {"low": {"xa": 3.0, "xb": 10.0}, "high": {"xa": 3.0, "xb": 20.0}}
    data = make_dataset(LINE, samples=5, seed=11, truth={"k": -1}, **bounds)
    random = np.random.default_rng(11)
    np.testing.assert_array_equal(data.inputs["xa"], random.uniform(3, 3, 5))
    np.testing.assert_array_equal(data.inputs["xb"], random.uniform(10, 20, 5))
    np.testing.assert_array_equal(data.targets["xw"], data.inputs["xb"] - data.inputs["xa"])
    assert (data.truth, LINE.values) == ({"k": -1.0}, {"k": 2.0})
    assert data.where(np.arange(3)).truth == data.truth
    assert Dataset.from_arrays(data.inputs, data.targets).truth == {}
    fixed = make_dataset(cgprimer.parse("input xa = 0.5; parameter k = 1; xw = k*xa"), samples=9)
    assert len(set(fixed.inputs["xa"].tolist())) == 9


def test_noise_is_normal_and_independent() -> None:
    graph = cgprimer.parse("input x[2], xa; parameter w[2] = 1; xo = w*x; xv = 2*xa")
    data = make_dataset(graph, samples=20_000, noise=0.3, seed=2)
    clean = make_dataset(graph, samples=20_000, seed=2)
    np.testing.assert_array_equal(data.inputs["xa"], clean.inputs["xa"])
    noise = np.column_stack([data.targets[name] - clean.targets[name] for name in data.targets])
    assert noise.shape == (20_000, 3)
    assert noise.mean(axis=0) == pytest.approx(np.zeros(3), abs=0.01)
    assert noise.std(axis=0) == pytest.approx(np.full(3, 0.3), rel=0.03)
    assert (np.abs(noise) < 0.3).mean() == pytest.approx(0.6827, abs=0.015)
    assert np.corrcoef(noise.T) == pytest.approx(np.eye(3), abs=0.03)


def test_arrays_and_domains_of_inputs() -> None:
    graph = cgprimer.parse(
        "input y in {0, 1}, t[2] in {-1, 0, 1}, c[2,3] in one-hot, x[2]; parameter W[2,2] = 0.5\n"
        "xo = x @ W + y*t; xp = sum(c) + sum(x)"
    )
    bounds: dict[str, Any] = {"low": {"x": 0.0}, "high": {"x": 2.0}}
    data = make_dataset(graph, samples=600, seed=3, **bounds)
    x, y, t = (data.inputs[name] for name in ("x", "y", "t"))
    assert {*np.unique(y)} == {0.0, 1.0}
    assert abs(y.mean() - 0.5) < 0.1
    assert (t.shape, {*np.unique(t)}) == ((600, 2), {-1.0, 0.0, 1.0})
    assert (data.inputs["c"].sum(axis=-1) == 1).all()
    assert (data.inputs["c"].mean(axis=0) > 0.2).all()
    assert 0 <= x.min() < x.max() <= 2
    assert np.ptp(x) > 1.9
    np.testing.assert_allclose(
        data.targets["xo"], x.sum(axis=1)[:, None] * 0.5 + y[:, None] * t, rtol=1e-12
    )
    np.testing.assert_allclose(data.targets["xp"], 2 + x.sum(axis=1))
    np.testing.assert_array_equal(data.truth["W"], np.full((2, 2), 0.5))
    again = make_dataset(graph, samples=600, seed=3, **bounds)
    assert all((again.columns[name] == c).all() for name, c in data.columns.items())
    assert list(make_dataset(graph, samples=4, targets=False).columns) == ["y", "t", "c", "x"]


@pytest.mark.parametrize("line", (HERE / "refused_arguments.txt").read_text().splitlines())
def test_data_that_cannot_be_generated(line: str) -> None:
    text, settings = json.loads(line)
    with refused(CgprimerError) as caught:
        make_dataset(cgprimer.parse(text), **settings)
    approved(type(caught.value).__name__)


# --- classes -------------------------------------------------------------------------------------


def stack_inputs(data: Dataset) -> np.ndarray:
    return np.column_stack(list(data.inputs.values()))


def points_of(data: Dataset, label: float) -> np.ndarray:
    return stack_inputs(data)[data.targets["y"] == label]


@pytest.mark.parametrize("kind", CLASSES)
def test_classes_are_determined_by_the_seed_and_balanced(kind: str) -> None:
    data = make_classes(kind, samples=101, seed=3)
    again, other = (make_classes(kind, samples=101, seed=seed) for seed in (3, 4))
    assert data.to_csv() == again.to_csv() != other.to_csv()
    labels = data.targets["y"]
    assert sorted(np.unique(labels)) == list(CLASSES[kind].labels)
    assert (labels == labels.max()).sum() == 50
    assert (np.diff(labels) != 0).sum() > 30  # in random order


@pytest.mark.parametrize(
    ("kind", "text", "means", "deviations"),
    [
        ("gaussians", "xo = a*xp + b*xq", (-1, 1), (0.5, 0.5)),
        ("lecture-neurons", "xo = ap*xp + aq*xq + ar*xr + as*xs", (2, 4), (1, 2)),
        ("lecture-planes", "input x[2]; parameter W[2,2]; xo = x @ W", (3, 5), (1, 1)),
    ],
)
def test_normal_classes_have_the_documented_means_and_deviations(
    kind: str, text: str, means: tuple[float, ...], deviations: tuple[float, ...]
) -> None:
    graph = cgprimer.parse(text)
    data = make_classes(kind, graph, samples=20_000, seed=1)
    assert (data.inputs.keys(), [*data.targets]) == ({*graph.inputs}, ["xo"])
    scale, label = 1.0, data.targets["xo"].reshape(20_000, -1)
    assert (label == label[:, :1]).all()  # planes: both outputs are the label
    if kind == "lecture-neurons":
        assert stack_inputs(data).max() == 1.0  # inputs are divided by their maximum
        scale = 2 / stack_inputs(data)[label[:, 0] == 0].mean()
        assert 11 < scale < 14
        batches = stack_inputs(make_classes(kind, graph, samples=20, batch_size=8))
        assert [batches[k : k + 8].max() for k in (0, 8, 16)] == [1.0, 1.0, 1.0]
    for number, mean, deviation in zip(CLASSES[kind].labels, means, deviations, strict=True):
        x = stack_inputs(data)[label[:, 0] == number] * scale
        assert len(x) == 10_000
        np.testing.assert_allclose(x.mean(axis=0), mean, atol=0.08)
        variances = np.eye(x.shape[1]) * deviation**2
        np.testing.assert_allclose(np.cov(x.T), variances, atol=0.05 * deviation**2)


def test_shapes_of_moons_spirals_and_xor() -> None:
    def clean(kind: str) -> Dataset:
        return make_classes(kind, samples=1000, noise=0.0)

    upper, lower = (points_of(clean("moons"), label) for label in (0, 1))
    np.testing.assert_allclose((upper**2).sum(axis=1), 1)
    np.testing.assert_allclose(((lower - [1, 0.5]) ** 2).sum(axis=1), 1)
    assert upper[:, 1].min() >= 0
    assert lower[:, 1].max() <= 0.5
    for label, turn in ((0, 0), (1, np.pi)):
        x, y = points_of(clean("spirals"), label).T
        radius = np.hypot(x, y)
        assert 0.1 <= radius.min() < 0.2
        assert 0.95 < radius.max() <= 1
        np.testing.assert_allclose(x, radius * np.cos(3 * np.pi * radius + turn), atol=1e-12)
        np.testing.assert_allclose(y, radius * np.sin(3 * np.pi * radius + turn), atol=1e-12)
        x, y = points_of(clean("xor"), label).T
        assert (np.sign(x * y) == 1 - 2 * label).all()
        assert -1 <= x.min() < -0.9
        assert 0.9 < y.max() <= 1
    noisy, exact = (make_classes("xor", samples=1000, noise=noise) for noise in (0.3, 0.0))
    noise = stack_inputs(noisy) - stack_inputs(exact)
    assert noise.std() == pytest.approx(0.3, rel=0.1)
    assert noise.mean() == pytest.approx(0, abs=0.03)


def test_the_larger_of_two_outputs_is_the_class() -> None:
    graph = cgprimer.parse("xv = a*xa + b*xb; xw = c*xa + d*xb")
    data = make_classes("gaussians", graph, samples=400)
    assert (data.targets["xv"] + data.targets["xw"] == 1).all()
    second = data.targets["xw"] == 1
    assert data.inputs["xa"][second].mean() > 0.8  # the second class is around 1
    for arguments, values in (
        (("moon",), "'moon' ... moons"),
        (("moons", cgprimer.parse("xo = a*x1 + a*x2 + a*x3 + a*x4")), "2 ... 4"),
        (("gaussians", cgprimer.parse("xa=a*x; xb=a*x; xc=a*x")), ""),
        (("gaussians", cgprimer.parse("xw = a")), ""),
    ):
        with refused(UsageError, values):
            make_classes(*arguments)  # type: ignore[arg-type]
    for name, value in (("samples", 0), ("noise", -1.0), ("noise", "a"), ("batch_size", 3)):
        with pytest.raises(UsageError):
            make_classes("moons", **{name: value})  # type: ignore[arg-type]


# --- normalization -------------------------------------------------------------------------------


def test_scales_are_means_and_deviations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cgprimer.training.data.arrow_tables.ROWS", 100)
    random = np.random.default_rng(0)
    x = np.stack([random.normal(1e6, 1.0, 999), np.full(999, 0.1)], axis=1)
    data = Dataset.from_arrays({"x": x}, {"y": random.normal(5, 3, 999)})
    parquet.write_table(data.to_arrow(), tmp_path / "d.parquet", row_group_size=90)
    for samples in (data, Blocks.load(tmp_path / "d.parquet", inputs=["x"], targets=["y"])):
        scales = compute_scales(samples, targets=True)
        np.testing.assert_allclose(scales["inputs/x"][0], x.mean(axis=0), rtol=1e-13)
        np.testing.assert_allclose(scales["inputs/x"][1], [x[:, 0].std(), 1.0], rtol=1e-9)
        np.testing.assert_allclose(scales["targets/y"][1], data.targets["y"].std(), rtol=1e-12)
        normalized, first = normalize_data(samples, scales).block(0), samples.block(0)
        expected = (first.inputs["x"][:, 0] - x[:, 0].mean()) / x[:, 0].std()
        np.testing.assert_allclose(normalized.inputs["x"][:, 0], expected, atol=1e-6)
        assert abs(normalized.inputs["x"][:, 1]).max() < 1e-12
        np.testing.assert_allclose(
            denormalize_outputs(normalized.targets, scales)["y"], first.targets["y"], rtol=1e-12
        )
    assert list(compute_scales(data)) == ["inputs/x"]


@pytest.mark.parametrize("which", ["inputs", "all"])
def test_a_run_stores_its_scales_and_predicts_with_them(which: str, tmp_path: Path) -> None:
    graph = cgprimer.parse("xw = k*xa + m*xb + c")
    truth = {"k": 3.0, "m": -0.002, "c": 7.0}
    low, high = {"xa": 0.0, "xb": 5_000.0}, {"xa": 0.01, "xb": 9_000.0}
    data = make_dataset(graph, truth=truth, samples=200, low=low, high=high)
    settings: dict[str, Any] = {"normalize": which, "validation": 0.25, "epochs": 60}
    run = cgprimer.train(graph, data, learning_rate=0.3, **settings)
    part, others = data.split(0.25, 0)
    assert run.scales["inputs/xb"] == pytest.approx(compute_scales(part)["inputs/xb"])
    assert ("targets/xw" in run.scales) == (which == "all")
    np.testing.assert_allclose(run.predict(data)["xw"], data.targets["xw"], atol=1e-2)
    assert run.score(others).loss == pytest.approx(run.validation_losses[-1], rel=1e-9)
    run.save(tmp_path / "run.json")
    again = cgprimer.load_run(tmp_path / "run.json")
    np.testing.assert_array_equal(again.predict(data)["xw"], run.predict(data)["xw"])
    with refused(UsageError):
        cgprimer.train(graph, data, epochs=70, validation=0.25, resume=run)
