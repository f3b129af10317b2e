"""Read the submissions of the trial: programs of fake students, which are data and not code.

Each file of ``submissions`` is a list of programs. A program without ``mistake`` is correct. Its
``changes`` are wrong submissions that differ from it in the replaced texts only.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("submissions")


def read(name: str) -> dict[str, Any]:
    """Return the contents of a file of submissions."""
    return tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8"))


ACCEPTED_NAMES: dict[str, list[str]] = read("accepted_names")


@dataclass(frozen=True)
class Submission:
    """A submission and what is asked.

    Attributes:
        mistake: the mistake that the author made, a key of `ACCEPTED_NAMES`; "" if there is none.
        graph: text of the graph, or the statement of a formula check.
        code: source of the submission, or the answer of a formula check.
        options: keyword arguments of the check.
        also: further acceptable names, where a mistake gives the same numbers as another one.
    """

    mistake: str
    graph: str
    code: str
    options: dict[str, Any] = field(default_factory=dict)
    also: tuple[str, ...] = ()

    def accepts(self, names: set[str]) -> bool:
        """Return whether names of the catalogue describe this mistake, which may have none."""
        texts = [*ACCEPTED_NAMES[self.mistake], *self.also]
        accepted = [any(text in name.lower() for text in texts) for name in names]
        return texts == [""] or (bool(names) and all(accepted))


def changed(code: str, replacements: list[list[str]]) -> str:
    """Return a program with texts replaced, each of which must occur in it."""
    for old, new in replacements:
        if old not in code:
            raise ValueError(f"{old!r} is not in the program:\n{code}")
        code = code.replace(old, new)
    return code


def read_submissions(name: str) -> list[Submission]:
    """Return the submissions of a file: each program, and the changes of it."""
    contents, result = read(name), []
    graphs: dict[str, str] = contents.get("graphs", {})
    for program in contents["program"]:
        for variant in (program, *program.get("changes", ())):
            text = variant.get("graph", program.get("graph", ""))
            code = changed(program["code"], variant.get("replace", []))
            options = program.get("options", {}) | variant.get("options", {})
            mistake, also = variant.get("mistake", ""), tuple(variant.get("also", ()))
            result.append(Submission(mistake, graphs.get(text, text), code, options, also))
    return result


def read_formulas() -> list[Submission]:
    """Return the answers in formulas."""
    contents = read("formulas")
    correct = [Submission("", graph, answer) for graph, answer in contents["correct"]]
    return correct + [Submission(*row) for row in contents["wrong"]]
