"""From a file to a graph."""

from __future__ import annotations

import sys
from pathlib import Path

from cgprimer.core.graph import ExpressionGraph, parse
from cgprimer.errors import UsageError, did_you_mean
from cgprimer.files import examples


def load(path: str | Path) -> ExpressionGraph:
    """An expression graph from a file in UTF-8; ``-`` is standard input.

    The name of an example, where no file is called so, is that example: they are at hand wherever
    the package is installed.

    Raises:
        UsageError: the file cannot be read, or is not text.
        SourceError: its text is not a graph.

    >>> load("lecture")
    <ExpressionGraph lecture.cg: 1 input, 4 expressions, 4 parameters>
    """
    name = str(path)
    if name in examples() and not Path(path).is_file():
        path, name = examples()[name], f"{name}.cg"
    try:
        if str(path) == "-":
            return parse(sys.stdin.read(), name="<stdin>")
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        near = did_you_mean(Path(path).stem, examples())
        raise UsageError(
            f"cannot read {path}: {error.strerror or error}",
            hint=near and f"{near} ('cgprimer examples' lists the examples)",
        ) from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start})") from None
    return parse(text, name=name)
