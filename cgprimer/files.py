"""Files written whole or not at all, and the examples that come with the package."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from numbers import Integral
from os import urandom
from pathlib import Path
from typing import Any

from cgprimer.errors import UsageError

_TYPED = (".tex", ".dot", ".gv", ".mmd", ".html")  # what we write and people do, too


def write_whole(path: str | Path, content: bytes | str, *, private: bool = False) -> None:
    """Write a file under a temporary name in the same folder, then rename it.

    A reader never sees half of it, and an older file survives an error. Of several writers at the
    same time the last one's file stays. A private file is for its user alone, and takes
    the place of a link.

    Raises:
        UsageError: the file cannot be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "a.txt"), "one line\\n")
    ...     [p.name for p in Path(folder).iterdir()]
    ['a.txt']
    """
    path = Path(path)
    data = content.encode() if isinstance(content, str) else content
    if path.is_symlink() and not private:
        path = path.resolve()  # the link stays, its target is replaced
    mode = 0o600 if private else 0o666  # as of any other new file, which tempfile's are not
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(data)  # a device, as /dev/stdout: nothing to rename
            return
        partial = path.with_name(f".{urandom(8).hex()}.part")  # shorter than any name need be
        # Exclusively, so that nobody can have put a link in its place.
        with open(partial, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            try:
                file.write(data)
                file.close()
                partial.replace(path)
            except BaseException:  # Ctrl-C, too
                with suppress(OSError):
                    partial.unlink(missing_ok=True)
                raise
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", "") or error
        raise UsageError(f"cannot write {path}: {why}") from None


def write_own(path: str | Path, content: bytes | str) -> None:
    """Write a text of ours; what somebody typed into a file of that name is not written over.

    Raises:
        UsageError: there is such a file, or the file cannot be written.
    """
    path = Path(path)
    if path.suffix.lower() in _TYPED and path.is_file():
        with open(path, "rb") as file:
            there = file.read(4096)
        if there and b"made by cgprimer" not in there:
            said = f"{path} is there already, and cgprimer did not write it"
            raise UsageError(said, hint="another name, or move that file away")
    write_whole(path, content)


def check_writable(path: str | Path) -> None:
    """Find out before a long job whether its result can be written.

    Raises:
        UsageError: the folder is missing or cannot be written to, or the path is a folder.
    """
    path = Path(path)
    folder = path.parent
    try:
        is_folder, is_there = path.is_dir(), folder.is_dir()
    except OSError as error:  # a name that is too long, a folder that cannot be searched
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
    if is_folder:
        raise UsageError(f"cannot write {path}: it is a folder")
    if not is_there:
        raise UsageError(f"cannot write {path}: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"cannot write {path}: the folder {folder} cannot be written to")


def examples(pattern: str = "*.cg") -> dict[str, Path]:
    """The files of the examples, by name.

    >>> sorted(examples())[:3]
    ['batch_normalization', 'baydin', 'cosine_of_square']
    """
    package = Path(__file__).parent
    for folder in (package / "examples", package.parent / "examples"):  # a wheel; a checkout
        if folder.is_dir():
            return {path.stem: path for path in sorted(folder.glob(pattern))}
    return {}


def _plain(value: Any) -> Any:
    """Numbers and arrays of numpy as Python's."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return int(value) if isinstance(value, Integral) else float(value)


def json_text(value: Any, *, indent: int | None = 1) -> str:
    """A value as JSON; nan and the infinities, which JSON cannot write, as text.

    ``float`` reads such a text back. Arrays are nested lists.

    >>> json_text({"loss": float("nan")}, indent=None)
    '{"loss": "nan"}'
    """
    text = json.dumps(value, default=_plain)
    words = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}
    plain = json.loads(text, parse_constant=words.__getitem__)
    return json.dumps(plain, indent=indent, allow_nan=False)
