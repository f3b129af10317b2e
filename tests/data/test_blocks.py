"""Files that are read in blocks, and training runs over blocks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

import cgprimer
from cgprimer.errors import CgprimerError, DataError, NonFiniteError, UsageError
from cgprimer.training.data import Blocks, Dataset, blocks, csv_files
from cgprimer.training.data.dataset_columns import select_sample_indices
from tests.approval import refused
from tests.training.training_graphs import interrupt_at

LINE = cgprimer.parse("xw = k*xa + b*xb; parameter k = 2, b = -1")
ROLES: dict[str, Any] = {"inputs": ["xa", "xb"], "targets": ["xw"]}


@pytest.fixture(params=["parquet", "csv", "npz"])
def file(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write 500 samples to a file that is read in several blocks."""
    data = cgprimer.make_dataset(LINE, samples=500, seed=3, noise=0.1)
    path = tmp_path / f"d.{request.param}"
    if request.param == "parquet":
        parquet.write_table(data.to_arrow(), path, row_group_size=110)
        monkeypatch.setattr("cgprimer.training.data.arrow_tables.ROWS", 130)
    elif request.param == "csv":
        monkeypatch.setattr(csv_files, "_BLOCK", 6_000)
        data.save(path)
    else:
        monkeypatch.setattr("cgprimer.training.data.numpy_files.ROWS", 130)
        np.savez(path, **data.columns)
    return path


def test_blocks_contain_all_samples_in_order(file: Path) -> None:
    whole, parts = Dataset.load(file, **ROLES), Blocks.load(file, **ROLES)
    assert len(parts) == 500 == sum(parts.lengths)
    assert len(parts.lengths) > 3
    for name, column in whole.columns.items():
        again = [parts.block(k).columns[name] for k in reversed(range(len(parts.lengths)))]
        np.testing.assert_array_equal(np.concatenate(again[::-1]), column)
    for chosen in (np.array([499, 0, 130, 131]), whole.inputs["xa"] > 0.3, []):
        expected = whole.inputs["xa"][chosen] if len(chosen) else np.empty(0)
        np.testing.assert_array_equal(parts.where(chosen).inputs["xa"], expected)
    assert select_sample_indices([5, -1], 10**12).tolist() == [5, 10**12 - 1]
    for wrong in (-1, len(parts.lengths), "a", []):
        with refused(UsageError, "0"):
            parts.block(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("engine", "batch"), [("cpu", 1), ("numpy", 7), ("cpu", 100)])
