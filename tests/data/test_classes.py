"""Samples of classes, and columns of mean 0 and deviation 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

import cgprimer
from cgprimer.errors import UsageError
from cgprimer.training.data import (
    Blocks,
    Dataset,
    compute_scales,
    denormalize_outputs,
    normalize_data,
)
from cgprimer.training.data.class_samples import CLASSES, make_classes
from tests.approval import approved, refused
from tests.cli.cli_tools import bad, good

NET = cgprimer.parse("xw = ap*xp+aq*xq+ar*xr+as*xs; xz = bp*xp+bq*xq+br*xr+bs*xs; xo = cp*xw+cq*xz")


def of_class(data: Dataset, label: float) -> np.ndarray:
    chosen = next(iter(data.targets.values())) == label
    return np.stack(list(data.inputs.values()), axis=1)[chosen]


def test_the_neurons_data_of_the_lecture() -> None:
    """A3: N(2, 1) and N(4, 2^2) per input, scaled by the batch's maximum."""
    data = make_classes("lecture-neurons", NET, samples=20_000, seed=1)
    assert (list(data.inputs), list(data.targets)) == (["xp", "xq", "xr", "xs"], ["xo"])
    largest = max(column.max() for column in data.inputs.values())
    assert largest == 1.0
    # The maximum of 40,000 of N(4, 2^2) undoes the scaling: their means say how large it was.
    first, second = of_class(data, 0.0), of_class(data, 1.0)
    assert len(first) == len(second) == 10_000
    scale = 2 / first.mean()
    assert 11 < scale < 14
    assert first.std() * scale == pytest.approx(1, rel=0.02)
    assert second.mean() * scale == pytest.approx(4, rel=0.02)
    assert second.std() * scale == pytest.approx(2, rel=0.02)
    assert abs(np.corrcoef(second.T)[0, 1]) < 0.05
    batches = make_classes("lecture-neurons", NET, samples=20, batch_size=8)
    x = np.stack(list(batches.inputs.values()), axis=1)
    assert [x[k : k + 8].max() for k in (0, 8, 16)] == [1.0, 1.0, 1.0]


def test_the_planes_data_of_the_lecture() -> None:
    """A6: N([3, 3], I) and N([5, 5], I), labels 1 and 2, for both outputs of a network 2-10-2."""
    graph = cgprimer.parse("input x[2]; parameter W[2,10], V[10,2]; y = relu(x @ W) @ V")
    data = make_classes("lecture-planes", graph, samples=2000)
    assert {n: c.shape for n, c in data.columns.items()} == {"x": (2000, 2), "y": (2000, 2)}
    np.testing.assert_array_equal(data.targets["y"][:, 0], data.targets["y"][:, 1])
    for label, mean in ((1.0, 3.0), (2.0, 5.0)):
        x = data.inputs["x"][data.targets["y"][:, 0] == label]
        assert len(x) == 1000
        assert x.mean(axis=0) == pytest.approx([mean, mean], abs=0.12)
        np.testing.assert_allclose(np.cov(x.T), np.eye(2), atol=0.12)


@pytest.mark.parametrize("kind", CLASSES)
def test_equal_arguments_give_equal_data(kind: str) -> None:
    data = make_classes(kind, samples=101, seed=3)
    again = make_classes(kind, samples=101, seed=3)
    assert data.to_csv() == again.to_csv() != make_classes(kind, samples=101, seed=4).to_csv()
    labels = data.targets["y"]
    assert sorted(np.unique(labels)) == list(CLASSES[kind].labels)
    assert (labels == labels.max()).sum() == 50
    assert (np.diff(labels) != 0).sum() > 30  # in random order


def test_the_places_of_moons_spirals_and_xor() -> None:
    clean: dict[str, Any] = {"samples": 500, "noise": 0.0}
    moons = make_classes("moons", **clean)
    upper, lower = of_class(moons, 0), of_class(moons, 1)
    np.testing.assert_allclose((upper**2).sum(axis=1), 1)
    np.testing.assert_allclose(((lower - [1, 0.5]) ** 2).sum(axis=1), 1)
    assert upper[:, 1].min() >= 0
    assert lower[:, 1].max() <= 0.5
    for label, turn in ((0, 0), (1, np.pi)):
        x, y = of_class(make_classes("spirals", **clean), label).T
        radius = np.hypot(x, y)
        np.testing.assert_allclose(x, radius * np.cos(3 * np.pi * radius + turn), atol=1e-12)
        np.testing.assert_allclose(y, radius * np.sin(3 * np.pi * radius + turn), atol=1e-12)
    signs = {label: of_class(make_classes("xor", **clean), label).prod(axis=1) for label in (0, 1)}
    assert signs[0].min() > 0 > signs[1].max()
    noisy = make_classes("xor", samples=500, noise=0.3)
    shift = np.stack(list(noisy.inputs.values())) - np.stack(
        list(make_classes("xor", **clean).inputs.values())
    )
    assert shift.std() == pytest.approx(0.3, rel=0.1)


