"""The folder of the playground: a page, its scripts, and Python as archives that the page unpacks.

The folder is static: any web server can deliver it. The *online* form loads Pyodide (CPython for
browsers) from a content delivery network, the *offline* form contains it.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Iterable, Mapping
from itertools import dropwhile
from pathlib import Path
from typing import Any

from cgprimer import __version__
from cgprimer.errors import UsageError
from cgprimer.support.files import convert_path
from cgprimer.support.templates import render_template
from cgprimer.training.scalar_training import SCALAR_OPTIMIZERS
from cgprimer.visualization.diagrams.theme import theme
from cgprimer.visualization.pages.page_rendering import collect_themes, encode_script_data
from cgprimer.visualization.pages.stepping.step_shell import render_step_shell
from cgprimer.visualization.playground.playground_archives import (
    License,
    build_cgprimer_archive,
    build_sympy_archive,
    list_licenses,
)
from cgprimer.visualization.playground.playground_session import answer_request

PYODIDE = "314.0.7"  #: the version of Pyodide with which the playground is tested
_ONLINE = f"https://cdn.jsdelivr.net/pyodide/v{PYODIDE}/full/"
_OFFLINE = "pyodide/"
_PYODIDE_FILES = (
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
    "pyodide-lock.json",
)
_FILE_NAME = re.compile(r"[\w.+!-]+", re.ASCII)
_FIRST_EXAMPLE = "lecture"
_MANIFEST = "playground.json"  # names all files of a folder, and marks the folder as ours
_TEMPLATES = "visualization/playground"
TABS = {
    "graph": "Graph",
    "methods": "Methods",
    "trace": "Trace",
    "step": "Step",
    "plot": "Plot",
    "train": "Train",
}


def write_playground(
    output: str | Path, *, pyodide: str | Path | None = None, force: bool = False
) -> Path:
    """Write the playground to a folder that any web server can deliver.

    Args:
        output: the folder, which must be new, empty or an older playground.
        pyodide: a folder with npm's package ``pyodide``, which is copied. By default, browsers load
            Pyodide from a content delivery network.
        force: replace an older playground.

    Returns:
        The folder.

    Raises:
        UsageError: the folder has other files or cannot be written, or ``pyodide`` is not a folder
            with the right version.
    """
    folder = convert_path(output).resolve()  # a link to a folder stays a link
    _check_folder(folder, force)
    libraries = {} if pyodide is None else read_pyodide(convert_path(pyodide))
    files = render_playground(libraries)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".playground-") as scratch:
            new, old = Path(scratch, "new"), Path(scratch, "old")
            for name, content in files.items():
                path = new / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            _replace_folder(folder, new, old)
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror or error}") from None
    return folder


def _replace_folder(folder: Path, new: Path, old: Path) -> None:
    """Replace a folder by a new one, and move it to ``old``; keep it if that is interrupted."""
    try:
        if folder.is_dir():
            folder.rename(old)
        new.rename(folder)
    except BaseException:
        if old.is_dir() and not folder.exists():
            old.rename(folder)
        raise


def _check_folder(folder: Path, force: bool) -> None:
    """Raise UsageError if a folder must not be replaced by a playground."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"cannot write {folder}: it is not a folder")
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    try:
        listed = set(json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))["files"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        listed = set()
    paths = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    names = (path.relative_to(folder).as_posix() for path in paths)
    others = sorted(name for name in names if name not in listed)
    if others:
        raise UsageError(
            f"cannot write the playground to {folder}: the folder has other files, such as"
            f" {others[0]}",
            hint="choose a new or an empty folder",
        )
    if not force:
        raise UsageError(
            f"{folder} already contains a playground", hint="use --force to replace it"
        )


def read_pyodide(folder: Path) -> dict[str, bytes]:
    """Read the files of npm's package ``pyodide``, and wheels next to them, keyed by path.

    Raises:
        UsageError: a file is missing, or the folder has another version.
    """
    hint = f"unpack the package first: npm pack pyodide@{PYODIDE} && tar -xzf pyodide-{PYODIDE}.tgz"
    required = (*_PYODIDE_FILES, "package.json")
    missing = [name for name in required if not (folder / name).is_file()]
    if missing:
        raise UsageError(f"{folder} does not contain Pyodide: {missing[0]} is missing", hint=hint)
    try:
        version = str(json.loads((folder / "package.json").read_bytes())["version"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UsageError(f"{folder / 'package.json'} is damaged", hint=hint) from None
    if version != PYODIDE:
        raise UsageError(f"{folder} contains Pyodide {version}, not {PYODIDE}", hint=hint)
    paths = [*(folder / name for name in _PYODIDE_FILES), *sorted(folder.glob("*.whl"))]
    for path in paths:  # a playground is published, so it must not contain private files
        if not path.resolve().is_relative_to(folder.resolve()):
            raise UsageError(f"{path} is a link to a file outside the folder", hint=hint)
        if not path.is_file() or not _FILE_NAME.fullmatch(path.name):
            raise UsageError(f"{path} is not a file of Pyodide", hint=hint)
    try:
        return {f"{_OFFLINE}{path.name}": path.read_bytes() for path in paths}
    except OSError as error:
        raise UsageError(f"cannot read {error.filename}: {error.strerror}") from None


def render_playground(libraries: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the contents of all files of the playground, keyed by path.

    Args:
        libraries: the files of Pyodide in the offline form; empty for the online form.
    """
    binary = {
        "cgprimer.zip": build_cgprimer_archive(),
        "sympy.zip": build_sympy_archive(),
        **libraries,
    }
    has_numpy = not libraries or any(n.startswith(f"{_OFFLINE}numpy-") for n in libraries)
    draft = _render_texts("", bool(libraries), has_numpy, ())
    # Addresses and the name of the cache contain the version, so that versions never mix.
    version = _compute_version({**binary, **draft})
    cached = [name for name in (*draft, *binary) if not name.endswith(".whl")]
    cached = [name for name in cached if name not in ("sympy.zip", "service_worker.js")]
    texts = _render_texts(version, bool(libraries), has_numpy, cached)
    files = {**texts, **binary}
    manifest = {"version": version, "release": __version__, "pyodide": PYODIDE}
    listed = sorted((*files, _MANIFEST))
    text = json.dumps({**manifest, "files": listed}, indent=1) + "\n"
    return {**files, _MANIFEST: text.encode()}


def _compute_version(files: Mapping[str, bytes]) -> str:
    """Return a hash of the names and contents of files."""
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:12]


def _render_texts(
    version: str, is_offline: bool, has_numpy: bool, cached: Iterable[str]
) -> dict[str, bytes]:
    """Render the page, its scripts and style sheets, keyed by file name."""
    roles = theme(False).roles
    values: dict[str, Any] = {
        "version": version,
        "release": __version__,
        "pyodide": _OFFLINE if is_offline else _ONLINE,
        "origin": "" if is_offline else f" {_ONLINE}",  # not all packages of the network
        "has_numpy": has_numpy,
    }
    pages = {
        "index.html": render_template(
            f"{_TEMPLATES}/playground_page.html",
            tabs=TABS.items(),
            config=encode_script_data(_collect_page_data()),
            **values,
        ),
        "licenses.html": render_template(
            f"{_TEMPLATES}/licenses.html", version=version, licenses=_collect_licenses()
        ),
        "playground.css": render_template(
            f"{_TEMPLATES}/playground_page.css", themes=collect_themes(), roles=roles
        ),
        "playground.js": render_template(f"{_TEMPLATES}/playground_page.js"),
        "worker.js": render_template(f"{_TEMPLATES}/python_worker.js"),
        "service_worker.js": render_template(
            f"{_TEMPLATES}/service_worker.js",
            version=version,
            files=encode_script_data(_list_addresses(cached, version, is_offline)),
        ),
        "dagre.js": render_template(f"{_TEMPLATES}/dagre_module.js"),
        **render_step_shell(),
    }
    return {name: text.encode() for name, text in pages.items()}


def _list_addresses(cached: Iterable[str], version: str, is_offline: bool) -> list[str]:
    """Return the addresses of files that browsers keep for the next visit."""
    versioned = ("playground.css", "playground.js", "worker.js", "dagre.js", "cgprimer.zip")
    names = [f"{name}?v={version}" if name in versioned else name for name in cached]
    folder = ["./"]  # the address of the page without its file name
    return [*folder, *names, *([] if is_offline else (_ONLINE + name for name in _PYODIDE_FILES))]


def _collect_page_data() -> dict[str, Any]:
    """Collect what the page needs before Python is loaded, with the answers for one example."""
    topics = json.loads(answer_request('{"view": "examples"}'))["topics"]
    fields = ("name", "title", "teaches", "source")
    examples = [
        {
            "topic": topic["topic"],
            "examples": [
                {**{field: row[field] for field in fields}, "text": _shorten_example(row)}
                for row in topic["examples"]
            ],
        }
        for topic in topics
    ]
    rows = (row for topic in examples for row in topic["examples"])
    text = next(row["text"] for row in rows if row["name"] == _FIRST_EXAMPLE)
    answers = {
        view: json.loads(answer_request(json.dumps({"view": view, "text": text})))
        for view in ("summary", "graph")
    }
    return {
        "examples": examples,
        "first": _FIRST_EXAMPLE,
        "optimizers": SCALAR_OPTIMIZERS,
        "shapes": {role: [look.shape, look.label] for role, look in theme(False).roles.items()},
        "precomputed": {"text": text, **answers},
    }


def _shorten_example(example: Mapping[str, str]) -> str:
    """Return the text of an example, whose header is replaced by a comment with its title."""
    lines = example["text"].splitlines(keepends=True)
    body = "".join(dropwhile(lambda line: line.startswith("#"), lines)).strip("\n")
    return f"# {example['title']}\n{body}\n"


def _collect_licenses() -> list[dict[str, str]]:
    """Return the licenses of everything that the playground contains or loads."""
    addresses = {
        "Pyodide": ("MPL-2.0", PYODIDE, "https://github.com/pyodide/pyodide/blob/main/LICENSE"),
        "CPython": ("PSF-2.0", "3.14", "https://docs.python.org/3/license.html"),
        "NumPy": ("BSD-3-Clause and others", "", "https://numpy.org/doc/stable/license.html"),
    }
    folder = Path(__file__).parents[1] / "pages" / "vendor"
    terms = (folder / "dagre.min.js.LEGAL.txt").read_text(encoding="utf-8")
    dagre = License("dagre", "3.1.3", "MIT", terms)
    rows = [{**license._asdict(), "address": ""} for license in (*list_licenses(), dagre)]
    return rows + [
        {"package": package, "name": name, "version": version, "text": "", "address": address}
        for package, (name, version, address) in addresses.items()
    ]
