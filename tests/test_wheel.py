"""The wheel has what the package needs at run time, beside its modules."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow  # pip makes an environment for the build
def test_examples_pages_and_types_are_in_the_wheel(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), "."]
    subprocess.run(build, check=True, cwd=ROOT, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    package = ROOT / "cgprimer"
    needed = {
        f"cgprimer/{path.relative_to(package).as_posix()}"
        for path in package.rglob("*.*")
        if path.is_file() and path.suffix != ".pyc"
    }
    needed |= {f"cgprimer/examples/{path.name}" for path in (ROOT / "examples").glob("*.*")}
    assert len(needed) > 200
    assert needed - names == set()
