"""Runs in files: saving, resuming from a file, atomic writing, and files that are refused."""

from __future__ import annotations

import io
import json
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import cgprimer
from cgprimer.errors import CgprimerError, DataError, UsageError
from cgprimer.support import files
from cgprimer.support.files import format_json, write_atomically
from cgprimer.training.checkpoint import load_run
from cgprimer.training.loop import train
from cgprimer.training.runs import run_as_dict, save_run
from tests.approval import refused
from tests.training.training_graphs import fields_of, lecture, line, line_data, table

NETWORK = "input x[2]; parameter W[3,2], v[3], c; xh = tanh(W @ x); xo = v @ xh + c"
STRANGE: tuple[Any, ...] = (
    None, True, -1, 0, 3, 10**400, 1e308, -2.5, "nan", "x", "", [], [[]], [[[[1]]]], {}, {"k": []},
    ["a"], [None], [10**400], {"k": 10**400}, {"": 1}, [1.0] * 3,
)  # fmt: skip


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the fields of a saved run with a value for everything that a run can have."""
    path = tmp_path_factory.mktemp("runs") / "run.json"
    data = line_data()
    run = train(line(), data, epochs=4, validation=data, patience=2, metrics="r2", batch_size=2)
    save_run(run, path)
    fields: dict[str, Any] = json.loads(path.read_text())
    return fields


@pytest.mark.parametrize(
    ("text", "settings"), [pytest.param(*row, id=name) for name, *row in table("resumed runs")]
)
def test_a_run_from_a_file_is_resumed_as_if_uninterrupted(
    text: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    graph = cgprimer.parse(text)
    data = cgprimer.make_dataset(graph, truth=dict.fromkeys(graph.parameters, 0.7), samples=31)
    settings = {"learning_rate": 0.01, "schedule": "constant", "seed": 3, **settings}
    whole, half = (train(graph, data, epochs=epochs, **settings) for epochs in (4, 2))
    half.save(tmp_path / "run.json")
    earlier = load_run(tmp_path / "run.json", graph)
    np.testing.assert_equal(fields_of(earlier), fields_of(half))
    for _ in range(2):  # nothing remains to be done the second time
        earlier = train(graph, data, epochs=4, resume=earlier, **settings)
        np.testing.assert_equal(fields_of(earlier), fields_of(whole))
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
def test_parameters_in_another_order_are_resumed_by_name(optimizer: str) -> None:
    graph = cgprimer.parse(NETWORK)
    reordered = cgprimer.parse(NETWORK.replace("W[3,2], v[3], c", "c, v[3], W[3,2]"))
    assert reordered.parameters != graph.parameters
    data = cgprimer.make_dataset(graph, truth={"W": 1, "v": 2, "c": 3}, samples=50)
    settings: dict[str, Any] = {"optimizer": optimizer, "schedule": "constant", "engine": "plain"}
    half, whole = (train(graph, data, epochs=epochs, **settings) for epochs in (2, 4))
    found = train(reordered, data, epochs=4, resume=half, **settings)
    for name, value in whole.parameters.items():
        np.testing.assert_allclose(found.parameters[name], value, rtol=1e-10)
        recorded = whole.recorded_parameters[name]
        np.testing.assert_allclose(found.recorded_parameters[name], recorded, rtol=1e-10)


def test_the_file_describes_itself_and_later_fields_have_defaults(tmp_path: Path) -> None:
    path, reasons = tmp_path / "run.json", []
    keep: dict[str, Any] = {"checkpoint_every": 1}
    keep["on_checkpoint"] = lambda unfinished: reasons.append(unfinished.stopped)
    run = train(line(), line_data(), epochs=3, **keep)
    assert run.stopped == "finished"
    assert reasons == ["interrupted"] * 4  # before the first epoch and after each
    save_run(run, path, line())
    fields = json.loads(path.read_text())
    assert (fields["format"], fields["version"]) == ("cgprimer-run", 1)
    again = cgprimer.parse(fields["graph"])
    assert (again.parameters, again.depends_on) == (line().parameters, line().depends_on)
    assert fields["parameters"] == run.parameters
    assert run_as_dict(run, line())["step_losses"] == run.step_losses
    for name in ("metrics", "best_epoch", "last_parameters", "steps_apart", "epoch_total",
                 "statistics"):  # fmt: skip
        del fields[name]
    path.write_text(json.dumps(fields))
    run = load_run(path)
    assert (run.best_epoch, run.steps_apart, run.metrics) == (0, 1, {})


def test_numbers_of_numpy_are_saved(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "batch_size": np.int32(2), "seed": np.uint8(7), "learning_rate": np.float32(0.125),
        "shuffle": np.True_, "short_run_records": np.int64(4), "stop_below": np.float32(1e-30),
        "start": {"k": np.float32(1)}, "validation": np.float32(0.25),
    }  # fmt: skip
    run = train(line(), line_data(), epochs=np.int64(3), **settings)
    run.save(tmp_path / "run.json")
    earlier = load_run(tmp_path / "run.json", line())
    assert earlier.settings == run.settings
    plain = {int, float, str, bool, tuple, type(None)}
    assert {type(value) for value in run.settings.values()} <= plain
    assert train(line(), line_data(), resume=earlier, epochs=5, **settings).epochs == 5


def test_other_temporary_files_are_not_touched_and_writers_may_be_concurrent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, texts = tmp_path / "y.txt", [letter * 5_000 for letter in "abcd"]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda text: write_atomically(path, text), texts * 25))
    assert path.read_text() in texts
    assert [p.name for p in tmp_path.iterdir()] == ["y.txt"]
    monkeypatch.setattr(files, "urandom", lambda size: b"\x00" * size)
    write_atomically(path, "new")
    taken = tmp_path / f".{'00' * 8}.part"
    taken.write_text("other")
    with refused(UsageError, "y.txt"):
        write_atomically(path, "newer")
    assert [p.read_text() for p in (path, taken)] == ["new", "other"]


@pytest.mark.parametrize("during", ["write", "replace"])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, OSError])
def test_a_failed_write_keeps_the_old_file(
    kind: type[BaseException], during: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "y.txt").write_text("old")

    class FailingFile(io.FileIO):
        def write(self, data: Any) -> int:
            super().write(bytes(data)[:3])
            raise kind("failed")

    if during == "write":
        monkeypatch.setattr(files, "open", FailingFile, raising=False)
    else:
        monkeypatch.setattr(Path, "replace", Mock(side_effect=kind("failed")))
    with pytest.raises(UsageError if kind is OSError else kind):
        write_atomically(tmp_path / "y.txt", "new content")
    assert [p.name for p in tmp_path.iterdir()] == ["y.txt"]
    assert (tmp_path / "y.txt").read_text() == "old"


def test_other_truncated_and_missing_files_are_refused(
    saved: dict[str, Any], tmp_path: Path
) -> None:
    path, whole, begin = tmp_path / "foreign.json", json.dumps(saved), '{"format": "cgprimer-run"'
    for text in ("", "null", "[1, 2]", '"text"', "{}", begin + "}", "{'a': 1}", "\x00",
                 "[" * 100_000, '{"a":' * 100_000, begin + ', "x": ' + "[" * 99_999,
                 whole[:99], whole[: len(whole) // 2], whole[:-5]):  # fmt: skip
        path.write_text(text)
        with refused(DataError, "foreign.json ... --save"):
            load_run(path, line())
    path.write_bytes(b"\xff\xfe\x00")
    with refused(DataError, "not UTF-8"):
        load_run(path, line())
    run = train(line(), line_data(), epochs=1)
    for wrong in (tmp_path / "nosuch" / "run.json", tmp_path):
        with refused(UsageError):
            load_run(wrong, line())
        with refused(UsageError):
            save_run(run, wrong, line())
    assert [p.name for p in tmp_path.iterdir()] == ["foreign.json"]


@pytest.mark.parametrize("change", table("run files"), ids=str)
def test_inconsistent_fields_are_refused(
    change: dict[str, Any], saved: dict[str, Any], tmp_path: Path
) -> None:
    if "settings" in change:
        change = {"settings": saved["settings"] | change["settings"]}
    (tmp_path / "run.json").write_text(json.dumps(saved | change))
    with refused(DataError, "run.json"):
        load_run(tmp_path / "run.json", line())


def check_use(path: Path, text: str) -> None:
    """Check that a file is refused as a DataError, or that the run can be used and resumed."""
    path.write_text(text)
    try:
        run = load_run(path, line())
    except DataError:
        return
    run.predict({"xa": [1.0]})
    assert isinstance(run.settings["loss"], str)
    settings = {"optimizer": "adam", "batch_size": 2, "epochs": run.epochs + 1}
    try:
        train(line(), line_data(), resume=run, validation=line_data(), **settings)
    except CgprimerError:  # another seed, state or number of samples
        return


def test_wrong_arrays_and_runs_of_other_graphs_are_refused(tmp_path: Path) -> None:
    path, graph = tmp_path / "run.json", cgprimer.parse(NETWORK)
    data = cgprimer.make_dataset(graph, truth={"W": 1, "v": 2, "c": 3}, samples=5)
    run = train(graph, data, epochs=0)
    fields = json.loads(format_json(run_as_dict(run, graph)))
    for name, value in table("arrays, refused"):
        for field in ("parameters", "start"):
            path.write_text(json.dumps({**fields, field: {**fields[field], name: value}}))
            with refused(DataError):
                load_run(path, graph)
    run.save(path)
    other = cgprimer.parse(NETWORK.replace("3,2], v[3]", "1,2], v[1]"))
    with refused(DataError, "[3 ... [1"):
        load_run(path, other)
    with refused(UsageError, "[3 ... [1"):
        train(other, data, epochs=2, resume=run)
    with refused(DataError, "W ... ab"):
        load_run(path, lecture())


@pytest.mark.parametrize("count", [1, pytest.param(len(STRANGE), marks=pytest.mark.slow)])
def test_damaged_fields_are_refused_or_harmless(
    count: int, saved: dict[str, Any], tmp_path: Path
) -> None:
    path, choices = tmp_path / "run.json", random.Random(3)
    for name in saved:
        check_use(path, json.dumps({n: v for n, v in saved.items() if n != name}))
        for value in choices.sample(STRANGE, count):
            check_use(path, json.dumps(saved | {name: value}))
    for name in saved["settings"]:
        for value in choices.sample(STRANGE, count):
            changed = saved["settings"] | {name: value}
            check_use(path, json.dumps(saved | {"settings": changed}))
    text = json.dumps(saved)
    for _ in range(4 * count):
        position, length = choices.randrange(len(text)), choices.choice((0, 1, 1, 40))
        letter = choices.choice('0123456789.,[]{}":-eE nx')
        check_use(path, text[:position] + letter + text[position + length :])
