"""Releases: the source distribution, the wheel, and the wheel on every installed Python.

Run with ``python -m pytest -m release tests/test_release.py`` (needs the extra ``release``).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import cgprimer

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
pytestmark = pytest.mark.release


def run(*command: object, cwd: Path) -> str:
    """Run a command and return its output; a failure shows the output."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


def build(source: Path, folder: Path, *options: str) -> Path:
    """Build a distribution of a source tree and return its path."""
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, *options, source,
        cwd=folder.parent)  # fmt: skip
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the files that belong to the repository."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in run("git", "ls-files", "-z", cwd=ROOT).split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def sdist(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(checkout, tmp_path_factory.mktemp("sdist") / "dist", "--sdist")


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(checkout, tmp_path_factory.mktemp("wheel") / "dist", "--wheel")


def test_the_version_is_written_in_one_place(wheel: Path, sdist: Path) -> None:
    version = cgprimer.__version__
    assert wheel.name == f"cgprimer-{version}-py3-none-any.whl"
    assert sdist.name == f"cgprimer-{version}.tar.gz"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "version" in project["dynamic"]
    assert not re.search(r"^version:", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE)


def test_the_wheel_contains_what_the_package_needs(wheel: Path, checkout: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    package = {p.relative_to(checkout).as_posix() for p in (checkout / "cgprimer").rglob("*.*")}
    examples = {f"cgprimer/examples/{path.name}" for path in (checkout / "examples").glob("*.*")}
    assert len(package) > 200
    assert {*package, *examples} - names == set()
    folders = {name.split("/")[0] for name in names}
    assert folders == {"cgprimer", f"cgprimer-{cgprimer.__version__}.dist-info"}


def test_metadata_and_contents_have_no_complaints(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    scripts = Path(sys.executable).parent
    assert run(scripts / "twine", "check", "--strict", wheel, sdist, cwd=tmp_path)
    assert run(scripts / "check-wheel-contents", wheel, cwd=tmp_path).endswith("OK\n")


def test_builds_are_reproducible(checkout: Path, wheel: Path, sdist: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(checkout, tmp_path / "elsewhere")
    for path in copy.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    shutil.unpack_archive(sdist, tmp_path / "source", filter="data")
    for source in (copy, *(tmp_path / "source").iterdir()):
        again = build(source, tmp_path / f"wheel-of-{source.name}", "--wheel")
        assert again.read_bytes() == wheel.read_bytes()
    assert build(copy, tmp_path / "sdist", "--sdist").read_bytes() == sdist.read_bytes()


def find_python(version: str) -> str | None:
    """Return an interpreter of this version, from the search path or from pyenv."""
    candidates = [shutil.which(f"python{version}")]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    candidates += [str(path / "bin" / "python") for path in sorted(pyenv.glob(f"{version}.*"))]
    code = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    for candidate in filter(None, candidates):
        done = subprocess.run([candidate, "-c", code], capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            return candidate
    return None


@pytest.mark.parametrize("version", PYTHONS)
def test_the_wheel_works_in_an_empty_folder(version: str, wheel: Path, tmp_path: Path) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"there is no Python {version} on this machine")
    run(python, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    scripts = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    run(scripts / "python", "-m", "pip", "install", "-q", wheel, cwd=tmp_path)
    folder = tmp_path / "empty"
    folder.mkdir()
    command = scripts / "cgprimer"
    assert cgprimer.__version__ in run(command, "--version", cwd=folder)
    assert "ab + bc" in run(command, "train", "lecture", cwd=folder)
    run(command, "draw", "lecture", "--adjoints", "-o", "lecture.svg", cwd=folder)
    run(command, "step", "lecture", "-o", "lecture.html", cwd=folder)
    run(command, "exercise", "--kind", "adjoint", "--count", "2", "-o", "homework", cwd=folder)
    written = {path.name for path in folder.iterdir()}
    assert {"lecture.svg", "lecture.html"} <= written
