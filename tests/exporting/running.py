"""Exported files, run as their readers run them: in processes of their own."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

ENDINGS = {"c": ".c", "latex": ".tex"}
# A Python that has torch and jax, where this one has not.
OTHER = os.environ.get("CGPRIMER_REFERENCE_PYTHON")
COMPILE = ("gcc", "-std=c99", "-Wall", "-Wextra", "-Werror")


def python_for(target: str) -> str:
    """The Python that runs a target; the test skips where there is none."""
    if target in ("torch", "jax") and importlib.util.find_spec(target) is None:
        if OTHER is None:
            pytest.skip(f"{target} is not installed (CGPRIMER_REFERENCE_PYTHON may say where)")
        return OTHER
    return sys.executable


def run(
    text: str, target: str, folder: Path, name: str = "made"
) -> subprocess.CompletedProcess[str]:
    """Write a file, compile it if it is in C or LaTeX, and run it."""
    file = folder / f"{name}{ENDINGS.get(target, '.py')}"
    file.write_text(text, encoding="utf-8")
    if target == "python":  # with nothing but the standard library
        command = [sys.executable, "-I", "-S", file]
    elif target == "c":
        if shutil.which("gcc") is None:
            pytest.skip("there is no gcc")
        made = subprocess.run([*COMPILE, file, "-o", file.with_suffix(""), "-lm"],
                              capture_output=True, text=True, check=False)  # fmt: skip
        assert made.returncode == 0, made.stderr
        command = [file.with_suffix("")]
    elif target == "latex":
        if shutil.which("pdflatex") is None:
            pytest.skip("there is no pdflatex")
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", file.name]
    else:
        command = [python_for(target), file]
    return subprocess.run(
        map(str, command), capture_output=True, text=True, check=False, cwd=folder
    )


def right(text: str, target: str, folder: Path, name: str = "made") -> dict[str, float]:
    """Run a file that must find itself right; what it printed of its first point, by name."""
    done = run(text, target, folder, name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WRONG" not in done.stdout
    if target == "latex":
        return {}
    assert done.stdout.endswith("all checks passed\n")
    found: dict[str, float] = {}
    for line in done.stdout.splitlines()[:-1]:
        said = re.match(r"ok {4}point 0: (.+?) = ([^\[\]]+)$", line)
        if said:
            found[said[1]] = float(said[2])
    return found


_ALL = """
import contextlib, io, pathlib, runpy, sys
wrong = 0
for file in sorted(pathlib.Path(sys.argv[1]).glob("case*.py")):
    said, ended = io.StringIO(), "no exit"
    try:
        with contextlib.redirect_stdout(said):
            runpy.run_path(str(file), run_name="__main__")
    except SystemExit as error:
        ended = error.code
    except Exception as error:
        ended = repr(error)
    if ended:
        wrong += 1
        print(file, ended, said.getvalue())
sys.exit(wrong)
"""


def all_right(texts: Iterable[str], target: str, folder: Path) -> None:
    """Files that must all find themselves right, one after the other in one process."""
    for number, text in enumerate(texts):
        if target in ENDINGS:
            right(text, target, folder, f"case{number}")
        else:
            (folder / f"case{number}.py").write_text(text, encoding="utf-8")
    if target not in ENDINGS:
        command = [python_for(target), "-c", _ALL, str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
