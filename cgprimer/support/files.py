"""Atomic writing of files, JSON, and the examples that come with the package."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from numbers import Integral
from os import urandom
from pathlib import Path
from typing import Any

from cgprimer.errors import UsageError
from cgprimer.support.type_checks import check_type

_HANDWRITTEN = (".tex", ".dot", ".gv", ".mmd", ".html")  # formats that users write as well


def convert_path(path: str | Path) -> Path:
    """Convert a string or path-like object to a path.

    Raises:
        UsageError: the argument is neither a string nor path-like.

    >>> convert_path(3)
    Traceback (most recent call last):
        ...
    cgprimer.errors.UsageError: `path` must be a string or a path, got 3
    """
    check_type("path", path, (str, os.PathLike), "a string or a path")
    return Path(path)


def write_atomically(path: str | Path, content: bytes | str, *, private: bool = False) -> None:
    """Write a file under a temporary name in the same folder, then rename it.

    A reader never sees an incomplete file, and an older file survives an error. If several
    processes write at the same time, the last one wins. A private file is readable only by its
    owner, and replaces a symbolic link.

    Raises:
        UsageError: the file cannot be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder, "a.txt"), "one line\\n")
    ...     [p.name for p in Path(folder).iterdir()]
    ['a.txt']
    """
    path = convert_path(path)
    data = content.encode() if isinstance(content, str) else content
    mode = 0o600 if private else 0o666  # the usual mode of new files, unlike tempfile's
    try:
        if path.is_symlink() and not private:
            path = path.resolve()  # the link stays, its target is replaced
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(data)  # a device such as /dev/stdout: nothing to rename
            return
        partial = path.with_name(f".{urandom(8).hex()}.part")
        # Mode "x" fails if somebody has put a link under this name.
        with open(partial, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            try:
                file.write(data)
                file.close()
                partial.replace(path)
            except BaseException:  # Ctrl-C as well
                with suppress(OSError):
                    partial.unlink(missing_ok=True)
                raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", "") or error
        raise UsageError(f"cannot write {path}: {reason}") from None


def write_generated_file(path: str | Path, content: bytes | str) -> None:
    """Write a generated file, but do not overwrite a file that a user wrote by hand.

    Raises:
        UsageError: cgprimer did not write the existing file, or the file cannot be written.
    """
    path = convert_path(path)
    if path.suffix.lower() in _HANDWRITTEN and path.is_file():
        with open(path, "rb") as file:
            beginning = file.read(4096)
        if beginning and b"made by cgprimer" not in beginning:
            message = f"{path} already exists and was not written by cgprimer"
            raise UsageError(message, hint="choose another name, or move the existing file")
    write_atomically(path, content)


def check_writable(path: str | Path) -> None:
    """Check that a file can be written to the path, before a long computation.

    Raises:
        UsageError: the folder is missing or cannot be written to, or the path is a folder.
    """
    path = convert_path(path)
    folder = path.parent
    try:
        is_folder, folder_exists = path.is_dir(), folder.is_dir()
    except OSError as error:  # a name that is too long, a folder that cannot be searched
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
    if is_folder:
        raise UsageError(f"cannot write {path}: it is a folder")
    if not folder_exists:
        raise UsageError(f"cannot write {path}: the folder {folder} does not exist")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"cannot write {path}: the folder {folder} is not writable")


def find_examples(pattern: str = "*.cg") -> dict[str, Path]:
    """Return the paths of the bundled example files, keyed by name.

    >>> sorted(find_examples())[:3]
    ['accumulation', 'batch_normalization', 'baydin']
    """
    package = Path(__file__).parent.parent
    for folder in (package / "examples", package.parent / "examples"):  # a wheel; a checkout
        if folder.is_dir():
            return {path.stem: path for path in sorted(folder.glob(pattern))}
    return {}


def _convert_numpy_value(value: Any) -> Any:
    """Convert a numpy scalar or array to a Python number or nested lists."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return int(value) if isinstance(value, Integral) else float(value)


def format_json(value: Any, *, indent: int | None = 1) -> str:
    """Format a value as JSON, with arrays as nested lists.

    JSON has no nan or infinity; these are written as strings that ``float`` can parse.

    >>> format_json({"loss": float("nan")}, indent=None)
    '{"loss": "nan"}'
    """
    text = json.dumps(value, default=_convert_numpy_value)
    strings = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}
    plain = json.loads(text, parse_constant=strings.__getitem__)
    return json.dumps(plain, indent=indent, allow_nan=False)
