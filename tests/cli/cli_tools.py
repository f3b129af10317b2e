"""Run the command ``cgprimer``, and check what it must never print."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from cgprimer.cli import main

COMMAND = Path(sys.executable).with_name("cgprimer")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LECTURE = EXAMPLES / "lecture.cg"


def environment(**extra: str) -> dict[str, str]:
    """Return the caller's environment without variables that change how messages look."""
    dropped = ("NO_COLOR", "FORCE_COLOR", "CGPRIMER_DEBUG", "PYTHONWARNINGS", "COLUMNS")
    return {k: v for k, v in os.environ.items() if k not in dropped} | extra


def without_times(text: str) -> str:
    """Return a report without times, and without numbers that are rounding errors."""
    text = re.sub(r"\d+\.\d+ s;", "TIME s;", text)
    return re.sub(r"\d+(\.\d+)?e-\d+", "SMALL", text)


def write_package(
    folder: Path, module: str, source: str, groups: Mapping[str, Mapping[str, str]]
) -> None:
    """Write a module with entry points into a folder for PYTHONPATH, as pip installs it.

    Args:
        folder: the folder.
        module: name of the module and of the package.
        source: the text of the module.
        groups: entry points by group and name.
    """
    (folder / f"{module}.py").write_text(source, encoding="utf-8")
    metadata = folder / f"{module}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    lines = []
    for group, points in groups.items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines))


def computed(process: subprocess.Popen[str], seconds: float) -> None:
    """Wait until a process has used this much processor time: a busy machine is slower."""
    seen = Path(f"/proc/{process.pid}/stat")
    ticks = seconds * os.sysconf("SC_CLK_TCK")
    while process.poll() is None and sum(map(int, seen.read_text().split()[13:15])) < ticks:
        time.sleep(0.01)


@contextlib.contextmanager
def vectors_of(bits: str) -> Iterator[None]:
    """Use vectors of a number of bits, as a process does that starts with the setting."""
    from cgprimer.backends.cpu.llvm_library import VECTORS, get_target_processor

    get_target_processor.cache_clear()
    try:
        with mock.patch.dict(os.environ, {VECTORS: bits}):
            yield
    finally:
        get_target_processor.cache_clear()


Done = subprocess.CompletedProcess[str]


def process(
    *args: object, stdin: str | None = None, cwd: Path | None = None, env: dict[str, str]
) -> Done:
    """Run the installed command in a separate process."""
    return subprocess.run(
        [str(COMMAND), *map(str, args)], input=stdin or "", capture_output=True, text=True,
        timeout=60, check=False, cwd=cwd, env=environment(**env),
    )  # fmt: skip


def here(
    *args: object, stdin: str | None = None, cwd: Path | None = None, merged: bool = False
) -> Done:
    """Run the command line in this process, where libraries are already loaded.

    With ``merged``, standard output contains the messages in the order in which they were written.
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
    """Run ``cgprimer ARGS`` to its end, and check that no traceback is printed.

    With ``env``, the installed command runs in a separate process.
    """
    done = here(*args, **settings) if env is None else process(*args, env=env, **settings)
    assert "Traceback" not in done.stderr + done.stdout, done.stderr
    assert "this is a defect" not in done.stderr, done.stderr
    return done


def good(*args: object, **settings: Any) -> str:
    """Return the standard output of a run that must succeed."""
    done = run(*args, **settings)
    assert done.returncode == 0, done.stderr
    return done.stdout


def read_json(*args: object, **settings: Any) -> Any:
    """Return the JSON that a run prints; NaN and Infinity are not JSON."""

    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is not JSON")

    return json.loads(good(*args, "--json", **settings), parse_constant=refuse)


def bad(*args: object, code: int = 2, **settings: Any) -> str:
    """Return the standard error of a run that must fail without standard output."""
    done = run(*args, **settings)
    assert done.returncode == code, (done.returncode, done.stderr)
    assert done.stdout == ""
    assert done.stderr.strip()
    assert "\x1b" not in done.stderr
    return done.stderr
