"""CSV files: harmless variants are read, and errors are located by line and column."""

from __future__ import annotations

import ast
import csv
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


HERE = Path(__file__).parent
VARIANTS = {
    name: ast.literal_eval(content)
    for line in (HERE / "csv_variants.txt").read_text().splitlines()
    for name, content in [line.split(" | ")]
}
VARIANTS["long fields"] = b'"n, %b",xa,xw\n"%b", 1,2\n0,3,4\n' % ((b"9" * 150_000,) * 2)
ERRORS = [*map(ast.literal_eval, (HERE / "csv_errors.txt").read_text().splitlines())]
ERRORS.append(b"xa,xw\n1,%bx\n" % (b"9" * 150_000))


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_of_csv_are_read(
    variant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole by pyarrow, row by row, and in small blocks; other columns may hold anything."""
    path = tmp_path / "d.csv"
    path.write_bytes(VARIANTS[variant])
    for small, block in ((1 << 20, 1 << 24), (0, 1 << 24), (0, 20)):
        monkeypatch.setattr(SMALL, small)
        monkeypatch.setattr(csv_files, "_BLOCK", block)
        data = Dataset.load(path, **ROLES)
        assert (list(data.inputs), list(data.targets)) == (["xa"], ["xw"])
        assert data.inputs["xa"].tolist() == [1.0, 3.0]
        assert data.targets["xw"].tolist() == [2.0, 4.0]
        assert Blocks.load(path, **ROLES).where([1]).inputs["xa"].tolist() == [3.0]
    assert csv.field_size_limit() == 131_072


@pytest.mark.parametrize("content", ERRORS, ids=lambda content: ascii(content[:60]))
def test_errors_are_located(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "d.csv"
    path.write_bytes(content)
    for block in (1 << 24, 20):  # in one block, and in several
        monkeypatch.setattr(csv_files, "_BLOCK", block)
        with refused(DataError) as caught:
            Dataset.load(path, **ROLES)
        message = str(caught.value)
        assert message.startswith(str(path))
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
