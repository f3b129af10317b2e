"""Load a graph from a file."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TypeVar

from cgprimer.core.graph import ExpressionGraph, parse
from cgprimer.errors import UsageError, did_you_mean
from cgprimer.support.files import convert_path, find_examples

_MAX_BYTES = 200_000_000
_Text = TypeVar("_Text", str, bytes)


def resolve_graph_path(name: str | Path) -> Path:
    """Return the path to a file, or to the built-in example with the given name.

    >>> resolve_graph_path("lecture").name, str(resolve_graph_path("graphs/a.cg"))
    ('lecture.cg', 'graphs/a.cg')
    """
    example = None if os.path.isfile(name) else find_examples().get(str(name))
    return example or Path(name)


def load(path: str | Path) -> ExpressionGraph:
    """Load an expression graph from a UTF-8 file; ``-`` is standard input.

    The name of a built-in example, such as ``lecture``, is also accepted, unless a file with the
    same name exists.

    Raises:
        UsageError: the file cannot be read, is larger than 200 MB, or is not UTF-8 text.
        SourceError: the text does not define a graph.

    >>> load("lecture")
    <ExpressionGraph lecture.cg: 1 input, 4 expressions, 4 parameters>
    """
    name, path = str(convert_path(path)), resolve_graph_path(path)
    if str(path) != str(Path(name)):
        name = f"{name}.cg"
    try:
        if name == "-" and sys.stdin is None:
            raise UsageError("cannot read standard input: it is closed")
        if name == "-":
            return parse(_check_size(sys.stdin.read(_MAX_BYTES + 1), name), name="<stdin>")
        with path.open("rb") as file:  # a device or a pipe may have no end
            text = _check_size(file.read(_MAX_BYTES + 1), path).decode("utf-8-sig")
    except OSError as error:
        near = did_you_mean(path.stem, find_examples())
        near = near and f"{near} ('cgprimer examples' lists the examples)"
        if "=" in name:
            near = "pass expressions with -e; in Python, use cgprimer.parse"
        raise UsageError(f"cannot read {path}: {error.strerror or error}", hint=near) from None
    except UnicodeDecodeError as error:
        message = f"{path} is not UTF-8 text (byte {error.start})"
        raise UsageError(message, hint="save the file with UTF-8 encoding") from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return parse(text, name=name.encode("utf-8", "replace").decode())  # for pages and pictures


def _check_size(content: _Text, name: str | Path) -> _Text:
    """Return the content of a file; raise UsageError if it is larger than 200 MB."""
    if len(content) > _MAX_BYTES:
        raise UsageError(f"cannot read {name}: it is larger than {_MAX_BYTES:,} bytes")
    return content
