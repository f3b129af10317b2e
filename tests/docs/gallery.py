"""Make the pictures of ``docs/gallery.md`` anew: ``python -m tests.docs.gallery``.

The page says how: its commands are run in a folder of their own, and what they write is put
beside the page. Pages that a command writes are shown as screenshots, which need chromium.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.docs.test_docs import ROOT, Mismatch, run_file

PAGE = ROOT / "docs" / "gallery.md"
PICTURES = PAGE.with_suffix("")
MERMAID = re.compile(r"(?<=^```mermaid\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(gallery/([\w.-]+)\)")


SCREENSHOTS = {"step-page.png": "lecture.html#reverse/18", "comparison-page.png": "comparison.html"}


def shown() -> list[str]:
    """The files of ``docs/gallery/`` that the page shows or links to."""
    return list(dict.fromkeys(LINK.findall(PAGE.read_text(encoding="utf-8"))))


def make(folder: Path) -> list[Mismatch]:
    """Run the commands of the page in a folder; returns where they print something else."""
    _, found = run_file(PAGE, folder)
    return found


def screenshot(page: str, picture: Path) -> None:
    """What a browser shows of a page on a small projector."""
    options = ["--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=1280,720"]
    subprocess.run(
        ["chromium", *options, f"--screenshot={picture}", page], check=True, capture_output=True
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        for mismatch in make(Path(place)):
            print(mismatch)
        chart = (Path(place) / "olah.mmd").read_text(encoding="utf-8")
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(MERMAID.sub(lambda _: chart, text), encoding="utf-8")
        PICTURES.mkdir(exist_ok=True)
        for old in PICTURES.iterdir():
            old.unlink()
        for name, page in SCREENSHOTS.items():
            screenshot(f"file://{place}/{page}", Path(place) / name)
        for name in shown():
            shutil.copyfile(Path(place) / name, PICTURES / name)
            print(PICTURES / name)


if __name__ == "__main__":
    main()
