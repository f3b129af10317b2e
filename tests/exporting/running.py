"""Run exported files: in this process, or as their readers run them."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

ENDINGS = {"c": ".c", "latex": ".tex"}
# A Python that has torch and jax, if this one has not.
OTHER = os.environ.get("CGPRIMER_REFERENCE_PYTHON")
COMPILE = ("gcc", "-std=c99", "-Wall", "-Wextra", "-Werror")


def python_for(target: str) -> str:
    """Return the Python that runs a target; skip the test if there is none."""
    if target in ("torch", "jax") and importlib.util.find_spec(target) is None:
        if OTHER is None:
            pytest.skip(f"{target} is not installed (CGPRIMER_REFERENCE_PYTHON may name a Python)")
        return OTHER
    return sys.executable


def run_file(
    text: str, target: str, folder: Path, name: str = "exported"
) -> subprocess.CompletedProcess[str]:
    """Write a file, compile it if it is in C or LaTeX, and run it in a process."""
    file = folder / f"{name}{ENDINGS.get(target, '.py')}"
    file.write_text(text, encoding="utf-8")
    if target == "python":  # with nothing but the standard library
        command = [sys.executable, "-I", "-S", file]
    elif target == "c":
        if shutil.which("gcc") is None:
            pytest.skip("gcc is not installed")
        done = subprocess.run([*COMPILE, file, "-o", file.with_suffix(""), "-lm"],
                              capture_output=True, text=True, check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
        command = [file.with_suffix("")]
    elif target == "latex":
        if shutil.which("pdflatex") is None:
            pytest.skip("pdflatex is not installed")
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", file.name]
    else:
        command = [python_for(target), file]
    return subprocess.run(
        map(str, command), capture_output=True, text=True, check=False, cwd=folder
    )


def run(
    text: str, target: str, folder: Path, name: str = "exported"
) -> subprocess.CompletedProcess[str]:
    """Run a file, in this process if possible, which takes milliseconds."""
    if target in ENDINGS or python_for(target) != sys.executable:
        return run_file(text, target, folder, name)
    output, names = io.StringIO(), dict[str, Any](__name__="exported")
    with contextlib.redirect_stdout(output):
        exec(compile(text, name, "exec"), names)  # noqa: S102 - exported by the test
        code = names["main"]()
    return subprocess.CompletedProcess(name, code, output.getvalue(), "")


def run_correct(text: str, target: str, folder: Path, name: str = "exported") -> dict[str, float]:
    """Run a file that must accept its results; return the scalars at its first point, by name."""
    done = run(text, target, folder, name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WRONG" not in done.stdout
    if target == "latex":
        return {}
    assert done.stdout.endswith("all checks passed\n")
    lines = re.findall(r"^ok {4}point 0: (.+?) = ([^\[\]\n]+)$", done.stdout, re.MULTILINE)
    return {name: float(value) for name, value in lines}


_ALL = """
import contextlib, io, pathlib, runpy, sys
wrong = 0
for file in sorted(pathlib.Path(sys.argv[1]).glob("case*.py")):
    output, end = io.StringIO(), "no exit"
    try:
        with contextlib.redirect_stdout(output):
            runpy.run_path(str(file), run_name="__main__")
    except SystemExit as error:
        end = error.code
    except Exception as error:
        end = repr(error)
    if end:
        wrong += 1
        print(file, end, output.getvalue())
sys.exit(wrong)
"""


def run_all_correct(texts: Iterable[str], target: str, folder: Path) -> None:
    """Run files that must accept their results, one after the other in one process."""
    for number, text in enumerate(texts):
        if target in ENDINGS:
            run_correct(text, target, folder, f"case{number}")
        else:
            (folder / f"case{number}.py").write_text(text, encoding="utf-8")
    if target not in ENDINGS:
        command = [python_for(target), "-c", _ALL, str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
