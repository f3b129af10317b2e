"""Help and pages of the package: every command line that they show works."""

from __future__ import annotations

import ast
import json
import re
import shlex
import shutil
from functools import cache
from pathlib import Path

import pytest

import cgprimer
from cgprimer.cli import cli
from cgprimer.core.methods import path_sum, symbolic
from cgprimer.course.checks.engine_ladder import (
    STAGES,
    build_engine_skeleton,
    read_stage_page,
)
from tests.checking.submissions import read_submissions
from tests.cli.cli_tools import EXAMPLES, good, here, run

PACKAGE = Path(cgprimer.__file__).parent
PAGES = sorted(path for path in PACKAGE.rglob("*.*") if path.suffix in (".md", ".html", ".txt"))
SPAN = re.compile(r"`(cgprimer [^`]+)`")
LINE = re.compile(r"^[ \t#>]*[$!%]?[ \t]*(cgprimer [a-z].*)$", re.MULTILINE)
SENTENCE = re.compile(r"[:(] (cgprimer [a-z][^\"\n)]*)")
GRADIENT = """
def gradient(xa, ab, bc, cd, ac):
    xx = xa**2
    xz = bc*xx + ab*xx + ac*xa
    return {"ab": 3*xz**2*xx, "bc": 3*xz**2*xx, "cd": xx, "ac": 3*xz**2*xa}
"""
SUBMISSIONS = {  # what a student has written into the files that examples begin with a skeleton
    "engine.py": read_submissions("engines.txt")[0][0].source,
    "gradient.py": GRADIENT,
    **{f"{one.template}.py": one.source for one in read_submissions("optimizers.txt")[0]},
}
FILES = {("check", "engine"): "engine.py", ("check", "optimizer"): "adam.py"}  # in place of FILE
# Commands whose examples read what the examples of others write, as in a session at a terminal.
BEFORE = {("train",): [("data",)], ("identifiability",): [("data",), ("train",)]}
SLOW = {
    "check", "compare", "draw", "ensemble", "exercise", "fit", "identifiability", "plot", "predict",
    "step", "sweep", "train",
}  # fmt: skip


@cache
def help_of(*path: str) -> str:
    """Return the help of a command without the line about its usage."""
    return good(*path, "--help").partition("\n")[2]


COMMANDS: list[tuple[str, ...]] = [()]
for name, command in cli.commands.items():
    COMMANDS += [(name,), *((name, kind) for kind in getattr(command, "commands", {}))]


def command_lines(text: str) -> list[str]:
    """Return the commands in a text, each once."""
    lines = [match[1] for pattern in (SPAN, LINE, SENTENCE) for match in pattern.finditer(text)]
    return list(dict.fromkeys(line.rstrip("`. ") for line in lines))


def completed(words: list[str]) -> list[str]:
    """Return a command with a file for ``FILE``; with ``--help`` if only a command is named."""
    if tuple(words) in COMMANDS:
        return [*words, "--help"]
    file = FILES.get((*words[:2],), "lecture")
    return [file if word == "FILE" else word for word in words]


def failures(text: str, folder: Path) -> list[str]:
    """Run the commands of a page one after the other; return those that fail, with messages."""
    failed = []
    for line in command_lines(text):
        command, _, target = line.partition(" > ")
        words = completed(shlex.split(command)[1:])
        process = run(*words, cwd=folder)
        if process.returncode or "error:" in process.stderr.lower():
            failed.append(f"{line}\n{process.stdout}{process.stderr}")
        for flag in {"-o", "--save", "--plot"} & set(words) if not process.returncode else ():
            assert (folder / words[words.index(flag) + 1]).stat().st_size > 0, line
        if target:
            ast.parse(process.stdout)
            (folder / target).write_text(SUBMISSIONS.get(target, process.stdout))
    assert not list(folder.rglob("*.part")), "partial files were left behind"
    return failed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the submissions of a student."""
    for name, text in SUBMISSIONS.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture(scope="module")
def homework(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that ``cgprimer exercise`` writes for a class."""
    folder = tmp_path_factory.mktemp("class")
    good("exercise", "lecture", "--format", "html", "-o", "homework", cwd=folder)
    return folder / "homework"


def test_help_lists_every_command_and_its_limits() -> None:
    text = good("-h")
    assert text == good("--help")
    assert len(COMMANDS) > 40
    for path in COMMANDS:
        listed = re.findall(r"^  (\S+) ", help_of(*path).partition("Commands:")[2], re.MULTILINE)
        assert [(*path, name) for name in listed] == [p for p in COMMANDS if p[:-1] == path and p]
    assert "..." not in help_of("plot").partition("Commands:")[2]
    process = run()
    assert "Commands:" in process.stdout + process.stderr
    assert cgprimer.__version__ in good("--version")
    text = " ".join(good("grad", "-h").split())
    assert f"symbolic derivative (default: {symbolic.LIMIT})" in text
    assert f"path-sum (default: {path_sum.LIMIT})" in text


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=[pytest.mark.slow] * (not p or p[0] in SLOW)) for p in COMMANDS],
    ids=" ".join,
)
def test_examples_follow_the_first_sentence_of_the_help_and_work(
    path: tuple[str, ...], folder: Path, homework: Path
) -> None:
    lines = [line.strip() for line in help_of(*path).splitlines() if line.strip()]
    sentence = " ".join(lines[: lines.index("Examples:")])
    assert sentence.endswith(".")
    assert ". " not in sentence
    if path[:1] == ("check",):
        for name in ("submissions", "answers"):
            (folder / name).mkdir()
        shutil.copytree(homework, folder / "homework")
        shutil.copy(homework / "students" / "sheet.csv", folder / "answers")
        submission = SUBMISSIONS.get(f"{path[-1]}.py", SUBMISSIONS["adam.py"])
        (folder / "submissions" / "ann.py").write_text(submission)
    texts = [help_of(*p).partition("Examples:")[2] for p in (*BEFORE.get(path, []), path)]
    examples = "\n".join(text.partition("\n\n")[0] for text in texts)
    assert command_lines(examples)
    assert failures(examples, folder) == []


@pytest.mark.slow
def test_commands_of_pages_skeletons_exercises_and_notebooks_work(
    folder: Path, homework: Path
) -> None:
    assert sum(len(command_lines(read_stage_page(stage.number))) for stage in STAGES) >= 8
    texts = [build_engine_skeleton(stage) for stage in (None, 1, len(STAGES))]
    texts += [
        good("check", "optimizer", "--optimizer", rule, "--skeleton") for rule in ("sgd", "adam")
    ]
    sheets = [p for p in homework.rglob("*.*") if p.suffix in (".md", ".html", ".txt", ".csv")]
    texts += [path.read_text(encoding="utf-8") for path in (*PAGES, *sheets)]
    for path in sorted(EXAMPLES.rglob("*.ipynb")):
        texts += ["".join(cell["source"]) for cell in json.loads(path.read_text("utf-8"))["cells"]]
    assert [failed for text in texts for failed in failures(text, folder)] == []


@pytest.mark.parametrize(
    ("line", "stdin"),
    [
        ("grad - --at xa=2", "xw = k*xa; parameter k = 3"),
        ("primitives nosuch", None),
    ],
)
def test_the_installed_command_prints_the_same(
    line: str, stdin: str | None, tmp_path: Path
) -> None:
    """Most tests call the command line in their own process."""
    installed = run(*line.split(), env={}, stdin=stdin, cwd=tmp_path)
    called = here(*line.split(), stdin=stdin, cwd=tmp_path)
    assert (installed.returncode, installed.stdout) == (called.returncode, called.stdout)
    assert installed.stderr == called.stderr
