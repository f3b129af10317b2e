"""Draw the pictures of some pages again: ``python -m tests.docs.test_gallery [PAGE...]``.

The commands of a page run in an empty folder. The pictures that they write are copied to the folder
of the page, which has its name. HTML pages are shown as screenshots, which need chromium. The
gallery has commands without their output, to be copied by readers.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cgprimer.cli.plot_command import command as plot
from cgprimer.visualization.diagrams.figure_files import save_figure
from tests.cli.cli_tools import here
from tests.docs.scaling import scaling
from tests.docs.test_docs import FILES, ROOT, Mismatch, named, run_file, workplace

PAGE = ROOT / "docs" / "reference" / "gallery.md"
PAGES = [page for page in FILES if page.with_suffix("").is_dir()]
MERMAID = re.compile(r"(?<=^```mermaid\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([\w-]+)/([\w.-]+)\)")


SCREENSHOTS = {  # by name: the page, and where it is open
    "step-page.png": "lecture.html#reverse/18",
    "explorer-page.png": "net.html#xh1_57",
    "comparison-page.png": "comparison.html",
    "boundary-page.png": "boundary.html#20",
    "round-page.png": "backup.html#8",
    "homework-report.png": "answers.html",
}
WINDOWS = {"homework-report.png": "860,750"}  # sizes of pages that need no projector


def shown(page: Path) -> list[str]:
    """The files in the folder of a page that it shows or links to."""
    links = LINK.findall(page.read_text(encoding="utf-8"))
    return list(dict.fromkeys(name for folder, name in links if folder == page.stem))


def commands(page: Path) -> list[str]:
    """Return the commands that a page shows, with or without their output."""
    return re.findall(r"^ *(?:\$ )?(cgprimer .+)$", page.read_text(encoding="utf-8"), re.MULTILINE)


def make(page: Path, folder: Path) -> list[Mismatch]:
    """Run the commands of a page in a folder; return those that fail or print something else."""
    if page != PAGE:
        return run_file(page, folder)[1]
    failures = []
    with workplace(folder):
        for command in commands(page):
            result = here(*shlex.split(command)[1:], merged=True)
            if result.returncode:
                failures.append(Mismatch(f"{named(page)}: {command}", "", result.stdout))
    return failures


DRAWN = {"scaling.svg": scaling}  # without a command


def screenshot(page: str, picture: Path) -> None:
    """Save what a browser shows of a page, on a small projector without a size in WINDOWS."""
    size = WINDOWS.get(picture.name, "1280,720")
    options = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={size}"]
    subprocess.run(
        ["chromium", *options, f"--screenshot={picture}", page], check=True, capture_output=True
    )


TEXT = PAGE.read_text(encoding="utf-8")
DRAW_OPTIONS = ("--values", "--partials", "--tangents", "--adjoints", "--path", "--dark",
                "--level operations", "--level backward")  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_write_its_pictures(page: Path, tmp_path: Path) -> None:
    assert make(page, tmp_path) == []
    for name in set(shown(page)) - set(DRAWN):
        content = (tmp_path / SCREENSHOTS.get(name, name).partition("#")[0]).read_bytes()
        if name.endswith(".svg"):
            assert len(re.findall(rb"<path|<use", content)) > 10
        assert len(content) > 1000
    if page == PAGE:
        (chart,) = MERMAID.findall(TEXT)
        assert chart == (tmp_path / "olah.mmd").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_shows_the_pictures_of_its_folder_with_descriptions(page: Path) -> None:
    pictures = list(page.with_suffix("").iterdir())
    assert sorted(shown(page)) == sorted(path.name for path in pictures)
    assert all(path.stat().st_size < 1_000_000 for path in pictures)
    for description in re.findall(r"!\[(.*?)\]\(", page.read_text(encoding="utf-8")):
        assert len(description.split()) >= 5


def test_every_kind_of_picture_is_shown() -> None:
    folders = re.findall(r"!\[.*?\]\((\.\./[\w/-]+)/[\w.-]+\)", TEXT)  # of other pages
    pages = [PAGE.parent / f"{folder}.md" for folder in dict.fromkeys(folders)]
    lines = [line for page in (PAGE, *pages) for line in commands(page)]
    drawn = " ".join(line for line in lines if line.startswith("cgprimer draw"))
    assert [option for option in DRAW_OPTIONS if option not in drawn] == []
    for command in (*(f"plot {kind}" for kind in plot.commands), "compare"):
        assert any(line.startswith(f"cgprimer {command} ") for line in lines), command
    for suffix in (".html", ".gif"):
        assert any(re.fullmatch(rf"cgprimer step .*\{suffix}", line) for line in lines)


def main(names: list[str]) -> None:
    for page in PAGES:
        if names and page.stem not in names:
            continue
        with tempfile.TemporaryDirectory() as place:
            for mismatch in make(page, Path(place)):
                print(mismatch)
            pictures = page.with_suffix("")
            shutil.rmtree(pictures, ignore_errors=True)
            pictures.mkdir()
            if page == PAGE:
                chart = (Path(place) / "olah.mmd").read_text(encoding="utf-8")
                text = page.read_text(encoding="utf-8")
                page.write_text(MERMAID.sub(lambda _, chart=chart: chart, text), encoding="utf-8")
            for name in shown(page):
                if name in SCREENSHOTS:
                    screenshot(f"file://{place}/{SCREENSHOTS[name]}", Path(place) / name)
                if name in DRAWN:
                    save_figure(DRAWN[name](), Path(place) / name)
                shutil.copyfile(Path(place) / name, pictures / name)
                print(pictures / name)


if __name__ == "__main__":
    main(sys.argv[1:])
