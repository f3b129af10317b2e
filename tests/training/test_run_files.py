"""Runs in files: saving, resuming from a file, atomic writing, and files that are refused."""

from __future__ import annotations

import io
import json
import os
import random
import threading
from pathlib import Path
from typing import Any

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
from tests.training.training_graphs import fields_of, lecture, lecture_data, line, line_data

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


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
def test_a_saved_run_is_loaded_and_resumed_exactly(optimizer: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "optimizer": optimizer, "learning_rate": 1e-5, "schedule": "constant", "batch_size": 20,
        "validation": 0.2, "engine": "numpy",
    }  # fmt: skip
    path = tmp_path / "run.json"
    run = train(lecture(), lecture_data(50), epochs=2, **settings)
    save_run(run, path, lecture())
    earlier = load_run(path, lecture())
    assert fields_of(earlier) == fields_of(run)
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]
    found = train(lecture(), lecture_data(50), epochs=4, resume=earlier, **settings)
    whole = train(lecture(), lecture_data(50), epochs=4, **settings)
    assert fields_of(found) == fields_of(whole)


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
def test_a_run_of_arrays_is_resumed_exactly(optimizer: str, tmp_path: Path) -> None:
    graph = cgprimer.parse(NETWORK)
    data = cgprimer.make_dataset(graph, truth={"W": 1, "v": 2, "c": 3}, samples=50)
    settings: dict[str, Any] = {"optimizer": optimizer, "schedule": "constant", "engine": "plain"}
    train(graph, data, epochs=2, **settings).save(tmp_path / "run.json")
    whole = train(graph, data, epochs=4, **settings)
    reordered = cgprimer.parse(NETWORK.replace("W[3,2], v[3], c", "c, v[3], W[3,2]"))
    assert reordered.parameters != graph.parameters
    for other, rel in ((graph, 0), (reordered, 1e-10)):
        earlier = load_run(tmp_path / "run.json", other)
        found = train(other, data, epochs=4, resume=earlier, **settings)
        for name, value in whole.parameters.items():
            np.testing.assert_allclose(found.parameters[name], value, rtol=rel)
            recorded = found.recorded_parameters[name]
            np.testing.assert_allclose(recorded, whole.recorded_parameters[name], rtol=rel)
        np.testing.assert_allclose(found.step_losses, whole.step_losses, rtol=rel)


def test_the_file_describes_itself(tmp_path: Path) -> None:
    reasons: list[str] = []
    keep: dict[str, Any] = {"checkpoint_every": 1}
    keep["on_checkpoint"] = lambda unfinished: reasons.append(unfinished.stopped)
    run = train(line(), line_data(), epochs=3, **keep)
    assert (reasons[0], {*reasons}, run.stopped) == ("interrupted", {"interrupted"}, "finished")
    assert len(reasons) == 4  # before the first epoch and after each
    save_run(run, tmp_path / "run.json", line())
    fields = json.loads((tmp_path / "run.json").read_text())
    assert (fields["format"], fields["version"]) == ("cgprimer-run", 1)
    again = cgprimer.parse(fields["graph"])
    assert (again.parameters, again.depends_on) == (line().parameters, line().depends_on)
    assert fields["parameters"] == run.parameters
    assert run_as_dict(run, line())["step_losses"] == run.step_losses


@pytest.mark.parametrize(
    "settings",
    [
        {"epochs": np.int64(3)}, {"batch_size": np.int32(2)}, {"seed": np.uint8(7)},
        {"learning_rate": np.float32(0.125)}, {"shuffle": np.True_},
        {"short_run_records": np.int64(4)}, {"stop_below": np.float32(1e-3)},
        {"start": {"k": np.float32(1)}}, {"validation": np.float32(0.25)},
    ],
    ids=lambda settings: next(iter(settings)),
)  # fmt: skip
def test_numbers_of_numpy_are_saved(settings: dict[str, Any], tmp_path: Path) -> None:
    run = train(line(), line_data(), **{"epochs": 2, **settings})
    save_run(run, tmp_path / "run.json", line())
    earlier = load_run(tmp_path / "run.json", line())
    assert earlier.settings == run.settings
    plain = {int, float, str, bool, tuple, type(None)}
    assert {type(value) for value in run.settings.values()} <= plain
    assert train(line(), line_data(), resume=earlier, **{**settings, "epochs": 5}).epochs == 5


