"""The documentation site: built once, and served on this machine."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.pages.conftest import browser  # noqa: F401

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs" / "site"))  # for the module completeness


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        pass


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
    handler = partial(QuietHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}/"
        running.shutdown()
