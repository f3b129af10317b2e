"""Build the documentation site: ``python docs/site/build.py [--output DIR]``.

The site is made from the Markdown files in docs/, with the notebooks of examples/, pages that the
package writes and the API reference. A broken link, a page that is missing in the navigation, or a
public name without documentation is an error. The result needs no server: open ``site/index.html``.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from html import escape
from pathlib import Path

from completeness import (
    CONFIGURATION,
    CONTRIBUTING,
    DOCS,
    NOTEBOOKS,
    ROOT,
    SITE,
    find_broken_links,
    find_undocumented_names,
    find_unlisted_names,
    find_unlisted_pages,
)

from cgprimer.visualization.playground.playground_builder import write_playground

# Pages that the package writes, each with its commands. In place of a picture with the name of such
# a page, the site shows the page itself.
LIVE = {
    "step-page": ["step lecture -o step-page.html"],
    "comparison-page": ["compare lecture -o comparison-page.html"],
    "round-page": [
        'train -e "xw = k*xa + b; parameter k=3, b=-1" --samples 2000 --noise 0.1 --optimizer sgd'
        " --learning-rate 0.1 --schedule constant --batch-size 5 --epochs 2 --workers 8 --simulate"
        " --protocol backup --backup 2 --save backup.json",
        "plot workers backup.json -o round-page.html",
    ],
    "boundary-page": [
        "new mlp 2-6-1 --output sigmoid --values -o bend.cg",
        "data bend.cg --classes moons --samples 200 -o bend.csv",
        "train bend.cg --data bend.csv --loss cross-entropy --learning-rate 0.05 --epochs 150"
        " --save bend.json",
        "plot boundary bend.json --data bend.csv -o boundary-page.html",
    ],
}

PROMPTS = re.compile(r"^( *)```python\n(?=\1>>> )", re.MULTILINE)
TRY = re.compile(r"\[Try it in your browser\]\([^)]*\)")
HELP = re.compile(r"^<!-- help: (cgprimer(?: \w+)+) -->$", re.MULTILINE)
PICTURE = re.compile(r"^(-   )?!\[(.*)\]\(((?:[^)]*/)?([\w-]+)\.\w+)\)$", re.MULTILINE)
OUTSIDE = re.compile(r"\[([^\]]*)\]\((?:\.\./LICENSE|[A-Z_]+\.md)\)")  # files that the site lacks
SOLUTION = re.compile(r"^( *)### BEGIN SOLUTION\n.*?### END SOLUTION$", re.MULTILINE | re.DOTALL)
HIDDEN = re.compile(
    r"^ *### BEGIN HIDDEN TESTS\n.*?### END HIDDEN TESTS$", re.MULTILINE | re.DOTALL
)


def main() -> None:
    """Build the site in the folder that the command line names."""
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("--output", type=Path, default=ROOT / "site", help="default: site/")
    parser.add_argument("--url", default="", help="address of the site, for its 404 page")
    options = parser.parse_args()
    output = options.output.resolve()
    if output.is_dir() and any(output.iterdir()) and not (output / "objects.inv").exists():
        sys.exit(f"{output} is not empty and holds no site: choose another folder")
    if problems := [*find_unlisted_pages(), *find_unlisted_names(), *find_undocumented_names()]:
        sys.exit("\n".join(problems))
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        write_sources(project, options.url)
        command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
        if subprocess.run(command, cwd=project, check=False).returncode:
            sys.exit("the site has not been built")
        write_redirects(project / "site")
        if problems := find_broken_links(project / "site"):
            sys.exit("\n".join(problems))
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(project / "site", output)
    print(f"wrote {output / 'index.html'}")


# --- sources -------------------------------------------------------------------------------------


def write_sources(project: Path, url: str = "") -> None:
    """Write everything that zensical reads to a folder."""
    pages = project / "docs"
    shutil.copytree(DOCS, pages, ignore=shutil.ignore_patterns("site"))
    shutil.copytree(SITE / "assets", pages / "assets")
    shutil.copyfile(SITE / "docstrings.py", project / "docstrings.py")
    text = (SITE / "zensical.toml").read_text(encoding="utf-8")
    if url:
        text = text.replace("[project]\n", f'[project]\nsite_url = "{url}"\n', 1)
    (project / "zensical.toml").write_text(text, encoding="utf-8")
    text = CONTRIBUTING.read_text(encoding="utf-8").replace("](../docs/", "](../")
    (pages / "internals" / "contributing.md").write_text(OUTSIDE.sub(r"\1", text), encoding="utf-8")
    for page in pages.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        text = text.replace("../../.github/CONTRIBUTING.md", "../internals/contributing.md")
        root = "../" * len(page.relative_to(pages).parent.parts)
        text = PICTURE.sub(partial(show_picture, root=root), text)
        text = HELP.sub(show_help, text)
        text = TRY.sub(f"[Try it in your browser]({root}playground/index.html)", text)
        page.write_text(PROMPTS.sub(r"\1```pycon\n", text), encoding="utf-8")
    write_live_pages(pages / "live")
    write_playground(pages / "playground")
    for notebook in sorted(NOTEBOOKS.glob("*.ipynb")):
        write_notebook(notebook, pages / "learn" / "notebooks")


def show_help(comment: re.Match[str]) -> str:
    """Return the help of a command as a block of text."""
    from click.testing import CliRunner

    from cgprimer.cli import cli

    program, *words = comment[1].split()
    result = CliRunner().invoke(cli, [*words, "--help"], prog_name=program, terminal_width=88)
    if result.exit_code:
        sys.exit(f"{comment[0]}: {result.output}")
    return f"```text\n{result.output}```"


def show_picture(picture: re.Match[str], root: str = "../") -> str:
    """Return a picture that links to its file, or a page of the package in a frame."""
    card, words, path, name = picture.groups()
    live = f"{root}live/{name}.html"
    target = live if name in LIVE else path
    if card:
        return f"{card}[![{words}]({path})]({target})"
    if target == path:
        return picture[0]
    frame = f'<iframe src="{live}" title="{escape(words)}" loading="lazy"></iframe>'
    return f'<div class="live">{frame}</div>\n\n[Open this page on its own]({live})'


def write_live_pages(folder: Path) -> None:
    """Write the pages of the package with its own commands."""
    folder.mkdir()
    with tempfile.TemporaryDirectory() as place:
        for name, commands in LIVE.items():
            for command in commands:
                arguments = [sys.executable, "-m", "cgprimer", *shlex.split(command)]
                subprocess.run(arguments, cwd=place, check=True, stdout=subprocess.DEVNULL)
            shutil.copyfile(Path(place) / f"{name}.html", folder / f"{name}.html")


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


if __name__ == "__main__":
    main()
