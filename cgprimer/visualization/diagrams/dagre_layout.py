"""The layout engine dagre, a JavaScript library that runs in browsers.

`dagre_layout.js` calls dagre. Requests and answers are JSON texts.

Source: https://github.com/dagrejs/dagre
"""

from __future__ import annotations

import json
from collections.abc import Callable

from cgprimer.visualization.diagrams.layered_layout import (
    lay_out_layers,
    route_edges,
    transpose_layout,
)
from cgprimer.visualization.diagrams.layout_requests import (
    LayoutAnswer,
    LayoutEngine,
    LayoutRequest,
)


def create_dagre_engine(layout: Callable[[str], str], smallest: int = 0) -> LayoutEngine:
    """Create a layout engine that calls dagre; dagre does not fold layers into rows.

    Args:
        layout: the function ``layOutWithDagre`` of ``dagre_layout.js``, which accepts the JSON text
            of a request and returns the JSON text of an answer.
        smallest: the number of vertices from which dagre is used; smaller graphs have the built-in
            layout.

    >>> def layout(text):
    ...     return json.dumps({"centers": [[20, 10], [90, 10]], "bends": [[]]})
    >>> engine = create_dagre_engine(layout)
    >>> engine(LayoutRequest(((40, 20), (40, 20)), ((0, 1),), (None,)))
    LayoutAnswer(ranks=(0, 1), centers=((20, 10), (90, 10)), routes=([(40.0, 10.0), (70.0, 10.0)],))
    """

    def lay_out_with_dagre(request: LayoutRequest) -> LayoutAnswer:
        """Lay out a graph in layers with dagre, or a small graph with the built-in layout."""
        if len(request.sizes) < smallest:
            return lay_out_layers(request)
        if request.down:
            return transpose_layout(lay_out_with_dagre, request)
        answer = json.loads(layout(_encode_request(request)))
        centers = tuple((x, y) for x, y in answer["centers"])
        columns = sorted({x for x, _ in centers})  # dagre centers the vertices of a layer
        ranks = tuple(columns.index(x) for x, _ in centers)
        bends = [[(x, y) for x, y in points] for points in answer["bends"]]
        return LayoutAnswer(ranks, centers, route_edges(request, ranks, centers, bends))

    return lay_out_with_dagre


def _encode_request(request: LayoutRequest) -> str:
    """Encode a request for layers from left to right as JSON."""
    label_sizes = [
        (size[0] + 2 * request.label_gap, size[1]) if size else (0, 0)
        for size in request.label_sizes
    ]
    return json.dumps(
        {
            "sizes": request.sizes,
            "edges": request.edges,
            "label_sizes": label_sizes,
            "layer_gap": request.layer_gap,
            "node_gap": request.node_gap,
            "edge_gap": request.edge_gap,
        }
    )
