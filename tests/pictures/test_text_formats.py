"""DOT and LaTeX are given to the programs that read them; special characters are shown as written.

Without Graphviz (`dot`) or TeX (`pdflatex`, with TikZ) some tests skip: install `graphviz`, or
`texlive-latex-base` and `texlive-pictures`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import cgprimer
from cgprimer.analysis.element_graph import list_element_names
from cgprimer.support.latex_text import (
    declare_missing_characters,
    escape_latex,
    escape_latex_prose,
)
from cgprimer.visualization.diagrams.diagram import Diagram, Edge, Node
from cgprimer.visualization.diagrams.diagram_formats import TEXTS, format_diagram
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram

TITLE = "Titles with & % $ # _ { } ~ ^ \\ < > \" ' ` | größe α ж -- ,, step-by-step"
WORDS = cgprimer.parse(
    "input node = 2, edge = 3, subgraph = 1, click = 1; parameter class = 2, ο = 1;"
    "strict = node*edge*class + subgraph; digraph = strict*click; end = digraph*1.5e-10*ο"
)
LETTERS = cgprimer.parse(
    "input größe = 2, α = 3, ж = 1; parameter Ωλ = 2, Ñ = 2, ς = 1;"
    "x_1 = größe*α + ж; xé = x_1^2*Ωλ - Ñ*ς"
)
HOSTILE = Diagram(
    (
        Node('a"b\\', 'x_1 "q"', "input", ("a<b & c>d", "50% #1 ~ \\x {y} | z")),
        Node("end", "−", "operation", ("- 1. *b* `c` $z$\x07",)),
        Node("c", "α", "parameter"),
    ),
    (Edge('a"b\\', "end", "ab=1\n∂x/∂y = 2", True), Edge("c", "end")),
    TITLE,
    ("→ · × ∂", "<n> & m"),
)


@cache
def diagrams(name: str) -> tuple[Diagram, ...]:
    """Return diagrams of every level and overlay of an example or of a special graph."""
    special = {"words": WORDS, "letters": LETTERS}
    graph = special[name] if name in special else cgprimer.load(name)
    seed = list_element_names(graph, (graph.inputs or graph.parameters)[0])[0]
    arrays = cgprimer.tape(graph).has_arrays
    usual = {"values": True, "tangents": seed, "adjoints": True, "title": TITLE}
    options: list[dict[str, Any]] = [
        {**usual, "partials": True},
        {**usual, "partials": not arrays, "level": "operations"},
        {"parameters": "vertices", "title": TITLE},
        {"level": "backward", "values": True},
    ]
    return tuple(graph_diagram(graph, **chosen) for chosen in options)


NAMES = ["letters", "words", "lecture", "mazur", "matrix_backpropagation", "dropout"]
each_name = pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] * (n != "words")) for n in NAMES],
)


@each_name
@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_reads_dot(name: str) -> None:
    for number, diagram in enumerate((HOSTILE, *diagrams(name))):
        text = format_diagram(diagram, ("dot", "gv")[number % 2], dark=number % 2 == 0)
        done = subprocess.run(
            ["dot", "-Tjson"], input=text, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        assert not [x for x in done.stderr.splitlines() if "fontconfig" not in x.lower()]
        answer = json.loads(done.stdout)
        objects = [item for item in answer.get("objects", ()) if "nodes" not in item]
        key = {item["_gvid"]: item["name"].replace("\\\\", "\\") for item in objects}
        assert [*key.values()] == [node.key for node in diagram.nodes]  # DOT keeps both backslashes
        pairs = Counter((key[item["tail"]], key[item["head"]]) for item in answer.get("edges", ()))
        assert pairs == Counter((edge.tail, edge.head) for edge in diagram.edges)
        drawn = json.dumps(answer, ensure_ascii=False)
        assert diagram is not HOSTILE or "&lt;n&gt; &amp; m" in drawn
        assert "step-by-step" in drawn or not diagram.title


def test_text_of_a_user_is_never_markup() -> None:
    for kind in TEXTS.names():
        assert not set(format_diagram(HOSTILE, kind)) & set("\x00\x07\x1b")
    lines = format_diagram(HOSTILE, "mmd").splitlines()
    title = TITLE.replace("&", "＆").replace("<", "‹").replace(">", "›")
    assert json.loads(lines[1].removeprefix("title: ")) == title
    body = lines[lines.index("flowchart LR") + 1 :]
    assert body[0].startswith('  n0("<b>x#95;1 #34;q#34;</b><br/>a#60;b #38; c#62;d<br/>')
    assert all(line.count('"') % 2 == 0 for line in body)
    assert not any(line.strip().startswith(("end", "a")) for line in body)
    text = format_diagram(HOSTILE, "tex")
    bare = text.replace("\\\\", " ").replace("\\{", "").replace("\\}", "")
    assert bare.count("{") == bare.count("}")
    used = set(re.findall(r"(?:draw|fill)=(\w+)", text))
    assert used <= set(re.findall(r"definecolor{(\w+)}", text))


@cache
def find_missing_tex() -> str:
    """Return the reason why no picture can be compiled; empty if TeX is installed."""
    if shutil.which("pdflatex") is None:
        return "pdflatex is not installed (apt install texlive-latex-base texlive-pictures)"
    found = subprocess.run(["kpsewhich", "tikz.sty"], capture_output=True, check=False)
    return "" if found.stdout.strip() else "TikZ is not installed (apt install texlive-pictures)"


needs_tex = pytest.mark.skipif(bool(find_missing_tex()), reason=find_missing_tex() or "installed")


def compile_page(text: str, folder: Path) -> tuple[float, float]:
    """Return width and height of the only page, in points; an error of TeX fails the test."""
    (folder / "a.tex").write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-jobname=a",
         r"\pdfobjcompresslevel=0 \input{a.tex}"],
        cwd=folder, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    output = done.stdout.decode(errors="replace")
    assert done.returncode == 0, output[-1500:]
    assert "(1 page" in output
    assert "Missing character" not in (folder / "a.log").read_text(errors="replace")
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", (folder / "a.pdf").read_bytes())
    assert box is not None
    return float(box[1]), float(box[2])


@needs_tex
@pytest.mark.slow
@each_name
def test_tex_compiles(name: str, tmp_path: Path) -> None:
    for diagram in diagrams(name)[: 4 if name == "letters" else 1]:
        width, height = compile_page(format_diagram(diagram, "tex", dark=True), tmp_path)
        assert width > 100
        assert height > 50


@needs_tex
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Glyph")  # the font that measures lacks these letters as well
def test_tex_compiles_hostile_text_and_letters_that_it_cannot_show(tmp_path: Path) -> None:
    unknown = graph_diagram(cgprimer.parse("变量 = k*xa"), title="变量")
    for diagram in (HOSTILE, unknown):
        compile_page(format_diagram(diagram, "tex").replace("?", ""), tmp_path)


@needs_tex
@pytest.mark.slow
def test_a_picture_longer_than_a_page_is_scaled_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    diagram = graph_diagram(cgprimer.load("lecture"))
    usual = compile_page(format_diagram(diagram, "tex"), tmp_path)
    monkeypatch.setattr("cgprimer.visualization.diagrams.tikz._LONGEST", 200.0)
    smaller = compile_page(format_diagram(diagram, "tex"), tmp_path)
    assert 200 <= max(smaller) < 250 < max(usual)
    assert smaller[0] / smaller[1] == pytest.approx(usual[0] / usual[1], rel=0.05)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x_1^2 {a} 50% \\", r"x\_1\^{}2 \{a\} 50\% \textbackslash{}"),
        ("π", r"\ensuremath{\pi}"),
        ("Ω", r"\ensuremath{\Omega}"),
        ("Α", "A"),  # LaTeX has no command for capitals that look like Latin ones
        ("ï", r"\"{\i}"),
        ("e\u0301", r"\'{e}"),
        ("a-b", r"a\ensuremath{-}b"),
        ("a,,b", "a,{},b"),  # not a low quotation mark
        ("变", "变"),
    ],
)
def test_letters_in_latex(text: str, expected: str) -> None:
    assert escape_latex(text) == expected


def test_hyphens_of_words_are_no_minus_signs_and_missing_letters_are_declared() -> None:
    assert escape_latex_prose("step-by-step, 2-1") == r"step-by-step, 2\ensuremath{-}1"
    declared = "\n".join(declare_missing_characters("a 变 b"))
    assert r"\DeclareUnicodeCharacter{53D8}{\textsuperscript{U+53D8}}" in declared
    assert list(declare_missing_characters(escape_latex("α, größe, é, x → y · ∂z"))) == []
