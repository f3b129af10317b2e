"""Build a wheel of the running package, which an autograder installs.

The package is copied as it runs, so that the autograder computes what the instructor's machine
computes, with neither a source tree nor a network. ``pip wheel`` needs both for hatchling and takes
seven seconds instead of 0.2; the files that :mod:`importlib.metadata` lists are those of the
package only if the installation is not editable.
Source: the binary distribution format,
https://packaging.python.org/en/latest/specifications/binary-distribution-format/
"""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from collections.abc import Collection, Mapping
from importlib import metadata
from pathlib import Path

from cgprimer import __version__
from cgprimer.errors import UsageError
from cgprimer.support.files import find_examples

_TIMESTAMP = (2020, 1, 1, 0, 0, 0)  # of files in archives: equal contents give equal archives
_WHEEL = "Wheel-Version: 1.0\nGenerator: cgprimer\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def build_wheel() -> tuple[str, bytes]:
    """Return the file name and the content of a wheel for this package.

    Raises:
        UsageError: the package is not installed, so that its requirements are unknown.
    """
    package = Path(__file__).parents[2]
    info = f"cgprimer-{__version__}.dist-info"
    try:
        distribution = metadata.distribution("cgprimer")
    except metadata.PackageNotFoundError:
        hint = "install the package, for example with 'pip install -e .'"
        raise UsageError("cannot build a wheel: cgprimer is not installed", hint=hint) from None
    files = {
        f"cgprimer/{path.relative_to(package).as_posix()}": path.read_bytes()
        for path in sorted(package.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    for path in find_examples().values():
        files[f"cgprimer/examples/{path.name}"] = path.read_bytes()
    for name in ("METADATA", "entry_points.txt"):
        files[f"{info}/{name}"] = (distribution.read_text(name) or "").encode()
    files[f"{info}/WHEEL"] = _WHEEL.encode()
    files[f"{info}/RECORD"] = _format_record(files, f"{info}/RECORD")
    return f"cgprimer-{__version__}-py3-none-any.whl", zip_files(files)


def _format_record(files: Mapping[str, bytes], name: str) -> bytes:
    """Format the RECORD file of a wheel: the path, hash and size of each file."""
    lines = []
    for file, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        lines.append(f"{file},sha256={digest},{len(content)}\n")
    return "".join([*lines, f"{name},,\n"]).encode()


def zip_files(files: Mapping[str, bytes], executable: Collection[str] = ()) -> bytes:
    """Return a zip archive of files, whose contents are given as a dictionary keyed by file name.

    Args:
        files: the contents.
        executable: names of the files that can be executed.
    """
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _TIMESTAMP)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if name in executable else 0o644) << 16
            archive.writestr(entry, content)
    return memory.getvalue()
