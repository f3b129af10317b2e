"""Parquet, data frames, other names of columns, and what is hostile in files."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

import cgprimer
from cgprimer.errors import CgprimerError, DataError, UsageError
from cgprimer.training.data import Blocks, Dataset, csv_files
from tests.approval import refused

GRAPH = cgprimer.parse("y = k*x; input x[2]; parameter k[2]; output y", name="g")
LINE = cgprimer.parse("xw = k*xa + b")
TABLE = {"height": [1.0, 2.0], "day": ["mon", "tue"], "n": [3, 4], "ok": [True, False]}


def frames() -> list[Any]:
    made: list[Any] = [pyarrow.table(TABLE)]
    for name in ("pandas", "polars"):
        made.append(pytest.importorskip(name).DataFrame(TABLE))
    return made


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_frames_by_names_of_columns(kind: int) -> None:
    frame = frames()[kind]
    found = Dataset.from_frame(frame, inputs=["height", "n"], targets=["ok"])
    assert {n: c.tolist() for n, c in found.columns.items()} == {
        "height": [1.0, 2.0], "n": [3.0, 4.0], "ok": [1.0, 0.0],
    }  # fmt: skip
    assert list(found.targets) == ["ok"]
    found = Dataset.from_frame(frame, LINE, columns={"xa": "height", "xw": "n"})
    assert (found.inputs["xa"].tolist(), found.targets["xw"].tolist()) == ([1, 2], [3, 4])
    found.inputs["xa"][0] = 9.0  # an array of its own
    with refused(DataError, "'day' ... string"):
        Dataset.from_frame(frame, inputs=["day"])
    with refused(DataError, "'hight' ... 'height'"):
        Dataset.from_frame(frame, LINE, columns={"xa": "hight", "xw": "n"})


def test_training_takes_a_frame_and_a_dataset_becomes_one() -> None:
    data = cgprimer.make_dataset(LINE, truth={"k": 2, "b": 1}, samples=300)
    for frame in (data.to_arrow(), data.to_pandas(), data.to_polars()):
        run = cgprimer.train(LINE, frame, epochs=3)
        assert run.parameters == cgprimer.train(LINE, data, epochs=3).parameters
        np.testing.assert_array_equal(run.predict(frame)["xw"], run.predict(data)["xw"])
    loss = cgprimer.loss_and_gradient(LINE, data.to_polars())
    assert loss({"k": 2.0, "b": 1.0})[0] == 0.0


def test_elements_of_arrays_have_other_names_too(tmp_path: Path) -> None:
    table = pyarrow.table({"a": [1.0], "b": [2.0], "p[0]": [3.0], "p[1]": [4.0], "y": [9.0]})
    given = {"inputs": ["x"], "targets": ["y"]}
    found = Dataset.load(table, columns={"x[0]": "b", "x[1]": "a", "y": "a"}, **given)  # type: ignore[arg-type]
    assert (found.inputs["x"].tolist(), found.targets["y"].tolist()) == ([[2.0, 1.0]], [1.0])
    found = Dataset.load(table, columns={"x": "p"}, **given)  # type: ignore[arg-type]
    assert (found.inputs["x"].tolist(), found.targets["y"].tolist()) == ([[3.0, 4.0]], [9.0])
    with refused(UsageError, "'z'"):
        Dataset.load(table, columns={"z": "a"}, **given)  # type: ignore[arg-type]
    whole = Dataset.from_frame(
        pyarrow.table({"x": pyarrow.FixedSizeListArray.from_arrays([1.0, 2.0, 3.0, 4.0], 2)}),
        inputs=["x"],
    )
    assert whole.inputs["x"].tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (["a", "b"], ""),
        ([1.0, None], "1 ... 'xa'"),
        ([1.0, float("inf")], "1 ... 'xa' ... inf"),
        ([[1.0], [2.0, 3.0]], ""),
    ],
)
def test_columns_of_parquet_that_are_no_numbers(column: Any, said: str, tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    parquet.write_table(pyarrow.table({"xa": column, "xw": [1.0, 2.0]}), path)
    with refused(DataError, said) as caught:
        Dataset.load(path, inputs=["xa"], targets=["xw"])
    assert "d.parquet" in str(caught.value)
    assert Dataset.load(path, targets=["xw"]).targets["xw"].tolist() == [1.0, 2.0]


def test_integers_decimals_and_dictionaries_are_numbers(tmp_path: Path) -> None:
    import decimal

    table = pyarrow.table({
        "a": pyarrow.array([1, 2], pyarrow.int8()),
        "b": pyarrow.array([decimal.Decimal("0.5"), decimal.Decimal("1.5")]),
        "c": pyarrow.array([7.0, 7.0]).dictionary_encode(),
        "d.e": pyarrow.array([2**60, 1]),
    })  # fmt: skip
    parquet.write_table(table, tmp_path / "d.parquet")
    found = Dataset.load(tmp_path / "d.parquet")
    assert {n: c.tolist() for n, c in found.columns.items()} == {
        "a": [1.0, 2.0], "b": [0.5, 1.5], "c": [7.0, 7.0], "d.e": [2.0**60, 1.0],
    }  # fmt: skip


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1 torn PAR1", b"xa,xw\n1,2\n"])
def test_what_is_no_parquet(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    path.write_bytes(content)
    with refused(DataError, "d.parquet"):
        Dataset.load(path)
    Dataset.from_arrays({"xa": np.arange(5000.0)}, {"xw": np.arange(5000.0)}).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-300])
    with pytest.raises(DataError, match=r"d.parquet"):
        Dataset.load(path)
    path.write_bytes(whole[:100] + bytes(20_000) + whole[20_100:])
    with pytest.raises(CgprimerError, match=r"d.parquet"):
        Dataset.load(path)
    with refused(UsageError):
        Dataset.load(tmp_path / "nosuch.parquet")
    (tmp_path / "folder.parquet").mkdir()
    with refused(UsageError):
        Dataset.load(tmp_path / "folder.parquet")


def test_one_name_for_an_input_and_a_target(tmp_path: Path) -> None:
    data = Dataset.from_arrays({"xa": [1.0, 2.0]}, {"xa": [3.0, 4.0]})
    data.save(tmp_path / "d.npz")
    for roles in ({}, {"inputs": ["xa"], "targets": ["xa"]}):
        found = Dataset.load(tmp_path / "d.npz", **roles)  # type: ignore[arg-type]
        assert found.inputs["xa"].tolist() == [1.0, 2.0]
        assert found.targets["xa"].tolist() == [3.0, 4.0]
    for kind in ("csv", "parquet"):
        with refused(DataError, "'xa'"):
            data.save(tmp_path / f"d.{kind}")


def bomb(path: Path, name: str, count: int) -> None:
    """An array of zeros in an NPZ file, of which little is left in the file."""
    header = io.BytesIO()
    about = {"descr": "<f8", "fortran_order": False, "shape": (count,)}
    np.lib.format.write_array_header_1_0(header, about)
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open(f"{name}.npy", "w", force_zip64=True) as member,
    ):
        member.write(header.getvalue())
        for _ in range(count // 1_000_000):
            member.write(bytes(8_000_000))


def test_only_the_arrays_asked_for_are_read_and_no_bomb_unpacks(tmp_path: Path) -> None:
    path = tmp_path / "d.npz"
    np.savez(path, xa=np.arange(3.0), xw=np.arange(3))
    bomb(path, "notes", 40_000_000)
    found = Dataset.load(path, inputs=["xa"], targets=["xw"])
    assert found.targets["xw"].tolist() == [0.0, 1.0, 2.0]
    with refused(DataError, "320,000,000"):
        Dataset.load(path, inputs=["notes"])
    with path.open("ab") as file:  # behind the archive: it may still be read
        file.write(b"!")
    np.savez(path, xa=np.array([None]), xw=np.arange(3.0))
    assert len(Dataset.load(path, inputs=["xw"])) == 3  # what nobody asks for may be anything
    with refused(DataError):
        Dataset.load(path, inputs=["xa"])


def test_a_header_that_lies(tmp_path: Path) -> None:
    path = tmp_path / "d.npz"
    good = io.BytesIO()
    np.save(good, np.arange(3.0))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xa.npy", good.getvalue().replace(b"(3,)", b"(9,)"))
    with refused(DataError):
        Dataset.load(path, inputs=["xa"])


def test_arrays_are_mapped_in_any_order_of_their_numbers(tmp_path: Path) -> None:
    x = np.asfortranarray(np.arange(12.0).reshape(4, 3))
    np.savez(tmp_path / "d.npz", x=x, y=np.arange(4, dtype=">i2"))
    parts = Blocks.load(tmp_path / "d.npz", inputs=["x"], targets=["y"])
    np.testing.assert_array_equal(parts.block(0).inputs["x"], x)
    assert parts.block(0).targets["y"].tolist() == [0.0, 1.0, 2.0, 3.0]
    records = np.array([(1.0, 2), (3.0, 4)], dtype=[("xa", float), ("xw", int)])
    np.save(tmp_path / "d.npy", records)
    found = Dataset.load(tmp_path / "d.npy", inputs=["xa"], targets=["xw"])
    assert found.targets["xw"].tolist() == [2.0, 4.0]
    np.save(tmp_path / "d.npy", np.ones((3, 2)))
    with refused(DataError):
        Dataset.load(tmp_path / "d.npy")
    with refused(UsageError, "npy"):
        found.save(tmp_path / "d.npy")


def test_compressed_files_are_said_to_be(tmp_path: Path) -> None:
    packed = gzip.compress(b"xa,xw\n1,2\n")
    (tmp_path / "d.csv").write_bytes(packed)
    with refused(DataError, "d.csv"):
        Dataset.load(tmp_path / "d.csv")
    (tmp_path / "d.csv.gz").write_bytes(packed)
    with refused(UsageError, "gz'"):
        Dataset.load(tmp_path / "d.csv.gz")


ODD = [
    ("xa,note,xw\n1,\xff,2\n", None),
    ("xa,note,xw\n\xff,a,2\n", ":2: ... 'xa' ... UTF-8"),
    ("\xffxa,xw\n1,2\n", "UTF-8"),
    ('xa,note,xw\n1,"a\nb, c",2\n3, "d\n",4\nx,y,5\n', ":6: 'x' ... 'xa'"),
    ('xa,note,xw\n1,5" pipe,2\n3,,4\n', None),
    ('xa,note,xw\n1,"open,2\n3,,4\n', ""),
    ("xa,note,xw\n1,\x1b[31m,2\n\x1b[31m,b,2\n", r":3: '\x1b[31m' ... 'xa'"),
    ('xa, "note", xw\n1, "a, b", "2"\n', None),
    ("xa,xa,note,note,xw\n1,2,3,4,5\n", "'xa'"),
    ("xa,note,note,xw\n1,3,4,2\n", None),
    ("xa,note,xw\r1,a,2\r3,b,4\r", None),
]


@pytest.mark.parametrize("block", [1 << 24, 20])
@pytest.mark.parametrize(("text", "said"), ODD, ids=range(len(ODD)))
def test_odd_texts(
    text: str, said: str | None, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_files, "_BLOCK", block)
    path = tmp_path / "d.csv"
    path.write_bytes(text.encode("latin-1"))
    roles: dict[str, Any] = {"inputs": ["xa"], "targets": ["xw"]}
    for load in (Dataset.load, Blocks.load):
        if said is None:
            found = load(path, **roles).block(0)
            assert (found.inputs["xa"][0], found.targets["xw"][0]) == (1.0, 2.0)
        else:
            with refused(DataError, said) as caught:
                load(path, **roles)
            assert "\x1b" not in str(caught.value)


def test_lines_are_counted_over_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_files, "_BLOCK", 50)
    path = tmp_path / "d.csv"
    rows = [f'{k},"note\n{k}",{k / 7!r}' for k in range(200)]
    path.write_text("\n".join(["xa,note,xw", *rows]) + "\n")
    roles: dict[str, Any] = {"inputs": ["xa"], "targets": ["xw"]}
    parts = Blocks.load(path, **roles)
    assert len(parts.lengths) > 50
    assert parts.where(np.array([150])).targets["xw"].tolist() == [150 / 7]
    rows[150] = 'z,"note\n150",1'
    path.write_text("\n".join(["xa,note,xw", *rows]) + "\n")
    with refused(DataError, "d.csv:303 ... 'z' ... 'xa'"):
        Dataset.load(path, **roles)


def test_a_target_that_no_output_matches(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("xa,label\n1,2\n")
    with refused(DataError, "'xw' ... xa"):
        cgprimer.train(LINE, path)
    assert cgprimer.train(LINE, Dataset.from_frame(
        pyarrow.table({"xa": [1.0], "label": [2.0]}), LINE, columns={"xw": "label"}
    )).steps == 3000  # fmt: skip


def test_headers_that_nothing_follows(tmp_path: Path) -> None:
    npy, npz, whole = tmp_path / "d.npy", tmp_path / "d.npz", tmp_path / "d.parquet"
    np.save(npy, np.zeros(3, [("xa", "f8"), ("xw", "f8")]))
    npy.write_bytes(npy.read_bytes().replace(b"}", b"("))  # numpy's own error is a TokenError
    np.savez(npz, xa=np.zeros((10**17, 0)), xw=np.zeros((10**17, 0)))  # and no byte of them
    parquet.write_table(pyarrow.table({"xw_xw_xw": [1.0]}), whole)
    whole.write_bytes(whole.read_bytes().replace(b"xw_xw_xw", b"xw_\xa5w_xw"))
    for path, said in ((npy, ""), (npz, ""), (whole, "")):
        with refused(DataError, said):
            Dataset.load(path)


@pytest.mark.parametrize(
    "text", ['"xa,xw\n' + "1,2\n" * 200_000, "[" * 200_000, "a;b\n" + "\n" * 130_000]
)
def test_a_header_that_does_not_end(text: str, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text(text)
    started = process_time()
    with pytest.raises(DataError) as caught:
        Dataset.load(path, inputs=["xa"])
    assert process_time() - started < 3  # it grew with the square
    assert len(str(caught.value)) < 500
