"""Archives of the Python packages that the playground unpacks in the browser, and their licenses.

The archives are made from the installed distributions, so the page runs the version of cgprimer
that built it. Equal files give equal bytes. Folders that the playground never imports are excluded.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from cgprimer.errors import UsageError
from cgprimer.support.files import find_examples

#: Folders and files of cgprimer that no view of the playground imports.
EXCLUDED = (
    "__main__.py",
    "backends",
    "cli",
    "course",
    "examples",  # added from the list of examples, which a checkout keeps in another folder
    "lecture.py",
    "plot.py",
    "training/distributed",
    "training/fitting",
    "visualization/pages/learning",
    "visualization/pages/rounds",
    "visualization/pages/vendor",
    "visualization/pages/watching",
    "visualization/plots",
)
_TEST_FOLDERS = frozenset({"__pycache__", "benchmarks", "tests"})
_COMPILED = frozenset({".c", ".pyc", ".pyd", ".so"})
_DATE = (1980, 1, 1, 0, 0, 0)  # the earliest date in ZIP files; the real dates change the bytes
_LICENCE_NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE")


class License(NamedTuple):
    """The license of a package in an archive.

    Attributes:
        package: the name of the package.
        version: the version of the package.
        name: the name of the license, such as ``MIT``.
        text: the text of the license.
    """

    package: str
    version: str
    name: str
    text: str


def build_cgprimer_archive() -> bytes:
    """Return a ZIP file with cgprimer, its example graphs, jinja2 and markupsafe.

    >>> names = zipfile.ZipFile(io.BytesIO(build_cgprimer_archive())).namelist()
    >>> [name in names for name in ("cgprimer/__init__.py", "cgprimer/examples/lecture.cg")]
    [True, True]
    """
    root = Path(__file__).parents[2]
    files = dict(_list_package_files(root))
    files |= {f"cgprimer/examples/{path.name}": path for path in find_examples().values()}
    for package in ("jinja2", "markupsafe"):
        files |= _list_distribution_files(package)
    files |= {f"cgprimer/{path.name}": path for path in _find_license_files("cgprimer")}
    return _pack_files(files)


def build_sympy_archive() -> bytes:
    """Return a ZIP file with sympy and mpmath, without their tests and benchmarks."""
    return _pack_files({**_list_distribution_files("sympy"), **_list_distribution_files("mpmath")})


def list_licenses() -> list[License]:
    """Return the licenses of all packages in the archives, cgprimer first.

    >>> [license.package for license in list_licenses()]
    ['cgprimer', 'jinja2', 'markupsafe', 'sympy', 'mpmath']
    """
    packages = ("cgprimer", "jinja2", "markupsafe", "sympy", "mpmath")
    return [_read_license(package) for package in packages]


def _read_license(package: str) -> License:
    """Return the name and the text of a package's license."""
    metadata = _find_distribution(package).metadata
    texts = [path.read_text(encoding="utf-8") for path in _find_license_files(package)]
    fields = ("License-Expression", "License")
    classifiers = metadata.get_all("Classifier", [])
    names = [metadata[field] for field in fields if field in metadata]
    names += [c.rpartition(" :: ")[2] for c in classifiers if c.startswith("License")]
    name = names[0] if names else "unknown"
    return License(package, metadata["Version"], name, "\n\n".join(texts))


def _find_distribution(package: str) -> Distribution:
    """Return an installed distribution.

    Raises:
        UsageError: the distribution is not installed.
    """
    try:
        return distribution(package)
    except PackageNotFoundError:
        hint = f"install the package: pip install {package}"
        raise UsageError(f"the playground requires the package {package}", hint=hint) from None


def _find_license_files(package: str) -> list[Path]:
    """Return the paths of a distribution's license files, in alphabetical order."""
    installed = _find_distribution(package)
    return sorted(
        Path(str(installed.locate_file(file)))
        for file in installed.files or ()
        if ".dist-info" in file.parts[0] and file.name.upper().startswith(_LICENCE_NAMES)
    )


def _list_package_files(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield names in the archive and paths of cgprimer's files, except `EXCLUDED` and scripts."""
    excluded = [PurePosixPath(name) for name in EXCLUDED]
    for path in sorted(root.rglob("*")):
        relative = PurePosixPath(path.relative_to(root).as_posix())
        is_needed = not any(relative.is_relative_to(folder) for folder in excluded)
        is_script = path.suffix in (".css", ".js")  # the page loads them directly
        if is_needed and not is_script and path.is_file() and _is_packed(relative):
            yield f"cgprimer/{relative}", path


def _list_distribution_files(package: str) -> dict[str, Path]:
    """Return the paths of the modules, data and licenses of a distribution, by name."""
    installed = _find_distribution(package)
    licenses = {path.resolve() for path in _find_license_files(package)}
    files = {}
    for file in installed.files or ():
        path = Path(str(installed.locate_file(file))).resolve()
        is_license = path in licenses
        is_module = file.parts[0] == package and _is_packed(PurePosixPath(file))
        if is_license or is_module:
            files[file.as_posix()] = path
    return files


def _is_packed(path: PurePosixPath) -> bool:
    """Return whether a file belongs in an archive: not a test, a cache or a compiled file."""
    hidden = any(part.startswith(".") for part in path.parts)
    return not hidden and path.suffix not in _COMPILED and _TEST_FOLDERS.isdisjoint(path.parts)


def _pack_files(files: dict[str, Path]) -> bytes:
    """Return a ZIP file of the given files, keyed by name, in alphabetical order."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for name, path in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _DATE)
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
            entry.external_attr = 0o644 << 16
            packed.writestr(entry, path.read_bytes())
    return archive.getvalue()
