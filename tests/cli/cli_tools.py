"""The installed command, run as its users run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

COMMAND = Path(sys.executable).with_name("cgprimer")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LECTURE = EXAMPLES / "lecture.cg"
COMMANDS = (
    "train",
    "draw",
    "plot",
    "step",
    "grad",
    "trace",
    "tape",
    "compare",
    "data",
    "primitives",
    "info",
)


def environment(**extra: str) -> dict[str, str]:
    """The caller's environment, without what would change how messages look."""
    dropped = ("NO_COLOR", "FORCE_COLOR", "CGPRIMER_DEBUG", "PYTHONWARNINGS", "COLUMNS")
    return {k: v for k, v in os.environ.items() if k not in dropped} | extra


def run(
    *args: object, stdin: str | None = None, **settings: Any
) -> subprocess.CompletedProcess[str]:
    """Run ``cgprimer ARGS`` to its end; every run is checked for tracebacks."""
    done = subprocess.run(
        [str(COMMAND), *map(str, args)],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment(**settings.pop("env", {})),
        **settings,
    )
    assert "Traceback" not in done.stderr + done.stdout, done.stderr
    assert "this is a defect" not in done.stderr, done.stderr
    return done


def good(*args: object, **settings: Any) -> str:
    """Standard output of a run that must succeed."""
    done = run(*args, **settings)
    assert done.returncode == 0, done.stderr
    return done.stdout


def read_json(*args: object, **settings: Any) -> Any:
    """The JSON that a run prints; NaN and Infinity are no JSON and refused."""

    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is no JSON")

    return json.loads(good(*args, "--json", **settings), parse_constant=refuse)


def bad(*args: object, code: int = 2, **settings: Any) -> str:
    """Standard error of a run that must fail, with nothing on standard output."""
    done = run(*args, **settings)
    assert done.returncode == code, (done.returncode, done.stderr)
    assert done.stdout == ""
    assert done.stderr.strip()
    assert "\x1b" not in done.stderr
    return done.stderr
