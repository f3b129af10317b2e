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

    def accepts(self, name: str) -> bool:
        """Return whether the catalogue's name describes this mistake."""
        texts = [*ACCEPTED_NAMES[self.mistake], *self.also]
        return any(text in name.lower() for text in texts)

    @property
    def needs_name(self) -> bool:
        """Whether the grader has to name the mistake: some numbers nobody can explain."""
        return ACCEPTED_NAMES[self.mistake] != [""]


def changed(code: str, replacements: list[list[str]]) -> str:
    """Return a program with texts replaced, each of which must occur in it."""
    for old, new in replacements:
        if old not in code:
            raise ValueError(f"{old!r} is not in the program:\n{code}")
        code = code.replace(old, new)
    return code


def read_submissions(name: str) -> list[Submission]:
    """Return the submissions of a file: each program, and the changes of it."""
    contents = read(name)
    graphs: dict[str, str] = contents.get("graphs", {})
    result = []
    for program in contents["program"]:
        text = program.get("graph", "")
        variants = [program, *program.get("changes", ())]
        result += [
            Submission(
                variant.get("mistake", ""),
                graphs.get(text, text),
                changed(program["code"], variant.get("replace", [])),
                program.get("options", {}) | variant.get("options", {}),
                tuple(variant.get("also", ())),
            )
            for variant in variants
        ]
    return result


def read_formulas() -> list[Submission]:
    """Return the answers in formulas."""
    contents = read("formulas")
    correct = [Submission("", graph, answer) for graph, answer in contents["correct"]]
    return correct + [Submission(*row) for row in contents["wrong"]]


def read_labels() -> list[Submission]:
    """Return the correct gradients of graphs with labels, in each form of declaration."""
    contents = read("labels")
    result = []
    for program in contents["program"]:
        for case in program.get("cases", [program]):
            graph, options = case["graph"], case.get("options", {})
            if graph in contents["declared"]:
                label = contents["declared"][graph]
                (name,) = label["domain"]
                forms = [
                    (f"input {label['text']} in {label['set']}", {}),
                    (f"input {label['text']}", {"domain": label["domain"]}),
                    (f"input {label['text']}", {"keep": name}),
                ]
                for declaration, more in forms:
                    text = f"{declaration}\n{contents['graphs'][graph]}"
                    result.append(Submission("", text, program["code"], options | more))
            else:
                result.append(Submission("", graph, program["code"], options))
    return result
