"""The documentation site: built once, and served on this machine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages.conftest import browser, serve  # noqa: F401

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs" / "site"))  # for the module completeness


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site, built by the command that everybody uses."""
    pytest.importorskip("zensical", reason="zensical is missing: pip install -e .[docs]")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "docs/site/build.py", "--output", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="session")
def server(site: Path) -> Iterator[str]:
    """The address of the site on this machine."""
    with serve(site) as running:
        yield running.address
