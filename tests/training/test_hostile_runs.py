"""Files of runs from anywhere: what is no run is refused, whatever was done to it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from cgprimer.errors import CgprimerError, DataError
from cgprimer.training.checkpoint import load_run
from cgprimer.training.loop import train
from cgprimer.training.runs import save_run
from tests.approval import refused
from tests.training.training_graphs import line, line_data

STRANGE: tuple[Any, ...] = (
    None, True, -1, 0, 3, 10**400, 1e308, -2.5, "nan", "x", "", [], [[]], [[[[1]]]], {}, {"k": []},
    ["a"], [None], [10**400], {"k": 10**400}, {"": 1}, [1.0] * 3,
)  # fmt: skip


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("runs") / "run.json"
    data = line_data()
    run = train(line(), data, epochs=4, validation=data, patience=2, metrics="r2", batch_size=2)
    save_run(run, path)
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def read_and_used(path: Path, text: str) -> None:
    """What is read is refused as a DataError, or is a run that can be used and goes on."""
    path.write_text(text)
    try:
        run = load_run(path, line())
    except DataError:
        return
    run.predict({"xa": [1.0]})
    assert isinstance(run.settings["loss"], str)  # which scores ask for
    settings = {"optimizer": "adam", "batch_size": 2, "epochs": run.epochs + 1}
    try:
        train(line(), line_data(), resume=run, validation=line_data(), **settings)
    except CgprimerError:  # another seed, state or number of samples
        return


def test_every_field_with_a_strange_value(saved: dict[str, Any], tmp_path: Path) -> None:
    for name in saved:
        for value in STRANGE:
            read_and_used(tmp_path / "run.json", json.dumps(saved | {name: value}))
        read_and_used(
            tmp_path / "run.json", json.dumps({n: v for n, v in saved.items() if n != name})
        )


def test_every_setting_with_a_strange_value(saved: dict[str, Any], tmp_path: Path) -> None:
    for name in saved["settings"]:
        for value in STRANGE:
            changed = saved["settings"] | {name: value}
            read_and_used(tmp_path / "run.json", json.dumps(saved | {"settings": changed}))
        changed = {n: v for n, v in saved["settings"].items() if n != name}
        read_and_used(tmp_path / "run.json", json.dumps(saved | {"settings": changed}))


def test_bytes_changed_at_random(saved: dict[str, Any], tmp_path: Path) -> None:
    text, draw = json.dumps(saved), random.Random(1)
    for _ in range(80):
        place = draw.randrange(len(text))
        cut = draw.choice((0, 1, 1, 40))
        letter = draw.choice('0123456789.,[]{}":-eE nx')
        read_and_used(tmp_path / "run.json", text[:place] + letter + text[place + cut :])


@pytest.mark.parametrize(
    "change",
    [
        {"start": None},
        {"start": {}},
        {"state": [[1.0]]},
        {"step_losses": []},
        {"epoch_losses": [1.0]},
        {"steps": 3},
        {"steps_apart": 0},
        {"epochs": 10**400},
        {"best_epoch": 99},
        {"last_parameters": {"k": 1.0}},
        {"metrics": {"r2": [1.0]}},
        {"settings": {"epochs": "many"}},
        {"settings": {"epochs": 10**400}},
        {"settings": {"steps_per_epoch": -1}},
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(
    change: dict[str, Any], saved: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "run.json"
    if "settings" in change:
        change = {"settings": saved["settings"] | change["settings"]}
    path.write_text(json.dumps(saved | change))
    with refused(DataError):
        load_run(path, line())


def test_nesting_without_end(tmp_path: Path) -> None:
    for text in (
        "[" * 200_000,
        '{"a":' * 100_000,
        '{"format": "cgprimer-run", "x": ' + "[" * 99_999,
    ):
        path = tmp_path / "run.json"
        path.write_text(text)
        with refused(DataError):
            load_run(path)


def test_fields_that_came_later_than_a_file_have_their_defaults(
    saved: dict[str, Any], tmp_path: Path
) -> None:
    later = ("metrics", "best_epoch", "last_parameters", "steps_apart", "epoch_total", "statistics")
    path = tmp_path / "run.json"
    path.write_text(json.dumps({n: v for n, v in saved.items() if n not in later}))
    assert load_run(path).best_epoch == 0
