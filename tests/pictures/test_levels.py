"""Overlays, the backward graph, summaries, formats, notebooks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import cgprimer
from cgprimer.cli.draw_command import command
from cgprimer.errors import MissingValueError, UsageError
from cgprimer.support.latex_text import escape_latex
from cgprimer.support.number_format import format_number
from cgprimer.visualization.diagrams.backward_graph import build_backward_diagram
from cgprimer.visualization.diagrams.diagram import Diagram, Edge, Node
from cgprimer.visualization.diagrams.diagram_formats import format_diagram, formats, save_diagram
from cgprimer.visualization.diagrams.drawing import draw
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
from cgprimer.visualization.diagrams.layer_summary import READABLE, summarize
from cgprimer.visualization.diagrams.slide_layout import slide_layout
from cgprimer.visualization.diagrams.vertex_sweeps import compute_sweep_numbers
from tests.approval import refused

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LECTURE = cgprimer.load(EXAMPLES / "lecture.cg")
LOG_SINE = cgprimer.load(EXAMPLES / "log_sine.cg")
TWO_PATHS = cgprimer.load(EXAMPLES / "two_paths.cg")


def labels_of(found: Diagram) -> dict[tuple[str, str], str]:
    return {(e.tail, e.head): e.label.replace("\n", " ") for e in found.edges}


def long_graph(count: int) -> cgprimer.ExpressionGraph:
    lines = [f"x{k} = tanh(k{k % 9}*x{k - 1} + x{max(0, k - 5)})" for k in range(1, count)]
    return cgprimer.parse("\n".join(["input x0 = 1", *lines]))


# --- overlays -------------------------------------------------------------------------------------


def test_the_backward_sweep_of_the_slide() -> None:
    """Case B3: upstream times local, downstream; the slide prints 1.3633 and 0.1912."""
    found = graph_diagram(LOG_SINE, values=True, adjoints=True)
    assert labels_of(found)["x1", "v1"] == "1.8177 × 0.75 ≈ 1.3633"
    assert labels_of(found)["v3", "y"] == "1 × (-0.98083) ≈ -0.98083"
    shown = {n.key: n.detail[-1] for n in found.nodes}
    assert shown["x1"] == "adjoint ≈ 1.3632775"
    assert shown["x2"] == "adjoint ≈ 0.19118983"
    assert shown["y"] == "adjoint = 1"


def test_a_path_and_the_sum_over_paths() -> None:
    """Case C1: the common factor dL/dd belongs to both paths."""
    found = graph_diagram(TWO_PATHS, path="a b d L")
    assert found.notes == (
        "this path: ∂b/∂a · ∂d/∂b · ∂L/∂d = 3 · 0.5 · (-1) = -1.5",
        "dL/da is the sum over 2 paths:",
        "a → b → d → L: 3 · 0.5 · (-1) = -1.5",
        "a → c → d → L: -1 · 4 · (-1) = 4",
        "dL/da = -1.5 + 4 = 2.5",
    )
    assert [(e.tail, e.head) for e in found.edges if e.emphasis] == [
        ("a", "b"), ("b", "d"), ("d", "L"),
    ]  # fmt: skip
    assert {n.key for n in found.nodes if n.emphasis} == {"a", "b", "d", "L"}


def test_a_path_is_told_by_width_and_a_double_line_too() -> None:
    figure = draw(TWO_PATHS, path=["a", "b", "d", "L"])
    widths = [line.get_linewidth() for line in figure.axes[0].lines]
    assert sorted(widths) == [1.8] * 2 + [2.0] * 4 + [6.0] * 4  # one of them in the legend
    assert "highlighted path" in {text.get_text() for text in figure.axes[0].texts}


@pytest.mark.parametrize(
    ("text", "path", "last"),
    [
        ("xs=sign(xa); xw=xs*2+xa", "xa xs xw", "dxw/dxa = 1 + 0 = 1"),
        ("xs=sign(xa); xw=xs*2+xa", "xa xw", "dxw/dxa = 1 + 0 = 1"),
        ("xs=sign(xa); xw=xs*2", "xa xs xw", "dxw/dxa = 0: there is no other path"),
        (
            "xs=1/(xa-0.5); xt=sign(xs); xw=xt*2",
            "xa xs xt xw",
            "dxw/dxa = 0: there is no other path",
        ),
    ],
)
def test_a_path_over_an_edge_that_is_zero_everywhere_counts(
    text: str, path: str, last: str
) -> None:
    graph = cgprimer.parse(f"input xa = 0.5; {text}")
    notes = graph_diagram(graph, path=path).notes
    assert notes[-1] == last
    assert notes[0].endswith("= 0") == ("xs" in path)


def test_many_paths_are_not_all_written_out() -> None:
    lines = [f"x{k} = x{k - 1} + k*x{k - 1}*xa" for k in range(1, 40)]
    lines += [f"y{k} = x{k} + x{k - 1}" for k in range(2, 4)]
    graph = cgprimer.parse("input x0 = 1, xa = 1; parameter k = 1; " + "; ".join(lines))
    notes = graph_diagram(graph, path=["xa", *(f"x{k}" for k in range(1, 40))]).notes
    assert len(notes) <= 17  # one of them says that the picture is a summary
    assert "27 more paths" in notes[-2]
    diamonds = "; ".join(f"a{k}=x{k}; b{k}=2*x{k}; x{k + 1}=a{k}+b{k}" for k in range(60))
    path = ["x0", *(n for k in range(60) for n in (f"a{k}", f"x{k + 1}"))]
    notes = graph_diagram(
        cgprimer.parse("input x0=1;" + diamonds), path=path, everything=True
    ).notes
    assert f"sum over {2**60:,} paths" in notes[1]
    assert notes[-1] == f"dx60/dx0 ≈ {format_number(3.0**60, 5)}"


def test_tangents_of_a_seed_and_what_the_sweep_does_not_reach() -> None:
    found = graph_diagram(TWO_PATHS, tangents="w1")
    shown = {n.key: n.detail[-2:] for n in found.nodes}
    assert shown["w1"] == ("tangent = 1",)
    assert shown["L"][-1] == "tangent = -1"
    assert shown["c"][-1] == "tangent = 0"
    trace = cgprimer.trace(TWO_PATHS, wrt="w1", level="variables")
    for row in trace.rows:  # the trace has the same numbers
        assert shown[row.name][-1] == f"tangent = {row.derivative:g}"


def test_adjoints_of_what_does_not_lead_to_the_output() -> None:
    graph = cgprimer.parse("input xa = 2; xb = xa^2; xc = 3*xa; output xb, xc")
    found = graph_diagram(graph, adjoints=True, of="xb")
    assert next(n.detail for n in found.nodes if n.key == "xc")[-1] == "adjoint = 0"
    assert labels_of(found)["xa", "xc"] == "0 × 3 = 0"
    with refused(UsageError):
        graph_diagram(graph, adjoints=True)


def test_partials_also_where_they_are_zero_everywhere() -> None:
    graph = cgprimer.parse("input xa = 2; xb = sign(xa); xc = xa*xb")
    found = labels_of(graph_diagram(graph, partials=True))
    assert found == {
        ("xa", "xb"): "∂xb/∂xa = 0", ("xa", "xc"): "∂xc/∂xa = 1", ("xb", "xc"): "∂xc/∂xb = 2",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["lecture", "mazur", "baydin", "two_paths", "cs231n_max"])
@pytest.mark.parametrize("level", ["variables", "operations"])
def test_the_sweeps_of_a_picture_agree_with_the_methods(name: str, level: str) -> None:
    graph = cgprimer.load(EXAMPLES / f"{name}.cg")
    output = graph.only_output()
    tape = cgprimer.tape(graph)

    def key(name: str) -> str:
        return str(tape.index(name)) if level == "operations" else name

    names = [*graph.inputs, *graph.parameters]
    expected = cgprimer.gradient(graph, of=output, wrt=names, method="symbolic")
    back = compute_sweep_numbers(graph, level=level, of=output).totals
    for wrt in names:
        assert back.get(key(wrt), 0.0) == pytest.approx(expected[wrt], rel=1e-12, abs=1e-15)
        tangents = compute_sweep_numbers(graph, level=level, wrt=wrt).totals
        forward = tangents.get(key(output), 0.0)
        assert forward == pytest.approx(expected[wrt], rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"path": "xa xw"}, "'xa' ... 'xw'"),
        ({"path": "xa xq"}, "'xq'"),
        ({"path": "xa"}, ""),
        ({"path": ""}, "empty"),
        ({"path": "xa xx", "level": "operations"}, "level 'variables'"),
        ({"tangents": "xq"}, "'xq'"),
        ({"adjoints": True, "of": "xq"}, "'xq'"),
        ({"of": "xw"}, "adjoints"),
        ({"level": "backward", "partials": True}, ""),
    ],
)
def test_mistakes(settings: dict, said: str) -> None:
    with refused(UsageError, said):
        graph_diagram(LECTURE, **settings)


@pytest.mark.parametrize(
    "settings",
    [{"values": True}, {"partials": True}, {"tangents": "xa"}, {"adjoints": True},
     {"path": "xa xw"}, {"level": "backward", "values": True}],
)  # fmt: skip
def test_a_missing_value_is_named(settings: dict) -> None:
    with refused(MissingValueError, "k"):
        graph_diagram(cgprimer.parse("input xa = 1; xw = k*xa"), **settings)


# --- the backward graph ---------------------------------------------------------------------------


def test_the_backward_graph_of_the_lecture_example() -> None:
    found = build_backward_diagram(LECTURE, at={})
    by_label = {n.label: n for n in found.nodes}
    gradient = cgprimer.gradient(LECTURE)
    for name, value in gradient.items():
        assert by_label[f"bar_{name}"].role == "gradient"
        assert by_label[f"bar_{name}"].detail[-1] == f"= {value:.8g}"
    assert by_label["bar_xw"].role == "seed"
    label = {n.key: n.label for n in found.nodes}
    pairs = {(label[e.tail], label[e.head]) for e in found.edges}
    assert ("bar_xz", "bar_xy") in pairs
    assert by_label["bar_xz"].detail[0] == "bar_v5*3*xz^2"
    # Every edge runs from an adjoint that the head's expression names.
    for tail, head in pairs:
        assert re.search(rf"\b{tail}\b", by_label[head].detail[0])


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.cg")), ids=lambda path: path.stem)
def test_every_vertex_of_a_backward_graph_gets_what_its_expression_names(path: Path) -> None:
    graph = cgprimer.load(path)
    if graph.shapes:
        pytest.skip("of arrays: test_arrays.py")
    found = build_backward_diagram(graph, at={}, of=graph.outputs[0])
    label = {n.key: n.label for n in found.nodes}
    for node in found.nodes:
        handing = {label[e.tail] for e in found.edges if e.head == node.key}
        assert handing == set(re.findall(r"\bbar_\w+", node.detail[0])), node.label
    names = [*graph.inputs, *graph.parameters]
    for name, value in cgprimer.gradient(graph, of=graph.outputs[0], wrt=names).items():
        shown = [n.detail[-1] for n in found.nodes if n.label == f"bar_{name}"]
        assert not shown or float(shown[0].split()[1]) == pytest.approx(value, rel=1e-7)
        assert shown or value == 0


def test_an_operand_used_twice_hands_two_shares_back() -> None:
    found = build_backward_diagram(cgprimer.parse("input xa = 3; xw = xa*xa"), at={})
    assert found.nodes[-1].detail == ("bar_xw*xa + bar_xw*xa", "= 6")
    assert len(found.edges) == 1


# --- large graphs ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_large_graphs_are_summarised_and_drawn() -> None:
    graph = long_graph(300)
    found = graph_diagram(graph)
    assert len(found.nodes) < 20
    assert "summarized by layers" in found.notes[0]
    draw(graph)
    whole = graph_diagram(graph, everything=True)
    assert len(whole.nodes) >= 300
    slide_layout(whole)


def test_too_many_vertices_are_refused_in_pictures_and_written_in_text() -> None:
    found = graph_diagram(long_graph(700), everything=True)
    with refused(UsageError):
        slide_layout(found)
    assert format_diagram(found, "dot").count("->") == len(found.edges)


def test_a_summary_counts_every_vertex_and_most_edges() -> None:
    nodes = tuple(Node(str(k), f"x{k}", "inner") for k in range(200))
    edges = tuple(Edge(str(k), str(k + 1)) for k in range(199))
    found = summarize(Diagram(nodes[::-1], edges))
    assert sum(int(n.label.split()[0]) for n in found.nodes) == 200
    assert [e.label for e in found.edges] == ["1"] * (len(found.nodes) - 1)
    constants = tuple(Node(str(k), str(k), "constant") for k in range(200))
    assert summarize(Diagram(constants, edges)).nodes[0].detail[1] == "0, 1, 2, …"
    small = Diagram(nodes[:READABLE], ())
    assert summarize(small) is small


# --- formats --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", formats())
@pytest.mark.parametrize("dark", [False, True])
def test_every_format_is_written_whole_and_the_same_twice(
    kind: str, dark: bool, tmp_path: Path
) -> None:
    diagram = graph_diagram(TWO_PATHS, path="a b d L", values=True, title='A "title" & more_$1')
    for name in ("one", "two"):
        save_diagram(diagram, tmp_path / f"{name}.{kind}", dark=dark)
    assert (tmp_path / f"one.{kind}").read_bytes() == (tmp_path / f"two.{kind}").read_bytes()


def test_an_unknown_ending_names_the_known_ones(tmp_path: Path) -> None:
    path = tmp_path / "graph.jpeg"
    ran = CliRunner().invoke(command, ["-e", "xw = k*xa", "-o", str(path)])
    assert isinstance(ran.exception, UsageError)
    assert all(f".{kind}" in str(ran.exception) for kind in formats())
    assert not path.exists()


NASTY = Diagram(
    (
        Node("a", 'x_1 "q"', "input", ("a<b & c>d", "50% #1 ~ \\x {y}")),
        Node("end", "−", "operation", ("- 1. *b* `c` $z$",)),
        Node("c", "α", "parameter"),
    ),
    (Edge("a", "end", "ab=1\n∂x/∂y = 2", True), Edge("c", "end")),
    notes=("→ · × ∂",),
)


def test_dot_quotes_what_it_must() -> None:
    text = format_diagram(NASTY, "dot")
    assert text.count("{") == text.replace("{y}", "").count("}") + 1
    assert 'label="ab=1\\n∂x/∂y = 2"' in text
    assert "a&lt;b &amp; c&gt;d" in text
    assert text.count("->") == 2
    assert format_diagram(NASTY, "gv") == text


def test_mermaid_has_no_markup_of_a_user() -> None:
    text = format_diagram(NASTY, "mmd")
    lines = text.splitlines()
    lines = lines[lines.index("flowchart LR") :]
    assert lines[1].startswith('  n0("<b>x#95;1 #34;q#34;</b><br/>a#60;b #38; c#62;d<br/>')
    assert '  n0 ==>|"ab=1<br/>∂x/∂y = 2"| n1' in lines
    assert all(line.count('"') % 2 == 0 for line in lines)
    assert "end" not in text


def test_tikz_is_balanced_and_complete() -> None:
    text = format_diagram(NASTY, "tex")
    assert "\n\\documentclass{article}\n" in text
    assert text.rstrip().endswith("\\end{document}")
    bare = text.replace("\\\\", " ").replace("\\{", "").replace("\\}", "")
    assert bare.count("{") == bare.count("}")
    assert text.count("\\draw[") == 2
    defined = set(re.findall(r"definecolor{(\w+)}", text))
    assert {"background", "ink", "edge", "path", "inputline", "inputfill"} <= defined
    assert all(ord(c) < 128 for c in text)


def test_latex_shows_text_as_written() -> None:
    assert escape_latex("x_1^2 {a} 50% \\") == r"x\_1\^{}2 \{a\} 50\% \textbackslash{}"


def test_paths_that_are_not_listed_have_their_sum(tmp_path: Path) -> None:
    """Sixteen paths, of which twelve are written out."""
    lines = ["input x0 = 1; parameter a = 3, b = 5"]
    for k in range(4):
        lines += [f"xl{k} = a*x{k}", f"xr{k} = b*x{k}", f"x{k + 1} = xl{k} + xr{k}"]
    path = ["x0", *(name for k in range(4) for name in (f"xl{k}", f"x{k + 1}"))]
    cgprimer.draw(cgprimer.parse(lines), tmp_path / "a.mmd", path=path)
    text = (tmp_path / "a.mmd").read_text(encoding="utf-8")
    listed = re.findall(r"x0 → [^<]*= (\d+)<br", text)
    rest = re.findall(r"more paths\D*(\d+)<br", text)
    assert (len(listed), len(rest)) == (12, 1)
    assert sum(map(int, [*listed, *rest])) == (3 + 5) ** 4


# --- pictures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("lecture", {"path": "xa xx xz xw", "values": True}),
        ("log_sine", {"adjoints": True, "values": True, "partials": True}),
        ("mazur", {"adjoints": True}),
        ("mazur", {"level": "operations", "values": True}),
        ("two_paths", {"level": "operations", "adjoints": True}),
        ("lecture", {"level": "backward"}),
        ("baydin", {"level": "backward", "values": True}),
    ],
)
def test_nothing_in_an_overlaid_picture_overlaps(name: str, settings: dict) -> None:
    picture = slide_layout(graph_diagram(cgprimer.load(EXAMPLES / f"{name}.cg"), **settings))
    assert picture.labels.touching == 0


def test_the_command_line(tmp_path: Path) -> None:
    runner = CliRunner()
    for count, extra in enumerate(
        (["--partials", "--values"], ["--tangents", "ab"], ["--adjoints"], ["--level", "backward"],
         ["--path", "xa -> xx -> xz -> xw"], ["--all"])
    ):  # fmt: skip
        path = tmp_path / f"{count}.svg"
        ran = runner.invoke(command, [str(EXAMPLES / "lecture.cg"), "-o", str(path), *extra])
        assert ran.exit_code == 0, ran.output
        assert path.read_text().endswith("</svg>\n")
