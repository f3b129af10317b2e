"""A class with hostile submissions is graded completely, by each user and with each protection."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
ORDINARY = 54_321  # a user and a group that own nothing

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="what Linux's kernel offers"),
]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user can reach."""
    folder = Path(tempfile.mkdtemp(prefix="hostile-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def as_ordinary_user(command: list[str]) -> list[str]:
    """A command as a user who is not root, with Python opened to all in a mount namespace.

    Where Python lies in a folder that is closed to others, an empty folder is mounted over that
    one, and Python's part of it is mounted there again.
    """
    user = [f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups"]
    lines = []
    prefix = Path(sys.base_prefix).resolve()
    closed = [p for p in (*reversed(prefix.parents), prefix) if not p.stat().st_mode & 0o001]
    if closed:
        lines = [
            "saved=$(mktemp -d)",
            f"mount --bind '{prefix}' $saved",
            f"mount -t tmpfs -o mode=755 none '{closed[0]}'",
            f"mkdir -p '{prefix}'",
            f"mount --move $saved '{prefix}'",
            "rmdir $saved",
        ]
    script = "\n".join(["set -e", *lines, 'exec setpriv "$@"'])
    return ["unshare", "--mount", "sh", "-c", script, "sh", *user, *command]


def grade(place: Path, user: str, protection: str, students: int, hostile: int) -> Any:
    command = [sys.executable, "-m", "tests.checking.grade_hostile_class", str(place / "homework")]
    command += [protection, str(students), str(hostile), "2"]
    if user == "ordinary user":
        if os.geteuid() == 0:
            if any(not p.stat().st_mode & 0o001 for p in ROOT.parents):
                pytest.skip("the checkout is in a folder that is closed to other users")
            command = as_ordinary_user(command)
    elif os.geteuid() != 0:
        pytest.skip("needs root")
    environment = {**os.environ, "HOME": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode and ("unshare" in done.stderr or "mount" in done.stderr):
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check_report(report: Any, students: int) -> None:
    """Check that each student has a result, and that there are no other effects."""
    assert report["results"] == students
    for nothing in ("missing", "unexpected", "defects", "wronged", "secret changed"):
        assert not report[nothing], (nothing, report[nothing])
    assert report["folders left"] == []
    assert report["processes left"] == []
    assert report["megabytes"] < 600
    assert report["characters"] < 10_000 * students


USERS = ("root", "ordinary user")
PROTECTIONS = ("kernel", "python")


@pytest.mark.parametrize("protection", PROTECTIONS)
@pytest.mark.parametrize("user", USERS)
def test_each_hostile_submission_has_a_result_of_its_own(
    user: str, protection: str, place: Path
) -> None:
    report = grade(place, user, protection, 180, 1000)
    assert len(report["ends"]) >= 130
    check_report(report, 180)
