"""What all tests share: Hypothesis looks at the same cases in every run, however slow the machine.

``HYPOTHESIS_PROFILE=explore python -m pytest`` looks at new ones, and at more of them
where a test does not say how many.
"""

import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings

import cgprimer
from tests.approval import APPROVALS

settings.register_profile(
    "same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", deadline=None, max_examples=1000, print_blob=True)
os.environ.setdefault("MPLBACKEND", "Agg")  # no test opens a window
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
# Background jobs of a shell ignore Ctrl-C, and so would the commands that tests interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

STALE = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--approve", action="store_true", help="Rewrite the approved texts.")


def pytest_configure(config: pytest.Config) -> None:
    APPROVALS.rewriting = config.getoption("approve")
    if APPROVALS.rewriting and config.getoption("numprocesses", None):
        raise pytest.UsageError("--approve needs one process: leave out -n")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path,
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Do not search tests for examples, which takes as long as collecting the tests."""
    collectors = yield
    if file_path.name.startswith("test_"):
        return [c for c in collectors if not isinstance(c, DoctestModule)]
    return collectors


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Examples of public functions run where they are written, not once more as cgprimer's own."""
    own = Path(cgprimer.__file__)
    items[:] = [i for i in items if i.path != own or i.name == "cgprimer"]
    start = config.invocation_params.dir
    whole = [(start / a).resolve() for a in config.args if "::" not in a]
    if not config.getoption("lf", default=False):
        config.stash[STALE] = APPROVALS.stale([(i.path, i.name) for i in items], whole)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """Tell the approved texts which test runs."""
    values = pyfuncitem.funcargs.items()
    folders = {str(v): name for name, v in values if isinstance(v, Path)}
    with APPROVALS.running(pyfuncitem.path, pyfuncitem.name, folders):
        return (yield)


def pytest_sessionfinish() -> None:
    if APPROVALS.rewriting:
        APPROVALS.save()


PYODIDE, AXE = "314.0.7", "4.14.1"


@pytest.fixture(scope="session")
def pyodide_folder() -> Path:
    """Return the folder of npm's package pyodide: $CGPRIMER_PYODIDE, or a cached download."""
    named = os.environ.get("CGPRIMER_PYODIDE")
    return Path(named) if named else download_package("pyodide", PYODIDE)


@pytest.fixture(scope="session")
def axe_script() -> str:
    """Return the script of npm's package axe-core, which checks the accessibility of pages."""
    return (download_package("axe-core", AXE) / "axe.min.js").read_text("utf-8")


def download_package(name: str, version: str) -> Path:
    """Return the folder of a package from npm, which is downloaded once; skip the test without."""
    folder = Path(tempfile.gettempdir()) / f"cgprimer-{name}-{version}"
    if folder.is_dir():
        return folder
    if not (npm := shutil.which("npm")):
        pytest.skip(f"npm is not installed, and {folder} does not exist")
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        command = [npm, "pack", f"{name}@{version}", "--pack-destination", scratch]
        packed = subprocess.run(command, capture_output=True, text=True, check=False)
        if packed.returncode:
            pytest.skip(f"npm cannot download {name}: {packed.stderr[-300:]}")
        with tarfile.open(Path(scratch) / f"{name}-{version}.tgz") as archive:
            archive.extractall(scratch, filter="data")
        if not folder.is_dir():  # else another process was faster
            Path(scratch, "package").rename(folder)
    return folder
