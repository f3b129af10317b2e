"""Every --help opens with examples, every example works, and none of it loads a library."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import cgprimer
from tests.cli.cli_tools import COMMAND, COMMANDS, environment, good, run


def examples_of(*command: str) -> list[str]:
    """The example lines of a help text, after a check of where they stand."""
    lines = good(*command, "--help").splitlines()
    assert lines[0].startswith("Usage: cgprimer")
    rest = [line.strip() for line in lines[1:] if line.strip()]
    start = rest.index("Examples:")
    sentence = " ".join(rest[:start])
    assert sentence.endswith("."), sentence
    assert ". " not in sentence, "the examples come after the first sentence"
    found = []
    for line in rest[start + 1 :]:
        if not line.startswith("cgprimer "):
            break
        found.append(line)
    assert found, f"no examples in the help of {command}"
    return found


def test_every_command_is_listed() -> None:
    text = good("--help")
    assert examples_of()
    for name in COMMANDS:
        assert f"\n  {name} " in text.split("Commands:")[1]


def test_no_arguments_show_the_help() -> None:
    done = run()
    assert "Commands:" in done.stdout + done.stderr


def test_short_help_and_version() -> None:
    assert good("-h") == good("--help")
    assert good("grad", "-h") == good("grad", "--help")
    assert cgprimer.__version__ in good("--version")


def test_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cgprimer", "grad", "-e", "xw = k*xa", "--at", "k=2,xa=3"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["xw = 6.0", "d xw / d k = 3.0"]


@pytest.mark.parametrize(
    ("line", "stdin"),
    [
        ("grad - --at xa=2", "xw = k*xa; parameter k = 3"),
        ("primitives logaddexp", None),  # as wide as a pipe lets it be
        ("data lecture --samples 3", None),
        ("train lecture --samples 60 --epochs 2 --json --engine numpy", None),
        ("grad -e xw=2xa", None),
        ("trace lecture --format word", None),
    ],
)
def test_the_installed_command_says_the_same(line: str, stdin: str | None, tmp_path: Path) -> None:
    """As the calls within the process of the tests, by which most of them run commands."""
    how = {"stdin": stdin, "cwd": tmp_path}
    installed, called = run(*line.split(), env={}, **how), run(*line.split(), **how)
    assert installed.returncode == called.returncode
    seconds = re.compile(r'"seconds": \S+|\b\d+(\.\d+)? [mµ]?s\b')
    for told, said in ((installed.stdout, called.stdout), (installed.stderr, called.stderr)):
        assert seconds.sub("", told) == seconds.sub("", said)


# Commands whose examples read what the examples of others write, as in a session at a terminal.
BEFORE = {"train": ("data",), "identifiability": ("data", "train")}


LONG = ("compare", "draw", "fit", "plot")  # every kind of plot has a test of its own


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] * (n in LONG)) for n in ["", *sorted(COMMANDS)]],
)
def test_every_example_works(name: str, tmp_path: Path) -> None:
    """In an empty folder, as somebody pastes it who has just installed the package."""
    names = (*BEFORE.get(name, ()), name)
    lines = dict.fromkeys(line for n in names for line in (examples_of(n) if n else examples_of()))
    assert lines
    failed = {}
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "cgprimer"
        done = run(*arguments, cwd=tmp_path)
        if done.returncode or "error" in done.stderr.lower():
            failed[line] = done.stderr
            continue
        for flag in ("-o", "--save", "--plot"):
            if flag in arguments:
                written = tmp_path / arguments[arguments.index(flag) + 1]
                assert written.stat().st_size > 0, line
    assert not failed
    assert not list(tmp_path.glob(".*")), "partial files were left behind"


LIBRARIES = {"numpy", "scipy", "sympy", "networkx", "matplotlib", "numba", "mpmath", "graphlay"}


def test_installed_command_loads_no_library() -> None:
    """From outside, over the script that pip wrote; test_architecture.py asks from within."""
    script = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name="
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", f"{script}'__main__')", str(COMMAND), "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    )
    loaded = {
        line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()
    }
    assert "click" in loaded
    assert not loaded & LIBRARIES


def test_the_kinds_of_plots_are_described_in_whole_sentences() -> None:
    text = good("plot", "--help")
    assert "..." not in text.partition("Commands:")[2]
    for name in cgprimer.plot.__all__:
        assert f"\n  {name} " in text


def test_help_names_the_default_limits_of_methods() -> None:
    from cgprimer.core.methods import path_sum, symbolic

    text = " ".join(good("grad", "--help").split())
    assert f"symbolic derivative (default: {symbolic.LIMIT})" in text
    assert f"path-sum (default: {path_sum.LIMIT})" in text


def test_help_of_train_fits_on_two_screens() -> None:
    assert len(good("train", "--help", env={"COLUMNS": "100"}).splitlines()) <= 100
