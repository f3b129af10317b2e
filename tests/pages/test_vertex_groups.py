"""Groups of the vertices of large graphs, and the data of the page that shows them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.text import Text

import cgprimer
from cgprimer import networks
from cgprimer.errors import UsageError
from cgprimer.visualization.diagrams.diagram import Diagram, Edge, Node, Part
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
from cgprimer.visualization.pages.exploring.explorer_page import (
    collect_explorer_data,
    explorer_page,
)
from cgprimer.visualization.pages.exploring.vertex_groups import (
    MAX_MEMBERS,
    VertexGroup,
    choose_open_groups,
    group_vertices,
)
from tests.pages.conftest import read_data

PATTERNS = ["x{}", "{1}_{0}", "w{1}.{0}.{2}", "v"]
LSTM = [f"x{gate}{t}" for t in range(100) for gate in "ifoch"]


def walk(group: VertexGroup) -> Iterator[VertexGroup]:
    yield group
    for member in group.members:
        if isinstance(member, VertexGroup):
            yield from walk(member)


def vertices_of(member: int | VertexGroup) -> list[int]:
    if isinstance(member, int):
        return [member]
    return [vertex for inner in member.members for vertex in vertices_of(inner)]


def merge_edges(group: VertexGroup, edges: list[tuple[int, int]]) -> dict[int, set[int]]:
    """Return the tails of each member of a group, by the indices of the members."""
    member_of = {v: k for k, member in enumerate(group.members) for v in vertices_of(member)}
    tails: dict[int, set[int]] = {k: set() for k in range(len(group.members))}
    for tail, head in edges:
        if tail in member_of and head in member_of and member_of[tail] != member_of[head]:
            tails[member_of[head]].add(member_of[tail])
    return tails


@given(st.integers(0, 700), st.integers(0, 2**32), st.sampled_from(PATTERNS))
def test_groups_partition_the_vertices_without_cycles(n: int, seed: int, pattern: str) -> None:
    chance = random.Random(seed)
    names = [pattern.format(k, chance.choice("abc"), chance.randrange(9)) for k in range(n)]
    chance.shuffle(names)
    ends = [sorted(chance.sample(range(n), 2)) for _ in range(2 * n)] if n > 1 else []
    edges = [(tail, head) for tail, head in ends]
    root = group_vertices(names, edges)
    assert sorted(vertices_of(root)) == list(range(n))
    opened = choose_open_groups(root)
    assert len(root.members) + sum(len(group.members) - 1 for group in opened) <= MAX_MEMBERS
    for group in walk(root):
        assert group is root or 1 < len(group.members) <= MAX_MEMBERS
        list(TopologicalSorter(merge_edges(group, edges)).static_order())  # raises for a cycle


RANGES = [*(f"x{k} … x{k + 9}" for k in range(0, 60, 10)), "x60 … x64"]
TIME_STEPS = [f"{LSTM[k]} … {LSTM[k + 9]}" for k in range(0, 500, 10)]
LABELS: list[tuple[list[str], list[tuple[int, int]], list[str]]] = [
    ([f"x{k}" for k in range(64)], [], [f"x{k}" for k in range(64)]),
    ([f"x{k}" for k in range(65)], [], RANGES),
    ([f"net.{k}.{j}" for k in (0, 1) for j in range(40)], [], ["net.0.*", "net.1.*"]),
    ([f"xh{k}_{j}" for k in (2, 10) for j in range(40)], [(0, 40)], ["xh2_*", "xh10_*"]),
    (LSTM, [(k, k + 1) for k in range(499)], TIME_STEPS),
    (["v"] * 70, [], ["v … v"] * 7),
]


@pytest.mark.parametrize(("names", "edges", "labels"), LABELS)
def test_labels_of_groups(
    names: list[str], edges: list[tuple[int, int]], labels: list[str]
) -> None:
    members = group_vertices(names, edges).members
    assert [names[m] if isinstance(m, int) else m.label for m in members] == labels


@pytest.mark.parametrize("kind", ["chain", "random", "recurrent", "mlp"])
@pytest.mark.parametrize("level", ["variables", "operations", "backward"])
def test_data_contain_the_whole_graph(kind: str, level: str) -> None:
    graph = (
        networks.mlp("8-20-20-1", scalars=True) if kind == "mlp" else getattr(networks, kind)(400)
    )
    diagram = graph_diagram(graph, level=level, values=True, everything=True)
    data = read_data(explorer_page(diagram))
    vertices, ends = data["vertices"], data["edges"]["ends"]
    roles = [data["roles"][k]["name"] for k in vertices["roles"]]
    rows = zip(vertices["labels"], vertices["details"], roles, strict=True)
    expected = [(node.label, "\n".join(node.detail), node.role) for node in diagram.nodes]
    assert sorted(rows) == sorted(expected)
    label = {node.key: node.label for node in diagram.nodes}
    assert [vertices["labels"][k] for k in ends] == [
        label[key] for edge in diagram.edges for key in (edge.tail, edge.head)
    ]
    (_, first, last, is_open), *groups = data["groups"]
    assert (first, last, is_open) == (0, len(diagram.nodes), 1)
    for index, (_, first, last, _) in enumerate(groups):
        for _, begin, end, _ in groups[index + 1 :]:  # inside or behind
            assert first <= begin < end <= last or begin >= last


def test_parts_parameters_and_variables_are_groups() -> None:
    nodes = tuple(Node(f"x{k}", f"x{k}", "inner") for k in range(4))
    parts = (Part("gpu0", frozenset({"x0", "x1"})), Part("gpu1", frozenset({"x2", "x3"})))
    groups = collect_explorer_data(Diagram(nodes, (Edge("x1", "x2"),), parts=parts))["groups"]
    assert groups == [["", 0, 4, 1], ["gpu0", 0, 2, 1], ["gpu1", 2, 4, 1]]
    operations = graph_diagram(cgprimer.parse("xb = sin(2*xa) + 1; xw = xb^2"), level="operations")
    assert [node.name for node in operations.nodes] == ["xa", *["xb"] * 5, *["xw"] * 2]
    diagram = graph_diagram(networks.chain(99), parameters="vertices", everything=True)
    assert collect_explorer_data(diagram)["groups"][1] == ["learnable parameters", 0, 99, 0]


def test_data_contain_marks_and_labels() -> None:
    nodes = tuple(Node(n, n, "inner", emphasis=n == "xa", dropped=n == "xb") for n in ("xa", "xb"))
    edges = (Edge("xa", "xb", "2", emphasis=True), Edge("xa", "xb", dropped=True))
    data = collect_explorer_data(Diagram(nodes, edges, backward_arrows=True))
    marks = [data[kind][mark] for kind in ("vertices", "edges") for mark in ("emphasis", "dropped")]
    assert marks == [[0], [1], [0], [1]]
    assert (data["edges"]["labels"], data["backward"]) == (["2", ""], True)


def test_texts_cannot_leave_the_data() -> None:
    node = Node("xa", "</script><b>", "input", ("<!--", "\u2028"))
    page = explorer_page(Diagram((node,), (), title="<i>&", notes=("<u>",)))
    assert not any(text in page for text in ("</script><b>", "<!--\n", "<i>", "<u>"))
    assert read_data(page)["vertices"]["labels"] == ["</script><b>"]


def test_draw_writes_a_page_and_returns_a_summary(tmp_path: Path) -> None:
    path = tmp_path / "chain.html"
    graph = networks.chain(700)
    figure = cgprimer.draw(graph, path)
    assert any("summarized by layers" in text.get_text() for text in figure.findobj(Text))
    assert len(read_data(path.read_text())["vertices"]["labels"]) == 701
    path.write_text("notes")
    with pytest.raises(UsageError):
        cgprimer.draw(graph, path)