def test_json_of_numbers_of_numpy() -> None:
    value = {"a": np.int64(3), "b": np.float32(0.5), "c": [np.float32("nan"), True], "d": None}
    assert json.loads(format_json(value)) == {"a": 3, "b": 0.5, "c": ["nan", True], "d": None}


def test_other_temporary_files_are_not_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stale = tmp_path / f".y.txt.{os.getpid()}.part"
    stale.write_text("half")
    write_atomically(tmp_path / "y.txt", "new")
    monkeypatch.setattr(files, "urandom", lambda size: b"\x00" * size)
    taken = tmp_path / f".{'00' * 8}.part"
    taken.write_text("other")
    with refused(UsageError, "y.txt"):
        write_atomically(tmp_path / "y.txt", "newer")
    assert [p.read_text() for p in (tmp_path / "y.txt", stale, taken)] == ["new", "half", "other"]


def test_concurrent_writers_leave_one_whole_text(tmp_path: Path) -> None:
    path = tmp_path / "y.txt"
    texts = [letter * 5_000 for letter in "abcd"]
    failures: list[Exception] = []

    def write(text: str) -> None:
        for _ in range(25):
            try:
                write_atomically(path, text)
            except UsageError as error:
                failures.append(error)

    writers = [threading.Thread(target=write, args=(text,)) for text in texts]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failures == []
    assert path.read_text() in texts
    assert [p.name for p in tmp_path.iterdir()] == ["y.txt"]


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

    def replace(*_: object) -> None:
        raise kind("failed")

    if during == "write":
        monkeypatch.setattr(files, "open", FailingFile, raising=False)
    else:
        monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(UsageError if kind is OSError else kind):
        write_atomically(tmp_path / "y.txt", "new content")
    assert [p.name for p in tmp_path.iterdir()] == ["y.txt"]
    assert (tmp_path / "y.txt").read_text() == "old"


@pytest.mark.parametrize(
    "text",
    ["", "null", "[1, 2]", '"text"', "{}", '{"format": "cgprimer-run"}', "{'a': 1}", "\x00",
     "[" * 100_000, '{"a":' * 100_000, '{"format": "cgprimer-run", "x": ' + "[" * 99_999],
    ids=range(11),
)  # fmt: skip
def test_other_files_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "foreign.json"
    path.write_text(text)
    with refused(DataError, "foreign.json ... --save"):
        load_run(path, line())


def test_truncated_binary_and_missing_files(saved: dict[str, Any], tmp_path: Path) -> None:
    path, whole = tmp_path / "saved.json", json.dumps(saved)
    for fraction in (0.1, 0.5, 0.9):
        path.write_text(whole[: int(len(whole) * fraction)])
        with refused(DataError):
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
    assert [p.name for p in tmp_path.iterdir()] == ["saved.json"]


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2}, {"format": "other"}, {"parameters": None}, {"parameters": 3},
        {"parameters": {"k": "three", "b": 1}}, {"state": None}, {"state": [["a"]]},
        {"state": [[1.0]]}, {"start": None}, {"start": {}}, {"steps": 3}, {"steps_apart": 0},
        {"step_losses": None}, {"step_losses": []}, {"epoch_losses": [1.0]}, {"epochs": "two"},
        {"epochs": 10**400}, {"best_epoch": 99}, {"last_parameters": {"k": 1.0}},
        {"metrics": {"r2": [1.0]}}, {"validation_losses": [1.0]}, {"validation_losses": "none"},
        {"recorded_steps": None}, {"recorded_steps": [5, 2]}, {"recorded_steps": [1.5, 2]},
        {"recorded_parameters": []}, {"recorded_parameters": {"k": [1.0, 2.0]}},
        {"recorded_parameters": {"k": ["a", "b"], "b": [1.0, 2.0]}},
        {"settings": {"epochs": "many"}}, {"settings": {"epochs": 10**400}},
        {"settings": {"steps_per_epoch": -1}},
    ],
    ids=str,
)  # fmt: skip
def test_inconsistent_fields_are_refused(
    change: dict[str, Any], saved: dict[str, Any], tmp_path: Path
) -> None:
    if "settings" in change:
        change = {"settings": saved["settings"] | change["settings"]}
    (tmp_path / "run.json").write_text(json.dumps(saved | change))
    with refused(DataError, "run.json"):
        load_run(tmp_path / "run.json", line())


