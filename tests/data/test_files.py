"""Datasets as files: they come back to the last bit, and what is wrong is placed."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cgprimer.errors import CgprimerError, DataError, UsageError
from cgprimer.training.data import Dataset
from tests.approval import approved, refused

finite = st.floats(allow_nan=False, allow_infinity=False)
pairs = st.lists(st.tuples(finite, finite), min_size=1, max_size=20)


def bits(column: np.ndarray) -> bytes:
    return column.tobytes()


@pytest.mark.parametrize("kind", ["csv", "npz", "parquet"])
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=pairs)
def test_round_trip_to_the_last_bit(
    kind: str, rows: list[tuple[float, float]], tmp_path: Path
) -> None:
    path = tmp_path / f"d.{kind}"
    data = Dataset.from_arrays({"xa": [r[0] for r in rows]}, {"xw": [r[1] for r in rows]})
    data.save(path)
    found = Dataset.load(path, inputs=["xa"], targets=["xw"])
    assert bits(found.inputs["xa"]) == bits(data.inputs["xa"])
    assert bits(found.targets["xw"]) == bits(data.targets["xw"])
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_awkward_numbers() -> None:
    values = [5e-324, 1.7976931348623157e308, -0.0, 0.1, 1 / 3, 1e22, 123456789.123456789]
    text = Dataset.from_arrays({"xa": values}).to_csv()
    assert [float(line) for line in text.splitlines()[1:]] == values


def test_default_roles(tmp_path: Path) -> None:
    data = Dataset.from_arrays({"xa": [1.0], "xb": [2.0]}, {"xv": [3.0], "xw": [4.0]})
    data.save(tmp_path / "d.npz")
    found = Dataset.load(tmp_path / "d.npz")
    assert (list(found.inputs), list(found.targets)) == (["xa", "xb"], ["xv", "xw"])
    data.save(tmp_path / "d.csv")
    found = Dataset.load(tmp_path / "d.csv")
    assert (list(found.inputs), list(found.targets)) == (["xa", "xb", "xv"], ["xw"])


def test_columns_that_are_not_asked_for_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("xq,xa,xw\n1,2,3\n4,5,6\n")
    found = Dataset.load(path, inputs=["xa"], targets=["xw"])
    assert found.inputs["xa"].tolist() == [2.0, 5.0]
    assert list(found.inputs) == ["xa"]
    only = Dataset.load(path, targets=["xq"])
    assert (list(only.inputs), only.targets["xq"].tolist()) == ([], [1.0, 4.0])


def test_files_of_other_makers(tmp_path: Path) -> None:
    np.savez(tmp_path / "plain.npz", xa=np.arange(3), xw=np.arange(3.0))
    found = Dataset.load(tmp_path / "plain.npz", inputs=["xa"], targets=["xw"])
    assert found.inputs["xa"].tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffxa,xw\n1,2\n3,4\n",
        "xa,xw\r\n1,2\r\n3,4\r\n",
        "xa,xw\n1,2\n3,4",
        "xa,xw\n1,2\n3,4\n\n\n",
        "xa,xw\r\n1,2\r\n3,4\r\n\r\n",
        " xa , xw \n 1 , 2 \n3,  4\n",
        "xa,xw\n1,2\n\n3,4\n",
        '"xa","xw"\n1,2\n3,4\n',
        "xa,xw\n+1,2e0\n3.,.4e1\n",
        "xa;xw\n1,0;2\n3;4,00\n",
        '\ufeff"xa";"xw";\r\n"1,0";2,0E0;\r\n3,;+4;\r\n',
        "x[0,1];note;xa;xw\n9;1.5;1.0;2\n9;a, b;3;4.\n",
        "xa;xw\r1,0;2\r3;4,0\r",
        "xa\tno; te\txw\n1.0\t0,5\t2\n3\t\t4\n",
    ],
    ids=[
        "bom", "crlf", "no-end", "blank-end", "crlf-blank", "spaces", "blank-inside", "quoted",
        "forms", "semicolons", "excel", "semicolons-and-points", "mac", "tabs",
    ],
)  # fmt: skip
def test_harmless_variants(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "d.csv"
    path.write_bytes(text.encode())
    for small in (1 << 17, 0):  # row by row, and by pyarrow
        monkeypatch.setattr("cgprimer.training.data.csv_files._SMALL", small)
        found = Dataset.load(path, inputs=["xa"], targets=["xw"])
        assert found.inputs["xa"].tolist() == [1.0, 3.0]
        assert found.targets["xw"].tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("xa,xw\n1,2\n3\n", 3, "1 ... 2"),
        ("xa,xw\n1,2\n3,4,5\n", 3, "3 ... 2"),
        ("xa,xw\n1,2,3\n4,5,6\n", 2, "3 ... 2"),
        ("xa,xw\n1,2\n3,four\n", 3, "'four' ... 'xw'"),
        ("xa,xw\n1,\n", 2, "'' ... 'xw'"),
        ("xa,xw\n1,2\n3,nan\n", 3, "nan ... 'xw'"),
        ("xa,xw\n1,2\ninf,4\n", 3, "inf ... 'xa'"),
        ("xa,xw\n1,2\n-Infinity,4\n", 3, "'xa'"),
        ("xa,xw\n1,2\n1e999,4\n", 3, "'xa'"),
        ("xa,xw\n1,2\n\n\n3,x\n", 5, "'x'"),
        ("xa,xw\r\n1,2\r\n3,x\r\n", 3, "'x'"),
        ("\ufeffxa,xw\n1,2\n3,x\n", 3, "'x'"),
        ("xa,xw\n1;2\n", 2, "1 fields"),
        ("xa,xw\n1,2\n# note\n", 3, "1 fields"),
        ("xa,xw\n0x10,2\n", 2, "'0x10'"),
        ("xa;xw\n1,5;2\n1.234;2\n", 3, "'xa'"),
        ("xa\txw\n1,234\t2\n", 2, "'xa'"),
        ("xa,xw\n1,5,2,5\n", 2, "2"),
        ("xa,xw\n1,NA\n", 2, "'xw'"),
        ("xa,xw\n−1,2\n", 2, "'-'"),
        ("xa,xw\n1_000,2\n", 2, "'1_000'"),
        ("xa,xw\n   \n1,x\n", 2, "1 fields"),
        ("xa,xa\n1,2\n", 1, "'xa'"),
        ("1,2\n3,4\n", 1, ""),
        ("", 1, ""),
        ("\n1,2\n", 1, ""),
    ],
)
def test_a_malformed_file_is_placed(text: str, line: int, said: str, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_bytes(text.encode())
    with pytest.raises(DataError) as caught:
        Dataset.load(path, inputs=["xa"], targets=["xw"])
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: "), message
    approved(message, said)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("text", ["xa,xw", "xa,xw\n", "xa,xw\n\n\n"])
def test_only_a_header(text: str, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text(text)
    with refused(DataError, "d.csv:1"):
        Dataset.load(path, inputs=["xa"], targets=["xw"])


@pytest.mark.parametrize("kind", ["csv", "npz"])
def test_a_missing_column_is_named_with_a_hint(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"d.{kind}"
    Dataset.from_arrays({"xab": [1.0]}, {"xw": [2.0]}).save(path)
    with pytest.raises(DataError) as caught:
        Dataset.load(path, inputs=["xa"], targets=["xw"])
    message = str(caught.value)
    approved(message, f"{path} ... 'xa' ... xab, xw ... 'xab'")


def test_numbered_columns_may_be_those_of_an_array(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("x1,x2,y\n1,2,3\n")
    with refused(DataError, "array ... --columns x[0]=x1,x[1]=x2"):
        Dataset.load(path, inputs=["x"], targets=["y"])


def test_not_text(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_bytes(b"xa,xw\n\xff,1\n")
    with refused(DataError, "UTF-8"):
        Dataset.load(path)


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 torn"])
def test_not_an_npz(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "d.npz"
    path.write_bytes(content)
    with refused(DataError, "d.npz"):
        Dataset.load(path)


def test_a_truncated_npz(tmp_path: Path) -> None:
    path = tmp_path / "d.npz"
    Dataset.from_arrays({"xa": np.arange(1000.0)}, {"xw": np.arange(1000.0)}).save(path)
    path.write_bytes(path.read_bytes()[:-200])
    with refused(DataError):
        Dataset.load(path)


def test_an_npz_with_objects_is_not_unpickled(tmp_path: Path) -> None:
    path = tmp_path / "d.npz"
    np.savez(path, xa=np.array([print], dtype=object))
    with refused(DataError):
        Dataset.load(path)


def test_a_single_npy_under_the_name_of_an_npz(tmp_path: Path) -> None:
    path = tmp_path / "d.npz"
    with path.open("wb") as file:
        np.save(file, np.arange(3.0))
    with pytest.raises(DataError, match=r"d.npz"):
        Dataset.load(path, inputs=["xa"])


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"xa": [1.0, np.nan], "xw": [1.0, 2.0]}, "1 ... 'xa' ... nan"),
        ({"xa": [1.0, 2.0], "xw": [np.inf, 2.0]}, "0 ... 'xw' ... inf"),
        ({"xa": [1.0], "xw": [1.0, 2.0]}, ""),
        ({"xa": [["1"]], "xw": [1.0]}, "'xa'"),
        ({"xa": 1.0, "xw": [1.0]}, "dimensions"),
    ],
)
def test_wrong_arrays_in_an_npz(arrays: dict, said: str, tmp_path: Path) -> None:
    path = tmp_path / "d.npz"
    np.savez(path, **{n: np.array(a) for n, a in arrays.items()})
    with refused(DataError, said) as caught:
        Dataset.load(path, inputs=["xa"], targets=["xw"])
    assert "d.npz" in str(caught.value)


def test_paths_that_cannot_be_used(tmp_path: Path) -> None:
    data = Dataset.from_arrays({"xa": [1.0]})
    with refused(UsageError, ".txt ... .csv ... .npz ... .parquet"):
        data.save(tmp_path / "d.txt")
    with refused(UsageError):
        Dataset.load(tmp_path / "d")
    with refused(UsageError):
        data.save(tmp_path / "nosuch" / "d.csv")
    for kind in ("csv", "npz"):
        with refused(UsageError):
            Dataset.load(tmp_path / f"nosuch.{kind}")
        (tmp_path / f"folder.{kind}").mkdir()
        with refused(UsageError):
            Dataset.load(tmp_path / f"folder.{kind}")
    assert not list(tmp_path.glob("*.txt"))


def test_endings_in_capitals(tmp_path: Path) -> None:
    Dataset.from_arrays({"xa": [1.0]}, {"xw": [2.0]}).save(tmp_path / "D.CSV")
    assert len(Dataset.load(tmp_path / "D.CSV")) == 1


@settings(max_examples=200, deadline=None)
@given(text=st.text(alphabet="xaw,\n1.e-+\"' nif;#\r", max_size=40))
def test_arbitrary_text_never_raises_anything_else(
    text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "arbitrary.csv"
    path.write_bytes(text.encode())
    try:
        data = Dataset.load(path)
    except DataError:
        return
    assert len(data) > 0
    assert all(np.isfinite(c).all() for c in {**data.inputs, **data.targets}.values())


def test_a_blank_after_a_comma_is_no_part_of_a_name(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text('"xa", "xw"\n1, 2\n3, 4\n')
    found = Dataset.load(path, inputs=["xa"], targets=["xw"])
    assert found.targets["xw"].tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    "field", ["mon", '"mon, tue"', '""', "nan", "", "1_000", ' "mon, tue"', '"mon\ntue"']
)
def test_a_column_that_nobody_asks_for_may_hold_anything(field: str, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text(f"xa,day,xw\n1,{field},2\n3,{field},4\n")
    found = Dataset.load(path, inputs=["xa"], targets=["xw"])
    assert (list(found.inputs), list(found.targets)) == (["xa"], ["xw"])
    assert found.columns["xa"].tolist() == [1.0, 3.0]
    assert found.columns["xw"].tolist() == [2.0, 4.0]
    path.write_text(f"xa,day,xw\n1,{field},2\n3,{field}\n")
    with refused(DataError, "2 ... 3"):
        Dataset.load(path, inputs=["xa"], targets=["xw"])


@pytest.mark.parametrize("kind", ["csv", "npz"])
def test_control_characters_of_a_header_are_not_shown_raw(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"d.{kind}"
    if kind == "csv":
        path.write_text("\x1b[31mred,xw\n1,2\n")
    else:
        np.savez(path, **{"\x1b[31mred": np.ones(2), "xw": np.ones(2)})
    for wanted in ((["xa"], ["xw"]), ([], [])):
        with pytest.raises(CgprimerError) as caught:
            Dataset.load(path, inputs=wanted[0], targets=wanted[1])
        assert "\x1b" not in str(caught.value)
        assert r"\x1b[31mred" in str(caught.value)
    assert len(Dataset.load(path, targets=["xw"])) > 0


@pytest.mark.parametrize("digits", [100_000, 200_000])
def test_a_field_may_be_long(digits: int, tmp_path: Path) -> None:
    """Python's reader of CSV stops at 131,072 letters, and no message is as long as a field."""
    path, field = tmp_path / "d.csv", "9" * digits
    path.write_text(f'"n, {field}",xa,xw\n"{field}", 1,2\n')
    assert Dataset.load(path, inputs=["xa"], targets=["xw"]).targets["xw"].tolist() == [2.0]
    path.write_text(f"xa,xw\n1,{field}x\n")
    with refused(DataError, "d.csv:2 ... 'xw'"):
        Dataset.load(path)
    path.write_text(f"xa,xw\n1,0.{field}\n")
    assert Dataset.load(path).targets["xw"].tolist() == [1.0]
    assert csv.field_size_limit() == 131_072


def test_a_small_file_is_read_without_pyarrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "d.csv"
    path.write_text('x, y,note\n1,2.5,"a, b"\n-1e-3, 4,c\n\n')
    large = Dataset.load(path, inputs=["x"], targets=["y"])
    monkeypatch.setattr("cgprimer.training.data.csv_files._SMALL", 1 << 17)
    monkeypatch.setattr("cgprimer.training.data.csv_files._read_with_pyarrow", None)
    small = Dataset.load(path, inputs=["x"], targets=["y"])
    assert [bits(c) for c in small.columns.values()] == [bits(c) for c in large.columns.values()]
    assert small.inputs["x"].tolist() == [1.0, -0.001]
