"""CSV files: harmless variants are read, and errors are located by line and column."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgprimer.errors import DataError
from cgprimer.training.data import Blocks, Dataset, csv_files
from tests.approval import refused
from tests.data.conftest import ROLES

SMALL = "cgprimer.training.data.csv_files._SMALL"


VARIANTS = {
    "byte order mark": "\ufeffxa,xw\n1,2\n3,4\n",
    "carriage returns": "xa,xw\r\n1,2\r\n3,4\r\n\r\n",
    "no line break at the end": "xa,xw\n1,2\n3,4",
    "blank lines": "xa,xw\n1,2\n\n3,4\n\n",
    "spaces": ' xa , "xw" \n 1 , 2 \n3,  4\n',
    "signs and exponents": "xa,xw\n+1,2e0\n3.,.4e1\n",
    "semicolons": "xa;xw\n1,0;2\n3;4,00\n",
    "excel": '\ufeff"xa";"xw";\r\n"1,0";2,0E0;\r\n3,;+4;\r\n',
    "semicolons and points": "x[0,1];note;xa;xw\n9;1.5;1.0;2\n9;a, b;3;4.\n",
    "old mac": "xa;xw\r1,0;2\r3;4,0\r",
    "tabs": "xa\tno; te\txw\n1.0\t0,5\t2\n3\t\t4\n",
    "quotes": 'xa,note,xw\n1,"mon, tue",2\n3, "d\n",4\n',
    "inches": 'xa,note,xw\n1,5" pipe,2\n3,,4\n',
    "equal names": "xa,note,note,xw\n1,nan,1_000,2\n3,3,4,4\n",
    "other text": "xa,note,xw\n1,\xff,2\n3,\x1b[31m,4\n",
    "long fields": f'"n, {"9" * 150_000}",xa,xw\n"{"9" * 150_000}", 1,2\n0,3,4\n',
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_of_csv_are_read(
    variant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole by pyarrow, row by row, and in small blocks; other columns may hold anything."""
    path, text = tmp_path / "d.csv", VARIANTS[variant]
    path.write_bytes(text.encode("utf-8" if "\ufeff" in text else "latin-1"))
    for small, block in ((1 << 20, 1 << 24), (0, 1 << 24), (0, 20)):
        monkeypatch.setattr(SMALL, small)
        monkeypatch.setattr(csv_files, "_BLOCK", block)
        data = Dataset.load(path, **ROLES)
        assert (list(data.inputs), list(data.targets)) == (["xa"], ["xw"])
        assert data.inputs["xa"].tolist() == [1.0, 3.0]
        assert data.targets["xw"].tolist() == [2.0, 4.0]
        assert Blocks.load(path, **ROLES).where([1]).inputs["xa"].tolist() == [3.0]
    assert csv.field_size_limit() == 131_072


