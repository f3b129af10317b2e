"""Runs as files: they come back as they were, and anything else is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgprimer
from cgprimer.errors import DataError, UsageError
from cgprimer.training.checkpoint import load_run
from cgprimer.training.loop import TrainingRun, train
from cgprimer.training.runs import run_as_dict, save_run
from tests.approval import refused
from tests.training.training_graphs import lecture, lecture_data, line, line_data


def plain(run: TrainingRun) -> dict[str, Any]:
    return {**vars(run), "graph": None, "state": [np.asarray(part).tolist() for part in run.state]}


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
def test_round_trip(optimizer: str, tmp_path: Path) -> None:
    run = train(lecture(), lecture_data(50), optimizer=optimizer, learning_rate=1e-3, epochs=2)
    path = tmp_path / "run.json"
    save_run(run, path, lecture())
    assert plain(load_run(path, lecture())) == plain(run)
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
def test_a_run_from_a_file_goes_on_exactly(optimizer: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "optimizer": optimizer, "learning_rate": 0.01, "schedule": "constant", "batch_size": 2,
    }  # fmt: skip
    path = tmp_path / "run.json"
    save_run(train(line(), line_data(), epochs=2, **settings), path, line())
    found = train(line(), line_data(), epochs=4, resume=load_run(path, line()), **settings)
    whole = train(line(), line_data(), epochs=4, **settings)
    assert {**plain(found), "seconds": 0} == {**plain(whole), "seconds": 0}


def test_the_file_says_what_it_is(tmp_path: Path) -> None:
    run = train(line(), line_data(), epochs=1)
    path = tmp_path / "run.json"
    save_run(run, path, line())
    fields = json.loads(path.read_text())
    assert (fields["format"], fields["version"]) == ("cgprimer-run", 1)
    again = cgprimer.parse(fields["graph"])
    assert again.parameters == line().parameters
    assert again.depends_on == line().depends_on
    assert fields["parameters"] == run.parameters
    assert run_as_dict(run, line())["step_losses"] == run.step_losses


def test_another_order_of_the_same_parameters_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    run = train(line(), line_data(), epochs=1, optimizer="sgd")
    save_run(run, path, line())
    turned = cgprimer.parse("xw = b + k*xa; parameter k = 3, b = -1")
    assert turned.parameters != line().parameters
    taken_up = train(turned, line_data(), epochs=1, resume=load_run(path, turned), optimizer="sgd")
    assert taken_up.parameters == run.parameters


def test_another_order_takes_the_optimizers_state_along(tmp_path: Path) -> None:
    """Velocities belong to names, not to positions."""
    settings: dict[str, Any] = {
        "optimizer": "momentum", "learning_rate": 0.05, "schedule": "constant",
    }  # fmt: skip
    path = tmp_path / "run.json"
    save_run(train(line(), line_data(), epochs=2, **settings), path, line())
    turned = cgprimer.parse("xw = b + k*xa; parameter k = 3, b = -1")
    whole = train(line(), line_data(), epochs=4, **settings)
    found = train(turned, line_data(), epochs=4, resume=load_run(path, turned), **settings)
    assert found.parameters == pytest.approx(whole.parameters, rel=1e-12)


def test_another_graph_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    save_run(train(line(), line_data(), epochs=1), path, line())
    with refused(DataError, "k ... b"):
        load_run(path, lecture())


@pytest.mark.parametrize(
    "text", ["", "null", "[1, 2]", '"text"', "{}", '{"format": "cgprimer-run"}', "{'a': 1}", "\x00"]
)
def test_foreign_files_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "foreign.json"
    path.write_text(text)
    with refused(DataError, "foreign.json ... --save"):
        load_run(path, line())


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"format": "other"},
        {"parameters": None},
        {"parameters": 3},
        {"parameters": {"k": "three", "b": 1}},
        {"state": None},
        {"state": [["a"]]},
        {"epochs": "two"},
        {"step_losses": None},
    ],
)
def test_wrong_fields_are_refused(change: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    save_run(train(line(), line_data(), epochs=1), path, line())
    fields = json.loads(path.read_text()) | change
    path.write_text(json.dumps(fields))
    with refused(DataError, "run.json"):
        load_run(path, line())


def test_truncated_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    save_run(train(line(), line_data(), epochs=1), path, line())
    whole = path.read_text()
    for share in (0.1, 0.5, 0.9):
        path.write_text(whole[: int(len(whole) * share)])
        with refused(DataError):
            load_run(path, line())


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    with refused(UsageError):
        load_run(tmp_path / "nosuch.json", line())
    with refused(UsageError):
        load_run(tmp_path, line())
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not UTF-8"):
        load_run(binary, line())
    run = train(line(), line_data(), epochs=1)
    with refused(UsageError):
        save_run(run, tmp_path / "nosuch" / "run.json", line())
    with refused(UsageError):
        save_run(run, tmp_path, line())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["binary.json"]


def test_what_is_saved_on_the_way_is_not_finished() -> None:
    said: list[str] = []
    keep = {"checkpoint_every": 1, "on_checkpoint": lambda run: said.append(run.stopped)}
    run = train(line(), line_data(), epochs=3, **keep)
    assert (set(said), run.stopped) == ({"interrupted"}, "finished")
