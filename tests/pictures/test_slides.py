"""Pictures on a slide: text that the last row can read, and lines that can be told apart."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import cgprimer
from cgprimer.cli.draw_command import command
from cgprimer.visualization.diagrams.diagram import Diagram, Edge, Node
from cgprimer.visualization.diagrams.diagram_figure import draw_diagram
from cgprimer.visualization.diagrams.geometry import overlap_length
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
from cgprimer.visualization.diagrams.layer_summary import is_readable
from cgprimer.visualization.diagrams.slide_layout import compute_text_size_on_slide, slide_layout
from cgprimer.visualization.diagrams.text_layout import round_results, wrap_expression
from cgprimer.visualization.diagrams.theme import DETAIL_SIZE, READABLE_SIZE
from tests.approval import approved

EXAMPLES = Path(__file__).parents[2] / "examples"
# Full layers, a sum over ten samples, a normalization: a slide is too small for all that they hold.
LARGE = {
    "batch_normalization": READABLE_SIZE, "mazur": 13.0,
    "network": 8.0, "two_layers": 13.0,
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.cg")))
def test_examples_can_be_read_from_the_last_row(name: str) -> None:
    graph = cgprimer.load(EXAMPLES / f"{name}.cg")
    known = all(n in graph.values for n in (*graph.inputs, *graph.parameters))
    pictures = [{}, *([{"values": True}] if known else [])]
    if name not in LARGE:
        pictures.append({"level": "operations"})
    for settings in pictures:
        picture = slide_layout(graph_diagram(graph, **settings))
        assert picture.captions.smallest_text >= LARGE.get(name, READABLE_SIZE), settings
        assert picture.labels.touching == 0


@pytest.mark.parametrize(
    "settings", [{}, {"adjoints": True, "values": True}, {"level": "operations", "values": True}]
)
def test_the_size_of_text_is_that_of_the_figure(settings: dict) -> None:
    diagram = graph_diagram(cgprimer.load(EXAMPLES / "lecture.cg"), **settings)
    figure = draw_diagram(diagram)
    smallest = min(text.get_fontsize() for text in figure.axes[0].texts)
    assert smallest == DETAIL_SIZE
    width, height = figure.get_size_inches()
    on_slide = smallest * min(13.333 / width, 7.5 / height, 1.0)
    assert slide_layout(diagram).captions.smallest_text == pytest.approx(on_slide, rel=1e-3)


def test_adjoints_of_the_lecture_fit_a_slide_without_losing_text() -> None:
    diagram = graph_diagram(cgprimer.load(EXAMPLES / "lecture.cg"), adjoints=True, values=True)
    picture = slide_layout(diagram)
    assert picture.captions.smallest_text >= READABLE_SIZE - 0.5
    for edge, lines in zip(diagram.edges, picture.label_texts, strict=True):
        assert "".join("".join(lines).split()) == "".join(round_results(edge.label).split())
    for node in diagram.nodes:
        written = "".join("".join(picture.details[node.key]).split())
        assert written == "".join("".join(map(round_results, node.detail)).split())


def test_results_get_fewer_digits_and_expressions_do_not() -> None:
    assert round_results("= -0.046746235") == "≈ -0.046746"
    assert round_results("= 1.2345678e-7") == "≈ 1.2346e-7"
    assert round_results("= 161812500.0") == "≈ 1.6181e8"
    assert round_results("22.6875 × 4 = 90.75") == "22.688 × 4 ≈ 90.75"
    assert round_results("0.19661 × (-2) ≈ -0.39322") == "0.19661 × (-2) ≈ -0.39322"
    for text in ("= nan", "= -inf", "= 1234567", "v1 = xa*3.14159265", "3.14159265", "x=1.23456789",
                 "= 0.25", "3 × 0.5 = 1.5"):  # fmt: skip
        assert round_results(text) == text


def test_an_equals_sign_stands_between_equal_numbers_only() -> None:
    graph = cgprimer.load(EXAMPLES / "lecture.cg")
    for edge in graph_diagram(graph, adjoints=True).edges:
        left, sign, right = re.fullmatch(r"(.*) ([=≈]) (.*)", edge.label).groups()
        upstream, local = (float(part.strip("()")) for part in left.split(" × "))
        assert (upstream * local == float(right)) == (sign == "=")
    sums = graph_diagram(graph, path="xa xx xz xw").notes[-1]
    assert sums == "dxw/dxa = 3 + 45.375 + 90.75 + 22.6875 = 161.8125"
    mazur = graph_diagram(cgprimer.load(EXAMPLES / "mazur.cg"), path="i1 h1 o1 xe").notes[-1]
    assert mazur.startswith("dxe/di1 ≈ ")
    assert mazur.count("≈") == 2


def test_equations_break_at_equals_signs_first() -> None:
    assert wrap_expression("22.688 × 0.25 = 5.6719", 14) == ("22.688 × 0.25", "= 5.6719")
    assert wrap_expression("22.688 × 0.25 = 5.6719", 7) == ("22.688", "× 0.25", "= 5.6719")
    assert wrap_expression("∂xw/∂xz = 22.688", 7) == ("∂xw/∂xz", "= 22.688")
    assert wrap_expression("v1 = ab*xx", 18) == ("v1 = ab*xx",)


def test_lines_on_top_of_each_other_are_a_fault() -> None:
    edges = [("a", "b"), ("a", "c")]
    together = [[(0.0, 0.0), (200.0, 0.0)], [(0.0, 0.0), (200.0, 4.0)]]
    apart = [[(0.0, 0.0), (200.0, 0.0)], [(0.0, 0.0), (200.0, 200.0)]]
    assert overlap_length(edges, together) > 100
    assert overlap_length(edges, apart) == 0
    assert overlap_length([("a", "b"), ("d", "b")], [line[::-1] for line in together]) > 100


def test_a_dense_graph_is_not_drawn_as_a_smudge() -> None:
    nodes = tuple(Node(str(k), f"x{k}", "inner") for k in range(50))
    pairs = [(a, b) for a in range(50) for b in range(a + 1, 50)]
    near = tuple(Edge(str(a), str(b)) for a, b in pairs if b - a < 2)
    fan = tuple(Edge(str(a), str(b)) for a, b in pairs if b == 49)
    assert is_readable(Diagram(nodes, near))
    assert not is_readable(Diagram(nodes, tuple(Edge(str(a), str(b)) for a, b in pairs)))
    assert not is_readable(Diagram(nodes, fan))
    assert is_readable(Diagram(nodes, ()))


def _long(count: int) -> str:
    names = [f"x{k}" for k in range(12)]
    lines = []
    for k in range(count):
        lines.append(f"xv{k} = w{k % 7}*{names[-1]}*{names[-5]} + sin({names[-12]})")
        names.append(f"xv{k}")
    return "\n".join(lines)


@pytest.mark.parametrize("level", ["variables", "operations", "backward"])
def test_a_summary_can_be_read(level: str) -> None:
    picture = slide_layout(graph_diagram(cgprimer.parse(_long(280)), level=level))
    assert picture.captions.smallest_text >= 12
    assert picture.labels.touching == 0


def test_a_summary_says_what_it_leaves_out() -> None:
    graph = cgprimer.parse(_long(100))
    point = dict.fromkeys((*graph.inputs, *graph.parameters), 0.5)
    plain, adjoints = graph_diagram(graph), graph_diagram(graph, at=point, adjoints=True)
    assert not any("left out" in note for note in plain.notes)
    assert any("the summary omits" in note for note in adjoints.notes)
    assert not any("upstream" in note for note in adjoints.notes)
    whole = graph_diagram(graph, at=point, adjoints=True, everything=True)
    assert not any("left out" in note for note in whole.notes)


def test_the_command_says_when_a_picture_is_too_large_for_a_slide(tmp_path: Path) -> None:
    runner = CliRunner()
    small = runner.invoke(command, [str(EXAMPLES / "lecture.cg"), "-o", str(tmp_path / "a.svg")])
    assert small.exit_code == 0
    assert "slide" not in small.stderr
    arguments = [str(EXAMPLES / "mazur.cg"), "--level", "operations", "-o", str(tmp_path / "b.svg")]
    large = runner.invoke(command, arguments)
    assert large.exit_code == 0
    approved(large.stderr)
    assert "summarized" not in large.stderr
    arguments = [
        str(EXAMPLES / "network.cg"),
        "--level",
        "operations",
        "-o",
        str(tmp_path / "c.svg"),
    ]
    approved(runner.invoke(command, arguments).stderr, "--all")
    diagram = graph_diagram(cgprimer.load(EXAMPLES / "mazur.cg"), level="operations")
    width, height = draw_diagram(diagram).get_size_inches() * 72
    approved(large.stderr, f"{compute_text_size_on_slide(width, height):.2g}")


@pytest.mark.slow
def test_the_command_says_what_to_do_about_small_text(tmp_path: Path) -> None:
    def said(*arguments: str) -> str:
        path = str(tmp_path / "a.svg")
        ran = CliRunner().invoke(command, [str(EXAMPLES / "mazur.cg"), "-o", path, *arguments])
        assert ran.exit_code == 0
        return ran.stderr

    assert re.search(r"with --level variables it has 1[4-6]", said("--level", "operations"))
    assert "without --adjoints it has" in said("--adjoints")
    assert "zoom in" in said("--adjoints", "--level", "operations", "--values", "--all")


def test_a_text_format_has_no_size(tmp_path: Path) -> None:
    arguments = [str(EXAMPLES / "mazur.cg"), "--level", "operations", "-o", str(tmp_path / "b.dot")]
    ran = CliRunner().invoke(command, arguments)
    assert ran.exit_code == 0
    assert "slide" not in ran.stderr
