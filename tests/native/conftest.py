"""Fixtures of the tests of engines: a cache folder of this test run, and temporary primitives."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cgprimer.core.registration import register_primitive, unregister_primitive
from tests.checking.submissions import read_sections, read_tables

PROGRAMS = dict(read_sections(Path(__file__).with_name("programs.txt")))
TABLES = read_tables(Path(__file__).with_name("tables.txt"))


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder, so that the interpreter's handlers are compiled once per test run."""
    base = tmp_path_factory.getbasetemp()
    path = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"
    path.mkdir(mode=0o700, exist_ok=True)
    return path


@pytest.fixture(autouse=True)
def _use_session_cache(session_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGPRIMER_CACHE", str(session_cache))


@pytest.fixture
def register() -> Iterator[Callable[..., None]]:
    """Register primitives that are removed after the test."""
    names: list[str] = []

    def register_temporarily(name: str, *args: Any, **kwargs: Any) -> None:
        register_primitive(name, *args, **kwargs)
        names.append(name)

    yield register_temporarily
    for name in names:
        unregister_primitive(name)
