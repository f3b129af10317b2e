"""Test files are small, but are read by pyarrow, as large files are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

ROLES: dict[str, Any] = {"inputs": ["xa"], "targets": ["xw"]}


@pytest.fixture(autouse=True, scope="module")
def _read_as_large_files() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cgprimer.training.data.csv_files._SMALL", 0)
        yield
