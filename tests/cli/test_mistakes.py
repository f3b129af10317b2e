"""Wrong use: exit code 2, one readable message on standard error, nothing on standard output."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.approval import approved
from tests.cli.cli_tools import LECTURE, bad, run

WRONG = {
    "unknown command": (["nosuch"], "unknown command 'nosuch'", "cgprimer --help"),
    "mistyped check": (["check", "gradent"], "unknown command 'gradent'", "mean 'gradient'"),
    "mistyped command": (["gard", LECTURE], "unknown command 'gard'", "did you mean 'grad'"),
    "no kind of plot": (
        ["plot", "lecture"],
        "unknown command 'lecture'",
        "give a command before the FILE",
    ),
    "a method as file": (
        ["grad", "forward"],
        "file 'forward' does not exist",
        "did you mean --method forward?",
    ),
    "an option as file": (
        ["draw", "adjoints"],
        "file 'adjoints' does not exist",
        "did you mean --adjoints?",
    ),
    "a long text as file": (["grad", "xw = xa" + " + xa" * 99], "cannot read xw", "with -e"),
    "a long text alone": (["xw = xa" + " + xa" * 99], "unknown command 'xw"),
    "unknown option": (["grad", LECTURE, "--foo"], "--foo"),
    "one dash": (["train", LECTURE, "-epochs", "3"], "No such option '-epochs'", "'--epochs'"),
    "values apart": (["grad", LECTURE, "--wrt", "xa", "ab"], "(ab); values", "joined by commas"),
    "option without value": (["grad", LECTURE, "--method"], "--method", "argument"),
    "missing file": (["grad", "nosuch.cg"], "cannot read nosuch.cg", "No such file"),
    "text as file": (
        ["grad", "xw = xa^2"],
        "cannot read xw = xa^2",
        "hint: pass expressions",
        "-e",
    ),
    "function without operand": (["grad", "-e", "xw = sin*2"], "call the function: sin(...)"),
    "no graph": (["grad"], "missing graph", "-e TEXT"),
    "file and text": (["grad", LECTURE, "-e", "xw=1"], "not both"),
    "two files": (["grad", LECTURE, LECTURE], "argument"),
    "unfinished": (["grad", "-e", "xw = 1 +"], "<command line>:1:9", "xw = 1 +\n", " ^\n"),
    "unknown function": (["grad", "-e", "xw = tahn(xa)"], ":1:6", "^^^^", "'tanh'"),
    "missing star": (["grad", "-e", "xw = 2xa"], "<command line>:1:6", "^^^", "2*xa"),
    "cycle": (["info", "-e", "xa = xb; xb = xa"], "xa -> xb -> xa", "^"),
    "missing value": (
        ["grad", "-e", "xw = k*xa", "--at", "k=2"],
        "missing value for xa",
        "--at xa=",
    ),
    "at without =": (["grad", LECTURE, "--at", "xa"], "--at", "NAME=VALUE", "'xa'"),
    "at without name": (["grad", LECTURE, "--at", "=1"], "--at", "NAME=VALUE"),
    "at no number": (["grad", LECTURE, "--at", "xa=abc"], "--at", "'abc'", "not a number"),
    "at twice": (["grad", LECTURE, "--at", "xa=1,xa=2"], "xa is given twice"),
    "a list without brackets": (
        ["grad", LECTURE, "--at", "xa=1,2"],
        "got '2'; write a list in brackets: xa=[1,2]",
    ),
    "at twice over options": (["grad", LECTURE, "--at", "xa=1", "--at", "xa=2"], "given twice"),
    "at unknown name": (["grad", LECTURE, "--at", "xq=1"], "'xq'"),
    "at computed": (["grad", LECTURE, "--at", "xx=1"], "cannot set 'xx'"),
    "foreign option": (["grad", LECTURE, "--step", "1e-3"], "--step requires --method finite"),
    "foreign switch": (["grad", LECTURE, "--no-symbolic-share"], "requires --method symbolic"),
    "unknown method": (["grad", LECTURE, "--method", "forwards"], "'forwards'", "reverse"),
    "unknown engine": (["grad", LECTURE, "--engine", "abacus"], "engine 'abacus'", "numpy"),
    "unknown of": (["grad", LECTURE, "--of", "xq"], "'xq'"),
    "unknown wrt": (["grad", LECTURE, "--wrt", "xq"], "'xq'"),
    "show with unknown wrt": (["grad", LECTURE, "--wrt", "xq", "--show"], "'xq'"),
    "unknown format": (["trace", LECTURE, "--format", "word"], "'word'", "markdown"),
    "reverse with wrt": (["trace", LECTURE, "--method", "reverse", "--wrt", "xa"], "reverse"),
    "unknown primitive": (["primitives", "tahn"], "'tahn'", "'tanh'"),
    "unknown picture": (["draw", LECTURE, "-o", "a.gif"], "a.gif", ".png, .svg, .pdf"),
    "picture nowhere": (["draw", LECTURE, "-o", "nosuch/a.png"], "nosuch"),
    "unknown table": (["data", LECTURE, "-o", "a.txt"], "a.txt", ".csv, .npz or .parquet"),
    "no truth": (["data", "-e", "xw = k*xa"], "missing ground-truth value for k", "--truth"),
    "unknown truth": (["data", LECTURE, "--truth", "zz=1"], "unknown parameter 'zz'"),
    "no samples": (["data", LECTURE, "--samples", "0"], "--samples"),
    "bounds swapped": (["data", LECTURE, "--low", "1", "--high", "0"], "low must not exceed high"),
    "domain": (["data", "-e", "xw = k*log(xa)", "--truth", "k=1"], "'xw' is nan", "--low"),
    "batch size": (["train", LECTURE, "--batch-size", "0"], "--batch-size", "'all'"),
    "data missing": (["train", LECTURE, "--data", "nosuch.csv"], "cannot read nosuch.csv"),
    "data and truth": (["train", LECTURE, "--data", "a.csv", "--truth", "ab=1"], "--truth"),
    "unknown loss": (["train", LECTURE, "--loss", "squared-eror"], "'squared-error'"),
    "loss of nothing": (["train", LECTURE, "--loss", "target^2"], "out"),
    "unknown start": (["train", LECTURE, "--start", "zz=1"], "unknown parameter 'zz'"),
    "no parameters": (["train", "-e", "xw = 2*xa"], "no parameters to train"),
    "values as definitions": (["grad", "-e", "a = 1; xw = 2*a"], "parameter ab = 1"),
    "rate": (["train", LECTURE, "--learning-rate", "-1"], "must be positive"),
    "a word of other libraries": (["train", LECTURE, "--lr", "0.1"], "mean '--learning-rate'"),
    "no rule for batches": (["train", LECTURE, "--optimizer", "gauss-newton"], "cgprimer fit"),
    "start out of bounds": (
        ["train", LECTURE, "--freeze", "cd", "--bounds", "cd=0:1"],
        "start value 3 of cd",
    ),
    "resume missing": (["train", LECTURE, "--resume", "nosuch.json"], "cannot read nosuch.json"),
}


@pytest.mark.parametrize(("args", "fragments"), [(v[0], v[1:]) for v in WRONG.values()], ids=WRONG)
def test_wrong_use(args: list[str], fragments: tuple[str, ...], tmp_path: Path) -> None:
    message = bad(*args, cwd=tmp_path)
    for fragment in fragments:
        assert fragment in message
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["train", "draw", "grad"])
def test_folder_and_binary_file(command: str, tmp_path: Path) -> None:
    assert str(tmp_path) in bad(command, tmp_path)
    binary = tmp_path / "graph.cg"
    binary.write_bytes(bytes(range(256)))
    message = bad(command, binary, cwd=tmp_path)
    assert str(binary) in message
    assert [p.name for p in tmp_path.iterdir()] == ["graph.cg"]


@pytest.mark.parametrize("command", ["train", "draw", "grad", "trace", "compare", "data"])
def test_an_empty_file_is_named_as_such(command: str, tmp_path: Path) -> None:
    empty = tmp_path / "empty.cg"
    empty.write_text("")
    message = bad(command, empty, cwd=tmp_path)
    assert "graph" in message or "empty" in message or "column" in message, message
    assert [p.name for p in tmp_path.iterdir()] == ["empty.cg"]


def test_empty_standard_input() -> None:
    approved(bad("grad", "-", stdin=""), "<stdin>")


def test_syntax_error_in_a_file_points_at_the_place(tmp_path: Path) -> None:
    path = tmp_path / "wrong.cg"
    path.write_text("# a comment\nxa = 1\nxw = (2*xa + 1\n")
    message = bad("grad", path)
    assert f"{path}:3:" in message
    lines = message.splitlines()
    caret = next(i for i, line in enumerate(lines) if set(line.strip()) == {"^"})
    assert lines[caret - 1].strip() == "xw = (2*xa + 1"


def test_syntax_error_on_standard_input() -> None:
    message = bad("grad", "-", stdin="xa = = 1")
    assert ":1:6" in message
    assert "xa = = 1" in message


def test_malformed_data_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("xa,xw\n1,2\n3,oops\n")
    message = bad("train", LECTURE, "--data", path)
    assert f"{path}:3" in message
    assert "'oops'" in message
    path.write_text("xb,xw\n1,2\n")
    assert "'xa'" in bad("train", LECTURE, "--data", path)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "1", json.dumps({"format": "other"})])
def test_resume_from_something_else(text: str, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(text)
    approved(bad("train", LECTURE, "--resume", path))


def test_a_failed_job_is_exit_code_1() -> None:
    message = bad(
        "train", "-e", "xw = k*xa; parameter k = 1", "--optimizer", "sgd", "--learning-rate",
        "1e300", "--batch-size", "all", code=1,
    )  # fmt: skip
    assert "step" in message
    assert "--learning-rate" in message


def test_defects_show_their_traceback_only_on_request() -> None:
    done = run("grad", LECTURE, env={"CGPRIMER_DEBUG": "1"})
    assert done.returncode == 0


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no such device")
def test_files_without_an_end_are_refused() -> None:
    approved(bad("grad", "/dev/zero"))


@pytest.mark.skipif(not Path("/dev/stdin").exists(), reason="no such device")
@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_pipes_are_read(name: str) -> None:
    text = "input x = 2\r\ny = x^2\n"
    done = subprocess.run(
        [sys.executable, "-m", "cgprimer", "grad", name, "--wrt", "x"],
        input=text.encode(), capture_output=True, check=True,
    )  # fmt: skip
    assert b"d y / d x = 4.0" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("grad", "-e", "xw = xa + concatenate(2, 3)", "--at", "xa=1", "--wrt", "xa"), ""),
        (("trace", "-e", "xw = concatenate(xa, 2, 3, -1)", "--at", "xa=1"), ""),
        (("grad", "-e", "input x[2]; xw = sum(x, 1/0)", "--at", "x=1"), "integers"),
        (("check", "formula", "lecture", "1,2,3,4", "--at", "xa=0:1:3"), ""),
        (("check", "formula", "lecture", "1,2,3,4", "--of", "xw", "--at", "xa=inf"), "finite"),
        (("check", "formula", "d(x) = 1", "--at", "x=0:1:3"), ""),
        (("check", "formula", "d(x) = 1", "--at", "x=inf"), "finite"),
    ],
)
def test_a_mistake_is_no_defect_of_the_package(arguments: tuple[str, ...], said: str) -> None:
    shown = bad(*arguments)
    approved(shown, said)
    assert "defect" not in shown
