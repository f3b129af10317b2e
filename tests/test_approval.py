"""A change of wording fails, says so, and is approved by one run with a flag."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.approval import Approvals, approved, read, refused, write
from tests.conftest import STALE


def check(approvals: Approvals, file: Path, *texts: str, name: str = "test_it") -> None:
    """Run a test that has these texts."""
    with approvals.running(file, name, {str(file.parent): "folder"}):
        for text in texts:
            approvals.check(text)


def rewritten(file: Path, *texts: str, name: str = "test_it") -> None:
    """Run a test with --approve."""
    approvals = Approvals()
    approvals.rewriting = True
    check(approvals, file, *texts, name=name)
    approvals.save()


def test_no_entry_is_stale(request: pytest.FixtureRequest) -> None:
    assert request.config.stash.get(STALE, []) == []


def test_only_approved_texts_pass(tmp_path: Path) -> None:
    file = tmp_path / "test_this.py"
    texts = ("unknown name 'xq'", "a line\n\n  hint: another")
    with pytest.raises(AssertionError, match=r"no approved text for test_this\.py::test_it"):
        check(Approvals(), file, *texts)
    rewritten(file, *texts)
    check(Approvals(), file, *texts)
    for changed in ("unknown name 'xr'", "unknown  name 'xq'"):
        with pytest.raises(AssertionError, match=r"(?s)- unknown name 'xq'.*\+ unknown.*--approve"):
            check(Approvals(), file, changed, texts[1])
    with pytest.raises(pytest.fail.Exception, match=r"test_it \(2\) is approved"):
        check(Approvals(), file, texts[0])
    rewritten(file, texts[0])
    assert read(tmp_path / "approved.txt") == {"test_this.py::test_it": texts[0]}
    with pytest.raises(AssertionError, match="xr"):
        approved(texts[0], "unknown ... 'xr'")
    with pytest.raises(AssertionError, match="3"), refused(ValueError, "got ... 3"):
        raise ValueError("got 4")


def test_other_tests_keep_their_entries_and_equal_texts_are_written_once(tmp_path: Path) -> None:
    file = tmp_path / "test_this.py"
    for name in ("test_it[10]", "test_it[9]", "test_other"):
        rewritten(file, "text", "text", name=name)
    written = (tmp_path / "approved.txt").read_text()
    assert written == (
        "test_this.py::test_it[9]\ntest_this.py::test_it[10]\n| text\n\n"
        "test_this.py::test_other\n| text\n"
    )
    write(tmp_path / "again.txt", read(tmp_path / "approved.txt"))
    assert (tmp_path / "again.txt").read_text() == written


def test_what_differs_between_runs_is_left_out(tmp_path: Path) -> None:
    text = f"{tmp_path}/a.cg: 0.5, <object at 0x7f12ab34> 1.23457e19\n  {__file__}:12: call(3)"
    rewritten(tmp_path / "test_this.py", text)
    (entry,) = read(tmp_path / "approved.txt").values()
    assert entry == (
        "<folder>/a.cg: 0.5, <object at <address>> <number>\n"
        "  <root>/tests/test_approval.py:<line>: <code>"
    )
