"""Letters that fonts have not, characters that formats have not, and numbers on edges."""

from __future__ import annotations

import warnings
import xml.etree.ElementTree
from pathlib import Path

from click.testing import CliRunner

import cgprimer
from cgprimer.cli.draw_command import command
from cgprimer.visualization.diagrams.diagram import Diagram, Node
from cgprimer.visualization.diagrams.diagram_formats import TEXTS, format_diagram, save_diagram
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
from tests.approval import approved, warned


def test_letters_that_no_font_has_are_named_once(tmp_path: Path) -> None:
    never = "\U0001f9ff\ue123"  # no text font draws the second: it is for private use
    diagram = Diagram((Node("a", f"a{never}", "input"),), (), title=never)
    with warned(UserWarning) as seen:
        save_diagram(diagram, tmp_path / "a.png")
    assert len(seen) == 1
    assert str(seen[0].message).count("\ue123") == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save_diagram(Diagram((Node("a", "größe α ж", "input"),), ()), tmp_path / "b.png")


def test_control_characters_break_no_file(tmp_path: Path) -> None:
    diagram = Diagram((Node("a", "a\x07", "input"),), (), title="\x00\x1b title")
    save_diagram(diagram, tmp_path / "a.svg")
    xml.etree.ElementTree.parse(tmp_path / "a.svg")
    for kind in TEXTS.names():
        assert not set(format_diagram(diagram, kind)) & set("\x00\x07\x1b")


def test_an_operand_in_two_places_is_said() -> None:
    edges = graph_diagram(cgprimer.parse("y = xa + xa; z = y*xb"), level="operations").edges
    assert [edge.label for edge in edges] == ["twice", "", ""]


def test_a_folder_is_no_picture(tmp_path: Path) -> None:
    ran = CliRunner().invoke(command, ["-e", "y = k*xa", "-o", str(tmp_path)])
    approved(str(ran.exception))
