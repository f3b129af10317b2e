"""A class with hostile submissions is graded completely, by each user and with each protection."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checking.submissions import read_sections

ROOT = Path(__file__).resolve().parents[2]
ORDINARY = 54_321  # a user and a group that own nothing

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="what Linux's kernel offers"),
]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can reach."""
    with tempfile.TemporaryDirectory(prefix="hostile-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o777)
        yield Path(name)


def as_ordinary_user(command: list[str]) -> list[str]:
    """Return a command of a user who is not root, with Python opened to all in a mount namespace.

    Where Python is in a folder that is closed to others, an empty folder is mounted over that
    one, and Python's part of it is mounted there again.
    """
    prefix, script = Path(sys.base_prefix).resolve(), 'exec setpriv "$@"'
    closed = [p for p in (*reversed(prefix.parents), prefix) if not p.stat().st_mode & 0o001]
    if closed:
        script = dict(read_sections(ROOT / "tests" / "trial" / "programs.txt"))["mounts"].format(
            prefix=prefix, closed=closed[0], script=script
        )
    user = [f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups"]
    return ["unshare", "--mount", "sh", "-c", script, "sh", *user, *command]


@pytest.mark.parametrize(("user", "protection"), [("root", "python"), ("ordinary user", "kernel")])
def test_each_hostile_submission_has_a_separate_result(
    user: str, protection: str, folder: Path
) -> None:
    command = [sys.executable, "-m", "tests.checking.grade_hostile_class", str(folder / "homework")]
    command += [protection, "180", "2"]
    if user == "root" and os.geteuid() != 0:
        pytest.skip("needs root")
    if user != "root" and os.geteuid() == 0:
        if any(not p.stat().st_mode & 0o001 for p in ROOT.parents):
            pytest.skip("the checkout is in a folder that is closed to other users")
        command = as_ordinary_user(command)
    environment = {**os.environ, "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode and ("unshare" in done.stderr or "mount" in done.stderr):
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["results"] == 180
    assert len(report["ends"]) >= 130
    for effect in ("missing", "unexpected", "defects", "wronged", "secret changed", "folders left",
                   "processes left"):  # fmt: skip
        assert not report[effect], (effect, report[effect])
    assert report["megabytes"] < 600
    assert report["characters"] < 10_000 * 180
