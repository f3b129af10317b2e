"""DOT and TikZ are given to the programs that read them, and those must be content.

Without Graphviz (`dot`) or TeX (`pdflatex`, with TikZ) these tests skip: install `graphviz`,
or `texlive-latex-base` and `texlive-pictures`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import cgprimer
from cgprimer.analysis.element_graph import find_shape, list_element_names
from cgprimer.support.latex_text import (
    declare_missing_characters,
    escape_latex,
    escape_latex_prose,
)
from cgprimer.visualization.diagrams.diagram import Diagram, Edge, Node
from cgprimer.visualization.diagrams.diagram_formats import format_diagram
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.cg"))
TITLE = "Titles with & % $ # _ { } ~ ^ \\ < > \" ' ` | größe α ж -- ,, step-by-step"
WORDS = cgprimer.parse(
    "input node = 2, edge = 3, subgraph = 1, click = 1; parameter class = 2, ο = 1;"
    "strict = node*edge*class + subgraph; digraph = strict*click; end = digraph*1.5e-10*ο"
)
LETTERS = cgprimer.parse(
    "input größe = 2, α = 3, ж = 1; parameter Ωλ = 2, Ñ = 2, ς = 1;"
    "x_1 = größe*α + ж; xé = x_1^2*Ωλ - Ñ*ς"
)


def first_path(graph: cgprimer.ExpressionGraph) -> list[str]:
    """One path from an input to the first output."""
    waiting = [[name] for name in graph.inputs]
    while waiting:
        path = waiting.pop()
        if path[-1] == graph.outputs[0]:
            return path
        waiting += [[*path, head] for head in graph.leads_to.get(path[-1], ())]
    return []


def settings(graph: cgprimer.ExpressionGraph) -> Iterator[dict[str, Any]]:
    seed = list_element_names(graph, (graph.inputs or graph.parameters)[0])[0]
    arrays, number = cgprimer.tape(graph).has_arrays, not find_shape(graph, graph.outputs[0])
    for level in ("variables", "operations"):
        yield {"level": level}
        yield {
            "level": level, "values": True, "tangents": seed, "adjoints": number,
            "partials": not (arrays and level == "operations"), "title": TITLE,
        }  # fmt: skip
    yield {"parameters": "vertices", "title": TITLE}
    if number:
        yield {"level": "backward", "values": True}
    if len(path := first_path(graph)) > 1:
        yield {"path": path, "values": True, "title": "A sum & more"}


@cache
def diagrams() -> dict[str, Diagram]:
    """Every example at every level and with every overlay, and graphs with awkward names."""
    graphs = {path.stem: cgprimer.load(path) for path in EXAMPLES}
    graphs |= {"words": WORDS, "letters": LETTERS}
    return {
        f"{name} {number}": graph_diagram(graph, **chosen)
        for name, graph in graphs.items()
        for number, chosen in enumerate(settings(graph))
    }


# --- DOT ------------------------------------------------------------------------------------------

needs_dot = pytest.mark.skipif(
    shutil.which("dot") is None, reason="Graphviz's dot is not installed (apt install graphviz)"
)


def read_by_dot(text: str) -> dict[str, Any]:
    """What Graphviz understood; it must not have complained."""
    done = subprocess.run(
        ["dot", "-Tjson"], input=text, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    complaints = [x for x in done.stderr.splitlines() if "fontconfig" not in x.lower()]
    assert not complaints
    return dict(json.loads(done.stdout))


def check_dot(diagram: Diagram, *, dark: bool) -> None:
    answer = read_by_dot(format_diagram(diagram, "dot", dark=dark))
    found = [item for item in answer.get("objects", ()) if "nodes" not in item]
    assert [item["name"] for item in found] == [node.key for node in diagram.nodes]
    name = {item["_gvid"]: item["name"] for item in found}
    pairs = Counter((name[item["tail"]], name[item["head"]]) for item in answer.get("edges", ()))
    assert pairs == Counter((edge.tail, edge.head) for edge in diagram.edges)


@needs_dot
@pytest.mark.parametrize("example", ["lecture", "two_paths", "words", "letters"])
def test_dot_reads_what_is_written(example: str) -> None:
    for number, (name, diagram) in enumerate(diagrams().items()):
        if name.split()[0] == example:
            check_dot(diagram, dark=number % 2 == 0)


@needs_dot
@pytest.mark.slow
def test_dot_reads_every_example() -> None:
    for number, diagram in enumerate(diagrams().values()):
        check_dot(diagram, dark=number % 2 == 0)


@needs_dot
def test_dot_keeps_awkward_keys_and_labels() -> None:
    nodes = (
        Node('a"b\\', 'x "q" <b> & \\n', "input", ("50% {y} | z",)),
        Node("node", "−", "operation"),
    )
    diagram = Diagram(nodes, (Edge('a"b\\', "node", 'say "a\\n"\nb', True),), TITLE, ("<n> & m",))
    answer = read_by_dot(format_diagram(diagram, "gv"))
    assert {item["name"] for item in answer["objects"]} >= {"node"}
    assert len(answer["edges"]) == 1
    drawn = json.dumps(answer, ensure_ascii=False)
    assert "step-by-step" in drawn
    assert "&lt;n&gt; &amp; m" in drawn


# --- TikZ -----------------------------------------------------------------------------------------


@cache
def no_tex() -> str:
    """Why nothing can be compiled; empty where it can."""
    if shutil.which("pdflatex") is None:
        return "pdflatex is not installed (apt install texlive-latex-base texlive-pictures)"
    found = subprocess.run(["kpsewhich", "tikz.sty"], capture_output=True, check=False)
    return "" if found.stdout.strip() else "TikZ is not installed (apt install texlive-pictures)"


needs_tex = pytest.mark.skipif(bool(no_tex()), reason=no_tex() or "TeX is here")


def compiled(text: str, folder: Path) -> tuple[float, float]:
    """Width and height of the only page, in points; an error of TeX fails the test."""
    (folder / "a.tex").write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-jobname=a",
         r"\pdfobjcompresslevel=0 \input{a.tex}"],
        cwd=folder, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    said = done.stdout.decode(errors="replace")
    assert done.returncode == 0, said[-1500:]
    assert "(1 page" in said
    assert "Missing character" not in (folder / "a.log").read_text(errors="replace")
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", (folder / "a.pdf").read_bytes())
    assert box is not None
    return float(box[1]), float(box[2])


@needs_tex
@pytest.mark.parametrize(
    "name", ["lecture 0", "lecture 6", "mazur 3", "log_sine 5", "words 1", "letters 1"]
)
def test_tex_compiles(name: str, tmp_path: Path) -> None:
    width, height = compiled(format_diagram(diagrams()[name], "tex", dark="5" in name), tmp_path)
    assert width > 100
    assert height > 50


@needs_tex
@pytest.mark.slow
def test_tex_compiles_every_example(tmp_path: Path) -> None:
    for number, diagram in enumerate(diagrams().values()):
        compiled(format_diagram(diagram, "tex", dark=number % 2 == 0), tmp_path)


@needs_tex
def test_a_picture_longer_than_a_page_can_be_is_made_smaller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = compiled(format_diagram(diagrams()["lecture 0"], "tex"), tmp_path)
    monkeypatch.setattr("cgprimer.visualization.diagrams.tikz._LONGEST", 200.0)
    smaller = compiled(format_diagram(diagrams()["lecture 0"], "tex"), tmp_path)
    assert 200 <= max(smaller) < 250 < max(usual)
    assert smaller[0] / smaller[1] == pytest.approx(usual[0] / usual[1], rel=0.05)


@needs_tex
@pytest.mark.filterwarnings("ignore:Glyph")  # matplotlib's font, which measures, has none either
def test_tex_compiles_letters_that_it_cannot_show(tmp_path: Path) -> None:
    diagram = graph_diagram(cgprimer.parse("变量 = k*xa"), title="变量")
    compiled(format_diagram(diagram, "tex"), tmp_path)


def test_characters_that_no_font_of_tex_has_are_shown_by_number() -> None:
    assert escape_latex("变") == "变"
    declared = "\n".join(declare_missing_characters("a 变 b"))
    assert r"\DeclareUnicodeCharacter{53D8}{\textsuperscript{U+53D8}}" in declared
    assert list(declare_missing_characters(escape_latex("α, größe, é, x → y · ∂z"))) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("π", r"\ensuremath{\pi}"),
        ("Ω", r"\ensuremath{\Omega}"),
        ("Α", "A"),  # LaTeX has no command for capitals that look like Latin ones
        ("ï", r"\"{\i}"),
        ("e\u0301", r"\'{e}"),
        ("a-b", r"a\ensuremath{-}b"),
        ("a,,b", "a,{},b"),  # not a low quotation mark
    ],
)
def test_letters_in_latex(text: str, expected: str) -> None:
    assert escape_latex(text) == expected


def test_hyphens_of_words_are_no_minus_signs() -> None:
    assert escape_latex_prose("step-by-step, 2-1") == r"step-by-step, 2\ensuremath{-}1"


# --- Mermaid --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dark", [False, True])
def test_every_vertex_and_edge_is_in_the_flowchart(dark: bool) -> None:
    for diagram in diagrams().values():
        head, _, body = format_diagram(diagram, "mmd", dark=dark).partition("flowchart LR\n")
        assert head.startswith("---\n")
        assert head.endswith("---\n")
        assert len(re.findall(r'^  n\d+\W+".*:::\w+$', body, re.MULTILINE)) == len(diagram.nodes)
        arrows = re.findall(r"^  (n\d+) [=-]+>(?:\|\".*\"\|)? (n\d+)$", body, re.MULTILINE)
        number = {node.key: f"n{index}" for index, node in enumerate(diagram.nodes)}
        assert arrows == [(number[e.tail], number[e.head]) for e in diagram.edges]


def test_a_title_is_one_quoted_line_without_what_mermaid_escapes_twice() -> None:
    diagram = Diagram((Node("a", "a", "input"),), (), 'A "b" & <c>\\')
    lines = format_diagram(diagram, "mmd").splitlines()
    assert lines[1] == 'title: "A \\"b\\" ＆ ‹c›\\\\"'
