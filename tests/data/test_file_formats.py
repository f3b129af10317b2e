"""NPZ, NPY, Parquet and data frames: exact round trips, and refusals of hostile files."""

from __future__ import annotations

import decimal
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import cgprimer
from cgprimer.errors import CgprimerError, DataError, UsageError
from cgprimer.training.data import Blocks, Dataset, numpy_files
from tests.approval import refused
from tests.data.conftest import ROLES

LINE = cgprimer.parse("xw = k*xa + b")
FINITE = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("kind", ["csv", "npz", "parquet"])
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    shape=st.lists(st.integers(1, 3), max_size=2).map(tuple),
    values=st.lists(FINITE, min_size=1, max_size=5),
    named=st.booleans(),
)
def test_files_contain_equal_bits(
    kind: str, shape: tuple[int, ...], values: list[float], named: bool, tmp_path: Path
) -> None:
    samples = len(values)
    x = np.resize(np.array([*values, -0.0, 5e-324, 1.7976931348623157e308]), (samples, *shape))
    data = Dataset.from_arrays({"x": x, "xa": values}, {"xo": np.resize(x, (samples, *shape, 2))})
    path = tmp_path / f"d.{kind.upper()}"
    data.save(path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    roles: dict[str, Any] = {"inputs": ["xa", "x"], "targets": ["xo"]} if named else {}
    result = Dataset.load(path, **roles)
    assert result.columns.keys() == data.columns.keys()
    assert list(result.targets) == ["xo"]
    for name, column in data.columns.items():
        assert result.columns[name].shape == column.shape
        assert result.columns[name].tobytes() == column.tobytes()
    path.unlink()


# --- NPZ and NPY ---------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 torn"])
@pytest.mark.parametrize("kind", ["npz", "npy", "parquet"])
def test_foreign_and_truncated_files_are_refused(kind: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"d.{kind}"
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"d\.{kind}"):
        Dataset.load(path)
    if kind == "npy":
        np.save(path, np.zeros(1000, [("xa", float), ("xw", float)]))
    else:
        Dataset.from_arrays({"xa": np.arange(5000.0)}, {"xw": np.arange(5000.0)}).save(path)
    whole = path.read_bytes()
    for damaged in (whole[:-300], whole[:100] + bytes(20_000) + whole[20_100:]):
        path.write_bytes(damaged)
        with pytest.raises(CgprimerError, match=rf"d\.{kind}"):
            Dataset.load(path)


@pytest.mark.parametrize(
    ("kind", "columns", "values"),
    [
        ("npz", {"xa": [1.0, np.nan], "xw": [1.0, 2.0]}, "1 ... 'xa' ... nan"),
        ("npz", {"xa": [1.0, 2.0], "xw": [np.inf, 2.0]}, "0 ... 'xw' ... inf"),
        ("npz", {"xa": [1.0], "xw": [1.0, 2.0]}, ""),
        ("npz", {"xa": [["1"]], "xw": [1.0]}, "'xa'"),
        ("npz", {"xa": 1.0, "xw": [1.0]}, "dimensions"),
        ("npz", {"xa": np.array([print]), "xw": [1.0]}, ""),  # never unpickled
        ("npz", {"xb": [1.0], "xw": [1.0]}, "'xa' ... xb, xw"),
        ("npz", {"inputs/xb": [1.0], "targets/xw": [1.0]}, "'xa' ... are xb, xw"),
        ("npz", {"xa": np.zeros((10**17, 0)), "xw": np.zeros((10**17, 0))}, ""),  # without data
        ("parquet", {"xa": ["a", "b"], "xw": [1.0, 2.0]}, "'xa' ... string"),
        ("parquet", {"xa": [1.0, None], "xw": [1.0, 2.0]}, "1 ... 'xa'"),
        ("parquet", {"xa": [1.0, np.inf], "xw": [1.0, 2.0]}, "1 ... 'xa' ... inf"),
        ("parquet", {"xa": [[1.0], [2.0, 3.0]], "xw": [1.0, 2.0]}, "'xa'"),
    ],
)
def test_invalid_columns_are_refused(
    kind: str, columns: dict[str, Any], values: str, tmp_path: Path
) -> None:
    path = tmp_path / f"d.{kind}"
    if kind == "npz":
        np.savez(path, **{name: np.array(array) for name, array in columns.items()})
    else:
        parquet.write_table(pyarrow.table(columns), path)
    with refused(DataError, values) as caught:
        Dataset.load(path, **ROLES)
    assert path.name in str(caught.value)
    if isinstance(columns.get("xw"), list) and np.isfinite(columns["xw"]).all():
        # Columns that are not read may be anything.
        assert Dataset.load(path, targets=["xw"]).targets["xw"].tolist() == columns["xw"]


def test_only_requested_arrays_are_read_and_bombs_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "d.npz"
    np.savez_compressed(path, xa=np.arange(3.0), xw=np.arange(3), notes=np.zeros(200_000))
    monkeypatch.setattr(numpy_files, "_LARGE", 1_600_000)
    assert len(Dataset.load(path, inputs=["notes"])) == 200_000
    monkeypatch.setattr(numpy_files, "_LARGE", 1_599_999)
    assert Dataset.load(path, **ROLES).targets["xw"].tolist() == [0.0, 1.0, 2.0]
    with refused(DataError, "1,600,000"):
        Dataset.load(path, inputs=["notes"])


def test_lying_headers_are_refused(tmp_path: Path) -> None:
    npz, npy, table = tmp_path / "d.npz", tmp_path / "d.npy", tmp_path / "d.parquet"
    array = io.BytesIO()
    np.save(array, np.arange(3.0))
    with zipfile.ZipFile(npz, "w") as archive:
        archive.writestr("xa.npy", array.getvalue().replace(b"(3,)", b"(9,)"))
    np.save(npy, np.zeros(3, [("xa", "f8"), ("xw", "f8")]))
    npy.write_bytes(npy.read_bytes().replace(b"}", b"("))  # numpy raises a TokenError
    parquet.write_table(pyarrow.table({"xw_xw_xw": [1.0]}), table)
    table.write_bytes(table.read_bytes().replace(b"xw_xw_xw", b"xw_\xa5w_xw"))
    for path in (npz, npy, table):
        with refused(DataError):
            Dataset.load(path)


def test_arrays_of_any_order_and_records_are_read(tmp_path: Path) -> None:
    x = np.asfortranarray(np.arange(12.0).reshape(4, 3))
    np.savez(tmp_path / "d.npz", x=x, y=np.arange(4, dtype=">i2"))
    blocks = Blocks.load(tmp_path / "d.npz", inputs=["x"], targets=["y"])
    np.testing.assert_array_equal(blocks.block(0).inputs["x"], x)
    assert blocks.block(0).targets["y"].tolist() == [0.0, 1.0, 2.0, 3.0]
    records = np.array([(1.0, 2), (3.0, 4)], dtype=[("xa", float), ("xw", int)])
    np.save(tmp_path / "d.npy", records)
    data = Dataset.load(tmp_path / "d.npy", **ROLES)
    assert data.targets["xw"].tolist() == [2.0, 4.0]
    with refused(UsageError, "npy"):
        data.save(tmp_path / "d.npy")
    np.save(tmp_path / "d.npy", np.ones((3, 2)))
    with refused(DataError):
        Dataset.load(tmp_path / "d.npy")


def test_unusable_paths_are_refused(tmp_path: Path) -> None:
    data = Dataset.from_arrays({"xa": [1.0]}, {"xa": [3.0]})
    with refused(UsageError, ".txt ... .csv ... .npz ... .parquet"):
        data.save(tmp_path / "d.txt")
    (tmp_path / "d.csv.gz").touch()
    for name in ("d", "none.csv", "none.npz", "d.csv.gz", "."):
        with refused(UsageError):
            Dataset.load(tmp_path / name)
    with refused(UsageError):
        data.save(tmp_path / "none" / "d.npz")
    data.save(tmp_path / "d.npz")  # one name for an input and a target
    for roles in ({}, {"inputs": ["xa"], "targets": ["xa"]}):
        result = Dataset.load(tmp_path / "d.npz", **roles)  # type: ignore[arg-type]
        assert (result.inputs["xa"].tolist(), result.targets["xa"].tolist()) == ([1.0], [3.0])
    for kind in ("csv", "parquet"):
        with refused(DataError, "'xa'"):
            data.save(tmp_path / f"d.{kind}")


# --- Parquet and data frames ---------------------------------------------------------------------


def test_numbers_of_many_types_are_converted(tmp_path: Path) -> None:
    table = pyarrow.table({
        "a": pyarrow.array([1, 2], pyarrow.int8()),
        "b": pyarrow.array([decimal.Decimal("0.5"), decimal.Decimal("1.5")]),
        "c": pyarrow.array([7.0, 7.0]).dictionary_encode(),
        "d.e": pyarrow.array([2**60, 1]),
        "x": pyarrow.FixedSizeListArray.from_arrays([1.0, 2.0, 3.0, 4.0], 2),
        "ok": [True, False],
    })  # fmt: skip
    parquet.write_table(table, tmp_path / "d.parquet")
    result = Dataset.load(tmp_path / "d.parquet")
    assert {n: c.tolist() for n, c in result.columns.items()} == {
        "a": [1.0, 2.0], "b": [0.5, 1.5], "c": [7.0, 7.0], "d.e": [2.0**60, 1.0],
        "x": [[1.0, 2.0], [3.0, 4.0]], "ok": [1.0, 0.0],
    }  # fmt: skip


@pytest.mark.parametrize("library", ["pyarrow", "pandas", "polars"])
def test_data_frames_are_read_by_column_names(library: str) -> None:
    columns = {"height": [1.0, 2.0], "day": ["mon", "tue"], "n": [3, 4]}
    module = pytest.importorskip(library)
    frame = pyarrow.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    data = Dataset.from_frame(frame, inputs=["height"], targets=["n"])
    assert (data.inputs["height"].tolist(), data.targets["n"].tolist()) == ([1.0, 2.0], [3.0, 4.0])
    data = Dataset.from_frame(frame, LINE, columns={"xa": "height", "xw": "n"})
    assert (data.inputs["xa"].tolist(), data.targets["xw"].tolist()) == ([1, 2], [3, 4])
    data.inputs["xa"][0] = 9.0  # a separate array
    with refused(DataError, "'day' ... string"):
        Dataset.from_frame(frame, inputs=["day"])
    with refused(DataError, "'hight' ... 'height'"):
        Dataset.from_frame(frame, LINE, columns={"xa": "hight", "xw": "n"})
    made = cgprimer.make_dataset(LINE, truth={"k": 2, "b": 1}, samples=50)
    frame = {"pyarrow": made.to_arrow, "pandas": made.to_pandas, "polars": made.to_polars}[
        library
    ]()
    run = cgprimer.train(LINE, frame, epochs=1)
    assert run.parameters == cgprimer.train(LINE, made, epochs=1).parameters
    np.testing.assert_array_equal(run.predict(frame)["xw"], run.predict(made)["xw"])


def test_columns_can_be_renamed() -> None:
    table = pyarrow.table({"a": [1.0], "b": [2.0], "p[0]": [3.0], "p[1]": [4.0], "y": [9.0]})
    for columns, x, y in (
        ({"x[0]": "b", "x[1]": "a", "y": "a"}, [2.0, 1.0], 1.0),
        ({"x": "p"}, [3.0, 4.0], 9.0),
    ):
        data = Dataset.load(table, columns=columns, inputs=["x"], targets=["y"])  # type: ignore[arg-type]
        assert (data.inputs["x"].tolist(), data.targets["y"].tolist()) == ([x], [y])
    with refused(UsageError, "'z'"):
        Dataset.load(table, columns={"z": "a"}, inputs=["x"], targets=["y"])  # type: ignore[arg-type]
    with refused(DataError, "'xw' ... xa"):
        cgprimer.train(LINE, pyarrow.table({"xa": [1.0], "label": [2.0]}))
