"""Checks of the documentation site: every page, every public name and every link.

Each function returns a list of messages, which is empty if everything is complete.
"""

from __future__ import annotations

import importlib
import inspect
import re
import tomllib
from collections import Counter
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[2]
DOCS, SITE, NOTEBOOKS = ROOT / "docs", ROOT / "docs" / "site", ROOT / "examples" / "notebooks"
CONTRIBUTING = ROOT / ".github" / "CONTRIBUTING.md"
CONFIGURATION = tomllib.loads((SITE / "zensical.toml").read_text(encoding="utf-8"))
PUBLIC_MODULES = ("expressions", "networks", "plot", "tapes")

DIRECTIVE = re.compile(r"^::: (cgprimer[\w.]*)$", re.MULTILINE)
LINK = re.compile(r'<[^>]* (?:href|src)="([^"]*)"')
ANCHOR = re.compile(r'<[^>]* id="([^"]*)"')


def find_unlisted_pages() -> list[str]:
    """Return a message for each page that the navigation does not list exactly once."""
    listed = Counter(re.findall(r"'([^']*\.md)'", repr(CONFIGURATION["project"]["nav"])))
    pages = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    books = [f"learn/notebooks/{path.stem}.md" for path in NOTEBOOKS.glob("*.ipynb")]
    expected = Counter([*pages, *books, "internals/contributing.md"])
    return report_differences("zensical.toml", listed, expected)


def find_broken_links(site: Path) -> list[str]:
    """Return a message for each link or source in the site that leads nowhere.

    The strict build of zensical checks only links between Markdown pages.
    """
    texts = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    anchors = {path: set(ANCHOR.findall(text)) for path, text in texts.items()}
    found = []
    for path, text in texts.items():
        outside = path.name == "404.html" or path.parent.name == "live"
        for target in set() if outside else set(LINK.findall(text)):
            address = urlsplit(unescape(target))
            file = (path.parent / unquote(address.path)).resolve() if address.path else path
            if address.scheme or (file.exists() and not address.fragment):
                continue
            if not file.exists() or unquote(address.fragment) not in anchors.get(file, set()):
                found.append(f"{path.relative_to(site)}: {target} leads nowhere")
    return found


def list_public_names() -> list[str]:
    """Return the public names of the package, each object under its shortest name."""
    cgprimer = importlib.import_module("cgprimer")
    names = {
        id(getattr(cgprimer, name)): f"cgprimer.{name}"
        for name in cgprimer.__all__
        if name not in ("__version__", *PUBLIC_MODULES)
    }
    for module_name in PUBLIC_MODULES:
        module = importlib.import_module(f"cgprimer.{module_name}")
        for name in dir(module) if module_name == "plot" else list_exports(module):
            names.setdefault(id(getattr(module, name)), f"cgprimer.{module_name}.{name}")
    return list(names.values())


def list_exports(module: object) -> list[str]:
    """Return the names of ``__all__``, or of the functions that a module defines."""
    functions = inspect.getmembers(module, inspect.isfunction)
    defined = [n for n, f in functions if f.__module__ == module.__name__ and n[0] != "_"]
    return getattr(module, "__all__", defined)


def find_unlisted_names() -> list[str]:
    """Return a message for each public name that the API pages do not list exactly once."""
    texts = [path.read_text(encoding="utf-8") for path in (DOCS / "reference").rglob("*.md")]
    listed = Counter(path for text in texts for path in DIRECTIVE.findall(text))
    return report_differences("docs/reference/python", listed, Counter(list_public_names()))


def report_differences(place: str, listed: Counter[str], expected: Counter[str]) -> list[str]:
    """Return a message for each item that is missing or superfluous in a list."""
    missing = [f"{place}: {name} is missing" for name in expected - listed]
    return missing + [f"{place}: {name} is superfluous" for name in listed - expected]


def find_undocumented_names() -> list[str]:
    """Return a message for each public name or method without a docstring."""
    import griffe

    package = griffe.load("cgprimer", resolve_aliases=True)
    found = []
    for name in list_public_names():
        item = package[name.removeprefix("cgprimer.")]
        members = item.members.items() if item.is_class else ()
        methods = [
            f"{name}.{n}" for n, m in members if m.is_function and n[0] != "_" and not m.docstring
        ]
        found += [name] * (not item.docstring) + methods
    return [f"{name} has no docstring" for name in found]
