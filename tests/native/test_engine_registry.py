"""Engines found by entry point, or added by a call."""

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest

import cgprimer
from cgprimer.core.evaluation.engines import ENGINES, select_engine
from cgprimer.errors import UsageError
from cgprimer.support.entry_points import read_entry_points
from tests.approval import approved, refused

ROOT = Path(__file__).parents[2]
AT = {"a": 2.0, "xa": np.arange(4.0)}


class Doubling:
    """An engine whose results can be told from everybody else's."""

    name = "doubling"

    def unavailable(self) -> str:
        return ""

    def compile(self, tape, *, reduction, dtype):
        inner = select_engine("numpy").compile(tape, reduction=reduction, dtype=dtype)
        return lambda *given: {name: 2 * value for name, value in inner(*given).items()}


MINE = Doubling()


def gradient_of(text: str):
    return cgprimer.gradient(cgprimer.parse(text), AT, engine="doubling")["a"]


@pytest.fixture
def doubling():
    cgprimer.register_engine(MINE)
    yield
    ENGINES.unregister("doubling")


def test_an_engine_of_ones_own_runs_and_is_listed(doubling) -> None:
    assert [e.name for e in cgprimer.engines()][-1] == "doubling"
    found = gradient_of("xw = a*xa^2")
    np.testing.assert_array_equal(found, 2 * np.arange(4.0) ** 2)


def test_names_are_taken_once(doubling) -> None:
    with refused(UsageError, "'doubling'"):
        cgprimer.register_engine(MINE)


def test_an_engine_of_another_package_is_found(monkeypatch) -> None:
    places = {**ENGINES._installed, "doubling": f"{__name__}:MINE"}
    monkeypatch.setattr(ENGINES, "_installed", places)
    found = gradient_of("xw = a * xa^2 + 1")
    ENGINES._loaded.pop("doubling")
    np.testing.assert_array_equal(found, 2 * np.arange(4.0) ** 2)


def test_one_that_cannot_be_imported_is_listed_with_the_reason(monkeypatch) -> None:
    places = {**ENGINES._installed, "broken": "no_such_module:ENGINE"}
    monkeypatch.setattr(ENGINES, "_installed", places)
    last = cgprimer.engines()[-1]
    assert (last.name, last.available) == ("broken", False)
    assert "no_such_module" in last.reason


def test_entry_points_are_those_that_the_library_finds() -> None:
    for group in (ENGINES.group, "console_scripts", "pytest11", "no.such.group"):
        expected = {point.name: point.value for point in entry_points(group=group)}
        found = read_entry_points().get(group, {})
        assert {name: place.replace(" ", "") for name, place in found.items()} == expected


def test_without_metadata_nothing_crashes() -> None:
    """Unpacked source on the path: importlib.metadata does not know the package."""
    text = (
        f"import sys; sys.path = [p for p in sys.path if 'site-packages' not in p]\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "import cgprimer.core.evaluation.engines as e\n"
        "assert e.ENGINES.names() == ('plain',)\n"
        "try: e.select_engine('cpu')\n"
        "except e.UsageError as error: print(error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-S", "-c", text], check=False, capture_output=True, text=True
    )
    assert "'cpu'" in approved(run.stdout), run.stderr


def test_a_package_with_broken_metadata_breaks_no_other(tmp_path, monkeypatch) -> None:
    place = tmp_path / "bad-1.dist-info" / "entry_points.txt"
    place.parent.mkdir()
    place.write_bytes(b"[cgprimer.engines]\n\xe9 = a:b\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "cpu" in read_entry_points.__wrapped__()["cgprimer.engines"]
