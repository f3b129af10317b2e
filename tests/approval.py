"""Compare messages with the approved texts, so that a test states only what a message must contain.

Full texts are in ``approved.txt`` of the test's folder, one entry per test and text. After a change
of wording, ``python -m pytest FOLDER --approve`` rewrites the entries of the tests that it runs and
removes those of tests that are gone; the diff is what has to be reviewed.
"""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
NUMBER = re.compile(r" \(\d+\)$")  # of the second and later texts of a test


def read(path: Path) -> dict[str, str]:
    """Return the texts of a file by their headers; a text follows the headers that share it."""
    entries: dict[str, str] = {}
    for block in path.read_text("utf-8").split("\n\n") if path.exists() else ():
        lines = block.strip("\n").split("\n")
        text = "\n".join(line[2:] for line in lines if line.startswith("|"))
        entries |= {line: text for line in lines if line and not line.startswith("|")}
    return entries


def write(path: Path, entries: dict[str, str]) -> None:
    """Write entries in the order of their headers; equal texts of one function are one block."""
    blocks: dict[tuple[str, str], list[str]] = {}
    for header in sorted(entries, key=lambda h: re.sub(r"\d+", lambda n: n[0].zfill(9), h)):
        text = entries[header]
        function = re.split(r"[\[ ]", header, maxsplit=1)[0]
        blocks.setdefault((function, text), []).append(header)
    parts = []
    for (_, text), headers in blocks.items():
        parts += [*headers, *(f"| {line}".rstrip() for line in text.split("\n")), ""]
    path.write_text("\n".join(parts), "utf-8", newline="\n")


def lines_with_values(path: Path) -> list[Any]:
    """Return the lines of a file, each with the indented line behind it, or with ""."""
    return re.findall(r"^(\S.*)\n(?: +(.*)\n)?", path.read_text("utf-8"), re.MULTILINE)


class Approvals:
    """The approved texts of all folders, and the test that is running."""

    def __init__(self) -> None:
        self.rewriting = False
        self.files: dict[Path, dict[str, str]] = {}
        self.path, self.test = ROOT, ""
        self.texts: list[str] = []  # of the running test, in the order of their first appearance
        self.folders: dict[str, str] = {}  # paths that differ from run to run, and their names

    def entries(self, path: Path) -> dict[str, str]:
        """Return the entries of a file, read once."""
        if path not in self.files:
            self.files[path] = read(path)
        return self.files[path]

    def header(self, index: int) -> str:
        """Return the header of the running test's text at ``index``."""
        return f"{self.test} ({index + 1})" if index else self.test

    @contextlib.contextmanager
    def running(self, file: Path, name: str, folders: dict[str, str]) -> Iterator[None]:
        """Compare texts with the entries of a test; an entry that the test leaves out is stale."""
        self.path, self.test = file.with_name("approved.txt"), f"{file.name}::{shortened(name)}"
        self.texts, self.folders = [], folders
        yield
        index = len(self.texts)
        while (stale := self.header(index)) in self.entries(self.path):
            if not self.rewriting:
                pytest.fail(f"{stale} is approved, but the test has {len(self.texts)} texts")
            del self.entries(self.path)[stale]
            index += 1

    def check(self, text: str) -> None:
        """Raise AssertionError unless the running test's next text is approved."""
        text = self.normalized(text)
        if text in self.texts:
            return
        self.texts.append(text)
        header, entries = self.header(len(self.texts) - 1), self.entries(self.path)
        if self.rewriting:
            entries[header] = text
        elif header not in entries:
            raise AssertionError(f"no approved text for {header}:\n{text}\n{remedy(self.path)}")
        elif entries[header] != text:
            lines = difflib.ndiff(entries[header].split("\n"), text.split("\n"))
            changes = "\n".join(lines)
            raise AssertionError(
                f"not the approved text of {header}:\n{changes}\n{remedy(self.path)}"
            )

    def normalized(self, text: str) -> str:
        """Return a text without what differs between runs and machines: folders, many digits."""
        for folder, name in sorted(self.folders.items(), reverse=True):
            text = text.replace(folder, f"<{name}>")
        text = re.sub(
            rf"{re.escape(str(ROOT))}(/tests/.*\.py):\d+: .*", r"<root>\1:<line>: <code>", text
        )
        text = re.sub(r"\b0x[0-9a-f]{6,}", "<address>", text.replace(str(ROOT), "<root>"))
        text = re.sub(r"\d+\.\d{4,}(e[-+]?\d+)?", "<number>", text)
        text = re.sub(r"(?<=127\.0\.0\.1:)\d{4,}", "<port>", text)
        return "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))

    def stale(self, tests: Iterable[tuple[Path, str]], arguments: Iterable[Path]) -> list[str]:
        """Return the entries without a test, below the files and folders that pytest runs."""
        collected = {(file, shortened(name)) for file, name in tests}
        files, below, result = {file for file, _ in collected}, set(arguments), []
        for path in sorted(ROOT.glob("tests/**/approved.txt")):
            for header in [*self.entries(path)]:
                name, _, test = NUMBER.sub("", header).partition("::")
                file = path.with_name(name)
                asked = below & {file, *file.parents} and (file in files or not file.exists())
                if asked and (file, test) not in collected and self.rewriting:
                    del self.entries(path)[header]
                elif asked and (file, test) not in collected:
                    result.append(f"{path.parent.relative_to(ROOT)}: {header}")
        return result

    def save(self) -> None:
        """Write the files whose entries have changed."""
        for path, entries in self.files.items():
            if entries != read(path):
                write(path, entries)
                if not entries:
                    path.unlink()


APPROVALS = Approvals()


def shortened(name: str) -> str:
    """Return a test's name, without the middle of what would be a very long line."""
    return name if len(name) <= 200 else f"{name[:150]} ... {name[-40:]}"


def remedy(path: Path) -> str:
    """Return what to do about a text that is not approved."""
    return f"review the text, and run: python -m pytest --approve {path.parent}"


def approved(text: str, contains: str = "") -> str:
    """Check a text against its approved entry, and its values, which are separated by `` ... ``."""
    for value in contains.split(" ... "):
        assert value in text, f"{value!r} is not in:\n{text}"
    APPROVALS.check(text)
    return text


@contextlib.contextmanager
def refused(
    kind: type[BaseException] | tuple[type[BaseException], ...], contains: str = ""
) -> Iterator[pytest.ExceptionInfo[Any]]:
    """Expect an exception of a kind, with values in its text and with an approved text."""
    with pytest.raises(kind) as caught:
        yield caught
    approved(str(caught.value), contains)


@contextlib.contextmanager
def warned(kind: type[Warning], contains: str = "") -> Iterator[pytest.WarningsRecorder]:
    """Expect a warning of a kind, with values in its text and with an approved text."""
    with pytest.warns(kind) as caught:
        yield caught
    approved(str(next(w.message for w in caught if issubclass(w.category, kind))), contains)
