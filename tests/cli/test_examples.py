"""The examples are at hand wherever the package is installed."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

import cgprimer
from cgprimer.support.example_files import LEVELS, TOPICS
from cgprimer.visualization.diagrams.slide_layout import slide_layout
from tests.approval import approved
from tests.cli.cli_tools import EXAMPLES, bad, good, run


def names_listed(text: str) -> list[str]:
    return re.findall(r"^  (\S+): ", text, re.MULTILINE)


def test_all_are_listed_by_topic_and_level() -> None:
    text = good("examples")
    files = [path for path in EXAMPLES.iterdir() if path.suffix in (".cg", ".py")]
    names = [path.stem if path.suffix == ".cg" else path.name for path in files]
    assert sorted(names_listed(text)) == sorted(names)
    headings = re.findall(r"^(\S.*), (\w+)$", text, re.MULTILINE)
    assert headings == sorted(
        headings, key=lambda heading: (TOPICS.index(heading[0]), LEVELS.index(heading[1]))
    )
    assert {topic for topic, _ in headings} == set(TOPICS)


def test_every_example_says_what_it_teaches_and_its_source() -> None:
    rows = json.loads(good("examples", "--json"))
    for row in rows:
        assert row["title"].endswith((".", ":")), row
        assert len(row["teaches"].split()) > 5, row
        assert len(row["source"]) > 10, row
        for field in ("title", "teaches", "source"):  # no field has swallowed the next one
            assert not re.search("Topic:|Teaches:|Source:|Run:", row[field]), row


def test_topics_and_levels_select() -> None:
    arrays = names_listed(good("examples", "--topic", "ARRAYS"))
    assert {"hidden_layer", "mlp", "hamilton"} <= set(arrays)
    assert names_listed(good("examples", "--topic", "arrays", "--level", "advanced")) == [
        "hamilton"
    ]
    approved(bad("examples", "--topic", "graphics"))


def test_one_is_copied_and_nothing_overwritten(tmp_path: Path) -> None:
    assert "wrote lecture.cg" in run("examples", "--copy", "lecture", cwd=tmp_path).stderr
    copied = tmp_path / "lecture.cg"
    assert copied.read_bytes() == (EXAMPLES / "lecture.cg").read_bytes()
    good("examples", "--copy", "sine", "--copy", "quantization.py", cwd=tmp_path)
    assert (tmp_path / "sine.cg").exists()
    program = tmp_path / "quantization.py"
    assert program.read_bytes() == (EXAMPLES / "quantization.py").read_bytes()
    copied.write_text("xw = xa")
    approved(bad("examples", "--copy", "lecture", cwd=tmp_path))
    assert copied.read_text() == "xw = xa"
    approved(bad("examples", "--copy", "lectur", cwd=tmp_path), "'lecture'")


def test_a_name_is_an_example_unless_a_file_has_it(tmp_path: Path) -> None:
    assert "inputs: xa" in good("info", "lecture", cwd=tmp_path)
    (tmp_path / "lecture").write_text("xw = k*xq")
    assert "inputs: xq" in good("info", "lecture", cwd=tmp_path)
    assert str(cgprimer.load("mazur")) == str(cgprimer.load(EXAMPLES / "mazur.cg"))


def test_a_name_that_comes_near_is_pointed_out(tmp_path: Path) -> None:
    for name in ("lectur", "lecture.cg", "examples/lecture.cg"):
        message = bad("grad", name, cwd=tmp_path)
        approved(message, name)
        approved(message, "'lecture'")
    assert "hint" not in bad("grad", "nosuch.cg", cwd=tmp_path)


def test_without_graphlay_drawing_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "graphlay", None)
    slide_layout.cache_clear()  # the layout of an earlier test needs no library
    message = bad("draw", "lecture", "-o", tmp_path / "a.png")
    approved(message)
    assert run("draw", "lecture", "-o", tmp_path / "a.mmd").returncode == 0  # as its hint says
    assert run("draw", "lecture", "-o", tmp_path / "a.dot").returncode == 0
