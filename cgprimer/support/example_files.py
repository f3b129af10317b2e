"""The example graphs and programs that come with the package, described by their headers.

The header of an example is its first comment (``.cg``) or its docstring (``.py``): a title,
then lines that begin with ``Topic:``, ``Teaches:`` and ``Source:``. A topic ends with a level.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from cgprimer.support.files import find_examples

LEVELS = ("introductory", "intermediate", "advanced")
# In the order of a course.
TOPICS = (
    "Graphs and the chain rule",
    "Methods of differentiation",
    "Neurons and networks",
    "Arrays",
    "Training",
    "Fitting",
    "Recorded Python",
)
_FIELD = re.compile(r"^(Topic|Teaches|Source|Run): ", re.MULTILINE)
_TOPIC = re.compile(r"(?P<topic>.+) \((?P<level>\w+)\)")


@dataclass(frozen=True)
class Example:
    """An example graph or program.

    Attributes:
        name: the name for commands, such as ``lecture``; programs end with ``.py``.
        path: the file.
        title: what the example is, in one sentence.
        topic: the group in which ``cgprimer examples`` lists the example.
        level: one of ``LEVELS``.
        teaches: what a reader learns from the example.
        source: where the example comes from.
    """

    name: str
    path: Path
    title: str
    topic: str
    level: str
    teaches: str
    source: str


def read_example(name: str, path: Path) -> Example:
    """Read the description of an example from the header of its file.

    >>> from cgprimer.support.files import find_examples
    >>> example = read_example("olah", find_examples()["olah"])
    >>> example.title, example.level
    ('e = (a + b)*(b + 1), where b is used twice.', 'introductory')
    """
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        header = text.split('"""')[1]
    else:
        lines = text.splitlines()
        end = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
        header = "\n".join(line.removeprefix("#").strip() for line in lines[:end])
    title, *fields = _FIELD.split(header)
    values = {
        key: " ".join(value.split()) for key, value in zip(fields[::2], fields[1::2], strict=True)
    }
    topic = _TOPIC.fullmatch(values["Topic"])
    assert topic is not None, path
    return Example(
        name, path, title.strip(), topic["topic"], topic["level"], values["Teaches"],
        values["Source"],
    )  # fmt: skip


def load_examples() -> dict[str, Example]:
    """Return all examples by name, sorted by topic, level and name.

    >>> list(load_examples())[:3]
    ['accumulation', 'cosine_of_square', 'cs231n_max']
    """
    paths = find_examples() | {path.name: path for path in find_examples("*.py").values()}
    examples = [read_example(name, path) for name, path in paths.items()]

    def sort_key(example: Example) -> tuple[int, int, str]:
        return TOPICS.index(example.topic), LEVELS.index(example.level), example.name

    return {example.name: example for example in sorted(examples, key=sort_key)}
