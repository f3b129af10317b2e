"""Datasets made from graphs and from arrays."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.errors import DataError, MissingValueError, UsageError
from cgprimer.training.data import Dataset, make_dataset
from tests.approval import refused

LINE = cgprimer.parse("xw = k*xa + xb; parameter k = 2")


def test_the_numbers_of_a_seed_are_pinned() -> None:
    """numpy's PCG64 on the unit interval, stretched: the same on every machine."""
    data = make_dataset(LINE, samples=3, seed=0)
    assert data.inputs["xa"].tolist() == [
        0.2739233746429086,
        -0.4604265724722594,
        -0.9180529521276106,
    ]
    assert data.inputs["xb"].tolist() == [
        -0.9669447289429418,
        0.6265404784005448,
        0.8255111545554434,
    ]
    assert (data.targets["xw"] == 2 * data.inputs["xa"] + data.inputs["xb"]).all()


def test_the_draw_is_numpys_uniform() -> None:
    data = make_dataset(LINE, samples=5, seed=11, low=2.0, high=5.0)
    random = np.random.default_rng(11)
    assert (data.inputs["xa"] == random.uniform(2, 5, 5)).all()
    assert (data.inputs["xb"] == random.uniform(2, 5, 5)).all()


def test_equal_arguments_give_equal_data_whatever_the_hash_seed() -> None:
    code = (
        "import cgprimer; g = cgprimer.parse('xw = k*xa + xb + b*xc; parameter k = 2, b = 1');"
        "print(cgprimer.make_dataset(g, samples=4, noise=0.5).to_csv())"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1


def test_seeds_differ_and_the_default_is_ten_thousand_in_minus_one_to_one() -> None:
    data = make_dataset(LINE)
    assert len(data) == 10_000
    assert (make_dataset(LINE, seed=1).inputs["xa"] != data.inputs["xa"]).all()
    for column in data.inputs.values():
        assert -1 <= column.min() < -0.99
        assert 0.99 < column.max() < 1
        assert column.dtype == np.float64
        assert column.flags.c_contiguous
    assert abs(np.corrcoef(data.inputs["xa"], data.inputs["xb"])[0, 1]) < 0.05


def test_bounds_for_each_input() -> None:
    data = make_dataset(
        LINE, samples=500, low={"xa": 0.0, "xb": 10.0}, high={"xa": 1.0, "xb": 20.0}
    )
    assert 0 <= data.inputs["xa"].min() < data.inputs["xa"].max() <= 1
    assert 10 <= data.inputs["xb"].min() < data.inputs["xb"].max() <= 20
    fixed = make_dataset(LINE, samples=5, low={"xa": 3, "xb": 0}, high={"xa": 3, "xb": 1})
    assert fixed.inputs["xa"].tolist() == [3.0] * 5


def test_truth_goes_before_declared_values() -> None:
    data = make_dataset(LINE, truth={"k": -1}, samples=10)
    assert (data.targets["xw"] == -data.inputs["xa"] + data.inputs["xb"]).all()
    assert LINE.values == {"k": 2.0}


def test_declared_inputs_do_not_fix_the_inputs() -> None:
    data = make_dataset(cgprimer.parse("input xa = 0.5; parameter k = 1; xw = k*xa"), samples=9)
    assert len(set(data.inputs["xa"].tolist())) == 9


def test_noise_is_normal_with_the_given_deviation() -> None:
    clean = make_dataset(LINE, samples=20_000, seed=2)
    noisy = make_dataset(LINE, samples=20_000, seed=2, noise=0.3)
    assert (clean.inputs["xa"] == noisy.inputs["xa"]).all()
    error = noisy.targets["xw"] - clean.targets["xw"]
    assert error.mean() == pytest.approx(0, abs=0.01)
    assert error.std() == pytest.approx(0.3, rel=0.03)
    assert (np.abs(error) < 0.3).mean() == pytest.approx(0.6827, abs=0.015)
    assert abs(np.corrcoef(error, clean.inputs["xa"])[0, 1]) < 0.03


def test_noise_of_two_targets_is_independent() -> None:
    graph = cgprimer.parse("xv = k*xa; xw = 2*k*xa; parameter k = 1")
    data = make_dataset(graph, samples=20_000, noise=1.0)
    errors = [data.targets["xv"] - data.inputs["xa"], data.targets["xw"] - 2 * data.inputs["xa"]]
    assert abs(np.corrcoef(*errors)[0, 1]) < 0.03


def test_targets_are_the_outputs() -> None:
    graph = cgprimer.parse("xv = k*xa; xw = xv^2; output xv, xw; parameter k = 3")
    data = make_dataset(graph, samples=4)
    assert list(data.targets) == ["xv", "xw"]
    assert (data.targets["xw"] == data.targets["xv"] ** 2).all()


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"samples": 0}, UsageError, "1 ... 0"),
        ({"noise": -1.0}, UsageError, "0 ... -1"),
        ({"noise": float("nan")}, UsageError, "nan"),
        ({"low": 1.0, "high": 0.0}, UsageError, "'xa'"),
        ({"low": float("nan")}, UsageError, "nan"),
        ({"low": {"xa": 0.0}}, UsageError, "low ... 'xb'"),
        ({"high": {"xb": 0.0}}, UsageError, "'xa'"),
        ({"truth": {"zz": 1.0}}, UsageError, "'zz'"),
        ({"truth": {"xa": 1.0}}, UsageError, "'xa'"),
    ],
)
def test_wrong_arguments(settings: dict, error: type[Exception], said: str) -> None:
    with refused(error, said):
        make_dataset(LINE, **settings)


