"""Build the documentation site: ``python docs/site/build.py [--output DIR]``.

The site is made from the Markdown files in docs/, with the notebooks of examples/, pages that the
package writes and the API reference. A broken link, a page that is missing in
the navigation, or a public name without documentation is an error. The result needs no server:
open ``site/index.html``.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS, SITE, NOTEBOOKS = ROOT / "docs", ROOT / "docs" / "site", ROOT / "examples" / "notebooks"
CONFIGURATION = tomllib.loads((SITE / "zensical.toml").read_text(encoding="utf-8"))
PUBLIC_MODULES = ("expressions", "networks", "plot", "tapes")

# Pages that the package writes and the site shows in frames, each with its commands.
LIVE = {
    "step-lecture.html": ["step lecture -o step-lecture.html"],
    "compare-lecture.html": ["compare lecture -o compare-lecture.html"],
    "workers.html": [
        "train lecture --samples 2000 --workers 8 --simulate --protocol backup --save backup.json",
        "plot workers backup.json -o workers.html",
    ],
    "boundary.html": [
        "new mlp 2-6-1 --output sigmoid --values -o bend.cg",
        "data bend.cg --classes moons --samples 200 -o bend.csv",
        "train bend.cg --data bend.csv --loss cross-entropy --learning-rate 0.05 --epochs 150"
        " --save bend.json",
        "plot boundary bend.json --data bend.csv -o boundary.html",
    ],
}

PROMPTS = re.compile(r"^( *)```python\n(?=\1>>> )", re.MULTILINE)
DIRECTIVE = re.compile(r"^::: (cgprimer[\w.]*)$", re.MULTILINE)
SECTION = re.compile(r"^(?=#{2,3} )", re.MULTILINE)
PICTURES = re.compile(r"((?:^!\[.*\]\(.*\)\n\n?)+)", re.MULTILINE)
SOLUTION = re.compile(r"^( *)### BEGIN SOLUTION\n.*?### END SOLUTION$", re.MULTILINE | re.DOTALL)
HIDDEN = re.compile(
    r"^ *### BEGIN HIDDEN TESTS\n.*?### END HIDDEN TESTS$", re.MULTILINE | re.DOTALL
)


def main() -> None:
    """Build the site in the folder that the command line names."""
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("--output", type=Path, default=ROOT / "site", help="default: site/")
    output = parser.parse_args().output.resolve()
    if problems := [*find_unlisted_pages(), *find_unlisted_names(), *find_undocumented_names()]:
        sys.exit("\n".join(problems))
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        write_sources(project)
        command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
        if subprocess.run(command, cwd=project, check=False).returncode:
            sys.exit("the site has not been built")
        write_redirects(project / "site")
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(project / "site", output)
    print(f"wrote {output / 'index.html'}")


# --- sources -------------------------------------------------------------------------------------


def write_sources(project: Path) -> None:
    """Write everything that zensical reads to a folder."""
    pages = project / "docs"
    shutil.copytree(DOCS, pages, ignore=shutil.ignore_patterns("site"))
    shutil.copytree(SITE / "assets", pages / "assets")
    for name in ("zensical.toml", "docstrings.py", "command_tables.py"):
        shutil.copyfile(SITE / name, project / name)
    for page in pages.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        text = arrange_cards(text) if page.stem == "gallery" else text
        page.write_text(PROMPTS.sub(r"\1```pycon\n", text), encoding="utf-8")
    write_live_pages(pages / "live")
    for notebook in sorted(NOTEBOOKS.glob("*.ipynb")):
        write_notebook(notebook, pages / "learn" / "notebooks")


def arrange_cards(text: str) -> str:
    """Put each picture of the gallery on a card, with the text and the command above it."""
    introduction, *sections = SECTION.split(text)
    blocks = [(False, f"---\nhide: [toc]\n---\n{introduction}")]
    for section in sections:
        heading, _, body = section.partition("\n")
        *cards, rest = PICTURES.split(f"{body}\n")
        if heading.startswith("## "):
            blocks.append((False, heading))
            heading = ""
        for words, pictures in zip(cards[::2], cards[1::2], strict=True):
            linked = re.sub(r"(!\[.*\])(\(.*\))", r"[\1\2]\2", pictures)
            blocks.append((True, wrap("card", f"{heading}\n{words}{linked}")))
            heading = ""
        blocks += [(False, f"{heading}\n{rest}")] if (heading + rest).strip() else []
    groups = groupby(blocks, key=lambda block: block[0])
    texts = [(on_card, "\n\n".join(text for _, text in group)) for on_card, group in groups]
    return "\n\n".join(wrap("gallery", text) if on_card else text for on_card, text in texts)


def wrap(kind: str, text: str) -> str:
    """Return Markdown in an element of the given class."""
    return f'<div class="{kind}" markdown>\n\n{text}\n\n</div>'


def write_live_pages(folder: Path) -> None:
    """Write the pages of the package with its own commands."""
    folder.mkdir()
    with tempfile.TemporaryDirectory() as place:
        for name, commands in LIVE.items():
            for command in commands:
                arguments = [sys.executable, "-m", "cgprimer", *command.split()]
                subprocess.run(arguments, cwd=place, check=True, stdout=subprocess.DEVNULL)
            shutil.copyfile(Path(place) / name, folder / name)


def write_notebook(source: Path, folder: Path) -> None:
    """Write a notebook as Markdown; next to it, write the notebook as students get it."""
    import nbformat
    from nbconvert import MarkdownExporter
    from nbconvert.preprocessors import ExecutePreprocessor

    folder.mkdir(exist_ok=True)
    book = nbformat.read(source, as_version=4)
    homework = any("nbgrader" in cell.metadata for cell in book.cells)
    for cell in book.cells if homework else ():
        stub = r"\1# YOUR CODE HERE\n\1raise NotImplementedError()"
        cell.source = HIDDEN.sub("", SOLUTION.sub(stub, cell.source))
    nbformat.write(book, folder / source.name)
    if not homework:
        ExecutePreprocessor(timeout=300).preprocess(book)
    exporter = MarkdownExporter()
    body, resources = exporter.from_notebook_node(book, {"output_files_dir": source.stem})
    for name, data in resources["outputs"].items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)
    heading, _, rest = body.lstrip().partition("\n")
    link = f"[Download this notebook]({source.name})"
    (folder / f"{source.stem}.md").write_text(f"{heading}\n\n{link}\n{rest}", encoding="utf-8")


def write_redirects(site: Path) -> None:
    """Write a page that leads to the new address for each old address."""
    for old, new in CONFIGURATION["redirects"].items():
        if not (site / new.partition("#")[0]).is_file():
            sys.exit(f"zensical.toml: the redirect of {old} leads to {new}, which does not exist")
        target = os.path.relpath(new, Path(old).parent)
        (site / old).parent.mkdir(parents=True, exist_ok=True)
        (site / old).write_text(
            f'<!doctype html>\n<meta charset="utf-8">\n<title>Moved</title>\n'
            f'<script>location.replace("{target}" + location.hash)</script>\n'
            f'<meta http-equiv="refresh" content="1; url={target}">\n'
            f'<p>This page has moved to <a href="{target}">{target}</a>.</p>\n',
            encoding="utf-8",
        )


# --- completeness --------------------------------------------------------------------------------


def find_unlisted_pages() -> list[str]:
    """Return a message for each page that the navigation does not list exactly once."""
    listed = Counter(re.findall(r"'([^']*\.md)'", repr(CONFIGURATION["project"]["nav"])))
    pages = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    books = [f"learn/notebooks/{path.stem}.md" for path in NOTEBOOKS.glob("*.ipynb")]
    return report_differences("zensical.toml", listed, Counter(pages + books))


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


if __name__ == "__main__":
    main()
