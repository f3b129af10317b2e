"""The command, run as its users run it, and what it must never print."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from cgprimer.cli import main

COMMAND = Path(sys.executable).with_name("cgprimer")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LECTURE = EXAMPLES / "lecture.cg"
COMMANDS = (
    "train",
    "sweep",
    "predict",
    "score",
    "fit",
    "identifiability",
    "ensemble",
    "draw",
    "plot",
    "step",
    "grad",
    "rules",
    "trace",
    "tape",
    "exercise",
    "export",
    "compare",
    "check",
    "data",
    "primitives",
    "new",
    "examples",
    "info",
)


def environment(**extra: str) -> dict[str, str]:
    """The caller's environment, without what would change how messages look."""
    dropped = ("NO_COLOR", "FORCE_COLOR", "CGPRIMER_DEBUG", "PYTHONWARNINGS", "COLUMNS")
    return {k: v for k, v in os.environ.items() if k not in dropped} | extra


def computed(process: subprocess.Popen[str], seconds: float) -> None:
    """Wait until a process has computed for so long: a busy machine takes its time."""
    seen = Path(f"/proc/{process.pid}/stat")
    ticks = seconds * os.sysconf("SC_CLK_TCK")
    while process.poll() is None and sum(map(int, seen.read_text().split()[13:15])) < ticks:
        time.sleep(0.01)


Done = subprocess.CompletedProcess[str]


def process(
    *args: object, stdin: str | None = None, cwd: Path | None = None, env: dict[str, str]
) -> Done:
    """Run the installed command in a process of its own."""
    return subprocess.run(
        [str(COMMAND), *map(str, args)],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=cwd,
        env=environment(**env),
    )


def here(
    *args: object, stdin: str | None = None, cwd: Path | None = None, merged: bool = False
) -> Done:
    """What the installed command calls, in this process: libraries need not be loaded anew.

    Merged, messages stand among the results in the order in which they were written.
    """
    arguments = ["cgprimer", *map(str, args)]
    given = io.TextIOWrapper(io.BytesIO((stdin or "").encode()), encoding="utf-8")
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with (
        mock.patch.object(sys, "argv", arguments),
        mock.patch.object(sys, "stdin", given),
        mock.patch.dict(os.environ, environment(), clear=True),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out if merged else err),
        contextlib.chdir(cwd or Path.cwd()),
        warnings.catch_warnings(action="default"),
        pytest.raises(SystemExit) as end,
    ):
        main()
    said = []
    for stream in (out, err):
        stream.flush()
        said.append(stream.buffer.getvalue().decode())  # type: ignore[attr-defined]
    assert isinstance(end.value.code, int)
    return Done(arguments, end.value.code, *said)


def run(*args: object, env: dict[str, str] | None = None, **settings: Any) -> Done:
    """Run ``cgprimer ARGS`` to its end; every run is checked for tracebacks.

    With an environment of its own it is the installed command, else a call in this process:
    ``test_the_installed_command_says_the_same`` compares the two.
    """
    done = here(*args, **settings) if env is None else process(*args, env=env, **settings)
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