@pytest.mark.parametrize(
    ("text", "line", "values"),
    [
        ("xa,xw\n1,2\n3\n", 3, "1 ... 2"),
        ("xa,xw\n1,2\n3,4,5\n", 3, "3 ... 2"),
        ("xa,xw\n1,2\n3,four\n", 3, "'four' ... 'xw'"),
        ("xa,xw\n1,\n", 2, "'' ... 'xw'"),
        ("xa,xw\n1,2\n3,nan\n", 3, "nan ... 'xw'"),
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
        ("xa,xw\n1,NA\n", 2, "'xw'"),
        ("xa,xw\n−1,2\n", 2, "'-'"),
        ("xa,xw\n1_000,2\n", 2, "'1_000'"),
        ("xa,xa\n1,2\n", 1, "'xa'"),
        ("1,2\n3,4\n", 1, ""),
        ("", 1, ""),
        ("xa,xw\n\n\n", 1, ""),
        ('xa,note,xw\n1,"a\nb, c",2\n3, "d\n",4\nx,y,5\n', 6, "'x' ... 'xa'"),
        ("xa,note,xw\n1,a,2\n\x1b[31m,b,2\n", 3, r"'\x1b[31m' ... 'xa'"),
        ('xa,note,xw\n1,"open,2\n3,,4\n', 3, "2 ... 3"),
        (f"xa,xw\n1,{'9' * 150_000}x\n", 2, "'xw'"),
        ("x[0,0],xw\n1,2\n", 1, '"x[0'),
        (b"xa,xw\n\xff,1\n", 2, "UTF-8"),
        (b"\xffxa,xw\n1,2\n", 0, "UTF-8"),
        (gzip.compress(b"xa,xw\n1,2\n", mtime=0), 0, "d.csv"),
        (b"xab,xw\n1,2\n", 1, "'xa' ... xab, xw ... 'xab'"),
        (b"\x1b[31mred,xw\n1,2\n", 1, r"\x1b[31mred"),
    ],
)
def test_errors_are_located(
    text: str | bytes, line: int, values: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "d.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    for block in (1 << 24, 20):
        monkeypatch.setattr(csv_files, "_BLOCK", block)
        with refused(DataError, values) as caught:
            Dataset.load(path, **ROLES)
        message = str(caught.value)
        assert message.startswith(f"{path}:{line}" if line else f"{path} is "), message
        assert "\x1b" not in message
        assert len(message) < 500 + len(str(path))
        assert caught.value.exit_code == 2


@settings(max_examples=60, deadline=None)
@given(text=st.text(alphabet="xaw,\n1.e-+\"' nif;#\r", max_size=40))
def test_arbitrary_text_is_read_or_refused(
    text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "arbitrary.csv"
    path.write_bytes(text.encode())
    try:
        data = Dataset.load(path)
    except DataError:
        return
    assert len(data) > 0
    assert all(np.isfinite(column).all() for column in data.columns.values())


def test_lines_are_counted_over_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_files, "_BLOCK", 50)
    path = tmp_path / "d.csv"
    rows = [f'{k},"note\n{k}",{k / 7!r}' for k in range(200)]
    path.write_text("\n".join(["xa,note,xw", *rows]) + "\n")
    blocks = Blocks.load(path, **ROLES)
    assert len(blocks.lengths) > 50
    assert blocks.where(np.array([150])).targets["xw"].tolist() == [150 / 7]
    rows[150] = 'z,"note\n150",1'
    path.write_text("\n".join(["xa,note,xw", *rows]) + "\n")
    with refused(DataError, "d.csv:303 ... 'z' ... 'xa'"):
        Dataset.load(path, **ROLES)


@pytest.mark.parametrize(
    "text", ['"xa,xw\n' + "1,2\n" * 200_000, "[" * 200_000, "a;b\n" + "\n" * 130_000]
)
def test_the_time_for_an_endless_header_grows_linearly(text: str, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text(text)
    with pytest.raises(DataError) as caught:  # quadratic work would take minutes
        Dataset.load(path, inputs=["xa"])
    assert len(str(caught.value)) < 500


def test_small_files_are_read_without_pyarrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "d.csv"
    path.write_text("xa,xw\n1,2.5\n-1e-3, 4\n")
    monkeypatch.setattr(SMALL, 1 << 17)
    monkeypatch.setattr(csv_files, "_read_with_pyarrow", None)
    assert Dataset.load(path, **ROLES).inputs["xa"].tolist() == [1.0, -0.001]


def test_the_last_column_is_the_target_and_a_hint_explains_arrays(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("x1,x2,y\n1,2,3\n")
    data = Dataset.load(path)
    assert (list(data.inputs), list(data.targets)) == (["x1", "x2"], ["y"])
    only = Dataset.load(path, targets=["x1"])
    assert (list(only.inputs), only.targets["x1"].tolist()) == ([], [1.0])
    with refused(DataError, "array ... --columns x[0]=x1,x[1]=x2"):
        Dataset.load(path, inputs=["x"], targets=["y"])
    path.write_text('"x[0,0]", "x[0, 1]",note,xw\n1,2,first,3\n')
    data = Dataset.load(path, inputs=["x"], targets=["xw"])
    np.testing.assert_array_equal(data.inputs["x"], [[[1.0, 2.0]]])