@pytest.mark.parametrize(
    "bounds", [{"high": float("inf")}, {"low": float("-inf")}, {"low": -1e308, "high": 1.7e308}]
)
def test_bounds_too_far_apart_are_refused(bounds: dict) -> None:
    with pytest.raises(UsageError, match=r"bounds|finite"):
        make_dataset(LINE, samples=3, **bounds)


def test_a_negative_seed_is_wrong_use() -> None:
    with pytest.raises(UsageError, match="seed"):
        make_dataset(LINE, samples=3, seed=-1)


def test_missing_truth_is_named() -> None:
    with refused(MissingValueError, "k ... b"):
        make_dataset(cgprimer.parse("xw = k*xa + b"))
    with refused(MissingValueError, "b ... --truth"):
        make_dataset(cgprimer.parse("xw = k*xa + b"), truth={"k": 1})


def test_targets_outside_the_domain_are_refused() -> None:
    with refused(DataError, "'xw' ... nan ... 4,9 ... 10,000") as caught:
        make_dataset(cgprimer.parse("xw = k*log(xa); parameter k = 1"))
    assert "xa=-0.4604" in str(caught.value)
    assert "--low" in str(caught.value)
    make_dataset(cgprimer.parse("xw = k*log(xa); parameter k = 1"), low=0.1)


# --- from arrays ----------------------------------------------------------------------------------


def test_from_arrays() -> None:
    data = Dataset.from_arrays({"xa": [1, 2, 3]}, {"xw": np.array([1, 0, 1], dtype=bool)})
    assert len(data) == 3
    assert data.inputs["xa"].dtype == data.targets["xw"].dtype == np.float64
    assert "3 samples, inputs xa, targets xw" in repr(data)
    assert "targets none" in repr(Dataset.from_arrays({"xa": [1.0]}))
    strided = np.arange(10.0)[::2]
    assert Dataset.from_arrays({"xa": strided}).inputs["xa"].flags.c_contiguous
    assert len(Dataset.from_arrays({"xa": []})) == 0


@pytest.mark.parametrize(
    ("inputs", "targets", "said"),
    [
        ({}, {}, ""),
        ({"xa": [1.0]}, {"xw": [1.0, 2.0]}, "xa 1 ... xw 2"),
        ({"xa": 1.0}, {}, "'xa' ... 0"),
        ({"xa": ["a", "b"]}, {}, "'xa'"),
        ({"xa": np.ma.array([1.0, 2.0], mask=[0, 1])}, {}, ""),
        ({"xa": [1j]}, {}, ""),
        ({"xa": [None]}, {}, ""),
        ({"xa": [[1.0], [2.0, 3.0]]}, {}, ""),
        ({"xa": [1.0]}, {"xw": ["x"]}, "'xw'"),
    ],
)
def test_from_arrays_errors(inputs: dict, targets: dict, said: str) -> None:
    with refused(DataError, said):
        Dataset.from_arrays(inputs, targets)


