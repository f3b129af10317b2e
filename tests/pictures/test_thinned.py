"""The thinned network of dropout: what a mask removes, and how it is marked without color."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import cgprimer
from cgprimer.core.derivatives import tape
from cgprimer.errors import UsageError
from cgprimer.training.layer_states import Masks
from cgprimer.visualization.diagrams.diagram_figure import draw_diagram
from cgprimer.visualization.diagrams.diagram_formats import format_diagram
from cgprimer.visualization.diagrams.dropout_diagram import thin_graph
from cgprimer.visualization.diagrams.graph_diagrams import graph_diagram
from tests.approval import refused
from tests.cli.cli_tools import bad, good

NETWORK = cgprimer.parse(
    "input x[2] = [1, 2]; parameter W[3,2] = [[1, 2], [3, 4], [5, 6]], b[3] = [0, 0, 0],"
    " v[3] = [1, 1, 1]; xz = W @ x + b; xh = dropout(xz, 0.5); xo = v @ xh; output xo"
)


def dropped_keys(graph: cgprimer.ExpressionGraph, mask: Any) -> set[str]:
    return {node.key for node in graph_diagram(graph, mask=mask).nodes if node.dropped}


def test_a_unit_is_dropped_with_all_that_serves_it_alone() -> None:
    assert dropped_keys(NETWORK, {"xh": [1, 0, 1]}) == {"xz[1]", "xh[1]", "b[1]"}


def test_edges_from_and_to_dropped_units_are_dropped() -> None:
    diagram = graph_diagram(NETWORK, mask={"xh": [1, 0, 1]})
    ends = {(edge.tail, edge.head) for edge in diagram.edges if edge.dropped}
    assert ends == {
        ("x[0]", "xz[1]"),
        ("x[1]", "xz[1]"),
        ("b[1]", "xz[1]"),
        ("xz[1]", "xh[1]"),
        ("xh[1]", "xo"),
    }


def test_a_mask_of_ones_drops_nothing_and_of_zeros_all_but_the_output() -> None:
    assert dropped_keys(NETWORK, {"xh": [1, 1, 1]}) == set()
    every = {node.key for node in graph_diagram(NETWORK, scalars=True).nodes}
    assert dropped_keys(NETWORK, {"xh": [0, 0, 0]}) == every - {"xo"}


def test_only_the_influence_through_the_mask_is_dropped() -> None:
    graph = cgprimer.parse("input x, y; a = x + dropout(y, 0.5); b = y*a; output b")
    diagram = graph_diagram(graph, mask={"a": 0})
    assert [(e.tail, e.head) for e in diagram.edges if e.dropped] == [("y", "a")]
    assert not any(node.dropped for node in diagram.nodes)


def test_values_are_those_of_the_masked_network() -> None:
    thin = thin_graph(NETWORK, {"xh": [1, 0, 1]})
    assert thin.graph.evaluate({})["xo"] == 5 + 17
    details = {
        n.key: n.detail for n in graph_diagram(NETWORK, mask={"xh": [1, 0, 1]}, values=True).nodes
    }
    assert details["xh[1]"][-1] == "= 0"
    assert details["xo"][-1] == "= 22"


def test_a_seed_stands_for_the_first_mask_of_a_run() -> None:
    leaves = [leaf for leaf in tape(NETWORK, "masks").leaves if leaf.name.startswith("mask.")]
    for seed in range(4):
        expected = Masks(leaves, seed, "float64").create_stream(0, 0)(1)["mask.xh"][0]
        assert thin_graph(NETWORK, seed).masks["xh"].tolist() == expected.tolist()


def test_statistics_of_batchnorm_stay_as_they_are_used() -> None:
    graph = cgprimer.parse("input x = 2; xy = batchnorm(x, g, b); xh = dropout(xy, 0.5); output xh")
    assert "xh" not in dropped_keys(graph, {"xh": 1})


def test_dropped_vertices_have_dashes_and_a_word_in_the_legend() -> None:
    figure = draw_diagram(graph_diagram(NETWORK, mask={"xh": [1, 0, 1]}))
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert "dropped" in texts
    assert "mask of xh: 1 0 1 (1 of 3 units dropped)" in texts
    dashed = [p for p in figure.axes[0].patches if p.get_linestyle() not in ("-", "solid")]
    assert len(dashed) == 3


@pytest.mark.parametrize(
    ("kind", "pattern", "count"), [("dot", "dashed", 8), ("tex", "dashed", 8), ("mmd", r"-\.->", 5)]
)
def test_formats_of_other_programs_show_it(kind: str, pattern: str, count: int) -> None:
    text = format_diagram(graph_diagram(NETWORK, mask={"xh": [1, 0, 1]}), kind)
    assert len(re.findall(pattern, text)) == count


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ({"xh": [1, 0]}, "shape"),
        ({"xh": [1, 0, 2]}, "0 and 1"),
        ({"xh": [1, 0, float("nan")]}, "0 and 1"),
        ({"xg": [1, 0, 1]}, "xg"),
        ({}, "missing"),
        (-1, "seed"),
        (0.5, "seed"),
        (float("nan"), "seed"),
        (True, "seed"),
        ("1", "seed"),
    ],
)
def test_masks_that_do_not_fit_are_refused(mask: Any, message: str) -> None:
    with refused(cgprimer.CgprimerError, message):
        graph_diagram(NETWORK, mask=mask)


def test_a_mask_needs_dropout_and_the_level_of_variables() -> None:
    with pytest.raises(UsageError, match="dropout"):
        graph_diagram(cgprimer.parse("xw = k*xa"), mask=0)
    with pytest.raises(UsageError, match="variables"):
        graph_diagram(NETWORK, mask=0, level="operations")


def test_the_command_draws_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    good("draw", "dropout", "--mask", "xh=[1,0,1]", "-o", "mask.svg")
    assert "stroke-dasharray" in Path("mask.svg").read_text(encoding="utf-8")
    good("draw", "dropout", "--mask", "3", "-o", "seed.svg")
    assert "dropout" in bad("draw", "lecture", "--mask", "1", "-o", "none.svg")
