"""Files are written whole or not at all, whoever else writes and whatever comes between."""

from __future__ import annotations

import io
import json
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cgprimer.errors import UsageError
from cgprimer.support import files
from cgprimer.support.files import format_json, write_atomically
from cgprimer.training.checkpoint import load_run
from cgprimer.training.loop import train
from cgprimer.training.runs import save_run
from tests.approval import refused
from tests.training.training_graphs import line, line_data


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_a_process_that_died_left_behind_is_in_nobodys_way(tmp_path: Path) -> None:
    stale = tmp_path / f".y.txt.{os.getpid()}.part"
    stale.write_text("half of a f")
    write_atomically(tmp_path / "y.txt", "new")
    assert (tmp_path / "y.txt").read_text() == "new"
    assert stale.read_text() == "half of a f"


def test_a_name_that_is_taken_is_not_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "urandom", lambda size: b"\x00" * size)
    taken = tmp_path / f".{'00' * 8}.part"
    taken.write_text("somebody else's")
    with refused(UsageError, "y.txt"):
        write_atomically(tmp_path / "y.txt", "new")
    assert taken.read_text() == "somebody else's"


def test_many_writers_of_one_file(tmp_path: Path) -> None:
    path = tmp_path / "y.txt"
    texts = [letter * 5_000 for letter in "abcd"]
    failed: list[Exception] = []

    def write(text: str) -> None:
        for _ in range(100):
            try:
                write_atomically(path, text)
            except UsageError as error:
                failed.append(error)

    writers = [threading.Thread(target=write, args=(text,)) for text in texts]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failed == []
    assert path.read_text() in texts
    assert names(tmp_path) == ["y.txt"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, OSError, MemoryError])
def test_whatever_comes_between_leaves_nothing_behind(
    kind: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "y.txt").write_text("old")

    def replace(*_: object) -> None:
        raise kind("between")

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(UsageError if kind is OSError else kind):
        write_atomically(tmp_path / "y.txt", "new")
    assert names(tmp_path) == ["y.txt"]
    assert (tmp_path / "y.txt").read_text() == "old"


def test_ctrl_c_while_the_content_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(io.FileIO):
        def write(self, data: Any) -> int:
            super().write(bytes(data)[:3])
            raise KeyboardInterrupt

    monkeypatch.setattr(files, "open", Interrupted, raising=False)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "y.txt", "new content")
    assert names(tmp_path) == []


def test_numbers_of_numpy_become_json() -> None:
    value = {"a": np.int64(3), "b": np.float32(0.5), "c": [np.float32("nan"), True], "d": None}
    assert json.loads(format_json(value)) == {"a": 3, "b": 0.5, "c": ["nan", True], "d": None}


@pytest.mark.parametrize(
    "settings",
    [
        {"epochs": np.int64(3)},
        {"batch_size": np.int32(2)},
        {"seed": np.uint8(7)},
        {"learning_rate": np.float32(0.125)},
        {"learning_rate": np.float16(0.125), "optimizer": "sgd"},
        {"shuffle": np.True_},
        {"short_run_records": np.int64(4)},
        {"stop_below": np.float32(1e-3)},
        {"start": {"k": np.float32(1)}},
        {"validation": np.float32(0.25)},
        {"validation": np.float64(0.25)},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_a_run_with_numbers_of_numpy_is_saved_and_taken_up(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "run.json"
    run = train(line(), line_data(), **{"epochs": 2, **settings})
    save_run(run, path, line())
    assert load_run(path, line()).settings == run.settings
    plain = {int, float, str, bool, tuple, type(None)}
    assert {type(value) for value in run.settings.values()} <= plain
    again = {**settings, "epochs": 5}
    assert train(line(), line_data(), resume=load_run(path, line()), **again).epochs == 5
