"""``cgprimer plot``: every example of every kind, and what is said to mistakes."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

import pytest
from cli_tools import EXAMPLES, LECTURE

from cgprimer.cli import main
from cgprimer.cli.plot import command

KINDS = tuple(command.commands)


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["cgprimer", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_the_kinds() -> None:
    assert KINDS == ("error", "loss", "cost", "swell", "surface", "function")


@pytest.mark.parametrize("kind", KINDS)
def test_every_example_works(
    kind: str, workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = command.commands[kind].help or ""
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith("cgprimer ")]
    assert len(lines) > 1
    for line in lines:
        arguments = shlex.split(line)[1:]
        assert call(monkeypatch, *arguments) == 0, capsys.readouterr().err
        if "-o" in arguments:
            path = arguments[arguments.index("-o") + 1]
            assert (workplace / path).stat().st_size > 5_000
            shown = capsys.readouterr()
            assert shown.err.endswith(f"wrote {path}\n")
    assert not list(workplace.glob(".*"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["error", "-e", "xw = sin(xa)", "-o", "a.png"], "no value"),
        (["error", "-e", "xw = abs(xa)", "--at", "xa=0", "-o", "a.png"], "no exact derivative"),
        (["error", "-o", "a.png"], "which graph"),
        (["error", "-e", "xw = sin(xa)", "--at", "xa=1", "-o", "a.jpg"], ".pdf"),
        (["error", "-e", "xw = sin(xa)", "--at", "xa=1", "-o", "no/a.png"], "no/a.png"),
        (["error", "-e", "xw = sin(xa)", "--at", "xa=1"], "-o"),
        (["loss", "nowhere.json", "-o", "a.png"], "cannot read nowhere.json"),
        (["loss", "-o", "a.png"], "RUN"),
        (["cost", "--sizes", "1,x", "-o", "a.png"], "'x'"),
        (["cost", "--methods", "backward", "-o", "a.png"], "backward"),
        (["cost", "--bound", "0", "--sizes", "1", "-o", "a.png"], "bound"),
        (["swell", "--family", "sum", "-o", "a.png"], "sum"),
        (["surface", "-e", "xw = k*xa", "--at", "k=1", "-o", "a.png"], "two different"),
        (["surface", LECTURE, "--over", "ab,xa", "-o", "a.png"], "no parameter 'xa'"),
        (["surface", LECTURE, "--range", "1-2", "-o", "a.png"], "LOW:HIGH"),
        (["surface", LECTURE, "--data", "no.csv", "-o", "a.png"], "no.csv"),
        (["function", "-e", "xw = k*xa", "-o", "a.png"], "'k'"),
        (["function", "-e", "xw = xa", "--range", "2:1", "-o", "a.png"], "ascend"),
        (["functoin", "-o", "a.png"], "functoin"),
    ],
)
def test_mistakes(
    arguments: list[object],
    words: str,
    workplace: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = sorted(workplace.iterdir())
    assert call(monkeypatch, "plot", *arguments) in (1, 2)
    shown = capsys.readouterr()
    assert words in shown.err
    assert "defect" not in shown.err
    assert shown.out == ""
    assert sorted(workplace.iterdir()) == before, "a file was left behind"


def test_learnt_parameters_and_optimizers_are_options(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for options in (
        ["--optimizers", "none"],
        ["--optimizers", "adam,sgd", "--start", "ab=0,cd=1", "--range", "-1:3", "--range", "0:5"],
    ):
        arguments = ["plot", "surface", LECTURE, "--over", "ab,cd", "-o", "a.png", *options]
        assert call(monkeypatch, *arguments) == 0
