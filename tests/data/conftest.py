"""Files of tests are small, and are read here as large ones are, by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def as_large_files() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr("cgprimer.training.data.csv_files._SMALL", 0)
        yield
