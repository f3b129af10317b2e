"""From a file to a graph."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TypeVar

from cgprimer.core.graph import ExpressionGraph, parse
from cgprimer.errors import UsageError, did_you_mean
from cgprimer.files import examples

_MAX_BYTES = 200_000_000
_Text = TypeVar("_Text", str, bytes)


def path_of(name: str | Path) -> Path:
    """The file that a name stands for: a path, or the name of an example.

    >>> path_of("lecture").name, str(path_of("graphs/a.cg"))
    ('lecture.cg', 'graphs/a.cg')
    """
    example = None if os.path.isfile(name) else examples().get(str(name))
    return example or Path(name)


def load(path: str | Path) -> ExpressionGraph:
    """An expression graph from a file in UTF-8; ``-`` is standard input.

    The name of an example, where no file is called so, is that example: they are at hand wherever
    the package is installed.

    Raises:
        UsageError: the file cannot be read, is larger than 200 MB, or is not text.
        SourceError: its text is not a graph.

    >>> load("lecture")
    <ExpressionGraph lecture.cg: 1 input, 4 expressions, 4 parameters>
    """
    name, path = str(path), path_of(path)
    if str(path) != str(Path(name)):
        name = f"{name}.cg"
    try:
        if name == "-" and sys.stdin is None:
            raise UsageError("there is no standard input to read: it is closed")
        if name == "-":
            return parse(_checked_size(sys.stdin.read(_MAX_BYTES + 1), name), name="<stdin>")
        with path.open("rb") as file:  # a device or a pipe may have no end
            text = _checked_size(file.read(_MAX_BYTES + 1), path).decode("utf-8-sig")
    except OSError as error:
        near = did_you_mean(path.stem, examples())
        near = near and f"{near} ('cgprimer examples' lists the examples)"
        if "=" in name:
            near = "expressions themselves stand behind -e; in Python cgprimer.parse reads them"
        raise UsageError(f"cannot read {path}: {error.strerror or error}", hint=near) from None
    except UnicodeDecodeError as error:
        said = f"{path} is not UTF-8 text (byte {error.start})"
        raise UsageError(said, hint="save it as UTF-8") from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return parse(text, name=name.encode("utf-8", "replace").decode())  # for pages and pictures


def _checked_size(content: _Text, name: str | Path) -> _Text:
    if len(content) > _MAX_BYTES:
        raise UsageError(f"cannot read {name}: it has more than {_MAX_BYTES:,} bytes")
    return content
