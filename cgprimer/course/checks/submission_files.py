"""Read the source code of a submission: limited in size, strictly decoded, never run."""

from __future__ import annotations

import codecs
import json
import os
import re
import stat
import tokenize
from io import BytesIO
from pathlib import Path
from typing import Any

from cgprimer.course.checks.check_results import Failure, sanitize
from cgprimer.errors import Source, UsageError

_MAX_SIZE = 1_000_000  # bytes
# Python's names of codecs that are written in C, take linear time and yield no surrogates.
_ENCODINGS = re.compile(
    r"utf-8(-sig)?|ascii|iso8859-\d+|cp\d+|koi8-[rtu]|mac-\w+|gb2312|gbk|gb18030|hz|big5(hkscs)?"
    r"|shift_jis\w*|euc_j\w+|euc_kr|johab"
)


def read_regular_file(path: Path, max_size: int) -> bytes | None:
    """Return the content of a regular file, or None if it exceeds ``max_size`` bytes.

    Raises:
        UsageError: the file is missing or unreadable, or it is a pipe, a device or a folder.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "invalid file name"
        raise UsageError(f"cannot read {path}: {reason}") from None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UsageError(f"cannot read {path}: not a regular file")
        try:
            data = file.read(max_size + 1)
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}") from None
    return data if len(data) <= max_size else None


def read_source(path: Path) -> Source | Failure:
    """Return the source code of a Python file or notebook, or a failure if it is unreadable.

    Raises:
        UsageError: the file cannot be read.
    """
    data = read_regular_file(path, _MAX_SIZE)
    if data is None:
        return Failure("encoding", f"the file exceeds {_MAX_SIZE:,} bytes")
    text = _decode_source(data)
    if isinstance(text, Failure):
        return text
    if path.suffix == ".ipynb":
        text = _extract_notebook_code(text)
    if isinstance(text, Failure):
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    for character in re.finditer("[\0\ud800-\udfff]", text):
        line = text.count("\n", 0, character.start()) + 1
        problem = "a null byte" if character[0] == "\0" else "an unpaired surrogate"
        return Failure("encoding", f"line {line} contains {problem}")
    return Source(path.name, text)


def _decode_source(data: bytes) -> str | Failure:
    """Decode source code with its declared encoding, or as UTF-8 if none is declared."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return Failure("encoding", "the file is UTF-16: save it as UTF-8")
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
        name = codecs.lookup(encoding).name
    except (SyntaxError, LookupError, ValueError) as error:
        failure = _find_undecodable_line(data, "utf-8")
        return failure or Failure("encoding", sanitize(str(error))[:200])
    if not _ENCODINGS.fullmatch(name):
        problem = f"encoding {sanitize(name)[:50]} is not supported"
        return Failure("encoding", f"{problem}: save the file as UTF-8")
    return _find_undecodable_line(data, encoding) or data.decode(encoding)


def _find_undecodable_line(data: bytes, encoding: str) -> Failure | None:
    """Return a failure that names the first line with invalid bytes, or None if all are valid."""
    try:
        data.decode(encoding)
    except UnicodeError as error:
        line = data.count(b"\n", 0, getattr(error, "start", 0)) + 1
        return Failure("encoding", f"line {line} is not valid {encoding}: save the file as UTF-8")
    return None


def _extract_notebook_code(text: str) -> str | Failure:
    """Return the source code of a notebook, without nbgrader's test cells and IPython commands."""
    lines: list[str] = []
    try:
        for number, cell in enumerate(json.loads(text)["cells"], 1):
            nbgrader: Any = cell["metadata"].get("nbgrader", {})
            if cell["cell_type"] != "code" or nbgrader.get("locked") or nbgrader.get("grade"):
                continue
            lines.append(f"# cell {number}")
            lines += [
                f"# {line}" if line.lstrip().startswith(("%", "!")) else line
                for line in "".join(cell["source"]).split("\n")
            ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Failure("encoding", "the file is not a valid notebook")
    return "\n".join([*lines, ""])