@pytest.mark.parametrize(
    "change",
    [
        {"W": [[1.0, 2.0], [3.0]]}, {"W": [["a"]]}, {"W": "text"}, {"W": {"0": 1}}, {"v": [1.0]},
        {"v": 1.0}, {"c": [1.0]}, {"v": [None] * 3},
    ],
)  # fmt: skip
def test_wrong_arrays_are_refused(change: dict[str, Any], tmp_path: Path) -> None:
    path, graph = tmp_path / "run.json", cgprimer.parse(NETWORK)
    data = cgprimer.make_dataset(graph, truth={"W": 1, "v": 2, "c": 3}, samples=5)
    run = train(graph, data, epochs=1)
    save_run(run, path, graph)
    fields = json.loads(path.read_text())
    for field in ("parameters", "start"):
        path.write_text(json.dumps({**fields, field: fields[field] | change}))
        with refused(DataError):
            load_run(path, graph)
    save_run(run, path, graph)
    other = cgprimer.parse(NETWORK.replace("v[3]", "v[1]"))
    with refused(DataError, "v ... [3] ... [1]"):
        load_run(path, other)
    with refused(UsageError, "v ... [3] ... [1]"):
        train(other, data, epochs=2, resume=run)
    with refused(DataError, "W ... v ... c"):
        load_run(path, lecture())


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


def test_missing_and_damaged_fields(saved: dict[str, Any], tmp_path: Path) -> None:
    """Change every field and setting, to one value each; the slow test tries all values."""
    path, values = tmp_path / "run.json", random.Random(3)
    for name in saved:
        check_use(path, json.dumps({n: v for n, v in saved.items() if n != name}))
        check_use(path, json.dumps(saved | {name: values.choice(STRANGE)}))
    for name in saved["settings"]:
        changed = saved["settings"] | {name: values.choice(STRANGE)}
        check_use(path, json.dumps(saved | {"settings": changed}))
    added = ("metrics", "best_epoch", "last_parameters", "steps_apart", "epoch_total", "statistics")
    path.write_text(json.dumps({n: v for n, v in saved.items() if n not in added}))
    run = load_run(path)  # fields of later versions have defaults
    assert (run.best_epoch, run.steps_apart, run.metrics) == (0, 1, {})


@pytest.mark.slow
def test_all_damaged_fields_and_bytes(saved: dict[str, Any], tmp_path: Path) -> None:
    for value in STRANGE:
        for name in saved:
            check_use(tmp_path / "run.json", json.dumps(saved | {name: value}))
        for name in saved["settings"]:
            changed = saved["settings"] | {name: value}
            check_use(tmp_path / "run.json", json.dumps(saved | {"settings": changed}))
    text, choices = json.dumps(saved), random.Random(1)
    for _ in range(80):
        position, length = choices.randrange(len(text)), choices.choice((0, 1, 1, 40))
        letter = choices.choice('0123456789.,[]{}":-eE nx')
        check_use(tmp_path / "run.json", text[:position] + letter + text[position + length :])