class DataFrameSource:
    """What a data frame of any maker offers: names to columns, and no truth value."""

    def __init__(self, columns: dict[str, list[float]]) -> None:
        self.items = columns.items

    def __bool__(self) -> bool:
        raise ValueError("the truth value of a frame is ambiguous")


def test_from_data_frames() -> None:
    data = Dataset.from_arrays(DataFrameSource({"xa": [1.0]}), DataFrameSource({"xw": [2.0]}))  # type: ignore[arg-type]
    assert (data.inputs["xa"].tolist(), data.targets["xw"].tolist()) == ([1.0], [2.0])


@pytest.mark.parametrize("given", [[1.0], np.eye(2), None, 5, {0: [1.0]}, {"x\x1b": [1.0]}])
def test_from_what_has_no_names(given: object) -> None:
    with refused(UsageError):
        Dataset.from_arrays(given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments",
    [
        {"samples": "a"}, {"samples": 1.5}, {"seed": "a"}, {"low": "a"}, {"noise": "a"},
        {"low": {"xa": "a"}}, {"truth": {"k": "a"}}, {"high": None},
    ],
)  # fmt: skip
def test_arguments_that_are_no_numbers(arguments: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"number|integer"):
        make_dataset(cgprimer.parse("xw = k*xa; parameter k = 1"), **arguments)


def test_only_data_that_were_made_have_a_truth() -> None:
    made = make_dataset(cgprimer.parse("xw = k*xa + b; parameter k = 1"), truth={"b": 2})
    assert made.truth == {"k": 1.0, "b": 2.0}
    assert Dataset.from_arrays(made.inputs, made.targets).truth == {}
    assert made.where(np.arange(3)).truth == made.truth


# --- inputs with a domain ------------------------------------------------------------------------


def test_inputs_are_sampled_from_their_domains() -> None:
    graph = cgprimer.parse(
        "input y in {0, 1}, t[2] in {-1, 0, 1}, c[2,3] in one-hot, x; z = k*x*y + sum(t) + sum(c)"
    )
    data = make_dataset(graph, truth={"k": 2.0}, samples=600, seed=3)
    assert {*np.unique(data.inputs["y"])} == {0.0, 1.0}
    assert abs(data.inputs["y"].mean() - 0.5) < 0.1
    assert data.inputs["t"].shape == (600, 2)
    assert {*np.unique(data.inputs["t"])} == {-1.0, 0.0, 1.0}
    assert (data.inputs["c"].sum(axis=-1) == 1).all()
    assert (data.inputs["c"].mean(axis=0) > 0.2).all()
    assert np.ptp(data.inputs["x"]) > 1.5
    again = make_dataset(graph, truth={"k": 2.0}, samples=600, seed=3)
    assert (data.inputs["c"] == again.inputs["c"]).all()


def test_an_input_with_a_domain_has_no_bounds() -> None:
    graph = cgprimer.parse("input y in {0, 1}, x; z = k*x*y")
    data = make_dataset(graph, truth={"k": 2.0}, samples=50, low=5, high=6)
    assert data.inputs["y"].max() == 1.0
    bounds = {"low": {"x": 0.0}, "high": {"x": 2.0}}
    data = make_dataset(graph, truth={"k": 2.0}, samples=50, **bounds)
    assert data.inputs["x"].min() >= 0.0
    with refused(UsageError, "'y'"):
        make_dataset(graph, truth={"k": 2.0}, low={"x": 0.0, "y": 0.0})


def test_training_uses_declared_domains() -> None:
    graph = cgprimer.parse(
        "input x, y in {0, 1}; parameter w = 1; p = sigmoid(w*x)\n"
        "l = -(y*log(p) + (1 - y)*log(1 - p))"
    )
    data = make_dataset(graph, samples=40, targets=False)
    assert {*data.inputs["y"].tolist()} == {0.0, 1.0}
    run = cgprimer.train(graph, data, loss="output", epochs=1)
    assert np.isfinite(run.loss)
