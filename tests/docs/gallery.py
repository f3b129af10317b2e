"""Make the pictures of ``docs/gallery.md`` anew: ``python tests/docs/gallery.py``.

The page says how: its commands are run in a folder of their own, and what they write is put
beside the pictures that the page shows.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from test_docs import ROOT, Mismatch, run_file

PAGE = ROOT / "docs" / "gallery.md"
PICTURES = PAGE.with_suffix("")
MERMAID = re.compile(r"(?<=^```mermaid\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(gallery/([\w.-]+)\)")


def shown() -> list[str]:
    """The files of ``docs/gallery/`` that the page shows or links to."""
    return list(dict.fromkeys(LINK.findall(PAGE.read_text(encoding="utf-8"))))


def make(folder: Path) -> list[Mismatch]:
    """Run the commands of the page in a folder; returns where they print something else."""
    _, found = run_file(PAGE, folder)
    return found


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
        for name in shown():
            shutil.copyfile(Path(place) / name, PICTURES / name)
            print(PICTURES / name)


if __name__ == "__main__":
    main()
