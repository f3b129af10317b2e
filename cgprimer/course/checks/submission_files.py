"""Read the text of a submission: limited in size, strictly decoded, and never run here."""

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

from cgprimer.course.checks.check_results import Failure, readable
from cgprimer.errors import Source, UsageError

_LARGEST = 1_000_000  # bytes
# Codecs that are written in C, take linear time and yield no surrogates; by Python's names.
_ENCODINGS = re.compile(
    r"utf-8(-sig)?|ascii|iso8859-\d+|cp\d+|koi8-[rtu]|mac-\w+|gb2312|gbk|gb18030|hz|big5(hkscs)?"
    r"|shift_jis\w*|euc_j\w+|euc_kr|johab"
)


def read_regular_file(path: Path, most: int) -> bytes | None:
    """Return the content of a regular file, or None if it is larger than ``most`` bytes.

    Raises:
        UsageError: there is no such file, it cannot be read, or it is a pipe, a device or a folder.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a file name"
        raise UsageError(f"cannot read {path}: {reason}") from None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UsageError(f"cannot read {path}: not a regular file")
        try:
            data = file.read(most + 1)
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}") from None
    return data if len(data) <= most else None


def source_of(path: Path) -> Source | Failure:
    """Return the program in a Python file or a notebook, or why there is none.

    Raises:
        UsageError: the file cannot be read.
    """
    data = read_regular_file(path, _LARGEST)
    if data is None:
        return Failure("encoding", f"the file is larger than {_LARGEST:,} bytes")
    text = _decode(data)
    if isinstance(text, Failure):
        return text
    if path.suffix == ".ipynb":
        text = _notebook_code(text)
    if isinstance(text, Failure):
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    for character in re.finditer("[\0\ud800-\udfff]", text):
        line = text.count("\n", 0, character.start()) + 1
        what = "a zero byte" if character[0] == "\0" else "half of a surrogate pair"
        return Failure("encoding", f"line {line} has {what}")
    return Source(path.name, text)


def _decode(data: bytes) -> str | Failure:
    """Decode text by its declared encoding, UTF-8 without a declaration."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return Failure("encoding", "the file is UTF-16: save it as UTF-8")
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
        name = codecs.lookup(encoding).name
    except (SyntaxError, LookupError, ValueError) as error:
        undecodable = _line_of_undecodable(data, "utf-8")
        return undecodable or Failure("encoding", readable(str(error))[:200])
    if not _ENCODINGS.fullmatch(name):
        return Failure("encoding", f"{readable(name)[:50]} is not accepted: save the file as UTF-8")
    return _line_of_undecodable(data, encoding) or data.decode(encoding)


def _line_of_undecodable(data: bytes, encoding: str) -> Failure | None:
    try:
        data.decode(encoding)
    except UnicodeError as error:
        line = data.count(b"\n", 0, getattr(error, "start", 0)) + 1
        return Failure("encoding", f"line {line} is not {encoding}: save the file as UTF-8")
    return None


def _notebook_code(text: str) -> str | Failure:
    """Return the code of a notebook's cells, without a grader's cells and notebook commands."""
    lines: list[str] = []
    try:
        for number, cell in enumerate(json.loads(text)["cells"], 1):
            of_grader: Any = cell["metadata"].get("nbgrader", {})
            if cell["cell_type"] != "code" or of_grader.get("locked") or of_grader.get("grade"):
                continue
            lines.append(f"# cell {number}")
            lines += [
                f"# {line}" if line.lstrip().startswith(("%", "!")) else line
                for line in "".join(cell["source"]).split("\n")
            ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Failure("encoding", "it is no notebook")
    return "\n".join([*lines, ""])
