"""Programs and tables in text files: templates of right programs, and the lines that are changed.

A file has sections that begin with ``=== title``. The title of a template is ``name: settings``, a
Python dictionary, and its right program follows. Every ``--- mistake: note`` below it is a wrong
program. ``-`` lines are the text that ``+`` lines replace, wherever it is; a program may have
several such changes. ``+`` lines alone come at the end.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent


@dataclass(frozen=True, eq=False)
class Submission:
    """A program of a student: its mistake, the name that checks give, a note, and its source.

    The title ``b as a`` stands for a mistake b that no test can tell from a likelier mistake a:
    the check names a, and lists b as another possible mistake.
    """

    template: str
    mistake: str
    named: str
    note: str
    source: str
    settings: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.template}: {self.mistake}: {self.note}"

    def define(self) -> dict[str, Any]:
        """Return the names that the program defines."""
        return define_names(self.source)


def define_names(source: str) -> dict[str, Any]:
    """Return the names that a source defines, as a notebook has them."""
    names: dict[str, Any] = {"__name__": "student", **vars(math)}
    exec(compile(source, "student.py", "exec"), names)  # noqa: S102
    return names


def compute(expression: str, **names: Any) -> Any:
    """Return the value of an expression in Python with some names, and those of math."""
    return eval(expression, vars(math) | names)  # noqa: S307


def change(source: str, changes: str) -> str:
    """Return a source with changes of the form above."""
    for old, new in re.findall(r"((?:^-.*\n?)*)((?:^\+.*\n?)*)", changes, re.MULTILINE):
        before, after = ("\n".join(line[1:] for line in part.splitlines()) for part in (old, new))
        assert before in source, before
        source = source.replace(before, after) if old else f"{source}\n{after}"
    return source


def sample(cases: Sequence[Any], step: int) -> list[Any]:
    """Return test cases of which one in ``step`` is in the default run, and all others are slow."""
    return [
        case
        if index % step == 0
        else pytest.param(*(case if type(case) is tuple else [case]), marks=pytest.mark.slow)
        for index, case in enumerate(cases)
    ]


def read_sections(file: str | Path) -> list[tuple[str, str]]:
    """Return the title and the text of each section of a file, by default of this folder."""
    sections = re.split(r"(?m)^=== ", (FOLDER / file).read_text(encoding="utf-8"))[1:]
    return [(title, text) for title, _, text in (one.partition("\n") for one in sections)]


def read_tables(file: str | Path) -> dict[str, list[tuple[str, ...]]]:
    """Return the rows of each section; columns are separated by ``=>``."""
    return {
        title: [tuple(re.split(" =>(?: |$)", line)) for line in text.splitlines()]
        for title, text in read_sections(file)
    }


def read_rows(file: str | Path) -> dict[str, list[Any]]:
    """Return the values of each section's lines, which are expressions in Python."""
    return {
        title: [compute(line) for line in text.splitlines()] for title, text in read_sections(file)
    }


def read_values(title: str) -> dict[str, Any]:
    """Return what the expressions in a table of ``tables.txt`` stand for, by the name of each."""
    return {name: compute(text) for name, text in read_tables("tables.txt")[title]}


def read_submissions(file: str) -> tuple[list[Submission], list[Submission]]:
    """Return the right programs of a file of this folder, and the wrong ones."""
    right, wrong = [], []
    for head, text in read_sections(file):
        name, settings = head.split(": ", 1)
        source, *changed = re.split(r"(?m)^--- ", text)
        about = ast.literal_eval(settings)
        right.append(Submission(name, "", "", "", source, about))
        for one in changed:
            title, changes = one.split("\n", 1)
            title, _, note = title.partition(": ")
            mistake, _, named = title.partition(" as ")
            program = change(source, changes)
            wrong.append(Submission(name, mistake, named or mistake, note, program, about))
    return right, wrong
