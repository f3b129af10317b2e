"""The ladder: the stages of an engine that students write, with their pages and skeletons."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cgprimer.course.checks.stages import (
    backward_stages,
    difference_stages,
    network_stage,
    optimizer_stage,
    tape_stage,
    value_stages,
)
from cgprimer.course.checks.stages.stage import Stage
from cgprimer.errors import UsageError

STAGES: tuple[Stage, ...] = (
    difference_stages.QUOTIENTS,
    value_stages.VALUE,
    value_stages.ORDER,
    backward_stages.REVERSE,
    backward_stages.ACCUMULATION,
    backward_stages.ZEROING,
    optimizer_stage.OPTIMIZER,
    tape_stage.TAPE,
    difference_stages.SECOND,
    network_stage.NETWORK,
)
STAGE_FOLDER = Path(__file__).parent / "stages"


def find_stage(number: int) -> Stage:
    """Return the stage with the given number.

    Raises:
        UsageError: the number is not from 1 to 10.
    """
    if number not in range(1, len(STAGES) + 1):
        raise UsageError(
            f"unknown stage {number!r}", hint=f"choose a stage from 1 to {len(STAGES)}"
        )
    return STAGES[number - 1]


def format_title(stage: Stage) -> str:
    """Return the title of a stage, such as ``stage 2: values``."""
    return f"stage {stage.number}: {stage.name}"


def list_possible_points(stage: int | None = None) -> dict[str, float]:
    """Return the maximum points for each part of a stage or, without `stage`, for each stage."""
    if stage is not None:
        return find_stage(stage).possible
    return {format_title(stage): sum(stage.possible.values()) for stage in STAGES}


# --- pages and skeletons --------------------------------------------------------------------------


def read_stage_page(stage: int) -> str:
    """Return the Markdown page for a stage: the idea, the formula, the task and the checks.

    >>> read_stage_page(1).splitlines()[0]
    '# 1. The difference quotient'
    """
    (file,) = STAGE_FOLDER.glob(f"{find_stage(stage).number:02}-*.md")
    return file.read_text(encoding="utf-8")


def build_engine_skeleton(stage: int | None = None) -> str:
    """Return the skeleton, a Python file for students to complete, for one stage or all stages.

    A class that grows over several stages has all methods up to the stage.

    >>> print(build_engine_skeleton(9).splitlines()[0])
    def derivatives(f, x, order):
    """
    required = None if stage is None else find_stage(stage).required_names
    definitions: dict[str, _Definition] = {}
    for number in range(1, (stage or len(STAGES)) + 1):
        for name, definition in _parse_definitions(number):
            earlier = definitions.get(name)
            definitions[name] = earlier.extend(definition) if earlier else definition
    parts = []
    headed: set[int] = set()
    for name, definition in definitions.items():
        heading = ""
        if required is None:
            if definition.first not in headed:
                title = STAGES[definition.first - 1].name
                heading = f"# --- stage {definition.first}: {title} ---\n\n"
            headed.add(definition.first)
        elif name not in required:
            continue
        elif definition.last != stage:
            heading = f"# From stage {definition.last}: insert your code here.\n"
        parts.append(heading + definition.text)
    return "\n\n".join(parts)


@dataclass
class _Definition:
    """The source code of a skeleton function or class, with its first and last stages.

    Attributes:
        text: the source.
        first: the number of the first stage that defines it.
        last: the number of the last stage that defines it.
        methods: the source of each method of a class.
    """

    text: str
    first: int
    last: int
    methods: Mapping[str, str] = field(default_factory=dict)

    def extend(self, later: _Definition) -> _Definition:
        """Return the class after adding or replacing the methods of a later stage."""
        text = self.text
        for name, method in later.methods.items():
            if name in self.methods:
                text = text.replace(self.methods[name], "")
            text = f"{text.rstrip()}\n\n{method}"
        return _Definition(text, self.first, later.last, {**self.methods, **later.methods})


def _parse_definitions(number: int) -> Iterator[tuple[str, _Definition]]:
    """Yield the functions and classes on the page of a stage; the first includes the imports."""
    block = re.search(r"```python\n(.*?)```", read_stage_page(number), re.DOTALL)
    assert block is not None
    lines = block[1].splitlines(keepends=True)
    imports = ""
    for node in ast.parse(block[1]).body:
        text = "".join(lines[node.lineno - 1 : node.end_lineno])
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            functions = [member for member in node.body if isinstance(member, ast.FunctionDef)]
            methods = {m.name: "".join(lines[m.lineno - 1 : m.end_lineno]) for m in functions}
            yield node.name, _Definition(imports + text, number, number, methods)
            imports = ""
        else:
            imports += f"{text}\n\n"
