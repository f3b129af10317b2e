"""Datasets whose values are arrays: put together from columns, written back, made from graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgprimer
from cgprimer.errors import CgprimerError, DataError, ShapeError, UsageError
from cgprimer.training.data import Dataset
from tests.approval import refused

GRAPH = """
    input x[2,3], xa
    parameter W[3,2] = 0.5, k[2] = [1, -1]
    xo = x @ W + xa*k
    xp = sum(xo)
"""


def test_columns_of_elements_are_put_together_in_any_order() -> None:
    given = {"x[1,0]": [3], "x[0,1]": [2], "xa": [9.0], "x[0,0]": [1], "x[1,1]": [4]}
    data = Dataset.from_arrays(given, {"xo[0]": [5], "xo[1]": [6]})
    assert list(data.inputs) == ["x", "xa"]
    np.testing.assert_array_equal(data.inputs["x"], [[[1.0, 2.0], [3.0, 4.0]]])
    np.testing.assert_array_equal(data.targets["xo"], [[5.0, 6.0]])
    assert repr(data) == "<Dataset: 1 samples, inputs x[2,2], xa, targets xo[2]>"
    assert data.inputs["x"].flags.c_contiguous


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"x[0]": [1], "x[2]": [1]}, "'x[1]'"),
        ({"x[1]": [1]}, "'x[0]'"),
        ({"x[0,0]": [1], "x[1,1]": [1]}, "'x[0,1]'"),
        ({"x[999999999]": [1]}, "'x[0]'"),
        ({"x[999999999,999999999,999999999]": [1]}, "'x[0,0,0]'"),
        ({"x[0]": [1], "x[00]": [1]}, ""),
        ({"x": [[1]], "x[0]": [1]}, ""),
        ({"x[0]": [1], "x": [[1]]}, ""),
        ({"x[0]": [1], "x[0,1]": [1]}, ""),
        ({"x[0]": [[1, 2]]}, ""),
        ({"x[0]": [1], "x[1]": [1, 2]}, ""),
        ({"x": [[1], [1, 2]]}, ""),
        ({"x": [["a"]]}, ""),
        ({"x": [[1j]]}, ""),
        ({"x": np.array([[None]])}, ""),
    ],
)
def test_what_does_not_fit_together_is_refused(given: dict[str, Any], said: str) -> None:
    with refused(DataError, said):
        Dataset.from_arrays(given)


@settings(max_examples=25, deadline=None)
@given(
    shape=st.lists(st.integers(1, 3), min_size=0, max_size=3).map(tuple),
    samples=st.integers(1, 3),
    kind=st.sampled_from(["csv", "npz"]),
    named=st.booleans(),
)
def test_files_give_back_what_was_written(
    shape: tuple[int, ...], samples: int, kind: str, named: bool, tmp_path_factory: Any
) -> None:
    random = np.random.default_rng(0)
    inputs = {"x": random.normal(size=(samples, *shape)), "xa": random.normal(size=samples)}
    data = Dataset.from_arrays(inputs, {"xo": random.normal(size=(samples, *shape, 2))})
    path = tmp_path_factory.mktemp("d") / f"d.{kind}"
    data.save(path)
    roles: dict[str, Any] = {"inputs": ["xa", "x"], "targets": ["xo"]} if named else {}
    found = Dataset.load(path, **roles)
    assert found.columns.keys() == data.columns.keys()
    for name, column in data.columns.items():
        np.testing.assert_array_equal(found.columns[name], column)
        assert found.columns[name].shape == column.shape
    assert list(found.targets) == ["xo"]


def test_names_with_commas_stand_in_quotes(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("x[0,0],x[0,1],xw\n1,2,3\n")
    with refused(DataError, 'd.csv:1 ... "x[0'):
        Dataset.load(path)
    path.write_text('"x[0,0]", "x[0, 1]",note,xw\n1,2,first,3\n')
    np.testing.assert_array_equal(
        Dataset.load(path, inputs=["x"], targets=["xw"]).inputs["x"], [[[1.0, 2.0]]]
    )
    path.write_text("x[0],x[2],xw\n1,2,3\n")
    with refused(DataError, "d.csv:1 ... 'x[1]'"):
        Dataset.load(path)
    path.write_text("x[0],x[1],xw\n1,2,3\n1,no,3\n")
    with refused(DataError, "d.csv:3 ... 'no' ... 'x[1]'"):
        Dataset.load(path)
    with refused(DataError, "'y' ... xw"):
        Dataset.load(path, inputs=["y"])


def test_splitting_and_finding_what_is_not_finite() -> None:
    x = np.arange(24.0).reshape(4, 3, 2)
    data = Dataset.from_arrays({"x": x}, {"xw": np.arange(4.0)})
    train, others = data.split(0.25, seed=0)
    assert (train.inputs["x"].shape, others.inputs["x"].shape) == ((3, 3, 2), (1, 3, 2))
    for part in (train, others):
        np.testing.assert_array_equal(part.inputs["x"], x[part.targets["xw"].astype(int)])
    x[2, 1, 0] = np.inf
    with refused(DataError, "2 ... 'x[1,0]' ... inf"):
        Dataset.from_arrays({"x": x}).check_finite()


def test_data_are_made_from_graphs_with_arrays() -> None:
    graph = cgprimer.parse(GRAPH)
    data = cgprimer.make_dataset(graph, samples=5, seed=2, low={"x": 0, "xa": 2}, high=3)
    assert {n: c.shape for n, c in data.columns.items()} == {
        "x": (5, 2, 3), "xa": (5,), "xp": (5,),
    }  # fmt: skip
    assert 0 <= data.inputs["x"].min() < 2 <= data.inputs["xa"].min()
    np.testing.assert_array_equal(data.truth["W"], np.full((3, 2), 0.5))
    x, xa = data.inputs["x"], data.inputs["xa"]
    made = x @ np.full((3, 2), 0.5) + xa[:, None, None] * np.array([1.0, -1.0])
    np.testing.assert_allclose(data.targets["xp"], made.sum(axis=(1, 2)), rtol=1e-12)
    again = cgprimer.make_dataset(graph, samples=5, seed=2, low={"x": 0, "xa": 2}, high=3)
    np.testing.assert_array_equal(again.inputs["x"], data.inputs["x"])
    other = cgprimer.make_dataset(graph, samples=5, truth={"W": np.zeros((3, 2)), "k": 0.0})
    assert not other.targets["xp"].any()


def test_noise_is_drawn_for_each_element() -> None:
    graph = cgprimer.parse("input x[2]; parameter w[2] = 1; xo = w*x")
    data = cgprimer.make_dataset(graph, samples=4000, noise=0.5)
    noise = data.targets["xo"] - data.inputs["x"]
    assert noise.std(axis=0) == pytest.approx([0.5, 0.5], rel=0.05)
    assert abs(np.corrcoef(noise.T)[0, 1]) < 0.05


@pytest.mark.parametrize(
    ("text", "settings", "error", "said"),
    [
        ("", {"truth": {"w": [1, 2, 3]}}, ShapeError, "'w'"),
        ("", {"truth": {"w": np.ones((5, 2))}}, ShapeError, "w"),
        ("", {"truth": {"w": "a"}}, UsageError, "'w'"),
        ("", {"truth": {"w": [np.inf, 1]}}, UsageError, ""),
        ("; xq = log(x)", {"truth": {"w": 1}}, DataError, "'xq[ ... ]' ... nan ... x=["),
    ],
)
def test_what_data_cannot_be_made_of(
    text: str, settings: dict[str, Any], error: type[CgprimerError], said: str
) -> None:
    graph = cgprimer.parse(f"input x[2]; parameter w[2]; xo = w*x{text}")
    with refused(error, said):
        cgprimer.make_dataset(graph, samples=50, **settings)