def test_two_outputs_say_the_class_by_the_larger_one() -> None:
    graph = cgprimer.parse("xv = a*xa + b*xb; xw = c*xa + d*xb")
    data = make_classes("gaussians", graph, samples=400)
    assert (data.targets["xv"] + data.targets["xw"] == 1).all()
    run = cgprimer.train(graph, data, epochs=20, metrics=("accuracy",))
    assert run.metrics["accuracy"][-1] > 0.97


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("moon",), "'moon' ... moons"),
        (("moons", NET), "2 ... 4"),
        (("gaussians", cgprimer.parse("xa=a*x; xb=a*x; xc=a*x")), ""),
        (("gaussians", cgprimer.parse("xw = a")), ""),
    ],
)
def test_what_classes_cannot_be_drawn(arguments: Any, said: str) -> None:
    with refused(UsageError, said):
        make_classes(*arguments)
    for name, value in (("samples", 0), ("noise", -1.0), ("noise", "a"), ("batch_size", 3)):
        with pytest.raises(UsageError):
            make_classes("moons", **{name: value})


def test_classes_on_the_command_line(tmp_path: Path) -> None:
    good("data", "--classes", "moons", "--samples", "50", "-o", "m.parquet", cwd=tmp_path)
    data = Dataset.load(tmp_path / "m.parquet")
    np.testing.assert_array_equal(data.inputs["x1"], make_classes("moons", samples=50).inputs["x1"])
    said = bad("data", "--classes", "xor", "-o", "m.parquet", cwd=tmp_path)
    approved(said, "m.parquet")
    assert "--force" in said
    good("data", "--classes", "xor", "--samples", "9", "-o", "m.parquet", "--force", cwd=tmp_path)
    assert parquet.read_metadata(tmp_path / "m.parquet").num_rows == 9
    assert "--low" in bad("data", "--classes", "xor", "--low", "1")
    text = good("data", "-e", "y = k*xa", "--classes", "gaussians", "--samples", "2")
    assert text.splitlines()[0] == "xa,y"
    net = "xo = sigmoid(a*xa + b*xb + c)"
    trained = good(
        "train", "-e", net, "--data", "m.parquet", "--columns", "xa=x1,xb=x2,xo=y", "--normalize",
        "inputs", "--epochs", "2", "--save", "run.json", cwd=tmp_path,
    )  # fmt: skip
    assert "9 samples" in trained
    said = bad("train", "-e", net, "--data", "m.parquet", "--columns", "xa=x3", cwd=tmp_path)
    approved(said, "'x3' ... x1 ... x2 ... y")
    assert "NAME=COLUMN" in bad("train", "-e", net, "--data", "m.parquet", "--columns", "x1")


# --- normalisation -------------------------------------------------------------------------------


def test_scales_are_means_and_deviations_of_blocks_too(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("cgprimer.training.data.arrow_tables.ROWS", 100)
    random = np.random.default_rng(0)
    x = np.stack([random.normal(1e6, 1.0, 999), np.full(999, 0.1)], axis=1)
    data = Dataset.from_arrays({"x": x}, {"y": random.normal(5, 3, 999)})
    parquet.write_table(data.to_arrow(), tmp_path / "d.parquet", row_group_size=90)
    parts = Blocks.load(tmp_path / "d.parquet", inputs=["x"], targets=["y"])
    for given in (data, parts):
        scales = compute_scales(given, targets=True)
        np.testing.assert_allclose(scales["inputs/x"][0], x.mean(axis=0), rtol=1e-13)
        np.testing.assert_allclose(scales["inputs/x"][1], [x[:, 0].std(), 1.0], rtol=1e-9)
        np.testing.assert_allclose(scales["targets/y"][1], data.targets["y"].std(), rtol=1e-12)
        made = normalize_data(given, scales).block(0)
        assert abs(made.inputs["x"][:, 1]).max() < 1e-12
        np.testing.assert_allclose(
            denormalize_outputs(made.targets, scales)["y"], given.block(0).targets["y"], rtol=1e-12
        )
    assert list(compute_scales(data)) == ["inputs/x"]


@pytest.mark.parametrize("which", ["inputs", "all"])
def test_a_run_keeps_its_scales_and_predicts_with_them(which: str, tmp_path: Path) -> None:
    graph = cgprimer.parse("xw = k*xa + m*xb + c")
    truth = {"k": 3.0, "m": -0.002, "c": 7.0}
    low, high = {"xa": 0.0, "xb": 5_000.0}, {"xa": 0.01, "xb": 9_000.0}
    data = cgprimer.make_dataset(graph, truth=truth, samples=400, low=low, high=high)
    given: dict[str, Any] = {
        "normalize": which,
        "validation": 0.25,
        "epochs": 60,
        "learning_rate": 0.3,
    }
    run = cgprimer.train(graph, data, **given)
    kept, others = data.split(0.25, 0)
    assert run.scales["inputs/xb"] == pytest.approx(compute_scales(kept)["inputs/xb"])
    assert ("targets/xw" in run.scales) == (which == "all")
    np.testing.assert_allclose(run.predict(data)["xw"], data.targets["xw"], atol=1e-3)
    assert run.score(others).loss == pytest.approx(run.validation_losses[-1], rel=1e-9)
    assert run.score(others).r2 > 0.999999
    run.save(tmp_path / "run.json")
    again = cgprimer.load_run(tmp_path / "run.json")
    np.testing.assert_array_equal(again.predict(data)["xw"], run.predict(data)["xw"])
    half = cgprimer.train(graph, data, **{**given, "stop_below": 1e9})
    assert half.epochs == 1
    assert cgprimer.train(graph, data, **given, resume=half).parameters == run.parameters
    with refused(UsageError):
        cgprimer.train(graph, data, epochs=70, validation=0.25, resume=run)