def test_a_run_over_blocks_is_the_documented_loop(file: Path, engine: str, batch: int) -> None:
    """Each epoch shuffles the blocks and the samples of each block; the loop is written here."""
    parts = Blocks.load(file, **ROLES)
    settings: dict[str, Any] = {
        "optimizer": "sgd", "learning_rate": 0.05, "schedule": "constant", "epochs": 2, "seed": 4,
        "start": {"k": 0.0, "b": 0.0}, "batch_size": batch, "engine": engine,
    }  # fmt: skip
    run = cgprimer.train(LINE, parts, **settings)
    lengths, point, losses = parts.lengths, np.zeros(2), []
    batch = min(batch, max(lengths))
    for epoch in range(2):
        order = np.random.default_rng([4, epoch, *lengths]).permutation(len(lengths))
        total = 0.0
        for k in order.tolist():
            block = parts.block(k)
            inside = np.random.default_rng([4, epoch, k]).permutation(lengths[k])
            for first in range(0, lengths[k], batch):
                chosen = inside[first : first + batch]
                x = np.stack([block.inputs[n][chosen] for n in ("xa", "xb")], axis=1)
                error = x @ point - block.targets["xw"][chosen]
                total += (error**2).sum()
                point = point - 0.05 * 2 * error @ x / len(chosen)
        losses.append(total / 500)
    assert [run.parameters["k"], run.parameters["b"]] == pytest.approx(point, rel=1e-9)
    assert run.epoch_losses == pytest.approx(losses, rel=1e-9)
    assert run.steps == 2 * sum(-(-n // batch) for n in lengths)
    whole = Dataset.load(file, **ROLES)
    mean, _ = cgprimer.loss_and_gradient(LINE, whole, reduction="mean")(run.parameters)
    assert run.loss == pytest.approx(mean, rel=1e-12)


def test_an_interrupted_run_over_blocks_can_be_resumed(file: Path) -> None:
    parts = Blocks.load(file, **ROLES)
    whole = cgprimer.train(LINE, parts, epochs=3, batch_size=20)
    settings: dict[str, Any] = {"on_step": interrupt_at(37), "engine": "numpy"}
    half = cgprimer.train(LINE, parts, epochs=3, batch_size=20, **settings)
    assert half.interrupted
    rest = cgprimer.train(LINE, parts, epochs=3, batch_size=20, resume=half)
    assert rest.parameters == pytest.approx(whole.parameters, rel=1e-12)
    assert rest.epoch_losses == pytest.approx(whole.epoch_losses, rel=1e-12)


def test_validation_is_a_fraction_of_each_block(file: Path) -> None:
    parts = Blocks.load(file, **ROLES)
    run = cgprimer.train(LINE, parts, epochs=2, validation=0.2, batch_size=50)
    train, others = parts.split(0.2, 0)
    assert len(train) + len(others) == 500
    assert run.settings["validation_samples"] == len(others) == pytest.approx(100, abs=3)
    seen = [
        part.block(k).inputs["xa"] for part in (train, others) for k in range(len(part.lengths))
    ]
    whole = Dataset.load(file, **ROLES)
    np.testing.assert_array_equal(np.sort(np.concatenate(seen)), np.sort(whole.inputs["xa"]))
    held_out = blocks.concatenate_datasets([others.block(k) for k in range(len(others.lengths))])
    mean, _ = cgprimer.loss_and_gradient(LINE, held_out, reduction="mean")(run.parameters)
    assert run.validation_losses[-1] == pytest.approx(mean, rel=1e-9)


def test_invalid_samples_are_located_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cgprimer.training.data.arrow_tables.ROWS", 100)
    path, ones = tmp_path / "d.parquet", np.ones(300)
    for column, value in (("xw", np.nan), ("xa", 1e200)):
        values = ones.copy()
        values[251] = value
        columns = {"xa": ones, "xb": ones, "xw": ones, column: values}
        parquet.write_table(pyarrow.table(columns), path, row_group_size=100)
        if np.isnan(value):  # before the first step
            with refused(DataError, "d.parquet ... 251 ... 'xw' ... nan"):
                cgprimer.train(
                    LINE, Blocks.load(path, **ROLES), on_step=lambda *_: pytest.fail("a step")
                )
        else:
            with pytest.raises(NonFiniteError, match="sample 251"):
                cgprimer.train(LINE, Blocks.load(path, **ROLES))
    with refused(DataError, "d.parquet ... 'xx'"):
        Blocks.load(path, inputs=["xx"])


def test_large_files_are_read_in_blocks_and_small_ones_whole(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(blocks.resolve_dataset(file, LINE), Dataset)
    monkeypatch.setattr(blocks, "_LARGEST_IN_MEMORY", 1_000)
    assert isinstance(blocks.resolve_dataset(str(file), LINE), Blocks)
    assert cgprimer.train(LINE, file, epochs=5).parameters.keys() == {"k", "b"}
    with refused(UsageError):  # all samples are never in memory
        cgprimer.train(LINE, file, batch_size=None)


@pytest.mark.parametrize("data", [None, 3, {"xa": [1.0]}, "none.csv", Path("a.txt")])
def test_other_objects_are_no_data(data: Any) -> None:
    with pytest.raises(CgprimerError):
        cgprimer.train(LINE, data)


MANY = """
import re, sys, cgprimer
graph = cgprimer.parse("xw = a*xa + b*xb + c*xc + d*xd")
run = cgprimer.train(graph, sys.argv[1], epochs=1)
print(run.steps, {n: round(v, 3) for n, v in run.parameters.items()})
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""  # not ru_maxrss, which includes the parent process


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_five_million_rows_of_parquet_train_within_500_megabytes(tmp_path: Path) -> None:
    path, random = tmp_path / "d.parquet", np.random.default_rng(0)
    schema = pyarrow.schema([(name, pyarrow.float64()) for name in ("xa", "xb", "xc", "xd", "xw")])
    with parquet.ParquetWriter(path, schema) as writer:
        for _ in range(5):
            x = random.normal(size=(4, 1_000_000))
            writer.write_table(pyarrow.table([*x, np.arange(1.0, 5.0) @ x], schema=schema))
    command = [sys.executable, "-c", MANY, str(path)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[0] == "100000 {'a': 1.0, 'b': 2.0, 'c': 3.0, 'd': 4.0}"
    assert int(lines[1]) * 1024 < 500e6
