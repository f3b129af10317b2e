"""Every command that a page of the package shows can be run as it stands there.

Commands are taken from the pages: those of the ladder, the help of subcommands, skeletons, exercise
sheets, notebooks, and any other text in the package. The examples at the top of each command's
help are run in ``test_help``, the files under ``docs`` in ``tests/docs``.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import cgprimer
from cgprimer.course.checks.engine_ladder import (
    STAGES,
    build_engine_skeleton,
    read_stage_page,
)
from cgprimer.course.checks.optimizer_check import OPTIMIZER_NAMES
from tests.checking.ladder_mistakes import SOLUTION
from tests.checking.student_optimizers import ARGUMENTS, BODIES, source
from tests.cli.cli_tools import EXAMPLES, here, run

PACKAGE = Path(cgprimer.__file__).parent
PAGES = sorted(path for end in ("md", "html", "txt") for path in PACKAGE.rglob(f"*.{end}"))
SPAN = re.compile(r"`(cgprimer [^`]+)`")
LINE = re.compile(r"^[ \t#>]*[$!%]?[ \t]*(cgprimer [a-z].*)$", re.MULTILINE)
SENTENCE = re.compile(r"[:(] (cgprimer [a-z][^\"\n)]*)")

_GRADIENT = """
def gradient(xa, ab, bc, cd, ac):
    xx = xa**2
    xz = bc*xx + ab*xx + ac*xa
    return {"ab": 3*xz**2*xx, "bc": 3*xz**2*xx, "cd": xx, "ac": 3*xz**2*xa}
"""
#: What a student has written into the files that examples begin with a skeleton.
WRITTEN = {
    "engine.py": SOLUTION,
    "gradient.py": _GRADIENT,
    **{
        f"{rule}.py": source(rule, "dict in place", BODIES[rule][0], ARGUMENTS[rule][0])
        for rule in BODIES
    },
}
#: The file that stands for ``FILE``, by the command.
FILES = {("check", "engine"): "engine.py", ("check", "optimizer"): "adam.py"}


@cache
def help_of(*path: str) -> str:
    """The help of a command, without the line about its usage."""
    return here(*path, "--help").stdout.partition("\n")[2]


def subcommands(*path: str) -> Iterator[tuple[str, ...]]:
    """Every command below a command, with the words that call it."""
    _, listed, names = help_of(*path).partition("Commands:")
    for name in re.findall(r"^  (\S+) ", names, re.MULTILINE) if listed else ():
        yield (*path, name)
        yield from subcommands(*path, name)


COMMANDS = list(subcommands())
GROUPED = [path for path in COMMANDS if len(path) > 1]


def shown(text: str) -> list[str]:
    """The commands in a text, each once."""
    every = [one[1] for pattern in (SPAN, LINE, SENTENCE) for one in pattern.finditer(text)]
    return list(dict.fromkeys(line.rstrip("`. ") for line in every))


def completed(words: list[str]) -> list[str]:
    """A command with a file for ``FILE``; of a mention of a command alone, its help."""
    if tuple(words) in COMMANDS:
        return [*words, "--help"]
    file = FILES.get(tuple(words[:2]), "lecture")
    return [file if word == "FILE" else word for word in words]


def follow(text: str, folder: Path) -> list[str]:
    """Run the commands of a page one after the other; the lines that fail, with their messages."""
    failed = []
    for line in shown(text):
        command, _, target = line.partition(" > ")
        done = run(*completed(shlex.split(command)[1:]), cwd=folder)
        if done.returncode:
            failed.append(f"{line}\n{done.stdout}{done.stderr}")
        if target:
            ast.parse(done.stdout)
            (folder / target).write_text(WRITTEN.get(target, done.stdout))
    return failed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with what a student has written, submissions of a class, and an exercise."""
    for name, text in WRITTEN.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture(scope="module")
def homework(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``cgprimer exercise`` writes for a class."""
    folder = tmp_path_factory.mktemp("class")
    done = run("exercise", "lecture", "--format", "html", "-o", "homework", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "homework"


def test_commands_are_recognised() -> None:
    text = "Type `cgprimer draw lecture`.\n\n    $ cgprimer info\n! cgprimer grad -e a\n"
    assert shown(text) == ["cgprimer draw lecture", "cgprimer info", "cgprimer grad -e a"]
    assert ("check", "engine") in GROUPED
    assert completed(["check", "engine"]) == ["check", "engine", "--help"]
    assert completed(["check", "engine", "FILE"]) == ["check", "engine", "engine.py"]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_pages_of_the_package(path: Path, folder: Path) -> None:
    assert not follow(path.read_text(encoding="utf-8"), folder)


def test_the_ladder_shows_commands() -> None:
    pages = [shown(read_stage_page(stage.number)) for stage in STAGES]
    assert sum(map(len, pages)) >= 8


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=[pytest.mark.slow] * (p[0] == "plot")) for p in GROUPED],
    ids=" ".join,
)
def test_help_of_subcommands(path: tuple[str, ...], folder: Path, homework: Path) -> None:
    examples = help_of(*path)
    lines = [line for line in shown(examples) if not line.endswith("--help")]
    for name in ("submissions", "answers"):
        (folder / name).mkdir()
    shutil.copytree(homework, folder / "homework")
    shutil.copy(homework / "students" / "sheet.csv", folder / "answers")
    own = WRITTEN.get(f"{path[-1]}.py", WRITTEN["adam.py"])
    (folder / "submissions" / "ann.py").write_text(own)
    assert lines, f"no examples in the help of {path}"
    assert not follow(examples, folder)


@pytest.mark.parametrize("stage", [None, *range(1, len(STAGES) + 1)])
def test_skeletons_of_engines(stage: int | None, folder: Path) -> None:
    assert not follow(build_engine_skeleton(stage), folder)


@pytest.mark.parametrize("rule", OPTIMIZER_NAMES)
def test_skeletons_of_optimizers(rule: str, folder: Path) -> None:
    text = run("check", "optimizer", "--optimizer", rule, "--skeleton").stdout
    assert shown(text)
    assert not follow(text, folder)


def test_exercise_pages(homework: Path, folder: Path) -> None:
    for path in homework.rglob("*.*"):
        if path.suffix in (".md", ".html", ".tex", ".txt", ".csv"):
            assert not follow(path.read_text(encoding="utf-8"), folder), path


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.ipynb")), ids=lambda path: path.stem)
def test_commands_of_notebooks(path: Path, folder: Path) -> None:
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        assert not follow("".join(cell["source"]), folder)
