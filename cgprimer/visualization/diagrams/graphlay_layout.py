"""The layout engine graphlay: layers, their order, coordinates and routes of long edges.

Source: https://github.com/aarkue/graphlay
"""

from __future__ import annotations

from typing import Any

import graphlay

from cgprimer.visualization.diagrams.layout_requests import LayoutAnswer, LayoutRequest

_MAX_ROWS = 12


def lay_out_with_graphlay(request: LayoutRequest) -> LayoutAnswer:
    """Lay out a graph with graphlay; equal graphs have equal layouts.

    >>> answer = lay_out_with_graphlay(LayoutRequest(((40, 20), (40, 20)), ((0, 1),), (None,)))
    >>> answer.ranks, answer.centers[0][0] < answer.centers[1][0]
    ((0, 1), True)
    """
    graph = graphlay.Graph()
    # graphlay orders exchangeable vertices alphabetically, with x10 before x2.
    names = [f"{number:06}" for number in range(len(request.sizes))]
    for name, (width, height) in zip(names, request.sizes, strict=True):
        graph.node(name, width=width, height=height)
    for (tail, head), size in zip(request.edges, request.label_sizes, strict=True):
        label: Any = {"label_size": {"width": size[0], "height": size[1]}} if size else {}
        graph.edge(names[tail], names[head], **label)
    answer = graphlay.layout(graph, preset="layered", options=_build_options(request)).to_dict()
    centers = (node["center"] for node in answer["nodes"])
    return LayoutAnswer(
        tuple(node["rank"] for node in answer["nodes"]),
        tuple((center["x"], center["y"]) for center in centers),
        tuple([(p["x"], p["y"]) for p in edge["points"]] for edge in answer["edges"]),
    )


def _build_options(request: LayoutRequest) -> dict[str, Any]:
    """Return the options of graphlay for a layout request."""
    # graphlay folds a layout into rows only with orthogonal routes.
    style = "orthogonal" if request.square else "diagonal"
    return {
        "direction": "topbottom" if request.down else "leftright",
        "routing": {"style": style, "port_sides": "facing_only"},
        "spacing": {
            "layer_gap": request.layer_gap,
            "node_gap": request.node_gap,
            "dummy_gap": request.edge_gap,
            "edge_label_margin": request.label_gap,
        },
        # A network looks best around a center line, other graphs along a straight main path.
        "coords": {"branch_style": "symmetric" if request.symmetric else "straight_main"},
        "labels": {"reservation": "always"},
        "wrap": {"viewport_aspect": request.fold},
        "tuning": {"wrap": {"max_rows": _MAX_ROWS}, "routing": {"diagonal_clear": 0.0}},
    }
